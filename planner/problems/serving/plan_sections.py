"""A serving plan as sections (its numbers, one step, memory, the next best) and as a table row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.problems.serving.advice.advice_text import accuracy_text, promise_text
from planner.problems.serving.deployment.beyond_fit import outside_cell, outside_fit
from planner.problems.serving.make_or_buy.comparison_text import bought, comparison_section
from planner.problems.serving.outputs import BY_NAME, OUTPUTS
from planner.problems.serving.point import idle, layout_text
from planner.problems.serving.presentation import question
from planner.protocol.section import Line, Section

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import NarrowingRun
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import ServingPoint
    from planner.protocol.plan import Plan

FIRST = ("usd_per_mtok", "tpot", "ttft", "tokens_per_s")  # of the headline
BESIDE = "promises"
DRAWN = 3  # next best plans
LAYOUT = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas", "overlap")
BANDS = ("usd_per_mtok", "tpot", "ttft")
# In the order of the outputs; a table of plans has chips, and no energy.
UNLISTED = ("watts_per_chip", "joule_per_token", "grams_per_mtok", "batch")
NUMBERS = {x.name: x.unit for x in OUTPUTS if x.name not in UNLISTED}
NUMBERS |= {"chips": "chip", "batch": "seq"}
WORDS = ("mode", "chip", "weights", "kv", "bottleneck")
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        **NUMBERS,
        **dict.fromkeys(("layout", *WORDS, *LAYOUT), ""),
        **{f"{name}_{end}": NUMBERS[name] for name in BANDS for end in ("low", "high")},
        **{f"{name}_bound": NUMBERS[name] for name in BANDS},
        "outside": "",
        "gap": "",
    }
)


def sections(plan: Plan[ServingAnswer]) -> tuple[Section, ...]:
    """The answer as sections; of an infeasible question only what was asked."""
    answer, point = plan.answer, plan.answer.plan
    title = " ".join(question(answer.scenario).split())
    if point is None:
        return (Section(title, ()),)
    lines = (*_choice(point), *_outputs(point, answer))
    parts = (*_parts(point), *_narrowing(answer.narrow), *_next_best(point, answer))
    buy = bought(answer)
    beside = Section(BESIDE, tuple(_beside(answer)), beside=True)
    return (Section(title, lines), beside, *parts, *([comparison_section(buy)] if buy else []))


def _choice(point: ServingPoint) -> Iterator[Line]:
    """Layouts, chips, formats and the batch in words."""
    for name, pool in point.phases.items():
        chips = f"{pool.chips} {pool.chip}{idle(pool)}"
        yield Line(name, f"{layout_text(pool)} on {chips}, {pool.utilisation:.0%} busy")
    if point.layout:
        yield Line("run", layout_text(point))
        yield Line("on", f"{point.chips} {point.chip}{idle(point)}")
    yield Line("formats", point.formats)
    yield Line("batch", f"{point.batch} sequences in flight")


def _outputs(point: ServingPoint, answer: ServingAnswer) -> Iterator[Line]:
    """Every number of the plan with its range and its bound, the headline's first."""
    for name in (*FIRST, *(name for name in BY_NAME if name not in FIRST and name != "batch")):
        value, output = getattr(point, name), BY_NAME[name]
        if value is not None:
            ends, bound = (getattr(part, name, None) for part in (answer.band, answer.bound))
            yield Line(output.label, value, output.unit, "", ends, bound)


def _beside(answer: ServingAnswer) -> Iterator[Line]:
    """Each promise with its chance, and how far runs of this kind of plan were off."""
    for promise in answer.promises:
        yield Line("promise", promise_text(promise))
    if answer.accuracy is not None:
        yield Line("accuracy", accuracy_text(answer.accuracy))


def _narrowing(run: NarrowingRun | None) -> Iterator[Section]:
    """The run to measure next of what is outside the fit, as commands."""
    if run is not None:
        numbered = enumerate(run.commands, start=1)
        lines = tuple(Line(f"{place}.", command) for place, command in numbered)
        yield Section(f"the run to measure next: {run.narrows}", lines)


def _parts(point: ServingPoint) -> Iterator[Section]:
    """What adds up to a step, and to the memory of a chip."""
    if point.time_per_step:
        lines = tuple(Line(name, value, "s") for name, value in vars(point.time_per_step).items())
        yield Section("one step", lines, adds_up=True)
    for title, (memory, holds) in point.memories().items():
        lines = tuple(Line(k, v, "byte") for k, v in vars(memory).items() if k != "capacity")
        yield Section(title, lines, adds_up=True)
        if holds:
            yield Section(f"{title}: cache", (Line("holds", " ".join(holds.lines)),))


def _next_best(point: ServingPoint, answer: ServingAnswer) -> Iterator[Section]:
    """The next best plans, of other layouts."""
    lines = tuple(
        Line(
            f"{layout_text(other)} on {other.chips} {other.chip or 'chips'}",
            other.usd_per_mtok,
            "USD per million tokens",
            f"{100 * (other.usd_per_mtok / point.usd_per_mtok - 1):+.2g} %",
        )
        for other in answer.alternatives[:DRAWN]
    )
    if lines:
        yield Section("next best, of other layouts", lines)


def row_of(best: Candidate, plan: ServingPoint, least: float | None) -> dict[str, object]:
    """The columns of a plan whose load costs at `least`; `gap`, a matter of proof, is empty."""
    layout = vars(plan.layout) if plan.layout else {}
    bound = best.floor(least)
    band = best.band(plan, bound)
    row = {name: getattr(plan, name) for name in (*NUMBERS, *WORDS)}
    row |= {"layout": layout_text(plan), "gap": None, "outside": outside_cell(outside_fit(best))}
    row |= {name: layout.get(name) for name in LAYOUT}
    for name in BANDS:
        low, high = getattr(band, name, None) or (None, None)
        row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_bound": getattr(bound, name)}
    return {name: row[name] for name in COLUMNS}
