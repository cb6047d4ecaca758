"""Markdown as the site reads it: words, titles, tables, lists of pages."""

from __future__ import annotations

from collections.abc import Iterable

SPECIAL = "\\`*_{}[]<>|$#"


def words(text: str) -> str:
    """Words in which Markdown finds nothing to act on, on one line."""
    return "".join(f"\\{x}" if x in SPECIAL else x for x in " ".join(text.split()))


def code(text: str) -> str:
    """A word set as code, for a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def head(title: str, anchor: str) -> str:
    """A title of a page with the name by which other pages link to it."""
    return f"({anchor})=\n\n# {title}\n\n"


def listing(entries: Iterable[str], *, hidden: bool = False) -> str:
    """A table of contents; entries are relative to the page. Hidden where the page has its own."""
    shown = ":hidden:\n" if hidden else ":maxdepth: 1\n"
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n{shown}\n{lines}\n```\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are Markdown in which a bar is escaped."""
    top = list(heads)
    lines = [top, ["---"] * len(top), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def raw(html: str) -> str:
    """HTML as it is."""
    return f'````{{raw}} html\n<div class="formulas">\n{html}\n</div>\n````\n'
