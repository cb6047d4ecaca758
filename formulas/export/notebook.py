"""A Jupyter notebook whose cells check every statement again with this package."""

import json
import re
from collections.abc import Iterator

from formulas.export.formula_document import FormulaDocument, FormulaEntry, solved_symbols
from formulas.export.plain_text import MARKDOWN, cover
from formulas.registry import module_of


def notebook(whole: FormulaDocument) -> str:
    """JSON of format 4.5: the cover, then each object in words and as code that checks it."""
    cells: list[dict[str, object]] = [words_cell("cover", cover(whole))]
    if whole.cases:
        cells.append(code_cell("cases", _cases(whole)))
    if whole.claims:
        cells.append(words_cell("claims", "\n\n".join(MARKDOWN.claims(whole))))
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            words = f"## {chapter.title}\n\n{chapter.about}"
            cells.append(words_cell(f"chapter-{chapter.subject}", words))
        for entry in chapter.entries:
            cells += _entry(entry, whole)
    return notebook_json(cells, whole.title)


def notebook_json(cells: list[dict[str, object]], title: str) -> str:
    """A notebook of these cells, as JSON of format 4.5."""
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "title": title,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _entry(entry: FormulaEntry, whole: FormulaDocument) -> Iterator[dict[str, object]]:
    yield words_cell(f"{entry.anchor}-words", MARKDOWN.section(entry, whole))
    if not entry.python:
        return  # it lives in no module that a cell could import
    lines = [
        f"from {module_of(entry.home)} import {entry.python}",
        "",
        f"assert {entry.python}.check()",
        f"print({entry.python}.latex())",
    ]
    measured = [size for size in entry.sizes if size.size is not None]
    lines += [
        f"print({case!r}, {entry.python}.strain({_without(entry, case, whole)}))"
        for case in dict.fromkeys(size.case for size in measured)
    ]
    yield code_cell(f"{entry.anchor}-check", "\n".join([*lines, entry.python]))


def _without(entry: FormulaEntry, case: str, whole: FormulaDocument) -> str:
    """The case without the symbols that the derivation itself finds."""
    missing = sorted(x for x in solved_symbols(entry.item) if x in whole.cases[case])
    values = f"cases[{case!r}]"
    return f"{{x: v for x, v in {values}.items() if x not in {missing!r}}}" if missing else values


def _cases(whole: FormulaDocument) -> str:
    lines = ["cases = {"]
    for name, values in whole.cases.items():
        inner = ", ".join(f"{x!r}: {float(v)!r}" for x, v in values.items())
        lines.append(f"    {name!r}: {{{inner}}},")
    return "\n".join([*lines, "}"])


def words_cell(key: str, source: str) -> dict[str, object]:
    """A cell of Markdown."""
    return {
        "cell_type": "markdown",
        "id": _id(key),
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }


def code_cell(key: str, source: str) -> dict[str, object]:
    """A cell of Python, not yet run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": _id(key),
        "metadata": {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def _id(key: str) -> str:
    """1 to 64 of the characters that the format allows in the id of a cell."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", key)[-64:]
