"""A Typst document that stands alone; `typst` makes a PDF of it without a network."""

import re
from collections.abc import Iterator
from pathlib import Path

from formulas.algebra.equation import Equation
from formulas.export.document_markup import DocumentMarkup
from formulas.export.formula_document import FormulaDocument, FormulaEntry, SymbolRow
from formulas.export.typesetting.boxes import fitted
from formulas.export.typesetting.layout import figure, layout, relation
from formulas.export.typesetting.markup import quoted, typst_math

WIDTH = 36.0  # of a formula [em]
HEAD = Path(__file__).with_name("preamble.typ").read_text("utf-8")


def typst(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    parts = [HEAD, f"#set document(title: {quoted(whole.title)}, date: none)"]
    parts += [f"#text(size: 1.9em, weight: 700)[{_words(whole.title)}]\n#v(1em)"]
    parts += [*map(_words, whole.words), *_TYPST.differences(whole)]
    if whole.headed:
        parts.append("#pagebreak()\n#outline(depth: 2, indent: 1.2em)\n#pagebreak()")
    return "\n\n".join([*parts, *_TYPST.back(whole), *_TYPST.chapters(whole)]) + "\n"


def _steps(entry: FormulaEntry) -> Iterator[str]:
    for number, (step, proof) in enumerate(entry.steps, 1):
        x = relation(step.lhs, step.relation, step.rhs)
        body = typst_math(fitted(x, WIDTH), display=True)
        if entry.derived:
            why = f" {_words(step.why)}" if step.why else ""
            head = (
                f"#block(sticky: true)[*{number}. {step.verb}*{why} #soft[\\[{_words(proof)}\\]]]"
            )
            body = f"{head}\n\n{body}"
        if step.size is not None:
            size = typst_math(fitted(layout(step.size), WIDTH / 2), large=True)
            body = f"#near[\n{body}\n\n#soft[neglected over kept:] {size}\n]"
        yield body


def _definition(equation: Equation) -> str:
    """In a line of words, but as large as on a line of its own."""
    x = relation(equation.symbol, "=", equation.rhs)
    return typst_math(fitted(x, WIDTH - 4), large=True)


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


_TYPST = DocumentMarkup(
    words=_words,
    figure=lambda value: typst_math(figure(value)),
    definition=_definition,
    link=lambda link, words: f"#link({quoted(link)})[{words}]",
    steps=_steps,
    table=_table,
    between="\n\n",
    heading="#heading(level: 2)[%s]",
    chapter="= %s\n\n#emph[%s]",
    title="== %(title)s",
    kind="#kind[%s]",
    item="- %s",
    listed="%s",
)
