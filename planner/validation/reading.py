"""A file of measurements as entries with predictions, whatever its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from planner.measurements.entry import Entry
from planner.measurements.readers import recognised
from planner.measurements.readers.sheets import Documents, Sheet, opened
from planner.measurements.readers.tables import MEASURED, OWN, Table, table
from planner.text.console import note
from planner.text.errors import InputError
from planner.validation.collective_entries import collective_entries, exchange_entries
from planner.validation.estimates import estimated
from planner.validation.own_entries import generator_entries, own_entries
from planner.validation.serving_entries import run_entries, steady_entries
from planner.validation.training import training_entries

__all__ = ["files_in", "found_in", "read"]

ENDINGS = (".csv", ".tsv", ".json", ".jsonl")
READERS: Mapping[str, Callable[[Table], list[Entry]]] = {
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
) -> tuple[Table, list[Entry]]:
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
    found = table(source, facts, folders)
    if found.kind == OWN:
        return _estimated((found, own_entries(found, facts)), profile)
    if facts:
        raise InputError(f"{path}: a table of {found.kind} says {', '.join(facts)} itself")
    return _estimated((found, READERS[found.kind](found)), profile)


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The files among files and folders of measurements, each once.

    Raises
    ------
    InputError
        If there are no measurements among the files of a folder, or a file is given twice.
    """
    found = [each for path in paths for each in found_in(path)]
    twice = [path for i, path in enumerate(found) if path in found[:i]]
    if twice:
        raise InputError(f"{twice[0]} is given twice")
    return found


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
    for each in sorted(path.iterdir()):
        if each.suffix.lower() not in ENDINGS or not each.is_file():
            continue
        try:
            held = opened(each)
            kinds[each] = recognised(held)
            if isinstance(held, Sheet) and not held.rows:
                del kinds[each]
                others.append(f"{each.name} (a header and no row)")
        except InputError as error:
            others.append(each.name if "of no known" in str(error) else str(error))
    if not kinds:
        raise InputError(f"{path}: holds no measurements (CSV, or JSON of a load generator)")
    if others:
        note(f"planner: {path}: no measurements in {', '.join(others)}", warning=True)
    order = [*MEASURED, *dict.fromkeys(sorted(kinds.values()))]
    return sorted(kinds, key=lambda each: (order.index(kinds[each]), each.name))


def _estimated(found: tuple[Table, list[Entry]], profile: str) -> tuple[Table, list[Entry]]:
    held, entries = found
    return held, estimated(entries, profile)
