"""The book as one file of each format: covers and heads, and the tables that the walk reads."""

import base64
from html import escape
from pathlib import Path
from textwrap import fill, indent

from formulas.book.blocks import BookDocument, BookMarkup, Heading, Proof
from formulas.book.drawing import Drawing, Label, characters, pdf_strokes, svg
from formulas.export import html, latex, plain_text, typst
from formulas.export.formula_document import FormulaEntry
from formulas.export.typesetting.boxes import fitted
from formulas.export.typesetting.layout import relation
from formulas.export.typesetting.markup import latex_math, mathml, quoted, typst_math
from formulas.registry import module_of

WIDTH = 100
STYLE = Path(__file__).with_name("book.css").read_text("utf-8")
TEX = Path(__file__).with_name("book.tex").read_text("utf-8")
TYP = Path(__file__).with_name("book.typ").read_text("utf-8")


def _anchored(anchor: str) -> str:
    return f' id="{escape(anchor)}"' if anchor else ""


# HTML ------------------------------------------------------------------------------------------


def _html_words(words: str) -> str:
    return escape(words, quote=False)


def _html_grid(heads: list[str], rows: list[list[str]], shares: tuple[float, ...]) -> str:
    head = "".join(f"<th>{each}</th>" if each else "<td></td>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{_unit(c)}</td>" for c in row) + "</tr>" for row in rows)
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{inner}</table></div>'


def _unit(cell: str) -> str:
    """A unit that may be broken after its signs."""
    return cell if "<" in cell else cell.replace("/", "/<wbr>").replace("*", "·<wbr>")


def _html_entry(title: str, anchor: str, body: str) -> str:
    return f"<article{_anchored(anchor)}>\n<h3>{title}</h3>\n{body}\n</article>"


def _html_link(to: str, words: str) -> str:
    return f'<a href="{escape(to if "//" in to else "#" + to)}">{words}</a>'


_HTML = BookMarkup(
    words=_html_words,
    strong=lambda words: f"<strong>{words}</strong>",
    link=_html_link,
    maths=lambda span: mathml(span.boxes),
    heading=lambda n, words, anchor: f"<h{n + (n > 1)}{_anchored(anchor)}>{words}</h{n + (n > 1)}>",
    paragraphs={
        "": "<p>%s</p>", "question": '<p class="question">%s</p>',
        "caption": '<p class="caption">%s</p>', "note": '<p class="proof">%s</p>',
        "exercise": '<p class="exercise">%s</p>',
    },
    statement=lambda title, anchor, entry: _html_entry(
        title, anchor, html.display_line(entry.steps[-1][0])
    ),
    steps=lambda entry: "<ol>" + "".join(html.step_item(*each) for each in entry.steps) + "</ol>",
    entry=_html_entry,
    grid=_html_grid,
    items=lambda lines: "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>",
    picture=lambda drawing, anchor: (
        f'<figure id="{escape(anchor)}">{svg(drawing, themed=True)}</figure>'
    ),
    answer=lambda number, line: (
        f"<details><summary>answer to {number}</summary><p>{line}</p></details>"
    ),
    between="\n",
)  # fmt: skip


def html_book(whole: BookDocument) -> str:
    """One page that needs nothing but itself."""
    contents = "".join(
        f"<li>{_html_link(each.anchor, _html_words(each.words))}</li>" for each in whole.contents
    )
    cover = [
        "<header>", f"<h1>{_html_words(whole.title)}</h1>",
        *(f"<p>{_HTML.line(line)}</p>" for line in whole.about),
        f"<nav><h2>Contents</h2><ul>{contents}</ul></nav>", "</header>",
    ]  # fmt: skip
    body = (
        _HTML.written(whole.blocks)
        .replace("<h1 ", '<h2 class="chapter" ')
        .replace("</h1>", "</h2>")
    )
    head = html.page_head(whole.title, html.STYLE + STYLE)
    return "\n".join([head, *cover, "<main>", body, "</main>", "</body>\n</html>\n"])


# LaTeX -----------------------------------------------------------------------------------------

_LEVELS = {
    1: "\\newpage\\section{%s}", 2: "\\subsection*{%s}", 3: "\\subsubsection*{%s}",
}  # fmt: skip


def _latex_heading(level: int, words: str, anchor: str) -> str:
    return _LEVELS[level] % words + (rf"\label{{{anchor}}}" if anchor else "")


def _latex_link(to: str, words: str) -> str:
    if "//" in to:
        return latex.LATEX.link(to, words)
    return rf"\hyperref[{to}]{{{words}}}"


def _latex_grid(heads: list[str], rows: list[list[str]], shares: tuple[float, ...]) -> str:
    wide = 170 - 4.4 * (len(shares) - 1)  # without what stands between columns [mm]
    columns = "".join(rf">{{\raggedright}}p{{{share * wide:.1f}mm}}" for share in shares)
    lines = [" & ".join(map(_broken, row)) + r" \tabularnewline" for row in rows]
    head = " & ".join(heads) + r" \tabularnewline \midrule \endhead"
    return latex.longtable(columns, head, lines)


def _broken(cell: str) -> str:
    """A unit that may be broken after its signs."""
    unit = "/" in cell and "\\" not in cell
    return cell.replace("/", r"/\allowbreak ").replace("*", r"*\allowbreak ") if unit else cell


def _latex_entry(title: str, anchor: str, body: str) -> str:
    mark = rf"\phantomsection\label{{{anchor}}}" if anchor else ""
    return f"{mark}\\textbf{{{title}.}}\\nopagebreak\n{body}"


def _latex_statement(title: str, anchor: str, entry: FormulaEntry) -> str:
    """On the line of its title where there is room, else below it."""
    step = entry.steps[-1][0]
    boxes = fitted(relation(step.lhs, step.relation, step.rhs), latex.WIDTH)
    mark = rf"\phantomsection\label{{{anchor}}}" if anchor else ""
    line = rf"\textbf{{{title}.}}\hspace{{1em}}\mbox{{$\displaystyle {latex_math(boxes)}$}}"
    return rf"{mark}{{\raggedright {line}\par}}"


def _latex_picture(drawing: Drawing, anchor: str) -> str:
    labels = []
    sides = {"start": "l", "middle": "", "end": "r"}
    for part in drawing.parts:
        if isinstance(part, Label):
            words = latex.latex_words(part.words)
            box = rf"\makebox(0,0)[b{sides[part.anchor]}]{{\drawnwords {words}}}"
            box = rf"\rotatebox{{90}}{{\drawnwords {words}}}" if part.upright else box
            x, y = part.at
            shift = 2.6 * len(part.words) if part.upright else 0.0
            labels.append(rf"\put({x - (6 if part.upright else 0):.1f},{y - shift:.1f}){{{box}}}")
    size = f"({drawing.width:g},{drawing.height:g})"
    return "\n".join([
        rf"\begin{{center}}\phantomsection\label{{{anchor}}}\setlength{{\unitlength}}{{1bp}}%",
        rf"\begin{{picture}}{size}\put(0,0){{\drawn{{{pdf_strokes(drawing)}}}}}", *labels,
        r"\end{picture}\end{center}",
    ])  # fmt: skip


_LATEX = BookMarkup(
    words=latex.latex_words,
    strong=lambda words: rf"\textbf{{{words}}}",
    link=_latex_link,
    maths=lambda span: f"${latex_math(span.boxes)}$",
    heading=_latex_heading,
    paragraphs={
        "": "%s", "question": "\\emph{%s}", "caption": "{\\small %s}", "note": "{\\small %s}",
        "exercise": "%s",
    },
    statement=_latex_statement,
    steps=lambda entry: "\n".join(latex.LATEX.steps(entry)),
    entry=_latex_entry,
    grid=_latex_grid,
    items=lambda lines: latex.LATEX.listed % "\n".join(latex.LATEX.item % x for x in lines),
    picture=_latex_picture,
    answer=None,
)  # fmt: skip


def latex_book(whole: BookDocument) -> str:
    """A LaTeX article that needs no file beside it."""
    parts = [
        latex.HEAD.replace("11pt", "10pt")
        + TEX
        + rf"\title{{{latex.latex_words(whole.title)}}}\author{{}}\date{{}}"
    ]
    parts += [r"\begin{document}", r"\maketitle", *map(_LATEX.line, whole.about)]
    parts += [r"\tableofcontents", _LATEX.written(whole.blocks), r"\end{document}"]
    return "\n\n".join(parts) + "\n"


# Typst -----------------------------------------------------------------------------------------


def _typst_heading(level: int, words: str, anchor: str) -> str:
    mark = f" <{anchor}>" if anchor else ""
    return f"#heading(level: {level}, outlined: {str(level == 1).lower()})[{words}]{mark}"


def _typst_link(to: str, words: str) -> str:
    return f"#link({quoted(to) if '//' in to else f'<{to}>'})[{words}]"


def _typst_grid(heads: list[str], rows: list[list[str]], shares: tuple[float, ...]) -> str:
    columns = ", ".join(f"{share:g}fr" for share in shares)
    head = ", ".join(f"[{each}]" for each in heads)
    body = ",\n  ".join(", ".join(f"[{cell}]" for cell in row) for row in rows)
    return f"#rows(({columns}), table.header({head}),\n  {body},\n)"


def _typst_entry(title: str, anchor: str, body: str) -> str:
    mark = f" <{anchor}>" if anchor else ""
    return f"#block(sticky: true, above: 1.3em)[*{title}.*]{mark}\n\n{body}"


def _typst_statement(title: str, anchor: str, entry: FormulaEntry) -> str:
    """On the line of its title where there is room, else below it."""
    step = entry.steps[-1][0]
    boxes = fitted(relation(step.lhs, step.relation, step.rhs), typst.WIDTH)
    mark = f" <{anchor}>" if anchor else ""
    return f"#block(above: 1.2em)[*{title}.* #h(1em) #box({typst_math(boxes, large=True)})]{mark}"


_TYPST = BookMarkup(
    words=typst.TYPST.words,
    strong=lambda words: f"#strong[{words}]",
    link=_typst_link,
    maths=lambda span: typst_math(span.boxes),
    heading=_typst_heading,
    paragraphs={
        "": "%s", "question": "#emph[%s]", "caption": "#soft[%s]", "note": "#soft[%s]",
        "exercise": "%s",
    },
    statement=_typst_statement,
    steps=lambda entry: "\n\n".join(typst.TYPST.steps(entry)),
    entry=_typst_entry,
    grid=_typst_grid,
    items=lambda lines: "\n".join(f"- {line}" for line in lines),
    picture=lambda drawing, anchor: (
        f"#drawn(bytes({quoted(svg(drawing, font='New Computer Modern'))}), "
        f"{drawing.width:g}pt) <{anchor}>"
    ),
    answer=None,
)  # fmt: skip


def typst_book(whole: BookDocument) -> str:
    """A Typst document that stands alone."""
    parts = [typst.HEAD + TYP, f"#set document(title: {quoted(whole.title)}, date: none)"]
    parts += [f"#text(size: 1.9em, weight: 700)[{typst.TYPST.words(whole.title)}]\n#v(1em)"]
    parts += [*map(_TYPST.line, whole.about), "#outline(title: none, depth: 1)"]
    return "\n\n".join([*parts, _TYPST.written(whole.blocks)]) + "\n"


# Markdown and the notebook ---------------------------------------------------------------------


def _markdown_entry(title: str, anchor: str, body: str) -> str:
    return f"{_marked(anchor)}**{title}.**\n\n{body}"


def _markdown_statement(title: str, anchor: str, entry: FormulaEntry) -> str:
    step = entry.steps[-1][0]
    maths = latex_math(relation(step.lhs, step.relation, step.rhs))
    return _markdown_entry(title, anchor, f"$$\n{maths}\n$$")


def _marked(anchor: str) -> str:
    return f'<a id="{anchor}"></a>' if anchor else ""


def _image(drawing: Drawing, anchor: str) -> str:
    made = base64.b64encode(svg(drawing).encode()).decode()
    words = drawing.title.partition(".")[0].replace("$", "")
    return f"{_marked(anchor)}![{words}](data:image/svg+xml;base64,{made})"


_MARKDOWN = BookMarkup(
    words=plain_text.MARKDOWN.words,
    strong=lambda words: f"**{words}**",
    link=lambda to, words: f"[{words}]({to if '//' in to else '#' + to})",
    maths=lambda span: f"${latex_math(span.boxes)}$",
    heading=lambda n, words, anchor: f"{'#' * (n + 1)} {_marked(anchor)}{words}",
    paragraphs={"": "%s", "question": "*%s*", "caption": "%s", "note": "%s", "exercise": "%s"},
    statement=_markdown_statement,
    steps=lambda entry: "\n\n".join(plain_text.MARKDOWN.steps(entry)),
    entry=_markdown_entry,
    grid=lambda heads, rows, shares: plain_text.MARKDOWN.grid(heads, rows),
    items=lambda lines: "\n".join(f"- {line}" for line in lines),
    picture=_image,
    answer=lambda number, line: (
        f"<details><summary>answer to {number}</summary>\n\n{line}\n\n</details>"
    ),
)


def markdown_book(whole: BookDocument) -> str:
    """Markdown with LaTeX between dollar signs, pictures within."""
    about = [_MARKDOWN.line(line) for line in whole.about]
    links = [f"- {_MARKDOWN.link(x.anchor, _MARKDOWN.words(x.words))}" for x in whole.contents]
    parts = [f"# {_MARKDOWN.words(whole.title)}", *about, "\n".join(links)]
    return "\n\n".join([*parts, _MARKDOWN.written(whole.blocks)]) + "\n"


def notebook_book(whole: BookDocument) -> str:
    """A notebook: words of each section, then code that checks what the section derives."""
    cover = [f"# {_MARKDOWN.words(whole.title)}", *map(_MARKDOWN.line, whole.about)]
    cells = [plain_text.words_cell("cover", "\n\n".join(cover))]
    starts = [i for i, x in enumerate(whole.blocks) if isinstance(x, Heading) and x.level < 3]
    for start, end in zip(starts, [*starts[1:], len(whole.blocks)], strict=True):
        section = whole.blocks[start:end]
        head = section[0]
        assert isinstance(head, Heading)
        cells.append(plain_text.words_cell(head.anchor, _MARKDOWN.written(section)))
        proofs = [x.entry for x in section if isinstance(x, Proof) and x.entry.python]
        if proofs:
            lines = [f"from {module_of(x.home)} import {x.python}" for x in proofs]
            lines += [f"assert {x.python}.check()" for x in proofs]
            cells.append(plain_text.code_cell(f"{head.anchor}-check", "\n".join(lines)))
    return plain_text.notebook_json(cells, whole.title)


# Plain text ------------------------------------------------------------------------------------


def _text_heading(level: int, words: str, anchor: str) -> str:
    return f"\n{words}\n{'=' * len(words)}" if level == 1 else f"{words}\n{'-' * len(words)}"


def _text_grid(heads: list[str], rows: list[list[str]], shares: tuple[float, ...]) -> str:
    """Columns as wide as their shares; what does not fit goes on below."""
    wide = [max(6, int(share * (WIDTH - 2 * len(shares)))) for share in shares]
    lines = []
    for row in (heads, *rows):
        cells = [fill(cell, w).splitlines() or [""] for cell, w in zip(row, wide, strict=True)]
        for k in range(max(map(len, cells))):
            parts = [
                (c[k] if k < len(c) else "").ljust(w) for c, w in zip(cells, wide, strict=True)
            ]
            lines.append("  " + "  ".join(parts).rstrip())
    return "\n".join(lines)


def _text_steps(entry: FormulaEntry) -> str:
    return "\n".join(step.text(n, proof) for n, (step, proof) in enumerate(entry.steps, 1))


_TEXT = BookMarkup(
    words=lambda words: words,
    strong=lambda words: words,
    link=lambda to, words: f"{words} ({to})" if "//" in to else words,
    maths=lambda span: span.typed,
    heading=_text_heading,
    paragraphs={"": "%s", "question": "%s", "caption": "%s", "note": "%s", "exercise": "%s"},
    statement=lambda title, anchor, entry: f"{title}\n  {entry.steps[-1][0]}",
    steps=_text_steps,
    entry=lambda title, anchor, body: f"{title}\n{body}",
    grid=_text_grid,
    items=lambda lines: "\n".join(
        fill(x, WIDTH, initial_indent="  - ", subsequent_indent="    ") for x in lines
    ),
    picture=lambda drawing, anchor: indent(characters(drawing), "  "),
    answer=None,
)


def text_book(whole: BookDocument) -> str:
    """For a terminal: figures as characters, answers behind each chapter."""
    lines = [whole.title, "=" * len(whole.title), ""]
    lines += [fill(_TEXT.line(line), WIDTH) + "\n" for line in whole.about]
    lines += [f"  {each.words}" for each in whole.contents]
    body = _TEXT.written(whole.blocks).split("\n\n")
    return "\n".join(lines) + "\n\n" + "\n\n".join(map(_wrapped, body)) + "\n"


def _wrapped(block: str) -> str:
    """A paragraph within the width; what is laid out already stays."""
    single = "\n" not in block and not block.startswith(" ")
    return fill(block, WIDTH) if single else block
