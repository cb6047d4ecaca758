"""From a fleet's scenario to its numbers: demand by hour, contracts by machine, columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.fleet.fleet_task import FleetColumn, FleetTask, PoolOffer
from planner.problems.fleet.question import MOST_VARIABLES, FleetPool, FleetScenario
from planner.text.errors import FieldError
from planner.text.quantities import show

if TYPE_CHECKING:
    from planner.problems.fleet.replica_columns import MadeColumns

HOUR = 3600.0
LOST = 0.05  # chance per hour that a spot machine is lost, where nothing says


@dataclass(frozen=True)
class ResolvedFleet:
    """What a scenario asks, in numbers, and what is worth saying of it."""

    task: FleetTask
    warnings: tuple[str, ...]
    made: MadeColumns | None = None


def resolve_fleet(scenario: FleetScenario) -> ResolvedFleet:
    """The task of a scenario.

    Raises FieldError for what cannot be asked.
    """
    pools = tuple(
        _offer(name, pool, scenario.have.get(name, 0)) for name, pool in scenario.pools.items()
    )
    demand = np.array([
        model.demand.rates(scenario.hours, model.tokens) for model in scenario.models.values()
    ])  # fmt: skip
    made = _made(scenario)
    columns = (*_measured(scenario), *(each.column for each in (made.made if made else ())))
    size = (3 * len(columns) + 2 * len(pools)) * scenario.hours + len(pools)
    if size > MOST_VARIABLES:
        raise FieldError(("hours", (
            f"{size:,} whole variables are more than {MOST_VARIABLES:,}; what would work: hours: "
            "168 or 24, a typical week or day, or one model for those with one set of columns"
        )))  # fmt: skip
    models = scenario.models.values()
    task = FleetTask(
        tuple(scenario.models),
        pools,
        columns,
        demand,
        tuple(_window(m.demand.deferrable, scenario.hours) for m in models),
        tuple(m.tokens for m in models),
        scenario.spare.replicas,
        scenario.spare.headroom,
        scenario.start.cost == "paid",
        scenario.spot_share,
    )
    warnings = (*_warnings(scenario), *(made.warnings if made else ()))
    return ResolvedFleet(task, warnings, made)


def _window(deferrable: float | None, hours: int) -> int:
    """Whole hours by which work may wait, fewer than the horizon has."""
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
        (LOST if spot.lost is None else spot.lost) if spot else 0.0,
        spot.redo if spot else 1.0, owned,
    )  # fmt: skip


def _measured(scenario: FleetScenario) -> list[FleetColumn]:
    """The columns that the user gives."""
    pools = list(scenario.pools)
    columns = []
    for m, model in enumerate(scenario.models.values()):
        names: set[str] = set()
        for column in model.columns or ():
            label = column.name or f"{column.pool} x{column.chips}"
            while label in names:
                label += "'"
            names.add(label)
            start = (scenario.start.time or 0.0) / HOUR
            k = pools.index(column.pool)
            columns.append(FleetColumn(m, k, label, column.chips, column.rate, start))
    return columns


def _made(scenario: FleetScenario) -> MadeColumns | None:
    """The columns that serving questions give."""
    wanted = [m for m, model in enumerate(scenario.models.values()) if model.columns is None]
    if not wanted:
        return None
    from planner.problems.fleet.replica_columns import serving_columns

    return serving_columns(scenario, wanted)


def _warnings(scenario: FleetScenario) -> list[str]:
    """What is worth saying of a scenario."""
    notes: list[str] = []
    for name, pool in scenario.pools.items():
        if pool.spot is not None and pool.spot.lost is None:
            notes.append(f"pools.{name}.spot.lost: not given, {show(LOST, 'share')}/hour is taken")
        if pool.reserved is None:
            continue
        if pool.on_demand is not None and pool.reserved.price > pool.on_demand.price:
            notes.append(
                f"pools.{name}: reserved at {show(pool.reserved.price, 'price')} is dearer than on "
                f"demand at {show(pool.on_demand.price, 'price')}: nothing is reserved"
            )
        term = pool.reserved.term
        if term is not None and term > scenario.hours * HOUR:
            notes.append(
                f"pools.{name}.reserved.term: {show(term, 'time')} are longer than the "
                f"{scenario.hours} hours of the plan: the price is that of {scenario.hours} hours, "
                "as if they repeated through the term"
            )
    measured = [n for n, m in scenario.models.items() if m.columns is not None]
    if measured and scenario.start.time is None:
        notes.append(
            f"start.time is not given, and nothing says how large the weights of "
            f"{', '.join(measured)} are: they start at once"
        )
    return notes
