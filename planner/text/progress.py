"""How far a sweep is, on standard error: a bar with rate and time left, for people only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from planner.text.console import QUIET

__all__ = ["progress"]

SMOOTHED = 30.0  # seconds over which the rate is taken


@contextmanager
def progress(total: int, done: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of points that were added.

    Nothing is drawn unless `shown`, with `--quiet`, or where nobody watches.
    """
    if not shown or QUIET.get() or sys.stderr is None or not sys.stderr.isatty():
        yield lambda points: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task
    from rich.progress import TimeRemainingColumn as Left
    from rich.text import Text

    class Rate(ProgressColumn):
        """Points per second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.3g} points/s")

    columns = (BarColumn(), MofNCompleteColumn(), Rate(), Left(), "left")
    with Progress(
        *columns, console=Console(stderr=True), speed_estimate_period=SMOOTHED, transient=True
    ) as bar:
        task = bar.add_task("sweep", total=total, completed=done)
        yield lambda points: bar.advance(task, points)
