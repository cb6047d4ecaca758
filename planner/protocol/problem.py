"""Interface of a problem kind. Every face works for any kind through it, and names no kind.

A kind is a room, `planner/problems/K`: its question (scenario keys in base units), its outputs,
its parameters, a search, a typed plan. What a kind may do beyond that are methods with a default,
or abilities that a face asks for with `isinstance` and does without where they are missing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from planner.protocol.elasticity import Elasticity
from planner.protocol.live_page import LivePage
from planner.protocol.output import Output
from planner.protocol.parameter import Parameter, lookup_value, with_value
from planner.protocol.plan import MissedPromise, Plan, Status, gap_status
from planner.protocol.section import IN_SHORT, MAX_LINES, AnswerHead, Line, Section, value_lines
from planner.scenario.kinds import problem_package
from planner.text.errors import FieldError, InputError, PlannerError

if TYPE_CHECKING:
    import numpy as np

    from formulas.algebra.equation import Equation
    from planner.catalogue.ranges import ListedRange
    from planner.scenario.loading import Question

Q = TypeVar("Q", bound="Question")
P = TypeVar("P", bound=Plan[Any])
Q_contra = TypeVar("Q_contra", contravariant=True)
Counts = tuple[tuple[str, int], ...]

PREFIX = "profile."  # paths below it are coefficients, no part of the scenario
SMALL_COUNT = 20  # count below which a step of 1 is another choice: it is over five percent


@dataclass(frozen=True)
class Search:
    """The best point of a question, without its certificate.

    Args:
        outputs: values in base units by name, which may be computed when one is looked at.
        choice: the discrete choices in words.
        score: what is made small; infinite where nothing keeps the promises.
        plan: the point as the room prints it.
        counts: whole numbers beside the choice, each in words, with the least of them.
        ties: choices with their counts that are as good.
        holds: changes PATH=VALUE that leave the scenario this choice and no other.
        considered: how many points were decided, by what they are.
        gap: how far above the best the point may lie, of it; None where nothing is proved.
        missed: works out the shortfalls where there is no plan.
        row: works out the point as a row of a table, by the kind's own columns.
    """

    outputs: Mapping[str, float]
    choice: str
    score: float
    plan: Any = field(default=None, repr=False, compare=False)
    counts: Counts = ()
    ties: tuple[tuple[str, Counts], ...] = ()
    holds: tuple[str, ...] = ()
    considered: Mapping[str, int] = field(default_factory=dict)
    gap: float | None = None
    missed: Callable[[], Sequence[MissedPromise]] | None = field(
        default=None, repr=False, compare=False
    )
    row: Callable[[], Mapping[str, Any]] | None = field(default=None, repr=False, compare=False)

    @property
    def feasible(self) -> bool:
        """True if a choice keeps the promises."""
        return self.score != math.inf

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` with a `gap` above 1e-6, or `infeasible`."""
        return gap_status(self.gap, feasible=self.feasible)

    @cached_property
    def shortfalls(self) -> tuple[MissedPromise, ...]:
        """Promises that the nearest choice misses; empty if a plan was found."""
        return tuple(self.missed()) if self.missed else ()

    @property
    def small_counts(self) -> str:
        """Counts so small that a step of 1 is another choice, as text."""
        return ", ".join(words for words, least in self.counts if least < SMALL_COUNT)

    def switched(self, then: Search) -> bool:
        """True if another choice is best in `then` and this choice is not tied with it."""
        ties = then.ties or ((then.choice, then.counts),)
        return all(choice != self.choice or self._recounted(counts) for choice, counts in ties)

    def counts_in(self, then: Search) -> str:
        """The small counts of this choice as they are in another one, in words."""
        pairs = zip(then.counts, self.counts, strict=False)
        return ", ".join(words for (words, _), (_, least) in pairs if least < SMALL_COUNT)

    def _recounted(self, counts: Counts) -> bool:
        pairs = zip(self.counts, counts, strict=False)
        return any(mine != theirs for mine, theirs in pairs if mine[1] < SMALL_COUNT)


NO_PLAN = Search({}, "no plan", math.inf)


class Problem(ABC, Generic[Q, P]):
    """A problem kind. The first output that applies to a question is its objective."""

    kind: str
    version: int
    plan_type: type[P]
    outputs: tuple[Output, ...] = ()
    limited: tuple[Output, ...] = ()  # numbers that a question may limit, never requested alone
    more_columns: Mapping[str, str] = MappingProxyType({})  # that a row has in some questions
    most_lines = MAX_LINES  # lines of an answer unless more are requested
    slow = False  # whether a search takes a second, so that faces search only when asked to

    @property
    def columns(self) -> Mapping[str, str]:
        """Of its row in a table, with their units, "" for pure numbers and words: the outputs."""
        return {output.name: output.unit for output in self.outputs}

    @abstractmethod
    def parameters(self, question: Q) -> Sequence[Parameter]:
        """Parameters of a question that may be varied."""

    @abstractmethod
    def search(self, question: Q, coefficients: Mapping[str, float] | None = None) -> Search:
        """The best point; `coefficients` are put in place of the question's own (profiles)."""

    @abstractmethod
    def answer(self, question: Q) -> P:
        """The plan with its certificate, its reasons and its provenance."""

    def check(self, question: Q) -> None:
        """Raise InputError for exactly the questions that `answer` refuses.

        It is what an answer begins with, up to its search.
        """

    def value(self, question: Q, path: str) -> float | None:
        """Value of a question at a path, in base units; None if it is not a positive number."""
        value = lookup_value(question, path)
        return float(value) if isinstance(value, int | float) and value > 0 else None

    def varied(self, question: Q, path: str, value: float) -> Q:
        """The question with another value at a path, as `--set` would put it there."""
        return cast("Q", with_value(question, path, value))

    def sections(self, plan: P) -> Sequence[Section]:
        """The plan as lines under titles: the outputs."""
        return (Section("answer", value_lines(self.outputs, plan)),)

    def head(self, plan: P) -> AnswerHead | None:
        """First rows of the answer; None for a kind without a head."""
        return None

    def search_many(
        self, questions: Sequence[Q], coefficients: Sequence[Mapping[str, float]] | None = None
    ) -> Sequence[Search]:
        """The best point of each question; InputError of any of them is raised."""
        profiles = coefficients if coefficients is not None else [{}] * len(questions)
        pairs = zip(questions, profiles, strict=True)
        return [self.search(question, profile or None) for question, profile in pairs]

    def duals(self, question: Q, output: str) -> Mapping[str, float]:
        """d ln output / d ln parameter by path, everything following: multipliers of a program."""
        return {}

    def slopes(self, question: Q, output: str) -> Mapping[str, tuple[float, float]]:
        """Left and right d ln output / d ln parameter by path, layout fixed: equation slopes."""
        return {}

    def elasticities(self, question: Q, output: str) -> Sequence[Elasticity] | None:
        """The whole table, for every parameter and question, of a kind that fills it itself."""
        return None

    def coefficient(self, question: Q, path: str) -> UncertainCoefficient | None:
        """Coefficient outside the scenario that a path names, None for a path of the scenario.

        `search` takes such numbers, those of a profile, in place of the question's own.
        """
        if path.startswith(PREFIX):
            words = f"a {self.kind} has no profile of its own"
            raise FieldError((f"uncertain.{path}", words))
        return None

    def listed(self, question: Q, path: str) -> ListedRange | None:
        """Range for `uncertain: {PATH: catalogue}`; None if no catalogue has a range."""
        return None


class ArrayModel(Protocol):
    """A question without a choice, evaluated at many values of its parameters."""

    @property
    def words(self) -> Mapping[str, str | int | float | None]:
        """Columns that do not vary; `layout` is the choice."""

    def __call__(self, values: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Columns at values of shape (n,); `status` is 0 for rows that keep the promises."""


@runtime_checkable
class HasParts(Protocol):
    """An array model with parts; `bottleneck` names the largest part in each row."""

    @property
    def symbols(self) -> Mapping[str, tuple[str, ...]]:
        """The symbols of the equations that add up to each part."""

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that define the symbols."""

    @property
    def batch_scale(self) -> float:
        """The batch `B` of the equations for one of a path of `batches`."""

    def parts(
        self, values: Mapping[str, np.ndarray]
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, float | np.ndarray]]:
        """Each part, and every bound symbol, at values of shape (n,)."""


@runtime_checkable
class HasArrays(Protocol[Q_contra]):
    """Sweeps without a search: arrays replace numbers of the equations."""

    whole: tuple[str, ...]  # paths that accept only whole numbers
    batches: tuple[str, ...]  # those of them that are batches, which equations spread evenly

    def is_array(self, path: str) -> bool:
        """True if an array may replace the value at a path."""

    def array_model(self, question: Q_contra, ends: Mapping[str, np.ndarray]) -> ArrayModel | None:
        """Model of a question over the ranges `ends` of the axes; None if it has a choice."""


@runtime_checkable
class HasPicture(Protocol):
    """An answer that can be drawn."""

    def picture(self, plan: Plan) -> Any:
        """A description of the drawing."""


@dataclass(frozen=True)
class ReplicaHours:
    """One kind of replica and how many of it run in each hour, which repeat.

    Attributes:
        name: What tells it from all others of the plan.
        labels: Facts about it, in words.
        machines: Machines that one replica takes.
        replicas: Counts by hour (T,): a day, or a week from Monday, in UTC.
    """

    name: str
    labels: Mapping[str, str]
    machines: int
    replicas: tuple[int, ...]


@runtime_checkable
class HasReplicaHours(Protocol):
    """An answer that says how many replicas run in each hour."""

    def replica_hours(self, plan: Plan) -> Sequence[ReplicaHours]:
        """Every kind of replica that runs in some hour."""


@runtime_checkable
class HasLivePage(Protocol[Q_contra]):
    """An answer that a page can search again, with the reader's changes."""

    def live_page(self, question: Q_contra, plan: Plan) -> LivePage:
        """Search as a script, layouts as data, and the sliders."""


class FrontierAnswer(Protocol):
    """Frontier of two outputs; `str()` is its text."""

    @property
    def document(self) -> Mapping[str, Any]:
        """Exactly what `--json` prints, in base units."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings on the frontier."""

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` where not all is proved, or `infeasible` without a point."""

    @property
    def rows(self) -> list[dict[str, object]]:
        """The points as plain dicts of numbers and words."""


@runtime_checkable
class HasFrontier(Protocol[Q_contra]):
    """Trades one output for another, choice by choice."""

    def frontier(self, question: Q_contra, points: int | None) -> FrontierAnswer:
        """The choices that nothing beats in both; `points` of them are sought."""


@dataclass(frozen=True)
class UncertainCoefficient:
    """A number outside the scenario that may be uncertain, such as a coefficient of a profile.

    `read` checks a value as it is written; `listed` is the range that refits give it, and
    `unlisted` says why there is none.
    """

    path: str
    unit: str
    read: Callable[[object], float]
    listed: ListedRange | None = None
    unlisted: str = ""


def get_problem(kind: str) -> Problem[Question, Plan[Any]]:
    """The problem of a kind; InputError where no room answers it."""
    problem: Problem[Question, Plan[Any]] = problem_package(kind).PROBLEM
    return problem


def plan_sections(plan: Plan) -> list[Section]:
    """The sections of a plan of any kind, the rows of its head after the first."""
    problem = get_problem(plan.kind)
    first, *others = problem.sections(plan)
    head = problem.head(plan)
    rows = head.rows() if head else ()
    lines = tuple(Line(label, "; ".join(words)) for label, words in rows)
    return [first, *([Section(IN_SHORT, lines, beside=True)] if lines else []), *others]


def search(question: Question, coefficients: Mapping[str, float] | None = None) -> Search:
    """The best point of a question of any kind, nothing proved."""
    return get_problem(question.problem).search(question, coefficients)


def search_many(
    questions: Sequence[Question], coefficients: Sequence[Mapping[str, float]] | None = None
) -> list[Search]:
    """The best point of each of several questions of one kind, together where the kind can."""
    if not questions:
        return []
    return list(get_problem(questions[0].problem).search_many(questions, coefficients))


def search_each(
    questions: Sequence[Question | None],
    coefficients: Sequence[Mapping[str, float]] = (),
    labels: Sequence[str] = (),
) -> list[Search | None]:
    """Best point of each question, None where the question is None or refused.

    Raises SolverError where a search fails, with the label of its question where it has one.
    """
    numbers = [i for i, question in enumerate(questions) if question is not None]
    sensible = [question for question in questions if question is not None]
    beside = [coefficients[i] for i in numbers] if coefficients else None
    searches: list[Search | None] = [None] * len(questions)
    try:
        for i, best in zip(numbers, search_many(sensible, beside), strict=True):
            searches[i] = best
    except PlannerError:
        # A question is refused or fails: solve each by itself to find it.
        for i, question in zip(numbers, sensible, strict=True):
            try:
                searches[i] = search(question, coefficients[i] if coefficients else None)
            except InputError:
                searches[i] = None
            except PlannerError as error:
                place = f"at {labels[i]}: " if labels else ""
                raise type(error)(f"{place}{error}") from error
    return searches
