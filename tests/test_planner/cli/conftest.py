"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.cli.app import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command, the module's COMMAND first: exit status, standard output and error."""

    def ran(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*getattr(request.module, "COMMAND", ()), *map(str, words)])
        told = capsys.readouterr()
        return int(exit_.value.code or 0), told.out, told.err

    return ran
