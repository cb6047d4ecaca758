"""Plans that keep their promises with a stated chance: demand and speed are drawn.

In a draw every model's demand is the forecast times a factor, and every replica serves its rate
times another, one of each model and pool: both log-normal, with the standard deviations that the
scenario gives; of a column that a serving question gave the speed's is that of its band. A draw is
kept where all demand is met in all hours. The plan is the cheapest for demand raised by
exp(z * sigma) of each model: the z of models together keep the share asked at the least bill, and
are moved together until the plan keeps it on draws of one seed; what it keeps is then counted on
draws of another.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.search import FleetChoice, cheapest
from planner.programs.integer import NoPoint, relaxed

Array = np.ndarray
DRAWS, SEED, UNSEEN = 2000, 1, 2  # of plans, and of what they keep
STEPS, REACH = 5, 0.6  # plans tried, and how far their z move together
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Errors:
    """Standard deviations of the logarithms of demand (M,) and of speed (C,)."""

    demand: Array
    speed: Array


@dataclass(frozen=True)
class RobustChoice:
    """A plan with the margin of each model's demand, the share it keeps unseen, and the curve.

    `curve` are levels with what no plan is below there [USD/hour]; `measured` what knowing a
    model's speed would save at the level asked [USD/hour].
    """

    choice: FleetChoice
    task: FleetTask
    margins: tuple[float, ...]
    share: float
    curve: tuple[tuple[float, float], ...]
    measured: tuple[float, ...]


def robust(task: FleetTask, errors: Errors, chance: float) -> RobustChoice:
    """The cheapest plan found that keeps a share of the draws.

    Raises NoPoint where nothing meets the raised demand.
    """
    weights = _weights(task, errors)
    levels = _levels(weights, chance)
    low, high = -REACH, REACH
    best: tuple[FleetTask, FleetChoice, Array] | None = None
    for turn in range(STEPS):
        shift = 0.0 if turn == 0 else (low + high) / 2
        margins = _margins(task, errors, levels + shift)
        raised = _raised(task, margins)
        choice = cheapest(raised)
        if kept_share(task, choice, errors, SEED) >= chance:
            if best is None or choice.value < best[1].value:
                best = (raised, choice, margins)
            high = shift
        else:
            low = shift
            high = max(high, low + REACH / 2)
    if best is None:
        raise NoPoint("no margin that was tried keeps the share of draws that is asked")
    raised, choice, margins = best
    share = kept_share(task, choice, errors, UNSEEN)
    curve = tuple((level, _least(task, errors, level)) for level in LEVELS)
    return RobustChoice(
        choice, raised, tuple(margins.tolist()), share, curve, _worth(task, errors, chance)
    )


def kept_share(task: FleetTask, choice: FleetChoice, errors: Errors, seed: int) -> float:
    """The share of draws in which a plan meets all demand in all hours."""
    draw = np.random.default_rng(seed)
    models = len(task.models)
    demand = np.exp(draw.normal(size=(DRAWS, models)) * errors.demand)
    cells = task.model_of * len(task.pools) + task.pool_of
    normal = draw.normal(size=(DRAWS, models * len(task.pools)))
    speed = np.exp(normal[:, cells] * errors.speed)
    there = choice.firm + choice.spot
    begun = np.maximum(0, there - np.roll(there, 1, axis=1))
    lost = task.lost[:, None]
    room = choice.firm + (1 - lost) * choice.spot - task.starts[:, None] * begun
    room = room * task.rates[:, None]
    served = task.demand if choice.served is None else choice.served
    flows = _forecast_flows(task, choice)
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


def _forecast_flows(task: FleetTask, choice: FleetChoice) -> Array:
    """Requests by route where demand is as forecast: in the shares of the plan (R, T) [seq/s]."""
    flows = np.zeros((0, task.hours)) if choice.flows is None else choice.flows.copy()
    for m in {route.origin for route in task.routes}:
        mine = [route.origin == m for route in task.routes]
        going, forecast = flows[mine].sum(axis=0), task.demand[m]
        if task.windows[m]:
            going, forecast = going.sum(), forecast.sum()
        flows[mine] *= np.divide(forecast, going, out=np.zeros_like(going), where=going > 0)
    return flows


def errors_of(task: FleetTask, demand: float, speed: float) -> Errors:
    """Errors of a task: those given, and of each column its band's where it has one."""
    speeds = [speed if c.spread is None else c.spread for c in task.columns]
    return Errors(np.full(len(task.models), demand), np.array(speeds))


def _weights(task: FleetTask, errors: Errors) -> Array:
    """What a standard deviation more of margin costs, of each model, by the relaxation's duals."""
    made = fleet_program(replace(task, headroom=0.0))
    duals = relaxed(made.program.compiled()).duals
    bills = (duals[made.demand_rows] * task.demand).sum(axis=1)
    return np.asarray(np.maximum(bills * _spreads(task, errors), 1e-9))


def _spreads(task: FleetTask, errors: Errors) -> Array:
    """Standard deviation of the logarithm of demand over speed, of each model (M,)."""
    speed = np.zeros(len(task.models))
    np.maximum.at(speed, task.model_of, errors.speed)
    for origin, site in [(route.origin, route.site) for route in task.routes]:
        speed[origin] = max(speed[origin], errors.speed[task.model_of == site].max(initial=0.0))
    return np.hypot(errors.demand, speed)


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


def _margins(task: FleetTask, errors: Errors, levels: Array) -> Array:
    """Factors of each model's demand: exp(z * sigma) of demand over its least certain speed."""
    return np.asarray(np.exp(levels * _spreads(task, errors)))


def _raised(task: FleetTask, margins: Array) -> FleetTask:
    """The question with demand raised; the margin stands in place of the headroom."""
    return replace(task, demand=task.demand * margins[:, None], headroom=0.0)


def _least(task: FleetTask, errors: Errors, chance: float) -> float:
    """What no plan of the margins of a chance is below [USD/hour]."""
    margins = _margins(task, errors, _levels(_weights(task, errors), chance))
    return relaxed(fleet_program(_raised(task, margins)).program.compiled()).value / task.hours


def _worth(task: FleetTask, errors: Errors, chance: float) -> tuple[float, ...]:
    """What the plan would cost less if a model's speed were measured, of each model [USD/hour]."""
    at = _least(task, errors, chance)
    saved = []
    for m in range(len(task.models)):
        speed = np.where(task.model_of == m, 0.0, errors.speed)
        saved.append(at - _least(task, replace(errors, speed=speed), chance))
    return tuple(saved)
