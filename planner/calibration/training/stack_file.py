"""A training stack fitted to rows, and its text in a TOML file: what ships, or a user's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from planner.calibration.training.memory_fit import MemorySample, fit_memory
from planner.calibration.training.step_fit import (
    Findings,
    findings_of,
    shipped_findings,
    stack_priors,
)
from planner.calibration.training.step_scores import (
    CHIP,
    HALF,
    LEAST_FIT,
    MODEL,
    StackScores,
    band_of,
    fitted,
    form_of,
    scores_of,
)
from planner.catalogue.training.training_stacks import (
    KNOWN,
    NEW_CHIP,
    NEW_MODEL,
    coefficient_priors,
)
from planner.measurements.readers.training_rows import TrainingRow, stack_words
from planner.measurements.training_steps import era_of
from planner.text.errors import InputError

KINDS = {HALF: KNOWN, MODEL: NEW_MODEL, CHIP: NEW_CHIP}
AXES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "virtual_stages", "zero", "recompute")
DIGITS = 4
LEAST_BAND = 5  # rows left out, from which on their errors make a band


def stack_table(
    name: str,
    rows: Sequence[TrainingRow],
    scores: Sequence[StackScores] | None = None,
    findings: Findings | None = None,
) -> dict[str, object]:
    """The table of a stack fitted to rows, as TOML writes it and `stack_from` reads it.

    `findings` of other stacks make its priors: of those that ship, where none are given.

    Raises InputError for fewer rows with a time than a fit needs.
    """
    timed = [row for row in rows if row.usable]
    if len(timed) < LEAST_FIT:
        raise InputError(f"{len(timed)} rows with a step time; a fit needs {LEAST_FIT}")
    form = form_of(rows)
    priors = stack_priors(name, shipped_findings() if findings is None else findings)
    fit = fitted(rows, form, priors)
    scores = scores_of(rows, form, priors) if scores is None else scores
    sample = MemorySample.of([row for row in rows if _tells(row, rows)], form)
    memory = fit_memory(sample) if sample.rows else None
    spreads, physics = fit.spreads(), coefficient_priors()
    alone = findings_of(fitted(rows, form))
    moved = [n for n in alone if spreads[n] < MOVED * physics[n].spread]
    values = fit.values() | (memory.values() if memory else {})
    adjustments = [
        {"of": one.of, "scope": one.scope, "at": one.at, "factor": one.factor}
        for one in fit.stack_adjustments()
    ]
    if memory:
        adjustments += [
            {"of": of, "scope": scope, "at": at, "factor": factor}
            for of, scope, at, factor in memory.factors()
        ]
    words = stack_words(timed[0].stack)
    return {
        "title": words.title or name,
        "as_of": words.ran or max(row.date for row in timed)[:7],
        "source": "; ".join(sorted({row.set for row in timed if row.set}))[:300],
        "chips": sorted({row.machine.chip for row in timed if row.machine}),
        "models": sorted({row.counts.name for row in timed if row.counts}),
        "formats": sorted({f"{_part(row)} {row.precision}" for row in timed if row.counts}),
        "rows": len(timed),
        "varied": [axis for axis in AXES if _varies(timed, axis)],
        "identified": sorted(moved),
        "pooled_cards": form.pooled_cards,
        "routed_noise": form.routed_noise,
        **words.traits,
        "eras": _eras(timed),
        "coefficients": values,
        "findings": alone,
        "spreads": spreads,
        "adjustments": adjustments,
        "bands": _bands(scores),
        "errors": _errors(scores),
    }


MOVED = 0.8  # of its prior's spread, below which a coefficient's spread says that rows moved it


def _part(row: TrainingRow) -> str:
    return "routed" if row.counts and row.counts.n_experts else "dense"


def _tells(row: TrainingRow, rows: Sequence[TrainingRow]) -> bool:
    return not row.reason and (row.peak is not None or any(not each.fits for each in rows))


def _varies(rows: Sequence[TrainingRow], axis: str) -> bool:
    return len({int(getattr(row.layout, axis)) for row in rows if row.layout is not None}) > 1


def _eras(rows: Sequence[TrainingRow]) -> dict[str, str]:
    """The latest release of dense and of routed models."""
    eras: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: (row.date, row.era)):
        eras["routed" if row.counts and row.counts.n_experts else "dense"] = era_of(row)
    return eras


def _bands(scores: Sequence[StackScores]) -> dict[str, dict[str, list[float]]]:
    """Bands by part and kind of distance; one that is farther is never narrower."""
    bands: dict[str, dict[str, list[float]]] = {}
    for score in scores:
        low, high = 1.0, 1.0
        kinds: dict[str, list[float]] = {}
        for left, kind in KINDS.items():
            ratios = score.ratios.get(left, np.zeros(0))
            if ratios.size < LEAST_BAND:
                continue
            ends = band_of(ratios)
            low, high = min(low, ends[0]), max(high, ends[1])
            kinds[kind] = [low, high, ratios.size]
        if kinds:
            bands[score.part] = kinds
    if "dense" not in bands:
        bands["dense"] = next(iter(bands.values()))
    return bands


def _errors(scores: Sequence[StackScores]) -> dict[str, list[float]]:
    """Median, mean and those of a constant MFU [%], by part and what was left out."""
    return {
        f"{score.part}, {left}": [error.median, error.mean, error.constant_median,
                                  error.constant_mean, error.n]
        for score in scores for left, error in score.errors.items()
    }  # fmt: skip


def stack_text(table: Mapping[str, object], prefix: str = "") -> str:
    """A stack's table as TOML, under `prefix` such as `stack.mine.`; at the top without one."""
    lines = list(_lines(table, prefix))
    head = [f"[{prefix.rstrip('.')}]"] if prefix else []
    return "\n".join([*head, *lines]) + "\n"


def _lines(table: Mapping[str, object], prefix: str) -> Iterator[str]:
    inner: dict[str, Mapping[str, object]] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner[key] = value
        elif key == "adjustments" and isinstance(value, Iterable):
            yield "adjustments = ["
            yield from (f"  {_value(each)}," for each in value)
            yield "]"
        else:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield f"[{prefix}{_key(key)}]"
        yield from (f"{_key(name)} = {_value(each)}" for name, each in value.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.{DIGITS}g}" if value else "0.0"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_value, value)) + "]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
