"""The cheapest fleet: the program solved whole where it is small, by hours where it is large.

Large programs: the linear relaxation lifted by rounding cuts is the bound; from its point each hour
becomes whole in its turn (starts between hours carried), then machines are contracted anew, then
every hour is solved once more beside its neighbours. Where models run few replicas hours are too
alike to be solved apart: each model is planned through all of them, and covers lift the bound; then
hours are solved once more, among the replicas in use about each.

Where a model has one layout on a kind of machine, small programs say so in their rows. Of a large
one the layouts alone are made whole first, all else relaxed, and the fleet is planned among those;
no such fleet is below the bound of the program with free layouts, nor below that of the first step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.problems.fleet.cycles.cycle_bounds import cycle_bound
from planner.problems.fleet.cycles.model_covers import cover_cuts, cover_prices
from planner.problems.fleet.cycles.model_cycles import CyclePlan, improve_by_model
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import FleetProgram, fleet_program
from planner.programs import integer
from planner.text.errors import SolverError

Array = np.ndarray
SMALL_SIZE = 350  # variables; up to this size the whole program is solved to its optimum
MIDDLE = 3000  # variables; up to this size the whole program is tried with a node limit too
# Nodes times variables after which the whole program's best point is taken, with its bound: some
# 20 seconds. A count keeps answers equal on a busy machine; the clock ends a solve that hangs.
WORK_LIMIT, SECONDS = 6_000_000, 300.0
MIN_DEMAND, MIN_ROW = 1e-5, 2e-6  # of a replica's rate; [seq/s], twice the solver's tolerance
PROBE_NODES = 20  # nodes of the whole program where hours may give a better plan
MISS, HOUR_NODES = 0.01, 5  # gap relative to an hour's cost, and node limit, of an hour's program
PASSES, TARGET_GAP = 2, 0.03  # maximum further passes, and the gap that ends them
MIN_ROUTE_SHARE = 5e-6  # of the busiest demand, below which nothing goes by a route
# Replicas of a model in an hour below which each model is planned through its hours.
FEW_REPLICAS = 12
CONTRACT_NODES = 1000
ROUNDS, COVER_ROUNDS = 4, 3  # of rounding cuts, and of those of covers where programs are not large
SPAN = 4  # hours that are free together
EXTRA_COLUMNS = 2  # columns of a model added to those in use
LAYOUT_MISS, LAYOUT_NODES = 1e-3, 200  # relative gap to the relaxed cost, node limit, of layouts
LAYOUTS_FIRST = "one layout on each kind of machine, chosen first with all else relaxed"
METHOD_BRANCH_AND_BOUND = "the whole program by branch and bound (HiGHS)"
BY_CYCLES = "relaxation with cuts of covers; cycles of each model and hours apart (HiGHS)"
BY_HOURS = "relaxation with rounding cuts; hours apart, starts carried; contracts anew (HiGHS)"


@dataclass(frozen=True)
class FleetChoice:
    """Plan in numbers, with its proved lower bound; costs in USD over the horizon.

    `linear` is the relaxation without cuts, `bound` what no plan is below; `served` (models, hours)
    of each model's demand, `flows` (routes, hours) [seq/s]; `free` is the bill of free layouts
    where that was found on the way.
    """

    value: float
    firm: Array
    spot: Array
    reserved: Array
    on_demand: Array
    spot_machines: Array
    linear: integer.LinearPoint
    bound: float
    nodes: int
    method: str
    served: Array | None = None
    flows: Array | None = None
    free: float | None = None

    @property
    def gap(self) -> float:
        """Gap between the plan and its lower bound, as a share of the plan."""
        return max(0.0, (self.value - self.bound) / self.value) if self.value > 0 else 0.0


def solve_min_cost(task: FleetTask, by_hours: bool | None = None) -> FleetChoice:
    """The cheapest plan of a task; `by_hours` overrides what its size decides.

    Raises NoPoint where nothing meets the demand; SolverError where no plan is found and none is
    excluded.
    """
    task = _resolved(task)
    made = fleet_program(task)
    size = made.program.columns
    tried: list[FleetChoice | None] = []
    if by_hours is None and size <= (SMALL_SIZE if made.layouts.size else MIDDLE):
        tried.append(
            _whole(task, made, PROBE_NODES if size > SMALL_SIZE else integer.NO_NODE_LIMIT)
        )
    if made.layouts.size and not any(tried):
        return _of_one_layout(task, made, by_hours)
    proved = any(choice is not None and choice.gap <= MISS for choice in tried)
    if by_hours or (by_hours is None and size > SMALL_SIZE and not proved):
        tried += _large(task, made) if size > MIDDLE else _middle(task, made, tried)
    if not any(tried):  # a failed search does not prove that the task is infeasible
        last = _whole(task, made) if size > SMALL_SIZE else _by_hours(task, made)
        tried.append(last)
    plans = [choice for choice in tried if choice is not None]
    if not plans:
        raise SolverError(
            "no plan in whole numbers was found, though the relaxation has one; give a pool an "
            "on_demand contract without a limit, or fewer hours"
        )
    return _best(plans)


def _resolved(task: FleetTask) -> FleetTask:
    """The task whose demand in any hour is none, or a part of a replica that solvers resolve.

    Less needs the same replicas: one at least. Demand that may wait or go elsewhere stays.
    """
    least = np.zeros(len(task.models))
    elsewhere = {route.origin for route in task.routes} | {route.site for route in task.routes}
    for m in {*task.model_of.tolist()} - elsewhere - {*np.flatnonzero(task.windows).tolist()}:
        rate = float(task.rates[task.model_of == m].min())
        least[m] = min(max(MIN_DEMAND * rate, MIN_ROW), rate / 2)
    raised = np.maximum(task.demand, least[:, None])
    return replace(task, demand=np.where(task.demand > 0, raised, task.demand))


def _of_one_layout(task: FleetTask, made: FleetProgram, by_hours: bool | None) -> FleetChoice:
    """The cheapest plan found with one layout of a model on a kind of machine."""
    linear = integer.solve_lp_relaxation(made.program.compiled())
    free = solve_min_cost(replace(task, one_layout=False), by_hours)
    plans, bounds = [], [free.bound]
    used = np.flatnonzero((free.firm + free.spot).any(axis=1))
    if all(sum(np.isin(each, used).any() for each in group) < 2 for group in task.rival_layouts):
        plans.append(free)
    if not plans or free.gap > MISS:  # fewer columns are searched further
        bound, picks = _layouts_first(task, made, free)
        bounds.append(bound)
        plans += _among(task, picks, by_hours)
    if not plans:
        raise SolverError(
            "no plan with one layout of a model on a kind of machine was found; ask for layouts: "
            "free, or leave columns out"
        )
    best = _best(plans)
    bound = max(best.bound, *bounds)
    return replace(best, linear=linear, bound=bound, free=min(free.value, best.value))


def _layouts_first(
    task: FleetTask, made: FleetProgram, free: FleetChoice
) -> tuple[float, list[Array]]:
    """Lower bound on plans, and columns (n,) to plan with, one layout of each kind among them."""
    program = made.program.compiled()
    alone = np.zeros_like(program.whole)
    alone[made.layouts] = True
    best = integer.solved(replace(program, whole=alone), LAYOUT_MISS, LAYOUT_NODES, SECONDS)
    served = task.rates * (free.firm + free.spot).sum(axis=1)
    chosen = np.array([served[each].sum() for group in task.rival_layouts for each in group])
    worth = [chosen] if best is None else [best.point[made.layouts], chosen]
    picks = {tuple(_columns_left(task, each).tolist()): None for each in worth}
    return -np.inf if best is None else best.bound, [np.array(each) for each in picks]


def _columns_left(task: FleetTask, worth: Array) -> Array:
    left, start = np.ones(len(task.columns), bool), 0
    for group in task.rival_layouts:
        best = int(np.argmax(worth[start : start + len(group)]))
        start += len(group)
        for place, columns in enumerate(group):
            left[columns] = place == best
    return np.flatnonzero(left)


def _among(task: FleetTask, picks: Sequence[Array], by_hours: bool | None) -> Iterator[FleetChoice]:
    """The cheapest plan found with each choice of columns; none where one meets no demand."""
    for pick in picks:
        columns = tuple(task.columns[i] for i in pick)
        try:
            choice = solve_min_cost(replace(task, columns=columns, one_layout=False), by_hours)
        except integer.NoPoint:
            continue
        firm, spot = np.zeros((2, len(task.columns), task.hours), int)
        firm[pick], spot[pick] = choice.firm, choice.spot
        # The bound of a program with chosen columns is no bound on other choices.
        method = f"{LAYOUTS_FIRST}; {choice.method}"
        yield replace(choice, firm=firm, spot=spot, bound=-np.inf, method=method)


def _large(task: FleetTask, made: FleetProgram) -> list[FleetChoice | None]:
    """Plans of a large program: by hours where models run many replicas, else model by model.

    A plan by hours whose gap is wide is improved model by model.
    """
    if not _cyclic(task):
        return [_by_hours(task, made, PASSES)]
    linear = integer.solve_lp_relaxation(made.program.compiled())
    running = (linear.point[made.firm] + linear.point[made.spot]).sum()
    if running < FEW_REPLICAS * len(task.models) * task.hours:
        plan = _by_cycles(task, made, linear)
        return [plan or _by_hours(task, made, PASSES)]
    hours = _by_hours(task, made, 0)
    if hours is None or hours.gap <= TARGET_GAP:
        return [hours]
    return [hours, _by_cycles(task, made, linear, hours)]


def _middle(
    task: FleetTask, made: FleetProgram, tried: Sequence[FleetChoice | None]
) -> list[FleetChoice | None]:
    """A plan by hours, and the best of that and of those tried improved model by model."""
    hours = _by_hours(task, made)
    plans = [plan for plan in (*tried, hours) if plan is not None]
    if not plans or not _cyclic(task):
        return [hours]
    linear = integer.solve_lp_relaxation(made.program.compiled())
    return [hours, _by_cycles(task, made, linear, _best(plans))]


def _whole(
    task: FleetTask, made: FleetProgram, nodes: int = integer.NO_NODE_LIMIT
) -> FleetChoice | None:
    """The optimum of the whole program, or its best point after the effort; None without one."""
    program = made.program.compiled()
    linear = integer.solve_lp_relaxation(program)
    best = integer.solved(program, 0.0, min(nodes, WORK_LIMIT // made.program.columns), SECONDS)
    if best is None:
        return None
    bound = max(best.bound, linear.value)
    return _choice(task, made, best.point, linear, bound, best.nodes, METHOD_BRANCH_AND_BOUND)


def _best(plans: Sequence[FleetChoice]) -> FleetChoice:
    cheapest_plan = min(plans, key=lambda choice: choice.value)
    bound, nodes = max(plan.bound for plan in plans), sum(plan.nodes for plan in plans)
    return replace(cheapest_plan, bound=bound, nodes=nodes)


def cheapest_by_cycles(task: FleetTask) -> FleetChoice | None:
    """A plan model by model and the bound of covers; None where work waits or chips need packing.

    Raises NoPoint where nothing meets the demand.
    """
    made = fleet_program(task)
    linear = integer.solve_lp_relaxation(made.program.compiled())
    return _by_cycles(task, made, linear) if _cyclic(task) else None


def _cyclic(task: FleetTask) -> bool:
    """True if models can be planned one by one: no work waits, no routes, packing by counts."""
    return (
        not any(task.windows)
        and not task.routes
        and not any(
            integer.needs_ways(task.used_chips[task.pool_of == k], pool.size)
            for k, pool in enumerate(task.pools)
        )
    )


def _by_cycles(
    task: FleetTask,
    made: FleetProgram,
    linear: integer.LinearPoint,
    hours: FleetChoice | None = None,
) -> FleetChoice | None:
    """A plan model by model, from prices or from a plan by hours; the bound by covers.

    None where no plan is found.
    """
    program = made.program.compiled()
    cut, lifted = program, linear
    for _ in range(COVER_ROUNDS if made.program.columns <= MIDDLE else 1):
        cuts = cover_cuts(task, made, cut, lifted)
        if not cuts.low.size:
            break
        cut = cut.with_rows(cuts)
        lifted = integer.solve_lp_relaxation(cut)
    chips = np.maximum(0.0, -lifted.duals[np.stack([made.machine_rows, made.spot_rows])])
    start, reserved = None, np.round(lifted.point[made.reserved])
    if hours is not None:
        start = CyclePlan(
            hours.firm, hours.spot, hours.reserved, hours.on_demand, hours.spot_machines
        )
        reserved = hours.reserved
    plan = improve_by_model(task, cover_prices(task, made, cut, lifted), chips, reserved, start)
    if plan is None:
        return None
    point = np.zeros(made.program.columns)
    there = plan.firm + plan.spot
    for numbers, values in (
        (made.firm, plan.firm), (made.spot, plan.spot), (made.reserved, plan.reserved),
        (made.on_demand, plan.on_demand), (made.spot_machines, plan.spot_machines),
        (made.started, np.maximum(0, there - np.roll(there, 1, axis=1))),
    ):  # fmt: skip
        point[numbers] = values
    used = (point[made.firm] + point[made.spot]) > 0
    others = iter(made.others)
    for m in range(len(task.models)):
        mine = np.flatnonzero(task.model_of == m)
        rates = np.unique(task.rates[mine])
        if task.spare and rates.size > 1:
            most = np.where(used[mine], task.rates[mine][:, None], rates[0]).max(axis=0)
            point[next(others)[np.searchsorted(rates, most), np.arange(task.hours)]] = 1.0
    bound, nodes = max(lifted.value, linear.value, cycle_bound(task, made, lifted)), 0
    if hours is None and program.value(point) * (1 - TARGET_GAP) > bound:
        around = there + np.roll(there, 1, axis=1) + np.roll(there, -1, axis=1)
        parts = [_hour(made, t, np.flatnonzero(around[:, t])) for t in range(task.hours)]
        point, nodes = integer.descend(program, point, parts, MISS * bound / task.hours, HOUR_NODES)
    return _choice(task, made, point, linear, bound, nodes, BY_CYCLES)


def _by_hours(task: FleetTask, made: FleetProgram, passes: int = PASSES) -> FleetChoice | None:
    """A plan hour by hour, None if an hour has none, and the bound; raises NoPoint."""
    program = made.program.compiled()
    linear = integer.solve_lp_relaxation(program)
    hours, middle = task.hours, made.program.columns <= MIDDLE
    cut, lifted, _ = integer.add_rounding_cuts(program, ROUNDS) if middle else (program, linear, 0)
    parts = [_hour(made, t, _promising(task, made, lifted, t)) for t in range(hours)]
    contracts = np.concatenate([
        made.reserved, made.on_demand.ravel(), made.spot_machines.ravel()
    ])  # fmt: skip
    point = lifted.point.copy()
    point[made.reserved] = np.floor(point[made.reserved] + 0.5)
    peak = int(np.argmax(task.demand.sum(axis=0)))
    miss = MISS * linear.value / hours
    try:
        point, nodes = integer.descend(cut, point, parts[peak:] + parts[:peak], miss, HOUR_NODES)
        point, more = integer.descend(cut, point, [contracts], 0.0, CONTRACT_NODES)
    except integer.NoPoint:
        return None
    nodes, bound = nodes + more, max(lifted.value, linear.value)
    for turn in range(passes):
        if program.value(point) * (1 - TARGET_GAP) <= bound:
            break
        spans = _spans(parts, contracts, turn) if middle else [*parts, contracts]
        try:
            point, more = integer.descend(cut, point, spans, miss / 2, 4 * HOUR_NODES)
        except integer.NoPoint:  # hours violate rows slightly: the plan stays, and is checked
            break
        nodes += more
    return _choice(task, made, point, linear, bound, nodes, BY_HOURS)


def _spans(parts: list[Array], contracts: Array, turn: int) -> list[Array]:
    hours = len(parts)
    starts = range(turn, hours + turn, SPAN - 1)
    spans = [[parts[(s + i) % hours] for i in range(min(SPAN, hours))] for s in starts]
    return [*(np.unique(np.concatenate(span)) for span in spans), contracts]


def _promising(task: FleetTask, made: FleetProgram, linear: integer.LinearPoint, t: int) -> Array:
    around = [(t + shift) % task.hours for shift in (-1, 0, 1)]
    used = (linear.point[made.firm] + linear.point[made.spot])[:, around].max(axis=1) > 1e-6
    dear = np.minimum(linear.reduced[made.firm[:, t]], linear.reduced[made.spot[:, t]])
    for m in range(len(task.models)):
        mine = np.flatnonzero(task.model_of == m)
        used[mine[np.argsort(dear[mine] / task.rates[mine], kind="stable")[:EXTRA_COLUMNS]]] = True
    return np.flatnonzero(used)


def _hour(made: FleetProgram, t: int, columns: Array) -> Array:
    after = (t + 1) % made.firm.shape[1]
    of_columns = [each[columns, t] for each in (made.firm, made.spot, made.started)]
    machines = [each[:, t] for each in (made.on_demand, made.spot_machines, *made.others)]
    parts = [*of_columns, *machines, *made.deferred, made.started[columns, after]]
    return np.unique(np.concatenate(parts))


def _choice(
    task: FleetTask, made: FleetProgram, point: Array, linear: integer.LinearPoint, bound: float,
    nodes: int, method: str,
) -> FleetChoice:  # fmt: skip
    def whole(numbers: Array) -> Array:
        return np.round(point[numbers]).astype(int)

    served = task.demand.copy()
    delayed = [m for m, window in enumerate(task.windows) if window]
    for m, numbers in zip(delayed, made.deferred[::2], strict=True):
        served[m] = point[numbers]
    # Requests by route without noise of the solver; routes of a model sum to its served demand.
    flows = point[made.flows]
    flows = np.where(flows > MIN_ROUTE_SHARE * task.demand.max(initial=0.0), flows, 0.0)
    for m in {route.origin for route in task.routes}:
        mine = [route.origin == m for route in task.routes]
        total = flows[mine].sum(axis=0)
        flows[mine] *= np.divide(served[m], total, out=np.zeros_like(total), where=total > 0)
    return FleetChoice(
        float(made.program.compiled().cost @ point), whole(made.firm), whole(made.spot),
        whole(made.reserved), whole(made.on_demand), whole(made.spot_machines), linear, bound,
        nodes, method, served, flows,
    )  # fmt: skip
