"""What is kept on disk is what would be made, and is made again when an equation changes."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from formulas.numerics import store
from formulas.numerics.kernel import Kernel
from formulas.numerics.store import MAX_CACHED_ELEMENTS, by_columns, cached_json, digest
from formulas.numerics.tape import Tape
from planner.network.layout_collectives import DECODE, PREFILL, exchanges, reductions, rounds
from topologies import machine


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own; digests are worked out anew."""
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "cache"))
    digest.cache_clear()
    return tmp_path


def test_a_thing_is_made_once() -> None:
    """The second time it is read, the very numbers included."""
    made = []

    def make() -> dict[str, list[float]]:
        made.append(1)
        return {"numbers": [0.1, 1e-300, 2 / 3]}

    assert (
        cached_json("thing", make)
        == cached_json("thing", make)
        == {"numbers": [0.1, 1e-300, 2 / 3]}
    )
    assert len(made) == 1


def test_a_source_that_changes_makes_it_again(own_folder: Path) -> None:
    """One byte in a source, and nothing that was kept before is looked at."""
    source = own_folder / "equation.py"
    source.write_text("T = V/W")
    before = digest((source,))
    assert cached_json("thing", lambda: 1, (source,)) == 1
    source.write_text("T = V/W + 1")
    digest.cache_clear()
    assert digest((source,)) != before
    assert cached_json("thing", lambda: 2, (source,)) == 2


def test_what_cannot_be_read_or_written_is_made(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file, a damaged one, and a folder that is a file."""
    assert cached_json("thing", lambda: 1) == 1
    for number, damaged in enumerate((b"{", b"\xff\xfe", b"null", b""), 2):
        (own_folder / "cache" / digest() / "thing.json").write_bytes(damaged)
        assert cached_json("thing", lambda number=number: number) == number
    file = own_folder / "file"
    file.write_text("")
    monkeypatch.setenv(store.VARIABLE, str(file))
    assert cached_json("thing", lambda: 3) == 3


def test_a_changed_or_exchanged_file_is_made_again(own_folder: Path) -> None:
    """JSON of another shape, one digit changed, another's file, a bare value: none is believed."""
    numbers = {"table": [1.25, 2.5]}
    for name in ("thing", "other"):
        assert cached_json(name, lambda name=name: {name: numbers}) == {name: numbers}
    file = own_folder / "cache" / digest() / "thing.json"
    sound = file.read_text()
    assert "1.25" in sound
    damaged = ("[]", "{}", "0", '"x"', sound.replace("1.25", "1.35"), sound[:-1], sound + " ",
               file.with_name("other.json").read_text(), '{"thing": {}}')  # fmt: skip
    for text in damaged:
        file.write_text(text)
        assert cached_json("thing", lambda: {"thing": numbers}) == {"thing": numbers}
        assert file.read_text() == sound, text
    assert cached_json("thing", lambda: {}) == {"thing": numbers}


def test_a_damaged_kernel_gives_the_same_numbers(own_folder: Path) -> None:
    """A tape of another shape or with another constant is lowered again, and gives the same."""
    nodes = [("argument", "x"), ("constant", 1.0), ("sum", (0, 1), ())]

    def kernel() -> object:
        made = store.cached_kernel("kernel", lambda: Kernel(Tape(nodes, {"y": 2}), ("x",)))
        return made(x=3.0)["y"]

    assert kernel() == 4.0
    file = own_folder / "cache" / digest() / "kernel.json"
    sound = file.read_text()
    for text in ("[]", "[[], {}]", sound.replace("1.0", "7.0"), "null"):
        file.write_text(text)
        assert kernel() == 4.0


def edited_often(folder: Path) -> None:
    """What a checkout keeps whose source changes again and again."""
    source = folder / "equation.py"
    for number in range(3 * store.GENERATIONS):
        source.write_text(str(number))
        digest.cache_clear()
        cached_json("thing", lambda: 1, (source,))


def test_few_generations_stay(own_folder: Path) -> None:
    """A checkout that is edited does not fill the folder."""
    edited_often(own_folder)
    assert len(list((own_folder / "cache").iterdir())) <= store.GENERATIONS


def test_what_others_keep_in_the_folder_stays(own_folder: Path) -> None:
    """The folder may hold anything: only folders named by a digest are removed."""
    theirs = [own_folder / "cache" / name for name in ("letters", "photos", "a" * 23)]
    for folder in theirs:
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    edited_often(own_folder)
    assert all(folder.is_dir() for folder in theirs)


@dataclass(frozen=True)
class Pair:
    total: np.ndarray
    least: np.ndarray


def counted():
    """A function that is looked up, and the arguments that it was computed at."""
    computed = []

    @by_columns
    def pair(name: str, column: np.ndarray) -> Pair:
        computed.append((name, column.tolist()))
        return Pair(column * 2, np.minimum(column, 1))

    return pair, computed


def test_equal_columns_are_computed_once():
    """Equal numbers of one type are one question, whichever array holds them."""
    pair, computed = counted()
    first, second = pair("a", np.array([1, 2])), pair("a", np.array([1, 2, 3])[:2])
    assert first is second
    assert len(computed) == 1
    assert first.total.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("name", "column"), [("b", [1, 2]), ("a", [1, 3]), ("a", [1]), ("a", [1.0, 2.0])]
)
def test_whatever_differs_is_another_question(name, column):
    """A value, a number, a length or a type that differs is not shared."""
    pair, computed = counted()
    before = pair("a", np.array([1, 2]))
    after = pair(name, np.array(column))
    assert len(computed) == 2
    assert after is not before
    assert after.total.tolist() == [2 * number for number in column]
    assert after.total.dtype == np.array(column).dtype


def test_what_is_shared_cannot_be_changed():
    """Nobody writes into a column that others read; the caller's own stays as it was."""
    pair, _ = counted()
    column = np.array([1.0, 2.0])
    shared = pair("a", column)
    with pytest.raises(ValueError, match="read-only"):
        shared.total[0] = 5.0
    column[0] = 7.0
    assert pair("a", np.array([1.0, 2.0])).total.tolist() == [2.0, 4.0]
    assert pair("a", column).total.tolist() == [14.0, 4.0]


def test_long_columns_are_computed_each_time():
    """Columns beyond the longest kept, and arguments by name, take no memory."""
    pair, computed = counted()
    column = np.ones(MAX_CACHED_ELEMENTS + 1)
    assert pair("a", column).total is not pair("a", column).total
    assert pair("a", column=np.ones(2)).total is not pair("a", column=np.ones(2)).total
    assert len(computed) == 4


def test_an_error_is_raised_again():
    """What is refused once is refused every time, as nothing is kept of it."""

    @by_columns
    def refused(column: np.ndarray) -> np.ndarray:
        raise ValueError("none")

    for _ in range(2):
        with pytest.raises(ValueError, match="none"):
            refused(np.ones(1))


def test_questions_of_other_networks_are_not_shared():
    """A link, a chip, a phase or a share that differs changes what collectives take."""
    sizes = np.array([1, 2, 4, 8])
    plain = machine("hgx-h200")
    slower = replace(plain, scale_up=plain.scale_up / 2)
    for within in (DECODE, PREFILL):
        before = exchanges(plain, "h200", sizes, within, 0.5)
        after = exchanges(slower, "h200", sizes, within, 0.5)
        assert (after.rate[1:] < before.rate[1:]).all()
        assert (exchanges(plain, "h200", sizes, within, 0.5).rate == before.rate).all()
        parts = rounds(plain, "h200", sizes, sizes, within)
        assert (rounds(slower, "h200", sizes, sizes, within).rate[1:] < parts.rate[1:]).all()
    decode, prefill = (reductions(plain, "h200", sizes, within) for within in (DECODE, PREFILL))
    assert (decode.rate[1:] != prefill.rate[1:]).any()
