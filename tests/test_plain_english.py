"""Names, docstrings and messages in the words of the field, as the project's tool counts them."""

import subprocess
import sys

from tests.paths import ROOT, shared

# Shares in percent that no change may go below.
FLOORS = ("names=98", "docstrings=97", "docstrings without any riddle=92", "messages=98")


def test_names_and_sentences_are_plain():
    """Its exit status is 1 where a share is below its floor."""
    tool = shared("../tools/plain.py")
    command = [sys.executable, str(tool), str(ROOT), "--offenders", "5", "--floor", *FLOORS]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr
