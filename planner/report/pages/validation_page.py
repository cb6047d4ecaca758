"""A validation as one self-contained page: tables, plots and the numbers as JSON; no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from planner.report.json import dumps
from planner.report.pages.validation_tables import (
    groups,
    named,
    network,
    reasons,
    recorded,
    rows,
    scores,
    summary,
)
from planner.report.pictures.validation import (
    backdrop,
    band_bars,
    histogram,
    panel,
    scale_of,
    scatter,
)
from planner.report.text.validation import shapes

__all__ = ["numbers", "page"]

PANELS = 12  # of each grouping
FEWEST = 3  # points that make a panel
ASIDE = ("not clean",)  # parts that are folded away
INTRO = (
    "Every row of a file of measurements is predicted, compared and counted. Beside the estimate "
    "stand the plain roofline, which knows no overhead, and the best constant times the roofline, "
    "taken from rows of other groups of model, chip and engine. Errors are |predicted / measured "
    "− 1| in the unit of the measured value; ≤ 10 % is the share of rows that err by no more; the "
    "ratio is predicted over measured; of the baselines the median error is given. Rows that a "
    "profile was fitted on are in sample, and say so. Single rows are named by line and by their "
    "ratio alone. Dashed lines and blue bars enclose errors of 20 %; pale points are other rows."
)


def page(document: Mapping[str, Any]) -> str:
    """The page of a validation document."""
    style = (
        files("planner.report.pages").joinpath("validation_page.css").read_text(encoding="utf-8")
    )
    version = document["provenance"]["version"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Predicted against measured</title><style>{style}</style></head><body>",
        "<h1>Predicted against measured</h1>",
        f'<p class="quiet">token-planner {escape(version)}, profile '
        f"{escape(document['profile'])}</p><p>{INTRO}</p>",
        summary(document["files"]) if document["files"] else "",
        *(_file(file, index) for index, file in enumerate(document["files"])),
        _recorded(document["recorded"]),
        '<script type="application/json" id="numbers">',
        dumps(numbers(document)).replace("<", "\\u003c"),
        "</script></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as the page holds it: every score, and single rows by line and reason only."""
    told = {key: value for key, value in document.items() if key != "files"}
    told["files"] = [
        {
            **{key: value for key, value in file.items() if key not in ("sections", "units")},
            "below_bound": [
                {"line": row["line"], "quantity": row["quantity"], "why": row["why"]}
                for row in file["below_bound"]
            ],
            "sections": [
                {key: value for key, value in each.items() if key not in ("points", "worst")}
                for each in file["sections"]
            ],
        }
        for file in document["files"]
    ]
    return told


def _file(file: Mapping[str, Any], index: int) -> str:
    kept = file["rows"] - file["repeats"]
    profiles = ", ".join(file["profiles"]) or "none"
    below = file["below_bound"]
    parts = [
        f"<h2>{escape(file['name'])}</h2>",
        f"<p>{file['rows']:,} {escape(file['kind'])}, {file['repeats']:,} of them repeats, left "
        f"out; {file['predicted']:,} of {kept:,} predicted. Profile: {escape(profiles)}.</p>",
        f'<p class="quiet">{escape(" ".join(shapes(file["models"])))}</p>'
        if file["models"]
        else "",
        *(
            _section(each, file["labels"], f"s{index}-{i}")
            for i, each in enumerate(file["sections"])
        ),
        "<h3>The bound</h3>",
        f"<p>{len(below):,} of {file['bounded']:,} values are better than their bound.</p>",
        rows(below, "bound") if below else "",
    ]
    if file["units"]:
        parts += ["<h3>Left out: another unit, it seems</h3>", rows(file["units"], "bound")]
    return "\n".join(part for part in parts if part)


def _section(each: Mapping[str, Any], labels: Mapping[str, str], name: str) -> str:
    told = f"{each['predicted']:,} of {each['rows']:,} predicted"
    title = f'<h3 id="{name}">{escape(named(each))}</h3>'
    parts = [f'<p class="quiet">{told}</p>']
    if each["scores"] is not None:
        parts += [_sample(each), scores(each), *_pictures(each, labels, name)]
        for key, listed in each["by"].items():
            told = f"by {escape(labels[key])}"
            parts.append(_folded(told, groups(listed, key, labels[key])))
        parts.append(_folded("rows furthest off", rows(each["worst"], "estimate")))
    if each["refused"]:
        count = sum(each["refused"].values())
        parts.append(_folded(f"{count:,} without an estimate, and why", reasons(each["refused"])))
    inner = "\n".join(parts)
    aside = each["part"] in ASIDE and each["scores"] is not None
    return title + (
        _folded("rows that their source does not call clean", inner) if aside else inner
    )


def _pictures(each: Mapping[str, Any], labels: Mapping[str, str], name: str) -> list[str]:
    points, scale = each["points"], scale_of(each["points"])
    band = each["scores"]["band"]
    key = "engine" if "engine" in each["by"] else next(iter(each["by"]), "")
    held = (
        f"<h4>Share inside the {band['coverage']:.0%} band: {band['holds']:.1%} of all, "
        f"by {escape(labels[key])}</h4>{band_bars(each['by'][key], key, band['coverage'])}"
        if key
        else f"<h4>Share inside the {band['coverage']:.0%} band: {band['holds']:.1%}</h4>"
    )
    parts = [
        backdrop(points, scale, f"{name}-all"),
        f'<div class="pair"><div>{scatter(points, scale, named(each))}</div><div>'
        f"<h4>Predicted over measured time, less one</h4>{histogram(points)}{held}</div></div>",
    ]
    for grouping, listed in each["by"].items():
        names = [row[grouping] for row in listed if row["n"] >= FEWEST][:PANELS]
        if len(names) < 2:
            continue
        panels = [
            panel([p for p in points if p[grouping] == one], scale, one, f"{name}-all")
            for one in names
        ]
        parts.append(f"<h4>by {escape(labels[grouping])}</h4>")
        parts.append(f'<div class="panels">{"".join(panels)}</div>')
    return parts


def _sample(each: Mapping[str, Any]) -> str:
    if not each["sample_known"]:
        told = "The profile does not record its rows: these may be in sample."
    elif each["in_sample"]:
        told = (
            f"In sample: the profile was fitted on {each['in_sample']:,} of these "
            f"{each['predicted']:,} rows. Its errors on rows left out stand at the end of the page."
        )
    else:
        return '<p class="quiet">Out of sample: no fit saw the rows it is scored on.</p>'
    return f'<p class="sample">{told}</p>'


def _recorded(profiles: Sequence[Mapping[str, Any]]) -> str:
    parts = ["<h2>What the profiles record of themselves, on rows that their fits did not see</h2>"]
    for each in profiles:
        shown = network if each["kind"] == "collectives" else recorded
        parts.append(f"<h3>{escape(each['name'])} ({escape(each['as_of'])})</h3>")
        parts.append(
            f'<p class="quiet">{each["rows"]:,} measurements on {escape(", ".join(each["chips"]))}'
            f": {escape(each['source'])}.</p>"
        )
        parts.append(shown(each["errors"]))
    return "\n".join(parts)


def _folded(told: str, inner: str) -> str:
    return f"<details><summary>{told}</summary>{inner}</details>"
