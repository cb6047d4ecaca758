"""Predictions for entries that calibration can read, row by row where one of them cannot be had.

The prediction file: the input as it was, and beside it the bound, the estimate and its band.

A file of measurements as entries with predictions, whatever its columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from formulas.nomenclature.symbols import SymbolError
from planner.calibration.baselines import roofline
from planner.calibration.sample import row_digest, seen_by
from planner.catalogue.profile import profile as named
from planner.measurements.entry import Entry
from planner.measurements.measurement import Measurement, network_between, profile_of
from planner.measurements.prediction import Prediction, predict
from planner.measurements.readers import recognised
from planner.measurements.readers.kinds import KINDS, OWN, MeasurementTable, table
from planner.measurements.readers.sheets import Documents, Sheet, opened
from planner.measurements.roofline_bound import bounds_of, strange_units
from planner.text.console import note
from planner.text.errors import InputError, Mistake, PlannerError
from planner.validation.collective_entries import collective_entries, exchange_entries
from planner.validation.own_entries import generator_entries, own_entries
from planner.validation.serving_entries import run_entries, steady_entries, training_entries
from topologies import TopologyError

AUTO = "auto"


def estimated(entries: Sequence[Entry], wanted: str) -> list[Entry]:
    """The entries with a bound, an estimate and its band, or the reason why there is none.

    Parameters
    ----------
    wanted : a profile's name, or `auto`.

    Raises
    ------
    CatalogueError
        If there is no such profile.
    """
    if wanted != AUTO:
        named(wanted)
    at = [i for i, entry in enumerate(entries) if entry.measurement is not None]
    rows = [entry.measurement for entry in entries if entry.measurement is not None]
    predicted = list(entries)
    reasons = [_unfit(row) for row in rows]
    fit = [i for i, why in enumerate(reasons) if not why]
    predictions = dict(zip(fit, _predicted([rows[i] for i in fit], wanted), strict=True))
    sound = [i for i in fit if isinstance(predictions[i], Prediction)]
    roofs = dict(zip(sound, roofline([rows[i] for i in sound]), strict=True))
    bounds, units = bounds_of(rows), strange_units(rows)
    for i, (place, row) in enumerate(zip(at, rows, strict=True)):
        made = predictions.get(i)
        if isinstance(made, Prediction):
            name = profile_of(row, wanted).name
            fitted = seen_by(name)
            predicted[place] = replace(
                entries[place],
                prediction=made,
                bound=float(bounds[i]),
                unit=units[i] or "",
                roofline=roofs[i],
                profile=name,
                seen=None if fitted is None else row_digest(row) in fitted,
            )
        else:
            reason = reasons[i] or made or ""
            predicted[place] = replace(
                entries[place], bound=float(bounds[i]), unit=units[i] or "", reason=reason
            )
    return predicted


def _unfit(row: Measurement) -> str:
    """Why there is a bound and no estimate, empty where there is one."""
    if row.layout is None:
        return "the layout is not understood"
    if network_between(row.chip.name, row.machine, row.chips) is None:
        return f"no network is known that joins {row.chips} {row.chip.name}"
    return ""


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


ADDED = ("bound", "estimate", "low", "high")
DIGITS = 9
NEWLINE = "\n"


def predictions_text(table: MeasurementTable, entries: Sequence[Entry]) -> str:
    """Every row of the table in its order and as it stands, with the added columns and the reason.

    Raises
    ------
    InputError
        If the table has one of the added columns already, or is no table.
    """
    sheet, quantities = table.sheet, table.measured
    added = [f"{kind}_{name}" for name in quantities for kind in ADDED] + ["reason"]
    taken = [name for name in added if name in table.columns]
    if taken:
        message = f"has the column {taken[0]} already: are these predictions?"
        raise InputError(Mistake(str(table.path), 1, 1, "", message))
    of: dict[tuple[int, str], Entry] = {(e.row, e.column): e for e in entries}
    lines = [_beside(sheet.texts[0], added, sheet.separator)]
    for index, text in enumerate(sheet.texts[1:]):
        row_entries = [of.get((index, name)) for name in quantities]
        values = [value for entry in row_entries for value in _values(entry)]
        reasons = dict.fromkeys(e.reason for e in row_entries if e is not None and e.reason)
        short = len(table.columns) - _cells(text, sheet.separator)
        lines.append(_beside(text, [*[""] * short, *values, "; ".join(reasons)], sheet.separator))
    return "".join(lines)


def _beside(text: str, cells: Sequence[str], separator: str) -> str:
    """The text of a row with more cells at its end; whatever ended the line ends it still."""
    bare = text.rstrip("\r\n")
    more = io.StringIO()
    csv.writer(more, delimiter=separator, lineterminator="").writerow(cells)
    return f"{bare}{separator}{more.getvalue()}{text[len(bare) :] or NEWLINE}"


def _cells(text: str, separator: str) -> int:
    return len(next(csv.reader(io.StringIO(text, newline=""), delimiter=separator)))


def _values(entry: Entry | None) -> list[str]:
    """Bound, estimate, low and high in the value's own unit, blank where there is none.

    The bound of a rate is the most it can be, and the ends of its band change places.
    """
    if entry is None or entry.seconds is None:
        return [""] * len(ADDED)
    bound = "" if entry.bound is None else _number(entry.in_unit(entry.bound))
    prediction = entry.prediction
    if prediction is None:
        return [bound, "", "", ""]
    ends = sorted((entry.in_unit(prediction.low), entry.in_unit(prediction.high)))
    return [bound, _number(entry.in_unit(prediction.estimate)), *map(_number, ends)]


def _number(value: float) -> str:
    return f"{value:.{DIGITS}g}"


ENDINGS = (".csv", ".tsv", ".json", ".jsonl")
READERS: Mapping[str, Callable[[MeasurementTable], list[Entry]]] = {
    "serving runs": run_entries,
    "steady batches": steady_entries,
    "training runs": training_entries,
    "collectives": collective_entries,
    "exchanges": exchange_entries,
}


def read(
    path: Path,
    profile: str = "auto",
    facts: Mapping[str, str] = MappingProxyType({}),
    folders: Sequence[Path] = (),
) -> tuple[MeasurementTable, list[Entry]]:
    """The table in a file and its entries, predicted by a profile, in the order of the rows.

    Parameters
    ----------
    facts : what the file does not say of its runs, by the names of a table of one's own.
    folders : configurations of models that the catalogue does not hold.

    Raises
    ------
    InputError
        If the file holds no measurements, facts are missing, or the profile is not known.
    """
    source = opened(path)
    if isinstance(source, Documents):
        return _estimated(generator_entries(source, facts, folders), profile)
    measurements = table(source, facts, folders)
    if measurements.kind == OWN:
        return _estimated((measurements, own_entries(measurements, facts)), profile)
    if facts:
        raise InputError(f"{path}: a table of {measurements.kind} says {', '.join(facts)} itself")
    return _estimated((measurements, READERS[measurements.kind](measurements)), profile)


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The files among files and folders of measurements, each once.

    Raises
    ------
    InputError
        If there are no measurements among the files of a folder, or a file is given twice.
    """
    files = [each for path in paths for each in found_in(path)]
    twice = [path for i, path in enumerate(files) if path in files[:i]]
    if twice:
        raise InputError(f"{twice[0]} is given twice")
    return files


def found_in(path: Path) -> list[Path]:
    """The file itself, or the measurements in a folder; other tables there are named in a note.

    Raises
    ------
    InputError
        If there are no measurements among the files of a folder.
    """
    if not path.is_dir():
        return [path]
    kinds: dict[Path, str] = {}
    others: list[str] = []
    for candidate in sorted(path.iterdir()):
        if candidate.suffix.lower() not in ENDINGS or not candidate.is_file():
            continue
        try:
            content = opened(candidate)
            kinds[candidate] = recognised(content)
            if isinstance(content, Sheet) and not content.rows:
                del kinds[candidate]
                others.append(f"{candidate.name} (a header and no row)")
        except InputError as error:
            others.append(candidate.name if "of no known" in str(error) else str(error))
    if not kinds:
        raise InputError(f"{path}: holds no measurements (CSV, or JSON of a load generator)")
    if others:
        note(f"planner: {path}: no measurements in {', '.join(others)}", warning=True)
    order = [*KINDS, *dict.fromkeys(sorted(kinds.values()))]
    return sorted(kinds, key=lambda candidate: (order.index(kinds[candidate]), candidate.name))


def _estimated(
    parsed: tuple[MeasurementTable, list[Entry]], profile: str
) -> tuple[MeasurementTable, list[Entry]]:
    measurements, entries = parsed
    return measurements, estimated(entries, profile)
