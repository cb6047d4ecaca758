"""The command `planner calibrate`: its options, and what becomes of the profile."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import note, show
from planner.text.errors import InputError

__all__ = ["calibrate"]

Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA...", help="runs of yours: CSV, or what vLLM, SGLang, GuideLLM wrote"
    ),
]
Name = Annotated[str, typer.Option("--name", help="what the profile is called")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE.toml", help="write the profile here")]
Like = Annotated[
    str, typer.Option("--like", metavar="PROFILE", help="what to start from; auto: as a plan would")
]
Chip = Annotated[
    Path | None, typer.Option("--measured", metavar="CHIP.toml", help="a file of planner measure")
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
Day = Annotated[
    str | None, typer.Option("--as-of", metavar="YYYY-MM-DD", help="day of the runs; default today")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def calibrate(
    data: Data,
    name: Name,
    out: Out,
    like: Like = "auto",
    measured: Chip = None,
    facts: Facts = None,
    models: Models = None,
    as_of: Day = None,
    json: Json = False,
) -> None:
    """Fit a profile to runs of your own, starting from a shipped one.

    A few dozen runs move what they can tell; the rest stays as it was. Errors are those on runs
    that the fit did not see. Use what is written with profile: mine.toml in a scenario.

    Columns of a table of yours: model, system or chip, concurrency (or batch), input_tokens,
    output_tokens, and any of ttft, tpot, itl, step, e2e (each in _ms or _s) and tokens_per_s;
    where they differ from the usual, engine, engine_version, weights, kv, tp, pp, ep,
    dp_attention, n_chips, drafts. A fact of all rows may be given by --fact instead.
    """
    from planner.calibration.own_profile import calibrated
    from planner.calibration.profile_file import written
    from planner.measurements.entry import facts_of
    from planner.measurements.readers import read
    from planner.report.files import deliver
    from planner.report.formats import dumps
    from planner.report.text.calibration import calibration_text
    from planner.validation.estimates import files_in

    _name(name)
    _file(out)
    day = _day(as_of)
    told = facts_of(facts or ())
    paths = files_in(data)
    if out.resolve() in [path.resolve() for path in paths]:
        raise InputError(f"--out {out}: is a file of the measurements; name another")
    names = [path.name for path in paths]
    files = {
        path.name if names.count(path.name) == 1 else str(path): read(path, models or (), **told)
        for path in paths
    }
    found = calibrated(files, name, day, like, measured)
    document = {**found.document, "out": str(out) if found.profile else None}
    if found.profile is not None:
        start = found.document["like"]
        comments = [
            f"Written by planner calibrate from runs of one's own, starting from {start}.",
            "Intervals hold 80 %. Errors are on runs that the fit did not see. Bands: measured /",
            "predicted, by what is known of a place: chip and model, the chip alone, neither.",
        ]
        deliver(written(found.profile, comments, started_from=start), out)
    show(dumps(document) if json else calibration_text(document))
    if found.profile is None:
        note(f"planner: {found.why}")
        raise typer.Exit(1)


def _name(name: str) -> None:
    """Raises InputError for a name that is no profile's, or that of one that ships."""
    from planner.catalogue.profile import profile_names

    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InputError("--name: expected a name such as our-h200s")
    if name == "auto" or name in profile_names():
        raise InputError(f"--name {name}: is the name of a profile that ships; choose another")


def _file(out: Path) -> None:
    if out.suffix != ".toml":
        raise InputError(f"--out {out}: expected a file that ends in .toml, such as mine.toml")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file such as mine.toml")


def _day(text: str | None) -> str:
    if text is None:
        return date.today().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"--as-of {text}: expected a date such as 2026-11-21") from None
