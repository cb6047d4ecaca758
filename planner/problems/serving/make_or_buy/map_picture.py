"""The map of make or buy: who wins at each demand and rent, with the plan and the break-evens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.make_or_buy.break_even import DAY, Fleet, own_cost
from planner.problems.serving.point import PER_MILLION
from planner.report.pictures.style import BLACK, large_numbers, pictured, ticked, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.problems.serving.make_or_buy.offers import MakeOrBuy

DECADE = tuple(float(digit) for digit in range(1, 10))  # ticks of the rent
INCHES = (8.5, 5.2)
FINE = (801, 81)  # demands and rents that are drawn
COLOURS = ("#cfe5f5", "#fbe3cf")  # renting wins, buying wins
LEVELS = (0.5, 1.0, 2.0)  # own cost over the host's price that are drawn as lines
WIDTHS = (0.6, 1.6, 0.6)  # points, of those lines


@dataclass(frozen=True)
class WhoWinsPicture:
    """Demand across, rent upwards; below the line of one, renting is the cheaper."""

    comparison: MakeOrBuy

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises MissingExtra without Matplotlib."""
        return pictured(INCHES, self._filled, form)

    def ratios(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Demands [token/day], rents [USD/(chip*hour)], own cost over the host's (rents, demands).

        The bills of the fleets are those of the map's own rows; whole fleets are rented.
        """
        rows, grid = self.comparison.fleets, self.comparison.map
        demands = np.geomspace(grid.tokens_per_day[0], grid.tokens_per_day[-1], FINE[0])
        rents = np.geomspace(grid.rent[0], grid.rent[-1], FINE[1])
        fleets = [Fleet(x.chips, x.usd_per_day / DAY, x.tokens_per_day / DAY) for x in rows]
        price = self.comparison.hosts.quantile / PER_MILLION
        costs = [own_cost(fleets, demands / DAY, rent / self.rent) for rent in rents]
        return demands, rents, np.array(costs) / price

    @property
    def rent(self) -> float:
        """What the plan pays for a chip, power included [USD/hour]."""
        ours = self.comparison.ours
        return ours.usd_per_day / 24 / ours.chips

    def _filled(self, canvas: Figure) -> None:
        axes: Axes = canvas.subplots()
        demands, rents, ratios = self.ratios()
        axes.contourf(demands, rents, ratios, levels=[0, 1, np.inf], colors=COLOURS)
        axes.contour(demands, rents, ratios, levels=LEVELS, colors=BLACK, linewidths=WIDTHS)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticked(axes.yaxis, "${:,.3g}".format, DECADE)
        large_numbers(axes.xaxis, demands[FINE[0] // 2])
        ours, even = self.comparison.ours, self.comparison.break_even.tokens_per_day
        axes.plot(ours.tokens_per_day, self.rent, "o", color=BLACK, ms=6)
        axes.annotate(f"{ours.chips} chips, full", (ours.tokens_per_day, self.rent),
                      xytext=(6, 6), textcoords="offset points", fontsize=8)  # fmt: skip
        if even is not None:
            axes.plot(even, self.rent, "o", mfc="white", mec=BLACK, ms=6)
        axes.set_xlabel("tokens a day, input and output together")
        axes.set_ylabel("rent of a chip and hour")
        host = self.comparison.hosts.quantile
        titled(
            axes,
            f"blue: rent chips; orange: buy at ${host:.3g}/Mtok; lines at half, once, twice it",
        )
