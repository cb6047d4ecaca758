"""An inference: one quantity by one equation, from listed prices, under named assumptions.

A reading is evaluated at every corner of what it assumes. Each equation rises or falls in each of
its symbols wherever the others stand, so that the least and the most of the corners are the ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import sympy as sp

from planner.problems.prices.assumptions import Assumption
from planner.protocol.document import json_key

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation
    from formulas.algebra.equation import Equation

Sense = Literal["=", "<=", ">="]
CONSTANTS = {"c_fwd": 2.0, "m_pos": 1.0, "g": 1.0}  # FLOP a parameter; a token a step, no drafts


@dataclass(frozen=True)
class SheetInference:
    """A quantity with its ends in base units, and what was made of it; None is no end."""

    json_first: ClassVar[tuple[str, ...]] = ("name", "low", "mid", "high", "from")

    name: str
    low: float | None
    mid: float | None
    high: float | None
    assumes: tuple[str, ...]
    formula: str
    verdict: str
    origin: str = json_key("from")
    reading: Reading | None = field(default=None, repr=False, compare=False)

    @property
    def ends(self) -> tuple[float, float]:
        """From zero, and without end, where nothing says more."""
        return self.low or 0.0, math.inf if self.high is None else self.high

    @property
    def width(self) -> float:
        """The most over the least; infinite where an end is missing."""
        low, high = self.ends
        return high / low if low > 0 else math.inf


@dataclass(frozen=True)
class Reading:
    """An equation with listed prices put in, and what its other symbols may be.

    Parameters
    ----------
    equation : its left side is the quantity.
    facts : listed prices, and what follows from them alone, by symbol.
    assumptions : what the other symbols may be.
    statement : what is taken for granted besides numbers.
    sense : whether the quantity is at most, at least or as much as the right side.
    """

    name: str
    equation: Equation
    facts: Mapping[str, float]
    assumptions: tuple[Assumption, ...]
    statement: str
    origin: str
    sense: Sense = "="

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The symbols of the right side that are no assumption."""
        needed = {symbol.name for symbol in self.equation.rhs.free_symbols}
        assumed = {name for each in self.assumptions for name in each.symbols}
        return {
            name: value
            for name, value in {**CONSTANTS, **self.facts}.items()
            if name in needed - assumed
        }

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the most of the right side over all corners."""
        corners = self._corners()
        names = sorted(corners[0])
        values = np.asarray(
            self.equation.numpy(*names)(*(np.array([x[name] for x in corners]) for name in names))
        )
        return float(values.min()), float(values.max())

    def _corners(self) -> list[dict[str, float]]:
        needed = {symbol.name for symbol in self.equation.rhs.free_symbols}
        axes = []
        for assumption in self.assumptions:
            points = [{x: v for x, v in p.items() if x in needed} for p in assumption.points]
            axes.append([dict(row) for row in dict.fromkeys(tuple(x.items()) for x in points)])
        joined = [{k: v for each in corner for k, v in each.items()} for corner in product(*axes)]
        return [{**self.values, **corner} for corner in joined]

    def inference(self, verdict: str = "") -> SheetInference:
        """The reading as a line of the answer; a bound has one end."""
        low, high = self.ends
        least = None if self.sense == "<=" else low
        most = None if self.sense == ">=" else high
        mid = math.sqrt(low * high) if self.sense == "=" and low > 0 else None
        assumes = (*map(str, self.assumptions), self.statement)
        return SheetInference(
            self.name, least, mid, most, assumes, str(self.equation), verdict, self.origin, self
        )

    @cached_property
    def monomial(self) -> tuple[float, dict[str, float]] | None:
        """ln of the constant, and the power of every assumed symbol; None for no such product."""
        named = {x.name: x for x in self.equation.rhs.free_symbols}
        rest = self.equation.rhs.subs({named[x]: v for x, v in self.values.items()})
        powers: dict[str, float] = {}
        constant = 1.0
        for base, power in sp.powsimp(rest).as_powers_dict().items():
            if base.is_Symbol:
                powers[base.name] = powers.get(base.name, 0.0) + float(power)
            elif not base.free_symbols:
                constant *= float(base) ** float(power)
            else:
                return None
        return (math.log(constant), powers) if constant > 0 else None


def last_step(result: Derivation | Equation) -> Equation:
    """The equation of a derivation, or the equation itself."""
    from formulas.algebra.derivation import Derivation

    return result.equation() if isinstance(result, Derivation) else result


def without_reading(name: str, origin: str, verdict: str) -> SheetInference:
    """A line that says why nothing follows."""
    return SheetInference(name, None, None, None, (), "", verdict, origin)
