"""Tables in Parquet files: parts as plain as possible, one compressed file in large groups."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.sweep.columns import Columns, Words

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["assembled", "encoded", "loaded", "meta_of", "rows_in"]

KEY = b"token-planner"  # of the metadata
GROUP = 1 << 17  # rows of a group in the finished file


def encoded(columns: Columns, meta: Mapping[str, Any]) -> bytes:
    """A part: not compressed, for it is read once and removed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: _array(column) for name, column in columns.items()})
    table = table.replace_schema_metadata({KEY: json.dumps(meta)})
    words = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    written = io.BytesIO()
    pq.write_table(table, written, compression="none", use_dictionary=words, write_statistics=False)
    return written.getvalue()


def rows_in(part: Path) -> int:
    """Rows of a part; -1 if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(part).num_rows)
    except (OSError, pa.ArrowException):
        return -1


def assembled(parts: Sequence[Path], out: Path, meta: Mapping[str, Any]) -> dict[str, int]:
    """Put parts together, a few at a time; how many rows have each status."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pa.unify_schemas(
        (_plain_schema(pq.read_schema(part)) for part in parts), promote_options="permissive"
    ).with_metadata({KEY: json.dumps(meta)})
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
    import pyarrow.parquet as pq

    waiting: list[pa.Table] = []
    for part in parts:
        table = pq.read_table(part, partitioning=None)
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


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Words by their number as words: parts number them each in its own way."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
            for f in schema
        ]
    )


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
    places = np.maximum(np.cumsum(said) - 1, 0).astype(np.int32)
    codes = pa.array(places[column.codes], mask=~said[column.codes])
    return pa.DictionaryArray.from_arrays(
        codes, pa.array([word for word in column.words if word is not None])
    )
