"""Loaded plans put through random arrivals: every request, chunk and cached token by itself.

Nothing of the planner is used but what `planner.solve` answers: how long a step takes at a batch,
how long a prompt occupies a rank, what memory is left. Lengths are log-normal, arrivals Poisson,
requests dealt to replicas and ranks at random.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from planner import solve

__all__ = ["Rank", "Witnessed", "broken", "drawn_question", "rank_of", "witnessed"]

WARM_UP = 0.1  # share of the requests that is not looked at
PARTS = 20  # of the time, from which the sampling error is taken
DEVIATIONS = 3.0  # of the sampling error


@dataclass(frozen=True)
class Rank:
    """One rank: times [s] by sequences and tokens, room [token], requests/s, promised p95 [s].

    A step with n sequences takes `steps[n]`; the first s tokens of a prompt take `once` +
    `linear` s + `square` s^2, `chunk` tokens a step at most, and `host` is time that
    occupies nothing. With
    `mixed` steps a chunk rides on the sequences; else a rank only reads, or only decodes.
    """

    steps: np.ndarray
    once: float
    linear: float
    square: float
    host: float
    chunk: int
    mixed: bool
    rate: float
    room: float
    prompt: tuple[float, float]
    answer: tuple[float, float]


@dataclass(frozen=True)
class Witnessed:
    """p95 of the time to first token [s], share of time without room, each with its error."""

    p95: float
    p95_error: float
    crowded: float
    crowded_error: float
    decoding: float


def lengths(mean: float, spread: float, count: int, draw: np.random.Generator) -> np.ndarray:
    """Log-normal lengths [token], whole ones, at least one."""
    if not spread:
        return np.full(count, round(mean))
    sigma = math.sqrt(math.log1p(spread**2))
    drawn = np.exp(draw.normal(math.log(mean) - sigma**2 / 2, sigma, count))
    return np.maximum(np.rint(drawn), 1).astype(int)


def witnessed(rank: Rank, count: int, seed: int) -> Witnessed:
    """`count` requests through one rank."""
    draw = np.random.default_rng(seed)
    prompts = lengths(*rank.prompt, count, draw)
    answers = np.maximum(lengths(*rank.answer, count, draw), 2)
    arrival = np.cumsum(draw.exponential(1 / rank.rate, count))
    first, full, held = _run(rank, prompts.tolist(), answers.tolist(), arrival.tolist())
    kept = slice(int(WARM_UP * count), count)
    late = (np.array(first) - arrival)[kept] + rank.host
    parts = np.array([np.quantile(part, 0.95) for part in np.array_split(late, PARTS)])
    ends = np.linspace(arrival[kept.start], arrival[-1], PARTS + 1)
    shares = _between(full, ends) / np.diff(ends)
    decoding = float(_between(held, ends[[0, -1]])[0] / (ends[-1] - ends[0]))
    return Witnessed(
        float(np.quantile(late, 0.95)), float(parts.std(ddof=1) / math.sqrt(PARTS)),
        float(shares.mean()), float(shares.std(ddof=1) / math.sqrt(PARTS)), decoding,
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


def _chunk(
    rank: Rank, prompts: list[int], queue: Iterable[int], done: int
) -> tuple[float, list[int], int]:
    """Time of the next chunk [s], prompts that it ends, and tokens read of the one after them."""
    left, reading, came = rank.chunk, 0.0, []
    for request in queue:
        size = prompts[request]
        until = min(size, done + left)
        reading += 0.0 if done else rank.once
        reading += rank.linear * (until - done) + rank.square * (until**2 - done**2)
        left -= until - done
        if until < size:
            return reading, came, until
        came.append(request)
        done = 0
        if not left:
            break
    return reading, came, 0


def _run(
    rank: Rank, prompts: list[int], answers: list[int], arrival: list[float]
) -> tuple[list[float], list[tuple[float, float, float]], list[tuple[float, float, float]]]:
    """First tokens, times without room, and times with so many sequences."""
    steps, most = rank.steps.tolist(), len(rank.steps) - 1
    first = [0.0] * len(prompts)
    full: list[tuple[float, float, float]] = []
    held: list[tuple[float, float, float]] = []
    queue: deque[int] = deque()  # waiting, first come first served
    done = 0  # tokens of the first of them that are read
    ending: list[tuple[int, int]] = []  # step and request that ends with it
    now, tokens, step, coming = 0.0, 0.0, 0, 0
    while coming < len(prompts) or queue:
        while coming < len(prompts) and arrival[coming] <= now:
            queue.append(coming)
            coming += 1
        active = len(ending)
        pace = steps[min(active, most)] if active else 0.0
        begun = now
        if queue:
            reading, came, done = _chunk(rank, prompts, queue, done)
            for _ in came:
                queue.popleft()
            now += pace + reading
            advanced = 1
        elif active:
            came = []
            upcoming = arrival[coming] if coming < len(prompts) else math.inf
            room = ending[0][0] - step
            advanced = max(1, min(room, math.ceil((upcoming - now) / pace)))
            now += advanced * pace
        else:
            now = arrival[coming]
            continue
        if active:
            held.append((begun, now, active))
            over = (tokens + active * advanced - rank.room) / active / advanced
            if over > 0:
                full.append((now - (now - begun) * min(over, 1.0), now, 1.0))
            step, tokens = step + advanced, tokens + active * advanced
            while ending and ending[0][0] <= step:
                request = heapq.heappop(ending)[1]
                tokens -= prompts[request] + answers[request]
        for request in came:
            first[request] = now
            if most:
                tokens += prompts[request] + 1
                heapq.heappush(ending, (step + answers[request] - 1, request))
    return first, full, held


AXES = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "overlap")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "gpt-oss-120b", "qwen3-235b-a22b", "mixtral-8x7b")
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200")
POINTS = 24  # batches at which a step is asked for


def drawn_question(seed: int) -> dict[str, Any]:
    """A loaded question: a model, a system, lengths and their spread, a rate, promises."""
    draw = np.random.default_rng(seed)

    def one(*values: Any) -> Any:
        return values[int(draw.integers(len(values)))]

    prompt, answer = one(300, 1000, 3000, 8000), one(100, 400, 1000, 3000)
    work = {
        "input_tokens": {"mean": prompt, "cv": one(0.0, 0.5, 1.0)},
        "output_tokens": {"mean": answer, "cv": one(0.0, 0.5, 1.0)},
        "demand": f"{one(1, 3, 10, 30, 100)} requests/s",
        "spare_replicas": one(0, 0, 1),
    }
    choose = {"mode": "aggregated", "pp": 1, "cp": 1, "weights": "bf16", "overlap": "none"}
    return {
        "problem": "serving", "model": one(*MODELS), "system": one(*SYSTEMS),
        "chips": [*range(1, 9), *range(16, 65, 8)], "price": "$3/hour", "workload": work,
        "promises": {"ttft_p95": f"{one(0.5, 1, 2, 4)} s", "tpot": f"{one(40, 100, 300)} ms",
                     "cache_fits": one(0.9, 0.95, 0.99)},
        "choose": choose, "profile": "engines-2026",
    }  # fmt: skip


def rank_of(question: dict[str, Any], plan: dict[str, Any]) -> Rank:
    """One rank of a plan of one pool, its times asked of `planner.solve` without any load."""
    layout, demand = plan["layout"], plan["demand"]
    ranks, prompt = layout["dp_attention"], question["workload"]["input_tokens"]
    answer = question["workload"]["output_tokens"]
    ways = {axis: layout[axis] for axis in AXES} | {"replicas": 1}
    alone = ways | {name: plan[name] for name in ("weights", "kv", "chunk")}
    chips = math.prod(layout[axis] for axis in ("tp", "pp", "cp", "dp_attention"))

    def asked(mode: str, batch: int, tokens: float) -> dict[str, Any]:
        probe = deepcopy(question) | {"chips": chips, "promises": {}}
        probe["workload"] = {"input_tokens": tokens, "output_tokens": _met(answer)}
        probe["choose"] = alone | {"batch": batch, "mode": mode}
        # What is in use is told of whether or not it keeps up.
        probe["current"] = {n: x for n, x in ways.items() if n != "tp_expert"} | {"batch": batch}
        found: dict[str, Any] = solve(probe).document["current"]
        return found

    def occupied(tokens: float) -> float:
        found = asked("aggregated", plan["batch_per_replica"], tokens)
        return float(found["usd_per_mtok_input"] * tokens / 1e6
                     / (found["usd_per_hour"] / 3600) * ranks)  # fmt: skip

    mean, fullest = prompt["mean"], max(demand["room_per_replica"], ranks)
    sizes = np.unique(np.geomspace(ranks, fullest, POINTS).astype(int) // ranks * ranks)
    sizes = sizes[sizes > 0]
    paces = [_decoding(asked("decode", int(size), mean)) for size in sizes]
    steps = np.interp(np.arange(2 * int(fullest) // ranks + 2) * ranks, sizes, paces)
    grid = mean * np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    taken = np.array([occupied(float(tokens)) for tokens in grid])
    columns = np.stack([grid**0, grid, grid**2]) / taken
    once, linear, square = nnls(columns.T, np.ones(grid.size))[0]
    whole = asked("aggregated", plan["batch_per_replica"], mean)
    read = once + linear * mean + square * mean**2
    read += math.ceil(mean / plan["chunk"]) * _decoding(whole)
    memory = plan["memory_per_chip"]
    each = memory["kv"] / math.ceil(plan["batch_per_replica"] / ranks)
    up = layout["replicas"] - question["workload"]["spare_replicas"]
    return Rank(
        steps, once, linear, square, max(whole["ttft"] - read, 0.0), plan["chunk"], True,
        demand["requests_per_s"] / up / ranks,
        (memory["kv"] + memory["free"]) / each * _context(prompt, answer),
        (mean, prompt["cv"]), (answer["mean"], answer["cv"]),
    )  # fmt: skip


def _context(prompt: dict[str, float], answer: dict[str, float]) -> float:
    """Mean context of a request that decodes [token], by hand: I + E[O^2]/(2 E[O])."""
    return prompt["mean"] + answer["mean"] * (1 + answer["cv"] ** 2) / 2


def _met(answer: dict[str, float]) -> dict[str, float]:
    return {"mean": answer["mean"], "cv": answer["cv"]}


def _decoding(plan: dict[str, Any]) -> float:
    """A step without what it reads of prompts [s]."""
    return float(sum(time for part, time in plan["time_per_step"].items() if part != "prefill"))


def broken(question: dict[str, Any], seen: Witnessed) -> str:
    """The promises that are broken by more than their sampling error; empty where none is."""
    promises = question["promises"]
    late = seen.p95 - DEVIATIONS * seen.p95_error > float(promises["ttft_p95"].split()[0])
    full = seen.crowded - DEVIATIONS * seen.crowded_error > 1 - promises["cache_fits"]
    return ", ".join(["ttft_p95"] * late + ["cache_fits"] * full)
