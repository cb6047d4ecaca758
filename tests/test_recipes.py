"""The recipes under docs/ are followed to the letter, on a copy of the project."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

RECIPES = sorted((ROOT / "docs").glob("adding-*.md"))
STEP = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {"planner": ["-m", "planner"], "python": [], "pytest": ["-m", "pytest", "-q"]}


def copied(folder: Path) -> Path:
    """What a change touches, in a folder of its own."""
    for name in ("planner", "formulas", "topologies", "tools", "examples", "docs", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "frozen")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


def edited(text: str, change: str) -> str:
    """A text after a change written as lines that stay, go (-) and come (+)."""
    lines = [(line[:1] or " ", line[1:]) for line in change.splitlines()]
    before = "".join(f"{line}\n" for mark, line in lines if mark != "+")
    after = "".join(f"{line}\n" for mark, line in lines if mark != "-")
    assert text.count(before) == 1, f"not once in the file:\n{before}"
    return text.replace(before, after)


def apply(folder: Path, language: str, name: str, body: str) -> None:
    """Do what a block says to a file: change it, add to it, or make it."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(edited(text, body) if language == "diff" else text + body, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_a_recipe_works(recipe, tmp_path):
    """Its blocks go into the files they name, and its commands run; status 0 for every one."""
    folder = copied(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    steps = STEP.findall(recipe.read_text(encoding="utf-8"))
    assert any(language == "sh" for language, _, _ in steps)
    for language, name, body in steps:
        if name:
            apply(folder, language, name, body)
        for line in body.splitlines() if language == "sh" else ():
            program, *words = shlex.split(line)
            command = [sys.executable, *PROGRAMS[program]] if program in PROGRAMS else [program]
            command += words
            run = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, f"{line}\n{run.stdout[-1500:]}{run.stderr[-3000:]}"
            assert run.stdout + run.stderr or program != "planner", f"{line} prints nothing"
