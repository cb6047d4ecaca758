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
# Arithmetic of all pools by how each grows with the size, over that of pre-training.
WEIGHTED_TOTAL = (eps_pt * C_pt + eps_rl * C_rl + eps_inf * C_inf) / C_pt

overtraining = derive(
    "training tokens of least lifetime arithmetic at a given loss",
    begin(
        diff(chinchilla_loss.rhs, N_active) * N_active / (diff(chinchilla_loss.rhs, D_pt) * D_pt),
        WEIGHTED_TOTAL,
        why="at a given loss, size and tokens trade at the ratio at which they cost",
    ),
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
    substitute(overtraining),
    rewrite(
        WEIGHTED_TOTAL ** (1 / beta_D),
        why="both have the compute-optimal tokens of the same size as a factor",
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

optimal_serving = Equation(
    "arithmetic of serving at which a size and its tokens are optimal",
    C_inf,
    C_pt * (q_pull - 1) - C_rl,
    assumes=(INTERIOR, "every pool is proportional to N_active", "C_pt grows as D_pt"),
    source=sardana_2024.at("section 2, the first-order conditions"),
)

equal_pools_overtraining = derive(
    "over-training that equal pools imply",
    begin(overtraining_proportional.equation()),
    substitute(
        Equation("pools of equal cost", r_all, n_pools),
        why="each pool costs as much as pre-training",
    ),
    source=lecture_equations.at("equation 7"),
    assumes=overtraining_proportional.assumes,
)

exponent_for_overtraining = derive(
    "exponent of the data at which equal pools ask for a given over-training",
    begin(equal_pools_overtraining.equation()),
    solve(beta_D, log(n_pools) / log(x_over), why="the other way round"),
    assumes=(*overtraining_proportional.assumes, "x_over > 1 and n_pools > 1"),
)

overtraining_serving = derive(
    "over-training that served tokens ask for",
    begin(overtraining_proportional.equation()),
    substitute(total_over_pretraining),
    rewrite(
        (1 + c_rl * D_rl / (3 * c_fwd * eta_rl * D_pt) + D_inf / (3 * eta_inf * D_pt))
        ** (1 / beta_D),
        why="what each pool costs, per FLOP of pre-training",
    ),
    substitute(Equation("no reinforcement learning", D_rl, 0)),
    rewrite((1 + D_inf / (3 * eta_inf * D_pt)) ** (1 / beta_D)),
    source=sardana_2024.at("section 2"),
    assumes=overtraining_proportional.assumes,
)

serving_shift = derive(
    "how training tokens follow served tokens at equal quality",
    begin(
        alpha_N * x_shift / r_all + beta_D * x_shift,
        (r_all - 1) / r_all * (1 - x_shift),
        why="size term over token term moves as total over pre-training does, one percent more "
        "served tokens ahead; at equal loss the size falls by x_shift/r_all",
    ),
    solve(x_shift, (r_all - 1) / (alpha_N + beta_D * r_all + r_all - 1)),
    source=lecture_equations.at("overtraining, obsolescence risk"),
    assumes=(ADDITIVE, INTERIOR, "no reinforcement learning", "r_all is C_all/C_pt"),
)
