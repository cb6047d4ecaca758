"""What tokens cost: from the time of a step, input against output, fast and slow modes."""

from formulas.algebra.notation import *
from formulas.roofline.batching import SHORT_CONTEXT, balance_context, short_context_batch
from formulas.roofline.roofline import OVERLAP, memory_time, step_time

PREFILL = "prefill runs on the arithmetic roof, attention aside"

domain_price = Equation.of(D_step, n_chips * p_chip, "chips are paid for by time, busy or not")

token_cost = Equation.of(
    C_tok,
    n_chips * p_chip * T_step / (B * g),
    "chips are paid for by time, busy or not",
    "no prefill on the same chips",
    source=lecture_equations.at("equation 4"),
    where=(step_time,),
)

input_token_cost = Equation.of(
    C_in,
    D_step * N_active * c_fwd / F,
    PREFILL,
    source=lecture_notes.at("section 5, decode against prefill"),
    where=(domain_price,),
)

output_token_cost = Equation(
    "cost of one output token",
    C_out,
    D_step * maximum(m_pos * N_active * c_fwd / F, (N_total * b_w / B + L_ctx * b_kv) / W) / g,
    assumes=(OVERLAP,),
    source=lecture_notes.at("section 5, decode against prefill"),
    where=(domain_price,),
)

price_ratio = derive(
    "output price over input price",
    begin(rho_price, C_out / C_in, why="by definition"),
    substitute(output_token_cost),
    substitute(input_token_cost),
    rewrite(
        maximum(m_pos, B_0 / B + L_ctx / L_star) / g,
        why="in terms of the critical batch and the balance context",
        where=(short_context_batch, balance_context),
    ),
    source=lecture_notes.at("section 5, decode against prefill"),
    assumes=(PREFILL, OVERLAP, "the ratio of costs, without margins or utilisation"),
)

context_for_ratio = derive(
    "context that a price ratio implies",
    begin(rho_price * g, B_0 / B + L_ctx / L_star, why="the memory branch of the price ratio"),
    solve(L_ctx, L_star * (rho_price * g - B_0 / B), named=L_rho),
    assumes=(
        PREFILL,
        OVERLAP,
        when(rho_price * g > m_pos, why="the ratio is above what arithmetic alone gives"),
        when(rho_price * g > B_0 / B, why="else no context gives so small a ratio"),
    ),
    where=(short_context_batch, balance_context),
)

batch_for_ratio = derive(
    "batch that a price ratio implies",
    begin(rho_price * g, B_0 / B + L_ctx / L_star, why="the memory branch of the price ratio"),
    solve(B, B_0 / (rho_price * g - L_ctx / L_star), named=B_rho),
    source=lecture_notes.at("section 5, decode against prefill"),
    assumes=(
        PREFILL,
        OVERLAP,
        when(rho_price * g > m_pos, why="the ratio is above what arithmetic alone gives"),
        when(rho_price * g > L_ctx / L_star, why="else caches alone give a larger ratio"),
    ),
    where=(short_context_batch, balance_context),
)

ratio_at_twice_critical = derive(
    "price ratio at twice the critical batch and the balance context",
    begin(rho_price, price_ratio, why=price_ratio.name),
    substitute(Equation("twice the critical batch", B, 2 * B_0 / m_pos)),
    substitute(Equation("context at which caches balance arithmetic", L_ctx, m_pos * L_star)),
    rewrite(
        Rational(3, 2) * m_pos / g,
        why="one half from the weights, one from the caches, where arithmetic alone gives m_pos/g",
    ),
    assumes=(
        *price_ratio.assumes,
        "the ratio falls with the batch and rises with the context, so that this is the most "
        "for B >= 2*B_0 and L_ctx <= L_star",
    ),
)

pass_time_per_position = Equation.of(
    T_pos,
    maximum(N_active * c_fwd / F, (N_total * b_w / B + L_ctx * b_kv) / (W * L_pass)),
    OVERLAP,
    "the cache is read once per pass, however many positions it computes",
    source=lecture_notes.at("section 5, cost per token against tokens per pass"),
    branches={
        "arithmetic": N_active * c_fwd / F,
        "memory": (N_total * b_w / B + L_ctx * b_kv) / (W * L_pass),
    },
)

crossover_pass = derive(
    "tokens per pass at which a pass turns to arithmetic",
    begin(
        B * L_pass * N_active * c_fwd / F,
        memory_time,
        why="arithmetic of all positions of a pass, and its bytes",
    ),
    SHORT_CONTEXT,
    solve(L_pass, F * N_total * b_w / (W * N_active * c_fwd * B), named=L_cross),
    rewrite(B_0 / B, why="the critical batch, shared out", where=(short_context_batch,)),
    source=lecture_notes.at("section 5, cost per token against tokens per pass"),
)

fast_batch = derive(
    "batch of a faster mode over the normal one",
    begin(
        1 / s_fast,
        w_fix + (1 - w_fix) * beta_B,
        why="time of the faster step over that of the normal one",
    ),
    solve(beta_B, (1 / s_fast - w_fix) / (1 - w_fix)),
    source=lecture_notes.at("section 1, fast mode and slow mode"),
    assumes=(
        "a step is a fixed part and a part proportional to the batch",
        "the fixed part does not shrink with the batch, as expert coverage would make it",
        when(w_fix < 1),
        when(s_fast * w_fix < 1),
    ),
)

fast_price = derive(
    "price of a faster mode over the normal one",
    begin(x_price, 1 / (s_fast * beta_B), why="time of a step shared by fewer sequences"),
    substitute(fast_batch),
    rewrite((1 - w_fix) / (1 - s_fast * w_fix)),
    source=lecture_notes.at("section 1, fast mode and slow mode"),
    assumes=fast_batch.assumes,
)

fixed_share = derive(
    "fixed share of the normal step that a fast mode's price implies",
    begin(x_price, fast_price, why=fast_price.name),
    solve(w_fix, (x_price - 1) / (s_fast * x_price - 1)),
    source=lecture_notes.at("section 1, fast mode and slow mode"),
    assumes=(*fast_batch.assumes, when(x_price > 1), when(s_fast * x_price > 1)),
)

fastest_speed = derive(
    "largest speed a faster mode can reach",
    begin(1 / s_fast, w_fix, why="an empty batch leaves the fixed part"),
    solve(s_fast, 1 / w_fix, named=s_most),
    assumes=fast_batch.assumes[:2],
)
