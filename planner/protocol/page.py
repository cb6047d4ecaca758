"""A plan as a page: headline numbers, bars of summed parts, ranges, bounds, binding limits.

One fragment of HTML for whatever kind: it lays out the sections that the kind's room offers, and
what every plan has. Styles stand in the elements and take the colours of the page around them, so
that light and dark notebooks show it alike; it needs no script and fetches nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from planner.protocol.plan import MissedPromise, Plan, status_text
from planner.protocol.problem import plan_sections
from planner.protocol.section import (
    NUMERIC,
    Line,
    Section,
    search_counts_text,
    source_lines,
    top_elasticities,
)
from planner.text.colours import BROKEN_COLOUR, EXTRAS, LIGHT_MODE, PART_COLOURS, WHITE, text_colour
from planner.text.wording import excess, gap_percent, quantity

# Colours of stacked parts, on any notebook background: those of the light theme.
COLOURS: Mapping[str, str] = {name: pair[LIGHT_MODE] for name, pair in PART_COLOURS.items()}
PALETTE = (*(COLOURS[name] for name in EXTRAS), BROKEN_COLOUR[LIGHT_MODE])
DARK = tuple(
    colour for colour in PALETTE if text_colour(colour) == WHITE
)  # letters are white there
SPACE = "#80808033"  # what is free, and rules
BOUND_EXCEEDED_COLOUR = BROKEN_COLOUR[LIGHT_MODE]
SHARE = 0.08  # of a bar that holds its own label

PAGE = (
    "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45;color:inherit;"
    "max-width:60rem;font-variant-numeric:tabular-nums"
)
TITLE = "font-size:15px;font-weight:600;margin:1.3em 0 .45em"
CARD = f"padding:.55em .9em;border:1px solid {SPACE};border-radius:8px;min-width:7.5em"
MUTED_CSS = "opacity:.68;font-size:12px"
CELL = f"padding:.28em 1.2em .28em 0;border-bottom:1px solid {SPACE};text-align:left"
NUMBER_CSS = f"{CELL};text-align:right;white-space:nowrap"
TABLE = "border-collapse:collapse;margin:.6em 0 0;background:transparent;font-size:13px"
CARDS = 4  # of the headline


def plan_page(plan: Plan[Any]) -> str:
    """The fragment that a notebook shows in place of a plan's `repr`."""
    head, *others = plan_sections(plan)
    words = f"{plan.kind}, {status_text(plan.status, plan.gap)}"
    blocks = [f'<div style="{MUTED_CSS}">{escape(words)}</div>']
    blocks.append(f'<div style="font-size:16px;margin:.15em 0 .8em">{escape(head.title)}</div>')
    if plan.infeasible:
        blocks.append(_missed(plan.infeasible))
    numbers = [line for line in head.lines if not isinstance(line.value, str)]
    blocks += [_cards(numbers[:CARDS]), _words(head.lines), _table("", numbers)]
    items = "".join(f"<li>{escape(note.text)}</li>" for note in plan.answer.notes)
    blocks.append(f'{_title("notes")}<ul style="margin:.3em 0">{items}</ul>' if items else "")
    for section in others:
        blocks.append(_cells(section) if section.heads else "")
        title = section.title * (not section.heads)
        blocks.append(_bar(section) if section.adds_up else _table(title, section.lines))
    blocks += [_binding(plan), _elasticity_bars(plan), _grounds(plan)]
    body = "".join(block for block in blocks if block)
    return f'<div style="{PAGE}">{body}</div>'


def _title(text: str) -> str:
    return f'<div style="{TITLE}">{escape(text)}</div>' if text else ""


def _cards(lines: Sequence[Line]) -> str:
    cards = "".join(
        f'<div style="{CARD}"><div style="{MUTED_CSS}">{escape(line.label)}</div>'
        f'<div style="font-size:22px;font-weight:600">{escape(line.words)}</div>'
        f'<div style="{MUTED_CSS}">{escape(line.range_words or line.note)}</div></div>'
        for line in lines
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:.7em">{cards}</div>' if cards else ""


def _words(lines: Sequence[Line]) -> str:
    rows = [line for line in lines if isinstance(line.value, str)]
    items = "".join(
        "<div><span "
        f'style="{MUTED_CSS};display:inline-block;min-width:7em">{escape(line.label)}</span>'
        f"{escape(line.words)}</div>"
        for line in rows
    )
    return f'<div style="margin:.9em 0">{items}</div>' if items else ""


def _table(title: str, lines: Sequence[Line]) -> str:
    """Quantities with their ranges and bounds."""
    if not lines:
        return ""
    columns = [("", [line.label for line in lines]), ("", [line.words for line in lines])]
    columns.append(("range", [line.range_words for line in lines]))
    columns.append(("bound", [line.bound_words for line in lines]))
    columns.append(("", [line.note for line in lines]))
    shown = [(name, cells) for name, cells in columns if any(cells)]
    return _title(title) + _rows([name for name, _ in shown], [cells for _, cells in shown], (1,))


def _rows(names: Sequence[str], columns: Sequence[Sequence[str]], numbers: Collection[int]) -> str:
    styles = [NUMBER_CSS if place in numbers else CELL for place in range(len(names))]
    head = "".join(f'<th style="{CELL};{MUTED_CSS}">{escape(name)}</th>' for name in names)
    rows = "".join(
        "<tr>" + "".join(map('<td style="{}">{}</td>'.format, styles, map(escape, cells))) + "</tr>"
        for cells in zip(*columns, strict=True)
    )
    return f'<table style="{TABLE}">{f"<tr>{head}</tr>" if any(names) else ""}{rows}</table>'


def _cells(section: Section) -> str:
    columns = [*zip(*section.cells, strict=True)]
    numbers = [i for i, cells in enumerate(columns) if all(map(NUMERIC.match, filter(None, cells)))]
    return _title(section.title) + _rows(section.heads, columns, numbers)


def table_page(
    title: str, columns: Mapping[str, Sequence[str]], notes: Sequence[str] = (), words: str = ""
) -> str:
    """The fragment that a notebook shows of a table: columns of numbers, the last maybe of words.

    Args:
        columns: {name: its cells}; those called `words` are no numbers and stand to the left.
        notes: lines below the table.
    """
    numbers = [place for place, name in enumerate(columns) if name != words]
    table = _rows(list(columns), list(columns.values()), numbers) if columns else ""
    below = "".join(f'<div style="margin:.35em 0">{escape(note)}</div>' for note in notes)
    return f'<div style="{PAGE}">{_title(title)}{table}<div style="{MUTED_CSS}">{below}</div></div>'


def _bar(section: Section) -> str:
    """Lines that add up, as one bar with its parts named below it."""
    parts = section.parts
    whole = sum(value for _, value in parts)
    if not whole:
        return ""
    pieces, names = [], []
    for place, (line, value) in enumerate(parts):
        free = line.label == "free"
        colour = SPACE if free else COLOURS.get(line.label, PALETTE[place % len(PALETTE)])
        letters = "inherit" if free else "#fff" if colour in DARK else "#111"
        share = value / whole
        inside = f"{share:.0%}" if share >= SHARE else ""
        pieces.append(
            f'<div style="width:{100 * share:.3f}%;background:{colour};color:{letters};'
            f"font-size:12px;"
            f'text-align:center;overflow:hidden" title="{escape(line.label)}">{inside}</div>'
        )
        swatch = f'<span style="color:{colour}">&#9632;</span>'
        names.append(f"<span>{swatch} {escape(line.label)} {escape(line.words)}</span>")
    bar = "".join(pieces)
    return (
        f"{_title(f'{section.title}, {quantity(whole, section.lines[0].unit)}')}"
        f'<div style="display:flex;height:22px;line-height:22px;border-radius:4px;overflow:hidden">'
        f'{bar}</div><div style="display:flex;flex-wrap:wrap;gap:.2em 1.2em;margin-top:.35em;'
        f'font-size:13px">{"".join(names)}</div>'
    )


def _missed(shortfalls: Iterable[MissedPromise]) -> str:
    """HTML list of the promises that no plan keeps, with the excess of each."""
    rows = "".join(
        f"<li>{escape(each.promise)}: missed by {excess(each.short_by)}</li>"
        for each in shortfalls
        if each.short_by is not None
    )
    return (
        f'<div style="border-left:4px solid {BOUND_EXCEEDED_COLOUR};padding:.1em .9em"><b>No '
        "plan keeps every "
        f'promise.</b><ul style="margin:.3em 0">{rows}</ul></div>'
    )


def _binding(plan: Plan[Any]) -> str:
    lines = [Line(limit.name, f"{limit.elasticity:+.2f}%") for limit in plan.binding]
    return _table("binding limits, and what one percent more room changes the objective by", lines)


def _elasticity_bars(plan: Plan[Any]) -> str:
    """The quantities that matter most, as bars to either side."""
    shown = top_elasticities(plan.elasticities)
    if not shown:
        return ""
    most = max(map(abs, shown.values()))
    rows = "".join(
        f'<tr><td style="{CELL}">{escape(name)}</td><td style="{NUMBER_CSS}">{value:+.3f}%</td>'
        f'<td style="{CELL};width:12em">{_arrow(value / most)}</td></tr>'
        for name, value in shown.items()
    )
    title = _title("one percent more of it changes the objective by")
    return f'{title}<table style="{TABLE}">{rows}</table>'


def _arrow(share: float) -> str:
    width = 50 * abs(share)
    left = 50 - width if share < 0 else 50.0
    colour = PALETTE[0] if share < 0 else BOUND_EXCEEDED_COLOUR
    return (
        f'<div style="margin-left:{left:.1f}%;width:{width:.1f}%;height:9px;background:{colour};'
        'border-radius:2px"></div>'
    )


def _grounds(plan: Plan[Any]) -> str:
    """HTML of a plan's proof, sources and program version."""
    document = plan.document
    proof, ground = document["certificate"], document["provenance"]
    lines = []
    if points := search_counts_text(proof):
        lines.append(f"decided over {points}")
    if proof.get("gap") is not None:
        lines.append(f"an independent bound is {gap_percent(proof['gap'])} below")
    lines += source_lines(ground)
    rows = "".join(f"<li>{escape(text)}</li>" for text in lines)
    version = f"token-planner {ground['version']}"
    return (
        f'<details style="margin-top:1.2em"><summary style="{MUTED_CSS}">what it rests on '
        f'({escape(version)})</summary><ul style="{MUTED_CSS}">{rows}</ul></details>'
    )
