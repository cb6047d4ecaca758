"""Runs of training by layout, as tables publish them: what ran, how long a step took, what fitted.

Published FLOP/s are counted in one of three conventions; each set of rows has its own. A row whose
FLOP/s do not follow from its rate in the convention of its set is suspect, and left out with the
reason; so is one with missing, doubled or contradictory cells.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from planner.catalogue.systems import parse_system, system
from planner.measurements.published_names import BadRow
from planner.measurements.readers import sheets
from planner.problems.training.step import training_task
from planner.problems.training.step.training_counts import TrainingCounts, shape_counts
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.tables import table

NAMES_FILE = "training_names.toml"
CONVENTIONS = ("full attention", "causal half", "hardware, full attention")
TERA = 1e12
SAME_SET = 0.06  # a row's FLOP/s may be this far from those of its set
SAME_MODEL = 0.03  # |ln ratio|; a second row of the model this near: another FLOP count, no slip
AXES = ("tp", "pp", "dp")
ROW_COLUMNS = ("hidden", "layers", "seq", "global_batch", *AXES, "recompute", "metric", "value")
USUAL_STATE = training_task.StateBytes()
PRE_TRAINING, LORA = "pre-training", "lora"
SCORED_SEPARATELY_NOTE = "no pre-training, scored beside the fits"
STATUS_MEASURED, TOO_LARGE = "measured", "oom"
RATE = "tokens_per_s_chip"  # a metric of which more is better


@dataclass(frozen=True)
class TrainingRow:
    """Training run: model, machine, layout and workload, and its measured quantities.

    `seconds` of a step [s], None where only whether it fits was seen; `peak` memory [byte] or None;
    `fits` whether it ran. `latent` says that the table does not state recomputation. `published` is
    FLOP/s of a chip as the table gives it, or None. `reason` is why a row is not used. `trained`
    is 0 where adapters alone are: their rank, which no table states, gives thousandths.
    """

    line: int
    id: str
    set: str
    date: str
    stack: str
    era: str
    counts: TrainingCounts | None = None
    machine: training_task.TrainingMachine | None = None
    layout: training_task.LayoutTable | None = None
    batch: float = 0.0
    sequence: float = 0.0
    chips: int = 0
    precision: str = "bf16"
    kernel: str = "flash"
    norm: str = "plain"
    state: training_task.StateBytes = USUAL_STATE
    latent: bool = False
    seconds: float | None = None
    peak: float | None = None
    fits: bool = True
    published: float | None = None
    reason: str = ""
    trained: float = 1.0

    @property
    def part(self) -> str:
        """Kind of the model: `routed` or `dense`."""
        return "routed" if self.counts and self.counts.n_experts else "dense"

    @property
    def usable(self) -> bool:
        """True if the row has a step time and no reason against its use."""
        return not self.reason and self.seconds is not None

    def flop_rates(self) -> tuple[float, float, float]:
        """FLOP/s of a chip in each of CONVENTIONS [flop/s]."""
        assert self.counts is not None
        assert self.seconds is not None
        causal = self.counts.flop(self.batch, self.sequence)
        attention = 3 * self.batch * self.counts.n_layers
        half = attention * self.counts.pair_flop(self.sequence) * self.sequence**2 / 2
        full, per = causal + half, self.seconds * self.chips
        return full / per, causal / per, full * 4 / 3 / per


@cache
def _words() -> Mapping[str, Mapping[str, Any]]:
    return table("planner.measurements", NAMES_FILE)


@dataclass(frozen=True)
class StackWords:
    """Title of a stack, its dates, and the TrainingStack fields that its sources set."""

    title: str
    ran: str
    traits: Mapping[str, Any]


def stack_words(name: str) -> StackWords:
    """Title, dates and traits of a stack; each is empty if unknown."""
    words = _words()
    return StackWords(
        words["title"].get(name, ""), words["ran"].get(name, ""), words["traits"].get(name, {})
    )


def training_rows(source: sheets.Source) -> list[TrainingRow]:
    """Every row of a table of training runs; one that is not used says why."""
    cells = sheets.table_rows(source)
    rows = [_row(each, line) for line, each in enumerate(cells, start=2) if any(each.values())]
    earlier: dict[tuple[object, ...], TrainingRow] = {}
    checked = []
    for row in _suspects(rows):
        why = row.reason
        if not why and row.layout is not None:
            key = (row.set, row.era, row.date, row.counts, row.machine, row.batch, row.sequence,
                   row.precision, row.kernel, row.norm, row.latent,
                   *row.layout.words().items())  # fmt: skip
            before = earlier.setdefault(key, row)
            if before.fits != row.fits:
                says = "fits" if row.fits else "does not fit"
                why = f"says that it {says}, line {before.line} the opposite"
            elif before is not row and before.seconds == row.seconds:
                why = f"the same as line {before.line}"
        checked.append(replace(row, reason=why))
    return checked


def _row(cells: sheets.TableRow, line: int) -> TrainingRow:
    framework, words = cells.get("framework", ""), _words()["stack"]
    year = (cells.get("date", "") or "0000")[:4]
    named = TrainingRow(
        line=line,
        id=cells.get("id", "") or f"line {line}",
        set=cells.get("source", "").split(" (")[0],
        date=cells.get("date", ""),
        stack=words.get(f"{framework} {year}") or words.get(framework) or framework or "own",
        era=cells.get("version", ""),
    )
    try:
        return _read(cells, named)
    except (BadRow, CatalogueError) as why:
        return replace(named, reason=str(why))


def _read(cells: sheets.TableRow, row: TrainingRow) -> TrainingRow:
    status = cells.get("status", "") or STATUS_MEASURED
    if status not in (STATUS_MEASURED, TOO_LARGE):
        raise BadRow(f"the table itself says {status}")
    counts = _counts(cells)
    layout, latent = _layout(cells, counts)
    chips = sheets.count(cells, "chips", _chips(layout))
    if _chips(layout) != chips:
        raise BadRow(f"tp, pp, dp and cp make {_chips(layout)} chips, the row says {chips}")
    batch = sheets.positive(cells, "global_batch")
    per = int(layout.dp) * int(layout.micro_batch)
    if batch < per:
        raise BadRow(f"a batch of {batch:g} is less than dp x micro_batch = {per}")
    precision = _word("precision", cells.get("precision", "") or "bf16")
    sequence = sheets.tokens(cells, "seq")
    name = _word("chip", cells.get("chip", ""))
    machine = system(name)
    varied = next((v for k, v in _words()["varied"].items() if k in cells.get("notes", "")), None)
    if varied is not None:
        machine = parse_system({"like": name, **varied})
    read = replace(
        row,
        counts=counts,
        machine=training_task.training_machine(machine, precision, chips),
        layout=layout,
        batch=batch,
        sequence=sequence,
        chips=chips,
        precision=precision,
        kernel=_kernel(cells),
        norm="fused" if "RMS" in cells.get("attention_kernel", "") else "plain",
        state=training_task.StateBytes(*_words()["state"].get(row.stack, (2, 4, 12))),
        latent=latent,
        peak=_in_units(cells, "memory_gb", 1e9),
        fits=status == STATUS_MEASURED,
        published=_in_units(cells, "tflops_chip_published", TERA),
    )
    task = cells.get("task", "") or PRE_TRAINING
    if task != PRE_TRAINING:
        share = 0.0 if task == LORA else 1.0
        read = replace(read, trained=share, reason=f"{task}: {SCORED_SEPARATELY_NOTE}")
    return replace(read, seconds=_seconds(cells, batch * sequence, chips)) if read.fits else read


def _word(kind: str, text: str) -> str:
    words = _words()[kind]
    if text not in words:
        raise BadRow(f"{kind} {text!r} is not known{did_you_mean(text, tuple(words))}")
    return words[text]


def _counts(cells: sheets.TableRow) -> TrainingCounts:
    hidden, layers = sheets.count(cells, "hidden"), sheets.count(cells, "layers")
    heads = sheets.count(cells, "heads")
    experts = sheets.count(cells, "experts", 0)
    return shape_counts(
        cells.get("model", ""),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=sheets.count(cells, "kv_heads", heads),
        head_dim=sheets.count(cells, "head_dim", hidden // heads),
        ffn=sheets.count(cells, "ffn", 4 * hidden),
        gates=2 if cells.get("gated", "") in ("1", "1.0", "yes") else 1,
        vocab=sheets.count(cells, "vocab"),
        experts=experts,
        topk=sheets.count(cells, "topk", 0),
        expert_ffn=sheets.count(cells, "expert_ffn", 0),
        shared_ffn=sheets.count(cells, "shared_ffn", 0),
        dense_layers=sheets.count(cells, "dense_layers", 0) if experts else 0,
        total=float(cells.get("params_total") or 0),
    )


def _layout(
    cells: sheets.TableRow, counts: TrainingCounts
) -> tuple[training_task.LayoutTable, bool]:
    ways = {name: sheets.count(cells, name, 1) for name in ("tp", "pp", "cp", "ep")}
    if cells.get("dp"):
        ways["dp"] = sheets.count(cells, "dp")
    else:
        ways["dp"] = max(1, sheets.count(cells, "chips") // (ways["tp"] * ways["pp"] * ways["cp"]))
    recompute = _word("recompute", cells.get("recompute", ""))
    virtual = sheets.count(cells, "vp", 1)
    if virtual > 1 and ways["pp"] == 1:
        raise BadRow(f"{virtual} virtual stages without a pipeline")
    width = ways["tp"] * ways["cp"] * ways["dp"]
    if counts.n_experts and width % ways["ep"]:
        raise BadRow(f"ep {ways['ep']} does not divide tp x cp x dp = {width}")
    zero = cells.get("zero", "").removesuffix(".0") or "0"
    layout = training_task.LayoutTable.of(
        **ways,
        micro_batch=sheets.count(cells, "micro_batch", 1),
        virtual_stages=virtual,
        schedule="interleaved" if virtual > 1 else "1f1b",
        recompute="none" if recompute == "latent" else recompute,
        zero=int(zero) if zero in ("0", "1", "2", "3") else 0,
        sequence_parallel=int(cells.get("sp", "") == "yes"),
    )
    return layout, recompute == "latent"


def _chips(layout: training_task.LayoutTable) -> int:
    return prod(int(getattr(layout, name)) for name in (*AXES, "cp"))


def _kernel(cells: sheets.TableRow) -> str:
    text = cells.get("attention_kernel", "").removesuffix(" + RMS kernel")
    if text in _words()["kernel"]:
        return _words()["kernel"][text]
    return "flash" if cells.get("date", "") > _words()["usual"]["flash_from"] else "fused-softmax"


def _seconds(cells: sheets.TableRow, tokens: float, chips: int) -> float:
    metric = cells.get("metric", "")
    value = sheets.positive(cells, "value")
    if metric == "step_time_s":
        return value
    if metric == RATE:
        return tokens / (value * chips)
    raise BadRow(f"metric {metric!r} is no step_time_s or {RATE}")


def _in_units(cells: sheets.TableRow, name: str, unit: float) -> float | None:
    value = sheets.number_or_none(cells, name)
    return None if value is None else value * unit


def _suspects(rows: Sequence[TrainingRow]) -> list[TrainingRow]:
    """The rows, those whose FLOP/s leave the convention of their set with the reason.

    A model whose rows are all as far off is counted in another way by its publisher: no slip.
    """
    sets: dict[tuple[str, str], list[int]] = defaultdict(list)
    models: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    ratios: dict[int, np.ndarray] = {}
    for at, row in enumerate(rows):
        if row.usable and row.published is not None:
            ratios[at] = row.published / np.array(row.flop_rates())
            sets[row.set, row.era].append(at)
            models[row.set, _model(row)].append(ratios[at])
    checked = list(rows)
    for members in sets.values():
        offs = np.abs(np.log([ratios[at] for at in members]))
        best = int(np.argmin(np.median(offs, axis=0)))
        for at, off in zip(members, offs[:, best], strict=True):
            ratio = ratios[at][best]
            others = np.log([x[best] / ratio for x in models[rows[at].set, _model(rows[at])]])
            if off > SAME_SET and np.sum(np.abs(others) < SAME_MODEL) < 2:
                checked[at] = replace(
                    rows[at],
                    reason=f"suspect: published FLOP/s are {ratio:.2f} of those that its rate "
                    f"gives in the convention of its set ({CONVENTIONS[best]})",
                )
    return checked


def _model(row: TrainingRow) -> str:
    return row.counts.name if row.counts else ""
