"""One point or a million of the serving model: layouts and batches in, times, memory, price out.

The equations of `formulas` are lowered once per process; here they are only fed. The estimate and
the bound answer in the same words, so the search does not know which of the two it optimises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.evaluate import Kernel, kernel
from formulas.serving.bounds import DECODE_BOUND, PREFILL_BOUND
from formulas.serving.decode import DECODE
from formulas.serving.prefill import PREFILL
from formulas.serving.throughput import AGGREGATED, AGGREGATED_BOUND, MEMORY
from planner.network.system_network import network
from planner.problems.serving.step.binding import engine_values, layout_values, peaks, shared_values
from planner.problems.serving.step.engine_effects import (
    loop_first_token,
    slowness,
    static_first_token,
)
from planner.problems.serving.step.layouts import hop_groups
from planner.problems.serving.step.queueing import TAILS, queue

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

__all__ = ["BOUND", "ESTIMATE", "PARTS", "Step", "bound_kernel", "estimate_kernel"]

# What the answer calls each part of a step, and the symbols that add up to it.
PARTS: Mapping[str, tuple[str, ...]] = {
    "weights": ("T_w_dec",),
    "kv": ("T_kv_dec",),
    "compute": ("T_math",),
    "collectives": ("T_ar", "T_a2a", "T_hop"),
    "overhead": ("T_over",),
    "prefill": ("T_share",),
}
FEW = 1e-9  # replicas: none, where as many are spare as there are
ESTIMATE = tuple(dict.fromkeys((*DECODE, *PREFILL, *MEMORY, *AGGREGATED)))
BOUND = tuple(dict.fromkeys((*DECODE_BOUND, *PREFILL_BOUND, *MEMORY, *AGGREGATED_BOUND)))

_ESTIMATED = (
    "T_ttft", "T_tpot", "T_slot", "T_pf_busy", "T_out", "phi_mixed",
    "M_need", "M_weights", "M_kv", "M_act", "T_dec",
    *(name for names in PARTS.values() for name in names),
)  # fmt: skip
_BOUNDED = (
    "T_ttft_bound", "T_tpot_bound", "T_slot_bound", "T_pf_busy_bound", "M_need", "M_weights",
    "M_kv", "M_act", "T_mem_bound", "T_math_bound", "T_net_bound",
)  # fmt: skip


@cache
def estimate_kernel() -> Kernel:
    """The calibrated estimate, lowered to NumPy."""
    return kernel(ESTIMATE, _ESTIMATED)


@cache
def bound_kernel() -> Kernel:
    """The pure roofline, lowered to NumPy."""
    return kernel(BOUND, _BOUNDED)


@cache
def coverage_kernel() -> Kernel:
    """The share of the experts that one microbatch reads under uniform routing."""
    return kernel(DECODE, ["coverage"])


class Step:
    """The serving model of one task, ready to be evaluated on layouts and batches.

    Values that do not change between evaluations are bound once.
    """

    def __init__(self, task: Task, layouts: Layouts, *, bound: bool) -> None:
        self.task = task
        self.layouts = layouts
        self.bound = bound
        hops = hop_groups(task, layouts)
        sizes = np.concatenate([layouts.tp, hops])
        rates = network(task.network, task.machine.chips_per_domain, sizes)
        self._values: dict[str, float | np.ndarray] = {
            **shared_values(task),
            **peaks(task, bound=bound),
            **layout_values(task, layouts, rates.rows(layouts.tp), rates.rows(hops), bound=bound),
        }
        self._kernel = bound_kernel() if bound else estimate_kernel()

    def take(self, rows: np.ndarray) -> Step:
        """The same model on some of the layouts only."""
        values = {
            name: value[rows] if isinstance(value, np.ndarray) else value
            for name, value in self._values.items()
        }
        return self._copy(self.layouts.take(rows), values)

    def asked(self, task: Task) -> Step:
        """The same model for the same question asked with other limits."""
        twin = self._copy(self.layouts, self._values)
        twin.task = task
        return twin

    def under(self, coefficients: Mapping[str, float | np.ndarray]) -> Step:
        """The same model under another profile's coefficients, numbers or one for each layout."""
        return self._copy(self.layouts, {**self._values, **engine_values(coefficients)})

    def on(self, layouts: Layouts) -> Step:
        """The same model with other numbers of chips and replicas of the same layouts."""
        counts = {"n_rep": layouts.replicas * 1.0, "n_chips": layouts.chips * 1.0}
        return self._copy(layouts, {**self._values, **counts})

    def routed_uniformly(self, batch: float) -> Step:
        """The bound with the experts that uniform routing reads at this batch, not the least."""
        given = self.values(np.array([batch]))
        names = coverage_kernel().names
        share = coverage_kernel()(**{name: given[name] for name in names})["coverage"]
        return self._copy(self.layouts, self._values | {"k_experts": share * given["n_experts"]})

    def _copy(self, layouts: Layouts, values: dict[str, float | np.ndarray]) -> Step:
        twin = object.__new__(Step)
        twin.task, twin.layouts, twin.bound = self.task, layouts, self.bound
        twin._kernel, twin._values = self._kernel, values
        return twin

    def values(
        self, batch: np.ndarray, fill: np.ndarray | float = 1.0
    ) -> dict[str, float | np.ndarray]:
        """Every bound symbol's value, by name, batch included."""
        values = {**self._values, "B": batch, "r_fill": fill}
        if self.bound or not self.task.engine:
            return values
        factors = slowness(self.task, self.layouts, values)
        return values | {name: values[name] / factor for name, factor in factors.items()}

    def __call__(self, batch: np.ndarray, fill: np.ndarray | float = 1.0) -> dict[str, np.ndarray]:
        """Times [s], memory [byte] and the price of a request [USD], each of shape (n_layouts,).

        Parameters
        ----------
        batch : sequences in flight per replica, shape (n_layouts,).
        fill : share of the slots that are filled, same shape.
        """
        return self.filled(batch)(fill)

    def filled(self, batch: np.ndarray) -> Callable[[np.ndarray | float], dict[str, np.ndarray]]:
        """The same at fixed batches, as a function of the share of the slots that are filled.

        How long a step takes does not depend on it, only prices and queues do.
        """
        given = self.values(batch)
        found = self._kernel(**{name: given[name] for name in self._kernel.names})
        rule = self._bounded if self.bound else self._estimated
        return lambda fill: rule(found, {**given, "r_fill": fill})

    def _estimated(self, found: dict, given: dict) -> dict[str, np.ndarray]:
        parts = {part: sum(found[name] for name in names) for part, names in PARTS.items()}
        first = self._first_token(found, given)
        return self._priced(
            {
                "ttft": first,
                "first": found["T_ttft"],
                "tpot": found["T_tpot"],
                "slot": found["T_slot"],
                "busy": given["x_pf"] * found["T_pf_busy"],
                "latency": self._latency(first, found["T_tpot"], given),
                "mixed": found["phi_mixed"],
                "step": found["T_dec"],
                **{f"part.{part}": value for part, value in parts.items()},
            },
            found,
            given,
        )

    def _first_token(self, found: dict, given: dict) -> np.ndarray:
        """Mean time to first token [s], where nobody waits for an open load."""
        if self.task.loop is not None:
            return loop_first_token(self.task, given, found)
        return static_first_token(self.task, given) if self.task.static else found["T_ttft"]

    def _bounded(self, found: dict, given: dict) -> dict[str, np.ndarray]:
        tpot, ttft = found["T_tpot_bound"], found["T_ttft_bound"]
        return self._priced(
            {
                "ttft": ttft,
                "first": ttft,
                "tpot": tpot,
                "slot": found["T_slot_bound"],
                "busy": given["x_pf"] * found["T_pf_busy_bound"],
                "latency": self._latency(ttft, tpot, given),
                "mixed": np.zeros_like(tpot),
                "roof.memory": found["T_mem_bound"],
                "roof.compute": found["T_math_bound"],
                "roof.network": found["T_net_bound"],
            },
            found,
            given,
        )

    def _latency(self, ttft: np.ndarray, tpot: np.ndarray, given: dict) -> np.ndarray:
        """From arrival to the last token [s]; of a phase alone, what that phase takes of it."""
        if self.task.mode == "prefill":
            return ttft
        return given["L_dec"] * tpot + (ttft if self.task.mode == "aggregated" else 0.0)

    def _priced(self, times: dict, found: dict, given: dict) -> dict[str, np.ndarray]:
        """Add memory, request rate [1/s] and money; one identity prices estimate and bound."""
        slot = times["slot"] if self.task.mode != "prefill" else times["busy"]
        served = given["n_rep"] * given["r_fill"]
        if self.task.arrivals is None:
            # Nobody waits, so one request's first token comes as late as another's.
            times = {**times, **dict.fromkeys(TAILS, times["ttft"])}
        else:
            times, served = self._arriving(times, found, given, slot)
        hourly = given["p_chip"] * given["n_chips"]
        return {
            **times,
            "need": found["M_need"],
            "memory.weights": found["M_weights"],
            "memory.kv": found["M_kv"],
            "memory.activations": found["M_act"],
            "requests": served / slot,
            "usd_per_request": hourly * slot / served,
            "usd_prefill": hourly * times["busy"] / served,
        }

    def _arriving(
        self, times: dict, found: dict, given: dict, slot: np.ndarray
    ) -> tuple[dict, np.ndarray]:
        """The same with the load of open arrivals, and slots in use over all replicas.

        Loads and waits are those with `spare` replicas down. The bound knows no queue.
        """
        task = self.task
        up = np.maximum(given["n_rep"] - task.spare, FEW)
        share = given["r_fill"] * (1.0 - task.headroom)
        load = task.arrivals * slot / up if task.loaded else np.where(up > FEW, share, 1 / FEW)
        served = load * up
        if self.bound or task.mode == "decode":
            nothing = np.zeros_like(slot)
            late = {"readers": nothing, "wait": nothing, **{f"wait.{t}": nothing for t in TAILS}}
        else:
            late = queue(given, found, load / slot)
        first = times["ttft"]
        return {
            **times,
            **late,
            "load": load,
            "fill": served / np.maximum(given["n_rep"], FEW),
            "ttft": first + late["wait"],
            "latency": times["latency"] + (late["wait"] if task.mode != "decode" else 0.0),
            **{tail: first + late[f"wait.{tail}"] for tail in TAILS},
        }, served
