"""Loss as a function of size and data, and the size and data that make it least.

The form is that of the third approach of Hoffmann et al.; its coefficients are measured and live
in a catalogue, with their sources and standard errors. Exponents matter: rounding them to two
digits moves the optimum by a fifth.
"""

from formulas.algebra.notation import *

WITHIN_FIT = "fitted over a range of sizes and tokens; outside it, an extrapolation"
PROPORTIONAL = "the arithmetic of training is proportional to parameters times tokens"


def equal_gains(
    law: Equation, size: Symbol, why: str = "one percent of size or of tokens lowers the loss alike"
) -> Step:
    """Step that derives the minimum loss at constant FLOP, proportional to size times tokens."""
    optimum = stationary(size, why, traded=D_pt, constant=size * D_pt)
    return lambda derivation: optimum(begin(law)(derivation))


chinchilla_loss = Equation(
    "loss of a model of given size after given tokens",
    loss,
    loss_min + A_N * (one_param / N_active) ** alpha_N + B_D * (one_token / D_pt) ** beta_D,
    assumes=(WITHIN_FIT, "every token is fresh", "one learning-rate schedule, as long as the run"),
    source=hoffmann_2022.at("section 3.3, equation 2"),
)

reinforced_loss = Equation(
    "loss of a model of given size after given tokens of both kinds of training",
    loss,
    chinchilla_loss.rhs + B_rl * (one_token / D_rl) ** beta_rl,
    assumes=(
        *chinchilla_loss.assumes,
        "reinforcement learning lowers the same loss, apart from size and pre-training",
    ),
)

data_loss = Equation.of(
    loss_data,
    loss - loss_min - A_N * (one_param / N_active) ** alpha_N,
    "positive: a model too small for the loss reaches it with no data",
)

tokens_for_loss = derive(
    "tokens at which a model of given size reaches a loss",
    begin(B_D * (one_token / D_pt) ** beta_D, loss_data, why="the data's term is what is left"),
    solve(D_pt, one_token * (B_D / loss_data) ** (1 / beta_D)),
    source=hoffmann_2022.at("section 3.3, equation 2"),
    assumes=(*chinchilla_loss.assumes, *data_loss.assumes),
    where=(data_loss,),
)

optimal_tokens = derive(
    "compute-optimal tokens for a model of given size",
    equal_gains(
        chinchilla_loss,
        N_active,
        "at equal arithmetic, one percent more size costs one percent of the tokens: at the "
        "optimum either lowers the loss alike",
    ),
    solve(
        D_pt,
        one_token
        * (beta_D * B_D / (alpha_N * A_N)) ** (1 / beta_D)
        * (N_active / one_param) ** (alpha_N / beta_D),
        named=D_opt,
    ),
    source=hoffmann_2022.at("section 3.3"),
    assumes=(PROPORTIONAL, WITHIN_FIT),
)

optimal_parameters = derive(
    "compute-optimal parameters for a given arithmetic",
    begin(
        C_pt / (3 * c_fwd * N_active),
        optimal_tokens,
        why="the tokens that the arithmetic pays for are the optimal ones",
    ),
    solve(
        N_active,
        one_param
        * (alpha_N * A_N / (beta_D * B_D)) ** (1 / (alpha_N + beta_D))
        * (C_pt / (3 * c_fwd * one_param * one_token)) ** (beta_D / (alpha_N + beta_D)),
        named=N_opt,
    ),
    source=hoffmann_2022.at("section 3.3, equation 4"),
    assumes=(PROPORTIONAL, WITHIN_FIT),
)

optimal_ratio = derive(
    "compute-optimal tokens per parameter",
    begin(r_opt, D_opt / N_active, why="by definition"),
    substitute(optimal_tokens),
    rewrite(
        one_token
        / one_param
        * (beta_D * B_D / (alpha_N * A_N)) ** (1 / beta_D)
        * (N_active / one_param) ** (alpha_N / beta_D - 1),
        why="grows with size where alpha_N > beta_D, falls where alpha_N < beta_D",
    ),
    source=lecture_notes.at("section 4, plugging in numbers"),
    assumes=optimal_tokens.assumes,
)

optimal_ratio_equal_exponents = derive(
    "compute-optimal tokens per parameter where both exponents are equal",
    begin(optimal_ratio),
    substitute(
        Equation("equal exponents", alpha_N, beta_D),
        why="one ratio for every size, as a rule such as twenty tokens per parameter asks for",
    ),
    assumes=optimal_tokens.assumes,
)

repetition_worth = Equation(
    "fresh tokens that repeated ones are worth",
    D_eff,
    D_unique * (1 + R_half * (1 - exp(-(D_pt / D_unique - 1) / R_half))),
    assumes=(when(D_pt >= D_unique, why="the first pass over the data counts in full"), WITHIN_FIT),
    source=muennighoff_2023.at("section 3, equation 5"),
)

passes_for_worth = derive(
    "tokens, repetitions included, that are worth given fresh ones",
    begin(repetition_worth),
    solve(D_pt, D_unique * (1 - R_half * log(1 - (D_eff / D_unique - 1) / R_half))),
    source=muennighoff_2023.at("section 3, equation 5"),
    assumes=(when(D_unique <= D_eff), when(D_eff < D_unique * (1 + R_half)), WITHIN_FIT),
)

excess_worth = Equation(
    "parameters that those beyond what the data feeds are worth",
    N_worth,
    N_fed * (1 + R_excess * (1 - exp(-(N_active / N_fed - 1) / R_excess))),
    assumes=(when(N_active >= N_fed), WITHIN_FIT),
    source=muennighoff_2023.at("section 3, equation 6"),
)

repetition_ceiling = derive(
    "worth of a data set however often it is repeated",
    begin(repetition_worth),
    limit(
        D_pt,
        oo,
        D_unique * (1 + R_half),
        why="each further pass is worth less by a constant factor",
    ),
    source=muennighoff_2023.at("section 3"),
    assumes=repetition_worth.assumes,
)

rl_reward = Equation(
    "reward after reinforcement learning",
    R_pass,
    R_start + (R_most - R_start) / (1 + (C_mid / C_rl) ** gamma_rl),
    assumes=(WITHIN_FIT, "one recipe; another has its own ceiling"),
    source=khatri_2025.at("section 2"),
)

rl_arithmetic_needed = derive(
    "arithmetic of reinforcement learning that a reward needs",
    begin(rl_reward),
    solve(C_rl, C_mid * ((R_pass - R_start) / (R_most - R_pass)) ** (1 / gamma_rl)),
    source=khatri_2025.at("section 2"),
    assumes=(*rl_reward.assumes, when(R_start < R_pass), when(R_pass < R_most)),
)
