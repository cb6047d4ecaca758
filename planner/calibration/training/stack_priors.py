"""What stacks of training software have in common: the prior of one, from what rows of others say.

A coefficient of a stack is normal, in logarithms, around a mean of all stacks, and that mean around
what physics alone says: of the variance of a physical prior half lies between stacks. Of each other
stack its likelihood counts, the prior taken out again, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from planner.calibration.training.step_fit import StepFit
from planner.catalogue.training.training_stacks import (
    PriorCoefficient,
    coefficient_priors,
    training_stack,
    training_stack_names,
)

BETWEEN = 0.5  # of the variance of a physical prior: what one stack differs from the mean of all
FAINT = 1e-3  # of a prior's information, below which rows say nothing of a coefficient
Findings = Mapping[str, Mapping[str, tuple[float, float]]]


def findings_of(alone: StepFit) -> dict[str, tuple[float, float]]:
    """What rows say of each coefficient: logarithm over its prior, and its standard deviation [1].

    `alone` is a fit whose priors are those of physics; coefficients that no row moves are left out.
    """
    findings = {}
    for name, spread in alone.spreads().items():
        prior = coefficient_priors()[name]
        information = spread**-2 - prior.spread**-2
        if information > FAINT * prior.spread**-2:
            moved = np.log(alone.values()[name] / prior.value) / spread**2 / information
            findings[name] = (float(moved), float(information**-0.5))
    return findings


def shipped_findings() -> Findings:
    """Findings of the stacks that ship, by name."""
    return {name: training_stack(name).findings for name in training_stack_names()}


def stack_priors(stack: str, findings: Findings) -> dict[str, PriorCoefficient]:
    """Priors of a stack's coefficients, by what rows of the other stacks say of them."""
    others = [rows for name, rows in findings.items() if name != stack]
    return {name: _pooled(name, prior, others) for name, prior in coefficient_priors().items()}


def _pooled(
    name: str, prior: PriorCoefficient, others: list[Mapping[str, tuple[float, float]]]
) -> PriorCoefficient:
    """The prior of one coefficient after the other stacks."""
    between = BETWEEN * prior.spread**2
    weights, means = [1 / (prior.spread**2 - between)], [0.0]
    for rows in others:
        if name in rows:
            mean, deviation = rows[name]
            weights.append(1 / (between + deviation**2))
            means.append(mean)
    value = prior.value * np.exp(np.average(means, weights=weights))
    return replace(
        prior, value=float(np.clip(value, prior.least, prior.most)),
        spread=float(np.sqrt(1 / sum(weights) + between)),
    )  # fmt: skip
