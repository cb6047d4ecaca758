"""The command `planner sensitivity`: its options, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.console import show
from planner.errors import InputError

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
    bool | None, typer.Option("--switches/--no-switches", help="seek the next switch each way")
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="a tornado: .svg, .png or .pdf")
]
Swing = Annotated[float, typer.Option("--swing", help="share by which the tornado varies")]
Even = Annotated[
    str | None,
    typer.Option("--break-even", metavar="PATH=A,B", help="where are A and B as good?"),
]
Over = Annotated[
    str | None,
    typer.Option("--over", metavar="PATH[=SPEC]", help="what is varied for --break-even"),
]
Sobol = Annotated[
    int | None, typer.Option("--sobol", metavar="N", help="study uncertain: with N base draws")
]
Morris = Annotated[
    int | None, typer.Option("--morris", metavar="R", help="the same, coarser, by R trajectories")
]
Seed = Annotated[int, typer.Option("--seed", help="of the draws")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="processes that solve")]


def sensitivity(
    file: File,
    of: Output = "cost",
    sets: Sets = None,
    switches: Switches = None,
    plot: Plot = None,
    swing: Swing = 0.2,
    even: Even = None,
    over: Over = None,
    sobol: Sobol = None,
    morris: Morris = None,
    seed: Seed = 0,
    workers: Workers = 1,
    json: Json = False,
) -> None:
    """Say what one percent of every given quantity is worth, and what would switch the choice."""
    from planner.report.json import dumps

    if (even is None) != (over is None):
        raise InputError("--break-even and --over go together: --break-even PATH=A,B --over PATH")
    if even is not None and over is not None:
        from planner.report.sensitivity_even import even_text
        from planner.sensitivity.even import break_even

        points = break_even(file, even, over, of, sets or ())
        show(dumps({"break_even": points}) if json else even_text(points))
        return
    if sobol is not None or morris is not None:
        from planner.sensitivity.exploring import explore

        if workers < 1:
            raise InputError(f"--workers: expected at least 1, got {workers}")
        study = explore(
            file, of, sets or (), sobol=sobol, morris=morris, seed=seed, workers=workers,
            shown=True,
        )  # fmt: skip
        show(dumps(study.document) if json else str(study))
        return
    if plot is not None:
        _drawable(plot)
    if not 0 < swing < 1:
        raise InputError(f"--swing {swing:g}: expected a share above 0 and below 1")
    from planner.sensitivity.local import local

    swings = None if plot is None else swing
    found = local(file, of, sets or (), switches=switches, swing=swings)
    if plot is not None and found.document is not None:
        from planner.report.files import deliver
        from planner.report.sensitivity_plots import tornado

        form = plot.suffix.lower().removeprefix(".")
        deliver(tornado(found.document, found.document["bars"], form), plot)
    show(dumps(found.document) if json else str(found))


def _drawable(plot: Path) -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    from importlib.util import find_spec

    from planner.errors import MissingExtra
    from planner.report.plots import FORMS

    if plot.suffix.lower().removeprefix(".") not in FORMS:
        endings = ", ".join(f".{form}" for form in FORMS)
        raise InputError(f"--plot {plot}: a file that ends in one of {endings} is drawn")
    if plot.is_dir():
        raise InputError(f"--plot {plot}: is a folder, expected a file")
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "a picture")
