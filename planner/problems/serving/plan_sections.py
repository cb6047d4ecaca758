"""A serving plan as sections (its numbers, one step, memory, the next best) and as a table row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.problems.serving.advice.advice_text import accuracy_text, fleet, worse
from planner.problems.serving.deployment.beyond_fit import extrapolations, scope_cell
from planner.problems.serving.head import question, smaller_sizes, typed_size
from planner.problems.serving.make_or_buy.comparison_text import buy_answer, comparison_section
from planner.problems.serving.outputs import BY_NAME, OUTPUTS
from planner.problems.serving.point import idle, layout_text
from planner.problems.serving.step.runnable import stamps
from planner.protocol.plan import MEASURED
from planner.protocol.section import Line, Section
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import duration, format_bytes, increase, plural

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import NarrowingRun
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import ServingPoint, ShortPoint
    from planner.protocol.plan import Plan

FIRST = ("usd_per_mtok", "tpot", "ttft", "tokens_per_s")  # of the headline
PRICE = BY_NAME["usd_per_mtok"].unit
POWER = {"given": "fixed, as given", "least": "the least that serves"}
UNSURE = 0.05  # minimum chance shown that a runner-up is cheaper
LAYOUT = ("tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert", "replicas", "overlap")
BANDS = ("usd_per_mtok", "tpot", "ttft")
# In the order of the outputs; a table of plans has chips, and no energy.
HIDDEN_OUTPUTS = ("watts_per_chip", "joule_per_token", "grams_per_mtok", "batch")
NUMBER_COLUMNS = {x.name: x.unit for x in OUTPUTS if x.name not in HIDDEN_OUTPUTS}
NUMBER_COLUMNS |= {"chips": "chip", "batch": "seq"}
TEXT_COLUMNS = ("mode", "chip", "weights", "kv", "bottleneck")
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        **NUMBER_COLUMNS,
        **dict.fromkeys(("layout", *TEXT_COLUMNS, *LAYOUT), ""),
        **{f"{name}_{end}": NUMBER_COLUMNS[name] for name in BANDS for end in ("low", "high")},
        **{f"{name}_bound": NUMBER_COLUMNS[name] for name in BANDS},
        "outside": "",
        "gap": "",
    }
)


def sections(plan: Plan[ServingAnswer]) -> tuple[Section, ...]:
    """Return the answer as sections; only the question and its remedies if infeasible."""
    answer, point = plan.answer, plan.answer.plan
    title = question(answer.scenario)
    if point is None:
        return (Section(title, ()), *_helps(answer))
    lines = tuple(_lines(point, answer))
    details = Section("plan", tuple(_details(point, answer)))
    parts = (details, *_narrowing(answer.narrow), *_parts(point), *_runners_up(point, answer))
    buy = buy_answer(answer)
    return (Section(title, lines), *parts, *([comparison_section(buy)] if buy else []))


def _lines(point: ServingPoint, answer: ServingAnswer) -> Iterator[Line]:
    """The choice in words, then every number with its range and bound, the headline's first."""
    for name, pool in point.phases.items():
        chips = f"{pool.chips} {pool.chip}{idle(pool)}"
        yield Line(name, f"{layout_text(pool)} on {chips}, {pool.utilisation:.0%} busy")
    if point.layout:
        yield Line("run", layout_text(point))
        yield Line("on", f"{point.chips} {point.chip}{idle(point)}")
    yield Line("formats", point.formats)
    yield Line("batch", f"{point.batch} sequences in flight")
    for name in (*FIRST, *(name for name in BY_NAME if name not in FIRST and name != "batch")):
        value, output = getattr(point, name), BY_NAME[name]
        if value is not None:
            ends, bound = (getattr(part, name, None) for part in (answer.band, answer.bound))
            yield Line(output.label, value, output.unit, "", ends, bound)


def _helps(answer: ServingAnswer) -> Iterator[Section]:
    lines = tuple(
        Line(" ".join(f"{path}={value}" for path, value in way.sets.items()),
             way.usd_per_hour, "USD/hour", f"${way.usd_per_mtok:.3g}/Mtok")
        for way in answer.ways_out or ()
    )  # fmt: skip
    if lines:
        yield Section("what leaves a plan, one change at a time", lines)


def _details(point: ServingPoint, answer: ServingAnswer) -> Iterator[Line]:
    """Lines on batch, engines, machines, other sizes, marginal prices, coverage of the bands."""
    deciding = point.decode if point.decode is not None else point
    flight = f"{point.batch:,}"
    if deciding.batch_per_replica not in (None, point.batch):
        flight += f", up to {deciding.batch_per_replica:,} a replica"
    yield Line("decoding" if point.phases else "in flight", f"{flight}; {point.formats}")
    if (current := answer.current) is not None:
        times = {"TTFT": current.ttft, "TPOT": current.tpot}
        shown = (f"{name} {duration(value)}" for name, value in times.items() if value is not None)
        yield Line("yours", ", ".join(shown))
    for fewer in smaller_sizes(answer, point):
        yield Line(plural(fewer.chips, "chip"), typed_size(fewer))
    if point.engines is not None:
        yield Line("engines", stamps(point.engines))
    for part in point.placement:
        machines = [pattern for pattern in part.machines for _ in range(pattern.machines)]
        if any(x.chips < part.chips_per_machine for x in machines) and len(machines) > 1:
            sizes = Counter(machine.chips for machine in machines)
            parts = (f"{n} × {chips}" if n > 1 else str(chips) for chips, n in sizes.items())
            yield Line("nodes", f"{' + '.join(parts)} chips")
        if part.idle_because:
            yield Line("idle", part.idle_because)
    if point.transfer:
        rate = show(point.transfer.bytes_per_s, "bandwidth")
        words = f"{format_bytes(point.transfer.bytes)} of KV cache per prompt"
        yield Line("transfer", f"{words} in {duration(point.transfer.seconds)}, {rate} in all")
    if marginal := point.marginal:
        yield Line("more load", fleet(marginal))
        for kind in ("input", "output"):
            price = getattr(marginal, f"usd_per_mtok_{kind}")
            yield Line(f"{kind}, if both pools may grow", price, BY_NAME["usd_per_mtok"].unit)
    if point.power_from in POWER:
        yield Line("power", POWER[point.power_from])
    if answer.band is not None and answer.band.kind == MEASURED:
        words = f"hold {answer.band.coverage:.0%} of measured runs (profile {answer.band.profile})"
        yield Line("ranges", words)
    elif answer.band is not None:
        yield Line("ranges", "are expected: no run of such a plan was measured")
    if answer.accuracy is not None:
        yield Line("accuracy", accuracy_text(answer.accuracy))


def _narrowing(run: NarrowingRun | None) -> Iterator[Section]:
    if run is not None:
        numbered = enumerate(run.commands, start=1)
        lines = tuple(Line(f"{place}.", command) for place, command in numbered)
        off = " with its overlap off" if run.overlap_off else ""
        yield Section(f"benchmark of one exported replica{off}, which narrows {run.narrows}", lines,
                      commands=True)  # fmt: skip


def _parts(point: ServingPoint) -> Iterator[Section]:
    """Sections of the parts of a step, the memory per chip, and the requests its cache holds."""
    if point.time_per_step:
        lines = tuple(Line(name, value, "s") for name, value in vars(point.time_per_step).items())
        yield Section("one step", lines, adds_up=True)
    for title, (memory, holds) in point.memories().items():
        lines = tuple(Line(k, v, "byte") for k, v in vars(memory).items() if k != "capacity")
        yield Section(title, lines, adds_up=True)
        words = [holds.words] if holds else []
        if not point.fits_at_full_context:
            words.append("with every sequence at its full context the caches would not fit")
        if words:
            yield Section(title.replace("memory", "KV cache"), (Line("holds", "; ".join(words)),))


def _runners_up(point: ServingPoint, answer: ServingAnswer) -> Iterator[Section]:
    """The next best plans, of other layouts and of other kinds, each with how much worse it is."""
    least = answer.scenario["objective"] == "energy"
    name, unit = ("joule_per_token", "J/token") if least else ("usd_per_mtok", PRICE)
    lines = []
    for plan in answer.alternatives:
        tpot = f", TPOT {duration(plan.tpot)}" if plan.tpot is not None else ""
        notes = f"{increase(getattr(plan, name) / getattr(point, name) - 1)}"
        notes += ("" if least else _likely(answer, plan)) + _engines(answer, plan)
        label = f"{layout_text(plan)}, batch {plan.batch:,}{tpot}"
        lines.append(Line(label, getattr(plan, name), unit, notes))
    if lines:
        yield Section("runners-up, of other layouts", tuple(lines))
    if answer.rivals:
        yield Section("runners-up, of other kinds", tuple(
            Line(kind.kind, f"{worse(answer, kind.behind)}, {layout_text(kind.plan)}, batch "
                 f"{kind.plan.batch:,}{_engines(answer, kind.plan)}")
            for kind in answer.rivals
        ))  # fmt: skip


def _likely(answer: ServingAnswer, plan: ServingPoint) -> str:
    chance = getattr(plan, "chance_better", None) or 0.0
    if answer.plan and abs(plan.usd_per_mtok / answer.plan.usd_per_mtok - 1) < UNSEEN:
        return ", a tie"
    if f"{chance:.0%}" == "50%":
        return ", no telling which is cheaper"
    return f", cheaper in {100 * chance:.0f} of 100" if chance >= UNSURE else ""


def _engines(answer: ServingAnswer, plan: ServingPoint | ShortPoint) -> str:
    if answer.plan is None or plan.engines is None:
        return ""
    if {*(answer.plan.engines or ())} <= {*plan.engines}:
        return ""
    return f", on {' or '.join(plan.engines or ('none of the engines',))}"


def plan_row(best: Candidate, plan: ServingPoint, least: float | None) -> dict[str, object]:
    """The columns of a plan whose load costs at `least`; `gap`, a matter of proof, is empty."""
    layout = vars(plan.layout) if plan.layout else {}
    bound = best.floor(least)
    band = best.band(plan, bound)
    row = {name: getattr(plan, name) for name in (*NUMBER_COLUMNS, *TEXT_COLUMNS)}
    row |= {"layout": layout_text(plan), "gap": None, "outside": scope_cell(extrapolations(best))}
    row |= {name: layout.get(name) for name in LAYOUT}
    for name in BANDS:
        low, high = getattr(band, name, None) or (None, None)
        row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_bound": getattr(bound, name)}
    return {name: row[name] for name in COLUMNS}
