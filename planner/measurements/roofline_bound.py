"""The bound of a measured row: the project's own equations on a layout that no layout beats.

Layouts of published rows are free text, so every byte and FLOP is divided by the number of chips,
nothing is sent, every weight is read in the row's narrowest format and on-chip memory is taken off.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.architecture.counts import ModelSizes
from planner.architecture.quantization import dtype
from planner.catalogue.profile import Profile
from planner.measurements.measurement import Measurement
from planner.problems.serving.profiled import LECTURE
from planner.problems.serving.step.engine_effects import prefill_chunk_tokens
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.drafter import SpeculationDepth, speculation_depth
from planner.problems.serving.task.task import Task
from planner.scenario.keys.speculation_keys import Speculation
from topologies import Machine

FREE_NETWORK_RATE = 1e21  # byte/s of a network that costs nothing
# Published times are 1 to 100 bounds; a factor of 1000 more or less indicates another unit.
UNIT_ERROR_FACTOR, MAX_BOUND_RATIO = 1e3, 100.0
DISTANCE_PATTERN = re.compile(r"is \S+ times (below )?the bound")


def row_bounds(rows: Sequence[Measurement], *, sent: bool = False) -> np.ndarray:
    """Lower bound of each row's time [s], shape (n_rows,); rows equal but for size are one sweep.

    Only requests that decode count, as far as the first tokens of the same run among the rows tell
    how many wait or are read; or all that were `sent`.
    """
    if not sent:
        prompts = {(row.source, row.id): row for row in rows if row.quantity == "ttft"}
        rows = [_decoding(row, prompts.get((row.source, row.id))) for row in rows]
    bounds = np.empty(len(rows))
    groups: dict[tuple, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[(id(row.leanest or row.sizes), row.chip.name, row.quantity, row.prompt, row.output,
                row.context, row.drafts)].append(i)  # fmt: skip
    for members in groups.values():
        bounds[members] = _bounds([rows[i] for i in members])
    return bounds


def unit_warnings(rows: Sequence[Measurement]) -> list[str | None]:
    """Warn for each row if its time seems to be in another unit than its column says; else None.

    Under load prompts may queue for any time, but not beside tokens counted in another unit.
    """
    pairs = [(row, row.seconds / bound) for row, bound in zip(rows, row_bounds(rows), strict=True)]
    slow = {row.id for row, ratio in pairs if ratio > UNIT_ERROR_FACTOR and not _queues(row)}
    queue = [_queues(row) and row.id not in slow for row in rows]
    return [_strange(*pair, queues=queues) for pair, queues in zip(pairs, queue, strict=True)]


def general_reason(reason: str) -> str:
    """A reason without how far off the row is, which differs from row to row."""
    return DISTANCE_PATTERN.sub(lambda m: f"is far {m[1] or 'above '}the bound", reason)


def _queues(row: Measurement) -> bool:
    return row.looped and row.quantity == "ttft"


def _strange(row: Measurement, ratio: float, *, queues: bool) -> str | None:
    if ratio < MAX_BOUND_RATIO / UNIT_ERROR_FACTOR:
        return f"{row.quantity} is {1 / ratio:.3g} times below the bound: seconds given as ms?"
    if ratio > UNIT_ERROR_FACTOR and not queues:
        return f"{row.quantity} is {ratio:.3g} times the bound: ms given as seconds?"
    return None


def _bounds(rows: Sequence[Measurement]) -> np.ndarray:
    """Bounds of rows that differ in batch and chips alone."""
    first = rows[0]
    batch = np.array([_favourable(row) for row in rows])
    if first.quantity in ("ttft", "e2e"):
        prompts = _values(rows, batch, "prefill")
        reading = np.maximum(prompts["ttft"], batch * prompts["busy"])
        if first.quantity == "ttft":
            return reading
    per_token = _values(rows, batch, "decode")["tpot"]
    return reading + (first.output - 1) * per_token if first.quantity == "e2e" else per_token


def _decoding(row: Measurement, prompt: Measurement | None) -> Measurement:
    """Set the batch to the lower bound of requests in decode among those in flight.

    Of the time that a request is inside they decode a share, by Little's law. Of two pools one is
    full, and where it is the one that reads, its prompts are all that the other is fed.
    """
    under_load = row.looped or row.pooled
    if prompt is None or not under_load or row.quantity != "tpot" or not prompt.seconds:
        return row
    decode = (row.output - 1) * row.seconds
    batch = row.batch * decode / (decode + prompt.seconds)
    if row.pools is not None:
        read = prompt.batch * row.pools.prefill.workers / prompt.seconds
        batch = min(batch, read * decode / row.pools.decode.workers)
    return replace(row, batch=max(1.0, batch))


def _favourable(row: Measurement) -> float:
    """Batch most favourable to a row that states only the concurrency: prompts were read alone."""
    if row.looped and row.quantity == "ttft":
        return 1.0
    if row.pools is not None:
        return max(1.0, row.batch * row.pools.decode.workers / row.pools.decode.high)
    return row.batch


def _values(rows: Sequence[Measurement], batch: np.ndarray, mode: str) -> dict[str, np.ndarray]:
    first, chips = rows[0], np.array([row.chips for row in rows])
    network = Machine.from_figures("ideal", int(chips.max()), FREE_NETWORK_RATE)
    task = replace(
        measured_task(first, mode, network, LECTURE, chips),
        sizes=_narrowest(first.leanest or first.sizes),
        output_tokens=max(first.output, 2.0),
        chunk=first.prompt,
        kappa=1.0,
        estimate="bound",
        tokens_per_step=1.0 + first.drafts,
        drafter=None,  # what drew them is not published: it may have been next to nothing
        ideal=True,
    )
    ones = np.ones(len(rows), dtype=np.int64)
    ep = chips if first.sizes.n_experts else ones
    layout = Layouts(chips, ones, ones, ones, ep, ones, ones, chips, ones)
    values = Step(task, layout, bound=True)(batch)
    return {name: np.broadcast_to(value, batch.shape) for name, value in values.items()}


def measured_task(
    row: Measurement, mode: str, network: Machine, profile: Profile, chips: np.ndarray
) -> Task:
    """Task of a row on a network, for every number of chips in `chips` [n_rows]."""
    drafted = (
        speculation_depth(Speculation(drafts=row.drafts), row.sizes, row.drafts)
        if row.drafts
        else SpeculationDepth()
    )
    return Task(
        sizes=row.sizes,
        chip=row.chip,
        machine=network,
        price=1.0,
        profile=profile,
        chips=tuple(int(n) for n in np.unique(chips)),
        limits_of={},
        input_tokens=row.prompt,
        output_tokens=row.output,
        context=row.context,
        cached_input=0.0,
        chunk=row.chunk or prefill_chunk_tokens(row.engine),
        mode=mode,
        batches=None,
        kappa=0.5,
        promises={},
        objective="cost",
        estimate="calibrated",
        lecture=False,
        utilisation=1.0,
        tokens_per_step=drafted.emitted,
        positions_per_step=drafted.positions,
        drafter=drafted.drafter,
        ideal=row.by_sequence,
    )


def _narrowest(sizes: ModelSizes) -> ModelSizes:
    """Every weight, head included, in the narrowest format any class has; activations as narrow.

    Engines differ in what they keep wide, and tables do not say.
    """
    name = min(sizes.weight_dtype.values(), key=lambda size: dtype(size).bytes)
    size = float(dtype(name).bytes)
    bytes_of = {group: count * size for group, count in sizes.params.items()}
    head = bytes_of["embedding"] if sizes.tied else bytes_of["head"]
    return replace(
        sizes,
        weight_dtype=dict.fromkeys(sizes.weight_dtype, name),
        weight_bytes=bytes_of,
        streamed_bytes={**bytes_of, "embedding": 0.0, "head": head},
        activation_dtype="int8" if name == "int4" else name,
    )
