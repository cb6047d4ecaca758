"""Which kind of measurements a file holds, and one entry for all that are about serving."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planner.measurements.measurement import NotComputed
from planner.measurements.readers.engine_runs import runs
from planner.measurements.readers.load_generators import FORMATS, format_of_document, runs_in
from planner.measurements.readers.model_configurations import Configurations, configurations, told
from planner.measurements.readers.own_table import entries, owns
from planner.measurements.readers.sheets import Documents, Readings, Sheet, Source, opened
from planner.measurements.readers.steady_batches import steadies
from planner.measurements.readers.table_columns import COLUMNS, VALUES, columns_of
from planner.measurements.roofline_bound import strange_units
from planner.text.errors import InputError, quoted

__all__ = ["OWN", "SETS", "located", "read", "recognised"]

OWN = "own rows"

# Columns that only tables of one kind have together; a table may have more.
SETS: Mapping[str, tuple[str, ...]] = {
    "serving runs": ("model_path", "system", "backend", "isl", "osl", "concurrency", "tpot_ms"),
    "steady batches": ("model", "chip", "phase", "batch", "metric", "value"),
    "training runs": ("hidden", "layers", "global_batch", "measured_iter_time_s"),
    "collectives": ("accelerator", "ranks", "operation", "size_bytes", "time_us"),
    "exchanges": ("op", "chip", "ep", "dtype", "latency_us"),
}
MODELS = {"serving runs": "model_path", "steady batches": "model"}  # columns that name models
READERS: Mapping[str, Callable[[Source], Readings]] = {
    "serving runs": runs,
    "steady batches": steadies,
}


def recognised(source: Path | Sheet | Documents) -> str:
    """The kind of measurements in a file: a name in SETS, `own rows`, or a load generator.

    Raises
    ------
    InputError
        If the file cannot be read, or is of none of these; says what was missing for the nearest.
    """
    held = opened(source) if isinstance(source, Path) else source
    if isinstance(held, Documents):
        found = {format_of_document(each) for each in held.objects}
        if len(found) == 1 and None not in found:
            return str(found.pop())
        if len(found) > 1 and None not in found:
            told = ", ".join(sorted(map(str, found)))
            raise InputError(f"{held}: results of {told} in one file, expected those of one")
        raise InputError(f"{held}: JSON of no known load generator (known: {', '.join(FORMATS)})")
    names = held.columns
    for kind, needed in SETS.items():
        if set(needed) <= set(names):
            return kind
    near = max(SETS, key=lambda kind: len(set(SETS[kind]) & set(names)) / len(SETS[kind]))
    missing = [name for name in SETS[near] if name not in names]
    if len(missing) <= 1:
        raise InputError(f"{held}: a table of {near} without the column {quoted(missing[0])}")
    known = {name for name, words in COLUMNS.items() if {name, *words} & {n.lower() for n in names}}
    if len(known) >= 3 or known & set(VALUES):
        return OWN
    raise InputError(
        f"{held}: columns of no known table of measurements (known: {', '.join(SETS)}, and your "
        f"own with columns such as {', '.join(list(COLUMNS)[:3])}, tp, concurrency, tpot_ms)"
    )


def read(
    source: Path | Sheet | Documents, folders: Sequence[Path] = (), /, **facts: str | float
) -> Readings:
    """Every serving measurement of a file, whatever wrote it.

    Parameters
    ----------
    folders : configurations of models that the catalogue does not hold; the folder `hf_configs`
        beside the file is looked into as well.
    facts : what the file does not say, by the names of `columns.COLUMNS` (`model`, `system`, `tp`);
        a value of a table wins, and a fact over what a load generator says of the server.

    Raises
    ------
    InputError
        If the file is none that is known, is not about serving, or facts are missing or unknown.
    """
    held = opened(source) if isinstance(source, Path) else source
    kind, models = recognised(held), configurations(folders, held.path)
    if isinstance(held, Documents):
        return _generated(held, kind, models, facts)
    table, files = located(held, kind, models, facts)
    if kind == OWN:
        facts, more = _located_fact(facts, models)
        return replace(owns(table, **facts), models={**files, **more})
    if facts:
        raise InputError(f"{held}: a table of {kind} says {', '.join(facts)} itself")
    if kind not in READERS:
        raise InputError(f"{held} holds {kind}, not measurements of serving")
    return replace(_in_their_units(READERS[kind](table)), models=files)


def located(
    table: Sheet, kind: str, models: Configurations, facts: Mapping[str, object]
) -> tuple[Sheet, dict[str, str]]:
    """The table with configurations in place of models that the catalogue lacks, and which."""
    column = MODELS.get(kind)
    if kind == OWN:
        meant = columns_of(table.columns, facts, str(table))
        column = next((name for name, column in meant.items() if column == "model"), None)
    return models.located(table, column)


def _generated(
    held: Documents, kind: str, models: Configurations, facts: Mapping[str, str | float]
) -> Readings:
    facts, more = _located_fact(facts, models)
    rows = [
        {name: value for name, value in row.items() if name not in facts}
        for row in runs_in(held.objects, kind)
    ]
    had = list(dict.fromkeys(name for row in rows for name in row))
    given = [name for name in had if any(row.get(name) for row in rows)]
    columns_of(given, facts, str(held))
    rows = [{**row, **({"model": models.cell(row["model"])} if row.get("model") else {})}
            for row in rows]  # fmt: skip
    files = told(row.get("model", "") for row in rows)
    return replace(entries(rows, facts, kind), models={**files, **more})


def _located_fact(
    facts: Mapping[str, str | float], models: Configurations
) -> tuple[dict[str, str | float], dict[str, str]]:
    """The facts, with a configuration in place of a model that the catalogue lacks."""
    if "model" not in facts:
        return dict(facts), {}
    cell = models.cell(str(facts["model"]))
    return {**facts, "model": cell}, told([cell])


def _in_their_units(readings: Readings) -> Readings:
    """Without the values that are a thousand times off: another unit was meant."""
    told = strange_units(readings.rows)
    kept = [row for row, strange in zip(readings.rows, told, strict=True) if not strange]
    strange = [
        NotComputed(row.id, why, row.quantity)
        for row, why in zip(readings.rows, told, strict=True)
        if why
    ]
    return replace(readings, rows=tuple(kept), refused=(*readings.refused, *strange))
