"""A scaling law that can be evaluated: loss, fitted range, drawn coefficients, monomials.

Everything is in natural units: parameters, tokens, FLOP, nats per token. A law comes from the
catalogue, from a file of the same shape, or from a mapping of coefficients (`scaling_law`); one
fitted to points of the user's own comes from `planner.budgets.law_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.budgets.terms import Term, Terms
from planner.catalogue.laws import Law, law

__all__ = ["ScalingLaw", "scaling_law"]


@dataclass(frozen=True)
class ScalingLaw:
    """A law with its coefficients; see `planner.catalogue.laws.FORMS` for the forms."""

    name: str
    form: str
    title: str
    source: str
    as_of: str
    scope: str
    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)

    def loss(
        self, n: np.ndarray | float, d: np.ndarray | float, *, sparsity: float = 1.0,
        unique: float | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Loss [nat] of models of `n` active parameters after `d` tokens, broadcast."""
        return self.terms(sparsity).loss(n, d)

    def terms(self, sparsity: float = 1.0) -> Terms:
        """The law as a floor and monomials."""
        x = self.values
        return Terms(
            x["loss_min"],
            (Term(x["A_N"], -x["alpha_N"], 0.0), Term(x["B_D"], 0.0, -x["beta_D"])),
        )


def scaling_law(source: str) -> ScalingLaw:
    """The law of a catalogue name."""
    return _from_catalogue(law(source))


def _from_catalogue(entry: Law) -> ScalingLaw:
    errors = {x: c.error for x, c in entry.coefficients.items() if c.error is not None}
    return ScalingLaw(
        name=entry.name, form=entry.form, title=entry.title, source=entry.source,
        as_of=entry.as_of, scope=entry.scope, values=entry.values, errors=errors,
    )  # fmt: skip
