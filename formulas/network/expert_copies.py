"""Dispatch and combine when a node gets one copy of a token, however many of its experts it holds.

The node passes the copy on inside. Who sends one copy for each expert instead sends up to k.
"""

from functools import cache

from formulas.algebra.notation import *

UNIFORM = "each token picks k different experts, every set of k equally likely"
ASSUME_EVEN_PLACEMENT = "experts lie evenly over nodes"
ROUTING = deepseek_v3.at("section 2.1.2, node-limited routing")
DISPATCH = deepseek_v3.at("section 3.2.2, dispatch and combine")
RANDOM = "the token's own node is one like the others"


@cache
def distinct_nodes_equation(k: int) -> Equation:
    """Nodes expected to hold at least one of a token's `k` experts.

    The chance that a node holds none is C(E - E/m, k) / C(E, k), here as k factors, because an
    integer k is part of the form. Raises ValueError if `k` is not a positive integer.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k is {k!r}; a token visits a whole number of experts, at least 1")
    others = n_experts - n_experts / m_group
    missed = Mul(*(maximum(others - i, Integer(0)) / (n_experts - i) for i in range(k)))
    return Equation(
        f"nodes that hold an expert of a token that visits {k}",
        k_nodes,
        m_group * (1 - missed),
        assumes=(UNIFORM, ASSUME_EVEN_PLACEMENT, f"k = {k}, no more than there are experts"),
        source=derived,
    )


distinct_nodes = distinct_nodes_equation(8)

nodes_in_reach = Equation.of(
    k_reach,
    minimum(k_nodes, g_limit),
    "routing may choose experts of at most g_limit nodes: an upper bound",
    source=ROUTING,
)

remote_copies = Equation.of(
    k_remote,
    (m_group - 1) / m_group * k_reach,
    RANDOM,
    "one copy for each node, which passes it on inside",
    source=DISPATCH,
    where=(nodes_in_reach,),
)

copy_saving = Equation.of(
    x_dedup,
    k_nodes / k_experts,
    "a node that holds several of a token's experts gets one copy",
    source=derived,
)

dispatch_bytes = Equation.of(
    b_disp,
    b_elem + b_scale / c_scale,
    "c_scale neighbouring elements share one scale",
    source=deepseek_v3.at("section 3.3.2, fine-grained quantization"),
)

copy_bytes = Equation.of(
    v_copy,
    h_exp * b_disp,
    "a copy is the token's vector alone; its destination is small beside it",
    source=deep_ep.at("README, low-latency kernels"),
    where=(dispatch_bytes,),
)

dispatch_time = Equation.of(
    T_disp,
    alpha_c + n_hand * k_remote * v_copy / (r_out * e_net),
    RANDOM,
    "every chip sends the copies of its own tokens through its own network card",
    "what stays in a node costs no time beside what leaves it",
    source=DISPATCH,
    where=(copy_bytes,),
)

combine_time = Equation.of(
    T_comb,
    alpha_c + n_hand * k_remote * h_exp * b_comb / (r_out * e_net),
    RANDOM,
    "answers of one node are added up before they leave it",
    "every chip receives what its own tokens asked for through its own network card",
    source=DISPATCH,
)
