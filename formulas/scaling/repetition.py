"""Repeated data in a loss: what passes are worth, and why the terms stay convex in logarithms.

Convexity in the logarithms is what lets a geometric program carry them: each term lies above its
tangent monomials, and the tangents at the optimum are the optimum's own conditions.
"""

from formulas.algebra.notation import *
from formulas.scaling.power_laws import PROPORTIONAL, WITHIN_FIT

CITE_DATA_REPETITION = muennighoff_2023.at("section 3.1, equation 5")

distinct_tokens = Equation.of(
    D_seen,
    minimum(D_pt, D_unique),
    "tokens are repeated only once all distinct ones have been seen",
)

fed_parameters = derive(
    "parameters for which distinct tokens are compute-optimal",
    begin(
        loss,
        loss_min + A_N * (one_param / N_fed) ** alpha_N + B_D * (one_token / D_seen) ** beta_D,
        why="the loss of a size that the distinct tokens feed",
    ),
    stationary(
        N_fed,
        "one percent of size or of tokens lowers the loss alike",
        traded=D_seen,
        constant=N_fed * D_seen,
    ),
    solve(
        N_fed,
        one_param
        * (alpha_N * A_N / (beta_D * B_D)) ** (1 / alpha_N)
        * (D_seen / one_token) ** (beta_D / alpha_N),
    ),
    source=muennighoff_2023.at("section 3.1"),
    assumes=(PROPORTIONAL, WITHIN_FIT),
)

worth_of_tokens = Equation(
    "fresh tokens that training tokens are worth, repeated or not",
    D_eff,
    D_seen * (1 + R_half * (1 - exp(-(D_pt / D_seen - 1) / R_half))),
    assumes=(WITHIN_FIT, *distinct_tokens.assumes),
    source=CITE_DATA_REPETITION,
    where=(distinct_tokens,),
)

worth_of_parameters = Equation(
    "parameters that a model is worth, fed or not",
    N_worth,
    minimum(N_active, N_fed)
    * (1 + R_excess * (1 - exp(-(maximum(N_active / N_fed, 1) - 1) / R_excess))),
    assumes=(WITHIN_FIT, "a model that its distinct tokens feed is worth its parameters"),
    source=muennighoff_2023.at("section 3.1, equation 6"),
)

repeated_loss = Equation(
    "loss of a model of given size after given tokens, repeated ones among them",
    loss,
    loss_min + A_N * (one_param / N_worth) ** alpha_N + B_D * (one_token / D_eff) ** beta_D,
    assumes=(WITHIN_FIT, "one learning-rate schedule, as long as the run"),
    source=muennighoff_2023.at("section 3.1, equation 7"),
    where=(worth_of_tokens, worth_of_parameters, fed_parameters.equation(), distinct_tokens),
)

passes_worth = Equation.of(
    x_worth,
    1 + R_half * (1 - exp(-(n_pass - 1) / R_half)),
    when(n_pass >= 1),
    WITHIN_FIT,
    source=CITE_DATA_REPETITION,
)

passes_elasticity = derive(
    "percent of worth per percent of passes",
    begin(r_bend * x_worth, diff(passes_worth.rhs, n_pass) * n_pass, why="by definition"),
    solve(
        r_bend,
        n_pass * exp(-(n_pass - 1) / R_half) / x_worth,
        why="one at the first pass, so that a monomial goes over into the term without a corner",
    ),
    assumes=passes_worth.assumes,
)

passes_convexity = derive(
    "how fast the worth of a percent of passes falls",
    begin(
        k_convex,
        -diff(n_pass * exp(-(n_pass - 1) / R_half) / passes_worth.rhs, n_pass)
        * passes_worth.rhs
        / exp(-(n_pass - 1) / R_half),
        why="minus the slope of that ratio in the logarithm of the passes, over the ratio",
    ),
    rewrite(
        n_pass * exp(-(n_pass - 1) / R_half) / x_worth - (1 - n_pass / R_half),
        where=(passes_worth,),
        why="the ratio, less what it would have to exceed",
    ),
    assumes=(
        *passes_worth.assumes,
        "positive: x_worth <= n_pass and exp(-x) >= 1 - x give r_bend >= 1 - (n_pass - "
        "1)/R_half, more than 1 - n_pass/R_half",
        "so the logarithm of the worth is concave in that of the passes, and every negative "
        "power of the worth is convex: it lies above its tangent monomials",
    ),
)
