"""One pool of a plan, evaluated: estimate and bound side by side, rechecked by plain floats."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

import numpy as np

from planner.catalogue.profile import COEFFICIENTS
from planner.problems.serving import point
from planner.problems.serving.choice import ChosenPool
from planner.problems.serving.search.batch import try_batches
from planner.problems.serving.search.promise_limits import PromiseLimits, quantile_factors
from planner.problems.serving.search.sizing import NEXT_TO_NOTHING, min_batch_for_load
from planner.problems.serving.step import occupancy
from planner.problems.serving.step.cache_held import requests_held
from planner.problems.serving.step.drafting import break_even
from planner.problems.serving.step.engine_effects import loop_symbols
from planner.problems.serving.step.kernels import STEP_PARTS, WAITING_OUTPUTS, load_scalar_program
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.shares import coefficient_shares
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import LIMITS, PROMISES
from planner.problems.serving.task.task import Task
from planner.text.errors import SolverError
from planner.text.tolerances import REL_TOL

HOUR = 3600.0
ROOFS = ("memory", "compute", "network")
ArrayOrFloat = TypeVar("ArrayOrFloat", float, np.ndarray)


class Lazy(Mapping[str, float]):
    """Values by name that are computed when one of them is first asked for."""

    def __init__(self, make: Callable[[], Mapping[str, float]]) -> None:
        self._make = make

    @cached_property
    def _values(self) -> Mapping[str, float]:
        return self._make()

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class EvaluatedPool:
    """One layout of one task at one batch: estimate and bound side by side, plain floats."""

    task: Task
    layouts: Layouts
    batch: float
    fill: float
    estimate: Mapping[str, float]
    bound: Mapping[str, float]
    uniform: Mapping[str, float]
    share: float | None = None  # load over capacity [1], for a batch that is sized by its load

    @property
    def chosen_by(self) -> Mapping[str, float]:
        """The values the plan was chosen on."""
        return self.bound if self.task.uses_bound else self.estimate

    @cached_property
    def step(self) -> Step:
        """The model of this layout that the plan was chosen on."""
        return Step(self.task, self.layouts, bound=self.task.uses_bound)

    @cached_property
    def rests_on(self) -> Mapping[str, Mapping[str, float]]:
        """Shares of both times by coefficient, where the plan was chosen on the estimate."""
        shares = coefficient_shares(self.step, np.array([self.batch]))
        return {
            time: dict(zip(COEFFICIENTS, of[:, 0].tolist(), strict=True))
            for time, of in shares.items()
        }

    def quantile_factor(self, name: str) -> float:
        """Factor from a limited time to its quantile at the required chance, else 1."""
        factors = quantile_factors(self.step, np.array([self.batch]), also=name)
        return float(factors[name][0]) if name in factors else 1.0

    @cached_property
    def promised_step(self) -> Step:
        """The model, its promises those that the estimate keeps where they hold by chance.

        The factors between the two are taken to stay as they are where the plan changes a little.
        """
        promises = {
            name: limit / self.quantile_factor(LIMITS[name].step)
            for name, limit in self.task.promises.items()
        }
        # With requests that wait, the batch follows from the room for caches.
        batches = None if self.task.waits else self.task.batches
        return self.step.with_task(self.task.with_layout(promises=promises, batches=batches))

    @property
    def prefills(self) -> bool:
        """True if the pool prefills prompts."""
        return self.task.mode != "decode"

    @property
    def decodes(self) -> bool:
        """True if the pool decodes tokens."""
        return self.task.mode != "prefill"

    @property
    def replicas(self) -> int:
        """Copies of the model."""
        return int(self.layouts.replicas[0])

    @property
    def utilisation(self) -> float:
        """Share of its most that the pool is used."""
        return self.chosen_by.get("fill", self.fill) if self.share is None else self.share

    @property
    def choice(self) -> ChosenPool:
        """Chosen layout, batch and formats of the pool, known before any value is computed."""
        task, (weights, kv) = self.task, pool_formats(self.task)
        return ChosenPool(
            layout=point.PoolLayout(**self.layouts.row(0)),
            chip=task.chip.name,
            chips=int(self.layouts.chips[0]),
            batch_per_replica=int(self.batch),
            weights=weights,
            kv=kv,
            redundant_experts=task.redundant if task.sizes.n_experts else None,
            drafts=task.drafts if self.decodes else None,
        )

    def planned(self, runs: int) -> point.PlannedPool:
        """The pool as a part of the answer, on engines that run the whole plan, as bits."""
        layouts = replace(self.layouts, engines=self.layouts.engines & runs)
        return point.PlannedPool(
            **vars(self.choice),
            chips_used=self.replicas * int(self.layouts.replica_chips[0]),
            batch=max(1, round(self.chosen_by["sequences"])),
            memory_per_chip=self._memory(),
            holds=requests_held(self.task, layouts, self.batch, self._memory().activations),
            usd_per_hour=self.chosen_by["usd_per_s"] * HOUR,
            utilisation=self.utilisation,
        )

    def step_times(self) -> point.StepTimes | None:
        """Parts of a decode step [s]; None without decode, or on a bound."""
        if self.task.uses_bound or not self.decodes:
            return None
        return point.StepTimes(**{part: self.estimate[f"part.{part}"] for part in STEP_PARTS})

    def drafting(self) -> point.DraftedTokens | None:
        """Drafts, tokens per step and break-even batches; None without drafts, or on a bound."""
        task = self.task
        if task.uses_bound or not self.decodes or not task.drafts:
            return None
        low, up = break_even(self.step, self.batch)
        return point.DraftedTokens(
            task.drafts, task.tokens_per_step, low, up if up < np.inf else None
        )

    def roofs(self) -> point.Roofs | None:
        """Times of one step by each roof; None without decode."""
        if not self.decodes:
            return None
        return point.Roofs(**{roof: self.bound[f"roof.{roof}"] for roof in ROOFS})

    def uniform_routing(self) -> point.UniformRouting | None:
        """Roofline with an even router; None without experts, or without decode.

        All tokens may choose the same experts, so the bound reads k of E; an even router reads
        more.
        """
        if not (self.task.sizes.n_experts and self.decodes):
            return None
        price = self.uniform["usd_per_token"] * point.MTOK
        return point.UniformRouting(usd_per_mtok=price, tpot=self.uniform["tpot"])

    def crowding(self) -> occupancy.BlockingEstimate:
        """Sequences decoding, room, and overflow share of a replica, spare replicas down."""
        step, values = self.step, self.chosen_by
        if not self.decodes:
            return occupancy.BlockingEstimate(0.0, int(step.occupancy.room[0]), 0.0)
        decoding, _ = step.crowding({name: np.array([x]) for name, x in values.items()})
        return occupancy.BlockingEstimate(
            float(decoding[0]), int(step.occupancy.room[0]), values["crowded"]
        )

    def unqueued(self, requests: float) -> point.UncountedQueue | None:
        """Queueing left out at `requests` per second; None if counted, or without a queue."""
        task, values = self.task, self.chosen_by
        looped = task.loop is not None or task.static
        if task.uses_bound or not self.prefills or task.arrivals is not None or looped:
            return None
        late = occupancy.queue({
            **self.step.values(np.array([self.batch])), "T_pf_busy": values["busy"],
            "T_dec": values["step"], "x_load": requests / self.replicas,
        })  # fmt: skip
        busy, added = (float(np.ravel(late[name])[0]) for name in ("readers", "ttft_p95"))
        ends = math.isfinite(added) and busy < 1 - REL_TOL
        return point.UncountedQueue(min(busy, 1.0), added if ends else None)

    def bottleneck(self) -> str:
        """The largest part of a step; on the bound, the highest roof."""
        if self.task.uses_bound:
            return max(ROOFS, key=lambda roof: self.bound[f"roof.{roof}"])
        if self.task.mode == "prefill":
            return "prefill"
        return max(STEP_PARTS, key=lambda part: self.estimate[f"part.{part}"])

    def fits_at_full_context(self) -> bool:
        """True if every sequence fits at its full context at once, not only at the mean.

        Requests out of step hold the mean, which the plan is sized by; when chance makes many of
        them long together, an engine without this room preempts some.
        """
        task, values = self.task, self.chosen_by
        caches = task.sizes.caches
        longest = task.input_tokens + (task.output_tokens if self.decodes else 0.0)
        mean = sum(c.stored_bytes(task.context) for c in caches)
        cache = values["memory.kv"] - self._state()
        more = sum(c.stored_bytes(longest) for c in caches) / mean - 1 if mean else 0.0
        return values["need"] + cache * max(more, 0.0) <= task.chip.memory

    def _memory(self) -> point.MemoryUse:
        task, values = self.task, self.chosen_by
        state = self._state()
        return point.MemoryUse(
            capacity=task.chip.memory,
            weights=values["memory.weights"],
            kv=values["memory.kv"] - state,
            state=state,
            activations=values["memory.activations"],
            reserved=values["memory.reserved"],
            free=task.chip.memory - values["need"],
        )

    def _state(self) -> float:
        """Recurrent state resident on one chip, which the equations count with the cache [byte]."""
        layouts, sizes = self.layouts, self.task.sizes
        sequences = np.ceil(np.ceil(self.batch / layouts.dp_attention[0]) / layouts.cp[0])
        stages = np.ceil(sizes.n_layers / layouts.pp[0]) / sizes.n_layers
        return float(sequences * sizes.state_bytes_per_sequence / layouts.tp[0] * stages)

    def exceeded_by_one_more(self) -> tuple[str, ...]:
        """Names of the limits exceeded by one more sequence on every rank of a replica."""
        if self.task.batches is not None:
            return ()
        group = int(self.layouts.pp[0] * self.layouts.dp_attention[0])
        values = self.step(np.array([self.batch + group]))
        limits = self.promised_step.task.limits.items()
        return tuple(PROMISES[name] for name, most in limits if np.ravel(values[name])[0] > most)

    def recheck(self) -> None:
        """Compute every output again with plain floats from the expression trees; hold promises.

        Raises SolverError if the two evaluations differ by more than 1e-9, or a promise is broken.
        """
        task, values = self.task, self.chosen_by
        for bound, computed in ((task.uses_bound, values), (True, self.bound)):
            agree(recompute(Step(task, self.layouts, bound=bound), self.batch, self.fill), computed)
        for name, limit in task.limits.items():
            if name in values and values[name] > limit * (1 + REL_TOL):
                raise SolverError(f"the chosen plan breaks the promise {PROMISES[name]}")


def evaluate(
    task: Task, layouts: Layouts, batch: float, fill: float = 1.0, *, sized: Step | None = None
) -> EvaluatedPool:
    """One layout (shape (1,)) at one batch per replica, by both models.

    `sized` is the model that the batch was found by, of the same task and layout.
    """
    at = np.array([float(batch)])

    def floats(step: Step) -> dict[str, float]:
        return {k: float(np.ravel(v)[0]) for k, v in step(at, fill).items()}

    @cache
    def model(bound: bool) -> Step:
        if sized is not None and sized.bound == bound:
            return sized
        return Step(task, layouts, bound=bound)

    bound = Lazy(lambda: floats(model(True)))
    uniform = bound if task.lecture else Lazy(lambda: floats(model(True).routed_uniformly(batch)))
    estimate = bound if task.lecture else Lazy(lambda: floats(model(False)))  # lectures have none
    return EvaluatedPool(task, layouts, float(batch), float(fill), estimate, bound, uniform)


def pool_formats(task: Task) -> tuple[str, str]:
    """Formats of the weights and of the cache that a plan names."""
    sizes = task.sizes
    return sizes.weight_dtype["routed" if sizes.n_experts else "dense_ffn"], sizes.kv_dtype


def per_mtok(values: Mapping[str, ArrayOrFloat], name: str) -> ArrayOrFloat | None:
    """Price of a million tokens [USD]; None for an absent phase."""
    return values[name] * point.MTOK if name in values else None


def min_output(step: Step, name: str) -> float:
    """Minimum of an output that grows with the batch; infinite if no layout keeps all promises.

    Of a time it is that at the quantile at which promises must hold: what could be promised.

    That is the value of the smallest batch that the question admits, next to nothing arriving
    where as much as can be is served.
    """
    step, batch, fill = _smallest(step)
    if not len(step.layouts):
        return math.inf
    values = step(batch, fill)
    keeps = PromiseLimits(step, batch).hold(values)
    least = values[name] * quantile_factors(step, batch, also=name).get(name, 1.0)
    return float(np.broadcast_to(least, keeps.shape)[keeps].min(initial=math.inf))


def _smallest(step: Step) -> tuple[Step, np.ndarray, np.ndarray]:
    """Every layout at the smallest batch that the question admits."""
    task, ones = step.task, np.ones(len(step.layouts))
    if task.loaded:
        # The more chips carry the load, the less each holds.
        if task.limits_of.get("replicas") is None:
            step = step.on(
                step.layouts.on(np.full(ones.size, max(task.chips)), task.machine.chips_per_domain)
            )
        batch = min_batch_for_load(step, occupancy.LARGEST_BATCH)
        carries = batch > 0
        return step.take(carries), batch[carries], ones[carries]
    rows, batch, fill = np.arange(ones.size), ones, ones
    if task.batches is not None or task.mode == "prefill":
        rows, batch, fill = try_batches(step)
    return step.take(rows), batch, fill if task.load == "none" else fill * NEXT_TO_NOTHING


def agree(again: Mapping[str, float], values: Mapping[str, float]) -> None:
    """Check that recomputed outputs equal the original values, the price first.

    Raises SolverError if two evaluations of an output differ by more than 1e-9.
    """
    for name, second in again.items():
        first = values[name]
        if first != second and not abs(first - second) <= REL_TOL * abs(second):
            raise SolverError(f"{name}: two evaluations differ, {first!r} and {second!r}")


def recompute(step: Step, batch: float, fill: float = 1.0) -> dict[str, float]:
    """Every output of one layout by walking the equations with plain floats, the price first."""
    bound = step.values(np.array([float(batch)]), fill)
    symbols = {name: float(np.ravel(value)[0]) for name, value in bound.items()}
    task, wait = step.task, "none"
    if task.loop is not None and not step.bound:
        wait = "loop"
        loop = loop_symbols(task, symbols)
        symbols |= {name: float(np.ravel(value)[0]) for name, value in loop.items()}
    elif task.load != "none" and not step.bound and task.mode != "decode":
        wait = "queue"
        del symbols["T_wait"]
    again = load_scalar_program("recheck_outputs", *step.model.key, wait, names=frozenset(symbols))(
        symbols
    )
    again |= occupancy.recheck_overflow(step, symbols, again)
    if wait != "queue":
        none = {} if task.load == "none" else {"readers": 0.0, "wait": 0.0}
        tails = dict.fromkeys(occupancy.TAILS, again["ttft"])
        if wait == "loop" and task.mode == "aggregated":
            times = {"T_ttft": "first", "T_dec": "step", "T_tpot": "tpot", "T_pf_busy": "busy",
                     "T_slot": "slot"}  # fmt: skip
            late = {**symbols, **{name: again[word] for name, word in times.items()}}
            for tail, share in occupancy.TAILS.items():
                at = {**late, **occupancy.excess_symbols(share)}
                made = load_scalar_program("loop_tails", names=frozenset(at))(at)
                tails |= {tail: made["T_late"], f"settled.{tail}": made["T_settled"]}
        return {**again, **none, **tails}
    late = {name: again.pop(name) for name in WAITING_OUTPUTS}
    line = {**symbols, **late, "T_ttft": again["first"]}
    tails = {}
    for tail, share in occupancy.TAILS.items():
        at = {**line, "x_tail": share, "rho_pf": max(line["rho_pf"], share)}
        tails[tail] = load_scalar_program("recomputed_tail", names=frozenset(at))(at)["T_first"]
    return {**again, "readers": line["rho_pf"], "wait": line["T_wait"], **tails}
