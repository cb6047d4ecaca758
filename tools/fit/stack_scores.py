"""What fits of training stacks are worth: choices of layouts, memory, bands, on rows left out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.calibration.cross_validation import quantiles
from planner.calibration.stack_file import (
    HALF,
    MIN_FIT_ROWS,
    MODEL,
    SEED,
    StackScores,
    fit_power,
    model_masks,
    network_form,
    power_scores,
    stack_table,
    stack_text,
    utilisation,
)
from planner.calibration.stack_fit import (
    ABSENT_TERMS,
    MEMORY,
    MemoryFit,
    MemorySample,
    StepSample,
    coefficient_estimates,
    fit_memory,
    shipped_findings,
    stack_priors,
)
from planner.catalogue.training import training_stacks
from planner.catalogue.training.training_stacks import TrainingStack
from planner.measurements.readers.training_rows import TrainingRow, training_rows

CATALOGUE = Path(training_stacks.__file__).parents[1] / training_stacks.FILE
FIRST = "[stack.megatron"  # priors and the stack of physics alone stand before what is fitted


def catalogue_text(kept_text: str, tables: Sequence[Path]) -> str:
    """The catalogue's text, its fitted stacks replaced by fits of these tables."""
    text = kept_text[: kept_text.index(FIRST)]
    stacks = {
        name: rows
        for path in tables
        for name, rows in by_stack(training_rows(path)).items()
        if sum(row.usable for row in rows)
    }
    findings = {
        name: coefficient_estimates(fit_power(rows, network_form(rows)))
        for name, rows in stacks.items()
    }
    for name, rows in stacks.items():
        text += stack_text(stack_table(name, rows, findings=findings), f"stack.{name}.") + "\n"
    return text


def write_stacks(tables: Sequence[Path]) -> None:
    """Fit the stacks of tables, and write them into the catalogue."""
    kept = CATALOGUE.read_text(encoding="utf-8")
    CATALOGUE.write_text(catalogue_text(kept, tables), encoding="utf-8")


FOLDS = 5

LEAST_GROUP = 3  # layouts of one question, from which on a choice means something


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


def by_stack(rows: Iterable[TrainingRow]) -> dict[str, list[TrainingRow]]:
    """Rows with a stack, those of each together."""
    stacks: dict[str, list[TrainingRow]] = defaultdict(list)
    for row in rows:
        if row.stack and not row.reason:
            stacks[row.stack].append(row)
    return dict(stacks)


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


UNFITTED = MemoryFit(np.zeros(len(MEMORY) + len(ABSENT_TERMS)))


@dataclass(frozen=True)
class JudgedStack:
    """Scores of one stack's rows, and what choices and calls by its fits are worth.

    `coverage` is the share of rows in the band that others give [%], by what was left out.
    """

    scores: StackScores
    coverage: Mapping[str, float]
    below_bound: int
    highest_mfu: float
    regret: RegretScore | None = None
    memory: MemoryScore | None = None


def judged(rows: Sequence[TrainingRow]) -> list[JudgedStack]:
    """Scores of the rows of one stack, by priors after the other stacks that ship."""
    timed = [row for row in rows if row.usable]
    if len(timed) < MIN_FIT_ROWS:
        return []
    form = network_form(rows)
    sample = StepSample.of(timed, form)
    scores = power_scores(timed, form, stack_priors(rows[0].stack, shipped_findings()))
    memory, stacks = _memory(rows, form), []
    for score, (_, where) in zip(scores, model_masks(timed), strict=True):
        mfu, part = utilisation(sample)[where], sample.take(where)
        ratios = score.ratios.get(MODEL, score.ratios[HALF])
        coverage = {kind: cross_coverage(ratio) for kind, ratio in score.ratios.items()}
        stacks.append(
            JudgedStack(score, coverage, int((mfu > 1).sum()), float(mfu.max()),
                        _regret(part, part.seconds / ratios),
                        memory if score.part == "dense" else None)
        )  # fmt: skip
    return stacks


def cross_coverage(ratios: np.ndarray) -> float:
    """Share of rows in the band that the other rows give [%], over folds."""
    n = len(ratios)
    if n < 2 * FOLDS:
        return float("nan")
    folds = np.random.default_rng(SEED).permutation(n) % FOLDS
    inside = np.zeros(n, dtype=bool)
    for fold in range(FOLDS):
        low, high = quantiles(ratios[folds != fold])
        here = folds == fold
        inside[here] = (ratios[here] >= low) & (ratios[here] <= high)
    return float(100 * inside.mean())
