"""Every layout that a question allows: rows of divisor tuples, columns of choices, and what goes
together.

A block is rows (n, 1) by flags (1, m): layouts with one schedule rule each, so that few of them are
computed in vain. Rows hold tp, pp, dp, cp, ep, tp_expert, micro-batch and virtual stages; flags
schedule, recompute, ZeRO stage, offload, sequence parallelism and overlap.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from planner.catalogue.training.training_stacks import training_stack, training_stack_names
from planner.problems.training.question import TrainingChoose, TrainingQuestion
from planner.problems.training.step.training_task import OFFLOAD, RECOMPUTE, SCHEDULES, LayoutTable

ROW_COLUMNS = ("tp", "pp", "dp", "cp", "ep", "tp_expert", "micro_batch", "virtual_stages")
FLAGS = ("schedule", "recompute", "zero", "offload", "sequence_parallel", "overlap")
SCHEDULE_1F1B, SCHEDULE_INTERLEAVED = SCHEDULES.index("1f1b"), SCHEDULES.index("interleaved")
LAYOUTS_AT_ONCE = 400_000  # of a chunk: its arrays take about 3 MB each
LayoutRow = tuple[int, ...]


@dataclass(frozen=True)
class ModelDivisions:
    """Counts of a model and its work that the degrees of a layout divide.

    Attributes:
        heads, layers: of the model.
        ends: what embedding and head count as where the stack cuts stages, in layers.
        experts: routed experts of a layer; 0 for a dense model.
        sequence: tokens of a sequence.
        batch: sequences of an optimiser step.
        deepest_zero: the largest ZeRO stage that the stack runs under a pipeline.
        reversible: whether the layers can be run backwards.
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

    def chunks(self, most: int = LAYOUTS_AT_ONCE) -> Iterator[LayoutTable]:
        """The layouts in parts of at most `most`, each rows (n, 1) by flags (1, m)."""
        step = max(1, most // len(self.flags))
        for start in range(0, len(self.rows), step):
            rows = self.rows[start : start + step].T[:, :, None]
            columns = self.flags.T[:, None, :]
            named = zip((*ROW_COLUMNS, *FLAGS), (*rows, *columns), strict=True)
            yield LayoutTable(**dict(named))


def divisors(number: int) -> list[int]:
    """The divisors of a whole number, the least first."""
    small = [n for n in range(1, int(number**0.5) + 1) if not number % n]
    return sorted({*small, *(number // n for n in small)})


def filter_allowed(values: Sequence[int] | None, candidates: Sequence[int]) -> list[int]:
    """Candidates that a choice allows; all of them if the choice is None."""
    return [n for n in candidates if values is None or n in values]


def lattice(of: ModelDivisions, choose: TrainingChoose, chips: int) -> list[LatticeBlock]:
    """Blocks of all layouts that use exactly `chips` chips; empty if no layout does."""
    blocks: dict[RowKind, list[LayoutRow]] = {}
    for row in _rows(of, choose, chips):
        tp, pp, dp, *_, micro, v = row
        blocks.setdefault(
            RowKind(pp > 1, v > 1, of.batch // (dp * micro) >= pp, tp > 1), []
        ).append(row)
    flagged = ((rows, list(_flags(of, choose, kind))) for kind, rows in blocks.items())
    return [LatticeBlock(np.array(rows), np.array(flags)) for rows, flags in flagged if flags]


@dataclass(frozen=True)
class RowKind:
    """Properties of a row that decide its possible flags.

    Whether it has a pipeline, `interleaved` virtual stages, micro-batches that fill the pipeline,
    and tensor parallelism.
    """

    staged: bool
    interleaved: bool
    filled: bool
    sharded: bool


def _rows(of: ModelDivisions, choose: TrainingChoose, chips: int) -> Iterator[LayoutRow]:
    """Divisor tuples (tp, pp, dp, cp, ep, tp_expert, micro-batch, virtual stages)."""
    every = divisors(chips)
    for tp in filter_allowed(choose.tp, [n for n in every if not of.heads % n]):
        for cp in filter_allowed(
            choose.cp, [n for n in divisors(chips // tp) if not of.sequence % n]
        ):
            left = chips // (tp * cp)
            for pp in filter_allowed(choose.pp, [n for n in divisors(left) if n <= of.layers]):
                dp = left // pp
                if of.batch % dp or (choose.dp is not None and dp not in choose.dp):
                    continue
                for experts in _expert_groups(of, choose, tp, tp * cp * dp):
                    for micro in filter_allowed(choose.micro_batch, divisors(of.batch // dp)):
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
    for shards in filter_allowed(choose.tp_expert, free):
        for ep in filter_allowed(choose.ep, divisors(of.experts)):
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
    yield from filter_allowed(choose.virtual_stages, sorted(every - {1}))


def _flags(of: ModelDivisions, choose: TrainingChoose, kind: RowKind) -> Iterator[LayoutRow]:
    """Codes (schedule, recompute, ZeRO, offload, sequence parallel, overlap), the plainest first.

    Without a pipeline all schedules are one; zero-bubble needs a pipeline that its micro-batches
    fill; without tp there is nothing for sequence parallelism to divide.
    """
    schedules = _codes(SCHEDULES, choose.schedule, ("1f1b", "zero-bubble", "gpipe"))
    unfilled = None if kind.filled else SCHEDULES.index("zero-bubble")
    schedules = [code for code in schedules if code not in (SCHEDULE_INTERLEAVED, unfilled)]
    if not kind.staged:
        schedules = [SCHEDULE_1F1B]
    elif kind.interleaved:
        schedules = [SCHEDULE_INTERLEAVED]
    again = _codes(RECOMPUTE, choose.recompute, RECOMPUTE if of.reversible else RECOMPUTE[:3])
    zero = filter_allowed(choose.zero, range(4 if not kind.staged else of.deepest_zero + 1))
    along = [int(x) for x in choose.sequence_parallel or (False, True)]
    if not kind.sharded:
        along = [x for x in along if not x]
    overlap = [int(x) for x in choose.overlap or (False, True)]
    return product(schedules, again, zero, _codes(OFFLOAD, choose.offload, OFFLOAD), along, overlap)


def _codes(words: Sequence[str], chosen: Sequence[str] | None, free: Sequence[str]) -> list[int]:
    return [words.index(word) for word in (chosen or free)]


Fault = tuple[str, str]  # key and words
MAX_LISTED_DIVISORS = 8  # divisors that are listed


def layout_faults(of: ModelDivisions, layout: Mapping[str, int | str]) -> Iterator[Fault]:
    """Inconsistencies within one layout: the key at fault, and the reason.

    `layout` has the words of the scenario: tp, pp, dp, cp, ep, tp_expert, micro_batch,
    virtual_stages, schedule, recompute, zero.
    """
    whole = {key: int(value) for key, value in layout.items() if isinstance(value, int)}
    single = [words for key, value in whole.items() for words in _single(of, key, value)]
    yield from single
    if not single:
        yield from _joint(of, whole)
    yield from _staged(of, whole, str(layout["schedule"]))
    if layout["recompute"] == "reversible" and not of.reversible:
        yield "recompute", "the model is not declared so; give reversible: true"


def choose_faults(of: ModelDivisions, choose: TrainingChoose) -> Iterator[Fault]:
    """Choices without a valid value, each with the fault of the first value."""
    values: dict[str, list[int]] = {
        key: [*chosen]
        for key, chosen in choose
        if chosen is not None and type(next(iter(chosen))) is int
    }
    wrong = set()
    for key, chosen in values.items():
        faults = [list(_single(of, key, value)) for value in chosen]
        if all(faults):
            wrong.add(key)
            yield faults[0][0]
    if {"dp", "micro_batch"} <= values.keys() and not wrong & {"dp", "micro_batch"}:
        pairs = [*product(values["dp"], values["micro_batch"])]
        if all(of.batch % (dp * micro) for dp, micro in pairs):
            yield "micro_batch", _undivided(of, *pairs[0])
    pp = values.get("pp", [1, of.layers])
    virtual, schedules = values.get("virtual_stages", [1]), choose.schedule or ("interleaved",)
    if min(virtual) > 1 and (max(pp) == 1 or "interleaved" not in schedules):
        yield "virtual_stages", _no_stages(min(virtual), max(pp))
    zero = values.get("zero", [0])
    if min(zero) > of.deepest_zero and min(pp) > 1:
        yield "zero", _sharded(of, min(zero), min(pp))
    if schedules == ("interleaved",) and choose.schedule and max(pp) == 1:
        yield "schedule", "interleaving needs a pipeline, but choose.pp is 1"


def _single(of: ModelDivisions, key: str, value: int) -> Iterator[Fault]:
    check = _CHECKS.get(key)
    words = check(of, value) if check else None
    if words:
        yield key, words


def _heads(of: ModelDivisions, tp: int) -> str | None:
    if of.heads % tp:
        return f"{of.heads} heads are not divisible by {tp}; tp may be {_listed(of.heads)}"
    return None


def _stages(of: ModelDivisions, pp: int) -> str | None:
    return f"{pp} stages, but the model has {of.layers} layers" if pp > of.layers else None


def _along(of: ModelDivisions, cp: int) -> str | None:
    if cp > of.sequence:
        return f"cp {cp} is longer than the sequence of {of.sequence:,} tokens"
    if of.sequence % cp:
        return f"{of.sequence:,} tokens of a sequence are not divisible by cp {cp}"
    return None


def _experts(of: ModelDivisions, ep: int) -> str | None:
    if ep > 1 and not of.experts:
        return f"the model is dense: it has no experts for ep {ep}; leave ep out"
    if of.experts % ep:
        return f"{of.experts} experts are not divisible by {ep}; ep may be {_listed(of.experts)}"
    return None


def _replicas(of: ModelDivisions, dp: int) -> str | None:
    if of.batch % dp:
        return (
            f"a batch of {of.batch:,} sequences is not divisible by dp {dp}; "
            f"dp may be {_listed(of.batch)}"
        )
    return None


_CHECKS: Mapping[str, Callable[[ModelDivisions, int], str | None]] = {
    "tp": _heads, "pp": _stages, "cp": _along, "ep": _experts, "dp": _replicas,
    "micro_batch": lambda of, micro: _undivided(of, 1, micro) if of.batch % micro else None,
}  # fmt: skip


def _joint(of: ModelDivisions, layout: Mapping[str, int]) -> Iterator[Fault]:
    """Faults of the degrees of a layout in combination."""
    dp, micro = layout["dp"], layout["micro_batch"]
    if of.batch % (dp * micro):
        yield "micro_batch", _undivided(of, dp, micro)
    ranks = layout["tp"] * layout["cp"] * dp
    experts = layout["ep"] * layout["tp_expert"]
    if of.experts and ranks % experts:
        yield (
            "ep",
            (
                f"ep {layout['ep']} * tp_expert {layout['tp_expert']} does not divide "
                f"tp * cp * dp = {ranks}"
            ),
        )
    if layout["zero"] > of.deepest_zero and layout["pp"] > 1:
        yield "zero", _sharded(of, layout["zero"], layout["pp"])


def _staged(of: ModelDivisions, layout: Mapping[str, int], schedule: str) -> Iterator[Fault]:
    """Faults of the pipeline schedule of a layout."""
    pp, v = layout["pp"], layout["virtual_stages"]
    if v > 1 and (pp == 1 or schedule != "interleaved"):
        yield "virtual_stages", _no_stages(v, pp)
    n_micro = of.batch // (layout["dp"] * layout["micro_batch"])
    if schedule == "zero-bubble" and 0 < n_micro < pp:
        yield "schedule", f"zero-bubble needs pp {pp} micro-batches at least, but has {n_micro}"
    if schedule != "interleaved":
        return
    if pp == 1:
        yield "schedule", "interleaving needs a pipeline, but pp is 1"
        return
    if not of.cuts(pp * v):
        yield "virtual_stages", f"{of.layers} layers are not divisible by pp {pp} * {v}"
    if n_micro % pp:
        yield (
            "micro_batch",
            (f"{n_micro} micro-batches are no multiple of pp {pp}, which interleaving needs"),
        )


def _undivided(of: ModelDivisions, dp: int, micro: int) -> str:
    return (
        f"a batch of {of.batch:,} sequences is not divisible by dp {dp} * micro_batch {micro} "
        f"= {dp * micro}"
    )


def _no_stages(virtual: int, pp: int) -> str:
    reason = "without a pipeline" if pp == 1 else "with another schedule than interleaved"
    return f"{virtual} virtual stages {reason}; give pp above 1 and schedule: interleaved, or 1"


def _sharded(of: ModelDivisions, zero: int, pp: int) -> str:
    stacks = [name for name in training_stack_names() if training_stack(name).zero_pipeline]
    return (
        f"the stack has no ZeRO-{zero} under a pipeline of {pp} stages; at most "
        f"{of.deepest_zero}, or pp: 1, or profile: {' or '.join(stacks)}"
    )


def _listed(number: int) -> str:
    every = divisors(number)
    return ", ".join(map(str, every[:MAX_LISTED_DIVISORS])) + (
        ", ..." if len(every) > MAX_LISTED_DIVISORS else ""
    )


def no_layout_reason(of: ModelDivisions, question: TrainingQuestion) -> Fault:
    """Reason why no layout uses these chips, or fewer, though each choice alone is possible."""
    choose, chips = question.choose, max(question.chips)
    least = math.prod(min(getattr(choose, key) or (1,)) for key in ("tp", "cp", "pp", "dp"))
    if least > chips:
        return "chips", f"the choices need {least} chips at least, but chips is {chips}"
    fixed = [key for key, value in choose if value is not None]
    free = [key for key in fixed if lattice(of, choose.model_copy(update={key: None}), chips)]
    if "schedule" in free and choose.schedule == ("interleaved",):
        return "choose.schedule", (
            f"interleaving needs layers that pp * virtual_stages divides (of {of.layers}), and "
            f"micro-batches (of {of.batch:,} sequences / dp / micro_batch) that are a multiple "
            "of pp; no layout of these choices has both"
        )
    names = ", ".join(f"choose.{key}" for key in free or fixed)
    repair = f"; one of {names} left free would do" if free else f" and {names} as written"
    return "chips", (
        f"no layout uses {chips} chips, or fewer, with {of.heads} heads, {of.layers} layers and a "
        f"batch of {of.batch:,} sequences{repair}"
    )
