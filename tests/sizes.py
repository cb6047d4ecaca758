"""Two sizes of a test: a small one in every run, the whole one among the slow tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T", bound=Callable[..., Any])


class Run:
    """What is run now: `whole` is set where the slow tests are chosen, before any is collected."""

    whole = False


def sized(few: int, many: int) -> int:
    """A number of cases: a few in every run, many among the slow tests (of a `sized` test)."""
    return many if Run.whole else few


def examples(few: int, many: int) -> Callable[[T], T]:
    """Drawn examples, the same in every run: a few of them in each, many among the slow tests."""

    def decorated(test: T) -> T:
        drawn = settings(max_examples=sized(few, many), deadline=None, derandomize=True)(test)
        marked: T = pytest.mark.sized(drawn)
        return marked

    return decorated


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter: the first so many in every run, the others among the slow tests."""
    return [
        value if place < count else pytest.param(*_several(value), marks=pytest.mark.slow)
        for place, value in enumerate(values)
    ]


def seldom(values: Iterable[Any]) -> list[Any]:
    """Values of a parameter that the campaign alone takes."""
    return [pytest.param(*_several(value), marks=pytest.mark.campaign) for value in values]


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
