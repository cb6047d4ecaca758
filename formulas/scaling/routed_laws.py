"""Loss over size, data and experts together: with more experts, less size and more data.

At given experts it is of the form of Hoffmann's third approach, so that everything derived for
that form holds, with levels and exponents that depend on the experts.
"""

from __future__ import annotations

from sympy import diff, log

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.schedule import E_hat
from formulas.nomenclature.sources_training import ludziejewski_2025
from formulas.nomenclature.symbols import N_active
from formulas.nomenclature.symbols_serving import one_token
from formulas.nomenclature.symbols_training import (
    A_N,
    B_D,
    D_opt,
    D_pt,
    alpha_N,
    beta_D,
    loss,
    loss_min,
    one_param,
)
from formulas.nomenclature.training import delta_E, gamma_E, omega_E, zeta_E
from formulas.scaling.power_laws import FITTED, PROPORTIONAL
from formulas.scaling.scaling_moe import experts_of_sparsity
from formulas.scaling.sparsity import saturated_experts

__all__ = ["joint_loss", "joint_optimal_tokens"]

SIZE_EXPONENT = alpha_N - gamma_E * log(E_hat)
DATA_EXPONENT = beta_D + zeta_E * log(E_hat)
SIZE_TERM = A_N * E_hat**-delta_E * (one_param / N_active) ** SIZE_EXPONENT
DATA_TERM = B_D * E_hat**omega_E * (one_token / D_pt) ** DATA_EXPONENT

joint_loss = Equation(
    "loss of a routed model of given size and experts after given tokens",
    loss,
    loss_min + SIZE_TERM + DATA_TERM,
    assumes=(
        FITTED,
        "one expert per token, every feed-forward layer routed",
        "active parameters include the embeddings",
    ),
    source=ludziejewski_2025.at("equation 6"),
    tags=("routed",),
    where=(saturated_experts, experts_of_sparsity),
)

joint_optimal_tokens = (
    Derivation(
        "compute-optimal tokens for a routed model of given size and experts",
        source=ludziejewski_2025.at("equation 7"),
        tags=("routed",),
        assumes=(PROPORTIONAL, *joint_loss.assumes, "gamma_E*log(E_hat) < alpha_N"),
    )
    .begin(
        -diff(joint_loss.rhs, N_active) * N_active,
        -diff(joint_loss.rhs, D_pt) * D_pt,
        why="one percent of size or of tokens lowers the loss alike, the experts given",
    )
    .solve(
        D_pt,
        one_token
        * (DATA_EXPONENT * B_D * E_hat**omega_E / (SIZE_EXPONENT * SIZE_TERM))
        ** (1 / DATA_EXPONENT),
        named=D_opt,
    )
)
