"""What each coefficient of a profile contributes to the time of a measured row.

The estimate is linear in the overheads t and in the reciprocals 1/e of the efficiencies. So the
project's own kernel, evaluated with one coefficient switched on at a time, yields the columns of a
least-squares problem, and nothing is derived twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration.measurements import Measurement
from planner.calibration.profile import COEFFICIENTS, EFFICIENCIES, Band, Profile
from planner.serving.layouts import Layouts
from planner.serving.step import Step
from planner.serving.task import Task
from topologies import Machine, machine

__all__ = ["Features", "features", "predicted", "unknowns"]

CHUNK = 8192.0
# A chip whose network is not in the catalogue is computed alone.
ALONE = Machine.from_figures("alone", 1, 1e21)
# A load generator of a closed loop sends its first requests all at once and about ten rounds of
# them in all: that tenth waits for half of the others' prompts (InferenceX, 10 prompts per slot).
RAMP = 0.5 / 10
# What a pass over the layers costs once, however many prompts it reads.
PER_PASS = frozenset({"e_w", "t_layer", "t_ar", "t_a2a", "t_hop", "t_pf_chunk", "t_pf_moe"})


@dataclass(frozen=True)
class Features:
    """`matrix` of shape (n_rows, n_coefficients) and `rest` of shape (n_rows,), in s per unknown.

    An unknown is 1/e for an efficiency, t itself for an overhead; `rest` is what no coefficient
    scales (latencies of the network, pipeline hops).
    """

    matrix: np.ndarray
    rest: np.ndarray

    def take(self, rows: np.ndarray) -> Features:
        """The same columns for some of the rows."""
        return Features(self.matrix[rows], self.rest[rows])


def features(rows: Sequence[Measurement]) -> Features:
    """Columns of every row; a row needs a layout.

    Returns
    -------
    Features with n_rows = len(rows), in the order of the rows.
    """
    matrix = np.zeros((len(rows), len(COEFFICIENTS)))
    rest = np.zeros(len(rows))
    groups: dict[tuple, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[(id(row.sizes), row.chip.name, row.quantity, row.prompt, row.output, row.context,
                row.looped)].append(i)  # fmt: skip
    for members in groups.values():
        some = [rows[i] for i in members]
        rest[members] = _times(some, None)
        for column, name in enumerate(COEFFICIENTS):
            matrix[members, column] = _times(some, name) - rest[members]
    return Features(np.maximum(matrix, 0.0), rest)


def unknowns(values: Mapping[str, float]) -> np.ndarray:
    """The linear unknowns of a profile's values: 1/e and t, shape (n_coefficients,)."""
    return np.array([1 / values[c] if c in EFFICIENCIES else values[c] for c in COEFFICIENTS])


def predicted(columns: Features, values: Mapping[str, float]) -> np.ndarray:
    """Estimated times [s] of the rows under a profile's values, shape (n_rows,)."""
    times: np.ndarray = columns.matrix @ unknowns(values) + columns.rest
    return times


def _times(rows: Sequence[Measurement], only: str | None) -> np.ndarray:
    """Times of rows that differ in layout and batch alone, with one coefficient switched on."""
    quantity, output = rows[0].quantity, rows[0].output
    batch = np.array([row.batch for row in rows])
    if rows[0].looped:
        loop = _values(rows, "aggregated", only)
        wait = RAMP * (batch - 1) * loop["busy"] if quantity == "ttft" else 0.0
        return np.asarray(loop[quantity] + wait)
    decode = np.zeros(len(rows)) if quantity == "ttft" else _values(rows, "decode", only)["tpot"]
    if quantity == "step":
        return decode
    values = _values(rows, "prefill", only)
    prompts = values["ttft"] if only in PER_PASS else values["ttft"] + (batch - 1) * values["busy"]
    return prompts + (output - 1) * decode if quantity == "e2e" else prompts


def _values(rows: Sequence[Measurement], mode: str, only: str | None) -> dict[str, np.ndarray]:
    first = rows[0]
    axis = {
        name: np.array([(row.layout or {})[name] for row in rows])
        for name in ("tp", "pp", "dp_attention", "ep", "tp_expert")
    }
    one, chips = np.ones(len(rows), dtype=np.int64), np.array([row.chips for row in rows])
    layouts = Layouts(cp=one, replicas=one, chips=chips, **axis)
    task = Task(
        sizes=first.sizes,
        chip=first.chip,
        machine=machine(first.machine) if first.machine else ALONE,
        price=1.0,
        profile=_switched(only),
        chips=tuple(int(n) for n in np.unique(chips)),
        limits_of={},
        input_tokens=first.prompt,
        output_tokens=first.output,
        context=first.context,
        cached_input=0.0,
        chunk=CHUNK,
        mode=mode,
        batches=None,
        kappa=0.5,
        promises={},
        objective="cost",
        estimate="calibrated",
        lecture=False,
        reserve=0.0,
    )
    # With everything switched off a step takes no time, and rates are not asked for.
    with np.errstate(divide="ignore"):
        return Step(task, layouts, bound=False)(np.array([row.batch for row in rows]))


def _switched(only: str | None) -> Profile:
    """A profile in which one coefficient is 1 and the others cost nothing."""
    off = {c: np.inf if c in EFFICIENCIES else 0.0 for c in COEFFICIENTS}
    values = off if only is None else {**off, only: 1.0}
    exact = Band(1.0, 1.0)
    bands = {"tpot": exact, "ttft": exact, "usd_per_mtok": exact}
    return Profile("one", "", "", (), 0, "", 1.0, bands, {}, values)
