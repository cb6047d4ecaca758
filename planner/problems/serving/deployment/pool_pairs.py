"""Two pools, exactly: every pair of layouts, every split of the chips between them.

One pool reads prompts, the other decodes, so each has its own best layout; the slower of the two
sets the rate. Of layouts whose replicas take the same room only the fastest matters, which leaves
few pairs. For a pair and a number of chips the first pool's rate grows with its replicas and the
second's falls, so the best split lies where the two cross: one of its neighbours on either side.
Pairs are looked at in the order of what they could reach without whole numbers, until the best
found is better than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, log

import numpy as np

from planner.problems.serving.deployment.pool_candidates import Decoders, Readers
from planner.problems.serving.deployment.pool_matching import sides, sides_at
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.search.sizing import first
from planner.problems.serving.step.chip_split import replicas_left, replicas_most
from planner.problems.serving.step.pools_step import split_values
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task

KEPT = 6  # pairs of a question that are worth evaluating in full
MOST_TIED = 64  # splits of one number of chips that may share the best score
POINTS = 200_000  # splits looked at together


@dataclass(frozen=True)
class Pools:
    """One question for two pools: a task for each phase, and the network between them.

    `rate` is that of one chip into this network [byte/s], `latency` that of a message through it
    and its software [s]. `together` says that both pools share the domains of one system. `demand`
    are the requests per second to carry; None for as many as can be served.
    """

    prefill: Task
    decode: Task
    rate: float
    latency: float
    together: bool
    demand: float | None = None

    @cached_property
    def prompt_bytes(self) -> float:
        """Cache of one prompt [byte]."""
        task = self.prefill
        stored = sum(cache.stored_bytes(task.input_tokens) for cache in task.sizes.caches)
        return stored + task.sizes.state_bytes_per_sequence

    def promising(self, tpot: float | None) -> Pools:
        """The same question with another promise on the time per output token [s], or none."""
        return replace(self, decode=self.decode.promising(tpot))

    def transfer(self, senders: np.ndarray | float, receivers: np.ndarray | float) -> np.ndarray:
        """Seconds that a prompt's cache takes between so many chips."""
        chips = np.minimum(senders, receivers)
        return np.asarray(self.latency + self.prompt_bytes / (chips * self.rate))


@dataclass(frozen=True)
class Pair:
    """A layout of each pool, with replicas and chips of both, and the requests/s they serve.

    `score` is the objective, `latency` that of a request [s]; `rows` index the layouts of the two
    steps, `batch` is that of a decoding replica at its most. `fills` are the shares of its time
    that a replica of either pool may be used, `slots` the times it spends per request [s].
    """

    score: float
    latency: float
    rows: tuple[int, int]
    replicas: tuple[int, int]
    chips: tuple[int, int]
    requests: float
    batch: float
    fills: tuple[float, float]
    slots: tuple[float, float]


def search_pools(pools: Pools, reading: Step, decoding: Step) -> tuple[list[Pair], int]:
    """The best pairs, best first, and how many splits were evaluated; no pair if none serves."""
    return _searched(pools, sides(pools, reading, decoding))


def search_paces(
    pools: Pools, reading: Step, decoding: Step, paces: np.ndarray
) -> list[list[Pair]]:
    """The best pairs at each promise on the time per output token: `search_pools` of all at once.

    What the promise does not change, layouts that read in time above all, is worked out once.
    """
    return [_searched(pools, some)[0] for some in sides_at(pools, reading, decoding, paces)]


def _searched(pools: Pools, sides: Iterable[tuple[Readers, Decoders]]) -> tuple[list[Pair], int]:
    best: list[Pair] = []
    looked = 0
    for first_side, second in sides:
        for found, points in _pairs(pools, first_side, second, best):
            best = _merged(best, found)
            looked += points
    return best, looked


def _pairs(
    pools: Pools, first_side: Readers, second: Decoders, best: list[Pair]
) -> Iterator[tuple[list[Pair], int]]:
    """Pairs of two sides at their best split, in chunks, while they may better the `best`."""
    i, j = (
        a.ravel()
        for a in np.meshgrid(
            np.arange(len(first_side.rows)), np.arange(len(second.rows)), indexing="ij"
        )
    )
    if not i.size:
        return
    paid = np.unique(np.asarray(pools.prefill.chips, dtype=np.int64))
    if pools.prefill.objective == "latency":
        paid = paid[-1:]
    floor = _floor(pools, first_side, second, i, j, paid)
    order = np.argsort(floor, kind="stable")
    size = max(1, POINTS // len(paid))
    for start in range(0, order.size, size):
        part = order[start : start + size]
        if len(best) == KEPT and floor[part[0]] >= best[-1].score:
            return
        found = _split(pools, first_side, second, i[part], j[part], paid)
        best = _merged(best, found)
        yield found, part.size * len(paid)


def _floor(
    pools: Pools, a: Readers, b: Decoders, i: np.ndarray, j: np.ndarray, paid: np.ndarray
) -> np.ndarray:
    """What each pair would score at best: replicas split at will, or a load's replicas packed."""
    room, other = a.room.chips[i], b.room.chips[j]
    objective = pools.prefill.objective
    if objective == "latency":
        return a.first[i] + b.decoding[j]
    weights = _weights(pools)
    if pools.demand is None:
        parts = room / a.rate[i], other / b.rate[j]
        if objective == "throughput":
            return (parts[0] + parts[1]) / float(paid[-1])
        return weights[0] * parts[0] + weights[1] * parts[1]
    if objective == "throughput":
        return np.full(i.size, 1.0 / pools.demand)
    taken = _needed(pools, a.rate[i]) * room
    total = taken + _needed(pools, b.rate[j]) * other
    place = np.searchsorted(paid, total)
    chips = np.append(paid.astype(float), np.inf)[place]
    return (taken * weights[0] + (chips - taken) * weights[1]) / pools.demand


def _needed(pools: Pools, rate: np.ndarray) -> np.ndarray:
    """Replicas that carry the load, spare ones included."""
    return np.ceil((pools.demand or 0.0) / rate - 1e-12).astype(np.int64) + pools.prefill.spare


def _weights(pools: Pools) -> tuple[float, float]:
    """What a chip second of either pool counts in the objective: USD, or J."""
    if pools.prefill.objective == "energy":
        return pools.prefill.watts, pools.decode.watts
    return pools.prefill.price, pools.decode.price


def _split(
    pools: Pools, a: Readers, b: Decoders, i: np.ndarray, j: np.ndarray, paid: np.ndarray
) -> list[Pair]:
    """The best split of each pair over all numbers of chips paid; the best few pairs."""
    i, j, chips = (
        np.repeat(i, paid.size), np.repeat(j, paid.size), np.tile(paid, i.size)
    )  # fmt: skip
    spare, room = pools.prefill.spare, a.room.chips[i]
    pairs: dict[tuple[int, int], Pair] = {}
    for n, m in _tried(pools, a, b, i, j, chips):
        served, score = _scored(pools, a, b, i, j, n, m, chips)
        good = np.flatnonzero((n > spare) & (m > spare) & (served > 0))
        order = good[np.argsort(score[good], kind="stable")]
        # Of each pair the number of chips that is best for it; equals count, the search settles.
        _, leading = np.unique(i[order] * len(b.rows) + j[order], return_index=True)
        for k in order[np.sort(leading)][:MOST_TIED]:
            rows = (int(a.rows[i[k]]), int(b.rows[j[k]]))
            if rows not in pairs or score[k] < pairs[rows].score * (1 - SAME_PRICE):
                taken = int(n[k] * room[k])
                pairs[rows] = Pair(
                    score=float(score[k]),
                    latency=float(a.first[i[k]] + b.decoding[j[k]]),
                    rows=rows,
                    replicas=(int(n[k]), int(m[k])),
                    chips=(taken, int(chips[k]) - taken),
                    requests=float(served[k]),
                    batch=float(b.batch[j[k]]),
                    fills=(float(a.fill[i[k]]), float(b.fill[j[k]])),
                    slots=(float(a.slot[i[k]]), float(b.slot[j[k]])),
                )
    return list(pairs.values())


def _tried(
    pools: Pools, a: Readers, b: Decoders, i: np.ndarray, j: np.ndarray, chips: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Replicas of either pool that may be best, for each pair and number of chips."""
    first_room, other = a.room.take(i), b.room.take(j)
    taken, spare, every = first_room.chips, pools.prefill.spare, np.arange(i.size)

    def left(count: np.ndarray, at: np.ndarray = every) -> np.ndarray:
        if pools.together:
            return replicas_left(chips[at], first_room.take(at), count, other.take(at))
        rest = chips[at] - count * taken[at]
        return np.asarray(replicas_most(np.maximum(rest, 0), other.take(at))) - (rest < 0)

    if pools.demand is not None or pools.prefill.objective == "latency":
        one = np.full(i.size, 1 + spare)
        n, m = one, one
        if pools.demand is not None:
            n, m = _needed(pools, a.rate[i]), _needed(pools, b.rate[j])
        return [(n, np.where(left(n) >= m, m, 0))]
    most = replicas_most(chips, first_room)

    def enough(at: np.ndarray, count: np.ndarray) -> np.ndarray:
        n = count.astype(np.int64)
        return (n - spare) * a.rate[i[at]] >= (left(n, at) - spare) * b.rate[j[at]]

    cross = first(enough, np.zeros(i.size), np.maximum(most, 1.0)).astype(np.int64)
    return [(n, left(n)) for n in (cross, cross - 1)]


def _scored(
    pools: Pools, a: Readers, b: Decoders, i: np.ndarray, j: np.ndarray,
    n: np.ndarray, m: np.ndarray, chips: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Requests per second, and the objective, of each split of n and m replicas."""
    first, second = pools.prefill, pools.decode
    taken = n * a.room.chips[i]
    symbols = {
        "n_pf": np.maximum(n - first.spare, 0), "n_dec": np.maximum(m - first.spare, 0),
        "X_pf": a.rate[i], "X_dec": b.rate[j], "p_chip_pf": first.price,
        "p_chip_dec": second.price, "n_chips_pf": taken,
        "n_chips_dec": np.maximum(chips - taken, 0),
    }  # fmt: skip
    word = "usd_per_request"
    if first.objective == "energy":
        word = "joule_per_request"
        symbols |= {"P_chip_pf": first.watts, "P_chip_dec": second.watts}
    load = "none"
    serves = np.minimum(symbols["n_pf"], symbols["n_dec"]) > 0
    if pools.demand is not None:
        load, symbols["X_arr"] = "given", np.where(serves, pools.demand, 0.0)
    values = split_values(load, word, symbols)
    score, served = values[word], np.broadcast_to(values["requests"], n.shape)
    if first.objective == "latency":
        score = a.first[i] + b.decoding[j]
    elif first.objective == "throughput":
        with np.errstate(divide="ignore"):
            score = 1.0 / served
    return served, score


def _merged(best: list[Pair], found: list[Pair]) -> list[Pair]:
    """The best few of both, one of each layout that decodes; of equals the faster."""
    kept: dict[int, Pair] = {}
    least = min((pair.score for pair in [*best, *found]), default=1.0)

    def order(pair: Pair) -> tuple[int, float]:
        return floor(log(pair.score / least) / SAME_PRICE), pair.latency

    for pair in sorted([*best, *found], key=order):
        kept.setdefault(pair.rows[1], pair)
    return list(kept.values())[:KEPT]
