"""Columns from serving questions: what one replica of a model serves on each pool in its promises.

For each model and pool one question is asked for each number of chips that divides a machine, with
as many requests as a replica carries within the promises; all of them are searched together. Where
nothing fits a machine, two and four of them are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from planner.catalogue.listed_prices import tier, tier_names
from planner.problems.fleet.fleet_task import FleetColumn
from planner.problems.fleet.question import FleetModel, FleetPool, FleetScenario
from planner.problems.serving import (
    PROBLEM,
    Point,
    Question,
    ServingPoint,
    Task,
    ranked,
    resolve,
    single_pools,
)
from planner.problems.serving import Scenario as ServingScenario
from planner.scenario import load, resolved
from planner.text.errors import FieldError, InputError
from planner.text.wording import below, excess, laid_out

HOUR = 3600.0
SEVERAL = (2, 4)  # whole machines that a replica may span
FLASH = "flash"


@dataclass(frozen=True)
class MadeColumn:
    """A column with the search behind it."""

    cell: Cell
    column: FleetColumn
    pool: Question
    point: Point

    def certificate(self, bounded: bool) -> str:
        """How many layouts were decided; where wanted how far a bound by other means lies below."""
        words = f"{self.pool.decided.layouts:,} layouts decided"
        if not bounded:
            return words
        gap = max(0.0, 1 - self.pool.relaxation(self.point.score).value / self.point.score)
        return f"{words}; a bound lies {below(gap)} below"


@dataclass(frozen=True)
class MadeColumns:
    """The columns of all models, those dropped with the reason, warnings, and all searches."""

    made: tuple[MadeColumn, ...]
    dropped: tuple[str, ...]
    warnings: tuple[str, ...]
    searched: tuple[MadeColumn, ...]


@dataclass(frozen=True)
class Cell:
    """A model on a pool with a number of chips."""

    m: int
    k: int
    chips: int


def serving_columns(scenario: FleetScenario, demands: Iterable[int]) -> MadeColumns:
    """The columns of the models of these numbers, dominated ones dropped.

    Raises FieldError for a model that no pool can hold, with the nearest that can.
    """
    models, pools = list(scenario.models.values()), list(scenario.pools.values())
    names, pool_names = list(scenario.models), list(scenario.pools)
    wanted = list(demands)
    first = [Cell(m, k, n) for m in wanted for k, pool in enumerate(pools) if pool.system
             for n in _sizes(pool)]  # fmt: skip
    made, refused = _searched(scenario, first)
    there = {(each.column.model, each.column.pool) for each in made}
    second = [Cell(m, k, times * pool.machine) for m in wanted for k, pool in enumerate(pools)
              if pool.system and (m, k) not in there for times in SEVERAL]  # fmt: skip
    more, refused_too = _searched(scenario, second)
    made += more
    faults = []
    for m in wanted:
        if not any(each.column.model == m for each in made):
            cells = [cell for cell in (*first, *second) if cell.m == m]
            words = _nearest(scenario, cells, {**refused, **refused_too}, pool_names)
            faults.append((f"models.{names[m]}", f"no pool can hold it: {words}"))
    if faults:
        raise FieldError(*faults)
    columns, dropped = _undominated(made, names)
    warnings = []
    for m in wanted:
        promises = models[m].promises
        if promises.ttft_p95 is None and promises.ttft_p99 is None:
            late = max(e.column.p95 or 0.0 for e in columns if e.column.model == m)
            warnings.append(
                f"models.{names[m]}.promises has no ttft_p95: a replica is loaded as far as its "
                f"other promises and its batch allow, and the first token comes within {late:.3g} "
                "s for 95 % of requests at most"
            )
    return MadeColumns(tuple(columns), tuple(dropped), tuple(warnings), tuple(made))


def _sizes(pool: FleetPool) -> list[int]:
    """Numbers of chips that divide a machine, by twos."""
    size, sizes = pool.machine, []
    while size >= 1:
        sizes.append(size)
        if size % 2:
            break
        size //= 2
    return sorted({*sizes, 1})


def _question(model: FleetModel, pool: FleetPool, chips: int) -> ServingScenario:
    """The serving question of one replica that carries as much as it can."""
    plain = resolved(model, full_paths=True)
    offer = resolved(pool, full_paths=True)
    assert model.workload is not None
    workload = {**plain["workload"], "demand": "max"}
    data = {
        "problem": "serving", "model": plain["model"], "system": offer["system"], "chips": chips,
        "workload": {k: v for k, v in workload.items() if v is not None},
        "promises": {k: v for k, v in plain["promises"].items() if v is not None},
        "choose": {"mode": "aggregated", "replicas": 1},
    }  # fmt: skip
    contracts = [c for c in (pool.on_demand, pool.reserved, pool.spot) if c is not None]
    described = isinstance(offer["system"], dict) and offer["system"].get("price")
    if contracts and not described:
        data["price"] = contracts[0].price
    question = load(data)
    assert isinstance(question, ServingScenario)
    return question


def _searched(
    scenario: FleetScenario, cells: Sequence[Cell]
) -> tuple[list[MadeColumn], dict[Cell, str]]:
    """The column of each cell that has one, all searched together; why the others are refused."""
    models, pools = list(scenario.models.values()), list(scenario.pools.values())
    tasks: list[Task] = []
    cells_of: list[Cell] = []
    refused: dict[Cell, str] = {}
    for cell in cells:
        try:
            resolution = resolve(_question(models[cell.m], pools[cell.k], cell.chips))
            (task,) = resolution.tasks
        except InputError as error:
            refused[cell] = str(error).split(": ", 1)[-1]
            continue
        tasks.append(task)
        cells_of.append(cell)
    made: list[MadeColumn] = []
    for cell, pool in zip(cells_of, _single(tasks, cells_of, refused), strict=True):
        points = ranked([pool]) if pool is not None else []
        if pool is None or not points:
            continue
        made.append(replica(scenario, cell, pool, points[0]))
    return made, refused


def replica(scenario: FleetScenario, cell: Cell, pool: Question, point: Point) -> MadeColumn:
    """The column of a point that a search decided."""
    planned, time = point.candidate.plan(), scenario.start.time
    weights = planned.memory_per_chip.weights * planned.chips_used
    start = start_hours(weights) if time is None else time / HOUR
    layout, pools = laid_out({"layout": vars(planned.layout)}), list(scenario.pools)
    column = FleetColumn(
        cell.m, cell.k, f"{pools[cell.k]} x{cell.chips} {layout}", cell.chips,
        planned.requests_per_s, min(start, 1.0),
        planned.demand.ttft_p95 if planned.demand else None, _spread(point, planned),
    )  # fmt: skip
    return MadeColumn(cell, column, pool, point)


def larger_replicas(scenario: FleetScenario, made: MadeColumns) -> list[MadeColumn]:
    """Replicas on several machines of the models and pools that one machine holds."""
    pools = list(scenario.pools.values())
    tried = {each.cell for each in made.searched}
    there = sorted({(cell.m, cell.k) for cell in tried})
    cells = [Cell(m, k, times * pools[k].machine) for m, k in there for times in SEVERAL]
    return _searched(scenario, [cell for cell in cells if cell not in tried])[0]


def _single(
    tasks: list[Task], cells: list[Cell], refused: dict[Cell, str]
) -> list[Question | None]:
    """Every task searched; those that admit no layout one by one, so that each is named."""
    try:
        return list(single_pools(tasks))
    except InputError:
        pools: list[Question | None] = []
        for task, cell in zip(tasks, cells, strict=True):
            try:
                pools += single_pools([task])
            except InputError as error:
                refused[cell] = str(error)
                pools.append(None)
        return pools


def _spread(point: Point, planned: ServingPoint) -> float | None:
    """Standard deviation of the logarithm of what is measured over what is planned."""
    band = point.candidate.band(planned)
    if band is None or band.usd_per_mtok is None or not 0 < band.coverage < 1:
        return None
    low, high = band.usd_per_mtok
    return math.log(high / low) / (2 * NormalDist().inv_cdf(0.5 + band.coverage / 2))


def start_hours(weights: float) -> float:
    """Hours that weights [byte] take to read, at the median rate of the flash drives listed."""
    return weights / median(tier(name).read_rate for name in tier_names(FLASH)) / HOUR


def _nearest(
    scenario: FleetScenario, cells: Sequence[Cell], refused: dict[Cell, str], pools: list[str]
) -> str:
    """The pool that is nearest to holding a model, and what is missing there."""
    models, offers = list(scenario.models.values()), list(scenario.pools.values())
    best, words = math.inf, ""
    for cell in cells:
        if cell in refused:
            words = words or f"{pools[cell.k]} with {cell.chips} chips: {refused[cell]}"
            continue
        search = PROBLEM.search(_question(models[cell.m], offers[cell.k], cell.chips))
        for missed in search.shortfalls:
            if missed.short_by is not None and missed.short_by < best:
                best = missed.short_by
                words = (
                    f"the nearest is {pools[cell.k]} with {cell.chips} chips, which misses "
                    f"{missed.promise} by {excess(missed.short_by)}"
                )
    return words or "no pool has a system"


def _undominated(
    made: Sequence[MadeColumn], names: Sequence[str]
) -> tuple[list[MadeColumn], list[str]]:
    """The columns that no others do without, and of each that is dropped the proof.

    Copies of a smaller column in the same chips that serve at least as much stand in its place:
    they have room wherever it has, start no later, and lose less when one of them is down.
    """
    remaining, dropped = [], []
    for candidate in made:
        mine = candidate.column
        better = [
            (mine.chips // other.column.chips, other.column)
            for other in made
            if other is not candidate
            and (other.column.model, other.column.pool) == (mine.model, mine.pool)
            and other.column.chips <= mine.chips
            and other.column.rate <= mine.rate * (1 + 1e-12)
            and other.column.start <= mine.start
            and mine.chips // other.column.chips * other.column.rate >= mine.rate
        ]
        if better:
            times, smaller = better[0]
            dropped.append(
                f"{names[mine.model]} on {mine.name}: {times} x {smaller.name} serve "
                f"{times * smaller.rate:.4g} of its {mine.rate:.4g} requests/s in as many chips"
            )
        else:
            remaining.append(candidate)
    return remaining, dropped
