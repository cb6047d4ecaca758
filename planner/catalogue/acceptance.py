"""Accepted draft tokens per step, by model and method, or estimated from other curves.

A curve of accepted lengths has two parameters, the chance of the first drafted token and the factor
from each to the next (`formulas.serving.speculation`). Curves of one model and method are alike,
those of one method less so: a curve of which little is known is drawn to what the others have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from formulas.numerics.kernel import Kernel
from formulas.numerics.store import cached_kernel
from planner.catalogue.figures import entry
from planner.text.tables import table

FILE = "speculation.toml"
CERTAINTY_MARGIN = 1e-9  # below a chance of one, whose odds have no logarithm


@dataclass(frozen=True)
class DraftMethod:
    """Method of drafting tokens.

    `projections` are matrices, hidden by hidden, that join what a predictor layer is given; `vocab`
    the words of a head of its own, 0 for the model's; `experts` says whether its layer has experts
    where the model's have, `passes` whether a drafter runs at all.
    """

    name: str
    projections: int
    vocab: int
    experts: bool
    passes: bool
    source: str


@dataclass(frozen=True)
class Acceptance:
    """A curve of accepted lengths: `first` chance [1], `decay` from one draft to the next [1].

    `odds` and `factor` are standard deviations of ln(first/(1 - first)) and of ln(decay) for a
    curve of this model and method. `measured` says whether any was, `source` what.
    """

    first: float
    decay: float
    odds: float
    factor: float
    measured: bool
    source: str

    def range(self, most: int, deviations: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`lengths` and its band of `deviations` standard deviations: low, middle, high [token]."""
        middle = self.lengths(most)
        position = np.array([_logit(self.first), np.log(self.decay)])
        moved = [
            np.log(lengths(*_chance_and_decay(position + step), most) / middle)
            for step in np.diag([self.odds, self.factor])
        ]
        far = np.exp(deviations * np.hypot(*moved))
        ends = np.maximum(middle / far, 1.0), np.minimum(middle * far, np.arange(most + 1) + 1.0)
        return ends[0], middle, ends[1]

    def lengths(self, most: int) -> np.ndarray:
        """Mean tokens of a step by its drafts, none to `most` [token], (most + 1,)."""
        return lengths(self.first, self.decay, most)


@dataclass(frozen=True)
class AcceptanceCurve:
    """The two parameters of one measured curve, and the depths measured."""

    model: str
    method: str
    workload: str
    first: float
    decay: float
    depths: tuple[int, ...]
    source: str

    @property
    def position(self) -> np.ndarray:
        """Logarithms of the odds of the first draft and of the decay."""
        return np.array([_logit(self.first), np.log(self.decay)])


@cache
def _table() -> dict[str, Any]:
    return table("planner.catalogue", FILE)


def methods() -> dict[str, DraftMethod]:
    """Every method by its name."""
    rows = _table()["methods"]
    return {name: DraftMethod(name=name, **row) for name, row in rows.items()}


def draft_method(name: str) -> DraftMethod:
    """A method by its name; raises CatalogueError with the nearest one."""
    return entry("method of speculation", name, methods())


@cache
def curves() -> tuple[AcceptanceCurve, ...]:
    """Every curve of the catalogue."""
    data = _table()
    return tuple(
        AcceptanceCurve(
            model=row["model"],
            method=row["method"],
            workload=row["workload"],
            first=row["first"],
            decay=row["decay"],
            depths=tuple(row["depths"]),
            source=data["sources"][row["from"]],
        )
        for row in data["curves"]
    )


def acceptance(
    model: str, method: str, among: Sequence[AcceptanceCurve] | None = None
) -> Acceptance:
    """Prior acceptance curve of a model and a method, before any measurement by the user.

    Args:
        model: a catalogue name.
        among: the curves to go by, those of the catalogue where none are given.
    """
    rows = curves() if among is None else tuple(among)
    spread = _table()["spread"]
    of = _table()["same"].get(model, model)  # checkpoints of one model in other formats are it
    alike = [row for row in rows if row.model == of and row.method == method]
    if alike:
        middle = np.mean([row.position for row in alike], axis=0)
        wide = np.sqrt(1 + 1 / len(alike)) * np.array([spread["odds"], spread["factor"]])
        works = dict.fromkeys(row.workload for row in alike)
        words = f"{method} of {model}: {'; '.join(works)} ({alike[0].source})"
        return _acceptance(middle, wide, words, measured=True)
    looks_up = not draft_method(method).passes
    others = [row for row in rows if draft_method(row.method).passes != looks_up]
    same = [row for row in others if row.method == method] or others
    groups: dict[tuple[str, str], list[np.ndarray]] = {}
    for row in same:
        groups.setdefault((row.model, row.method), []).append(row.position)
    middle = np.median([np.mean(places, axis=0) for places in groups.values()], axis=0)
    wide = np.array([spread["odds_of_models"], spread["factor_of_models"]])
    whose = method if same is not others else "other methods"
    words = f"no curve of {method} of {model} is known: the middle of {len(groups)} of {whose}"
    return _acceptance(middle, wide, words, measured=False)


def fit_acceptance(points: Sequence[tuple[int, float]], before: Acceptance) -> Acceptance:
    """Fit a curve to accepted lengths at some depths, shrunk to the prior curve `before`.

    Args:
        points: depth [token], and mean tokens of a step at it [token].
    """
    from scipy.optimize import least_squares

    noise = _table()["spread"]["noise"]
    expected = np.array([_logit(before.first), np.log(before.decay)])
    wide = np.array([before.odds, before.factor])
    depths = [depth for depth, _ in points]
    measured = np.log([length for _, length in points])

    def off(at: np.ndarray) -> np.ndarray:
        curve = lengths(*_chance_and_decay(at), max(depths))
        return np.concatenate([(np.log(curve[depths]) - measured) / noise, (at - expected) / wide])

    return _acceptance(
        least_squares(off, expected).x, wide, "accepted lengths as given", measured=True
    )


def lengths(first: float, decay: float, most: int) -> np.ndarray:
    """Mean tokens of a step by the number of its drafts, of shape (most + 1,) [token]."""
    drafts, tokens = np.arange(most + 1), np.ones(most + 1)
    for place in range(most, 0, -1):
        symbols = {"a_draft": first, "q_draft": decay, "i_draft": float(place), "g_next": tokens}
        longer = _recurrence()(**symbols, one_token=1.0, one_seq=1.0)["g"]
        tokens = np.where(drafts >= place, longer, tokens)
    return tokens


@cache
def _recurrence() -> Kernel:
    """The tokens of a step from those of one whose first draft is given."""

    def lowered() -> Kernel:
        from formulas.numerics.evaluate import kernel
        from formulas.serving.speculation import draft_chance, tokens_of_drafts

        equations = (draft_chance, tokens_of_drafts)
        return kernel(equations, {"g": tokens_of_drafts.symbol})

    return cached_kernel("accepted-lengths", lowered, (Path(__file__),))


def _acceptance(
    position: np.ndarray, wide: np.ndarray, source: str, *, measured: bool
) -> Acceptance:
    first, decay = _chance_and_decay(position)
    return Acceptance(first, decay, float(wide[0]), float(wide[1]), measured, source)


def _chance_and_decay(position: np.ndarray) -> tuple[float, float]:
    return float(1 / (1 + np.exp(-position[0]))), float(np.exp(position[1]))


def _logit(chance: float) -> float:
    odds = min(max(chance, CERTAINTY_MARGIN), 1 - CERTAINTY_MARGIN)
    return float(np.log(odds / (1 - odds)))
