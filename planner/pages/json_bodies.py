"""The body of a request as values: JSON that is neither large, nor deep, nor ambiguous."""

import json
from typing import Any, NoReturn

from planner.text.errors import InputError

LARGEST = 1_000_000  # bytes
DEEPEST = 50
OPENING, CLOSING = b"[{", b"]}"
QUOTE, BACKSLASH = b'"\\'


def body_of(raw: bytes) -> dict[str, Any]:
    """The object of a body.

    Raises InputError for what is no JSON object, for a key that stands twice, for NaN and Infinity,
    and for more than 50 levels, which are counted before anything is read.
    """
    if _depth(raw) > DEEPEST:
        raise InputError(f"more than {DEEPEST} levels deep")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_not_finite)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} (line {error.lineno})") from None
    except (ValueError, RecursionError):
        raise InputError("not JSON that can be read") from None
    if not isinstance(value, dict):
        raise InputError("expected one JSON object, a scenario's keys")
    return value


def _depth(raw: bytes) -> int:
    """Levels of brackets, those in strings apart, in one pass whatever the bytes are."""
    deepest = level = 0
    inside = escaped = False
    for byte in raw:
        if inside:
            inside = escaped or byte != QUOTE
            escaped = not escaped and byte == BACKSLASH
        elif byte == QUOTE:
            inside = True
        elif byte in OPENING:
            level += 1
            deepest = max(deepest, level)
        elif byte in CLOSING:
            level -= 1
    return deepest


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of an object; JSON leaves open which of two equal keys counts."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the key {twice[:60]!r} stands twice")
    return values


def _not_finite(word: str) -> NoReturn:
    raise InputError(f"{word} is no number of JSON")
