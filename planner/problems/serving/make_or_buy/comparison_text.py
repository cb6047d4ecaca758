"""Make or buy in words: own cost, the hosts, where they meet, the fleet that is worth renting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.problems.serving.make_or_buy.offers import ComparedPoint
from planner.protocol.section import Line, Section
from planner.text.wording import count, row

if TYPE_CHECKING:
    from planner.problems.serving.make_or_buy.offers import MakeOrBuy, MeetingPoint
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import Ends

SHOWN = 6  # hosts
BETTER = {"rent": "renting, against", "buy": "buying, at"}
TITLE = "make or buy"
PRICE = "USD per million tokens"


def bought(answer: ServingAnswer) -> MakeOrBuy | None:
    """The comparison beside a plan, None where none was asked for."""
    return answer.plan.buy if isinstance(answer.plan, ComparedPoint) else None


def comparison_text(buy: MakeOrBuy) -> list[str]:
    """The comparison as lines of at most 80 columns."""
    return ["", TITLE, *(row(f"  {label}", text) for label, text in _rows(buy))]


def comparison_section(buy: MakeOrBuy) -> Section:
    """The same as a section of pages and notebooks."""
    ours, hosts = buy.ours, buy.hosts
    numbers = [Line("own cost, full", ours.full, PRICE, "", ours.band, ours.bound)]
    if ours.at_demand is not None:
        numbers.append(Line("own cost at the demand", ours.at_demand, PRICE, "", ours.demand_band))
    numbers.append(Line("host", hosts.quantile, PRICE, "", (hosts.min, hosts.q75)))
    words = [Line(label, text) for label, text in _rows(buy) if label not in ("own", "hosts")]
    return Section(TITLE, (*numbers, *words))


def _usd(value: float) -> str:
    """A price per million tokens, its unit left to the first of a line."""
    return f"${value:.3g}"


def _ends(ends: Ends) -> str:
    """A range, one number where it has no width."""
    low, high = map(_usd, ends)
    return low if low == high else f"{low} to {high}"


def _rows(buy: MakeOrBuy) -> Iterator[tuple[str, str]]:
    """Labels and their texts."""
    ours, hosts = buy.ours, buy.hosts
    words = f"{_usd(ours.full)}/Mtok at full use"
    if ours.band:
        words += f" ({_ends(ours.band)}"
        words += f"; bound {_usd(ours.bound)})" if ours.bound is not None else ")"
    if ours.at_demand is not None:
        words += f", {_usd(ours.at_demand)} at the demand"
        words += f" ({_ends(ours.demand_band)})" if ours.demand_band else ""
    yield "own", words
    for kind, cost in ours.contracts.items():
        if cost.rent[0] < cost.rent[1] or len(ours.contracts) > 1:
            at = f", {_ends(cost.at_demand)} at the demand" if cost.at_demand else ""
            rent = f"{_ends(cost.rent)} an hour"
            yield kind.replace("_", " "), f"{rent}: {_ends(cost.full)}/Mtok full{at}"
    spread = f"{_usd(hosts.min)} least, {_usd(hosts.q25)}, {_usd(hosts.median)} median"
    cached = f", {buy.cached:.0%} of the input cached" if buy.cached else ""
    many = f"{hosts.n} hosts" if hosts.n > 1 else "one host"
    yield "hosts", f"{many}: {spread}, {_usd(hosts.q75)}/Mtok at this mix{cached} ({buy.rule})"
    yield "break-even", _meets(buy)
    yield (
        "cheaper",
        (
            f"{BETTER[buy.better]} {_usd(hosts.quantile)}/Mtok; over all hosts, and within the "
            f"band, buying is cheaper with a chance of {buy.cheaper:.0%}"
        ),
    )
    yield "formats", _formats(buy)
    fleet = buy.smallest_fleet
    yield (
        "fleet",
        (
            f"none up to {buy.fleets[-1].chips} chips costs as little as the host"
            if fleet is None
            else f"worth renting from {fleet.chips} chips on: {_usd(fleet.usd_per_mtok)}/Mtok "
            f"full, {count(fleet.tokens_per_day)} tokens a day"
        ),
    )
    if buy.marginal.input is not None and buy.marginal.output is not None:
        yield (
            "one more",
            (
                f"{_usd(buy.marginal.input)}/Mtok of input, {_usd(buy.marginal.output)}/Mtok of "
                f"output ({buy.marginal.source})"
            ),
        )
    offers = [each for each in buy.offers if each.counted]
    marks = ", ".join(f"{each.host} {each.markup:.2g}x" for each in offers[:SHOWN])
    left = f" and {len(offers) - SHOWN} more" if len(offers) > SHOWN else ""
    yield "mark-up", f"over our cost at full use: {marks}{left}"


def _meets(buy: MakeOrBuy) -> str:
    """Where our fleet meets the host at the quantile, and the other hosts."""
    even = buy.break_even
    if even.tokens_per_day is None:
        words = f"out of reach at {even.utilisation:.0%} of full use"
    else:
        words = f"{even.utilisation:.0%} of full use, {count(even.tokens_per_day)} tokens a day"
        if even.always_from is not None and even.always_from > even.tokens_per_day:
            words += f" (always from {count(even.always_from)})"
    others = ", ".join(f"{name} {_use(point)}" for name, point in even.by.items())
    return f"{words}; {others}"


def _use(point: MeetingPoint) -> str:
    """A use in percent, or that none does."""
    return f"{point.utilisation:.0%}" if point.utilisation <= 1 else "never"


def _formats(buy: MakeOrBuy) -> str:
    """Which format was taken, and what the others cost."""
    others = ", ".join(
        f"{each.weights} {_usd(each.usd_per_mtok)}"
        for each in buy.formats
        if each.weights != buy.weights and each.usd_per_mtok is not None
    )
    tried = f"{buy.weights} taken of what the chip runs"
    return f"{tried}; {others}/Mtok" if others else f"{buy.weights} alone keeps the promises"
