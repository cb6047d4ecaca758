"""Published serving points with their layouts: times to the first token and per token of each.

Empty is not stated and `?` uncertain. Ways of a layout may count cores: of chips with several dies,
those of one chip share its memory, so tensor ways are divided first and then copies of attention.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from planner.catalogue.chips import Chip
from planner.measurements import published_names
from planner.measurements.entry import Entry
from planner.measurements.measurement import Measurement, NotComputed, Readings, layout_of
from planner.measurements.readers import sheets
from planner.measurements.readers.run_layouts import refuse_overfull
from topologies import machine

QUANTITIES = {"ttft_ms": "ttft", "tpot_ms": "tpot"}
UNSTATED = ("", "not stated", "?")
BARE_EXPERTS = re.compile(r"_EP$")


def deployments(source: sheets.Source) -> Readings:
    """Both times of every deployment, or why one has no prediction; ids are those of the rows."""
    table = sheets.rows_of(source)
    rows: list[Measurement] = []
    refused: list[NotComputed] = []
    for line, row in enumerate(table, start=2):
        name = row.get("id") or str(line)
        try:
            rows += deployment(row, name)
        except published_names.Refused as why:
            refused.append(NotComputed(name, str(why)))
    return Readings("deployments", tuple(rows), tuple(refused), len(table))


def deployment(row: sheets.Row, name: str) -> list[Measurement]:
    """The times of one deployment.

    Raises Refused if a name has no entry in the catalogue, what a time needs is not stated, or no
    time is.
    """
    row = {column: "" if text in UNSTATED else text.rstrip("?") for column, text in row.items()}
    for column in ("chip", "model", "precision", "chips", "layout"):
        if not row[column]:
            raise published_names.Refused(f"{column} is not stated")
    seconds = {q: sheets.positive(row, c) / 1e3 for c, q in QUANTITIES.items() if row[c]}
    if not seconds:
        raise published_names.Refused("no time is stated, only rates of it")
    chip, chips = published_names.chip_of(row["chip"]), sheets.count(row, "chips")
    weights = published_names.format_of(row["precision"])
    sizes = published_names.sizes_on(chip, row["model"], weights, None)
    refuse_overfull(sizes, chip, chips)
    layout = stated_layout(row["layout"], row["phase"], chip, chips, sizes.n_experts)
    prompt = sheets.tokens(row, "isl")
    reading = row["phase"] == "prefill"
    output = 2.0 if reading else max(sheets.tokens(row, "osl"), 2.0)
    engine = re.sub(r"[\s-]?[\d.]+$", "", row["engine"].strip()).lower().replace(" ", "-")
    common = Measurement(
        id=name,
        source=row["source"],
        engine=f"{engine or 'unknown'}-{row['date'][:4]}",
        model=published_names.base_of(published_names.model_of(row["model"]).name),
        sizes=sizes,
        chip=chip,
        machine=published_names.machine_of(chip.name),
        chips=chips,
        layout=layout,
        batch=sheets.positive(row, "concurrency"),
        prompt=prompt,
        output=output,
        context=prompt + output / 2,
        quantity="",
        seconds=0.0,
        quality=row["quality"],
        precision=weights,
        looped=not reading,
        speculated=bool(row["speculation"]),
        as_of=row["date"],
        even=not reading,
    )
    return [replace(common, quantity=q, seconds=value) for q, value in seconds.items()]


def stated_layout(text: str, phase: str, chip: Chip, chips: int, experts: int) -> Mapping[str, int]:
    """Ways by axis in chips, of the pool of a phase where there are two.

    Raises Refused if the text names none, or they multiply to neither the chips nor their cores.
    """
    pools = [part for part in text.split("+") if phase in part] or [text]
    ways = layout_of(BARE_EXPERTS.sub("", pools[0]), chips, experts)
    name = published_names.machine_of(chip.name)
    cores = machine(name).dies_per_chip if name else 1
    if ways is None and cores > 1:
        ways = layout_of(BARE_EXPERTS.sub("", pools[0]), chips * cores, experts)
        for axis in ("tp", "dp_attention"):
            shared = math.gcd((ways or {}).get(axis, 1), cores)
            ways = ways and {**ways, axis: ways[axis] // shared}
            cores //= shared
    if ways is None:
        raise published_names.Refused(f"the layout is not stated in ways: {text}")
    stage = ways["tp"] * ways["dp_attention"]
    ep = stage if BARE_EXPERTS.search(pools[0]) else min(ways["ep"], stage)
    return {**ways, "ep": ep, "tp_expert": stage // ep} if experts else ways


def deployment_entries(table: sheets.MeasurementTable) -> list[Entry]:
    """Both times of every deployment, with the reason where one is not predicted."""
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
