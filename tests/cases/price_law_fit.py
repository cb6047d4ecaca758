"""Sizes fitted on listed prices of models with public weights, with leave-one-out errors.

One observation is an architecture: its counts, and the prices of its models, medians over hosts,
averaged in logarithms. A law is a product of powers fitted to the least absolute error of the
logarithm, which one oddly priced model does not bend; it is judged on each architecture left out.
Where an equation has a power, it is not fitted: the arithmetic of a prompt token costs in
proportion to the active parameters, so that only what hosts make of the proportion is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from planner.architecture.counts import model_sizes
from planner.catalogue import api_prices, models
from planner.problems.prices.price_regression import FILE, LAWS, P_REF, PriceLaw
from planner.text.errors import SolverError
from planner.text.tables import table

COVERAGE = 0.8  # share of the architectures left out within `factor`
# Powers by `active_from_level` of formulas.economics.price_sheet, not fitted. A fitted power (0.42)
# holds 80 % of fifteen architectures left out within 2.61x, this one within 2.40x.
KNOWN_POWERS: Mapping[str, tuple[float, ...]] = {"n_active": (1.0,)}


@dataclass(frozen=True)
class Observation:
    """Counts [param, byte/token] and prices [USD/token] of one architecture."""

    models: tuple[str, ...]
    p_in: float
    p_out: float
    n_active: float
    n_total: float
    kv_bytes_per_token: float


def observations() -> list[Observation]:
    """The architectures of the open models in the price snapshot."""
    alike: Mapping[str, str] = table("planner.problems.prices", FILE)["counted_as"]
    groups: dict[tuple[int, int], list[tuple[str, float, float, float]]] = {}
    for name in api_prices.open_models():
        counted = model_sizes(models.load(alike.get(name, name)))
        counts = (counted.n_active["no_input_embedding"], counted.n_total)
        row = (name, *api_prices.median_prices(name), counted.kv_bytes_per_token)
        groups.setdefault(counts, []).append(row)
    return [
        Observation(tuple(row[0] for row in rows), _mean(rows, 1), _mean(rows, 2),
                    counts[0], counts[1], _mean(rows, 3))
        for counts, rows in groups.items()
    ]  # fmt: skip


def _mean(rows: Sequence[tuple[Any, ...]], place: int) -> float:
    return math.exp(sum(math.log(row[place]) for row in rows) / len(rows))


def fit_price_law(of: str, rows: Sequence[Observation]) -> PriceLaw:
    """The law of one quantity, with its error on each architecture left out."""
    by = LAWS[of]
    constant, *powers = _least_absolute(of, by, rows)
    errors, guesses = [], []
    for i, row in enumerate(rows):
        rest = [*rows[:i], *rows[i + 1 :]]
        constant_i, *powers_i = _least_absolute(of, by, rest)
        predicted = constant_i + sum(k * x for k, x in zip(powers_i, _logs(row, by), strict=True))
        (actual,) = _logs(row, (of,))
        errors.append(abs(actual - predicted))
        guesses.append(abs(actual - sum(_logs(x, (of,))[0] for x in rest) / len(rest)))
    factor, guess = (math.exp(_quantile(values, COVERAGE)) for values in (errors, guesses))
    ends = {x: [getattr(row, x) for row in rows] for x in by}
    covered = {name: (min(values), max(values)) for name, values in ends.items()}
    reference = math.exp(constant) * _unit(of)
    return PriceLaw(of, by, reference, tuple(powers), factor, guess, covered)


def _unit(name: str) -> float:
    return P_REF if name.startswith("p_") else 1.0


def _logs(row: Observation, names: Sequence[str]) -> list[float]:
    return [math.log(getattr(row, name) / _unit(name)) for name in names]


def _least_absolute(of: str, by: Sequence[str], rows: Sequence[Observation]) -> list[float]:
    """Constant and powers of least summed absolute error; known powers stay as they are."""
    if of in KNOWN_POWERS:
        powers = KNOWN_POWERS[of]
        rest = [_logs(row, (of,))[0] - float(np.dot(powers, _logs(row, by))) for row in rows]
        return [float(np.median(rest)), *powers]
    design = np.array([[1.0, *_logs(row, by)] for row in rows])
    target = np.array([_logs(row, (of,))[0] for row in rows])
    n, k = design.shape
    solved = linprog(
        np.r_[np.zeros(k), np.ones(2 * n)],
        A_eq=np.c_[design, np.eye(n), -np.eye(n)],
        b_eq=target,
        bounds=[(None, None)] * k + [(0, None)] * (2 * n),
    )
    if solved.x is None:
        raise SolverError(f"the fit of {of} was not solved: {solved.message}")
    return [float(x) for x in solved.x[:k]]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
