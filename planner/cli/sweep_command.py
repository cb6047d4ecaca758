"""The command `planner sweep`: its options, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.text.console import note, show
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.sweep.boundaries import Boundary
    from planner.sweep.crossings import Crossing
    from planner.sweep.run import Order

__all__ = ["sweep"]

File = Annotated[str, typer.Argument(metavar="FILE", help="scenario: YAML, TOML, JSON, or -")]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", metavar="PATH=SPEC", help="8,16 or 1..8 or lin(1..9,5) or log(1k..200k,20)"
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="the table: .parquet, .csv or .jsonl", metavar="FILE")
]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="processes that solve")]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Dask: tcp://host:8786")
]
Resume = Annotated[bool, typer.Option("--resume", help="go on with what an earlier run left")]
Yes = Annotated[bool, typer.Option("--yes", help="however many points there are")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change one value")
]
Picture = Annotated[
    Path | None, typer.Option("--plot", help="draw it too: .svg, .png or .pdf", metavar="FILE")
]
Quantity = Annotated[
    str | None, typer.Option("--of", metavar="COLUMN", help="what is drawn; else the cost")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def sweep(
    file: File,
    over: Over = None,
    out: Out = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    resume: Resume = False,
    yes: Yes = False,
    sets: Sets = None,
    plot: Picture = None,
    of: Quantity = None,
    json: Json = False,
) -> None:
    """Answer a scenario at every point of a grid; survives being killed."""
    if out is None:
        raise InputError("--out is missing: a table is written, such as --out sweep.parquet")
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")
    if scheduler is not None and workers != 1:
        raise InputError("--workers: a cluster has workers of its own; leave --scheduler or it out")
    from planner.report.formats import dumps
    from planner.report.pictures.sweep_files import pictured, written
    from planner.report.pictures.sweep_lines import crossing_lines
    from planner.sweep.formats import kind_of
    from planner.sweep.parts import Parts
    from planner.sweep.run import executed, ordered
    from planner.sweep.table import Table

    kind_of(out)
    order = ordered(file, over or (), sets or (), yes=yes)
    if plot is not None:
        pictured(plot, [len(axis) for axis in order.survey.grid.axes])
    document: dict[str, Any] = {"out": str(out), **order.meta}
    if resume and Parts.finished(out, order.meta):
        kinks = _kinks(order, out)
        document |= {"statuses": None, "resumed": order.points, "seconds": 0.0}
        document |= {"crossings": [each.document() for each in kinks]}
        if plot is not None:
            written(Table.read(out), plot, of, kinks)
        lines = [f"{out}: is complete already", *crossing_lines(kinks, order.meta["units"])]
        show(dumps(document) if json else "\n".join(lines))
        return
    parts = Parts(out, order.meta, resume=resume)
    if parts.done:
        note(f"{parts.done:,} of {order.points:,} points were kept", warning=True)
    found = executed(order, parts, workers=workers, scheduler=scheduler)
    document |= {
        "statuses": dict(found.statuses), "resumed": found.resumed, "seconds": found.seconds
    }  # fmt: skip
    kinks = _kinks(order, out)
    document |= {"crossings": [each.document() for each in kinks]}
    if plot is not None:
        written(Table.read(out), plot, of, kinks)
    if json:
        show(dumps(document))
        return
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(found.statuses.items()))
    show(f"{out}: {found.points:,} points by {order.method}, {counts}; {found.seconds:.3g} s")
    for line in crossing_lines(kinks, order.meta["units"]):
        show(line)


def _kinks(order: Order, out: Path) -> list[Crossing] | list[Boundary]:
    """Where another part of a step becomes the largest, along lines or on the map of a table."""
    if order.closed is None:
        return []
    from planner.sweep.boundaries import boundaries
    from planner.sweep.crossings import MOST, crossings
    from planner.sweep.table import Table

    if order.points > MOST:
        return []
    table = Table.read(out)
    return crossings(order.closed, table) or boundaries(order.closed, table)
