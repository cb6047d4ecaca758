"""Size from the level of prices, the bottleneck from their ratio, caches from steps at a length.

And what is charged beside the standard price: a tier says which share of a step no batch shrinks,
or how many hours are idle; what is charged for a cache says what holding it costs, how many reads
pay for it, and how many bytes that buys.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scipy.optimize import bisect

from formulas.economics import price_sheet as equations
from formulas.economics.prices import fixed_share
from formulas.roofline.kvcache import cache_bytes_from_cliff
from planner.architecture.counts import ModelSizes
from planner.problems.prices import inferences as assumed
from planner.problems.prices.inferences import (
    Assumption,
    Reading,
    SheetInference,
    last_step,
    range_note,
    without_reading,
)
from planner.problems.prices.listed_sheet import PriceSheet, SheetStep, SheetTier
from planner.problems.prices.price_regression import P_REF, PriceLaw, laws, shipped_note
from planner.problems.prices.question import GivenFacts
from planner.text.quantities import show
from planner.text.wording import digits, percent

UNINFORMATIVE_RATIO = 20.0  # high over low end above which a reading says little
# Mean contexts below and above a price threshold, over it, unless the question gives them.
BELOW_COST_RANGES, ABOVE_COST_RANGES = (1 / 40, 1 / 2), (5 / 4, 5 / 2)


def size_readings(
    sheet: PriceSheet, stated: GivenFacts, chips: Assumption, counts: ModelSizes | None
) -> Iterator[SheetInference]:
    """Yield readings of active and total parameters, physical and fitted; no reading of caches."""
    parts = [assumed.fact(stated, key) for key in ("margin", "prefill_efficiency")]
    physical = Reading(
        "n_active", last_step(equations.active_from_level), {"p_in": sheet.input},
        (chips, *(each for each in parts if each is not None)),
        "the input price is the arithmetic of a prompt", "input price, physical",
    ).inference()  # fmt: skip
    yield _judged(physical, assumed.stated_size("n_active", stated, counts))
    by_law = laws()
    for name, law in by_law.items():
        if name in ("n_active", "n_total"):
            yield _judged(_empirical(sheet, law), assumed.stated_size(name, stated, counts))
    refused = by_law["kv_bytes_per_token"]
    yield without_reading(
        "kv_bytes_per_token", "level of prices",
        f"no signal: prices miss it by {refused.factor:.1f}×, the mean by {refused.guess:.1f}×",
    )  # fmt: skip
    yield from _price_of_size(sheet, stated, counts, by_law["p_out"])


def _empirical(sheet: PriceSheet, law: PriceLaw) -> SheetInference:
    """A size by its fitted law, within the factor that held most architectures left out."""
    equation = equations.fitted_active if law.of == "n_active" else equations.fitted_total
    _, as_of = shipped_note()
    spread = _spread(law, "N_ref")
    spread = replace(spread, words=f"{law.of}: {spread} ({as_of})")
    prices = {"p_in": sheet.input, "p_out": sheet.output, "p_ref": P_REF}
    powers = {"p_in": "k_in", "p_out": "k_out"}
    facts = prices | {powers[x]: k for x, k in zip(law.by, law.powers, strict=True)}
    return Reading(
        law.of, equation, facts, (spread,), "the host prices as hosts of open models do",
        "open models, empirical",
    ).inference(f"within {law.factor:.1f}x{_beyond(sheet, law)}")  # fmt: skip


def _spread(law: PriceLaw, symbol: str) -> Assumption:
    words = f"80 % of open models left out lie within {law.factor:.1f}x"
    ends = law.reference / law.factor, law.reference * law.factor
    return Assumption(f"fit of {law.of}", words, tuple({symbol: end} for end in ends))


def _beyond(sheet: PriceSheet, law: PriceLaw) -> str:
    prices = {"p_in": sheet.input, "p_out": sheet.output}
    outside = any(not low <= prices[name] <= high for name, (low, high) in law.range.items())
    return "; beyond the prices fitted" if outside else ""


def _price_of_size(
    sheet: PriceSheet, stated: GivenFacts, counts: ModelSizes | None, law: PriceLaw
) -> Iterator[SheetInference]:
    """The output price of open models of such a size, where the size is known."""
    sizes = [assumed.stated_size(name, stated, counts) for name in ("n_active", "n_total")]
    if None in sizes:
        return
    ends_of_sizes = [size for size in sizes if size is not None]
    spread = _spread(law, "p_ref")
    points = [
        range_note(f"given.{name}", symbol, ends, name)
        for name, symbol, ends in zip(law.by, ("N_active", "N_total"), ends_of_sizes, strict=True)
    ]
    facts = {"N_ref": 1.0, "k_active": law.powers[0], "k_tot": law.powers[1]}
    line = Reading(
        "output_price", equations.fitted_output, facts, (*points, spread),
        "hosts of open models price by size", "size, empirical",
    ).inference()  # fmt: skip
    low, high = line.ends
    place = "as" if low <= sheet.output <= high else "above" if sheet.output > high else "below"
    yield replace(line, verdict=f"listed {place} open models of this size are", reading=None)


def _judged(line: SheetInference, size: tuple[float, float] | None) -> SheetInference:
    """Return the reading with a verdict on its width, and on its fit to the given size."""
    low, high = line.ends
    words = f"spans {line.width:.0f}x" if line.width > UNINFORMATIVE_RATIO else line.verdict
    if size is not None:
        holds = low <= size[1] and size[0] <= high
        words = "; ".join(
            [*words.split("; "), f"the size given {'fits' if holds else 'does not fit'}"]
        )
    return replace(line, verdict=words)


def size_assumption(
    stated: GivenFacts, counts: ModelSizes | None, physical: SheetInference
) -> Assumption:
    """Active parameters for other readings: stated, of the model, or of the input price."""
    if stated_range := assumed.stated_quantities(stated, counts).get("n_active"):
        return stated_range
    implied = range_note(
        "n_active", "N_active", physical.ends, "active parameters by the input price"
    )
    return replace(implied, derived=True)


def ratio_readings(
    sheet: PriceSheet,
    stated: GivenFacts,
    chips: Assumption,
    size: Assumption,
    counts: ModelSizes | None,
) -> Iterator[SheetInference]:
    """Yield the minimum batch and maximum context implied by the output/input price ratio."""
    keys = ("decode_efficiency", "prefill_efficiency")
    parts = [each for each in (assumed.fact(stated, key) for key in keys) if each is not None]
    facts, origin = {"rho_price": sheet.ratio}, "output over input price"
    memory = Reading(
        "memory_over_arithmetic", last_step(equations.memory_share), facts, tuple(parts),
        "decode is bound by memory, and both prices bear one margin", origin,
    )  # fmt: skip
    low, high = memory.ends
    below = "priced below memory cost: less than its arithmetic"
    bound = "arithmetic explains the ratio" if low <= 1 else "bound by memory"
    yield memory.inference(below if high < 1 else bound)
    within = range_note("memory", "q_mem", (low, high), "memory over arithmetic")
    batch = Reading(
        "batch_over_critical", equations.least_batch_over_critical, {}, (within,),
        "an output token pays for its share of the weights", origin, ">=",
    )  # fmt: skip
    yield batch.inference("larger where contexts are long")
    behind = (replace(within, derived=True), size, chips)
    if counts is not None:
        yield _context_paid_for(counts, behind, origin)
    context = assumed.fact(stated, "context")
    if context is None:
        return
    room = Reading(
        "kv_bytes_per_token", last_step(equations.cache_below_ratio), {}, (*behind, context),
        "an output token pays for reading its caches", origin, "<=",
    ).inference("a bound from above")  # fmt: skip
    yield _afforded(room, context, counts)


def _context_paid_for(
    counts: ModelSizes, behind: tuple[Assumption, ...], origin: str
) -> SheetInference:
    """Mean context [token] above which the model is priced below memory cost at every corner.

    Where what is read of a token changes with the length, it is that of the length answered.
    """
    equation = last_step(equations.context_below_ratio)

    def paid_for(per_token: float) -> Reading:
        read = range_note("model", "b_kv", (per_token, per_token), "bytes that the model reads")
        words = "an output token pays for reading its caches"
        return Reading("afforded_context", equation, {}, (*behind, read), words, origin, "<=")

    room = paid_for(1.0).ends[1]  # bytes of the caches of one sequence
    if counts.read_bytes(room) <= room:
        return without_reading("afforded_context", origin, "any: what is read does not grow")
    longest = bisect(lambda length: counts.read_bytes(length) - room, 1.0, room)
    return paid_for(room / longest).inference("above it priced below memory cost")


def _afforded(
    room: SheetInference, context: Assumption, counts: ModelSizes | None
) -> SheetInference:
    """The bound with its verdict where the caches of the model are known."""
    if counts is None:
        return room
    lengths = [point["L_ctx"] for point in context.points]
    read = min(counts.read_bytes(length) / length for length in lengths)
    written = show(read, "size")
    if read <= room.ends[1]:
        return replace(room, verdict=f"a bound from above; the model reads {written}")
    return replace(room, verdict=f"priced below memory cost: the model reads {written} per token")


def step_readings(
    sheet: PriceSheet, stated: GivenFacts, chips: Assumption, size: Assumption
) -> Iterator[SheetInference]:
    """Caches from steps of the output price, attention from steps of the input price."""
    for step in sheet.steps:
        for of, factor in (("output", step.output), ("input", step.input)):
            if factor is not None and factor > 1:
                yield from _of_step(step, factor, of, stated, chips, size)
            elif factor is not None:
                yield without_reading(
                    f"{of}_step",
                    f"{of} step at {step.edge:,}",
                    "falls with the length: no cost does",
                )


def _of_step(
    step: SheetStep, factor: float, of: str, stated: GivenFacts, chips: Assumption, size: Assumption
) -> Iterator[SheetInference]:
    """The readings of one step of one price."""
    origin = f"{of} step of {digits(factor)}x at {step.edge:,} tokens"
    ends = stated.context or tuple(share * step.edge for share in BELOW_COST_RANGES)
    contexts = (
        range_note("contexts below", "L_below", (ends[0], ends[1]), "mean context below"),
        range_note(
            "contexts above",
            "L_above",
            (ABOVE_COST_RANGES[0] * step.edge, ABOVE_COST_RANGES[1] * step.edge),
            "above",
        ),
    )
    statement = "the step follows the mean cost of the requests on either side"
    solved = last_step(
        equations.balance_from_step if of == "output" else equations.attention_from_step
    )
    name = "balance_context" if of == "output" else "attention_context"
    reading = Reading(name, solved, {"x_step": factor}, contexts, statement, origin)
    low, high = reading.ends
    if high <= 0:
        yield without_reading(name, origin, "longer contexts alone explain the step")
        return
    words = "an interval" if low > 0 else "longer contexts may explain all of it"
    yield (reading if low > 0 else replace(reading, sense="<=")).inference(words)
    if of == "input":
        return
    words = ", ".join(map(str, contexts))
    points = tuple({"L_star": end} for end in ((low, high) if low > 0 else (high,)))
    implied = Assumption("contexts", words, points)
    yield Reading(
        "kv_bytes_per_token", last_step(equations.cache_from_step), {}, (implied, size, chips),
        statement, origin, "=" if low > 0 else ">=",
    ).inference("an interval")  # fmt: skip
    point = Reading(
        "kv_bytes_per_token", last_step(cache_bytes_from_cliff), {"L_ctx": float(step.edge)},
        (size, chips), "at the threshold caches equal arithmetic; weights too, if B = B_0", origin,
    ).inference("a point: where caches equal arithmetic")  # fmt: skip
    yield replace(point, reading=None)


HOUR = 3600.0
AT_COST = "holding at its memory's cost, times"


def tier_readings(sheet: PriceSheet) -> Iterator[SheetInference]:
    """The readings of every tier: dearer and faster ones first."""
    fast = [each for each in sheet.tiers if each.price > 1]
    slow = [each for each in sheet.tiers if each.price < 1]
    shares: list[SheetInference] = []
    for tier in fast:
        for line in _of_fast(tier):
            shares += [line] if line.name == "fixed_share" else []
            yield line
    for tier in slow:
        yield from _of_slow(tier, shares)


def _of_fast(tier: SheetTier) -> Iterator[SheetInference]:
    origin = f"{tier.name}: {digits(tier.price)}x the price"
    if tier.speed is None or tier.speed <= 1:
        words = "no faster" if tier.speed else "its speed is not listed"
        yield without_reading("fixed_share", origin, f"{words}: nothing follows")
        return
    origin += f" at {digits(tier.speed)}x the speed"
    facts = {"x_price": tier.price, "s_fast": tier.speed}
    statement = f"{tier.name} and standard are modes of one step, at one margin"
    for name, result, words in (
        ("fixed_share", fixed_share, "no batch shrinks it"),
        ("batch_over_normal", equations.mode_batch, "of the normal batch"),
        ("speed_limit", equations.mode_limit, "at any price"),
    ):
        reading = Reading(name, last_step(result), facts, (), statement, origin)
        yield reading.inference(words)


def _of_slow(tier: SheetTier, shares: Sequence[SheetInference]) -> Iterator[SheetInference]:
    origin = f"{tier.name}: {digits(tier.price)}x the price"
    facts = {"x_slow_m": tier.price}
    beside = [(None, 0.0), *((x.origin.partition(":")[0], x.low or 0.0) for x in shares)]
    idle = [
        (mode, Reading(
            "idle_share", last_step(equations.idle_share), {**facts, "w_fix": fixed}, (),
            "idle hours cost nothing", origin, ">=",
        ))
        for mode, fixed in beside if tier.price < 1 - fixed
    ]  # fmt: skip
    settled = [f"{percent(x.ends[0], 3)} of them would settle it" for mode, x in idle if mode]
    statement = f"{tier.name} is a slow mode of the step, in no idle hours"
    if settled:
        statement += f" ({settled[0]})"
    slow = Reading(
        "fixed_share", last_step(equations.slow_mode_share), facts, (), statement, origin, ">="
    )
    yield slow.inference("as a slow mode, if no hour is idle")
    for mode, reading in idle:
        yield reading.inference(
            f"if it shares hardware with {mode}" if mode else "if idle hours are all it sells"
        )


def cache_readings(sheet: PriceSheet, chips: Assumption) -> Iterator[SheetInference]:
    """The readings of writes at two hold times, and of storage by the hour."""
    reads = sheet.cached is not None and sheet.cached < sheet.input
    for lasts, price in sheet.writes if reads else ():
        facts = {"p_write": price, "p_in": sheet.input, "p_cached": sheet.cached or 0.0}
        paid = Reading(
            "break_even_requests", last_step(equations.break_even_requests), facts, (),
            "every request comes while the cache is held",
            f"a write held {show(lasts, 'time')}" if lasts else "a write, how long held not listed",
        ).inference()  # fmt: skip
        nth = math.floor(paid.ends[0] * (1 + 1e-9)) + 1
        yield replace(paid, verdict=f"from request {nth} of a prefix on")
    if len(sheet.writes) > 1:
        (short, first), (long, last) = sheet.writes[0], sheet.writes[-1]
        facts = {"p_w1": first, "p_w2": last, "t_w1": short, "t_w2": long, "p_in": sheet.input}
        origin = f"writes held {show(short, 'time')} and {show(long, 'time')}"
        statement = "the price of a write is a straight line in the time it is held"
        line = Reading("hold_price", equations.hold_price, facts, (), statement, origin)
        hold = line.ends[0]
        yield line.inference(f"{hold / sheet.input * HOUR:.3f} of input per hour")
        base = equations.write_surcharge
        start = Reading("write_surcharge", base, {**facts, "q_hold": hold}, (), statement, origin)
        yield start.inference("over input, held for no time")
        if hold > 0:
            yield from _of_holding(sheet, hold, origin, chips)
    if sheet.storage:
        origin = "storage by the hour"
        per_hour = f"{sheet.storage / sheet.input * HOUR:.3g} of input per hour"
        yield SheetInference(
            "hold_price",
            sheet.storage,
            sheet.storage,
            sheet.storage,
            (),
            "q_hold = the listed price",
            per_hour,
            origin,
        )
        yield from _of_holding(sheet, sheet.storage, origin, chips)


def _of_holding(
    sheet: PriceSheet, hold: float, origin: str, chips: Assumption
) -> Iterator[SheetInference]:
    """Yield the break-even reads of a held cache, and the bytes its price buys in chip memory."""
    facts = {"q_hold": hold, "p_in": sheet.input}
    yield Reading(
        "hold_over_input", equations.hold_over_input, facts, (), "holding is paid by time", origin
    ).inference("over the price of an input token")
    if sheet.cached is not None and sheet.cached < sheet.input:
        reads = Reading(
            "break_even_reads", last_step(equations.break_even_reads),
            {**facts, "p_cached": sheet.cached}, (), "a read saves the input price", origin,
        )  # fmt: skip
        yield reads.inference("pay for holding")
    rents = sorted({point["D_step"] / point["M"] * 1e9 * HOUR for point in chips.points})
    at = f"${digits(rents[0])}" + (f" to ${digits(rents[-1])}" if len(rents) > 1 else "")
    memory = replace(chips, words=f"HBM at {at} per GB and hour")
    cost = range_note("hold_margin", "mu_hold", (1.0, 1.0), AT_COST)
    yield Reading(
        "kv_bytes_per_token", last_step(equations.cache_from_hold), facts, (memory, cost),
        "the cache is held in HBM", f"{origin}, in HBM",
    ).inference("what the price holds in HBM")  # fmt: skip
