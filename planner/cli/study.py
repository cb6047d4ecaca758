"""The command `planner sensitivity`: its options, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import show
from planner.text.errors import InputError

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
    Path | None, typer.Option("--plot", metavar="FILE", help="draw it: .svg, .png or .pdf")
]
Swing = Annotated[float, typer.Option("--swing", help="share by which the tornado varies")]
Even = Annotated[
    str | None, typer.Option("--break-even", metavar="PATH=A,B", help="where are A and B as good?")
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
    from planner.report.formats import dumps

    if (even is None) != (over is None):
        raise InputError("--break-even and --over go together: --break-even PATH=A,B --over PATH")
    drawn = sobol is not None or morris is not None
    if even is not None and (drawn or plot is not None):
        raise InputError(
            "--break-even is a question of its own; leave --sobol, --morris and --plot"
        )
    if plot is not None:
        _drawable(plot)
    if even is not None and over is not None:
        from planner.report.text.sensitivity import even_text
        from planner.sensitivity.switch_point import break_even

        points = break_even(file, even, over, of, sets or ())
        show(dumps({"break_even": points}) if json else even_text(points))
    elif drawn:
        from planner.uncertainty.global_study import explore

        if workers < 1:
            raise InputError(f"--workers: expected at least 1, got {workers}")
        study = explore(
            file, of, sets or (), sobol=sobol, morris=morris, seed=seed, workers=workers,
            shown=True,
        )  # fmt: skip
        if plot is not None:
            from planner.report.pictures.tornado import study_drawn

            _deliver(study_drawn(study.document, _form(plot)), plot)
        show(dumps(study.document) if json else str(study))
    else:
        _table(file, of, sets or (), switches, plot, swing, json=json)


def _table(
    file: str,
    of: str,
    sets: Sequence[str],
    switches: bool | None,
    plot: Path | None,
    swing: float,
    *,
    json: bool,
) -> None:
    """The table of elasticities, and its tornado."""
    from planner.report.formats import dumps
    from planner.sensitivity.elasticities import elasticity_table

    if not 0 < swing < 1:
        raise InputError(f"--swing {swing:g}: expected a share above 0 and below 1")
    swings = None if plot is None else swing
    found = elasticity_table(file, of, sets, switches=switches, swing=swings, shown=True)
    document = found.document or {}
    if plot is not None:
        from planner.report.pictures.tornado import tornado

        _deliver(tornado(document, document["bars"], _form(plot)), plot)
    show(dumps(document) if json else str(found))


def _deliver(picture: bytes, plot: Path) -> None:
    """Write a picture."""
    from planner.report.files import deliver

    deliver(picture, plot)


def _form(plot: Path) -> str:
    return plot.suffix.lower().removeprefix(".")


def _drawable(plot: Path) -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    from importlib.util import find_spec

    from planner.report.pictures.canvas import FORMS
    from planner.text.errors import MissingExtra

    if _form(plot) not in FORMS:
        endings = ", ".join(f".{form}" for form in FORMS)
        raise InputError(f"--plot {plot}: a file that ends in one of {endings} is drawn")
    if plot.is_dir():
        raise InputError(f"--plot {plot}: is a folder, expected a file")
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "a picture")
