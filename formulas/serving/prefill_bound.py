"""The least a prompt can take: arithmetic on all chips of a replica, weights read once."""

from sympy import Max

from formulas.algebra.equation import Equation
from formulas.nomenclature.serving import cp
from formulas.nomenclature.sources import lecture_equations
from formulas.nomenclature.symbols import c_fwd, k_experts, n_experts
from formulas.nomenclature.symbols_serving import (
    A_bnd_pf,
    F_attn,
    F_ffn,
    F_head,
    F_routed,
    F_sdpa,
    L_new,
    N_attn,
    N_exp,
    N_ffn,
    N_head,
    P_pairs,
    S_fixed,
    S_routed,
    T_pf_busy_bound,
    T_pf_math_bound,
    T_ttft_bound,
    W_chip,
    a_pf,
    dp,
    ep,
    one_seq,
    one_token,
    pp,
    tp,
    xtp,
)
from formulas.serving.prefill import COMMON

__all__ = ["PREFILL_BOUND", "first_token_bound", "prefill_busy_bound", "prefill_math_bound"]

prefill_math_bound = Equation(
    "arithmetic roof of one prompt on one replica",
    T_pf_math_bound,
    (
        c_fwd * L_new * (N_attn / F_attn + N_ffn / F_ffn + N_exp / F_routed)
        + c_fwd * (N_head / F_head) * one_token / one_seq
        + (a_pf * P_pairs + A_bnd_pf * L_new) / F_sdpa
    )
    * one_seq
    / (tp * dp * cp * pp),
    assumes=("every chip of the replica works on the prompt",),
    source=lecture_equations.at("equation 2"),
)

first_token_bound = Equation(
    "time to first token, bound",
    T_ttft_bound,
    Max(
        T_pf_math_bound,
        (S_fixed / (tp * dp) + S_routed * (k_experts / n_experts) / (ep * xtp))
        / (W_chip * cp * pp),
        evaluate=False,
    ),
    assumes=("perfect overlap, all chips of a replica on one prompt, k experts read",),
    source=lecture_equations.at("equation 1"),
)

prefill_busy_bound = Equation(
    "time a replica spends per prompt, bound",
    T_pf_busy_bound,
    T_pf_math_bound,
    assumes=("weights are read anyway by the decode steps that carry the chunks",),
    source=lecture_equations.at("equation 1"),
)

PREFILL_BOUND = (*COMMON, prefill_math_bound, first_token_bound, prefill_busy_bound)
