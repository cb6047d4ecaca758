"""One point or a million of the serving model: layouts and batches in, times, memory, price out.

The equations of `formulas` are lowered once (`kernels`); here they are only fed. The estimate and
the bound answer in the same words, so the search does not know which of the two it optimises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.kernel import PreparedKernel
from planner.problems.serving.step import engine_effects, kernels
from planner.problems.serving.step.binding import engine_values, layout_values, peaks, shared_values
from planner.problems.serving.step.layouts import Layouts, hop_groups
from planner.problems.serving.step.memory_terms import memory_terms
from planner.problems.serving.step.occupancy import IN_FLIGHT, TAILS, Occupancy, arrival_values
from planner.problems.serving.step.queued_times import queued_times
from planner.problems.serving.step.runnable import cut_otherwise

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

# Outputs that no wait changes.
QUEUE_INDEPENDENT_OUTPUTS = frozenset(
    (
        *("need", *kernels.OF_A_STEP, "tpot", "load", "mixed", "slot", "busy", "fill", "requests"),
        *("arrivals", "crowded"),
    )
)
# Keys of values per layout other than limits: the arrival rate and the index of the task.
ARRIVALS, QUESTION = "arrivals", "question"
NEGLIGIBLE_REPLICAS = 1e-9  # replicas; replaces zero if all replicas are spare


class Step:
    """The serving model of one task, ready to be evaluated on layouts and batches.

    Values that do not change between evaluations are bound once.
    """

    def __init__(self, task: Task, layouts: Layouts, *, bound: bool) -> None:
        self.task = task
        self.layouts = layouts
        self.bound = bound
        self._origin: tuple[Step, np.ndarray] | None = None
        self._ready: dict[tuple, PreparedKernel | None] = {}
        self.largest: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}  # cache of largest batches
        self._rowwise: dict[str, np.ndarray] = {}  # limits and arrivals of each layout's own
        self._joined_tasks: tuple[Task, ...] = ()  # of several questions, by number
        self._occupancy: Occupancy | None = None
        self._bound_values: dict[str, float | np.ndarray] | None = {
            **shared_values(task),
            **peaks(task, bound=bound),
            **layout_values(task, layouts, hop_groups(task, layouts), bound=bound),
            **memory_terms(task, layouts),
        }
        self._bound_values |= cut_otherwise(task, layouts, self._bound_values, bound=bound)
        self._keep_prefixes()

    @property
    def model(self) -> kernels.StepModel:
        """The equations that answer this question."""
        task = self.task
        powered = "" if task.power is None else kernels.LOAD_GIVEN
        if task.draw is not None and not self.bound:
            powered = kernels.BILLING if task.electricity else kernels.LOAD_COUNTED
        return kernels.StepModel(task.mode, self.bound, task.load, powered)

    @property
    def prompts_gather(self) -> bool:
        """True if prompts come together, in a closed loop or a static batch; not for bounds."""
        return not self.bound and (self.task.loop is not None or self.task.static)

    @property
    def prompts_of_a_pass(self) -> np.ndarray:
        """Prompts that fill a pass of a rank, the last of them in part; shape (n_layouts,)."""
        new = self._values["L_in"] * (1 - self._values["x_hit"])
        return np.maximum(np.ceil(self._values["c_chunk"] / new), np.ones(len(self.layouts)))

    @property
    def limits(self) -> dict[str, float | np.ndarray]:
        """Upper limits by output, numbers or one for each layout."""
        return {name: self._rowwise.get(name, limit) for name, limit in self.task.limits.items()}

    @property
    def one_task(self) -> bool:
        """True if the step is of a single task."""
        return not self._joined_tasks

    def by_task(self) -> Iterator[tuple[np.ndarray, Step]]:
        """The layouts of each question that was joined, as rows, under its own task."""
        if self.one_task:
            yield np.arange(len(self.layouts)), self
        for number, task in enumerate(self._joined_tasks):
            rows = np.flatnonzero(self._rowwise[QUESTION] == number)
            if rows.size:
                part = self.take(rows).with_task(task)
                part._joined_tasks = ()
                yield rows, part

    def take(self, rows: np.ndarray) -> Step:
        """Copy of the step on some of the layouts."""
        twin = self._copy(self.layouts.take(rows), None)
        twin._origin = (self, rows)
        twin._rowwise = {name: values[rows] for name, values in self._rowwise.items()}
        return twin

    def limited(self, name: str, limits: np.ndarray) -> Step:
        """Copy of the step with a separate limit for each layout on a limited output."""
        twin = copy(self)
        twin._rowwise = {**self._rowwise, name: limits}
        return twin

    def joinable(self) -> tuple[object, ...] | None:
        """Key shared by steps that can be `joined`; None if a task has effects without a symbol."""
        task = self.task
        if self.prompts_gather or (not self.bound and engine_effects.has_slowdown(task)):
            return None
        return (
            self.model, task.objective, task.batches, tuple(task.chips), task.spare,
            task.headroom, task.machine.chips_per_domain, task.limits_of.get("replicas"),
            frozenset(task.limits), frozenset(self._values),
        )  # fmt: skip

    @classmethod
    def joined(cls, steps: Sequence[Step]) -> Step:
        """Join steps of equal `joinable` keys on all their layouts, each under its own values."""
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
        limits[QUESTION] = np.repeat(np.arange(len(steps)), counts)
        twin = first._copy(Layouts.joined([step.layouts for step in steps]), values)
        twin._rowwise = {
            name: each for name, each in limits.items() if isinstance(each, np.ndarray)
        }
        twin._joined_tasks = tuple(step.task for step in steps)
        return twin

    @property
    def _values(self) -> dict[str, float | np.ndarray]:
        if self._bound_values is None and self._origin is not None:
            step, rows = self._origin
            self._bound_values = {
                name: value[rows] if isinstance(value, np.ndarray) else value
                for name, value in step._values.items()
            }
        return self._bound_values or {}

    def with_task(self, task: Task) -> Step:
        """Copy of the step for a task with other limits; layouts and values are reused."""
        twin = copy(self)
        twin.task = task
        return twin

    def with_values_of(self, task: Task) -> Step:
        """Step of these layouts for another task of its model and chips, its values bound anew."""
        shared = shared_values(task)
        cut = cut_otherwise(task, self.layouts, shared, bound=self.bound)
        cut |= memory_terms(task, self.layouts)
        twin = self._copy(self.layouts, {**self._values, **shared, **cut})
        twin.task = task
        twin._keep_prefixes()
        return twin

    def under(self, coefficients: Mapping[str, float | np.ndarray]) -> Step:
        """Step under another profile's coefficients, numbers or one for each layout."""
        return self._copy(self.layouts, {**self._values, **engine_values(coefficients)})

    def rests_on(self, coefficient: str) -> bool:
        """True if times of the work may depend on a coefficient of the profile.

        Those with no value take no time; where prompts gather every other is taken to count.
        """
        symbol = next(iter(engine_values({coefficient: 0.0})))
        used = symbol in self.model.lowered("work_times").names
        return (used or self.prompts_gather) and self.task.profile.values[coefficient] != 0

    def bearing(self, arrivals: np.ndarray) -> Step:
        """Step under a separate load for each layout [1/s], shape (n_layouts,)."""
        twin = self.with_task(self.task.with_layout(arrivals=1.0))._copy(self.layouts, self._values)
        twin._rowwise = {**self._rowwise, ARRIVALS: arrivals}
        return twin

    def on(self, layouts: Layouts) -> Step:
        """Step with other numbers of chips and replicas for its layouts."""
        counts = {"n_rep": layouts.replicas.astype(float), "n_chips": layouts.chips.astype(float)}
        twin = self._copy(layouts, {**self._values, **counts})
        twin._occupancy = self.occupancy if self.crowds or self.task.conversations else None
        twin._keep_prefixes()
        return twin

    def routed_uniformly(self, batch: float) -> Step:
        """The bound with the experts that uniform routing reads at this batch, not the least."""
        symbols = self.values(np.array([batch]))
        share = kernels.feed(kernels.get_kernel("expert_share"), symbols)["coverage"]
        return self._copy(self.layouts, self._values | {"k_experts": share * symbols["n_experts"]})

    def _copy(self, layouts: Layouts, values: dict[str, float | np.ndarray] | None) -> Step:
        twin = copy(self)
        twin.layouts, twin._bound_values, twin._origin = layouts, values, None
        twin._ready, twin.largest, twin._occupancy = {}, {}, None
        return twin

    def values(
        self, batch: np.ndarray, fill: np.ndarray | float = 1.0
    ) -> dict[str, float | np.ndarray]:
        """Every bound symbol's value, by name; nobody waits yet.

        Under a load `fill` is the share of its time that a replica may be busy, else the share of
        the slots in use.
        """
        values = {**self._values, "B": batch, "T_wait": 0.0, **self._busy(fill)}
        if self.model.powered in kernels.FOLLOWS:
            del values["P_chip"]  # it follows
        if self.model.powered == kernels.BILLING:
            del values["p_power"], values["p_chip"]
        if self.task.load != "none":
            values["n_rep"] = np.maximum(values["n_rep"], NEGLIGIBLE_REPLICAS)
        if self.bound or not self.task.engine:
            return values
        factors = engine_effects.slowdown_factors(self.task, self.layouts, values)
        return values | {name: values[name] / factor for name, factor in factors.items()}

    def _busy(self, fill: np.ndarray | float) -> dict[str, float | np.ndarray]:
        """The symbols that say how busy replicas are."""
        task = self.task
        if task.load == "none":
            return {"r_fill": fill}
        up = np.maximum(self.layouts.replicas - float(task.spare), NEGLIGIBLE_REPLICAS)
        if task.load == "given":
            arrivals = self._rowwise.get(ARRIVALS, float(task.arrivals or 0.0))
            return {"n_up": up, "X_arr": arrivals}
        # Without a replica that runs, the load is beyond any limit.
        busy = np.where(up > NEGLIGIBLE_REPLICAS, fill, 1 / NEGLIGIBLE_REPLICAS)
        return {"n_up": up, "x_free": task.headroom, "r_busy": busy}

    def coefficient_powers(self, batch: float) -> dict[str, dict[str, float]]:
        """d ln coefficient / d ln symbol of slowed coefficients at one layout and batch."""
        if self.bound or not self.task.engine:
            return {}
        values = {**self._values, "B": np.array([batch])}
        return engine_effects.coefficient_powers(self.task, self.layouts, values)

    def __call__(self, batch: np.ndarray, fill: np.ndarray | float = 1.0) -> dict[str, np.ndarray]:
        """Times [s], memory [byte], rates and prices, each of shape (n_layouts,).

        Loads and waits are those with `spare` replicas down.

        Args:
            batch: sequences in flight per replica, shape (n_layouts,).
            fill: share of the slots that are filled, or may be, same shape.
        """
        values = self._computed(None, batch, fill)
        waits = self.task.load != "none" or self.prompts_gather
        return queued_times(self, self.values(batch, fill) if waits else {}, values)

    def only(self, words: Iterable[str], batch: np.ndarray) -> dict[str, np.ndarray]:
        """Some of the outputs, all slots in use, each of shape (n_layouts,).

        What depends on them alone is computed, where nothing waits for anything.
        """
        task, names = self.task, tuple(words)
        waits = task.load == "most" or (
            task.load != "none" and not {*names} <= QUEUE_INDEPENDENT_OUTPUTS
        )
        if waits or self.prompts_gather:
            return self(batch)
        if "crowded" in names:
            late = self.only((*({*names} - {"crowded"}), *IN_FLIGHT), batch)
            return {**late, "crowded": self.crowding(late)[1]}
        symbols = tuple(dict.fromkeys("ttft" if name in TAILS else name for name in names))
        values = self._computed(symbols, batch, 1.0)
        return {name: values["ttft" if name in TAILS else name] for name in names}

    def holds_together(self, batch: np.ndarray) -> np.ndarray:
        """True where memory and the engine's step limits admit `batch` sequences per replica."""
        limits = {x: limit for x, limit in self.limits.items() if x in ("need", *kernels.OF_A_STEP)}
        values = self.only(limits, batch)
        return np.all(np.broadcast_arrays(*(values[x] <= y for x, y in limits.items())), axis=0)

    def _computed(
        self, words: tuple[str, ...] | None, batch: np.ndarray, fill: np.ndarray | float
    ) -> Mapping[str, np.ndarray]:
        """Kernel outputs before any waits: those in `words`, or all of them."""
        at = self._busy(fill) if np.ndim(fill) else {}
        ready = self._prepared(None if np.ndim(fill) else float(fill), tuple(at))
        if ready is None or np.shape(batch) != (ready.rows,):
            return kernels.feed(self.model.lowered("all_outputs"), self.values(batch, fill))
        varying = {name: np.asarray(at[name]) for name in ready.varying if name != "B"}
        return ready(words, B=batch, **varying)

    def _prepared(self, fill: float | None, busy: tuple[str, ...]) -> PreparedKernel | None:
        """The kernel with everything put in but the batch, and the symbols that a `fill` gives.

        None where the values of a symbol follow the batch, or are those of many questions.
        """
        task, model = self.task, self.model
        if not self.bound and task.engine and engine_effects.slowdown_depends_on_batch(task):
            return None
        key = (model, fill, task.spare, task.arrivals, task.headroom)
        if key in self._ready:
            return self._ready[key]
        if self._origin is not None:
            step, rows = self._origin
            whole = step.with_task(task)._prepared(fill, busy)
            self._ready[key] = None if whole is None else whole.take(rows)
        else:
            ones = np.ones(len(self.layouts))
            symbols = self.values(ones, ones if fill is None else fill)
            varying = ("B", *(name for name in busy if np.ndim(symbols[name])))
            kernel = model.lowered("all_outputs")
            fixed = {name: symbols[name] for name in kernel.names if name not in varying}
            varying = tuple(name for name in varying if name in kernel.names)
            try:
                ready = kernel.prepared(varying, **fixed)
            except ValueError:
                ready = None
            self._ready[key] = ready if ready is not None and ready.rows == ones.size else None
        return self._ready[key]

    def work(self, batch: np.ndarray) -> dict[str, np.ndarray]:
        """Times of the work [s] and memory [byte], each of shape (n_layouts,); no rates or prices.

        They may be none, where every coefficient is switched off.
        """
        symbols = self.values(batch)
        values = kernels.feed(self.model.lowered("work_times"), symbols)
        first = engine_effects.gathered_first_token(self.task, symbols, values, self.prompts_gather)
        return {**values, "ttft": first}

    def filled(self, batch: np.ndarray) -> Callable[[np.ndarray | float], dict[str, np.ndarray]]:
        """Outputs at fixed batches, as a function of the share `fill` of slots in use.

        How long a step takes does not depend on it, only rates, prices and queues do.
        """
        symbols, rest = self.values(batch), self.model.lowered("occupancy_outputs")
        work = kernels.feed(self.model.lowered("work_times"), symbols)
        symbols |= {name: work.pop(name) for name in self.model.work}

        def at(fill: np.ndarray | float) -> dict[str, np.ndarray]:
            every = {**symbols, **self._busy(fill)}
            return queued_times(self, every, {**work, **kernels.feed(rest, every)})

        return at

    @property
    def crowds(self) -> bool:
        """True if the overflow probability of KV caches is computed: arrivals are random."""
        task = self.task
        return task.mode != "prefill" and (task.load != "none" or "cache_fits" in task.promises)

    @property
    def occupancy(self) -> Occupancy:
        """Room of every layout, replicas left out."""
        if self._occupancy is None:
            step, rows = self._origin or (self, None)
            self._occupancy = Occupancy.of(self) if rows is None else step.occupancy.take(rows)
        return self._occupancy

    def _keep_prefixes(self) -> None:
        if self.task.conversations and self.task.mode != "decode" and not self.bound:
            self._values["x_hit"] = self.occupancy.hits(self.task, self.layouts)
            self._ready, self.largest = {}, {}

    def crowding(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Sequences that a replica decodes, how often a rank lacks room; at most, unloaded."""
        return self.occupancy.crowding({**self._values, **arrival_values(self, values)})
