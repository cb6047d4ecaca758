"""The command line: one function a command; everything heavy is imported inside.

Answers go to standard output, warnings to standard error. Exit status: 0 answered, 1 no answer
(the promises fall short), 2 a mistake in the input, 3 a failure of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.errors import InputError, PlannerError

__all__ = ["app", "main"]

app = typer.Typer(
    name="planner",
    help="What should it cost, and what should I run? Plans for large language models.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[str, typer.Argument(metavar="FILE", help="scenario: YAML, TOML, JSON, or -")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change one value")
]
Out = Annotated[Path | None, typer.Option("--out", help="write here instead of printing")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no warnings")]


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="plain text")] = False,
) -> None:
    """What should it cost, and what should I run? Plans for large language models."""
    if no_color:
        os.environ["NO_COLOR"] = "1"
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"token-planner {installed('token-planner')}")
        raise typer.Exit


@app.command()
def solve(
    file: File,
    sets: Sets = None,
    json: Json = False,
    why: Annotated[
        bool, typer.Option("--why", help="what binds, elasticities, closed form")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="folder for plan.json, plan.txt")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Answer a scenario, whatever its problem."""
    from planner.answer import solve as answer
    from planner.report.json import dumps
    from planner.report.text import answer as text

    plan = answer(file, sets or ())
    if not quiet:
        for warning in plan.warnings:
            _say(f"warning: {warning}")
    shown = text(plan) + (f"\n\n{plan.why()}" if why else "")
    if out is not None:
        _write(out / "plan.json", dumps(plan.document))
        _write(out / "plan.txt", shown)
    typer.echo(dumps(plan.document) if json else shown)
    raise typer.Exit(0 if plan.status == "optimal" else 1)


@app.command()
def check(file: File, sets: Sets = None, json: Json = False) -> None:
    """Validate a scenario without solving it."""
    from planner.report.json import dumps
    from planner.scenario import load, resolved

    scenario = load(file, sets or ())
    if json:
        typer.echo(dumps({"status": "ok", "scenario": resolved(scenario)}))
    else:
        typer.echo(f"{file}: a sound scenario ({scenario.problem})")


@app.command()
def init(
    kind: Annotated[str, typer.Argument(help="which problem")] = "serving", out: Out = None
) -> None:
    """Write a commented starter scenario."""
    from planner.starter import starter

    text = starter(kind)
    if out is None:
        typer.echo(text.rstrip("\n"))
        return
    if out.exists():
        raise InputError(f"{out} is there already; name another file")
    _write(out, text)


@app.command()
def model(
    name: Annotated[str, typer.Argument(metavar="NAME_OR_CONFIG", help="catalogue name or path")],
    json: Json = False,
) -> None:
    """Say what a model is made of."""
    from planner.report.json import dumps
    from planner.report.models import described, model_text

    found = described(name)
    typer.echo(dumps(found) if json else model_text(found))


@app.command()
def catalog(
    kind: Annotated[
        str | None, typer.Argument(help="chips, systems, models, prices, profiles")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="one entry")] = None,
    json: Json = False,
) -> None:
    """Show what is known, with source and date of every figure."""
    from planner.report.catalog import catalog_text, listed
    from planner.report.json import dumps

    found = listed(kind, name)
    typer.echo(dumps(found) if json else catalog_text(found))


@app.command()
def formula(
    name: Annotated[str | None, typer.Argument(help="equation, by name, title or symbol")] = None,
    solve_for: Annotated[str | None, typer.Option("--solve-for", metavar="SYMBOL")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="SYMBOL=VALUE", help="give a value")
    ] = None,
    json: Json = False,
) -> None:
    """Show one equation: text, symbols with units, source, value."""
    from planner.report.formulas import formula_text, formulas_text, one_formula, the_formulas
    from planner.report.json import dumps

    if name is None:
        rows = the_formulas()
        typer.echo(dumps(rows) if json else formulas_text(rows))
        return
    found = one_formula(name, solve_for, sets or ())
    typer.echo(dumps(found) if json else formula_text(found))


@app.command()
def derive(
    name: Annotated[str | None, typer.Argument(help="derivation")] = None,
    every: Annotated[bool, typer.Option("--all", help="all of them")] = False,
    form: Annotated[str, typer.Option("--format", help="text, markdown or latex")] = "text",
    out: Out = None,
    json: Json = False,
) -> None:
    """List the derivations, or print one with every step checked on the way."""
    from planner.report.formulas import derivation_rows, derivations_text, derived
    from planner.report.json import dumps

    if name is None and not every:
        rows = derivation_rows()
        typer.echo(dumps(rows) if json else derivations_text(rows))
        return
    text = derived(name, form)
    if out is None:
        typer.echo(text.rstrip("\n"))
    else:
        _write(out, text)


@app.command()
def schema(out: Out = None) -> None:
    """Print the JSON Schema of the scenario, for editors."""
    from planner.report.json import dumps
    from planner.scenario import json_schema

    text = dumps(json_schema())
    if out is None:
        typer.echo(text)
    else:
        _write(out, text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; what goes wrong on purpose is one message, no traceback."""
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except PlannerError as error:
        # A mistake with a place begins with its file, as editors expect.
        placed = isinstance(error, InputError) and error.mistakes
        _leave(str(error) if placed else f"planner: {error}", error.exit_status)
    except BrokenPipeError:
        # Whoever read the answer has seen enough. Nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _leave("planner: interrupted", 130)
    except OSError as error:
        _leave(f"planner: {error.filename or 'output'}: {error.strerror}", 3)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    part.replace(path)
    _say(f"wrote {path}")


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _leave(text: str, status: int) -> None:
    _say(text)
    sys.exit(status)
