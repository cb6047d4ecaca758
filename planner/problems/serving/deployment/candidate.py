"""One plan in full: evaluated, split into its parts, checked again by an independent evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formulas.numerics.evaluate import scalar
from formulas.serving.closed_loop import CLOSED_LOOP
from formulas.serving.queues import QUEUE
from planner.problems.serving.bounds.binding_limits import binding, worth
from planner.problems.serving.bounds.relaxation import elastic
from planner.problems.serving.search.occupancy import crowding
from planner.problems.serving.step.engine_effects import loop_symbols
from planner.problems.serving.step.step import BOUND, ESTIMATE, PARTS, Step
from planner.problems.serving.task.task import PROMISES
from planner.text.errors import SolverError

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

__all__ = ["ROOFS", "Candidate", "evaluate", "recheck"]

AGREES = 1e-9
PER_MILLION = 1e6
HOUR = 3600.0


@dataclass(frozen=True)
class Candidate:
    """One layout of one task at one batch: estimate and bound side by side, plain floats."""

    task: Task
    layouts: Layouts
    batch: float
    fill: float
    estimate: dict[str, float]
    bound: dict[str, float]
    uniform: dict[str, float]

    @property
    def chosen_by(self) -> dict[str, float]:
        """The values the plan was chosen on."""
        return self.bound if self.task.uses_bound else self.estimate

    @property
    def usd_per_mtok(self) -> float:
        """USD per million tokens at the scenario's mix."""
        return self.prices(self.chosen_by)[2]

    def recheck(self) -> None:
        """`recheck` of this module."""
        recheck(self)

    def worth(self) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """What binds, and d ln objective / d ln quantity of what the scenario gives.

        Raises
        ------
        SolverError
            If the program of this layout is not solved.
        """
        step = Step(self.task, self.layouts, bound=self.task.uses_bound)
        solution = elastic(step, self.batch)
        return binding(solution), worth(solution)

    def prices(self, values: dict[str, float]) -> tuple[float | None, float | None, float]:
        """USD per million output, input and mixed tokens."""
        task = self.task
        whole, prompt = values["usd_per_request"], values["usd_prefill"]
        if task.mode == "decode":
            output = whole / task.output_tokens * PER_MILLION
            return output, None, output
        if task.mode == "prefill":
            into = prompt / task.input_tokens * PER_MILLION
            return None, into, into
        return (
            (whole - prompt) / task.output_tokens * PER_MILLION,
            prompt / task.input_tokens * PER_MILLION,
            whole / (task.input_tokens + task.output_tokens) * PER_MILLION,
        )

    def plan(self) -> dict[str, Any]:
        """The plan in the words of the answer, base units; null where a field does not apply."""
        task, values = self.task, self.chosen_by
        output, into, mixed = self.prices(values)
        decodes, prefills = task.mode != "prefill", task.mode != "decode"
        chips, replicas = int(self.layouts.chips[0]), int(self.layouts.replicas[0])
        tokens = values["requests"] * task.output_tokens if decodes else None
        parts = {part: values[f"part.{part}"] for part in PARTS} if not task.uses_bound else None
        return {
            "mode": task.mode,
            "layout": self.layouts.row(0),
            "prefill": None,
            "decode": None,
            "transfer": None,
            "chip": task.chip.name,
            "chips": chips,
            "chips_used": replicas * int(self.layouts.replica_chips[0]),
            "batch": max(1, round(self.batch * replicas * values.get("fill", self.fill))),
            "batch_per_replica": int(self.batch),
            "weights": task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"],
            "kv": task.sizes.kv_dtype,
            "redundant_experts": task.redundant if task.sizes.n_experts else None,
            "chunk": int(task.chunk) if prefills else None,
            "ttft": values["ttft"] if prefills else None,
            "tpot": values["tpot"] if decodes else None,
            "e2e": values["latency"] if task.mode == "aggregated" else None,
            "requests_per_s": values["requests"],
            "tokens_per_s": tokens,
            "input_tokens_per_s": values["requests"] * task.input_tokens if prefills else None,
            "tokens_per_s_per_chip": tokens / chips if tokens is not None else None,
            "tokens_per_s_per_user": 1 / values["tpot"] if decodes else None,
            "usd_per_mtok_output": output,
            "usd_per_mtok_input": into,
            "usd_per_mtok": mixed,
            "usd_per_hour": task.price * chips * HOUR,
            "power_usd_per_hour": task.electricity * chips * HOUR if task.electricity else None,
            "joule_per_token": self._energy(values),
            "memory_per_chip": self._memory(values),
            "fits_at_full_context": self.fits_at_full_context(),
            "time_per_step": parts if decodes else None,
            "bottleneck": self.bottleneck(),
            "demand": self._demand(),
        }

    def _demand(self) -> dict[str, Any] | None:
        """How the plan bears open arrivals: load, waiting, spare room; times in s."""
        task, values = self.task, self.chosen_by
        if task.arrivals is None:
            return None
        prefills, replicas = task.mode != "decode", int(self.layouts.replicas[0])
        step = Step(task, self.layouts, bound=task.uses_bound)
        crowd = crowding(step, self.batch, values["requests"] / max(replicas - task.spare, 1))
        return {
            "requests_per_s": values["requests"],
            "load": values["load"],
            "spare_replicas": task.spare,
            "readers_busy": values["readers"] if prefills else None,
            "wait": values["wait"] if prefills else None,
            "ttft_p95": values["ttft_p95"] if prefills else None,
            "ttft_p99": values["ttft_p99"] if prefills else None,
            "in_flight": values["requests"] * values["latency"],
            "slots": int(self.batch) * replicas,
            "decoding_per_replica": crowd.decoding,
            "room_per_replica": crowd.room,
            "crowded": crowd.crowded,
        }

    def floor(self) -> dict[str, Any]:
        """The pure roofline of the same plan."""
        decodes, prefills = self.task.mode != "prefill", self.task.mode != "decode"
        sparse = self.task.sizes.n_experts > 0 and decodes
        return {
            "usd_per_mtok": self.prices(self.bound)[2],
            "tpot": self.bound["tpot"] if decodes else None,
            "ttft": self.bound["ttft"] if prefills else None,
            "roofs": {roof: self.bound[f"roof.{roof}"] for roof in ROOFS} if decodes else None,
            # All tokens may choose the same experts, so the bound reads k of E; an even router
            # reads more, and that floor stands beside it.
            "uniform_routing": {
                "usd_per_mtok": self.prices(self.uniform)[2],
                "tpot": self.uniform["tpot"],
            }
            if sparse
            else None,
        }

    def expected(self) -> dict[str, Any] | None:
        """What the profile expects of the same plan; the lecture has no profile."""
        if self.task.lecture:
            return None
        decodes, prefills = self.task.mode != "prefill", self.task.mode != "decode"
        return {
            "usd_per_mtok": self.prices(self.estimate)[2],
            "tpot": self.estimate["tpot"] if decodes else None,
            "ttft": self.estimate["ttft"] if prefills else None,
        }

    def bottleneck(self) -> str:
        """The largest part of a step; on the bound, the highest roof."""
        if self.task.uses_bound:
            return max(ROOFS, key=lambda roof: self.bound[f"roof.{roof}"])
        if self.task.mode == "prefill":
            return "prefill"
        return max(PARTS, key=lambda part: self.estimate[f"part.{part}"])

    def fits_at_full_context(self) -> bool:
        """Whether every sequence could hold its whole context at once, not the mean one.

        Requests out of step hold the mean, which the plan is sized by; when chance makes many of
        them long together, an engine without this room preempts some.
        """
        task, values = self.task, self.chosen_by
        caches = task.sizes.caches
        longest = task.input_tokens + (0.0 if task.mode == "prefill" else task.output_tokens)
        mean = sum(c.stored_bytes(task.context) for c in caches)
        cache = values["memory.kv"] - self._state()
        more = sum(c.stored_bytes(longest) for c in caches) / mean - 1 if mean else 0.0
        return values["need"] + cache * max(more, 0.0) <= task.chip.memory

    def _memory(self, values: dict[str, float]) -> dict[str, float]:
        task = self.task
        state = self._state()
        capacity, reserved = task.chip.memory, task.reserve * task.chip.memory
        return {
            "capacity": capacity,
            "weights": values["memory.weights"],
            "kv": values["memory.kv"] - state,
            "state": state,
            "activations": values["memory.activations"],
            "reserved": reserved,
            "free": capacity - values["need"],
        }

    def _state(self) -> float:
        """Recurrent state resident on one chip, which the equations count with the cache [byte]."""
        layouts, sizes = self.layouts, self.task.sizes
        held = np.ceil(np.ceil(self.batch / layouts.dp_attention[0]) / layouts.cp[0])
        stages = np.ceil(sizes.n_layers / layouts.pp[0]) / sizes.n_layers
        return float(held * sizes.state_bytes_per_sequence / layouts.tp[0] * stages)

    def _energy(self, values: dict[str, float]) -> float | None:
        task = self.task
        if task.power is None:
            return None
        tokens = task.input_tokens + task.output_tokens
        if task.mode != "aggregated":
            tokens = task.output_tokens if task.mode == "decode" else task.input_tokens
        return values["usd_per_request"] / task.price * task.power / tokens


ROOFS = ("memory", "compute", "network")


def evaluate(task: Task, layouts: Layouts, batch: float, fill: float = 1.0) -> Candidate:
    """One layout (shape (1,)) at one batch per replica, by both models."""
    at = np.array([float(batch)])

    def floats(step: Step) -> dict[str, float]:
        return {k: float(np.ravel(v)[0]) for k, v in step(at, fill).items()}

    roofline = Step(task, layouts, bound=True)
    bound = floats(roofline)
    uniform = bound if task.lecture else floats(roofline.routed_uniformly(batch))
    # The lecture has no estimate beside its roofline.
    estimate = bound if task.lecture else floats(Step(task, layouts, bound=False))
    return Candidate(task, layouts, float(batch), float(fill), estimate, bound, uniform)


def recheck(candidate: Candidate) -> None:
    """Compute the plan again with plain floats from the expression trees, and keep every promise.

    Raises
    ------
    SolverError
        If the two evaluations differ by more than 1e-9, or a promise is broken.
    """
    task, bound = candidate.task, candidate.task.uses_bound
    step = Step(task, candidate.layouts, bound=bound)
    given = {
        name: float(np.ravel(value)[0])
        for name, value in step.values(np.array([candidate.batch]), candidate.fill).items()
    }
    suffix = "_bound" if bound else ""
    names = {"tpot": f"T_tpot{suffix}", "first": f"T_ttft{suffix}", "need": "M_need"}
    again = scalar(BOUND if bound else ESTIMATE, list(names.values()), given)
    for name, symbol in names.items():
        first, second = candidate.chosen_by[name], again[symbol]
        if abs(first - second) > AGREES * abs(second):
            raise SolverError(f"{symbol}: two evaluations differ, {first!r} and {second!r}")
    wait = 0.0
    if task.arrivals is not None and not bound and task.mode != "decode":
        load = candidate.chosen_by["load"] / candidate.chosen_by["slot"]
        wait = scalar((*ESTIMATE, *QUEUE), ["T_wait"], {**given, "x_load": load})["T_wait"]
    if task.loop is not None and not bound:
        met = {name: float(value) for name, value in loop_symbols(task, given).items()}
        late = scalar((*ESTIMATE, *CLOSED_LOOP), ["T_loop"], {**given, **met})
        wait = late["T_loop"] - again[names["first"]]
        if abs(candidate.chosen_by["ttft"] - late["T_loop"]) > AGREES * late["T_loop"]:
            raise SolverError("T_loop: two evaluations differ")
    kept = {
        "tpot": again[names["tpot"]],
        "ttft": again[names["first"]] + wait,
        "need": again["M_need"],
    }
    for name, value in kept.items():
        limit = task.limits.get(name)
        if limit is not None and value > limit * (1 + AGREES):
            raise SolverError(f"the chosen plan breaks the promise {PROMISES[name]}")
