"""Time and memory of a step for all layouts of a task: equations lowered once, fed with arrays.

Where the maths meets the machine, this number is that symbol: `run_symbols` are what all layouts
have in common, `row_symbols` arrays of what one changes. Groups are filled in the order tensor,
context, data, pipeline: neighbours meet in one domain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from formulas.numerics.kernel import Kernel
from formulas.numerics.store import cached_kernel
from planner.problems.training.step.training_task import (
    NORM_PLAIN,
    RECOMPUTE,
    SCHEDULES,
    LayoutTable,
    TrainingTask,
)

TILE = 128  # elements of a matrix product's tile
WHOLE_TILE = 256  # widths that are multiples of it lose nothing to odd strides
HEAD_TILE = 64
B16, B32, MASK = 2, 4, 1  # bytes of an element in 16 and 32 bits, and of a dropout mask
NORM_MOVES = 10  # elements read and written a layer and pass: two norms, two residual additions
SOFTMAX_MOVES = 4  # scores written, read and written by the softmax, read again


def run_symbols(task: TrainingTask) -> dict[str, float]:
    """Symbols of the model, the machine, the stack and the workload."""
    counts, machine, state = task.counts, task.machine, task.state
    routed = counts.topk * counts.expert_width * counts.moe_share
    wide = (counts.gates + 1) * (counts.width + routed)
    rotary = 2 * (counts.queries + counts.keys)
    low = task.precision != "bf16"
    eager = float(task.stack.eager)
    gated = counts.gates + 1 + eager * (counts.gates - 1)  # a gate of two kernels keeps one more
    stays = B16 * (2 * counts.queries + 2 * counts.keys + gated * counts.width)
    masks = 2 * MASK * counts.hidden if task.dropout else 0
    normed = 4 if eager and task.norm == NORM_PLAIN else 0  # a copy in 32 bits, and one unscaled
    expert = B16 * counts.topk * (2 * counts.hidden + (counts.gates + 1) * counts.expert_width)
    return {
        "c_fwd": 2.0, "L_train": task.sequence, "B_step": task.batch,
        "P_att": counts.attention, "P_ffn": counts.ffn, "P_pick": counts.picked,
        "P_routed": counts.routed, "P_rest": counts.rest, "P_head": counts.head,
        "P_emb": counts.embedding, "x_moe": counts.moe_share, "n_blocks": counts.n_layers,
        "a_score": counts.pair_flop(task.sequence), "x_scores": 2.0 if task.unfused else 1.0,
        "x_odd": float(tile_remainder(counts.head_dim, HEAD_TILE)),
        "h_norm": B16 * NORM_MOVES * counts.hidden, "h_cut": B16 * (rotary + wide),
        "h_model": B16 * counts.hidden, "h_kv": 2 * B16 * counts.keys,
        "h_pairs": B16 * SOFTMAX_MOVES * counts.heads if task.unfused else 0.0,
        "h_sent": B16 * counts.hidden * counts.topk, "v_head": B32 * (1 + eager) * counts.vocab,
        "x_quant": float(low),
        "F_peak": machine.peak, "F_half": machine.half, "W_chip": machine.hbm,
        "W_host": machine.host,
        "b_weight": state.weights, "b_grad": state.gradients * task.trained,
        "b_opt": state.optimizer * task.trained, "x_trained": task.trained,
        "b_wire": task.stack.wire,
        "a_whole": (2 if task.stack.gathered else 4) * B16 * counts.hidden
        + normed * B16 * counts.hidden + masks,
        "a_undiv": 2.0 * B16 * counts.hidden if task.stack.gathered else 0.0, "a_split": stays,
        "a_soft": (2 * B16 + (MASK if task.dropout else 0)) * counts.heads if task.unfused else 0.0,
        "a_routed": expert, "a_input": B16 * counts.hidden,
    }  # fmt: skip


def tile_remainder(width: np.ndarray | float, tile: int) -> np.ndarray:
    """Misalignment of widths with a tile: 0 for multiples of the tile, 1 for odd widths [1]."""
    whole = np.maximum(1, np.round(width)).astype(np.int64)
    return 1 - np.log2(np.gcd(whole, tile)) / np.log2(tile)


def row_symbols(task: TrainingTask, layouts: LayoutTable) -> dict[str, np.ndarray]:
    """Symbols that a layout changes, arrays that broadcast as its fields do."""
    tp, pp, dp, cp, ep, etp, micro, virtual = (
        np.asarray(getattr(layouts, name), dtype=np.float64)
        for name in ("tp", "pp", "dp", "cp", "ep", "tp_expert", "micro_batch", "virtual_stages")
    )
    schedule, recompute = np.asarray(layouts.schedule), np.asarray(layouts.recompute)
    zero, offload = np.asarray(layouts.zero), np.asarray(layouts.offload)
    # Shape factors of the matrices on a chip: narrow, uneven (tile remainder), thin (experts).
    counts = task.counts
    heads, wide = counts.queries + 2 * counts.keys, counts.width * counts.gates
    share = counts.attention / max(1.0, counts.attention + counts.ffn)
    rows = micro * task.sequence / cp
    narrow = share * TILE * tp / (heads / 3)
    uneven = (
        share
        * (tile_remainder(heads / tp, WHOLE_TILE) + tile_remainder(counts.hidden, WHOLE_TILE))
        / 2
    )
    if counts.width:
        narrow = narrow + (1 - share) * TILE * tp / counts.width
        both = tile_remainder(wide / tp, WHOLE_TILE) + tile_remainder(counts.hidden, WHOLE_TILE)
        uneven = uneven + (1 - share) * both / 2
    thin = np.zeros(())
    if counts.n_experts:
        passed = rows / tp * ep * etp * counts.topk / counts.n_experts
        thin = TILE * etp / counts.expert_width + TILE / passed
    symbols = {
        "tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep, "etp": etp, "b_micro": micro,
        "n_virtual": virtual, "n_micro": task.batch / (dp * micro),
        "x_alone": pp == 1, "n_vocab": np.ones_like(tp) if task.stack.gathered else tp,
        "x_gpipe": schedule == SCHEDULES.index("gpipe"),
        "x_zero_b": schedule == SCHEDULES.index("zero-bubble"),
        "x_again": recompute >= RECOMPUTE.index("full"),
        "x_softmax": recompute == RECOMPUTE.index("selective"),
        "x_back_up": recompute == RECOMPUTE.index("reversible"),
        "x_shard": zero >= 1, "x_grads": zero >= 2, "x_params": zero >= 3,
        "x_host": offload >= 1, "x_host_a": offload >= 2,
        "x_sp": layouts.sequence_parallel, "x_hide": layouts.overlap * task.stack.overlaps,
        "x_narrow": narrow, "x_few": TILE / rows, "x_uneven": uneven, "x_thin": thin,
        **_stages(task, pp), **_rates(task, tp, pp, dp, cp, ep, etp),
    }  # fmt: skip
    return {name: np.asarray(value, dtype=np.float64) for name, value in symbols.items()}


def _stages(task: TrainingTask, pp: np.ndarray) -> dict[str, np.ndarray]:
    """Layers of the fullest, the first and the last stage.

    Embedding and head count as layers where that makes stages even: 126 layers on 8 are 16 each.
    """
    layers, more = task.counts.n_layers, task.stack.embedding_layers
    if task.stack.stage_items:
        return _dealt_stages(layers, task.stack.stage_items, pp)
    evened = (np.mod(layers, pp) > 0) & (np.mod(layers + more, pp) == 0) & (more > 0)
    full = np.where(evened, (layers + more) / pp, np.ceil(layers / pp))
    first = np.where(evened, full - more / 2, full)
    last = np.where(evened, full - more / 2, np.maximum(0, layers - full * (pp - 1)))
    return {"n_full": full, "n_first": first, "n_last": last}


def _dealt_stages(layers: int, items: Sequence[int], pp: np.ndarray) -> dict[str, np.ndarray]:
    before, behind = items
    every = layers + before + behind
    least, over = np.floor(every / pp), np.mod(every, pp)
    first = np.where(pp == 1, layers, least + (over > 0) - before)
    last = np.where(pp == 1, layers, np.maximum(0, least - behind))
    middle = np.where(pp > 2, least + (over > 1), 0)
    return {"n_full": np.maximum(np.maximum(first, last), middle), "n_first": first, "n_last": last}


def _rates(
    task: TrainingTask, tp: np.ndarray, pp: np.ndarray, dp: np.ndarray, cp: np.ndarray,
    ep: np.ndarray, etp: np.ndarray,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Rates of every group [byte/s]: of the graph of a topology file, or by how many of its members
    share a scale-up domain.
    """
    node, link, card = task.machine.node, task.machine.link, task.machine.card
    ranks, pooled = tp * cp * dp * pp, task.stack.pooled_cards

    def rate(size: np.ndarray, stride: np.ndarray, pattern: str = "gather") -> np.ndarray:
        if task.machine.wiring is not None:
            # Rates of groups by size, stride and ranks on a graph [byte/s], each of them once.
            columns = np.broadcast_arrays(*(size, stride, ranks))
            cases = np.stack([column.ravel() for column in columns], axis=1).astype(np.int64)
            distinct, which = np.unique(cases, axis=0, return_inverse=True)
            rates = [
                task.machine.wiring.rate(pattern, *case, pooled=pooled)
                for case in distinct.tolist()
            ]
            return np.array(rates)[which.reshape(columns[0].shape)]
        if pattern == "stages":
            return np.where(size * stride <= node, link, card)
        near = np.minimum(size, np.maximum(1, np.floor(node / stride))) if pooled else 1.0
        return np.where(size * stride <= node, link, np.minimum(link, card * near))

    alone = np.ones(())
    experts = tp * cp * dp / (ep * etp)
    return {
        "W_tp": rate(tp, alone), "W_cp": rate(cp, tp), "W_ep": rate(ep, etp, "exchange"),
        "W_dp": rate(dp * cp, tp), "W_edp": rate(np.maximum(1, experts), ep * etp),
        "W_pp": rate(pp, tp * cp * dp, "stages"),
    }  # fmt: skip


def bound_symbols(task: TrainingTask, layouts: LayoutTable) -> Mapping[str, object]:
    """Every symbol of a step's equations, coefficients of the stack among them."""
    return {**run_symbols(task), **task.coefficients, **row_symbols(task, layouts)}


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
    """Times [s] and memory [byte] of layouts, arrays of their shape; None if not requested.

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
def get_kernel(table: str) -> Kernel:
    """The kernel of a table of `step_tables`."""

    def make() -> Kernel:
        from formulas.numerics.evaluate import kernel
        from planner.problems.training.step.step_tables import equation_table

        return kernel(*equation_table(table))

    return cached_kernel(f"training-{table}", make, SOURCES)


def step_times(
    task: TrainingTask, layouts: LayoutTable, outputs: Sequence[str] | None = None
) -> TrainingTimes:
    """Step times and memory of all layouts; the fewer `outputs`, the faster.

    Args:
        outputs: names out of OUTPUTS, all of them if None. With `step` and `used` or `fits` alone
            one kernel of two outputs runs.
    """
    wanted = set(OUTPUTS if outputs is None else outputs)
    symbols = bound_symbols(task, layouts)
    values: dict[str, np.ndarray] = {}
    if wanted & {"terms", "bubble"}:
        values |= run_kernel("terms", symbols)
        if wanted & {"used", "fits"}:
            values |= run_kernel("used", symbols)
    elif "step" in wanted and wanted & {"used", "fits"}:
        values |= run_kernel("both", symbols)
    elif "step" in wanted:
        values |= run_kernel("step", symbols)
    elif wanted & {"used", "fits"}:
        values |= run_kernel("used", symbols)
    parts: dict[str, np.ndarray] = {}
    stage: np.ndarray | None = None
    if wanted & {"memory", "worst_stage"}:
        parts, stage = _memory(task, layouts, symbols)
    used = values.get("used")
    apart = ("step", "busy", "used", "hidden.dp")
    terms = {n: x for n, x in values.items() if "terms" in wanted and n not in apart}
    return TrainingTimes(
        step=values["step"] if "step" in wanted else None,
        terms=terms,
        hidden={"dp_hidden": values["hidden.dp"]} if terms else {},
        memory=parts if "memory" in wanted else {},
        used=used if "used" in wanted else None,
        fits=np.asarray(used) <= usable(task) if "fits" in wanted else None,
        worst_stage=stage if "worst_stage" in wanted else None,
        bubble=np.asarray(values["bubble"]) / values["step"] if "bubble" in wanted else None,
        bound=min_step_time(task, layouts) if "bound" in wanted else None,
    )


def usable(task: TrainingTask) -> float:
    """Memory that a step may fill [byte]."""
    return task.machine.memory * task.stack.memory_share


def min_step_time(task: TrainingTask, layouts: LayoutTable) -> np.ndarray:
    """The causal arithmetic of a step at the peak of the chips that a layout uses [s]."""
    columns = layouts.columns()
    chips = np.prod(
        [np.broadcast_to(columns[n], layouts.shape) for n in ("tp", "pp", "dp", "cp")], 0
    )
    peak = max(task.machine.peak, task.machine.half)
    return task.model_flop / (chips * peak)


def run_kernel(table: str, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """The outputs of a kernel, the symbols that it asks for picked out of more."""
    kernel = get_kernel(table)
    return kernel(**{name: symbols[name] for name in kernel.names})  # type: ignore[return-value]


def _memory(
    task: TrainingTask, layouts: LayoutTable, symbols: Mapping[str, object]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Memory of the worst stage by part [byte], and its number, from one."""
    values = run_kernel("memory", symbols)
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
