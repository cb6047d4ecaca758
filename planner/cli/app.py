"""The command line: one function a command; everything heavy is imported inside.

Answers go to standard output, warnings to standard error. Exit status: 0 answered, 1 no answer
(the promises fall short), 2 a mistake in the input, 3 a failure of ours.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import launching, lookup, measurements, study
from planner.cli.options import (
    HELP,
    as_changes,
    example_epilog,
    require_file,
    require_folder,
    warn,
    with_flag,
    with_option_help,
    with_sure,
)
from planner.report.files import check_file, deliver, dumps
from planner.text.console import QUIET_MODE, Commands, exits, show
from planner.text.errors import InputError
from planner.text.terminal import ASCII_MODE, SPINNER, use_terminal_width

if TYPE_CHECKING:
    from planner.pages.killable import Workers


def serve(port: int = 8765, folder: Path | None = None, limit: float = 60.0) -> None:
    """Answer scenarios on 127.0.0.1: a page to type them into, and REST.

    Needs Starlette and uvicorn: pip install 'token-planner[serve]'. Files that a scenario names
    are not read, unless --folder says below which they may lie.
    """
    from planner.pages.web_app import serve_http

    if not 0 <= port <= 65535:
        raise InputError(f"--port {port}: expected 0 to 65535")
    serve_http(_workers(folder, limit), port)


def mcp(folder: Path | None = None, limit: float = 60.0) -> None:
    """Answer an agent's tools by the Model Context Protocol, on standard input and output.

    Needs the protocol's SDK: pip install 'token-planner[mcp]'. Files that a scenario names are not
    read, unless --folder says below which they may lie.
    """
    from planner.pages.agent_server import serve_stdio

    serve_stdio(_workers(folder, limit))


def _workers(folder: Path | None, limit: float) -> Workers:
    """The processes that compute; InputError for a folder that is none, or a limit of nothing."""
    from planner.pages.killable import Workers
    from planner.text.terminal import SPINNER

    SPINNER.stop()
    if folder is not None and not folder.is_dir():
        raise InputError(f"--folder {folder}: is no folder")
    if not 0 < limit <= 86_400:
        raise InputError(f"--limit {limit:g}: expected more than 0 s, and a day at most")
    return Workers(folder, limit)


def report(
    file: str = "serving",
    sets: list[str] | None = None,
    out: Path | None = None,
    strict: bool = False,
    sure: bool = False,
) -> None:
    """Write the answer as one page, in which the search itself runs where it can."""
    from planner.protocol.solve import solve_with_question
    from planner.report.pages.report_page import report_page

    if out is None:
        raise InputError("--out is missing: a page is written, such as --out report.html")
    require_file(out, "report.html")
    check_file(out, "--out", ("html",), "written")
    changes = with_sure(file, sets, sure=sure)
    question, plan = solve_with_question(file, changes, strict=strict)
    warn(plan.warnings)
    deliver(report_page(plan, question, file, changes), out)


class QuestionCommands(Commands):
    """The commands, of which those that take `--set` take the flags of a question too."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Flags of a question written as the changes that they stand for."""
        name = next((word for word in args if word in self.commands), "")
        taken = {flag for x in getattr(self.commands.get(name), "params", ()) for flag in x.opts}
        if "--set" in taken:
            after = args.index(name) + 1
            args = [*args[:after], *as_changes(args[after:], taken)]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command; what a question in flags lacks is named with the flag that gives it."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            if not error.mistakes:
                raise
            raise InputError(map(with_flag, error.mistakes)) from error


app = typer.Typer(
    name="planner",
    cls=QuestionCommands,
    help="What should it cost, and what should I run? Plans for large language models.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        show(f"token-planner {version('token-planner')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no warnings")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="plain text")] = False,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="no sign beyond ASCII")] = False,
) -> None:
    """What should it cost, and what should I run? Plans for large language models."""
    QUIET_MODE.set(quiet)
    ASCII_MODE.set(ascii_only)
    use_terminal_width()
    if not quiet:
        SPINNER.start()
    if no_color:
        os.environ["NO_COLOR"] = "1"


def solve(
    file: str = "serving",
    sets: list[str] | None = None,
    json: bool = False,
    short: bool = False,
    more: bool = False,
    why: bool = False,
    sources: bool = False,
    strict: bool = False,
    sure: bool = False,
    out: Path | None = None,
    write: Path | None = None,
) -> None:
    """Answer a scenario, whatever its problem."""
    from planner.protocol.solve import scenario_text
    from planner.protocol.solve import solve as answer
    from planner.report.pictures.picture_files import draw_plan

    if short and more:
        raise InputError("--short and --more: leave one")
    require_folder(out)
    changes = with_sure(file, sets, sure=sure)
    if write is not None:
        if check_file(write, "--write", ("yaml", "yml")) and write.exists():
            raise InputError(f"--write {write} exists already; name another file")
        deliver(scenario_text(file, changes), write)
        file, changes = str(write), []
    plan = answer(file, changes, strict=strict)
    plan = plan.explained() if why else plan
    document = dumps(plan.document)
    if out is not None:
        deliver(document, out / "plan.json")
        deliver(plan.text("more"), out / "plan.txt")
        draw_plan(plan, out)
    parts = [plan.text("short" if short else "more" if more else "default")]
    parts += [plan.why()] if why else []
    parts += [plan.text("sources")] if sources else []
    show(document if json else "\n\n".join(parts))
    raise typer.Exit(0 if plan.feasible else 1)


def pareto(
    file: str = "serving",
    sets: list[str] | None = None,
    points: int = 25,
    json: bool = False,
    strict: bool = False,
    sure: bool = False,
    out: Path | None = None,
) -> None:
    """Show price against speed, or cost against quality: the best plan at each level."""
    from planner.protocol.solve import pareto as answer
    from planner.protocol.trade_off import MAX_POINTS
    from planner.report.pictures.picture_files import TEXT_WRITERS, check_picture, write_frontier

    if not 2 <= points <= MAX_POINTS:
        raise InputError(f"--points: {points} is not between 2 and {MAX_POINTS}")
    if out is not None:
        check_picture(out, "--out", tuple(TEXT_WRITERS))
    curve = answer(file, with_sure(file, sets, sure=sure), points, strict=strict)
    warn(curve.warnings)
    if out is not None:
        write_frontier(curve, out)
    show(dumps(curve.document) if json else str(curve))
    raise typer.Exit(0 if curve.status != "infeasible" else 1)


def check(files: list[str], sets: list[str] | None = None, json: bool = False) -> None:
    """Validate scenarios without solving them."""
    from planner.protocol.solve import check as checked
    from planner.scenario import resolve_keys

    rows: list[dict[str, object]] = []
    lines: list[str] = []
    refused: list[InputError] = []
    for file in files:
        try:
            scenario = checked(file, sets or ())
        except InputError as error:
            refused.append(error)
            continue
        rows.append({"status": "ok", "scenario": resolve_keys(scenario)})
        lines.append(f"{file}: ok ({scenario.problem})")
    if lines and not (json and refused):
        show(dumps(rows[0] if len(files) == 1 else rows) if json else "\n".join(lines))
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise InputError(mistake for error in refused for mistake in error.mistakes)


def init(kind: str = "serving", sets: list[str] | None = None, out: Path | None = None) -> None:
    """Write a starter scenario, commented; with flags, the one that they make."""
    from planner.protocol.solve import starter_text

    text = starter_text(kind, sets or ())
    if out is not None and out.exists():
        raise InputError(f"--out {out} exists already; name another file")
    deliver(text, out)


COMMAND_NAMES = {"import_launch": "import"}  # a word of Python is no name of a function

for _command in (
    solve, launching.fit, pareto, check, init, lookup.model, lookup.catalog, lookup.formula,
    lookup.derive, launching.export, report, launching.import_launch, lookup.schema,
    launching.diff, launching.gate, serve, mcp, measurements.calibrate, measurements.measure,
    study.sensitivity, lookup.topology, study.sweep, measurements.validate,
):  # fmt: skip
    _name = COMMAND_NAMES.get(_command.__name__, _command.__name__)
    app.command(_name, epilog=example_epilog(_name))(with_option_help(_command))
Commands.groups = HELP["groups"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; what goes wrong on purpose is one message, no traceback."""
    # Objects loaded at the start live until the end; searching them again frees no memory.
    gc.set_threshold(100_000)  # new objects between two searches for garbage
    with exits():
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
