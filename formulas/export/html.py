"""One HTML page that needs nothing but itself: MathML, its font and style, no script, no request.

The style of the HTML page: one column, large enough on a phone, dark where that is preferred. Where
no mathematics font is installed a browser sets subscripts on the line, so one comes along.
"""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

from formulas.algebra.steps import DerivationStep
from formulas.export.blocks import BlockDocument, BlockMarkup
from formulas.export.drawing import svg
from formulas.export.formula_document import FormulaEntry
from formulas.export.typesetting.boxes import is_relation, wrap
from formulas.export.typesetting.layout import layout, relation
from formulas.export.typesetting.markup import mathml
from formulas.export.words import Formula, reason

# Subset of Latin Modern Math under the GUST Font License (in this folder).
_FONT = b64encode(Path(__file__).with_name("token-planner-math.woff2").read_bytes()).decode()
STYLE = Path(__file__).with_name("style.css").read_text("utf-8").replace("%FONT%", _FONT)

WIDTH = 19.0  # of a formula, so that a phone shows it whole [em]


def html(whole: BlockDocument, style: str = "") -> str:
    """Write a self-contained HTML page; `style` is added to the style of all pages."""
    parts = ["<header>", f"<h1>{_words(whole.title)}</h1>"]
    parts += [f"<p>{HTML.line(line)}</p>" for line in whole.about]
    parts += [_contents(whole)] if whole.contents else []
    body = HTML.written(whole.blocks)
    return "\n".join([
        page_head(whole.title, STYLE + style), *parts, "</header>", "<main>", body, "</main>",
        "</body>\n</html>\n",
    ])  # fmt: skip


def page_head(title: str, style: str) -> str:
    """HTML of a page up to the opening of its body."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{_words(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )


def _contents(whole: BlockDocument) -> str:
    """Chapters, those with articles folded over their titles."""
    parts = []
    for heading, articles in whole.contents:
        words = _words(heading.words)
        words = _link(heading.anchor, words) if heading.anchor else words
        links = "".join(f"<li>{_link(x.anchor, _words(x.title))}</li>" for x in articles)
        head = f"<summary>{words} <small>{len(articles)}</small></summary>"
        parts.append(f"<details>{head}<ul>{links}</ul></details>" if links else f"<p>{words}</p>")
    return f"<nav><h2>Contents</h2>{''.join(parts)}</nav>"


def _words(words: str) -> str:
    return escape(words, quote=False)


def _link(to: str, words: str) -> str:
    return f'<a href="{escape(to if "//" in to else "#" + to)}">{words}</a>'


def _maths(span: Formula) -> str:
    if span.large:
        return f'<div class="wide">{mathml(wrap(span.boxes, WIDTH - 6), large=True)}</div>'
    parts = span.boxes.parts if is_relation(span.boxes) else (span.boxes,)
    written = " ".join(map(mathml, parts))  # a line may break beside the sign
    return f'<span title="{escape(span.name)}">{written}</span>' if span.name else written


def _heading(level: int, words: str, anchor: str) -> str:
    named = f' id="{escape(anchor)}"' if anchor else ""
    chapter = ' class="chapter"' if level == 1 else ""
    return f"<h{level + 1}{chapter}{named}>{words}</h{level + 1}>"


def _article(title: str, anchor: str, body: str) -> str:
    named = f' id="{escape(anchor)}"' if anchor else ""
    head = f"<h3>{title}</h3>\n" if title else ""
    return f"<article{named}>\n{head}{body}\n</article>"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], shares: tuple[float, ...]) -> str:
    head = "".join(f"<th>{each}</th>" if each else "<td></td>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(c)}</td>" for c in row) + "</tr>" for row in rows)
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{inner}</table></div>'


def _cell(cell: str) -> str:
    if "<" in cell:
        return cell
    return cell.replace("/", "/<wbr>").replace("*", "·<wbr>").replace("·", "·<wbr>")


def _kind(entry: FormulaEntry) -> str:
    word, _, how = entry.kind.partition(", ")
    shade = "near" if how.startswith("approximate") else "exact"
    kind = f'<span class="tag {shade}">{how}</span>' if how else ""
    tags = "".join(f'<span class="tag">{_words(tag)}</span>' for tag in entry.tags)
    return f'<p class="tags"><span class="tag">{word}</span>{kind}{tags}</p>'


def _steps(entry: FormulaEntry) -> str:
    if not entry.derived:
        return _display(entry.steps[0][0])
    return "<ol>" + "".join(_step(step, proof) for step, proof in entry.steps) + "</ol>"


def _step(step: DerivationStep, proof: str) -> str:
    """One step of a derivation as an item of a list."""
    near = "" if step.exact else ' class="near"'
    why = f" {HTML.line(reason(step.why))}" if step.why else ""
    parts = [f"<li{near}><p><b>{_words(step.verb)}</b>{why}</p>", _display(step)]
    parts.append(f'<p class="proof">{HTML.line(reason(proof))}</p>')
    if step.size is not None:
        size = mathml(wrap(layout(step.size), WIDTH - 8), large=True)
        parts.append(f'<p class="proof">neglected over kept: {size}</p>')
    return "".join([*parts, "</li>"])


def _display(step: DerivationStep) -> str:
    form = wrap(relation(step.lhs, step.relation, step.rhs), WIDTH)
    return f'<div class="wide">{mathml(form, display=True)}</div>'


def _note(row: tuple[str, str]) -> str:
    kind, _, case = row[0].partition(", ")
    label, line = (
        (case, row[1]) if kind == "value" else (kind, f"{case}: {row[1]}" if case else row[1])
    )
    return f"<dt>{label}</dt><dd>{line}</dd>"


HTML = BlockMarkup(
    words=_words,
    strong=lambda words: f"<strong>{words}</strong>",
    link=_link,
    maths=_maths,
    heading=_heading,
    paragraphs={
        "": "<p>%s</p>", "question": '<p class="question">%s</p>',
        "caption": '<p class="caption">%s</p>', "note": '<p class="proof">%s</p>',
        "exercise": '<p class="exercise">%s</p>',
    },
    statement=lambda title, anchor, entry: _article(title, anchor, _display(entry.steps[-1][0])),
    steps=_steps,
    entry=_article,
    grid=_grid,
    items=lambda lines: "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>",
    picture=lambda drawing, anchor: (
        f'<figure id="{escape(anchor)}">{svg(drawing, themed=True)}</figure>'
    ),
    answer=lambda number, line: (
        f"<details><summary>answer to {number}</summary><p>{line}</p></details>"
    ),
    between="\n",
    within="\n",
    article=_article,
    folded=lambda title, count, body: (
        f"<details><summary><h2>{title}</h2> <small>{count}</small></summary>{body}</details>"
    ),
    notes=lambda rows: f"<dl>{''.join(map(_note, rows))}</dl>",
    kind=_kind,
)  # fmt: skip
