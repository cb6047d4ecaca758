"""A user's own measurements: a CSV table with documented columns, one run a line.

=============  ====================================================================================
model          catalogue name, published id (organisation, format and tuning may be in it), or the
               path of a configuration that ends in `.json`
system, chip   a catalogue system (`hgx-h200`) or a chip (`h200`, `NVIDIA H200`); one of the two
engine         name, as `vllm`; `engine_version` beside it
weights        number format of the weights, the checkpoint's own where blank; `kv` of the cache
tp, pp, ep     ways; `dp_attention` copies of attention; blank is 1, and tensor ways fill `n_chips`
n_chips        chips in all; a multiple of a replica's means several replicas
concurrency    requests kept in flight (a closed loop); or `batch` of a static batch
input_tokens   mean lengths [token]; `output_tokens` beside it
ttft_ms        any of ttft, tpot, itl, step, e2e, each in `_ms` or `_s`, and `tokens_per_s` (output
               tokens, all replicas together)
drafts         speculated tokens per step, 0 or blank for none
=============  ====================================================================================

Names are matched without regard to case, spaces, dashes and units in brackets, and under the words
that vLLM, SGLang and others use for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.architecture.counts import Sizes
from planner.calibration.adapters.tables import Readings, Row, count, given, positive, rows_of
from planner.calibration.ideal import strange_units
from planner.calibration.measurements import ONE, Measurement, NotComputed
from planner.calibration.names import (
    Refused,
    base_of,
    chip_of,
    format_of,
    machine_of,
    model_of,
    sizes_on,
)
from planner.catalogue.chips import Chip
from planner.catalogue.systems import system, system_names
from planner.errors import InputError, did_you_mean, quoted

__all__ = ["COLUMNS", "VALUES", "columns_of", "entries", "own", "owns"]

# Every column, and the words that others use for it, in the form that `_plain` gives.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "model": ("model_id", "model_path", "model_name"),
    "system": ("machine", "node"),
    "chip": ("gpu", "accelerator", "hardware", "device", "gpu_type", "hw"),
    "engine": ("backend", "framework", "server"),
    "engine_version": ("backend_version", "version", "framework_version"),
    "weights": ("precision", "quantization", "weight_dtype", "dtype", "weights_dtype"),
    "kv": ("kv_dtype", "kv_cache_dtype", "cache_dtype"),
    "tp": ("tp_size", "tensor_parallel", "tensor_parallel_size"),
    "pp": ("pp_size", "pipeline_parallel", "pipeline_parallel_size"),
    "dp_attention": ("attention_dp_size", "dp_attn", "dp_size", "data_parallel_size", "dp"),
    "ep": ("ep_size", "moe_ep_size", "expert_parallel", "expert_parallel_size"),
    "n_chips": ("chips", "gpus", "n_gpus", "num_gpus", "gpu_count", "world_size"),
    "concurrency": ("max_concurrency", "conc", "users", "concurrent_requests"),
    "batch": ("batch_size",),
    "input_tokens": ("isl", "input_len", "input_length", "prompt_tokens", "random_input_len"),
    "output_tokens": ("osl", "output_len", "output_length", "completion_tokens"),
    "drafts": ("mtp", "num_speculative_tokens", "speculative_tokens"),
    "speculated": ("speculative", "spec_decoding"),
    "assumed": (),
    "ttft_ms": ("mean_ttft_ms", "time_to_first_token_ms"),
    "ttft_s": ("mean_ttft_s", "time_to_first_token_s"),
    "tpot_ms": ("mean_tpot_ms", "time_per_output_token_ms"),
    "tpot_s": ("mean_tpot_s", "time_per_output_token_s"),
    "itl_ms": ("mean_itl_ms", "inter_token_latency_ms"),
    "itl_s": ("mean_itl_s", "inter_token_latency_s"),
    "step_ms": ("decode_step_ms", "iteration_ms"),
    "step_s": ("decode_step_s", "iteration_s"),
    "e2e_ms": ("e2el_ms", "mean_e2el_ms", "latency_ms", "e2e_latency_ms"),
    "e2e_s": ("e2el_s", "mean_e2el_s", "latency_s", "e2e_latency_s"),
    "tokens_per_s": ("output_throughput", "output_tokens_per_s", "throughput", "tok_s"),
}
VALUES = tuple(name for name in COLUMNS if name.endswith("_s") or name.endswith("_ms"))
NEEDED = (("model",), ("system", "chip"), ("input_tokens",), ("output_tokens",))
LOADS = ("concurrency", "batch")


@dataclass(frozen=True)
class _Place:
    """Where a run was made: chips and layout of one of `replicas` alike."""

    layout: dict[str, int]
    chips: int
    replicas: int
    assumed: str


def owns(path: Path, **facts: str | float) -> Readings:
    """Every run of a user's own table; `facts` fill columns that the table lacks.

    Raises
    ------
    InputError
        If columns are missing, given twice or misspelt; every such mistake in one message.
    """
    table = rows_of(path)
    if not table:
        raise InputError(f"{path} holds a header and no row")
    names = columns_of(list(table[0]), facts, str(path))
    rows = [{names.get(name, name): value for name, value in row.items()} for row in table]
    return entries(rows, facts, "own rows")


def entries(rows: Sequence[Row], facts: Mapping[str, str | float], columns: str) -> Readings:
    """Runs under the names of COLUMNS, ids by line number; the header is line 1."""
    told = {name: str(value) for name, value in facts.items()}
    found: list[Measurement] = []
    refused: list[NotComputed] = []
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for line, row in enumerate(rows, start=2):
        whole = {**row, **{name: value for name, value in told.items() if not row.get(name)}}
        key = tuple(sorted((name, value) for name, value in whole.items() if name in COLUMNS))
        try:
            found += own(whole, str(line), seen.get(key, ""), refused)
        except Refused as why:
            refused.append(NotComputed(str(line), str(why)))
        seen.setdefault(key, str(line))
    return Readings(columns, tuple(found), tuple(refused), len(rows))


def own(row: Row, line: str, repeats: str, refused: list[NotComputed]) -> list[Measurement]:
    """The measurements of one run; a value that is no time goes to `refused`.

    Raises
    ------
    Refused
        If the run cannot be put into the catalogue's words, its layout is impossible, or no
        value is given.
    """
    chip, machine = _hardware(row)
    sizes = _sizes(row, chip)
    place = _place(row, sizes, chip)
    prompt, output = positive(row, "input_tokens"), positive(row, "output_tokens")
    looped = given(row, "concurrency") is not None
    if not looped and given(row, "batch") is None:
        raise Refused("neither concurrency nor batch is given")
    batch = positive(row, "concurrency" if looped else "batch") / place.replicas
    drafts = count(row, "drafts", 0)
    engine = row.get("engine", "").lower()
    values = _values(row, looped, batch * place.replicas, output, line, refused)
    common: dict[str, Any] = {
        "id": line,
        "source": row.get("source", "") or "own",
        "engine": engine or "unknown",
        "model": base_of(model_of(row["model"]).name),
        "sizes": sizes,
        "chip": chip,
        "machine": machine,
        "chips": place.chips,
        "layout": place.layout,
        "batch": batch,
        "prompt": prompt,
        "output": max(output, 2.0),
        "context": prompt + output / 2,
        "quality": "own",
        "drafts": drafts,
        "precision": row.get("weights", "") or "own",
        "version": row.get("engine_version", ""),
        "looped": looped,
        "speculated": bool(drafts) or row.get("speculated", "").lower() in ("yes", "true", "mtp"),
        "repeats": repeats,
        "assumed": "; ".join(part for part in (row.get("assumed", ""), place.assumed) if part),
    }
    found = []
    made = [Measurement(**common, quantity=name, seconds=time) for name, time in values.items()]
    for one, strange in zip(made, strange_units(made), strict=True):
        if strange:
            refused.append(NotComputed(line, strange, one.quantity))
        else:
            found.append(one)
    return found


def columns_of(names: Sequence[str], facts: Mapping[str, object], where: str) -> dict[str, str]:
    """The column that each name of a table means; names of nothing known are left out.

    Raises
    ------
    InputError
        If a name is nearly a known one, two names mean one column, a fact has no column, or a
        column that is needed is missing.
    """
    spellings = {_plain(word): name for name, words in COLUMNS.items() for word in (name, *words)}
    found: dict[str, str] = {}
    mistakes = []
    for name in names:
        meant = spellings.get(_plain(name))
        if meant is None:
            hint = did_you_mean(_plain(name), spellings)
            if hint:
                mistakes.append(f"unknown column {quoted(name)}{hint}")
        elif meant in found.values():
            mistakes.append(f"the column {meant} is given twice, once as {quoted(name)}")
        else:
            found[name] = meant
    for name in facts:
        if name not in COLUMNS:
            mistakes.append(f"unknown fact {quoted(name)}{did_you_mean(name, COLUMNS) or ''}")
    had = {*found.values(), *facts}
    for names_of_one in (*NEEDED, LOADS):
        if not had.intersection(names_of_one):
            mistakes.append(f"missing column {' or '.join(names_of_one)}")
    if not had.intersection(VALUES):
        mistakes.append(f"no measured column (any of {', '.join(VALUES)})")
    if mistakes:
        raise InputError(f"{where}: " + f"\n{where}: ".join(mistakes))
    return found


def _values(
    row: Row, looped: bool, requests: float, output: float, line: str, refused: list[NotComputed]
) -> dict[str, float]:
    """Times [s] by quantity. Under a closed loop the time per token is a mean over requests."""
    found: dict[str, float] = {}
    token = "tpot" if looped else "step"
    meant = {"ttft": "ttft", "tpot": token, "itl": token, "step": "step", "e2e": "e2e"}
    told = False
    for name in VALUES:
        if not row.get(name):
            continue
        told = True
        try:
            value = positive(row, name)
        except Refused as why:
            refused.append(NotComputed(line, str(why), name.rsplit("_", 1)[0]))
            continue
        stem, unit = name.rsplit("_", 1)
        if stem == "tokens_per":
            # The mean time of a slot per token, first tokens included.
            if not {"tpot", "step", "e2e"}.intersection(found):
                found[token] = requests / value
        elif stem == "e2e" and looped:
            if "ttft" in found and token not in found and output > 1:
                found[token] = (value / (1e3 if unit == "ms" else 1) - found["ttft"]) / (output - 1)
        else:
            found.setdefault(meant[stem], value / (1e3 if unit == "ms" else 1.0))
    if not told:
        raise Refused("no measured value is given")
    return found


def _hardware(row: Row) -> tuple[Chip, str | None]:
    """The chip, and the machine that joins such chips."""
    name = row.get("system") or row.get("chip", "")
    if not name:
        raise Refused("neither system nor chip is given")
    if name.lower() in system_names():
        one = system(name.lower())
        return one.chip, one.topology or machine_of(one.chip.name)
    chip = chip_of(name)
    return chip, machine_of(chip.name)


def _sizes(row: Row, chip: Chip) -> Sizes:
    if not row.get("model"):
        raise Refused("model is not given")
    formats = [format_of(row[name]) if row.get(name) else None for name in ("weights", "kv")]
    return sizes_on(chip, row["model"], formats[0], formats[1])


def _place(row: Row, sizes: Sizes, chip: Chip) -> _Place:
    tp, pp = given(row, "tp"), count(row, "pp", 1)
    copies, ep = count(row, "dp_attention", 1), count(row, "ep", 1)
    chips, assumed = given(row, "n_chips"), ""
    if tp is None and chips is not None:
        tp, assumed = chips / (pp * copies), "tensor parallelism over the chips of a stage"
    ways = count({"tp": str(tp)}, "tp") if tp is not None else 1
    replica = ways * pp * copies
    replicas = (chips or replica) / replica
    if replicas != int(replicas):
        raise Refused(f"{chips:g} chips are no multiple of a replica's {replica}")
    if ep > 1 and not sizes.n_experts:
        raise Refused(f"{ep} expert groups for a model without experts")
    if ways * copies % ep:
        raise Refused(f"{ep} expert groups on {ways * copies} chips")
    stored = sum(sizes.weight_bytes.values())
    if stored > replica * chip.memory:
        raise Refused(
            f"{stored / 1e9:.0f} GB of weights do not fit on {replica} {chip.name} "
            f"({replica * chip.memory / 1e9:.0f} GB)"
        )
    experts = {"ep": ep, "tp_expert": ways * copies // ep} if sizes.n_experts else {}
    layout = {**ONE, "tp": ways, "pp": pp, "dp_attention": copies, **experts}
    return _Place(layout, replica, int(replicas), assumed)


def _plain(name: str) -> str:
    text = re.sub(r"[\s\-./]+", "_", name.strip().lower())
    text = re.sub(r"_?[\[(](m?s)[\])]$", r"_\1", text)
    return re.sub(r"[^a-z0-9_]", "", text).strip("_")
