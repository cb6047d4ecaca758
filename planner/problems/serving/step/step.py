"""One point or a million of the serving model: layouts and batches in, times, memory, price out.

The equations of `formulas` are lowered once per process; here they are only fed. The estimate and
the bound answer in the same words, so the search does not know which of the two it optimises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from formulas.algebra.equation import Equation
from formulas.nomenclature.lecture import C_in, C_out
from formulas.nomenclature.pools import (
    C_bill,
    C_power,
    C_seq,
    E_seq,
    E_tok,
    T_first,
    X_chip,
    X_in,
    X_out,
    X_user,
    n_inside,
    n_seqs,
    r_load,
    x_load,
)
from formulas.nomenclature.serving import (
    M_act,
    M_kv,
    M_need,
    M_weights,
    T_dec,
    T_e2e,
    T_math_bound,
    T_mem_bound,
    T_net_bound,
    T_out,
    T_pf_busy,
    T_slot,
    T_tpot,
    T_ttft,
    X_seq,
    phi_mixed,
    r_fill,
    x_pf,
)
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.evaluate import Kernel, kernel
from formulas.numerics.kernel import PreparedKernel
from formulas.serving.bounds import DECODE_BOUND, PREFILL_BOUND
from formulas.serving.decode import DECODE
from formulas.serving.outputs import (
    DECODING,
    LATENCY,
    PRICE,
    READING_SLOT,
    ROOFLINE,
    ROOFLINE_SLOT,
    first_token,
    first_token_quantile,
    one_pool,
    requests_in_plan,
)
from formulas.serving.prefill import PREFILL
from formulas.serving.throughput import AGGREGATED, AGGREGATED_BOUND, MEMORY
from planner.network.system_network import network
from planner.problems.serving.step.binding import engine_values, layout_values, peaks, shared_values
from planner.problems.serving.step.engine_effects import (
    coefficient_powers,
    loop_first_token,
    slowness,
    slowness_follows_batch,
    slows,
    static_first_token,
)
from planner.problems.serving.step.layouts import Layouts, hop_groups
from planner.problems.serving.step.queueing import TAILS, queue

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

# What the answer calls each part of a step, and the symbols that add up to it.
PARTS: Mapping[str, tuple[str, ...]] = {
    "weights": ("T_w_dec",),
    "kv": ("T_kv_dec",),
    "compute": ("T_math",),
    "collectives": ("T_ar", "T_a2a", "T_cp", "T_hop"),
    "overhead": ("T_over",),
    "prefill": ("T_share",),
}
# Outputs that no wait changes.
UNHURRIED = frozenset({"need", "tpot", "load", "mixed", "slot", "busy", "fill", "requests"})
ARRIVALS = "arrivals"  # of a layout's own question, beside its limits
FEW = 1e-9  # replicas: none, where as many are spare as there are
ESTIMATE = tuple(dict.fromkeys((*DECODE, *PREFILL, *MEMORY, *AGGREGATED)))
BOUND = tuple(dict.fromkeys((*DECODE_BOUND, *PREFILL_BOUND, *MEMORY, *AGGREGATED_BOUND)))


# The outputs by the words of the search, and the symbols that give them.
_TIMES: Mapping[str, sp.Expr] = {
    "ttft": T_first, "first": T_ttft, "tpot": T_tpot, "slot": T_slot, "busy": x_pf * T_pf_busy,
    "latency": T_e2e, "need": M_need, "memory.weights": M_weights, "memory.kv": M_kv,
    "memory.activations": M_act, "load": r_load, "fill": r_fill, "arrivals": x_load,
    "requests": X_seq, "in_flight": n_inside, "sequences": n_seqs, "usd_per_request": C_seq,
    "usd_per_s": C_bill, "power_usd_per_s": C_power,
}  # fmt: skip
_DECODED: Mapping[str, sp.Expr] = {
    "usd_per_output_token": C_out, "tokens_per_s": X_out, "tokens_per_s_per_chip": X_chip,
    "tokens_per_s_per_user": X_user,
}  # fmt: skip
_READ: Mapping[str, sp.Expr] = {"usd_per_input_token": C_in, "input_tokens_per_s": X_in}
_ENERGY: Mapping[str, sp.Expr] = {"joule_per_request": E_seq, "joule_per_token": E_tok}
_ESTIMATED: Mapping[str, sp.Expr] = {
    "mixed": phi_mixed, "step": T_dec,
    **{f"part.{part}": sp.Add(*map(SYMBOLS.__getitem__, names)) for part, names in PARTS.items()},
}  # fmt: skip
_BOUNDED: Mapping[str, sp.Expr] = {
    "mixed": sp.Integer(0), "roof.memory": T_mem_bound, "roof.compute": T_math_bound,
    "roof.network": T_net_bound,
}  # fmt: skip
_WORK = (T_slot, T_pf_busy, T_out, T_ttft, T_tpot)
_WAITING: Mapping[str, sp.Expr] = {"ttft": T_first, "latency": T_e2e, "in_flight": n_inside}


@dataclass(frozen=True)
class Model:
    """Which equations a pool is computed with: its phases, the roofline or the estimate, its load.

    `load` is `none`, `given` where it must be carried, `most` where as much as can be is served.
    """

    mode: str
    bound: bool
    load: str
    powered: bool

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """All equations of the pool, from its layout to its price."""
        times = BOUND if self.bound else ESTIMATE
        slot: tuple[Equation, ...] = ROOFLINE_SLOT if self.bound else ()
        if self.mode == "prefill":
            times, slot = tuple(e for e in times if e.symbol != T_slot), READING_SLOT
        if self.bound:
            slot = (*slot, *ROOFLINE, DECODING.get(self.mode, DECODING["aggregated"]))
        return (*times, *slot, *one_pool(self.mode, self.load))

    @cached_property
    def outputs(self) -> dict[str, sp.Expr]:
        """Every output by its word: times [s], memory [byte], rates [1/s], money [USD], energy."""
        return {
            **_TIMES,
            **(_BOUNDED if self.bound else _ESTIMATED),
            **(_DECODED if self.mode != "prefill" else {}),
            **(_READ if self.mode != "decode" else {}),
            **(_ENERGY if self.powered else {}),
            "usd_per_token": PRICE[self.mode].symbol,
        }

    @cached_property
    def kernel(self) -> Kernel:
        """All outputs, lowered to NumPy; the wait for a first token (`T_wait`) is given."""
        return kernel(self.equations, self.outputs)

    @cached_property
    def every(self) -> Kernel:
        """Every symbol that an equation gives."""
        return kernel(self.equations, list(dict.fromkeys(e.symbol for e in self.equations)))

    @cached_property
    def times(self) -> Kernel:
        """What does not depend on how busy a replica is: the times of its work [s], its memory."""
        busyness = one_pool(self.mode, self.load)
        given = {e.symbol for e in busyness}
        plain = {word: x for word, x in self.outputs.items() if not x.free_symbols & given}
        return kernel(self.equations, {**plain, **{x.name: x for x in _WORK}})

    @cached_property
    def busyness(self) -> Kernel:
        """All other outputs, from those times."""
        equations = one_pool(self.mode, self.load)
        given = {e.symbol for e in equations}
        outputs = {word: x for word, x in self.outputs.items() if x.free_symbols & given}
        return kernel(equations, outputs)

    @cached_property
    def waiting(self) -> Kernel:
        """What a wait before the prompt changes."""
        return kernel((first_token, LATENCY[self.mode], requests_in_plan), _WAITING)


@cache
def model(mode: str, *, bound: bool, load: str = "none", powered: bool = False) -> Model:
    """The equations of a pool, lowered once per process."""
    return Model(mode, bound, load, powered)


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
        self._origin: tuple[Step, np.ndarray] | None = None
        self._ready: dict[tuple, PreparedKernel | None] = {}
        self.largest: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}  # what a search remembers
        self._own: dict[str, np.ndarray] = {}  # limits and arrivals, where each layout has its own
        self._bound_values: dict[str, float | np.ndarray] | None = {
            **shared_values(task),
            **peaks(task, bound=bound),
            **layout_values(task, layouts, rates.rows(layouts.tp), rates.rows(hops), bound=bound),
        }

    @property
    def model(self) -> Model:
        """The equations that answer this question."""
        return model(
            self.task.mode, bound=self.bound, load=self.task.load,
            powered=self.task.power is not None,
        )  # fmt: skip

    @property
    def limits(self) -> dict[str, float | np.ndarray]:
        """Upper limits by output, numbers or one for each layout."""
        return {name: self._own.get(name, limit) for name, limit in self.task.limits.items()}

    def limits_at(self, rows: np.ndarray) -> Step:
        """A step whose limits are those of some layouts: itself where all layouts have the same."""
        return self.take(rows) if self._own else self

    def take(self, rows: np.ndarray) -> Step:
        """The same model on some of the layouts only."""
        twin = self._copy(self.layouts.take(rows), None)
        twin._origin = (self, rows)
        twin._own = {name: values[rows] for name, values in self._own.items()}
        return twin

    def joinable(self) -> tuple[object, ...] | None:
        """Steps of the same value are `joined`; None where what a task says is no symbol."""
        task = self.task
        if not self.bound and (task.loop is not None or task.static or slows(task)):
            return None
        return (
            self.model, task.objective, task.batches, tuple(task.chips), task.spare,
            task.headroom, task.machine.chips_per_domain, task.limits_of.get("replicas"),
            frozenset(task.limits), frozenset(self._values),
        )  # fmt: skip

    @classmethod
    def joined(cls, steps: Sequence[Step]) -> Step:
        """One step on the layouts of several, `joinable` alike, each under its own values."""
        first, counts = steps[0], [len(step.layouts) for step in steps]
        if len(steps) == 1:
            return first

        def column(numbers: Sequence[float | np.ndarray]) -> float | np.ndarray:
            if not any(isinstance(number, np.ndarray) for number in numbers) and all(
                number == numbers[0] for number in numbers
            ):
                return numbers[0]
            pairs = zip(numbers, counts, strict=True)
            return np.concatenate([np.broadcast_to(number, count) for number, count in pairs])

        values = {name: column([step._values[name] for step in steps]) for name in first._values}
        limits = {name: column([step.limits[name] for step in steps]) for name in first.limits}
        limits[ARRIVALS] = column([step.task.arrivals or 0.0 for step in steps])
        twin = first._copy(Layouts.joined([step.layouts for step in steps]), values)
        twin._own = {name: each for name, each in limits.items() if isinstance(each, np.ndarray)}
        return twin

    @property
    def _values(self) -> dict[str, float | np.ndarray]:
        """The values bound; those of some rows of another step are taken when first needed."""
        if self._bound_values is None and self._origin is not None:
            step, rows = self._origin
            self._bound_values = {
                name: value[rows] if isinstance(value, np.ndarray) else value
                for name, value in step._values.items()
            }
        return self._bound_values or {}

    def asked(self, task: Task) -> Step:
        """The same model for the same question asked with other limits."""
        twin = self._copy(self.layouts, self._bound_values)
        twin.task, twin._origin = task, self._origin
        twin._ready, twin.largest = self._ready, self.largest
        twin._own = self._own
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

    def _copy(self, layouts: Layouts, values: dict[str, float | np.ndarray] | None) -> Step:
        twin = object.__new__(Step)
        twin.task, twin.layouts, twin.bound = self.task, layouts, self.bound
        twin._bound_values, twin._origin, twin._ready, twin.largest = values, None, {}, {}
        twin._own = self._own
        return twin

    def values(
        self, batch: np.ndarray, fill: np.ndarray | float = 1.0
    ) -> dict[str, float | np.ndarray]:
        """Every bound symbol's value, by name; nobody waits yet.

        Under a load `fill` is the share of its time that a replica may be busy, else the share of
        the slots in use.
        """
        values = {**self._values, "B": batch, "T_wait": 0.0, **self._busy(fill)}
        if self.task.load != "none":
            values["n_rep"] = np.maximum(values["n_rep"], FEW)
        if self.bound or not self.task.engine:
            return values
        factors = slowness(self.task, self.layouts, values)
        return values | {name: values[name] / factor for name, factor in factors.items()}

    def _busy(self, fill: np.ndarray | float) -> dict[str, float | np.ndarray]:
        """The symbols that say how busy replicas are."""
        task = self.task
        if task.load == "none":
            return {"r_fill": fill}
        up = np.maximum(self.layouts.replicas - float(task.spare), FEW)
        if task.load == "given":
            return {"n_up": up, "X_arr": self._own.get(ARRIVALS, float(task.arrivals or 0.0))}
        # Without a replica that runs, the load is beyond any limit.
        busy = np.where(up > FEW, fill, 1 / FEW)
        return {"n_up": up, "x_free": task.headroom, "r_busy": busy}

    def coefficient_powers(self, batch: float) -> dict[str, dict[str, float]]:
        """d ln coefficient / d ln symbol of what the engine slows at one layout and batch."""
        if self.bound or not self.task.engine:
            return {}
        values = {**self._values, "B": np.array([batch])}
        return coefficient_powers(self.task, self.layouts, values)

    def __call__(self, batch: np.ndarray, fill: np.ndarray | float = 1.0) -> dict[str, np.ndarray]:
        """Times [s], memory [byte], rates and prices, each of shape (n_layouts,).

        Loads and waits are those with `spare` replicas down.

        Parameters
        ----------
        batch : sequences in flight per replica, shape (n_layouts,).
        fill : share of the slots that are filled, or may be, same shape.
        """
        values = self._computed(None, batch, fill)
        task = self.task
        if task.load == "none" and (self.bound or not (task.loop is not None or task.static)):
            # Nobody waits, so one request's first token comes as late as another's.
            return {**values, **dict.fromkeys(TAILS, values["ttft"])}
        return self._queued(self.values(batch, fill), values)

    def only(self, words: Iterable[str], batch: np.ndarray) -> dict[str, np.ndarray]:
        """Some of the outputs, all slots in use, each of shape (n_layouts,).

        What depends on them alone is computed, where nothing waits for anything.
        """
        task, names = self.task, tuple(words)
        waits = task.load == "most" or (task.load != "none" and not {*names} <= UNHURRIED)
        if waits or (not self.bound and (task.loop is not None or task.static)):
            return self(batch)
        symbols = tuple(dict.fromkeys("ttft" if name in TAILS else name for name in names))
        values = self._computed(symbols, batch, 1.0)
        return {name: values["ttft" if name in TAILS else name] for name in names}

    def _computed(
        self, words: tuple[str, ...] | None, batch: np.ndarray, fill: np.ndarray | float
    ) -> Mapping[str, Any]:
        """What the kernel gives before any waits: these outputs, or all of them."""
        at = self._busy(fill) if np.ndim(fill) else {}
        ready = self._prepared(None if np.ndim(fill) else float(fill), tuple(at))
        if ready is None or np.shape(batch) != (ready.rows,):
            symbols, kernel = self.values(batch, fill), self.model.kernel
            return kernel(**{name: symbols[name] for name in kernel.names})
        varying = {name: np.asarray(at[name]) for name in ready.varying if name != "B"}
        return ready(words, B=batch, **varying)

    def _prepared(self, fill: float | None, busy: tuple[str, ...]) -> PreparedKernel | None:
        """The kernel with everything put in but the batch, and the symbols that a `fill` gives.

        None where the values of a symbol follow the batch, or are those of many questions.
        """
        task, model = self.task, self.model
        if not self.bound and task.engine and slowness_follows_batch(task):
            return None
        key = (model, fill, task.spare, task.arrivals, task.headroom)
        if key in self._ready:
            return self._ready[key]
        if self._origin is not None:
            step, rows = self._origin
            whole = step.asked(task)._prepared(fill, busy)
            self._ready[key] = None if whole is None else whole.take(rows)
        else:
            one = np.ones(len(self.layouts))
            symbols = self.values(one, one if fill is None else fill)
            varying = ("B", *(name for name in busy if np.ndim(symbols[name])))
            names = [name for name in model.kernel.names if name not in varying]
            varying = tuple(name for name in varying if name in model.kernel.names)
            try:
                ready = model.kernel.prepared(varying, **{name: symbols[name] for name in names})
            except ValueError:
                ready = None
            self._ready[key] = ready if ready is not None and ready.rows == one.size else None
        return self._ready[key]

    def work(self, batch: np.ndarray) -> dict[str, np.ndarray]:
        """Times of the work [s] and memory [byte], each of shape (n_layouts,); no rates or prices.

        They may be none, where every coefficient is switched off.
        """
        symbols, times = self.values(batch), self.model.times
        values: dict[str, Any] = times(**{name: symbols[name] for name in times.names})
        return {**values, "ttft": self._first_token(symbols, values)}

    def filled(self, batch: np.ndarray) -> Callable[[np.ndarray | float], dict[str, np.ndarray]]:
        """The same at fixed batches, as a function of the share `fill`.

        How long a step takes does not depend on it, only rates, prices and queues do.
        """
        symbols, times, rest = self.values(batch), self.model.times, self.model.busyness
        work: dict[str, Any] = times(**{name: symbols[name] for name in times.names})
        symbols |= {x.name: work.pop(x.name) for x in _WORK}

        def at(fill: np.ndarray | float) -> dict[str, np.ndarray]:
            every = {**symbols, **self._busy(fill)}
            values = rest(**{name: every[name] for name in rest.names})
            return self._queued(every, {**work, **values})

        return at

    def _queued(self, symbols: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs with the waits of a load, or of a closed loop or a static batch."""
        task = self.task
        if task.load != "none":
            return {**values, **self._waiting(symbols, values)}
        first = self._first_token(symbols, values)
        if first is not values["first"]:
            values = {**values, **self._late(symbols, values, first, 0.0)}
        # Nobody waits, so one request's first token comes as late as another's.
        return {**values, **dict.fromkeys(TAILS, values["ttft"])}

    def _first_token(self, symbols: Mapping[str, Any], values: Mapping[str, Any]) -> np.ndarray:
        """The time to first token without a load, where prompts arrive together as well."""
        task, alone = self.task, values["first"]
        if self.bound or (task.loop is None and not task.static):
            return alone
        if task.static:
            return static_first_token(task, symbols)
        times = {
            "T_ttft": alone, "T_dec": values["step"], "T_tpot": values["tpot"],
            "T_pf_busy": values["busy"],
        }  # fmt: skip
        return loop_first_token(task, symbols, times)

    def _waiting(self, symbols: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """What open arrivals add: waits [s], and the times with them. The bound knows no queue."""
        if self.bound or self.task.mode == "decode":
            none = np.zeros_like(values["slot"])
            late = dict.fromkeys(("readers", "wait"), none)
            return {**late, **dict.fromkeys(TAILS, values["ttft"])}
        late = queue({
            **symbols, "T_pf_busy": values["busy"], "T_dec": values["step"],
            "x_load": values["arrivals"],
        })  # fmt: skip
        first = values["first"]
        tails = _tails()(T_ttft=first, T_tail=np.stack([late[tail] for tail in TAILS]))
        return {
            **late,
            **self._late(symbols, values, first, late["wait"]),
            **dict(zip(TAILS, np.asarray(tails["T_first"]), strict=True)),
        }

    def _late(
        self,
        symbols: Mapping[str, Any],
        values: Mapping[str, Any],
        first: np.ndarray,
        wait: np.ndarray | float,
    ) -> dict[str, Any]:
        """What follows from the time to read a prompt and from the wait before it [s]."""
        waiting = self.model.waiting
        every = {
            **symbols, "T_ttft": first, "T_wait": wait, "T_tpot": values["tpot"],
            "X_seq": values["requests"],
        }  # fmt: skip
        return dict(waiting(**{name: every[name] for name in waiting.names}))


def alike(
    steps: Sequence[tuple[Step, ...]], keys: Sequence[object] | None = None
) -> list[list[int]]:
    """Numbers of questions that may be joined: their steps, and any other `keys`, are alike."""
    groups: dict[object, list[int]] = {}
    for number, several in enumerate(steps):
        shapes = [step.joinable() for step in several]
        shape = number if None in shapes else (*shapes, keys and keys[number])
        groups.setdefault(shape, []).append(number)
    return list(groups.values())


@cache
def _tails() -> Kernel:
    return kernel([first_token_quantile], ["T_first"])
