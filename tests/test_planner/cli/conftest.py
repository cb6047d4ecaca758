"""The command line, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

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


def document(run: Run, *words: object) -> Any:
    """The JSON document that a command prints, and nothing else on standard output."""
    status, out, _ = run(*words, "--json")
    assert status == 0
    return json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def numbers(value: Any) -> Iterator[float]:
    """Every number in a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, float):
        yield value
