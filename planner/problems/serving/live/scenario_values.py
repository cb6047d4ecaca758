"""Symbols moved by the sliders of a page: set directly, or derived from lengths.

What a page cannot search by itself, and why: its sliders are left out.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.evaluate import kernel
from formulas.numerics.expressions import put
from formulas.numerics.kernel import Kernel
from formulas.serving.request_lengths import emitted_tokens, mean_context, seen_context, seen_prompt
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import memory_rises
from planner.problems.serving.step.drafting import resident
from planner.problems.serving.step.engine_effects import has_slowdown
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task, TaskPair
from planner.text.tables import table


def refused_task(task: Task) -> str:
    """Reason why a page cannot search a task by itself; empty if it can."""
    if task.prefer_simple:
        return "whether the simplest plan is near enough to be preferred is looked at in Python"
    if task.uses_bound and task.arrivals is not None:
        return "the roofline knows no queue: what load its plan bears is worked out in Python"
    if task.uses_bound and memory_rises(Step(task, admissible_layouts(task), bound=True)).any():
        return "on-chip memory holds all weights: the price on the roofline turns with the batch"
    if task.load == "most" and not task.pooled:
        return "how much the promises let a fleet serve is sought by bisection in Python"
    if task.static:
        return "of a static batch all prompts are read in one go"
    if task.engine and has_slowdown(task):
        return "the engine's older kernels slow a step in a way that follows the batch"
    if task.conversations:
        return "room for caches is counted by chance, which this page does not"
    return ""


def refused_pair(pair: TaskPair) -> str:
    """Reason why a page cannot search two pools by itself; empty if it can."""
    first, last = pair.tasks
    if pair.demand is None and first.arrivals is not None:
        return "how much the promises let two pools serve is sought by bisection in Python"
    if first.objective in ("latency", "energy") or first.electricity or last.electricity:
        return (
            "two pools of least latency or energy, or that pay their power, are weighed in Python"
        )
    if "e2e" in last.promises:
        return "a promise on the whole request ties two pools closer than this page does"
    if resident(first).get("R_bnd_mem"):
        return "of a drafter whose cache a window bounds, what is sent is worked out in Python"
    return ""


L_WIN = SYMBOLS["L_win"]


@dataclass(frozen=True)
class SliderRow:
    """One slider: a row of `sliders.toml`, where the fields are explained."""

    name: str
    label: str
    group: str
    unit: str
    path: str
    sets: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    limit: str = ""
    inverse: bool = False
    span: float = 1.0
    ends: tuple[float, float] = (0.0, 0.0)
    whole: bool = False


_LISTS = ("sets", "adds", "times", "ends")
SLIDER_ROWS = tuple(
    SliderRow(**row | {name: tuple(row[name]) for name in _LISTS if name in row})
    for row in table("planner.problems.serving.live", "sliders.toml")["sliders"]
)


def scenario_value(row: SliderRow, scenario: Scenario, task: Task) -> float | None:
    """Scenario value that a slider moves; 1 for a factor, None if the scenario sets no value."""
    if row.times:
        return 1.0
    part, _, key = row.path.partition(".")
    if part == "promises":
        value = getattr(scenario.promises, key)
        return None if value is None else float(value)
    if part == "workload":
        value = getattr(scenario.workload, key)
        if key == "demand":
            return value.value if value is not None and math.isfinite(value.value) else None
        return float(getattr(value, "mean", value))
    if row.path == "price":
        return task.price - task.electricity
    return float(getattr(task.chip, key))


def following(task: Task, scenario: Scenario) -> Kernel:
    """The symbols of a task that follow from the lengths of its requests, as one kernel.

    Sizes and windows of the model's caches are numbers in it; of a demand in tokens it has the
    requests.
    """
    arriving = [(SYMBOLS["X_arr"], SYMBOLS["X_out"] / SYMBOLS["L_out"])]
    pairs = [(mean_context.symbol, mean_context.rhs)]
    if task.mode == "prefill":
        pairs = [(mean_context.symbol, SYMBOLS["L_in"])]
    first = task.mode == "aggregated" or task.pooled
    pairs.append((emitted_tokens.symbol, emitted_tokens.rhs if first else SYMBOLS["L_out"]))
    equations = [*pairs, *_seen(task), *(arriving if token_demand(scenario) else ())]
    return kernel([_Definition(*pair) for pair in equations], [x.name for x, _ in equations])


def token_demand(scenario: Scenario) -> dict[str, float]:
    """The demand in output tokens per second by its symbol, where it is given in tokens."""
    demand = scenario.workload.demand
    return {"X_out": demand.value} if demand is not None and demand.per == "token" else {}


def demand_symbols(scenario: Scenario) -> dict[str, float]:
    """The demand by its symbols: in requests, and in tokens where it is given in them."""
    demand = scenario.workload.demand
    if demand is None or not math.isfinite(demand.value):
        return {}
    rate = demand.requests_per_s(scenario.workload.output_tokens.mean)
    return {"X_arr": rate, **token_demand(scenario)}


@dataclass(frozen=True)
class _Definition:
    """A definition whose numbers carry units: sizes of caches."""

    symbol: sp.Symbol
    rhs: sp.Expr


def _seen(task: Task) -> list[tuple[sp.Symbol, sp.Expr]]:
    """Bytes read and arithmetic of window-bounded caches in steps and prompts, by symbol."""
    sizes, drafter = task.sizes, task.drafter
    bounded = [c for c in sizes.caches if c.limit is not None]
    decode, prompt = seen_context.rhs, seen_prompt.rhs
    sums: dict[str, list[sp.Expr]] = {}
    if bounded and not task.lecture:
        sums["R_bnd"] = _of_caches(decode, ((c.bytes_per_token, c.limit) for c in bounded))
        sums["A_bnd"] = _of_caches(decode, ((c.flop_per_cached_token, c.limit) for c in bounded))
        sums["A_bnd_pf"] = [
            sp.Float(sizes.state_flop_per_token),
            *_of_caches(prompt, ((c.flop_per_pair_prefill, c.limit) for c in bounded)),
        ]
    resident = [(c.bytes_per_token, c.limit) for c in bounded if not c.grows]
    if drafter is not None:
        drafted = [c for c in drafter.caches if c.limit]
        share = drafter.share
        if drafted:
            sums["R_draft"] = _of_caches(
                decode, ((share * c.bytes_per_token, c.limit) for c in drafted)
            )
            flop = ((share * c.flop_per_cached_token, c.limit) for c in drafted)
            sums["A_draft"] = _of_caches(decode, flop)
        resident += [(share * c.bytes_per_token, c.limit) for c in drafted if not c.grows]
    if resident:
        sums["R_bnd_mem"] = _of_caches(decode, resident)
    return [(SYMBOLS[name], sp.Add(*terms)) for name, terms in sums.items() if terms]


def _of_caches(seen: sp.Expr, caches: Iterable[tuple[float, float | None]]) -> list[sp.Expr]:
    return [
        sp.Float(float(much)) * put(seen, {L_WIN: sp.Float(float(limit or 0))})
        for much, limit in caches
        if much
    ]


def apply_sliders(
    rows: Sequence[SliderRow],
    values: Mapping[str, Any],
    task: Task,
    scenario: Scenario,
    to: Mapping[str, float],
) -> dict[str, Any]:
    """Symbols of a task with some sliders moved, by name: the page's calculation in Python.

    Args:
        values: every symbol of the task, numbers or one for each layout.
        to: values of sliders by name.
    """
    symbols = {**values, **token_demand(scenario)}
    for row in rows:
        if row.name not in to:
            continue
        before, after = scenario_value(row, scenario, task), to[row.name]
        symbols |= {name: after for name in row.sets if name in symbols}
        for name in row.adds:
            if name in symbols:
                symbols[name] = symbols[name] + (after - (before or 0.0))
        for name in row.times:
            if name in symbols:
                symbols[name] = symbols[name] * (after / (before or 1.0))
    follow = following(task, scenario)
    return {**symbols, **follow(**{name: symbols[name] for name in follow.names})}
