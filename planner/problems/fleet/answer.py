"""The answer to a scenario of fleets: the plan, checked again, its prices, its proof."""

from dataclasses import replace

import numpy as np

from planner.problems.fleet import plan as records
from planner.problems.fleet import robust as chances
from planner.problems.fleet.bills import model_bills, restricted_bills
from planner.problems.fleet.cycles.column_pricing import priced_fleet
from planner.problems.fleet.evaluation import WholePlan, bill, broken_rules, served_share
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import FleetProgram, fleet_program
from planner.problems.fleet.question import FleetScenario
from planner.problems.fleet.resolve import ResolvedFleet
from planner.problems.fleet.search import FleetChoice, solve_min_cost
from planner.problems.fleet.shortage import shortfalls
from planner.programs.integer import NoPoint
from planner.protocol.plan import BindingLimit, KnownAnswer, MissedPromise, Provenance
from planner.scenario import resolve_keys
from planner.text.errors import SolverError
from planner.text.quantities import MONTH_HOURS
from planner.text.wording import percent

DUALS = "of the relaxation, whole numbers aside"
HOUR = 3600.0
ROUNDING_STEP = 0.01
MIN_SERVED_SHARE = 0.99  # of models and hours, below which a warning is due
ZERO_PRICE = 1e-9  # USD/hour of a request/s: what solvers take for none
REL_TOL = 1e-6  # relative, of the bill worked out twice


def answer(question: FleetScenario) -> records.FleetPlan:
    """The cheapest fleet of a scenario with its proof.

    Raises FieldError for what cannot be asked; SolverError if the plan does not survive its check.
    """
    priced = priced_fleet(question)
    resolution = priced.resolution
    task = resolution.task
    sure = None
    try:
        if question.chance is None:
            choice = solve_min_cost(task)
        else:
            errors = chances.forecast_errors(task, question.errors.demand, question.errors.speed)
            sure = chances.robust(task, errors, question.chance)
            choice, task = sure.choice, sure.task
    except NoPoint:
        return records.FleetPlan(KnownAnswer(_infeasible(question, resolution)), question)
    recheck(task, choice)
    point = fleet_point(
        resolution.task, replace(choice, flows=chances.forecast_flows(resolution.task, choice))
    )
    complete = records.FleetAnswer(
        scenario=resolve_keys(question),
        plan=point,
        gap=choice.gap,
        bound=choice.linear.value / task.hours,
        certificate=records.FleetCertificate(
            choice.method, len(task.columns), choice.nodes, point.usd_per_hour,
            choice.bound / task.hours, choice.gap, priced.pricing,
        ),
        binding=tuple(_binding(task, choice)),
        columns=_columns(resolution, choice),
        dropped=resolution.made.dropped if resolution.made else (),
        prices=prices(task, choice, resolution.task.demand),
        beside=restricted_bills(task, choice),
        robust=_robust(question, resolution, sure),
        provenance=Provenance(warnings=(*resolution.warnings, *_too_few(point))),
    )  # fmt: skip
    return records.FleetPlan(KnownAnswer(complete), question)


def _too_few(point: records.FleetPoint) -> tuple[str, ...]:
    if point.served is None or point.served >= MIN_SERVED_SHARE:
        return ()
    return (
        f"spot machines that are lost leave demand unserved in {percent(1 - point.served)} of "
        "hours and models: lower spot_share, or raise spare.replicas",
    )


def _robust(
    scenario: FleetScenario, resolution: ResolvedFleet, sure: chances.RobustChoice | None
) -> records.RobustFleet | None:
    """Service level, margins and costs of a plan with a chance, and savings of replica runs."""
    if sure is None or scenario.chance is None:
        return None
    task = resolution.task
    models, pools = list(scenario.models), list(scenario.pools)
    made = {each.column: each for each in (resolution.made.made if resolution.made else ())}
    runs = []
    for run in sure.runs:
        column = task.columns[run.column]
        m, k = column.cell or (column.model, column.pool)
        commands = made[column].benchmark(scenario) if column in made else ()
        runs.append(records.BenchmarkRun(
            models[m], pools[k], column.name, run.usd_per_hour, run.before, run.after, commands
        ))  # fmt: skip
    return records.RobustFleet(
        scenario.chance,
        sure.share,
        dict(zip(task.models, sure.margins, strict=True)),
        tuple(records.ChanceLevel(*level) for level in sure.curve),
        dict(zip(task.models, sure.measured, strict=True)),
        tuple(runs),
        chances.OUTCOMES,
    )


def recheck(task: FleetTask, choice: FleetChoice) -> None:
    """Refuse a plan that breaks a rule, or whose bill is not its value; raises SolverError."""
    plan = _in_numbers(choice)
    broken = broken_rules(task, plan)
    if broken:
        raise SolverError(f"the plan breaks a rule: {'; '.join(broken[:3])}")
    usd = bill(task, plan)
    if abs(usd - choice.value) > REL_TOL * max(usd, 1e-9):
        raise SolverError(f"the plan's bill is ${usd:.6g}, its program says ${choice.value:.6g}")


def _in_numbers(choice: FleetChoice) -> WholePlan:
    arrays = (choice.firm, choice.spot, choice.reserved, choice.on_demand, choice.spot_machines)
    flows: list[list[float]] = [] if choice.flows is None else choice.flows.tolist()
    firm, spot, reserved, on_demand, spot_machines = (each.tolist() for each in arrays)
    return WholePlan(firm, spot, reserved, on_demand, spot_machines, flows)


def fleet_point(task: FleetTask, choice: FleetChoice) -> records.FleetPoint:
    """The plan as it is printed."""
    hourly = choice.value / task.hours
    names = [pool.name for pool in task.pools]

    def machines(table: np.ndarray) -> dict[str, tuple[int, ...]]:
        return {n: tuple(map(int, row)) for n, row in zip(names, table, strict=True)}

    def replicas(table: np.ndarray) -> dict[str, dict[str, tuple[int, ...]]]:
        rows: dict[str, dict[str, tuple[int, ...]]] = {model: {} for model in task.models}
        for column, row in zip(task.columns, table, strict=True):
            if row.any():
                rows[task.models[column.model]][column.name] = tuple(map(int, row))
        return rows

    by_model: dict[str, dict[str, tuple[float, ...]]] = {}
    for route, flow in zip(task.routes, () if choice.flows is None else choice.flows, strict=True):
        if flow.any():
            by_site = by_model.setdefault(task.models[route.origin], {})
            pair = "" if route.pool is None else f" in two pools of {task.pools[route.pool].name}"
            by_site[f"{task.models[route.site]}{pair}"] = tuple(map(float, flow))
    # Share of the chips of each pool that hold replicas; of pools that are paid or owned.
    shares = {}
    for k, pool in enumerate(task.pools):
        mine = task.pool_of == k
        used = (task.used_chips[mine, None] * (choice.firm + choice.spot)[mine]).sum()
        paid = (choice.reserved[k] + pool.owned) * task.hours
        paid += choice.on_demand[k].sum() + choice.spot_machines[k].sum()
        if paid:
            shares[pool.name] = float(used / (paid * pool.size))
    return records.FleetPoint(
        hourly,
        24 * hourly,
        MONTH_HOURS * hourly,
        {n: int(count) for n, count in zip(names, choice.reserved, strict=True)},
        machines(choice.on_demand),
        machines(choice.spot_machines),
        replicas(choice.firm + choice.spot),
        replicas(choice.spot),
        shares,
        model_bills(task, choice),
        served_share(task, _in_numbers(choice)),
        by_model,
    )


def prices(
    task: FleetTask, choice: FleetChoice, forecast: np.ndarray | None = None
) -> records.FleetPrices:
    """Shadow prices of the relaxation [USD/hour].

    Of a request/s of the `forecast` (models, hours) where the task's demand is raised above it.
    """
    made, linear = fleet_program(task), choice.linear
    met = linear.duals[made.station_rows]
    served = task.demand.copy()
    for m, numbers in zip(np.flatnonzero(task.windows), made.deferred[::2], strict=True):
        served[m] = linear.point[numbers]
    demand = linear.duals[made.demand_rows]
    loads = np.zeros_like(met)
    firm = linear.duals[made.firm_rows] * (1 - task.spot_share)
    spare = dict.fromkeys(task.models, 0.0) if task.spare else {}
    for s, station in enumerate(task.stations):
        loads[s] = linear.point[made.flows[list(station.flows)]].sum(axis=0)
        if not station.flows:
            loads[s] = served[station.model]
            demand[station.model] = met[s] * (1 + task.headroom) + firm[s]
        if task.spare:
            room = _capacity(task, made, linear.point, task.at(station))
            beyond = met[s] @ (room - (1 + task.headroom) * loads[s])
            spare[task.models[station.model]] += float(beyond) / task.spare / task.hours
    for m in np.flatnonzero(task.windows):
        later = [np.roll(demand[m], -shift) for shift in range(task.windows[m] + 1)]
        demand[m] = np.min(later, axis=0)
    demand[np.abs(demand) < ZERO_PRICE] = 0.0
    if forecast is not None:
        demand *= np.divide(task.demand, forecast, np.ones_like(demand), where=forecast > 0)
    sizes = np.array([pool.size for pool in task.pools])
    machine = -linear.duals[made.machine_rows] * sizes[:, None]
    more = -np.minimum(linear.reduced[made.reserved], 0.0) / task.hours
    return records.FleetPrices(
        DUALS,
        {m: tuple(map(float, row)) for m, row in zip(task.models, demand, strict=True)},
        {p.name: tuple(map(float, row)) for p, row in zip(task.pools, machine, strict=True)},
        {
            pool.name: float(worth)
            for pool, worth in zip(task.pools, more, strict=True)
            if pool.reserved is not None
        },
        float((met * loads).sum()) / task.hours * ROUNDING_STEP,
        spare,
    )


def _capacity(
    task: FleetTask, made: FleetProgram, point: np.ndarray, mine: np.ndarray
) -> np.ndarray:
    firm, spot, started = (point[each[mine]] for each in (made.firm, made.spot, made.started))
    there = firm + (1 - task.lost[mine])[:, None] * spot - task.starts[mine][:, None] * started
    return np.asarray(task.rates[mine] @ there)


def _binding(task: FleetTask, choice: FleetChoice) -> list[BindingLimit]:
    """Contracts at their limits, with d ln bill / d ln limit of the relaxation."""
    made, limits = fleet_program(task), []
    reduced = choice.linear.reduced
    for k, pool in enumerate(task.pools):
        for name, most, numbers, taken in (
            ("reserved.most", pool.reserved_most, made.reserved[k : k + 1], choice.reserved[k]),
            ("spot.machines", pool.spot_most, made.spot_machines[k], choice.spot_machines[k].max()),
        ):
            if most and taken == most:
                slope = float(np.minimum(reduced[numbers], 0.0).sum()) * most / choice.value
                limits.append(BindingLimit(f"pools.{pool.name}.{name}", slope))
    return limits


def _columns(
    resolution: ResolvedFleet, choice: FleetChoice | None = None
) -> tuple[records.PlannedColumn, ...]:
    """Every column; the bound behind a search is worked out for those that the plan uses."""
    task = resolution.task
    used = set() if choice is None else set(np.flatnonzero((choice.firm + choice.spot).any(axis=1)))
    made = {each.column: each for each in (resolution.made.made if resolution.made else ())}
    return tuple(
        records.PlannedColumn(
            task.models[c.model], c.name, task.pools[c.pool].name, c.chips, c.rate, c.start * HOUR,
            c.p95, i in used, made[c].certificate(i in used) if c in made else None,
        )
        for i, c in enumerate(task.columns)
    )  # fmt: skip


def _infeasible(scenario: FleetScenario, resolution: ResolvedFleet) -> records.FleetAnswer:
    """Answer to an infeasible question: hours and models that fall short, and the repair."""
    task = resolution.task
    return records.FleetAnswer(
        scenario=resolve_keys(scenario),
        certificate=records.FleetCertificate(
            "no plan keeps the rules", len(task.columns), 0, None, None, None
        ),
        columns=_columns(resolution),
        infeasible=_short(scenario, task),
        provenance=Provenance(warnings=resolution.warnings),
    )


def _short(scenario: FleetScenario, task: FleetTask) -> tuple[MissedPromise, ...]:
    """Shortfalls of demand as forecast or, if that is feasible, with the margin of the chance."""
    rows = shortfalls(task)
    if rows or scenario.chance is None:
        return rows
    share = percent(scenario.chance)
    errors = chances.forecast_errors(task, scenario.errors.demand, scenario.errors.speed)
    rows = shortfalls(chances.with_margins(task, errors, scenario.chance))
    return tuple(
        replace(row, expression=f"{row.expression}, with the margin that a chance of {share} takes")
        for row in rows
    ) or (MissedPromise("chance", None, f"no margin that was tried keeps {share} of the draws"),)
