"""How good predicted steps of training are on rows that no fit saw, beside a constant MFU.

Rows of one stack are fitted together and left out in turn: a random half by layout, a model, a
chip or a width with all its rows. The constant is the median MFU of the rows that stay, of the
same chip, format, recomputation and kind of model where there are such.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.calibration.training.memory_fit import UNFITTED, MemorySample, fit_memory
from planner.calibration.training.step_fit import (
    NOISE,
    ROUTED_NOISE,
    StepFit,
    StepSample,
    fit_steps,
    shipped_findings,
    stack_priors,
)
from planner.catalogue.profile import COVERAGE
from planner.catalogue.training.training_stacks import (
    PriorCoefficient,
    TrainingStack,
    coefficient_priors,
    training_stack,
)
from planner.measurements.readers.training_rows import TrainingRow, stack_words

HALF, MODEL, CHIP, WIDTH = "random half", "model out", "chip out", "width out"
SEED = 20261124
LEAST_GROUP = 3  # layouts of one question, from which on a choice means something
LEAST_FIT = 8  # rows, below which a stack has no fit of its own
FOLDS = 5
AT_BOUND = 0.02  # above what physics lets it be, within which a coefficient is held back by it


@dataclass(frozen=True)
class ErrorScore:
    """Absolute errors of step time [%]: median and mean, with those of the constant MFU beside."""

    n: int
    median: float
    mean: float
    constant_median: float
    constant_mean: float
    coverage: float


@dataclass(frozen=True)
class RegretScore:
    """Measured time of the chosen layout over the best [%], over `groups` questions.

    `within` counts those within 1 %; `rule` chooses no recomputation, least tp·pp and the largest
    micro-batch; `average` is a layout at random.
    """

    groups: int
    mean: float
    within: int
    rule: float
    average: float


@dataclass(frozen=True)
class MemoryScore:
    """Runs that fitted or failed, and measured peaks: how many are called right [%].

    `fail_as_fit` are failures that are called fitting, `peak` the median error of peaks; `unfitted`
    is what the formulas alone call right, `always` what calling every run a failure does.
    """

    n: int
    right: float
    fail_as_fit: float
    unfitted: float
    always: float
    peaks: int
    peak: float


@dataclass(frozen=True)
class StackScores:
    """Scores of one stack's rows, and what was left out of them and why."""

    stack: str
    part: str
    n: int
    errors: Mapping[str, ErrorScore]
    ratios: Mapping[str, np.ndarray]
    below_bound: int
    highest_mfu: float
    regret: RegretScore | None = None
    memory: MemoryScore | None = None


def by_stack(rows: Iterable[TrainingRow]) -> dict[str, list[TrainingRow]]:
    """Rows with a stack, those of each together."""
    stacks: dict[str, list[TrainingRow]] = defaultdict(list)
    for row in rows:
        if row.stack and not row.reason:
            stacks[row.stack].append(row)
    return dict(stacks)


def form_of(rows: Sequence[TrainingRow]) -> TrainingStack:
    """The bare stack whose networks fit rows better: cards of a domain pooled, or one per chip.

    One card per chip is contradicted where rows push its collectives to the rate of the links.
    Rows of routed models beside dense ones count less where that predicts models left out better.
    """
    timed = [row for row in rows if row.usable]
    traits = stack_words(rows[0].stack).traits if rows else {}
    pooled = replace(training_stack("physical"), **traits)
    forms = [pooled, replace(pooled, pooled_cards=False)]
    if len(timed) < LEAST_FIT:
        return pooled
    shared, single = (fit_steps(StepSample.of(timed, form)) for form in forms)
    bound = (1 + AT_BOUND) * coefficient_priors()["k_dp"].least
    contradicted = single.values()["k_dp"] < bound
    form = forms[0] if contradicted or shared.loss <= single.loss else forms[1]
    forms = [form, replace(form, routed_noise=ROUTED_NOISE)]
    return min(forms, key=partial(_new_models, timed)) if _mixed(timed) else form


def _mixed(rows: Sequence[TrainingRow]) -> bool:
    """Whether dense and routed models are among rows, so that the ones inform the others."""
    return len({bool(row.counts and row.counts.n_experts) for row in rows}) > 1


def _new_models(rows: Sequence[TrainingRow], form: TrainingStack) -> float:
    """Mean error of step times of models left out, by fits with the priors of physics [1]."""
    sample = StepSample.of(rows, form)
    groups = _groupings(rows).get(MODEL, _groupings(rows)[HALF])
    predicted, _ = _left_out(sample, groups, coefficient_priors())
    return float(np.abs(predicted / sample.seconds - 1).mean())


def scores_of(
    rows: Sequence[TrainingRow],
    form: TrainingStack | None = None,
    priors: Mapping[str, PriorCoefficient] | None = None,
) -> list[StackScores]:
    """Scores of the rows of one stack, dense and routed models apart.

    Without `priors` those after the other stacks that ship.
    """
    timed = [row for row in rows if row.usable]
    if len(timed) < LEAST_FIT:
        return []
    form = form or form_of(rows)
    priors = priors or stack_priors(rows[0].stack, shipped_findings())
    sample = StepSample.of(timed, form)
    left = {kind: _left_out(sample, groups, priors) for kind, groups in _groupings(timed).items()}
    routed = np.array([bool(row.counts and row.counts.n_experts) for row in timed])
    memory = _memory(rows, form)
    scores = []
    for part, where in (("dense", ~routed), ("routed", routed)):
        if not where.any():
            continue
        mfu = utilisation(sample)[where]
        errors = {
            k: _score(p[where], c[where], sample.seconds[where]) for k, (p, c) in left.items()
        }
        ratios = {k: sample.seconds[where] / p[where] for k, (p, _) in left.items()}
        regret = _regret(sample.take(where), left.get(MODEL, left[HALF])[0][where])
        scores.append(
            StackScores(timed[0].stack, part, int(where.sum()), errors, ratios,
                        int((mfu > 1).sum()), float(mfu.max()), regret,
                        memory if part == "dense" else None)
        )  # fmt: skip
    return scores


def utilisation(sample: StepSample) -> np.ndarray:
    """Model FLOP utilisation of rows, causal half of attention [1]."""
    return _least(sample) / sample.seconds


def _least(sample: StepSample) -> np.ndarray:
    """Causal arithmetic of each row at peak [s]."""
    return np.array([
        row.counts.flop(row.batch, row.sequence) / (row.chips * row.machine.peak)
        for row in sample.rows if row.counts and row.machine
    ])  # fmt: skip


def _groupings(rows: Sequence[TrainingRow]) -> dict[str, np.ndarray]:
    """What is left out together, by kind of leaving out."""
    half = np.random.default_rng(SEED).permutation(len(rows)) % 2
    groups = {HALF: half}
    names = {
        MODEL: [row.counts.name if row.counts else "" for row in rows],
        CHIP: [row.machine.chip if row.machine else "" for row in rows],
        WIDTH: [str(row.counts.hidden) if row.counts else "" for row in rows],
    }
    for kind, words in names.items():
        ids = np.unique(words, return_inverse=True)[1]
        if 1 < ids.max() + 1 <= MOST_GROUPS:
            groups[kind] = ids
    return groups


MOST_GROUPS = 30  # fits of one kind of leaving out


def _left_out(
    sample: StepSample, groups: np.ndarray, priors: Mapping[str, PriorCoefficient]
) -> tuple[np.ndarray, np.ndarray]:
    """Step times of rows by fits to the other groups, and by the constant MFU of those [s]."""
    predicted, constant = np.empty(len(groups)), np.empty(len(groups))
    for group in np.unique(groups):
        out = groups == group
        fit = fit_steps(sample.take(~out), priors)
        predicted[out] = fit.predicted(sample.take(out))
        constant[out] = _constant(sample, out)
    return predicted, constant


def _constant(sample: StepSample, out: np.ndarray) -> np.ndarray:
    """Step times of the rows left out at the median MFU of the others [s]."""
    mfu, least = utilisation(sample), _least(sample)
    alike: dict[tuple[str, str, int, bool], list[float]] = defaultdict(list)
    keys = [_alike(row) for row in sample.rows]
    for i in np.flatnonzero(~out):
        alike[keys[i]].append(mfu[i])
    parts = np.array([key[-1] for key in keys])
    stay = {part: mfu[~out & (parts == part)] for part in (False, True)}
    anyhow = {part: np.median(each if each.size else mfu[~out]) for part, each in stay.items()}
    places = np.flatnonzero(out)
    return np.array(
        [least[i] / (np.median(alike.get(keys[i], [anyhow[keys[i][-1]]]))) for i in places]
    )


def _alike(row: TrainingRow) -> tuple[str, str, int, bool]:
    routed = bool(row.counts and row.counts.n_experts)
    recompute = int(row.layout.recompute) if row.layout is not None and not row.latent else -1
    return row.machine.chip if row.machine else "", row.precision, recompute, routed


def _score(predicted: np.ndarray, constant: np.ndarray, seconds: np.ndarray) -> ErrorScore:
    off, plain = (100 * np.abs(x / seconds - 1) for x in (predicted, constant))
    return ErrorScore(
        len(off), float(np.median(off)), float(off.mean()), float(np.median(plain)),
        float(plain.mean()), cross_coverage(seconds / predicted),
    )  # fmt: skip


def band_of(ratios: np.ndarray) -> tuple[float, float]:
    """Factors that hold COVERAGE of ratios of rows to come: conformal quantiles of both tails."""
    logs, n = np.sort(np.log(ratios)), len(ratios)
    tail = (1 - COVERAGE) / 2
    low = logs[max(0, int(np.floor((n + 1) * tail)) - 1)]
    high = logs[min(n - 1, int(np.ceil((n + 1) * (1 - tail))) - 1)]
    return float(np.exp(low)), float(np.exp(high))


def cross_coverage(ratios: np.ndarray) -> float:
    """Share of rows in the band that the other rows give [%], over folds."""
    n = len(ratios)
    if n < 2 * FOLDS:
        return float("nan")
    folds = np.random.default_rng(SEED).permutation(n) % FOLDS
    inside = np.zeros(n, dtype=bool)
    for fold in range(FOLDS):
        low, high = band_of(ratios[folds != fold])
        here = folds == fold
        inside[here] = (ratios[here] >= low) & (ratios[here] <= high)
    return float(100 * inside.mean())


def _regret(sample: StepSample, predicted: np.ndarray) -> RegretScore | None:
    """What the layout chosen by predicted times loses, in every question with several layouts."""
    questions: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(sample.rows):
        questions[row.counts, row.sequence, row.chips, row.kernel, row.norm, row.batch,
                  row.precision, row.era].append(i)  # fmt: skip
    losses, rules, averages = [], [], []
    for members in questions.values():
        if len(members) < LEAST_GROUP:
            continue
        times = sample.seconds[members]
        losses.append(times[np.argmin(predicted[members])] / times.min() - 1)
        rules.append(times[_by_rule([sample.rows[i] for i in members])] / times.min() - 1)
        averages.append(times.mean() / times.min() - 1)
    if not losses:
        return None
    return RegretScore(
        len(losses), 100 * float(np.mean(losses)), int(np.sum(np.array(losses) <= 0.01)),
        100 * float(np.mean(rules)), 100 * float(np.mean(averages)),
    )  # fmt: skip


def _by_rule(rows: Sequence[TrainingRow]) -> int:
    layouts = [row.layout for row in rows if row.layout is not None]
    keys = [(int(x.recompute), int(x.tp) * int(x.pp), -int(x.micro_batch)) for x in layouts]
    return keys.index(min(keys))


def _memory(rows: Sequence[TrainingRow], form: TrainingStack) -> MemoryScore | None:
    """Memory calls by fits that leave each model out, where runs failed or peaks were measured."""
    failed = any(not row.fits for row in rows if not row.reason)
    telling = [row for row in rows if failed or row.peak is not None]
    if not telling:
        return None
    sample = MemorySample.of(telling, form)
    if not sample.rows:
        return None
    names = np.array([row.counts.name if row.counts else "" for row in sample.rows])
    used = np.empty(len(names))
    groups = np.unique(names, return_inverse=True)[1]
    if groups.max() == 0:
        groups = np.random.default_rng(SEED).permutation(len(names)) % 2
    for group in np.unique(groups):
        out = groups == group
        used[out] = fit_memory(sample.take(~out)).used(sample.take(out))
    calls, plain = used <= sample.capacity, UNFITTED.used(sample) <= sample.capacity
    peaked = np.isfinite(sample.peaks)
    off = 100 * np.abs(used[peaked] / sample.peaks[peaked] - 1)
    missed = calls[~sample.fits]
    return MemoryScore(
        len(names), 100 * float((calls == sample.fits).mean()),
        100 * float(missed.mean()) if missed.size else float("nan"),
        100 * float((plain == sample.fits).mean()), 100 * float((~sample.fits).mean()),
        int(peaked.sum()), float(np.median(off)) if off.size else float("nan"),
    )  # fmt: skip


def fitted(
    rows: Sequence[TrainingRow],
    form: TrainingStack,
    priors: Mapping[str, PriorCoefficient] | None = None,
) -> StepFit:
    """The fit of all rows of one stack that have a time.

    Without `priors` by physics alone, rows of routed models like the others: what a stack tells the
    others foretells their rows no better where those count less.
    """
    form = form if priors else replace(form, routed_noise=NOISE)
    return fit_steps(StepSample.of([row for row in rows if row.usable], form), priors)
