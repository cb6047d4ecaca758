"""Split the cost difference of two scenarios over the keys that changed.

Every set of changes is a scenario of its own, searched as `solve` searches; the difference of the
objective, and of the bill of a month where arrivals are given, is split over the changes.

Shapley: each change bears the mean of what it adds over every order in which the changes may be
made one by one. Where some scenario in between has no value (no plan keeps its promises, or its
keys contradict each other) the mean is over the orders in which every one has. (L. S. Shapley,
A value for n-person games, 1953.)
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from planner.comparison import answer_files
from planner.protocol.document import Unit, to_document
from planner.protocol.output import Output
from planner.protocol.parameter import lookup_value, path_unit
from planner.protocol.plan import MissedPromise, Status, gap_status, max_gap
from planner.protocol.problem import Problem, Search, get_problem, search_each
from planner.scenario import check_tree, resolve_keys
from planner.scenario.keys.fields import QuestionRecord
from planner.scenario.loading import Source
from planner.scenario.tree import Tree
from planner.text.console import progress
from planner.text.errors import InputError
from planner.text.quantities import MONTH_HOURS
from planner.text.tolerances import REL_TOL

Coalitions = Mapping[
    int, Sequence[float] | None
]  # of sets of changes, as bits; None without a value
MAX_SHAPLEY_CHANGES = 10  # changes; exact Shapley values solve all 2^n subsets


@dataclass(frozen=True)
class Split:
    """Contribution of each group of changes to each measured number; the groups in order.

    `orders` is over how many orders the mean was taken.
    """

    groups: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[float, ...], ...]
    orders: int


def shapley(count: int, values: Coalitions) -> Split | None:
    """Shapley split: mean over the orders with a value at every step; None without such an order.

    `values` are those of all sets of `count` changes, by their bits. The parts sum to the whole.
    """
    whole = (1 << count) - 1
    begun, ended = _orders(count, values)
    if not begun[whole]:
        return None
    terms: list[list[list[float]]] = [[] for _ in range(count)]
    for have in range(whole + 1):
        for change in range(count):
            then = have | 1 << change
            weight = 0 if then == have else begun[have] * ended[then]
            first, second = values[have], values[then]
            if weight and first is not None and second is not None:
                share = weight / begun[whole]
                terms[change].append([(b - a) * share for a, b in zip(first, second, strict=True)])
    parts = tuple(tuple(map(math.fsum, zip(*each, strict=True))) for each in terms)
    return Split(tuple((change,) for change in range(count)), parts, begun[whole])


def _orders(count: int, values: Coalitions) -> tuple[list[int], list[int]]:
    """In how many orders each set is come to, and gone on from, over sets that have a value."""
    whole = (1 << count) - 1
    begun, ended = [0] * (whole + 1), [0] * (whole + 1)
    begun[0] = ended[whole] = 1
    for have in range(1, whole + 1):
        if values[have] is not None:
            begun[have] = sum(begun[have & ~(1 << x)] for x in range(count) if have >> x & 1)
    for have in range(whole - 1, -1, -1):
        if values[have] is not None:
            ended[have] = sum(ended[have | 1 << x] for x in range(count) if not have >> x & 1)
    return begun, ended


def in_order(count: int, value: Callable[[int], Sequence[float] | None]) -> Split:
    """Return the contribution of each change when changes are made in their order.

    A change after which there is no value is taken together with those that follow it.
    """
    groups: list[tuple[int, ...]] = []
    parts: list[tuple[float, ...]] = []
    before, have, group = value(0), 0, ()  # type: Sequence[float] | None, int, tuple[int, ...]
    for change in range(count):
        have, group = have | 1 << change, (*group, change)
        after = value(have)
        if after is not None and before is not None:
            groups.append(group)
            parts.append(tuple(b - a for a, b in zip(before, after, strict=True)))
            before, group = after, ()
    return Split(tuple(groups), tuple(parts), 1)


BILL, ARRIVALS = "usd_per_hour", "workload.demand"  # an output and a key, where a kind has them
AT_A_TIME = 16  # scenarios that are searched together


@dataclass(frozen=True)
class ComparedSide:
    """Side of a comparison: objective and bill (null without a plan), choice, missed promises."""

    file: str
    value: float | None
    usd_per_month: float | None
    choice: str
    outputs: dict[str, float]
    infeasible: tuple[MissedPromise, ...] = ()


@dataclass(frozen=True)
class ChangeCost:
    """Keys that changed, and what that adds to the objective and to the bill of a month.

    Several stand together where some of them alone leave no plan; costs are null where one of the
    sides has none.
    """

    keys: tuple[str, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    units: tuple[str | None, ...]
    cost: float | None
    usd_per_month: float | None


@dataclass(frozen=True)
class PriceDifference:
    """Two scenarios compared; `str()` is the terminal's text."""

    problem: str
    status: Status
    gap: Annotated[float, Unit("1")] | None
    of: str
    unit: str
    before: ComparedSide
    after: ComparedSide
    difference: float | None
    usd_per_month: float | None
    method: str
    orders: int
    changes: tuple[ChangeCost, ...]
    warnings: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = field(default=(), repr=False)

    @property
    def document(self) -> dict[str, Any]:
        """Exactly what `planner diff --json` prints, in base units."""
        return {"schema": "diff/1", **to_document(self)}

    def __str__(self) -> str:
        from planner.comparison.difference_text import difference_text

        return difference_text(self)


def difference(before: Source, after: Source, *, shown: bool = False) -> PriceDifference:
    """Split the cost difference of two scenarios, or saved answers, over the keys that changed.

    Raises InputError with every mistake in either, or where their objectives are not the same.

    Args:
        shown: draw progress on a terminal.
    """
    sides = tuple(answer_files.load_comparison_side(source) for source in (before, after))
    problem, objective = _objective(sides)
    datas = [resolve_keys(side.question, full_paths=True) for side in sides]
    changes = answer_files.changed_keys(datas[0], datas[1], sides[1])
    scenarios = _Scenarios(problem, datas[0], changes, shown)
    last = (1 << len(changes)) - 1
    ends = scenarios.searched([0, last])
    outputs = tuple(x for x in problem.outputs if x.unit)
    bill = any(output.name == BILL for output in problem.outputs)
    loads = [lookup_value(side.question, ARRIVALS) for side in sides]
    # No monthly bill without a demand: `max` serves the maximum arrival rate.
    paid = bill and all(load is not None and load != "max" for load in loads)
    measured = ((objective.name, 1.0), (BILL, MONTH_HOURS)) if paid else ((objective.name, 1.0),)
    pairs = tuple(_side(side, best, measured) for side, best in zip(sides, ends, strict=True))
    feasible = all(best.feasible for best in ends)
    split, method = None, ""
    if feasible and changes:
        split, method = _split(scenarios, measured, len(changes))
    gap = max_gap(best.gap for best in ends) if feasible else None
    rows = _rows(changes, split, problem.kind, two=len(measured) == 2)
    values = [side.value for side in pairs]
    bills = [side.usd_per_month for side in pairs]
    return PriceDifference(
        problem=problem.kind,
        status=gap_status(gap, feasible=feasible),
        gap=gap,
        of=objective.name,
        unit=objective.unit,
        before=pairs[0],
        after=pairs[1],
        difference=_less(*values),
        usd_per_month=_less(*bills),
        method=method,
        orders=split.orders if split else 0,
        changes=rows,
        warnings=tuple(_stale(sides, pairs, objective)),
        outputs=outputs,
    )


def _less(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _objective(sides: Sequence[answer_files.ComparedScenario]) -> tuple[Problem[Any, Any], Output]:
    """The kind of both and the output that both make small; InputError where they differ."""
    kinds = [side.question.problem for side in sides]
    if kinds[0] != kinds[1]:
        raise InputError(f"a {kinds[0]} and a {kinds[1]} answer different questions")
    problem = get_problem(kinds[0])
    firsts = [
        next(x for x in problem.outputs if x.applies is None or x.applies(side.question))
        for side in sides
    ]
    if firsts[0] is not firsts[1]:
        names = f"{firsts[0].name} and {firsts[1].name}"
        raise InputError(f"the two are judged by different outputs, {names}")
    return problem, firsts[0]


@dataclass(frozen=True)
class _Scenarios:
    """The scenarios with every set of the changes made, searched once each."""

    problem: Problem[Any, Any]
    before: dict[str, Any]
    changes: Sequence[answer_files.ChangedKey]
    shown: bool
    done: dict[int, Search | None] = field(default_factory=dict)

    def question(self, chosen: int) -> QuestionRecord | None:
        """The question of a set of changes; None where its keys contradict each other."""
        made = [x for place, x in enumerate(self.changes) if chosen >> place & 1]
        try:
            question = check_tree(
                Tree("scenario", answer_files.apply_changes(self.before, made)), Path()
            )
        except InputError:
            return None
        return question if isinstance(question, QuestionRecord) else None

    def all_of(self, chosen: Iterable[int]) -> list[Search | None]:
        """Best search result of each set of changes; None if its keys contradict each other."""
        sets = list(chosen)
        new = [one for one in dict.fromkeys(sets) if one not in self.done]
        with progress(len(new), 0, shown=self.shown and len(new) > AT_A_TIME) as advance:
            for start in range(0, len(new), AT_A_TIME):
                batch = new[start : start + AT_A_TIME]
                answers = search_each([self.question(one) for one in batch])
                self.done.update(zip(batch, answers, strict=True))
                advance(len(batch))
        return [self.done[one] for one in sets]

    def searched(self, chosen: Sequence[int]) -> list[Search]:
        """Best search result of each set of changes; an invalid set raises its error."""
        answers = self.all_of(chosen)
        for members, best in zip(chosen, answers, strict=True):
            if best is None:
                made = [x for place, x in enumerate(self.changes) if members >> place & 1]
                question = check_tree(
                    Tree("scenario", answer_files.apply_changes(self.before, made)), Path()
                )
                self.done[members] = self.problem.search(question)
        return [best for one in chosen if (best := self.done[one]) is not None]


def _values(best: Search | None, measured: Sequence[tuple[str, float]]) -> list[float] | None:
    if best is None or not best.feasible:
        return None
    outputs = best.outputs
    if any(name not in outputs for name, _ in measured):
        return None
    return [outputs[name] * factor for name, factor in measured]


def _split(
    scenarios: _Scenarios, measured: Sequence[tuple[str, float]], count: int
) -> tuple[Split, str]:
    """The difference over the changes, and how it was split, in words."""

    def value(chosen: int) -> list[float] | None:
        return _values(scenarios.all_of([chosen])[0], measured)

    if count <= MAX_SHAPLEY_CHANGES:
        every = range(1 << count)
        searches = scenarios.all_of(every)
        values = {one: _values(best, measured) for one, best in zip(every, searches, strict=True)}
        split = shapley(count, values)
        if split is not None:
            return split, "shapley"
    return in_order(count, value), "file order"


def _side(
    side: answer_files.ComparedScenario, best: Search, measured: Sequence[tuple[str, float]]
) -> ComparedSide:
    values = _values(best, measured)
    return ComparedSide(
        file=side.name,
        value=values[0] if values else None,
        usd_per_month=values[1] if values and len(values) > 1 else None,
        choice=best.choice,
        outputs=dict(best.outputs) if best.feasible else {},
        infeasible=() if best.feasible else best.shortfalls,
    )


def _rows(
    changes: Sequence[answer_files.ChangedKey], split: Split | None, kind: str, *, two: bool
) -> tuple[ChangeCost, ...]:
    """One row per change, or per group of changes without separate values; highest cost first."""
    groups = split.groups if split else tuple((place,) for place in range(len(changes)))
    rows = []
    for number, group in enumerate(groups):
        members = [changes[place] for place in group]
        parts = split.parts[number] if split else ()
        rows.append(
            ChangeCost(
                keys=tuple(x.name for x in members),
                before=tuple(answer_files.json_value(x.before) for x in members),
                after=tuple(answer_files.json_value(x.after) for x in members),
                units=tuple(path_unit(kind, [str(part) for part in x.path]) for x in members),
                cost=parts[0] if parts else None,
                usd_per_month=parts[1] if parts and two else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: -abs(row.cost or 0.0)))


def _stale(
    sides: Sequence[answer_files.ComparedScenario], pairs: Sequence[ComparedSide], objective: Output
) -> Iterable[str]:
    """Saved answers that say something else than their scenario does today."""
    for side, pair in zip(sides, pairs, strict=True):
        value: Any = (side.answer or {}).get("plan")
        for part in (objective.key or objective.name).split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, int | float) and pair.value is not None:
            off = pair.value / value - 1 if value else 0.0
            if abs(off) > REL_TOL:
                yield (
                    f"{side.name} was saved with {objective.name} {value:.6g}; "
                    f"this version answers {pair.value:.6g}, which is what is compared"
                )
