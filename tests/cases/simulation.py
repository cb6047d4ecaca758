"""A replica simulated step by step: prompts read in chunks, in order, beside decode steps.

It shares no formula with the planner: requests arrive, prompts fill chunks, steps take as long as
what they carry, and times are written down as they happen.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Replica", "Seen", "closed_loop", "open_arrivals"]

WARM_UP = 0.2  # share of the requests, and of the steps, that is not looked at
LOOKS = 5000  # moments at which requests inside are counted


@dataclass(frozen=True)
class Replica:
    """Steps that take `fixed` + `each` * sequences + `read` * prompt tokens [s].

    Those that read any take `once` more. `chunk` are the prompt tokens that a step of a rank reads
    at most. Ranks `in_step` all take as long as the slowest of them. With `prompts_first` nothing
    decodes while a prompt is there.
    """

    fixed: float
    each: float
    read: float
    chunk: int
    ranks: int = 1
    in_step: bool = False
    prompts_first: bool = False
    once: float = 0.0

    def decode(self, sequences: float) -> float:
        """A step that reads no prompt [s]."""
        return self.fixed + self.each * sequences


@dataclass(frozen=True)
class Seen:
    """What was written down: times of requests [s], and means.

    `rate` are the requests ended per second, `in_flight` those inside on average over time,
    `filled` the share of the steps' chunks that held prompts, `mixed` that of steps with any;
    `decoding` maps a number of sequences of one rank to the time it had them [s].
    """

    ttft: np.ndarray
    tpot: np.ndarray
    rate: float
    in_flight: float
    filled: float
    mixed: float
    decoding: dict[int, float]

    def moments(self) -> tuple[float, float]:
        """Mean and variance over time of the sequences that one rank decodes."""
        count, time = np.array(list(self.decoding)), np.array(list(self.decoding.values()))
        mean = float(np.average(count, weights=time))
        return mean, float(np.average((count - mean) ** 2, weights=time))


@dataclass(frozen=True)
class _Loop:
    """What `closed_loop` is given; arrivals from outside keep none in flight."""

    concurrency: int = 0
    turnaround: int = 0
    whole: bool = False
    places: float = math.inf


@dataclass
class _Requests:
    """Times of all requests: arrival, first token, last token [s], and what each one asks."""

    prompts: np.ndarray
    outputs: np.ndarray
    arrival: np.ndarray
    rank: np.ndarray
    first: np.ndarray
    last: np.ndarray


@dataclass
class _Rank:
    """One rank: prompts not yet read, sequences by the step they end with."""

    queue: deque[list[int]] = field(default_factory=deque)
    ending: list[tuple[int, int]] = field(default_factory=list)
    steps: int = 0
    read: list[int] = field(default_factory=list)

    def begin(self, replica: Replica) -> tuple[float, int, int]:
        """Fill a chunk; time of the step [s], sequences it advances, prompt tokens it reads."""
        left, self.read = replica.chunk, []
        while self.queue and left > 0:
            request = self.queue[0]
            taken = min(left, request[1])
            left, request[1] = left - taken, request[1] - taken
            if request[1] == 0:
                self.read.append(self.queue.popleft()[0])
        tokens, active = replica.chunk - left, len(self.ending)
        if replica.prompts_first and tokens:
            active = 0
        reading = replica.read * tokens + replica.once * (tokens > 0)
        return (replica.decode(active) if active else 0.0) + reading, active, tokens

    def end(self, now: float, active: int, requests: _Requests) -> list[int]:
        """Hand out tokens; the requests that had their last."""
        ended = []
        self.steps += active > 0
        while active and self.ending and self.ending[0][0] <= self.steps:
            ended.append(heapq.heappop(self.ending)[1])
            requests.last[ended[-1]] = now
        for request in self.read:
            requests.first[request] = now
            more = int(requests.outputs[request]) - 1
            heapq.heappush(self.ending, (self.steps + more, request))
        return ended


def open_arrivals(
    replica: Replica, load: float, prompts: np.ndarray, outputs: np.ndarray, seed: int
) -> Seen:
    """Poisson arrivals of `load` requests per second, dealt to the ranks at random.

    `prompts` and `outputs` [token] hold one number for every request. Their number in the time
    they take is fixed, without which most of the noise would be that of the load.
    """
    draw = np.random.default_rng(seed)
    gaps = draw.exponential(1, len(prompts))
    arrival = np.cumsum(gaps / (gaps.mean() * load))
    rank = draw.integers(0, replica.ranks, len(prompts))
    return _run(replica, prompts, outputs, arrival, rank, _Loop())


def closed_loop(
    replica: Replica,
    concurrency: int,
    prompts: np.ndarray,
    outputs: np.ndarray,
    *,
    turnaround: int = 0,
    whole: bool = False,
    places: float = math.inf,
) -> Seen:
    """`concurrency` requests at once, then one to a rank for each that ends there.

    Those that follow join after `turnaround` steps more, and as soon as the rank has fewer than so
    many `places` taken. Looked at are all that come after the first, or the `whole` run.
    """
    arrival = np.full(len(prompts), np.inf)
    arrival[:concurrency] = 0.0
    rank = np.arange(len(prompts)) % replica.ranks
    loop = _Loop(concurrency, turnaround, whole, places)
    return _run(replica, prompts, outputs, arrival, rank, loop)


def _run(
    replica: Replica,
    prompts: np.ndarray,
    outputs: np.ndarray,
    arrival: np.ndarray,
    rank: np.ndarray,
    loop: _Loop,
) -> Seen:
    never = np.full((2, len(prompts)), np.nan)
    requests = _Requests(prompts, outputs, arrival, rank, *never)
    together = replica.in_step or bool(loop.concurrency)
    groups = [range(replica.ranks)] if together else [[k] for k in range(replica.ranks)]
    steps: list[tuple[float, int, int]] = []  # time, sequences, prompt tokens
    for group in groups:
        steps += _group(replica, requests, np.flatnonzero(np.isin(rank, group)), loop)
    return _seen(replica, requests, steps, loop)


def _group(
    replica: Replica, requests: _Requests, mine: np.ndarray, loop: _Loop
) -> list[tuple[float, int, int]]:
    """The steps of ranks that start theirs together."""
    ranks = {int(k): _Rank() for k in np.unique(requests.rank[mine])}
    steps: list[tuple[float, int, int]] = []
    coming, sent, now = 0, loop.concurrency, 0.0
    due = [0] * sent  # of each request of a loop the step that it joins
    while True:
        while coming < len(mine) and requests.arrival[mine[coming]] <= now:
            request = int(mine[coming])
            if loop.concurrency and due[request] * len(ranks) > len(steps):
                break
            rank = ranks[int(requests.rank[request])]
            if len(rank.queue) + len(rank.ending) >= loop.places:
                break
            asked = [request, int(requests.prompts[request])]
            rank.queue.append(asked)
            coming += 1
        if not any(rank.queue or rank.ending for rank in ranks.values()):
            if coming == len(mine) or math.isinf(requests.arrival[mine[coming]]):
                return steps
            if requests.arrival[mine[coming]] > now:
                now = float(requests.arrival[mine[coming]])
                continue
        begun = [rank.begin(replica) for rank in ranks.values()]
        took = max(time for time, _, _ in begun)
        now += took
        for (key, rank), (_, active, tokens) in zip(ranks.items(), begun, strict=True):
            steps.append((took, len(rank.ending), tokens))
            for _ in rank.end(now, active, requests):
                if loop.concurrency and sent < len(mine):
                    requests.rank[sent], requests.arrival[sent] = key, now
                    due.append(len(steps) // len(ranks) + loop.turnaround)
                    sent += 1


def _seen(
    replica: Replica, requests: _Requests, steps: list[tuple[float, int, int]], loop: _Loop
) -> Seen:
    total = len(requests.prompts)
    part = slice(int(WARM_UP * total), total - loop.concurrency)
    kept = np.argsort(requests.arrival, kind="stable")[slice(None) if loop.whole else part]
    ends = np.sort(requests.last)[part]
    # The last tenth empties a closed loop; what is left is steady.
    middle = steps[int(WARM_UP * len(steps)) : int(0.9 * len(steps))]
    took, decoding, tokens = (np.array(column) for column in zip(*middle, strict=True))
    times: Counter[int] = Counter()
    for count, time in zip(decoding.tolist(), took.tolist(), strict=True):
        times[count] += time
    moments = np.linspace(ends[0], ends[-1], LOOKS)
    came = np.searchsorted(np.sort(requests.arrival), moments)
    gone = np.searchsorted(np.sort(requests.last), moments)
    first, last = requests.first[kept], requests.last[kept]
    return Seen(
        ttft=first - requests.arrival[kept],
        tpot=(last - first) / (requests.outputs[kept] - 1),
        rate=(len(ends) - 1) / float(ends[-1] - ends[0]),
        in_flight=float((came - gone).mean()),
        filled=float(tokens.mean()) / replica.chunk,
        mixed=float((tokens > 0).mean()),
        decoding=dict(times),
    )
