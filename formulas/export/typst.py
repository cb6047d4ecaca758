"""A Typst document that stands alone; `typst` makes a PDF of it without a network."""

import re
from collections.abc import Sequence
from pathlib import Path

from formulas.export.blocks import BlockDocument, BlockMarkup
from formulas.export.drawing import svg
from formulas.export.formula_document import FormulaEntry
from formulas.export.typesetting.boxes import wrap
from formulas.export.typesetting.layout import layout, relation
from formulas.export.typesetting.markup import typst_math, typst_string
from formulas.export.words import Formula, reason

WIDTH = 36.0  # of a formula [em]
HEAD = Path(__file__).with_name("preamble.typ").read_text("utf-8")


def typst(whole: BlockDocument, head: str = "") -> str:
    """Write a self-contained Typst document; `head` is added to the head of all documents."""
    parts = [HEAD + head, f"#set document(title: {typst_string(whole.title)}, date: none)"]
    parts += [f"#text(size: 1.9em, weight: 700)[{_words(whole.title)}]\n#v(1em)"]
    parts += map(TYPST.line, whole.about)
    parts += ["#outline(title: none, depth: 3)"] if whole.contents else []
    return "\n\n".join([*parts, TYPST.written(whole.blocks)]) + "\n"


def _words(words: str) -> str:
    literal = re.sub(r"[\\#$*_`<>@\[\]~\"']", r"\\\g<0>", words)
    literal = literal.replace("--", r"-\-").replace("//", r"/\/")
    # Escape a start of a block that Typst would take for a list, a heading or a term.
    return re.sub(r"^(\d*)([-+=/.])", r"\1\\\2", literal)


def _maths(span: Formula) -> str:
    if span.large:
        return typst_math(wrap(span.boxes, WIDTH - 4), large=True)
    return typst_math(span.boxes)


def _heading(level: int, words: str, anchor: str) -> str:
    # Sections are many, and said by their chapters.
    listed = "true" if level == 1 or (level == 3 and anchor) else "false"
    return f"#heading(level: {level}, outlined: {listed})[{words}]" + _mark(anchor)


def _mark(anchor: str) -> str:
    return f" <{anchor}>" if anchor else ""


def _steps(entry: FormulaEntry) -> str:
    blocks = []
    for number, (step, proof) in enumerate(entry.steps, 1):
        x = relation(step.lhs, step.relation, step.rhs)
        body = typst_math(wrap(x, WIDTH), display=True)
        if entry.derived:
            why = f" {TYPST.line(reason(step.why))}" if step.why else ""
            how = rf"#soft[\[{TYPST.line(reason(proof))}\]]"
            head = f"#block(sticky: true)[*{number}. {step.verb}*{why} {how}]"
            body = f"{head}\n\n{body}"
        if step.size is not None:
            size = typst_math(wrap(layout(step.size), WIDTH / 2), large=True)
            body = f"#near[\n{body}\n\n#soft[neglected over kept:] {size}\n]"
        blocks.append(body)
    return "\n\n".join(blocks)


def _statement(title: str, anchor: str, entry: FormulaEntry) -> str:
    step = entry.steps[-1][0]
    boxes = wrap(relation(step.lhs, step.relation, step.rhs), WIDTH)
    line = f"*{title}.* #h(1em) #box({typst_math(boxes, large=True)})"
    return f"#block(above: 1.2em)[{line}]{_mark(anchor)}"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], shares: tuple[float, ...]) -> str:
    columns = ", ".join(f"{share:g}fr" for share in shares)
    head = ", ".join(f"[{words}]" for words in heads)
    body = ",\n  ".join(", ".join(f"[{cell}]" for cell in row) for row in rows)
    return f"#rows(({columns}), table.header({head}),\n  {body},\n)"


TYPST = BlockMarkup(
    words=_words,
    strong=lambda words: f"#strong[{words}]",
    link=lambda to, words: f"#link({typst_string(to) if '//' in to else f'<{to}>'})[{words}]",
    maths=_maths,
    heading=_heading,
    paragraphs={
        "": "%s", "question": "#emph[%s]", "caption": "#soft[%s]", "note": "#soft[%s]",
        "exercise": "%s", "kind": "#kind[%s]",
    },
    statement=_statement,
    steps=_steps,
    entry=lambda title, anchor, body: (
        f"#block(sticky: true, above: 1.3em)[*{title}.*]{_mark(anchor)}\n\n{body}"
    ),
    grid=_grid,
    items=lambda lines: "\n".join(f"- {line}" for line in lines),
    picture=lambda drawing, anchor: (
        f"#drawn(bytes({typst_string(svg(drawing, font='New Computer Modern'))}), "
        f"{drawing.width:g}pt){_mark(anchor)}"
    ),
    answer=None,
)  # fmt: skip
