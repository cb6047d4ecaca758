"""How far the coefficients of a fit may be off, and which of its effects are worth their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky

from planner.calibration.hierarchy import (
    MAX_WIDTH_RATIO,
    Effect,
    Hierarchy,
    HierarchyProblem,
    Loss,
    Prior,
)
from planner.catalogue.coefficient_spread import (
    CoefficientSpread,
    EffectFamily,
    Quantiles,
    RunContext,
)
from planner.catalogue.profile import COEFFICIENTS

if TYPE_CHECKING:
    from planner.calibration.sample import Sample


@dataclass(frozen=True)
class SpreadHierarchy(Hierarchy):
    """A fit that says how far it may be off; `families` are those that effects were sought of."""

    families: tuple[EffectFamily, ...] = ()

    @classmethod
    def of(cls, fit: Hierarchy, families: tuple[EffectFamily, ...]) -> SpreadHierarchy:
        """A fit with the families of its effects."""
        return cls(**{**vars(fit), "families": families})

    def shares(self, sample: Sample) -> np.ndarray:
        """d ln time / d ln coefficient of rows, shape (n_rows, n_coefficients)."""
        x = self.unknowns(sample.places)
        shares: np.ndarray = sample.columns.parts(x) / sample.columns.times(x)[:, None]
        return shares

    def covariances(self, places: Sequence[RunContext]) -> dict[RunContext, np.ndarray]:
        """Covariance of the logarithms of the coefficients at each place."""
        spread = self.spread({}, {})
        distinct = dict.fromkeys(places)
        return {one: spread.covariance(COEFFICIENTS, self.effects, one) for one in distinct}

    def spread(
        self, values: Mapping[str, tuple[str, ...]], quantiles: Quantiles
    ) -> CoefficientSpread:
        """What a profile says of the unknowns; `values` and `quantiles` as it holds them."""
        factor = cholesky(self.covariance, lower=True)
        return CoefficientSpread(self.families, factor, values, quantiles)

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Coefficients that the rows do not identify."""
        return tuple(
            c for c, kept in zip(COEFFICIENTS, self.freedom, strict=False) if kept > MAX_WIDTH_RATIO
        )


def worthwhile(
    sample: Sample, hierarchy: Hierarchy, prior: Prior, least: float, *, loss: Loss | None = None
) -> tuple[Effect, ...]:
    """The effects of a fit without which its sum would rise by `least` or more.

    The one that is needed least goes first, and the others take over what it explained (by the
    curvature at the fit), until each that is left is worth its place.
    """
    problem = HierarchyProblem(sample, hierarchy.effects, prior, loss or Loss())
    theta = np.concatenate([hierarchy.shared, hierarchy.adjusted])
    spread = np.linalg.inv(problem.slopes(theta)[1])
    left = list(range(len(hierarchy.shared), len(theta)))
    while left:
        worth = theta[left] ** 2 / np.diag(spread)[left]
        if worth.min() >= least:
            break
        gone = left.pop(int(np.argmin(worth)))
        toward = spread[:, gone] / spread[gone, gone]
        theta = theta - toward * theta[gone]
        spread = spread - np.outer(toward, spread[gone])
    return tuple(hierarchy.effects[i - len(hierarchy.shared)] for i in left)


def with_pruned(
    sample: Sample, candidates: Sequence[Effect], fit: Hierarchy, prior: Prior, loss: Loss
) -> Hierarchy:
    """The same fit with the candidates that it dropped, as well known as the rows there make them.

    Left out, each would count in a band with all of its prior width, as if no row told of it. What
    is identified of the shared unknowns is as it was, the dropped at none.
    """
    problem = HierarchyProblem(sample, candidates, prior, loss)
    every, n = problem.result(problem.start(fit)), problem.shared
    return replace(every, freedom=np.concatenate([fit.freedom[:n], every.freedom[n:]]))
