"""Tables in files: Parquet, CSV or JSON lines, written in parts and put together in a stream.

Parts of a Parquet file are Arrow files, which cost little; the whole has large groups of rows.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from planner.protocol.output import Cell, CodedColumn, Column, Columns, all_names, by_name, tolist
from planner.report.files import check_file
from planner.text.errors import MissingExtra
from planner.text.tables import csv_cell, csv_text

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {"parquet": "arrow", "csv": "csv", "jsonl": "jsonl"}  # endings of parts, by kind of file
TABLE_SUFFIXES = tuple(FORMATS)
KEY = b"token-planner"  # of the metadata of a Parquet file
GROUP = 1 << 17  # rows of a group in it


class Meta(TypedDict):
    """Metadata of the table of a sweep: `over` are the columns varied, in order.

    `digest` is of all that decides the rows, the `version` of this program apart.
    """

    version: str
    digest: str
    problem: str
    method: str
    points: int
    over: list[str]
    units: dict[str, str]
    scenario: object


STATUS = re.compile(r'"status": "(\w+)"')


def file_kind(out: Path) -> str:
    """Kind of file that the ending of a name selects.

    Raises InputError if no kind has that ending, or it is a folder; MissingExtra if it is Parquet
    and PyArrow is not installed.
    """
    kind = check_file(out, "--out", TABLE_SUFFIXES)
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "data", "a Parquet file")
    return kind


def encode_part(columns: Columns, kind: str, meta: Mapping[str, object]) -> bytes:
    """A part: columns of one length as a file of their own, which can be read alone."""
    if kind == "parquet":
        import pyarrow as pa

        table = pa.table({name: _arrow_array(column) for name, column in columns.items()})
        table = table.replace_schema_metadata({KEY: json.dumps(meta)})
        written = pa.BufferOutputStream()
        with pa.ipc.new_file(written, table.schema) as part:
            part.write_table(table)
        return written.getvalue().to_pybytes()
    values = [tolist(column) for column in columns.values()]
    if kind == "jsonl":
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
        text = "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in rows)
        return text.encode()
    return csv_text([columns, *zip(*values, strict=True)]).encode()


def count_rows(part: Path, kind: str) -> int:
    """Rows of a part; -1 if it cannot be read."""
    try:
        if kind == "parquet":
            return len(_arrow_table(part))
        if kind == "jsonl":
            with part.open(encoding="utf-8") as lines:
                return sum(1 for line in lines if line.endswith("}\n"))
        return sum(1 for _ in _read(part)) - 1
    except (OSError, ValueError, NotImplementedError, csv.Error):
        return -1


def assemble_parts(
    parts: Sequence[Path], out: Path, kind: str, meta: Mapping[str, object]
) -> dict[str, int]:
    """Put parts together into one file, part by part; how many rows have each status.

    `out` is written as it stands: whoever calls moves it to its place.
    """
    if kind == "parquet":
        return _parquet_of(parts, out, meta)
    statuses: Counter[str] = Counter()
    if kind == "jsonl":
        with out.open("w", encoding="utf-8") as whole:
            for part in parts:
                text = part.read_text(encoding="utf-8")
                statuses.update(STATUS.findall(text))
                whole.write(text)
        return dict(statuses)
    names = all_names(next(_read(part), []) for part in parts)
    with out.open("w", encoding="utf-8", newline="") as whole:
        table = csv.DictWriter(whole, names, lineterminator="\n")
        table.writeheader()
        for part in parts:
            rows = _read(part)
            header = next(rows, [])
            for cells in rows:
                row = dict(zip(header, cells, strict=True))
                statuses[row["status"]] += 1
                table.writerow(row)
    return dict(statuses)


def load_columns(file: Path) -> dict[str, list[Cell]]:
    """The columns of a finished file."""
    kind = file_kind(file)
    if kind == "parquet":
        import pyarrow.parquet as pq

        return dict(pq.read_table(file).to_pydict())
    if kind == "jsonl":
        with file.open(encoding="utf-8") as lines:
            return by_name([json.loads(line) for line in lines])
    table = _read(file)
    names = next(table, [])
    rows = [list(map(_number, row)) for row in table]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def read_meta(file: Path, kind: str) -> Meta | None:
    """Metadata of a finished file; None if no sweep wrote it.

    Of CSV and JSON lines it stands in a file beside.
    """
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            text = (pq.read_schema(file).metadata or {}).get(KEY, b"")
        else:
            text = file.with_name(f"{file.name}.meta.json").read_bytes()
        meta: Meta = json.loads(text)
    except (OSError, ValueError, NotImplementedError):
        return None
    return meta if "over" in meta else None


def _read(file: Path) -> Iterator[list[str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.reader(lines)


def _number(text: str) -> Cell:
    """A cell of a CSV file: a number if it is one, None if it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return csv_cell(text)


def _parquet_of(parts: Sequence[Path], out: Path, meta: Mapping[str, object]) -> dict[str, int]:
    """Put parts together, a few at a time; how many rows have each status."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    fields: dict[str, pa.Field] = {}
    for schema in (_arrow_table(part).schema for part in parts):
        for column in schema:
            coded = pa.types.is_dictionary(column.type)
            field = pa.field(column.name, column.type.value_type if coded else column.type)
            earlier = fields.setdefault(field.name, field)
            if earlier.type == field.type:
                continue
            pair = [pa.schema([earlier]), pa.schema([field])]
            try:
                fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
            except pa.ArrowException:
                fields[field.name] = pa.field(field.name, pa.string())
    schema = pa.schema(list(fields.values()))
    schema = schema.with_metadata({KEY: json.dumps(meta)})
    statuses: Counter[str] = Counter()
    # Measured numbers seldom repeat: a dictionary of them only costs time.
    repeats = [f.name for f in schema if not pa.types.is_floating(f.type)]
    with pq.ParquetWriter(out, schema, compression="snappy", use_dictionary=repeats) as whole:
        for table in _arrow_groups(parts, schema):
            for count in pc.value_counts(table["status"].combine_chunks()).to_pylist():
                statuses[str(count["values"])] += count["counts"]
            whole.write_table(table, row_group_size=GROUP)
    return dict(statuses)


def _arrow_groups(parts: Sequence[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of all parts in tables of at least a group, the last one excepted."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for part in parts:
        table = _arrow_table(part)
        columns = {
            field.name: table[field.name].cast(field.type)
            if field.name in table.schema.names
            else pa.nulls(len(table), field.type)
            for field in schema
        }
        waiting.append(pa.table(columns, schema=schema))
        if sum(map(len, waiting)) >= GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _arrow_table(part: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(part)) as mapped:
        return pa.ipc.open_file(mapped).read_all()


def _arrow_array(column: Column) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, CodedColumn):
        import numpy as np

        present = np.array([word is not None for word in column.words])
        if not present.any():
            return pa.nulls(len(column))
        kind = np.int8 if len(present) < 128 else np.int32
        places = np.maximum(np.cumsum(present) - 1, 0).astype(kind)
        codes = pa.array(places[column.codes], mask=~present[column.codes])
        return pa.DictionaryArray.from_arrays(
            codes, pa.array([word for word in column.words if word is not None])
        )
    if hasattr(column, "dtype"):
        return pa.array(column, from_pandas=True)
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers of some rows, words of others: such a column is one of words.
        return pa.array([None if value is None else str(value) for value in column])
