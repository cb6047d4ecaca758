"""From a fleet's scenario to its numbers: demand by hour, contracts by machine, columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.fleet.demand.demand_file import has_unit
from planner.problems.fleet.fleet_task import FleetColumn, FleetTask, PoolOffer, Route
from planner.problems.fleet.question import MAX_VARIABLES, FleetPool, FleetScenario
from planner.programs.integer import TooManyWays, filling_ways, needs_ways
from planner.text.errors import FieldError
from planner.text.quantities import show

if TYPE_CHECKING:
    from planner.problems.fleet.replica_columns import BuiltColumns

HOUR = 3600.0
PREEMPTION = 0.05  # default chance per hour that a spot machine is lost


@dataclass(frozen=True)
class ResolvedFleet:
    """Scenario as a task in numbers, with its warnings."""

    task: FleetTask
    warnings: tuple[str, ...]
    made: BuiltColumns | None = None


def resolve_fleet(scenario: FleetScenario) -> ResolvedFleet:
    """The task of a scenario.

    Raises FieldError for what cannot be asked.
    """
    pools = tuple(
        _offer(name, scenario.pools[pool], scenario.have.get(pool, 0))
        for name, (pool, _) in scenario.placed_pools.items()
    )
    demand = demands(scenario)
    made = _made(scenario)
    columns = (
        *(placed for column in _measured(scenario) for placed in _placed(scenario, column)),
        *(each.column for each in (made.made if made else ())),
    )
    size = (3 * len(columns) + 2 * len(pools)) * scenario.hours + len(pools)
    if size > MAX_VARIABLES:
        raise FieldError(("hours", (
            f"{size:,} whole variables are more than {MAX_VARIABLES:,}; what would work: hours: "
            "168 or 24, a typical week or day, or one model for those with one set of columns"
        )))  # fmt: skip
    models = [m for m in scenario.models.values() for _ in scenario.regions or ("",)]
    task = FleetTask(
        tuple(demand),
        pools,
        columns,
        np.array(list(demand.values())),
        tuple(_window(m.demand.deferrable, scenario.hours) for m in models),
        tuple(m.tokens for m in models),
        scenario.spare.replicas,
        scenario.spare.headroom,
        scenario.start.cost == "paid",
        scenario.spot_share,
        _routes(scenario, columns),
        scenario.layouts == "one",
    )
    # Raises FieldError where replicas fill a machine in more ways than a program lists.
    for k, (pool, _) in enumerate(scenario.placed_pools.values()):
        used, size = task.used_chips[task.pool_of == k], task.pools[k].size
        try:
            if needs_ways(used, size):
                filling_ways(used[used < size], size)
        except TooManyWays as many:
            words = f"replicas fill a machine of {size} chips in {many}"
            remedy = f"what would work: columns whose chips divide {size}, or smaller machines"
            raise FieldError((f"pools.{pool}", f"{words}; {remedy}")) from None
    warnings = (*_warnings(scenario), *(made.warnings if made else ()))
    return ResolvedFleet(task, warnings, made)


def demands(scenario: FleetScenario) -> dict[str, list[float]]:
    """Requests per second in every hour (UTC) of each model, of each region by itself [seq/s]."""
    rows = {}
    for name, model in scenario.models.items():
        rates = np.array(model.demand.rates(scenario.hours, model.tokens))
        for region, part in scenario.regions.items():
            rows[f"{name} {region}"] = (part.demand * np.roll(rates, -part.utc)).tolist()
        if not scenario.regions:
            rows[name] = rates.tolist()
    return rows


def _ways(scenario: FleetScenario) -> list[tuple[int, int, float]]:
    """Return (origin, site, latency [s]) of regions that may serve requests; empty if all stay."""
    regions = list(scenario.regions.items())
    ways = [
        (i, j, latency)
        for i, (_, region) in enumerate(regions)
        for j, (to, _) in enumerate(regions)
        if i != j and (latency := region.latency_to(to)) is not None
    ]
    ends = {end for i, j, _ in ways for end in (i, j)}
    ends |= {i for i, (_, region) in enumerate(regions) if not region.demand}
    return sorted([*ways, *((i, i, 0.0) for i in ends)])


def _routes(scenario: FleetScenario, columns: Sequence[FleetColumn]) -> tuple[Route, ...]:
    """Return the routes of requests of each model and region; empty for models that all stay.

    Where a model prefills and decodes in pools by themselves, each such pool is another way.
    """
    count, routes = max(1, len(scenario.regions)), []
    for first in range(0, len(scenario.models) * count, count):
        here = [c for c in columns if first <= c.model < first + count]
        pools = sorted({(c.model - first, c.pool) for c in here if c.phase})
        stay = [(i, i, 0.0) for i in range(count)] if pools else []
        for i, j, latency in sorted({*_ways(scenario), *stay}):
            at: list[int | None] = [k for site, k in pools if site == j]
            at += [None] * (not pools or any(not c.phase for c in here))
            routes += [Route(first + i, first + j, latency, k) for k in at]
    return tuple(routes)


def _placed(scenario: FleetScenario, column: FleetColumn) -> Iterator[FleetColumn]:
    regions, pools = list(scenario.regions), list(scenario.pools)
    for k, (pool, region) in enumerate(scenario.placed_pools.values()):
        if pool == pools[column.pool]:
            place = 0 if region is None else regions.index(region)
            m = column.model * max(1, len(regions)) + place
            cell = (column.model, column.pool) if regions else None
            yield replace(column, model=m, pool=k, cell=cell)


def _window(deferrable: float | None, hours: int) -> int:
    return min(int((deferrable or 0.0) // HOUR), hours - 1)


def _offer(name: str, pool: FleetPool, owned: int) -> PoolOffer:
    """The contracts of a pool by machine and hour."""
    size = pool.machine
    hourly = HOUR * size

    def price(contract: object) -> float | None:
        return None if contract is None else contract.price * hourly  # type: ignore[attr-defined]

    spot = pool.spot
    return PoolOffer(
        name, size,
        price(pool.on_demand), pool.on_demand.most if pool.on_demand else None,
        price(pool.reserved), pool.reserved.most if pool.reserved else None,
        price(spot), spot.machines if spot else 0,
        (PREEMPTION if spot.lost is None else spot.lost) if spot else 0.0,
        spot.redo if spot else 1.0, owned,
    )  # fmt: skip


def _measured(scenario: FleetScenario) -> list[FleetColumn]:
    """The columns that the user gives."""
    pools = list(scenario.pools)
    columns = []
    for m, model in enumerate(scenario.models.values()):
        names: set[str] = set()
        for column in model.columns or ():
            label = column.name or " ".join(
                filter(None, (f"{column.pool} x{column.chips}", column.phase))
            )
            while label in names:
                label += "'"
            names.add(label)
            start = (scenario.start.time or 0.0) / HOUR
            k = pools.index(column.pool)
            late, most = column.ttft_p95, model.promises.ttft_p95
            free = most is None or column.phase == "decode"
            slack = math.inf if free or most is None else most - (most if late is None else late)
            columns.append(
                FleetColumn(m, k, label, column.chips, column.rate, start, late, None, slack,
                            column.phase or "")
            )  # fmt: skip
    return columns


def _made(scenario: FleetScenario) -> BuiltColumns | None:
    """The columns that serving questions give."""
    wanted = [m for m, model in enumerate(scenario.models.values()) if model.columns is None]
    if not wanted:
        return None
    from planner.problems.fleet.replica_columns import serving_columns

    made = serving_columns(scenario, wanted)
    from_afar = {(j, latency) for _, j, latency in _ways(scenario)}
    count = max(1, len(scenario.regions))
    placed = [
        replace(each, column=column)
        for each in made.made
        for column in _placed(scenario, each.column)
        if not each.cell.latency or (column.model % count, each.cell.latency) in from_afar
    ]
    return replace(made, made=tuple(placed))


def _warnings(scenario: FleetScenario) -> list[str]:
    """Return the warnings about a scenario."""
    notes: list[str] = []
    for name, pool in scenario.pools.items():
        if pool.spot is not None and pool.spot.lost is None:
            notes.append(
                f"pools.{name}.spot.lost: not given, {show(PREEMPTION, 'share')}/hour is taken"
            )
        if pool.reserved is None:
            continue
        if pool.on_demand is not None and pool.reserved.price > pool.on_demand.price:
            notes.append(
                f"pools.{name}: reserved at {show(pool.reserved.price, 'price')} is dearer than on "
                f"demand at {show(pool.on_demand.price, 'price')}: no machine is reserved"
            )
        term = pool.reserved.term
        if term is not None and term > scenario.hours * HOUR:
            notes.append(
                f"reserved for {show(term, 'time')}, planned over {scenario.hours} hours: assumes "
                "that these repeat"
            )
    for name, model in scenario.models.items():
        head = model.demand.column
        if model.demand.file and head and not has_unit(head):
            notes.append(
                f"models.{name}.demand: column {head} of {model.demand.file} has no unit and is "
                f"read as requests/s; put another into its head: {head} [requests/hour]"
            )
        wait = model.demand.deferrable
        if wait is not None and not HOUR <= wait < scenario.hours * HOUR:
            notes.append(
                f"models.{name}.demand.deferrable: {show(wait, 'time')} count as "
                f"{_window(wait, scenario.hours)} of the {scenario.hours} hours"
            )
    measured = [n for n, m in scenario.models.items() if m.columns is not None]
    if measured and scenario.start.time is None:
        notes.append(
            f"start.time is not given, and the size of the weights of "
            f"{', '.join(measured)} is unknown: they start at once"
        )
    return [*dict.fromkeys(notes)]
