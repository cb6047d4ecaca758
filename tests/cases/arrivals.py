"""Random arrivals at a plan: every request, pass over prompts and cached token by itself.

It shares nothing with the planner. Lengths are log-normal, arrivals Poisson, requests dealt to
replicas and ranks at random. Of two pools one rank of each is followed: what the first has read
goes over its link, one cache after the other, and is dealt to those that decode.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Followed", "Rank", "Witnessed", "witnessed"]

WARM_UP = 0.1  # share of the requests that is not looked at
PARTS = 20  # of the time, from which the sampling error is taken


@dataclass(frozen=True)
class Rank:
    """One rank: times [s] by sequences and tokens, room for caches [token].

    A step with n sequences takes `steps[n]`. One that reads s tokens takes `passes[s]` more, as
    many tokens at most as there are entries, `once` for each prompt that it begins or that would
    need another pass alone, and `square` times what the squares of the read lengths grow by.
    """

    steps: np.ndarray
    room: float
    passes: np.ndarray
    once: float = 0.0
    square: float = 0.0

    @cached_property
    def reading(self) -> list[float]:
        """`passes`, quick to look up."""
        return list(self.passes.tolist())


@dataclass(frozen=True)
class Followed:
    """One rank that reads and one that decodes, the same in one pool, and what comes to them.

    `rate` are requests per second that reach the first, `ranks` the numbers of both kinds. For a
    prompt of s tokens the host takes `host[0]` + `host[1]` s, and its cache is `sent` likewise to
    the second [s]. Lengths are mean and spread [token].
    """

    reads: Rank
    decodes: Rank
    ranks: tuple[int, int]
    rate: float
    host: tuple[float, float]
    sent: tuple[float, float]
    prompt: tuple[float, float]
    answer: tuple[float, float]


@dataclass(frozen=True)
class Witnessed:
    """p95 of the time to first token [s], share of time without room, each with its error.

    `decoding` and `variance` are those of the sequences that a rank decodes, over time.
    """

    p95: float
    p95_error: float
    crowded: float
    crowded_error: float
    decoding: float
    variance: float


def lengths(mean: float, spread: float, count: int, draw: np.random.Generator) -> np.ndarray:
    """Log-normal lengths [token], whole ones, at least one."""
    if not spread:
        return np.full(count, round(mean))
    sigma = math.sqrt(math.log1p(spread**2))
    drawn = np.exp(draw.normal(math.log(mean) - sigma**2 / 2, sigma, count))
    return np.maximum(np.rint(drawn), 1).astype(int)


def witnessed(plan: Followed, count: int, seed: int) -> Witnessed:
    """`count` requests through one rank of a pool, or of each of two."""
    draw = np.random.default_rng(seed)
    prompts = lengths(*plan.prompt, count, draw)
    answers = np.maximum(lengths(*plan.answer, count, draw), 2)
    arrival = np.cumsum(draw.exponential(1 / plan.rate, count))
    if plan.reads is plan.decodes:
        ends, inside = _run(plan.reads, prompts.tolist(), answers.tolist(), arrival.tolist())
        first = np.array(ends)
    else:
        ends = _read(plan.reads, prompts.tolist(), arrival.tolist())
        first = _sent(np.array(ends), plan.sent[0] + plan.sent[1] * prompts)
        come, which = _dealt(first, plan.ranks, draw)
        # Those that come again ask for another answer.
        answers = answers[draw.permutation(which)]
        _, inside = _run(plan.decodes, prompts[which].tolist(), answers.tolist(), come.tolist())
    late = first - arrival + plan.host[0] + plan.host[1] * prompts
    late = late[int(WARM_UP * count) :]
    parts = np.array([np.quantile(part, 0.95) for part in np.array_split(late, PARTS)])
    end = inside.busy[-1][1]
    ends = np.linspace(WARM_UP * end, end, PARTS + 1)
    shares = _between(inside.full, ends) / np.diff(ends)
    begun, done, number = np.array(inside.busy)[len(inside.busy) // 10 :].T
    spans = ends[-1] - begun[0], done - begun
    decoding = float(number @ spans[1] / spans[0])
    variance = float(number**2 @ spans[1] / spans[0]) - decoding**2
    return Witnessed(
        float(np.quantile(late, 0.95)), float(parts.std(ddof=1) / math.sqrt(PARTS)),
        float(shares.mean()), float(shares.std(ddof=1) / math.sqrt(PARTS)), decoding, variance,
    )  # fmt: skip


def _between(intervals: list[tuple[float, float, float]], ends: np.ndarray) -> np.ndarray:
    """The integral of weights of intervals (begin, end, weight) between moments."""
    if not intervals:
        return np.zeros(len(ends) - 1)
    begin, end, weight = np.array(intervals).T
    total = np.concatenate([[0.0], np.cumsum((end - begin) * weight)])
    at = np.searchsorted(end, ends)
    inside = np.minimum(at, end.size - 1)
    part = np.clip(ends - begin[inside], 0.0, (end - begin)[inside]) * weight[inside]
    return np.diff(total[at] + np.where(at < end.size, part, 0.0))


def _sent(read: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """When caches have gone over one link that carries one after the other [s]."""
    until = np.cumsum(taken)
    return np.asarray(until + np.maximum.accumulate(read - until + taken))


def _dealt(
    ready: np.ndarray, ranks: tuple[int, int], draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What comes to one rank that decodes: moments [s], and the request of each.

    Every rank that reads hands on what the one followed did, from a moment of its own, dealt anew
    at each time round: the streams of many ranks, at the cost of one.
    """
    count, span = ready.size, float(ready[-1])
    lasting = span * ranks[1] / ranks[0]  # until as many have come as were read
    moments, requests = [], []
    for _ in range(ranks[0]):
        start = span * draw.random()
        for turn in range(math.ceil((lasting + start) / span)):
            mine = np.flatnonzero(draw.random(count) < 1 / ranks[1])
            moments.append(ready[mine] + span * turn - start)
            requests.append(mine)
    moment, request = np.concatenate(moments), np.concatenate(requests)
    order = np.argsort(moment)
    order = order[(moment[order] >= 0) & (moment[order] < lasting)]
    return moment[order], request[order]


def _chunk(
    rank: Rank, prompts: list[int], queue: Iterable[int], done: int
) -> tuple[float, list[int], int]:
    """Time of the next pass [s], prompts that it ends, and tokens read of the one after them."""
    most = left = len(rank.reading) - 1
    more, came = 0.0, []
    for request in queue:
        size = prompts[request]
        until = min(size, done + left)
        begun = -(-until // most) + (-done // most)  # passes by itself, however it was cut
        more += rank.once * begun + rank.square * (until**2 - done**2)
        left -= until - done
        if until < size:
            return rank.reading[most - left] + more, came, until
        came.append(request)
        done = 0
        if not left:
            break
    return rank.reading[most - left] + more, came, 0


def _read(rank: Rank, prompts: list[int], arrival: list[float]) -> list[float]:
    """When a rank that only reads has read each prompt [s]."""
    ends = [0.0] * len(prompts)
    queue: deque[int] = deque()
    now, done, coming = 0.0, 0, 0
    while coming < len(prompts) or queue:
        if not queue:
            now = max(now, arrival[coming])
        while coming < len(prompts) and arrival[coming] <= now:
            queue.append(coming)
            coming += 1
        taken, came, done = _chunk(rank, prompts, queue, done)
        now += taken
        for _ in came:
            ends[queue.popleft()] = now
    return ends


class _Sequences:
    """What one rank decodes: requests by the step they end with, tokens in its memory."""

    def __init__(self, rank: Rank) -> None:
        self._steps, self._room = rank.steps.tolist(), rank.room
        self._ending: list[tuple[int, int]] = []  # step, and tokens that it frees
        self._tokens, self._step = 0, 0
        self.full: list[tuple[float, float, float]] = []  # times without room
        self.busy: list[tuple[float, float, float]] = []  # times with so many

    def join(self, prompt: int, answer: int) -> None:
        """A request that has its first token."""
        self._tokens += prompt + 1
        heapq.heappush(self._ending, (self._step + answer - 1, prompt + answer))

    @property
    def pace(self) -> float:
        """Time of a step without prompts [s]; 0 where nothing is decoded."""
        active = len(self._ending)
        return self._steps[min(active, len(self._steps) - 1)] if active else 0.0

    def until(self, span: float) -> int:
        """Steps that take so long, or until the first request ends, at least one."""
        left = self._ending[0][0] - self._step
        return max(1, left if span == math.inf else min(left, math.ceil(span / self.pace)))

    def advance(self, steps: int, begun: float, now: float) -> None:
        """So many steps from one moment to another [s]."""
        ending, active = self._ending, len(self._ending)
        self.busy.append((begun, now, active))
        self._tokens += active * steps
        self._step += steps
        over = (self._tokens - self._room) / active / steps
        if over > 0:
            self.full.append((now - (now - begun) * min(over, 1.0), now, 1.0))
        while ending and ending[0][0] <= self._step:
            self._tokens -= heapq.heappop(ending)[1]


def _run(
    rank: Rank, prompts: list[int], answers: list[int], arrival: list[float]
) -> tuple[list[float], _Sequences]:
    """First tokens, and what was decoded; prompts that are not read here are there at once."""
    first = [0.0] * len(prompts)
    inside = _Sequences(rank)
    queue: deque[int] = deque()  # waiting, first come first served
    done = 0  # tokens of the first of them that are read
    now, coming, reads = 0.0, 0, len(rank.reading) > 1
    while coming < len(prompts) or queue:
        while coming < len(prompts) and arrival[coming] <= now:
            if reads:
                queue.append(coming)
            else:
                inside.join(prompts[coming], answers[coming])
            coming += 1
        begun, pace = now, inside.pace
        if queue:
            reading, came, done = _chunk(rank, prompts, queue, done)
            now += pace + reading
            if pace:
                inside.advance(1, begun, now)
            for request in came:
                queue.popleft()
                first[request] = now
                inside.join(prompts[request], answers[request])
        elif pace:
            upcoming = arrival[coming] if coming < len(prompts) else math.inf
            steps = inside.until(upcoming - now)
            now += steps * pace
            inside.advance(steps, begun, now)
        elif coming < len(prompts):
            now = arrival[coming]
    return first, inside
