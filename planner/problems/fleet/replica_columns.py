"""Columns from serving questions: what one replica of a model serves on each pool in its promises.

For each model and pool one question is asked for each number of chips that divides a machine, with
as many requests as a replica carries within the promises; all of them are searched together. Where
nothing fits a machine, two and four of them are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from types import MappingProxyType

from planner.catalogue.listed_prices import tier, tier_names
from planner.catalogue.profile import IN_SAMPLE
from planner.problems.fleet.fleet_task import FleetColumn
from planner.problems.fleet.question import FleetPool, FleetScenario
from planner.problems.serving import (
    PROBLEM,
    PlanPoint,
    Question,
    Task,
    TaskPair,
    benchmark_commands,
    ranked_points,
    resolve,
    single_pools,
)
from planner.problems.serving import Scenario as ServingScenario
from planner.scenario import load, resolve_keys
from planner.scenario.keys.references import AUTO
from planner.text.errors import FieldError, InputError
from planner.text.wording import excess, gap_percent, pools_text

HOUR = 3600.0
MULTI_NODE = (2, 4)  # whole machines that a replica may span
FLASH = "flash"
LATENCIES = ("ttft", "ttft_p95", "ttft_p99", "e2e")  # promises that a network's latency counts in


@dataclass(frozen=True)
class NewColumn:
    """A column with the search behind it."""

    cell: Cell
    column: FleetColumn
    pool: Question
    point: PlanPoint

    def certificate(self, bounded: bool) -> str:
        """Return the number of layouts decided and, if `bounded`, the gap of another bound."""
        words = f"{self.pool.decided.layouts:,} layouts decided"
        if not bounded:
            return words
        gap = max(0.0, 1 - self.pool.relaxation(self.point.score).value / self.point.score)
        return f"{words}; a bound lies {gap_percent(gap)} below"

    def benchmark(self, scenario: FleetScenario) -> tuple[str, ...]:
        """Commands that measure one such replica and make a profile of it.

        Empty where no repository holds the model, and for a phase alone.
        """
        if self.cell.phase:
            return ()
        candidate = self.point.candidate
        return benchmark_commands(candidate, _question(scenario, self.cell), candidate.pools[-1])


@dataclass(frozen=True)
class BuiltColumns:
    """The columns of all models, those dropped with the reason, warnings, and all searches."""

    made: tuple[NewColumn, ...]
    dropped: tuple[str, ...]
    warnings: tuple[str, ...]
    searched: tuple[NewColumn, ...]


@dataclass(frozen=True)
class Cell:
    """Model on a pool with a number of chips, for requests at a latency [s].

    `phase` is what it does alone; a prompt's cache then takes `transfer` to a decoding replica [s].
    """

    m: int
    k: int
    chips: int
    latency: float = 0.0
    phase: str = ""
    transfer: float = 0.0


def serving_columns(scenario: FleetScenario, demands: Iterable[int]) -> BuiltColumns:
    """The columns of the models of these numbers, dominated ones dropped.

    Raises FieldError for a model that no pool can hold, with the nearest that can.
    """
    models, pools = list(scenario.models.values()), list(scenario.pools.values())
    names, pool_names = list(scenario.models), list(scenario.pools)
    wanted = list(demands)
    modes = [("aggregated", ""), ("disaggregated", "decode")]
    tried = [Cell(m, k, 0, phase=phase) for m in wanted for k, pool in enumerate(pools)
             if pool.system for mode, phase in modes if mode in models[m].choose.mode]  # fmt: skip
    made, refused, looked = _in_machines(scenario, tried)
    smallest = {(c.m, c.k): c for c in (each.cell for each in made[::-1]) if c.phase}
    pairs, unpaired = _pairs(scenario, smallest.values())
    ahead, refused_ahead, looked_ahead = _in_machines(
        scenario, [replace(smallest[cell], phase="prefill") for cell in pairs], pairs
    )
    both = {(each.cell.m, each.cell.k) for each in ahead}
    made = [e for e in (*made, *ahead) if not e.cell.phase or (e.cell.m, e.cell.k) in both]
    refused, looked = {**refused, **refused_ahead}, [*looked, *looked_ahead]
    far = {latency for n, region in scenario.regions.items() for to in scenario.regions
           if to != n and (latency := region.latency_to(to)) is not None}  # fmt: skip
    third = [replace(e.cell, latency=latency) for e in made if e.cell.phase != "decode"
             for latency in sorted(far) if latency > e.column.slack]  # fmt: skip
    made += _searched(scenario, third)[0]
    faults = []
    for m in wanted:
        if not any(each.column.model == m for each in made):
            words = "; ".join(why for n, why in unpaired if n == m) or _nearest(
                scenario, [c for c in looked if c.m == m], refused, pool_names
            )
            faults.append((f"models.{names[m]}", f"no pool can hold it: {words}"))
    if faults:
        raise FieldError(*faults)
    columns, dropped = _undominated(made, names)
    warnings = [f"models.{names[m]}: {why}" for m, why in unpaired]
    for m in wanted:
        promises = models[m].promises
        if promises.ttft_p95 is None and promises.ttft_p99 is None:
            late = max(e.column.p95 or 0.0 for e in columns if e.column.model == m)
            warnings.append(
                f"models.{names[m]}.promises has no ttft_p95: its other promises and its batch "
                f"limit the load of a replica, and 95 % of requests may wait up to {late:.3g} s "
                "for the first token"
            )
    return BuiltColumns(tuple(columns), tuple(dropped), tuple(warnings), tuple(made))


def _in_machines(
    scenario: FleetScenario,
    kinds: Sequence[Cell],
    pairs: Mapping[tuple[int, int], TaskPair] = MappingProxyType({}),
) -> tuple[list[NewColumn], dict[Cell, str], list[Cell]]:
    """Replicas within a machine, of those without one on several; why others are refused; all.

    Of a kind that prefills `chips` are those of the smallest replica that decodes.
    """
    pools = list(scenario.pools.values())
    made: list[NewColumn] = []
    refused: dict[Cell, str] = {}
    looked: list[Cell] = []
    for several in (False, True):
        there = {(each.cell.m, each.cell.k, each.cell.phase) for each in made}
        cells = []
        for kind in kinds:
            if (kind.m, kind.k, kind.phase) in there:
                continue
            pool, pair = pools[kind.k], pairs.get((kind.m, kind.k))
            cells += [
                replace(kind, chips=n, transfer=float(pair.transfer(n, kind.chips)) if pair else 0)
                for n in ([n * pool.machine for n in MULTI_NODE] if several else _sizes(pool))
            ]
        more, why = _searched(scenario, cells)
        made, refused, looked = made + more, {**refused, **why}, looked + cells
    return made, refused, looked


def _sizes(pool: FleetPool) -> list[int]:
    size, sizes = pool.machine, []
    while size >= 1:
        sizes.append(size)
        if size % 2:
            break
        size //= 2
    return sorted({*sizes, 1})


def _pairs(
    scenario: FleetScenario, kinds: Iterable[Cell]
) -> tuple[dict[tuple[int, int], TaskPair], list[tuple[int, str]]]:
    """By model and pool how long a prompt's cache takes between replicas there; why it is unknown.

    Where nothing says how fast they talk, with the number of the model.
    """
    pools, pairs, unknown = list(scenario.pools.items()), {}, []
    for kind in kinds:
        name, pool = pools[kind.k]
        two = Cell(kind.m, kind.k, 2 * pool.machine)
        try:
            (pairs[kind.m, kind.k],) = resolve(_question(scenario, two, "disaggregated")).pools
        except InputError as error:
            reason = str(error).split(": ", 1)[-1].removesuffix(", or choose mode: aggregated")
            unknown.append((kind.m, f"mode: disaggregated is not possible on {name}: {reason}"))
    return pairs, unknown


def _question(scenario: FleetScenario, cell: Cell, mode: str = "aggregated") -> ServingScenario:
    """Serving question of one replica at maximum load, promises less the latency of the cell [s].

    Raises InputError where a promise is shorter than that.
    """
    model = list(scenario.models.values())[cell.m]
    pool_name, pool = list(scenario.pools.items())[cell.k]
    plain = resolve_keys(model, full_paths=True)
    offer = resolve_keys(pool, full_paths=True)
    assert model.workload is not None
    workload = {**plain["workload"], "demand": "max"}
    data = {
        "units": "base", "problem": "serving", "model": plain["model"], "system": offer["system"],
        "chips": cell.chips,
        "workload": {k: v for k, v in workload.items() if v is not None},
        "promises": {k: v - (cell.latency + cell.transfer) * (k in LATENCIES)
                     for k, v in plain["promises"].items() if v is not None},
        "choose": {"mode": cell.phase or mode, "replicas": 1},
        "profile": plain["profiles"].get(pool_name, AUTO),
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
) -> tuple[list[NewColumn], dict[Cell, str]]:
    """The column of each cell that has one, all searched together; why the others are refused."""
    tasks: list[Task] = []
    cells_of: list[Cell] = []
    refused: dict[Cell, str] = {}
    for cell in cells:
        try:
            resolution = resolve(_question(scenario, cell))
            (task,) = resolution.tasks
        except InputError as error:
            refused[cell] = str(error).split(": ", 1)[-1]
            continue
        tasks.append(task)
        cells_of.append(cell)
    made: list[NewColumn] = []
    for cell, pool in zip(cells_of, _single(tasks, cells_of, refused), strict=True):
        points = ranked_points([pool]) if pool is not None else []
        if pool is None or not points:
            continue
        made.append(replica(scenario, cell, pool, points[0]))
    return made, refused


def replica(scenario: FleetScenario, cell: Cell, pool: Question, point: PlanPoint) -> NewColumn:
    """The column of a point that a search decided."""
    planned, time = point.candidate.plan(), scenario.start.time
    band = point.candidate.band(planned)
    if band is None or band.usd_per_mtok is None or not 0 < band.coverage < 1:
        spread = None
    else:
        low, high = band.usd_per_mtok
        spread = math.log(high / low) / (2 * NormalDist().inv_cdf(0.5 + band.coverage / 2))
    weights = planned.memory_per_chip.weights * planned.chips_used
    start = weights / reading_rate() if time is None else time / HOUR
    layout, pools = pools_text({"layout": vars(planned.layout)}), list(scenario.pools)
    away = f" {1000 * cell.latency:g} ms away" if cell.latency else ""
    late = planned.demand.ttft_p95 if planned.demand else None
    # Network latency that the promises leave between a request and its replica [s].
    model = list(scenario.models.values())[cell.m]
    times = {"ttft": planned.ttft, "e2e": planned.e2e}
    if planned.demand is not None:
        times |= {"ttft_p95": planned.demand.ttft_p95, "ttft_p99": planned.demand.ttft_p99}
    promised = ((getattr(model.promises, name), time) for name, time in times.items())
    left = [most - time for most, time in promised if most is not None and time is not None]
    slack = max(0.0, min(left, default=math.inf) - cell.transfer)
    column = FleetColumn(
        cell.m, cell.k, f"{pools[cell.k]} x{cell.chips} {layout} {cell.phase}".strip() + away,
        cell.chips, _rounded(planned.requests_per_s), min(_rounded(start), 1.0),
        None if late is None else late + cell.transfer, spread,
        math.inf if cell.phase == "decode" else max(cell.latency, _rounded(slack)), cell.phase,
        spread if spread is None else _left_by_a_run(point, spread),
        layout=f"x{cell.chips} {layout}",
    )  # fmt: skip
    return NewColumn(cell, column, pool, point)


def _rounded(value: float) -> float:
    # Processors differ in the last digits, and a degenerate program in which vertex they lead to.
    return float(f"{value:.12g}")


def larger_replicas(scenario: FleetScenario, made: BuiltColumns) -> list[NewColumn]:
    """Search replicas on several machines for the models and pools found on one machine."""
    pools = list(scenario.pools.values())
    tried = {each.cell for each in made.searched}
    there = sorted({(cell.m, cell.k) for cell in tried if not cell.phase})
    cells = [Cell(m, k, times * pools[k].machine) for m, k in there for times in MULTI_NODE]
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


def _left_by_a_run(point: PlanPoint, spread: float) -> float:
    """Spread that remains after one benchmark run of the replica, read by `planner calibrate`.

    Runs scatter about a profile that knows their kind as its band says; of what the spread has
    beyond that, which all times of the replica share, a fit to one run keeps the part that this
    scatter hides (shrinkage).
    """
    scatter = min(point.candidate.task.profile.width(IN_SAMPLE, "usd_per_mtok"), spread)
    hidden = scatter / spread if spread else 1.0
    return scatter * math.sqrt(2 - hidden**2)


def reading_rate() -> float:
    """Rate of reading weights into a machine [byte/hour]: the median of listed flash drives."""
    return HOUR * median(tier(name).read_rate for name in tier_names(FLASH))


def _nearest(
    scenario: FleetScenario, cells: Sequence[Cell], refused: dict[Cell, str], pools: list[str]
) -> str:
    """Describe the pool nearest to holding a model, and its shortfall."""
    best, words = (True, math.inf), ""
    for cell in cells:
        if cell in refused:
            words = words or f"{pools[cell.k]} with {cell.chips} chips: {refused[cell]}"
            continue
        search = PROBLEM.search(_question(scenario, cell))
        for missed in search.shortfalls:
            if missed.short_by is None:
                continue
            # More chips cure a shortfall of memory, so any other shortfall explains more.
            distance = (missed.promise == "memory", missed.short_by)
            if distance < best:
                best = distance
                words = (
                    f"the nearest is {pools[cell.k]} with {cell.chips} chips, which misses "
                    f"{missed.promise} by {excess(missed.short_by)}"
                )
    return words or "no pool has a system: give one, such as hgx-h200, or columns of one's own"


def _undominated(
    made: Sequence[NewColumn], names: Sequence[str]
) -> tuple[list[NewColumn], list[str]]:
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
            and other.column.phase == mine.phase
            and other.column.chips <= mine.chips
            and other.column.rate <= mine.rate * (1 + 1e-12)
            and other.column.start <= mine.start
            and other.column.slack >= mine.slack
            and mine.chips // other.column.chips * other.column.rate >= mine.rate
        ]
        if better:
            times, smaller = better[0]
            dropped.append(
                f"{names[mine.model]} on {mine.name}: {times} x {smaller.name} serve "
                f"{times * smaller.rate:.4g} of its {mine.rate:.4g} requests/s on equally many "
                "chips"
            )
        else:
            remaining.append(candidate)
    return remaining, dropped
