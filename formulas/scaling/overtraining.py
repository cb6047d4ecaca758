"""Over-training: how far beyond the compute-optimal tokens to train a model that is served.

At a given loss, size and tokens trade at the ratio at which they cost. The answer is the total
over the pre-training arithmetic, to the power 1/beta_D: the exponent of the data decides, and the
coefficients of the loss do not matter.
"""

from formulas.algebra.notation import *
from formulas.scaling.power_laws import chinchilla_loss, optimal_tokens
from formulas.training.arithmetic import total_over_pretraining

ADDITIVE = "the loss is a term in size plus a term in tokens of pre-training"
INTERIOR = "the optimum is interior: size and tokens can both be changed a little"
SIZE_RATIO, TOKENS = N_active / one_param, D_pt / one_token
# Arithmetic of all pools by how each grows with the size, over that of pre-training.
WEIGHTED_TOTAL = (eps_pt * C_pt + eps_rl * C_rl + eps_inf * C_inf) / C_pt
AT_THIS_SIZE = (
    ("pre-training", k_pt, C_pt / (SIZE_RATIO * TOKENS)),
    ("reinforcement learning", k_rl, C_rl / SIZE_RATIO),
    ("serving", k_inf, C_inf / SIZE_RATIO),
)

overtraining = derive(
    "training tokens of least lifetime arithmetic at a given loss",
    begin(
        C_all,
        k_pt * SIZE_RATIO**eps_pt * TOKENS
        + k_rl * SIZE_RATIO**eps_rl
        + k_inf * SIZE_RATIO**eps_inf,
        why="each pool grows as a power of the size, as any smooth one does near a point",
    ),
    stationary(
        N_active,
        "at a given loss, size and tokens trade at the ratio at which they cost",
        traded=D_pt,
        constant=chinchilla_loss.rhs,
    ),
    substitute(Equation("pre-training at this size", k_pt, C_pt / (SIZE_RATIO**eps_pt * TOKENS))),
    substitute(Equation("reinforcement learning at this size", k_rl, C_rl / SIZE_RATIO**eps_rl)),
    substitute(Equation("serving at this size", k_inf, C_inf / SIZE_RATIO**eps_inf)),
    solve(D_pt, optimal_tokens.rhs * WEIGHTED_TOTAL ** (1 / beta_D)),
    rewrite(
        D_opt * WEIGHTED_TOTAL ** (1 / beta_D),
        why="in terms of the compute-optimal tokens of the same size",
        where=(optimal_tokens,),
    ),
    source=lecture_notes.at("section 4, over-training"),
    assumes=(
        ADDITIVE,
        INTERIOR,
        "C_pt on the right is that of the tokens on the left",
        "served tokens do not depend on D_pt; C_pt grows in proportion to D_pt",
    ),
)

overtraining_proportional = derive(
    "over-training where every pool grows with the size alike",
    begin(x_over, D_pt / D_opt, why="by definition"),
    substitute(
        overtraining, why="both have the compute-optimal tokens of the same size as a factor"
    ),
    substitute(Equation("pre-training grows as the size", eps_pt, 1)),
    substitute(Equation("reinforcement learning grows as the size", eps_rl, 1)),
    substitute(Equation("serving grows as the size", eps_inf, 1)),
    rewrite(
        r_all ** (1 / beta_D),
        why="independent of the size and of both coefficients",
        where=(Equation("total over pre-training", r_all, (C_pt + C_rl + C_inf) / C_pt),),
    ),
    source=lecture_notes.at("section 4, over-training"),
    assumes=(*overtraining.assumes, "every pool is proportional to N_active"),
)

optimal_serving = derive(
    "arithmetic of serving at which a size and its tokens are optimal",
    begin(
        C_all,
        k_pt * SIZE_RATIO * TOKENS + k_rl * SIZE_RATIO + k_inf * SIZE_RATIO,
        why="every pool is proportional to the size, pre-training to its tokens as well",
    ),
    stationary(
        D_pt,
        "one percent of size costs what buys as much loss in tokens",
        traded=N_active,
        constant=SIZE_RATIO**q_pull * TOKENS,
    ),
    *(substitute(Equation(f"{pool} at this size", k, cost)) for pool, k, cost in AT_THIS_SIZE),
    solve(C_inf, C_pt * (q_pull - 1) - C_rl),
    source=sardana_2024.at("section 2, the first-order conditions"),
    assumes=(INTERIOR, "near a point a loss stays where the size to q_pull times the tokens does"),
)

equal_pools_overtraining = derive(
    "over-training that equal pools imply",
    begin(overtraining_proportional),
    substitute(
        Equation("pools of equal cost", r_all, n_pools),
        why="each pool costs as much as pre-training",
    ),
    source=lecture_equations.at("equation 7"),
    assumes=overtraining_proportional.assumes,
)

exponent_for_overtraining = derive(
    "exponent of the data at which equal pools ask for a given over-training",
    begin(equal_pools_overtraining),
    solve(beta_D, log(n_pools) / log(x_over), why="the other way round"),
    assumes=(*overtraining_proportional.assumes, when(x_over > 1), when(n_pools > 1)),
)

overtraining_serving = derive(
    "over-training that served tokens ask for",
    begin(overtraining_proportional),
    substitute(total_over_pretraining, why="what each pool costs, per FLOP of pre-training"),
    substitute(Equation("no reinforcement learning", D_rl, 0)),
    source=sardana_2024.at("section 2"),
    assumes=overtraining_proportional.assumes,
)

PRE_TRAINED_AND_SERVED = (
    begin(
        C_all,
        k_pt * SIZE_RATIO * TOKENS + k_inf * SIZE_RATIO * D_inf / one_token,
        why="both pools grow with the size, each with its tokens",
    ),
    stationary(
        N_active,
        "at a given loss, size and tokens trade at the ratio at which they cost",
        traded=D_pt,
        constant=chinchilla_loss.rhs,
    ),
)

size_term_at_optimum = derive(
    "coefficient of the size at which a size and its tokens are of least arithmetic",
    *PRE_TRAINED_AND_SERVED,
    solve(
        A_N,
        beta_D
        * B_D
        * (one_token / D_pt) ** beta_D
        * (k_pt * D_pt + k_inf * D_inf)
        / (alpha_N * (one_param / N_active) ** alpha_N * k_pt * D_pt),
    ),
    assumes=(ADDITIVE, INTERIOR, "no reinforcement learning"),
)

serving_shift = derive(
    "how training tokens follow served tokens at equal quality",
    *PRE_TRAINED_AND_SERVED,
    respond(D_pt, D_inf, x_shift, N_active, chinchilla_loss.rhs),
    substitute(size_term_at_optimum, why="the condition itself says how large the size's term is"),
    substitute(
        Equation("serving, of total over pre-training", k_inf, (r_all - 1) * k_pt * D_pt / D_inf)
    ),
    solve(x_shift, (r_all - 1) / (alpha_N + beta_D * r_all + r_all - 1)),
    source=lecture_equations.at("overtraining, obsolescence risk"),
    assumes=(
        ADDITIVE,
        INTERIOR,
        "no reinforcement learning",
        "r_all is C_all/C_pt",
        when(r_all > 1),
    ),
)
