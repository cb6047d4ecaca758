"""Sections of a plan: lines under titles, which text, HTML and pages lay out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.protocol.output import Output, values_in
from planner.text.wording import filled, quantity, wrapped

if TYPE_CHECKING:
    from planner.protocol.plan import BindingLimit


@dataclass(frozen=True)
class Line:
    """One quantity of an answer: its label, its value, its base unit, a remark.

    `ends` hold the stated share of measured runs; nothing goes below `bound`.
    """

    label: str
    value: float | str | None
    unit: str = ""
    note: str = ""
    ends: tuple[float, float] | None = None
    bound: float | None = None

    def text(self) -> str:
        """The line as text."""
        value = quantity(self.value, self.unit)
        return f"{self.label}: {value}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class Section:
    """Lines of an answer under one title; the first of an answer has the question for a title.

    Where they `adds_up`, they are parts of one whole, which a page draws as a bar.
    """

    title: str
    lines: tuple[Line, ...]
    adds_up: bool = False


def sections_of_outputs(outputs: Sequence[Output], plan: object) -> tuple[Section, ...]:
    """One section with every output that a plan has."""
    values = values_in(outputs, plan)
    lines = (Line(x.name, values[x.name], x.unit) for x in outputs if x.name in values)
    return (Section("answer", tuple(lines)),)


def text_of(sections: Sequence[Section]) -> str:
    """Sections as text, each under its title."""
    blocks = ([each.title, *(f"  {line.text()}" for line in each.lines)] for each in sections)
    return "\n\n".join(map("\n".join, blocks))


def wrapped_text(sections: Sequence[Section]) -> str:
    """Sections as text no wider than the terminal; the first title is broken into lines already."""
    lines: list[str] = []
    for section in sections:
        lines += ["", *filled(section.title)] if lines else section.title.splitlines()
        for line in section.lines:
            lines += wrapped(line.text())
    return "\n".join(lines)


def why_of(binding: Sequence[BindingLimit], elasticities: Mapping[str, float]) -> str:
    """What binds, and what one percent of each parameter is worth, the most first."""
    ranked = sorted(elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    width = max((len(path) for path, _ in ranked), default=0)
    limits = [f"  {limit.name} ({limit.elasticity:+.3f})" for limit in binding] or ["  nothing"]
    rows = [f"  {path:<{width}}  {slope:+.3f}" for path, slope in ranked]
    return "\n".join(["binds", *limits, "", "one percent more changes it by, in percent", *rows])
