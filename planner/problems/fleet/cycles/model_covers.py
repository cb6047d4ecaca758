"""The cheapest replicas of each model in each hour at prices of chips: cuts, and replicas to try.

At any prices of its replicas, no plan pays less for a model in an hour than the cheapest whole
cover of its demand with the spare. That is a row of the program (Boyd 1994: a Fenchel cut); at the
prices of the relaxation it is the one that lifts it most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import FleetProgram
from planner.programs.integer import Covers, LinearPoint, MixedProgram, SparseRows, minimum_covers

Array = np.ndarray
DISCRETIZATION_STEPS = 1200  # steps of a demand; rates are rounded to them
AT_A_TIME = 5000  # demands
LIFT_TOL = 1e-4  # of a cover's price, below which a cut is no use


@dataclass(frozen=True)
class CoverPrices:
    """Prices of a firm, a spot and a started replica of each column and hour (C, T)."""

    firm: Array
    spot: Array
    started: Array


def cover_prices(
    task: FleetTask, made: FleetProgram, program: MixedProgram, linear: LinearPoint
) -> CoverPrices:
    """Prices of replicas (C, T) by the duals of machine rows and start rows, at least 0."""
    matrix = program.rows.matrix
    machines = np.zeros(program.cost.size)
    for numbers in (made.reserved, made.on_demand, made.spot_machines):
        machines[numbers.ravel()] = 1.0
    linking = (abs(matrix) @ machines) > 0
    linking[made.start_rows.ravel()] = True
    net = np.maximum(program.cost - matrix.T @ np.where(linking, linear.duals, 0.0), 0.0)
    offered = np.array([pool.spot is not None for pool in task.pools])[task.pool_of, None]
    spot = np.where(offered, net[made.spot], np.inf)
    return CoverPrices(net[made.firm], spot, net[made.started])


def cover_cuts(
    task: FleetTask, made: FleetProgram, program: MixedProgram, linear: LinearPoint
) -> SparseRows:
    """The rows that a relaxed point misses, one of each model and hour at most."""
    prices = cover_prices(task, made, program, linear)
    least = np.full(task.demand.shape, np.inf)
    for ask, covers in _covered(task, prices, up=True):
        np.minimum.at(least, (ask.models, ask.hours), covers.costs)
    entries: list[tuple[Array, Array]] = []
    low: list[float] = []
    for m in range(len(task.models)):
        mine = np.flatnonzero(task.model_of == m)
        spot_prices = np.where(np.isfinite(prices.spot[mine]), prices.spot[mine], 0.0)
        paid = np.concatenate([prices.firm[mine], spot_prices, prices.started[mine]])
        numbers = np.concatenate([made.firm[mine], made.spot[mine], made.started[mine]])
        here = (paid * linear.point[numbers]).sum(axis=0)
        for t in np.flatnonzero(np.isfinite(least[m]) & (least[m] > here * (1 + LIFT_TOL) + 1e-9)):
            scale = max(float(np.abs(paid[:, t]).max()), 1e-9)
            entries.append((numbers[:, t], paid[:, t] / scale))
            low.append(float(least[m, t]) / scale)
    pointers = np.cumsum([0, *(numbers.size for numbers, _ in entries)])
    columns = np.concatenate([n for n, _ in entries]) if entries else np.zeros(0, int)
    values = np.concatenate([v for _, v in entries]) if entries else np.zeros(0)
    matrix = sp.csr_array((values, columns, pointers), shape=(len(low), program.cost.size))
    return SparseRows(matrix, np.array(low), np.full(len(low), np.inf))


def tried_replicas(task: FleetTask, prices: Sequence[CoverPrices]) -> list[Array]:
    """Replicas of each model that cover an hour's demand cheaply (K, 2 n): firm, then spot.

    Of every hour and every largest rate, at each of some prices.
    """
    rows: list[list[Array]] = [[] for _ in task.models]
    for price in prices:
        for ask, covers in _covered(task, price, up=False):
            width = covers.counts.shape[1] // 2
            for m in np.unique(ask.models):
                count = int((task.model_of == m).sum())
                here = covers.counts[(ask.models == m) & np.isfinite(covers.costs)]
                rows[m].append(np.hstack([here[:, :count], here[:, width : width + count]]))
    return [np.unique(np.concatenate(each), axis=0) for each in rows]


@dataclass(frozen=True)
class CoverAsk:
    """Demands that are covered at a time: their models, hours, and largest rates (B,)."""

    models: Array
    hours: Array
    largest: Array


def _asks(task: FleetTask) -> Iterator[CoverAsk]:
    """Every model's hours, once for each rate that may be its largest in use, some at a time.

    Not of models whose work waits: their demand is of no single hour.
    """
    rows = [
        (m, t, rate)
        for m in range(len(task.models))
        if not task.windows[m] and (task.model_of == m).any()
        for rate in _largest(task, m)
        for t in np.flatnonzero(task.demand[m] > 0)
    ]
    for start in range(0, len(rows), AT_A_TIME):
        models, hours, largest = zip(*rows[start : start + AT_A_TIME], strict=True)
        yield CoverAsk(np.array(models), np.array(hours), np.array(largest))


def _largest(task: FleetTask, m: int) -> Array:
    rates = np.unique(task.rates[task.model_of == m])
    return rates if task.spare else rates[-1:]


def _covered(task: FleetTask, prices: CoverPrices, up: bool) -> Iterator[tuple[CoverAsk, Covers]]:
    """The cheapest covers of every demand; columns above the largest rate are left out."""
    models = len(task.models)
    width = max(int((task.model_of == m).sum()) for m in range(models))
    columns = np.full((models, width), -1)
    for m in range(models):
        mine = np.flatnonzero(task.model_of == m)
        columns[m, : mine.size] = mine
    for ask in _asks(task):
        which = columns[ask.models]
        rates = np.where(which >= 0, task.rates[which], np.inf)
        usable = rates <= ask.largest[:, None] * (1 + 1e-12)
        rates = np.where(usable, rates, 0.0)
        hours = ask.hours[:, None]
        demand = task.demand[ask.models, ask.hours]
        covers = minimum_covers(
            demand * (1 + task.headroom) + task.spare * ask.largest,
            (1 - task.spot_share) * demand,
            (rates, rates * (1 - task.lost[which])),
            (
                np.where(usable, prices.firm[which, hours], np.inf),
                np.where(usable, prices.spot[which, hours], np.inf),
            ),
            DISCRETIZATION_STEPS,
            up,
        )  # fmt: skip
        yield ask, covers
