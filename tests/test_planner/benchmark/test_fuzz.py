"""Whatever stands in the file of a measured chip, it is read or refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.benchmark import read_measured, record
from planner.report.text.calibration_text import measured_document, measured_text
from planner.text.errors import InputError
from tests.test_planner.benchmark.test_record_file import SHORT, found

KEYS = (
    "device", "chip", "capacity", "cache", "as_of", "complete", "seconds", "software", "memory",
    "products", "attention", "launch", "all_reduce", "refused", "left_out", "kind", "size", "m",
    "n", "k", "dtype", "repeats", "best", "median", "spread", "what", "why", "how", "odd",
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=12,
)
ROWS = measured_document(found())


def read_or_refused(raw: dict[str, Any]) -> None:
    """Shown if it is read, each mistake told if it is not."""
    with mock.patch.object(record, "_raw", return_value=raw):
        try:
            chip = read_measured(Path("my-chip.toml"))
        except InputError as error:
            told = str(error)
        else:
            told = measured_text(chip)
            measured_document(chip)
    assert told


@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_no_contents_lead_to_a_fault_of_ours(changes: dict[str, Any]) -> None:
    """Under the keys of the file."""
    read_or_refused({**tomllib.loads(SHORT), **changes})


@given(
    table=st.sampled_from(["memory", "products", "attention", "launch"]),
    key=st.sampled_from(KEYS),
    value=VALUES,
)
@settings(max_examples=150, deadline=None)
def test_no_row_leads_to_a_fault_of_ours(table: str, key: str, value: Any) -> None:
    """Under the keys of a row that is sound otherwise."""
    row = {name: each for name, each in ROWS[table][0].items() if name != "rate"}
    read_or_refused({**tomllib.loads(SHORT), table: [row, {**row, key: value}]})


@given(sizes=st.lists(st.integers(1, 2**53), min_size=1, max_size=4), took=st.floats(1e-12, 1e6))
@settings(max_examples=150, deadline=None)
def test_no_sizes_of_messages_lead_to_a_fault_of_ours(sizes: list[int], took: float) -> None:
    """One size alone, one twice, sizes that take no longer when larger."""
    rows = [
        {"backend": "nccl", "devices": 2, "size": size, "repeats": 5, "best": took,
         "median": took, "spread": 0.0}
        for size in sizes
    ]  # fmt: skip
    read_or_refused({**tomllib.loads(SHORT), "all_reduce": rows})
