"""The examples of sweeps print what stands beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("sweep-*.py")), ids=lambda path: path.stem)
def test_an_example_of_a_sweep_prints_the_output_beside_it(script):
    """`NAME.txt` is what `python NAME.py` prints."""
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert run.stdout == script.with_suffix(".txt").read_text(encoding="utf-8")
