"""A plan on a terminal: the answer first, then what it rests on; never wider than 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from formulas.numerics.store import stored
from planner.problems.serving.advice import advice_text
from planner.problems.serving.deployment.promise_chances import PROMISED
from planner.problems.serving.head import head, missed, relaxed, ways_out
from planner.problems.serving.make_or_buy.comparison_text import bought, comparison_text
from planner.problems.serving.plan_sections import sections
from planner.protocol.note import MOST_NOTES, note_lines
from planner.protocol.section import WIDE, text_of
from planner.text.wording import (
    COLUMNS,
    LABEL,
    below,
    duration,
    filled,
    joined_ends,
    row,
    three_digits,
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

Row = tuple[str, str, str]
TABLE = 70  # columns of the table of numbers with hardware limits
HEADS = ("", "expected", "80% range", "hardware limit")
POWER = {"given": "fixed, as given", "least": "the least that serves"}
SOURCES = (
    Path(__file__), Path(__file__).with_name("closed_form.py"),
    Path(__file__).parent / "step" / "equations.py",
)  # fmt: skip


def answer(plan: ServingPlan, depth: Depth = "default") -> str:
    """The answer at a depth: its head, with its numbers, with all that stands behind, or sources.

    Lines are as wide as the terminal; `default` has at most three notes.
    """
    whole, point = plan.answer, plan.point
    if depth == "sources":
        return "\n".join(_sources(whole))
    first = head(whole).text()
    if point is None:
        blocks = [first, shortfall(whole), "\n".join(note_lines(whole.notes)), _proof(whole)]
    elif depth == "short":
        blocks = [first, "\n".join(note_lines(whole.notes, 1))]
    elif depth == "default":
        notes = "\n".join(note_lines(whole.notes, MOST_NOTES))
        numbers = "\n".join([_numbers(point, whole), *_beside(point, whole)])
        blocks = [first, numbers, notes, _proof(whole)]
    else:
        lists = (_beside(point, whole, full=True), note_lines(whole.notes))
        behind = [x for x in sections(plan)[1:] if not x.beside]
        blocks = [first, _numbers(point, whole, full=True), *map("\n".join, lists), text_of(behind),
                  _proof(whole)]  # fmt: skip
    return "\n\n".join(filter(None, blocks))


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
            f"{limit.elasticity:+.2f}%"
        )
    if not plan.binding:
        lines += wrapped("no promise binds: the price has its minimum inside the limits")
    sides = getattr(plan, "layout_held", {})
    title = "One percent more of     changes the objective by"
    lines += ["", title, *_resized(plan, both=bool(sides))]
    ranked = sorted(plan.elasticities.items(), key=lambda pair: -abs(pair[1]))
    lines += [f"  {name:<28} {value:+.3f}%{_at_kink(sides.get(name))}" for name, value in ranked]
    lines += [*advice_text.advice_in_full(plan.answer), "", *advice_text.switch_points(plan)]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan)]
    return "\n".join(lines)


def _at_kink(sides: tuple[float, float] | None) -> str:
    """An elasticity with the layout held, beside one where everything follows; both at a kink."""
    if sides is None:
        return ""
    left, right = (f"{side + 0.0:+.3f}%" for side in sides)
    return f"  ({right})" if left == right else f"  ({left} | {right})"


def _numbers(point: ServingPoint, whole: ServingAnswer, *, full: bool = False) -> str:
    """The plan's numbers, each with its range and the hardware limit, under heads."""
    rows: list[Row] = [
        ("Price, blended", "usd_per_mtok", "$/Mtok"),
        ("  output", "usd_per_mtok_output", "$/Mtok"),
        ("  input", "usd_per_mtok_input", "$/Mtok"),
        ("TPOT", "tpot", "s"),
        ("TTFT" if point.demand or point.loop else "TTFT, no queue", "ttft", "s"),
        ("Throughput", "tokens_per_s", "tok/s"),
        ("  per chip", "tokens_per_s_per_chip", "tok/s"),
    ]
    if full or whole.scenario["objective"] == "energy":
        rows += [("Energy", "joule_per_token", "J/token"), ("  per chip", "watts_per_chip", "W")]
    rows.append(("Carbon", "grams_per_mtok", "g CO2/Mtok"))
    lines = [line for row in rows if (line := _number(*row, whole))]
    narrow = COLUMNS.get() < TABLE
    return "\n".join(
        f"{name:<{LABEL}}{value:>15}  {ends:>18}  {'' if narrow else least:>16}".rstrip()
        for name, value, ends, least in [HEADS, *lines]
    )


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
    """A number with three digits and its unit."""
    if unit == "s":
        return duration(value)
    if unit == "$/Mtok":
        return f"${three_digits(value)}/Mtok"
    return f"{f'{value:,.0f}' if unit == 'tok/s' else three_digits(value)} {unit}"


def _beside(point: ServingPoint, whole: ServingAnswer, *, full: bool = False) -> list[str]:
    """What a question with hosts, drafts, prefixes, several systems or a load has besides."""
    lines = [
        *advice_text.systems(whole),
        *(_expected(whole.estimate) if whole.band is None else []),
    ]
    if point.drafting:
        lines.append(row("Drafts", _drafting(point.drafting)))
    lines += [*advice_text.loop_lines(point.loop), *advice_text.kept_prefixes(point.prefixes)]
    if point.demand:
        lines += advice_text.arrivals(point.demand)
    if buy := bought(whole):
        lines += comparison_text(buy, full=full)
    return lines if point.demand else [*lines, *_cache_room(point)]


def _cache_room(point: ServingPoint) -> Iterator[str]:
    """How many requests the cache of a replica of each pool holds at once."""
    pools: Mapping[str, PlannedPool | ServingPoint] = point.phases or {"": point}
    caches = {name: pool.holds for name, pool in pools.items() if pool.holds}
    words = [
        f"{joined_ends(*(f'{x:,.0f}' for x in holds.requests))} requests of {holds.context:,} "
        f"tokens a {f'{name} ' * bool(name)}replica"
        for name, holds in caches.items()
    ]
    if words:
        engine = next(iter(caches.values())).engine
        yield row("KV cache", f"{', '.join(words)} ({engine})")


def _drafting(drafting: DraftedTokens) -> str:
    """What drafts bring, and up to which batch they pay."""
    end, most = "up to", drafting.pays_up_to
    if most is None and drafting.pays_from >= 1:
        end, most = "from", drafting.pays_from
    pays = "at any batch" if most is None else f"{end} ~{max(most, 1):,.0f} users a replica"
    emitted = f"{drafting.tokens_per_step:.2f} tokens a step at {drafting.drafts} drafted"
    return f"{emitted}; worth it {pays}"


def _expected(estimate: ServingEstimate | None) -> list[str]:
    """What the profile expects of a plan that was chosen on the bound."""
    if estimate is None:
        return []
    pairs = (("TPOT", estimate.tpot), ("TTFT", estimate.ttft))
    times = [f"{name} {duration(value)}" for name, value in pairs if value]
    return [row("Expected", f"${estimate.usd_per_mtok:.3g}/Mtok, {', '.join(times)}")]


def shortfall(answer: ServingAnswer | ServingFrontier) -> str:
    """Which promises the nearest plan misses, by how much, and what would do."""
    misses, lines = answer.infeasible or (), list[str]()
    for miss in misses:
        words = miss.expression if miss.short_by is None else missed(miss.promise, miss.short_by)
        lines.append(row("" if lines else "Closest", words, WIDE))
        if share := getattr(miss, "memory_utilisation", None):
            lines.append(row("", f"it would fit with memory_utilisation: {share:g}", WIDE))
    chance = getattr(answer, "needed_chance", None)
    if chance and any(miss.promise in PROMISED for miss in misses):
        lines.append(row("", f"a promised time must hold in {100 * chance:.0f} of 100 cases", WIDE))
    return "\n".join([*lines, *relaxed(answer), *ways_out(answer)])


def _proof(answer: ServingAnswer) -> str:
    """Over how many layouts it was decided, and how far another bound lies below."""
    proof = answer.certificate
    text = f"{proof.layouts_considered:,} layout{'s' * (proof.layouts_considered != 1)}"
    if proof.gap is None or answer.gap is None:
        return row("Proof", f"{text} tried", WIDE)
    best = "cheapest" if answer.scenario["objective"] == "cost" else "best"
    first = f"{best} of {text} (all tried)" if answer.status == "optimal" else (
        f"within {below(answer.gap)} of the best of {text}")  # fmt: skip
    return row("Proof", f"{first}; lower bound {below(proof.gap)} below", WIDE)


def _sources(answer: ServingAnswer) -> Iterator[str]:
    """Assumptions, version, and where each figure comes from."""
    ground = answer.provenance
    yield (
        f"assumptions {ground.assumptions}, estimate {ground.estimate}, "
        f"token-planner {ground.version}"
    )
    for source in ground.data:
        date = f" ({source.as_of})" if source.as_of else ""
        yield from filled(f"{source.what}: {source.source}{date}")


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
