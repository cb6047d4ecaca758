"""A price sheet on a terminal: what each reading gives, in an economist's units, then what clashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from planner.protocol.section import Line, Section
from planner.text.quantities import show
from planner.text.wording import count, digits, percent

if TYPE_CHECKING:
    from planner.problems.prices.contradictions import Contradiction
    from planner.problems.prices.inferences import Inference
    from planner.problems.prices.plan import PricesPlan

MILLION, HOUR = 1e6, 3600.0


def _per_million(value: float) -> str:
    return f"${value * MILLION:.3g}/Mtok"


def _times(value: float) -> str:
    return f"{value:.3g}x"


# What each quantity is called, and how it is written: base units are of machines, these of readers.
SHOWN: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "n_active": ("active parameters", count),
    "n_total": ("all parameters", count),
    "kv_bytes_per_token": ("KV cache per token", lambda x: show(x, "size")),
    "output_price": ("output price by size", _per_million),
    "memory_over_arithmetic": ("memory over arithmetic", _times),
    "batch_over_critical": ("batch over critical", _times),
    "balance_context": ("balance context", lambda x: f"{x:,.0f} tokens"),
    "attention_context": ("attention equals weights at", lambda x: f"{x:,.0f} tokens"),
    "fixed_share": ("fixed share of a step", lambda x: percent(x, 3)),
    "batch_over_normal": ("batch over normal", lambda x: f"1/{1 / x:.3g}"),
    "speed_limit": ("fastest mode", _times),
    "idle_share": ("idle hours", lambda x: percent(x, 3)),
    "hold_price": ("price of holding", lambda x: f"${x * MILLION * HOUR:.3g}/Mtok-hour"),
    "write_surcharge": ("write surcharge", lambda x: percent(x, 3)),
    "hold_over_input": ("holding over input", lambda x: f"{x * HOUR:.3g} per hour"),
    "break_even_reads": ("reads that pay", lambda x: f"{x * HOUR:.3g} per hour"),
    "margin": ("price over cost", _times),
}
TITLES = {
    "level": "What the level says of size", "ratio": "What output over input says",
    "step": "What a step at a length says", "tier": "What tiers say",
    "cache": "What writes and storage say", "margin": "Over our own plan",
}  # fmt: skip
GROUPS = {
    "level": ("n_active", "n_total", "output_price"),
    "ratio": ("memory_over_arithmetic", "batch_over_critical"),
    "step": ("balance_context", "attention_context", "output_step", "input_step"),
    "tier": ("fixed_share", "batch_over_normal", "speed_limit", "idle_share"),
    "cache": ("hold_price", "write_surcharge", "hold_over_input", "break_even_reads"),
    "margin": ("margin",),
}  # fmt: skip
OF_CACHES = (("step at", "step"), ("step of", "step"), ("HBM", "cache"), ("ratio", "ratio"),
             ("over input", "ratio"), ("level", "level"))  # fmt: skip


def sections(plan: PricesPlan) -> tuple[Section, ...]:
    """The sheet, the readings under what they are read from, and the contradictions."""
    point = plan.answer.plan
    if point is None:
        return (Section("No sheet.", ()),)
    sheet = point.sheet
    cached = "" if sheet.cached is None else f", cached {_per_million(sheet.cached)}"
    title = (
        f"{sheet.name}: input {_per_million(sheet.input)}, output {_per_million(sheet.output)}"
        f"{cached}"
    )
    verdict = _summary(point.contradictions)
    parts = [Section(title, (Line("verdict", verdict),))]
    for group, heading in TITLES.items():
        lines = tuple(_line(x) for x in point.inferences if _group(x) == group)
        if lines:
            parts.append(Section(heading, lines))
    parts += [_clash(each) for each in point.contradictions]
    warnings = plan.warnings
    if warnings:
        parts.append(Section("Worth knowing", tuple(Line("note", each) for each in warnings)))
    return tuple(parts)


def _summary(clashes: tuple[Contradiction, ...]) -> str:
    if not clashes:
        return "the readings are consistent"
    worst = max(clashes, key=lambda each: each.factor)
    label = SHOWN.get(worst.name, (worst.name, digits))[0]
    many = f"{len(clashes)} contradictions" if len(clashes) > 1 else "one contradiction"
    return f"{many}, the widest of {worst.factor:.3g}x in {label}"


def _group(line: Inference) -> str:
    for group, names in GROUPS.items():
        if line.name in names:
            return group
    return next(group for words, group in OF_CACHES if words in line.origin)


def _line(line: Inference) -> Line:
    label, written = SHOWN.get(line.name, (line.name, digits))
    return Line(label, _span(line, written), note=f"{line.origin}; {line.verdict}".rstrip("; "))


def _span(line: Inference, written: Callable[[float], str]) -> str:
    low, mid, high = line.low, line.mid, line.high
    if low is None and high is None:
        return "nothing"
    if low is None or (low == 0 and high is not None):
        return f"at most {written(high or 0.0)}"
    if high is None:
        return f"at least {written(low)}"
    if high <= low * (1 + 1e-12):
        return written(low)
    middle = "" if mid is None else f", middle {written(mid)}"
    return f"{written(low)} to {written(high)}{middle}"


def _clash(each: Contradiction) -> Section:
    """What clashes, by which factor, and what alone would settle it."""
    label = SHOWN.get(each.name, (each.name, digits))[0]
    title = f"Contradiction, {each.factor:.3g}x apart: {label} by {' and by '.join(each.between)}"
    return Section(title, (*_behind(each),))


def _behind(each: Contradiction) -> Iterator[Line]:
    """The clashing assumptions, each with what it would take."""
    settles = {row.assumption: row.factor for row in each.reconciled_by}
    for words in each.minimal:
        factor = settles.get(words)
        alone = "" if factor is None else f"settles it alone if off by {factor:.3g}x"
        yield Line("assumes", words, note=alone)
