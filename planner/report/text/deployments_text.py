"""Published deployments beside the answers to the same questions, on a terminal."""

from __future__ import annotations

from planner.protocol.deployment_scores import DeploymentScore, DeploymentScores
from planner.text.wording import duration, printable, wrapped

HEAD = f"{'':<9}{'published':>11}{'answer':>11}{'ratio':>7}  {'80% band':<21}"


def deployments_text(scores: DeploymentScores) -> str:
    """One line of figures for each deployment, what ran and what was free below it."""
    lines = [f"{scores.table}: {len(scores.rows)} published deployments", "", HEAD]
    for row in scores.rows:
        lines += _row(row)
    lines += [
        "",
        f"{scores.inside} of {len(scores.rows)} lie in their bands, {scores.infeasible} have no "
        f"answer though they ran; median |log ratio| {scores.median_error:.3f}",
    ]
    return printable("\n".join(lines))


def _row(row: DeploymentScore) -> list[str]:
    shown = [_value(row, each) for each in (row.measured, row.estimate)]
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    band = f"{_value(row, row.low)} to {_value(row, row.high)}"
    place = "in" if row.inside else "out"
    lines = [f"{row.id:<9}{shown[0]:>11}{shown[1]:>11}{ratio:>7}  {band:<21} {place}"]
    notes = {
        "": row.setting,
        "runs": row.layout,
        "no answer": row.refused,
        "free": ", ".join(row.free),
        "assumed": row.assumed,
        "outside the fit": row.outside,
    }
    for name, text in notes.items():
        if text:
            lines += wrapped(f"{name}: {text}" if name else text)
    return lines


def _value(row: DeploymentScore, value: float | None) -> str:
    if value is None:
        return "-"
    return duration(value) if row.quantity == "token" else f"{value:,.0f}"
