"""One HTML page that needs nothing but itself: MathML, its font and style, no script, no request.

The style of the HTML page: one column, large enough on a phone, dark where that is preferred. Where
no mathematics font is installed a browser sets subscripts on the line, so one comes along.
"""

from base64 import b64encode
from html import escape
from pathlib import Path

import sympy as sp
from sympy.core.relational import Relational

from formulas.algebra.steps import DerivationStep
from formulas.export import formula_document
from formulas.export.document_markup import SET, pieces, size_words, value_words
from formulas.export.typesetting.boxes import BoxRow, Layout, fitted
from formulas.export.typesetting.layout import figure, layout, relation
from formulas.export.typesetting.markup import mathml
from formulas.nomenclature.sources import Citation

# A subset of Latin Modern Math under the GUST Font License, which stands beside it.
_FONT = b64encode(Path(__file__).with_name("token-planner-math.woff2").read_bytes()).decode()
STYLE = Path(__file__).with_name("style.css").read_text("utf-8").replace("%FONT%", _FONT)

WIDTH = 19.0  # of a formula, so that a phone shows it whole [em]


def html(whole: formula_document.FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    head = page_head(whole.title, STYLE)
    chapters = (_chapter(whole, chapter) for chapter in whole.chapters)
    parts = [head, "<main>", _cover(whole), *_claims(whole), *chapters]
    return "\n".join([*parts, "</main>\n</body>\n</html>\n"])


def fragment(whole: formula_document.FormulaDocument) -> str:
    """The entries, their symbols and the works cited, to stand inside a page of another site."""
    parts = [_entry(entry, whole) for entry in whole.entries]
    parts.append(_folded("Symbols", len(whole.rows), _table(whole, whole.rows)))
    if whole.sources:
        parts.append(_folded("Sources", len(whole.sources), _sources(whole)))
    return "\n".join(parts)


def page_head(title: str, style: str) -> str:
    """What stands before the words of a page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{_words(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )


def _cover(whole: formula_document.FormulaDocument) -> str:
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


def _contents(whole: formula_document.FormulaDocument) -> str:
    parts = ["<nav><h2>Contents</h2>"]
    listed = [
        ("Claims of the lecture", [(x.name, f"{x.name}. {x.statement}") for x in whole.claims])
    ]
    listed += [
        (c.title or "Others", [(e.anchor, e.title) for e in c.entries]) for c in whole.chapters
    ]
    for title, entries in listed:
        links = "".join(f"<li>{_inner(anchor, _words(words))}</li>" for anchor, words in entries)
        head = f"<summary>{_words(title)} <small>{len(entries)}</small></summary>"
        parts.append(f"<details>{head}<ul>{links}</ul></details>" if entries else "")
    return "".join([*parts, "</nav>"])


def _sources(whole: formula_document.FormulaDocument) -> str:
    items = "".join(
        f'<li>{_words(s.authors)}, <a href="{escape(s.link)}">{_words(s.title)}</a> ({s.year})</li>'
        for s in whole.sources
    )
    return f"<ul>{items}</ul>"


def _table(
    whole: formula_document.FormulaDocument, rows: tuple[formula_document.SymbolRow, ...]
) -> str:
    names = ("symbol", "unit", *whole.cases, "meaning")
    heads = "".join(f"<th>{_words(name)}</th>" for name in names)
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
    broken = escape(unit).replace("/", "/<wbr>").replace("·", "·<wbr>")
    return "" if unit == "1" else broken


def _inner(anchor: str, words: str) -> str:
    return f'<a href="#{anchor}">{words}</a>'


def _claims(whole: formula_document.FormulaDocument) -> list[str]:
    """The acceptance table and a card for every claim."""
    if not whole.claims or whole.acceptance is None:
        return []
    cells = (
        (_inner(x.name, x.name), x.verdict, x.factor, _words(x.statement)) for x in whole.claims
    )
    rows = "".join(f"<tr>{''.join(f'<td>{x}</td>' for x in row)}</tr>" for row in cells)
    heads = "<tr><th>claim</th><th>verdict</th><th>factor</th><th>what the lecture says</th></tr>"
    words = "".join(f"<p>{_words(x)}</p>" for x in (whole.acceptance.tally, whole.acceptance.rule))
    return [
        f"<section><h2>Claims of the lecture</h2>{words}",
        f"<table><thead>{heads}</thead><tbody>{rows}</tbody></table>",
        *(_claim(claim, whole.anchors) for claim in whole.claims),
        "</section>",
    ]


def _claim(claim: formula_document.ClaimEntry, anchors: frozenset[str]) -> str:
    titles = [(name, _words(title)) for name, title in claim.derivations]
    derived = [_inner(name, x) if name in anchors else x for name, x in titles]
    rows = [(k, _prose(words) if k in SET else _words(words)) for k, words in claim.rows]
    rows += [("derived in", "; ".join(derived)), ("source", _cited(claim.source))]
    title = f"<h3>{claim.name}. {_words(claim.statement)}</h3>"
    return f'<article id="{claim.name}">\n{title}\n{_list(rows)}\n</article>'


def _cited(source: Citation) -> str:
    words = _words(str(source))
    return f'<a href="{escape(source.link)}">{words}</a>' if source.link else words


def _list(rows: list[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{_words(k)}</dt><dd>{v}</dd>" for k, v in rows if v) + "</dl>"


def _chapter(whole: formula_document.FormulaDocument, chapter: formula_document.Chapter) -> str:
    parts = ["<section>"]
    if whole.headed and chapter.subject:
        parts.append(f"<h2>{_words(chapter.title)}</h2>")
        parts += [f"<p>{_words(chapter.about)}</p>"] if chapter.about else []
    parts += [_entry(entry, whole) for entry in chapter.entries]
    return "\n".join([*parts, "</section>"])


def _entry(entry: formula_document.FormulaEntry, whole: formula_document.FormulaDocument) -> str:
    word, _, how = entry.kind.partition(", ")
    shade = "near" if how.startswith("approximate") else "exact"
    kind = f'<span class="tag {shade}">{how}</span>' if how else ""
    tags = "".join(f'<span class="tag">{_words(tag)}</span>' for tag in entry.tags)
    parts = [
        f'<article id="{entry.anchor}">',
        "" if entry.title == whole.title else f"<h3>{_words(entry.title)}</h3>",
        f'<p class="tags"><span class="tag">{word}</span>{kind}{tags}</p>',
    ]
    if entry.derived:
        steps = "".join(step_item(step, proof) for step, proof in entry.steps)
        parts.append(f"<ol>{steps}</ol>")
    else:
        parts.append(display_line(entry.steps[0][0]))
    return "\n".join([*parts, _notes(entry, whole.anchors), "</article>"])


def step_item(step: DerivationStep, proof: str) -> str:
    """One step of a derivation as an item of a list."""
    near = "" if step.exact else ' class="near"'
    why = f" {_prose(step.why)}" if step.why else ""
    parts = [f"<li{near}><p><b>{_words(step.verb)}</b>{why}</p>", display_line(step)]
    parts.append(f'<p class="proof">{_words(proof)}</p>')
    if step.size is not None:
        size = mathml(fitted(layout(step.size), WIDTH - 8), large=True)
        parts.append(f'<p class="proof">neglected over kept: {size}</p>')
    return "".join([*parts, "</li>"])


def _notes(entry: formula_document.FormulaEntry, anchors: frozenset[str]) -> str:
    rows = [("where", _inline(relation(e.symbol, "=", e.rhs))) for e in entry.item.where]
    rows += [
        (case, value_words(value, _figure(value), _unit(entry.unit)) + _words(entry.outside(case)))
        for case, value in entry.values
    ]
    rows += [("neglected", size_words(size, _words, _figure)) for size in entry.sizes]
    rows += [("takes", _words(premise)) for premise in entry.premises]
    rows += [("assumes", _prose(assumption)) for assumption in entry.item.assumes]
    for claim in entry.claims:
        name = _inner(claim.name, claim.name) if claim.name in anchors else claim.name
        rows.append(("claim", f"{name}, {claim.verdict}: {_words(claim.statement)}"))
    return _list([*rows, ("source", _cited(entry.item.source))])


def _figure(value: float) -> str:
    return mathml(figure(value))


def display_line(step: DerivationStep) -> str:
    """Both sides of a step on a line of their own."""
    form = fitted(relation(step.lhs, step.relation, step.rhs), WIDTH)
    return f'<div class="wide">{mathml(form, display=True)}</div>'


def _inline(x: Layout) -> str:
    return f'<div class="wide">{mathml(fitted(x, WIDTH - 6), large=True)}</div>'


def _prose(words: str) -> str:
    return "".join(_words(x) if isinstance(x, str) else _breakable(x) for x in pieces(words))


def _breakable(x: sp.Basic) -> str:
    """A formula among words; a line may break beside the sign of a relation."""
    if isinstance(x, sp.And):
        return " and ".join(map(_breakable, x.args))
    form = layout(x)
    parts = form.parts if isinstance(x, Relational) and isinstance(form, BoxRow) else (form,)
    return " ".join(map(mathml, parts))


def _words(words: str) -> str:
    return escape(words, quote=False)
