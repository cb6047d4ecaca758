"""Logged starts of engines as memory questions: a row of a CSV with the printed log values.

Columns are those of a table of facts: the model's shape, the chip, the flags, and `log_` what was
printed, in GiB. A row whose printed terms do not add up is named by its line and not scored.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planner.catalogue import models
from planner.catalogue.chips import chip, chip_names
from planner.measurements.readers.sheets import sheet
from planner.memory.cache_groups import INDEX, LayerCache
from planner.memory.engine_room import EngineLimits, ModelMemory, expert_padding
from planner.memory.engine_table import (
    GIB,
    ChipMemory,
    EngineMemory,
    chip_memory,
    engine_memory,
    engine_names,
    layout_factor,
)
from planner.text.errors import CatalogueError, InputError, Mistake

SUM_TOLERANCE = 0.25  # GiB that printed terms may miss the printed room by
BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "fp8": 1.0, "w8a8": 1.0, "int8": 1.0, "w4": 0.52,
         "awq": 0.52, "w4a8": 0.52, "nvfp4": 0.5625, "bnb4": 0.5625, "mxfp4": 0.53125,
         "fp8_e4m3": 1.0, "fp4_e2m1": 0.5}  # fmt: skip
LAYOUTS = {"w8a8": "int8", "w4": "int4", "awq": "int4", "w4a8": "int4", "bnb4": "int4"}
SPARSE_W4 = 1.17  # of sparse models in 4 bits attention stays wide: logged 1.15 to 1.21
# Tokens a step by blocks of the model, where a row does not say: of two open rows.
DRAFT_TOKENS = 3
FAILURES = ("refused", "OOM", "failed later")
LOG_COLUMNS = ("engine", "version", "layers", "hidden", "vocab", "params_b", "chip", "tp", "log_kv")


@dataclass(frozen=True)
class LoggedStart:
    """A logged start: its question, its scoring class, and the logged values [byte, token].

    `free` is what was free before weights were loaded and after [byte]; `reason` says why
    nothing is scored, empty where something is.
    """

    line: int
    name: str
    group: str
    model: ModelMemory
    chip: ChipMemory
    engine: EngineMemory
    limits: EngineLimits
    longest: int = 0
    room: float | None = None
    tokens: float | None = None
    refused: bool = False
    free: tuple[float, float] | None = None
    reason: str = ""


def logged_starts(path: Path) -> list[LoggedStart]:
    """The starts of a table; raises InputError for one without the columns, or no numbers."""
    table = sheet(path)
    lacking = [name for name in LOG_COLUMNS if name not in table.columns]
    if lacking:
        words = f"no table of starts: columns {', '.join(lacking)} are missing"
        raise InputError(Mistake(str(path), 1, None, "", words))
    starts, mistakes = [], []
    for line, cells in zip(table.lines, table.rows, strict=True):
        try:
            row = StartCells(dict(zip(table.columns, cells, strict=True)))
            starts.append(_start(line, row))
        except ValueError as error:
            mistakes.append(Mistake(str(path), line, None, "", str(error)))
    if mistakes:
        raise InputError(mistakes)
    return starts


@dataclass(frozen=True)
class StartCells:
    """Cells of a row by column."""

    cells: Mapping[str, str]

    def text(self, name: str) -> str:
        """A cell; empty where the table has none."""
        return self.cells.get(name, "").strip()

    def number(self, name: str, default: float = math.nan) -> float:
        """A number; `default` of an empty cell. Raises ValueError for a text that is none."""
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?", text):
            raise ValueError(f"{name}: expected a number, got {text!r}")
        return float(text)

    def whole(self, name: str, default: int = 0) -> int:
        """A whole number."""
        return int(self.number(name, default))


def _start(line: int, row: StartCells) -> LoggedStart:
    if row.text("engine") not in engine_names():
        raise ValueError(
            f"engine: unknown {row.text('engine')!r}; known: {', '.join(engine_names())}"
        )
    try:
        engine = engine_memory(row.text("engine"), row.text("version"))
    except CatalogueError:
        engine = engine_memory(row.text("engine"))  # a build without a number
    seen, note = _chip(row), row.text("note")
    vllm = engine.rules["meaning"] == "profiled"
    drafts = ("mtp" if "MTP" in note else "draft") if row.text("spec") and vllm else ""
    limits = EngineLimits(
        tp=row.whole("tp", 1),
        pp=row.whole("pp", 1),
        dp=row.whole("dp", 1) if vllm else 1,
        share=row.number("share", 0.0) or None,
        seats=row.whole("max_num_seqs") or None,
        tokens=max(row.whole("batched_tokens"), 0) or None,
        sampler="none" if "pooling" in note else row.text("sampler"),
        graphs=row.text("graphs") != "off",
        images="vision" in note,
        drafts=drafts,
        drafted=DRAFT_TOKENS if drafts == "mtp" else 0,
    )
    reason = _unscored(row, seen)
    start = LoggedStart(
        line,
        row.text("id") or f"line {line}",
        _group(row, engine, seen, limits),
        ModelMemory(0, 1, 1, 0, 0, 0, ()) if reason else _model(row, limits),
        seen,
        engine,
        limits,
        longest=row.whole("max_model_len"),
        tokens=row.number("log_tokens", 0.0) or None,
        refused=any(word in note for word in FAILURES),
        free=_free(row),
        reason=reason,
    )
    return start if reason else replace(start, room=_room(row, start.model))


def _chip(row: StartCells) -> ChipMemory:
    name = row.text("chip")
    for spelled in (name, name.removesuffix("-80"), f"{name}gb", f"{name}-server"):
        if spelled in chip_names() and not chip_memory(chip(spelled)).assumed:
            return chip_memory(chip(spelled))
    visible = row.number("visible_gib", 0.0)
    return ChipMemory(visible * GIB, row.number("reported_gib", visible) * GIB)


def _unscored(row: StartCells, seen: ChipMemory) -> str:
    """Reason why a row cannot be scored; empty if it can."""
    if row.text("complete") == "no":
        return "chip, share or limits are unknown"
    lacking = [name for name in ("params_b", "layers", "share") if not row.text(name)]
    lacking += [] if seen.visible else ["chip"]
    if lacking or row.text("quant") not in BYTES:
        return f"unknown: {', '.join(lacking) or row.text('quant') or 'quant'}"
    names = ("share", "visible_gib", "log_weights", "log_nontorch", "log_act", "log_kv")
    share, visible, *terms = (row.number(name) for name in names)
    off = sum(terms) - share * visible
    off = min(off, off + row.number("log_graph_est", 0.0), key=abs)
    if row.text("engine") == "vllm" and abs(off) > SUM_TOLERANCE:
        return f"printed terms and room miss the share by {off:+.2f} GiB"
    return ""


def _group(row: StartCells, engine: EngineMemory, seen: ChipMemory, limits: EngineLimits) -> str:
    """The class of a row, as the accuracy that is to be reached is stated."""
    if engine.rules["meaning"] == "free":
        return engine.title
    if engine.rules["meaning"] == "pool":
        kinds = "other chips" if row.text("chip").startswith("ascend") else "NVIDIA, AMD"
        return f"{engine.title}, {'unified memory' if seen.unified else kinds}"
    if limits.images or limits.drafts or seen.unified:
        return f"{engine.title}, images, drafts, unified memory"
    if engine.version < (0, 9, 2):
        return f"{engine.title} before 0.9.2"
    flags = "flags known" if row.text("complete") == "yes" else "flags from defaults"
    return f"{engine.title}, text, {flags}"


def _model(row: StartCells, limits: EngineLimits) -> ModelMemory:
    """The model of a row: weights counted from its parameters and format, not from the log."""
    tp, pp, quant = limits.tp, limits.pp, row.text("quant")
    copies = row.whole("dp", 1) if row.text("engine") == "sglang" else 1  # within its tp
    layers, hidden, vocab = (row.whole(x) for x in ("layers", "hidden", "vocab"))
    count, active, width = (int(x) for x in (row.text("moe") or "0/0/0/0").split("/")[:3])
    value = 4 if row.text("dtype") == "fp32" else 2
    wide = 4.0 if quant == "fp32" else 2.0
    total = row.number("params_b") * 1e9
    embedded = vocab * hidden * (1 if row.text("tied") == "yes" else 2)
    routed = min(3.0 * layers * count * width * hidden, total - embedded)
    linear = wide if quant == "mxfp4" else BYTES[quant]  # which leaves attention wide
    fixed = wide * embedded + linear * (total - embedded - routed)
    ways = max(tp * limits.dp, row.whole("ep", 1))
    cut = ways if row.whole("ep", 1) == 1 else 1
    kernels, experts = layout_factor(LAYOUTS.get(quant, quant)), BYTES[quant] * routed / ways
    weights = fixed * copies / tp + experts
    if quant == "mxfp4" and count:
        kernels *= 1 + float(expert_padding(hidden, width / cut, tp) - 1) * experts / weights
    return ModelMemory(
        weights=weights / pp,
        factor=SPARSE_W4 if quant == "w4" and count else kernels,
        layers=-(-layers // pp),
        hidden=hidden,
        ffn=row.whole("ffn"),
        vocab=vocab,
        caches=_caches(row, max(1, tp // copies), value),
        experts=active,
        expert_width=width / cut,
        value=value,
        packed=quant == "mxfp4",
    )


def _caches(row: StartCells, tp: int, value: int) -> tuple[LayerCache, ...]:
    """Layers of a row that keep something; none where its table does not say how large each is."""
    linear, layers, pp = row.whole("linear_layers"), row.whole("layers"), row.whole("pp", 1)
    state = _state(row.text("arch")) if linear else 0.0
    if "nonuniform" in row.text("attention") or not row.text("head_dim") or state is None:
        return ()
    heads = 0.5 if "mla" in row.text("attention") else max(1, row.whole("kv_heads") / tp)
    token = 2 * heads * row.whole("head_dim") * BYTES.get(row.text("kv_dtype"), value)
    full = row.whole("full_layers", layers)
    bounded = layers - full - linear
    full += "MTP" in row.text("note")  # its block has a cache
    index = layers if "index" in row.text("attention") else 0
    kinds = (
        LayerCache(-(-full // pp), token),
        LayerCache(-(-bounded // pp), token, row.whole("window") or None),
        LayerCache(-(-index // pp), INDEX),
        LayerCache(-(-linear // pp), state / tp, state=True),
    )
    return tuple(x for x in kinds if x.layers)


def _state(name: str) -> float | None:
    mixers = [x.mixer for x in models.load(name).layers] if name in models.model_names() else []
    return max((float(x.state.bytes) for x in mixers if x and x.state), default=None)


def _room(row: StartCells, model: ModelMemory) -> float | None:
    if row.text("log_kv") and row.whole("pp", 1) == 1:
        return row.number("log_kv") * GIB
    if not row.text("log_tokens") or len(model.caches) != 1:
        return None
    return row.number("log_tokens") * model.caches[0].layers * model.caches[0].bytes


def _free(row: StartCells) -> tuple[float, float] | None:
    """Free memory before and after weights are loaded, where an engine prints it [byte]."""
    before, after = row.number("sg_free_before"), row.number("sg_free_after")
    if math.isnan(before + after) or row.text("spec") or "state" in row.text("note"):
        return None  # a draft's weights, and states, come out of the same pool
    return before * GIB, after * GIB
