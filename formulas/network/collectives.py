"""How long a collective takes: a floor, bytes over a rate, and a square-root term between.

A topology answers in plain numbers (rate of a group by its shape, latency); these equations turn
them into seconds. The square-root term is what a flat `latency + bytes/rate` misses in mid-range.
Sizes are counted as nccl-tests does: what each chip holds (all-reduce), ends with (all-gather),
begins with (reduce-scatter) or sends, its own part included (all-to-all).
"""

from formulas.algebra.notation import *

RING = patarasuk_2009.at("the bandwidth-optimal ring")
TREES = sanders_2009.at("two complementary binary trees")
SYMMETRIC = "one message of V_msg bytes per chip, all chips of the group at once"
CITE_BUS_BANDWIDTH = "doc/PERFORMANCE.md"
PIPELINE = "the message is long enough to be cut into many pieces"
KERNEL = "every chip reads the memory of the others in one kernel"

collective_time = Equation.of(
    t_coll,
    alpha_c + q_wire * V_msg / (r_link * e_net) + gamma_c * sqrt(V_msg),
    SYMMETRIC,
    "the square-root term spans the range between the latency floor and the full rate",
    source=thakur_2005.at("section 3, alpha-beta model; the square-root term is a fit of ours"),
)

# -- bytes on the wire ------------------------------------------------------------------------

all_reduce_traffic = Equation.of(
    q_ar,
    2 * (n_group - 1) / n_group,
    "ring or optimal trees, no reduction inside the switch",
    source=nccl_tests.at(f"{CITE_BUS_BANDWIDTH}, AllReduce"),
)

all_gather_traffic = Equation.of(
    q_ag,
    (n_group - 1) / n_group,
    "each chip keeps its own share",
    source=nccl_tests.at(f"{CITE_BUS_BANDWIDTH}, AllGather and ReduceScatter"),
)

all_to_all_traffic = Equation.of(
    q_a2a, Integer(1) - 1 / n_group, "every destination is equally likely, the chip itself included"
)

tree_traffic = Equation.of(
    q_tree,
    Integer(2),
    "two complementary trees, so that every chip is a leaf of one",
    PIPELINE,
    source=TREES,
)

one_shot_traffic = Equation.of(
    q_one, n_group - 1, KERNEL, "each chip adds up the whole message itself"
)

in_network_traffic = Equation.of(
    q_switch,
    Integer(1),
    "the switch adds what the chips send and sends the sum to all",
    PIPELINE,
    source=klenk_2020.at("reduction and multicast in the switch"),
)

in_network_gain = Equation.of(
    x_switch,
    q_ar / q_switch,
    "both reach the rate of the link",
    source=derived,
    where=(all_reduce_traffic, in_network_traffic),
)

# -- latency ----------------------------------------------------------------------------------

latency_floor_of_steps = Equation.of(
    alpha_c,
    alpha_0 + n_steps * alpha_1,
    "steps follow one another; every step has the same latency",
    source=nccl.at("src/graph/tuning.cc, base and hardware latencies"),
)

all_gather_steps = Equation(
    "steps of a ring that gathers or reduce-scatters",
    n_steps,
    n_group - 1,
    assumes=("in each step a chip passes on what it got in the one before",),
    source=RING,
)

all_reduce_steps = Equation(
    "steps of a ring that all-reduces",
    n_steps,
    2 * (n_group - 1),
    assumes=("a reduce-scatter, then an all-gather",),
    source=RING,
)

tree_steps = Equation(
    "steps of trees that all-reduce",
    n_steps,
    2 * log(n_group) / log(2),
    assumes=("up a binary tree and down again",),
    source=TREES,
)

# -- from one stage to the next ---------------------------------------------------------------

hop_latency = Equation.of(
    t_hop,
    t_hop_net + t_hop_sw,
    "what software does to hand a microbatch over does not overlap with the network",
    source=derived,
)

hand_over_time = Equation.of(
    T_pass,
    t_hop + n_hand * h_act * b_act / r_hop,
    "one message; connections are set up before",
    source=hockney_1994.at("startup time and asymptotic bandwidth"),
    where=(hop_latency,),
)
