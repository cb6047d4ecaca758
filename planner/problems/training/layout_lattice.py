"""Every layout that a question allows: rows of divisor tuples, columns of choices, and what goes
together.

A block is rows (n, 1) by flags (1, m): layouts with one schedule rule each, so that few of them are
computed in vain. Rows hold tp, pp, dp, cp, ep, tp_expert, micro-batch and virtual stages; flags
schedule, recompute, ZeRO stage, offload, sequence parallelism and overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from planner.problems.training.question import TrainingChoose
from planner.problems.training.step.training_layouts import (
    OFFLOAD,
    RECOMPUTE,
    SCHEDULES,
    TrainingLayouts,
)

ROWS = ("tp", "pp", "dp", "cp", "ep", "tp_expert", "micro_batch", "virtual_stages")
FLAGS = ("schedule", "recompute", "zero", "offload", "sequence_parallel", "overlap")
PLAIN, INTERLEAVED = SCHEDULES.index("1f1b"), SCHEDULES.index("interleaved")
LAYOUTS_AT_ONCE = 400_000  # of a chunk: its arrays take about 3 MB each
Row = tuple[int, ...]


@dataclass(frozen=True)
class ModelDivisions:
    """What of a model and its work layouts divide.

    Attributes
    ----------
    heads, layers : of the model.
    ends : what embedding and head count as where the stack cuts stages, in layers.
    experts : routed experts of a layer; 0 for a dense model.
    sequence : tokens of a sequence.
    batch : sequences of an optimiser step.
    deepest_zero : the largest ZeRO stage that the stack runs under a pipeline.
    reversible : whether the layers can be run backwards.
    """

    heads: int
    layers: int
    ends: int
    experts: int
    sequence: int
    batch: int
    deepest_zero: int
    reversible: bool

    def cuts(self, pieces: int) -> list[int]:
        """Layers that pieces of equal length can be cut from: with the ends counted, or without."""
        return [n for n in {self.layers, self.layers + self.ends} if not n % pieces]


@dataclass(frozen=True)
class LatticeBlock:
    """Layouts of one schedule rule: rows (n, 8) of whole numbers, flags (m, 6) of codes."""

    rows: np.ndarray
    flags: np.ndarray

    def chunks(self, most: int = LAYOUTS_AT_ONCE) -> Iterator[TrainingLayouts]:
        """The layouts in parts of at most `most`, each rows (n, 1) by flags (1, m)."""
        step = max(1, most // len(self.flags))
        for start in range(0, len(self.rows), step):
            rows = self.rows[start : start + step].T[:, :, None]
            columns = self.flags.T[:, None, :]
            named = zip((*ROWS, *FLAGS), (*rows, *columns), strict=True)
            yield TrainingLayouts(**dict(named))


def divisors(number: int) -> list[int]:
    """The divisors of a whole number, the least first."""
    small = [n for n in range(1, int(number**0.5) + 1) if not number % n]
    return sorted({*small, *(number // n for n in small)})


def allowed_of(values: Sequence[int] | None, candidates: Sequence[int]) -> list[int]:
    """The candidates that a choice allows; all where nothing is chosen."""
    return [n for n in candidates if values is None or n in values]


def lattice(of: ModelDivisions, choose: TrainingChoose, chips: int) -> list[LatticeBlock]:
    """The blocks of all layouts that use exactly so many chips; empty where there are none."""
    blocks: dict[RowKind, list[Row]] = {}
    for row in _rows(of, choose, chips):
        blocks.setdefault(_kind(of, row), []).append(row)
    flagged = ((rows, list(_flags(of, choose, kind))) for kind, rows in blocks.items())
    return [LatticeBlock(np.array(rows), np.array(flags)) for rows, flags in flagged if flags]


@dataclass(frozen=True)
class RowKind:
    """Which flags go with a row.

    Whether it has a pipeline, `interleaved` virtual stages, micro-batches that fill the pipeline,
    and tensor parallelism.
    """

    staged: bool
    interleaved: bool
    filled: bool
    sharded: bool


def _kind(of: ModelDivisions, row: Row) -> RowKind:
    tp, pp, dp, *_, micro, v = row
    return RowKind(pp > 1, v > 1, of.batch // (dp * micro) >= pp, tp > 1)


def _rows(of: ModelDivisions, choose: TrainingChoose, chips: int) -> Iterator[Row]:
    """Divisor tuples (tp, pp, dp, cp, ep, tp_expert, micro-batch, virtual stages)."""
    every = divisors(chips)
    for tp in allowed_of(choose.tp, [n for n in every if not of.heads % n]):
        for cp in allowed_of(choose.cp, [n for n in divisors(chips // tp) if not of.sequence % n]):
            left = chips // (tp * cp)
            for pp in allowed_of(choose.pp, [n for n in divisors(left) if n <= of.layers]):
                dp = left // pp
                if of.batch % dp or (choose.dp is not None and dp not in choose.dp):
                    continue
                for experts in _expert_groups(of, choose, tp, tp * cp * dp):
                    for micro in allowed_of(choose.micro_batch, divisors(of.batch // dp)):
                        for v in _virtual(of, choose, pp, of.batch // (dp * micro)):
                            yield tp, pp, dp, cp, *experts, micro, v


def _expert_groups(
    of: ModelDivisions, choose: TrainingChoose, tp: int, ranks: int
) -> Iterator[tuple[int, int]]:
    """Pairs (ep, tp_expert) whose product divides the ranks of a stage.

    Unless tp_expert is chosen an expert is whole, or shared as the other matrices are.
    """
    if not of.experts:
        if choose.ep is None or 1 in choose.ep:
            yield 1, tp
        return
    free = divisors(tp) if choose.tp_expert is not None else sorted({1, tp})
    for shards in allowed_of(choose.tp_expert, free):
        for ep in allowed_of(choose.ep, divisors(of.experts)):
            if not ranks % (ep * shards):
                yield ep, shards


def _virtual(of: ModelDivisions, choose: TrainingChoose, pp: int, n_micro: int) -> Iterator[int]:
    """Virtual stages of a stage: one, and more where interleaving is allowed and goes up."""
    schedules = choose.schedule or SCHEDULES
    if (pp == 1 or set(schedules) - {"interleaved"}) and (
        choose.virtual_stages is None or 1 in choose.virtual_stages
    ):
        yield 1
    if pp == 1 or "interleaved" not in schedules or n_micro % pp:
        return
    every = {v for cut in of.cuts(pp) for v in divisors(cut // pp)}
    yield from allowed_of(choose.virtual_stages, sorted(every - {1}))


def _flags(of: ModelDivisions, choose: TrainingChoose, kind: RowKind) -> Iterator[Row]:
    """Codes (schedule, recompute, ZeRO, offload, sequence parallel, overlap), the plainest first.

    Without a pipeline all schedules are one; zero-bubble needs a pipeline that its micro-batches
    fill; without tp there is nothing for sequence parallelism to divide.
    """
    schedules = _codes(SCHEDULES, choose.schedule, ("1f1b", "zero-bubble", "gpipe"))
    unfilled = None if kind.filled else SCHEDULES.index("zero-bubble")
    schedules = [code for code in schedules if code not in (INTERLEAVED, unfilled)]
    if not kind.staged:
        schedules = [PLAIN]
    elif kind.interleaved:
        schedules = [INTERLEAVED]
    again = _codes(RECOMPUTE, choose.recompute, RECOMPUTE if of.reversible else RECOMPUTE[:3])
    zero = allowed_of(choose.zero, range(4 if not kind.staged else of.deepest_zero + 1))
    along = [int(x) for x in choose.sequence_parallel or (False, True)]
    if not kind.sharded:
        along = [x for x in along if not x]
    overlap = [int(x) for x in choose.overlap or (False, True)]
    return product(schedules, again, zero, _codes(OFFLOAD, choose.offload, OFFLOAD), along, overlap)


def _codes(words: Sequence[str], chosen: Sequence[str] | None, free: Sequence[str]) -> list[int]:
    """Codes of the words that are chosen, of those of `free` where nothing is."""
    return [words.index(word) for word in (chosen or free)]
