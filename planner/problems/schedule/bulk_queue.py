"""Bulk-service queue: requests left behind by a departure, and sojourn time of a request.

Poisson(rho K) requests arrive between departures, and K of those that wait board. The generating
function of what is left behind is rational in z, z^K and exp(rho K (z - 1)); its K - 1 roots inside
the unit circle are values of Lambert's W, so that the mean has a closed form, and the distribution
follows from a discrete Fourier transform (Bailey 1954). An event simulation, every request with its
own arrival and departure, stands beside it.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammainc, lambertw, pdtr

from planner.protocol.document import Second, Share, Unit

Floats = NDArray[np.float64]

TRUNCATION_TOLERANCE = 1e-13  # probability beyond the states that are counted
MIN_QUEUE = 1e-10  # share of a request that a departure may leave behind for each that comes
TERM = 1e-12  # of a sum, below which the next is not looked at
MAX_STATES = 1 << 17
MAX_TERMS = 2 * 10**8  # roots times states
HALF = 0.5  # load [-] below which Spitzer's series converges fast
NODES = 24  # of the moment of arrival, Gauss and Legendre
BLOCK = 1 << 22  # numbers in one piece of an outer product
STOP_TOL = 1e-13  # of a quantile [intervals]


def inner_roots(capacity: int, load: float) -> NDArray[np.complex128]:
    """The K - 1 roots of z^K = exp(rho K (z - 1)) inside the unit circle, shape (K - 1,)."""
    turns = np.exp(2j * np.pi * np.arange(1, capacity) / capacity)
    return np.asarray(-lambertw(-load * np.exp(-load) * turns) / load)


def root_sum(capacity: int, load: float) -> float:
    """Sum of 1/(1 - z) over the inner roots [-], the only number that the mean needs."""
    return float(np.sum(1 / (1 - inner_roots(capacity, load))).real)


def mean_queue_after_service(capacity: int, load: float) -> float:
    """Mean number that a departure leaves behind, by Spitzer's identity [-].

    A sum of what is above zero, the excess of the arrivals of each number of intervals over its
    seats: no digit is lost where hardly anybody is left. Its terms fall slowly near a load of one.
    """
    total = term = turn = 0.0
    while turn == 0 or term > TERM * total:
        turn += 1
        seats, mean = turn * capacity, turn * load * capacity
        # P(arrivals >= seats) and P(arrivals > seats) of Poisson arrivals with this mean.
        filled, beyond = gammainc((seats, seats + 1), mean)
        term = float(mean * filled - seats * beyond) / turn
        total += term
    return total


@dataclass(frozen=True)
class SojournTimeDistribution:
    """Requests left behind by a departure, and times from arrival to the end of the ride.

    Args:
        capacity, load: seats, and the share of them that is taken.
        left: probability of each number left behind, shape (states,).
    """

    capacity: int
    load: float
    left: Floats

    @property
    def mean(self) -> float:
        """Mean time [intervals], summed over the distribution."""
        return 1.5 + float(np.arange(len(self.left)) @ self.left) / (self.load * self.capacity)

    @property
    def left_out(self) -> float:
        """Share of the requests that find no seat in the next departure [-]."""
        nodes, weights = _moments()
        return max(1.0 - float(weights @ self._boarded(0, nodes)), 0.0)

    def within(self, intervals: float) -> float:
        """Share of the requests whose sojourn time is at most `intervals` intervals [-]."""
        whole = math.floor(intervals)
        part, (nodes, weights) = intervals - whole, _moments()
        early = (1 - part) * float(weights @ self._boarded(whole - 2, (1 - part) * nodes))
        late = part * float(weights @ self._boarded(whole - 1, 1 - part + part * nodes))
        return early + late

    def quantile(self, share: float) -> float:
        """Time that a share of the requests does not exceed [intervals]."""
        high = 2.0
        while self.within(high) < share:
            high += 1.0
        return float(brentq(lambda time: self.within(time) - share, high - 1, high, xtol=STOP_TOL))

    def _boarded(self, missed: int, moments: Floats) -> Floats:
        if missed < 0:
            return np.zeros(len(moments))
        states = min(len(self.left), (missed + 1) * self.capacity)
        room = (missed + 1) * self.capacity - 1 - np.arange(states)
        before = moments * self.load * self.capacity
        return np.asarray(pdtr(room[None, :], before[:, None]) @ self.left[:states])


@cache
def _moments() -> tuple[Floats, Floats]:
    """Nodes and weights of the moment of arrival within an interval, both of shape (NODES,)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


@cache
def sojourn_time_distribution(capacity: int, load: float) -> SojournTimeDistribution | None:
    """The exact distribution, None where it has more states than are summed.

    The generating function is evaluated on the unit circle; the real root beyond it says how fast
    probabilities fall, and so how many states matter.
    """
    if load < HALF and mean_queue_after_service(capacity, load) < MIN_QUEUE * load * capacity:
        return SojournTimeDistribution(capacity, load, np.ones(1))
    beyond = float((-lambertw(-load * math.exp(-load), -1) / load).real)
    # Beside a load of one that root meets the root at one, and Lambert's W rounds to NaN there.
    fall = np.fmax(math.log(beyond), 1e-12)
    wanted = math.log(1 / TRUNCATION_TOLERANCE) / fall + 2 * capacity
    if wanted > MAX_STATES or capacity * wanted > MAX_TERMS:
        return None
    states = 1 << math.ceil(math.log2(wanted))
    # Probabilities are real: the lower half of the circle mirrors the upper one.
    z = np.exp(2j * np.pi * np.arange(1, states // 2 + 1) / states)
    roots = inner_roots(capacity, load)
    product = np.zeros(len(z), dtype=complex)
    piece = max(1, BLOCK // len(z))
    for start in range(0, len(roots), piece):
        here = roots[start : start + piece]
        product += np.log((z[:, None] - here) / (1 - here)).sum(axis=1)
    over = z**capacity - np.exp(load * capacity * (z - 1))
    values = capacity * (1 - load) * (z - 1) * np.exp(product) / over
    left = np.fft.hfft(np.concatenate([[1.0], values]), states) / states
    return SojournTimeDistribution(capacity, load, np.maximum(left, 0.0))


SEED = 20261124
BATCHES = 64  # whose means give the standard error
MIN_BATCH, MAX_BATCH = 64, 1 << 18  # intervals
WITHOUT_END = 1e9  # seats, more than ever come in one interval


@dataclass(frozen=True)
class SimulatedTimes:
    """Simulated sojourn times, with the standard error of their mean (means of batches).

    `off` is the simulated mean over the closed form, less one.
    """

    mean: Second
    error: Second
    worst: Second
    requests: Annotated[int, Unit("seq")]
    off: Share


def simulated_intervals(
    per_interval: float, capacity: float, requests: int
) -> tuple[float, float, float, int] | None:
    """Mean time, its standard error, the longest [intervals], and how many requests there were.

    Requests arrive at random moments and board in their order, at most `capacity` with each
    departure; a tenth of the time is let pass before the first that counts. There are fewer where
    they come so seldom that a batch has too many intervals; None where none comes, or where a batch
    of `MIN_BATCH` intervals has more than `BLOCK`.
    """
    seats = min(capacity, WITHOUT_END)
    rng = np.random.default_rng(SEED)
    if per_interval * MIN_BATCH > BLOCK:
        return None
    spans = round(min(max(requests / per_interval / BATCHES, MIN_BATCH), MAX_BATCH))
    queue: np.ndarray = np.empty(0)  # ages of those left behind, oldest first [intervals]
    means, counts, longest = [], [], 0.0
    for number in range(-max(1, BATCHES // 10), BATCHES):
        arriving = rng.poisson(per_interval, spans)
        moments = np.sort(np.repeat(np.arange(spans), arriving) + rng.random(arriving.sum()))
        waiting = np.concatenate([queue, moments])
        left = len(queue) + np.cumsum(arriving - seats, dtype=float)
        left -= np.minimum(np.minimum.accumulate(left), 0.0)
        boarded = len(queue) + np.cumsum(arriving) - left  # by each departure, since the start
        gone = int(boarded[-1])
        departure = 1 + np.searchsorted(boarded, np.arange(gone), side="right")
        times = departure + 1 - waiting[:gone]
        queue = waiting[gone:] - spans
        if number >= 0 and gone:
            means.append(times.mean())
            counts.append(gone)
            longest = max(longest, float(times.max()))
    if not counts:
        return None
    weights = np.array(counts) / sum(counts)
    mean = float(weights @ means)
    error = float(np.sqrt(np.sum((weights * (np.array(means) - mean)) ** 2)))
    return mean, error, longest, sum(counts)
