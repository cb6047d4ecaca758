"""The picture of a sweep in a file: refused before anything is computed, or written whole."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from planner.report.files import deliver
from planner.report.pictures.canvas import FORMS
from planner.report.pictures.sweep_plots import drawn
from planner.text.errors import InputError, MissingExtra

__all__ = ["pictured", "written"]

MOST = 250_000  # points of a picture


def pictured(out: Path, sizes: Sequence[int]) -> None:
    """Refuse a picture that cannot be drawn of axes with these numbers of values.

    Raises
    ------
    InputError
        If no form has its ending, it is a folder, or the sweep has too many axes or points.
    MissingExtra
        If Matplotlib is not installed.
    """
    if out.suffix.lower().removeprefix(".") not in FORMS:
        endings = ", ".join(f".{name}" for name in FORMS)
        raise InputError(f"--plot {out}: a file that ends in one of {endings} is drawn")
    if out.is_dir():
        raise InputError(f"--plot {out}: is a folder, expected a file")
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "a picture")
    several = sum(size > 1 for size in sizes)
    if several not in (1, 2) or prod(sizes) > MOST:
        raise InputError(
            f"--plot: a picture has one or two axes and at most {MOST:,} points, not "
            f"{several} axes and {prod(sizes):,} points; leave --plot out"
        )


def written(table: Any, out: Path, of: str | None, crossings: Sequence[Any] = ()) -> None:
    """Draw a column of a table into a file, with the kinks of its lines.

    Raises
    ------
    InputError
        If the column is no number, or the file cannot be written.
    """
    deliver(drawn(table, out.suffix.lower().removeprefix("."), of, crossings), out)
