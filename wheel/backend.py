"""Builds the wheel with what SymPy makes of the equations in it, so that no first run makes it.

Hatchling does all else. Only a wheel that is copied asks for SymPy and the other libraries to be
built; an editable install, and the archive of sources, are as Hatchling makes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "formulas" / "numerics" / "lowered"
# What these ask, with --why, is what most first runs ask.
ASKED = ("serve-deepseek-v3-h200", "carry-a-load", "train-llama-405b-h100", "infeasible")
METADATA = "Metadata-Version: 2.1\nName: token-planner\nVersion: 0\n"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What Hatchling needs, and what the program does that lowers its equations."""
    import hatchling.build as hatch

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*hatch.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """The wheel with its store of lowered equations; its file name."""
    import hatchling.build as hatch

    try:
        lower(SHIPPED)
        return hatch.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(SHIPPED, ignore_errors=True)


def lower(store: Path) -> None:
    """Fill a folder with what the examples that are most asked keep of their equations."""
    with tempfile.TemporaryDirectory() as beside:
        # The version of a program that is not installed yet.
        info = Path(beside) / "token_planner-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA, "utf-8")
        # After them whatever the builder made this process find its libraries by.
        places = os.pathsep.join(filter(None, (str(ROOT), beside, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "TOKEN_PLANNER_CACHE": str(store), "PYTHONPATH": places}
        for name in ASKED:
            words = ["solve", str(ROOT / "examples" / f"{name}.yaml"), "--why", "--quiet"]
            run = subprocess.run(
                [sys.executable, "-m", "planner", *words], env=environment, cwd=ROOT,
                stdout=subprocess.PIPE, check=False,
            )  # fmt: skip
            if not run.stdout:  # an answer, be it that nothing keeps the promises
                raise RuntimeError(f"planner {' '.join(words)} ended with {run.returncode}")


def __getattr__(name: str) -> Any:
    """Every other hook is Hatchling's own."""
    import hatchling.build as hatch

    return getattr(hatch, name)
