"""Where renting and buying meet, in closed form: at a use, at a demand, in whole fleets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner.problems.serving.make_or_buy.offers import MeetingPoint
from planner.problems.serving.point import PER_MILLION

DAY = 86400.0
SLACK = 1e-12  # of a fleet, by which a demand may exceed it through rounding


@dataclass(frozen=True)
class Fleet:
    """What is rented as one: its bill [USD/s] and what it serves at most [token/s]."""

    chips: int
    bill: float
    rate: float

    @property
    def full(self) -> float:
        """Cost at full use [USD/token]."""
        return self.bill / self.rate


def meeting_point(fleet: Fleet, price: float) -> MeetingPoint:
    """Where a fleet meets a price [USD/token]: use, demand, demand from which it is safe."""
    from formulas.economics import make_or_buy as equations

    even = float(equations.break_even_use.numpy()(C_full=fleet.full, C_host=price))
    reached = even <= 1
    demand = float(equations.break_even_demand.numpy()(p_fleet=fleet.bill, C_host=price))
    always = None
    if even < 1:
        kernel = equations.fleets_from_which_renting_stays_cheaper.numpy()
        fleets = float(kernel(p_fleet=fleet.bill, C_host=price, X_full=fleet.rate))
        # Up to the last number of fleets at which one more was rented too early.
        always = max(math.ceil(fleets - SLACK), 1) * demand
    return MeetingPoint(
        price=price * PER_MILLION,
        utilisation=even,
        tokens_per_day=demand * DAY if reached else None,
        always_from=None if always is None else always * DAY,
    )


def own_cost(
    fleets: Sequence[Fleet], demands: NDArray[np.float64], rent: float = 1.0
) -> NDArray[np.float64]:
    """Least cost of a token at each demand [USD/token], as many of one fleet as carry it.

    Parameters
    ----------
    demands : [token/s], shape (n,).
    rent : over the one that the bills have.
    """
    costs = [
        np.ceil(demands / fleet.rate - SLACK).clip(1) * fleet.bill * rent / demands
        for fleet in fleets
    ]
    return np.asarray(np.min(costs, axis=0))


def chance_of_buying(cost: float, spread: float, prices: Sequence[float]) -> float:
    """Probability that a host drawn at random is cheaper than our cost.

    Our cost is log-normal with a standard deviation `spread` of its logarithm.
    """
    if not spread:
        return float(np.mean([price < cost for price in prices]))
    normal = NormalDist()
    return float(np.mean([normal.cdf(math.log(cost / price) / spread) for price in prices]))


def spread_of(ends: tuple[float, float] | None, coverage: float) -> float:
    """Standard deviation of the logarithm of a cost whose ends hold so much; 0 without a band."""
    if ends is None:
        return 0.0
    return math.log(ends[1] / ends[0]) / (2 * NormalDist().inv_cdf((1 + coverage) / 2))
