"""Open arrivals: how busy readers of prompts are, how long requests wait, how many are in flight.

How often the caches of those in flight need more than a replica has room for is a matter of chance.

Where steps take the same time whatever they carry the number is Poisson; where they grow with it
requests that gather stay longer, and the number is negative binomial, whose variance over mean is
1/(1 - elasticity). The sum over the products n/(x T(n)) is exact; this is it for a time that grows
evenly. Prompts read on the same chips hold up what decodes, and contexts differ: both add to the
variance, and the bytes are taken for negative binomial as well. Requests are dealt to ranks at
random, and each rank has room of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.kernels import feed, get_kernel, load_scalar_program

if TYPE_CHECKING:
    from planner.problems.serving.point import BorneLoad
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.task import Task

# Shares of the requests that wait longer than the quantile of that name.
TAILS = {"ttft_p95": 0.05, "ttft_p99": 0.01}
LARGEST_BATCH = 1 << 20  # sequences of one replica; beyond it no batch is tried
MAX_OVERFLOW_SHARE = 0.05  # share of time above which a plan warns
PROBE = 0.75  # batch over the maximum batch, to measure the growth of a step
# Share of a step that grows, or of time that is read; at 1 no number is steady.
MAX_LOAD_SHARE = 0.99
IN_FLIGHT = ("tpot", "arrivals", "busy")  # outputs that say how many are in flight
POISSON_TOLERANCE = 1e-6  # variance over mean, less one, below which a number is Poisson


def excess_symbols(share: float) -> dict[str, float]:
    """Symbols of a tail: the share of requests above it, and its normal quantile."""
    return {"x_tail": share, "z_tail": NormalDist().inv_cdf(1 - share)}


@dataclass(frozen=True)
class BlockingEstimate:
    """Sequences of one replica under a load.

    `decoding` is the number whose time per output token the plan gives, `room` the most whose
    caches fit into memory at their mean context, `crowded` the share of time in which a rank has
    more, the mean over time and the spread of what it has counted.
    """

    decoding: float
    room: int
    crowded: float


@dataclass(frozen=True)
class Occupancy:
    """Capacity of a replica of each layout, and the spread of its occupancy; shapes (n_layouts,).

    `room` are sequences that memory holds, `flat` those that add as much to the time of a step
    without prompts as there is without any, by its growth where memory is full.
    """

    room: np.ndarray
    flat: np.ndarray

    @classmethod
    def of(cls, step: Step) -> Occupancy:
        """Compute the occupancy of all layouts of a step, per replica."""
        alone = step.with_task(step.task.with_layout(arrivals=None))
        rows = np.arange(len(step.layouts))

        def full(at: np.ndarray, batch: np.ndarray) -> np.ndarray:
            part = alone if at.size == rows.size else alone.take(at)
            return ~np.broadcast_to(part.holds_together(batch), at.shape)

        room = np.full(rows.size, float(LARGEST_BATCH))
        at = rows[full(rows, room)]
        room[at] = first(lambda part, batch: full(at[part], batch), np.zeros(at.size), room[at]) - 1
        # Ranks hold whole sequences: compare two batches that divide evenly over the ranks.
        group = step.layouts.group
        most = np.maximum(np.floor(room / group), 1.0) * group
        beside = np.where(most > group, np.floor(PROBE * most / group) * group, PROBE * most)
        # The bound knows no step, only the time per output token.
        word = "tpot" if step.bound else "step"
        paces = [alone.only((word,), batch)[word] for batch in (most, beside)]
        ratio = np.broadcast_to(paces[0] / paces[1], most.shape)
        grows = np.clip((1 - 1 / ratio) / (1 - beside / most), POISSON_TOLERANCE, MAX_LOAD_SHARE)
        return cls(room, most * (1 / grows - 1))

    def take(self, rows: np.ndarray) -> Occupancy:
        """Return the occupancy of some layouts."""
        return Occupancy(self.room[rows], self.flat[rows])

    def hits(self, task: Task, layouts: Layouts) -> np.ndarray:
        """Share of the input found in the prefix caches of ranks, given their capacity."""
        where = layouts.dp_attention * layouts.replicas if task.routed else np.ones(len(layouts))
        return np.asarray(get_kernel("prefix_hits")(
            x_same=task.cached_input, n_room=np.floor(self.room / layouts.dp_attention),
            n_where=where, n_conv=float(task.conversations),
        )["x_hit"])  # fmt: skip

    def crowding(self, symbols: Mapping[str, object]) -> tuple[np.ndarray, np.ndarray]:
        """Mean sequences that a replica decodes at its TPOT, and the overflow probability of a
        rank.

        `symbols` hold what is `arrival_values` among the others.
        """
        values = feed(get_kernel("flight"), {**symbols, "n_flat": self.flat})
        ranks = np.asarray(symbols["dp"])
        late = overflow_probability(values["n_met"], values["x_need"], np.floor(self.room / ranks))
        return values["n_dealt"] * ranks, late


def arrival_values(step: Step, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrival rate at a replica, its time per output token, and its share of time in prefill.

    The share is short of where nothing else is done; the bound knows no queue.
    """
    task = step.task
    free = task.headroom if task.load == "none" else 0.0
    symbols = {"x_load": values["arrivals"] * (1 - free), "T_tpot": values["tpot"]}
    if step.bound or task.mode == "decode":
        return {**symbols, "r_pf": np.zeros(())}
    read = feed(get_kernel("reading"), {**symbols, "one_seq": 1.0, "T_pf_busy": values["busy"]})
    return {**symbols, "r_pf": np.minimum(read["r_pf"], MAX_LOAD_SHARE)}


def recheck_overflow(
    step: Step, symbols: Mapping[str, float], again: Mapping[str, float]
) -> dict[str, float]:
    """The share of time without room, where that is counted, by walking the equations."""
    if not step.crowds:
        return {}
    late = arrival_values(step, {name: np.array(again[name]) for name in IN_FLIGHT})
    late["n_flat"] = step.occupancy.flat[0]
    at = {**symbols, **{name: float(value) for name, value in late.items()}}
    values = load_scalar_program("flight", names=frozenset(at))(at)
    room = step.occupancy.room[0] // symbols["dp"]
    shares = (np.array(x) for x in (values["n_met"], values["x_need"], room))
    return {"crowded": float(overflow_probability(*shares))}


def overflow_probability(mean: np.ndarray, spread: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Overflow probability P(N > `room`) of the number in flight with mean `mean`; equal shapes.

    `spread` is the variance of the number over its mean, at least 1.
    """
    from scipy.special import betainc, gammainc

    more = np.maximum(spread - 1, POISSON_TOLERANCE)
    shape = np.maximum(mean, np.finfo(float).tiny) / more
    gathered = betainc(room + 1, shape, 1 - 1 / (1 + more))
    return np.asarray(np.where(spread - 1 > POISSON_TOLERANCE, gathered, gammainc(room + 1, mean)))


def queue(values: Mapping[str, float | np.ndarray]) -> dict[str, np.ndarray]:
    """Utilisation of the readers [-], mean wait and its quantiles `TAILS` [s], shaped as they are.

    `values` holds every symbol that the queue needs, `x_load` requests per second of a replica
    among them. Where readers cannot keep up the wait has no end: it is infinite, and so are its
    quantiles.
    """
    values = {**values, "x_load": np.maximum(values["x_load"], np.finfo(float).tiny)}
    values |= feed(get_kernel("prefill_queue"), values)
    busy = values["rho_pf"]
    endless = (busy >= 1) | (values["r_pf"] >= 1)
    # Unstable queues are computed without arrivals, then set to infinity.
    ready = {**values, **{n: np.where(endless, 0.0, values[n]) for n in ("rho_pf", "r_pf")}}
    ready |= feed(get_kernel("mean_wait"), ready)
    kernel = get_kernel("wait_quantile")
    dimensions = max(np.ndim(ready[name]) for name in kernel.names if name in ready)
    # Fewer than the share wait in line where readers are idler than it.
    shares = np.array(list(TAILS.values()))[(..., *[None] * dimensions)]
    at = {**ready, "rho_pf": np.maximum(ready["rho_pf"], shares), "x_tail": shares}
    tails = np.where(endless, np.inf, np.asarray(feed(kernel, at)["T_tail"]))
    wait = np.where(endless, np.inf, ready["T_wait"])
    return {"readers": busy, "wait": wait, **dict(zip(TAILS, tails, strict=True))}


def overflow_warnings(demand: BorneLoad | None) -> tuple[str, ...]:
    """Warnings for a plan whose replicas are full too often."""
    if demand is None or demand.crowded <= MAX_OVERFLOW_SHARE:
        return ()
    return (
        f"requests come at random: {demand.crowded:.0%} of the time a replica has more than the "
        f"{demand.room_per_replica} that it has room for, and an engine preempts some or lets "
        "them wait, which no time here includes; give headroom, more chips or a smaller cache",
    )


def first(
    holds: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The smallest whole number in (low, high] that satisfies `holds`, row by row.

    `holds(rows, numbers)` must be false at `low`, true at `high`, and turn once in between.
    """
    low, high = low.copy(), high.copy()
    while True:
        open_rows = np.flatnonzero(high - low > 1)
        if not open_rows.size:
            return high
        middle = (low[open_rows] + high[open_rows]) // 2
        good = holds(open_rows, middle)
        high[open_rows[good]] = middle[good]
        low[open_rows[~good]] = middle[~good]
