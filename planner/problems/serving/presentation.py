"""A plan on a terminal: the answer first, then what it rests on; never wider than 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formulas.numerics.store import stored
from planner.problems.serving.advice.advice_text import (
    advice,
    advice_in_full,
    arrivals,
    fleet,
    kept_prefixes,
    loop_lines,
    promise_lines,
)
from planner.problems.serving.alternatives_text import (
    alternatives,
    other_kinds,
    relaxed,
    switch_points,
    systems,
    ways_out,
)
from planner.problems.serving.deployment.promise_chances import PROMISED
from planner.problems.serving.make_or_buy.comparison_text import bought, comparison_text
from planner.problems.serving.point import idle, layout_text
from planner.problems.serving.step.runnable import stamps
from planner.problems.serving.task.plan_limits import title_of
from planner.protocol.note import note_lines
from planner.protocol.plan import MEASURED
from planner.text.quantities import show
from planner.text.wording import (
    LABEL,
    WIDTH,
    below,
    chip_numbers,
    duration,
    excess,
    length,
    named,
    row,
    size,
    typed,
    wrapped,
)

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import NarrowingRun
    from planner.problems.serving.deployment.frontier import ServingFrontier
    from planner.problems.serving.plan import CurrentPoint, ServingAnswer, ServingPlan
    from planner.problems.serving.point import DraftedTokens, ServingEstimate, ServingPoint

Row = tuple[str, str, Callable[[float], str], str]
BAR = 24
POWER = {"given": "as given, whatever the work", "least": "the least that serves"}
SOURCES = (
    Path(__file__), Path(__file__).with_name("closed_form.py"),
    Path(__file__).parent / "step" / "equations.py",
)  # fmt: skip


def answer(plan: ServingPlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    whole = plan.answer
    blocks = [
        question(whole.scenario),
        _chosen(plan.point, whole) if plan.point else shortfall(whole),
        "\n".join(note_lines(whole.notes)),
        _shares(plan.point) if plan.point else "",
        _current(whole.current),
        alternatives(whole),
        other_kinds(whole),
        _grounds(whole),
    ]
    return "\n\n".join(block for block in blocks if block)


def why(plan: ServingPlan) -> str:
    """What binds, what a percent of each quantity is worth, and the closed form it comes from."""
    if plan.point is None:
        return shortfall(plan.answer)
    if not plan.elasticities:
        return "Why this plan\n" + "\n".join(wrapped("; ".join(plan.warnings)))
    lines = ["Why this plan"]
    binds = "binds once both pools are resized" if plan.mode == "disaggregated" else "binds"
    for limit in plan.binding:
        lines += wrapped(
            f"{binds}: {limit.name}; one percent more room changes the objective by "
            f"{limit.elasticity:+.2f} %"
        )
    if not plan.binding:
        lines += wrapped("no promise binds: the price has its minimum inside the limits")
    sides = getattr(plan, "layout_held", {})
    title = "One percent more of     changes the objective by"
    lines += ["", title, *_resized(plan, both=bool(sides))]
    ranked = sorted(plan.elasticities.items(), key=lambda pair: -abs(pair[1]))
    lines += [f"  {name:<28} {value:+.3f} %{_beside(sides.get(name))}" for name, value in ranked]
    lines += [*advice_in_full(plan.answer), "", *switch_points(plan)]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan)]
    return "\n".join(lines)


def _beside(sides: tuple[float, float] | None) -> str:
    """An elasticity with the layout held, beside one where everything follows; both at a kink."""
    if sides is None:
        return ""
    left, right = (f"{side + 0.0:+.3f} %" for side in sides)
    return f"  ({right})" if left == right else f"  ({left} | {right})"


def question(scenario: Mapping[str, Any], aim: str | None = None) -> str:
    """What was asked, in a sentence; `aim` instead of the scenario's objective."""
    load = scenario["workload"]
    model, system = named(scenario["model"], "model"), named(scenario["system"], "system")
    promises = [
        f"{name} {show(v, 'share' if name == 'cache_fits' else 'time')}"
        for name, v in scenario["promises"].items()
        if v and name not in ("tokens_per_s_per_user", "chance")
    ]
    if scenario["promises"].get("tokens_per_s_per_user"):
        promises.append(f"{scenario['promises']['tokens_per_s_per_user']:g} tokens/s per user")
    best = "most" if scenario["objective"] == "throughput" else "least"
    aim = aim or f"{best} {scenario['objective']}"
    keeps = "keeping " + ", ".join(promises) if promises else "with no promise"
    tokens = f"{length(load['input_tokens'])} tokens in, {length(load['output_tokens'])} out"
    arriving = f", {_arriving(load['demand'])}" if load["demand"] else ""
    if load["utilisation"]:
        arriving = f", the busiest pool {load['utilisation']:.0%} busy"
    unit = (scenario.get("rent") or {}).get("unit") or 1
    rented = f", rented by {unit}" if unit > 1 else ""
    return textwrap.fill(
        f"{model} on {chip_numbers(scenario['chips'])} of {system}{rented}: {tokens}{arriving}, "
        f"{keeps}; {aim}",
        WIDTH,
    )


def _arriving(demand: float | str) -> str:
    """A demand in words: requests per second unless it says what else."""
    if demand == "max":
        return "as many as can be served"
    rate = demand if isinstance(demand, str) else f"{demand:g} requests/s"
    return f"arriving at {rate}"


def _chosen(point: ServingPoint, whole: ServingAnswer) -> str:
    lines = _pool(point) if point.layout else _pools(point)
    lines += _placement(point)
    lines += [row("engines", stamps(point.engines))] if point.engines is not None else []
    lines += systems(whole)
    if point.drafting:
        lines.append(row("drafts", _drafting(point.drafting)))
    times: list[Row] = [
        ("price", "usd_per_mtok", lambda v: f"${v:.3g}/Mtok", "input and output together"),
        ("  output", "usd_per_mtok_output", lambda v: f"${v:.3g}/Mtok", _more(point, "output")),
        ("  input", "usd_per_mtok_input", lambda v: f"${v:.3g}/Mtok", _more(point, "input")),
        ("TPOT", "tpot", duration, ""),
        ("TTFT", "ttft", duration, "waiting included" if point.demand else "without queueing"),
        ("throughput", "tokens_per_s", lambda v: f"{v:,.0f} tok/s", ""),
        ("per chip", "tokens_per_s_per_chip", lambda v: f"{v:,.0f} tok/s", ""),
    ]
    drawn = POWER.get(point.power_from or "", "")
    bill: list[Row] = [
        ("bill", "usd_per_hour", lambda v: f"${v:,.2f}/hour", _power(point)),
        ("energy", "joule_per_token", lambda v: f"{v:.3g} J/token", ""),
        ("  power", "watts_per_chip", lambda v: f"{v:,.0f} W/chip", drawn),
        ("  carbon", "grams_per_mtok", lambda v: f"{v:.3g} g CO2/Mtok", "of electricity alone"),
    ]
    lines += [*_figures(times[:3], whole), *fleet(point.marginal), *_figures(times[3:5], whole)]
    lines += [*loop_lines(point.loop), *_figures(times[5:], whole)]
    lines += [*promise_lines(whole), *_reach(whole), *_figures(bill, whole), *advice(whole)]
    lines += _narrowing(whole.narrow) if whole.narrow else []
    lines += kept_prefixes(point.prefixes)
    if buy := bought(whole):
        lines += comparison_text(buy)
    if point.demand:
        lines += ["", *arrivals(point.demand)]
    return "\n".join(lines)


def _more(point: ServingPoint, kind: str) -> str:
    """What a token more of a kind costs in the long run, of two pools."""
    marginal = point.marginal
    return f"long run ${getattr(marginal, f'usd_per_mtok_{kind}'):.3g}/Mtok" if marginal else ""


def _placement(point: ServingPoint) -> list[str]:
    """Machines that are not whole, and why chips stay idle."""
    lines = []
    for part in point.placement:
        machines = [each for each in part.machines for _ in range(each.machines)]
        if any(each.chips < part.chips_per_machine for each in machines) and len(machines) > 1:
            sizes = Counter(each.chips for each in machines)
            parts = (f"{n} x {size}" if n > 1 else str(size) for size, n in sizes.items())
            lines.append(row("machines", f"{' + '.join(parts)} chips"))
        if part.idle_because:
            lines.append(row("idle", part.idle_because))
    return lines


def _drafting(drafting: DraftedTokens) -> str:
    """What drafts bring, and up to which batch they pay."""
    end, most = "up to", drafting.pays_up_to
    if most is None and drafting.pays_from >= 1:
        end, most = "from", drafting.pays_from
    pays = "at any batch" if most is None else f"{end} about {max(most, 1):,.0f} per replica"
    emitted = f"{drafting.tokens_per_step:.2f} tokens a step of {drafting.drafts} drafted"
    return f"{emitted}; they pay {pays}"


def _figures(rows: Sequence[Row], whole: ServingAnswer) -> Iterator[str]:
    """Rows of (label, attribute, form, note): the plan's figures with their ranges and bounds."""
    for label, key, form, note in rows:
        parts = (whole.plan, whole.band, whole.bound)
        value, span, floor = (getattr(part, key, None) for part in parts)
        if value is None:
            continue
        ends = f"{form(span[0])} to {form(span[1])}" if span else note
        least = f"bound {form(floor)}" if floor is not None else ""
        yield f"{label:<{LABEL}}{form(value):<16} {ends:<28} {least}".rstrip()


def _reach(whole: ServingAnswer) -> list[str]:
    """What the ranges hold, or what lies beyond the measurements and how far off a price may be."""
    band, plan = whole.band, whole.plan
    if band is None or plan is None:
        return [_expected(whole.estimate)] if whole.estimate else []
    if band.kind == MEASURED:
        words = f"ranges hold {band.coverage:.0%} of measured runs (profile {band.profile})"
        return [row("", words)]
    return [row("", "ranges are expected: no run of such a plan was measured")]


def _narrowing(run: NarrowingRun) -> list[str]:
    """The run to measure next, as it is typed."""
    off = " with its overlap off" if run.overlap_off else ""
    head = f"the run to measure next, of one exported replica{off}:"
    return ["", head, *map(typed, run.commands)]


def _pool(point: ServingPoint) -> list[str]:
    return [
        row("run", layout_text(point)),
        row("on", f"{point.chips} {point.chip}{idle(point)}, {point.formats}"),
        row("batch", f"{point.batch} in flight, {point.batch_per_replica} per replica"),
    ]


def _pools(point: ServingPoint) -> list[str]:
    """Two pools and the way of the caches between them."""
    lines = [
        row(name, f"{layout_text(pool)} on {pool.chips} {pool.chip}{idle(pool)}, "
            f"{pool.utilisation:.0%} busy")
        for name, pool in point.phases.items()
    ]  # fmt: skip
    lines.append(row("formats", point.formats))
    if point.decode:
        batch = point.decode.batch_per_replica
        lines.append(row("batch", f"{point.batch} decoding, up to {batch} per replica"))
    if point.transfer:
        cache, seconds = size(point.transfer.bytes), duration(point.transfer.seconds)
        rate = show(point.transfer.bytes_per_s, "bandwidth")
        text = f"{cache} of cache per prompt in {seconds}, {rate} in all"
        lines.append(row("transfer", text))
    return lines


def _power(point: ServingPoint) -> str:
    power = point.power_usd_per_hour
    return f"${power:,.2f} of it for power" if power else ""


def _expected(estimate: ServingEstimate) -> str:
    """What the profile expects of a plan that was chosen on the bound."""
    pairs = (("TPOT", estimate.tpot), ("TTFT", estimate.ttft))
    times = [f"{name} {duration(value)}" for name, value in pairs if value]
    return row("to expect", f"${estimate.usd_per_mtok:.3g}/Mtok, {', '.join(times)}")


def _shares(point: ServingPoint) -> str:
    blocks = []
    if point.time_per_step:
        parts = vars(point.time_per_step)
        whole = sum(parts.values())
        blocks.append(_bars(f"one step {duration(whole)}", parts, whole, duration))
    for title, (memory, holds) in point.memories().items():
        parts = {name: value for name, value in vars(memory).items() if name != "capacity"}
        whole = memory.capacity
        blocks.append(_bars(f"{title} {show(whole, 'size')}", parts, whole, size))
        blocks[-1] += "".join(f"\n{line}" for line in holds.lines) if holds else ""
    if not point.fits_at_full_context:
        blocks[-1] += "\n  at mean context; with every sequence at its full one it would not fit"
    return "\n\n".join(blocks)


def _bars(
    title: str, parts: Mapping[str, float], whole: float, form: Callable[[float], str]
) -> str:
    lines = [title]
    for name, value in parts.items():
        if value <= 0:
            continue
        bar = "█" * max(1, round(BAR * value / whole))
        lines.append(f"  {name:<12}{form(value):>10}  {value / whole:4.0%}  {bar}")
    return "\n".join(lines)


def shortfall(answer: ServingAnswer | ServingFrontier) -> str:
    """Which promises the nearest plan misses, by how much, and what would do."""
    lines = ["No plan keeps every promise. The nearest one"]
    for missed in answer.infeasible or ():
        name, factor = title_of(missed.promise), missed.short_by
        if factor is None:
            lines += wrapped(f"lacks a {name}: {missed.expression}")
        elif missed.promise == "demand":
            lines = ["These chips do not carry the load within the promises."]
            served = f"{100 / factor:.3g} % of it can be served"
            lines += wrapped(f"misses demand by {excess(factor)}: {served}")
        else:
            lines += wrapped(f"misses {name} by {excess(factor)}   ({missed.expression})")
        if share := getattr(missed, "memory_utilisation", None):
            lines += wrapped(f"it would fit with memory_utilisation: {share:g}")
    chance = getattr(answer, "needed_chance", None)
    if chance and any(missed.promise in PROMISED for missed in answer.infeasible or ()):
        lines += wrapped(f"a promised time must hold in {100 * chance:.0f} of 100 cases")
    return "\n".join([*lines, *relaxed(answer), *ways_out(answer)])


def _current(point: CurrentPoint | None) -> str:
    if point is None:
        return ""
    lines = ["your layout", row("  run", layout_text(point)), row("  batch", str(point.batch))]
    lines.append(row("  price", f"${point.usd_per_mtok:.3g}/Mtok"))
    pairs = (("TTFT", point.ttft), ("TPOT", point.tpot))
    times = [f"{name} {duration(value)}" for name, value in pairs if value is not None]
    lines.append(row("  times", ", ".join(times)))
    for broken in point.breaks:
        name = title_of(broken.promise)
        lines.append(row("  misses", f"{name} by {excess(broken.short_by)}"))
    return "\n".join(lines)


def _grounds(answer: ServingAnswer) -> str:
    proof, ground = answer.certificate, answer.provenance
    lines = [
        f"decided over {proof.layouts_considered:,} layouts and {proof.points_considered:,} points"
    ]
    if proof.gap is not None and answer.gap is not None:
        better = "none of them" if answer.status == "optimal" else f"the best {below(answer.gap)}"
        lines[0] += f", {better} better; a bound found by other means lies {below(proof.gap)} below"
    lines.append(
        f"assumptions {ground.assumptions}, estimate {ground.estimate}, "
        f"token-planner {ground.version}"
    )
    for source in ground.data:
        date = f" ({source.as_of})" if source.as_of else ""
        lines.append(f"{source.what}: {source.source}{date}")
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines)


def _resized(plan: ServingPlan, *, both: bool) -> list[str]:
    """What follows a change, where more does than the batch of a pool."""
    if plan.mode == "disaggregated":
        follows = "both pools resized to stay in balance"
    elif plan.answer.scenario["workload"]["demand"] not in (None, "max"):
        follows = "as many chips as then carry the load"
    else:
        return []
    return wrapped(f"(everything follows: {follows}{'; in brackets: layout held' if both else ''})")


def _closed_form(plan: ServingPlan) -> Iterable[str]:
    """The equations behind the objective and the promise that binds, as they stand."""
    mode, bound = plan.mode or "", plan.answer.provenance.estimate == "bound"
    load, tpot = plan.answer.load, any("tpot" in limit.name for limit in plan.binding)
    energy = plan.answer.scenario["objective"] == "energy"
    counted = plan.answer.counts_power

    def written() -> list[str]:
        from planner.problems.serving.closed_form import closed_form

        whole = closed_form(mode, bound=bound, load=load, tpot=tpot, energy=energy, counted=counted)
        return [str(equation) for equation in whole]

    # Kept as text, since to write an equation SymPy must be loaded.
    name = f"closed_form-{mode}-{bound}-{load}-{tpot}-{energy}-{counted}"
    for equation in stored(name, written, SOURCES):
        yield from wrapped(equation)
    yield from wrapped("(with this plan's values: solve --json > plan.json, derive --at plan.json)")
