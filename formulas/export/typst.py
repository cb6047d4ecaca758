"""A Typst document that stands alone; `typst` makes a PDF of it without a network."""

import re
from pathlib import Path

from formulas.algebra.steps import DerivationStep
from formulas.export.formula_document import FormulaDocument, FormulaEntry, NeglectedSize, SymbolRow
from formulas.export.typesetting.boxes import Layout, fitted
from formulas.export.typesetting.layout import figure, layout, relation
from formulas.export.typesetting.markup import quoted, typst_math

WIDTH = 36.0  # of a formula [em]
HEAD = Path(__file__).with_name("preamble.typ").read_text("utf-8")


def typst(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    parts = [HEAD, f"#set document(title: {quoted(whole.title)}, date: none)", *_cover(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            parts.append(f"= {_words(chapter.title)}\n\n#emph[{_words(chapter.about)}]")
        parts += [_entry(entry) for entry in chapter.entries]
    return "\n\n".join(parts) + "\n"


def _cover(whole: FormulaDocument) -> list[str]:
    parts = [f"#text(size: 1.9em, weight: 700)[{_words(whole.title)}]\n#v(1em)"]
    parts += [_words(paragraph) for paragraph in whole.words]
    if len(whole.cases) > 1 and whole.differences:
        parts += [_head("Assumptions where they differ"), _table(whole, whole.differences)]
    if whole.headed:
        parts.append("#pagebreak()\n#outline(depth: 2, indent: 1.2em)\n#pagebreak()")
    parts += [_head("Symbols"), _table(whole, whole.rows)]
    if whole.sources:
        cited = [
            f"- {_words(s.authors)}, {_link(s.link, s.title)} ({s.year})" for s in whole.sources
        ]
        parts += [_head("Sources"), "\n".join(cited)]
    return parts


def _head(title: str) -> str:
    return f"#heading(level: 2)[{title}]"


def _entry(entry: FormulaEntry) -> str:
    parts = [f"== {_words(entry.title)}", f"#kind[{_words(', '.join([entry.kind, *entry.tags]))}]"]
    for number, (step, proof) in enumerate(entry.steps, 1):
        if not entry.derived:
            parts.append(_display(step))
            continue
        why = f" {_words(step.why)}" if step.why else ""
        head = f"#block(sticky: true)[*{number}. {step.verb}*{why} #soft[\\[{_words(proof)}\\]]]"
        body = f"{head}\n\n{_display(step)}"
        if step.size is not None:
            size = _shown(fitted(layout(step.size), WIDTH / 2))
            body = f"#near[\n{body}\n\n#soft[neglected over kept:] {size}\n]"
        parts.append(body)
    return "\n\n".join([*parts, _notes(entry)])


def _notes(entry: FormulaEntry) -> str:
    notes = [
        f"- where {_inline(relation(layout(e.symbol), '=', layout(e.rhs)))}" for e in entry.where
    ]
    notes += [
        f"- value, {_words(case)}: {_value(value, entry.unit)}" for case, value in entry.values
    ]
    notes += [f"- {_size(size)}" for size in entry.sizes]
    notes += [f"- assumes: {_words(assumption)}" for assumption in entry.assumes]
    source = entry.source
    cited = _link(source.link, str(source)) if source.link else _words(str(source))
    return "\n".join([*notes, f"- source: {cited}"])


def _size(size: NeglectedSize) -> str:
    head = f"neglected, {_words(size.case)}: "
    if size.size is None:
        return f"{head}not known, {_words(size.missing)}"
    number = typst_math(figure(size.size))
    return f"{head}{_words(size.neglected)}: {number} times what is kept{_words(size.remark)}"


def _value(value: float, unit: str) -> str:
    number = typst_math(figure(value))
    if value < 0:
        return f"none: {number} is not positive, so a condition below does not hold"
    return f"{number} {_words(f'[{unit}]')}" if unit != "1" else number


def _display(step: DerivationStep) -> str:
    x = relation(layout(step.lhs), "=" if step.exact else "≈", layout(step.rhs))
    return typst_math(fitted(x, WIDTH), display=True)


def _inline(x: Layout) -> str:
    return _shown(fitted(x, WIDTH - 4))


def _shown(x: Layout) -> str:
    """In a line of words, but as large as on a line of its own."""
    return typst_math(x, large=True)


def _link(link: str, words: str) -> str:
    return f"#link({quoted(link)})[{_words(words)}]"


def _words(words: str) -> str:
    """Words with the characters that Typst would act on made literal."""
    literal = re.sub(r"[\\#$*_`<>@\[\]~\"']", r"\\\g<0>", words)
    literal = literal.replace("--", r"-\-").replace("//", r"/\/")
    # What would begin a list, a heading or a term at the start of a block.
    return re.sub(r"^(\d*)([-+=/.])", r"\1\\\2", literal)


def _table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    columns = ", ".join(["auto", "auto", *("auto" for _ in whole.cases), "1fr"])
    heads = ", ".join(f"[{_words(h)}]" for h in ("", "unit", *whole.cases, "meaning"))
    cells = [
        ", ".join(
            [
                f"[{typst_math(layout(row.symbol))}]",
                f"[#soft[{_words(row.unit)}]]",
                *("[]" if v is None else f"[{typst_math(figure(v))}]" for v in row.values),
                f"[{_words(row.meaning)}]",
            ]
        )
        for row in rows
    ]
    body = ",\n  ".join(cells)
    return f"#rows(({columns}), table.header({heads}),\n  {body},\n)"
