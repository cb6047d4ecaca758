"""A user's own measurements: a table of runs, one a line, and the columns that it may have.

=============  ====================================================================================
model          catalogue name, published id (organisation, format and tuning may be in it), or the
               path of a configuration that ends in `.json`
system, chip   a catalogue system (`hgx-h200`) or a chip (`h200`, `NVIDIA H200`); one of the two
engine         name, as `vllm`; `engine_version` beside it
weights        number format of the weights, the checkpoint's own where blank; `kv` of the cache
tp, pp, ep     ways; `dp_attention` copies of attention; blank is 1, and tensor ways fill `n_chips`
overlap        two-batch where two half-batches of a pass overlapped, none or blank where not
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

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.architecture.counts import ModelSizes
from planner.catalogue.chips import Chip
from planner.catalogue.systems import system, system_names
from planner.measurements import published_names
from planner.measurements.measurement import ONE_CHIP, Measurement, NotComputed, Readings
from planner.measurements.readers import sheets
from planner.measurements.readers.run_layouts import require_fits_memory
from planner.measurements.roofline_bound import unit_warnings
from planner.text.errors import InputError, did_you_mean, quote
from planner.text.tables import table

# Every column, and the words that others use for it, in the form that `_plain` gives.
COLUMNS: Mapping[str, Sequence[str]] = table("planner.measurements", "own_columns.toml")
VALUE_COLUMNS = tuple(name for name in COLUMNS if name.endswith("_s") or name.endswith("_ms"))
OWN_COLUMNS = (("model",), ("system", "chip"), ("input_tokens",), ("output_tokens",))
LOADS = ("concurrency", "batch")
# Names never read as misspelt columns: remarks, and statistics of a time other than its mean.
IGNORED_NAME = re.compile(
    r"(notes?|comments?|remarks?|date|name|source|url|id)$|(p\d+|std|min|max)_"
)


def own_runs(path: sheets.Source, /, **facts: str | float) -> Readings:
    """Every run of a user's own table; `facts` fill columns that the table lacks.

    Raises InputError if columns are missing, given twice or misspelt; every such mistake in one
    message.
    """
    cells = sheets.table_rows(path)
    names = map_columns(list(cells[0]), facts, str(path))
    rows = [{names.get(name, name): value for name, value in row.items()} for row in cells]
    return entries(rows, facts, "own rows")


def entries(
    rows: Sequence[sheets.TableRow], facts: Mapping[str, str | float], columns: str
) -> Readings:
    """Runs under the names of COLUMNS, ids by line number; the header is line 1."""
    stated = {name: str(value) for name, value in facts.items()}
    measured: list[Measurement] = []
    refused: list[NotComputed] = []
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for line, row in enumerate(rows, start=2):
        if not any(row.values()):
            refused.append(NotComputed(str(line), "the line is blank"))
            continue
        whole = {**row, **{name: value for name, value in stated.items() if not row.get(name)}}
        key = tuple(sorted((name, value) for name, value in whole.items() if name in COLUMNS))
        try:
            measured += measured_run(whole, str(line), seen.get(key, ""), refused)
        except published_names.BadRow as why:
            refused.append(NotComputed(str(line), str(why)))
        seen.setdefault(key, str(line))
    return Readings(columns, tuple(measured), tuple(refused), len(rows))


def measured_run(
    row: sheets.TableRow, line: str, repeats: str, refused: list[NotComputed]
) -> list[Measurement]:
    """The measurements of one run; a value that is no time goes to `refused`.

    Raises BadRow if the run cannot be put into the catalogue's words, its layout is impossible, or
    no value is given.
    """
    chip, machine = _hardware(row)
    if not row.get("model"):
        raise published_names.BadRow("model is not given")
    stated = map(row.get, ("weights", "kv"))
    weights, kv = (published_names.number_format(x) if x else None for x in stated)
    sizes = published_names.sizes_on_chip(chip, row["model"], weights, kv)
    layout, chips, replicas, assumed = _place(row, sizes, chip)
    prompt, output = sheets.tokens(row, "input_tokens"), sheets.tokens(row, "output_tokens")
    looped = sheets.number_or_none(row, "concurrency") is not None
    if not looped and sheets.number_or_none(row, "batch") is None:
        zero = " but 0" if row.get("concurrency") or row.get("batch") else ""
        raise published_names.BadRow(f"neither concurrency nor batch is given{zero}")
    sent = sheets.positive(row, "concurrency" if looped else "batch")
    drafts = sheets.count(row, "drafts", 0)
    values = _values(row, looped, sent, output, line, refused)
    common = Measurement(
        id=line,
        source=row.get("source", "") or "own",
        engine=row.get("engine", "").lower() or "unknown",
        model=published_names.base_architecture(published_names.resolve_model(row["model"]).name),
        sizes=sizes,
        chip=chip,
        machine=machine,
        chips=chips,
        layout=layout,
        halves=published_names.half_batches(row.get("overlap", ""), layout),
        batch=max(1.0, sent / replicas),  # a timed request runs, even if the mean is below 1
        prompt=prompt,
        output=max(output, 2.0),
        context=prompt + output / 2,
        quality="own",
        drafts=drafts,
        precision=row.get("weights", "") or "own",
        version=row.get("engine_version", ""),
        looped=looped,
        speculated=bool(drafts) or row.get("speculated", "").lower() in ("yes", "true", "mtp"),
        repeats=repeats,
        assumed="; ".join(part for part in (row.get("assumed", ""), assumed) if part),
    )
    made = [replace(common, quantity=name, seconds=time) for name, time in values.items()]
    pairs = list(zip(made, unit_warnings(made), strict=True))
    refused += [NotComputed(line, why, each.quantity) for each, why in pairs if why]
    return [each for each, why in pairs if not why]


def _values(
    row: sheets.TableRow,
    looped: bool,
    requests: float,
    output: float,
    line: str,
    refused: list[NotComputed],
) -> dict[str, float]:
    """Times [s] by quantity. Under a closed loop the time per token is a mean over requests."""
    seconds: dict[str, float] = {}
    token = "tpot" if looped else "step"
    meant = {"ttft": "ttft", "tpot": token, "itl": token, "step": "step", "e2e": "e2e"}
    stated = [name for name in VALUE_COLUMNS if row.get(name)]
    if not stated:
        raise published_names.BadRow("no measured value is given")
    for name in stated:
        stem, unit = name.rsplit("_", 1)
        try:
            value = sheets.positive(row, name)
        except published_names.BadRow as why:
            refused.append(NotComputed(line, str(why), stem))
            continue
        time = value / (1e3 if unit == "ms" else 1.0)
        if stem == "tokens_per":
            # The mean time of a slot per token, first tokens included.
            if not {"tpot", "step", "e2e"}.intersection(seconds):
                seconds[token] = requests / value
        elif stem == "e2e" and looped:
            if "ttft" in seconds and token not in seconds and output > 1:
                seconds[token] = (time - seconds["ttft"]) / (output - 1)
        else:
            seconds.setdefault(meant[stem], time)
    return seconds


def _hardware(row: sheets.TableRow) -> tuple[Chip, str | None]:
    """The chip, and the machine that joins such chips."""
    name = row.get("system") or row.get("chip", "")
    if not name:
        raise published_names.BadRow("neither system nor chip is given")
    if name.lower() in system_names():
        described = system(name.lower())
        return described.chip, described.topology or published_names.row_machine(
            described.chip.name
        )
    chip = published_names.resolve_chip(name)
    return chip, published_names.row_machine(chip.name)


def _place(
    row: sheets.TableRow, sizes: ModelSizes, chip: Chip
) -> tuple[dict[str, int], int, int, str]:
    """Layout and chips of a replica, number of equal replicas, and the assumption made."""
    tp, pp = sheets.number_or_none(row, "tp"), sheets.count(row, "pp", 1)
    copies, ep = sheets.count(row, "dp_attention", 1), sheets.count(row, "ep", 1)
    chips, assumed = sheets.number_or_none(row, "n_chips"), ""
    if tp is None and chips is not None:
        tp, assumed = chips / (pp * copies), "tensor parallelism over the chips of a stage"
    ways = sheets.count({"tp": str(tp)}, "tp") if tp is not None else 1
    replica = ways * pp * copies
    replicas = (chips or replica) / replica
    if chips and replicas != int(replicas):
        words = f"{chips:g} chips are no multiple of a replica's {ways * copies * pp}"
        if copies > 1 and ways % copies == 0 and chips % (ways * pp) == 0:
            words += f": is tp {ways // copies} in each of {copies} copies of attention meant?"
        raise published_names.BadRow(words)
    if sizes.n_q_heads % ways:
        raise published_names.BadRow(
            f"tp {ways} does not divide the {sizes.n_q_heads} attention heads"
        )
    if pp > sizes.n_layers:
        raise published_names.BadRow(f"{pp} stages for {sizes.n_layers} layers")
    if ep > 1 and not sizes.n_experts:
        raise published_names.BadRow(f"{ep} expert groups for a model without experts")
    if ways * copies % ep:
        meant = math.gcd(ep, ways * copies)
        raise published_names.BadRow(
            f"{ep} expert groups on {ways * copies} chips: ep {meant} with tensor parallelism of "
            f"{ways * copies // meant} inside each would be all of them"
        )
    require_fits_memory(sizes, chip, replica)
    experts = {"ep": ep, "tp_expert": ways * copies // ep} if sizes.n_experts else {}
    layout = {**ONE_CHIP, "tp": ways, "pp": pp, "dp_attention": copies, **experts}
    return layout, replica, int(replicas), assumed


def map_columns(names: Sequence[str], facts: Mapping[str, object], where: str) -> dict[str, str]:
    """The column that each name of a table means; names of nothing known are left out.

    Raises InputError if a name is nearly one that is lacking, two names mean one column, a fact has
    no column, or a column that is needed is missing.
    """
    spellings = {_plain(word): name for name, words in COLUMNS.items() for word in (name, *words)}
    meanings: dict[str, str] = {}
    mistakes, unknown = [], []
    for name in names:
        meant = spellings.get(_plain(name))
        if meant is None:
            unknown.append(name)
        elif meant in meanings.values():
            mistakes.append(f"the column {meant} is given twice, once as {quote(name)}")
        else:
            meanings[name] = meant
    had = {*meanings.values(), *facts}
    stated = {_meant(column) for column in had}
    rest = [word for word, column in spellings.items() if _meant(column) not in stated]
    for name in unknown:
        hint = did_you_mean(_plain(name), rest)
        mean = spellings.get(_plain(name).removeprefix("median_"))
        if hint and not IGNORED_NAME.match(_plain(name)) and not (mean and _meant(mean) in stated):
            mistakes.append(f"unknown column {quote(name)}{hint}")
    wrong = [name for name in facts if name not in COLUMNS]
    mistakes += [f"unknown fact {quote(name)}{did_you_mean(name, COLUMNS)}" for name in wrong]
    for names_of_one in (*OWN_COLUMNS, LOADS):
        if not had.intersection(names_of_one):
            mistakes.append(
                f"missing column {' or '.join(names_of_one)}; a value of all rows may be given "
                f"as a fact: --fact {names_of_one[0]}=…"
            )
    if not had.intersection(VALUE_COLUMNS):
        mistakes.append(f"no measured column (any of {', '.join(VALUE_COLUMNS)})")
    if mistakes:
        raise InputError(f"{where}: " + f"\n{where}: ".join(mistakes))
    return meanings


def _meant(column: str) -> str:
    group = next((names for names in (*OWN_COLUMNS, LOADS) if column in names), (column,))
    return group[0].rsplit("_", 1)[0] if column in VALUE_COLUMNS else group[0]


def _plain(name: str) -> str:
    text = re.sub(r"[\s\-./]+", "_", name.strip().lower())
    text = re.sub(r"_?[\[(](m?s)[\])]$", r"_\1", text)
    return re.sub(r"[^a-z0-9_]", "", text).strip("_")
