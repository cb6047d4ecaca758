"""Tables in files: Parquet, CSV or JSON lines, written in parts and put together in a stream."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.sweep import parquet
from planner.sweep.rows import Columns, named, plain
from planner.text.errors import InputError, MissingExtra

__all__ = ["KINDS", "PARTS", "assembled", "encoded", "kind_of", "loaded", "meta_of", "rows_in"]

KINDS = ("parquet", "csv", "jsonl")
PARTS = {"parquet": "arrow", "csv": "csv", "jsonl": "jsonl"}
"""Ending of the parts of each kind of file."""
STATUS = re.compile(r'"status": "(\w+)"')


def kind_of(out: Path) -> str:
    """Which kind of file a name asks for.

    Raises
    ------
    InputError
        If no kind has that ending.
    MissingExtra
        If it is Parquet and PyArrow is not installed.
    """
    kind = out.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        endings = ", ".join(f".{name}" for name in KINDS)
        raise InputError(f"--out {out}: a file that ends in one of {endings} is written")
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "data", "a Parquet file")
    return kind


def encoded(columns: Columns, kind: str, meta: Mapping[str, Any]) -> bytes:
    """A part: columns of one length as a file of their own, which can be read alone."""
    if kind == "parquet":
        return parquet.encoded(columns, meta)
    values = [plain(column) for column in columns.values()]
    if kind == "jsonl":
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
        text = "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in rows)
        return text.encode()
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*values, strict=True))
    return written.getvalue().encode()


def rows_in(part: Path, kind: str) -> int:
    """Rows of a part; -1 if it cannot be read."""
    if kind == "parquet":
        return parquet.rows_in(part)
    try:
        if kind == "jsonl":
            with part.open(encoding="utf-8") as lines:
                return sum(1 for line in lines if line.endswith("}\n"))
        with part.open(encoding="utf-8", newline="") as lines:
            return sum(1 for _ in csv.reader(lines)) - 1
    except (OSError, ValueError, csv.Error):
        return -1


def assembled(
    parts: Sequence[Path], out: Path, kind: str, meta: Mapping[str, Any]
) -> dict[str, int]:
    """Put parts together into one file, part by part; how many rows have each status.

    `out` is written as it stands: whoever calls moves it to its place.
    """
    if kind == "parquet":
        return parquet.assembled(parts, out, meta)
    if kind == "jsonl":
        return _joined_lines(parts, out)
    return _joined_rows(parts, out)


def loaded(file: Path) -> dict[str, list[Any]]:
    """The columns of a finished file."""
    kind = kind_of(file)
    if kind == "parquet":
        return parquet.loaded(file)
    if kind == "jsonl":
        with file.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return {name: [row.get(name) for row in rows] for name in named(rows)}
    with file.open(encoding="utf-8", newline="") as lines:
        table = csv.reader(lines)
        names = next(table, [])
        values: list[list[Any]] = [[] for _ in names]
        for row in table:
            for column, text in zip(values, row, strict=True):
                column.append(_number(text))
    return dict(zip(names, values, strict=True))


def meta_of(file: Path, kind: str) -> dict[str, Any]:
    """What is known of a finished file; of CSV and JSON lines it stands in a file beside."""
    if kind == "parquet":
        return parquet.meta_of(file)
    beside = file.with_name(f"{file.name}.meta.json")
    try:
        return dict(json.loads(beside.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _joined_lines(parts: Sequence[Path], out: Path) -> dict[str, int]:
    found: Counter[str] = Counter()
    with out.open("w", encoding="utf-8") as whole:
        for part in parts:
            text = part.read_text(encoding="utf-8")
            found.update(STATUS.findall(text))
            whole.write(text)
    return dict(found)


def _joined_rows(parts: Sequence[Path], out: Path) -> dict[str, int]:
    found: Counter[str] = Counter()
    names = named(_header(part) for part in parts)
    with out.open("w", encoding="utf-8", newline="") as whole:
        table = csv.DictWriter(whole, names, lineterminator="\n")
        table.writeheader()
        for part in parts:
            for row in _read(part):
                found[row["status"]] += 1
                table.writerow(row)
    return dict(found)


def _header(part: Path) -> list[str]:
    with part.open(encoding="utf-8", newline="") as lines:
        return next(csv.reader(lines), [])


def _read(part: Path) -> Iterator[dict[str, str]]:
    with part.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _number(text: str) -> Any:
    """A cell of a CSV file: a number if it is one, None if it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
