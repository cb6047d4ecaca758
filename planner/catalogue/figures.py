"""One number of the catalogue with its source and date, and the files it is read from."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from planner.text.errors import CatalogueError
from planner.text.quantities import parse

T = TypeVar("T")


@dataclass(frozen=True)
class SourcedValue:
    """A value as its source writes it, and in base units.

    `verified` is `yes` (the vendor's text was read), `secondary` (a transcribed copy of it),
    `partial` (some sources disagree), `no` (unread or assumed), or `given` (by the user).
    """

    value: float
    unit: str
    base: float
    source: str
    as_of: str
    verified: str
    note: str = ""


def entry(kind: str, name: str, entries: Mapping[str, T]) -> T:
    """The entry of a kind by its name; raises CatalogueError with the nearest name."""
    if name not in entries:
        raise CatalogueError.unknown(kind, name, entries)
    return entries[name]


def sourced_value(row: Mapping[str, Any], owner: Mapping[str, Any], dimension: str) -> SourcedValue:
    """Figure of a row; source, date and verification default to those of its owner."""
    base = parse(f"{row['value']} {row['unit']}", dimension)
    origin = {key: row.get(key, owner[key]) for key in ("source", "as_of", "verified")}
    return SourcedValue(row["value"], row["unit"], base, **origin, note=row.get("note", ""))


def month_count(earlier: str, later: str) -> float:
    """Months from one date (YYYY-MM or YYYY-MM-DD) to a later one, 0 where it is not later."""
    year, month, *day = map(int, earlier.split("-"))
    to_year, to_month, *to_day = map(int, later.split("-"))
    months = 12 * (to_year - year) + to_month - month
    exact = months + ((to_day or [15])[0] - (day or [15])[0]) / 30.4
    return max(exact, 0.0) if math.isfinite(exact) else 0.0


def load_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a user's TOML file; raises CatalogueError if it is missing or is no `kind`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CatalogueError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"{path}: is no {kind}: {error}") from None
