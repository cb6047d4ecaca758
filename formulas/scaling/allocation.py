"""Size and tokens by rule: powers of the arithmetic, as read off optima of measured runs.

Such a rule says how to split a given arithmetic; it says nothing of the loss away from its own
optimum, so it cannot weigh a smaller model trained for longer.
"""

from formulas.algebra.notation import *
from formulas.scaling.power_laws import PROPORTIONAL, WITHIN_FIT

OPTIMA = "read off the lowest points of measured curves, one for each arithmetic"

allocated_parameters = Equation(
    "compute-optimal parameters by rule",
    N_opt,
    one_param * k_size * (C_pt / one_flop) ** a_size,
    assumes=(OPTIMA, WITHIN_FIT),
    source=hoffmann_2022.at("table 2"),
)

allocated_tokens = Equation(
    "compute-optimal tokens by rule",
    D_opt,
    one_token * k_tokens * (C_pt / one_flop) ** a_tokens,
    assumes=(OPTIMA, WITHIN_FIT),
    source=llama_2024.at("section 3.2.1"),
)

allocated_arithmetic = Equation(
    "compute-optimal arithmetic per token by rule",
    M_tok,
    one_flop / one_token * k_model * (C_pt / one_flop) ** a_size,
    assumes=(OPTIMA, WITHIN_FIT, "attention included, embeddings not"),
    source=deepseek_llm_2024.at("equation 4"),
)

allocated_tokens_by_size = derive(
    "compute-optimal tokens where the rule gives the parameters",
    begin(D_opt, C_pt / (3 * c_fwd * N_opt), why="the tokens that the arithmetic pays for"),
    substitute(allocated_parameters),
    rewrite(
        one_flop / (3 * c_fwd * one_param * k_size) * (C_pt / one_flop) ** (1 - a_size),
        why="what one exponent leaves is the other",
    ),
    assumes=(PROPORTIONAL, *allocated_parameters.assumes),
)

allocated_size_by_tokens = derive(
    "compute-optimal parameters where the rule gives the tokens",
    begin(N_opt, C_pt / (3 * c_fwd * D_opt), why="the size that the arithmetic pays for"),
    substitute(allocated_tokens),
    rewrite(
        one_flop / (3 * c_fwd * one_token * k_tokens) * (C_pt / one_flop) ** (1 - a_tokens),
        why="what one exponent leaves is the other",
    ),
    assumes=(PROPORTIONAL, *allocated_tokens.assumes),
)

allocated_size_by_arithmetic = derive(
    "compute-optimal parameters where the rule gives the arithmetic per token",
    begin(
        3 * c_fwd * N_active,
        allocated_arithmetic,
        why="arithmetic per token, as if parameters did all of it",
    ),
    solve(
        N_active,
        one_flop / (3 * c_fwd * one_token) * k_model * (C_pt / one_flop) ** a_size,
        named=N_opt,
    ),
    assumes=(
        PROPORTIONAL,
        *allocated_arithmetic.assumes,
        "attention counted as if parameters did it: the size is somewhat too large",
    ),
)

ratio_parameters = derive(
    "compute-optimal parameters where the rule gives parameters per token",
    begin(
        N_active * D_unit / (N_unit * D_pt),
        K_ratio * (C_pt / (3 * c_fwd * N_unit * D_unit)) ** -eta_ratio,
        why="parameters per token, in the units of the fit",
    ),
    substitute(Equation("tokens paid for", D_pt, C_pt / (3 * c_fwd * N_active), source=derived)),
    solve(
        N_active,
        N_unit * sqrt(K_ratio) * (C_pt / (3 * c_fwd * N_unit * D_unit)) ** ((1 - eta_ratio) / 2),
        named=N_opt,
    ),
    source=hu_2024.at("section 4.5"),
    assumes=(PROPORTIONAL, OPTIMA, WITHIN_FIT),
)
