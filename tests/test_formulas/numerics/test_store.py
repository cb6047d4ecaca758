"""What is kept on disk is what would be made, and is made again when an equation changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formulas.numerics import store
from formulas.numerics.store import digest, stored


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

    assert stored("thing", make) == stored("thing", make) == {"numbers": [0.1, 1e-300, 2 / 3]}
    assert len(made) == 1


def test_a_source_that_changes_makes_it_again(own_folder: Path) -> None:
    """One byte in a source, and nothing that was kept before is looked at."""
    source = own_folder / "equation.py"
    source.write_text("T = V/W")
    before = digest((source,))
    assert stored("thing", lambda: 1, (source,)) == 1
    source.write_text("T = V/W + 1")
    digest.cache_clear()
    assert digest((source,)) != before
    assert stored("thing", lambda: 2, (source,)) == 2


def test_what_cannot_be_read_or_written_is_made(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file, a damaged one, and a folder that is a file."""
    assert stored("thing", lambda: 1) == 1
    for number, damaged in enumerate((b"{", b"\xff\xfe", b"null", b""), 2):
        (own_folder / "cache" / digest() / "thing.json").write_bytes(damaged)
        assert stored("thing", lambda number=number: number) == number
    file = own_folder / "file"
    file.write_text("")
    monkeypatch.setenv(store.VARIABLE, str(file))
    assert stored("thing", lambda: 3) == 3


def edited_often(folder: Path) -> None:
    """What a checkout keeps whose source changes again and again."""
    source = folder / "equation.py"
    for number in range(3 * store.GENERATIONS):
        source.write_text(str(number))
        digest.cache_clear()
        stored("thing", lambda: 1, (source,))


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
