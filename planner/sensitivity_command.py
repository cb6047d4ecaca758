"""The command `planner sensitivity`: its options, and what they ask for."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.console import show

__all__ = ["sensitivity"]

File = Annotated[str, typer.Argument(metavar="FILE", help="scenario: YAML, TOML, JSON, or -")]
Output = Annotated[
    str, typer.Option("--of", help="cost, tpot, ttft, throughput, tokens, over_training, ...")
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change one value")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]
Switches = Annotated[
    bool, typer.Option("--switches/--no-switches", help="seek the next switch each way")
]


def sensitivity(
    file: File,
    of: Output = "cost",
    sets: Sets = None,
    switches: Switches = True,
    json: Json = False,
) -> None:
    """Say what one percent of every given quantity is worth, and what would switch the choice."""
    from planner.report.json import dumps
    from planner.sensitivity.local import local

    found = local(file, of, sets or (), switches=switches)
    show(dumps(found.document) if json else str(found))
