"""A validation as one self-contained page: tables, plots and the numbers as JSON; no network.

Tables of a validation as HTML: scores beside baselines, groups, rows by their ratio, reasons.

Single rows are named by their line and given as ratios, so that a page holds no measurement.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import isnan
from typing import Any

from planner.protocol.results import validation_result as result
from planner.report.files import dumps
from planner.report.pictures import validation_pictures as pictures
from planner.report.text.validation_text import (
    LABELS,
    SHARES,
    evenly,
    kind_name,
    left_labels,
    shapes,
)

EXPLANATION_COLUMN = "explanation"
HEAD = ("rows", "median", "mean", "≤ 10 %", "≤ 20 %", "10–90 % of ratio")


def section_title(section: result.ValidationSection) -> str:
    """Title of a section: its quantity and part."""
    name = LABELS.get(section.quantity, section.quantity)
    return f"{name}, {section.part}" if section.part else name


def kind_table(scored: Iterable[result.KindScores]) -> str:
    """One line for every kind of question over all files."""
    body = []
    for kind in scored:
        errors, groups, shape = kind.scores, kind.scores.groups, kind.scores.shape
        baselines = (errors.constant, errors.roofline)
        body.append(
            [kind_name(kind), *_numbers(errors.estimate)[:5], _percent(errors.band.holds),
             f"{groups.estimate:.3f} of {groups.count}",
             *(_percent(x.median) if x else "" for x in baselines),
             _percent(shape.estimate.median) if shape else ""]
        )  # fmt: skip
    head = ["", *HEAD[:5], "in band", "groups", "constant", "roofline", "curve shape"]
    return "<h2>By kind of question</h2>" + _table(head, body) if body else ""


def summary(files: Iterable[result.FileScores]) -> str:
    """One line for every quantity of every file."""
    body, links = [], []
    for index, file in enumerate(files):
        for i, section in enumerate(file.sections):
            errors = section.scores
            if errors is None:
                continue
            links.append(f"s{index}-{i}")
            baselines = (errors.constant, errors.roofline)
            body.append(
                [f"{file.name}: {section_title(section)}",
                                               _percent(section.predicted / section.rows),
                 *_numbers(errors.estimate)[:5], _percent(errors.band.holds),
                 *(_percent(x.median) if x else "" for x in baselines), _sampled(section)]
            )  # fmt: skip
    head = ["", "coverage", *HEAD[:5], "in band", "constant", "roofline", "sample"]
    return _table(head, body, links=links)


def scores(section: result.ValidationSection, errors: result.SectionScores) -> str:
    """Errors of the estimate and of the baselines."""
    settled, unseen = section.without_speculation, section.unseen
    rows = (
        ("estimate", errors.estimate),
        ("constant × roofline", errors.constant),
        ("plain roofline", errors.roofline),
        ("estimate, without groups that seem to speculate", settled and settled.estimate),
        ("estimate, rows that the fit never saw", unseen and unseen.estimate),
    )
    body = [[label, *_numbers(score)] for label, score in rows if score]
    return _table(["", *HEAD], body, bold=0)


def row_table(listed: Sequence[result.ListedRow], of: str) -> str:
    """Single rows by line, with the estimate or the bound as a ratio to the measured time."""
    body = []
    for row in listed:
        ratio = "" if isnan(row.ratio(of)) else f"{row.ratio(of):.2f}"
        why = [row.why] if isinstance(row, result.SuspectRow) else []
        name = LABELS.get(row.quantity, row.quantity)
        body.append([str(row.line), name, row.model, row.chip, row.engine, ratio, *why])
    head = ["line", "", "model", "chip", "engine", f"{of} / measured time", EXPLANATION_COLUMN]
    return _table(head[: max(map(len, body), default=6)], body)


def profile_record_html(errors: Mapping[str, float]) -> str:
    """Table of the errors that a profile records."""
    names = (*SHARES, "band_holds", "constant_median", "roofline_median")
    body = [
        [label, f"{row['rows']:,.0f}", *(_percent(row[x]) if x in row else "" for x in names)]
        for label, row in left_labels(errors)
    ]
    return _table(["", *HEAD[:5], "in band", "constant", "roofline"], body)


def left_out_tables(left_out: Sequence[Mapping[str, Any]]) -> str:
    """Table of a profile's held-out errors, a row per grouping left out; empty without records."""
    body = [
        [f"{row['quantity']}, {row['word']} left out", f"{row['rows']:,}", str(row["groups"]),
         *(_percent(row[x]) for x in ("median", "mean", "within_10")), f"{row['group_log']:.3f}",
         _percent(row["holds"]), f"{row['width']:.2f}", f"{row['constant_group_log']:.3f}"]
        for row in left_out
    ]  # fmt: skip
    heads = ["median", "mean", "in 10%", "|log| of groups", "in band", "high / low", "constant"]
    return _table(["", "rows", "groups", *heads], body) if body else ""


def network(errors: Mapping[str, Mapping[str, float]]) -> str:
    """Table of the errors that the profile of collectives records."""
    shares = ("median", "mean", "worst")
    body = [
        [name.replace("_", " "), f"{each['curves']:.0f}", f"{each['rows']:,.0f}",
         *(_percent(each[key]) for key in shares)]
        for name, each in errors.items()
    ]  # fmt: skip
    return _table(["", "curves", "rows", *shares], body)


def _sampled(section: result.ValidationSection) -> str:
    if not section.sample_known:
        return "not recorded"
    if not section.in_sample:
        return "out"
    share = section.in_sample / section.predicted
    return "in" if share == 1 else f"{share:.0%} in"


def _numbers(score: result.Score) -> list[str]:
    shares = map(_percent, (score.median, score.mean, score.within_10, score.within_20))
    return [f"{score.n:,}", *shares, f"{score.low:.2f}–{score.high:.2f}"]


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _table(
    head: Sequence[str], body: Sequence[Sequence[str]], *, bold: int = -1, links: Sequence[str] = ()
) -> str:
    """Scrollable HTML table, row `bold` highlighted, first cells linked to `links`."""
    top = "".join(f"<th>{escape(each)}</th>" if each else "<td></td>" for each in head)
    lines = []
    for i, cells in enumerate(body):
        first = escape(cells[0])
        if links:
            first = f'<a href="#{links[i]}">{first}</a>'
        rest = "".join(
            f"<td{' class=why' if name == EXPLANATION_COLUMN else ''}>{escape(cell)}</td>"
            for name, cell in zip(head[1:], cells[1:], strict=True)
        )
        lines.append(f"<tr{' class=own' if i == bold else ''}><td>{first}</td>{rest}</tr>")
    return f'<div class="wide" tabindex="0"><table><tr>{top}</tr>{"".join(lines)}</table></div>'


PagePart = result.ValidationDocument | result.FileScores | result.ValidationSection

PANELS = 12  # of each grouping
MIN_PANEL_ROWS = 3  # points that make a panel
HIDDEN_REASONS = ("not clean",)  # parts that are folded away
INTRODUCTION = (
    "Every row of a file of measurements is predicted, compared and counted. Beside the estimate "
    "stand the plain roofline, which knows no overhead, and the best constant times the roofline, "
    "taken from rows of other groups of model, chip and engine. Errors are |predicted / measured "
    "− 1| in the unit of the measured value; ≤ 10 % is the share of rows that err by no more; the "
    "ratio is predicted over measured; of the baselines the median error is given. Rows that a "
    "profile was fitted on are in sample, and say so. Groups are of model, chip and engine: the "
    "mean over them of the median |log ratio|, so that each counts once. Curve shape is the "
    "median error once each curve over the concurrency is scaled to meet its lowest point. Single "
    "rows are named by line and by their ratio alone. Dashed lines and blue bars enclose errors of "
    "20 %; pale points are other rows."
)


def page(document: result.ValidationDocument) -> str:
    """The page of a validation document."""
    style = files("planner.report.pages").joinpath("validation_page.css").read_text("utf-8")
    version = document.provenance["version"]
    parts = ["<h2>What the profiles record of themselves, on rows that their fits did not see</h2>"]
    for row in document.recorded:
        parts.append(f"<h3>{escape(row.name)} ({escape(row.as_of)})</h3>")
        parts.append(
            f'<p class="quiet">{row.rows:,} measurements on {escape(", ".join(row.chips))}'
            f": {escape(row.source)}.</p>"
        )
        table = left_out_tables(row.left_out) or profile_record_html(row.of_serving)
        parts.append(network(row.of_curves) if row.of_curves else table)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Predicted against measured</title><style>{style}</style></head><body><main>",
        "<h1>Predicted against measured</h1>",
        f'<p class="quiet">token-planner {escape(version)}, profile '
        f"{escape(document.profile)}</p><p>{INTRODUCTION}</p>",
        kind_table(document.kinds),
        summary(document.files) if document.files else "",
        *(_file(file, index) for index, file in enumerate(document.files)),
        _skipped(document.skipped) if document.skipped else "",
        "\n".join(parts),
        '</main><script type="application/json" id="numbers">',
        dumps(page_data(document)).replace("<", "\\u003c"),
        "</script></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def page_data(document: result.ValidationDocument) -> dict[str, object]:
    """The document as the page holds it: every score, and single rows by line and reason only."""
    # Files come last.
    return _omitting(document, "files") | {"files": [_file_values(file) for file in document.files]}


def _file_values(file: result.FileScores) -> dict[str, object]:
    sections = [_omitting(section, "points", "worst") for section in file.sections]
    below = [{"line": x.line, "quantity": x.quantity, "why": x.why} for x in file.below_bound]
    return {**_omitting(file, "sections", "units"), "below_bound": below, "sections": sections}


def _omitting(part: PagePart, *names: str) -> dict[str, object]:
    return {key: x for key, x in part.to_json().items() if key not in names}


def _file(file: result.FileScores, index: int) -> str:
    distinct = file.rows - file.repeats
    profiles = ", ".join(file.profiles) or "none"
    below = file.below_bound
    parts = [
        f"<h2>{escape(file.name)}</h2>",
        f"<p>{file.rows:,} {escape(file.kind)}, {file.repeats:,} of them repeats, left "
        f"out; {file.predicted:,} of {distinct:,} predicted. Profile: {escape(profiles)}.</p>",
        f'<p class="quiet">{escape(" ".join(shapes(file.models)))}</p>' if file.models else "",
        *(_section(each, file.labels, f"s{index}-{i}") for i, each in enumerate(file.sections)),
        "<h3>The bound</h3>",
        f"<p>{len(below):,} of {file.bounded:,} values are better than their bound.</p>",
        row_table(below, "bound") if below else "",
    ]
    if file.units:
        parts += ["<h3>Left out: another unit, it seems</h3>", row_table(file.units, "bound")]
    return "\n".join(part for part in parts if part)


def _section(part: result.ValidationSection, labels: Mapping[str, str], name: str) -> str:
    counts = f"{part.predicted:,} of {part.rows:,} predicted"
    title = f'<h3 id="{name}">{escape(section_title(part))}</h3>'
    parts = [f'<p class="quiet">{counts}</p>']
    if part.scores is not None:
        even = escape(" ".join(map(str.strip, evenly(part.scores))))
        parts += [_sample(part), scores(part, part.scores), f'<p class="quiet">{even}</p>']
        parts += _pictures(part, part.scores.band, labels, name)
        for key, listed in part.by.items():
            body = [
                [x.name, *_numbers(x.score), _percent(x.band_holds), str(x.groups),
                 f"{x.group_log:.3f}", _percent(x.group_band_holds)]
                for x in listed
            ]  # fmt: skip
            table = _table([labels[key], *HEAD, "in band", "groups", "|log|", "in band"], body)
            parts.append(_folded(f"by {escape(labels[key])}", table))
        parts.append(_folded("rows furthest off", row_table(part.worst, "estimate")))
    if part.refused:
        count = sum(part.refused.values())
        body = [[why, f"{n:,}"] for why, n in part.refused.items()]
        table = _table(["why there is no estimate", "rows"], body)
        parts.append(_folded(f"{count:,} without an estimate, and why", table))
    inner = "\n".join(parts)
    if part.part in HIDDEN_REASONS and part.scores is not None:
        inner = _folded("rows that their source does not call clean", inner)
    return title + inner


def _pictures(
    section: result.ValidationSection, band: result.BandShare, labels: Mapping[str, str], name: str
) -> list[str]:
    points, scale = section.points, pictures.log_scale(section.points)
    key = "engine" if "engine" in section.by else next(iter(section.by), "")
    bands = (
        f"<h4>Share inside the {band.coverage:.0%} band: {band.holds:.1%} of all, "
        f"by {escape(labels[key])}</h4>{pictures.band_bars(section.by[key], band.coverage)}"
        if key
        else f"<h4>Share inside the {band.coverage:.0%} band: {band.holds:.1%}</h4>"
    )
    parts = [
        pictures.background_points(points, scale, f"{name}-all"),
        '<div class="pair"><div>'
        f"{pictures.scatter(points, scale, section_title(section))}</div><div>"
        f"<h4>Predicted over measured time, less one</h4>"
        f"{pictures.histogram(points)}{bands}</div></div>",
    ]
    for grouping, listed in section.by.items():
        names = [row.name for row in listed if row.score.n >= MIN_PANEL_ROWS][:PANELS]
        if len(names) < 2:
            continue
        panels = ""
        for group in names:
            members = [p for p in points if getattr(p, grouping) == group]
            panels += pictures.panel(members, scale, group, f"{name}-all")
        parts.append(f"<h4>by {escape(labels[grouping])}</h4>")
        parts.append(f'<div class="panels">{panels}</div>')
    return parts


def _sample(part: result.ValidationSection) -> str:
    if not part.sample_known:
        text = "The profile does not record its rows: these may be in sample."
    elif part.in_sample:
        text = (
            f"In sample: the profile was fitted on {part.in_sample:,} of these "
            f"{part.predicted:,} rows. Its errors on rows left out stand at the end of the page."
        )
    else:
        return '<p class="quiet">Out of sample: no fit saw the rows it is scored on.</p>'
    return f'<p class="sample">{text}</p>'


def _skipped(files: Sequence[result.SkippedFile]) -> str:
    body = [[each.name, each.why] for each in files]
    return (
        "<h2>Skipped: no measurements that can be "
        f"read</h2>\n{_table(['file', EXPLANATION_COLUMN], body)}"
    )


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{title}</summary>{inner}</details>"
