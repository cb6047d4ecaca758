"""Evaluated plan: its pools and their joint outputs, checked by plain floats.

How far off the times and the price of pools may be: the bands of what they rest on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import Band
from planner.problems.serving.bounds.binding_limits import binding, parameter_elasticities
from planner.problems.serving.bounds.lower_bound import optimum
from planner.problems.serving.choice import Choice
from planner.problems.serving.deployment import borne_load
from planner.problems.serving.deployment.beyond_fit import distances, extrapolations, farther
from planner.problems.serving.deployment.drawn_power import power_bands, power_source
from planner.problems.serving.deployment.machine_nodes import placements
from planner.problems.serving.deployment.marginal_prices import marginal_prices, pools_symbols
from planner.problems.serving.deployment.pool import HOUR, EvaluatedPool, agree, per_mtok, recompute
from planner.problems.serving.point import (
    MTOK,
    CacheTransfer,
    ServingBand,
    ServingBound,
    ServingEstimate,
    ServingPoint,
)
from planner.problems.serving.step.drafting import with_accepted
from planner.problems.serving.step.kernels import pools_recomputed
from planner.problems.serving.step.runnable import supporting_engines
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task, TaskPair
from planner.protocol.plan import EXPECTED, MEASURED, BindingLimit
from planner.text.errors import SolverError
from planner.text.tolerances import REL_TOL

if TYPE_CHECKING:
    from planner.catalogue.coefficient_spread import ScopeMask
    from planner.problems.serving.pairs.pool_pairs import Pair


def pool_costs(pools: Sequence[EvaluatedPool], word: str) -> list[float]:
    """Cost of each pool in output `word` without idle waiting; [1.0] for one pool."""
    if len(pools) == 1:
        return [1.0]
    return [x.chosen_by[word] * (1.0 if word == "latency" else x.utilisation) for x in pools]


def combined_coefficient_shares(pools: Sequence[EvaluatedPool]) -> dict[str, Mapping[str, float]]:
    """Shares of both times and of the price by coefficient, by quantity.

    A pool is paid for the time that it takes: of tokens, or of prompts where it only reads them.
    """
    costs = pool_costs(pools, "usd_per_request")
    parts = [pool.rests_on for pool in pools]
    paid = [x["tpot" if p.decodes else "ttft"] for x, p in zip(parts, pools, strict=True)]
    price = {
        name: float(np.average([part[name] for part in paid], weights=costs)) for name in paid[0]
    }
    return {"tpot": parts[-1]["tpot"], "ttft": parts[0]["ttft"], "usd_per_mtok": price}


def plan_bands(
    pools: Sequence[EvaluatedPool], plan: ServingPoint, beyond: ScopeMask
) -> dict[str, Band]:
    """Measured over predicted, of both times and of the price, accepted drafts in it."""
    task, prices = pools[-1].task, (plan.usd_per_mtok_input, plan.usd_per_mtok_output)
    bands = {
        name: task.profile.band(name, x, beyond)
        for name, x in combined_coefficient_shares(pools).items()
    }
    if not task.drafts:
        return bands
    return {
        name: Band(*map(float, with_accepted(task, name, (band.low, band.high), prices)))
        for name, band in bands.items()
    }


PHASES = ("prefill", "decode")
BUSY_UTILISATION = 1 - 1e-3  # min utilisation of a pool that is called busy
READING = "prefill queue is stable"


@dataclass(frozen=True)
class JointPools:
    """Two pools together: how they were matched, the cache's way [s], their outputs.

    `outputs` are those that the plan was chosen on, beside the profile's and the pure roofline's.
    """

    tasks: TaskPair
    pair: Pair
    transfer: float
    symbols: Mapping[str, float]
    outputs: Mapping[str, float]
    estimate: Mapping[str, float]
    bound: Mapping[str, float]


@dataclass(frozen=True)
class Candidate:
    """Evaluated pools of a plan, the decode pool last; `joint` results if there are two."""

    pools: tuple[EvaluatedPool, ...]
    joint: JointPools | None = None

    @property
    def task(self) -> Task:
        """Task of the last pool, which holds the settings shared by all pools."""
        return self.joint.tasks.decode if self.joint else self.pools[0].task

    @property
    def last(self) -> EvaluatedPool:
        """The pool that decodes, or the only one."""
        return self.pools[-1]

    @property
    def outputs(self) -> Mapping[str, float]:
        """The outputs of all pools together that the plan was chosen on."""
        return self.joint.outputs if self.joint else self.last.chosen_by

    @property
    def bound(self) -> Mapping[str, float]:
        """Outputs of all pools together on the pure roofline."""
        return self.joint.bound if self.joint else self.last.bound

    @property
    def transfer(self) -> float:
        """KV cache transfer time of a prompt to the other pool [s]; 0 for one pool."""
        return self.joint.transfer if self.joint else 0.0

    @property
    def demand(self) -> float | None:
        """Requests per second to serve; None for the maximum."""
        return self.joint.tasks.demand if self.joint else self.last.task.arrivals

    @property
    def choice(self) -> Choice:
        """Chosen mode and pools, known before any output is computed."""
        mode, loaded = self.pools[0].task.mode, self.pools[0].task.arrivals is not None
        pools = tuple(pool.choice for pool in self.pools)
        return Choice("disaggregated" if self.joint else mode, pools, loaded)

    @property
    def usd_per_mtok(self) -> float:
        """USD per million tokens at the scenario's mix."""
        return self.outputs["usd_per_token"] * MTOK

    def plan(self) -> ServingPoint:
        """The plan as the answer has it, base units; None where a field does not apply."""
        first, last, values = self.pools[0], self.last, self.outputs
        runs = int(np.bitwise_and.reduce([pool.layouts.engines[0] for pool in self.pools]))
        planned = [pool.planned(runs) for pool in self.pools]
        whole, several = planned[-1], len(planned) > 1
        paid = all(pool.task.electricity for pool in self.pools)
        size = self.joint.tasks.prompt_bytes if self.joint else 0.0
        moved = CacheTransfer(self.transfer, size, self.outputs["requests"] * size)
        return ServingPoint(
            mode=self.choice.mode,
            layout=None if several else whole.layout,
            prefill=planned[0] if several else None,
            decode=whole if several else None,
            transfer=moved if self.joint else None,
            chip=whole.chip if whole.chip == planned[0].chip else None,
            chips=sum(pool.chips for pool in planned),
            chips_used=sum(pool.chips_used for pool in planned),
            placement=placements(self.pools),
            batch=whole.batch,
            batch_per_replica=None if several else whole.batch_per_replica,
            weights=whole.weights,
            kv=whole.kv,
            redundant_experts=whole.redundant_experts,
            drafts=whole.drafts,
            chunk=int(first.task.chunk) if first.prefills else None,
            engines=supporting_engines([(pool.task, pool.layouts) for pool in self.pools]),
            ttft=values["ttft"] if first.prefills else None,
            tpot=last.chosen_by["tpot"] if last.decodes else None,
            e2e=values["latency"] if first.prefills and last.decodes else None,
            requests_per_s=values["requests"],
            tokens_per_s=values.get("tokens_per_s"),
            input_tokens_per_s=values.get("input_tokens_per_s"),
            tokens_per_s_per_chip=values.get("tokens_per_s_per_chip"),
            tokens_per_s_per_user=last.chosen_by.get("tokens_per_s_per_user"),
            usd_per_mtok_output=per_mtok(values, "usd_per_output_token"),
            usd_per_mtok_input=per_mtok(values, "usd_per_input_token"),
            usd_per_mtok=self.usd_per_mtok,
            usd_per_hour=values["usd_per_s"] * HOUR,
            power_usd_per_hour=values["power_usd_per_s"] * HOUR if paid else None,
            watts_per_chip=values.get("watts"),
            power_from=power_source([pool.task for pool in self.pools]),
            joule_per_token=values.get("joule_per_token"),
            joule_per_request=values.get("joule_per_request"),
            grams_per_mtok=per_mtok(values, "grams_per_token") if self.task.carbon else None,
            grams_per_request=values["grams_per_request"] if self.task.carbon else None,
            memory_per_chip=whole.memory_per_chip,
            holds=whole.holds,
            fits_at_full_context=last.fits_at_full_context(),
            time_per_step=last.step_times(),
            drafting=last.drafting(),
            bottleneck=last.bottleneck(),
            demand=borne_load.queueing_report(self),
            marginal=marginal_prices(self),
            unqueued=first.unqueued(values["requests"]),
            prefixes=borne_load.prefix_cache_use(self),
            loop=borne_load.loop_times(self),
        )

    def floor(self, least: float | None = None) -> ServingBound:
        """The pure roofline of the same plan; `least` is what its load costs at least [USD]."""
        first, last = self.pools[0], self.last
        return ServingBound(
            usd_per_mtok=self.bound["usd_per_token"] * MTOK if least is None else least,
            tpot=last.bound["tpot"] if last.decodes else None,
            ttft=first.bound["ttft"] if first.prefills else None,
            roofs=last.roofs(),
            uniform_routing=None if self.joint else last.uniform_routing(),
        )

    def expected(self) -> ServingEstimate | None:
        """Estimate of this plan by the profile; None for the lecture, which has no profile.

        None also where the plan was chosen on the bound and does not carry its load.
        """
        if self.task.lecture or borne_load.is_overloaded(self):
            return None
        first, last = self.pools[0], self.last
        late = first.estimate["ttft"] + self.transfer if first.prefills else np.inf
        price = (self.joint or last).estimate["usd_per_token"]
        return ServingEstimate(
            usd_per_mtok=price * MTOK,
            tpot=last.estimate["tpot"] if last.decodes else None,
            ttft=late if late < np.inf else None,  # infinite if only the bound carries the load
        )

    def band(self, plan: ServingPoint, bound: ServingBound | None = None) -> ServingBand | None:
        """Error band of the outputs from held-out errors, clipped below at the lower `bound`.

        Without it both ends are those of the rows, whose ratio is a spread. A bound has no band.
        """
        if self.task.uses_bound:
            return None
        profile, beyond = self.task.profile, distances(self.pools)
        bands = plan_bands(self.pools, plan, beyond)

        def ends(name: str, value: float) -> tuple[float, float]:
            floor = min(getattr(bound, name, None) or 0.0, value)
            return max(value * bands[name].low, floor), max(value * bands[name].high, floor)

        # Throughput is inverse to price, so the ends of its band are those of the price inverted.
        rate, cost = plan.tokens_per_s, plan.usd_per_mtok
        price = ends("usd_per_mtok", cost)
        return ServingBand(
            coverage=profile.coverage,
            profile=profile.name,
            regime=farther(profile.regime, beyond),
            kind=EXPECTED if extrapolations(self) else MEASURED,
            tpot=None if plan.tpot is None else ends("tpot", plan.tpot),
            ttft=None if plan.ttft is None else ends("ttft", plan.ttft),
            usd_per_mtok=price,
            tokens_per_s=None if rate is None else (rate * cost / price[1], rate * cost / price[0]),
            **power_bands([pool.task for pool in self.pools], plan, bands["usd_per_mtok"]),
        )

    def multipliers(self) -> tuple[tuple[BindingLimit, ...], dict[str, float], tuple[str, ...]]:
        """Binding limits, d ln objective / d ln parameter of the scenario, and warnings.

        Pools are resized to stay in balance, and no chip is idle then. A price is a sum over them,
        so an elasticity is the mean of theirs, weighted with what the chips of each that work cost
        per request when none waits for the other.
        Raises SolverError if the program of a pool is not solved.
        """
        words = {"latency": "latency", "energy": "joule_per_request"}
        word = words.get(self.task.objective, "usd_per_request")
        costs = pool_costs(self.pools, word)
        if word != "latency":
            columns = [pool.layouts for pool in self.pools]
            working = [float((x.replicas * x.replica_chips / x.chips)[0]) for x in columns]
            costs = [cost * share for cost, share in zip(costs, working, strict=True)]
        total: dict[str, float] = {}
        limits: list[BindingLimit] = []
        warnings: dict[str, None] = {}
        for phase, pool, cost in zip(PHASES, self.resized(), costs, strict=False):
            solved, weight = optimum(pool.promised_step, pool.batch), cost / sum(costs)
            warnings |= dict.fromkeys(solved.warnings)
            slopes = parameter_elasticities(solved, pool.step.coefficient_powers(pool.batch))
            for name, slope in slopes.items():
                total[name] = total.get(name, 0.0) + weight * slope
            place = f"{phase}: " if self.joint else ""
            limits += (BindingLimit(place + x.name, weight * x.elasticity) for x in binding(solved))
        return tuple(sorted(limits, key=lambda limit: limit.elasticity)), total, tuple(warnings)

    def resized(self) -> tuple[EvaluatedPool, ...]:
        """The pools, two of them at their most where no load is given that they must carry."""
        if self.joint is None or self.demand is not None:
            return self.pools
        first, last = (replace(c, task=c.task.with_layout(arrivals=None)) for c in self.pools)
        return first, replace(last, batch=self.joint.pair.batch)

    def held_by(self) -> tuple[str, ...]:
        """Names of the limits exceeded by one more sequence; of two pools, only the full pools'.

        Under a load the batch is the one that carries it: none.
        """
        if self.demand is not None:
            return ()
        names, joint = self.resized()[-1].exceeded_by_one_more(), self.joint is not None
        decoding = names if not joint or self.last.utilisation >= BUSY_UTILISATION else ()
        return (
            (*decoding, READING)
            if joint and self.pools[0].utilisation >= BUSY_UTILISATION
            else decoding
        )

    def recheck(self) -> None:
        """Recompute every pool, and their joint outputs, with plain floats.

        Raises SolverError if two evaluations differ, or a promise is broken.
        """
        for pool in self.pools:
            pool.recheck()
        if (joint := self.joint) is None:
            return
        for bound, values in ((self.task.uses_bound, joint.outputs), (True, joint.bound)):
            agree(pools_recomputed(joint.tasks.load, self._recomputed(joint, bound=bound)), values)
        promised = {**joint.tasks.prefill.promises, **joint.tasks.decode.promises}
        for name, word in (("ttft", "ttft"), ("e2e", "latency")):
            if name in promised and joint.outputs[word] > promised[name] * (1 + REL_TOL):
                raise SolverError(f"the chosen plan breaks the promise {name}")

    def _recomputed(self, joint: JointPools, *, bound: bool) -> dict[str, float]:
        """Every symbol of both pools together, from each pool computed again by plain floats."""
        chosen, pair = bound == self.task.uses_bound, joint.pair
        steps = [Step(c.task, c.layouts, bound=bound) for c in self.pools]
        again = [recompute(s, c.batch, c.fill) for s, c in zip(steps, self.pools, strict=True)]
        slots = again[0]["slot"], again[1]["slot"]
        if self.demand is None and chosen:
            # Of pools at their most: the pass that is quickest at the load may read fewer prompts.
            reading, decoding = (
                Step(c.task.with_layout(arrivals=None), c.layouts, bound=bound) for c in self.pools
            )
            slots = (
                recompute(reading, pair.reads)["slot"],
                recompute(decoding, pair.batch)["slot"],
            )
        chosen |= self.task.batches is not None
        return pools_symbols(
            joint.tasks, self.pools, again, self.transfer, pair if chosen else None, slots
        )
