"""What each coefficient of a profile contributes to the time of a measured row.

The estimate is linear in the overheads t and in the reciprocals 1/e of the efficiencies, but for
one product: the steps that a new request waits times what a step takes. So the project's own
kernel, evaluated with one coefficient switched on at a time, yields every column, and nothing is
derived twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Profile
from planner.measurements.measurement import Measurement, network_between
from planner.problems.serving.step.engine_effects import RAMP, Loop, loop_of, read_beside
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.text.errors import InputError

__all__ = ["Features", "features", "predicted", "unknowns"]

CHUNK = 8192.0
# Memory, arithmetic, network: the efficiencies of each, by how their names begin.
ROOFS = (("e_w", "e_kv"), ("e_c", "e_at", "e_pf"), ("e_ar", "e_a2a"))
WAIT = COEFFICIENTS.index("n_sched")
# Prompt tokens an engine reads in one pass where it does not read CHUNK of them (llama.cpp:
# n_ubatch, 512 by default).
PASSES = {"llama.cpp": 512.0}
# Engines whose decode kernels multiply larger groups of query heads than these on vector units,
# head by head (TensorRT-LLM 0.9: its grouped kernel fills one tile of a tensor core, 16 rows), and
# what vector units do in fp32 [flop/s], for chips that such rows were measured on (NVIDIA data
# sheets of A100, H100, H200 and L40S).
LARGEST_GROUP = {"trtllm-2024": 16.0}
VECTOR = {"a100": 19.5e12, "h100": 67e12, "h200": 67e12, "l40s": 91.6e12}
# Engines whose decode kernels leave the cache of a sequence to one multiprocessor per head or group
# of heads, however few there are (TensorRT-LLM before it split contexts by default), and what one
# reads by itself [byte/s], about as fast on each of the chips below.
UNSPLIT, ALONE = frozenset({"trtllm-2024", "fastertransformer-2022"}), 50e9
# Arithmetic of a static batch's prompts: B times one prompt's, for each attends to itself alone.
ARITHMETIC = frozenset({"e_pf", "e_pf_x", "e_pf_a"})
# What a pass over the layers costs once, however many prompts it reads.
PER_PASS = frozenset({"e_w", "t_layer", "t_ar", "t_a2a", "t_hop", "t_pf_chunk", "t_pf_moe"})

# With every coefficient switched off nothing takes time.
OFF = {c: np.inf if c in EFFICIENCIES else 0.0 for c in COEFFICIENTS}
NOTHING = Profile("nothing", "", "", (), 0, "", 1.0, {}, {}, OFF)


@dataclass(frozen=True)
class Features:
    """Times of rows as functions of the unknowns: 1/e of an efficiency, an overhead itself.

    A row takes `rest` + `matrix` @ x + x[n_sched] * (`step_rest` + `step` @ x) [s], where the last
    is one decode step of the rows whose requests wait for some. Shapes (n_rows, n_coefficients)
    and (n_rows,); `rest` is what no coefficient scales (latencies of the network).
    """

    matrix: np.ndarray
    rest: np.ndarray
    step: np.ndarray
    step_rest: np.ndarray

    def take(self, rows: np.ndarray) -> Features:
        """The same columns for some of the rows."""
        return Features(self.matrix[rows], self.rest[rows], self.step[rows], self.step_rest[rows])

    def times(self, x: np.ndarray) -> np.ndarray:
        """Times [s] for unknowns of shape (n_coefficients,) or, row by row, (n_rows, same)."""
        x = np.broadcast_to(x, self.matrix.shape)
        waits = x[:, WAIT] * (self.step_rest + (self.step * x).sum(axis=1))
        found: np.ndarray = self.rest + (self.matrix * x).sum(axis=1) + waits
        return found

    @property
    def roofline(self) -> np.ndarray:
        """Each row's highest roof at full efficiency [s], shape (n_rows,).

        Unlike the bound it reads the experts that uniform routing expects, on the layout that ran.
        """
        each = [
            self.matrix[:, [name.startswith(roof) for name in COEFFICIENTS]].sum(axis=1)
            for roof in ROOFS
        ]
        highest: np.ndarray = np.max(each, axis=0)
        return highest


def features(rows: Sequence[Measurement]) -> Features:
    """Columns of every row, in the order of the rows.

    Raises
    ------
    InputError
        If a row has no layout, or no network is known between its chips.
    """
    shape = (len(rows), len(COEFFICIENTS))
    matrix, step = np.zeros(shape), np.zeros(shape)
    rest, step_rest = np.zeros(len(rows)), np.zeros(len(rows))
    groups: dict[tuple, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[(id(row.sizes), row.chip.name, row.machine, row.quantity, row.prompt, row.output,
                row.context, row.looped, row.pooled, row.engine, row.even, row.drafts,
                row.chips, row.by_sequence)].append(i)  # fmt: skip
    for members in groups.values():
        some = [rows[i] for i in members]
        base = _Rows(some)
        rest[members], step_rest[members] = base.times(None)
        for column, name in enumerate(COEFFICIENTS):
            if column != WAIT:
                alone = base.times(name)
                matrix[members, column] = alone[0] - rest[members]
                step[members, column] = alone[1] - step_rest[members]
    return Features(np.maximum(matrix, 0.0), rest, np.maximum(step, 0.0), step_rest)


def unknowns(values: Mapping[str, float]) -> np.ndarray:
    """The unknowns of a profile's values: 1/e and t, shape (n_coefficients,)."""
    return np.array([1 / values[c] if c in EFFICIENCIES else values[c] for c in COEFFICIENTS])


def predicted(columns: Features, values: Mapping[str, float]) -> np.ndarray:
    """Estimated times [s] of the rows under a profile's values, shape (n_rows,)."""
    return columns.times(unknowns(values))


class _Rows:
    """Rows that differ in layout and batch alone."""

    def __init__(self, rows: Sequence[Measurement]) -> None:
        self.rows = rows
        self.first = rows[0]
        self.layouts = _layouts(rows)
        self.steps: dict[str, Step] = {}
        self.loop = self._loop()
        sent = np.array([row.batch for row in rows])
        self.batch = np.minimum(sent, self.loop.most) if self.first.looped else sent

    def times(self, only: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Times of the rows, and of one decode step where requests wait for some [s]."""
        if self.first.looped:
            return self._pooled(only) if self.first.pooled else self._looped(only)
        return self._static(only), np.zeros(len(self.rows))

    def _looped(self, only: str | None) -> tuple[np.ndarray, np.ndarray]:
        values = self._values("aggregated", only)
        if self.first.quantity == "tpot":
            return values["tpot"], np.zeros(len(self.rows))
        first = values["ttft"] + self.loop.held * values["step"]
        others = self.loop.before * values["busy"] * self.layouts.dp_attention
        if only in PER_PASS:
            others *= self.first.prompt / (CHUNK * np.ceil(self.first.prompt / CHUNK))
        if only == "t_tok":
            others = self.loop.before * values["ttft"]
        rounds = self.loop.rounds
        return (
            (1 + rounds) * (first + others) + rounds * self.first.output * values["tpot"],
            (1 + rounds) * values["step"],
        )

    def _pooled(self, only: str | None) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.zeros(len(self.rows))
        if self.first.quantity == "tpot":
            return self._values("decode", only)["tpot"], nothing
        values = self._values("prefill", only)
        # The first requests come all at once, later ones meet those that the pool is behind with.
        each = [p.concurrency / p.prefill.workers for p in (row.pools for row in self.rows) if p]
        return values["ttft"] + (RAMP * np.array(each) + self.batch - 1) * values["busy"], nothing

    def _static(self, only: str | None) -> np.ndarray:
        quantity = self.first.quantity
        step = self._values("decode", only)["tpot"] if quantity != "ttft" else 0.0
        if only == "e_at":
            step = step * _vectored(self.first)
        if only == "e_kv":
            step = step * self._alone()
        if quantity == "step":
            return np.asarray(step)
        prompts = self._merged(only)
        return prompts + (self.first.output - 1) * step if quantity == "e2e" else prompts

    def _alone(self) -> np.ndarray:
        """Time of reading caches with the multiprocessors that do, over that with all of them.

        Shape (n_rows,).
        """
        first = self.first
        if first.engine not in UNSPLIT:
            return np.ones(len(self.rows))
        # Groups that no kernel takes whole are taken head by head.
        own = 1.0 if _vectored(first) == 1.0 else _group(first)
        heads = np.ceil(first.sizes.n_kv_heads / self.layouts.tp) * own
        each = self.batch / (self.layouts.dp_attention * self.layouts.pp)
        return np.maximum(first.chip.memory_bandwidth / (ALONE * heads * each), 1.0)

    def _merged(self, only: str | None) -> np.ndarray:
        """Time of the prompts of a whole batch, read one behind the other in as few passes [s]."""
        together = self._values("merged", only)
        if only == "e_w":
            idle = self._merged(None)
            products = self._merged("e_pf") + self._merged("e_pf_x") - 2 * idle
            return idle + read_beside(self.first, together["ttft"] - idle, products)
        if only not in ARITHMETIC:
            return together["ttft"]
        # The passes follow each other through the stages as those of the merged prompt do.
        one, each = self._values("prefill", only)["busy"], self.batch / self.layouts.dp_attention
        paced = np.divide(
            together["ttft"], together["busy"], out=np.ones_like(one), where=together["busy"] > 0
        )
        return each * one * paced

    def _loop(self) -> Loop:
        one = np.ones(len(self.rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            return loop_of(self.rows, self._step("aggregated", None)(one))

    def _values(self, mode: str, only: str | None) -> dict[str, np.ndarray]:
        # With everything switched off a step takes no time, and rates are not asked for.
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._step(mode, only)(self.batch)

    def _step(self, mode: str, only: str | None) -> Step:
        """The model with one coefficient switched on."""
        if mode not in self.steps:
            task = _task(self.first, "prefill" if mode == "merged" else mode, self.layouts)
            if mode == "merged":
                each = self.batch / self.layouts.dp_attention
                task = replace(task, input_tokens=each * self.first.prompt)
            self.steps[mode] = Step(task, self.layouts, bound=False)
        return self.steps[mode].under(OFF if only is None else {**OFF, only: 1.0})


def _vectored(row: Measurement) -> float:
    """Time of attention over a cache on the units that do it, over that on tensor cores."""
    group = _group(row)
    if group <= LARGEST_GROUP.get(row.engine, group) or row.chip.name not in VECTOR:
        return 1.0
    return row.chip.peak("bf16") / VECTOR[row.chip.name]


def _group(row: Measurement) -> float:
    """Query heads per KV head, the mean over layers."""
    flop = sum(cache.flop_per_cached_token for cache in row.sizes.caches)
    return flop / max(2 * sum(cache.elements_per_token for cache in row.sizes.caches), 1.0)


def _layouts(rows: Sequence[Measurement]) -> Layouts:
    axis = {
        name: np.array([(row.layout or {})[name] for row in rows])
        for name in ("tp", "pp", "dp_attention", "ep", "tp_expert")
    }
    one, chips = np.ones(len(rows), dtype=np.int64), np.array([row.chips for row in rows])
    return Layouts(cp=one, replicas=one, chips=chips, **axis)


def _task(row: Measurement, mode: str, layouts: Layouts) -> Task:
    network = network_between(row.chip.name, row.machine, row.chips)
    if network is None:
        raise InputError(f"no network is known that joins {row.chips} {row.chip.name}")
    return Task(
        sizes=row.sizes,
        chip=row.chip,
        machine=network,
        price=1.0,
        profile=NOTHING,
        chips=tuple(int(n) for n in np.unique(layouts.chips)),
        limits_of={},
        input_tokens=row.prompt,
        output_tokens=row.output,
        context=row.context,
        cached_input=0.0,
        chunk=PASSES.get(row.engine, CHUNK),
        mode=mode,
        batches=None,
        kappa=0.5,
        promises={},
        objective="cost",
        estimate="calibrated",
        lecture=False,
        reserve=0.0,
        tokens_per_step=row.emitted,
        positions_per_step=1.0 + row.drafts,
        ideal=row.by_sequence,
    )
