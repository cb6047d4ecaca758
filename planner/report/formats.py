"""A document as JSON: one value, finite numbers only, keys in the order of the interface.

A PDF from Typst's markup, made here, with the fonts that come with it.
"""

from __future__ import annotations

import json
from typing import Any

from planner.text.errors import MissingExtra, SolverError


def dumps(document: Any) -> str:
    """The document as indented JSON text.

    Raises
    ------
    ValueError
        If a number in it is not finite: NaN and Infinity are no JSON.
    """
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def pdf(markup: str) -> bytes:
    """The document as PDF.

    Raises
    ------
    MissingExtra
        If `typst` is not installed.
    SolverError
        If the markup does not compile: a fault of ours.
    """
    try:
        import typst
    except ImportError as error:
        raise MissingExtra("typst", "pdf", "a PDF") from error
    try:
        made = typst.compile(markup.encode(), ignore_system_fonts=True, format="pdf")
    except RuntimeError as error:
        raise SolverError(f"typst: {error}") from error
    if not isinstance(made, bytes):
        raise SolverError("typst made something else than one PDF")
    return made
