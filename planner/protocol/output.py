"""Outputs of an answer: its numbers by name, each with its unit, its aliases and its equation.

Columns of a table: lists, arrays, or few different values with their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from planner.text.errors import InputError, did_you_mean, quote

if TYPE_CHECKING:
    import numpy as np
    import sympy as sp

    from planner.protocol.plan import Plan
    from planner.protocol.problem import Problem
    from planner.scenario.loading import Question


Q = TypeVar("Q", bound="Question")


@dataclass(frozen=True)
class Output:
    """One number of an answer, in base units.

    Args:
        name: what `--of` takes and tables print.
        unit: base unit, such as `s` or `USD per million tokens`.
        aliases: what people call it, such as `cost`.
        promise: path of the parameter that limits it, such as `promises.tpot`.
        equation: gives the expression that computes it in a plan, in `unit`, None where the plan
            has no such number; called when it is needed.
        key, or_key: where it stands in a plan, dotted, the name if None; where else it may stand.
        rises: whether more of it is better.
        applies: whether the aliases mean this output in a question; always if None.
    """

    name: str
    unit: str
    aliases: tuple[str, ...] = ()
    promise: str | None = None
    equation: Callable[[Plan], sp.Expr | None] | None = None
    key: str | None = None
    or_key: str | None = None
    rises: bool = False
    applies: Callable[[Any], bool] | None = None


def output_named(problem: Problem[Q, Any], question: Q, name: str) -> Output:
    """The output that a name or an alias means in a question.

    Raises InputError if there is none, with the nearest.
    """
    for output in problem.outputs:
        meant = output.applies is None or output.applies(question)
        if name == output.name or (meant and name in output.aliases):
            return output
    aliases = dict.fromkeys(alias for output in problem.outputs for alias in output.aliases)
    names = [*aliases, *(output.name for output in problem.outputs)]
    hint = did_you_mean(name, names) or f" (known: {', '.join(names)})"
    raise InputError(f"--of: a {problem.kind} answer has no {quote(name)}{hint}")


def output_values(outputs: Sequence[Output], plan: object) -> dict[str, float]:
    """The outputs that a plan has, by name; those without a value are left out."""
    values = (
        (output.name, _number_at(plan, key))
        for output in outputs
        for key in (output.or_key, output.key or output.name)
        if key
    )
    return {name: value for name, value in values if value is not None}


def _number_at(plan: object, key: str) -> float | None:
    value: Any = plan
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return None if value is None else float(value)


Cell: TypeAlias = str | int | float | None
CellRow: TypeAlias = dict[str, Cell]


@dataclass(frozen=True)
class CodedColumn:
    """A column of few different values: `codes` are places in `words`, shape (n,)."""

    codes: np.ndarray
    words: tuple[Cell, ...]

    def __len__(self) -> int:
        return len(self.codes)


Column: TypeAlias = "Sequence[Cell] | np.ndarray | CodedColumn"
Columns: TypeAlias = Mapping[str, Column]


def by_name(rows: Sequence[Mapping[str, Cell]]) -> dict[str, list[Cell]]:
    """Rows as columns; a key that a row lacks is None there."""
    return {name: [row.get(name) for row in rows] for name in all_names(rows)}


def merge_columns(axes: Columns, answers: Columns) -> Columns:
    """Columns of the varied axes, then of the answers; `plan.` prefixes a name in both."""
    return {**axes, **{f"plan.{x}" if x in axes else x: column for x, column in answers.items()}}


def all_names(tables: Iterable[Iterable[str]]) -> list[str]:
    """Names of all tables, in order of first appearance."""
    return list(dict.fromkeys(name for table in tables for name in table))


def tolist(column: Column) -> list[Cell]:
    """Values of a column as Python objects; None for missing values."""
    if isinstance(column, CodedColumn):
        return [column.words[code] for code in column.codes.tolist()]
    if isinstance(column, Sequence):
        return list(column)
    # NaN, which equals no value, marks a missing value in an array of numbers.
    return [value if value == value else None for value in column.tolist()]  # noqa: PLR0124
