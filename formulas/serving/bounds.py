"""The least one decode step can take: three roofs, perfect overlap, no overhead.

Nothing measured may lie below it, so what a lucky router or a clever switch could save is not
counted: k of E experts are read, a switch may reduce, tokens may find their experts at home.
"""

from sympy import Max

from formulas.algebra.equation import Equation
from formulas.nomenclature.serving import b_own, b_slice
from formulas.nomenclature.sources import definition, lecture_equations
from formulas.nomenclature.symbols import c_fwd, k_experts, m_pos, n_experts
from formulas.nomenclature.symbols_serving import (
    F_routed,
    M_sram,
    N_exp,
    S_fixed,
    S_routed,
    T_dec_bound,
    T_dense,
    T_math_bound,
    T_mem_bound,
    T_net_bound,
    T_sdpa,
    V_ar,
    V_kv_dec,
    V_w_bound,
    W_chip,
    b_act,
    ep,
    h_act,
    n_ar,
    n_hop,
    pp,
    q_ar,
    r_ar,
    r_hop,
    tp,
    xtp,
)
from formulas.serving.decode import COMMON

__all__ = [
    "DECODE_BOUND",
    "decode_bound",
    "least_weights_read",
    "math_bound",
    "memory_bound",
    "network_bound",
]

least_weights_read = Equation(
    "weight bytes that no routing avoids",
    V_w_bound,
    S_fixed / tp + S_routed * (k_experts / n_experts) / (ep * xtp),
    assumes=("all tokens may choose the same k experts",),
    source=definition,
    tags=("result 9", "C4"),
)

memory_bound = Equation(
    "memory roof of one step",
    T_mem_bound,
    Max(0, V_w_bound + V_kv_dec - pp * M_sram) / W_chip,
    assumes=("what on-chip memory can hold need not be read again",),
    source=lecture_equations.at("equation 3"),
)

math_bound = Equation(
    "arithmetic roof of one step",
    T_math_bound,
    T_dense + c_fwd * b_slice * m_pos * N_exp / (F_routed * ep * xtp) + T_sdpa,
    assumes=("perfect balance, datasheet peak",),
    source=lecture_equations.at("equation 2"),
)

network_bound = Equation(
    "network roof of one step",
    T_net_bound,
    n_ar * q_ar * V_ar / (2 * r_ar) + n_hop * b_own * m_pos * h_act * b_act / (tp * r_hop),
    assumes=(
        "a switch that reduces halves the traffic of an all-reduce",
        "a token may find all its experts on its own chip",
        "what the parts of a context send each other may hide behind attention",
        "every chip of a rank sends its share of a vector to the next stage",
    ),
    source=definition,
)

decode_bound = Equation(
    "decode step of one replica, bound",
    T_dec_bound,
    Max(T_mem_bound, T_math_bound, T_net_bound, evaluate=False),
    assumes=("memory, arithmetic and network overlap perfectly, no overhead",),
    source=lecture_equations.at("equation 1"),
    tags=("C1",),
)

DECODE_BOUND = (*COMMON, least_weights_read, memory_bound, math_bound, network_bound, decode_bound)
