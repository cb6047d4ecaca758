"""Answers in files: refused before anything is computed, or written in the form of their ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from planner.protocol.problem import HasPicture, get_problem
from planner.protocol.trade_off import ParetoFrontier
from planner.report.files import check_file, deliver, dumps, file_format
from planner.report.pictures.section_bars import SectionBars
from planner.report.pictures.style import FORMS
from planner.text.console import note
from planner.text.errors import InputError, MissingExtra
from planner.text.tables import csv_text

if TYPE_CHECKING:
    from planner.protocol.plan import Plan
    from planner.protocol.problem import FrontierAnswer
    from planner.report.pictures.sweep_axes import SweptTable
    from planner.report.pictures.sweep_lines import Kinks

PLAN_CHART_NAME = "plan.svg"
MAX_POINTS = 250_000  # points of a picture of a sweep


def check_picture(out: Path, option: str = "--plot", texts: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a file that could not be written.

    Raises InputError if no form has its ending, or it is a folder; MissingExtra if it is a picture
    and Matplotlib is not installed.

    Args:
        texts: other forms than pictures that are written too.
    """
    form = check_file(out, option, (*FORMS, *texts), "written" if texts else "drawn")
    if form in FORMS and find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "a picture")


def draw_plan(plan: Plan, folder: Path) -> None:
    """Write `plan.svg` into a folder for a feasible plan: the kind's chart, or its section bars.

    Without Matplotlib, or where every choice was given and no curve is left, a note says so.
    """
    problem = get_problem(plan.problem)
    if not plan.chosen:
        return
    if find_spec("matplotlib") is None:
        note("no picture: pip install 'token-planner[plot]'", warning=True)
        return
    try:
        drawing = problem.picture(plan) if isinstance(problem, HasPicture) else SectionBars(plan)
        picture = drawing.draw("svg")
    except InputError as error:
        note(f"no picture: {error}", warning=True)
        return
    deliver(picture, folder / PLAN_CHART_NAME)


def write_frontier(frontier: FrontierAnswer, out: Path) -> None:
    """Write the frontier in the form that the file's ending says.

    Raises InputError if the file cannot be written.
    """
    form = file_format(out)
    if form in TEXT_WRITERS:
        deliver(TEXT_WRITERS[form](frontier), out)
    elif frontier.rows:
        from planner.report.pictures.frontier_curve import draw_frontier, draw_pareto

        drawn = (
            draw_pareto(frontier, form)
            if isinstance(frontier, ParetoFrontier)
            else draw_frontier(frontier.document, form)
        )
        deliver(drawn, out)
    else:
        note(f"planner: {out} is not drawn: no plan keeps every promise")


def frontier_csv(frontier: FrontierAnswer) -> str:
    """The rows as comma-separated values with a header, base units."""
    names = ["tokens_per_s_per_user", "usd_per_mtok"]
    if isinstance(frontier, ParetoFrontier):
        names = [frontier.limited.name, frontier.objective.name]
    if frontier.rows:
        names = list(frontier.rows[0])
    return csv_text([names, *(map(row.get, names) for row in frontier.rows)])


TEXT_WRITERS: Mapping[str, Callable[[FrontierAnswer], str]] = {
    "csv": frontier_csv,
    "json": lambda frontier: dumps(frontier.document),
    "txt": str,
}


def check_sweep_picture(out: Path, sizes: Sequence[int]) -> None:
    """`check_picture` for a sweep whose axes have these numbers of values.

    Raises InputError also if the sweep has too many axes or points.
    """
    check_picture(out)
    several = sum(size > 1 for size in sizes)
    if several not in (1, 2) or prod(sizes) > MAX_POINTS:
        raise InputError(
            f"--plot: a picture has one or two axes and at most {MAX_POINTS:,} points, not "
            f"{several} axes and {prod(sizes):,} points; leave --plot out"
        )


def write_sweep(table: SweptTable, out: Path, of: str | None, crossings: Kinks = ()) -> None:
    """Draw a column of a table into a file, with the kinks of its lines.

    Raises InputError if the column is no number, or the file cannot be written.
    """
    from planner.report.pictures.sweep_lines import draw_sweep

    deliver(draw_sweep(table, file_format(out), of, crossings), out)
