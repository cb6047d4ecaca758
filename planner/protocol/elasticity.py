"""Row of the elasticity table: effect of a parameter on an output, and the method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Method = Literal["dual", "slope", "re-solve"]
# Scope of an elasticity: quantities that stay fixed while the parameter moves.
EVERYTHING_FOLLOWS = "everything follows"  # replicas and pools are resized, chips follow
LAYOUT_HELD = "layout held"  # layouts and replicas stay, the batch is as large as its limits allow

STEP = 1e-3  # of a parameter, in logarithms
CLOSER = (1e-4, 1e-5)  # where the sides differ
OFFSETS = (-2, -1, 1, 2)  # steps of ln(parameter) from the value, each solved again
FEWER = 0.02  # relative change of a whole number, at least 1
SIDES_TOLERANCE = 1e-3  # slopes of both sides, relative, that are one


@dataclass(frozen=True)
class Elasticity:
    """d ln output / d ln parameter when it falls (`left`) and when it rises (`right`).

    Args:
        path, value, unit, group: the parameter.
        left, right: they differ at a kink; not a number where no answer was found beside it.
        method: a multiplier (dual), a slope of the equations, or solving again.
        basis: the method in words.
        question: what stays while the parameter moves.
        switches: the nearest changes at which another choice is best; None where not sought.
        reach: the largest elasticity of any output, where it is known.
        beside: rows of the same parameter by other methods, or for the other question.
    """

    path: str
    value: float | None
    unit: str
    group: str
    left: float
    right: float
    method: Method
    basis: str
    question: str = LAYOUT_HELD
    switches: tuple[Mapping[str, Any], ...] | None = None
    reach: float = 0.0
    beside: tuple[Elasticity, ...] = ()

    @property
    def influence(self) -> float:
        """Maximum absolute elasticity to the parameter, of this output or any other."""
        return max(abs(self.elasticity), self.reach)

    @property
    def elasticity(self) -> float:
        """Side of larger magnitude; not a number if a neighbouring point has no answer."""
        return max(self.left, self.right, key=abs)

    def when(self, question: str) -> Elasticity:
        """The row for what stays fixed; itself where the parameter has no such row."""
        rows = (row for row in (self, *self.beside) if row.question == question)
        return next(rows, self)

    @property
    def solved(self) -> bool:
        """True if an answer was found at neighbouring values of the parameter."""
        return not (math.isnan(self.left) or math.isnan(self.right))

    def document(self) -> dict[str, object]:
        """The row as a mapping."""
        return {
            "path": self.path,
            "value": self.value,
            "unit": self.unit,
            "group": self.group,
            "elasticity": self.elasticity if self.solved else None,
            **self.sides,
            "method": self.basis,
            "switches": None if self.switches is None else list(self.switches),
            "by": self.method,
            "question": self.question,
            "beside": [
                {"question": row.question, "by": row.method, **row.sides} for row in self.beside
            ],
        }

    @property
    def sides(self) -> dict[str, float | None]:
        """Both sides by name; None if a neighbouring point has no answer."""
        solved = self.solved
        return {"left": self.left if solved else None, "right": self.right if solved else None}


def one_per_parameter(rows: Sequence[Elasticity]) -> list[Elasticity]:
    """First row of each parameter, with the parameter's other rows attached to it."""
    by_path: dict[str, list[Elasticity]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    return [replace(first, beside=tuple(others)) for first, *others in by_path.values()]


def one_sided(
    at: float,
    values: Sequence[float | None],
    closer: Callable[[float], Sequence[float | None]] | None = None,
) -> tuple[float, float]:
    """Slopes to the left and to the right, to second order; `values` are those at the offsets.

    A side without values has the slope of the other. `closer` gives the values with a smaller step.
    """
    sides = _sides(at, values, STEP)
    for step in CLOSER if closer is not None else ():
        if not abs(sides[0] - sides[1]) > SIDES_TOLERANCE * max(1.0, *map(abs, sides)):
            break
        sides = _sides(at, closer(step), step)  # type: ignore[misc]
    return sides


def _sides(at: float, values: Sequence[float | None], step: float) -> tuple[float, float]:
    far_left, left, right, far_right = values
    low = None if left is None or far_left is None else 3 * at - 4 * left + far_left
    high = None if right is None or far_right is None else 4 * right - far_right - 3 * at
    sides = [None if each is None else each / (2 * step) for each in (low, high)]
    first = sides[0] if sides[0] is not None else sides[1]
    second = sides[1] if sides[1] is not None else sides[0]
    return (math.nan if first is None else first, math.nan if second is None else second)


def counted_sides(value: float, log: Callable[[float], float | None]) -> tuple[float, float]:
    """Slopes of a whole number to the left and right; `log` gives the output's at a count."""
    step, at = max(1, round(FEWER * value)), log(value)
    sides: list[float | None] = []
    for count in (value - step, value + step):
        there = log(count) if count else None
        if at is not None and there is not None:
            sides.append((there - at) / math.log(count / value))
        else:
            sides.append(None)
    left, right = (
        next((side for side in order if side is not None), 0.0) for order in (sides, sides[::-1])
    )
    return left, right
