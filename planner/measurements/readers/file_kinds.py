"""Kinds of files of measurements: by which columns each is known, and what reads it.

The one registry for fitting, validation and `--data` alike. A cell is never changed, but for models
of configurations: what is not understood is refused later, by row and with a reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.measurements import rl_steps, training_steps
from planner.measurements.entry import Entry
from planner.measurements.measurement import NotComputed, Readings
from planner.measurements.readers import (
    model_configurations,
    own_table,
    sheets,
    table_entries,
    training_rows,
)
from planner.measurements.readers.deployment_rows import deployment_entries, deployments
from planner.measurements.readers.engine_runs import runs
from planner.measurements.readers.load_generators import FORMATS, format_of_document, runs_in
from planner.measurements.readers.model_configurations import Configurations, configurations
from planner.measurements.readers.sheets import Documents, MeasurementTable, Sheet, Source, opened
from planner.measurements.readers.steady_batches import steadies
from planner.measurements.roofline_bound import strange_units
from planner.text.errors import InputError, Mistake, quoted

OWN = "own rows"


@dataclass(frozen=True)
class FileKind:
    """A kind of published table.

    Attributes
    ----------
    needed : Columns that only tables of this kind have together; a table may have more.
    measured : Columns that hold measured values.
    entries : Every measured value of a table, repeats marked, with the reason where it is unusable.
    model : Column that names models, empty where none does.
    readings : Reads its rows as measurements of serving; None where it holds something else.
    """

    needed: tuple[str, ...]
    measured: tuple[str, ...]
    entries: Callable[[MeasurementTable], list[Entry]]
    model: str = ""
    readings: Callable[[Source], Readings] | None = None


KINDS: Mapping[str, FileKind] = {
    "serving runs": FileKind(
        ("model_path", "system", "backend", "isl", "osl", "concurrency", "tpot_ms"),
        ("tpot_ms", "ttft_ms"),
        table_entries.run_entries,
        "model_path",
        runs,
    ),
    "steady batches": FileKind(
        ("model", "chip", "phase", "batch", "metric", "value"),
        ("value",),
        table_entries.steady_entries,
        "model",
        steadies,
    ),
    "deployments": FileKind(
        ("model", "chip", "chips", "layout", "phase", "isl", "osl", "concurrency", "quality"),
        ("ttft_ms", "tpot_ms"),
        deployment_entries,
        "model",
        deployments,
    ),
    "training runs": FileKind(
        ("hidden", "layers", "global_batch", "measured_iter_time_s"),
        ("iter_time_derived_s", "measured_iter_time_s"),
        table_entries.training_entries,
    ),
    "training layouts": FileKind(
        training_rows.NEEDED, ("value",), training_steps.training_layout_entries
    ),
    "reinforcement learning": FileKind(rl_steps.NEEDED, ("step_s",), rl_steps.rl_entries),
    "collectives": FileKind(
        ("accelerator", "ranks", "operation", "size_bytes", "time_us"),
        ("time_us",),
        table_entries.collective_entries,
    ),
    "exchanges": FileKind(
        ("op", "chip", "ep", "dtype", "latency_us"), ("latency_us",), table_entries.exchange_entries
    ),
}


def recognised(source: Path | Sheet | Documents) -> str:
    """The kind of measurements in a file: a name in KINDS, `own rows`, or a load generator.

    Raises InputError if the file cannot be read, or is of none of these; says what was missing for
    the nearest.
    """
    content = opened(source) if isinstance(source, Path) else source
    if isinstance(content, Documents):
        formats = {format_of_document(each) for each in content.objects}
        names = ", ".join(sorted(map(str, formats)))
        if None in formats:
            listed = ", ".join(FORMATS)
            raise InputError(f"{content}: JSON of no known load generator (known: {listed})")
        if len(formats) > 1:
            raise InputError(f"{content}: results of {names} in one file, expected those of one")
        return names
    lacking = {
        kind: [name for name in file_kind.needed if name not in content.columns]
        for kind, file_kind in KINDS.items()
    }
    near = min(KINDS, key=lambda kind: len(lacking[kind]) / len(KINDS[kind].needed))
    if not lacking[near]:
        return near
    if len(lacking[near]) == 1:
        missing = quoted(lacking[near][0])
        raise InputError(f"{content}: a table of {near} without the column {missing}")
    spelled = {name.lower() for name in content.columns}
    columns = own_table.COLUMNS
    recognisable = {name for name, words in columns.items() if {name, *words} & spelled}
    if len(recognisable) >= 3 or recognisable & set(own_table.VALUES):
        return OWN
    raise InputError(
        f"{content}: columns of no known table of measurements (known: {', '.join(KINDS)}, and "
        f"your own with columns such as {', '.join([*columns][:3])}, tp, concurrency, tpot_ms)"
    )


def read(
    source: Path | Sheet | Documents, folders: Sequence[Path] = (), /, **facts: str | float
) -> Readings:
    """Every serving measurement of a file, whatever wrote it.

    Raises InputError if the file is none that is known, is not about serving, or facts are missing
    or unknown.

    Parameters
    ----------
    folders : configurations of models that the catalogue does not hold; the folder `hf_configs`
        beside the file is looked into as well.
    facts : what the file does not say, by the names of `columns.COLUMNS` (`model`, `system`, `tp`);
        a value of a table wins, and a fact over what a load generator says of the server.
    """
    content = opened(source) if isinstance(source, Path) else source
    kind, models = recognised(content), configurations(folders, content.path)
    if isinstance(content, Documents):
        return _generated(content, kind, models, facts)
    if kind == OWN:
        cells = table(content, facts, folders)
        facts, more = _located_fact(facts, models)
        return replace(own_table.own_runs(cells.sheet, **facts), models={**cells.models, **more})
    _says_itself(content, kind, facts)
    readings = KINDS[kind].readings
    if readings is None:
        raise InputError(f"{content} holds {kind}, not measurements of serving")
    cells = table(content, facts, folders)
    return replace(_in_their_units(readings(cells.sheet)), models=cells.models)


def entries_in(
    path: Path, facts: Mapping[str, str], folders: Sequence[Path] = ()
) -> tuple[MeasurementTable, list[Entry]]:
    """The table in a file and every measured value of it, in the order of the rows.

    Raises InputError if the file holds no measurements, or facts are missing or unknown.

    Parameters
    ----------
    facts, folders : as for `read`.
    """
    source = opened(path)
    if isinstance(source, Documents):
        readings = read(source, folders, **facts)
        lines = tuple(range(1 + table_entries.HEADER, readings.lines + 1 + table_entries.HEADER))
        runs_read = MeasurementTable(
            source, recognised(source), ((),) * readings.lines, lines, models=readings.models
        )
        return runs_read, table_entries.generator_entries(readings)
    measurements = table(source, facts, folders)
    if measurements.kind == OWN:
        meant = own_table.columns_of(measurements.columns, facts, str(path))
        return measurements, table_entries.own_entries(
            measurements, read(measurements.sheet, **facts), meant
        )
    _says_itself(path, measurements.kind, facts)
    return measurements, KINDS[measurements.kind].entries(measurements)


def _says_itself(source: object, kind: str, facts: Mapping[str, object]) -> None:
    if facts:
        raise InputError(f"{source}: a table of {kind} says {', '.join(facts)} itself")


def _generated(
    documents: Documents, kind: str, models: Configurations, facts: Mapping[str, str | float]
) -> Readings:
    facts, more = _located_fact(facts, models)
    rows = [
        {name: value for name, value in row.items() if name not in facts}
        for row in runs_in(documents.objects, kind)
    ]
    had = list(dict.fromkeys(name for row in rows for name in row))
    filled = [name for name in had if any(row.get(name) for row in rows)]
    own_table.columns_of(filled, facts, str(documents))
    rows = [{**row, **({"model": models.cell(row["model"])} if row.get("model") else {})}
            for row in rows]  # fmt: skip
    files = model_configurations.used_configurations(row.get("model", "") for row in rows)
    return replace(own_table.entries(rows, facts, kind), models={**files, **more})


def _located_fact(
    facts: Mapping[str, str | float], models: Configurations
) -> tuple[dict[str, str | float], dict[str, str]]:
    """The facts, with a configuration in place of a model that the catalogue lacks."""
    if "model" not in facts:
        return dict(facts), {}
    cell = models.cell(str(facts["model"]))
    return {**facts, "model": cell}, model_configurations.used_configurations([cell])


def _in_their_units(readings: Readings) -> Readings:
    """Without the values that are a thousand times off: another unit was meant."""
    pairs = list(zip(readings.rows, strange_units(readings.rows), strict=True))
    strange = [NotComputed(row.id, why, row.quantity) for row, why in pairs if why]
    sound = tuple(row for row, why in pairs if not why)
    return replace(readings, rows=sound, refused=(*readings.refused, *strange))


def table(
    source: Path | Sheet, facts: Mapping[str, object], folders: Sequence[Path] = ()
) -> MeasurementTable:
    """The table in a CSV file, configurations in place of models that the catalogue lacks.

    Raises InputError if it cannot be read as text, is empty, has columns of no known kind or a
    column twice, or if a row has more cells than there are columns.

    Parameters
    ----------
    facts : what the file does not say, for tables of one's own.
    folders : configurations of models that the catalogue does not hold.
    """
    text = sheets.sheet(source)
    kind = recognised(text)
    if not text.rows:
        raise InputError(Mistake(str(text), 1, 1, "", "holds a header and no row"))
    if kind == OWN:
        meant = own_table.columns_of(text.columns, facts, str(text))
        model = next((name for name, column in meant.items() if column == "model"), None)
        measured = tuple(name for name in text.columns if meant.get(name) in own_table.VALUES)
    else:
        model = KINDS[kind].model or None
        measured = tuple(name for name in KINDS[kind].measured if name in text.columns)
    cells, files = configurations(folders, text.path).located(text, model)
    return MeasurementTable(cells, kind, cells.rows, cells.lines, cells.columns, measured, files)
