"""A file of measurements as entries with predictions, whatever its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from planner.errors import InputError
from planner.validation.entries import Entry
from planner.validation.estimates import estimated
from planner.validation.networks import collective_entries, exchange_entries
from planner.validation.serving import run_entries, steady_entries
from planner.validation.tables import KINDS, Table, kind_at, table
from planner.validation.training import training_entries

__all__ = ["found_in", "read"]

READERS: Mapping[str, Callable[[Table], list[Entry]]] = {
    "serving runs": run_entries,
    "steady batches": steady_entries,
    "training runs": training_entries,
    "collectives": collective_entries,
    "exchanges": exchange_entries,
}


def read(path: Path, profile: str = "auto") -> tuple[Table, list[Entry]]:
    """The table in a file and its entries, predicted by a profile, in the order of the rows.

    Raises
    ------
    InputError
        If the file is no table of measurements, or the profile is not known.
    """
    found = table(path)
    return found, estimated(READERS[found.kind](found), profile)


def found_in(path: Path) -> list[Path]:
    """The file itself, or the tables of measurements in a folder.

    Raises
    ------
    InputError
        If there is nothing there, or no table of measurements among the files.
    """
    if not path.is_dir():
        return [path]
    kinds = {each: kind for each in path.glob("*.csv") if (kind := kind_at(each)) is not None}
    if not kinds:
        raise InputError(f"{path}: holds no table of measurements (CSV)")
    order = list(KINDS)
    return sorted(kinds, key=lambda each: (order.index(kinds[each]), each.name))
