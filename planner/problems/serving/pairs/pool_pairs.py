"""Two pools, exactly: every pair of layouts, every split of the chips between them.

One pool reads prompts, the other decodes, so each has its own best layout; the slower of the two
sets the rate. Of layouts whose replicas take the same room only the fastest matters, which leaves
few pairs. For a pair and a number of chips the first pool's rate grows with its replicas and the
second's falls, so the best split lies where the two cross: one of its neighbours on either side.
Pairs are looked at in the order of what they could reach without whole numbers, until the best
found is better than that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor, inf, log
from typing import TypeAlias

import numpy as np

from planner.problems.serving.deployment.drawn_power import chip_cost
from planner.problems.serving.pairs.pool_matching import (
    MatchedLayouts,
    match_pools_at_tpot,
    matched_parts,
    matched_pools,
)
from planner.problems.serving.search import replica_counts
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.kernels import split_values
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.occupancy import first
from planner.problems.serving.step.packing import distinct
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task, TaskPair
from planner.text.tolerances import REL_TOL, TIE

N_PAIRS = 6  # pairs of a question that are worth evaluating in full
MAX_TIES = 64  # splits of one number of chips that may share the best score
FIRST_SPLITS, MAX_SPLITS = 2_000, 200_000  # splits looked at together, at first and at most
MAX_SORTED = 1_000_000  # pairs put in order together: 0.3 kB each


@dataclass(frozen=True)
class Pair:
    """A layout of each pool, with replicas and chips of both, and the requests/s they serve.

    `score` is the objective, `latency` that of a request [s]; `rows` index the layouts of the two
    steps, `batch` is that of a decoding replica at its most, `reads` that of a reading one. `fills`
    are the shares of its time that a replica of either pool may be used, `slots` the times it
    spends per request [s]. `odd` says how far both layouts are from plain ones.
    """

    score: float
    latency: float
    rows: tuple[int, int]
    replicas: tuple[int, int]
    chips: tuple[int, int]
    requests: float
    batch: float
    reads: float
    fills: tuple[float, float]
    slots: tuple[float, float]
    odd: int = 0


SearchedPairs: TypeAlias = tuple[list[Pair], int]


def affordable(pair: TaskPair, layouts: Sequence[Layouts], most: float) -> list[Layouts]:
    """Layouts of either pool whose chips, plus the other pool's fewest, cost less than a score.

    Those are all where chips are full whatever they cost, or more than their price counts.
    """
    if pair.demand is None or pair.prefill.objective != "cost" or most == np.inf:
        return list(layouts)
    prices = [task.price - task.electricity for task in (pair.prefill, pair.decode)]
    paid = np.append(np.unique(np.asarray(pair.prefill.chips, dtype=float)), np.inf)
    cheap = []
    for k, of in enumerate(layouts):
        beside = int(layouts[1 - k].replica_chips.min())
        whole = paid[np.searchsorted(paid, of.replica_chips + beside)] * min(prices)
        rent = np.maximum(of.replica_chips * prices[k] + beside * prices[1 - k], whole)
        cheap.append(of.take(rent / pair.demand < most * (1 - REL_TOL)))
    return cheap


def search_pools(tasks: TaskPair, reading: Step, decoding: Step) -> SearchedPairs:
    """Best pairs, best first, and the number of splits evaluated; empty if no pair serves."""
    return search_pools_batched([(tasks, reading, decoding)])[0]


def search_pools_batched(questions: Sequence[tuple[TaskPair, Step, Step]]) -> list[SearchedPairs]:
    """`search_pools` of several questions; layouts of compatible questions are sized together."""
    matched = matched_together(questions)
    return [best_pairs(*each) for each in zip((of[0] for of in questions), matched, strict=True)]


def matched_together(questions: Sequence[tuple[TaskPair, Step, Step]]) -> list[MatchedLayouts]:
    """Matched layouts of both pools per question; compatible questions are sized together."""
    steps = [(reading, decoding) for _, reading, decoding in questions]
    promises = [frozenset(tasks.decode.promises) for tasks, _, _ in questions]
    matched: dict[int, MatchedLayouts] = {}
    for numbers in group_compatible_steps(steps, promises):
        columns = zip(*(questions[k] for k in numbers), strict=True)
        matched |= zip(numbers, matched_pools(*columns), strict=True)
    return [matched[number] for number in range(len(questions))]


def search_at_tpots(
    tasks: TaskPair, reading: Step, decoding: Step, paces: np.ndarray
) -> list[list[Pair]]:
    """The best pairs at each promise on the time per output token: `search_pools` of all at once.

    What the promise does not change, layouts that read in time above all, is worked out once.
    """
    every = match_pools_at_tpot(tasks, reading, decoding, paces)
    return [best_pairs(tasks, matched)[0] for matched in every]


def search_parts(
    tasks: TaskPair, reading: Step, decoding: Step, parts: Iterable[np.ndarray]
) -> Iterator[list[Pair]]:
    """The best pairs with each part of the layouts that decode, one part after the other."""
    for rows, matched in matched_parts(tasks, reading, decoding, parts):
        pairs, _ = best_pairs(tasks, matched)
        yield [replace(pair, rows=(pair.rows[0], int(rows[pair.rows[1]]))) for pair in pairs]


def best_pairs(tasks: TaskPair, matched: MatchedLayouts, most: float = np.inf) -> SearchedPairs:
    """Every pair of a group at its best split, a few that promise most first, while any may win.

    Pairs that score more than `most` may be left out.
    """
    prefill, decode = matched
    best: list[Pair] = []
    looked = 0
    paid = np.unique(np.asarray(tasks.prefill.chips, dtype=np.int64))
    if tasks.prefill.objective == "latency" or (
        tasks.prefill.objective == "throughput" and tasks.demand is None
    ):
        paid = paid[-1:]
    # Fastest layout of each decode kind; it represents the slower layouts before it.
    fastest = np.flatnonzero(np.append(decode.slower[1:] == 0, True)[: decode.rows.size])
    looks = paid.size if tasks.demand is None else paid.size.bit_length()
    for i, j in _pairs(prefill.group, decode.group, fastest):
        least = _least_score(tasks, prefill.take(i), decode.take(j), paid)
        order = _promising(least, prefill, decode, i, j)
        order = order[least[order] <= most]
        # Minimum score and minimum oddness of this and all later pairs in the order.
        rest, odd = (
            np.minimum.accumulate(of[order][::-1])[::-1]
            for of in (least, prefill.odd[i] + decode.odd[j])
        )
        start, size = 0, FIRST_SPLITS
        while start < order.size:
            part = order[start : start + max(1, size // looks)]
            if len(best) == N_PAIRS and _settled(best, rest[start], odd[start]):
                break
            at, chips = _paying(tasks, prefill.take(i[part]), decode.take(j[part]), paid)
            pairs = i[part[at]], j[part[at]], chips
            reads, decodes, chips = replica_counts.counts_with_prefill_capacity(
                tasks, prefill, decode, pairs
            )
            best = _merged(best, _split(tasks, prefill.take(reads), decode.take(decodes), chips))
            looked, start, size = looked + at.size, start + part.size, min(2 * size, MAX_SPLITS)
    return best, looked


def _promising(
    score: np.ndarray, a: PhaseLayouts, b: PhaseLayouts, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    lowest, odd = score.min(initial=np.inf), a.odd[i] + b.odd[j]
    coarse = np.floor(np.log(score / lowest) / SAME_PRICE) if 0 < lowest < np.inf else score
    tied = np.where(score <= lowest * (1 + TIE), odd, np.inf)
    return np.lexsort((a.latency[i] + b.latency[j], odd, coarse, tied))


def _settled(best: list[Pair], score: float, odd: int) -> bool:
    scores = [pair.score for pair in best]
    tied = score < min(scores) * (1 + TIE)
    return score >= max(scores) and not (tied and odd < best[0].odd)


def _pairs(
    prefill: np.ndarray, decode: np.ndarray, fastest: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of every pair within a group, `MAX_SORTED` at a time, of those that decode some rows."""
    first = np.searchsorted(decode[fastest], prefill, side="left")
    last = np.searchsorted(decode[fastest], prefill, side="right")
    ends = np.cumsum(last - first)
    for k in range(0, int(ends[-1]) if ends.size else 0, MAX_SORTED):
        number = np.arange(k, min(k + MAX_SORTED, ends[-1]))
        i = np.searchsorted(ends, number, side="right")
        yield i, fastest[number - ends[i] + last[i]]


def _least_score(tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, paid: np.ndarray) -> np.ndarray:
    """Lower bound of each pair's score: replicas split freely, or a load's replicas packed."""
    objective = tasks.prefill.objective
    if objective == "latency":
        return a.latency + b.latency
    if tasks.demand is None:
        parts = a.room.chips / a.rate, b.room.chips / b.rate
        if objective == "throughput":
            return (parts[0] + parts[1]) / float(paid[-1])
        return a.weight * parts[0] + b.weight * parts[1]
    if objective == "throughput":
        return np.full(a.rate.size, 1.0 / tasks.demand)
    taken = replica_counts.required_replicas(tasks, a.rate) * a.room.chips
    beside = replica_counts.required_replicas(tasks, b.rate) * b.room.chips
    place = np.searchsorted(paid, taken + beside)
    rest = np.append(paid.astype(float), np.inf)[place] - taken - beside
    busy = tasks.demand / (np.maximum(taken / a.room.chips - tasks.prefill.spare, 1) * a.rate)
    bill = taken * _drawn(tasks.prefill, a, busy) + beside * b.weight
    idle = np.minimum(*(_drawn(*pool, 0.0) for pool in zip(tasks.tasks, (a, b), strict=True)))
    return (bill + rest * idle) / tasks.demand


def _paying(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, paid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, as rows, each with the numbers of chips that are worth trying.

    Those are all of them, or under a load the fewest that hold its replicas: more cost more.
    """
    pairs = np.arange(a.rate.size)
    if tasks.demand is None or paid.size == 1:
        return np.repeat(pairs, paid.size), np.tile(paid, pairs.size)
    loaded = [
        _fewest(tasks, a, b, counts, paid) for counts in replica_counts.loaded_counts(tasks, a, b)
    ]
    rows, chips = (np.concatenate(columns) for columns in zip(*loaded, strict=True))
    return rows, chips


def _fewest(
    tasks: TaskPair,
    a: PhaseLayouts,
    b: PhaseLayouts,
    counts: tuple[np.ndarray, np.ndarray],
    paid: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose replicas fit, as rows, each with the fewest chips that hold them."""
    read, decode = counts

    def holds(rows: np.ndarray, index: np.ndarray) -> np.ndarray:
        chips = paid[index.astype(np.int64)]
        beside = replica_counts.decode_replicas(
            tasks, a.room.take(rows), b.room.take(rows), read[rows], chips
        )
        return np.asarray(beside >= decode[rows])

    most = np.full(read.size, paid.size - 1.0)
    rows = np.flatnonzero(holds(np.arange(read.size), most))
    fewest = first(lambda at, index: holds(rows[at], index), np.full(rows.size, -1.0), most[rows])
    return rows, paid[fewest.astype(np.int64)]


def _split(tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, chips: np.ndarray) -> list[Pair]:
    """The best split of each pair over all numbers of chips paid; the best few pairs."""
    pairs: dict[tuple[int, int], Pair] = {}
    for n, m in replica_counts.replica_counts(tasks, a, b, chips):
        chips_read, served, score = _scored(tasks, a, b, n, m, chips)
        good = np.flatnonzero(served > 0)
        order = good[_promising(score[good], a, b, good, good)]
        # Best number of chips of each pair; ties count too, since the search settles them.
        leading, _ = distinct(a.rows[order], b.rows[order])
        for k in _leading(score, b.rows, order[np.sort(leading)][:MAX_TIES]):
            rows = (int(a.rows[k]), int(b.rows[k]))
            if rows not in pairs or score[k] < pairs[rows].score * (1 - SAME_PRICE):
                taken = int(chips_read[k])
                pairs[rows] = Pair(
                    score=float(score[k]),
                    latency=float(a.latency[k] + b.latency[k]),
                    rows=rows,
                    replicas=(int(n[k]), int(m[k])),
                    chips=(taken, int(chips[k]) - taken),
                    requests=float(served[k]),
                    batch=float(b.batch[k]),
                    reads=float(a.batch[k]),
                    fills=(float(a.fill[k]), float(b.fill[k])),
                    slots=(float(a.slot[k]), float(b.slot[k])),
                    odd=int(a.odd[k] + b.odd[k]),
                )
    return list(pairs.values())


def _leading(score: np.ndarray, decode: np.ndarray, order: np.ndarray) -> np.ndarray:
    _, first, layout = np.unique(decode[order], return_index=True, return_inverse=True)
    scores = score[order]
    return order[scores <= scores[first][layout] * (1 + 4 * SAME_PRICE)]


def _scored(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, n: np.ndarray, m: np.ndarray,
    chips: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Chips that read, requests per second, and the objective, of splits of n and m replicas."""
    prefill, pools = tasks.prefill, [*zip(tasks.tasks, (a, b), strict=True)]
    idle = _drawn(*pools[0], 0.0), _drawn(*pools[1], 0.0)
    taken = replica_counts.prefill_chips(tasks, a, b, n, m, chips, idle)
    up = [np.maximum(count - prefill.spare, 0) for count in (n, m)]
    rates = up[0] * a.rate, up[1] * b.rate
    served = np.minimum(*rates) if tasks.demand is None else np.full(n.shape, tasks.demand)
    chips_of = taken, np.maximum(chips - taken, 0)
    # Decode replicas run steps all the time; power of the best pairs with fewer sequences, where
    # less is served, is worked out in full.
    busy = np.minimum(served, rates[0]) / np.where(rates[0] > 0, rates[0], 1.0), 1.0
    works = [
        each * np.maximum(count, 0) * of.room.chips / np.maximum(whole, 1)
        for each, count, of, whole in zip(busy, (n, m), (a, b), chips_of, strict=True)
    ]
    # Chip prices in USD and in J add up by one set of equations.
    symbols = {
        "n_pf": up[0], "n_dec": up[1], "X_pf": a.rate, "X_dec": b.rate,
        "n_chips_pf": chips_of[0], "n_chips_dec": chips_of[1],
        "p_chip_pf": _drawn(*pools[0], works[0]), "p_chip_dec": _drawn(*pools[1], works[1]),
    }  # fmt: skip
    load = "none"
    if tasks.demand is not None:
        load, symbols["X_arr"] = "given", np.where(np.minimum(*up) > 0, tasks.demand, 0.0)
    values = split_values(load, symbols)
    score, served = values["usd_per_request"], np.broadcast_to(values["requests"], n.shape)
    if prefill.objective == "latency":
        score = a.latency + b.latency
    elif prefill.objective == "throughput":
        with np.errstate(divide="ignore"):
            score = 1.0 / served
    return taken, served, score


def _drawn(task: Task, of: PhaseLayouts, share: np.ndarray | float) -> np.ndarray:
    """Weight of a chip that works for a share of its time, and else is idle [J/s, USD/s]."""
    if task.draw is None or task.uses_bound:
        return of.weight
    idle = chip_cost(task, task.draw.idle * task.site)
    return np.asarray(idle + share * (of.weight - idle))


def _merged(best: list[Pair], pairs: list[Pair]) -> list[Pair]:
    """The best few of both, one of each layout that decodes; of a tie the plainer, the faster."""
    leading: dict[int, Pair] = {}
    least = min((pair.score for pair in [*best, *pairs]), default=1.0)

    def order(pair: Pair) -> tuple[float, int, int, float]:
        coarse = floor(log(pair.score / least) / SAME_PRICE)
        tied = pair.odd if pair.score <= least * (1 + TIE) else inf
        return tied, coarse, pair.odd, pair.latency

    for pair in sorted([*best, *pairs], key=order):
        leading.setdefault(pair.rows[1], pair)
    return list(leading.values())[:N_PAIRS]


def group_compatible_steps(
    steps: Sequence[tuple[Step, ...]], keys: Sequence[object] | None = None
) -> list[list[int]]:
    """Numbers of questions that may be joined: equal `joinable` steps and equal `keys`."""
    groups: dict[object, list[int]] = {}
    for number, several in enumerate(steps):
        shapes = [step.joinable() for step in several]
        shape = number if None in shapes else (*shapes, keys and keys[number])
        groups.setdefault(shape, []).append(number)
    return list(groups.values())
