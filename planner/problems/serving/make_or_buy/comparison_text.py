"""Make or buy in words: own cost, the hosts, where they meet, the fleet that is worth renting.

The map of make or buy: who wins at each demand and rent, with the plan and the break-evens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.make_or_buy.offers import DAY, ComparedPoint, Fleet, own_cost
from planner.problems.serving.point import MTOK
from planner.protocol.section import Line, Section
from planner.report.pictures.style import BLACK, axes_title, large_numbers, render_figure, set_ticks
from planner.text.wording import count, digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.problems.serving.make_or_buy.offers import MakeOrBuy
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import Interval


DECADE = tuple(float(digit) for digit in range(1, 10))  # ticks of the rent
INCHES = (8.5, 5.2)
GRID_SHAPE = (801, 81)  # demands and rents that are drawn
COLOURS = ("#cfe5f5", "#fbe3cf")  # renting wins, buying wins
COST_RATIOS = (0.5, 1.0, 2.0)  # own cost over the host's price that are drawn as lines
WIDTHS = (0.6, 1.6, 0.6)  # points, of those lines


@dataclass(frozen=True)
class CostRatioChart:
    """Demand across, rent upwards; below the line of one, renting is the cheaper."""

    comparison: MakeOrBuy

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises MissingExtra without Matplotlib."""
        return render_figure(INCHES, self._filled, form)

    def ratios(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Demands [token/day], rents [USD/(chip*hour)], own cost over the host's (rents, demands).

        The bills of the fleets are those of the map's own rows; whole fleets are rented.
        """
        rows, grid = self.comparison.fleets, self.comparison.map
        demands = np.geomspace(grid.tokens_per_day[0], grid.tokens_per_day[-1], GRID_SHAPE[0])
        rents = np.geomspace(grid.rent[0], grid.rent[-1], GRID_SHAPE[1])
        fleets = [Fleet(x.chips, x.usd_per_day / DAY, x.tokens_per_day / DAY) for x in rows]
        price = self.comparison.hosts.quantile / MTOK
        costs = [own_cost(fleets, demands / DAY, rent / self.rent) for rent in rents]
        return demands, rents, np.array(costs) / price

    @property
    def rent(self) -> float:
        """Price that the plan pays per chip, power included [USD/hour]."""
        ours = self.comparison.ours
        return ours.usd_per_day / 24 / ours.chips

    def _filled(self, canvas: Figure) -> None:
        axes: Axes = canvas.subplots()
        demands, rents, ratios = self.ratios()
        axes.contourf(demands, rents, ratios, levels=[0, 1, np.inf], colors=COLOURS)
        axes.contour(demands, rents, ratios, levels=COST_RATIOS, colors=BLACK, linewidths=WIDTHS)
        axes.set_xscale("log")
        axes.set_yscale("log")
        set_ticks(axes.yaxis, "${:,.3g}".format, DECADE)
        large_numbers(axes.xaxis, demands[GRID_SHAPE[0] // 2])
        ours, even = self.comparison.ours, self.comparison.break_even.tokens_per_day
        axes.plot(ours.tokens_per_day, self.rent, "o", color=BLACK, ms=6)
        axes.annotate(f"{ours.chips} chips, full", (ours.tokens_per_day, self.rent),
                      xytext=(6, 6), textcoords="offset points", fontsize=8)  # fmt: skip
        if even is not None:
            axes.plot(even, self.rent, "o", mfc="white", mec=BLACK, ms=6)
        axes.set_xlabel("tokens a day, input and output together")
        axes.set_ylabel("rent of a chip and hour")
        host = self.comparison.hosts.quantile
        axes_title(
            axes,
            f"blue: rent chips; orange: buy at ${host:.3g}/Mtok; lines at half, once, twice it",
        )


MAX_HOSTS_SHOWN = 6  # hosts
VERDICT_PHRASES = {"rent": "renting, against", "buy": "buying, at"}
QUARTILES = {"min": "the least", "q25": "q25", "median": "median", "q75": "q75"}
TITLE = "make or buy"
DECIDES = ("break-even", "cheaper")  # what stands beside every answer
PRICE = "USD per million tokens"


def buy_answer(answer: ServingAnswer) -> MakeOrBuy | None:
    """Return the make-or-buy comparison of a plan, None if it was not requested."""
    return answer.plan.buy if isinstance(answer.plan, ComparedPoint) else None


def comparison_lines(buy: MakeOrBuy | None, *, full: bool) -> Iterator[Line]:
    """Lines that decide a comparison, or all its lines if `full`; empty without a comparison."""
    rows = _rows(buy) if buy else ()
    return (Line(label, text) for label, text in rows if full or label in DECIDES)


def comparison_section(buy: MakeOrBuy) -> Section:
    """Return the comparison as a section of pages and notebooks."""
    ours, hosts = buy.ours, buy.hosts
    numbers = [Line("own cost, full", ours.full, PRICE, "", ours.band, ours.bound)]
    if ours.at_demand is not None:
        numbers.append(Line("own cost at the demand", ours.at_demand, PRICE, "", ours.demand_band))
    numbers.append(Line("host", hosts.quantile, PRICE, "", (hosts.min, hosts.q75)))
    words = [Line(label, text) for label, text in _rows(buy) if label not in ("own", "hosts")]
    return Section(TITLE, (*numbers, *words))


def _usd(value: float) -> str:
    return f"${value:.3g}"


def _ends(ends: Interval) -> str:
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
    cached = f", {buy.cached:.0%} of the input cached" if buy.cached else ""
    if hosts.n > 1:
        spread = f"{hosts.n} hosts: {_usd(hosts.min)} least, {_usd(hosts.q25)}, "
        spread += f"{_usd(hosts.median)} median, {_usd(hosts.q75)}/Mtok"
    else:
        spread = f"one host: {_usd(hosts.median)}/Mtok"
    yield "hosts", f"{spread} at this mix{cached} ({buy.rule})"
    yield "break-even", _meets(buy)
    chance = f"within the band, buying is cheaper with a chance of {_share(buy.cheaper)}"
    at = f"{VERDICT_PHRASES[buy.better]} {_usd(hosts.quantile)}/Mtok"
    yield "cheaper", f"{at}; over all hosts, and {chance}"
    yield "formats", _formats(buy)
    words = f"none of up to {buy.fleets[-1].chips} chips is worth renting: always full, each costs "
    words += "more than the host"
    if fleet := buy.smallest_fleet:
        words = f"worth renting from {fleet.chips} chip{'s' * (fleet.chips != 1)} on: "
        words += f"{_usd(fleet.usd_per_mtok)}/Mtok full, {count(fleet.tokens_per_day)} tokens a day"
    yield "fleet", words
    more = buy.marginal
    if more.input is not None and more.output is not None:
        prices = f"{_usd(more.input)}/Mtok of input, {_usd(more.output)}/Mtok of output"
        yield "one more", f"{prices} ({more.source})"
    offers = [each for each in buy.offers if each.counted]
    marks = ", ".join(f"{each.host} {_times(each.markup)}" for each in offers[:MAX_HOSTS_SHOWN])
    left = f" and {len(offers) - MAX_HOSTS_SHOWN} more" if len(offers) > MAX_HOSTS_SHOWN else ""
    below = sum(each.markup < 1 for each in offers)
    under = f"; {below} of {len(offers)} sold below our cost" if below else ""
    yield "mark-up", f"over our cost at full use: {marks}{left}{under}"


def _meets(buy: MakeOrBuy) -> str:
    """Describe the break-even of our fleet with the host at the quantile and the other hosts."""
    even = buy.break_even
    if even.tokens_per_day is None:
        over = _times(even.utilisation)
        words = f"never: these chips, always full, cost {over} what the host asks"
    else:
        words = f"{_share(even.utilisation)} of full use, {count(even.tokens_per_day)} tokens a day"
        if even.always_from is not None and even.always_from > even.tokens_per_day:
            words += f" (always from {count(even.always_from)})"
    if buy.hosts.n == 1:
        return words
    uses = {name: x.utilisation for name, x in even.by.items()}
    others = (f"{QUARTILES[name]} {_share(x) if x <= 1 else 'never'}" for name, x in uses.items())
    return f"{words}; by host: {', '.join(others)}"


def _times(factor: float) -> str:
    return f"{factor:,.0f}x" if factor >= 100 else f"{digits(factor)}x"


def _share(share: float) -> str:
    return "under 1%" if share < 0.005 else "over 99%" if share > 0.995 else f"{share:.0%}"


def _formats(buy: MakeOrBuy) -> str:
    others = ", ".join(
        f"{each.weights} {_usd(each.usd_per_mtok)}"
        for each in buy.formats
        if each.weights != buy.weights and each.usd_per_mtok is not None
    )
    tried = f"{buy.weights} taken of what the chip runs"
    return f"{tried}; {others}/Mtok" if others else f"{buy.weights} alone keeps the promises"
