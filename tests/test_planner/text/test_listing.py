"""Rows are searched by words, filtered by figures with units, and laid into columns that fit."""

from __future__ import annotations

import json

import pytest

from planner.catalogue.chips import chip, chip_names
from planner.cli.app import main
from planner.text import listing
from planner.text.errors import InputError
from planner.text.listing import Listing
from planner.text.wording import COLUMNS

LIST = Listing(
    {"chip": None, "memory": "size", "domain": "number", "title": None},
    (
        ("small", 80e9, 8.0, "one that is described by rather many words of which some wrap"),
        ("large", 192e9, 72.0, "another"),
        ("unmeasured", None, None, "a third"),
    ),
)


def test_words_and_conditions_keep_what_they_hold_of() -> None:
    """All of them; where a figure is not known nothing holds of it."""
    assert LIST.selected("ANOTHER").names == ["large"]
    assert LIST.selected("192 large").names == ["large"]
    assert LIST.selected(None, ["memory<=80 GB"]).names == ["small"]
    assert LIST.selected(None, ["memory>1 GB", "domain != 8"]).names == ["large"]
    assert LIST.selected(None, ["chip=Large"]).names == ["large"]
    assert LIST.selected("another", ["domain<72"]).names == []
    assert LIST.records[1] == {"chip": "large", "memory": 192e9, "domain": 72.0, "title": "another"}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("memory", "expected COLUMN, a sign and a value"),
        ("memroy>1", "did you mean 'memory'"),
        ("memory>1 s", "expected a size in bytes"),
        ("title>a", "compared by = and != alone"),
        ("", "expected COLUMN"),
    ],
)
def test_a_condition_that_is_none_is_refused(condition: str, message: str) -> None:
    """With the columns that there are."""
    with pytest.raises(InputError, match=message):
        LIST.selected(None, [condition])


def test_a_pipe_gets_a_row_a_line_and_a_terminal_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last column is folded below itself; others go from the right, which is said."""
    assert [line.split()[0] for line in str(LIST).split("\n")] == ["chip", *LIST.names]
    monkeypatch.setattr(listing, "is_terminal", lambda stream: True)
    for width in range(44, 120):
        token = COLUMNS.set(width)
        text = str(LIST)
        COLUMNS.reset(token)
        assert max(map(len, text.split("\n"))) <= width
        assert ("no room for: domain" in text) == (width < 52)
        assert " ".join(text.split()).count("another") == 1


def test_what_is_listed_is_what_the_catalogue_has(capsys: pytest.CaptureFixture[str]) -> None:
    """By the command: chips of much memory, in JSON and as a table."""
    words = ["catalog", "chips", "--where", "memory>=100 GB", "--find", "nvidia"]
    expected = [x for x in chip_names()
                if chip(x).memory >= 100e9 and "nvidia" in chip(x).title.lower()]  # fmt: skip
    printed = []
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as end:
            main([*words, *more])
        assert not end.value.code
        printed.append(capsys.readouterr().out)
    assert len(expected) > 3
    assert [line.split()[0] for line in printed[0].split("\n")[1:-1]] == expected
    document = json.loads(printed[1])
    assert document["names"] == expected
    assert document["rows"][0]["memory"] == chip(expected[0]).memory


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("formula", "--find", "batch two roofs", "--where", "subject=batching"), "critical_batch"),
        (("derive", "critical_batch", "cost_floor", "--where", "steps>=3"), "critical_batch"),
        (("catalog", "--find", "deepseek-v3"), "models"),
    ],
)
def test_other_lists_are_searched_the_same_way(
    words: tuple[str, ...], listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equations, derivations, all kinds of the catalogue; there is one that is kept, not all."""
    with pytest.raises(SystemExit):
        main([*words])
    lines = capsys.readouterr().out.split("\n")
    assert listed in [line.split()[0] for line in lines if line]
    assert len(lines) < 12
