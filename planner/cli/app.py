"""The command line: one function a command; everything heavy is imported inside.

Answers go to standard output, warnings to standard error. Exit status: 0 answered, 1 no answer
(the promises fall short), 2 a mistake in the input, 3 a failure of ours.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.lookup import topology
from planner.cli.measure_command import measure
from planner.cli.measurements import calibrate
from planner.cli.study import sensitivity
from planner.cli.sweep_command import sweep
from planner.cli.validation_command import validate
from planner.text.console import QUIET, Commands, exits, note, show
from planner.text.errors import InputError

__all__ = ["app", "main"]

app = typer.Typer(
    name="planner",
    cls=Commands,
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
) -> None:
    """What should it cost, and what should I run? Plans for large language models."""
    QUIET.set(quiet)
    if no_color:
        os.environ["NO_COLOR"] = "1"


@app.command()
def solve(
    file: File,
    sets: Sets = None,
    json: Json = False,
    why: Annotated[
        bool, typer.Option("--why", help="what binds, elasticities, closed form")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="folder for plan.json, plan.txt, and plan.svg of budgets"),
    ] = None,
) -> None:
    """Answer a scenario, whatever its problem."""
    from planner.protocol.solve import solve as answer
    from planner.report.files import deliver
    from planner.report.formats import dumps
    from planner.report.pictures.picture_files import pictured

    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file, expected a folder")
    plan = answer(file, sets or ())
    for warning in plan.warnings:
        note(f"warning: {warning}", warning=True)
    plan = plan.explained() if why else plan
    document = dumps(plan.document)
    shown = str(plan) + (f"\n\n{plan.why()}" if why else "")
    if out is not None:
        deliver(document, out / "plan.json")
        deliver(shown, out / "plan.txt")
        pictured(plan, out)
    show(document if json else shown)
    raise typer.Exit(0 if plan.status == "optimal" else 1)


@app.command()
def pareto(
    file: File,
    sets: Sets = None,
    points: Annotated[int, typer.Option("--points", help="speeds to look at")] = 25,
    json: Json = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="write it: .svg .png .pdf .csv .json .txt")
    ] = None,
) -> None:
    """Show price against speed: the cheapest plan at each speed, and its layout."""
    from planner.report.formats import dumps
    from planner.report.pictures.frontier_files import checked, written
    from planner.report.text.frontier import frontier_text
    from planner.report.text.frontier import pareto as answer

    if out is not None:
        checked(out)
    found = answer(file, sets or (), points)
    for warning in found.warnings:
        note(f"warning: {warning}", warning=True)
    if out is not None:
        written(found.document, out)
    show(dumps(found.document) if json else frontier_text(found.document))
    raise typer.Exit(0 if found.frontier.status == "optimal" else 1)


@app.command()
def check(file: File, sets: Sets = None, json: Json = False) -> None:
    """Validate a scenario without solving it."""
    from planner.report.formats import dumps
    from planner.scenario import load, resolved

    scenario = load(file, sets or ())
    if json:
        show(dumps({"status": "ok", "scenario": resolved(scenario)}))
    else:
        show(f"{file}: a sound scenario ({scenario.problem})")


@app.command()
def init(
    kind: Annotated[str, typer.Argument(help="which problem")] = "serving", out: Out = None
) -> None:
    """Write a commented starter scenario."""
    from planner.report.files import deliver
    from planner.scenario.starter import starter

    text = starter(kind)
    if out is not None and out.exists():
        raise InputError(f"--out {out}: is there already; name another file")
    deliver(text, out)


@app.command()
def model(
    name: Annotated[str, typer.Argument(metavar="NAME_OR_CONFIG", help="catalogue name or path")],
    json: Json = False,
) -> None:
    """Say what a model is made of."""
    from planner.report.formats import dumps
    from planner.report.text.catalog import described, model_text

    found = described(name)
    show(dumps(found) if json else model_text(found))


@app.command()
def catalog(
    kind: Annotated[
        str | None, typer.Argument(help="chips, systems, models, prices, profiles")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="one entry")] = None,
    json: Json = False,
) -> None:
    """Show what is known, with source and date of every figure."""
    from planner.report.formats import dumps
    from planner.report.text.catalog import catalog_text, listed

    found = listed(kind, name)
    show(dumps(found) if json else catalog_text(found))


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
    from planner.report.formats import dumps
    from planner.report.text.formula import formula_text, formulas_text, one_formula, the_formulas

    if name is None:
        rows = the_formulas()
        show(dumps(rows) if json else formulas_text(rows))
        return
    found = one_formula(name, solve_for, sets or ())
    show(dumps(found) if json else formula_text(found))


@app.command()
def derive(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="equations and derivations, or claims"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="all of them")] = False,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, markdown, latex, html, notebook, typst or pdf"),
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """List what is derived, or print some of it with every step checked on the way."""
    from planner.report.files import deliver
    from planner.report.text.derivations import answered

    deliver(answered(names or (), every=every, form=form, out=out, json=json), out)


@app.command()
def export(
    file: File,
    engine: Annotated[
        str | None, typer.Option("--engine", help="vllm, sglang, trtllm or kubernetes")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="the same; with kubernetes, --engine is in the pods")
    ] = None,
    sets: Sets = None,
    json: Json = False,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the files")] = None,
) -> None:
    """Write the chosen plan as launch flags of an engine, or as Kubernetes manifests."""
    from planner.cli.engines import exported
    from planner.report.files import deliver
    from planner.report.formats import dumps

    found = exported(file, to, engine, sets or (), out)
    if out is not None:
        for name, text in found.files.items():
            deliver(text, out / name)
    if out is None or json:
        show(dumps(found.document) if json else found.text.rstrip("\n"))


@app.command()
def schema(out: Out = None) -> None:
    """Print the JSON Schema of the scenario, for editors."""
    from planner.report.files import deliver
    from planner.report.formats import dumps
    from planner.scenario import json_schema

    deliver(dumps(json_schema()), out)


app.command()(calibrate)
app.command()(measure)
app.command()(sensitivity)
app.command()(topology)
app.command()(sweep)
app.command()(validate)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; what goes wrong on purpose is one message, no traceback."""
    with exits():
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
