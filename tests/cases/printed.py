"""Numbers as a text prints them, held against values: a label, then what stands behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence

SCALES = {
    "%": 0.01, "×": 1.0, "x": 1.0, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0,
    "min": 60.0, "hours": 3600.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "k": 1e3, "M": 1e6,
    "B": 1e9, "T": 1e12,
}  # fmt: skip
NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-+]?)\$?(?P<digits>\d[\d,]*(?:\.\d+)?)(?P<power>e[+-]?\d+)?"
    r"(?P<unit>\s?(?:%|×|ns|us|µs|ms|s|min|hours|kB|MB|GB|TB|k|M|B|T)(?![\w/]))?"
)


def numbers(line: str) -> list[tuple[float, float]]:
    """Every number of a line in base units, with half a unit of its last digit."""
    found: list[tuple[float, float]] = []
    matches = list(NUMBER.finditer(line))
    for place, match in enumerate(matches):
        unit = match["unit"]
        if not unit and line[match.end() : match.end() + 1] == "–" and place + 1 < len(matches):
            unit = matches[place + 1]["unit"]  # of both ends of a range
        digits, power = match["digits"].replace(",", ""), float(f"1{match['power'] or ''}")
        scale = SCALES[(unit or "×").strip()] * power
        places = len(digits.partition(".")[2])
        value = float(f"{match['sign']}{digits}") * scale
        found.append((value, 0.501 * 10**-places * scale))
    return found


def lines(text: str, label: str) -> list[str]:
    """The lines that begin with a label, without it; each with those that it goes on in."""
    rows: list[str] = []
    inside = False
    for line in text.splitlines():
        goes_on = inside and line.startswith(" " * 9) and line.strip()
        if line.strip().startswith(label):
            rows.append(line.strip()[len(label) :])
            inside = True
        elif goes_on:
            rows[-1] += " " + line.strip()
        else:
            inside = False
    return rows


def shows(text: str, label: str, values: Sequence[float], nth: int = 0) -> None:
    """Assert that a line has these values in this order and no other number."""
    found = lines(text, label)
    assert len(found) > nth, f"no line {label!r} in\n{text}"
    printed = numbers(found[nth])
    assert len(printed) == len(values), f"{label}: {printed} printed, {values} wanted"
    for (number, half), value in zip(printed, values, strict=True):
        assert abs(number - value) <= half, f"{label}: {number} printed, {value} in the plan"
