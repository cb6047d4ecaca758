"""Tables shipped with the code, TOML files of a package, and tables that are written as CSV."""

import csv
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from types import SimpleNamespace
from typing import Any


def table(package: str, *names: str) -> dict[str, Any]:
    """The TOML files of a package by their paths in it, joined; later files add entries."""
    joined: dict[str, Any] = {}
    for name in names:
        text = files(package).joinpath(name).read_text(encoding="utf-8")
        joined.update(tomllib.loads(text))
    return joined


def file_names(package: str, folder: str, suffix: str) -> tuple[str, ...]:
    """Files of a package's folder that end so, sorted and without the ending."""
    entries = (entry.name for entry in files(package).joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(suffix) for name in entries if name.endswith(suffix)))


# A text that a spreadsheet would run as a formula, behind any apostrophes; a signed number is none.
FORMULA = re.compile(r"'*(?=[=+\-@\t\r])(?![+-][\d.]+(e[+-]?\d+)?$)", re.IGNORECASE)


def csv_text(rows: Iterable[Iterable[object]], separator: str = ",", end: str = "\n") -> str:
    """Rows as CSV; texts that a spreadsheet would run as formulas begin with an apostrophe."""
    lines: list[str] = []
    written: Any = SimpleNamespace(write=lines.append)
    table = csv.writer(written, delimiter=separator)  # \r and \n are quoted, as its ends of lines
    table.writerows(
        [f"'{x}" if isinstance(x, str) and FORMULA.match(x) else x for x in row] for row in rows
    )
    return "".join(f"{line[:-2]}{end}" for line in lines)


def csv_cell(text: str) -> str:
    """The text of a cell that `csv_text` wrote."""
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text
