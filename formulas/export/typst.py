"""A Typst document that stands alone; `typst` makes a PDF of it without a network."""

import re
from collections.abc import Iterator, Sequence
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
    parts += [*map(_words, whole.words), *TYPST.differences(whole)]
    if whole.headed:
        parts.append("#pagebreak()\n#outline(depth: 2, indent: 1.2em)\n#pagebreak()")
    return "\n\n".join([*parts, *TYPST.back(whole), *TYPST.chapters(whole)]) + "\n"


def _steps(entry: FormulaEntry) -> Iterator[str]:
    for number, (step, proof) in enumerate(entry.steps, 1):
        x = relation(step.lhs, step.relation, step.rhs)
        body = typst_math(fitted(x, WIDTH), display=True)
        if entry.derived:
            why = f" {TYPST.prose(step.why)}" if step.why else ""
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
    cells = [
        [
            typst_math(layout(row.symbol)),
            f"#soft[{_words(row.unit)}]",
            *("" if v is None else typst_math(figure(v)) for v in row.values),
            _words(row.meaning),
        ]
        for row in rows
    ]
    return _grid([_words(head) for head in ("", "unit", *whole.cases, "meaning")], cells)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    columns = ", ".join(["auto"] * (len(heads) - 1) + ["1fr"])
    head = ", ".join(f"[{words}]" for words in heads)
    body = ",\n  ".join(", ".join(f"[{words}]" for words in row) for row in rows)
    return f"#rows(({columns}), table.header({head}),\n  {body},\n)"


TYPST = DocumentMarkup(
    words=_words,
    maths=lambda x: typst_math(layout(x)),
    figure=lambda value: typst_math(figure(value)),
    definition=_definition,
    link=lambda link, words: f"#link({quoted(link)})[{words}]",
    inner=lambda anchor, words: f"#link(<{anchor}>)[{words}]",
    grid=_grid,
    steps=_steps,
    table=_table,
    between="\n\n",
    heading="#heading(level: 2)[%s]",
    chapter="= %s\n\n#emph[%s]",
    title="== %(title)s <%(anchor)s>",
    kind="#kind[%s]",
    item="- %s",
    listed="%s",
)
