"""Tables of a validation as HTML: scores beside baselines, groups, rows by their ratio, reasons.

Single rows are named by their line and told by ratios, so that a page holds no measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["groups", "named", "network", "reasons", "recorded", "rows", "scores", "summary"]

NAMES = {"tpot": "TPOT", "ttft": "TTFT", "e2e": "end to end"}
SAID = (
    ("estimate", "estimate"),
    ("constant", "constant × roofline"),
    ("roofline", "plain roofline"),
)
WHY = "explanation"
HEAD = ("rows", "median", "mean", "≤ 10 %", "≤ 20 %", "10–90 % of ratio")


def named(section: Mapping[str, Any]) -> str:
    """What a section scores, in words."""
    name = NAMES.get(section["quantity"], section["quantity"])
    return f"{name}, {section['part']}" if section["part"] else name


def summary(files: Iterable[Mapping[str, Any]]) -> str:
    """One line for every quantity of every file."""
    body, links = [], []
    for index, file in enumerate(files):
        for i, each in enumerate(file["sections"]):
            found = each["scores"]
            if found is None:
                continue
            links.append(f"s{index}-{i}")
            body.append(
                [
                    f"{file['name']}: {named(each)}",
                    _percent(each["predicted"] / each["rows"]),
                    *_numbers(found["estimate"])[:5],
                    _percent(found["band"]["holds"]),
                    *(
                        _percent(found[name]["median"]) if found[name] else ""
                        for name in ("constant", "roofline")
                    ),
                    _sampled(each),
                ]
            )
    head = ["", "coverage", *HEAD[:5], "in band", "constant", "roofline", "sample"]
    return _table(head, body, links=links)


def scores(section: Mapping[str, Any]) -> str:
    """Errors of the estimate and of the baselines."""
    found = section["scores"]
    body = [[said, *_numbers(found[name])] for name, said in SAID if found[name]]
    for name, said in (
        ("without_speculation", "estimate, without groups that seem to speculate"),
        ("unseen", "estimate, rows that the fit never saw"),
    ):
        if section[name]:
            body.append([said, *_numbers(section[name]["estimate"])])
    return _table(["", *HEAD], body, own=0)


def groups(rows: Sequence[Mapping[str, Any]], key: str, label: str) -> str:
    """Errors by engine, chip or model."""
    body = [[row[key], *_numbers(row), _percent(row["band_holds"])] for row in rows]
    return _table([label, *HEAD, "in band"], body)


def rows(listed: Sequence[Mapping[str, Any]], of: str) -> str:
    """Single rows by line, with the estimate or the bound as a ratio to the measured time."""
    body = []
    for row in listed:
        ratio = "" if row[of] is None else f"{row[of] / row['seconds']:.2f}"
        told = [str(row["line"]), NAMES.get(row["quantity"], row["quantity"]), row["model"]]
        told += [row["chip"], row["engine"], ratio]
        body.append([*told, row["why"]] if "why" in row else told)
    head = ["line", "", "model", "chip", "engine", f"{of} / measured time"]
    return _table([*head, WHY] if listed and "why" in listed[0] else head, body)


def reasons(told: Mapping[str, int]) -> str:
    """Why rows have no estimate, and how many."""
    return _table(
        ["why there is no estimate", "rows"], [[why, f"{n:,}"] for why, n in told.items()]
    )


def recorded(errors: Mapping[str, float]) -> str:
    """What a profile records of itself."""
    body = []
    for label, prefix in (("groups left out", ""), ("models left out", "unseen_models_")):
        for quantity in ("tpot", "ttft"):
            key = f"{prefix}{quantity}"
            if f"{key}_rows" not in errors:
                continue
            shares = ("median", "mean", "within_10", "within_20", "band_holds")
            body.append(
                [
                    f"{NAMES[quantity]}, {label}",
                    f"{errors[f'{key}_rows']:,.0f}",
                    *(_maybe(errors.get(f"{key}_{name}")) for name in shares),
                    _maybe(errors.get(f"{key}_constant_median")),
                    _maybe(errors.get(f"{key}_roofline_median")),
                ]
            )
    return _table(["", *HEAD[:5], "in band", "constant", "roofline"], body)


def network(errors: Mapping[str, Mapping[str, float]]) -> str:
    """What the profile of collectives records of itself."""
    body = [
        [
            name.replace("_", " "),
            f"{each['curves']:.0f}",
            f"{each['rows']:,.0f}",
            *(_percent(each[key]) for key in ("median", "mean", "worst")),
        ]
        for name, each in errors.items()
    ]
    return _table(["", "curves", "rows", "median", "mean", "worst"], body)


def _sampled(section: Mapping[str, Any]) -> str:
    if not section["sample_known"]:
        return "not recorded"
    if not section["in_sample"]:
        return "out"
    share = section["in_sample"] / section["predicted"]
    return "in" if share == 1 else f"{share:.0%} in"


def _numbers(score: Mapping[str, Any]) -> list[str]:
    shares = [_percent(score[name]) for name in ("median", "mean", "within_10", "within_20")]
    return [f"{score['n']:,}", *shares, f"{score['low']:.2f}–{score['high']:.2f}"]


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _maybe(value: float | None) -> str:
    return "" if value is None else _percent(value)


def _table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    *,
    own: int = -1,
    links: Sequence[str] = (),
) -> str:
    """A table that scrolls sideways on a small screen; row `own` stands out. Cells are text.

    `links` are the places on the page that the first cells of the rows lead to.
    """
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = []
    for i, cells in enumerate(body):
        first = escape(cells[0])
        if links:
            first = f'<a href="#{links[i]}">{first}</a>'
        rest = "".join(
            f"<td{' class=why' if name == WHY else ''}>{escape(cell)}</td>"
            for name, cell in zip(head[1:], cells[1:], strict=True)
        )
        lines.append(f"<tr{' class=own' if i == own else ''}><td>{first}</td>{rest}</tr>")
    return f'<div class="wide"><table><tr>{top}</tr>{"".join(lines)}</table></div>'
