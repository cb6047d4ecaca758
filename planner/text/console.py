"""Terminal interface: output streams, options of every command, errors, progress of a sweep.

Answers go to standard output, messages and warnings to standard error; `--quiet` keeps back the
warnings. A reader who has seen enough (`| head`) is no fault; a full disk is one.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import ClassVar, NoReturn, Protocol, TextIO

import typer
from typer.core import TyperGroup

from planner.text.errors import InputError, PlannerError, SolverError, errors_with_carets, escape
from planner.text.terminal import SPINNER, terminal_text

QUIET_MODE: ContextVar[bool] = ContextVar("quiet", default=False)
GLOBAL_OPTIONS = {"--quiet", "-q", "--no-color", "--ascii"}


class HelpLines(Protocol):
    """Protocol of the help formatter, from either library that typer uses."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """Write a title, with indented content below it."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names with their descriptions."""


class Commands(TyperGroup):
    """The commands; options of the program are taken on either side of a command's name.

    `groups` are names of commands under the titles of the help, every command in one of them.
    """

    groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Move the options that every command has to the front, those after `--` excepted."""
        end = args.index("--") if "--" in args else len(args)
        ours = [word for word in args[:end] if word in GLOBAL_OPTIONS]
        rest = [word for word in args[:end] if word not in GLOBAL_OPTIONS]
        return super().parse_args(ctx, [*ours, *rest, *args[end:]])

    def format_commands(self, ctx: typer.Context, formatter: HelpLines) -> None:  # type: ignore[override]
        """The commands under the titles of their groups, each with its whole sentence."""
        for title, names in self.groups.items():
            rows = [
                (name, (self.commands[name].help or "").split("\n\n")[0].replace("\n", " "))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@contextmanager
def exits() -> Iterator[None]:
    """Convert any error inside to a single message and its exit status, without a traceback.

    `PLANNER_TRACEBACK=1` in the environment shows where a fault of ours came from.
    """
    try:
        try:
            yield
        finally:
            SPINNER.stop()
    except SystemExit as end:
        if end.code == 130:  # 128 + SIGINT: what Typer makes of Ctrl-C, without a word
            note("planner: interrupted")
        raise
    except PlannerError as error:
        # A mistake with a place begins with its file, as editors expect.
        mistakes = error.mistakes if isinstance(error, InputError) else ()
        words = "\n".join(map(escape, str(error).splitlines()))
        _leave(errors_with_carets(mistakes) or f"planner: {words}", error.exit_status)
    except OSError as error:
        _leave(f"planner: {error.filename or 'output'}: {error.strerror or error}", 3)
    except Exception as error:
        if os.environ.get("PLANNER_TRACEBACK"):
            note(traceback.format_exc())
        fault = " ".join(str(error).split())[:300]
        last = traceback.extract_tb(error.__traceback__)[-1]
        _leave(
            f"planner: a fault of ours: {type(error).__name__}: {fault} "
            f"({Path(last.filename).name}, line {last.lineno}); please report it with the "
            "scenario (PLANNER_TRACEBACK=1 shows more)",
            3,
        )


def show(content: str | bytes, *, exact: bool = False) -> None:
    """Print an answer, text with a newline; raises SolverError where it cannot be printed.

    On a terminal lines fit its width and titles have weight, unless the text must be `exact`.
    """
    SPINNER.stop()
    if isinstance(content, str) and not exact:
        content = terminal_text(content)
    if sys.stdout is None:  # stdout was closed before the start
        return
    try:
        typer.echo(content, nl=isinstance(content, str))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise SolverError(f"standard output: {error.strerror}; print it elsewhere") from error


def note(text: str, *, warning: bool = False) -> None:
    """Print a message to standard error; a warning is suppressed by `--quiet`."""
    if sys.stderr is None or (warning and QUIET_MODE.get()):
        return
    SPINNER.stop()
    try:
        typer.echo(text, err=True)
    except OSError:
        # Writing to stderr failed: no channel is left to report it.
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leave(text: str, status: int) -> NoReturn:
    note(text)
    sys.exit(status)


SMOOTHING = 30.0  # seconds over which the rate is taken


@contextmanager
def progress(total: int, done: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of points that were added.

    Nothing is drawn unless `shown`, with `--quiet`, or where nobody watches.
    """
    if not shown or QUIET_MODE.get() or sys.stderr is None or not sys.stderr.isatty():
        yield lambda points: None
        return
    SPINNER.stop()
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
        *columns, console=Console(stderr=True), speed_estimate_period=SMOOTHING, transient=True
    ) as bar:
        task = bar.add_task("sweep", total=total, completed=done)
        yield lambda points: bar.advance(task, points)
