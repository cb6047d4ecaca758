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


def listing(entries: Iterable[str], *, title: str = "", depth: int = 1) -> str:
    """A table of contents; entries are relative to the page."""
    caption = f":caption: {title}\n" if title else ""
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:maxdepth: {depth}\n{caption}\n{lines}\n```\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are Markdown in which a bar is escaped."""
    top = list(heads)
    lines = [top, ["---"] * len(top), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def raw(html: str) -> str:
    """HTML as it is."""
    return f'````{{raw}} html\n<div class="formulas">\n{html}\n</div>\n````\n'
