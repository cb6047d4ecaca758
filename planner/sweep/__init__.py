"""Many scenarios from one: a grid over any of its paths, each point a row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.scenario.loading import Source
    from planner.sweep.table import Table

__all__ = ["sweep"]


def sweep(
    source: Source,
    over: Mapping[str, object] | Sequence[str],
    sets: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    resume: bool = False,
    yes: bool = False,
    certify: bool = False,
    strict: bool = False,
    progress: bool = False,
) -> Table:
    """Answer a scenario at every point of a grid; a labelled table with a row for each.

    Raises InputError with every mistake in the scenario and in the grid; SolverError if the disk or
    the cluster is at fault; what was computed is kept.

    Args:
        source: what `planner.solve` takes.
        over: {path: values}, where values are a list or a text such as "log(1k..200k,20)"; or
            "PATH=SPEC" texts as `--over` takes them. The last path varies fastest.
        sets: changes "path.in.file=value" made before.
        out: write the table here too (.parquet, .csv or .jsonl), in parts that survive being
            killed.
        workers: processes that solve. A script that asks for more than one must guard its own
            beginning by `if __name__ == "__main__":`, as everywhere in `multiprocessing`.
        scheduler: address of a Dask scheduler, whose workers solve instead.
        resume: go on with the parts that an earlier run left beside `out`.
        yes: compute a grid however many points it has.
        certify: prove the gap of every point to an independent bound too.
        strict: refuse points of which the plan rests on what no measured row covers.
        progress: draw a bar on standard error.
    """
    from planner.sweep.run import compute_missing, prepare_sweep, run_sweep
    from planner.sweep.table import Memory, SweepParts, Table

    if workers < 1:
        raise InputError(f"workers: expected at least 1, got {workers}")
    order = prepare_sweep(source, over, sets, yes=yes, certify=certify, strict=strict)
    order = replace(order, workers=workers, scheduler=scheduler, shown=progress)
    if out is None:
        memory = Memory()
        compute_missing(order, memory)
        return Table(memory.columns(), order.meta, None)
    file = Path(out)
    if not (resume and SweepParts.finished(file, order.meta)):
        run_sweep(order, SweepParts(file, order.meta, resume=resume))
    return Table.read(file)
