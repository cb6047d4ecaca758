"""Arguments of builders out of the values of a file: counts, rates, times, flags and words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topologies.fabric.limits import count_fault, shown
from topologies.files.located import Document, Located
from topologies.files.rate_units import Misread, latency, rate

__all__ = ["RATIOS", "as_given", "read_value", "reader"]

# Plain numbers among the arguments of builders; all others that are no counts are bandwidths.
RATIOS = ("oversubscription",)
GREATEST_RATIO = 1e6


def read_value(
    node: Located,
    one: Callable[[object], Any],
    found: Document,
    at: str,
    *,
    many: bool = False,
    only: bool = False,
) -> Any:
    """What `one` makes of a value; a tuple of these where `many` are allowed, or `only` many.

    What it cannot make anything of is noted as a fault of `at`, and None.
    """
    if many and isinstance(node.value, list):
        items = enumerate(node.value)
        return tuple(read_value(item, one, found, f"{at}[{i}]") for i, item in items)
    if only:
        found.fault(node, f"{at} is {as_given(node)}; a list was expected")
        return None
    if isinstance(node.value, list | dict) or node.value is None:
        found.fault(node, f"{at} is {as_given(node)}; one value was expected")
        return None
    try:
        return one(node.value)
    except Misread as fault:
        found.fault(node, f"{at} {fault}")
        return None


def reader(name: str, annotation: str) -> Callable[[object], Any]:
    """What makes an argument of a builder out of a plain value."""
    if name.endswith("latency"):
        return latency
    if "float" in annotation:
        return _number if name in RATIOS else rate
    return {"int": _count, "bool": _flag, "str": _word}[
        next(kind for kind in ("int", "bool", "str") if kind in annotation)
    ]


def _count(value: object) -> int:
    fault = count_fault(value)
    if fault is not None:
        raise Misread(fault)
    return int(value)  # type: ignore[call-overload]


def _number(value: object) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not abs(number) < GREATEST_RATIO:
        raise Misread(f"is {shown(value)}; a number was expected, such as 4 for 4:1")
    return number


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Misread(f"is {shown(value)}; true or false was expected")
    return value


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise Misread(f"is {shown(value)}; a word was expected")
    return value


def as_given(node: Located) -> str:
    """A value as a message quotes it."""
    if node.value is None:
        return "empty"
    if isinstance(node.value, dict):
        return "a mapping"
    return shown(list(node.plain) if isinstance(node.value, list) else node.value)
