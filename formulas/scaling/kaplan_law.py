"""Loss as Kaplan et al. write it: one exponent outside a sum of powers of size and of data.

Each limit of the form, size alone or data alone, is a power law with no floor. The optimum of the
form at proportional arithmetic is derived here; the steeper growth of size that its authors read
off is that of runs stopped early, and another thing.
"""

from formulas.algebra.notation import *
from formulas.scaling.power_laws import PROPORTIONAL, WITHIN_FIT, equal_gains

WITHOUT_EMBEDDINGS = "parameters without embeddings"

kaplan_size_loss = Equation(
    "loss of a model of given size, data without limit",
    loss,
    (N_c / N_active) ** alpha_N,
    assumes=(WITHIN_FIT, WITHOUT_EMBEDDINGS, "trained to convergence on endless data"),
    source=kaplan_2020.at("equation 1.1"),
)

kaplan_data_loss = Equation(
    "loss after given tokens, size without limit",
    loss,
    (D_c / D_pt) ** alpha_D,
    assumes=(WITHIN_FIT, "a large model, stopped early"),
    source=kaplan_2020.at("equation 1.2"),
)

kaplan_arithmetic_loss = Equation(
    "loss of the best model for given arithmetic",
    loss,
    (C_c / C_pt) ** alpha_C,
    assumes=(WITHIN_FIT, "size, batch and stopping chosen for the arithmetic"),
    source=kaplan_2020.at("equation 1.3"),
)

kaplan_loss = Equation(
    "loss of a model of given size after given tokens, with one exponent outside",
    loss,
    ((N_c / N_active) ** (alpha_N / alpha_D) + D_c / D_pt) ** alpha_D,
    assumes=(WITHIN_FIT, WITHOUT_EMBEDDINGS, "one learning-rate schedule for runs of every length"),
    source=kaplan_2020.at("equation 1.5"),
)

kaplan_tokens_for_loss = derive(
    "tokens at which a model of given size reaches a loss, with one exponent outside",
    begin(
        D_c / D_pt,
        loss ** (1 / alpha_D) - (N_c / N_active) ** (alpha_N / alpha_D),
        why="once the exponent is undone, size and data add up to a number: monomials on the left "
        "of a geometric program",
    ),
    solve(D_pt, D_c / (loss ** (1 / alpha_D) - (N_c / N_active) ** (alpha_N / alpha_D))),
    source=kaplan_2020.at("equation 1.5"),
    assumes=(*kaplan_loss.assumes, "the size alone would leave less than the loss"),
)

kaplan_optimal_tokens = derive(
    "compute-optimal tokens for a model of given size, with one exponent outside",
    equal_gains(
        kaplan_loss,
        N_active,
        "the exponent outside changes neither; one percent of either lowers the sum alike",
    ),
    solve(D_pt, D_c * alpha_D / alpha_N * (N_active / N_c) ** (alpha_N / alpha_D), named=D_opt),
    source=kaplan_2020.at("equation 1.5"),
    assumes=(PROPORTIONAL, *kaplan_loss.assumes),
)

kaplan_optimal_parameters = derive(
    "compute-optimal parameters for a given arithmetic, with one exponent outside",
    begin(
        C_pt / (3 * c_fwd * N_active),
        kaplan_optimal_tokens,
        why="the tokens that the arithmetic pays for are the optimal ones",
    ),
    solve(
        N_active,
        N_c
        * (C_pt * alpha_N / (3 * c_fwd * N_c * D_c * alpha_D)) ** (alpha_D / (alpha_N + alpha_D)),
        named=N_opt,
    ),
    source=kaplan_2020.at("equation 1.5"),
    assumes=(PROPORTIONAL, *kaplan_loss.assumes),
)
