"""A frontier in a file: a picture, rows, the document or the text, as the file's ending says."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.report.files import deliver
from planner.report.formats import dumps
from planner.report.pictures.canvas import FORMS
from planner.report.pictures.frontier import drawn
from planner.report.text.frontier import frontier_text, rows_of
from planner.text.console import note
from planner.text.errors import InputError, MissingExtra

__all__ = ["checked", "frontier_csv", "written"]


def written(document: Mapping[str, Any], out: Path) -> None:
    """Write the frontier in the form that the file's ending says.

    Raises
    ------
    InputError
        If no form has that ending, there is nothing to draw, or the file cannot be written.
    MissingExtra
        If it is a picture and Matplotlib is not installed.
    """
    form = out.suffix.lower().removeprefix(".")
    if form in TEXTS:
        deliver(TEXTS[form](document), out)
    elif document["points"]:
        deliver(drawn(document, form), out)
    else:
        note(f"planner: {out} is not drawn: no plan keeps every promise")


def checked(out: Path) -> None:
    """Refuse, before anything is computed, a file that could not be written.

    Raises
    ------
    InputError
        If no form has its ending, or it is a folder.
    MissingExtra
        If it is a picture and Matplotlib is not installed.
    """
    form = out.suffix.lower().removeprefix(".")
    if form not in (*TEXTS, *FORMS):
        endings = ", ".join(f".{name}" for name in (*FORMS, *TEXTS))
        raise InputError(f"--out {out}: a file that ends in one of {endings} is written")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file")
    if form in FORMS and find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "a picture")


def frontier_csv(document: Mapping[str, Any]) -> str:
    """The rows as comma-separated values with a header, base units."""
    rows = rows_of(document)
    written = io.StringIO()
    names = list(rows[0]) if rows else ["tokens_per_s_per_user", "usd_per_mtok"]
    table = csv.DictWriter(written, names, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()


TEXTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "csv": frontier_csv,
    "json": dumps,
    "txt": frontier_text,
}
