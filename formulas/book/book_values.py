"""Numbers of the book: expressions over symbols and the catalogue, worked at a set of values.

Nothing in a chapter is typed that an equation gives: an answer, a number among the words, a curve
and a condition are each an expression, such as `critical_batch/short_context_batch`.

The rows that a chapter's file may hold: figures, parts, numbers, failures, exercises.
"""

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TypeAlias

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.algebra.steps import DerivationError
from formulas.claims.claim import LECTURE, UNITS, figure_text
from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.symbols import SYMBOLS, SymbolError, auxiliary
from formulas.numerics.evaluate import scalar
from formulas.numerics.expressions import FUNCTIONS, build_expr
from formulas.registry import by_name

Values: TypeAlias = Mapping[str, int | float | str]


@dataclass(frozen=True)
class CurveRow:
    """Curve of a figure: the equation that gives it, its label, and the divisor `over`."""

    of: str
    label: str
    over: str = "1"
    values: Values = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class BarRow:
    """Bars of a timetable: start and length for stage `i` and microbatch `j` [s]."""

    start: str
    length: str
    label: str


@dataclass(frozen=True)
class BookFigureRow:
    """A figure as its row of a chapter says it.

    Args:
        name: its anchor.
        caption: a line of prose.
        up: what the vertical axis shows, with `unit` a key of the claims' units.
        axis: the symbol that runs from `first` to `last`; a timetable has none.
        log, log_up: logarithmic axes.
        curves, bars: what is drawn.
        marks: {words: expression of the axis} for points of interest on the last curve.
        kinks: whether places where the branch of a curve changes are marked.
        case, values: a named set of values, and what differs from it.
        share: equation of the idle share, which the bars of a timetable must have.
    """

    name: str
    caption: str
    up: str = ""
    unit: str = ""
    axis: str = ""
    first: float = 1.0
    last: float = 10.0
    log: bool = False
    log_up: bool = False
    curves: tuple[CurveRow, ...] = ()
    bars: tuple[BarRow, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict, hash=False)
    kinks: bool = True
    case: str = "teaching"
    values: Values = field(default_factory=dict, hash=False)
    share: str = ""


@dataclass(frozen=True)
class DerivationPart:
    """Words of a derivation section, and the entry of the catalogue that follows them."""

    say: str
    take: str = ""


@dataclass(frozen=True)
class WorkedRow:
    """Row of worked numbers: its label, the expression that gives it, its unit."""

    what: str
    of: str
    unit: str = ""


@dataclass(frozen=True)
class Failure:
    """Limit of validity: words, and a relation or a derivation with a measured neglect."""

    say: str
    holds: str = ""
    of: str = ""


@dataclass(frozen=True)
class FalseStep:
    """A false argument: a derivation with other arguments for one step, which does not follow."""

    of: str
    step: int
    put: Mapping[str, str]


@dataclass(frozen=True)
class Exercise:
    """A question and what answers it: an expression worked at `values`, or a false step.

    `unit` is a key of the claims' units or words; `why` is how it is worked.
    """

    ask: str
    why: str
    answer: str = ""
    unit: str = ""
    values: Values = field(default_factory=dict, hash=False)
    refused: FalseStep | None = None


CASES = ("lecture", "teaching")


class BookError(ValueError):
    """Raised if a chapter cannot be set; the message names the missing part."""


class MissingValueError(BookError):
    """A symbol without a value in a set."""


def exact(values: Mapping[str, int | float | str]) -> dict[str, Fraction]:
    """Numbers of a row; "5/2" is a fraction."""
    return {name: Fraction(value) for name, value in values.items()}


@cache
def base_case(name: str) -> Mapping[str, Fraction]:
    """Values of symbols in base units: the lecture's, or those of `teaching.toml`.

    Raises BookError if there is no such set.
    """
    if name not in CASES:
        raise BookError(f"there is no set of values {name!r}; there are {', '.join(CASES)}")
    if name == "lecture":
        return {symbol: Fraction(value) for symbol, value in LECTURE.items()}
    rows = tomllib.loads(Path(__file__).with_name("teaching.toml").read_text("utf-8"))
    return exact(rows["values"])


def equation_named(name: str) -> Equation:
    """An equation of the catalogue, or the result of a derivation.

    Raises BookError if there is none of that name.
    """
    entry = by_name().get(name)
    if entry is None:
        raise BookError(f"{name} is neither an equation nor a derivation of the catalogue")
    return entry.equation() if isinstance(entry, Derivation) else entry


def parse_expression(expression: str, indices: tuple[str, ...] = ()) -> sp.Basic:
    """Parse an expression or relation; names are symbols, catalogue entries or indices.

    `indices` are other names that may occur. Raises BookError if it cannot be read, or a name in it
    is neither a symbol nor in the catalogue.
    """

    def named(name: str) -> sp.Basic:
        if name in SYMBOLS:
            return SYMBOLS[name]
        if name in by_name() or name in indices:
            return auxiliary(name)
        raise BookError(f"{name} in {expression!r} is neither a symbol nor an equation")

    try:
        return build_expr(ast.parse(expression.strip(), mode="eval").body, named)
    except SyntaxError as error:
        raise BookError(f"{expression!r} cannot be read: {error.msg}") from error
    except BookError:
        raise
    except ValueError:
        words = f"arithmetic, comparisons and {', '.join(FUNCTIONS)}"
        raise BookError(f"{expression!r} holds more than {words}") from None


def evaluate_expression(expression: str, case: Mapping[str, Fraction | float]) -> float:
    """The value of an expression at a set of values, by the equations it names. [base units]

    Raises MissingValueError if a symbol has no value there.
    """
    return evaluate_parsed(parse_expression(expression), case)


def evaluate_parsed(expression: sp.Basic, case: Mapping[str, Fraction | float]) -> float:
    """Evaluate a parsed expression under a set of values; raises MissingValueError."""
    numbers = {name: float(value) for name, value in case.items()}
    try:
        for x in expression.free_symbols:
            if x.name not in numbers and SYMBOLS.get(x.name) != x:
                equation = equation_named(x.name)
                symbol = equation.symbol.name
                others = {x: v for x, v in numbers.items() if x != symbol}
                numbers[x.name] = scalar([equation], [symbol], others)[symbol]
        return scalar((), {"value": expression}, numbers)["value"]
    except SymbolError as error:
        raise MissingValueError(f"{expression}: {error}") from error


@dataclass(frozen=True)
class ComparedSides:
    """A relation under which a result holds, and both its sides in one set of values."""

    relation: sp.Basic
    case: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """True if the relation holds for the values of both sides."""
        return bool(type(self.relation)(sp.Float(self.left), sp.Float(self.right)))


def condition(relation: str, name: str, case: Mapping[str, Fraction | float]) -> ComparedSides:
    """A relation such as `B*m_pos > short_context_batch`, evaluated on both sides.

    Raises BookError if it is no relation, or a symbol has no value.
    """
    read = parse_expression(relation)
    if not isinstance(read, sp.core.relational.Relational):
        raise BookError(f"{relation!r} is no relation, such as B < 100")
    left, right = (evaluate_parsed(side, case) for side in read.args)
    return ComparedSides(read, name, left, right)


def answer_value(exercise: Exercise, case: Mapping[str, Fraction | float]) -> float:
    """The answer in its unit, at the teaching set with the exercise's own values on top.

    Raises BookError if a symbol has no value.
    """
    value = evaluate_expression(exercise.answer, {**case, **exact(exercise.values)})
    return value / float(UNITS.get(exercise.unit, 1))


def answer_words(exercise: Exercise, case: Mapping[str, Fraction | float]) -> str:
    """Answer in one line: a number with its unit, or the checker's refusal of a false step."""
    if exercise.refused is not None:
        return refusal(exercise.refused)
    return figure_text(answer_value(exercise, case), exercise.unit)


def refusal(false: FalseStep) -> str:
    """Return the checker's message that refuses the false step.

    Raises BookError if there is no such derivation, or the step follows after all.
    """
    entry = by_name().get(false.of)
    if not isinstance(entry, Derivation):
        raise BookError(f"{false.of} is no derivation of the catalogue")
    changes = {name: parse_expression(words) for name, words in false.put.items()}
    try:
        entry.replayed({false.step: changes}).check()
    except (DerivationError, UnitError) as error:
        return " ".join(str(error).split())
    raise BookError(f"step {false.step} of {false.of} follows, where it should be refused")
