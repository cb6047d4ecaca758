"""A serving plan as sections (its numbers, one step, memory, the next best) and as a table row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.problems.serving.outputs import UNITS
from planner.problems.serving.point import idle, layout_text
from planner.problems.serving.presentation import question
from planner.protocol.output import Output
from planner.protocol.section import Line, Section

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import ServingPoint
    from planner.protocol.plan import Plan

LABELS = {
    "usd_per_mtok": "price", "usd_per_mtok_output": "price of output",
    "usd_per_mtok_input": "price of input", "usd_per_hour": "bill", "ttft": "TTFT", "tpot": "TPOT",
    "e2e": "end to end", "tokens_per_s": "throughput", "tokens_per_s_per_chip": "per chip",
    "tokens_per_s_per_user": "per user", "requests_per_s": "requests",
    "joule_per_token": "energy", "batch": "in flight",
}  # fmt: skip
FIRST = ("usd_per_mtok", "tpot", "ttft", "tokens_per_s")  # of the headline
DRAWN = 3  # next best plans
LAYOUT = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas")
BANDS = ("usd_per_mtok", "tpot", "ttft")
# In the order of the outputs; a table of plans has chips, and no energy.
NUMBERS = {name: UNITS[name] for name in UNITS if name not in ("joule_per_token", "batch")}
NUMBERS |= {"chips": "chip", "batch": UNITS["batch"]}
WORDS = ("mode", "chip", "weights", "kv", "bottleneck")
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        **NUMBERS,
        **dict.fromkeys(("layout", *WORDS, *LAYOUT), ""),
        **{f"{name}_{end}": NUMBERS[name] for name in BANDS for end in ("low", "high")},
        **{f"{name}_bound": NUMBERS[name] for name in BANDS},
        "gap": "",
    }
)


def sections(outputs: Sequence[Output], plan: Plan[ServingAnswer]) -> tuple[Section, ...]:
    """The answer as sections; of an infeasible question only what was asked."""
    answer, point = plan.answer, plan.answer.plan
    title = " ".join(question(answer.scenario).split())
    if point is None:
        return (Section(title, ()),)
    lines = (*_choice(point), *_outputs(outputs, point, answer))
    return (Section(title, lines), *_parts(point), *_next_best(point, answer))


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


def _outputs(
    outputs: Sequence[Output], point: ServingPoint, answer: ServingAnswer
) -> Iterator[Line]:
    """Every number of the plan with its range and its bound, the headline's first."""
    units = {output.name: output.unit for output in outputs}
    for name in (*FIRST, *(name for name in units if name not in FIRST and name != "batch")):
        value = getattr(point, name)
        if value is not None:
            ends = getattr(answer.band, name, None)
            yield Line(
                LABELS[name], value, units[name], "", ends, getattr(answer.bound, name, None)
            )


def _parts(point: ServingPoint) -> Iterator[Section]:
    """What adds up to a step, and to the memory of a chip."""
    if point.time_per_step:
        lines = tuple(Line(name, value, "s") for name, value in vars(point.time_per_step).items())
        yield Section("one step", lines, adds_up=True)
    for title, memory in point.memories().items():
        lines = tuple(Line(k, v, "byte") for k, v in vars(memory).items() if k != "capacity")
        yield Section(title, lines, adds_up=True)


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


def row_of(best: Candidate, plan: ServingPoint) -> dict[str, object]:
    """The columns of a plan; `gap`, which takes a proof, is left empty."""
    layout = vars(plan.layout) if plan.layout else {}
    band, bound = best.band(plan), best.floor()
    row = {name: getattr(plan, name) for name in (*NUMBERS, *WORDS)}
    row |= {"layout": layout_text(plan), "gap": None}
    row |= {name: layout.get(name) for name in LAYOUT}
    for name in BANDS:
        low, high = getattr(band, name, None) or (None, None)
        row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_bound": getattr(bound, name)}
    return {name: row[name] for name in COLUMNS}
