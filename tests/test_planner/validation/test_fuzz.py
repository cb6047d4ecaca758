"""Whatever stands in a cell, a table is read to its end, and every row is answered for."""

from __future__ import annotations

import csv
import io
import random

import pytest

from planner.measurements.readers import read as readings_of
from planner.text.errors import InputError
from planner.validation.estimates import predictions_text, read
from planner.validation.validation_document import document
from tests.paths import shared
from tests.sizes import sized

SEED = 20261121
WEIRD = (
    "", "nan", "inf", "-1", "0", "1e400", "1e308", "1e-308", "abc", "1,5", "  ", "1_0", "-0",
    "\x1b[31m", "1e9", "1e-9", "0.5", "99999999999", "a" * 300, "\u2028", "<b>", "1.0e0",
    "11/21/26", "\u0663",
)  # fmt: skip
TABLES = ("serving_runs", "serving_steady", "collectives", "alltoall_measured", "training_runs")


@pytest.mark.sized
@pytest.mark.parametrize("name", TABLES)
def test_cells_of_any_kind_are_refused_by_row(tmp_path, name):
    """No cell stops a table, none is changed, and what is predicted is a positive number."""
    path = shared(f"{name}.csv")
    head, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    draw = random.Random(f"{SEED} {name}")
    made = [list(draw.choice(rows)) for _ in range(sized(6, 25))]
    for row in made:
        for _ in range(draw.choice((1, 1, 2))):
            row[draw.randrange(len(head))] = draw.choice(WEIRD)
    text = io.StringIO()
    csv.writer(text).writerows([head, *made])
    path = tmp_path / f"{name}.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")

    held, entries = read(path)
    told = list(csv.reader(io.StringIO(predictions_text(held, entries), newline="")))
    assert [row[: len(head)] for row in told] == [head, *made]
    for row in told[1:]:
        *numbers, reason = row[len(head) :]
        assert reason or all(numbers)
        assert all(0 < float(each) < 1e30 for each in numbers if each)
    assert document("auto", [(held, entries)]).files[0].rows == len(made)
    if name.startswith("serving"):
        found = readings_of(path)
        assert found.lines == len(made)
    else:
        with pytest.raises(InputError, match="not measurements of serving"):
            readings_of(path)
