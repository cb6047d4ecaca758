"""What did a change cost, and is a promise kept? Commands that compare and judge answers."""

from collections.abc import Mapping
from pathlib import Path

import typer

from planner.cli.options import warn
from planner.report.files import dumps
from planner.text.console import show
from planner.text.errors import InputError


def diff(before: str, after: str, json: bool = False) -> None:
    """Say what differs between two scenarios or saved answers, and what each change costs."""
    from planner.comparison.price_difference import difference

    result = difference(before, after, shown=True)
    warn(result.warnings)
    show(dumps(result.document) if json else str(result))
    raise typer.Exit(0 if result.status == "optimal" else 1)


def gate(
    file: str,
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
        raise InputError("--may-rise: from what? give a saved answer by --against plan.json")
    limits = {
        "usd_per_mtok": _limit("--max-usd-per-mtok", max_usd_per_mtok, "money"),
        "tpot": _limit("--max-tpot", max_tpot, "time"),
        "ttft_p95": _limit("--max-ttft-p95", max_ttft_p95, "time"),
    }
    result = judged(
        file,
        sets or (),
        limited(limits),
        against=against,
        may_rise=_limit("--may-rise", may_rise, "share") or 0.0,
        sure=sure,
    )
    warn(result.warnings)
    text = result.markdown if markdown else str(result)
    show(dumps(result.document) if json else text)
    raise typer.Exit(0 if result.status == "kept" else 1)


def limited(limits: Mapping[str, float | None]) -> dict[str, float]:
    """The limits that were given."""
    return {name: limit for name, limit in limits.items() if limit is not None}


def _limit(option: str, text: str | None, dimension: str) -> float | None:
    """A limit in base units, above zero but for a share; InputError for text that is none."""
    from planner.text.quantities import QuantityError, parse

    if text is None:
        return None
    try:
        value = parse(text, dimension)
    except QuantityError as error:
        raise InputError(f"{option}: {error}") from error
    if value == 0 and dimension != "share":
        raise InputError(f"{option} {text}: expected a limit above zero")
    return value
