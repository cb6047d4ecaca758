"""What the chips of a replica send each other while they read one prompt.

The same collectives as in a decode step, over the tokens of the prompt, chunk after chunk: floors
count once a chunk, bytes once a prompt, and roots of bytes as the root of chunks times bytes.
"""

from formulas.algebra.notation import *
from formulas.serving.decode import EXPERTS, SHARDING

prompt_reduction_bytes = Equation.of(
    V_ar_pf, L_new * one_seq * h_act * b_act / cp, "one hidden vector per token", source=SHARDING
)

prompt_reductions = Equation.of(
    T_ar_pf,
    n_ar * in_turn(n_half * n_chunks, t_ar, a_ar_pf, V_ar_pf, w_ar_pf, g_ar_pf, e_ar_pf),
    "each chunk, or each half of one, is all-reduced by itself",
    "as many a layer as in a decode step",
    source=SHARDING,
)

prompt_exchange_bytes = Equation.of(
    V_x_pf,
    L_new * one_seq * k_copies_pf * f_skew * h_exp * (b_disp + b_comb) / (tp * cp),
    "the fullest chip gets f_skew times its even share",
    source=EXPERTS,
)

prompt_exchanges = Equation.of(
    T_x_pf,
    n_a2a * in_turn(n_half * n_chunks, t_a2a, a_x_pf, V_x_pf, w_x_pf, g_x_pf, e_a2a),
    "each chunk, or each half of one, is exchanged by itself",
    source=EXPERTS,
)

prompt_hops = Equation.of(
    T_hop_pf,
    n_hop * (t_hop + V_ar_pf / r_hop),
    "one hop between neighbouring stages",
    source=lecture_equations.at("pipeline parallelism"),
)

prefill_network = Equation.of(T_pf_net, T_ar_pf + T_x_pf, "terms follow one another")

PREFILL_NETWORK = equations_in_module(globals())
