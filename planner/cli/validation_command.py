"""The command `planner validate`: its options, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import note, show
from planner.text.errors import InputError, did_you_mean

__all__ = ["validate"]

LEAVES = ("configurations", "groups", "models")

Data = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="FILE", help="measurements, or a folder of them; repeatable"),
]
Wanted = Annotated[str, typer.Option("--profile", help="a profile's name, or auto")]
Predictions = Annotated[
    Path | None, typer.Option("--predictions", metavar="OUT.csv", help="each row with ours beside")
]
Facts = Annotated[
    list[str] | None,
    typer.Option("--fact", metavar="NAME=VALUE", help="what a file does not say: system=hgx-h200"),
]
Models = Annotated[
    list[Path] | None,
    typer.Option(
        "--models", metavar="FOLDER",
        help="config.json of models that the catalogue lacks; default hf_configs beside the file",
    ),
]  # fmt: skip
Leave = Annotated[
    str | None,
    typer.Option("--refit", metavar="|".join(LEAVES), help="predict each by a fit of the others"),
]
By = Annotated[str, typer.Option("--by", help="tables by these: engine, chip, model")]
Page = Annotated[Path | None, typer.Option("--out", metavar="PAGE.html", help="write a page")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def validate(
    data: Data = None,
    facts: Facts = None,
    models: Models = None,
    profile: Wanted = "auto",
    predictions: Predictions = None,
    refit: Leave = None,
    by: By = "engine,chip,model",
    out: Page = None,
    json: Json = False,
) -> None:
    """Show predicted against measured, beside plain baselines."""
    from planner.measurements.entry import facts_of
    from planner.report.files import deliver
    from planner.report.formats import dumps
    from planner.report.text.validation import validation_text
    from planner.validation.document import document
    from planner.validation.estimates import files_in, read

    groupings = _groupings(by)
    if refit not in (None, *LEAVES):
        raise InputError(
            f"--refit {refit}{did_you_mean(refit, LEAVES)} (known: {', '.join(LEAVES)})"
        )
    for option, value in (("--refit", refit), ("--fact", facts), ("--models", models)):
        if value and not data:
            raise InputError(f"{option}: of which measurements? give a file by --data")
    paths = files_in(data or ())
    if predictions is not None and len(paths) != 1:
        raise InputError(f"--predictions: of which file? {len(paths)} were given by --data")
    _apart([*paths, predictions, out])
    told = facts_of(facts or ())
    tables = [read(path, profile, told, models or ()) for path in paths]
    if refit is not None:
        from planner.validation.group_cross_validation import refitted

        tables = [(table, refitted(entries, refit)) for table, entries in tables]
    found = document(profile, tables, groupings, refit)
    if predictions is not None:
        from planner.validation.estimates import predictions_text

        deliver(predictions_text(*tables[0]), predictions)
    if out is not None:
        from planner.report.pages.validation_page import page

        deliver(page(found), out)
    show(dumps(found) if json else validation_text(found))
    if found["status"] == "nothing to score":
        note("planner: no row could be both predicted and scored; the reasons are listed")
        raise typer.Exit(1)


def _apart(paths: Sequence[Path | None]) -> None:
    """Raises InputError where a file that is written is one that is read, or written twice."""
    named = [path.resolve() for path in paths if path is not None and not path.is_char_device()]
    twice = [path for i, path in enumerate(named) if path in named[:i]]
    if twice:
        raise InputError(f"{twice[0]} is read, or written already: name another file to write")


def _groupings(text: str) -> list[str]:
    """The groupings that were asked for, in that order."""
    from planner.calibration.scores_validation_part import GROUPINGS

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in GROUPINGS:
            known = ", ".join(GROUPINGS)
            raise InputError(f"--by {name}{did_you_mean(name, GROUPINGS)} (known: {known})")
    return names
