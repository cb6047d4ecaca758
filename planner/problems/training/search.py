"""The best layout of a training question: every layout of the lattice, as arrays, compared.

Chunks of rows by flags are timed together; of each row the best of its flags is noted, so that the
best of all, the next best of other layouts and the one nearest to fitting are read off at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from planner.problems.training.layout_lattice import (
    FLAGS,
    ROW_COLUMNS,
    LatticeBlock,
    lattice,
    no_layout_reason,
)
from planner.problems.training.plan import TrainingLayout
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import ResolvedTraining, TrainingCase
from planner.problems.training.step.step_times import step_times, usable
from planner.problems.training.step.training_task import LayoutTable
from planner.problems.training.worth import ChipCount
from planner.text.errors import FieldError

SHAPE = ("tp", "pp", "dp", "cp", "ep")  # layouts that differ in these are different
FRUGAL = ("recompute", "offload")  # whose first value makes every term least: nothing done again
FAST_OUTPUTS = ("step", "used")
MAX_IDLE_LAYOUTS = 3_000_000  # layouts that leave chips idle


@dataclass(frozen=True)
class RatedLayout:
    """One layout with its score, the time of its step [s], and the memory that it uses [byte]."""

    chips: ChipCount
    layout: LayoutTable
    score: float
    step: float
    used: float

    @property
    def words(self) -> dict[str, int | str | bool]:
        """The layout in the words of a scenario."""
        return self.layout.words()

    @property
    def shape(self) -> tuple[object, ...]:
        """System, chips, and the axes that make a layout another one."""
        words = self.words
        return (self.chips.case.system.name, self.chips.used, *(words[axis] for axis in SHAPE))

    @property
    def choice(self) -> str:
        """The layout in short words."""
        return TrainingLayout(**self.words).text  # type: ignore[arg-type]


@dataclass
class LayoutCounts:
    """Counts of the layouts searched, and the best layouts of the rows.

    `seen` layouts were timed, `fitting` of them fit into memory, `within` keep the limits too;
    `best` are the best of each row, `free` the best of all without memory and limits, `nearest`
    the one that needs least memory of what there is, `unlimited` the best that fits, limits apart.
    `fewest` chips were tried of numbers that leave some idle.
    """

    seen: int = 0
    fitting: int = 0
    within: int = 0
    best: list[RatedRows] = field(default_factory=list)
    free: RatedLayout | None = None
    nearest: RatedLayout | None = None
    unlimited: RatedLayout | None = None
    fewest: int | None = None

    def ranked(self, count: int) -> list[RatedLayout]:
        """The best layouts of different shapes, at most `count`, best first."""
        pairs = [
            (score, k, i)
            for k, rows in enumerate(self.best)
            for i, score in zip(*rows.first(200), strict=True)
        ]
        layouts: dict[tuple[object, ...], RatedLayout] = {}
        for _, k, i in sorted(pairs):
            rated = self.best[k].at(i)
            layouts.setdefault(rated.shape, rated)
            if len(layouts) == count:
                break
        return list(layouts.values())


@dataclass(frozen=True)
class RatedRows:
    """The rows of a chunk, the best flags of each, its score, step [s] and memory [byte]."""

    chips: ChipCount
    chunk: LayoutTable
    flags: np.ndarray
    score: np.ndarray
    step: np.ndarray
    used: np.ndarray

    def first(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the best rows and their scores; rows without a plan are left out."""
        order = np.argsort(self.score, kind="stable")[:count]
        order = order[np.isfinite(self.score[order])]
        return order, self.score[order]

    def at(self, row: int) -> RatedLayout:
        """The best layout of a row."""
        layout = self.chunk.at((int(row), int(self.flags[row])))
        numbers = (float(x[row]) for x in (self.score, self.step, self.used))
        return RatedLayout(self.chips, layout, *numbers)


def search_layouts(resolution: ResolvedTraining) -> LayoutCounts:
    """Every layout of every system and number of chips.

    Raises FieldError where no layout uses the chips.
    """
    tally = LayoutCounts()
    for chips, blocks in chip_counts(resolution):
        if chips.used < chips.paid:
            tally.fewest = min(chips.used, tally.fewest or chips.used)
        for block in blocks:
            for chunk in block.chunks():
                _time(tally, chips, chunk)
    return tally


def chip_counts(resolution: ResolvedTraining) -> Iterator[tuple[ChipCount, Sequence[LatticeBlock]]]:
    """Numbers of chips paid and used, each with the layouts that use exactly that number.

    Raises FieldError where no layout uses the chips.
    """
    question, empty = resolution.question, True
    for case in resolution.cases:
        for paid in question.chips:
            for used, blocks in _used(question, case, paid):
                empty = False
                yield ChipCount(question, case, paid, used), blocks
    if empty:
        raise FieldError(no_layout_reason(resolution.cases[0].divisions, question))


def _used(
    question: TrainingQuestion, case: TrainingCase, paid: int
) -> Iterator[tuple[int, Sequence[LatticeBlock]]]:
    """All chips that are paid; where no layout uses all, fewer, the largest numbers first.

    Numbers down to half of them are tried: below, twice the replicas would use more. Those that
    are asked about by themselves are left out: there nothing is idle. It ends when MOST_IDLE
    layouts were yielded.
    """
    blocks, layouts = lattice(case.divisions, question.choose, paid), 0
    if blocks:
        yield paid, blocks
        return
    covered = False
    for used in range(paid - 1, 0, -1):
        if layouts > MAX_IDLE_LAYOUTS or (covered and used <= paid // 2):
            return
        if used in question.chips:
            covered = True
            continue
        blocks = lattice(case.divisions, question.choose, used)
        if blocks:
            covered = True
            layouts += sum(len(block.rows) * len(block.flags) for block in blocks)
            yield used, blocks


def _time(tally: LayoutCounts, chips: ChipCount, chunk: LayoutTable) -> None:
    """Time the layouts of a chunk and note the best of each row."""
    case = chips.case
    times = step_times(case.task, chunk, FAST_OUTPUTS)
    shape = chunk.shape
    step, used = (np.broadcast_to(np.asarray(x), shape) for x in (times.step, times.used))
    again = np.asarray(case.forward_again)[np.asarray(chunk.recompute)]
    score = np.broadcast_to(chips.score(step, again), shape)
    fits = used <= usable(case.task)
    within = fits & chips.within(step, again)
    tally.seen += score.size
    tally.fitting += int(np.count_nonzero(fits))
    tally.within += int(np.count_nonzero(within))
    _note(tally, "free", chips, chunk, (score, step, used), score)
    _note(tally, "nearest", chips, chunk, (score, step, used), used / usable(case.task))
    if within is not fits:
        limited = np.where(fits, score, inf)
        _note(tally, "unlimited", chips, chunk, (score, step, used), limited)
    scored = np.where(within, score, inf)
    flags = scored.argmin(axis=1)
    rows = np.arange(shape[0])
    picked = (x[rows, flags] for x in (scored, step, used))
    tally.best.append(RatedRows(chips, chunk, flags, *picked))


def _note(
    tally: LayoutCounts, name: str, chips: ChipCount, chunk: LayoutTable,
    numbers: tuple[np.ndarray, ...], ranking: np.ndarray,
) -> None:  # fmt: skip
    """Keep the best-ranked layout of a chunk under `name`, unless an earlier layout is better."""
    place = int(ranking.argmin())
    if not np.isfinite(ranking.flat[place]):
        return
    score, step, used = (float(x.flat[place]) for x in numbers)
    before: RatedLayout | None = getattr(tally, name)
    if before is not None and _rank(name, before) <= float(ranking.flat[place]):
        return
    setattr(tally, name, RatedLayout(chips, chunk.at(place), score, step, used))


def _rank(name: str, rated: RatedLayout) -> float:
    return rated.used / usable(rated.chips.case.task) if name == "nearest" else rated.score


def relaxed_steps(tally: LayoutCounts) -> Iterator[tuple[ChipCount, float]]:
    """For each number of chips the relaxed time of a step [s]; none where no layout fits.

    The least of a sum is not below the sum of the least: of the rows with some layout that keeps
    memory and limits, every term is taken where it is smallest, whichever layout that is.
    """
    least: dict[int, tuple[ChipCount, dict[str, float]]] = {}
    for rows in tally.best:
        chips, terms = least.setdefault(id(rows.chips), (rows.chips, {}))
        for name, value in _least_terms(rows).items():
            terms[name] = min(value, terms.get(name, value))
    for chips, terms in least.values():
        if terms:
            yield chips, sum(terms.values())


def _least_terms(rows: RatedRows) -> dict[str, float]:
    """Minimum of each term [s] over the feasible rows."""
    fitting = np.flatnonzero(np.isfinite(rows.score))
    if not fitting.size:
        return {}
    columns = rows.chunk.columns()
    flags = np.stack([np.asarray(columns[name])[0] for name in FLAGS], axis=1)
    light = np.all([
        flags[:, FLAGS.index(name)] == flags[:,
                             FLAGS.index(name)].min() for name in FRUGAL
    ], axis=0)  # fmt: skip
    chosen = flags[light].T[:, None, :]
    named = {name: np.asarray(columns[name])[fitting] for name in ROW_COLUMNS}
    layouts = LayoutTable(**named, **dict(zip(FLAGS, chosen, strict=True)))
    terms = step_times(rows.chips.case.task, layouts, ("step", "terms")).terms
    return {name: float(np.min(value)) for name, value in terms.items()}
