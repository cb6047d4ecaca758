"""Rows of the table of training runs as entries: a bound for each, and no estimate yet.

The bound is the model's arithmetic alone at the chip's peak: three passes of two FLOP per weight
and token, and of attention only the half that a causal mask leaves. Nothing recomputed, nothing
sent and no idle stage is in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.measurements.entry import Entry
from planner.measurements.readers.tables import Table, positive_of

__all__ = ["step_bound", "training_entries"]

COLUMNS = ("iter_time_derived_s", "measured_iter_time_s")
LEAST, MOST = 1e-3, 1e9  # of any width, length, peak or number of chips
NO_PLANNER = "only the bound: steps of training are not estimated yet"


def training_entries(table: Table) -> list[Entry]:
    """The iteration time of every run, in whichever column states it."""
    found, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        column = next((c for c in COLUMNS if positive_of(cells.get(c, "")) is not None), COLUMNS[1])
        seconds, bound, reason = positive_of(cells.get(column, "")), None, NO_PLANNER
        try:
            bound = step_bound(cells)
        except KeyError as error:
            reason = f"{error.args[0]} is not given"
        except ValueError as error:
            reason = str(error)
        if seconds is None:
            reason = f"{column} is {cells.get(column, '')!r}, not a positive number"
        key = tuple(value for name, value in cells.items() if name not in ("id", "notes", "source"))
        found.append(
            Entry(
                index,
                line,
                column,
                "iteration",
                "",
                cells.get("model", ""),
                cells.get("gpu", ""),
                cells.get("recompute", ""),
                setting=" ".join(f"{n}{cells.get(n, '')}" for n in ("tp", "pp", "dp")),
                measured=seconds,
                seconds=seconds,
                bound=bound if seconds is not None else None,
                roofline=bound,
                reason=reason,
                repeat=key in seen,
            )
        )
        seen.add(key)
    return found


def step_bound(cells: Mapping[str, str]) -> float:
    """Model FLOP of one iteration over the peak of all chips [s].

    Raises
    ------
    KeyError
        If a column is missing.
    ValueError
        If a shape is not a positive number; the message names it.
    """
    hidden, layers, tokens, vocabulary, chips = (
        _positive(cells, name) for name in ("hidden", "layers", "seq_len", "vocab", "gpus")
    )
    given = cells.get("ffn_hidden", "").strip()
    width = _positive(cells, "ffn_hidden") if given else 4 * hidden
    sequences = _positive(cells, "global_batch")
    peak = _positive(cells, "gpu_peak_tflops_bf16") * 1e12
    weights = layers * (4 * hidden**2 + 2 * hidden * width) + vocabulary * hidden
    attended = layers * hidden * tokens  # keys and values of half the positions
    return 6 * sequences * tokens * (weights + attended) / (chips * peak)


def _positive(cells: Mapping[str, str], name: str) -> float:
    value = positive_of(cells[name])
    if value is None or not LEAST <= value <= MOST:
        raise ValueError(f"{name} is {cells[name]!r}, not a positive number of that kind")
    return value
