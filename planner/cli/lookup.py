"""The command `planner topology`: its options, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import note, show
from planner.text.errors import InputError

__all__ = ["topology"]

Name = Annotated[
    str | None, typer.Argument(metavar="NAME_OR_FILE", help="machine of the catalogue, or file")
]
Chips = Annotated[int | None, typer.Option("--chips", help="how many chips of a machine")]
Shape = Annotated[str | None, typer.Option("--shape", metavar="4x4x8", help="slice of a torus")]
Twisted = Annotated[bool, typer.Option("--twisted", help="a twisted torus")]
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
Routing = Annotated[str, typer.Option("--routing", help="optimal or shortest_ecmp")]
Svg = Annotated[Path | None, typer.Option("--svg", help="draw it into this file")]
Out = Annotated[Path | None, typer.Option("--out", help="write it: .svg .json .yaml .graphml")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def topology(
    name: Name = None,
    chips: Chips = None,
    shape: Shape = None,
    twisted: Twisted = False,
    join: Join = None,
    leaf: Leaf = None,
    oversubscription: Oversubscription = None,
    group: Groups = None,
    collective: Collective = None,
    sizes: Messages = None,
    routing: Routing = "optimal",
    svg: Svg = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Check, measure and draw a network; without a name list the machines."""
    from planner.network.network_document import machines, measured, network
    from planner.report.formats import dumps
    from planner.report.text.topology import drawn, machines_text, topology_text, written

    if name is None:
        if any((chips, shape, group, collective, sizes, svg, out)):
            raise InputError("of which network? `planner topology` lists the machines")
        rows = machines()
        show(dumps(rows) if json else machines_text(rows))
        return
    if sizes and collective is None:
        raise InputError("--bytes: of which --collective? such as --collective all-reduce")
    messages = [_size(size) for size in sizes or ()]
    found = network(
        name, chips, shape, twisted=twisted, join=join, leaf=leaf, oversubscription=oversubscription
    )
    document = measured(found, group or (), routing, collective=collective, messages=messages)
    for warning in document["warnings"]:
        note(f"warning: {warning}", warning=True)
    if svg is not None:
        drawn(found.fabric, svg)
    if out is not None:
        written(found.fabric, out)
    show(dumps(document) if json else topology_text(document))


def _size(text: str) -> float:
    """A message [byte], as it is said on the command line."""
    from planner.text.quantities import QuantityError, parse

    try:
        return parse(text, "size")
    except QuantityError as error:
        raise InputError(f"--bytes: {error}") from error
