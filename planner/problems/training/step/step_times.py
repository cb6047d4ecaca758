"""Time and memory of a step for all layouts of a task: equations lowered once, fed with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import kept_kernel
from planner.problems.training.step.step_symbols import bound_symbols

if TYPE_CHECKING:
    from formulas.numerics.kernel import Kernel
    from planner.problems.training.step.training_layouts import TrainingLayouts
    from planner.problems.training.step.training_task import TrainingTask

OUTPUTS = ("step", "terms", "memory", "used", "fits", "worst_stage", "bubble", "bound")
MEMORY = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
STAGES = ("first", "middle", "last")
SOURCES = (
    Path(__file__).with_name("step_tables.py"),
    *(
        Path(__file__).parents[4] / "formulas/training" / n
        for n in ("step_time.py", "step_memory.py")
    ),
)


@dataclass(frozen=True)
class TrainingTimes:
    """Times [s] and memory [byte] of layouts, arrays of their shape; what was not asked is None.

    `terms` add up to `step`; `hidden` is communication behind arithmetic. `memory` is that of the
    `worst_stage`, counted from one, and adds up to `used`. `bubble` is the share of the step that
    a stage waits, `bound` the causal arithmetic of the step at peak.
    """

    step: np.ndarray | None = None
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)
    memory: Mapping[str, np.ndarray] = field(default_factory=dict)
    used: np.ndarray | None = None
    fits: np.ndarray | None = None
    worst_stage: np.ndarray | None = None
    bubble: np.ndarray | None = None
    bound: np.ndarray | None = None


@cache
def lowered(table: str) -> Kernel:
    """The kernel of a table of `step_tables`."""

    def make() -> Kernel:
        from formulas.numerics.evaluate import kernel
        from planner.problems.training.step.step_tables import tabled

        return kernel(*tabled(table))

    return kept_kernel(f"training-{table}", make, SOURCES)


def step_times(
    task: TrainingTask, layouts: TrainingLayouts, outputs: Sequence[str] | None = None
) -> TrainingTimes:
    """Step times and memory of all layouts; the fewer `outputs`, the faster.

    Parameters
    ----------
    outputs : names out of OUTPUTS, all of them if None. With `step` and `used` or `fits` alone
        one kernel of two outputs runs.
    """
    wanted = set(OUTPUTS if outputs is None else outputs)
    symbols = bound_symbols(task, layouts)
    values: dict[str, np.ndarray] = {}
    if wanted & {"terms", "bubble"}:
        values |= fed("terms", symbols)
        if wanted & {"used", "fits"}:
            values |= fed("used", symbols)
    elif "step" in wanted and wanted & {"used", "fits"}:
        values |= fed("both", symbols)
    elif "step" in wanted:
        values |= fed("step", symbols)
    elif wanted & {"used", "fits"}:
        values |= fed("used", symbols)
    parts: dict[str, np.ndarray] = {}
    stage: np.ndarray | None = None
    if wanted & {"memory", "worst_stage"}:
        parts, stage = _memory(task, layouts, symbols)
    used = values.get("used")
    terms = {} if "terms" not in wanted else {n: values[n] for n in _term_names(values)}
    return TrainingTimes(
        step=values["step"] if "step" in wanted else None,
        terms=terms,
        hidden={"dp_hidden": values["hidden.dp"]} if terms else {},
        memory=parts if "memory" in wanted else {},
        used=used if "used" in wanted else None,
        fits=np.asarray(used) <= usable(task) if "fits" in wanted else None,
        worst_stage=stage if "worst_stage" in wanted else None,
        bubble=np.asarray(values["bubble"]) / values["step"] if "bubble" in wanted else None,
        bound=least_time(task, layouts) if "bound" in wanted else None,
    )


def usable(task: TrainingTask) -> float:
    """Memory that a step may fill [byte]."""
    return task.machine.memory * task.stack.memory_share


def least_time(task: TrainingTask, layouts: TrainingLayouts) -> np.ndarray:
    """The causal arithmetic of a step at the peak of the chips that a layout uses [s]."""
    columns = layouts.columns()
    chips = np.prod(
        [np.broadcast_to(columns[n], layouts.shape) for n in ("tp", "pp", "dp", "cp")], 0
    )
    peak = max(task.machine.peak, task.machine.half)
    return task.model_flop / (chips * peak)


def fed(table: str, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """The outputs of a kernel, the symbols that it asks for picked out of more."""
    kernel = lowered(table)
    return kernel(**{name: symbols[name] for name in kernel.names})  # type: ignore[return-value]


def _term_names(values: Mapping[str, object]) -> list[str]:
    return [n for n in values if n not in ("step", "busy", "used", "hidden.dp")]


def _memory(
    task: TrainingTask, layouts: TrainingLayouts, symbols: Mapping[str, object]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Memory of the worst stage by part [byte], and its number, from one."""
    values = fed("memory", symbols)
    whole = np.stack([np.asarray(values[f"{stage}.used"]) for stage in STAGES])
    alone = np.broadcast_to(np.asarray(symbols["x_alone"]) > 0, whole.shape[1:])
    whole[1] = np.where(alone, 0, whole[1])
    worst = np.argmax(whole, axis=0)

    def of_worst(part: str) -> np.ndarray:
        arrays = [np.asarray(values[f"{stage}.{part}"]) for stage in STAGES]
        return np.choose(worst, [np.broadcast_to(array, worst.shape) for array in arrays])

    experts = of_worst("experts")
    dense = of_worst("states") - experts
    factor = values["state_factor"]
    weights = factor * (dense * values["weights"] + experts * values["expert_weights"])
    gradients = factor * (dense * values["gradients"] + experts * values["expert_gradients"])
    parts = {
        "weights": weights,
        "gradients": gradients,
        "optimizer": np.maximum(0, factor * (dense + experts) - weights - gradients),
        "activations": of_worst("activations"),
        "logits": of_worst("logits"),
        "buffers": np.broadcast_to(np.asarray(values["base"]), worst.shape),
    }
    last = np.broadcast_to(np.asarray(layouts.pp), worst.shape)
    return parts, np.choose(worst, [np.ones_like(last), np.minimum(2, last), last])
