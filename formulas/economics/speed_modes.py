"""Fast and slow modes where the weight part of a step grows with the batch, as coverage makes it.

With every weight read in every step, these are the equations of the prices (`r_cov` = 1).
"""

from formulas.algebra.notation import *
from formulas.roofline.batching import balance_context, cost_floor, short_context_batch
from formulas.roofline.roofline import OVERLAP, time_per_sequence

ASSUME_STEP_PARTS = (
    "a step is a fixed part, a part proportional to coverage and a part proportional to the batch",
)
MODES = lecture_notes.at("section 1, fast mode and slow mode")

coverage_ratio = Equation.of(
    r_cov,
    (1 - (1 - k_experts / n_experts) ** (beta_B * B * m_pos))
    / (1 - (1 - k_experts / n_experts) ** (B * m_pos)),
    "each position picks its experts independently and uniformly",
    source=derived,
)

covered_speed = derive(
    "speed of a faster mode when coverage falls with the batch",
    begin(
        1 / s_fast,
        w_fix + w_cov * r_cov + (1 - w_fix - w_cov) * beta_B,
        why="time of the faster step over that of the normal one",
    ),
    solve(s_fast, 1 / (w_fix + w_cov * r_cov + (1 - w_fix - w_cov) * beta_B)),
    assumes=(*ASSUME_STEP_PARTS, when(w_fix + w_cov <= 1)),
)

covered_price = derive(
    "price of a faster mode when coverage falls with the batch",
    begin(x_price, 1 / (s_fast * beta_B), why="time of a step shared by fewer sequences"),
    substitute(covered_speed),
    rewrite(
        (w_fix + w_cov * r_cov) / beta_B + (1 - w_fix - w_cov),
        why="what the batch shares, and what it does not",
    ),
    assumes=ASSUME_STEP_PARTS,
)

covered_share = derive(
    "share of routed experts in the normal step that a fast mode's price implies",
    begin(
        1 / s_fast,
        w_cov * r_cov + (1 - w_cov) * beta_B,
        why="time of the faster step over that of the normal one",
    ),
    substitute(
        Equation(
            "batch that a price and a speed imply", beta_B, 1 / (s_fast * x_price), source=MODES
        )
    ),
    solve(w_cov, (x_price - 1) / (s_fast * x_price * r_cov - 1)),
    source=MODES,
    assumes=(
        *ASSUME_STEP_PARTS,
        "no fixed part: w_fix = 0",
        when(x_price > 1),
        when(s_fast * x_price * r_cov > 1),
    ),
)

covered_fastest_speed = derive(
    "largest speed of a faster mode when coverage falls with the batch",
    begin(1 / s_fast, w_fix + w_cov * r_cov, why="a small batch leaves the weights it touches"),
    solve(s_fast, 1 / (w_fix + w_cov * r_cov), named=s_most),
    assumes=(*ASSUME_STEP_PARTS, "r_cov is that of the smallest batch, not one"),
)

slow_saving = derive(
    "cost of a sequence over its cost at unbounded batch",
    begin(
        x_save,
        T_seq / cost_floor.rhs,
        why="what waiting for a larger batch could save",
        of=(cost_floor,),
    ),
    substitute(time_per_sequence),
    rewrite(
        maximum(1, B_0 / (B * m_pos) + L_ctx / (m_pos * L_star))
        / maximum(1, L_ctx / (m_pos * L_star)),
        why="nothing from the critical batch on; below it up to B_0/B, less with long caches",
        where=(short_context_batch, balance_context),
    ),
    source=MODES,
    assumes=(OVERLAP,),
)
