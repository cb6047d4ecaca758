"""A price sheet on a terminal: each reading in an economist's units, then what contradicts it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.protocol.section import Line, Section
from planner.scenario.keys.buy_keys import multiples_text
from planner.text.quantities import show
from planner.text.wording import count, digits, percent

if TYPE_CHECKING:
    from planner.problems.prices.contradictions import Contradiction
    from planner.problems.prices.inferences import SheetInference
    from planner.problems.prices.plan import PricesPlan
    from planner.report.pictures.value_rows import ValueRows

MILLION, HOUR = 1e6, 3600.0
LABEL, VALUE, WIDTH = 23, 19, 80
UNSEEN = ("hold_over_input",)  # in the remark on the price of holding


def _per_million(value: float) -> str:
    return f"${value * MILLION:.3g}/Mtok"


def _times(value: float) -> str:
    return f"{value:.3g}x"


def _tokens(value: float) -> str:
    return f"{value / 1000:,.3g}k"


# What each quantity is called, and how it is written: base units are of machines, these of readers.
SHOWN: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "n_active": ("active parameters", count),
    "n_total": ("all parameters", count),
    "kv_bytes_per_token": ("KV cache per token", lambda x: show(x, "size")),
    "output_price": ("output price by size", _per_million),
    "memory_over_arithmetic": ("memory over arithmetic", _times),
    "batch_over_critical": ("batch over critical", _times),
    "afforded_context": ("context paid for", lambda x: f"{_tokens(x)} tokens"),
    "balance_context": ("balance context, tokens", _tokens),
    "attention_context": ("attention = weights at", _tokens),
    "fixed_share": ("fixed share of a step", lambda x: percent(x, 3)),
    "batch_over_normal": ("batch over normal", lambda x: f"1/{1 / x:.3g}"),
    "speed_limit": ("fastest mode", _times),
    "idle_share": ("idle hours", lambda x: percent(x, 3)),
    "hold_price": ("price of holding", lambda x: f"${x * MILLION * HOUR:.3g}/Mtok-hour"),
    "write_surcharge": ("write surcharge", lambda x: percent(x, 3)),
    "hold_over_input": ("holding over input", lambda x: f"{x * HOUR:.3g} per hour"),
    "break_even_reads": ("reads that pay", lambda x: f"{x * HOUR:.3g} per hour"),
    "break_even_requests": ("requests that pay", lambda x: f"more than {x:.3g}"),
    "margin": ("price over cost", _times),
}
TITLES = {
    "level": "Level: what the prices say of size", "ratio": "Ratio: output over input",
    "step": "Long contexts: steps of price at a length", "tier": "Tiers: faster and slower modes",
    "cache": "Caches: writes and storage", "margin": "Margin over our own plan",
}  # fmt: skip
GROUPS = {
    "level": ("n_active", "n_total", "output_price"),
    "ratio": ("memory_over_arithmetic", "batch_over_critical", "afforded_context"),
    "step": ("balance_context", "attention_context", "output_step", "input_step"),
    "tier": ("fixed_share", "batch_over_normal", "speed_limit", "idle_share"),
    "cache": ("hold_price", "write_surcharge", "hold_over_input", "break_even_reads",
              "break_even_requests"),
    "margin": ("margin",),
}  # fmt: skip
OF_CACHES = (("step of", "step"), ("HBM", "cache"), ("over input", "ratio"), ("level", "level"))


def sections(plan: PricesPlan) -> tuple[Section, ...]:
    """The sheet, the readings under what they are read from, and the contradictions."""
    point = plan.answer.plan
    if point is None:
        return (Section("No sheet.", ()),)
    parts = [Section(_title(plan), (Line("verdict", summary(point.contradictions)),))]
    for group, heading in TITLES.items():
        lines = tuple(_line(x) for x in point.inferences if _group(x) == group)
        if lines:
            parts.append(Section(heading, lines))
    parts += [
        Section(clash_title(clash), tuple(Line("assumes", words, note=note)
                                         for words, note in clash_lines(clash)))
        for clash in point.contradictions
    ]  # fmt: skip
    if len(point.contradictions) > 1:
        parts.append(Section("Without these all readings can hold together",
                             tuple(Line("left out", x) for x in point.left_out)))  # fmt: skip
    return tuple(parts)


def readings_picture(plan: PricesPlan) -> ValueRows:
    """The readings of each quantity that more than one says something of, and what is known."""
    from planner.problems.prices.plan import UNITS
    from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

    point = plan.answer.plan
    assert point is not None
    panels = []
    for name, (label, written) in SHOWN.items():
        lines = [x for x in point.inferences if x.name == name and (x.low or x.high)]
        rows = [ValueRow(x.origin, x.ends[0], x.ends[1], _span(x, written)) for x in lines]
        stated = getattr(plan.question.stated, name, None)
        if stated:
            words = " to ".join(map(written, sorted(set(stated))))
            rows.append(ValueRow("as given", stated[0], stated[1], words, chosen=True))
        if len(rows) > 1:
            panels.append(ValuePanel(label, UNITS[name], rows, written))
    return ValueRows(sections(plan)[0].title, panels)


def text(plan: PricesPlan) -> str:
    """The answer in lines of at most 80 columns: quantity, range, and what it is read from."""
    point = plan.answer.plan
    if point is None:
        return "No sheet."
    blocks = [[*_wrapped(_title(plan), 0), *_wrapped(summary(point.contradictions), 2)]]
    for group, heading in TITLES.items():
        lines = [x for x in point.inferences if _group(x) == group]
        if lines:
            blocks.append([heading, *_rows(lines)])
    for clash in point.contradictions:
        pairs = clash_lines(clash)
        notes = {note for _, note in pairs}
        shared = notes.pop() if len(notes) == 1 else ""
        block = _wrapped(clash_title(clash), 0)
        block += _wrapped(f"these cannot all hold{f'; each {shared}' if shared else ''}:", 2)
        for words, note in pairs:
            block += _wrapped(words if shared or not note else f"{words} ({note})", 4, "- ")
        blocks.append(block)
    if len(point.contradictions) > 1:
        blocks.append(["Without these all readings can hold together:",
                       *(row for x in point.left_out for row in _wrapped(x, 4, "- "))])  # fmt: skip
    return "\n\n".join("\n".join(block) for block in blocks)


def why(plan: PricesPlan) -> str:
    """The equation of each reading, and everything that it assumes."""
    point = plan.answer.plan
    lines = ["Why these readings"]
    for line in point.inferences if point else ():
        label = SHOWN.get(line.name, (line.name, digits))[0]
        lines += ["", *_wrapped(f"{label}, by {line.origin}: {line.verdict}", 0)]
        lines += _wrapped(line.formula, 2) if line.formula else []
        for words in line.assumes:
            lines += _wrapped(words, 4, "- ")
    return "\n".join(lines)


def _title(plan: PricesPlan) -> str:
    sheet = plan.answer.plan.sheet if plan.answer.plan else None
    if sheet is None:
        return "No sheet."
    cached = "" if sheet.cached is None else f", cached {_per_million(sheet.cached)}"
    prices = f"input {_per_million(sheet.input)}, output {_per_million(sheet.output)}{cached}"
    times = plan.question.multiply
    return f"{sheet.name}{f', {multiples_text(times)}' if times else ''}: {prices}"


def summary(clashes: Sequence[Contradiction]) -> str:
    """Whether the readings agree, and if not, by how much the worst two are apart."""
    if not clashes:
        return "the readings are consistent"
    worst = max(clashes, key=lambda clash: clash.factor or 0.0)
    if len(clashes) == 1:
        return f"one contradiction{_by_factor(worst, ' of ')}, {_where(worst)}"
    return f"{len(clashes)} contradictions, the widest{_by_factor(worst, ' of ')} {_where(worst)}"


def _where(clash: Contradiction) -> str:
    """The quantity that readings are apart in, or that several clash of which each two meet."""
    if clash.name == "together":
        return "between readings of which each two can hold"
    return f"in {SHOWN.get(clash.name, (clash.name, digits))[0]}"


def clash_title(clash: Contradiction) -> str:
    """Which readings do not meet, and by which factor."""
    if clash.name == "together":
        several = "; ".join(clash.between)
        return f"Contradiction{_by_factor(clash, ', ')}, of several at once: {several}"
    label = SHOWN.get(clash.name, (clash.name, digits))[0]
    return f"Contradiction{_by_factor(clash, ', ')}: {label} by {', and by '.join(clash.between)}"


def _by_factor(clash: Contradiction, before: str) -> str:
    return "" if clash.factor is None else f"{before}{clash.factor:.3g}x"


def clash_lines(clash: Contradiction) -> list[tuple[str, str]]:
    """The clashing assumptions, each with what it would take to settle the clash alone."""
    settles = {row.assumption: row.factor for row in clash.reconciled_by}
    return [
        (words, f"settles it alone, if off by {settles[words]:.3g}x" if words in settles else "")
        for words in clash.minimal
    ]


def _group(line: SheetInference) -> str:
    for group, names in GROUPS.items():
        if line.name in names:
            return group
    return next(group for words, group in OF_CACHES if words in line.origin)


def _line(line: SheetInference) -> Line:
    label, written = SHOWN.get(line.name, (line.name, digits))
    return Line(label, _span(line, written), note=f"{line.origin}; {line.verdict}".rstrip("; "))


def _rows(lines: Sequence[SheetInference]) -> Iterator[str]:
    """Readings under what they come from: a name, a range, and what it is worth."""
    origin = None
    for line in lines:
        if line.name in UNSEEN:
            continue
        if line.origin != origin:
            origin = line.origin
            yield from _wrapped(origin, 2)
        label, written = SHOWN.get(line.name, (line.name, digits))
        row = f"    {label:<{LABEL}} {_span(line, written):<{VALUE}} "
        yield from textwrap.wrap(
            f"{row}{line.verdict}", WIDTH, subsequent_indent=" " * (LABEL + VALUE + 6),
            drop_whitespace=True, break_long_words=False, replace_whitespace=False,
        )  # fmt: skip


def _span(line: SheetInference, written: Callable[[float], str]) -> str:
    low, high = line.low, line.high
    if low is None and high is None:
        return "nothing"
    if low is None or (low == 0 and high is not None):
        return f"at most {written(high or 0.0)}"
    if high is None:
        return f"at least {written(low)}"
    return written(low) if high <= low * (1 + 1e-12) else f"{written(low)} to {written(high)}"


def _wrapped(words: str, indent: int, bullet: str = "") -> list[str]:
    return textwrap.wrap(
        words, WIDTH, initial_indent=" " * indent + bullet,
        subsequent_indent=" " * (indent + len(bullet)),
    )  # fmt: skip
