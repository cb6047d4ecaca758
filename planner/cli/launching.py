"""Does it fit, how is it started, what did a change cost? `fit`, launches, `diff` and `gate`."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import typer

from planner.cli.options import option_quantity, require_file, require_folder, warn, with_sure
from planner.report.files import deliver, dumps
from planner.text.console import show
from planner.text.errors import InputError

FORMS = ("text", "json")


def fit(
    source: str | None = None,
    sets: list[str] | None = None,
    model: str | None = None,
    system: str | None = None,
    engine: str | None = None,
    engine_version: str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    weights: str | None = None,
    kv: str | None = None,
    context: int | None = None,
    requests: int | None = None,
    share: str | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    room: str | None = None,
    images: bool | None = None,
    wanted: str | None = None,
    form: str = "text",
) -> None:
    """Say whether a model fits, and how many tokens, requests and how long a context.

    No price and no promise is needed. Exit status 1 where it does not fit.
    """
    from planner.engines.fit_question import FitOptions
    from planner.engines.fit_question import fit as answer

    if form not in FORMS:
        raise InputError(f"--format {form}: expected one of {', '.join(FORMS)}")
    counts = {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "context": context, "requests": requests}
    counts |= {"max-num-seqs": max_num_seqs, "max-num-batched-tokens": max_num_batched_tokens}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: expected at least 1")
    options = FitOptions(
        model, system, engine, engine_version, tp, pp, dp, ep, weights, kv, context, requests,
        _limit("--share", share, "share"), max_num_seqs, max_num_batched_tokens, room,
        images=images,
    )  # fmt: skip
    result = answer(source, options, sets or ())
    if wanted is not None:
        from planner.engines.served_within import max_load

        result = replace(result, within={wanted: max_load(source, sets or (), result, wanted)})
    show(dumps(result.document) if form == "json" else str(result))
    raise typer.Exit(1 if result.verdict == "does not fit" else 0)


def export(
    file: str = "serving",
    engine: str | None = None,
    to: str | None = None,
    sets: list[str] | None = None,
    strict: bool = False,
    sure: bool = False,
    benchmark: bool = False,
    json: bool = False,
    out: Path | None = None,
) -> None:
    """Write the chosen plan as launch flags of an engine, or as Kubernetes manifests."""
    from planner.engines import TARGETS, resolve_engine
    from planner.engines import benchmark as measured
    from planner.engines import export as launch
    from planner.protocol.solve import check as checked
    from planner.protocol.solve import solve as answer
    from planner.scenario import load

    target, inside = to or engine, engine if to else None
    if target is None:
        raise InputError(f"give --engine, one of {', '.join(TARGETS)}")
    runs = resolve_engine(target, inside).release.name
    require_folder(out)
    changes = with_sure(file, sets, sure=sure)
    if file != "-" and getattr(load(file, changes), "engine", None) == "any":
        # Narrow `any` to the target engine; if that is refused, plan with `any`: the plan says why.
        with suppress(InputError):
            checked(file, [*changes, f"engine={runs}"])
            changes.append(f"engine={runs}")
    plan = answer(file, changes, strict=strict)
    warn(plan.warnings)
    folder = Path() if file == "-" else Path(file).parent
    if benchmark:
        text = measured(plan, target, inside, folder)
        deliver(text, None if out is None else out / "benchmark.sh")
        return
    written = launch(plan, target, inside, folder)
    if out is not None:
        for name, text in written.files.items():
            deliver(text, out / name)
    if out is None or json:
        show(dumps(written.document) if json else written.text.rstrip("\n"))


def import_launch(
    launches: list[str],
    sets: list[str] | None = None,
    replicas: int | None = None,
    json: bool = False,
    out: Path | None = None,
) -> None:
    """Read a launch of an engine, or Kubernetes manifests, as a scenario with the layout in use."""
    from planner.engines.imported import scenario_from_launch

    if replicas is not None and replicas < 1:
        raise InputError(f"--replicas: expected at least 1, got {replicas}")
    require_file(out, "scenario.yaml")
    scenario = scenario_from_launch(launches, sets or (), replicas)
    if json:
        warn(scenario.notes)
        show(dumps(scenario.data))
    else:
        deliver(str(scenario), out)


def diff(before: str, after: str, json: bool = False) -> None:
    """Say what differs between two scenarios or saved answers, and what each change costs."""
    from planner.comparison.price_difference import difference

    result = difference(before, after, shown=True)
    warn(result.warnings)
    show(dumps(result.document) if json else str(result))
    raise typer.Exit(0 if result.status != "infeasible" else 1)


def gate(
    file: str = "serving",
    max_usd_per_mtok: str | None = None,
    max_tpot: str | None = None,
    max_ttft_p95: str | None = None,
    against: Path | None = None,
    may_rise: str | None = None,
    sure: bool = False,
    sets: list[str] | None = None,
    markdown: bool = False,
    json: bool = False,
) -> None:
    """Judge a scenario's plan for CI: exit 0 where every promise is kept, 1 where one is broken."""
    from planner.comparison.gate import gate as judged

    if may_rise is not None and against is None:
        raise InputError("--may-rise needs a saved answer: --against plan.json")
    limits = {
        "usd_per_mtok": _limit("--max-usd-per-mtok", max_usd_per_mtok, "money"),
        "tpot": _limit("--max-tpot", max_tpot, "time"),
        "ttft_p95": _limit("--max-ttft-p95", max_ttft_p95, "time"),
    }
    result = judged(
        file,
        sets or (),
        given_limits(limits),
        against=against,
        may_rise=_limit("--may-rise", may_rise, "share") or 0.0,
        sure=sure,
    )
    warn(result.warnings)
    text = result.markdown if markdown else str(result)
    show(dumps(result.document) if json else text)
    raise typer.Exit(0 if result.status == "kept" else 1)


def given_limits(limits: Mapping[str, float | None]) -> dict[str, float]:
    """The limits that were given."""
    return {name: limit for name, limit in limits.items() if limit is not None}


def _limit(option: str, text: str | None, dimension: str) -> float | None:
    """A limit in base units, above zero but for a share; InputError for text that is none."""
    value = None if text is None else option_quantity(option, text, dimension)
    if value == 0 and dimension != "share":
        raise InputError(f"{option} {text}: expected a limit above zero")
    return value
