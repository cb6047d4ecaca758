"""Runs of whole engines at a concurrency, of one pool or of two: TPOT and TTFT of each.

The table mixes exports. A run may stand in it twice with the same times to the last digit, under
`DeepSeek-R1` and, with more columns, under `DeepSeek-V3`: the second export holds runs without
speculation only, and gives the workers of both pools. The first row is then read as the second.
Where the second export holds the same version, layout and concurrency with other times, the first
row speculated; where it holds nothing, the table does not say.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from planner.measurements import published_names
from planner.measurements.measurement import Measurement, NotComputed, Readings
from planner.measurements.readers import run_layouts, sheets
from planner.measurements.readers.run_layouts import require_fits_memory
from planner.measurements.readers.script_settings import (
    Facts,
    ScriptPools,
    plain_export,
    script_pools,
    script_settings,
)

QUANTITIES = {"tpot_ms": "tpot", "ttft_ms": "ttft"}
# Columns equal in two rows of one run, as both times are. Exports differ in the sixteenth digit or
# round to hundredths of a millisecond; times of fewer than DECIMALS in all agree by chance.
SAME_RUN = ("mode", "system", "backend", "isl", "osl", "concurrency")
DECIMALS = 3
OTHER_DAY = ("measured_on", "image", "wip")
# Columns equal in a run with speculation and its run in the plain export, like the layout.
SAME_SWEEP = (*SAME_RUN, "backend_version", "gemm_quant_mode")
PLAIN_MODEL = plain_export()
# SGLang's pools were swept over one list of concurrencies, with drafts and without, or without
# alone: where a smaller share of the configurations occurs with two times, no run had drafts. No
# such rule holds for TensorRT-LLM, whose recipes have concurrencies of their own.
PAIRED_TOLERANCE = 0.1
SWEPT = "sglang"
ONE_SWEEP = ("backend", "backend_version", "system", "gemm_quant_mode")


def reference_rows(table: Sequence[sheets.TableRow]) -> list[int]:
    """For every row that which says most of the same run: itself where no other row is that run."""
    identities = list(map(_identity, table))
    ranked = sorted(range(len(table)), key=lambda i: (_says(table[i]), -i))
    best = {identities[i]: i for i in ranked}  # of each run the last one
    return [best[identity] for identity in identities]


def speculative_runs(table: Sequence[sheets.TableRow], fullest: Sequence[int]) -> dict[int, bool]:
    """{row index: True if the run speculates}, for the runs that the rest of the table decides.

    Of the rows of the open part that are found to, all but three are 1.1 to 2 times as fast as the
    plain run beside them; of those found not to, none is faster than its like.
    """
    plain = {_configuration(row) for row in table if row["model_path"] == PLAIN_MODEL} - {None}
    shape = published_names.base_architecture(published_names.resolve_model(PLAIN_MODEL).name)
    speculated: dict[int, bool] = {}
    for i, row in enumerate(table):
        other_model = table[fullest[i]]["model_path"] != PLAIN_MODEL
        if other_model and _configuration(row) in plain:
            entry = published_names.catalogue_name(row["model_path"])
            if entry is not None and published_names.base_architecture(entry) == shape:
                speculated[i] = True
    sweeps: dict[tuple[str, ...], dict[object, set[int]]] = defaultdict(lambda: defaultdict(set))
    sweep_of = {
        i: tuple(row.get(name, "") for name in ONE_SWEEP)
        for i, row in enumerate(table)
        if row["mode"] == "disagg" and row["backend"] == SWEPT
    }
    for i, sweep in sweep_of.items():
        sweeps[sweep][_configuration(table[i])].add(fullest[i])
    single = {
        sweep
        for sweep, runs in sweeps.items()
        if sum(len(each) > 1 or bool(each & speculated.keys()) for each in runs.values())
        < PAIRED_TOLERANCE * len(runs)
    }
    return {i: False for i, sweep in sweep_of.items() if sweep in single} | speculated


def _configuration(row: sheets.TableRow) -> tuple[object, ...] | None:
    """Key of a configuration of a sweep; for two pools, which were retuned, also the day."""
    try:
        if row["mode"] == "disagg":
            copies = sheets.count(row, "decode_attention_dp_size", 1)
            ranks = sheets.count(row, "decode_tp_size") * copies
            layout: tuple[object, ...] = (ranks, row["measured_on"])
        else:
            ways = run_layouts.parallel_sizes(row, 1)
            layout = (run_layouts.worker_chips(ways), ways["dp_attention"] > 1)
    except published_names.BadRow:
        return None
    return (*(row.get(name, "") for name in SAME_SWEEP), *layout)


def _identity(row: sheets.TableRow) -> tuple[str, ...]:
    """Key of the rows of one run: its times to the hundredth if given that exactly."""
    times = [row.get(column, "") for column in QUANTITIES]
    if sum(len(time.partition(".")[2]) for time in times) >= DECIMALS:
        try:
            rounded = [f"{float(time):.2f}" for time in times]
        except ValueError:
            rounded = times
        return (*(row.get(name, "") for name in SAME_RUN), *rounded)
    return tuple(value for name, value in row.items() if name not in OTHER_DAY)


def _says(row: sheets.TableRow) -> tuple[bool, bool, int]:
    return (
        bool(row.get("decode_num_workers")),
        row.get("model_path") == PLAIN_MODEL,
        sum(bool(value) for value in row.values()),
    )


# A table needs the first, and one of the times; others may be missing, as if all were blank.
RUN_COLUMNS = ("model_path", "system", "backend", "isl", "osl", "concurrency", "tp_size")
OPTIONAL = (
    *("backend_version", "precision", "mode", "gemm_quant_mode", "moe_quant_mode"),
    *("batch_size", "measured_on", "wip", "image", "source", "engine"),
)
LARGEST_DOMAIN = 8


def runs(path: sheets.Source) -> Readings:
    """TPOT and TTFT of every run, ids by line number; repeats are marked, not left out."""
    # Lines with every column that is read; raises InputError if one that is needed is missing.
    sheets.needs(path, RUN_COLUMNS, tuple(QUANTITIES))
    blank = dict.fromkeys((*OPTIONAL, *QUANTITIES), "")
    table = [{**blank, **row} for row in sheets.table_rows(path)]
    fullest = reference_rows(table)
    speculated = speculative_runs(table, fullest)
    rows: list[Measurement] = []
    refused: list[NotComputed] = []
    for i, best in enumerate(fullest):
        repeats = "" if best == i else str(best + 2)
        try:
            measured = run(table[best], str(i + 2), repeats, refused, speculated.get(i))
            rows += [_speculating(one, speculated.get(i), table[best]) for one in measured]
        except published_names.BadRow as why:
            refused.append(NotComputed(str(i + 2), str(why)))
    return Readings("serving runs", tuple(rows), tuple(refused), len(table))


def _speculating(
    row_measured: Measurement, speculates: bool | None, row: sheets.TableRow
) -> Measurement:
    """Set the drafts of a row: from `speculates` if known, else from its script's settings."""
    settings = script_settings(_facts(row, row_measured))
    certain, drafts = speculates is not None, bool(speculates)
    if row_measured.speculated is None and not certain:
        drafts = settings.drafting
        certain = drafts and not row_measured.pooled
    number = (row_measured.drafts or settings.drafts) if drafts else 0
    if drafts and not certain:
        # More than half of the published definitions of such sweeps draft; the row does not say.
        assumption = "; ".join(filter(None, (row_measured.assumed, "that tokens are drafted")))
        return replace(row_measured, drafts=number, assumed=assumption)
    return replace(row_measured, drafts=number, speculated=drafts) if certain else row_measured


def _facts(row: sheets.TableRow, run: Measurement) -> Facts:
    """Facts of a run for the lookup of its script, from the columns read until now.

    Raises BadRow if ways or requests are none.
    """
    # In flight over the engine; copies of attention share them.
    tp, copies = sheets.count(row, "tp_size", 1), sheets.count(row, "attention_dp_size", 1)
    isl, osl = (sheets.tokens(row, name) for name in ("isl", "osl"))
    return {
        "source": row.get("source", ""),
        "engine": row["backend"],
        "version": row["backend_version"],
        "model": run.model,
        "weights": run.precision,
        "chip": run.chip.name,
        "architecture": run.chip.architecture,
        "lengths": f"{isl:g}/{osl:g}",
        "requests": sheets.number_or_none(row, "concurrency") or 0.0,
        "tp": tp,
        "copies": (run.layout or {}).get("dp_attention", copies),
        "ranks": tp * copies,
        "day": run.as_of,
        "pooled": "yes" if row["mode"] == "disagg" or _added_up(row) else "no",
    }


def run(
    row: sheets.TableRow,
    line: str,
    repeats: str,
    refused: list[NotComputed],
    drafting: bool | None = None,
) -> list[Measurement]:
    """TPOT and TTFT of one run, `drafting` if known; a value that is no time goes to `refused`.

    Raises BadRow if neither can be put into the catalogue's words.
    """
    stated = _stated(row, line, repeats)
    facts, chip, name = _facts(row, stated), stated.chip, row["model_path"]
    settings = script_settings(facts)
    weights, sizes = _checkpoint(row), stated.sizes
    if settings.cache:
        sizes = published_names.sizes_on_chip(chip, name, weights, settings.cache)
    prompt, output = (settings.length * length for length in (stated.prompt, stated.output))
    common = replace(
        stated,
        sizes=sizes,
        prompt=prompt,
        output=max(output, 2.0),
        context=prompt + output / 2,
        precision=weights or "own",
        even=settings.even,
        mixed=settings.mixed,
        poll=settings.poll,
        hold=settings.hold,
        most=settings.most,
        chunk=prompt + settings.beyond if settings.beyond else settings.chunk,
    )
    scripts = _scripts(row, facts, stated.speculated if drafting is None else drafting)
    if len({each.drafts for each in scripts}) == 1:
        common = replace(common, drafts=scripts[0].drafts, speculated=scripts[0].drafts > 0)
    if len({each.chunk for each in scripts}) == 1:
        common = replace(common, chunk=scripts[0].chunk or common.chunk)
    placed = _placed(common, row, scripts)
    if settings.reserved:
        placed = {q: replace(x, most=x.batch - settings.reserved) for q, x in placed.items()}
    measured = []
    for made in {each.chips: each for each in placed.values()}.values():
        require_fits_memory(sizes, chip, made.chips)
    for column, quantity in QUANTITIES.items():
        try:
            seconds = sheets.positive(row, column) / 1e3
        except published_names.BadRow as why:
            refused.append(NotComputed(line, str(why), quantity))
            continue
        measured.append(replace(placed[quantity], quantity=quantity, seconds=seconds))
    return measured


def _scripts(row: sheets.TableRow, facts: Facts, drafting: bool | None) -> list[ScriptPools]:
    if facts["pooled"] == "no" or row["mode"] != "disagg":
        return []
    scripts = run_layouts.matching_scripts(row, script_pools(facts))
    if drafting is None and len({bool(each.drafts) for each in scripts}) > 1:
        drafting = script_settings(facts).drafting
    return [each for each in scripts if drafting in (None, each.drafts > 0)]


def _placed(
    run: Measurement, row: sheets.TableRow, scripts: Sequence[ScriptPools]
) -> dict[str, Measurement]:
    """The run where each quantity is made: layout, chips and batch of one replica or one worker."""
    sizes, chip = run.sizes, run.chip
    if row["mode"] != "disagg" and not _added_up(row):
        layout = run_layouts.parallel_sizes(row, sizes.n_experts)
        chips = run_layouts.worker_chips(layout)
        alone = replace(run, layout=layout, chips=chips, batch=_batch(row))
        return dict.fromkeys(QUANTITIES.values(), alone)
    pools = run_layouts.run_pools(row, sizes, chip, scripts)
    lengths = sheets.positive(row, "isl"), sheets.positive(row, "osl")
    decoding = run_layouts.in_decode(pools, *lengths, sizes, chip)
    waiting = pools.concurrency - decoding
    assumed = "" if pools.decode.stated else "the workers of both pools and what they copy"
    if sheets.number_or_none(row, "concurrency") is None:
        assumed = "as many requests as the decode pool holds"
    run, placed = replace(run, pools=pools, assumed=assumed), {}
    batches = {"tpot": (pools.decode, decoding), "ttft": (pools.prefill, waiting)}
    for quantity, (pool, requests) in batches.items():
        batch = max(1.0, min(requests / pool.workers, pool.most or math.inf))
        placed[quantity] = replace(run, layout=pool.layout, chips=pool.chips, batch=batch)
    return placed


def _stated(row: sheets.TableRow, line: str, repeats: str) -> Measurement:
    """Read a row as a run with nominal lengths, before its script and its layout are read.

    Raises BadRow if a name has no entry in the catalogue, or a length or the day is none.
    """
    chip = published_names.resolve_chip(row["system"])
    name = row["model_path"]
    weights = _checkpoint(row)
    base = published_names.base_architecture(published_names.resolve_model(name).name)
    prompt, output = (sheets.tokens(row, length) for length in ("isl", "osl"))
    stored = published_names.sizes_on_chip(chip, name, weights, sheets.USUAL_CACHE)
    return Measurement(
        id=line,
        source="serving runs",
        engine=published_names.aliases().engines.get(
            row.get("source", ""), f"{row['backend']}-2026"
        ),
        model=base,
        sizes=stored,
        chip=chip,
        machine=published_names.row_machine(chip.name),
        chips=0,
        layout=None,
        batch=0.0,
        prompt=prompt,
        output=output,
        context=0.0,
        quality="wip" if row.get("wip") == "True" else "run",
        precision=weights or sheets.USUAL_CACHE,
        version=row["backend_version"] or row.get("engine", "").lower(),
        looped=True,
        leanest=published_names.sizes_on_chip(chip, name, weights, sheets.NARROWEST_CACHE),
        speculated=None if stored.mtp_blocks and name != PLAIN_MODEL else False,
        repeats=repeats,
        as_of=sheets.day(row, "measured_on"),
    )


def _added_up(row: sheets.TableRow) -> bool:
    """True if a row called aggregated counts the chips of two pools as tensor parallel.

    Runs on GB200 whose tensor ways are 12 to 72 without an image: the same concurrencies with
    times within 2 % stand in the table once more, as disaggregated.
    """
    tp, experts = sheets.count(row, "tp_size"), sheets.count(row, "moe_tp_size", 1)
    return tp > LARGEST_DOMAIN and tp == experts and not row.get("image")


def _batch(row: sheets.TableRow) -> float:
    """Requests in flight in one replica; what does not fit was in several behind one address."""
    per_copy = sheets.number_or_none(row, "batch_size")
    copies = sheets.count(row, "attention_dp_size", 1)
    requests = sheets.number_or_none(row, "concurrency")
    if requests is None:
        if per_copy is None:
            raise published_names.BadRow("neither concurrency nor batch_size is given")
        return per_copy * copies
    if per_copy is None:
        return requests
    replicas = max(1, round(requests / (per_copy * copies)))
    return requests / replicas


def _checkpoint(row: sheets.TableRow) -> str | None:
    stated = row.get("moe_quant_mode") or row.get("gemm_quant_mode") or row.get("precision")
    return published_names.number_format(stated) if stated else None
