"""The rows that a chapter's file may hold: figures, parts, numbers, failures, exercises."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Values: TypeAlias = Mapping[str, int | float | str]


@dataclass(frozen=True)
class CurveRow:
    """One curve: the equation that gives it, its name in the figure, and what it is scaled by."""

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
class DrawnFigure:
    """A figure as its row of a chapter says it.

    Parameters
    ----------
    name : its anchor.
    caption : a line of prose.
    up : what the vertical axis shows, with `unit` a key of the claims' units.
    axis : the symbol that runs from `first` to `last`; a timetable has none.
    log, log_up : logarithmic axes.
    curves, bars : what is drawn.
    marks : {words: expression of the axis} for points of interest on the last curve.
    kinks : whether places where the branch of a curve changes are marked.
    case, values : a named set of values, and what differs from it.
    share : equation of the idle share, which the bars of a timetable must have.
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
class Part:
    """Words of a derivation section, and the entry of the catalogue that follows them."""

    say: str
    take: str = ""


@dataclass(frozen=True)
class WorkedRow:
    """One line of the numbers: what it is, the expression that gives it, its unit."""

    what: str
    of: str
    unit: str = ""


@dataclass(frozen=True)
class Failure:
    """Where a result stops: words, and a relation or a derivation whose neglect is measured."""

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
