"""Tables in Parquet files: parts as Arrow files, which cost little, then one in large groups."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.sweep.rows import Columns, Words

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["assembled", "encoded", "loaded", "meta_of", "rows_in"]

KEY = b"token-planner"  # of the metadata
GROUP = 1 << 17  # rows of a group in the finished file


def encoded(columns: Columns, meta: Mapping[str, Any]) -> bytes:
    """A part: an Arrow file, for it is read once and removed."""
    import pyarrow as pa

    table = pa.table({name: _array(column) for name, column in columns.items()})
    table = table.replace_schema_metadata({KEY: json.dumps(meta)})
    written = pa.BufferOutputStream()
    with pa.ipc.new_file(written, table.schema) as part:
        part.write_table(table)
    return written.getvalue().to_pybytes()


def rows_in(part: Path) -> int:
    """Rows of a part; -1 if it cannot be read."""
    import pyarrow as pa

    try:
        return len(_read(part))
    except (OSError, pa.ArrowException):
        return -1


def assembled(parts: Sequence[Path], out: Path, meta: Mapping[str, Any]) -> dict[str, int]:
    """Put parts together, a few at a time; how many rows have each status."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = _united(_read(part).schema for part in parts).with_metadata({KEY: json.dumps(meta)})
    found: Counter[str] = Counter()
    # Measured numbers seldom repeat: a dictionary of them only costs time.
    repeats = [f.name for f in schema if not pa.types.is_floating(f.type)]
    with pq.ParquetWriter(out, schema, compression="snappy", use_dictionary=repeats) as whole:
        for table in _groups(parts, schema):
            for each in pc.value_counts(table["status"].combine_chunks()).to_pylist():
                found[str(each["values"])] += each["counts"]
            whole.write_table(table, row_group_size=GROUP)
    return dict(found)


def loaded(file: Path) -> dict[str, list[Any]]:
    """The columns of a finished file."""
    import pyarrow.parquet as pq

    return dict(pq.read_table(file).to_pydict())


def meta_of(file: Path) -> dict[str, Any]:
    """What is known of a finished file; nothing if it was not written by a sweep."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        text = (pq.read_schema(file).metadata or {}).get(KEY)
    except (OSError, pa.ArrowException):
        return {}
    return dict(json.loads(text)) if text else {}


def _groups(parts: Sequence[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of all parts in tables of at least a group, the last one excepted."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for part in parts:
        table = _read(part)
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


def _read(part: Path) -> pa.Table:
    """A part, mapped into memory and not yet touched."""
    import pyarrow as pa

    with pa.memory_map(str(part)) as mapped:
        return pa.ipc.open_file(mapped).read_all()


def _united(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """One schema for all parts: numbers of both kinds are floats, numbers and words are words."""
    import pyarrow as pa

    found: dict[str, pa.Field] = {}
    for schema in schemas:
        for each in schema:
            coded = pa.types.is_dictionary(each.type)
            field = pa.field(each.name, each.type.value_type if coded else each.type)
            other = found.setdefault(field.name, field)
            if other.type == field.type:
                continue
            pair = [pa.schema([other]), pa.schema([field])]
            try:
                found[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
            except pa.ArrowException:
                found[field.name] = pa.field(field.name, pa.string())
    return pa.schema(list(found.values()))


def _array(column: Any) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, Words):
        return _coded(column)
    if hasattr(column, "dtype"):
        return pa.array(column, from_pandas=True)
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers of some rows, words of others: such a column is one of words.
        return pa.array([None if value is None else str(value) for value in column])


def _coded(column: Words) -> pa.Array:
    """Words by their number; those that are None are no words."""
    import numpy as np
    import pyarrow as pa

    said = np.array([word is not None for word in column.words])
    if not said.any():
        return pa.nulls(len(column))
    kind = np.int8 if len(said) < 128 else np.int32
    places = np.maximum(np.cumsum(said) - 1, 0).astype(kind)
    codes = pa.array(places[column.codes], mask=~said[column.codes])
    return pa.DictionaryArray.from_arrays(
        codes, pa.array([word for word in column.words if word is not None])
    )
