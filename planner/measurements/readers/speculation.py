"""Rows of runs that are one run, and which runs speculate, told from what stands beside them.

The table mixes exports. A run may stand in it twice with the same times to the last digit, under
`DeepSeek-R1` and, with more columns, under `DeepSeek-V3`: the second export holds runs without
speculation only, and gives the workers of both pools. The first row is then read as the second.
Where the second export holds the same version, layout and concurrency with other times, the first
row speculated; where it holds nothing, the table does not say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.measurements.published_names import Refused, base_of, model_of
from planner.measurements.readers.tables_adapters_part import Row, count
from planner.measurements.readers.ways import chips_of, ways_of

__all__ = ["PLAIN", "fullest_of", "speculated_in"]

TIMES = ("tpot_ms", "ttft_ms")
# What two rows of one run share beside both times. Exports differ in the sixteenth digit; times of
# fewer than TELLING digits agree by chance.
SAME_RUN = ("mode", "system", "backend", "isl", "osl", "concurrency")
TELLING, SAME_DIGITS = 8, 12
OTHER_DAY = ("measured_on", "image", "wip")
# What a run with speculation shares with one of the plain export, beside the layout.
SAME_SWEEP = (*SAME_RUN, "backend_version", "gemm_quant_mode")
# The id of the export without speculation: of its 165 disaggregated rows whose concurrency the
# published sweep definitions hold, 161 have the workers that are defined there without drafts.
PLAIN = "deepseek-ai/DeepSeek-V3"
# SGLang's pools were swept over one list of concurrencies, with drafts and without, or without
# alone: where a smaller share of the configurations occurs with two times, no run had drafts. No
# such rule holds for TensorRT-LLM, whose recipes have concurrencies of their own.
PAIRED = 0.1
SWEPT = "sglang"
ONE_SWEEP = ("backend", "backend_version", "system", "gemm_quant_mode")


def fullest_of(table: Sequence[Row]) -> list[int]:
    """For every row that which says most of the same run: itself where no other row is that run."""
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(table):
        same[_identity(row)].append(i)
    fullest = list(range(len(table)))
    for rows in same.values():
        best = max(rows, key=lambda i: (_says(table[i]), -i))
        for i in rows:
            fullest[i] = best
    return fullest


def speculated_in(table: Sequence[Row], fullest: Sequence[int]) -> dict[int, bool]:
    """Whether runs speculate, by index, for those of which the rest of the table tells it.

    Of the rows of the open part that are found to, all but three are 1.1 to 2 times as fast as the
    plain run beside them; of those found not to, none is faster than its like.
    """
    plain = {_configuration(row) for row in table if row["model_path"] == PLAIN} - {None}
    shape = base_of(model_of(PLAIN).name)
    found: dict[int, bool] = {}
    for i, row in enumerate(table):
        other = table[fullest[i]]["model_path"] != PLAIN
        if other and _configuration(row) in plain and _shape(row) == shape:
            found[i] = True
    return {**_unpaired(table, fullest, found), **found}


def _unpaired(
    table: Sequence[Row], fullest: Sequence[int], drafting: dict[int, bool]
) -> dict[int, bool]:
    """Runs of sweeps in which hardly a configuration occurs with two times."""
    sweeps: dict[tuple[str, ...], dict[object, set[int]]] = defaultdict(lambda: defaultdict(set))
    for i, row in enumerate(table):
        if row["mode"] == "disagg" and row["backend"] == SWEPT:
            sweep = tuple(row.get(name, "") for name in ONE_SWEEP)
            sweeps[sweep][_configuration(row)].add(fullest[i])
    single = {
        sweep
        for sweep, runs in sweeps.items()
        if sum(len(each) > 1 or bool(each & drafting.keys()) for each in runs.values())
        < PAIRED * len(runs)
    }
    return {
        i: False
        for i, row in enumerate(table)
        if row["mode"] == "disagg" and tuple(row.get(name, "") for name in ONE_SWEEP) in single
    }


def _shape(row: Row) -> str | None:
    try:
        return base_of(model_of(row["model_path"]).name)
    except Refused:
        return None


def _configuration(row: Row) -> tuple[object, ...] | None:
    """What tells a configuration of a sweep; sweeps of two pools were tuned from day to day."""
    try:
        if row["mode"] == "disagg":
            tp, copies = count(row, "decode_tp_size"), count(row, "decode_attention_dp_size", 1)
            layout: tuple[object, ...] = (tp * copies, row["measured_on"])
        else:
            ways = ways_of(row, 1)
            layout = (chips_of(ways), ways["dp_attention"] > 1)
    except Refused:
        return None
    return (*(row.get(name, "") for name in SAME_SWEEP), *layout)


def _identity(row: Row) -> tuple[str, ...]:
    times = [row.get(column, "") for column in TIMES]
    if all(sum(map(str.isdigit, time)) >= TELLING for time in times):
        try:
            rounded = [f"{float(time):.{SAME_DIGITS}g}" for time in times]
        except ValueError:
            rounded = times
        return (*(row.get(name, "") for name in SAME_RUN), *rounded)
    return tuple(value for name, value in row.items() if name not in OTHER_DAY)


def _says(row: Row) -> tuple[bool, bool, int]:
    return (
        bool(row.get("decode_num_workers")),
        row.get("model_path") == PLAIN,
        sum(bool(value) for value in row.values()),
    )
