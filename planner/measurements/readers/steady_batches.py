"""Published batches and deployments with separate phases; rates and MFU become times."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from planner.architecture.counts import ModelSizes
from planner.catalogue.chips import Chip
from planner.measurements import published_names
from planner.measurements.entry import Entry
from planner.measurements.measurement import ONE_CHIP, Measurement, NotComputed, Readings, as_layout
from planner.measurements.readers import sheets
from planner.measurements.readers.run_layouts import require_fits_memory
from topologies import machine

# A row needs the first; others may be missing, as if they were blank.
STEP_COLUMNS = (
    "model",
    "phase",
    "chip",
    "n_chips",
    "weight_dtype",
    "context_or_isl",
    "metric",
    "value",
)
OPTIONAL = ("id", "source", "layout", "overlap", "kv_dtype", "batch", "osl", "notes", "quality")
UNKNOWN = ("", "?")
QUANTITY = {"decode": "step", "prefill": "ttft", "mixed": "e2e"}
TIMES = {"step_ms": "step", "ttft_ms": "ttft", "e2e_ms": "e2e"}
RATES = ("tok_s_total", "tok_s_per_gpu", "mfu")
# At saturation engines fill nine tenths of the memory with weights and cache (vLLM
# gpu_memory_utilization 0.9, TensorRT-LLM free_gpu_memory_fraction 0.9).
TYPICAL_MEMORY_FILL = 0.9
# Bytes per weight of a mixed format, in layers and in the head. Q4_K_M has 4.5 bits per weight but
# for the head and half of the value and down matrices, 6.5625 (llama.cpp, llama-quant.cpp): files
# of Llama 3 of 4.92 and 42.5 GB hold 8.03 and 70.6 billion weights.
MIXED_QUANT_BITS = {"q4_k_m": (0.600, 0.820)}
# PaLM decodes with its one KV head's cache divided by sequence, prompts are read with it divided by
# query head (Pope et al. 2022, section 3.3 and table 2).
BY_SEQUENCE = re.compile(r"WS-2D(?!/attn-head)")
# Every chip gathers each layer's weights from all others and reads sequences of its own with them,
# as a copy of the model does; no token moves (same paper, section 3.2.3).
WEIGHT_GATHERED_LAYOUT = "WG-XYZ"
# Engines that add products of fp16 up in fp16 (llama.cpp: CUBLAS_COMPUTE_16F), which tensor cores
# of GeForce cards do twice as fast as in fp32 (NVIDIA Ada GPU architecture white paper).
HALF_SUMS, DOUBLE_COUNT_ENGINES, FASTER = frozenset({"llama.cpp"}), "GeForce", 2.0


def steadies(path: sheets.Source) -> Readings:
    """Every row of a table of steady batches, or why it has no prediction."""
    sheets.needs(path, STEP_COLUMNS)
    seen: dict[tuple[str, ...], str] = {}

    def read(row: sheets.TableRow, name: str) -> list[Measurement]:
        key = tuple(value for column, value in row.items() if column not in ("id", "url"))
        first = seen.get(key, "")
        seen.setdefault(key, name)
        return [replace(steady_batch(row), id=name, repeats=first)]

    return _readings("steady batches", path, read)


def _readings(
    kind: str, source: sheets.Source, read: Callable[[sheets.TableRow, str], list[Measurement]]
) -> Readings:
    """What `read` makes of every row and its id, or why it makes nothing."""
    table = sheets.table_rows(source)
    rows: list[Measurement] = []
    refused: list[NotComputed] = []
    for line, row in enumerate(table, start=2):
        name = row.get("id") or str(line)
        try:
            rows += read(row, name)
        except published_names.BadRow as why:
            refused.append(NotComputed(name, str(why)))
    return Readings(kind, tuple(rows), tuple(refused), len(table))


def steady_batch(row: sheets.TableRow) -> Measurement:
    """One row of the steady-batch columns.

    Raises BadRow if a name has no entry in the catalogue, a number is missing, or is none.
    """
    row = {**dict.fromkeys((*STEP_COLUMNS, *OPTIONAL), ""), **row}
    for name in ("chip", "model", "phase", "metric", "weight_dtype"):
        if not row[name]:
            raise published_names.BadRow(f"{name} is not given")
    chip, phase = published_names.resolve_chip(row["chip"]), row["phase"]
    if phase not in QUANTITY:
        raise published_names.BadRow(f"unknown phase {phase!r}")
    weights = published_names.number_format(row["weight_dtype"])
    states_cache = row["kv_dtype"] not in UNKNOWN
    kv = published_names.number_format(row["kv_dtype"]) if states_cache else sheets.USUAL_CACHE
    if weights == "nvfp4" and "fp4" not in chip.flops:
        raise published_names.BadRow(f"{chip.name} has no fp4 arithmetic")
    sizes = _stored(row["model"], weights, kv, row["weight_dtype"].strip().lower())
    chips = sheets.count(row, "n_chips")
    prompt, output, context = _lengths(row)
    layout = as_layout(row["layout"], chips, sizes.n_experts)
    gathered = row["layout"].startswith(WEIGHT_GATHERED_LAYOUT)
    replicas = chips if row["layout"] == "DP" or gathered else 1  # copies of the whole model
    require_fits_memory(sizes, chip, chips if gathered else chips // replicas)
    chips //= replicas
    engine = published_names.aliases().engines.get(row["source"], row["source"])
    chip = _summing_in_half(chip) if engine in HALF_SUMS else chip
    batch, assumed = _batch(row, sizes, chip, chips, prompt + output)
    batch /= replicas
    if phase == "prefill" and assumed and sizes.max_context:
        batch, prompt = max(1.0, prompt / sizes.max_context), min(prompt, sizes.max_context)
    drafts = re.search(r"MTP(\d)", row["notes"])
    measured = Measurement(
        id=row["id"],
        source=row["source"],
        engine=engine,
        model=published_names.base_architecture(published_names.resolve_model(row["model"]).name),
        sizes=sizes,
        chip=chip,
        machine=published_names.row_machine(chip.name),
        chips=chips,
        layout=dict(ONE_CHIP) if replicas > 1 else layout,
        halves=published_names.half_batches(row["overlap"] or _joined_to(row["layout"]), layout),
        batch=batch,
        prompt=prompt,
        output=output,
        context=context,
        quantity=TIMES.get(row["metric"], QUANTITY[phase]),
        quality=row["quality"],
        drafts=int(drafts[1]) if drafts else 0,
        precision=weights,
        leanest=None
        if states_cache
        else published_names.published_sizes(row["model"], weights, sheets.NARROWEST_CACHE),
        speculated=bool(drafts),
        assumed=assumed,
        by_sequence=bool(BY_SEQUENCE.match(row["layout"])) and phase != "prefill",
    )
    return replace(measured, seconds=_seconds(row, measured, replicas))


def _joined_to(layout: str) -> str:
    last = layout.partition(",")[0].rpartition("+")[2].strip().lower()
    return last if last in published_names.aliases().overlaps else ""


@cache
def _stored(model: str, weights: str, kv: str, name: str) -> ModelSizes:
    """`published_sizes`, with the bytes that a mixed format takes."""
    sizes = published_names.published_sizes(model, weights, kv)
    if name not in MIXED_QUANT_BITS:
        return sizes
    layers, head = MIXED_QUANT_BITS[name]
    narrow = [part for part, dtype in sizes.weight_dtype.items() if dtype == "int4"]
    bytes_of = {part: sizes.params[part] * layers for part in narrow}
    bytes_of["head"] = (sizes.params["embedding"] if sizes.tied else sizes.params["head"]) * head
    return replace(
        sizes,
        weight_bytes={**sizes.weight_bytes, **bytes_of},
        streamed_bytes={**sizes.streamed_bytes, **bytes_of},
    )


@cache
def _summing_in_half(chip: Chip) -> Chip:
    if DOUBLE_COUNT_ENGINES not in chip.title:
        return chip
    return replace(chip, flops={**chip.flops, "bf16": FASTER * chip.flops["bf16"]})


def _lengths(row: sheets.TableRow) -> tuple[float, float, float]:
    """Prompt, output and mean context [token]: decode rows give the context, others the prompt."""
    length = sheets.positive(row, "context_or_isl")
    output = sheets.parse_number(row, "osl") if row["osl"] else 0.0
    if row["phase"] == "decode":
        return max(length - output / 2, 1.0), max(output, 2.0), length
    return length, max(output, 2.0), length + output / 2


def _batch(
    row: sheets.TableRow, sizes: ModelSizes, chip: Chip, chips: int, context: float
) -> tuple[float, str]:
    """Sequences over all chips, and the assumption made if the table does not state the batch."""
    if row["batch"]:
        return sheets.positive(row, "batch"), ""
    # Prefill efficiency is published against the tokens of the whole batch.
    if row["phase"] == "prefill":
        return 1.0, "one prompt at a time"
    if row["quality"] not in ("server", "near-clean"):
        raise published_names.BadRow("batch is not given")
    per_sequence = context * sizes.kv_bytes_per_token + sizes.state_bytes_per_sequence
    room = TYPICAL_MEMORY_FILL * chips * chip.memory - sum(sizes.weight_bytes.values())
    if room < per_sequence:
        raise published_names.BadRow(f"the weights leave no room for a sequence on {chips} chips")
    return float(max(1, int(room / per_sequence))), "the batch that fills the memory"


def _seconds(row: sheets.TableRow, run: Measurement, replicas: int) -> float:
    """The row's value as a time [s]; a rate or an efficiency is turned round."""
    value = sheets.positive(row, "value")
    if row["metric"] in TIMES:
        return value / 1e3
    if row["metric"] not in RATES:
        raise published_names.BadRow(f"unknown metric {row['metric']!r}")
    # Rates of whole runs count the tokens that were written (TensorRT-LLM, MLPerf and JetStream
    # tables); an efficiency counts the arithmetic of the prompts too.
    counted = run.prompt + run.output if row["metric"] == "mfu" else run.output
    per_sequence = {"decode": 1.0, "prefill": run.prompt, "mixed": counted}[row["phase"]]
    tokens = run.batch * per_sequence
    if row["metric"] == "tok_s_total":
        return tokens * replicas / value
    if row["metric"] == "tok_s_per_gpu":
        return tokens / (value * run.chips)
    return 2 * run.sizes.n_total * tokens / (run.chips * run.chip.peak("bf16") * value)


QUANTITIES = {"ttft_ms": "ttft", "tpot_ms": "tpot"}
UNSTATED_VALUES = ("", "not stated", "?")
BARE_EXPERTS = re.compile(r"_EP$")


def deployments(source: sheets.Source) -> Readings:
    """Both times of every deployment, or why one has no prediction; ids are those of the rows."""
    return _readings("deployments", source, deployment)


def deployment(row: sheets.TableRow, name: str) -> list[Measurement]:
    """The times of one deployment.

    Raises BadRow if a name has no entry in the catalogue, what a time needs is not stated, or no
    time is.
    """
    row = {
        column: "" if text in UNSTATED_VALUES else text.rstrip("?") for column, text in row.items()
    }
    for column in ("chip", "model", "precision", "chips", "layout"):
        if not row[column]:
            raise published_names.BadRow(f"{column} is not stated")
    seconds = {q: sheets.positive(row, c) / 1e3 for c, q in QUANTITIES.items() if row[c]}
    if not seconds:
        raise published_names.BadRow("no time is stated, only rates of it")
    chip, chips = published_names.resolve_chip(row["chip"]), sheets.count(row, "chips")
    weights = published_names.number_format(row["precision"])
    sizes = published_names.sizes_on_chip(chip, row["model"], weights, None)
    require_fits_memory(sizes, chip, chips)
    layout = stated_layout(row["layout"], row["phase"], chip, chips, sizes.n_experts)
    prompt = sheets.tokens(row, "isl")
    reading = row["phase"] == "prefill"
    output = 2.0 if reading else max(sheets.tokens(row, "osl"), 2.0)
    engine = re.sub(r"[\s-]?[\d.]+$", "", row["engine"].strip()).lower().replace(" ", "-")
    common = Measurement(
        id=name,
        source=row["source"],
        engine=f"{engine or 'unknown'}-{row['date'][:4]}",
        model=published_names.base_architecture(published_names.resolve_model(row["model"]).name),
        sizes=sizes,
        chip=chip,
        machine=published_names.row_machine(chip.name),
        chips=chips,
        layout=layout,
        batch=sheets.positive(row, "concurrency"),
        prompt=prompt,
        output=output,
        context=prompt + output / 2,
        quality=row["quality"],
        precision=weights,
        looped=not reading,
        speculated=bool(row["speculation"]),
        as_of=row["date"],
        even=not reading,
    )
    return [replace(common, quantity=q, seconds=value) for q, value in seconds.items()]


def stated_layout(text: str, phase: str, chip: Chip, chips: int, experts: int) -> Mapping[str, int]:
    """Parallel sizes by axis in chips; if the text names two pools, those of the phase's pool.

    Raises BadRow if the text names none, or they multiply to neither the chips nor their cores.
    """
    pools = [part for part in text.split("+") if phase in part] or [text]
    ways = as_layout(BARE_EXPERTS.sub("", pools[0]), chips, experts)
    name = published_names.row_machine(chip.name)
    cores = machine(name).dies_per_chip if name else 1
    if ways is None and cores > 1:
        ways = as_layout(BARE_EXPERTS.sub("", pools[0]), chips * cores, experts)
        for axis in ("tp", "dp_attention"):
            shared = math.gcd((ways or {}).get(axis, 1), cores)
            ways = ways and {**ways, axis: ways[axis] // shared}
            cores //= shared
    if ways is None:
        raise published_names.BadRow(f"the layout is not stated in ways: {text}")
    stage = ways["tp"] * ways["dp_attention"]
    ep = stage if BARE_EXPERTS.search(pools[0]) else min(ways["ep"], stage)
    return {**ways, "ep": ep, "tp_expert": stage // ep} if experts else ways


def deployment_entries(table: sheets.Measurements) -> list[Entry]:
    """Entries of both times of every deployment; a time without prediction has a reason."""
    readings, entries = deployments(table.sheet), []
    measured = {(each.id, each.quantity): each for each in readings.rows}
    for row, line, cells in table.numbered:
        name = cells.get("id") or str(line)
        for column, quantity in QUANTITIES.items():
            made = (cells["model"], cells["chip"], cells["engine"], "")
            setting = f"{cells['layout']} {cells['isl']}/{cells['osl']} x{cells['concurrency']}"
            entry = Entry(row, line, column, quantity, cells["quality"], *made, setting)
            run, value = measured.get((name, quantity)), sheets.positive_or_none(cells[column])
            if run is not None and value is not None:
                entries.append(entry.measuring(run, value))
            elif value is not None or quantity == "ttft":
                why = readings.reason(name, quantity) or f"{column} is not stated"
                entries.append(replace(entry, measured=value, reason=why))
    return entries
