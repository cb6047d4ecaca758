"""What `planner export` writes: a scenario solved, and its plan in an engine's words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.engines import TARGETS, Export, export, known
from planner.protocol.solve import solve
from planner.text.console import note
from planner.text.errors import InputError

__all__ = ["exported"]


def exported(
    file: str, to: str | None, engine: str | None, sets: Sequence[str], out: Path | None
) -> Export:
    """The plan of a scenario file for the engine or target named by either option.

    Raises
    ------
    InputError
        If none or an unknown one is named, or `out` is no folder; before anything is solved.
    Infeasible
        If there is no plan, or the engine cannot run it.
    """
    target = to or engine
    if target is None:
        raise InputError(f"say for what with --engine, one of {', '.join(TARGETS)}")
    known(target, engine if to else None)
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file, expected a folder")
    plan = solve(file, sets)
    for warning in plan.warnings:
        note(f"warning: {warning}", warning=True)
    folder = Path() if file == "-" else Path(file).parent
    return export(plan, target, engine if to else None, folder)
