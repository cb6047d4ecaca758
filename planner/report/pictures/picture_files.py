"""The picture of a budget or lifecycle beside its other files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from planner.report.files import deliver
from planner.text.console import note
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.protocol.plan import Plan

__all__ = ["PICTURED", "pictured"]

PICTURED = ("budget", "lifecycle")
NAME = "plan.svg"


def pictured(plan: Plan, folder: Path) -> None:
    """Write `plan.svg` into a folder, where the problem has a picture and there is a plan.

    Without Matplotlib, or where every choice was given and no curve is left, a note says so.
    """
    if plan.problem not in PICTURED or not plan.chosen:
        return
    if find_spec("matplotlib") is None:
        note("no picture: pip install 'token-planner[plot]'", warning=True)
        return
    from planner.problems.budget.picture import drawn

    try:
        picture = drawn(plan, "svg")
    except InputError as error:
        note(f"no picture: {error}", warning=True)
        return
    deliver(picture, folder / NAME)
