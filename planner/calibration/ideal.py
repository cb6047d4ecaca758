"""The bound of a measured row: the project's own equations on a layout that no layout beats.

Layouts of published rows are free text, so every byte and FLOP is divided by the number of chips,
nothing is sent, every weight is read in the row's narrowest format and on-chip memory is taken off.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.architecture.counts import Sizes
from planner.architecture.dtypes import dtype
from planner.calibration.measurements import Measurement
from planner.serving.layouts import Layouts
from planner.serving.lecture import LECTURE
from planner.serving.step import Step
from planner.serving.task import Task
from topologies import Machine

__all__ = ["bound_of", "strange_unit"]

FREE = 1e21  # byte/s of a network that costs nothing
# Published times are 1 to 100 bounds: a thousand more or less, and another unit was meant.
THOUSAND, SLOWEST = 1e3, 100.0


def bound_of(row: Measurement) -> float:
    """The least time [s] in which the row's quantity is possible on its chips."""
    prompts = _values(row, "prefill")
    first = max(prompts["ttft"], row.batch * prompts["busy"])
    if row.quantity == "ttft":
        return first
    per_token = _values(row, "decode")["tpot"]
    if row.quantity == "e2e":
        return first + (row.output - 1) * per_token
    return per_token


def strange_unit(row: Measurement) -> str | None:
    """Why a row's time seems to be in another unit than its column says; None where it does not."""
    ratio = row.seconds / bound_of(row)
    if ratio < SLOWEST / THOUSAND:
        return f"{row.quantity} is {1 / ratio:.3g} times below the bound: seconds given as ms?"
    queues = row.looped and row.quantity == "ttft"  # a queue of prompts has no limit
    if ratio > THOUSAND and not queues:
        return f"{row.quantity} is {ratio:.3g} times the bound: ms given as seconds?"
    return None


def _values(row: Measurement, mode: str) -> dict[str, float]:
    task = Task(
        sizes=_narrowest(row.leanest or row.sizes),
        chip=row.chip,
        machine=Machine.from_figures("ideal", row.chips, FREE),
        price=1.0,
        profile=LECTURE,
        chips=(row.chips,),
        limits_of={},
        input_tokens=row.prompt,
        output_tokens=max(row.output, 2.0),
        context=row.context,
        cached_input=0.0,
        chunk=row.prompt,
        mode=mode,
        batches=None,
        kappa=1.0,
        promises={},
        objective="cost",
        estimate="bound",
        lecture=False,
        reserve=0.0,
        tokens_per_step=1.0 + row.drafts,
        positions_per_step=1.0 + row.drafts,
        ideal=True,
    )
    one, all_chips = np.ones(1, dtype=np.int64), np.array([row.chips])
    ep = all_chips if row.sizes.n_experts else one
    layout = Layouts(all_chips, one, one, one, ep, one, one, all_chips)
    values = Step(task, layout, bound=True)(np.array([row.batch]))
    return {name: float(np.ravel(value)[0]) for name, value in values.items()}


def _narrowest(sizes: Sizes) -> Sizes:
    """Every weight, head included, in the narrowest format any class has; activations as narrow.

    Engines differ in what they keep wide, and tables do not say.
    """
    name = min(sizes.weight_dtype.values(), key=lambda each: dtype(each).bytes)
    each = float(dtype(name).bytes)
    bytes_of = {group: count * each for group, count in sizes.params.items()}
    head = bytes_of["embedding"] if sizes.tied else bytes_of["head"]
    return replace(
        sizes,
        weight_dtype=dict.fromkeys(sizes.weight_dtype, name),
        weight_bytes=bytes_of,
        streamed_bytes={**bytes_of, "embedding": 0.0, "head": head},
        activation_dtype="int8" if name == "int4" else name,
    )
