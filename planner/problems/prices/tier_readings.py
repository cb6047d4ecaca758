"""What faster and slower tiers say of a step: the share that no batch shrinks, and idle hours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulas.economics import price_sheet as equations
from formulas.economics.prices import fixed_share
from planner.problems.prices.inferences import Reading, SheetInference, last_step, without_reading
from planner.problems.prices.listed_sheet import PriceSheet, SheetTier
from planner.text.wording import digits, percent


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
