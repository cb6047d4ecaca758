"""Loss over size, data and experts together: with more experts, less size and more data.

At given experts it is of the form of Hoffmann's third approach, so that everything derived for
that form holds, with levels and exponents that depend on the experts.

Loss of routed models: by experts, by granularity, by sparsity, and what of it is monomial.

At a given sparsity each of these laws is a floor and monomials in active parameters and tokens;
the sparsity itself enters so that it is better tried out than solved for.
"""

from formulas.algebra.notation import *
from formulas.scaling.power_laws import PROPORTIONAL, WITHIN_FIT, chinchilla_loss, equal_gains
from formulas.scaling.sparsity import DECADE, LOGARITHMS, effective_parameters, saturated_experts

_LOG_SIZE, _LOG_EXPERTS, _ = LOGARITHMS
_TOTAL = Equation("total parameters", N_total, sigma * N_active)
SIZE_TERM = (one_param / N_total) ** alpha_N
DATA_TERM = B_D * (one_token / D_pt) ** beta_D

experts_of_sparsity = Equation(
    "experts of a routed model of given sparsity",
    n_experts,
    1 + (sigma - 1) / x_routed,
    assumes=("one expert per token, as large as the layer that it replaces",),
    source=derived,
)

routed_loss = Equation(
    "loss of a routed model of given size and experts",
    loss,
    exp(DECADE * (d_route - a_route * l_N - b_route * l_E + c_route * l_N * l_E)),
    assumes=(
        WITHIN_FIT,
        "one number of training tokens, that of the fit",
        "one expert per token, half the blocks routed",
    ),
    source=clark_2022.at("equation 4"),
    where=(_LOG_SIZE, _LOG_EXPERTS, saturated_experts, experts_of_sparsity),
)

routed_monomial = derive(
    "loss of a routed model as a monomial in its size",
    begin(loss, routed_loss, why=routed_loss.name),
    substitute(_LOG_SIZE),
    rewrite(
        exp(DECADE * (d_route - b_route * l_E))
        * (one_param / N_active) ** (a_route - c_route * l_E),
        why="at given experts a power of the size: the more experts, the flatter",
    ),
    source=clark_2022.at("equation 4"),
    assumes=routed_loss.assumes,
)

routing_cutoff = derive(
    "parameters beyond which more experts no longer lower the loss",
    begin(b_route, c_route * l_N, why="the gain of a decade of experts, gone"),
    substitute(_LOG_SIZE),
    solve(N_active, one_param * 10 ** (b_route / c_route), named=N_cut),
    source=clark_2022.at("section 5.2"),
    assumes=(*routed_loss.assumes, "an extrapolation: no model of that size was routed"),
)

routed_chinchilla_loss = Equation(
    "loss of a routed model, read off the law of dense models at its effective size",
    loss,
    loss_min + A_N * (one_param / N_eff) ** alpha_N + DATA_TERM,
    assumes=(
        *chinchilla_loss.assumes,
        "what routing is worth in parameters does not depend on the training tokens",
        "both laws hold outside the other's data set",
    ),
    source=derived,
    where=(effective_parameters.equation(), saturated_experts, experts_of_sparsity),
)

fine_grained_loss = Equation(
    "loss of a model with fine-grained experts",
    loss,
    loss_min + (A_fine / G_fine**gamma_G + A_N) * SIZE_TERM + DATA_TERM,
    assumes=(WITHIN_FIT, "one ratio of experts to the dense layer, that of the fit"),
    source=krajewski_2024.at("section 5.1"),
    where=(_TOTAL,),
)

fine_grained_optimal_tokens = derive(
    "compute-optimal tokens for a model with fine-grained experts",
    equal_gains(fine_grained_loss, N_total),
    solve(
        D_pt,
        one_token
        * (beta_D * B_D / (alpha_N * (A_fine / G_fine**gamma_G + A_N) * SIZE_TERM)) ** (1 / beta_D),
        named=D_opt,
    ),
    source=krajewski_2024.at("section 6"),
    assumes=(PROPORTIONAL, *fine_grained_loss.assumes, "routing itself costs nothing"),
)

sparse_loss = Equation(
    "loss of a sparse model of given total size",
    loss,
    loss_min
    + A_N * SIZE_TERM
    + DATA_TERM
    + A_sigma / sigma**lambda_S
    + A_mix * sigma**delta_S * (one_param / N_total) ** gamma_S,
    assumes=(WITHIN_FIT, "total over active parameters stands for total over active experts"),
    source=abnar_2025.at("equation 6"),
    where=(_TOTAL,),
)

sparse_monomials = derive(
    "loss of a sparse model in active parameters, at a given sparsity",
    begin(loss, sparse_loss, why=sparse_loss.name),
    substitute(_TOTAL),
    rewrite(
        loss_min
        + A_sigma / sigma**lambda_S
        + A_N * sigma**-alpha_N * (one_param / N_active) ** alpha_N
        + DATA_TERM
        + A_mix * sigma ** (delta_S - gamma_S) * (one_param / N_active) ** gamma_S,
        why="a floor that falls with sparsity, and three monomials",
    ),
    source=abnar_2025.at("equation 6"),
    assumes=sparse_loss.assumes,
)

sparse_optimal_tokens = derive(
    "compute-optimal tokens for a sparse model of given size",
    equal_gains(sparse_loss, N_total),
    solve(
        D_pt,
        one_token
        * (
            beta_D
            * B_D
            / (
                alpha_N * A_N * SIZE_TERM
                + gamma_S * A_mix * sigma**delta_S * (one_param / N_total) ** gamma_S
            )
        )
        ** (1 / beta_D),
        named=D_opt,
    ),
    assumes=(PROPORTIONAL, *sparse_loss.assumes, "the sparsity is given"),
)

SIZE_EXPONENT = alpha_N - gamma_E * log(E_hat)
DATA_EXPONENT = beta_D + zeta_E * log(E_hat)
ROUTED_LAWS_SIZE_TERM = A_N * E_hat**-delta_E * (one_param / N_active) ** SIZE_EXPONENT
ROUTED_LAWS_DATA_TERM = B_D * E_hat**omega_E * (one_token / D_pt) ** DATA_EXPONENT

joint_loss = Equation(
    "loss of a routed model of given size and experts after given tokens",
    loss,
    loss_min + ROUTED_LAWS_SIZE_TERM + ROUTED_LAWS_DATA_TERM,
    assumes=(
        WITHIN_FIT,
        "one expert per token, every feed-forward layer routed",
        "active parameters include the embeddings",
    ),
    source=ludziejewski_2025.at("equation 6"),
    where=(saturated_experts, experts_of_sparsity),
)

joint_optimal_tokens = derive(
    "compute-optimal tokens for a routed model of given size and experts",
    equal_gains(
        joint_loss,
        N_active,
        "one percent of size or of tokens lowers the loss alike, the experts given",
    ),
    solve(
        D_pt,
        one_token
        * (DATA_EXPONENT * B_D * E_hat**omega_E / (SIZE_EXPONENT * ROUTED_LAWS_SIZE_TERM))
        ** (1 / DATA_EXPONENT),
        named=D_opt,
    ),
    source=ludziejewski_2025.at("equation 7"),
    assumes=(
        PROPORTIONAL,
        *joint_loss.assumes,
        when(-zeta_E * log(E_hat) < beta_D),
        when(gamma_E * log(E_hat) < alpha_N),
    ),
)
