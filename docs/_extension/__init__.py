"""What the site adds to Sphinx: pages made of the project, formulas as MathML, a short tree.

Pages are made before any is read, and anew only where a file that they are made of has changed.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from _extension.generated_pages import ROOT, pages
from formulas.export.typesetting.layout import notation
from formulas.export.typesetting.markup import mathml

FOLDER = ROOT / "docs" / "generated"
SOURCES = ("planner", "formulas", "topologies", "examples", "docs/_extension")


def setup(app: Sphinx) -> dict[str, bool]:
    """Hook all of it in."""
    app.connect("builder-inited", make_pages)
    app.connect("source-read", name_files)
    app.connect("autodoc-process-docstring", set_parameters, priority=400)
    app.connect("html-page-context", shorten_tree, priority=400)  # before the theme asks for it
    app.connect("build-finished", name_landmarks)
    app.add_html_math_renderer("symbols", (set_symbol, None), (set_symbol, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def make_pages(app: Sphinx) -> None:
    """Put the pages into their folder; a page that is as it was is not read again by Sphinx."""
    stamp = FOLDER / "stamp.txt"
    files = [file for name in SOURCES for file in (ROOT / name).rglob("*") if file.is_file()]
    dates = sorted(str(x.stat().st_mtime_ns) for x in files if x.suffix != ".pyc")
    made_of = "\n".join(dates)
    if stamp.exists() and stamp.read_text("utf-8") == made_of:
        return
    written = {FOLDER / f"{name}.md": text for name, text in pages().items()}
    for old in set(FOLDER.rglob("*.md")) - written.keys():
        old.unlink()
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
    stamp.write_text(made_of, "utf-8")


def name_files(app: Sphinx, page: str, source: list[str]) -> None:
    """A block whose first line names a file, such as `yaml plan.yaml`, shows the name above it."""
    named = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
    source[0] = named.sub(r"```{code-block} \1\n:caption: \2\n", source[0])


def set_parameters(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Docstrings say what a parameter is behind its colon, where a type is looked for."""
    behind = re.compile(r"^([\w*][\w*, ]*) : (.+)")
    lines[:] = [line for each in lines for line in behind.sub(r"\1\n    \2", each).split("\n")]


def shorten_tree(
    app: Sphinx, page: str, template: str, context: dict[str, object], tree: nodes.document | None
) -> None:
    """At the side stands the branch of the page: the whole tree is most of a build's time."""
    whole = context.get("toctree")
    if callable(whole):
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


REPLACED = (  # what the theme writes, and what a screen reader and a keyboard need of it
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Site">'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    ('class="caption" role="heading">', 'class="caption" role="heading" aria-level="2">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<th class="head"><p></p></th>', '<td class="head"></td>'),
    ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">'),
)


def name_landmarks(app: Sphinx, error: Exception | None) -> None:
    """Both sides of a page have names, captions a level, and what scrolls can be scrolled by keys;
    no head of a table is empty.

    The theme's templates have no place for it.
    """
    if error is not None or app.builder.name != "html":
        return
    for file in Path(app.outdir).rglob("*.html"):
        text = mended = file.read_text("utf-8")
        for old, new in REPLACED:
            mended = mended.replace(old, new)
        if mended != text:
            file.write_text(mended, "utf-8")


def set_symbol(self: HTML5Translator, node: nodes.math) -> None:
    """MathML of a symbol, for which a browser needs neither a script nor a network."""
    self.body.append(mathml(notation(node.astext())))
    raise nodes.SkipNode
