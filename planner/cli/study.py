"""What matters, and what if? The commands that ask about many scenarios near one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.options import require_workers
from planner.report.files import deliver, dumps, file_format
from planner.text.console import note, show
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.sweep.run import Order, Outcome


def sensitivity(
    file: str = "serving",
    of: str = "cost",
    sets: list[str] | None = None,
    switches: bool | None = None,
    plot: Path | None = None,
    swing: float = 0.2,
    even: str | None = None,
    over: str | None = None,
    sobol: int | None = None,
    morris: int | None = None,
    seed: int = 0,
    workers: int = 1,
    json: bool = False,
) -> None:
    """Say what one percent of every given quantity is worth, and what would switch the choice."""
    from planner.report.pictures.picture_files import check_picture

    require_workers(workers)
    if (even is None) != (over is None):
        raise InputError("--break-even and --over go together: --break-even PATH=A,B --over PATH")
    drawn = sobol is not None or morris is not None
    if even is not None and (drawn or plot is not None):
        raise InputError(
            "--break-even is a question of its own; leave --sobol, --morris and --plot"
        )
    if plot is not None:
        check_picture(plot)
    if even is not None and over is not None:
        from planner.report.text.sensitivity import even_text
        from planner.sensitivity.switch_point import break_even

        points = break_even(file, even, over, of, sets or ())
        show(dumps({"break_even": points}) if json else even_text(points))
    elif drawn:
        from planner.uncertainty.global_study import run_global_sensitivity

        study = run_global_sensitivity(
            file, of, sets or (), sobol=sobol, morris=morris, seed=seed, workers=workers, shown=True
        )
        if plot is not None:
            from planner.report.pictures.value_rows import draw_study

            deliver(draw_study(study.document, file_format(plot)), plot)
        show(dumps(study.document) if json else str(study))
    else:
        from planner.sensitivity.elasticities import elasticity_table

        if not 0 < swing < 1:
            raise InputError(f"--swing {swing:g}: expected a share above 0 and below 1")
        swings = None if plot is None else swing
        table = elasticity_table(file, of, sets or (), switches=switches, swing=swings, shown=True)
        document = table.document or {}
        if plot is not None:
            from planner.report.pictures.value_rows import tornado

            deliver(tornado(document, file_format(plot)), plot)
        show(dumps(document) if json else str(table))


def sweep(
    file: str = "serving",
    over: list[str] | None = None,
    out: Path | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    resume: bool = False,
    yes: bool = False,
    certify: bool = False,
    strict: bool = False,
    sets: list[str] | None = None,
    plot: Path | None = None,
    of: str | None = None,
    json: bool = False,
) -> None:
    """Answer a scenario at every point of a grid; survives being killed."""
    if out is None:
        raise InputError("--out is missing: a table is written, such as --out sweep.parquet")
    require_workers(workers)
    if scheduler is not None and workers != 1:
        raise InputError("--workers: a cluster has workers of its own; leave --scheduler or it out")
    from planner.sweep.formats import file_kind
    from planner.sweep.run import Outcome, prepare_sweep, run_sweep
    from planner.sweep.table import SweepParts

    file_kind(out)
    order = prepare_sweep(file, over or (), sets or (), yes=yes, certify=certify, strict=strict)
    order = replace(order, workers=workers, scheduler=scheduler, shown=True)
    for axis in order.survey.grid.axes:
        if len(axis) == 1 and (text := axis.values.text(0)).startswith("["):
            words = f"one value, a list; for a point each write {axis.name}={text[1:-1]}"
            note(f"--over {axis.name}: {words}", warning=True)
    if plot is not None:
        from planner.report.pictures.picture_files import check_sweep_picture

        check_sweep_picture(plot, [len(axis) for axis in order.survey.grid.axes])
    if resume and SweepParts.finished(out, order.meta):
        outcome = Outcome(order.points, None, order.points, 0.0)
    else:
        parts = SweepParts(out, order.meta, resume=resume)
        if parts.done:
            note(f"{parts.done:,} of {order.points:,} points were solved before", warning=True)
        outcome = run_sweep(order, parts)
    _finish(order, out, plot, of, outcome, json=json)


def _finish(
    order: Order, out: Path, plot: Path | None, of: str | None, outcome: Outcome, *, json: bool
) -> None:
    """Draw and say what a finished table holds, where parts of a step cross included."""
    from planner.protocol.document import to_document
    from planner.report.pictures.picture_files import write_sweep
    from planner.report.pictures.sweep_lines import crossing_lines, sweep_text
    from planner.sweep.boundaries import boundaries, crossings
    from planner.sweep.table import Table

    table = Table.read(out)
    kinks = crossings(order.closed, table) or boundaries(order.closed, table)
    if plot is not None:
        write_sweep(table, plot, of, kinks)
    if json:
        counts = {x: getattr(outcome, x) for x in ("statuses", "resumed", "seconds")}
        crossed = {"crossings": to_document(kinks)}
        show(dumps({"out": str(out), **order.meta, **counts, **crossed}))
        return
    lines = [sweep_text(table, str(out))]
    lines += [f"{out}: is complete already"] if outcome.statuses is None else []
    show("\n".join([*lines, *crossing_lines(kinks, order.meta["units"])]))
