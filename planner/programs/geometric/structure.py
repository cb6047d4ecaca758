"""A lowered problem as arrays and names: all that a solve needs, without SymPy.

Coefficients are expressions of the givens on one tape, walked at every solve for values and for
slopes. The slopes are derivatives to the logarithm of a given, d c / d ln p = p dc/dp, so that a
given or a coefficient that is zero needs no special case.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from formulas.numerics.slopes import tape_derivatives, tape_values
from formulas.numerics.tape import Tape
from planner.programs.geometric.cone import Array, ExponentTable, Indices
from planner.text.errors import PlannerError

ROOF, PROMISE, LIMIT = "roof", "promise", "limit"
BOUND, AUXILIARY, OBJECTIVE = "bound", "auxiliary", "objective"


class ProblemError(PlannerError):
    """A problem that is no geometric program, or numbers that do not fit it; says what to do."""


@dataclass(frozen=True)
class Constraint:
    """Description of a row: its name and kind, the inequality as text, the text of its divisor.

    `roof` names the roof and its branch; a `reciprocal` row holds up an auxiliary variable that
    stands in its first term only.
    """

    name: str
    kind: str
    text: str
    divisor: str
    roof: tuple[Hashable, str] | None = None
    reciprocal: bool = False


@dataclass(frozen=True, eq=False)
class CoefficientTape:
    """The distinct expressions of a problem as one function of its givens.

    Attributes:
        givens: what a solve is given values for, symbols or, of a program that was kept, their
            names.
        nonnegative: which of them may not be below zero.
        texts: the expressions, for messages.
    """

    givens: tuple[Hashable, ...]
    nonnegative: tuple[bool, ...]
    texts: tuple[str, ...]
    tape: Tape

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return given_names(self.givens)

    def values(self, figures: Sequence[float]) -> Array:
        """Every expression at these figures for the givens.

        Raises ArithmeticError or ValueError where an expression has no value.
        """
        numbers = dict(zip(self._names, map(float, figures), strict=True))
        return np.array(list(tape_values(self.tape, numbers).values()), dtype=np.float64)

    def undefined(self, figures: Sequence[float]) -> list[str]:
        """The expressions that have no finite value at these figures."""
        numbers = dict(zip(self._names, map(float, figures), strict=True))
        bad = []
        for name, text in zip(self.tape.outputs, self.texts, strict=True):
            try:
                value = tape_values(self.tape.only(name), numbers)[name]
            except (ArithmeticError, ValueError, TypeError):
                value = np.nan
            if not np.isfinite(value):
                bad.append(text)
        return bad

    def slopes(self, figures: Sequence[float]) -> tuple[Indices, Indices, Array]:
        """`(place, given, p dc/dp)` for every pair that depends on each other, as three arrays."""
        numbers = dict(zip(self._names, map(float, figures), strict=True))
        along = tape_derivatives(self.tape, self._names, numbers)
        table = np.array([along[slot][0] for slot in self.tape.outputs.values()])
        places, givens = np.nonzero(table)
        return places, givens, table[places, givens]


@dataclass(frozen=True)
class ProgramStructure:
    """Parts of a geometric program that do not change between solves.

    `variables` are the choices, then the auxiliaries, then the objective, whose row is the last.
    `numerator` has one place of `coefficients` for every term, `divisor` one for every row,
    `exponent` one for every entry of `table.places`.
    """

    title: str
    rows: tuple[Constraint, ...]
    variables: tuple[Hashable, ...]
    choices: int
    table: ExponentTable
    coefficients: CoefficientTape
    numerator: Indices
    divisor: Indices
    exponent: Indices
    owned: tuple[tuple[int, ...], ...]

    def plain(self) -> dict[str, object]:
        """The structure as JSON holds it, symbols by their names."""
        table, coefficients = self.table, self.coefficients
        return {
            "title": self.title,
            "rows": [
                [row.name, row.kind, row.text, row.divisor, row.roof and list(map(str, row.roof)),
                 row.reciprocal]
                for row in self.rows
            ],
            "variables": list(map(str, self.variables)),
            "choices": self.choices,
            "table": [column.tolist() for column in vars(table).values()],
            "givens": list(map(str, coefficients.givens)),
            "nonnegative": list(coefficients.nonnegative),
            "texts": list(coefficients.texts),
            "tape": coefficients.tape.plain(),
            "numerator": self.numerator.tolist(),
            "divisor": self.divisor.tolist(),
            "exponent": self.exponent.tolist(),
            "owned": self.owned,
        }  # fmt: skip

    @classmethod
    def of_plain(cls, document: Mapping[str, Any]) -> ProgramStructure:
        """Rebuild the structure from the output of `plain` after a JSON round trip."""

        def indices(values: Sequence[int]) -> Indices:
            return np.array(values, dtype=np.intp)

        rows, fixed, terms, variables, places = document["table"]
        return cls(
            document["title"],
            tuple(
                Constraint(name, kind, text, divisor, roof and (roof[0], roof[1]), reciprocal)
                for name, kind, text, divisor, roof, reciprocal in document["rows"]
            ),
            tuple(document["variables"]),
            document["choices"],
            ExponentTable(
                indices(rows), np.array(fixed), indices(terms), indices(variables), indices(places)
            ),
            CoefficientTape(
                tuple(document["givens"]), tuple(document["nonnegative"]),
                tuple(document["texts"]), Tape.of_plain(document["tape"]),
            ),
            indices(document["numerator"]),
            indices(document["divisor"]),
            indices(document["exponent"]),
            tuple(map(tuple, document["owned"])),
        )  # fmt: skip


def given_names(givens: Sequence[Hashable]) -> tuple[str, ...]:
    """The givens' names, or numbers where two givens of different kinds share a name."""
    names = tuple(map(str, givens))
    return names if len(set(names)) == len(names) else tuple(f"_{i}" for i in range(len(names)))
