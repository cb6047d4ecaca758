"""How good is it? Commands on measurements: a chip measured, a profile fitted, plans scored."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import typer

from planner.cli.options import require_file
from planner.report.files import check_file, deliver, dumps
from planner.text.console import note, show
from planner.text.errors import InputError, SolverError, did_you_mean


def calibrate(
    data: list[Path],
    name: str,
    out: Path,
    like: str = "auto",
    measured: Path | None = None,
    facts: list[str] | None = None,
    models: list[Path] | None = None,
    as_of: str | None = None,
    json: bool = False,
) -> None:
    """Fit a profile to runs of your own, starting from a shipped one.

    A few dozen runs move what they can tell; the rest stays as it was. Errors are those on runs
    that the fit did not see. Use what is written with profile: mine.toml in a scenario.

    Columns of a table of yours: model, system or chip, concurrency (or batch), input_tokens,
    output_tokens, and any of ttft, tpot, itl, step, e2e (each in _ms or _s) and tokens_per_s;
    where they differ from the usual, engine, engine_version, weights, kv, tp, pp, ep,
    dp_attention, n_chips, drafts, overlap. A fact of all rows may be given by --fact instead.
    """
    from planner.library import calibrate as answer
    from planner.library import calibrate_training
    from planner.report.text.calibration_text import calibration_text

    stack = calibrate_training(data, name, out)
    if stack is not None:
        note(f"wrote {out}", warning=True)
        show(dumps(stack))
        return
    fit = answer(
        data,
        name,
        out,
        like=like,
        measured=measured,
        facts=facts or (),
        models=models or (),
        as_of=as_of,
    )
    document = {**fit.document, "out": str(out) if fit.profile else None}
    if fit.profile is not None:
        note(f"wrote {out}", warning=True)
    show(dumps(document) if json else calibration_text(fit.result, str(out)))
    if fit.profile is None:
        note(f"planner: {fit.why}")
        raise typer.Exit(1)


def measure(
    device: str | None = None,
    seconds: float = 120.0,
    quick: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Measure your own chip: memory, matrix products, attention, launches, an all-reduce.

    Every result is checked; a wrong one is named, and its time is not kept. What is written with
    --out limits what a plan counts on: system: {like: hgx-h200, measured: my-chip.toml}. Ctrl-C
    keeps what was measured until then, marked complete = false. Needs PyTorch:
    pip install 'token-planner[measure]'.
    """
    from planner.benchmark.record import toml
    from planner.benchmark.session import measure as measured
    from planner.benchmark.torch_device import torch_device
    from planner.report.text.calibration_text import measured_document, measured_text

    if not 1 <= seconds <= 86400:
        raise InputError(f"--seconds {seconds:g}: expected from 1 s to a day, such as 120")
    require_file(out, "my-chip.toml")
    aloud = partial(note, warning=True)
    session = measured(torch_device(device), quick=quick, budget=seconds, say=aloud)
    chip = session.chip
    if out is not None:
        deliver(toml(chip), out)
    show(dumps(measured_document(chip)) if json else measured_text(chip))
    if session.interrupted:
        raise KeyboardInterrupt
    if chip.memory_bandwidth is None and not chip.products:
        raise SolverError("nothing was measured; left_out says why of each work")


def validate(
    data: list[Path] | None = None,
    facts: list[str] | None = None,
    models: list[Path] | None = None,
    profile: str = "auto",
    predictions: Path | None = None,
    by: str = "engine,chip,model",
    memory: list[Path] | None = None,
    regret: list[Path] | None = None,
    chance: float | None = None,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Show predicted against measured, beside plain baselines."""
    if memory:
        _memory(memory, json=json)
        return
    if regret:
        _regret(regret, profile, chance, json=json)
        return
    from planner.library import validate as answer
    from planner.validation.estimates import measurement_files
    from planner.validation.validation_document import GROUP_KEYS

    # Tables by name, in the given order.
    groupings = [name.strip() for name in by.split(",") if name.strip()]
    for name in groupings:
        if name not in GROUP_KEYS:
            choices = ", ".join(GROUP_KEYS)
            raise InputError(f"--by {name}{did_you_mean(name, GROUP_KEYS)} (known: {choices})")
    for option, value in (("--fact", facts), ("--models", models)):
        if value and not data:
            raise InputError(f"{option} needs measurements: give a file by --data")
    paths = measurement_files(data or ()).paths
    if predictions is not None and len(paths) != 1:
        raise InputError(f"--predictions takes one file, and --data gives {len(paths)}")
    named = [
        path.resolve()
        for path in [*paths, predictions, out]
        if path is not None and not path.is_char_device()
    ]
    twice = [path for i, path in enumerate(named) if path in named[:i]]
    if twice:
        raise InputError(f"{twice[0]} is read, or written already: name another file to write")
    if out is not None:
        check_file(out, "--out", ("html",))
    validation = answer(data or (), profile, facts=facts or (), models=models or (), by=groupings)
    if predictions is not None:
        deliver(validation.predictions, predictions)
    if out is not None:
        deliver(validation.page, out)
    show(dumps(validation.document) if json else str(validation))
    if validation.document["status"] == "nothing to score":
        note("planner: no row could be both predicted and scored; the reasons are listed")
        raise typer.Exit(1)


def _memory(tables: Sequence[Path], *, json: bool) -> None:
    from planner.validation.memory_scores import memory_scores

    scores = memory_scores(tables)
    show(dumps(scores.document) if json else str(scores))
    if not scores.rooms:
        raise typer.Exit(1)


def _regret(tables: Sequence[Path], profile: str, chance: float | None, *, json: bool) -> None:
    from planner.validation.regret import MEANING, decisions, table

    files = {path: decisions(path, profile, chance) for path in tables}
    document = {str(path): [asdict(score) for score in scores] for path, scores in files.items()}
    texts = (table(path.name, scores) for path, scores in files.items())
    show(dumps(document) if json else "\n\n".join([MEANING, *texts]))
