"""Static content of a page without a script: the kind's chart, stacked bars, tables."""

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import repeat
from typing import Any
from urllib.parse import quote

from planner.protocol.note import Note
from planner.protocol.plan import Plan
from planner.protocol.problem import HasPicture, get_problem
from planner.protocol.section import Line, Section, top_elasticities
from planner.report.pictures.section_bars import SectionBars
from planner.text.colours import EXTRAS, PART_COLOURS
from planner.text.errors import InputError, MissingExtra
from planner.text.wording import quantity

BAR_HEIGHT, LETTER = 44, 10.6  # of a bar, and of a letter in it, where the bar is 1000 wide
SWATCH = (
    '<svg class="swatch" viewBox="0 0 11 11" aria-hidden="true">'
    '<rect width="11" height="11" {}/></svg>'
)
GRAVE = ("broken", "extrapolated")  # severities of notes that are set in red
# Focusable wrapper: content wider than the window scrolls by keyboard too.
WIDE_WRAPPER = '<div class="wide" tabindex="0" role="group" aria-label="table">'
AS_IS = " /:=;,.-_()'*+!@$?[]{}|^~<>"  # in an address of an image that holds the picture


def plan_chart(plan: Plan[Any], title: str) -> str:
    """The picture that the kind draws of a plan, as an image; empty where bars are all there is.

    What Matplotlib writes has styles in its elements, which the page's policy forbids: an image
    is a document of its own.
    """
    problem = get_problem(plan.kind)
    if not plan.chosen or not isinstance(problem, HasPicture):
        return ""
    try:
        picture = problem.picture(plan)
        if isinstance(picture, SectionBars):
            return ""
        # An address writes a double quotation mark as three letters.
        svg = re.sub(r'="([^"\']*)"', r"='\1'", minified_svg(picture.draw("svg").decode()))
        drawn = quote(svg, safe=AS_IS)
    except (InputError, MissingExtra) as error:
        return f'<p class="quiet">No picture: {escape(str(error))}.</p>'
    return (
        f'<figure><img alt="picture of this plan: {escape(title)}" '
        f'src="data:image/svg+xml,{drawn}"></figure>'
    )


def minified_svg(svg: str) -> str:
    """A picture with a tenth of a point as the least step of its lines, level ones in one piece."""
    return re.sub(
        r' d="[^"]*"|>\s+<', lambda match: "><" if match[0][0] == ">" else _shorter(match[0]), svg
    )


def _shorter(path: str) -> str:
    tenths = re.sub(r"\s*([MLQCz])\s*", r"\1", re.sub(r"(\d\.\d)\d+", r"\1", path[4:]))
    level = re.sub(
        r"(L[\d.]+ ([\d.]+))(?:L[\d.]+ \2(?=L))+(L[\d.]+ \2)(?=[LMz\"])", r"\1\3", tenths
    )
    return f' d="{level}'


def stacked_bar(section: Section) -> str:
    """Lines that add up, as one bar in SVG and a table under it."""
    parts = section.parts
    whole = sum(value for _, value in parts)
    if not whole:
        return ""
    pieces, swatches, left = [], [], 0.0
    for place, (line, value) in enumerate(parts):
        token = line.label if line.label in PART_COLOURS else EXTRAS[place % len(EXTRAS)]
        width, free = 1000 * value / whole, line.label == "free"
        fill = 'class="f-free"' if free else f'fill="var(--{token})"'
        ink = "" if free else f' fill="var(--on-{token})"'
        swatches.append(SWATCH.format(fill))
        pieces.append(
            f'<rect x="{left:.1f}" width="{max(width - 1.5, 0.5):.1f}" height="{BAR_HEIGHT}" '
            f"{fill}/>"
        )
        text = f"{line.label} {line.words}"
        if width > LETTER * len(text) + 16:
            pieces.append(f'<text x="{left + 8:.1f}" y="27"{ink}>{escape(text)}</text>')
        left += width
    total = quantity(whole, section.lines[0].unit)
    title = escape(section.title + f", {total}" * (not section.title.endswith(total)))
    rows = [line for line, _ in parts]
    return (
        f'<h2>{title}</h2><figure><svg class="static" viewBox="0 0 1000 {BAR_HEIGHT}" role="img" '
        f'aria-label="{title}">'
        f"{''.join(pieces)}</svg></figure>{table_rows(rows, swatches)}"
    )


def table(section: Section) -> str:
    """Format heading, table and lines of a section as HTML; empty if it has no cells or lines."""
    cells = _grid(section.heads, section.cells) if section.heads else ""
    lines = table_rows(section.lines) if section.lines else ""
    title = f"<h2>{escape(section.title)}</h2>" if section.title else ""
    return f"{title}{cells}{lines}" if cells or lines else ""


def _grid(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Rows of words under heads [HTML]."""
    head = "".join(
        f'<th scope="col">{escape(name)}</th>' if name else "<td></td>" for name in heads
    )
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"{WIDE_WRAPPER}<table><tr>{head}</tr>{body}</table></div>"


def table_rows(lines: Sequence[Line], swatches: Sequence[str] = ()) -> str:
    """Lines as a table: value, range, bound, remark, the columns that have something."""
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("what", lambda x: x.label), ("value", lambda x: x.words),
        ("range", lambda x: x.range_words), ("bound", lambda x: x.bound_words),
        ("remark", lambda x: x.note),
    ]  # fmt: skip
    shown = [(name, form) for name, form in columns if any(form(line) for line in lines)]
    head = "".join(f'<th scope="col">{name}</th>' for name, _ in shown)
    rows = "".join(
        f"<tr><td>{swatch}"
        + "</td><td>".join(escape(form(line)) for _, form in shown)
        + "</td></tr>"
        for line, swatch in zip(lines, swatches or repeat(""), strict=False)
    )
    return f"{WIDE_WRAPPER}<table><tr>{head}</tr>{rows}</table></div>"


def note_list(notes: Sequence[Note]) -> str:
    """Format notes as an HTML list, the most severe first; empty without notes."""
    items = "".join(
        f"<li{' class=broken' * (note.severity in GRAVE)}>{escape(note.text)}</li>"
        for note in notes
    )
    return f'<ul class="quiet">{items}</ul>' if items else ""


def elasticity_bars(plan: Plan[Any]) -> str:
    """Table of elasticities per one percent, with bars to either side of zero."""
    slopes = top_elasticities(plan.elasticities)
    if not slopes:
        return ""
    most = max(map(abs, slopes.values()))
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{slope:+.3f}%</td><td>{_slope(slope / most)}</td></tr>"
        for name, slope in slopes.items()
    )
    return (
        "<h2>one percent more of it changes the objective by</h2>"
        f'{WIDE_WRAPPER}<table><tr><th scope="col">quantity</th><th scope="col">change</th>'
        f'<th scope="col">less, more</th></tr>{rows}</table></div>'
    )


def _slope(share: float) -> str:
    width, token = 99 * abs(share), "more" if share > 0 else "less"
    return (
        '<svg class="slope" viewBox="0 0 200 14" aria-hidden="true">'
        f'<rect x="{100 - width * (share < 0):.1f}" y="2" width="{width:.1f}" height="10" '
        f'class="f-{token}"/><line x1="100" y1="0" x2="100" y2="14" class="axis"/></svg>'
    )
