"""One HTML page that needs nothing but itself: MathML, its own style, no script, no request.

The style of the HTML page: one column, large enough on a phone, dark where that is preferred.
"""

from html import escape
from pathlib import Path

from formulas.algebra.steps import DerivationStep
from formulas.export.document_markup import size_words, value_words
from formulas.export.formula_document import Chapter, FormulaDocument, FormulaEntry, SymbolRow
from formulas.export.typesetting.boxes import Layout, fitted
from formulas.export.typesetting.layout import figure, layout, relation
from formulas.export.typesetting.markup import mathml

STYLE = Path(__file__).with_name("style.css").read_text("utf-8")

WIDTH = 21.0  # of a formula, so that a phone shows it whole [em]


def html(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{_words(whole.title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    )
    parts = [head, _cover(whole), *(_chapter(whole, chapter) for chapter in whole.chapters)]
    return "\n".join([*parts, "</body>\n</html>\n"])


def _cover(whole: FormulaDocument) -> str:
    parts = ["<header>", f"<h1>{_words(whole.title)}</h1>"]
    parts += [f"<p>{_words(paragraph)}</p>" for paragraph in whole.words]
    if whole.headed:
        parts.append(_contents(whole))
    if len(whole.cases) > 1 and whole.differences:
        parts += ["<h2>Assumptions where they differ</h2>", _table(whole, whole.differences)]
    if whole.headed:
        parts.append(_folded("Symbols", len(whole.rows), _table(whole, whole.rows)))
        parts.append(_folded("Sources", len(whole.sources), _sources(whole)))
    else:
        parts += ["<h2>Symbols</h2>", _table(whole, whole.rows)]
        parts += ["<h2>Sources</h2>", _sources(whole)] if whole.sources else []
    return "\n".join([*parts, "</header>"])


def _folded(title: str, count: int, body: str) -> str:
    return f"<details><summary><h2>{title}</h2> <small>{count}</small></summary>{body}</details>"


def _contents(whole: FormulaDocument) -> str:
    parts = ["<nav><h2>Contents</h2>"]
    for chapter in whole.chapters:
        links = "".join(
            f'<li><a href="#{entry.anchor}">{_words(entry.title)}</a></li>'
            for entry in chapter.entries
        )
        title = _words(chapter.title or "Others")
        count = f"<small>{len(chapter.entries)}</small>"
        parts.append(f"<details><summary>{title} {count}</summary><ul>{links}</ul></details>")
    return "".join([*parts, "</nav>"])


def _sources(whole: FormulaDocument) -> str:
    items = "".join(
        f'<li>{_words(s.authors)}, <a href="{escape(s.link)}">{_words(s.title)}</a> ({s.year})</li>'
        for s in whole.sources
    )
    return f"<ul>{items}</ul>"


def _table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    heads = "".join(f"<th>{_words(name)}</th>" for name in ("", "unit", *whole.cases, "meaning"))
    body = []
    for row in rows:
        values = "".join(
            f'<td class="value">{"" if v is None else _figure(v)}</td>' for v in row.values
        )
        body.append(
            f'<tr><td title="{escape(row.symbol.name)}">{mathml(layout(row.symbol))}</td>'
            f'<td class="unit">{_unit(row.unit)}</td>{values}<td>{_words(row.meaning)}</td></tr>'
        )
    return (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _unit(unit: str) -> str:
    """A unit that may be broken after its signs."""
    broken = escape(unit).replace("/", "/<wbr>").replace("**", "^").replace("*", "·<wbr>")
    return "" if unit == "1" else broken


def _chapter(whole: FormulaDocument, chapter: Chapter) -> str:
    parts = ["<section>"]
    if whole.headed and chapter.subject:
        parts.append(f"<h2>{_words(chapter.title)}</h2><p>{_words(chapter.about)}</p>")
    parts += [_entry(entry) for entry in chapter.entries]
    return "\n".join([*parts, "</section>"])


def _entry(entry: FormulaEntry) -> str:
    word, _, how = entry.kind.partition(", ")
    shade = {"exact": "exact", "approximate": "near"}
    kind = f'<span class="tag {shade[how]}">{how}</span>' if how else ""
    tags = "".join(f'<span class="tag">{_words(tag)}</span>' for tag in entry.tags)
    parts = [
        f'<article id="{entry.anchor}">',
        f"<h3>{_words(entry.title)}</h3>",
        f'<p class="tags"><span class="tag">{word}</span>{kind}{tags}</p>',
    ]
    if entry.derived:
        steps = "".join(_step(step, proof) for step, proof in entry.steps)
        parts.append(f"<ol>{steps}</ol>")
    else:
        parts.append(_display(entry.steps[0][0]))
    return "\n".join([*parts, _notes(entry), "</article>"])


def _step(step: DerivationStep, proof: str) -> str:
    near = "" if step.exact else ' class="near"'
    why = f" {_words(step.why)}" if step.why else ""
    parts = [f"<li{near}><p><b>{_words(step.verb)}</b>{why}</p>", _display(step)]
    mark = "exact" if step.exact else "approximate"
    proven = _words(proof) if proof.startswith(mark) else f"{mark}: {_words(proof)}"
    parts.append(f'<p class="proof">{proven}</p>')
    if step.size is not None:
        size = mathml(fitted(layout(step.size), WIDTH - 8), large=True)
        parts.append(f'<p class="proof">neglected over kept: {size}</p>')
    return "".join([*parts, "</li>"])


def _notes(entry: FormulaEntry) -> str:
    rows = [("where", _inline(relation(e.symbol, "=", e.rhs))) for e in entry.item.where]
    rows += [
        (case, value_words(value, _figure(value), _unit(entry.unit)))
        for case, value in entry.values
    ]
    rows += [("neglected", size_words(size, _words, _figure)) for size in entry.sizes]
    rows += [("assumes", _words(assumption)) for assumption in entry.item.assumes]
    source, words = entry.item.source, _words(str(entry.item.source))
    rows.append(
        ("source", f'<a href="{escape(source.link)}">{words}</a>' if source.link else words)
    )
    return "<dl>" + "".join(f"<dt>{_words(k)}</dt><dd>{v}</dd>" for k, v in rows) + "</dl>"


def _figure(value: float) -> str:
    return mathml(figure(value))


def _display(step: DerivationStep) -> str:
    form = fitted(relation(step.lhs, step.relation, step.rhs), WIDTH)
    return f'<div class="wide">{mathml(form, display=True)}</div>'


def _inline(x: Layout) -> str:
    return f'<div class="wide">{mathml(fitted(x, WIDTH - 6), large=True)}</div>'


def _words(words: str) -> str:
    return escape(words, quote=False)
