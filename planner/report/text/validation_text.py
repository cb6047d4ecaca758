"""Predicted against measured on a terminal: how far off, and how far off plain baselines are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

from planner.protocol.results import validation_result as result
from planner.text.wording import duration, printable, wrapped

HEAD = f"{'':<27}{'rows':>6}{'median':>8}{'mean':>8}{'in 10%':>8}{'in 20%':>8}  10-90% ratio"
LABELS = {"tpot": "TPOT", "ttft": "TTFT", "e2e": "end to end"}
ROWS_PER_REASON = 5  # rows named of a reason
REASONS = 8  # listed one by one; the rest are counted together
SHARES = ("median", "mean", "within_10", "within_20")
BASELINES = {"constant": "constant x roofline", "roofline": "plain roofline"}
MAX_LISTED_ROWS = 12  # rows of a grouping
MAX_WORST_ROWS = 5  # rows furthest off
MAX_BELOW_BOUND_ROWS = 40  # rows better than their bound
LEAVE_OUT_HEADER = (
    f"{'':16}{'rows':>7}{'groups':>7}{'median':>8}{'mean':>7}{'in 10%':>7}{'group':>7}"
    f"{'in band':>8}{'width':>6}{'const':>7}"
)
OF_WAYS = (
    "group: mean over groups of model, chip and engine of the median |log ratio|, and that of a "
    "constant times the roofline; in band, width: of ranges made without the row, high over low"
)
# Label and name prefix of recorded errors, by the rows that the fit left out.
LEFT_OUT = (
    ("rows left out", ""),
    ("groups left out", "unseen_groups_"),
    ("models left out", "unseen_models_"),
    ("chips left out", "unseen_chips_"),
)


def validation_text(document: result.ValidationDocument) -> str:
    """The validation as lines of at most 80 columns."""
    blocks = [_kinds(document.kinds)] if document.kinds else []
    blocks += [_file(file) for file in document.files]
    if document.skipped:
        skipped = (f"{each.name}: {each.why}" for each in document.skipped)
        lines = [line for each in skipped for line in wrapped(each)]
        blocks.append("\n".join(["Skipped: no measurements that can be read", *lines]))
    title = "What the profiles record of themselves, on rows that their fits did not see"
    lines = [title, *([] if document.files else wrapped("no --data was given"))]
    for profile in document.recorded:
        lines += ["", f"{profile.name} ({profile.as_of}), {profile.rows:,} measurements"]
        lines += wrapped(profile.source)
        if profile.of_curves:
            lines.append(f"{'':<33}{'curves':>8}{'rows':>6}{'median':>8}{'mean':>8}{'worst':>8}")
            lines += [
                f"  {name.replace('_', ' '):<31}{each['curves']:>8.0f}{each['rows']:>6,.0f}"
                f"{each['median']:>8.1%}{each['mean']:>8.1%}{each['worst']:>8.1%}"
                for name, each in profile.of_curves.items()
            ]
        else:
            lines += _left_out_tables(profile.left_out) or _serving(profile.of_serving)
    blocks.append("\n".join(lines))
    return printable("\n\n".join(blocks))


KIND_HEADER = f"{'':<21}{'rows':>6}{'median':>8}{'mean':>7}{'in 10%':>8}{'groups':>8}"


def _kinds(kinds: Sequence[result.KindScores]) -> str:
    """Table of errors by kind of question over all files: rows, groups and curve shapes."""
    lines = ["By kind of question", f"{KIND_HEADER}{'constant':>9}{'roof':>6}{'shape':>7}"]
    for kind in kinds:
        scores, error = kind.scores, kind.scores.estimate
        medians = [x.median if x else nan for x in (scores.constant, scores.roofline)]
        shape = f"{scores.shape.estimate.median:>7.1%}" if scores.shape else ""
        lines.append(
            f"  {kind_name(kind)[:19]:<19}{error.n:>6,}{error.median:>8.1%}{error.mean:>7.1%}"
            f"{error.within_10:>8.1%}{scores.groups.estimate:>8.3f}"
            f"{medians[0]:>9.1%}{medians[1]:>6.0%}{shape}"
        )
    lines += wrapped(
        "groups: mean over groups of model, chip and engine of the median |log ratio|; constant, "
        "roof: medians of the baselines; shape: median error once each curve over the "
        "concurrency is scaled to meet its lowest point"
    )
    return "\n".join(lines)


def kind_name(kind: result.KindScores) -> str:
    """Name of a kind of question, with the timed quantity for aggregated and disaggregated runs."""
    timed = LABELS.get(kind.quantity, "")
    runs = kind.kind in ("aggregated", "disaggregated")
    return f"{kind.kind}, {timed}" if timed and runs else kind.kind


def shapes(models: Mapping[str, str]) -> list[str]:
    """Lines on the configurations read for models that the catalogue lacks."""
    names: dict[str, list[str]] = {}
    for name, path in models.items():
        names.setdefault(path, []).append(name)
    lines = [
        f"    {path}" + (f" for {', '.join(each)}" if each != [path] else "")
        for path, each in names.items()
    ]
    return ["  shapes that the catalogue lacks, from", *lines] if lines else []


def _file(file: result.FileScores) -> str:
    profiles, distinct = ", ".join(file.profiles) or "none", file.rows - file.repeats
    lines = [f"{file.name}: {file.rows:,} {file.kind}"]
    lines += wrapped(
        f"{file.repeats:,} repeats left out; {file.predicted:,} of {distinct:,} predicted "
        f"({_share(file.predicted, distinct)}); profile {profiles}"
    )
    engines = ", ".join(f"{name} ({n:,})" for name, n in file.engines_unseen.items())
    lines += [
        *shapes(file.models),
        *(wrapped(f"values of engines that no fit saw: {engines}") if engines else []),
    ]
    for section in file.sections:
        lines += ["", *_section(section, file.labels)]
    lines += ["", *_bounds(file)]
    if file.units:
        lines += ["", f"{len(file.units):,} values are left out: another unit, it seems"]
        lines += _listed(file.units, of="bound")
    return "\n".join(lines)


def _section(row: result.ValidationSection, labels: Mapping[str, str]) -> list[str]:
    title = f"{LABELS.get(row.quantity, row.quantity)} ({row.column})"
    title += f", {row.part}" if row.part else ""
    share = _share(row.predicted, row.rows)
    lines = [f"{title}: {row.predicted:,} of {row.rows:,} predicted ({share})"]
    lines += _scores(row, row.scores) if row.scores else wrapped("nothing to score")
    lines += reasons(row.refused, "without", "without,", row.refused_rows)
    if row.scores is not None:
        for name, rows in row.by.items():
            lines += _groups(labels[name], rows)
        lines += ["  furthest off", *_listed(row.worst[:MAX_WORST_ROWS])]
    return lines


def _scores(section: result.ValidationSection, scores: result.SectionScores) -> list[str]:
    settled, unseen, band = section.without_speculation, section.unseen, scores.band
    rows = (
        ("  estimate", scores.estimate),
        ("  constant x roofline", scores.constant),
        ("  plain roofline", scores.roofline),
        ("  unless speculating", settled and settled.estimate),
        ("  rows the fit never saw", unseen and unseen.estimate),
    )
    lines = [HEAD, *(score_line(label, score) for label, score in rows if score)]
    lines += wrapped(f"{band.holds:.1%} lie in the {band.coverage:.0%} band")
    lines += evenly(scores)
    return lines + _sample(section)


def evenly(scores: result.SectionScores) -> list[str]:
    """Errors where every group counts once, and where curves are scaled to their lowest points."""
    groups, shape = scores.groups, scores.shape
    pairs = (("constant", groups.constant), ("roofline", groups.roofline))
    beside = ", ".join(f"{name} {error:.3f}" for name, error in pairs if error is not None)
    text = f"median |log ratio|, mean over {groups.count:,} groups: {groups.estimate:.3f}"
    lines = wrapped(f"{text} ({beside})" if beside else text)
    if shape:
        roof = f" (plain roofline {shape.roofline.mean:.1%})" if shape.roofline else ""
        lines += wrapped(
            f"{shape.curves:,} curves scaled to their lowest concurrency: {shape.estimate.n:,} "
            f"other points are off by {shape.estimate.median:.1%} in the median, "
            f"{shape.estimate.mean:.1%} in the mean{roof}"
        )
    return lines


def _sample(section: result.ValidationSection) -> list[str]:
    if not section.sample_known:
        return wrapped("the profile does not record its rows: these may be in sample")
    if not section.in_sample:
        return wrapped("out of sample: no fit saw the rows it is scored on")
    return wrapped(
        f"IN SAMPLE: the profile was fitted on {section.in_sample:,} of these "
        f"{section.predicted:,} rows; its errors on rows left out stand below"
    )


def score_line(label: str, score: result.Score) -> str:
    """A line of a table under `HEAD`."""
    return (
        f"{label[:27]:<27}{score.n:>6,}{score.median:>8.1%}{score.mean:>8.1%}"
        f"{score.within_10:>8.1%}{score.within_20:>8.1%}  "
        f"{score.low:.2f}-{score.high:.2f}"
    )


def reasons(
    counts: Mapping[str, int], lack: str, rest_lack: str, rows: Mapping[str, Sequence[object]]
) -> list[str]:
    """Lines on the reasons why rows lack something: counts and first rows; then all others."""
    ranked = list(counts.items())
    lines = []
    for why, n in ranked[:REASONS]:
        named = [f"line {x}" if isinstance(x, int) else str(x) for x in rows[why]]
        places = list(dict.fromkeys(named))
        first = ", ".join(places[:ROWS_PER_REASON]) + (
            ", …" if len(places) > ROWS_PER_REASON else ""
        )
        lines += wrapped(f"{n:,} {lack} ({first}): {why}")
    if rest := [n for _, n in ranked[REASONS:]]:
        lines += wrapped(f"{sum(rest):,} {rest_lack} for {len(rest)} other reasons")
    return lines


def _groups(label: str, groups: Sequence[result.GroupScore]) -> list[str]:
    lines = [
        f"  {'by ' + label:<21}{'rows':>6}{'median':>7}{'mean':>7}{'in 10%':>7}{'in band':>8}"
        f"{'groups':>7}{'|log|':>6}{'in band':>8}"
    ]
    for group in groups[:MAX_LISTED_ROWS]:
        score = group.score
        lines.append(
            f"    {group.name[:18]:<19}{score.n:>6,}{score.median:>7.1%}{score.mean:>7.1%}"
            f"{score.within_10:>7.1%}{group.band_holds:>8.1%}{group.groups:>7}"
            f"{group.group_log:>6.3f}{group.group_band_holds:>8.1%}"
        )
    if len(groups) > MAX_LISTED_ROWS:
        lines.append(f"    and {len(groups) - MAX_LISTED_ROWS} more")
    return lines


def _bounds(file: result.FileScores) -> list[str]:
    below = file.below_bound
    if not below:
        return [f"no value of {file.bounded:,} is better than its bound"]
    lines = [f"{len(below):,} values of {file.bounded:,} are better than their bound"]
    lines += _listed(below[:MAX_BELOW_BOUND_ROWS], of="bound")
    if len(below) > MAX_BELOW_BOUND_ROWS:
        lines += wrapped(
            f"and {len(below) - MAX_BELOW_BOUND_ROWS:,} more, all of them under --json and --out"
        )
    return lines


def _listed(rows: Iterable[result.ListedRow], of: str = "estimate") -> list[str]:
    lines = []
    for row in rows:
        line = (
            f"line {row.line} {row.model} {row.chip} {row.engine} {row.setting} "
            f"{row.quantity}: {duration(row.seconds or nan)}, {of} {duration(row.expected(of))} "
            f"({row.ratio(of):.2g} x)"
        )
        lines += wrapped(line + (f"; {row.why}" if isinstance(row, result.SuspectRow) else ""))
    return lines


def _left_out_tables(left_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """Errors by way of leaving rows out, one table for each quantity."""
    lines: list[str] = []
    for quantity in dict.fromkeys(row["quantity"] for row in left_out):
        title = LABELS.get(quantity, f"{quantity.removeprefix('pooled ').upper()} of two pools")
        lines += ["" * bool(lines), f"{title}, left out", LEAVE_OUT_HEADER]
        lines += [
            f"  {row['word']:<14}{row['rows']:>7,}{row['groups']:>7}{row['median']:>8.1%}"
            f"{row['mean']:>7.1%}{row['within_10']:>7.1%}{row['group_log']:>7.3f}"
            f"{row['holds']:>8.1%}{row['width']:>6.2f}{row['constant_group_log']:>7.3f}"
            for row in left_out
            if row["quantity"] == quantity
        ]
        drawn = [
            f"{row['word']} {row['median_low']:.1%} to {row['median_high']:.1%}"
            for row in left_out
            if row["quantity"] == quantity and row.get("median_low") != row.get("median_high")
        ]
        lines += wrapped(f"medians of single draws of folds: {', '.join(drawn)}") if drawn else []
    return [*lines, *wrapped(OF_WAYS)] if lines else []


def _serving(errors: Mapping[str, float]) -> list[str]:
    head = f"{'':<27}{'rows':>6}{'median':>8}{'mean':>8}{'in 10%':>8}{'in 20%':>8}"
    lines = [f"{head}{'in band':>9}"]
    for name, recorded in left_labels(errors):
        shares = "".join(f"{recorded[share]:>8.1%}" for share in SHARES)
        holds = f"{recorded['band_holds']:>9.1%}" if "band_holds" in recorded else ""
        lines.append(f"  {name:<25}{recorded['rows']:>6,.0f}{shares}{holds}")
        for base, words in BASELINES.items():
            if f"{base}_median" in recorded:
                lines.append(f"    {words:<29}{recorded[f'{base}_median']:>8.1%}")
    return lines


def left_labels(errors: Mapping[str, float]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield a label and the errors by short name for each quantity that a profile records."""
    for label, prefix in LEFT_OUT:
        for quantity in ("tpot", "ttft"):
            begin = f"{prefix}{quantity}_"
            recorded = {x.removeprefix(begin): errors[x] for x in errors if x.startswith(begin)}
            if "rows" in recorded:
                yield f"{LABELS[quantity]}, {label}", recorded


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
