"""How far fits of training steps are from rows they never saw, by stack."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from planner.catalogue.training.training_stacks import training_stack, training_stack_names
from planner.measurements.readers import detect_file_kind
from planner.measurements.readers.file_kinds import table
from planner.measurements.readers.sheets import open_tables
from planner.measurements.readers.training_rows import (
    SCORED_SEPARATELY_NOTE,
    TrainingRow,
    training_rows,
)
from planner.measurements.training_steps import TRAINING, predicted_seconds
from planner.text.errors import InputError
from tools.fit.rl_fit import RlScores, rl_scores
from tools.fit.stack_scores import JudgedStack, by_stack, judged

REINFORCEMENT = "reinforcement learning"
SHOWN = 8  # line numbers of one reason


@dataclass(frozen=True)
class TrainingScores:
    """Scores by stack, and the rows that no fit saw with the reason."""

    scores: tuple[JudgedStack, ...]
    refused: tuple[TrainingRow, ...]
    rows: int
    selective: tuple[TrainingRow, ...] = ()
    tuned: tuple[TrainingRow, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """Everything as plain data; errors in percent."""
        return {
            "kind": "training scores",
            "rows": self.rows,
            "stacks": [_stack(score) for score in self.scores],
            "selective": [
                {"id": row.id, "line": row.line, "mfu_full": full, "mfu_causal": causal}
                for row, full, causal in utilisations(self.selective)
            ],
            "fine-tunes": [
                {"id": row.id, "line": row.line, "reason": row.reason, "error": 100 * error}
                for row, error in tuned_errors(self.tuned)
            ],
            "refused": [
                {"line": row.line, "id": row.id, "reason": row.reason} for row in self.refused
            ],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def unseen_scores(paths: Sequence[Path]) -> TrainingScores | RlScores | None:
    """Errors of training steps, or of reinforcement learning, on rows left out.

    None where files are no such tables.
    """
    if any(path.is_dir() for path in paths):
        return None
    kinds = {detect_file_kind(open_tables(path)) for path in paths}
    if kinds == {REINFORCEMENT} and len(paths) == 1:
        return rl_scores(table(paths[0], {}))
    return training_scores(paths) if kinds == {TRAINING} else None


def training_scores(paths: Sequence[Path]) -> TrainingScores:
    """Scores of every stack with enough rows; raises InputError where none has."""
    rows = [row for path in paths for row in training_rows(path)]
    scores = [score for stack in by_stack(rows).values() for score in judged(stack)]
    if not scores:
        raise InputError(f"{paths[0]}: no stack has enough rows with a step time to be fitted")
    refused = tuple(row for row in rows if row.reason)
    selective = tuple(row for row in rows if row.usable and _selective(row))
    tuned = tuple(
        row
        for row in rows
        if row.seconds
        and row.reason.endswith(SCORED_SEPARATELY_NOTE)
        and row.stack in training_stack_names()
    )
    return TrainingScores(tuple(scores), refused, len(rows), selective, tuned)


def tuned_errors(rows: Sequence[TrainingRow]) -> Iterator[tuple[TrainingRow, float]]:
    """Predicted over measured step time of fine-tunes, less one, by the stacks that ship [1].

    Those were fitted to pre-training alone.
    """
    for row in rows:
        if row.seconds:
            yield row, predicted_seconds(row, training_stack(row.stack)) / row.seconds - 1


def utilisations(rows: Sequence[TrainingRow]) -> Iterator[tuple[TrainingRow, float, float]]:
    """MFU of each row [1], its attention counted in full and by its causal half."""
    for row in rows:
        if row.machine is not None:
            full, causal, _ = row.flop_rates()
            yield row, full / row.machine.peak, causal / row.machine.peak


def _selective(row: TrainingRow) -> bool:
    return row.layout is not None and row.layout.words()["recompute"] == "selective"


def _stack(score: JudgedStack) -> dict[str, object]:
    return {
        "stack": score.scores.stack,
        "part": score.scores.part,
        "n": score.scores.n,
        "errors": {
            kind: _finite({**asdict(error), "coverage": score.coverage[kind]})
            for kind, error in score.scores.errors.items()
        },
        "below_bound": score.below_bound,
        "highest_mfu": score.highest_mfu,
        "regret": asdict(score.regret) if score.regret else None,
        "memory": _finite(asdict(score.memory)) if score.memory else None,
    }


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _lines(report: TrainingScores) -> Iterator[str]:
    yield f"{report.rows} rows; absolute errors of step time on rows left out, median / mean [%]"
    yield (
        f"{'stack':<26}{'part':<8}{'left out':<13}{'n':>5}{'error':>14}{'constant MFU':>16}"
        f"{'in 80 % band':>14}"
    )
    for score in report.scores:
        for kind, error in score.scores.errors.items():
            both = f"{error.median:.1f} / {error.mean:.1f}"
            plain = f"{error.constant_median:.1f} / {error.constant_mean:.1f}"
            share, of = score.coverage[kind], score.scores
            inside = f"{share:.0f} %" if math.isfinite(share) else "too few"
            head = f"{of.stack:<26}{of.part:<8}{kind:<13}{error.n:>5}"
            yield f"{head}{both:>14}{plain:>16}{inside:>14}"
    for score in report.scores:
        yield from _choices_and_memory(score)
    for row, full, causal in utilisations(report.selective):
        yield (
            f"MFU of {row.id} (selective recomputation): {full:.2%} with full attention, "
            f"{causal:.2%} with its causal half"
        )
    yield from _fine_tunes(report.tuned)
    reasons = Counter(row.reason for row in report.refused)
    yield f"{len(report.refused)} rows not used"
    for reason, count in reasons.most_common():
        lines = [str(row.line) for row in report.refused if row.reason == reason]
        more = ", ..." if len(lines) > SHOWN else ""
        yield f"  {count}: {reason} (lines {', '.join(lines[:SHOWN])}{more})"


def _fine_tunes(rows: Sequence[TrainingRow]) -> Iterator[str]:
    """Errors of fine-tunes, of all weights and of adapters apart."""
    errors: dict[str, list[float]] = {}
    for row, error in tuned_errors(rows):
        errors.setdefault(row.reason, []).append(100 * error)
    for reason, offs in sorted(errors.items()):
        sizes = [abs(off) for off in offs]
        yield (
            f"{reason}: {len(offs)} rows, error {median(sizes):.1f} / {fmean(sizes):.1f} % "
            f"(mean with its sign {fmean(offs):+.1f} %)"
        )


def _choices_and_memory(score: JudgedStack) -> Iterator[str]:
    """Lines on the bound, on choices by predicted times, and on memory."""
    of = score.scores
    bound = f"{score.below_bound} of {of.n} rows below the bound"
    yield f"{of.stack}, {of.part}: {bound}, highest MFU {score.highest_mfu:.2f}"
    choice, memory = score.regret, score.memory
    if choice:
        yield (
            f"  choice: {choice.mean:.1f} % slower than the best of {choice.groups} questions, "
            f"{choice.within} within 1 %; by rule {choice.rule:.1f} %, at random "
            f"{choice.average:.1f} %"
        )
    if memory and memory.always:
        yield (
            f"  memory: {memory.right:.1f} % of {memory.n} runs called right, a model out "
            f"(formulas alone {memory.unfitted:.1f} %, always a failure {memory.always:.1f} %); "
            f"{memory.fail_as_fit:.1f} % of failures called fitting"
        )
    if memory and memory.peaks:
        yield f"  memory: median error of {memory.peaks} peaks {memory.peak:.1f} %, a model out"
