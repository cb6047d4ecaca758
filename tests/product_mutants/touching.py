"""Which tests call which functions, and how long each takes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.paths import ROOT
from tests.product_mutants.forks import Job

# Libraries are loaded before pytest could look into them.
PLAINLY = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
PRODUCT = tuple(f"{ROOT / name}{os.sep}" for name in ("planner", "formulas", "topologies"))


class Recorder:
    """A plugin of pytest that writes down which product functions every test calls.

    What is called while a file is collected, and by fixtures that its tests share, counts for all
    of its tests.
    """

    def __init__(self) -> None:
        self.shared: set[CodeType] = set()
        self.now = self.shared
        self.tests: dict[str, tuple[float, set[CodeType]]] = {}

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        self.now.add(frame.f_code)

    def begin(self) -> None:
        """From now on calls are seen."""
        sys.settrace(self._called)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test, from setting up to tearing down."""
        self.now, started = set(), time.process_time()
        sys.settrace(self._called)
        result = yield
        self.tests[item.nodeid] = time.process_time() - started, self.now
        self.now = self.shared
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """One fixture: that of a module or of the session is of all its tests."""
        before = self.now
        if fixturedef.scope != "function":
            self.now = self.shared
        result = yield
        self.now = before
        return result

    def written(self) -> dict[str, Any]:
        """{test: seconds and what it calls}, functions as "file:name"."""
        shared = _places(self.shared)
        return {
            name: {"seconds": round(seconds, 3), "calls": sorted(_places(calls) | shared)}
            for name, (seconds, calls) in self.tests.items()
        }


def _places(codes: set[CodeType]) -> set[str]:
    return {
        f"{code.co_filename[len(str(ROOT)) + 1 :]}:{code.co_qualname.partition('.<')[0]}"
        for code in codes
        if code.co_filename.startswith(PRODUCT)
    }


def recording(file: str, cache: Path) -> Job:
    """The tests of one file are run once and what they call is written into the cache."""
    target = cache / (file.replace("/", ".") + ".json")

    def work() -> int:
        recorder = Recorder()
        recorder.begin()
        pytest.main([file, *PLAINLY], plugins=[recorder])
        sys.settrace(None)
        target.write_text(json.dumps(recorder.written()), encoding="utf-8")
        return 0

    return Job(file, work, processor=900)


def stale(file: str, cache: Path) -> bool:
    """Whether the tests of a file are not in the cache as they are now."""
    target = cache / (file.replace("/", ".") + ".json")
    return not target.exists() or target.stat().st_mtime < (ROOT / file).stat().st_mtime


class Touching:
    """What the cache knows: for every function the tests that call it, with their seconds."""

    def __init__(self, cache: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.by_function: dict[str, list[str]] = {}
        for file in sorted(cache.glob("*.json")):
            for test, entry in json.loads(file.read_text(encoding="utf-8")).items():
                self.seconds[test] = entry["seconds"]
                for function in entry["calls"]:
                    self.by_function.setdefault(function, []).append(test)

    def chosen(self, functions: Sequence[str], budget: float) -> list[str]:
        """Tests that call one of them, those of its own file first, within so many seconds.

        Others are taken from all files, the quickest first, and fewer of a file with many.
        """
        touching = {test for name in functions for test in self.by_function.get(name, ())}
        tests = sorted(touching, key=self.seconds.__getitem__)
        stem = Path(functions[0].partition(":")[0]).stem
        turns: dict[str, int] = {}
        order = []
        for test in tests:
            file = test.partition("::")[0]
            turns[file] = turns.get(file, 0) + 1
            mirrored = Path(file).stem.removeprefix("test_") == stem
            order.append((0.0 if mirrored else self.seconds[test] * turns[file], test))
        chosen, spent = [], 0.0
        for _, test in sorted(order):
            seconds = self.seconds[test]
            if spent + seconds <= budget or not chosen:
                chosen.append(test)
                spent += seconds
        return chosen
