"""How many tokens each phase should get: equal pools, and what an optimum asks for instead.

Equal pools are the optimum only where the quality reacts alike to each of them.
"""

from formulas.algebra.notation import *
from formulas.training.arithmetic import pretraining_arithmetic, rl_arithmetic, serving_arithmetic

INTERIOR = "the optimum is interior: every pool can be made a little larger or smaller"
EQUAL_POOLS = "both pools cost the same"

equal_serving_tokens = derive(
    "served tokens that cost as much as pre-training",
    begin(serving_arithmetic, pretraining_arithmetic, why=EQUAL_POOLS),
    solve(D_inf, 3 * eta_inf * D_pt),
    source=lecture_notes.at("section 4, equating data"),
)

equal_rl_tokens = derive(
    "tokens of reinforcement learning that cost as much as pre-training",
    begin(rl_arithmetic, pretraining_arithmetic, why=EQUAL_POOLS),
    solve(D_rl, 3 * c_fwd * eta_rl * D_pt / c_rl),
    source=lecture_notes.at("section 4, equating data"),
)

local_quality = Equation(
    "quality near the optimum, as a product of powers of the pools",
    quality,
    (C_pt / one_flop) ** q_pt * (C_rl / one_flop) ** q_rl,
    assumes=("any smooth quality looks so near a point, up to a factor and a change of scale",),
)

equalisation = derive(
    "reinforcement learning that an optimum spends for each pre-training",
    begin(local_quality),
    stationary(
        C_rl,
        "a FLOP gains as much quality in one pool as in the other, or it would be moved",
        traded=C_pt,
        constant=C_pt + C_rl,
        least=False,
    ),
    solve(C_rl, C_pt * q_rl / q_pt),
    source=lecture_notes.at("section 4, over-training"),
    assumes=(INTERIOR, "equal pools are the optimum only where q_rl = q_pt"),
)

falling_cost = derive(
    "coefficient of the falling cost at the optimum of the sum",
    begin(C_all, A_up * knob**p_up + B_down * knob**-q_down, why="one cost rises, one falls"),
    stationary(knob, "what one cost loses, the other gains"),
    solve(B_down, A_up * p_up / q_down * knob ** (p_up + q_down)),
)

opposed_terms = derive(
    "falling over rising cost at the optimum of their sum",
    begin(r_terms, B_down * knob**-q_down / (A_up * knob**p_up), why="by definition"),
    substitute(falling_cost, why="at the optimum"),
    rewrite(p_up / q_down, why="the terms stand as their exponents, the other way round"),
    source=lecture_notes.at("section 4, over-training"),
    assumes=("equal terms are the optimum only where p_up = q_down",),
)

serving_tokens = Equation.of(
    D_inf,
    X_tok * t_life,
    "a constant rate",
    source=lecture_notes.at("section 4, plugging in numbers"),
)

expected_tokens = Equation(
    "tokens served over a model's life, by expectation",
    D_inf,
    p_ahead * X_tok * t_life,
    assumes=("a model that has been overtaken serves nothing",),
    source=lecture_equations.at("overtraining, obsolescence risk"),
)

discounted_tokens = Equation(
    "tokens served over a model's life, later ones counting less",
    D_inf,
    X_tok * (1 - exp(-delta_t * t_life)) / delta_t,
    assumes=(
        "a constant rate",
        "delta_t is a discount rate, the chance per second of being overtaken, or their sum",
    ),
    source=lecture_equations.at("overtraining, obsolescence risk"),
)

chinchilla_multiple = Equation(
    "training tokens over a rule of tokens per parameter",
    x_over,
    D_pt / (r_opt * N_active),
    assumes=("one ratio for every size, as where both exponents of the loss are equal",),
    source=lecture_notes.at("section 4, plugging in numbers"),
)
