"""One plan in full: evaluated, split into its parts, checked again by an independent evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.evaluate import scalar
from formulas.serving.closed_loop import CLOSED_LOOP, PREFILL_LOOP
from formulas.serving.outputs import FIRST_OF_A_LOOP, first_token_quantile
from formulas.serving.queues import QUEUE, waiting_quantile
from planner.problems.serving.bounds.binding_limits import binding, worth
from planner.problems.serving.bounds.relaxation import elastic
from planner.problems.serving.search.occupancy import crowding
from planner.problems.serving.step.engine_effects import loop_symbols
from planner.problems.serving.step.queueing import TAILS
from planner.problems.serving.step.step import PARTS, Step
from planner.problems.serving.task.task import PROMISES
from planner.text.errors import SolverError

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

AGREES = 1e-9
PER_MILLION = 1e6
HOUR = 3600.0


class Later(Mapping[str, float]):
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
class Candidate:
    """One layout of one task at one batch: estimate and bound side by side, plain floats."""

    task: Task
    layouts: Layouts
    batch: float
    fill: float
    estimate: Mapping[str, float]
    bound: Mapping[str, float]
    uniform: Mapping[str, float]

    @property
    def chosen_by(self) -> Mapping[str, float]:
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
        return binding(solution), worth(solution, step.coefficient_powers(self.batch))

    def prices(self, values: Mapping[str, float]) -> tuple[float | None, float | None, float]:
        """USD per million output, input and mixed tokens."""
        output, into = values.get("usd_per_output_token"), values.get("usd_per_input_token")
        return (
            None if output is None else output * PER_MILLION,
            None if into is None else into * PER_MILLION,
            values["usd_per_token"] * PER_MILLION,
        )

    def plan(self) -> dict[str, Any]:
        """The plan in the words of the answer, base units; null where a field does not apply."""
        task, values = self.task, self.chosen_by
        output, into, mixed = self.prices(values)
        decodes, prefills = task.mode != "prefill", task.mode != "decode"
        chips, replicas = int(self.layouts.chips[0]), int(self.layouts.replicas[0])
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
            "batch": max(1, round(values["sequences"])),
            "batch_per_replica": int(self.batch),
            "weights": task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"],
            "kv": task.sizes.kv_dtype,
            "redundant_experts": task.redundant if task.sizes.n_experts else None,
            "chunk": int(task.chunk) if prefills else None,
            "ttft": values["ttft"] if prefills else None,
            "tpot": values["tpot"] if decodes else None,
            "e2e": values["latency"] if task.mode == "aggregated" else None,
            "requests_per_s": values["requests"],
            "tokens_per_s": values.get("tokens_per_s"),
            "input_tokens_per_s": values.get("input_tokens_per_s"),
            "tokens_per_s_per_chip": values.get("tokens_per_s_per_chip"),
            "tokens_per_s_per_user": values.get("tokens_per_s_per_user"),
            "usd_per_mtok_output": output,
            "usd_per_mtok_input": into,
            "usd_per_mtok": mixed,
            "usd_per_hour": values["usd_per_s"] * HOUR,
            "power_usd_per_hour": values["power_usd_per_s"] * HOUR if task.electricity else None,
            "joule_per_token": values.get("joule_per_token"),
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
            "in_flight": values["in_flight"],
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

    def _memory(self, values: Mapping[str, float]) -> dict[str, float]:
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


ROOFS = ("memory", "compute", "network")


def evaluate(task: Task, layouts: Layouts, batch: float, fill: float = 1.0) -> Candidate:
    """One layout (shape (1,)) at one batch per replica, by both models."""
    at = np.array([float(batch)])

    def floats(step: Step) -> dict[str, float]:
        return {k: float(np.ravel(v)[0]) for k, v in step(at, fill).items()}

    @cache
    def roofline() -> Step:
        return Step(task, layouts, bound=True)

    bound = Later(lambda: floats(roofline()))
    uniform = bound if task.lecture else Later(lambda: floats(roofline().routed_uniformly(batch)))
    # The lecture has no estimate beside its roofline.
    estimate = bound if task.lecture else Later(lambda: floats(Step(task, layouts, bound=False)))
    return Candidate(task, layouts, float(batch), float(fill), estimate, bound, uniform)


def recheck(candidate: Candidate) -> None:
    """Compute every output again with plain floats from the expression trees; hold every promise.

    Raises
    ------
    SolverError
        If the two evaluations differ by more than 1e-9, or a promise is broken.
    """
    task, values = candidate.task, candidate.chosen_by
    for bound, computed in ((task.uses_bound, values), (True, candidate.bound)):
        step = Step(task, candidate.layouts, bound=bound)
        agree(recomputed(step, candidate.batch, candidate.fill), computed)
    for name, limit in task.limits.items():
        if name in values and values[name] > limit * (1 + AGREES):
            raise SolverError(f"the chosen plan breaks the promise {PROMISES[name]}")


def agree(again: Mapping[str, float], values: Mapping[str, float]) -> None:
    """Every output is what it is when computed again, the price first.

    Raises
    ------
    SolverError
        If two evaluations of an output differ by more than 1e-9.
    """
    for name, second in again.items():
        first = values[name]
        if first != second and not abs(first - second) <= AGREES * abs(second):
            raise SolverError(f"{name}: two evaluations differ, {first!r} and {second!r}")


def recomputed(step: Step, batch: float, fill: float = 1.0) -> dict[str, float]:
    """Every output of one layout by walking the equations with plain floats, the price first."""
    bound = step.values(np.array([float(batch)]), fill)
    symbols = {name: float(np.ravel(value)[0]) for name, value in bound.items()}
    model, task = step.model, step.task
    wanted = {"usd_per_token": model.outputs["usd_per_token"], **model.outputs}
    if task.loop is not None and not step.bound:
        rest = [e for e in model.equations if e.symbol.name != "T_first"]
        looped = (*rest, *(PREFILL_LOOP if task.mode == "prefill" else CLOSED_LOOP))
        late = {name: float(np.ravel(x)[0]) for name, x in loop_symbols(task, symbols).items()}
        again = scalar((*looped, FIRST_OF_A_LOOP), wanted, {**symbols, **late})
        return {**again, **dict.fromkeys(TAILS, again["ttft"])}
    if task.load == "none" or step.bound or task.mode == "decode":
        again = scalar(model.equations, wanted, symbols)
        none = {} if task.load == "none" else {"readers": 0.0, "wait": 0.0}
        return {**again, **none, **dict.fromkeys(TAILS, again["ttft"])}
    del symbols["T_wait"]
    equations = (*model.equations, *QUEUE)
    late = {name: SYMBOLS[name] for name in ("rho_pf", "T_wait", "T_line", "T_join", "S_occ")}
    again = scalar(equations, {**wanted, **late}, symbols)
    line = {**symbols, **{name: again.pop(name) for name in late}}
    tails = {}
    for tail, share in TAILS.items():
        at = {**line, "x_tail": share, "rho_pf": max(line["rho_pf"], share)}
        later = (waiting_quantile, first_token_quantile)
        tails[tail] = scalar(later, ["T_first"], {**at, "T_ttft": again["first"]})["T_first"]
    return {**again, "readers": line["rho_pf"], "wait": line["T_wait"], **tails}
