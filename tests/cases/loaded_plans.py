"""Loaded questions of one pool and of two, and what `planner.solve` says of their plans' ranks.

Times are asked for without any load: how long a step takes at a batch, how long a prompt occupies a
rank, how long its cache takes to another, what memory is left.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from planner import solve
from tests.cases.arrivals import Followed, Rank, Witnessed

__all__ = ["MODES", "broken", "drawn_question", "followed"]

MODES = ("aggregated", "disaggregated")
AXES = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "overlap")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "gpt-oss-120b", "qwen3-235b-a22b", "mixtral-8x7b")
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200")
DEVIATIONS = 3.0  # of the sampling error
POINTS = 12  # batches at which a step is asked for


def drawn_question(seed: int, mode: str = "aggregated") -> dict[str, Any]:
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
    choose = {"mode": mode, "pp": 1, "cp": 1, "weights": "bf16", "overlap": "none"}
    return {
        "problem": "serving", "model": one(*MODELS), "system": one(*SYSTEMS),
        "chips": [*range(1, 9), *range(16, 65, 8)], "price": "$3/hour", "workload": work,
        "promises": {"ttft_p95": f"{one(0.5, 1, 2, 4)} s", "tpot": f"{one(40, 100, 300)} ms",
                     "cache_fits": one(0.9, 0.95, 0.99), "chance": "1%"},
        "choose": choose, "profile": "engines-2026",
    }  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """What `planner.solve` says of one replica of one pool of a plan, without any load."""

    question: dict[str, Any]
    chunk: int
    pool: dict[str, Any]

    @property
    def ways(self) -> dict[str, Any]:
        """The layout of a replica."""
        return {axis: self.pool["layout"][axis] for axis in AXES} | {"replicas": 1}

    @property
    def ranks(self) -> int:
        """Copies of attention in it."""
        return int(self.pool["layout"]["dp_attention"])

    def serving(self, spare: int) -> int:
        """Ranks that are up."""
        return (int(self.pool["layout"]["replicas"]) - spare) * self.ranks

    def solved(self, tokens: float, choose: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The answer at prompts of so many tokens, all alike."""
        load, pool = self.question["workload"], self.pool
        probe = deepcopy(self.question) | {"promises": {}} | more
        answer = {name: load["output_tokens"][name] for name in ("mean", "cv")}
        probe["workload"] = {"input_tokens": tokens, "output_tokens": answer}
        dtypes = {name: pool[name] for name in ("weights", "kv")}
        probe["choose"] = dtypes | {"chunk": self.chunk} | choose
        return dict(solve(probe).document)

    def alone(self, mode: str, batch: int, tokens: float) -> dict[str, Any]:
        """The replica in use at so many sequences, whether or not it keeps up."""
        ways = self.ways
        current = {n: x for n, x in ways.items() if n != "tp_expert"} | {"batch": batch}
        choose = ways | {"batch": batch, "mode": mode}
        chips = math.prod(ways[axis] for axis in ("tp", "pp", "cp", "dp_attention"))
        found: dict[str, Any] = self.solved(tokens, choose, chips=chips, current=current)["current"]
        return found

    def decodes(self, fullest: int) -> np.ndarray:
        """Time of a step by the sequences of one of its ranks, up to twice the most [s]."""
        mean, ranks = self.question["workload"]["input_tokens"]["mean"], self.ranks
        sizes = np.unique(np.geomspace(ranks, fullest, POINTS).astype(int) // ranks * ranks)
        sizes = sizes[sizes > 0]
        paces = [_decoding(self.alone("decode", int(size), mean)) for size in sizes]
        return np.interp(np.arange(2 * fullest // ranks + 2) * ranks, sizes, paces)

    def room(self) -> float:
        """Tokens that the memory left for caches holds, by what those in flight take."""
        memory, load = self.pool["memory_per_chip"], self.question["workload"]
        each = memory["kv"] / math.ceil(self.pool["batch_per_replica"] / self.ranks)
        context = _context(load["input_tokens"], load["output_tokens"])
        return float((memory["kv"] + memory["free"]) / each * context)


def followed(question: dict[str, Any], plan: dict[str, Any]) -> Followed:
    """Ranks of a plan, their times asked of `planner.solve` without any load."""
    load, demand, chunk = question["workload"], plan["demand"], plan["chunk"]
    prompt, answer = load["input_tokens"], load["output_tokens"]
    spare, several = load["spare_replicas"], plan["layout"] is None
    reading, decoding = (
        _Asked(question, chunk, plan[name] if several else plan) for name in ("prefill", "decode")
    )
    steps = decoding.decodes(max(demand["room_per_replica"], decoding.ranks))
    if several:
        reads, host = _reading(reading)
        decodes = Rank(steps, decoding.room(), np.zeros(1))
        sent = _sending(reading, decoding)
    else:
        reads, host = _riding(reading, steps)
        decodes, sent = reads, (0.0, 0.0)
    ranks = reading.serving(spare), decoding.serving(spare)
    rate = demand["requests_per_s"] / ranks[0]
    lengths = ((prompt["mean"], prompt["cv"]), (answer["mean"], answer["cv"]))
    return Followed(reads, decodes, ranks, rate, host, sent, *lengths)


def _riding(pool: _Asked, steps: np.ndarray) -> tuple[Rank, tuple[float, float]]:
    """A rank whose steps read chunks as well, and the host's time for a prompt [s]."""
    batch, chunk = pool.pool["batch_per_replica"], pool.chunk
    grid = pool.question["workload"]["input_tokens"]["mean"] * np.array([0.25, 0.5, 1, 2, 4])
    found = [pool.alone("aggregated", batch, float(tokens)) for tokens in grid]
    taken = [_occupied(x, s) * pool.ranks for x, s in zip(found, grid, strict=True)]
    columns = np.stack([np.ceil(grid / chunk), grid, grid**2])
    once, linear, square = nnls((columns / taken).T, np.ones(grid.size))[0].tolist()
    read = np.array([once, linear, square]) @ columns
    read += np.ceil(grid / chunk) * [_decoding(x) for x in found]
    rank = Rank(steps, pool.room(), linear * np.arange(chunk + 1), once, square)
    return rank, _host(grid, [x["ttft"] for x in found] - read)


def _reading(pool: _Asked) -> tuple[Rank, tuple[float, float]]:
    """A rank that only reads, and the host's time for a prompt [s].

    A pass is asked for at prompts that fill an eighth of it, and where one fills it: the more it
    takes then is that of the square.
    """
    eighth = pool.chunk // 8
    passes = [(1, eighth // 16), (1, eighth // 4), *((k, eighth) for k in (1, 2, 4, 8))]
    found = [pool.alone("prefill", n * pool.ranks, s) for n, s in [*passes, (1, 8 * eighth)]]
    numbers, sizes = np.array([*passes, (1, 8 * eighth)]).T
    taken = np.array([_occupied(x, s) for x, s in zip(found, sizes, strict=True)])
    taken *= numbers * pool.ranks
    square = max(taken[-1] - taken[-2], 0.0) / (56 * eighth**2)
    base = (taken - square * numbers * sizes**2)[:-1]
    table = np.interp(np.arange(pool.chunk + 1), (numbers * sizes)[:-1], base)
    late = np.array([x["ttft"] for x in found]) - taken
    return Rank(np.zeros(1), 0.0, table, 0.0, float(square)), _host(sizes, late)


def _host(sizes: np.ndarray, late: np.ndarray) -> tuple[float, float]:
    """What a prompt is late beyond its passes, once and for each token [s]."""
    once, each = nnls(np.stack([sizes**0, sizes]).T, np.maximum(late, 0.0))[0]
    return float(once), float(each)


def _sending(reading: _Asked, decoding: _Asked) -> tuple[float, float]:
    """Time of a cache's way between two pools, once and for each token of its prompt [s]."""
    mean = reading.question["workload"]["input_tokens"]["mean"]
    ways = {"mode": "disaggregated", "prefill": reading.ways, "decode": decoding.ways}
    chips = sum(pool.pool["chips_used"] for pool in (reading, decoding))
    seconds = [
        reading.solved(tokens, ways, chips=chips)["plan"]["transfer"]["seconds"]
        for tokens in (mean, 2 * mean)
    ]
    each = (seconds[1] - seconds[0]) / mean
    return seconds[0] - each * mean, each


def _occupied(found: dict[str, Any], tokens: float) -> float:
    """Time of a replica that a prompt takes, by its price [s]."""
    return float(found["usd_per_mtok_input"] * tokens / 1e6 / (found["usd_per_hour"] / 3600))


def _context(prompt: dict[str, float], answer: dict[str, float]) -> float:
    """Mean context of a request that decodes [token], by hand: I + E[O^2]/(2 E[O])."""
    return prompt["mean"] + answer["mean"] * (1 + answer["cv"] ** 2) / 2


def _decoding(plan: dict[str, Any]) -> float:
    """A step without what it reads of prompts [s]."""
    return float(sum(time for part, time in plan["time_per_step"].items() if part != "prefill"))


def broken(question: dict[str, Any], seen: Witnessed) -> str:
    """The promises that are broken by more than their sampling error; empty where none is."""
    promises = question["promises"]
    late = seen.p95 - DEVIATIONS * seen.p95_error > float(promises["ttft_p95"].split()[0])
    full = seen.crowded - DEVIATIONS * seen.crowded_error > 1 - promises["cache_fits"]
    return ", ".join(["ttft_p95"] * late + ["cache_fits"] * full)
