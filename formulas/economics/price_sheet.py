"""What a price sheet implies: sizes, bytes of a cache, batches, fixed shares, prices of holding.

A listed price is a cost times a mark-up, so that each reading holds for what its symbols may be:
as intervals, evaluated at their ends. `F`, `W`, `M` and `D_step` are those of one chip.
"""

from formulas.algebra.notation import *
from formulas.economics.prices import PREFILL, fast_price, input_token_cost
from formulas.economics.speed_modes import MODES
from formulas.roofline.batching import balance_context, short_context_batch
from formulas.roofline.roofline import OVERLAP

SHEET = lecture_notes.at("section 5, prices as an oracle")
ASSUME_UNIFORM_MARKUP = "every listed price is its cost times one mark-up"
FLOOR = "no listed price lies below its cost"

active_from_level = derive(
    "active parameters that an input price implies",
    begin(
        p_in / mu_mark,
        D_step * N_active * c_fwd / (F * e_pf),
        why="a prompt token costs its arithmetic at the attained share of the peak",
        of=(input_token_cost,),
    ),
    solve(N_active, p_in * F * e_pf / (mu_mark * D_step * c_fwd)),
    source=SHEET,
    assumes=(PREFILL,),
)

memory_share = derive(
    "memory over arithmetic that a price ratio implies",
    begin(
        rho_price,
        (q_mem * N_active * c_fwd / (F * e_dec)) / (g * N_active * c_fwd / (F * e_pf)),
        why="an output token is q times its arithmetic in reading, at the shares attained",
    ),
    solve(q_mem, rho_price * g * e_dec / e_pf),
    source=SHEET,
    assumes=(PREFILL, OVERLAP, ASSUME_UNIFORM_MARKUP, "decode is bound by memory"),
)

batch_from_ratio = derive(
    "batch over the critical one that a price ratio implies",
    begin(
        q_mem * N_active * c_fwd / F,
        N_total * b_w / (B * W) + L_ctx * b_kv / W,
        why="reading weights and caches",
    ),
    drop(
        L_ctx * b_kv / W,
        beside=N_total * b_w / (B * W),
        why="caches left out: with them the batch is larger",
    ),
    solve(B, F * N_total * b_w / (W * N_active * c_fwd * q_mem), named=B_rho),
    rewrite(
        B_0 / q_mem, why="the critical batch over what memory takes", where=(short_context_batch,)
    ),
    source=SHEET,
    assumes=(PREFILL, OVERLAP, ASSUME_UNIFORM_MARKUP),
)

least_batch_over_critical = Equation(
    "least batch over the critical batch that prices tell",
    x_crit,
    m_pos / q_mem,
    assumes=("caches are not read: with them the batch is larger",),
    source=SHEET,
)

cache_below_ratio = derive(
    "most cache bytes per token that a price ratio leaves room for",
    begin(
        q_mem * N_active * c_fwd / F,
        L_ctx * b_kv / W,
        why="reading the caches takes all of what memory takes",
    ),
    solve(b_kv, q_mem * N_active * c_fwd * W / (F * L_ctx)),
    source=SHEET,
    assumes=(PREFILL, OVERLAP, FLOOR, "reading the weights is left out: with it, fewer bytes"),
)

context_below_ratio = derive(
    "longest context that a price ratio pays for",
    begin(
        q_mem * N_active * c_fwd / F,
        L_ctx * b_kv / W,
        why="reading the caches takes all of what memory takes",
    ),
    solve(L_ctx, q_mem * N_active * c_fwd * W / (F * b_kv)),
    source=SHEET,
    assumes=(PREFILL, OVERLAP, FLOOR, "reading the weights is left out: with it, fewer tokens"),
)

balance_from_step = derive(
    "balance context that a step of the output price implies",
    begin(
        x_step,
        (1 + L_above / (m_pos * L_star)) / (1 + L_below / (m_pos * L_star)),
        why="arithmetic, and caches that grow with the context, above the step and below it",
    ),
    solve(L_star, (L_above - x_step * L_below) / (m_pos * (x_step - 1))),
    source=derived,
    assumes=(
        "the step reprices the whole request, and follows the mean cost on either side",
        "weights and arithmetic of a position take as long at both lengths",
        when(x_step > 1),
        when(L_above > x_step * L_below, why="else longer contexts explain it all"),
    ),
)

cache_from_step = derive(
    "cache bytes per token that a step of the output price implies",
    begin(balance_context),
    solve(b_kv, N_active * c_fwd * W / (F * L_star)),
    source=derived,
    assumes=balance_from_step.assumes[:2],
)

attention_from_step = derive(
    "context at which attention equals the weights, that a step of the input price implies",
    begin(
        x_step,
        (1 + L_above / (2 * L_a)) / (1 + L_below / (2 * L_a)),
        why="a prompt attends to half of itself on average",
    ),
    solve(L_a, (L_above - x_step * L_below) / (2 * (x_step - 1))),
    source=derived,
    assumes=(
        "the step reprices the whole request, and follows the mean cost on either side",
        when(x_step > 1),
        when(L_above > x_step * L_below, why="else longer prompts explain it all"),
    ),
)

mode_batch = Equation(
    "batch of a mode over the normal batch",
    beta_B,
    1 / (s_fast * x_price),
    assumes=("both modes earn the same per second of a step",),
    source=MODES,
)

mode_limit = derive(
    "largest speed of a mode by its price and speed",
    begin(s_most, 1 / w_fix, why="an empty batch leaves the fixed part"),
    substitute(
        Equation(
            "fixed share of the normal step", w_fix, (x_price - 1) / (s_fast * x_price - 1),
            assumes=(when(x_price > 1), when(s_fast * x_price > 1)), source=MODES,
        )
    ),
    source=MODES,
    assumes=fast_price.assumes[:2],
)  # fmt: skip

slow_mode_floor = derive(
    "price of a slow mode at an unbounded batch over the normal price",
    begin(x_slow_m, w_fix / beta_B + (1 - w_fix), why="the fixed part, shared by a larger batch"),
    limit(beta_B, oo, 1 - w_fix, why="what the batch shares vanishes, the rest does not"),
    source=MODES,
    assumes=(*fast_price.assumes[:2], when(w_fix < 1)),
)

slow_mode_share = derive(
    "fixed share of the normal step that a slow tier needs",
    begin(slow_mode_floor),
    solve(w_fix, 1 - x_slow_m),
    source=MODES,
    assumes=(*slow_mode_floor.assumes, "no hour is idle", when(x_slow_m < 1)),
)

idle_share = derive(
    "share of idle hours that a slow tier needs beside a fixed share",
    begin(
        x_slow_m,
        (1 - w_fix) * (1 - u_idle),
        why="an unbounded batch, paid for in the hours that are not idle",
    ),
    solve(u_idle, 1 - x_slow_m / (1 - w_fix)),
    source=derived,
    assumes=(*slow_mode_floor.assumes, "idle hours cost nothing", when(x_slow_m < 1 - w_fix)),
)

hold_price = Equation.of(
    q_hold,
    (p_w2 - p_w1) / (t_w2 - t_w1),
    "the price of a write is a straight line in the time it is held",
    when(t_w2 > t_w1),
    source=SHEET,
)

write_surcharge = Equation.of(
    x_write0,
    (p_w1 - q_hold * t_w1 - p_in) / p_in,
    "the price of a write is a straight line in the time it is held",
    source=SHEET,
    where=(hold_price,),
)

hold_over_input = Equation.of(
    x_hold_h, q_hold / p_in, "a cache is paid for by the time it is held", source=SHEET
)

break_even_reads = derive(
    "reads at which a held cache pays",
    begin(
        q_hold, f_reads * (p_in - p_cached), why="each read saves an input token for a cached one"
    ),
    solve(f_reads, q_hold / (p_in - p_cached)),
    source=derived,
    assumes=(when(p_cached < p_in, why="else a read saves nothing"),),
)

break_even_requests = derive(
    "requests of one prefix from which writing its cache pays",
    begin(
        p_write + (n_pays - 1) * p_cached,
        n_pays * p_in,
        why="the first request writes, the others read; or each pays its input",
    ),
    solve(n_pays, (p_write - p_cached) / (p_in - p_cached)),
    source=derived,
    assumes=(
        when(p_cached < p_in, why="else a read saves nothing"),
        "every request comes while the cache is held",
    ),
)

cache_from_hold = derive(
    "cache bytes per token that a price of holding implies",
    begin(
        q_hold,
        mu_hold * b_kv * D_step / M,
        why="a share of the chip's memory costs that share of its rent",
    ),
    solve(b_kv, q_hold * M / (mu_hold * D_step)),
    source=SHEET,
    assumes=("the cache lies in the memory of the chip, all of it paid for by what it holds",),
)

mark_up = Equation.of(mu_mark, p_mix / C_mark, "the plan is what the host runs", source=derived)

fitted_active = Equation(
    "active parameters by the input prices of open models",
    N_active,
    N_ref * (p_in / p_ref) ** k_in,
    assumes=("fitted on listed prices of models whose weights are public",),
    source=derived,
)

fitted_total = Equation(
    "parameters by the prices of open models",
    N_total,
    N_ref * (p_in / p_ref) ** k_in * (p_out / p_ref) ** k_out,
    assumes=("fitted on listed prices of models whose weights are public",),
    source=derived,
)

fitted_output = Equation(
    "output price by the sizes of open models",
    p_out,
    p_ref * (N_active / N_ref) ** k_active * (N_total / N_ref) ** k_tot,
    assumes=("fitted on listed prices of models whose weights are public",),
    source=derived,
)
