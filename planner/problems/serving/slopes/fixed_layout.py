"""A serving plan with its layouts held and its batch a real number: every output, every given.

Replicas and chips are held too: the slower of two pools sets the rate, and under a load the slots
of each replica follow it. Where there are many replicas, which may become more or fewer, they are
real numbers: two pools then stay in balance, and under a load the fleet follows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.problems.serving.deployment.pools import SinglePoint
from planner.problems.serving.slopes.batch_response import ACTIVE, ARRIVALS, POWER, Held, Moved
from planner.problems.serving.slopes.directional_derivatives import BATCH
from planner.problems.serving.task.resolve import ask
from planner.protocol.problem import FEW

if TYPE_CHECKING:
    from planner.problems.serving.deployment.pool_pairs import Pools
    from planner.problems.serving.deployment.pools import Point
    from planner.problems.serving.slopes.directional_derivatives import Directions
    from planner.problems.serving.task.resolve import Asked
    from planner.problems.serving.task.task import Task
    from planner.protocol.parameter import Parameter
    from planner.scenario import Scenario

__all__ = ["Bound", "bound_to", "elasticities"]

STEP = 1e-5  # of a given, in logarithms, at which the numbers of the equations are looked up
STILL = 1e-9  # a symbol that moves less does not move

Slopes = dict[str, np.ndarray]


@dataclass(frozen=True)
class Bound:
    """The question of a plan by its number in the scenario, and its pools with layouts held."""

    scenario: Scenario
    number: int
    pools: tuple[Held, ...]
    moved: float = 0.0  # s that a prompt's cache takes to the other pool
    follows: bool | None = None  # whether replicas are real numbers; where they are many, if None

    def tasks(self, asked: Asked) -> tuple[Task, ...]:
        """The tasks of the same question in a scenario that was varied."""
        if len(self.pools) == 1:
            return (asked.tasks[self.number],)
        return _tasks(asked.pools[self.number - len(asked.tasks)])

    def transfer(self, asked: Asked) -> float:
        """Seconds of the cache's way in a scenario that was varied, between as many chips."""
        first, then = self._pools(ask(self.scenario)), self._pools(asked)
        chips = first.prompt_bytes / ((self.moved - first.latency) * first.rate)
        return then.latency + then.prompt_bytes / (chips * then.rate)

    @property
    def resized(self) -> bool:
        """Whether replicas are real numbers: they are many, and none has to be paid for idle."""
        if self.follows is not None:
            return self.follows
        loads = [pool.task for pool in self.pools if pool.task.loaded]
        fixed = any(len(task.chips) < 2 for task in loads)
        return not fixed and all(pool.replicas >= FEW for pool in self.pools)

    @property
    def may_follow(self) -> bool:
        """Whether the layout held is one question and replicas that follow another."""
        loads = [pool.task for pool in self.pools if pool.task.loaded]
        return self.counted and not any(len(task.chips) < 2 for task in loads)

    @property
    def counted(self) -> bool:
        """Whether it matters how many replicas there are."""
        return len(self.pools) > 1 or self.pools[0].task.loaded

    def _pools(self, asked: Asked) -> Pools:
        return asked.pools[self.number - len(asked.tasks)]


def bound_to(scenario: Scenario, number: int, point: Point) -> Bound:
    """The plan of a point found, ready to be varied; `number` is that of its question."""
    if isinstance(point, SinglePoint):
        return Bound(scenario, number, (_held(point.task, point.layouts, point.batch),))
    pair = point.candidate
    first, second = _tasks(pair.pools)
    if pair.pools.demand is not None:
        first, second, batch = pair.readers.task, pair.decoders.task, pair.decoders.batch
    else:
        batch = pair.most
    pools = (
        _held(first, pair.readers.layouts, pair.readers.batch),
        _held(second, pair.decoders.layouts, batch),
    )
    return Bound(scenario, number, pools, pair.moved)


SymbolPowers = Sequence[tuple[dict[str, float], ...]]
"""{symbol: d ln symbol / d ln parameter} of every parameter, for every pool."""


def symbol_powers(bound: Bound, givens: Sequence[Parameter]) -> SymbolPowers:
    """How the symbols of each pool move with every parameter."""
    return [_symbols(bound, given) for given in givens]


def elasticities(
    bound: Bound, givens: Sequence[Parameter], powers: SymbolPowers | None = None
) -> tuple[dict[str, float], Slopes]:
    """Values of the outputs, and d ln output / d ln given, shape (2, n_givens): left, right."""
    looked = symbol_powers(bound, givens) if powers is None else powers
    directions = [
        {given.path: symbols[place] for given, symbols in zip(givens, looked, strict=True)}
        for place in range(len(bound.pools))
    ]
    turned = [
        {name: np.array([each[place].get(name, 0.0) for each in looked])
         for name in ("p_chip", "L_in", "L_out", "L_dec", ARRIVALS, POWER)}
        for place in range(len(bound.pools))
    ]  # fmt: skip
    pools = [
        replace(pool, free=False) if pool.task.loaded and bound.resized else pool
        for pool in bound.pools
    ]
    found = [pool.moved(each) for pool, each in zip(pools, directions, strict=True)]
    if len(pools) == 1:
        return _one(bound, found[0], turned[0])
    late = np.array([_later(bound, given) for given in givens])
    return _two(bound, found, turned, late, directions[1])


def _held(task: Task, layouts: Any, batch: float) -> Held:
    small = task.objective == "latency" and not task.loaded
    fixed = task.batches is not None or task.mode == "prefill" or small or batch < FEW
    return Held(task, layouts, batch, not fixed)


def _tasks(pools: Pools) -> tuple[Task, Task]:
    """Both tasks, under the load that is given; where none is, nothing that varies arrives."""
    first, second = pools.prefill, pools.decode
    return replace(first, arrivals=pools.demand), replace(second, arrivals=pools.demand)


def _symbols(bound: Bound, given: Parameter) -> tuple[dict[str, float], ...]:
    """d ln symbol / d ln given of every pool: looked up on both sides, or known."""
    if given.to is None:
        return tuple(
            dict.fromkeys((name for name in given.symbols if name in pool.row), 1.0)
            for pool in bound.pools
        )
    sides = []
    for sign in (1, -1):
        tasks = bound.tasks(ask(given.to(math.exp(sign * STEP))))
        sides.append([
            Held(task, pool.layouts, pool.batch, pool.free).row
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


def _power(above: float, below: float) -> float:
    if above == below or not (above > 0 and below > 0):
        return 0.0
    power = math.log(above / below) / (2 * STEP)
    return power if abs(power) > STILL else 0.0


def _later(bound: Bound, given: Parameter) -> float:
    """d ln (the cache's way) / d ln given."""
    if given.to is None:
        return float(given.path == "model.kv_bytes_per_token")
    ends = [bound.transfer(ask(given.to(math.exp(sign * STEP)))) for sign in (1, -1)]
    return math.log(ends[0] / ends[1]) / (2 * STEP)


def _one(bound: Bound, found: Moved, turned: Mapping[str, np.ndarray]) -> tuple[dict, Slopes]:
    """The outputs of one pool."""
    (pool,) = bound.pools
    task, values, slopes = pool.task, found.values, found.slopes
    slot = slopes["busy" if task.mode == "prefill" else "slot"]
    requests = turned[ARRIVALS] + 0.0 * slot if task.loaded else -slot
    chips = requests + slot if bound.resized and task.loaded else 0.0 * slot
    paid = turned["p_chip"] + chips - requests
    both = task.input_tokens + task.output_tokens
    mixed = (task.input_tokens * turned["L_in"] + task.output_tokens * turned["L_out"]) / both
    per = {"decode": turned["L_out"], "prefill": turned["L_in"]}.get(task.mode, mixed)
    out: Slopes = {"usd_per_mtok": paid - per, "requests_per_s": requests}
    out["joule_per_token"] = turned[POWER] + chips - requests - per
    prompt = paid + slopes["busy"] - slot
    if task.mode == "aggregated":
        share = values["busy"] / values["slot"]
        rest = (paid - share * prompt) / (1 - share)
        out["usd_per_mtok_input"] = prompt - turned["L_in"]
        out["usd_per_mtok_output"] = rest - turned["L_out"]
        first = values["ttft"] / (values["ttft"] + pool.row["L_dec"] * values["tpot"])
        out["e2e"] = first * slopes["ttft"] + (1 - first) * (slopes["tpot"] + turned["L_dec"])
    else:
        into = "usd_per_mtok_input" if task.mode == "prefill" else "usd_per_mtok_output"
        out[into] = out["usd_per_mtok"]
    if task.mode != "prefill":
        out |= {"tpot": slopes["tpot"], "tokens_per_s": turned["L_out"] + requests,
                "tokens_per_s_per_user": -slopes["tpot"]}  # fmt: skip
    if task.mode != "decode":
        out["ttft"] = slopes["ttft"]
    out["usd_per_hour"] = turned["p_chip"] + chips
    return values, out | _rest(out, slopes, chips)


def _two(
    bound: Bound,
    found: Sequence[Moved],
    turned: Sequence[Mapping[str, np.ndarray]],
    late: np.ndarray,
    directions: Directions,
) -> tuple[dict[str, float], Slopes]:
    """The outputs of two pools, the prompts read in the first."""
    requests, chips, found, weights = _shared(bound, found, turned, directions)
    first, second = (w / sum(weights) for w in weights)
    spent = _shares(pool.task.price * w for pool, w in zip(bound.pools, weights, strict=True))
    drawn = _shares((p.task.power or 0.0) * w for p, w in zip(bound.pools, weights, strict=True))
    rented = [each["p_chip"] + more for each, more in zip(turned, chips, strict=True)]
    used = [each[POWER] + more for each, more in zip(turned, chips, strict=True)]
    task, into, out = bound.pools[1].task, turned[1]["L_in"], turned[1]["L_out"]
    tokens = task.input_tokens + task.output_tokens
    mixed = (task.input_tokens * into + task.output_tokens * out) / tokens
    ttft = found[0].values["ttft"] + bound.moved
    prompt = (found[0].values["ttft"] * found[0].slopes["ttft"] + bound.moved * late) / ttft
    tpot = found[1].slopes["tpot"]
    rest = bound.pools[1].row["L_dec"] * found[1].values["tpot"]
    hourly = spent[0] * rented[0] + spent[1] * rented[1]
    told: Slopes = {
        "joule_per_token": drawn[0] * used[0] + drawn[1] * used[1] - requests - mixed,
        "usd_per_mtok": hourly - requests - mixed,
        "usd_per_mtok_input": rented[0] - requests - into,
        "usd_per_mtok_output": rented[1] - requests - out,
        "usd_per_hour": hourly,
        "requests_per_s": requests,
        "tokens_per_s": requests + out,
        "tpot": tpot,
        "tokens_per_s_per_user": -tpot,
        "ttft": prompt,
        "e2e": (ttft * prompt + rest * (tpot + turned[1]["L_dec"])) / (ttft + rest),
    }
    values = {"ttft": ttft, "tpot": found[1].values["tpot"]}
    return values, told | _rest(told, found[1].slopes, first * chips[0] + second * chips[1])


def _shared(
    bound: Bound,
    found: Sequence[Moved],
    turned: Sequence[Mapping[str, np.ndarray]],
    directions: Directions,
) -> tuple[np.ndarray, Sequence[np.ndarray], Sequence[Moved], Sequence[float]]:
    """Slopes of the requests served and of either pool's chips, the pools, their chips."""
    slots = [found[0].slopes["busy"], found[1].slopes["slot"]]
    loaded, nothing = bound.pools[1].task.loaded, 0.0 * slots[0]
    times = found[0].values["busy"], found[1].values["slot"]
    if not bound.resized:
        weights = [float(pool.layouts.chips[0]) for pool in bound.pools]
        if loaded:
            return turned[1][ARRIVALS] + nothing, [nothing, nothing], found, weights
        rates = [pool.up / time for pool, time in zip(bound.pools, times, strict=True)]
        requests = _slower(math.log(rates[0] / rates[1]), slots)
        if rates[0] < rates[1] * (1 - ACTIVE):
            # Prompts come too slowly for the second pool to be full.
            second = bound.pools[1].carrying(directions, rates[0], requests)
            found = [found[0], second]
        return requests, [nothing, nothing], found, weights
    weights = [
        float(pool.layouts.replica_chips[0]) * time
        for pool, time in zip(bound.pools, times, strict=True)
    ]
    mean = (weights[0] * slots[0] + weights[1] * slots[1]) / sum(weights)
    requests = turned[1][ARRIVALS] + nothing if loaded else -mean
    return requests, [requests + slope for slope in slots], found, weights


def _slower(lead: float, slots: Sequence[np.ndarray]) -> np.ndarray:
    """Slopes of the rate of the slower of two pools, of which the first is faster by `lead`."""
    if abs(lead) > ACTIVE:
        return -slots[0] if lead < 0 else -slots[1]
    both = np.stack([-slots[0], -slots[1]])
    return np.stack([both[:, 0].max(axis=0), both[:, 1].min(axis=0)])


def _shares(parts: Iterable[float]) -> list[float]:
    """Each part of their sum; none of nothing."""
    found = list(parts)
    whole = sum(found) or 1.0
    return [part / whole for part in found]


def _rest(out: Slopes, slopes: Slopes, chips: np.ndarray) -> Slopes:
    """What follows from the others."""
    found = {"batch": slopes["batch"]}
    if "tokens_per_s" in out:
        found["tokens_per_s_per_chip"] = out["tokens_per_s"] - chips
    return found
