"""What writes and storage say of a cache: the price of holding it, reads that pay, its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from formulas.economics import price_sheet as equations
from planner.problems.prices.assumptions import Assumption, between
from planner.problems.prices.inferences import Reading, SheetInference, last_step
from planner.problems.prices.listed_sheet import PriceSheet
from planner.text.quantities import show
from planner.text.wording import digits

HOUR = 3600.0
AT_COST = "holding at its memory's cost, times"


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
