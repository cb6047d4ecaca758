"""Content of a file of measurements, read once: a table as written, or JSON objects.

Cells stand between commas, semicolons or tabs, whichever the header has most of. No cell is
changed, and the text of every row is kept, so that columns can be added beside it.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from planner.measurements.published_names import BadRow
from planner.text.errors import InputError, Mistake, SolverError, quote

SEPARATORS = ",;\t"
MAX_FILE_BYTES = 1 << 30  # bytes of a file; records of every request may be in it
MAX_CELL_LENGTH = 10_000_000  # characters of one cell; beyond, a file is not a table
UTF16, ARCHIVE = (b"\xff\xfe", b"\xfe\xff"), b"PK\x03\x04"
BYTE_ORDER_MARK = "\ufeff"  # some programs write it before the first column
OS_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError)  # the caller can mend these


@dataclass(frozen=True)
class Sheet:
    """Table: column names, rows of equally many cells, the line of each row, and all texts.

    A line counts rows as a spreadsheet does, the header being 1: breaks inside of cells do not
    count, blank lines do, though they are no rows. `texts` are those of the header and of each
    row, whatever ends the line included; `separator` stands between their cells.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    separator: str

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Documents:
    """The JSON objects of a file."""

    path: Path
    objects: tuple[Mapping[str, object], ...]

    def __str__(self) -> str:
        return str(self.path)


Source = Path | Sheet


def open_tables(path: Path) -> Sheet | Documents:
    """Read a file as a table or as JSON; text that opens like JSON is JSON under any file name.

    Raises InputError if it cannot be read, or is neither a table nor JSON; says where and what
    would help.
    """
    text = _text(path)
    if path.suffix.lower() in (".json", ".jsonl") or text.lstrip()[:1] in ("{", "["):
        return Documents(path, _objects(text, path))
    return _sheet(text, path)


def sheet(source: Source) -> Sheet:
    """Return the table in a file, or `source` itself if it is a Sheet.

    Raises InputError if it cannot be read as text, is empty, has a column twice, no CSV, or a row
    with more cells than there are columns.
    """
    return source if isinstance(source, Sheet) else _sheet(_text(source), source)


def _sheet(text: str, path: Path) -> Sheet:
    header = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(SEPARATORS, key=header.count)
    records = list(_records(text, separator, path))
    if not records:
        raise _mistake(path, None, "is empty, expected a header and rows")
    columns = tuple(name.strip() for name in records[0][1])
    line, names, _ = records[0]
    if not any(columns):
        raise _mistake(path, line, "has no names of columns", 1)
    twice = [i for i, name in enumerate(columns) if name in columns[:i]]
    if twice:
        before = sum(len(cell) + len(separator) for cell in names[: twice[0]])
        words = f"the column {quote(columns[twice[0]])} stands here twice"
        raise _mistake(path, line, words, 1 + before)
    for line, cells, _ in records:
        if len(cells) > len(columns):
            message = f"{len(cells)} cells in a row, {len(columns)} columns in the header"
            raise _mistake(path, line, f"{message}; a value that holds {separator!r} needs quotes")
    return Sheet(
        path,
        columns,
        tuple(tuple(c) + ("",) * (len(columns) - len(c)) for _, c, _ in records[1:]),
        tuple(line for line, _, _ in records[1:]),
        tuple(text for _, _, text in records),
        separator,
    )


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as why:
        message = f"{path} cannot be read: {why.strerror or why}"
        raise (InputError if isinstance(why, OS_ERRORS) else SolverError)(message) from why
    if len(content) > MAX_FILE_BYTES:
        raise _mistake(path, None, f"is larger than {MAX_FILE_BYTES >> 30} GiB")
    if content.startswith(UTF16):
        raise _mistake(path, None, "is text in UTF-16, expected UTF-8: save it as CSV UTF-8")
    if content.startswith(ARCHIVE):
        raise _mistake(path, None, "is an archive, as .xlsx is: save the sheet as CSV UTF-8")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _mistake(path, line, "is no text in UTF-8: save it as CSV UTF-8") from error
    if "\0" in text:
        raise _mistake(path, None, "holds zero bytes: it is no text")
    return text


def _records(text: str, separator: str, path: Path) -> Iterator[tuple[int, list[str], str]]:
    """Rows that are not blank: the number among all, the cells, and the text."""
    csv.field_size_limit(MAX_CELL_LENGTH)
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text.removeprefix(BYTE_ORDER_MARK), newline=""):
            taken.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    first, number = 1, 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            why = "a quotation mark is never closed" if "end of data" in str(error) else str(error)
            raise _mistake(path, first, f"no CSV: {why}") from error
        number += 1
        whole, first = "".join(taken), reader.line_num + 1
        taken.clear()
        if whole.strip():
            start = BYTE_ORDER_MARK if number == 1 and text.startswith(BYTE_ORDER_MARK) else ""
            yield number, cells, start + whole


def _objects(text: str, path: Path) -> tuple[Mapping[str, object], ...]:
    """One object, a list of them, or one a line."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    objects: list[object] = []
    try:
        whole = json.loads(text)
        objects = whole if isinstance(whole, list) else [whole]
    except (json.JSONDecodeError, RecursionError):
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                objects += [json.loads(line)] if line.strip() else []
            except (json.JSONDecodeError, RecursionError):
                raise _mistake(path, number, "is neither JSON nor JSON a line") from None
    mappings = tuple(each for each in objects if isinstance(each, dict))
    if not objects or len(mappings) < len(objects):
        raise _mistake(path, None, "expected JSON objects")
    return mappings


def _mistake(path: Path, line: int | None, message: str, column: int | None = None) -> InputError:
    return InputError(Mistake(str(path), line, column, "", message))


TableRow = Mapping[str, str]

# Cache formats if a table gives no format: the default of engines, and the narrowest.
USUAL_CACHE, NARROWEST_CACHE = "bf16", "fp8"
MAX_CELL_VALUE, MIN_CELL_VALUE = 1e9, 1e-9  # chips, tokens, requests, ms or s
MAX_CHIPS = 1_000_000
MONTH = re.compile(r"\d{4}-\d{2}")
# Digits with commas or spaces among them: as a number, they could mean several.
PUNCTUATED_NUMBER_PATTERN = re.compile(r"[-+]?\d[\d.,'\s_\u00a0\u202f]*")


@dataclass(frozen=True)
class Measurements:
    """A file of measurements: its `kind`, columns, rows, the line of each row, measured columns.

    The results of a load generator have no columns, and a row for each run. Every row has as many
    cells as there are columns. `models` are the configurations in place of catalogue entries.
    """

    source: Sheet | Documents
    kind: str
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    columns: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.source.path

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.name

    @property
    def sheet(self) -> Sheet:
        """Table for calibration; raises InputError if the source is not a CSV table."""
        if isinstance(self.source, Sheet):
            return self.source
        raise InputError(f"{self.path} is no CSV table that columns are added to")

    @property
    def numbered(self) -> Iterator[tuple[int, int, dict[str, str]]]:
        """Index, line and cells by column of every row."""
        for row, (line, cells) in enumerate(zip(self.lines, self.rows, strict=True)):
            yield row, line, dict(zip(self.columns, cells, strict=True))

    def repeats(self, apart: frozenset[str] = frozenset()) -> frozenset[int]:
        """Rows equal to an earlier row except in the columns where repeats may differ."""
        earlier, again = set[tuple[str, ...]](), set[int]()
        for row, _, cells in self.numbered:
            key = tuple(text for name, text in cells.items() if name not in apart)
            if key in earlier:
                again.add(row)
            earlier.add(key)
        return frozenset(again)


def needs(source: Source, columns: Sequence[str], alternatives: Sequence[str] = ()) -> None:
    """Refuse a table that lacks columns, or all of several alternatives; raises InputError."""
    names = sheet(source).columns
    missing = [name for name in columns if name not in names]
    if alternatives and not set(alternatives) & set(names):
        missing.append(" or ".join(alternatives))
    if missing:
        raise InputError(f"{source}: missing columns {', '.join(missing)}")


def table_rows(source: Source) -> list[TableRow]:
    """The lines after the first by column name, values stripped; blank lines have blank values.

    Raises InputError if the file is no table, or holds a header and no row.
    """
    text_table = sheet(source)
    if not text_table.rows:
        raise InputError(Mistake(str(text_table), 1, 1, "", "holds a header and no row"))
    at = dict(zip(text_table.lines, text_table.rows, strict=True))
    blank = ("",) * len(text_table.columns)
    return [
        dict(zip(text_table.columns, map(str.strip, at.get(line, blank)), strict=True))
        for line in range(2, text_table.lines[-1] + 1)
    ]


def parse_number(row: TableRow, name: str) -> float:
    """A value as a finite number; raises BadRow for one that is missing or is none."""
    text = row.get(name, "")
    if not text:
        raise BadRow(f"{name} is not given")
    try:
        value = float(text)
    except ValueError:
        hint = ""
        if PUNCTUATED_NUMBER_PATTERN.fullmatch(text):
            hint = "; a point stands before decimals, nothing between thousands"
        raise BadRow(f"{name} is no number: {quote(text)}{hint}") from None
    if not math.isfinite(value):
        raise BadRow(f"{name} is not finite")
    if abs(value) > MAX_CELL_VALUE:
        raise BadRow(f"{name} is beyond any measurement: {value:g}")
    return value


def positive(row: TableRow, name: str) -> float:
    """A value above zero; raises BadRow for any other."""
    value = parse_number(row, name)
    if value <= 0:
        raise BadRow(f"{name} is zero or negative")
    if value < MIN_CELL_VALUE:
        raise BadRow(f"{name} is beyond any measurement: {value:g}")
    return value


MIN_VALUE, MAX_VALUE = 1e-9, 1e15  # of any measured value, in the unit of its column


def positive_or_none(text: str) -> float | None:
    """A cell as a number above zero that can be a measurement, None for any other."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if MIN_VALUE <= value <= MAX_VALUE else None


def tokens(row: TableRow, name: str) -> float:
    """A length of one token or more, which may be a mean; raises BadRow for any other."""
    value = positive(row, name)
    if value < 1:
        raise BadRow(f"{name} is {value:g}, less than a token")
    return value


def number_or_none(row: TableRow, name: str) -> float | None:
    """A value above zero, None where it is blank or zero (some tables write 0 for unknown)."""
    text = row.get(name, "")
    if not text or text in ("0", "0.0"):
        return None
    return positive(row, name)


def count(row: TableRow, name: str, default: int | None = None) -> int:
    """A whole number above zero; `default` where blank or zero; raises BadRow for any other."""
    value = number_or_none(row, name)
    if value is None:
        if default is None:
            raise BadRow(f"{name} is not given")
        return default
    if value != int(value):
        raise BadRow(f"{name} is no whole number: {row[name]}")
    if value > MAX_CHIPS:
        raise BadRow(f"{name} is beyond any machine: {value:g}")
    return int(value)


def day(row: TableRow, name: str) -> str:
    """Date or month, as `2026-01-31` or `2026-01`; empty string for a blank cell.

    Raises BadRow if it is no such date; other ways to write one are not guessed at.
    """
    text = row.get(name, "")
    try:
        date.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text or "2026-01-01")
    except ValueError:
        raise BadRow(f"{name} is no date such as 2026-01-31: {quote(text)}") from None
    return text
