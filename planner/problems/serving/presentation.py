"""Format a plan for a terminal: the answer first, then its basis; at most 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from formulas.numerics.store import cached_json
from planner.problems.serving.advice.advice_text import (
    advice_in_full,
    arrivals,
    loop_lines,
    prefix_cache_lines,
    switch_points,
    systems,
)
from planner.problems.serving.deployment.promise_chances import PROMISE_TIMES
from planner.problems.serving.head import head, miss_text, relaxed_limits, remedy_lines
from planner.problems.serving.make_or_buy.comparison_text import TITLE, buy_answer, comparison_lines
from planner.problems.serving.plan_sections import sections
from planner.protocol.note import note_lines
from planner.protocol.section import LABEL_WIDTH, Line, Section, answer_text
from planner.text.wording import (
    duration,
    gap_percent,
    joined_ends,
    label_row,
    path_words,
    three_digits,
    wrap_text,
    wrapped,
)

if TYPE_CHECKING:
    from planner.problems.serving.deployment.frontier import ServingFrontier
    from planner.problems.serving.plan import ServingAnswer, ServingPlan
    from planner.problems.serving.point import (
        DraftedTokens,
        PlannedPool,
        ServingEstimate,
        ServingPoint,
    )
    from planner.protocol.note import Depth

FigureRowSpec = tuple[str, str, str]
HEADS = ("", "expected", "80% range", "hardware limit")
NO_EFFECT = 0.005  # % that rounds to nothing
OBJECTIVE_NAMES = {"cost": "price", "throughput": "price", "latency": "latency", "energy": "energy"}
SOURCES = (
    Path(__file__), Path(__file__).with_name("closed_form.py"),
    Path(__file__).parent / "step" / "equations.py",
)  # fmt: skip


def answer(plan: ServingPlan, depth: Depth = "default") -> str:
    """Format the answer at a depth: its head, with its numbers, with all details, or its sources.

    Lines are as wide as the terminal; `default` has at most three notes.
    """
    whole, point = plan.answer, plan.point
    if depth == "sources":
        return "\n".join(_sources(whole))
    first = replace(head(whole), proof=_proof(whole) if point is None or depth == "more" else "")
    if point is None:
        near = (first.text(), shortfall(whole), "\n".join(note_lines(whole.notes)), first.proof)
        return "\n\n".join(filter(None, near))
    shown = [Section(""), _numbers(point, whole, full=depth == "more")]
    shown += [x for x in sections(plan)[1:] if not x.beside and x.title != TITLE]
    if buy := buy_answer(whole):
        shown.append(Section(TITLE, tuple(comparison_lines(buy, full=True))))
    return answer_text(first, shown, whole.notes, depth)


def explanation_text(plan: ServingPlan) -> str:
    """Format the binding limits, the elasticity of each quantity, and the closed form."""
    if plan.point is None:
        return shortfall(plan.answer)
    if not plan.elasticities:
        return "Why this plan\n" + "\n".join(wrapped("; ".join(plan.warnings)))
    lines, goal = ["Why this plan"], OBJECTIVE_NAMES[plan.answer.scenario["objective"]]
    binds = "binds (both pools re-sized)" if plan.mode == "disaggregated" else "binds"
    for limit in plan.binding:
        lines += wrapped(f"{binds}: {limit.name}; 1% looser: {goal} {limit.elasticity:+.2f}%")
    if not plan.binding:
        lines += wrapped(f"no promise binds: this batch has the least {goal} anyway")
    sides = getattr(plan, "layout_held", {})
    bill = plan.point.usd_per_hour if goal == "price" else None
    title = f"{'1% more of':<26}{f'{goal} changes':>15}{'worth, at this bill' * bool(bill):>22}"
    lines += ["", title.rstrip(), *_resized(plan, both=bool(sides))]
    ranked = sorted(plan.elasticities.items(), key=lambda pair: -abs(pair[1]))
    for name, value in ranked:
        if abs(value) >= NO_EFFECT:
            worth = three_digits(abs(value) / 100 * bill) if bill else ""
            worth = f"{'-+'[value > 0]}${worth}/hour" if bill else ""
            line = f"  {path_words(name):<24}{value:>+14.2f}%{worth:>22}{_at_kink(sides.get(name))}"
            lines.append(line.rstrip())
    if idle := [path_words(name) for name, value in ranked if abs(value) < NO_EFFECT]:
        lines += wrapped(f"no effect: {', '.join(idle)}")
    lines += [*advice_in_full(plan.answer), "", *switch_points(plan)]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan)]
    return "\n".join(lines)


def _at_kink(sides: tuple[float, float] | None) -> str:
    if sides is None:
        return ""
    left, right = (f"{side + 0.0:+.2f}%" for side in sides)
    return f"  ({right})" if left == right else f"  ({left} | {right})"


def _numbers(point: ServingPoint, whole: ServingAnswer, *, full: bool) -> Section:
    """Numbers of the plan with ranges and hardware limits; in `full` also energy, drafts, load."""
    rows: list[FigureRowSpec] = [
        ("Price, blended", "usd_per_mtok", "$/Mtok"),
        ("  output", "usd_per_mtok_output", "$/Mtok"),
        ("  input", "usd_per_mtok_input", "$/Mtok"),
        ("TPOT", "tpot", "s"),
        ("TTFT" if point.demand or point.loop else "TTFT, no queue", "ttft", "s"),
        ("Throughput", "tokens_per_s", "tok/s"),
        ("  per chip", "tokens_per_s_per_chip", "tok/s"),
    ]
    if full or whole.scenario["objective"] == "energy":
        rows += [("Energy", "joule_per_token", "J/token")]
        rows += [("  per chip", "watts_per_chip", "W")] * full
    rows.append(("Carbon", "grams_per_mtok", "g CO2/Mtok"))
    cells = tuple(line for row in rows if (line := _number(*row, whole)))
    lines = tuple(_beside(point, whole, full=full))
    return Section("", lines, heads=HEADS, cells=cells, shown=True)


def _number(label: str, key: str, unit: str, whole: ServingAnswer) -> tuple[str, ...] | None:
    """The cells of one number: label, value, ends of its range, hardware limit."""
    value, span, least = (
        getattr(part, key, None) for part in (whole.plan, whole.band, whole.bound)
    )
    if value is None:
        return None
    text = _in_unit(value, unit)
    ends = "" if span is None else joined_ends(*(_in_unit(end, unit) for end in span))
    return label, text, ends, "" if least is None else _in_unit(least, unit)


def _in_unit(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    if unit == "$/Mtok":
        return f"${three_digits(value)}/Mtok"
    return f"{f'{value:,.0f}' if unit == 'tok/s' and value > 10 else three_digits(value)} {unit}"


def _beside(point: ServingPoint, whole: ServingAnswer, *, full: bool) -> Iterator[Line]:
    """Lines on other systems, then on hosts; in `full` drafts, load and cache instead of hosts."""
    yield from systems(whole)
    if whole.band is None and whole.estimate is not None:
        yield _expected(whole.estimate)
    if not full:
        yield from comparison_lines(buy_answer(whole), full=False)
        return
    if point.drafting:
        yield Line("Drafts", _drafting(point.drafting))
    yield from (*loop_lines(point.loop), *prefix_cache_lines(point.prefixes))
    yield from arrivals(point.demand) if point.demand else _cache_room(point)


def _cache_room(point: ServingPoint) -> Iterator[Line]:
    """Number of requests that fit the KV cache of a replica of each pool, as a line."""
    pools: Mapping[str, PlannedPool | ServingPoint] = point.phases or {"": point}
    caches = {name: pool.holds for name, pool in pools.items() if pool.holds}
    words = [
        f"{joined_ends(*(f'{x:,.0f}' for x in holds.requests))} requests of {holds.context:,} "
        f"tokens a {f'{name} ' * bool(name)}replica"
        for name, holds in caches.items()
    ]
    if words:
        engine = next(iter(caches.values())).engine
        yield Line("KV cache", f"{', '.join(words)} ({engine})")


def _drafting(drafting: DraftedTokens) -> str:
    end, most = "up to", drafting.pays_up_to
    if most is None and drafting.pays_from >= 1:
        end, most = "from", drafting.pays_from
    pays = "at any batch" if most is None else f"{end} ~{max(most, 1):,.0f} users a replica"
    emitted = f"{drafting.tokens_per_step:.2f} tokens a step at {drafting.drafts} drafted"
    return f"{emitted}; worth it {pays}"


def _expected(estimate: ServingEstimate) -> Line:
    pairs = (("TPOT", estimate.tpot), ("TTFT", estimate.ttft))
    times = [f"{name} {duration(value)}" for name, value in pairs if value]
    return Line("Expected", f"${estimate.usd_per_mtok:.3g}/Mtok, {', '.join(times)}")


def shortfall(answer: ServingAnswer | ServingFrontier) -> str:
    """Format the promises that the nearest plan misses, the excess factors, and the remedies."""
    misses, lines = answer.infeasible or (), list[str]()
    for miss in misses:
        words = miss.expression if miss.short_by is None else miss_text(miss.promise, miss.short_by)
        lines.append(label_row("" if lines else "Closest", words, LABEL_WIDTH))
        if share := getattr(miss, "memory_utilisation", None):
            lines.append(
                label_row("", f"it would fit with memory_utilisation: {share:g}", LABEL_WIDTH)
            )
    chance = getattr(answer, "needed_chance", None)
    if chance and any(miss.promise in PROMISE_TIMES for miss in misses):
        lines.append(
            label_row(
                "", f"a promised time must hold in {100 * chance:.0f} of 100 cases", LABEL_WIDTH
            )
        )
    return "\n".join([*lines, *relaxed_limits(answer), *remedy_lines(answer)])


def _proof(answer: ServingAnswer) -> str:
    """Format the number of layouts tried and the gap to the lower bound."""
    proof = answer.certificate
    text = f"{proof.layouts_considered:,} layout{'s' * (proof.layouts_considered != 1)}"
    if proof.gap is None or answer.gap is None:
        return label_row("Proof", f"{text} tried", LABEL_WIDTH)
    best = "cheapest" if answer.scenario["objective"] == "cost" else "best"
    first = f"{best} of {text} (all tried)" if answer.status == "optimal" else (
        f"within {gap_percent(answer.gap)} of the best of {text}")  # fmt: skip
    return label_row("Proof", f"{first}; lower bound {gap_percent(proof.gap)} below", LABEL_WIDTH)


def _sources(answer: ServingAnswer) -> Iterator[str]:
    """Assumptions, version, and where each figure comes from."""
    ground = answer.provenance
    yield (
        f"assumptions {ground.assumptions}, estimate {ground.estimate}, "
        f"token-planner {ground.version}"
    )
    for source in ground.data:
        date = f" ({source.as_of})" if source.as_of else ""
        yield from wrap_text(f"{source.what}: {source.source}{date}")


def _resized(plan: ServingPlan, *, both: bool) -> list[str]:
    if plan.mode == "disaggregated":
        follows = "both pools resized to stay in balance"
    elif plan.answer.scenario["workload"]["demand"] not in (None, "max"):
        follows = "as many chips as then carry the load"
    else:
        return []
    return wrapped(f"(everything follows: {follows}{'; in brackets: layout held' if both else ''})")


def _closed_form(plan: ServingPlan) -> Iterable[str]:
    """Symbolic equations of the objective, and of the TPOT promise if it binds."""
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
    for equation in cached_json(name, written, SOURCES):
        yield from wrapped(equation)
    yield from wrapped("(with this plan's values: solve --json > plan.json, derive --at plan.json)")
