"""Fit what chips draw to measured power: idle power, energy of a byte, energy of arithmetic.

Scores on rows, models and chips left out are shown beside plain baselines. Rows whose chips wait
for their host are not fitted; how far they lie off is shown by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import least_squares

from planner.architecture.counts import ModelSizes, abstract_sizes
from planner.calibration.cross_validation import folds, group_error, score
from planner.calibration.own_profile import section
from planner.catalogue.chips import IN_SAMPLE, NEW_CHIP, NEW_MODEL
from planner.catalogue.profile import COVERAGE
from planner.measurements.measurement import ONE_CHIP, Measurement, NotComputed
from planner.measurements.prediction import RowStep
from planner.measurements.published_names import (
    BadRow,
    base_architecture,
    number_format,
    published_sizes,
    resolve_chip,
    row_machine,
)
from planner.measurements.readers import sheets
from planner.problems.serving.step.kernels import feed, get_kernel
from planner.text.tables import table, toml_value
from planner.text.tolerances import QUANTILE_90
from tools.fit.leave_outs import TAIL, quantiles_by_group

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
        raise BadRow(f"{path}: a table of power without the column {lacking[0]}")
    rows, refused = [], []
    for cells in sheet.rows:
        row = dict(zip(sheet.columns, cells, strict=True))
        try:
            rows.append(_read(row, prompts))
        except BadRow as why:
            refused.append(NotComputed(row["id"], str(why)))
    return rows, refused


def _read(row: sheets.TableRow, prompts: Mapping[str, float]) -> PowerRow:
    chip = resolve_chip(row["gpu"])
    if chip.power is None:
        raise BadRow(f"nobody says what {chip.name} is rated for")
    if row["task"] not in prompts:
        raise BadRow(f"no length of prompts is known for the task {row['task']!r}")
    sizes, model = _model(row)
    chips = int(sheets.positive(row, "gpus"))
    experts = chips if float(row["ep"] or 1) > 1 and sizes.n_experts else 1
    shards = chips // experts if sizes.n_experts else 1
    prompt, output = float(prompts[row["task"]]), sheets.positive(row, "avg_output_tokens")
    return PowerRow(
        row["id"], "power", "", model, sizes, chip, row_machine(chip.name), chips,
        {**ONE_CHIP, "tp": chips, "ep": experts, "tp_expert": shards},
        sheets.positive(row, "avg_batch"),
        prompt, output, prompt + output / 2, "step", 0.0, "",
        rate=sheets.positive(row, "output_tokens_per_s"),
        watts=sheets.positive(row, "power_per_gpu_w"),
        host_bound=row["host_bound"] == "1",
    )  # fmt: skip


def _model(row: sheets.TableRow) -> tuple[ModelSizes, str]:
    """The model's sizes, and what tunings of one shape share; by its totals where unknown."""
    name = number_format(row["weight_precision"])
    multiplied = name if name in ARITHMETIC else ARITHMETIC[0]
    try:
        counted = published_sizes(row["model_id"], name, None, multiplied)
        return counted, base_architecture(counted.name)
    except BadRow:
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


PRIORS = table("tools.fit", "power_priors.toml")
NAMES = ("idle", "byte", "peak")
CENTRE, WIDTH = np.array([PRIORS[name] for name in NAMES]).T


@dataclass(frozen=True)
class CountedPower:
    """What rows are fitted by, arrays of shape (n_rows,).

    `chip` names each row's; `watts` measured and `rated` are per chip [J/s]. `bytes` are read per
    second [byte/s], `work` is arithmetic at peak per second [1].
    """

    chip: np.ndarray
    watts: np.ndarray
    rated: np.ndarray
    bytes: np.ndarray
    work: np.ndarray

    def take(self, rows: np.ndarray) -> CountedPower:
        """Some of the rows."""
        return CountedPower(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class PowerFit:
    """Logarithms of the coefficients over their priors: shared, and by chip beside them.

    `spread` are standard deviations of the sum of both, by chip.
    """

    shared: np.ndarray
    chips: Mapping[str, np.ndarray]
    spread: Mapping[str, np.ndarray]

    def of(self, chip: str) -> np.ndarray:
        """Coefficients of a chip, of a chip without rows those that all share."""
        made: np.ndarray = CENTRE * np.exp(self.shared + self.chips.get(chip, 0.0))
        return made

    def watts(self, rows: CountedPower) -> np.ndarray:
        """Power per chip of rows [J/s], shape (n_rows,)."""
        return _watts(np.array([self.of(name) for name in rows.chip]), rows)


def counted(rows: Sequence[PowerRow]) -> CountedPower:
    """What rows read and multiply per second, by the equations that their times come from."""
    drawn = [(row.watts, row.chip.power, *_of_row(row)) for row in rows]
    return CountedPower(np.array([row.chip.name for row in rows]), *np.array(drawn, dtype=float).T)


def _of_row(row: PowerRow) -> tuple[float, float]:
    """Bytes per second, and seconds of arithmetic at peak per second, of one chip."""
    step = RowStep([row]).step
    symbols = {**step.values(np.array([row.batch])), "n_tile": float(PRIORS["tile"])}
    counts = feed(get_kernel("counted_work"), symbols)
    work = {name: float(np.ravel(count)[0]) for name, count in counts.items()}
    steps, prompts = row.rate / row.batch, row.rate / row.output
    return (
        (work["V_w"] + work["V_kv_dec"]) * steps,
        work["T_tiled"] * steps + work["T_pf_math_bound"] * prompts,
    )


EXACT = 1e-12


def fitted(rows: CountedPower) -> PowerFit:
    """Least squares of logarithms, shrunk to the priors; a chip's own to what chips share."""
    chips, member = np.unique(rows.chip, return_inverse=True)
    shape = (len(chips) + 1, len(NAMES))

    def residuals(x: np.ndarray) -> np.ndarray:
        shared, apart = x.reshape(shape)[0], x.reshape(shape)[1:]
        made = _watts(CENTRE * np.exp(shared + apart[member]), rows)
        return np.concatenate([
            np.log(made / rows.watts) / PRIORS["noise"], shared / WIDTH,
            apart.ravel() / PRIORS["between"],
        ])  # fmt: skip

    # To the optimum itself: the last of six digits else follows the processor.
    solution = least_squares(residuals, np.zeros(shape).ravel(), ftol=EXACT, xtol=EXACT, gtol=EXACT)
    slopes = np.asarray(solution.jac)
    covariance = np.linalg.inv(slopes.T @ slopes)
    shared, apart = solution.x.reshape(shape)[0], solution.x.reshape(shape)[1:]
    spread = {}
    for k, chip in enumerate(chips):
        both = np.hstack([np.eye(len(NAMES)) * (j in (0, k + 1)) for j in range(len(chips) + 1)])
        spread[str(chip)] = np.sqrt(np.diag(both @ covariance @ both.T))
    return PowerFit(shared, dict(zip(map(str, chips), apart, strict=True)), spread)


def _watts(coefficients: np.ndarray, rows: CountedPower) -> np.ndarray:
    """The power that the equation of a chip gives, coefficients of shape (n_rows, 3)."""
    idle, byte, peak = coefficients.T
    wanted = rows.rated * (idle + peak * rows.work) + byte * rows.bytes
    symbols = {"P_asked": wanted, "P_most": rows.rated, "q_soft": float(PRIORS["soft"])}
    return np.asarray(feed(get_kernel("drawn_power"), symbols)["P_work"])


def left_out(rows: CountedPower, fold: np.ndarray) -> np.ndarray:
    """Power of every row by a fit that did not see its fold [J/s], shape (n_rows,)."""
    watts = np.empty(len(fold))
    for k in np.unique(fold):
        watts[fold == k] = fitted(rows.take(fold != k)).watts(rows.take(fold == k))
    return watts


def band(ratio: np.ndarray, models: np.ndarray, *, even: bool = False) -> list[float]:
    """The range of measured over predicted that holds COVERAGE, every model weighing the same.

    It is `even` to both sides where a few chips tell how far off another is, not to which side.
    """
    if even:
        ratio, models = np.concatenate([ratio, 1 / ratio]), np.tile(models, 2)
    return quantiles_by_group(ratio, models, (TAIL, 1 - TAIL))


@dataclass(frozen=True)
class PowerScores:
    """Predicted power of rows by kind of leaving out, beside baselines [J/s]; rows of the fit."""

    rows: CountedPower
    models: np.ndarray
    predicted: Mapping[str, np.ndarray]
    baselines: Mapping[str, np.ndarray]


def scores_of(rows: Sequence[PowerRow]) -> PowerScores:
    """Every way of leaving out, and what rated power and a share of it would say."""
    work = counted(rows)
    models = np.array([row.model for row in rows])
    ways = {
        IN_SAMPLE: folds([row.configuration for row in rows]),
        NEW_MODEL: np.unique(models, return_inverse=True)[1],
        NEW_CHIP: np.unique(work.chip, return_inverse=True)[1],
    }
    share = np.empty(len(rows))
    for k in np.unique(ways[IN_SAMPLE]):
        others = ways[IN_SAMPLE] != k
        share[~others] = np.median(work.watts[others] / work.rated[others])
    return PowerScores(
        work,
        models,
        {name: left_out(work, fold) for name, fold in ways.items()},
        {"rated": work.rated, "share": work.rated * share},
    )


def text(scores: PowerScores) -> str:
    """Errors by way of leaving out, by rows and by models, a line each."""
    lines = [f"{'power per chip':<26}{'rows':>5}{'median':>9}{'mean':>8}{'models, mean |log|':>22}"]
    for name, watts in {**scores.predicted, **scores.baselines}.items():
        made = score(watts, scores.rows.watts)
        by_model = group_error(watts / scores.rows.watts, scores.models)
        lines.append(
            f"{WORDS[name]:<26}{made.n:>5}{made.median:>9.1%}{made.mean:>8.1%}"
            f"{by_model:>15.3f} of {len(np.unique(scores.models))}"
        )
    return "\n".join(lines)


WORDS = {
    IN_SAMPLE: "configurations left out", NEW_MODEL: "models left out",
    NEW_CHIP: "chips left out",
    "rated": "rated power", "share": "a share of rated power",
}  # fmt: skip


def file_text(rows: Sequence[PowerRow], scores: PowerScores, fit: PowerFit) -> str:
    """The coefficients as the file of the catalogue."""
    return "\n".join([*_head(rows, scores, fit), *_chips(rows, fit)]) + "\n"


def _head(rows: Sequence[PowerRow], scores: PowerScores, fit: PowerFit) -> Iterator[str]:
    measured = scores.rows.watts
    yield f"""# Written by tools.fit: what chips draw while they serve.
# idle, least, peak: J/s; byte: J/byte. A chip without rows takes what is shared, where
# idle, least and peak are shares of rated power. Bands hold measured / predicted.
as_of = "{PRIORS["as_of"]}"
source = "{PRIORS["source"]}"
rows = {len(rows)}
coverage = {COVERAGE}
tile = {PRIORS["tile"]}
soft = {PRIORS["soft"]}
models = {toml_value(sorted({row.model for row in rows}), str)}"""
    bands = {
        name: tuple(band(measured / watts, scores.models, even=name == NEW_CHIP))
        for name, watts in scores.predicted.items()
    }
    yield from section("bands", bands)
    errors = [score(watts, measured).named(name) for name, watts in scores.predicted.items()]
    yield from section("errors", {key: float(x) for each in errors for key, x in each.items()})
    shared = fit.of("")
    least = shared[0] * np.exp(-QUANTILE_90 * PRIORS["between"])
    yield from section("shared", {**dict(zip(NAMES, shared, strict=True)), "least": least})


def _chips(rows: Sequence[PowerRow], fit: PowerFit) -> Iterator[str]:
    rated = {row.chip.name: float(row.chip.power or 0.0) for row in rows}
    for chip in sorted(fit.chips):
        unit = np.array([rated[chip], 1.0, rated[chip]])
        values, ends = fit.of(chip) * unit, np.exp(QUANTILE_90 * fit.spread[chip])
        figures: dict[str, object] = {"rows": sum(row.chip.name == chip for row in rows)}
        for name, value, end in zip(NAMES, values, ends, strict=True):
            figures |= {name: value, f"{name}_interval": (value / end, value * end)}
        yield from section(f"chips.{chip}", {**figures, "least": values[0] / ends[0]})


def write_power(energy: Path, out: Path | None) -> None:
    """Read the rows, show how far off fits are on those left out, write the coefficients."""
    rows, refused = read_power(energy, PRIORS["prompts"])
    free = [row for row in rows if not row.host_bound]
    scores = scores_of(free)
    fit = fitted(scores.rows)
    print(text(scores))
    slow = [row for row in rows if row.host_bound]
    if slow:
        waiting = counted(slow)
        error = score(fit.watts(waiting), waiting.watts)
        print(f"{'waiting for their host':<26}{error.n:>5}{error.median:>9.1%}{error.mean:>8.1%}")
    for left in refused:
        print(f"refused {left.id}: {left.reason}")
    if out is not None:
        (out / "chip_power.toml").write_text(file_text(free, scores, fit), encoding="utf-8")
