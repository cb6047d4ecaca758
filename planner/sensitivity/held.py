"""A serving plan with its layouts held and its batch a real number: every output, every given.

Two pools stay in balance: each is as large as the requests need, so a price is a sum over both.
Under a load each replica keeps its slots, and their number follows the load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.sensitivity.pool import POWER, Held, Moved
from planner.sensitivity.tangent import BATCH
from planner.serving.asking import ask
from planner.serving.onepool import SinglePoint

if TYPE_CHECKING:
    from planner.scenario import Scenario
    from planner.sensitivity.givens import Given
    from planner.serving.asking import Asked
    from planner.serving.pools import Pools
    from planner.serving.questions import Point
    from planner.serving.task import Task

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


def elasticities(bound: Bound, givens: Sequence[Given]) -> tuple[dict[str, float], Slopes]:
    """Values of the outputs, and d ln output / d ln given, shape (2, n_givens): left, right."""
    looked = [_symbols(bound, given) for given in givens]
    found: list[Moved] = []
    for place, pool in enumerate(bound.pools):
        directions = {
            given.path: symbols[place] for given, symbols in zip(givens, looked, strict=True)
        }
        found.append(pool.moved(directions))
    turned = [
        {name: np.array([each[place].get(name, 0.0) for each in looked])
         for name in ("p_chip", "L_in", "L_out", "L_dec", POWER)}
        for place in range(len(bound.pools))
    ]  # fmt: skip
    if len(bound.pools) == 1:
        return _one(bound.pools[0], found[0], turned[0])
    late = np.array([_later(bound, given) for given in givens])
    return _two(bound, found, turned, late)


def _held(task: Task, layouts: Any, batch: float) -> Held:
    decided = task.batches is not None or task.loaded
    fixed = decided or task.mode == "prefill" or task.objective == "latency"
    return Held(task, layouts, batch, not fixed)


def _tasks(pools: Pools) -> tuple[Task, Task]:
    """Both tasks; where no load is given, nothing that varies arrives at the second."""
    first, second = pools.prefill, pools.decode
    if pools.demand is None:
        return replace(first, arrivals=None), replace(second, arrivals=None)
    return first, second


def _symbols(bound: Bound, given: Given) -> tuple[dict[str, float], ...]:
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


def _later(bound: Bound, given: Given) -> float:
    """d ln (the cache's way) / d ln given."""
    if given.to is None:
        return float(given.path == "model.kv_bytes_per_token")
    ends = [bound.transfer(ask(given.to(math.exp(sign * STEP)))) for sign in (1, -1)]
    return math.log(ends[0] / ends[1]) / (2 * STEP)


def _one(pool: Held, found: Moved, turned: Mapping[str, np.ndarray]) -> tuple[dict, Slopes]:
    """The outputs of one pool."""
    task, values, slopes = pool.task, found.values, found.slopes
    score = "busy" if task.mode == "prefill" else "slot"
    paid = slopes[score] + turned["p_chip"]
    prompt = slopes["busy"] + turned["p_chip"]
    both = task.input_tokens + task.output_tokens
    mixed = (task.input_tokens * turned["L_in"] + task.output_tokens * turned["L_out"]) / both
    per = {"decode": turned["L_out"], "prefill": turned["L_in"]}.get(task.mode, mixed)
    out: Slopes = {"usd_per_mtok": paid - per, "requests_per_s": -slopes[score]}
    out["joule_per_token"] = slopes[score] + turned[POWER] - per
    if task.mode == "aggregated":
        share = values["busy"] / values["slot"]
        rest = (paid - share * prompt) / (1 - share)
        out["usd_per_mtok_input"] = prompt - turned["L_in"]
        out["usd_per_mtok_output"] = rest - turned["L_out"]
        first = values["ttft"] / (values["ttft"] + pool.row["L_dec"] * values["tpot"])
        out["e2e"] = first * slopes["ttft"] + (1 - first) * (slopes["tpot"] + turned["L_dec"])
    if task.mode != "prefill":
        out |= {"tpot": slopes["tpot"], "tokens_per_s": turned["L_out"] - slopes[score],
                "tokens_per_s_per_user": -slopes["tpot"]}  # fmt: skip
    if task.mode != "decode":
        out["ttft"] = slopes["ttft"]
    return values, out | _rest(out, slopes, turned)


def _two(
    bound: Bound,
    found: Sequence[Moved],
    turned: Sequence[Mapping[str, np.ndarray]],
    late: np.ndarray,
) -> tuple[dict[str, float], Slopes]:
    """The outputs of two pools in balance."""
    decoding = bound.pools[1]
    seconds = [
        float(pool.layouts.replica_chips[0]) * each.values[name]
        for pool, each, name in zip(bound.pools, found, ("busy", "slot"), strict=True)
    ]
    spent = [pool.task.price * each for pool, each in zip(bound.pools, seconds, strict=True)]
    slopes = [found[0].slopes["busy"], found[1].slopes["slot"]]
    paid = [slope + each["p_chip"] for slope, each in zip(slopes, turned, strict=True)]
    into, out = turned[1]["L_in"], turned[1]["L_out"]
    task = decoding.task
    mixed = (task.input_tokens * into + task.output_tokens * out) / (
        task.input_tokens + task.output_tokens
    )
    rate = -(seconds[0] * slopes[0] + seconds[1] * slopes[1]) / sum(seconds)
    ttft = found[0].values["ttft"] + bound.moved
    first = (found[0].values["ttft"] * found[0].slopes["ttft"] + bound.moved * late) / ttft
    tpot = found[1].slopes["tpot"]
    rest = decoding.row["L_dec"] * found[1].values["tpot"]
    drawn = [
        (pool.task.power or 0.0) * each for pool, each in zip(bound.pools, seconds, strict=True)
    ]
    used = [slope + each[POWER] for slope, each in zip(slopes, turned, strict=True)]
    told: Slopes = {
        "joule_per_token": (drawn[0] * used[0] + drawn[1] * used[1]) / (sum(drawn) or 1.0) - mixed,
        "usd_per_mtok": (spent[0] * paid[0] + spent[1] * paid[1]) / sum(spent) - mixed,
        "usd_per_mtok_input": paid[0] - into,
        "usd_per_mtok_output": paid[1] - out,
        "requests_per_s": rate,
        "tokens_per_s": rate + out,
        "tpot": tpot,
        "tokens_per_s_per_user": -tpot,
        "ttft": first,
        "e2e": (ttft * first + rest * (tpot + turned[1]["L_dec"])) / (ttft + rest),
    }
    values = {"ttft": ttft, "tpot": found[1].values["tpot"]}
    return values, told | _rest(told, found[1].slopes, turned[1])


def _rest(out: Slopes, slopes: Slopes, turned: Mapping[str, np.ndarray]) -> Slopes:
    """What follows from the others."""
    found = {"batch": slopes["batch"]}
    if "tokens_per_s" in out:
        found["tokens_per_s_per_chip"] = out["tokens_per_s"]
    found["usd_per_hour"] = np.stack([turned["p_chip"]] * 2)
    return found
