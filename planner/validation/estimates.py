"""Files of measurements as entries with predictions, row by row where one of them cannot be had.

Of a folder every table that can be read is; each that is passed over is named with the reason.

The prediction file: the input as it was, and beside it the bound, the estimate and its band.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from formulas.nomenclature.symbols import SymbolError
from planner.calibration.sample import fitted_row_digests, row_digest
from planner.catalogue.profile import profile as named
from planner.measurements.entry import Entry, Prediction
from planner.measurements.measurement import Measurement, row_profile, skip_reason
from planner.measurements.prediction import features, predict, predict_collective
from planner.measurements.readers import detect_file_kind
from planner.measurements.readers.collective_rows import is_fitted_row
from planner.measurements.readers.file_kinds import TABLE_KINDS, read_measured_values
from planner.measurements.readers.sheets import Measurements, Sheet, open_tables
from planner.measurements.roofline_bound import row_bounds, unit_warnings
from planner.measurements.training_steps import TRAINING, training_layout_entries
from planner.protocol.results.validation_result import SkippedFile
from planner.text.errors import InputError, Mistake, PlannerError
from planner.text.tables import csv_text
from topologies import TopologyError

AUTO = "auto"
TABLE_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl")
NO_KIND = "holds no kind of measurements that is known"


@dataclass(frozen=True)
class MeasurementFiles:
    """Files to read, in the order of their kinds, and those of folders that hold no measurements.

    `optional` are files of folders: one that turns out to be unreadable is skipped as well.
    """

    paths: tuple[Path, ...]
    optional: frozenset[Path] = frozenset()
    skipped: tuple[SkippedFile, ...] = ()


@dataclass(frozen=True)
class PredictedTables:
    """Tables with their predicted entries, and the files of folders that were not read."""

    tables: tuple[tuple[Measurements, list[Entry]], ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


def predict_files(
    files: MeasurementFiles,
    profile: str = AUTO,
    facts: Mapping[str, str] = MappingProxyType({}),
    folders: Sequence[Path] = (),
) -> PredictedTables:
    """Every table of the files with its entries, predicted by a profile.

    Raises InputError if a file that was named by itself holds no measurements, or no file of a
    folder does.

    Args:
        facts, folders: as for `read`.
    """
    if profile != AUTO and TRAINING not in map(detect_file_kind, files.paths):
        named(profile)
    tables, skipped = [], list(files.skipped)
    for path in files.paths:
        try:
            table, entries = read(path, profile, facts, folders)
            tables.append((table, entries))
        except InputError as error:
            if path not in files.optional:
                raise
            skipped.append(_skipped(path, error))
    if files.paths and not tables:
        raise InputError("\n".join(map(str, skipped)))
    return PredictedTables(tuple(tables), tuple(skipped))


def read(
    path: Path,
    profile: str = AUTO,
    facts: Mapping[str, str] = MappingProxyType({}),
    folders: Sequence[Path] = (),
) -> tuple[Measurements, list[Entry]]:
    """The table in a file and its entries, predicted by a profile, in the order of the rows.

    Raises InputError if the file holds no measurements, facts are missing, or the profile is not
    known.

    Args:
        facts: what the file does not say of its runs, by the names of a table of one's own.
        folders: configurations of models that the catalogue does not hold.
    """
    table, entries = read_measured_values(path, facts, folders)
    if table.kind == TRAINING:
        return table, training_layout_entries(table, profile)
    return table, predict_entries(entries, profile)


def measurement_files(paths: Sequence[Path]) -> MeasurementFiles:
    """The files among files and folders of measurements, each once.

    Raises InputError if there are no measurements among the files of a folder, or a file is given
    twice.
    """
    parts = [scan_folder(path) if path.is_dir() else MeasurementFiles((path,)) for path in paths]
    files = [path for part in parts for path in part.paths]
    twice = [path for i, path in enumerate(files) if path in files[:i]]
    if twice:
        raise InputError(f"{twice[0]} is given twice")
    optional = frozenset(path for part in parts for path in part.optional)
    return MeasurementFiles(
        tuple(files), optional, tuple(skipped for part in parts for skipped in part.skipped)
    )


def scan_folder(folder: Path) -> MeasurementFiles:
    """The measurements in a folder, and the other tables with the reason why they are skipped.

    Raises InputError if there are no measurements among its files.
    """
    kinds: dict[Path, str] = {}
    skipped = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in TABLE_SUFFIXES or not path.is_file():
            continue
        try:
            content = open_tables(path)
            kind = detect_file_kind(content)
            if isinstance(content, Sheet) and not content.rows:
                skipped.append(SkippedFile(path.name, "a header and no row"))
            else:
                kinds[path] = kind
        except InputError as error:
            skipped.append(_skipped(path, error))
    if not kinds:
        raise InputError(f"{folder}: holds no measurements (CSV, or JSON of a load generator)")
    order = [*TABLE_KINDS, *dict.fromkeys(sorted(kinds.values()))]
    paths = sorted(kinds, key=lambda path: (order.index(kinds[path]), path.name))
    return MeasurementFiles(tuple(paths), frozenset(paths), tuple(skipped))


def _skipped(path: Path, error: InputError) -> SkippedFile:
    lines = str(error).replace(f"{path}: ", "").replace(str(path), "").split("\n")
    why = "; ".join(" ".join(line.split()) for line in lines if line.strip())
    return SkippedFile(path.name, NO_KIND if "of no known" in why else why)


def predict_entries(entries: Sequence[Entry], wanted: str) -> list[Entry]:
    """The entries with a bound, an estimate and its band, or the reason why there is none.

    Raises CatalogueError if there is no such profile.

    Args:
        wanted: a profile's name, or `auto`.
    """
    if wanted != AUTO:
        named(wanted)
    serving = iter(_serving([entry for entry in entries if entry.measurement], wanted))
    return [next(serving) if entry.measurement else _collective(entry) for entry in entries]


def _serving(entries: Sequence[Entry], wanted: str) -> Iterator[Entry]:
    """Yield serving entries with the prediction of the plans' step model, or with a reason."""
    rows = [entry.measurement for entry in entries if entry.measurement is not None]
    reasons = [skip_reason(row) for row in rows]
    fit = [i for i, why in enumerate(reasons) if not why]
    predictions = dict(zip(fit, _predicted([rows[i] for i in fit], wanted), strict=True))
    sound = [i for i in fit if isinstance(predictions[i], Prediction)]
    roofline = features([rows[i] for i in sound]).roofline.tolist() if sound else []
    roofs = dict(zip(sound, roofline, strict=True))
    bounds, units = row_bounds(rows), unit_warnings(rows)
    for i, (entry, row) in enumerate(zip(entries, rows, strict=True)):
        bounded = replace(entry, bound=float(bounds[i]), unit=units[i] or "")
        made = predictions.get(i)
        if isinstance(made, Prediction):
            name = row_profile(row, wanted).name
            digests = fitted_row_digests(name)
            yield replace(
                bounded,
                prediction=made,
                roofline=roofs[i],
                profile=name,
                seen=None if digests is None else row_digest(row) in digests,
            )
        else:
            yield replace(bounded, reason=reasons[i] or made or "")


def _predicted(rows: Sequence[Measurement], wanted: str) -> list[Prediction | str]:
    """Predictions; where they fail together, halves are tried until the row at fault is alone."""
    if not rows:
        return []
    try:
        return list(predict(rows, wanted))
    except (PlannerError, TopologyError, SymbolError) as error:
        if len(rows) == 1:
            return [" ".join(str(error).split())]
    half = len(rows) // 2
    return [*_predicted(rows[:half], wanted), *_predicted(rows[half:], wanted)]


def _collective(entry: Entry) -> Entry:
    """Collective entry with the prediction of the profile of collectives, or its error."""
    if entry.collective is None:
        return entry
    try:
        made = predict_collective(entry.collective)
    except PlannerError as error:
        return replace(entry, reason=" ".join(str(error).split()))
    return replace(
        entry,
        prediction=made,
        bound=made.bound,
        roofline=made.bound,
        profile="collectives",
        seen=is_fitted_row(entry.collective),
    )


ADDED_COLUMNS = ("bound", "estimate", "low", "high")
DIGITS = 9
NEWLINE = "\n"


def predictions_text(table: Measurements, entries: Sequence[Entry]) -> str:
    """Every row of the table in order and unchanged, with the added columns and the reason.

    Raises InputError if the table has one of the added columns already, or is no table.
    """
    sheet, quantities = table.sheet, table.measured
    added = [f"{kind}_{name}" for name in quantities for kind in ADDED_COLUMNS] + ["reason"]
    taken = [name for name in added if name in table.columns]
    if taken:
        message = f"has the column {taken[0]} already: are these predictions?"
        raise InputError(Mistake(str(table.path), 1, 1, "", message))
    of: dict[tuple[int, str], Entry] = {(e.row, e.column): e for e in entries}
    lines = [_row(sheet.texts[0], added, sheet.separator)]
    for index, text in enumerate(sheet.texts[1:]):
        row_entries = [of.get((index, name)) for name in quantities]
        values = [value for entry in row_entries for value in _values(entry)]
        reasons = dict.fromkeys(e.reason for e in row_entries if e is not None and e.reason)
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=sheet.separator))
        short = len(table.columns) - len(cells)
        lines.append(_row(text, [*[""] * short, *values, "; ".join(reasons)], sheet.separator))
    return "".join(lines)


def _row(text: str, cells: Sequence[str], separator: str) -> str:
    bare = text.rstrip("\r\n")
    return f"{bare}{separator}{csv_text([cells], separator, '')}{text[len(bare) :] or NEWLINE}"


def _values(entry: Entry | None) -> list[str]:
    """Bound, estimate, low and high in the value's own unit, blank if missing.

    The bound of a rate is the most it can be, and the ends of its band change places.
    """
    if entry is None or entry.seconds is None:
        return [""] * len(ADDED_COLUMNS)
    bound = "" if entry.bound is None else _number(entry.in_unit(entry.bound))
    prediction = entry.prediction
    if prediction is None:
        return [bound, "", "", ""]
    ends = sorted((entry.in_unit(prediction.low), entry.in_unit(prediction.high)))
    return [bound, _number(entry.in_unit(prediction.estimate)), *map(_number, ends)]


def _number(value: float) -> str:
    return f"{value:.{DIGITS}g}"
