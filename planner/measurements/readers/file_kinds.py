"""Kinds of measurement files: the columns that identify each kind, and its reader.

The one registry for fitting, validation and `--data` alike. A cell is never changed, but for models
of configurations, which the catalogue does not hold: what is not understood is refused later, by
row and with a reason.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from planner.architecture import model_sizes
from planner.architecture.huggingface import read_config
from planner.measurements import published_names, training_steps
from planner.measurements.entry import Entry
from planner.measurements.measurement import NotComputed, Readings
from planner.measurements.readers import own_table, sheets, table_entries, training_rows
from planner.measurements.readers.engine_runs import runs
from planner.measurements.readers.load_generators import FORMATS, format_of_document, read_runs
from planner.measurements.readers.sheets import Documents, Measurements, Sheet, Source, open_tables
from planner.measurements.readers.steady_batches import deployment_entries, deployments, steadies
from planner.measurements.roofline_bound import unit_warnings
from planner.text.errors import InputError, Mistake, ModelError, quote

CONFIG_FOLDER = "hf_configs"  # a folder of this name beside a file of measurements is looked into
PATTERNS = ("*_config.json", "*/config.json", "*/*/config.json")
QUANT = "_hf_quant_config.json"  # stands beside a configuration


@dataclass(frozen=True)
class Configurations:
    """Files of configurations by the letters of the models' names, one mapping for each folder.

    `beside` is the folder of the measurements, where paths in them begin.
    """

    folders: tuple[Mapping[str, str], ...]
    beside: Path

    def cell(self, published: str) -> str:
        """Return the cell for a model name: the name itself, or a configuration and the name."""
        path = published_names.CONFIG.fullmatch(published)
        if path is not None:
            near = self.beside / published
            return str(near) if path[2] is None and near.is_file() else published
        if not published or published_names.is_entry(published):
            return published
        configuration = self._configuration(published)
        entry = published_names.catalogue_name(published)
        if configuration is not None and not (entry and _same_shape(configuration, entry)):
            return f"{configuration}#{published}"
        matches = (published_names.match_name(published, files) for files in self.folders)
        nearest = None if configuration or entry else next(filter(None, matches), None)
        return f"{nearest}#{published}" if nearest else published

    def located(self, table: Sheet, column: str | None) -> tuple[Sheet, dict[str, str]]:
        """The table with `cell` in a column, and the file of each name that has one."""
        if column is None:
            return table, {}
        at = table.columns.index(column)
        cells = {name: self.cell(name) for name in {row[at].strip() for row in table.rows}}
        rows = tuple(
            (*row[:at], cells[row[at].strip()], *row[at + 1 :])
            if cells[row[at].strip()] != row[at].strip()
            else row
            for row in table.rows
        )
        return replace(table, rows=rows), used_configurations(cells.values())

    def _configuration(self, published: str) -> str | None:
        name = published_names.letters(published.rstrip("/").split("/")[-1])
        keys = (_full_name(published), name)
        return next((files[x] for files in self.folders for x in keys if x in files), None)


def configurations(folders: Sequence[Path], measurements: Path) -> Configurations:
    """Configurations in folders, and in the folder CONFIG_FOLDER next to a file.

    Raises InputError if one of the folders is none, or holds no configuration.
    """
    folders_read = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"--models {folder}: is no folder")
        files = _files(folder)
        if not files:
            names = "org--Name_config.json, or Name/config.json"
            raise InputError(f"--models {folder}: holds no configuration ({names})")
        folders_read.append(files)
    beside = measurements.parent / CONFIG_FOLDER
    if beside.is_dir() and beside not in folders:
        folders_read.append(_files(beside))
    return Configurations(tuple(folders_read), measurements.parent)


def used_configurations(cells: Iterable[str]) -> dict[str, str]:
    """The file of each name that has one."""
    matches = (published_names.CONFIG.fullmatch(cell) for cell in cells)
    return {each[2] or each[1]: each[1] for each in matches if each is not None}


def _files(folder: Path) -> dict[str, str]:
    """Files of a folder by the letters of names, with and without organisation."""
    names: dict[str, str] = {}
    for pattern in PATTERNS:
        for file in sorted(folder.glob(pattern)):
            within = file.relative_to(folder)
            name = "/".join(within.parts[:-1]) or file.name.removesuffix("_config.json")
            if not file.name.endswith(QUANT):
                names.setdefault(name.replace("--", "/", 1), str(file))
    paths = {_full_name(name): path for name, path in names.items()}
    for place in range(3):  # a name that is whole goes before one without its last words
        for name, path in names.items():
            for key in published_names.spellings(name)[place : place + 1]:
                paths.setdefault(key, path)
    return paths


def _full_name(name: str) -> str:
    organisation, slash, rest = name.strip().rstrip("/").rpartition("/")
    return "/".join(map(published_names.letters, (organisation, rest) if slash else (rest,)))


def _same_shape(file: str, entry: str) -> bool:
    """True if a configuration has the shape of an entry, or cannot be read."""
    try:
        configured = model_sizes(read_config(file), None, None)
    except ModelError:
        return True
    shape = attrgetter("n_layers", "hidden", "n_total")
    return bool(shape(configured) == shape(published_names.published_sizes(entry, None, None)))


USER_TABLE = "own rows"


@dataclass(frozen=True)
class FileKind:
    """A kind of published table.

    Attributes:
        needed: Columns that only tables of this kind have together; a table may have more.
        measured: Columns that hold measured values.
        entries: Every measured value of a table, repeats marked, with the reason where it is
            unusable.
        model: Column that names models, empty where none does.
        readings: Reads its rows as measurements of serving; None where it holds something else.
    """

    needed: tuple[str, ...]
    measured: tuple[str, ...]
    entries: Callable[[Measurements], list[Entry]]
    model: str = ""
    readings: Callable[[Source], Readings] | None = None


TABLE_KINDS: Mapping[str, FileKind] = {
    "serving runs": FileKind(
        ("model_path", "system", "backend", "isl", "osl", "concurrency", "tpot_ms"),
        ("tpot_ms", "ttft_ms"), table_entries.run_entries, "model_path", runs,
    ),
    "steady batches": FileKind(
        ("model", "chip", "phase", "batch", "metric", "value"), ("value",),
        table_entries.steady_entries, "model", steadies,
    ),
    "deployments": FileKind(
        ("model", "chip", "chips", "layout", "phase", "isl", "osl", "concurrency", "quality"),
        ("ttft_ms", "tpot_ms"), deployment_entries, "model", deployments,
    ),
    "training runs": FileKind(
        ("hidden", "layers", "global_batch", "measured_iter_time_s"),
        ("iter_time_derived_s", "measured_iter_time_s"), table_entries.training_entries,
    ),
    "training layouts": FileKind(
        training_rows.ROW_COLUMNS, ("value",), training_steps.training_layout_entries
    ),
    "reinforcement learning": FileKind(
        training_steps.RL_NEEDED, ("step_s",), training_steps.rl_entries
    ),
    "collectives": FileKind(
        ("accelerator", "ranks", "operation", "size_bytes", "time_us"), ("time_us",),
        table_entries.collective_entries,
    ),
    "exchanges": FileKind(
        ("op", "chip", "ep", "dtype", "latency_us"), ("latency_us",), table_entries.exchange_entries
    ),
}  # fmt: skip


def detect_file_kind(source: Path | Sheet | Documents) -> str:
    """The kind of measurements in a file: a name in KINDS, `own rows`, or a load generator.

    Raises InputError if the file cannot be read, or is of none of these; says what was missing for
    the nearest.
    """
    content = open_tables(source) if isinstance(source, Path) else source
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
        for kind, file_kind in TABLE_KINDS.items()
    }
    near = min(TABLE_KINDS, key=lambda kind: len(lacking[kind]) / len(TABLE_KINDS[kind].needed))
    if not lacking[near]:
        return near
    if len(lacking[near]) == 1:
        missing = quote(lacking[near][0])
        raise InputError(f"{content}: a table of {near} without the column {missing}")
    spelled = {name.lower() for name in content.columns}
    columns = own_table.COLUMNS
    recognisable = {name for name, words in columns.items() if {name, *words} & spelled}
    if len(recognisable) >= 3 or recognisable & set(own_table.VALUE_COLUMNS):
        return USER_TABLE
    raise InputError(
        f"{content}: columns of no known table of measurements (known: {', '.join(TABLE_KINDS)}, "
        f"and your own with columns such as {', '.join([*columns][:3])}, tp, concurrency, tpot_ms)"
    )


def read(
    source: Path | Sheet | Documents, folders: Sequence[Path] = (), /, **facts: str | float
) -> Readings:
    """Every serving measurement of a file, whatever wrote it.

    Raises InputError if the file is none that is known, is not about serving, or facts are missing
    or unknown.

    Args:
        folders: configurations of models that the catalogue does not hold; the folder `hf_configs`
            beside the file is looked into as well.
        facts: what the file does not say, by the names of `columns.COLUMNS` (`model`, `system`,
            `tp`); a value of a table wins, and a fact over what a load generator says of the
            server.
    """
    content = open_tables(source) if isinstance(source, Path) else source
    kind, models = detect_file_kind(content), configurations(folders, content.path)
    if isinstance(content, Documents):
        facts, more = _located_fact(facts, models)
        rows = [
            {name: value for name, value in row.items() if name not in facts}
            for row in read_runs(content.objects, kind)
        ]
        had = list(dict.fromkeys(name for row in rows for name in row))
        filled = [name for name in had if any(row.get(name) for row in rows)]
        own_table.map_columns(filled, facts, str(content))
        rows = [{**row, **({"model": models.cell(row["model"])} if row.get("model") else {})}
                for row in rows]  # fmt: skip
        files = used_configurations(row.get("model", "") for row in rows)
        return replace(own_table.entries(rows, facts, kind), models={**files, **more})
    if kind == USER_TABLE:
        cells = table(content, facts, folders)
        facts, more = _located_fact(facts, models)
        return replace(own_table.own_runs(cells.sheet, **facts), models={**cells.models, **more})
    _says_itself(content, kind, facts)
    readings = TABLE_KINDS[kind].readings
    if readings is None:
        raise InputError(f"{content} holds {kind}, not measurements of serving")
    cells = table(content, facts, folders)
    all_read = readings(cells.sheet)
    pairs = list(zip(all_read.rows, unit_warnings(all_read.rows), strict=True))
    strange = [NotComputed(row.id, why, row.quantity) for row, why in pairs if why]
    sound = tuple(row for row, why in pairs if not why)
    return replace(all_read, rows=sound, refused=(*all_read.refused, *strange), models=cells.models)


def read_measured_values(
    path: Path, facts: Mapping[str, str], folders: Sequence[Path] = ()
) -> tuple[Measurements, list[Entry]]:
    """The table in a file and every measured value of it, in the order of the rows.

    Raises InputError if the file holds no measurements, or facts are missing or unknown.

    Args:
        facts, folders: as for `read`.
    """
    source = open_tables(path)
    if isinstance(source, Documents):
        readings = read(source, folders, **facts)
        lines = tuple(range(1 + table_entries.HEADER, readings.lines + 1 + table_entries.HEADER))
        runs_read = Measurements(
            source, detect_file_kind(source), ((),) * readings.lines, lines, models=readings.models
        )
        return runs_read, table_entries.generator_entries(readings)
    measurements = table(source, facts, folders)
    if measurements.kind == USER_TABLE:
        meant = own_table.map_columns(measurements.columns, facts, str(path))
        return measurements, table_entries.own_entries(
            measurements, read(measurements.sheet, **facts), meant
        )
    _says_itself(path, measurements.kind, facts)
    return measurements, TABLE_KINDS[measurements.kind].entries(measurements)


def _says_itself(source: object, kind: str, facts: Mapping[str, object]) -> None:
    if facts:
        raise InputError(f"{source}: a table of {kind} says {', '.join(facts)} itself")


def _located_fact(
    facts: Mapping[str, str | float], models: Configurations
) -> tuple[dict[str, str | float], dict[str, str]]:
    if "model" not in facts:
        return dict(facts), {}
    cell = models.cell(str(facts["model"]))
    return {**facts, "model": cell}, used_configurations([cell])


def table(
    source: Path | Sheet, facts: Mapping[str, object], folders: Sequence[Path] = ()
) -> Measurements:
    """The table in a CSV file, configurations in place of models that the catalogue lacks.

    Raises InputError if it cannot be read as text, is empty, has columns of no known kind or a
    column twice, or if a row has more cells than there are columns.

    Args:
        facts: what the file does not say, for tables of one's own.
        folders: configurations of models that the catalogue does not hold.
    """
    text = sheets.sheet(source)
    kind = detect_file_kind(text)
    if not text.rows:
        raise InputError(Mistake(str(text), 1, 1, "", "holds a header and no row"))
    if kind == USER_TABLE:
        meant = own_table.map_columns(text.columns, facts, str(text))
        model = next((name for name, column in meant.items() if column == "model"), None)
        measured = tuple(
            name for name in text.columns if meant.get(name) in own_table.VALUE_COLUMNS
        )
    else:
        model = TABLE_KINDS[kind].model or None
        measured = tuple(name for name in TABLE_KINDS[kind].measured if name in text.columns)
    cells, files = configurations(folders, text.path).located(text, model)
    return Measurements(cells, kind, cells.rows, cells.lines, cells.columns, measured, files)
