"""A plan of two pools, evaluated in full: a candidate for each phase and the transfer between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.problems.serving.deployment.candidate import PER_MILLION, Candidate, evaluate, recheck
from planner.problems.serving.deployment.pool_candidates import shards
from planner.problems.serving.deployment.pool_pairs import Pair, Pools
from planner.problems.serving.search.sizing import carrying
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.text.errors import SolverError

__all__ = ["PairCandidate", "evaluate_pair"]

AGREES = 1e-9
HOUR = 3600.0


@dataclass(frozen=True)
class PairCandidate:
    """Two pools at the rate of the slower one; the words of the answer, as of a `Candidate`."""

    pools: Pools
    readers: Candidate
    decoders: Candidate
    moved: float
    requests: float
    most: float  # sequences that a decoding replica may hold

    @property
    def task(self) -> Task:
        """The question of the pool that decodes; what both share stands there."""
        return self.pools.decode

    @property
    def usd_per_request(self) -> float:
        """Rent of both pools per request served [USD]."""
        return sum(c.chosen_by["usd_per_request"] for c in (self.readers, self.decoders))

    @property
    def ttft(self) -> float:
        """Time to first token, the cache's way to the other pool included [s]."""
        return self.readers.chosen_by["ttft"] + self.moved

    def prices(self, *, bound: bool = False) -> tuple[float, float, float]:
        """USD per million output, input and mixed tokens; of the bound at its own rate."""
        first, second = self._spent(bound=bound)
        task = self.task
        tokens = task.input_tokens + task.output_tokens
        return (
            second / task.output_tokens * PER_MILLION,
            first / task.input_tokens * PER_MILLION,
            (first + second) / tokens * PER_MILLION,
        )

    def plan(self) -> dict[str, Any]:
        """The plan in the words of the answer, base units; null where a field does not apply."""
        task, first, decoders = self.task, self.readers.plan(), self.decoders
        if self.pools.prefill.arrivals is None:
            # What the pool that reads sends it is no arrival that varies.
            decoders = replace(decoders, task=decoders.task.with_layout(arrivals=None))
        second = decoders.plan()
        output, into, mixed = self.prices()
        chips = first["chips"] + second["chips"]
        tpot = second["tpot"]
        tokens = self.requests * task.output_tokens
        return {
            **second,
            "mode": "disaggregated",
            "layout": None,
            "prefill": _pool(first, self.readers),
            "decode": _pool(second, self.decoders),
            "transfer": {
                "seconds": self.moved,
                "bytes": self.pools.prompt_bytes,
                "bytes_per_s": self.requests * self.pools.prompt_bytes,
            },
            "chip": second["chip"] if first["chip"] == second["chip"] else None,
            "chips": chips,
            "chips_used": first["chips_used"] + second["chips_used"],
            "batch_per_replica": None,
            "chunk": first["chunk"],
            "ttft": self.ttft,
            "tpot": tpot,
            "e2e": self.ttft + (task.output_tokens - 1) * tpot,
            "requests_per_s": self.requests,
            "tokens_per_s": tokens,
            "input_tokens_per_s": self.requests * task.input_tokens,
            "tokens_per_s_per_chip": tokens / chips,
            "usd_per_mtok_output": output,
            "usd_per_mtok_input": into,
            "usd_per_mtok": mixed,
            "usd_per_hour": first["usd_per_hour"] + second["usd_per_hour"],
            "power_usd_per_hour": _together(first, second),
            "joule_per_token": self._energy(),
            "fits_at_full_context": second["fits_at_full_context"],
            "demand": self._demand(first, second),
        }

    def floor(self) -> dict[str, Any]:
        """The pure roofline of the same plan."""
        first, second = self.readers.floor(), self.decoders.floor()
        return {
            "usd_per_mtok": self.prices(bound=True)[2],
            "tpot": second["tpot"],
            "ttft": first["ttft"],
            "roofs": second["roofs"],
            "uniform_routing": None,
        }

    def expected(self) -> dict[str, Any] | None:
        """What the profile expects of the same plan; the lecture has no profile."""
        if self.task.lecture:
            return None
        first, second = self.readers.expected(), self.decoders.expected()
        if first is None or second is None:
            return None
        return {
            "usd_per_mtok": self.prices()[2],
            "tpot": second["tpot"],
            "ttft": first["ttft"] + self.moved,
        }

    @property
    def usd_per_mtok(self) -> float:
        """USD per million tokens at the scenario's mix."""
        return self.prices()[2]

    def worth(self) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """What binds in either pool, and elasticities were both pools resized to stay in balance.

        A price is a sum over the pools, so an elasticity is the mean of theirs, weighted with what
        each costs per request when none waits for the other.

        Raises
        ------
        SolverError
            If the program of a pool is not solved.
        """
        found = [candidate.worth() for candidate in self._resized()]
        needed = [c.chosen_by["usd_per_request"] * _share(c) for c in self._both]
        latency = self.task.objective == "latency"
        if latency:
            needed = [c.chosen_by["latency"] for c in self._both]
        weights = [value / sum(needed) for value in needed]
        binds = [
            {"name": f"{pool}: {each['name']}", "elasticity": weight * each["elasticity"]}
            for pool, (bound, _), weight in zip(("prefill", "decode"), found, weights, strict=True)
            for each in bound
        ]
        names = dict.fromkeys(name for _, slopes in found for name in slopes)
        slopes = {
            name: sum(w * each.get(name, 0.0) for w, (_, each) in zip(weights, found, strict=True))
            for name in names
        }
        return sorted(binds, key=lambda each: each["elasticity"]), slopes

    def recheck(self) -> None:
        """Both pools computed again with plain floats, and what they promise together.

        Raises
        ------
        SolverError
            If two evaluations differ, or a promise is broken.
        """
        recheck(self.readers)
        recheck(self.decoders)
        emitted, tpot = self.task.output_tokens - 1, self.decoders.chosen_by["tpot"]
        made = {"ttft": self.ttft, "e2e": self.ttft + emitted * tpot}
        promised = {**self.pools.prefill.promises, **self.pools.decode.promises}
        for name, value in made.items():
            limit = promised.get(name)
            if limit is not None and value > limit * (1 + AGREES):
                raise SolverError(f"the chosen plan breaks the promise {name}")

    def _resized(self) -> tuple[Candidate, Candidate]:
        """Both pools at their most, where no load is given that they must carry."""
        if self.pools.demand is not None:
            return self._both
        alone = [replace(c, task=c.task.with_layout(arrivals=None)) for c in self._both]
        return alone[0], replace(alone[1], batch=self.most)

    def _spent(self, *, bound: bool) -> tuple[float, float]:
        """USD per request of either pool."""
        values = [c.bound if bound else c.chosen_by for c in (self.readers, self.decoders)]
        if not bound or self.pools.demand is not None:
            hourly = [c.task.price * float(c.layouts.chips[0]) for c in self._both]
            return hourly[0] / self.requests, hourly[1] / self.requests
        # Without arrivals the slower of the two rooflines sets the rate.
        served = min(
            float(self.readers.layouts.replicas[0]) / values[0]["busy"],
            float(self.decoders.layouts.replicas[0]) / values[1]["slot"],
        )
        first, second = (c.task.price * float(c.layouts.chips[0]) / served for c in self._both)
        return first, second

    @property
    def _both(self) -> tuple[Candidate, Candidate]:
        return self.readers, self.decoders

    def _energy(self) -> float | None:
        powers = [c.task.power for c in self._both]
        if None in powers:
            return None
        watts = sum((c.task.power or 0.0) * float(c.layouts.chips[0]) for c in self._both)
        return watts / (self.requests * (self.task.input_tokens + self.task.output_tokens))

    def _demand(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
        arriving = first["demand"]
        if arriving is None:
            return None
        late = {tail: arriving[tail] + self.moved for tail in ("ttft_p95", "ttft_p99")}
        flight = self.requests * (self.ttft + (self.task.output_tokens - 1) * second["tpot"])
        kept = ("slots", "decoding_per_replica", "room_per_replica", "crowded")
        there = {name: second["demand"][name] for name in kept}
        return {**arriving, **late, **there, "in_flight": flight}


def evaluate_pair(pools: Pools, reading: Step, decoding: Step, pair: Pair) -> PairCandidate:
    """One pair at its split: the pool with room to spare runs below its most."""
    requests = pair.requests
    first_layout = _sized(reading, pair.rows[0], pair.replicas[0], pair.chips[0])
    second_layout = _sized(decoding, pair.rows[1], pair.replicas[1], pair.chips[1])
    ranks = float(first_layout.pp[0] * first_layout.dp_attention[0])
    waits = pools.prefill.arrivals is not None
    task = pools.prefill.with_layout(arrivals=requests if waits else None)
    fill = 1.0 if waits else requests * _busy(task, first_layout, ranks)
    readers = evaluate(task, first_layout, ranks, fill)
    task = pools.decode.with_layout(arrivals=requests)
    step = Step(task, second_layout, bound=task.uses_bound)
    # The load a pool was sized for may lie a rounding beside what it carries.
    batch = float(carrying(step, int(pair.batch))[0]) or pair.batch
    decoders = evaluate(task, second_layout, batch)
    senders = shards(reading)[pair.rows[0]]
    moved = float(pools.transfer(senders, shards(decoding)[pair.rows[1]]))
    return PairCandidate(pools, readers, decoders, moved, requests, pair.batch)


def _busy(task: Task, layouts: Any, ranks: float) -> float:
    """Time a pool of prompts spends per request, over all its replicas [s]."""
    step = Step(task, layouts, bound=task.uses_bound)
    return float(1 / np.ravel(step(np.array([ranks]))["requests"])[0])


def _sized(step: Step, row: int, replicas: int, chips: int) -> Any:
    layouts = step.layouts.take(np.array([row]))
    return replace(layouts, replicas=np.array([replicas]), chips=np.array([chips]))


def _pool(plan: dict[str, Any], candidate: Candidate) -> dict[str, Any]:
    """One pool in the words of the answer."""
    kept = ("layout", "chip", "chips", "chips_used", "batch", "batch_per_replica", "weights", "kv",
            "redundant_experts", "memory_per_chip", "usd_per_hour")  # fmt: skip
    return {**{name: plan[name] for name in kept}, "utilisation": _share(candidate)}


def _share(candidate: Candidate) -> float:
    """Share of its most that a pool is used."""
    return candidate.chosen_by.get("fill", candidate.fill)


def _together(first: dict[str, Any], second: dict[str, Any]) -> float | None:
    """What the power of both pools costs, None where it is not paid apart [USD/hour]."""
    parts = [pool["power_usd_per_hour"] for pool in (first, second)]
    return None if None in parts else sum(parts)
