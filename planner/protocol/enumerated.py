"""A problem kind that is `{output: equation}` and columns of choices: every choice is compared.

What the faces ask of a kind follows from the two: the search, what falls short and by how much,
what binds, slopes and multipliers, the same point by another evaluator, and the types of the JSON.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np

from planner.protocol import plan as records
from planner.protocol.document import Share, Unit
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable, unit_of, value_at
from planner.protocol.plan import Plan
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import Line, Section
from planner.scenario import resolved
from planner.scenario.keys.uncertain import LEFT_ASIDE
from planner.text.errors import SolverError
from planner.text.tolerances import AGREE, SAME
from planner.text.wording import quantity

if TYPE_CHECKING:
    import sympy as sp

    from formulas.numerics.kernel import Kernel
    from planner.scenario.loading import Question

Q = TypeVar("Q", bound="Question")
Arrays: TypeAlias = "Mapping[str, np.ndarray]"

ALTERNATIVES = 4
METHOD = "every choice, compared as arrays; the best one again by walking the equations"


@dataclass(frozen=True)
class ComparedChoices:
    """How many choices were compared, and how far the best one is from itself computed again."""

    method: str
    choices_considered: int
    recheck: Share | None


@dataclass(frozen=True)
class EveryChoice:
    """Every choice of a question, in arrays (n,) by name.

    `columns` are chosen, `values` the symbols of the equations, `outputs` what these give; `misses`
    has the factor by which a promise is missed, above 1 where it is; `score` is made small.
    """

    columns: Arrays
    values: Arrays
    outputs: Arrays
    misses: Arrays
    score: np.ndarray

    def ranked(self, without: str = "") -> np.ndarray:
        """Places of the choices that keep every promise but one, the best first."""
        feasible = np.ones(len(self.score), dtype=bool)
        for path, factor in self.misses.items():
            feasible &= (factor <= 1) | (path == without)
        places = np.flatnonzero(feasible)
        # Of choices that only rounding tells apart the first stands first.
        with np.errstate(divide="ignore"):
            return places[np.argsort(np.log(self.score[places]).round(12), kind="stable")]

    def symbols_at(self, place: int) -> dict[str, float]:
        """The symbols of the equations at one choice."""
        return {name: float(value[place]) for name, value in self.values.items()}

    def binding(self) -> Iterator[records.BindingLimit]:
        """Promises without which another choice would be better.

        The elasticity is the mean slope from the limit to what that choice needs, in logarithms.
        """
        for path, factor in self.misses.items():
            best, free = self.ranked()[0], self.ranked(without=path)[0]
            gain = self.score[free] / self.score[best]
            if gain < 1 - SAME:
                yield records.BindingLimit(path, math.log(gain) / math.log(factor[free]))


def crossed(*tables: Mapping[str, Sequence[Any]]) -> Arrays:
    """The columns (n,) of every row of one table with every row of the others."""
    sizes = [range(len(next(iter(table.values())))) for table in tables]
    pairs = zip(tables, np.array([*product(*sizes)]).T, strict=True)
    return {name: np.asarray(each)[rows] for table, rows in pairs for name, each in table.items()}


class Enumerated(Problem[Q]):
    """A kind given by its outputs' equations and its choices; the first output is the objective.

    Attributes
    ----------
    equations : outputs with their expressions, of which the symbols are columns of the choices or
        keys of the question.
    chosen : columns that a plan shows, with their types; words name a choice, whole numbers count.
    """

    equations: tuple[tuple[Output, sp.Expr], ...]
    chosen: tuple[tuple[str, type], ...]
    expressions: Mapping[str, sp.Expr]  # by the names of their outputs
    point_type: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        cls.outputs = tuple(replace(x, equation=partial(_always, e)) for x, e in cls.equations)
        cls.expressions = {output.name: expression for output, expression in cls.equations}
        _make_types(cls)

    @abstractmethod
    def choices(self, question: Q) -> Arrays:
        """Columns (n,) of all that may be chosen, whatever the numbers of the question are."""

    def parameters(self, question: Q) -> list[Parameter]:
        """Every key of the question that has a unit, varied as `--set` would."""
        rows = (
            Parameter(path, self.value(question, path), unit, self.kind)
            for path in type(question).model_fields
            if (unit := unit_of(self.kind, (path,)))
        )
        return settable(question, rows)

    def search(self, question: Q, coefficients: Mapping[str, float] | None = None) -> Search:
        """The best choice that keeps every promise."""
        every = self._every(question)
        ranked, considered = every.ranked(), {"choices": len(every.score)}
        if not len(ranked):
            missed = tuple(self._missed(every))
            return replace(NO_PLAN, considered=considered, missed=lambda: missed)
        best = self._point(every, ranked[0])
        shown = [(name, getattr(best, name)) for name, _ in self.chosen]
        words = ", ".join(value for _, value in shown if isinstance(value, str))
        counts = tuple((f"{name} {n}", n) for name, n in shown if isinstance(n, int))
        score, numbers = float(every.score[ranked[0]]), values_in(self.outputs, best)
        return Search(numbers, words, score, best, counts, considered=considered, gap=0.0)

    def answer(self, question: Q) -> Plan:
        """The best choice with what binds it, the next best, and its numbers computed again."""
        every, objective = self._every(question), self.outputs[0].name
        points = [self._point(every, place) for place in every.ranked()[: 1 + ALTERNATIVES]]
        best = points[0] if points else None
        slopes = self.slopes(question, objective) if best else {}
        off = self._recheck(every) if best else None
        uncertain = getattr(question, "uncertain", None) is not None
        answer = self.plan_type.answer_type(
            scenario=resolved(question),
            gap=0.0 if best else None,
            plan=best,
            bound=float(every.outputs[objective][np.argmin(every.score)]),
            certificate=ComparedChoices(METHOD, len(every.score), off),
            binding=tuple(every.binding()) if best else (),
            elasticities={path: right for path, (_, right) in slopes.items() if right},
            alternatives=tuple(points[1:]),
            infeasible=None if best else tuple(self._missed(every)),
            provenance=records.Provenance(warnings=(LEFT_ASIDE,) if uncertain else ()),
        )
        return self.plan_type(records.KnownAnswer(answer))

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The outputs and what is chosen, or what falls short."""
        if not plan.feasible:
            missed = (Line(x.promise, "none keeps it", note=x.expression) for x in plan.infeasible)
            return (Section(self.kind, tuple(missed)),)
        bounds = {self.outputs[0].name: plan.answer.bound}
        numbers = (
            Line(x.name, plan.chosen[x.name], x.unit, bound=bounds.get(x.name))
            for x in self.outputs
        )
        chosen = (Line(name, str(plan.chosen[name])) for name, _ in self.chosen)
        return (Section(self.kind, (*numbers, *chosen)),)

    def duals(self, question: Q, output: str) -> Mapping[str, float]:
        """Of keys that no promise sees, and of a power of which the objective is a multiple.

        Such a key moves no choice, whatever it is: an output that is a multiple too follows it.
        """
        by_name, objective = self.expressions, self.outputs[0].name
        seen = {x for each, e in self.equations if each.promise for x in e.free_symbols}
        duals = {}
        for x in by_name[objective].free_symbols - seen:
            of_score, power = (_power(by_name[name], x) for name in (objective, output))
            if x.name in type(question).model_fields and of_score is not None and power is not None:
                duals[x.name] = power
        return duals

    def slopes(self, question: Q, output: str) -> Mapping[str, tuple[float, float]]:
        """Of the equations, the choice held."""
        from formulas.numerics.slopes import elasticities

        every, keys = self._every(question), type(question).model_fields
        sides = elasticities(self._kernel(), output, every.symbols_at(every.ranked()[0]))
        names = (x.name for x in self.expressions[output].free_symbols)
        return {name: sides[name] for name in names if name in keys}

    @classmethod
    @cache
    def _kernel(cls) -> Kernel:
        """The equations as one function of arrays."""
        from formulas.numerics.evaluate import kernel

        return kernel((), cls.expressions)

    def _every(self, question: Q) -> EveryChoice:
        """All choices with their outputs."""
        columns, kernel = self.choices(question), self._kernel()
        shape = np.shape(next(iter(columns.values())))
        values = {
            x: np.broadcast_to(columns[x] if x in columns else getattr(question, x), shape)
            for x in kernel.names
        }
        outputs = {name: np.asarray(value) for name, value in kernel(**values).items()}
        misses = {}
        for output in self.outputs:
            limit = value_at(question, output.promise) if output.promise else None
            if isinstance(limit, int | float) and output.promise:
                factor = outputs[output.name] / limit
                misses[output.promise] = 1 / factor if output.rises else factor
        best = self.outputs[0]
        score = 1 / outputs[best.name] if best.rises else outputs[best.name]
        return EveryChoice(columns, values, outputs, misses, score)

    def _point(self, every: EveryChoice, place: int) -> Any:
        """One choice as the plan has it."""
        words = {name: form(every.columns[name][place]) for name, form in self.chosen}
        numbers = {name: float(values[place]) for name, values in every.outputs.items()}
        return self.point_type(**words, **numbers)

    def _missed(self, every: EveryChoice) -> Iterator[records.MissedPromise]:
        """What the choice that is nearest to keeping every promise misses, and what it has."""
        place = int(np.argmin(np.max([*every.misses.values()], axis=0)))
        for output in self.outputs:
            factor = every.misses.get(output.promise or "")
            if factor is not None and factor[place] > 1:
                has = quantity(float(every.outputs[output.name][place]), output.unit)
                words = f"the nearest choice has {output.name} {has}"
                yield records.MissedPromise(output.promise or "", float(factor[place]), words)

    def _recheck(self, every: EveryChoice) -> float:
        """How far the arrays lie from the same equations walked with plain floats, relative.

        Raises SolverError for a number that is another.
        """
        from formulas.numerics.evaluate import scalar

        place, off = every.ranked()[0], 0.0
        for name, again in scalar((), self.expressions, every.symbols_at(place)).items():
            number = float(every.outputs[name][place])
            off = max(off, abs(number - again) / max(abs(again), sys.float_info.min))
            if not off <= AGREE:
                words = f"{name} is {number:.12g} in the plan, but {again:.12g} when computed anew"
                raise SolverError(words)
        return off


def _always(expression: sp.Expr, plan: Plan) -> sp.Expr:
    """The expression of an output, which is the same in every plan."""
    return expression


def _power(expression: sp.Expr, x: sp.Symbol) -> float | None:
    """The power of a symbol that an expression is a multiple of; None where it is of none."""
    factor = expression.as_independent(x, as_Add=False)[1]
    base, exponent = factor.as_base_exp()
    if factor.is_number:
        return 0.0
    return float(exponent) if base == x and exponent.is_number else None


def _make_types(kind: type[Enumerated[Any]]) -> None:
    """The types of a kind's point, answer and plan, of which the schema is made."""
    name, objective = kind.kind.title(), kind.outputs[0]
    numbers = [(x.name, Annotated[float, Unit(x.unit)]) for x in kind.outputs]
    point = make_dataclass(
        f"{name}Point", [*kind.chosen, *numbers], frozen=True,
        namespace={"__doc__": "A choice and its numbers."},
    )  # fmt: skip
    parts: list[tuple[Any, ...]] = [
        ("problem", str, kind.kind),
        ("plan", point | None, None),
        ("bound", Annotated[float, Unit(objective.unit)] | None, None),
        ("certificate", ComparedChoices),
        ("alternatives", tuple[point, ...], ()),  # type: ignore[valid-type]
    ]
    answer = make_dataclass(
        f"{name}Answer", parts, bases=(records.Answer,), frozen=True, kw_only=True,
        namespace={"__doc__": f"The whole answer to a {kind.kind} question."},
    )  # fmt: skip
    constants = {"kind": kind.kind, "version": kind.version, "cost_of": objective.name}
    plan = type(f"{name}Plan", (Plan,), {**constants, "answer_type": answer})
    kind.point_type, kind.plan_type = point, plan
    # Plans are sent to other processes, which find a class by its name in its module.
    for made in (point, answer, plan):
        made.__module__ = kind.__module__
        setattr(sys.modules[kind.__module__], made.__name__, made)
