"""A plan of two pools, evaluated in full: a candidate for each phase and the transfer between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulas.numerics.evaluate import scalar
from planner.problems.serving.deployment.candidate import (
    PER_MILLION,
    Candidate,
    Later,
    agree,
    evaluate,
    recheck,
    recomputed,
)
from planner.problems.serving.deployment.pool_candidates import shards
from planner.problems.serving.deployment.pool_pairs import Pair, Pools
from planner.problems.serving.search.sizing import carrying
from planner.problems.serving.step.pools_step import (
    load_share,
    pools_equations,
    pools_outputs,
    pools_values,
    replica_rates,
)
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.text.errors import SolverError

AGREES = 1e-9
HOUR = 3600.0


@dataclass(frozen=True)
class PairCandidate:
    """Two pools at the rate of the slower one; the words of the answer, as of a `Candidate`."""

    pools: Pools
    readers: Candidate
    decoders: Candidate
    moved: float  # s that a prompt's cache takes to the other pool
    pair: Pair
    symbols: dict[str, float]
    outputs: dict[str, float]
    bound: Mapping[str, float]

    @property
    def task(self) -> Task:
        """The question of the pool that decodes; what both share stands there."""
        return self.pools.decode

    @property
    def chosen_by(self) -> dict[str, float]:
        """The outputs of both pools together that the plan was chosen on."""
        return self.outputs

    @property
    def requests(self) -> float:
        """Requests that both pools serve [1/s]."""
        return self.outputs["requests"]

    @property
    def ttft(self) -> float:
        """Time to first token, the cache's way to the other pool included [s]."""
        return self.outputs["ttft"]

    @property
    def usd_per_mtok(self) -> float:
        """USD per million tokens at the scenario's mix."""
        return self.outputs["usd_per_token"] * PER_MILLION

    def plan(self) -> dict[str, Any]:
        """The plan in the words of the answer, base units; null where a field does not apply."""
        first, decoders = self.readers.plan(), self.decoders
        if self.pools.prefill.arrivals is None:
            # What the pool that reads sends it is no arrival that varies.
            decoders = replace(decoders, task=decoders.task.with_layout(arrivals=None))
        second = decoders.plan()
        values, late = self.outputs, self.outputs["ttft"]
        chips = first["chips"] + second["chips"]
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
            "ttft": late,
            "tpot": second["tpot"],
            "e2e": values["latency"],
            "requests_per_s": values["requests"],
            "tokens_per_s": values["tokens_per_s"],
            "input_tokens_per_s": values["input_tokens_per_s"],
            "tokens_per_s_per_chip": values["tokens_per_s_per_chip"],
            "usd_per_mtok_output": values["usd_per_output_token"] * PER_MILLION,
            "usd_per_mtok_input": values["usd_per_input_token"] * PER_MILLION,
            "usd_per_mtok": values["usd_per_token"] * PER_MILLION,
            "usd_per_hour": values["usd_per_s"] * HOUR,
            "power_usd_per_hour": self._power(),
            "joule_per_token": values.get("joule_per_token"),
            "fits_at_full_context": second["fits_at_full_context"],
            "demand": self._demand(first, second),
        }

    def floor(self) -> dict[str, Any]:
        """The pure roofline of the same plan."""
        first, second = self.readers.floor(), self.decoders.floor()
        return {
            "usd_per_mtok": self.bound["usd_per_token"] * PER_MILLION,
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
            "usd_per_mtok": self.usd_per_mtok,
            "tpot": second["tpot"],
            "ttft": first["ttft"] + self.moved,
        }

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
        for bound, values in ((self.task.uses_bound, self.outputs), (True, self.bound)):
            load, symbols = self._again(bound=bound)
            agree(scalar(pools_equations(load), pools_outputs(symbols), symbols), values)
        promised = {**self.pools.prefill.promises, **self.pools.decode.promises}
        for name, word in (("ttft", "ttft"), ("e2e", "latency")):
            if name in promised and self.outputs[word] > promised[name] * (1 + AGREES):
                raise SolverError(f"the chosen plan breaks the promise {name}")

    def _again(self, *, bound: bool) -> tuple[str, dict[str, float]]:
        """Every symbol of both pools together, from each pool computed again by plain floats."""
        pools = self._both
        steps = [Step(c.task, c.layouts, bound=bound) for c in pools]
        again = [recomputed(step, c.batch, c.fill) for step, c in zip(steps, pools, strict=True)]
        most = again[1]
        if self.pools.demand is None and bound == self.task.uses_bound:
            task = self.pools.decode.with_layout(arrivals=None)
            step = Step(task, self.decoders.layouts, bound=bound)
            most = recomputed(step, self.pair.batch, self.pair.fills[1])
        return pools_symbols(
            self.pools, pools, again, self.moved,
            None if bound != self.task.uses_bound else self.pair,
            (again[0]["slot"], most["slot"]),
        )  # fmt: skip

    def _resized(self) -> tuple[Candidate, Candidate]:
        """Both pools at their most, where no load is given that they must carry."""
        if self.pools.demand is not None:
            return self._both
        alone = [replace(c, task=c.task.with_layout(arrivals=None)) for c in self._both]
        return alone[0], replace(alone[1], batch=self.pair.batch)

    @property
    def _both(self) -> tuple[Candidate, Candidate]:
        return self.readers, self.decoders

    def _power(self) -> float | None:
        """What the power of both pools costs, None where it is not paid apart [USD/hour]."""
        paid = all(c.task.electricity for c in self._both)
        return self.outputs["power_usd_per_s"] * HOUR if paid else None

    def _demand(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
        arriving = first["demand"]
        if arriving is None:
            return None
        late = {tail: arriving[tail] + self.moved for tail in ("ttft_p95", "ttft_p99")}
        kept = ("slots", "decoding_per_replica", "room_per_replica", "crowded")
        there = {name: second["demand"][name] for name in kept}
        return {**arriving, **late, **there, "in_flight": self.outputs["in_flight"]}


def evaluate_pair(pools: Pools, reading: Step, decoding: Step, pair: Pair) -> PairCandidate:
    """One pair at its split: the pool with room to spare runs below its most."""
    first_layout = _sized(reading, pair.rows[0], pair.replicas[0], pair.chips[0])
    second_layout = _sized(decoding, pair.rows[1], pair.replicas[1], pair.chips[1])
    ranks = float(first_layout.pp[0] * first_layout.dp_attention[0])
    waits = pools.prefill.arrivals is not None
    task = pools.prefill.with_layout(arrivals=pair.requests if waits else None)
    share = load_share(pair.requests, pair.slots[0], pair.replicas[0])
    readers = evaluate(task, first_layout, ranks, 1.0 if waits else share)
    task = pools.decode.with_layout(arrivals=pair.requests)
    step = Step(task, second_layout, bound=task.uses_bound)
    # The load a pool was sized for may lie a rounding beside what it carries.
    batch = float(carrying(step, int(pair.batch))[0]) or pair.batch
    decoders = evaluate(task, second_layout, batch)
    senders = shards(reading)[pair.rows[0]]
    moved = float(pools.transfer(senders, shards(decoding)[pair.rows[1]]))
    both = (readers, decoders)
    load, symbols = pools_symbols(pools, both, [c.chosen_by for c in both], moved, pair, pair.slots)

    def bound() -> dict[str, float]:
        values = [c.bound for c in both]
        slots = values[0]["slot"], values[1]["slot"]
        return pools_values(*pools_symbols(pools, both, values, moved, None, slots))

    return PairCandidate(
        pools, readers, decoders, moved, pair, symbols, pools_values(load, symbols), Later(bound)
    )


def pools_symbols(
    pools: Pools,
    both: tuple[Candidate, Candidate],
    values: Sequence[Mapping[str, float]],
    moved: float,
    pair: Pair | None,
    slots: tuple[float, float],
) -> tuple[str, dict[str, float]]:
    """The load of two pools, and every symbol that their outputs need.

    `slots` are the times a replica of either pool spends per request at its most; without a `pair`
    no replica is spare and none is idle, as the roofline has it.
    """
    task, names = both[1].task, ("pf", "dec")
    symbols = {
        "one_seq": 1.0, "L_in": task.input_tokens, "L_out": task.output_tokens,
        "L_dec": task.output_tokens - 1.0, "T_move": moved,
        "T_ttft": values[0]["first"], "T_wait": values[0].get("wait", 0.0),
        "T_tpot": values[1]["tpot"],
    }  # fmt: skip
    for name, candidate, slot, fill in zip(
        names, both, slots, pair.fills if pair else (1.0, 1.0), strict=True
    ):
        own, layouts = candidate.task, candidate.layouts
        spare, free = (own.spare, own.headroom) if pair else (0, 0.0)
        symbols |= {
            f"p_chip_{name}": own.price,
            f"p_power_{name}": own.electricity,
            f"n_chips_{name}": float(layouts.chips[0]),
            f"n_{name}": float(layouts.replicas[0]) - spare,
            f"X_{name}": float(replica_rates(np.array([slot]), fill, free)[0]),
        }
        if own.power is not None:
            symbols[f"P_chip_{name}"] = own.power
    if pools.demand is None:
        return "none", symbols
    return "given", {**symbols, "X_arr": pools.demand}


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
