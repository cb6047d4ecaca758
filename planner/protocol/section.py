"""Sections of a plan: lines under titles, which text, HTML and pages lay out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from planner.protocol.note import MAX_NOTES, Depth, Note, note_lines
from planner.protocol.output import Output, output_values
from planner.text.tolerances import UNSEEN
from planner.text.wording import COLUMNS, excess, quantity, trim, wrap_command, wrap_text, wrapped

if TYPE_CHECKING:
    from planner.protocol.plan import BindingLimit, MissedPromise, Plan

MAX_ELASTICITIES_SHOWN = 8  # elasticities that are listed
MAX_LINES = 25  # lines of an answer, unless more are requested or its kind has more
BAR = 24  # columns of the longest bar
LABELS = {
    "run": "Run", "cost": "Cost", "against": "Yours", "promises": "Promises",
    "smaller": "Smaller", "certainty": "How sure", "limit": "Limit", "next": "Next",
}  # fmt: skip
LABEL_WIDTH = max(map(len, LABELS.values())) + 2
NUMERIC = re.compile(r"[-+−$<]*\d|plan$|–$")  # how a cell begins that is set to the right
IN_SHORT = "in short"  # the rows of a head as a section
KEPT, LIKELY, UNCOUNTED, BROKEN = "✓", "~", "?", "✗"
MARKS = {"sure": KEPT, "likely": LIKELY, "unlikely": LIKELY, "kept": LIKELY, "broken": BROKEN}


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

    @property
    def words(self) -> str:
        """The value in words."""
        return quantity(self.value, self.unit)

    @property
    def range_words(self) -> str:
        """The ends in words; empty without a range."""
        return " to ".join(quantity(end, self.unit) for end in self.ends or ())

    @property
    def bound_words(self) -> str:
        """The bound in words; empty without a bound."""
        return "" if self.bound is None else quantity(self.bound, self.unit)

    def text(self) -> str:
        """The line as text."""
        return f"{self.label}: {self.words}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class Section:
    """Lines of an answer under one title; the first of an answer has the question for a title.

    Where they `adds_up`, they are parts of one whole, drawn as bars if no table holds them. Those
    that stand `beside` the numbers of the first are said of this very plan: a page hides them once
    it moves. `commands` are lines to be typed. One with `heads` is a table, whose `cells` are rows
    of as many words; of one with `halves` the second half of the columns is a table of its own.
    What is `shown` stands in an answer without being asked for.
    """

    title: str
    lines: tuple[Line, ...] = ()
    adds_up: bool = False
    beside: bool = False
    commands: bool = False
    heads: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    shown: bool = False
    halves: bool = False

    @property
    def parts(self) -> list[tuple[Line, float]]:
        """Lines of more than nothing, with their values."""
        return [(x, float(x.value)) for x in self.lines
                if isinstance(x.value, int | float) and x.value > 0]  # fmt: skip


@dataclass(frozen=True)
class AnswerHead:
    """The first rows of an answer, each of lines; a row without lines does not apply.

    `cheaper_size` says that a smaller fleet's bill is so much less that it is named first. `labels`
    are a kind's own words for rows (`run`: Build); `proof` says how near to the best it is.
    """

    question: str
    run: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()
    certainty: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    cheaper_size: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    proof: str = ""

    def rows(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Labels and their lines, in reading order."""
        order = sorted(LABELS, key=lambda name: self.cheaper_size and name != "smaller")
        for name in order:
            if lines := getattr(self, name):
                label = self.labels.get(name, LABELS[name])
                first = name == "smaller" and self.cheaper_size
                yield (label.upper() if first else label), lines

    def text(self) -> str:
        """The head as text: the question, a blank line, then the labelled rows."""
        lines = wrap_text(self.question)
        for label, texts in self.rows():
            lines += [""] * (len(lines) == len(wrap_text(self.question)))
            for place, text in enumerate(texts):
                first = f"{label * (not place):<{LABEL_WIDTH}}"
                lines += wrap_text(text, first, " " * (LABEL_WIDTH + 2))
        return "\n".join(lines)


def value_lines(outputs: Sequence[Output], plan: Plan[Any], **words: str) -> tuple[Line, ...]:
    """Every output that a plan has with the ends of its range; `words` are what some are called."""
    units = {output.name: output.unit for output in outputs}
    called = {name: name.replace("_", " ") for name in units} | words
    return tuple(
        Line(called[name], value, units[name], "", getattr(plan.band, name, None))
        for name, value in output_values(outputs, plan.answer.plan).items()
    )


def no_plan(question: str, missed: Sequence[MissedPromise], why: str = "Why") -> AnswerHead:
    """Head of an infeasible answer: the missed promises, the factor of the first, and why."""
    first, factor = missed[0], missed[0].short_by or 1.0
    much = f" by {excess(factor)}" if factor > 1 else ""
    return AnswerHead(
        f"{BROKEN} NO PLAN: {first.promise} missed{much}",
        run=(question,),
        against=tuple(each.expression for each in missed),
        labels={"run": "Asked", "against": why},
    )


def table(
    columns: Mapping[str, Sequence[str]], title: str = "", *, shown: bool = True,
    lines: Sequence[Line] = (), adds_up: bool = False,
) -> Section:  # fmt: skip
    """Columns of words by their heads as a section; those without a word are left out."""
    full = {head: cells for head, cells in columns.items() if any(cells)}
    rows = tuple(zip(*full.values(), strict=True))
    return Section(title, tuple(lines), adds_up, heads=tuple(full), cells=rows, shown=shown)


def answer_text(
    head: AnswerHead | None, sections: Sequence[Section], notes: Sequence[Note], depth: Depth,
    most: int = MAX_LINES,
) -> str:  # fmt: skip
    """An answer at a depth: its head, the sections that are shown there, notes and proof.

    By default it has as many of the gravest notes as `most` lines leave room for.
    """
    first, *others = sections
    if head is None:
        shown = [first, *others]
    elif depth == "more":
        shown = [replace(first, title="numbers")] * bool(first.lines) + others
    else:
        shown = [section for section in others if section.shown and depth != "short"]
    top, proof = (head.text(), head.proof * (depth != "short")) if head else ("", "")
    proof = "\n".join(line for each in proof.split("\n") for line in wrap_text(each))
    text = "\n\n".join(filter(None, (top, sections_text(shown))))
    room = most - len(f"{text}\n{proof}".strip().split("\n")) if depth == "default" else None
    lines = note_lines(notes, {"short": 1, "default": MAX_NOTES}.get(depth), room)
    between = "\n" if room is not None and lines and len(lines) >= room else "\n\n"
    return between.join(filter(None, (text, "\n".join(filter(None, [*lines, proof])))))


def sections_text(sections: Sequence[Section]) -> str:
    """Sections as text no wider than the terminal, each under its title."""
    lines: list[str] = []
    for section in sections:
        title = wrap_text(section.title) if section.title else []
        lines += ["", *title] if lines else title
        lines += _table(section)
        if section.adds_up and not section.heads:
            # Parts of a whole as lines: value, share of the whole, bar.
            whole = sum(value for _, value in section.parts)
            wide = max([13, *(len(line.label) + 1 for line, _ in section.parts)])
            longest = min(BAR, COLUMNS.get() - wide - 20)
            lines += [
                f"  {line.label:<{wide}}{line.words:>10}  {value / whole:4.0%}  "
                f"{'█' * max(1, round(longest * value / whole))}"
                for line, value in section.parts
            ]
        for line in section.lines:
            if section.adds_up and not isinstance(line.value, str):
                continue
            lines += [wrap_command(line.words)] if section.commands else wrapped(line.text())
    return "\n".join(lines)


def _table(section: Section) -> list[str]:
    columns = [*zip(section.heads, *section.cells, strict=True)]
    middle = len(columns) // 2
    if section.halves and _width([[column] for column in columns]) > COLUMNS.get():
        return [*_rows(columns[:middle]), *_rows(columns[middle:])]
    return _rows(columns) if columns else []


def _width(stacks: Sequence[Sequence[Sequence[str]]]) -> int:
    return sum(max(map(len, chain(*stack))) + 2 for stack in stacks) - 2


def _rows(columns: Sequence[Sequence[str]]) -> list[str]:
    """Columns of heads and cells as lines, numbers to the right.

    On a narrow terminal columns go below the one before them, as few as need be: none is lost.
    """
    for depth in range(1, max(len(columns), 2)):
        rest = [columns[i : i + depth] for i in range(1, len(columns), depth)]
        stacks = [columns[:1], *rest]
        if _width(stacks) <= COLUMNS.get():
            break
    wide = [max(map(len, chain(*stack))) for stack in stacks]
    wide[wide.index(max(wide))] -= max(_width(stacks) - COLUMNS.get(), 0)
    right = [all(not x or NUMERIC.match(x) for _, *cells in stack for x in cells)
             for stack in stacks]  # fmt: skip
    # Line `deep` of a table row: the cell of column `deep` from each stack, in one text line.
    return [
        "  ".join(
            f"{trim(cell, width):{'<>'[number]}{width}}"
            for cell, width, number in zip(cells, wide, right, strict=True)
        ).rstrip()
        for row in range(len(columns[0]))
        for deep in range(depth)
        if any(cells := [stack[deep][row] if deep < len(stack) else "" for stack in stacks])
    ]


def marked(words: str, word: str, chance: float | None) -> str:
    """Value and limit with a mark and, unless the mark is `KEPT`, a word and the chance."""
    percent = "" if chance is None else f", {100 * chance:.0f}%"
    remark = f" ({word.upper() if word == 'unlikely' else word}{percent})"
    return f"{MARKS[word]} {words}{remark * (MARKS[word] != KEPT)}"


def largest_elasticities(elasticities: Mapping[str, float]) -> list[tuple[str, float]]:
    """Elasticities by quantity, largest magnitude first."""
    return sorted(elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))


def top_elasticities(elasticities: Mapping[str, float]) -> dict[str, float]:
    """The few quantities that matter most."""
    ranked = largest_elasticities(elasticities)[:MAX_ELASTICITIES_SHOWN]
    return {name: slope for name, slope in ranked if abs(slope) >= UNSEEN}


def search_counts_text(proof: Mapping[str, object]) -> str:
    """Numbers of points that the search considered, by kind, as text; empty if not counted."""
    return " and ".join(
        f"{value:,} {key.removesuffix('_considered').replace('_', ' ')}"
        for key, value in proof.items() if key.endswith("_considered")
    )  # fmt: skip


def source_lines(ground: Mapping[str, Any]) -> list[str]:
    """Source and date of each data set, as lines."""
    return [
        f"{each['what']}: {each['source']}" + (f" ({each['as_of']})" if each["as_of"] else "")
        for each in ground.get("data", ())
    ]


def reasons(binding: Sequence[BindingLimit], elasticities: Mapping[str, float]) -> str:
    """Binding limits, and the elasticity of each parameter, largest first, as text."""
    ranked = largest_elasticities(elasticities)
    width = max((len(path) for path, _ in ranked), default=0)
    limits = [f"  {limit.name} ({limit.elasticity:+.3f})" for limit in binding] or ["  nothing"]
    rows = [f"  {path:<{width}}  {slope:+.3f}" for path, slope in ranked]
    return "\n".join(["binds", *limits, "", "one percent more changes it by, in percent", *rows])
