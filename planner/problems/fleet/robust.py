"""Plans that keep their promises with a stated chance: demand and speed are drawn.

In a draw every model's demand is the forecast times a factor, and every replica serves its rate
times another, one of each model and pool: both log-normal, with the standard deviations that the
scenario gives; of a column that a serving question gave the speed's is that of its band. A draw is
kept where all demand is met in all hours. The plan is the cheapest for demand raised, and rates
lowered, by exp(z * sigma) together, sigma that of demand over the column's speed: the z of models
together keep the share asked at the least bill, and are moved together until the plan keeps it on
draws of one seed; what it keeps is then counted on draws of another.

What a benchmark run is worth is the mean of what plans cost less that are made anew after it, at
the same chance: each outcome moves the rates of a model on a kind of machine, and all leave less
doubt of them (expected value of sample information; relaxations, whole numbers aside).
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from planner.catalogue.coefficient_spread import NOISE
from planner.problems.fleet.bills import MAX_EXACT_HOURS, mean_day, replica_starts
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.search import MIDDLE, FleetChoice, solve_min_cost
from planner.programs.integer import NoPoint, solve_lp_relaxation

Array = np.ndarray
DRAWS, SEED, UNSEEN = 2000, 1, 2  # draws; seed of the search; seed of the out-of-sample test
STEPS, MARGIN_SPREAD = 5, 0.6  # plans tried, and how far their z move together
CHANCE_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
OUTCOMES = 16  # of a run, equally likely
RUNS, MAX_RUNS = 12, 4  # that are valued at most, the busiest first; of large programs
SAVES = 1e-6  # of the bill


@dataclass(frozen=True)
class Errors:
    """Standard deviations of the logarithms of demand (M,) and of speed (C,).

    `left` is what one benchmark run leaves of that of speed (C,).
    """

    demand: Array
    speed: Array
    left: Array


@dataclass(frozen=True)
class ValuedRun:
    """Benchmark run of a column, for all columns of its cell, and its saving [USD/hour]."""

    column: int
    usd_per_hour: float
    before: float
    after: float


@dataclass(frozen=True)
class RobustChoice:
    """A plan with the margin of each model's demand, the share it keeps unseen, and the curve.

    `curve` are levels with what no plan is below there [USD/hour]; `measured` what knowing a
    model's speed would save at the level asked [USD/hour], `runs` what benchmark runs would, the
    best first.
    """

    choice: FleetChoice
    task: FleetTask
    margins: tuple[float, ...]
    share: float
    curve: tuple[tuple[float, float], ...]
    measured: tuple[float, ...]
    runs: tuple[ValuedRun, ...]


def robust(task: FleetTask, errors: Errors, chance: float) -> RobustChoice:
    """The cheapest plan found that keeps a share of the draws.

    Raises NoPoint where nothing meets the raised demand.
    """
    use = linear_use(task)
    levels = margin_levels(task, errors, use, chance)
    low, high = -MARGIN_SPREAD, MARGIN_SPREAD
    best: tuple[FleetTask, FleetChoice, Array] | None = None
    for turn in range(STEPS):
        shift = 0.0 if turn == 0 else (low + high) / 2
        raised = _raised(task, errors, levels + shift)
        choice = solve_min_cost(raised)
        if holdout_service_level(task, choice, errors, SEED) >= chance:
            if best is None or choice.value < best[1].value:
                served = task.rates * (choice.firm + choice.spot).sum(axis=1)
                spreads = _mean_spreads(task, errors, served)
                best = (raised, choice, np.exp((levels + shift) * spreads))
            high = shift
        else:
            low = shift
            high = max(high, low + MARGIN_SPREAD / 2)
    if best is None:
        raise NoPoint("no margin that was tried reaches the service level")
    raised, choice, margins = best
    share = holdout_service_level(task, choice, errors, UNSEEN)
    curve = tuple(
        (level, _least(task, errors, margin_levels(task, errors, use, level)))
        for level in CHANCE_LEVELS
    )
    return RobustChoice(
        choice, raised, tuple(margins.tolist()), share, curve, _worth(task, errors, chance),
        valued_runs(task, errors, chance),
    )  # fmt: skip


def holdout_service_level(task: FleetTask, choice: FleetChoice, errors: Errors, seed: int) -> float:
    """Share of draws in a holdout where a plan meets all demand in all hours."""
    draw = np.random.default_rng(seed)
    models = len(task.models)
    demand = np.exp(draw.normal(size=(DRAWS, models)) * errors.demand)
    normal = draw.normal(size=(DRAWS, models * len(task.pools)))
    speed = np.exp(normal[:, task.cell_of] * errors.speed)
    lost, begun = task.lost[:, None], replica_starts(choice)
    room = choice.firm + (1 - lost) * choice.spot - task.starts[:, None] * begun
    room = room * task.rates[:, None]
    served = task.demand if choice.served is None else choice.served
    flows = forecast_flows(task, choice)
    good = np.ones(DRAWS, bool)
    for station in task.stations:
        m, mine = station.model, task.at(station)
        wanted = demand[:, m, None] * task.demand[m]
        if station.flows:
            coming = [demand[:, task.routes[i].origin, None] * flows[i] for i in station.flows]
            wanted = np.sum(coming, axis=0)
        elif task.windows[m]:
            wanted = demand[:, m, None] * np.minimum(served[m], room[mine].sum(0))
        good &= np.all(speed[:, mine] @ room[mine] >= wanted - 1e-9, axis=1)
    return float(good.mean())


def forecast_flows(task: FleetTask, choice: FleetChoice) -> Array:
    """Requests by route where demand is as forecast: in the shares of the plan (R, T) [seq/s]."""
    flows = np.zeros((0, task.hours)) if choice.flows is None else choice.flows.copy()
    for m in {route.origin for route in task.routes}:
        mine = [route.origin == m for route in task.routes]
        going, forecast = flows[mine].sum(axis=0), task.demand[m]
        if task.windows[m]:
            going, forecast = going.sum(), forecast.sum()
        flows[mine] *= np.divide(forecast, going, out=np.zeros_like(going), where=going > 0)
    return flows


def forecast_errors(task: FleetTask, demand: float, speed: float) -> Errors:
    """Errors of a task: those given, and of each column its band's where it has one.

    A run of a column that the user gave leaves what runs that are repeated scatter.
    """
    repeated = speed * NOISE / math.hypot(speed, NOISE)
    speeds = [speed if c.spread is None else c.spread for c in task.columns]
    left = [repeated if c.left is None else c.left for c in task.columns]
    return Errors(np.full(len(task.models), demand), np.array(speeds), np.array(left))


@dataclass(frozen=True)
class LinearUse:
    """Gradient d bill / d ln demand of the relaxation by model (M,) [USD], and rates of columns.

    The latter is (C,), over all hours [seq/s].
    """

    bills: Array
    served: Array


def linear_use(task: FleetTask) -> LinearUse:
    """Return the use of the relaxation at forecast demand and speeds, without headroom."""
    made = fleet_program(replace(task, headroom=0.0))
    linear = solve_lp_relaxation(made.program.compiled())
    there = (linear.point[made.firm] + linear.point[made.spot]).sum(axis=1)
    bills = (linear.duals[made.demand_rows] * task.demand).sum(axis=1)
    return LinearUse(bills, task.rates * there)


def margin_levels(task: FleetTask, errors: Errors, use: LinearUse, chance: float) -> Array:
    """Standard deviations of each model's margin (M,), by the marginal cost of each [USD]."""
    weights = use.bills * _mean_spreads(task, errors, use.served)
    return _levels(np.maximum(weights, 1e-9), chance)


def _mean_spreads(task: FleetTask, errors: Errors, served: Array) -> Array:
    models = len(task.models)
    spread = np.hypot(errors.demand[task.model_of], errors.speed)
    total = np.bincount(task.model_of, served, models)
    mean = np.bincount(task.model_of, served * spread, models) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, _least_spreads(task, errors))


def _least_spreads(task: FleetTask, errors: Errors) -> Array:
    speed = np.full(len(task.models), np.inf)
    np.minimum.at(speed, task.model_of, errors.speed)
    for route in task.routes:
        there = errors.speed[task.model_of == route.site].min(initial=np.inf)
        speed[route.origin] = min(speed[route.origin], there)
    return np.hypot(errors.demand, np.where(np.isfinite(speed), speed, 0.0))


def _levels(weights: Array, chance: float) -> Array:
    """Standard deviations of each model's margin (M,): all hold with a chance, at the least bill.

    There the bill of one more is in the same ratio to the chance that it adds, w = k phi(z)/Phi(z)
    (Lagrange); both are found by halving.
    """

    def at(multiplier: float) -> Array:
        low, high = np.full(weights.size, -6.0), np.full(weights.size, 6.0)
        for _ in range(60):
            middle = (low + high) / 2
            worth = multiplier * np.exp(-(middle**2) / 2) / ndtr(middle) > weights
            low, high = np.where(worth, middle, low), np.where(worth, high, middle)
        return low

    least, most = float(np.log(weights.min())) - 40, float(np.log(weights.max())) + 40
    for _ in range(80):
        middle = (least + most) / 2
        if np.prod(ndtr(at(math.exp(middle)))) < chance:
            least = middle
        else:
            most = middle
    return at(math.exp(most))


def _raised(task: FleetTask, errors: Errors, levels: Array) -> FleetTask:
    """The question with demand raised, and rates lowered where speed is less certain.

    The margin stands in place of the headroom.
    """
    least = _least_spreads(task, errors)
    beyond = np.hypot(errors.demand[task.model_of], errors.speed) - least[task.model_of]
    rates = task.rates * np.exp(-levels[task.model_of] * beyond)
    demand = task.demand * np.exp(levels * least)[:, None]
    return replace(_at_rates(task, rates), demand=demand, headroom=0.0)


def with_margins(task: FleetTask, errors: Errors, chance: float) -> FleetTask:
    """The question with the margins that a chance takes; raises NoPoint as it is without them."""
    return _raised(task, errors, margin_levels(task, errors, linear_use(task), chance))


def _at_rates(task: FleetTask, rates: Array) -> FleetTask:
    """The question with other rates of its columns (C,) [seq/s]."""
    pairs = zip(task.columns, rates.tolist(), strict=True)
    return replace(task, columns=tuple(replace(column, rate=rate) for column, rate in pairs))


def _least(task: FleetTask, errors: Errors, levels: Array) -> float:
    """Lower bound on the cost of a plan with the margins of some levels [USD/hour]."""
    raised = fleet_program(_raised(task, errors, levels)).program.compiled()
    return solve_lp_relaxation(raised).value / task.hours


def valued_runs(task: FleetTask, errors: Errors, chance: float) -> tuple[ValuedRun, ...]:
    """Savings by one benchmark run of each model on each machine type, in descending order.

    Those that save nothing are left out. Of a large program the few that serve most are valued, of
    a long horizon its mean day.
    """
    task = mean_day(task) if task.hours > MAX_EXACT_HOURS else task
    use = linear_use(task)
    levels = margin_levels(task, errors, use, chance)
    cells = np.unique(task.cell_of)
    most = np.array([use.served[task.cell_of == cell].max() for cell in cells])
    count = RUNS if fleet_program(task).program.columns <= MIDDLE else MAX_RUNS
    runs = []
    for cell in cells[np.argsort(-most, kind="stable")][:count]:
        saved = saved_by_run(task, errors, levels, cell)
        if saved > SAVES * use.bills.sum() / task.hours:
            best = int(np.argmax(np.where(task.cell_of == cell, use.served, -1.0)))
            before, after = float(errors.speed[best]), float(errors.left[best])
            runs.append(ValuedRun(best, saved, before, min(before, after)))
    return tuple(sorted(runs, key=lambda run: -run.usd_per_hour))


def saved_by_run(task: FleetTask, errors: Errors, levels: Array, cell: int) -> float:
    """Mean saving in plan cost by a run of a model on a machine type [USD/hour].

    All are at the same levels of the models' margins (M,), from `margin_levels`; where after
    an outcome nothing keeps them, the plan stays. Without N+1: a spare replica is one at any speed.
    """
    task = replace(task, spare=0)
    here = task.cell_of == cell
    after = replace(errors, speed=np.where(here, errors.left, errors.speed).clip(max=errors.speed))
    moves = np.sqrt(errors.speed**2 - after.speed**2)
    now = _least(task, errors, levels)
    normal = ndtri((np.arange(OUTCOMES) + 0.5) / OUTCOMES)
    saved = np.zeros(OUTCOMES)
    for i, outcome in enumerate(normal / normal.std()):
        moved = _at_rates(task, task.rates * np.exp(moves * outcome))
        with suppress(NoPoint):
            saved[i] = now - _least(moved, after, levels)
    return float(saved.mean())


def _worth(task: FleetTask, errors: Errors, chance: float) -> tuple[float, ...]:
    """Saving in plan cost if the speed of each model were measured [USD/hour]."""
    use = linear_use(task)

    def least(speed: Array) -> float:
        changed = replace(errors, speed=speed)
        return _least(task, changed, margin_levels(task, changed, use, chance))

    at = least(errors.speed)
    known_speeds = [
        np.where(task.model_of == m, 0.0, errors.speed) for m in range(len(task.models))
    ]
    return tuple(at - least(speed) for speed in known_speeds)
