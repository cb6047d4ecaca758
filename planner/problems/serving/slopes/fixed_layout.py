"""A serving plan with its layouts held and its batch a real number: every output, every given.

Replicas and chips are held too: the slower of two pools sets the rate, and under a load the slots
of each replica follow it. Where there are many replicas, which may become more or fewer, they are
real numbers: two pools then stay in balance, and under a load the fleet follows it.

Elasticities of every output of a plan, from those of its times: the outputs' own equations.

What a given does to the times of a pool comes in; how price, rates and energy follow is read off
the tape of the equations that compute them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formulas.numerics.tape import Tape
from planner.problems.serving.outputs import ABSENT, OUTPUTS
from planner.problems.serving.slopes.batch_response import ACTIVE, ARRIVALS, FixedLayout, Response
from planner.problems.serving.slopes.directional_derivatives import (
    BATCH,
    Directions,
    differentiate_tape,
    symbol_slopes,
)
from planner.problems.serving.step.kernels import get_kernel
from planner.problems.serving.task.resolve import resolve
from planner.protocol.problem import SMALL_COUNT

if TYPE_CHECKING:
    from planner.problems.serving.deployment.scored_points import PlanPoint
    from planner.problems.serving.question import Scenario
    from planner.problems.serving.task.resolve import ServingTasks
    from planner.problems.serving.task.task import Task, TaskPair
    from planner.protocol.parameter import Parameter


# Words of the outputs in the equations; slopes of TPOT and batch come from the pool itself.
PATH_NAMES = {x.name: x.word for x in OUTPUTS if x.name not in ("tpot", "batch")}
NOISE = 1e-14  # of terms that cancel
PAID_SYMBOLS = {
    "p_chip": "chip_price",
    "p_power": "chip_power_price",
}  # that follow the power drawn
SHARED_SYMBOLS = ("L_in", "L_out", "L_dec", "m_grid")  # by two pools
PLACEHOLDER_POWER_W = 1.0  # W; where no power is known its elasticities are those of any


def one_pool_slopes(
    pool: FixedLayout, response: Response, directions: Directions, *, resized: bool
) -> dict[str, np.ndarray]:
    """Elasticities of the outputs of one pool by all givens, shape (2, n_givens) each.

    Where it is `resized` replicas and chips follow the load, and stay as full as they are.
    """
    task, values, slopes = pool.task, response.values, response.slopes
    symbols = {
        "P_chip": PLACEHOLDER_POWER_W, **pool.row, "T_slot": values["slot"],
        "T_pf_busy": values["busy"],
        "T_first": values["ttft"], "T_tpot": values["tpot"], "r_fill": 1.0,
    }  # fmt: skip
    moved = {
        "T_slot": slopes["slot"], "T_pf_busy": slopes["busy"], "T_first": slopes["ttft"],
        "T_tpot": slopes["tpot"],
    }  # fmt: skip
    if "watts" in values:
        symbols["P_chip"], moved["P_chip"] = values["watts"], slopes["watts"]
    for name, word in PAID_SYMBOLS.items():
        if word in values:
            symbols[name], moved[name] = values[word], slopes[word]
    if resized:
        follow = symbol_slopes(directions, "X_arr") + slopes["slot"]
        moved |= {"n_rep": follow, "n_chips": follow}
    tape = get_kernel(
        "pool_from_times", task.mode, "none" if resized else task.load, *PATH_NAMES.values()
    ).tape
    names = [name for name in tape.arguments if name != "B"]  # the batch apart
    direct = {name: symbol_slopes(directions, name) + 0.0 * slopes["slot"] for name in names}
    out = _composed(tape, symbols, {**direct, **moved})
    present = {name: word for name, word in PATH_NAMES.items() if name not in ABSENT[task.mode]}
    answer = {name: out[word] for name, word in present.items() if word in out}
    if task.mode != "prefill":
        answer["tpot"] = slopes["tpot"]
    return {**answer, "batch": slopes["batch"]}


def two_pool_slopes(
    pools: Sequence[FixedLayout],
    responses: Sequence[Response],
    directions: Sequence[Directions],
    requests: np.ndarray,
    chips: Sequence[np.ndarray],
    weights: Sequence[float],
    transfer: tuple[float, np.ndarray],
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Times of two pools [s], and elasticities of their outputs, shape (2, n_givens) each.

    `requests` are the slopes of the rate of both, `chips` those of either pool's chips, `weights`
    how many chips each has beside the other; `transfer` is the cache's way [s] and its slopes.
    """
    first, second = responses
    symbols = {
        "one_seq": 1.0, "X_arr": 1.0, "T_ttft": first.values["ttft"], "T_wait": 0.0,
        "T_move": transfer[0], "T_tpot": second.values["tpot"],
        **{name: pools[1].row[name] for name in SHARED_SYMBOLS},
    }  # fmt: skip
    flat = 0.0 * requests
    moved = {
        "X_arr": requests, "T_ttft": first.slopes["ttft"], "T_move": transfer[1] + flat,
        "T_tpot": second.slopes["tpot"],
        **{name: symbol_slopes(directions[1], name) + flat for name in SHARED_SYMBOLS},
    }  # fmt: skip
    for place, name in enumerate(("pf", "dec")):
        row, turned = pools[place].row, directions[place]
        symbols[f"n_chips_{name}"] = weights[place]
        moved[f"n_chips_{name}"] = chips[place]
        for symbol in ("p_chip", "P_chip", "p_power"):
            symbols[f"{symbol}_{name}"] = row.get(symbol, PLACEHOLDER_POWER_W)
            moved[f"{symbol}_{name}"] = symbol_slopes(turned, symbol) + flat
        response = responses[place]
        for symbol, word in {"P_chip": "watts", **PAID_SYMBOLS}.items():
            if word in response.values:
                symbols[f"{symbol}_{name}"] = response.values[word]
                moved[f"{symbol}_{name}"] = response.slopes[word]
    out = _composed(get_kernel("pools", "given", *PATH_NAMES.values()).tape, symbols, moved)
    elasticities = {name: out[word] for name, word in PATH_NAMES.items()}
    elasticities |= {"tpot": second.slopes["tpot"], "batch": second.slopes["batch"]}
    late = first.values["ttft"] + transfer[0]
    return {"ttft": late, "tpot": second.values["tpot"]}, elasticities


def slower_rate_slopes(
    rates: tuple[float, float], slots: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Slopes of the rate of the slower of two pools, from those of their slot times."""
    level = abs(math.log(rates[0] / rates[1])) <= ACTIVE
    symbols = {"n_pf": 1.0, "n_dec": 1.0, "X_pf": rates[0], "X_dec": rates[0 if level else 1]}
    return _composed(
        get_kernel("slower_rate").tape, symbols, {"X_pf": -slots[0], "X_dec": -slots[1]}
    )["requests"]


def _composed(
    tape: Tape, symbols: Mapping[str, float], moved: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Elasticities of the outputs of a tape whose symbols move so, shape (2, n_givens): chained."""
    sides = []
    for side in (0, 1):
        columns = {name: slope[side] for name, slope in moved.items() if slope[side].any()}
        count = next(iter(moved.values())).shape[1]
        directions = {
            str(i): {name: float(column[i]) for name, column in columns.items() if column[i]}
            for i in range(count)
        }
        _, slopes = differentiate_tape(tape, symbols, symbols.get("B", 1.0), directions)
        sides.append({name: slope[side, :-1] for name, slope in slopes.items()})
        for slope in sides[-1].values():
            slope[np.abs(slope) < NOISE] = 0.0
    return {name: np.stack([sides[0][name], sides[1][name]]) for name in sides[0]}


STEP = 1e-5  # ln(given); step to either side, for central differences of the symbols
ZERO_SLOPE = 1e-9  # a symbol that moves less does not move


@dataclass(frozen=True)
class Bound:
    """The question of a plan by its number in the scenario, and its pools with layouts held."""

    scenario: Scenario
    number: int
    pools: tuple[FixedLayout, ...]
    moved: float = 0.0  # s that a prompt's cache takes to the other pool
    follows: bool | None = None  # True if replica counts are real numbers; None: real if large

    def tasks(self, varied: ServingTasks) -> tuple[Task, ...]:
        """The tasks of the same question in a scenario that was varied."""
        if len(self.pools) == 1:
            return (varied.tasks[self.number],)
        # Both tasks under the given load; without a load, no arrival rate varies.
        pools = varied.pools[self.number - len(varied.tasks)]
        first, second = pools.prefill, pools.decode
        return replace(first, arrivals=pools.demand), replace(second, arrivals=pools.demand)

    def transfer(self, varied: ServingTasks) -> float:
        """KV cache transfer time in a varied scenario, chip count unchanged [s]."""
        first, then = self._pools(resolve(self.scenario)), self._pools(varied)
        chips = first.prompt_bytes / ((self.moved - first.latency) * first.rate)
        return then.latency + then.prompt_bytes / (chips * then.rate)

    @property
    def resized(self) -> bool:
        """True if replica counts are continuous: large, and free to change."""
        if self.follows is not None:
            return self.follows
        return not self._counts_stay and all(pool.replicas >= SMALL_COUNT for pool in self.pools)

    @property
    def may_follow(self) -> bool:
        """True if replica counts matter and may change, so that fixed and free counts differ."""
        return self.counted and not self._counts_stay

    @property
    def _counts_stay(self) -> bool:
        tasks = [pool.task for pool in self.pools]
        fixed = len(tasks) > 1 and tasks[-1].batches is not None
        return fixed or any(task.loaded and len(task.chips) < 2 for task in tasks)

    @property
    def counted(self) -> bool:
        """True if the number of replicas matters: two pools, or a load."""
        return len(self.pools) > 1 or self.pools[0].task.loaded

    def _pools(self, resolved: ServingTasks) -> TaskPair:
        return resolved.pools[self.number - len(resolved.tasks)]


def fix_layouts(scenario: Scenario, number: int, point: PlanPoint) -> Bound:
    """The plan of a point found, ready to be varied; `number` is that of its question."""
    candidate = point.candidate
    pools = tuple(
        _fixed_layout(pool.promised_step.task, pool.layouts, pool.batch)
        for pool in candidate.resized()
    )
    return Bound(scenario, number, pools, candidate.transfer)


SymbolPowers = Sequence[tuple[dict[str, float], ...]]
"""{symbol: d ln symbol / d ln parameter} of every parameter, for every pool."""


def symbol_powers(bound: Bound, givens: Sequence[Parameter]) -> SymbolPowers:
    """Elasticities of the symbols of each pool with respect to every parameter."""
    return [_symbols(bound, parameter) for parameter in givens]


def elasticities(
    bound: Bound, givens: Sequence[Parameter], powers: SymbolPowers | None = None
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Values of the outputs, and d ln output / d ln given, shape (2, n_givens): left, right."""
    looked = symbol_powers(bound, givens) if powers is None else powers
    directions = [
        {parameter.path: symbols[place] for parameter, symbols in zip(givens, looked, strict=True)}
        for place in range(len(bound.pools))
    ]
    pools = [
        replace(pool, free=False) if pool.task.loaded and bound.resized else pool
        for pool in bound.pools
    ]
    moves = [pool.response(each) for pool, each in zip(pools, directions, strict=True)]
    if len(pools) == 1:
        return moves[0].values, one_pool_slopes(
            pools[0], moves[0], directions[0], resized=bound.resized and pools[0].task.loaded
        )
    late = np.array([_later(bound, parameter) for parameter in givens])
    requests, chips, shared, weights = _shared(bound, moves, directions)
    return two_pool_slopes(pools, shared, directions, requests, chips, weights, (bound.moved, late))


def _fixed_layout(task: Task, layouts: Any, batch: float) -> FixedLayout:
    small = task.objective == "latency" and not task.loaded
    # Requests gathered by chance vary with room and pace, so a promise on them fixes the batch.
    small |= "cache_fits" in task.promises and not task.loaded
    fixed = task.batches is not None or task.mode == "prefill" or small or batch < SMALL_COUNT
    return FixedLayout(task, layouts, batch, not fixed)


def _symbols(bound: Bound, parameter: Parameter) -> tuple[dict[str, float], ...]:
    """d ln symbol / d ln given of every pool: looked up on both sides, or known."""
    if parameter.to is None:
        return tuple(_through(pool, parameter.symbols) for pool in bound.pools)
    sides = []
    for sign in (1, -1):
        tasks = bound.tasks(resolve(parameter.to(math.exp(sign * STEP))))
        sides.append([
            FixedLayout(task, pool.layouts, pool.batch, pool.free).row
            for task, pool in zip(tasks, bound.pools, strict=True)
        ])  # fmt: skip
    return tuple(
        {
            name: power
            for name in above
            if (power := _power(above[name], below[name])) and name != BATCH
        }
        for above, below in zip(*sides, strict=True)
    )


def _through(pool: FixedLayout, symbols: Iterable[str]) -> dict[str, float]:
    moved = dict.fromkeys((name for name in symbols if name in pool.row), 1.0)
    for name, powers in pool.step.coefficient_powers(pool.batch).items():
        power = sum(powers.get(symbol, 0.0) for symbol in moved)
        if abs(power) > ZERO_SLOPE:
            moved = {**moved, name: power}
    return moved


def _power(above: float, below: float) -> float:
    if above == below or not (above > 0 and below > 0):
        return 0.0
    power = math.log(above / below) / (2 * STEP)
    return power if abs(power) > ZERO_SLOPE else 0.0


def _later(bound: Bound, parameter: Parameter) -> float:
    if parameter.to is None:
        return float(parameter.path == "model.kv_bytes_per_token")
    ends = [bound.transfer(resolve(parameter.to(math.exp(sign * STEP)))) for sign in (1, -1)]
    return math.log(ends[0] / ends[1]) / (2 * STEP)


def _shared(
    bound: Bound, responses: Sequence[Response], directions: Sequence[Directions]
) -> tuple[np.ndarray, Sequence[np.ndarray], Sequence[Response], Sequence[float]]:
    """Slopes of the requests served and of either pool's chips, the pools, their chips."""
    slots = [responses[0].slopes["slot"], responses[1].slopes["slot"]]
    loaded, nothing = bound.pools[1].task.loaded, 0.0 * slots[0]
    times = responses[0].values["slot"], responses[1].values["slot"]
    if not bound.resized:
        weights = [float(pool.layouts.chips[0]) for pool in bound.pools]
        if loaded:
            requests = symbol_slopes(directions[1], ARRIVALS) + nothing
            return requests, [nothing, nothing], responses, weights
        rates = [pool.up / time for pool, time in zip(bound.pools, times, strict=True)]
        if bound.pools[1].task.batches is not None:
            rates.sort(reverse=True)  # of a given batch all is in flight: prompts come in time
        requests = slower_rate_slopes((rates[0], rates[1]), (slots[0], slots[1]))
        if rates[0] < rates[1] * (1 - ACTIVE):
            # Prompts come too slowly for the second pool to be full.
            second = bound.pools[1].carrying(directions[1], rates[0], requests)
            responses = [responses[0], second]
        return requests, [nothing, nothing], responses, weights
    weights = [
        float(pool.layouts.replica_chips[0]) * time
        for pool, time in zip(bound.pools, times, strict=True)
    ]
    mean = (weights[0] * slots[0] + weights[1] * slots[1]) / sum(weights)
    requests = symbol_slopes(directions[1], ARRIVALS) + nothing if loaded else -mean
    return requests, [requests + slope for slope in slots], responses, weights
