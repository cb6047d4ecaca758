"""Speculative decoding: how many tokens a step emits, and what drafting them takes.

A step checks one position and every drafted one; the tokens that it emits are its own and those
drafts that are accepted, one after the other until the first that is not. A drafter is a predictor
layer with a head, or a model of its own, that passes once per drafted token over all sequences: it
reads its weights and its cache, multiplies, adds up between chips, and is launched each time.
"""

from formulas.algebra.notation import *

CHAIN = leviathan_2022.at("section 2")
HEAD = li_2024.at("section 3")
POPULAR = "positions pick independently, an expert as often as it is popular: an exponential number"
# Its Gini coefficient is 1/2, where 0.44 and 0.65 were measured and uniform routing has 0.
IN_DEMAND = ((POPULAR,), orkllm_2026.at("history, 2026-06-26"))


def popular_share(k: Expr, experts: Expr, n: Expr) -> Expr:
    """Mean of 1 - exp(-n x), x exponential of mean k/(E - k): of n positions, one picks k of E."""
    return k * n / (experts - k + k * n)


draft_chance = Equation.of(
    p_draft,
    Min(1, a_draft * q_draft ** (i_draft - 1)),
    "the chance changes by the same factor from each drafted token to the next",
    "alike for all sequences, whatever the batch",
    source=HEAD,
)

tokens_of_drafts = Equation.of(
    g,
    one_token / one_seq + p_draft * g_next,
    "drafts are a chain: one that is refused ends it, and the step's own token takes its place",
    "after the last draft a step emits the one token that it drew itself",
    source=CHAIN,
)

accepted_run = Equation.of(
    r_draft,
    a_draft**i_draft * q_draft ** (i_draft * (i_draft - 1) / 2),
    "no chance reaches 1: a step emits one token and the sum of these over its drafts",
    source=CHAIN,
)

draft_coverage = Equation(
    "expected share of a drafter's experts that one pass reads",
    cov_draft,
    popular_share(k_draft, e_draft, b_slice / one_seq),
    *IN_DEMAND,
)

draft_weights_read = Equation.of(
    V_draft,
    S_draft / tp + S_draft_x * cov_draft * u_ep / (ep * xtp),
    "sharded as the model is",
    "the head is read with every pass",
)

draft_memory_time = Equation.of(
    T_draft_mem,
    V_draft / (W_chip * e_w)
    + b_rank * (b_draft * L_ctx + R_draft) * f_heads / (cp * W_chip * e_kv),
    "each pass reads the drafter's weights, and its cache of every sequence",
)

draft_math_time = Equation.of(
    T_draft_math,
    c_fwd
    * (one_token / one_seq)
    * (b_own * N_draft / (F_draft * tp) + b_slice * N_draft_x * x_ep / (F_routed * ep * xtp))
    / e_c
    + (one_token / one_seq) * b_rank * (c_draft * L_ctx + A_draft) / (cp * F_sdpa * tp * e_at),
    "one position of every sequence, at the efficiencies of the model",
)

draft_sum_bytes = Equation.of(
    V_draft_ar,
    b_own * (one_token / one_seq) * h_draft * b_act,
    "one hidden vector of the drafter per sequence",
)

draft_network_time = Equation.of(
    T_draft_net,
    n_draft_ar * in_turn(1, t_ar, a_ar, V_draft_ar, w_ar, g_ar, e_ar)
    + n_draft_a2a * in_turn(1, t_a2a, a_x, V_x * one_token / (m_pos * one_seq), w_x, g_x, e_a2a),
    "the drafter's layers add up and exchange as the model's do, with one position a sequence",
)

draft_launch_time = Equation.of(
    T_draft_over,
    n_draft_lay * t_layer + n_draft_moe * t_moe + b_rank * t_seq + t_step,
    "a pass launches its layers, and what a step launches once: head, sampling, the rest",
    "each pass draws a token for every sequence",
)

draft_time = Equation.of(
    T_draft,
    f_pace * (T_draft_mem + T_draft_math + T_draft_net + T_draft_over),
    "the terms of a pass follow one another, as those of a step do",
)

drafting_time = Equation.of(
    T_spec,
    n_draft * T_draft,
    "drafts are drawn one after the other, each from the one before",
    source=HEAD,
)

_LAYERS = N_draft_lay / (F_draft * e_pf) + N_draft_x * x_ep / (F_routed * e_pf_x)
draft_prompt_time = Equation.of(
    T_draft_pf,
    c_fwd * L_new * one_seq * _LAYERS / (tp * cp),
    "a drafter has a cache of every prompt token; its attention is small beside its products",
)

draft_prompt_passes = Equation.of(
    T_draft_pass,
    n_chunks
    * (
        (S_draft / tp + S_draft_x * u_ep / (ep * xtp)) / (W_chip * e_w)
        + n_draft_lay * t_layer
        + n_draft_moe * t_pf_moe
    ),
    "one pass for each chunk, as the model's own",
)

break_even_batch = derive(
    "batch up to which drafting pays",
    begin(
        g * (t_const + t_each * B),
        (one_token / one_seq)
        * (t_const + t_each * B + n_draft * (t_check * B + t_draft_const + t_draft_each * B)),
        why="as many tokens in the time of plain steps as in a step that drafts",
    ),
    solve(
        B,
        ((g * one_seq / one_token - 1) * t_const - n_draft * t_draft_const)
        / (n_draft * (t_check + t_draft_each) - (g * one_seq / one_token - 1) * t_each),
        named=B_even,
    ),
    assumes=(
        "a step, a position more to check and a pass of the drafter each take a fixed time and one "
        "proportional to the batch; all experts are read, or there are none",
        when(
            n_draft * (t_check + t_draft_each) > (g * one_seq / one_token - 1) * t_each,
            why="else drafting pays at every batch",
        ),
        when(
            (g * one_seq / one_token - 1) * t_const > n_draft * t_draft_const,
            why="else it pays at none",
        ),
    ),
)

DRAFTING = (
    *(
        e
        for e in equations_in_module(globals())
        if e.symbol.name.startswith(("T_", "V_", "cov_"))
        and e.symbol not in (T_draft_pf, T_draft_pass)
    ),
)
