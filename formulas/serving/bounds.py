"""Least times of a decode step and of a prompt: roofs of memory, arithmetic and network.

Overlap is perfect and there is no overhead. Nothing measured may lie below a bound, so what a lucky
router or a clever switch could save is not counted: k of E experts are read, a switch may reduce,
tokens may find their experts at home; a prompt uses all chips of a replica and reads weights once.
"""

from formulas.algebra.notation import *
from formulas.serving.decode import DECODE_SHARED
from formulas.serving.prefill import PREFILL_SHARED, prefill_attention, prefill_math

least_weights_read = Equation.of(
    V_w_bound,
    S_fixed / tp
    + S_routed * (k_experts / n_experts) / (ep * xtp)
    + n_draft * (S_draft / tp + S_draft_x * (k_draft / e_draft) / (ep * xtp)),
    "all tokens may choose the same k experts",
    "each drafted token takes a pass of the drafter, which reads its weights",
)

memory_bound = Equation.of(
    T_mem_bound,
    Max(0, V_w_bound + V_kv_dec - pp * M_sram) / W_chip,
    "what on-chip memory can hold need not be read again",
    source=lecture_equations.at("equation 3"),
)

math_bound = Equation.of(
    T_math_bound,
    T_dense
    + c_fwd * b_slice * m_pos * N_exp / (F_routed * ep * xtp)
    + T_sdpa
    + n_draft
    * c_fwd
    * (one_token / one_seq)
    * (b_own * N_draft / (F_draft * tp) + b_slice * N_draft_x / (F_routed * ep * xtp)),
    "perfect balance, datasheet peak",
    source=lecture_equations.at("equation 2"),
)

network_bound = Equation.of(
    T_net_bound,
    n_ar * q_ar * V_ar / (2 * r_ar) + n_hop * b_own * m_pos * h_act * b_act / (tp * r_hop),
    "a switch that reduces halves the traffic of an all-reduce",
    "a token may find all its experts on its own chip",
    "what the parts of a context send each other may hide behind attention",
    "every chip of a rank sends its share of a vector to the next stage",
)

decode_bound = Equation.of(
    T_dec_bound,
    maximum(T_mem_bound, T_math_bound, T_net_bound),
    "memory, arithmetic and network overlap perfectly, no overhead",
    source=lecture_equations.at("equation 1"),
)

prefill_math_bound = Equation.of(
    T_pf_math_bound,
    (prefill_math.rhs + prefill_attention.rhs).subs(dict.fromkeys((e_pf, e_pf_x, e_pf_a, x_ep), 1))
    / (dp * pp),
    "every chip of the replica works on the prompt",
    source=lecture_equations.at("equation 2"),
)

first_token_bound = Equation.of(
    T_ttft_bound,
    maximum(
        T_pf_math_bound,
        (S_fixed / (tp * dp) + S_routed * (k_experts / n_experts) / (ep * xtp))
        / (W_chip * cp * pp),
    ),
    "perfect overlap, all chips of a replica on one prompt, k experts read",
    source=lecture_equations.at("equation 1"),
)

prefill_busy_bound = Equation.of(
    T_pf_busy_bound,
    T_pf_math_bound,
    "weights are read anyway by the decode steps that carry the chunks",
    source=lecture_equations.at("equation 1"),
)

BOUNDS = (*DECODE_SHARED, *PREFILL_SHARED, *equations_in_module(globals()))
