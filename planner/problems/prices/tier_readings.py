"""What faster and slower tiers say of a step: the share that no batch shrinks, and idle hours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulas.economics import price_sheet as equations
from formulas.economics.prices import fixed_share
from planner.problems.prices.inferences import Inference, Reading, last_step, without_reading
from planner.problems.prices.sheet import PriceSheet, SheetTier
from planner.text.wording import digits, percent


def tier_readings(sheet: PriceSheet) -> Iterator[Inference]:
    """The readings of every tier: dearer and faster ones first."""
    fast = [each for each in sheet.tiers if each.price > 1]
    slow = [each for each in sheet.tiers if each.price < 1]
    shares: list[Inference] = []
    for tier in fast:
        for line in _of_fast(tier):
            shares += [line] if line.name == "fixed_share" else []
            yield line
    for tier in slow:
        yield from _of_slow(tier, shares)


def _of_fast(tier: SheetTier) -> Iterator[Inference]:
    origin = f"{tier.name}: {digits(tier.price)}x the price"
    if tier.speed is None or tier.speed <= 1:
        words = "no faster" if tier.speed else "its speed is not listed"
        yield without_reading("fixed_share", origin, f"{words}: nothing follows")
        return
    origin += f" at {digits(tier.speed)}x the speed"
    facts = {"x_price": tier.price, "s_fast": tier.speed}
    statement = f"{tier.name} and standard are modes of one step, at one margin"
    for name, result, words in (
        ("fixed_share", fixed_share, "share of a normal step that no batch shrinks"),
        ("batch_over_normal", equations.mode_batch, "batch of the mode over the normal batch"),
        ("speed_limit", equations.mode_limit, "no mode is faster, at any price"),
    ):
        reading = Reading(name, last_step(result), facts, (), statement, origin)
        yield reading.inference(words)


def _of_slow(tier: SheetTier, shares: Sequence[Inference]) -> Iterator[Inference]:
    origin = f"{tier.name}: {digits(tier.price)}x the price"
    facts = {"x_slow_m": tier.price}
    statement = f"{tier.name} is a slow mode of the step, and no hour is idle"
    slow = Reading(
        "fixed_share", last_step(equations.slow_mode_share), facts, (), statement, origin, ">="
    )
    yield slow.inference("at least, as a slow mode without idle hours")
    for share in (None, *shares):
        fixed = 0.0 if share is None or share.low is None else share.low
        if tier.price >= 1 - fixed:
            continue
        beside = "" if share is None else f" beside {share.origin}"
        idle = Reading(
            "idle_share", last_step(equations.idle_share), {**facts, "w_fix": fixed}, (),
            "idle hours cost nothing", f"{origin}{beside}", ">=",
        )  # fmt: skip
        needed = percent(idle.ends[0], 3)
        words = "if it only sells idle hours" if share is None else "a slow mode in idle hours"
        yield idle.inference(f"at least {needed} of the hours, {words}")
