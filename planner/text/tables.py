"""Tables shipped with the code as TOML files of a package, and values as text of TOML and CSV.

Who writes a file says how its numbers look.
"""

import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from numbers import Integral, Real
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


NumberFormat = Callable[[float], str]


def toml_lines(values: Mapping[str, object], number: NumberFormat) -> Iterator[str]:
    """Yield `key = value` for each value."""
    yield from (f"{toml_key(name)} = {toml_value(value, number)}" for name, value in values.items())


def toml_value(value: object, number: NumberFormat) -> str:
    """The text of a value; `number` writes floats, and whatever is no TOML type is its text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return number(float(value))
    if isinstance(value, Mapping):
        return f"{{{', '.join(toml_lines(value, number))}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(toml_value(each, number) for each in value)}]"
    # TOML reads the string escapes of JSON; a file's name may hold invalid Unicode.
    text = str(value).encode("utf-8", "replace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key, quoted where TOML asks for it."""
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else toml_value(name, str)


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
