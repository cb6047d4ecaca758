"""One test of many cases: all of them run in one item, and every case that fails is named."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.paths import MISSING

EMPTY = "got empty parameter set"  # as pytest says it; tests/conftest.py counts these
WORDS = 60  # characters of a value that has no name of its own
LINES = 6  # of the message of one case


def for_all(
    names: str | Sequence[str], cases: Iterable[Any], ids: Any = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every case, in one item, and fail once with a line for each offender.

    Arguments are those of `pytest.mark.parametrize`. A case fails by whatever it raises; those
    after it are run all the same. Every case has a folder (`tmp_path`), patches (`monkeypatch`) and
    output (`capsys`) of its own. After the others have run, the test is skipped where all cases
    are, or one of them for want of a table beside the checkout.

    Raises:
        AssertionError: of the test that is returned, naming every case that fails.
    """
    keys = [key.strip() for key in names.split(",")] if isinstance(names, str) else list(names)
    listed = [_values(case, len(keys)) for case in cases]

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        fixtures = [p for name, p in signature.parameters.items() if name not in keys]

        @functools.wraps(test)
        def looped(**given: Any) -> None:
            offenders: dict[int, BaseException] = {}
            skipped: list[pytest.skip.Exception] = []
            for number, (values, _) in enumerate(listed):
                try:
                    with ExitStack() as stack:
                        own = _own(given, number, stack)
                        test(**dict(zip(keys, values, strict=True)), **own)
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except (Exception, pytest.fail.Exception) as error:
                    offenders[number] = error
            if offenders:
                lines = [_told(i, *listed[i], ids, error) for i, error in offenders.items()]
                message = "\n".join([f"{len(lines)} of {len(listed)} cases fail:", *lines])
                raise AssertionError(message) from min(offenders.items())[1]
            untested = [skip for skip in skipped if MISSING in str(skip)]
            if untested or len(skipped) == len(listed):
                pytest.skip(str((untested or skipped)[0]) if listed else f"{EMPTY} for {names}")

        looped.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return looped

    return decorated


def _values(case: Any, count: int) -> tuple[tuple[Any, ...], str | None]:
    """Values of a case, and its name where it is a `pytest.param`."""
    if isinstance(case, type(pytest.param())):
        assert not case.marks, f"a case of a loop cannot be marked alone: {case}"
        return tuple(case.values), case.id if isinstance(case.id, str) else None
    return ((case,) if count == 1 else tuple(case)), None


def _own(given: dict[str, Any], number: int, stack: ExitStack) -> dict[str, Any]:
    """Fixtures as a case that is an item would have them."""
    own = dict(given)
    if "tmp_path" in given:
        own["tmp_path"] = Path(given["tmp_path"]) / str(number)
        own["tmp_path"].mkdir()
    if "monkeypatch" in given:
        own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    if "capsys" in given:
        given["capsys"].readouterr()
    return own


def _told(
    number: int, values: tuple[Any, ...], name: str | None, ids: Any, error: BaseException
) -> str:
    """Number and name of a case (its own, that of `ids`, else its values), and how it failed."""
    if callable(ids):
        name = name or ", ".join(str(ids(value)) for value in values)
    elif ids is not None:
        name = name or str(list(ids)[number])
    label = name or ", ".join(repr(value)[:WORDS] for value in values)
    words = f"{type(error).__name__}: {error}".splitlines()[:LINES]
    return f"  [{number}: {label}] " + "\n    ".join(words)
