"""A training stack fitted to rows: its form, its errors on rows left out, and its text as TOML.

Rows of one stack are fitted together and left out in turn: a random half by layout, a model, a
chip or a width with all its rows. The constant is the median MFU of the rows that stay, of the
same chip, format, recomputation and kind of model where there are such.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.calibration import stack_fit
from planner.calibration.cross_validation import quantiles
from planner.catalogue.training.training_stacks import (
    IN_SAMPLE,
    NEW_CHIP,
    NEW_MODEL,
    PriorCoefficient,
    TrainingStack,
    coefficient_priors,
    training_stack,
)
from planner.measurements.readers.training_rows import TrainingRow, stack_words
from planner.measurements.training_steps import stack_version
from planner.text.errors import InputError
from planner.text.tables import toml_key, toml_lines, toml_value

HALF, MODEL, CHIP, WIDTH = "random half", "model out", "chip out", "width out"
SEED = 20261124
MIN_FIT_ROWS = 8  # rows, below which a stack has no fit of its own
AT_BOUND = 0.02  # relative margin above the physical minimum; within it a coefficient is bound


@dataclass(frozen=True)
class ErrorScore:
    """Absolute errors of step time [%], median and mean: of the fit and of a constant MFU."""

    n: int
    median: float
    mean: float
    constant_median: float
    constant_mean: float


@dataclass(frozen=True)
class StackScores:
    """Scores of the dense or routed rows of one stack, by the type of group left out."""

    stack: str
    part: str
    n: int
    errors: Mapping[str, ErrorScore]
    ratios: Mapping[str, np.ndarray]


def network_form(rows: Sequence[TrainingRow]) -> TrainingStack:
    """The bare stack whose networks fit rows better: cards of a domain pooled, or one per chip.

    One card per chip is contradicted where rows push its collectives to the rate of the links.
    Rows of routed models beside dense ones count less where that predicts models left out better.
    """
    timed = [row for row in rows if row.usable]
    traits = stack_words(rows[0].stack).traits if rows else {}
    pooled = replace(training_stack("physical"), **traits)
    forms = [pooled, replace(pooled, pooled_cards=False)]
    if len(timed) < MIN_FIT_ROWS:
        return pooled
    shared, single = (stack_fit.fit_steps(stack_fit.StepSample.of(timed, form)) for form in forms)
    bound = (1 + AT_BOUND) * coefficient_priors()["k_dp"].least
    contradicted = single.values()["k_dp"] < bound
    form = forms[0] if contradicted or shared.loss <= single.loss else forms[1]
    forms = [form, replace(form, routed_noise=stack_fit.ROUTED_NOISE)]
    return min(forms, key=partial(_new_models, timed)) if len(model_masks(timed)) > 1 else form


def _new_models(rows: Sequence[TrainingRow], form: TrainingStack) -> float:
    """Mean error of step times of models left out, by fits with the priors of physics [1]."""
    sample = stack_fit.StepSample.of(rows, form)
    groups = _groupings(rows).get(MODEL, _groupings(rows)[HALF])
    predicted, _ = _left_out(sample, groups, coefficient_priors())
    return float(np.abs(predicted / sample.seconds - 1).mean())


def power_scores(
    timed: Sequence[TrainingRow], form: TrainingStack, priors: Mapping[str, PriorCoefficient]
) -> list[StackScores]:
    """Scores of the usable rows of one stack, separate for dense and routed models."""
    sample = stack_fit.StepSample.of(timed, form)
    left = {kind: _left_out(sample, groups, priors) for kind, groups in _groupings(timed).items()}
    scores = []
    for part, where in model_masks(timed):
        errors = {
            k: _score(p[where], c[where], sample.seconds[where]) for k, (p, c) in left.items()
        }
        ratios = {k: sample.seconds[where] / p[where] for k, (p, _) in left.items()}
        scores.append(StackScores(timed[0].stack, part, int(where.sum()), errors, ratios))
    return scores


def model_masks(rows: Sequence[TrainingRow]) -> list[tuple[str, np.ndarray]]:
    """Masks of the rows of dense and of routed models, those without a row left out."""
    parts = np.array([row.part for row in rows])
    return [(part, parts == part) for part in ("dense", "routed") if part in parts]


def utilisation(sample: stack_fit.StepSample) -> np.ndarray:
    """Model FLOP utilisation of rows, causal half of attention [1]."""
    return _least(sample) / sample.seconds


def _least(sample: stack_fit.StepSample) -> np.ndarray:
    """Causal arithmetic of each row at peak [s]."""
    return np.array([
        row.counts.flop(row.batch, row.sequence) / (row.chips * row.machine.peak)
        for row in sample.rows if row.counts and row.machine
    ])  # fmt: skip


def _groupings(rows: Sequence[TrainingRow]) -> dict[str, np.ndarray]:
    """Group of each row (n_rows,), by type of hold-out: random half, model, chip, width."""
    half = np.random.default_rng(SEED).permutation(len(rows)) % 2
    groups = {HALF: half}
    names = {
        MODEL: [row.counts.name if row.counts else "" for row in rows],
        CHIP: [row.machine.chip if row.machine else "" for row in rows],
        WIDTH: [str(row.counts.hidden) if row.counts else "" for row in rows],
    }
    for kind, words in names.items():
        ids = np.unique(words, return_inverse=True)[1]
        if 1 < ids.max() + 1 <= MAX_GROUPS:
            groups[kind] = ids
    return groups


MAX_GROUPS = 30  # fits of one kind of leaving out


def _left_out(
    sample: stack_fit.StepSample, groups: np.ndarray, priors: Mapping[str, PriorCoefficient]
) -> tuple[np.ndarray, np.ndarray]:
    """Step times of rows by fits to the other groups, and by the constant MFU of those [s]."""
    predicted, constant = np.empty(len(groups)), np.empty(len(groups))
    for group in np.unique(groups):
        out = groups == group
        fit = stack_fit.fit_steps(sample.take(~out), priors)
        predicted[out] = fit.predicted(sample.take(out))
        constant[out] = _constant(sample, out)
    return predicted, constant


def _constant(sample: stack_fit.StepSample, out: np.ndarray) -> np.ndarray:
    """Step times of the rows left out at the median MFU of the others [s]."""
    mfu, least = utilisation(sample), _least(sample)
    alike: dict[tuple[str, str, int, str], list[float]] = defaultdict(list)
    keys = [_alike(row) for row in sample.rows]
    for i in np.flatnonzero(~out):
        alike[keys[i]].append(mfu[i])
    parts = np.array([key[-1] for key in keys])
    stay = {part: mfu[~out & (parts == part)] for part in ("dense", "routed")}
    anyhow = {part: np.median(each if each.size else mfu[~out]) for part, each in stay.items()}
    places = np.flatnonzero(out)
    return np.array(
        [least[i] / (np.median(alike.get(keys[i], [anyhow[keys[i][-1]]]))) for i in places]
    )


def _alike(row: TrainingRow) -> tuple[str, str, int, str]:
    recompute = int(row.layout.recompute) if row.layout is not None and not row.latent else -1
    return row.machine.chip if row.machine else "", row.precision, recompute, row.part


def _score(predicted: np.ndarray, constant: np.ndarray, seconds: np.ndarray) -> ErrorScore:
    off, plain = (100 * np.abs(x / seconds - 1) for x in (predicted, constant))
    return ErrorScore(
        len(off), float(np.median(off)), float(off.mean()), float(np.median(plain)),
        float(plain.mean()),
    )  # fmt: skip


def fit_power(
    rows: Sequence[TrainingRow],
    form: TrainingStack,
    priors: Mapping[str, PriorCoefficient] | None = None,
) -> stack_fit.StepFit:
    """The fit of all rows of one stack that have a time.

    Without `priors` by physics alone, rows of routed models like the others: what a stack tells the
    others foretells their rows no better where those count less.
    """
    form = form if priors else replace(form, routed_noise=stack_fit.NOISE)
    return stack_fit.fit_steps(
        stack_fit.StepSample.of([row for row in rows if row.usable], form), priors
    )


LEAVE_OUT_LABELS = {HALF: IN_SAMPLE, MODEL: NEW_MODEL, CHIP: NEW_CHIP}
AXES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "virtual_stages", "zero", "recompute")
MIN_BAND_ROWS = 5  # minimum number of left-out rows for an error band


def stack_table(
    name: str, rows: Sequence[TrainingRow], findings: stack_fit.Findings | None = None
) -> dict[str, object]:
    """The table of a stack fitted to rows, as TOML writes it and `parse_stack` reads it.

    `findings` of other stacks make its priors: of those that ship, where none are given.

    Raises InputError for fewer rows with a time than a fit needs.
    """
    timed = [row for row in rows if row.usable]
    if len(timed) < MIN_FIT_ROWS:
        raise InputError(f"{len(timed)} rows with a step time; a fit needs {MIN_FIT_ROWS}")
    form = network_form(rows)
    beliefs = stack_fit.shipped_findings() if findings is None else findings
    priors = stack_fit.stack_priors(name, beliefs)
    fit = fit_power(rows, form, priors)
    scores = power_scores(timed, form, priors)
    failed = any(not row.fits for row in rows)
    telling = [row for row in rows if not row.reason and (failed or row.peak is not None)]
    sample = stack_fit.MemorySample.of(telling, form)
    memory = stack_fit.fit_memory(sample) if sample.rows else None
    spreads, physics = fit.spreads(), coefficient_priors()
    alone = stack_fit.coefficient_estimates(fit_power(rows, form))
    moved = [n for n in alone if spreads[n] < MAX_WIDTH_RATIO * physics[n].spread]
    values = fit.values() | (memory.values() if memory else {})
    factors = [(one.of, one.scope, one.at, one.factor) for one in fit.stack_adjustments()]
    factors += memory.factors() if memory else []
    words = stack_words(timed[0].stack)
    return {
        "title": words.title or name,
        "as_of": words.ran or max(row.date for row in timed)[:7],
        "source": "; ".join(sorted({row.set for row in timed if row.set}))[:300],
        "chips": sorted({row.machine.chip for row in timed if row.machine}),
        "models": sorted({row.counts.name for row in timed if row.counts}),
        "formats": sorted({f"{row.part} {row.precision}" for row in timed if row.counts}),
        "rows": len(timed),
        "varied": [
            axis
            for axis in AXES
            if len({int(getattr(row.layout, axis)) for row in timed if row.layout is not None}) > 1
        ],
        "identified": sorted(moved),
        "pooled_cards": form.pooled_cards,
        "routed_noise": form.routed_noise,
        **words.traits,
        "eras": {
            row.part: stack_version(row) for row in sorted(timed, key=lambda x: (x.date, x.era))
        },
        "coefficients": values,
        "findings": alone,
        "spreads": spreads,
        "adjustments": [dict(zip(FACTOR_KEYS, factor, strict=True)) for factor in factors],
        "bands": _bands(scores),
        "errors": _errors(scores),
    }


FACTOR_KEYS = ("of", "scope", "at", "factor")
MAX_WIDTH_RATIO = 0.8  # of its prior's spread, below which rows have moved a coefficient


def _bands(scores: Sequence[StackScores]) -> dict[str, dict[str, list[float]]]:
    """Bands by part and kind of distance; one that is farther is never narrower."""
    bands: dict[str, dict[str, list[float]]] = {}
    for score in scores:
        low, high = 1.0, 1.0
        kinds: dict[str, list[float]] = {}
        for left, kind in LEAVE_OUT_LABELS.items():
            ratios = score.ratios.get(left, np.zeros(0))
            if ratios.size < MIN_BAND_ROWS:
                continue
            ends = quantiles(ratios)
            low, high = min(low, ends[0]), max(high, ends[1])
            kinds[kind] = [low, high, ratios.size]
        if kinds:
            bands[score.part] = kinds
    if "dense" not in bands:
        bands["dense"] = next(iter(bands.values()))
    return bands


def _errors(scores: Sequence[StackScores]) -> dict[str, list[float]]:
    """Median and mean errors [%] of fit and constant MFU, by part and type of group left out."""
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
            yield from ("adjustments = [", *(f"  {toml_value(x, _digits)}," for x in value), "]")
        else:
            yield from toml_lines({key: value}, _digits)
    for key, value in inner.items():
        yield from (f"[{prefix}{toml_key(key)}]", *toml_lines(value, _digits))


def _digits(value: float) -> str:
    return f"{value:.4g}" if value else "0.0"
