"""Plan of any problem kind: the choice, its cost, its reasons and its optimality bound.

A kind of problem extends `Plan` with its own typed answer. Nothing here knows which kinds exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from planner.protocol.document import Share, json_key, to_document
from planner.protocol.note import Depth, Note, default_notes
from planner.protocol.promise import PromiseChance, sum_chance
from planner.protocol.section import answer_text, reasons, source_lines
from planner.scenario.kinds import problem_package
from planner.text.errors import did_you_mean
from planner.text.wording import excess, gap_percent

MIN_SHOWN_SHARE = 0.005  # that rounds to a percent
OPTIMALITY_GAP = 1e-6  # relative gap above which a plan is not called optimal
Status = Literal["optimal", "feasible", "infeasible"]
EXTRAPOLATION_LABEL, STRICT = "outside the fit", "a strict answer stays inside"
MEASURED, EXPECTED = "runs", "expected"  # what ranges are of: runs alike, or none


def gap_status(gap: float | None, *, feasible: bool = True) -> Status:
    """`optimal`, `feasible` where more than 1e-6 of the objective is unproved, or `infeasible`.

    `gap` is how far above what is proved the plan may lie, of the plan; None where nothing is.
    """
    if not feasible:
        return "infeasible"
    return "optimal" if gap is not None and gap <= OPTIMALITY_GAP else "feasible"


def max_gap(gaps: Iterable[float | None]) -> float | None:
    """Maximum of some gaps; None if a gap is None or there is no gap."""
    every = [*gaps]
    numbers = [gap for gap in every if gap is not None]
    return max(numbers) if numbers and len(numbers) == len(every) else None


def status_text(status: str, gap: float | None) -> str:
    """A status with the gap that it leaves."""
    left = "nothing proved" if gap is None else f"within {gap_percent(gap)} of the best"
    return f"{status}, {left}" if status == "feasible" else status


@dataclass(frozen=True)
class BindingLimit:
    """A promise or limit that holds the plan, and d ln objective / d ln limit [-]."""

    name: str
    elasticity: float


@dataclass(frozen=True)
class DataSource:
    """A figure that an answer uses, its source, and its date."""

    what: str
    source: str
    as_of: str | None


@dataclass(frozen=True)
class MissedPromise:
    """A promise that no choice keeps, the excess factor of the nearest choice, and the reason."""

    promise: str
    short_by: float | None
    expression: str = ""


@dataclass(frozen=True)
class Outside:
    """Part of an answer outside the measured rows: limits of the rows, and the value asked.

    `fitted` are the names that were measured or both ends of a range; `share` is that of the time
    of the step, or of the first token, that rests on what no row there covers; `words` say it.
    """

    json_first: ClassVar[tuple[str, ...]] = ("what", "fitted", "asked", "share")

    what: str
    fitted: tuple[str | float, ...]
    share: Share
    of: str
    value: str | float = json_key("asked")
    words: str = field(default="", repr=False, compare=False)

    @property
    def rests(self) -> str:
        """The share in words; empty where it rounds to nothing."""
        return f"{self.share:.0%} of the {self.of}" * (self.share >= MIN_SHOWN_SHARE)

    @property
    def reach(self) -> str:
        """Range of the measured rows for a number, as text; empty for a name."""
        ends = dict.fromkeys(f"{end:,.0f}" for end in self.fitted if not isinstance(end, str))
        return f"fit: {' to '.join(ends)}" if ends else ""

    def __str__(self) -> str:
        notes = "; ".join(filter(None, (self.reach, self.rests)))
        return f"{self.words} ({notes})" if notes else self.words


def extrapolation_text(outside: Sequence[Outside]) -> str:
    """Extrapolated parts of an answer, in one line; empty if all parts are measured."""
    return f"{EXTRAPOLATION_LABEL}: {', '.join(map(str, outside))}" if outside else ""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Basis of an answer: version of this program, sources with their dates, warnings."""

    json_last: ClassVar[tuple[str, ...]] = ("data", "warnings")

    version: str = field(default_factory=partial(version, "token-planner"))
    data: tuple[DataSource, ...] = ()
    warnings: tuple[str, ...] = ()

    def warned_of(self, question: object) -> Provenance:
        """Add the warnings on unread entries of model configurations, without duplicates."""
        from planner.scenario.keys.model_keys import config_warnings

        every = dict.fromkeys((*self.warnings, *config_warnings(question)))
        return replace(self, warnings=tuple(every))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Base of the answer of any kind; a kind narrows the types of its parts and adds its own.

    `gap` is how far above the best the plan may lie, of the plan, by whichever proof is nearer:
    0 where every choice was compared, None where nothing is proved. The status follows from it.
    """

    json_first: ClassVar[tuple[str, ...]] = ()
    json_last: ClassVar[tuple[str, ...]] = ("infeasible", "notes", "provenance")

    problem: str
    status: Status = field(init=False)
    gap: Share | None = None
    scenario: Mapping[str, Any]
    plan: object | None = None
    band: object | None = None
    outside: tuple[Outside, ...] = ()
    bound: object | None = None
    certificate: object
    binding: tuple[BindingLimit, ...] = ()
    elasticities: Mapping[str, float] = field(default_factory=dict)
    alternatives: tuple[object, ...] = ()
    infeasible: tuple[MissedPromise, ...] | None = None
    notes: tuple[Note, ...] = ()
    provenance: Provenance

    def __post_init__(self) -> None:
        status = gap_status(self.gap, feasible=self.plan is not None)
        object.__setattr__(self, "status", status)

    @property
    def promises(self) -> tuple[PromiseChance, ...]:
        """Promised values with their chances; empty of a kind that knows none."""
        return ()

    @property
    def needed_chance(self) -> float | None:
        """Required probability of keeping promises; None if only the estimate is judged."""
        return None

    def chance(self, output: str, value: float, limit: float, *, rises: bool) -> float | None:
        """The chance that an output keeps a limit, by its band; None where it has none.

        An output that `rises` is better the higher it is, and its limit is the least it may be.
        """
        ends = getattr(self.band, output, None)
        if ends is None:
            return None
        if rises:
            return sum_chance(1 / limit, [(1 / value, value / ends[1], value / ends[0])])
        return sum_chance(limit, [(value, ends[0] / value, ends[1] / value)])


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class KnownAnswer:
    """Callable that returns a precomputed answer, for a plan that computes its answer lazily."""

    answer: Any

    def __call__(self) -> Any:
        """The answer."""
        return self.answer


def presentation_method(part: str) -> Callable[..., str]:
    """A method of a plan that its room's `presentation` has, which is loaded when called."""

    def method(plan: Plan[Any], *depth: str) -> str:
        words = import_module(f"{problem_package(plan.kind).__name__}.presentation")
        text: str = getattr(words, part)(plan, *depth)
        return text

    return method


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Generic[A]):
    """The answer to one scenario; frozen.

    `make` works out the whole answer: that is done once, when a part of it is first looked at. A
    kind gives what it knows beforehand as properties of its own.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    cost_of: ClassVar[str]  # dotted path, in a plan, of the price or time that ranks it
    answer_type: ClassVar[type]  # type behind the JSON Schema of `planner schema --answer`

    make: Callable[[], A] = field()

    @cached_property
    def answer(self) -> A:
        """Everything that `--json` prints, typed, in base units (s, byte, USD, token)."""
        made = self.make()
        made = replace(made, provenance=made.provenance.warned_of(self.__dict__.get("question")))
        notes = made.notes or default_notes(
            extrapolation_text(made.outside), made.provenance.warnings
        )
        return replace(made, notes=notes)

    def __getstate__(self) -> dict[str, Any]:
        """The plan with its answer worked out: what makes it does not travel."""
        return {**self.__dict__, "make": KnownAnswer(self.answer)}

    def to_json(self) -> dict[str, Any]:
        """The document that `--json` prints; mappings are made of an answer only here."""
        return {"schema": f"{self.kind}/{self.version}", **to_document(self.answer)}

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """`to_json()`, made once."""
        return self.to_json()

    @property
    def problem(self) -> str:
        """Name of the problem kind."""
        return self.kind

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` with a `gap` above 1e-6, or `infeasible` without a plan."""
        return self.answer.status

    @property
    def gap(self) -> float | None:
        """Optimality gap relative to the plan's own value [1]; None if no bound is proved."""
        return self.answer.gap

    @property
    def feasible(self) -> bool:
        """True if a plan was found."""
        return self.status != "infeasible"

    @property
    def scenario(self) -> Mapping[str, object]:
        """The scenario with everything filled in."""
        return self.answer.scenario

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The chosen plan as a mapping; empty when there is none."""
        return MappingProxyType(self.document["plan"] or {})

    @property
    def cost(self) -> float | None:
        """The price that this kind of plan is judged by; None when there is no plan."""
        point = self.answer.plan
        value: float | None = attrgetter(self.cost_of)(point) if point else None
        return value

    @property
    def band(self) -> object | None:
        """Ranges that cover the stated share of measured runs; None without measurements."""
        return self.answer.band

    @property
    def between(self) -> str:
        """Phrase before the ends of a range: share of measured runs, or `expected between`."""
        band: Any = self.band
        if getattr(band, "kind", None) != MEASURED:
            return "expected between"
        return f"{band.coverage:.0%} of measured runs lie between"

    @property
    def outside(self) -> tuple[Outside, ...]:
        """Extrapolated parts of the answer; empty inside the measured rows or without a fit."""
        return self.answer.outside

    @property
    def bound(self) -> object | None:
        """Lower bound on any implementation of the plan, or on any choice."""
        return self.answer.bound

    @property
    def certificate(self) -> object:
        """Proof of optimality: points considered, relaxation, gap, method."""
        return self.answer.certificate

    @property
    def binding(self) -> Sequence[BindingLimit]:
        """Promises and limits that bind, with their elasticities."""
        return self.answer.binding

    @property
    def elasticities(self) -> Mapping[str, float]:
        """d ln objective / d ln quantity [-] for given quantities, the discrete choices fixed."""
        return self.answer.elasticities

    @property
    def alternatives(self) -> Sequence[object]:
        """The next best choices, best first."""
        return self.answer.alternatives

    @property
    def infeasible(self) -> Sequence[MissedPromise]:
        """Missed promises with their excess factors; empty if a plan was found."""
        return self.answer.infeasible or ()

    @property
    def provenance(self) -> Provenance:
        """Version, assumptions, sources with their dates, warnings."""
        return self.answer.provenance

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on unknowns and extrapolations of the answer."""
        return tuple(self.provenance.warnings)

    if not TYPE_CHECKING:  # a type checker knows the attributes of each kind

        def __getattr__(self, name: str) -> object:
            """A quantity of the chosen plan by its name in the JSON: `step_time`, `layout`."""
            point = None if name.startswith("_") or name == "make" else self.answer.plan
            if hasattr(point, name):
                return getattr(point, name)
            parts = [part for part in dir(type(self)) if not part.startswith("_")]
            has = f" (it has {', '.join(vars(point))})" if point else ""
            hint = did_you_mean(name, [*vars(point), *parts] if point else parts) or has
            raise AttributeError(f"this {self.kind} plan has no {name}{hint}", name=name, obj=self)

    def explained(self) -> Plan[A]:
        """The plan with the details of `--why` in its document; most kinds add no details."""
        return self

    def why(self) -> str:
        """Binding limits, elasticities, and the closed form of a kind that has it, as text."""
        return reasons(self.binding, self.elasticities)

    def text(self, depth: Depth = "default") -> str:
        """The answer, or its sources, as wide as the terminal; by default three notes at most."""
        if depth == "sources":
            return "\n".join(source_lines(self.document["provenance"]))
        problem = problem_package(self.kind).PROBLEM
        return answer_text(problem.head(self), problem.sections(self), self.answer.notes, depth,
                           problem.most_lines)  # fmt: skip

    def __str__(self) -> str:
        return self.text()

    def summary(self) -> str:
        """The choice and its price in a few words; only asked of a plan with an answer."""
        lines = problem_package(self.kind).PROBLEM.sections(self)[0].lines
        return ", ".join(line.text().strip() for line in lines[:2])

    def __repr__(self) -> str:
        if not self.feasible:
            missed = ", ".join(
                s.promise if s.short_by is None else f"{s.promise} by {excess(s.short_by)}"
                for s in self.infeasible
            )
            return f"<Plan {self.kind}: infeasible, misses {missed}>"
        return f"<Plan {self.kind}: {self.summary()}>"

    def _repr_html_(self) -> str:
        from planner.protocol.page import plan_page

        return plan_page(self)
