"""The example that derives an equation of one's own prints the file beside it."""

import subprocess
import sys

import pytest

from tests.paths import EXAMPLES


@pytest.mark.slow
def test_derive_your_own_prints_the_output_beside_it():
    """To the letter: checks, Markdown, numbers, elasticity, strain, two refusals."""
    script = EXAMPLES / "derive-your-own.py"
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True, text=True, encoding="utf-8", check=False, cwd=EXAMPLES.parent,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.returncode == 0
    assert ran.stdout == script.with_suffix(".txt").read_text(encoding="utf-8")
