"""Measured power of chips that serve, row by row: model, chips, batch, token rate, watts.

Rows say nothing of their prompts but the task, of which typical lengths have to be given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from planner.architecture.counts import Sizes, abstract_sizes
from planner.measurements.measurement import ONE, Measurement, NotComputed
from planner.measurements.published_names import (
    Refused,
    base_of,
    chip_of,
    format_of,
    machine_of,
    sizes_of,
)
from planner.measurements.readers import sheets

NEEDED = (
    "id", "model_id", "task", "params_total_b", "params_active_b", "weight_precision", "gpu",
    "gpus", "ep", "avg_batch", "avg_output_tokens", "output_tokens_per_s", "power_per_gpu_w",
    "host_bound",
)  # fmt: skip
ARITHMETIC = ("bf16", "fp8")  # formats that engines multiply in; narrower weights are widened


@dataclass(frozen=True)
class PowerRow(Measurement):
    """One measured power: a decode step of what ran, and what each chip drew meanwhile.

    `rate` are generated tokens per second of all `chips` [token/s], `watts` are per chip [J/s].
    `host_bound` marks runs whose chips wait for their host.
    """

    rate: float = 0.0
    watts: float = 0.0
    host_bound: bool = False

    @property
    def configuration(self) -> str:
        """What was run, whatever its batch."""
        return f"{self.model} {self.sizes.name} {self.chip.name} {self.chips} {self.output:.0f}"


def read_power(
    path: Path, prompts: Mapping[str, float]
) -> tuple[list[PowerRow], list[NotComputed]]:
    """The rows of a table, and those that are refused with the reason.

    Raises InputError if the file is no table with these columns.

    Parameters
    ----------
    prompts : tokens of a prompt by task.
    """
    sheet = sheets.sheet(path)
    lacking = [name for name in NEEDED if name not in sheet.columns]
    if lacking:
        raise Refused(f"{path}: a table of power without the column {lacking[0]}")
    rows, refused = [], []
    for cells in sheet.rows:
        row = dict(zip(sheet.columns, cells, strict=True))
        try:
            rows.append(_read(row, prompts))
        except Refused as why:
            refused.append(NotComputed(row["id"], str(why)))
    return rows, refused


def _read(row: sheets.Row, prompts: Mapping[str, float]) -> PowerRow:
    chip = chip_of(row["gpu"])
    if chip.power is None:
        raise Refused(f"nobody says what {chip.name} is rated for")
    if row["task"] not in prompts:
        raise Refused(f"no length of prompts is known for the task {row['task']!r}")
    sizes, model = _model(row)
    chips = int(sheets.positive(row, "gpus"))
    experts = chips if float(row["ep"] or 1) > 1 and sizes.n_experts else 1
    shards = chips // experts if sizes.n_experts else 1
    prompt, output = float(prompts[row["task"]]), sheets.positive(row, "avg_output_tokens")
    return PowerRow(
        row["id"], "power", "", model, sizes, chip, machine_of(chip.name), chips,
        {**ONE, "tp": chips, "ep": experts, "tp_expert": shards}, sheets.positive(row, "avg_batch"),
        prompt, output, prompt + output / 2, "step", 0.0, "",
        rate=sheets.positive(row, "output_tokens_per_s"),
        watts=sheets.positive(row, "power_per_gpu_w"),
        host_bound=row["host_bound"] == "1",
    )  # fmt: skip


def _model(row: sheets.Row) -> tuple[Sizes, str]:
    """The model's sizes, and what tunings of one shape share; by its totals where unknown."""
    name = format_of(row["weight_precision"])
    multiplied = name if name in ARITHMETIC else ARITHMETIC[0]
    try:
        counted = sizes_of(row["model_id"], name, None, multiplied)
        return counted, base_of(counted.name)
    except Refused:
        if row["params_active_b"] != row["params_total_b"]:
            raise
        totals = {
            "total_params": sheets.positive(row, "params_total_b") * 1e9,
            "active_params": sheets.positive(row, "params_active_b") * 1e9,
            "activations": multiplied,
        }
        unsaid = dict.fromkeys(
            ("weights", "kv", "bytes_per_weight", "kv_bytes_per_token", "layers", "hidden",
             "attention_flops_per_cached_token", "state_bytes_per_sequence")
        )  # fmt: skip
        return abstract_sizes(SimpleNamespace(**unsaid, **totals), name), row["model_id"]
