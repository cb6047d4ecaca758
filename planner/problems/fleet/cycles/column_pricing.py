"""Columns that the relaxation's duals ask for, until none improves it (column generation).

A replica of rate r on n chips pays, in each hour that it is there, the duals of its machines and
earns r times those of its model's demand; to start costs its chips and what it does not serve
meanwhile. Hours are a cycle, so it lowers the relaxation only where all hours together cost less
than they earn, or a start and a run of hours after it do. Layouts for which copies of another
column stand in are left out (`_undominated` has the proof). The spare is as the columns have it,
and a rate above theirs is asked for no larger one: prices are at most the true ones, so that what
they reject improves nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.plan import Pricing
from planner.problems.fleet.program import FleetProgram, fleet_program
from planner.problems.fleet.question import FleetScenario
from planner.problems.fleet.replica_columns import NewColumn, larger_replicas, reading_rate, replica
from planner.problems.fleet.resolve import ResolvedFleet, resolve_fleet
from planner.programs.integer import LinearPoint, NoPoint, solve_lp_relaxation
from planner.text.tolerances import REL_TOL

Array = np.ndarray
IMPROVES = 1e-6  # minimum profit of a new column, relative to its earnings
USED = 1e-9  # replicas of the relaxation
HOUR = 3600.0


@dataclass(frozen=True)
class PricedFleet:
    """Question with the columns that pricing added; `pricing` is None if no layout was priced."""

    resolution: ResolvedFleet
    pricing: Pricing | None = None


@dataclass(frozen=True)
class PricedLayouts:
    """Layouts returned by a search, by number: rates [seq/s] and hours to start, all (P,)."""

    search: NewColumn
    rates: Array
    starts: Array


def priced_fleet(scenario: FleetScenario) -> PricedFleet:
    """The question of a scenario with all columns that lower its relaxation.

    Nothing is priced of replicas that the user gives, nor with regions. Raises FieldError.
    """
    resolution = resolve_fleet(scenario)
    made = resolution.made
    if made is None or scenario.regions:
        return PricedFleet(resolution)
    searches = [each for each in (*made.searched, *larger_replicas(scenario, made))
                if not each.cell.phase]  # fmt: skip
    every = [_layouts(scenario, search) for search in searches]
    tested: list[NewColumn] = []
    rounds = 0
    while True:
        rounds += 1
        trial = _with(resolution, tested)
        program = fleet_program(replace(trial.task, one_layout=False))
        try:
            linear = solve_lp_relaxation(program.program.compiled())
        except NoPoint:
            if tested:
                return PricedFleet(resolution)
            better = searches
        else:
            better = list(_better(scenario, trial.task, program, linear, every))
        there = set(trial.task.columns)
        better = [each for each in better if each.column not in there]
        if not better:
            break
        tested += better
    used = [each for each, row in zip(tested, _in_use(program, linear, tested), strict=True) if row]
    layouts = sum(each.rates.size for each in every)
    return PricedFleet(_with(resolution, used), Pricing(layouts, rounds, len(used)))


def _in_use(program: FleetProgram, linear: LinearPoint, tested: list[NewColumn]) -> list[bool]:
    there = linear.point[program.firm] + linear.point[program.spot]
    return [bool(row.max() > USED) for row in there[there.shape[0] - len(tested) :]]


def _with(resolution: ResolvedFleet, more: list[NewColumn]) -> ResolvedFleet:
    assert resolution.made is not None
    columns = (*resolution.task.columns, *(each.column for each in more))
    made = replace(resolution.made, made=(*resolution.made.made, *more))
    return replace(resolution, task=replace(resolution.task, columns=columns), made=made)


def _layouts(scenario: FleetScenario, search: NewColumn) -> PricedLayouts:
    """Every layout that a search found, each at its best batch."""
    pool = search.pool.pools[-1]
    searched, step = pool.searched, pool.step
    values = step.take(searched.rows)(searched.batch, searched.fill)
    shape = searched.rows.shape
    rates = np.broadcast_to(values["requests"], shape)
    weights = np.broadcast_to(values["memory.weights"], shape) * search.column.chips
    time = scenario.start.time
    starts = weights / reading_rate() if time is None else np.full(shape, time / HOUR)
    return PricedLayouts(search, rates, np.minimum(starts, 1.0))


def _better(
    scenario: FleetScenario, task: FleetTask, program: FleetProgram, linear: LinearPoint,
    every: list[PricedLayouts],
) -> Iterator[NewColumn]:  # fmt: skip
    """Yield the layout of each search that improves the relaxation most, if any improves it."""
    for layouts in every:
        free = _not_stood_for(task, layouts)
        if not free.any():
            continue
        worth = np.where(free, _improvement(task, program, linear, layouts), 0.0)
        best = int(np.argmax(worth))
        if worth[best] > IMPROVES:
            pool = layouts.search.pool.pools[-1]
            yield replica(scenario, layouts.search.cell, pool, pool.point(best))


def _not_stood_for(task: FleetTask, layouts: PricedLayouts) -> Array:
    """True for layouts that no column of at most their chips dominates, alone or in copies (P,)."""
    column = layouts.search.column
    free = np.ones(layouts.rates.shape, bool)
    kind = column.model, column.pool, column.phase
    for smaller in task.columns:
        copies = column.chips // smaller.chips
        if (smaller.model, smaller.pool, smaller.phase) != kind or not copies:
            continue
        fits = (smaller.rate <= layouts.rates * (1 + REL_TOL)) | (smaller.chips == column.chips)
        fits &= copies * smaller.rate >= layouts.rates * (1 - REL_TOL)
        free &= ~(fits & (smaller.start <= layouts.starts * (1 + REL_TOL)))
    return free


def _improvement(
    task: FleetTask, program: FleetProgram, linear: LinearPoint, layouts: PricedLayouts
) -> Array:
    """Profit of each layout in its best hours, as a share of its earnings in all hours (P,)."""
    column = layouts.search.column
    k, pool = column.pool, task.pools[column.pool]
    beside = replace(task, columns=(*task.columns, column))
    here = [len(task.columns) in beside.at(station) for station in task.stations]
    met, firmly = (
        linear.duals[rows[here]].sum(axis=0) for rows in (program.station_rows, program.firm_rows)
    )
    machines = -(-column.chips // pool.size)
    chips = machines * pool.size if machines > 1 else column.chips
    rates = layouts.rates[:, None]
    rent = -chips * linear.duals[np.stack([program.machine_rows[k], program.spot_rows[k]])]
    costs = rent[0] - rates * (met + firmly)
    if pool.spot is not None:
        costs = np.minimum(costs, rent[1] - rates * (1 - pool.lost) ** machines * met)
    price = task.starts_paid * pool.start_price / pool.size * chips
    begins = layouts.starts[:, None] * (price + rates * met)
    least = costs.sum(axis=1)
    run = np.full(layouts.rates.shape, np.inf)
    for t in 2 * list(range(task.hours)):
        run = np.minimum(run, begins[:, t]) + costs[:, t]
        least = np.minimum(least, run)
    earned = layouts.rates * (met + firmly).sum()
    return np.asarray(-least / np.maximum(earned, 1e-12))
