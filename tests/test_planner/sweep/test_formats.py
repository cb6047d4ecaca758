"""Parts put together: columns that some parts lack, numbers that others have as words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.sweep.formats import (
    FORMATS,
    TABLE_SUFFIXES,
    assemble_parts,
    count_rows,
    encode_part,
    load_columns,
)

TABLES: list[dict[str, list[Any]]] = [
    {"x": [1, 2], "status": ["optimal", "failed"], "price": [1.5, None], "life": [2, None]},
    {"x": [3], "status": ["refused"], "reason": ['a, "b"\nc']},
    {"x": [4.5], "status": ["optimal"], "price": [2], "life": ["forever"], "reason": [None]},
]


@pytest.mark.parametrize("kind", TABLE_SUFFIXES)
def test_parts_are_put_together(kind, tmp_path: Path):
    """Every row in order, every column once, absent values absent."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    parts = []
    for number, table in enumerate(TABLES):
        part = tmp_path / f"{number}.{FORMATS[kind]}"
        part.write_bytes(encode_part(table, kind, {"digest": "x"}))
        assert count_rows(part, kind) == len(table["x"])
        parts.append(part)
    whole = tmp_path / f"whole.{kind}"
    assert assemble_parts(parts, whole, kind, {"digest": "x"}) == {
        "optimal": 2, "failed": 1, "refused": 1,
    }  # fmt: skip
    found = load_columns(whole)
    assert found["x"] == [1, 2, 3, 4.5]
    assert found["price"] == [1.5, None, None, 2]
    assert found["reason"] == [None, None, 'a, "b"\nc', None]
    assert [None if life is None else str(life) for life in found["life"]] == [
        "2", None, None, "forever",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", TABLE_SUFFIXES)
def test_a_torn_part_has_no_rows(kind, tmp_path: Path):
    """Cut off, or empty: it is told from a whole one by its number of rows."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    part = tmp_path / f"part.{FORMATS[kind]}"
    content = encode_part(TABLES[0], kind, {"digest": "x"})
    for torn in (b"", content[: len(content) // 2]):
        part.write_bytes(torn)
        assert count_rows(part, kind) != 2
