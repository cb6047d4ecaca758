"""What a wheel ships of lowered equations is what the code would write: all a first run asks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from formulas.numerics import store
from formulas.numerics.store import cached_json, digest
from tests.paths import ROOT


def test_what_is_shipped_is_read_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the digest of its sources alone: of other equations nothing is read."""
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(store, "SHIPPED_FOLDER", tmp_path / "shipped")
    cached_json("thing", lambda: [1, 2])
    here = tmp_path / "shipped" / digest()
    (tmp_path / "kept").rename(here.parent)
    assert cached_json("thing", lambda: [3]) == [1, 2]
    assert not (tmp_path / "kept").exists()
    here.rename(here.with_name("0" * 24))
    assert cached_json("thing", lambda: [3]) == [3]


def written(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path there."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*.json")}


@pytest.mark.slow
def test_a_wheel_ships_what_its_first_run_would_make(tmp_path: Path) -> None:
    """In a copy that ships it the README's question keeps nothing; without, it keeps the same."""
    spec = importlib.util.spec_from_file_location("backend", ROOT / "wheel" / "backend.py")
    assert spec is not None
    assert spec.loader is not None
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    copy = tmp_path / "site"
    for package in ("planner", "formulas", "topologies"):
        shutil.copytree(ROOT / package, copy / package)
    shipped = copy / "formulas" / "numerics" / "lowered"
    question = str(ROOT / "examples" / "serve-deepseek-v3-h200.yaml")
    for name, ships in (("without", False), ("with", True)):
        if ships:
            backend.lower(shipped)
        environment = {**os.environ, "PYTHONPATH": str(copy), store.VARIABLE: str(tmp_path / name)}
        subprocess.run(
            [sys.executable, "-m", "planner", "solve", question, "--why", "--quiet"],
            cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    made = written(tmp_path / "without")
    assert len(made) > 30
    assert written(tmp_path / "with") == {}
    assert made.items() <= written(shipped).items()
