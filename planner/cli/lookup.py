"""What is known? Commands that look up models, chips, equations, networks and schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import Json, Out, warn
from planner.report.files import deliver, dumps
from planner.text.console import show
from planner.text.errors import InputError


def model(
    name: Annotated[str, typer.Argument(metavar="NAME_OR_CONFIG", help="catalogue name or path")],
    json: Json = False,
) -> None:
    """Say what a model is made of."""
    from planner.library import model as answer
    from planner.report.text.catalog import model_text

    document = answer(name)
    show(dumps(document) if json else model_text(document))


def catalog(
    kind: Annotated[
        str | None, typer.Argument(help="chips, systems, models, prices, profiles")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="one entry")] = None,
    json: Json = False,
) -> None:
    """Show what is known, with source and date of every figure."""
    from planner.library import catalog as answer
    from planner.report.text.catalog import catalog_text

    document = answer(kind, name)
    show(dumps(document) if json else catalog_text(document))


def formula(
    name: Annotated[str | None, typer.Argument(help="equation, by name, title or symbol")] = None,
    solve_for: Annotated[str | None, typer.Option("--solve-for", metavar="SYMBOL")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="SYMBOL=VALUE", help="give a value")
    ] = None,
    json: Json = False,
) -> None:
    """Show one equation: text, symbols with units, source, value."""
    from planner.protocol.document import document_of
    from planner.report.text.formula import formula_text, formulas_text, one_formula, the_formulas

    if name is None:
        rows = the_formulas()
        show(dumps(document_of(rows)) if json else formulas_text(rows))
        return
    card = one_formula(name, solve_for, sets or ())
    show(dumps(document_of(card)) if json else formula_text(card))


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
    from planner.report.text.derivations import answered

    deliver(answered(names or (), every=every, form=form, out=out, json=json), out)


AnswerOf = Annotated[
    str | None, typer.Option("--answer", metavar="KIND", help="of what a problem's --json prints")
]


def schema(answer: AnswerOf = None, out: Out = None) -> None:
    """Print the JSON Schema of the scenario, for editors."""
    from planner.scenario import json_schema

    if answer is None:
        deliver(dumps(json_schema()), out)
        return
    from planner.protocol.solve import answer_schema

    deliver(dumps(answer_schema(answer)), out)


Network = Annotated[
    str | None, typer.Argument(metavar="NAME_OR_FILE", help="machine of the catalogue, or file")
]
Shape = Annotated[str | None, typer.Option("--shape", metavar="4x4x8", help="slice of a torus")]
Join = Annotated[
    str | None, typer.Option("--join", help="what joins domains: spine, rails or clos")
]
Leaf = Annotated[int | None, typer.Option("--leaf", help="network cards on a leaf of a clos")]
Oversubscription = Annotated[
    float | None, typer.Option("--oversubscription", help="4 for 4:1 above leaves or rails")
]
Groups = Annotated[
    list[int] | None, typer.Option("--group", metavar="N", help="chips of a group; repeatable")
]
Collective = Annotated[
    str | None, typer.Option("--collective", metavar="OP", help="time this: all-reduce, ...")
]
Messages = Annotated[
    list[str] | None, typer.Option("--bytes", metavar="B", help="message, 16 MB; repeatable")
]


def topology(
    name: Network = None,
    chips: Annotated[
        int | None, typer.Option("--chips", help="how many chips of a machine")
    ] = None,
    shape: Shape = None,
    twisted: Annotated[bool, typer.Option("--twisted", help="a twisted torus")] = False,
    join: Join = None,
    leaf: Leaf = None,
    oversubscription: Oversubscription = None,
    group: Groups = None,
    collective: Collective = None,
    sizes: Messages = None,
    routing: Annotated[str, typer.Option("--routing", help="optimal or shortest_ecmp")] = "optimal",
    svg: Annotated[Path | None, typer.Option("--svg", help="draw it into this file")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="write it: .svg .json .yaml .graphml")
    ] = None,
    json: Json = False,
) -> None:
    """Check, measure and draw a network; without a name list the machines."""
    from planner.library import topology as answer
    from planner.network.network_source import machines
    from planner.report.text.topology import PICTURE, check_file, drawn, machines_text, written

    if name is None:
        if any((chips, shape, group, collective, sizes, svg, out)):
            raise InputError("of which network? `planner topology` lists the machines")
        rows = machines()
        show(dumps(rows) if json else machines_text(rows))
        return
    if sizes and collective is None:
        raise InputError("--bytes: of which --collective? such as --collective all-reduce")
    if svg is not None:
        check_file(svg, "--svg", PICTURE)
    if out is not None:
        check_file(out, "--out")
    network = answer(
        name,
        chips,
        shape=shape,
        twisted=twisted,
        join=join,
        leaf=leaf,
        oversubscription=oversubscription,
        groups=group or (),
        collective=collective,
        messages=[_size(size) for size in sizes or ()],
        routing=routing,
    )
    warn(network.warnings)
    if svg is not None:
        drawn(network.fabric, svg)
    if out is not None:
        written(network.fabric, out)
    show(dumps(network.document) if json else str(network))


def _size(text: str) -> float:
    """A message [byte], as it is said on the command line."""
    from planner.text.quantities import QuantityError, parse

    try:
        return parse(text, "size")
    except QuantityError as error:
        raise InputError(f"--bytes: {error}") from error
