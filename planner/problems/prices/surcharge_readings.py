"""What is charged beside the standard price: faster and slower tiers, writes and storage.

A tier says which share of a step no batch shrinks, or how many hours are idle; what is charged for
a cache says what holding it costs, how many reads pay for it, and how many bytes that buys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from formulas.economics import price_sheet as equations
from formulas.economics.prices import fixed_share
from planner.problems.prices.assumptions import Assumption, between
from planner.problems.prices.inferences import Reading, SheetInference, last_step, without_reading
from planner.problems.prices.listed_sheet import PriceSheet, SheetTier
from planner.text.quantities import show
from planner.text.wording import digits, percent

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
            f"as a slow mode beside {mode}" if mode else "if idle hours are all it sells"
        )


def cache_readings(sheet: PriceSheet, chips: Assumption) -> Iterator[SheetInference]:
    """The readings of writes at two hold times, and of storage by the hour."""
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
    """Reads at which holding pays, and the bytes that the price buys in the chip's memory."""
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
    cost = between("hold_margin", "mu_hold", (1.0, 1.0), AT_COST)
    yield Reading(
        "kv_bytes_per_token", last_step(equations.cache_from_hold), facts, (memory, cost),
        "the cache is held in HBM", f"{origin}, in HBM",
    ).inference("what the price holds in HBM")  # fmt: skip
