"""A loop over cases runs each of them, names each that fails, and keeps them apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.loops import for_all
from tests.paths import shared


def test_every_offender_is_named_and_the_others_are_run():
    """By its own name, that of `ids` or its values; whatever it raised, the first as the cause."""
    ran = []

    @for_all("x", [1, 2, pytest.param(3, id="three"), 4])
    @for_all(("y", "z"), [(1, 0), (2, 0)], ids=["one", "two"])
    def looped(x: int, y: int, z: int) -> None:
        ran.append((x, y))
        assert x * y != 6
        with pytest.raises(ZeroDivisionError):
            1 / (z if x < 4 else 1)

    with pytest.raises(AssertionError) as error:
        looped()
    assert ran == [(x, y) for x in (1, 2, 3, 4) for y in (1, 2)]
    message = str(error.value)
    assert message.startswith("2 of 4 cases fail:\n  [2: three] AssertionError: 1 of 2 cases fail:")
    assert "[1: two] AssertionError: assert (3 * 2) != 6" in message
    assert "[3: 4] AssertionError: 2 of 2 cases fail:" in message
    assert message.count("Failed: DID NOT RAISE") == 2
    assert str(error.value.__cause__).startswith("1 of 2 cases fail:")


def test_a_case_has_a_folder_patches_and_output_of_its_own(tmp_path, monkeypatch, capsys):
    """As if each were an item."""

    @for_all("x", "ab")
    def looped(x: str, tmp_path: Path, monkeypatch, capsys) -> None:
        (tmp_path / "made").mkdir()
        assert "LOOPED" not in os.environ
        monkeypatch.setenv("LOOPED", x)
        print(x)
        assert capsys.readouterr().out == f"{x}\n"
        print("left behind")

    looped(tmp_path=tmp_path, monkeypatch=monkeypatch, capsys=capsys)


def test_a_loop_that_tests_nothing_is_skipped_aloud():
    """All cases skipped, none at all, one whose table is not there; not for one that is no case."""

    @for_all("x", [1, 2])
    def looped(x: int) -> None:
        if x == 1:
            pytest.skip("no such case")

    looped()
    for cases, reason in ([[1]], "no such case"), ([[]], "got empty parameter set"):
        with pytest.raises(pytest.skip.Exception, match=reason):
            for_all("x", *cases)(looped.__wrapped__)()
    with pytest.raises(pytest.skip.Exception, match=r"needs .*/shared/data/no-such-table"):
        for_all("x", ["no-such-table", ""])(lambda x: shared(x) and None)()
    with pytest.raises(AssertionError, match="cannot be marked alone"):
        for_all("x", [pytest.param(1, marks=pytest.mark.slow)])
