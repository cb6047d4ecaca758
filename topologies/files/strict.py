"""JSON text as values, and as faults what JSON readers let pass in silence."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from topologies.fabric.errors import TopologyError
from topologies.fabric.limits import shown

__all__ = ["Path", "json_value"]

DEEPEST = 12
TWICE = object()  # the key under which an object keeps the keys that it was given twice

Path = tuple[str | int, ...]


def json_value(text: str, where: str) -> tuple[Any, list[tuple[Path, str]]]:
    """The value of a text, and each fault with the keys and numbers that lead to it.

    Faults are keys given twice, NaN and Infinity, numbers beyond all range, halves of
    characters, and lists in lists without end.

    Raises
    ------
    TopologyError
        When the text is no JSON at all.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TopologyError(where, f"{place}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise TopologyError(where, f"not JSON: {said}") from None
    return value, list(_faults(value, ()))


def _object(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    made: dict[Any, Any] = dict(pairs)
    if len(made) < len(pairs):
        times = Counter(key for key, _ in pairs)
        made[TWICE] = {key: many for key, many in times.items() if many > 1}
    return made


def _faults(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if len(path) > DEEPEST:
        yield path[:4], f"more than {DEEPEST} levels deep"
    elif isinstance(value, dict):
        for key, times in value.pop(TWICE, {}).items():
            yield path, f"the key {shown(key)} is given {times} times"
        for key, item in value.items():
            yield from _text_faults(key, path)
            yield from _faults(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _faults(item, (*path, i))
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number of JSON, or beyond all range"
    elif isinstance(value, str):
        yield from _text_faults(value, path)


def _text_faults(text: str, path: Path) -> Iterator[tuple[Path, str]]:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        yield path, f"{text[:40]!a} holds half a character"
