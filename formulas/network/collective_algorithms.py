"""What each algorithm of a collective takes at the full rate of its links, and where they cross.

These are the physics: launch, steps, bytes over rate. What real libraries reach of them is a
profile, which stands beside them in `planner`.
"""

from formulas.algebra.notation import *
from formulas.network import collectives
from formulas.network.collectives import KERNEL, PIPELINE, RING, SYMMETRIC, TREES

HIERARCHY = (
    "reduce-scatter in each node, all-reduce of equal shares between nodes, all-gather in each",
    "every node holds as many chips of the group as every other",
    "bandwidth alone",
)
BY_LEVELS = thakur_2005.at("all-reduce as reduce-scatter and all-gather")

SHARE_BY_SHARE = begin(
    t_coll,
    alpha_0 + n_steps * (alpha_1 + V_msg / (n_group * r_link)),
    why="each step moves one share of the message",
)

ring_all_gather = derive(
    "time of a ring all-gather or reduce-scatter",
    SHARE_BY_SHARE,
    substitute(collectives.all_gather_steps),
    rewrite(
        alpha_0 + (n_group - 1) * alpha_1 + q_ag * V_msg / r_link,
        why="latency and bytes apart",
        where=(collectives.all_gather_traffic,),
    ),
    source=RING,
    assumes=(SYMMETRIC,),
)

ring_all_reduce = derive(
    "time of a ring all-reduce",
    SHARE_BY_SHARE,
    substitute(collectives.all_reduce_steps),
    rewrite(
        alpha_0 + 2 * (n_group - 1) * alpha_1 + q_ar * V_msg / r_link,
        why="latency and bytes apart",
        where=(collectives.all_reduce_traffic,),
    ),
    source=RING,
    assumes=(SYMMETRIC,),
)

tree_all_reduce = Equation(
    "time of an all-reduce in trees",
    t_coll,
    alpha_0 + 2 * log(n_group) / log(2) * alpha_1 + q_tree * V_msg / r_link,
    assumes=(SYMMETRIC, PIPELINE),
    source=TREES,
    where=(collectives.tree_traffic,),
)

one_shot_all_reduce = Equation(
    "time of an all-reduce in one shot",
    t_coll,
    alpha_0 + alpha_1 + q_one * V_msg / r_link,
    assumes=(SYMMETRIC, KERNEL),
    source=derived,
    where=(collectives.one_shot_traffic,),
)

two_shot_all_reduce = Equation(
    "time of an all-reduce in two shots",
    t_coll,
    alpha_0 + 2 * alpha_1 + q_ar * V_msg / r_link,
    assumes=(
        SYMMETRIC,
        KERNEL,
        "each chip adds up one share and then reads the shares of the others",
    ),
    source=derived,
    where=(collectives.all_reduce_traffic,),
)

one_shot_limit = derive(
    "message up to which one shot is faster than two",
    begin(
        alpha_0 + alpha_1 + (n_group - 1) * V_msg / r_link,
        alpha_0 + 2 * alpha_1 + 2 * (n_group - 1) / n_group * V_msg / r_link,
        why="both take equal time",
    ),
    solve(V_msg, n_group * alpha_1 * r_link / ((n_group - 1) * (n_group - 2)), named=V_even),
    assumes=(when(n_group > 2, why="for two chips one shot is always the faster"),),
)

tree_limit = derive(
    "message up to which trees are faster than a ring",
    begin(
        alpha_0 + 2 * log(n_group) / log(2) * alpha_1 + 2 * V_msg / r_link,
        alpha_0 + 2 * (n_group - 1) * alpha_1 + 2 * (n_group - 1) / n_group * V_msg / r_link,
        why="both take equal time",
    ),
    solve(V_msg, n_group * alpha_1 * r_link * (n_group - 1 - log(n_group) / log(2)), named=V_even),
    assumes=(when(n_group > 2, why="both reach the rate of the link"),),
)

in_network_all_reduce = Equation(
    "time of an all-reduce in the switch",
    t_coll,
    alpha_c + q_switch * V_msg / r_link,
    assumes=(SYMMETRIC, PIPELINE, "the switch reduces as fast as its links deliver"),
    source=klenk_2020.at("reduction and multicast in the switch"),
    where=(collectives.in_network_traffic,),
)

# -- several nodes ----------------------------------------------------------------------------

inner_time = Equation.of(
    T_inner, 2 * (g_node - 1) / g_node * V_msg / r_up, *HIERARCHY, source=BY_LEVELS
)

outer_time = Equation.of(
    T_outer,
    2 * (m_group - 1) / m_group * V_msg / (g_node * r_out),
    *HIERARCHY,
    "every chip has a network card of its own",
    source=BY_LEVELS,
)

all_reduce_serial = Equation.of(
    T_serial, T_inner + T_outer, *HIERARCHY, source=derived, where=(inner_time, outer_time)
)

all_reduce_overlapped = Equation.of(
    T_overlap,
    maximum(T_inner, T_outer),
    *HIERARCHY,
    PIPELINE,
    source=derived,
    where=(inner_time, outer_time),
)
