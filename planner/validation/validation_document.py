"""Everything a validation says, as one typed result: the text, the page and the JSON show it.

Scores of entries: how far off, how often within, and whether the band holds what it says.

Rows that cannot be what they say (faster than the bound, a thousand times off, speculating) are
neither hidden nor absorbed. Each is listed with the likeliest explanation, and where there is none
it says that the row or the bound is at fault.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np

from planner.calibration.cross_validation import constant, folds, group_error, mean_by_group, score
from planner.calibration.sample import configuration_key
from planner.catalogue.collective_curves import collectives
from planner.catalogue.profile import COVERAGE, profile, profile_names
from planner.measurements.entry import Entry
from planner.measurements.measurement import engine_name
from planner.measurements.readers.sheets import Measurements
from planner.measurements.roofline_bound import general_reason
from planner.measurements.training_steps import TRAINING
from planner.protocol.results import validation_result
from planner.protocol.results.validation_result import (
    BandShare,
    CurveShape,
    GroupErrors,
    GroupScore,
    KindScores,
    Score,
    SectionScores,
)

GROUP_KEYS: Mapping[str, Callable[[Entry], str]] = {
    "engine": lambda entry: entry.engine,
    "chip": lambda entry: entry.chip,
    "model": lambda entry: entry.model,
    "maker": lambda entry: entry.measurement.chip.maker if entry.measurement else "",
}


def band_share(entries: Sequence[Entry]) -> float:
    """Share of scored entries with their measured time in the band of the prediction."""
    inside = [
        e.prediction.low <= e.seconds <= e.prediction.high
        for e in entries
        if e.prediction is not None and e.seconds is not None
    ]
    return float(np.mean(inside))


def section(entries: Sequence[Entry]) -> SectionScores | None:
    """Scores of the estimate and of both baselines, None if no entry can be scored.

    Errors are those of the value in its own unit: a rate is scored as a rate.
    """
    scored = [entry for entry in entries if entry.scored]
    if not scored:
        return None
    measured = np.array([entry.measured for entry in scored], dtype=float)

    def scores(times: Iterable[float]) -> Score:
        in_unit = [entry.in_unit(float(x)) for entry, x in zip(scored, times, strict=True)]
        return score(np.array(in_unit), measured)

    times = np.array([e.prediction.estimate for e in scored if e.prediction], dtype=float)
    estimate, band = scores(times), BandShare(COVERAGE, band_share(scored))
    seconds = np.array([entry.seconds for entry in scored], dtype=float)
    groups = np.array([entry.group for entry in scored])
    count, error = len(np.unique(groups)), group_error(times / seconds, groups)
    if not all(entry.roofline for entry in scored):
        even = GroupErrors(count, error, None, None)
        return SectionScores(estimate, band, None, None, even, curve_shape(scored))
    roofs = np.array([entry.roofline for entry in scored], dtype=float)
    scaled = constant(roofs, seconds, folds(groups))
    baselines = (group_error(x / seconds, groups) for x in (roofs, scaled))
    even = GroupErrors(count, error, *baselines)
    return SectionScores(estimate, band, scores(roofs), scores(scaled), even, curve_shape(scored))


def curve_shape(scored: Sequence[Entry]) -> CurveShape | None:
    """Errors of the curves over concurrency, each scaled to agree at its lowest point."""
    curves: dict[str, list[Entry]] = defaultdict(list)
    for entry in scored:
        row = entry.measurement
        if row is not None:
            both = row.pools and (row.pools.prefill, row.pools.decode)
            curves[f"{configuration_key(row)} {both} {entry.quantity} {entry.part}"].append(entry)
    points: list[tuple[float, float, float]] = []
    guesses: tuple[Callable[[Entry], float], ...] = (
        lambda entry: entry.prediction.estimate if entry.prediction else np.nan,
        lambda entry: entry.roofline or np.nan,
    )
    count = 0
    for entries in curves.values():
        ordered = sorted(entries, key=_concurrency)
        low, lowest = ordered[0], _concurrency(ordered[0])
        rest = [entry for entry in ordered if _concurrency(entry) > lowest]
        count += bool(rest)
        for entry in rest:
            estimate, roof = (
                entry.in_unit(of(entry) * (low.seconds or np.nan) / of(low)) for of in guesses
            )
            points.append((float(entry.measured or 0.0), estimate, roof))
    if not points:
        return None
    measured, estimates, roofs = np.array(points).T
    sound = np.isfinite(roofs).all()
    return CurveShape(count, score(estimates, measured), score(roofs, measured) if sound else None)


def _concurrency(entry: Entry) -> float:
    row = entry.measurement
    if row is None:
        return 0.0
    return row.pools.concurrency if row.pools is not None else row.batch


# Kind of question of a serving row with a given batch and one pool, by the timed quantity.
STATIC = {"step": "decode", "ttft": "prefill", "e2e": "static batches"}


def by_kind(entries: Sequence[Entry]) -> list[KindScores]:
    """Scores of serving by kind of question, rows that are not clean and repeats left out."""
    members: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        row = entry.measurement
        if row is None or not entry.scored or entry.part == "not clean":
            continue
        kind = ("disaggregated" if row.pooled else "aggregated") if row.looped or row.pooled else ""
        members[kind or STATIC[entry.quantity], entry.quantity].append(entry)
    return [
        KindScores(kind, quantity, scores)
        for (kind, quantity), rows in members.items()
        if (scores := section(rows)) is not None
    ]


def group_scores(entries: Sequence[Entry], by: str) -> list[GroupScore]:
    """Scores of the entries of each engine, chip or model, those with most rows first."""
    members: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.scored:
            members[GROUP_KEYS[by](entry)].append(entry)
    groups = [
        GroupScore(name, x.estimate, x.band.holds, x.groups.count, x.groups.estimate,
                   # As bands are made: of few rows, a group weighs less.
                   mean_by_group(np.array([band_share([e]) for e in rows]),
                                 np.array([e.group for e in rows])))
        for name, rows in members.items()
        if (x := section(rows)) is not None
    ]  # fmt: skip
    return sorted(groups, key=lambda group: (-group.score.n, group.name))


SPECULATION_RATIO = 0.85  # a group this much faster than expected speculates
SLACK = 1e-9


def faster_than_bound(entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """Every row faster than its bound, with the explanation; rows of one table."""
    groups = inferred_speculation(entries)
    return [
        (entry, _explained(entry, groups))
        for entry in entries
        if entry.seconds is not None
        and entry.bound is not None
        and entry.seconds < entry.bound * (1 - SLACK)
    ]


def suspected_unit_errors(entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """Rows about a thousand times slower or faster than possible: probably a wrong unit."""
    return [(entry, entry.unit) for entry in entries if entry.unit]


def inferred_speculation(entries: Sequence[Entry]) -> frozenset[str]:
    """Groups of runs that only speculated tokens explain, which the table does not state.

    A latent choice, made once for all rows of a model, chip, engine, version and precision.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        row = entry.measurement
        if row is None or entry.prediction is None or entry.quantity != "tpot":
            continue
        if row.speculated is None and row.sizes.mtp_blocks:
            ratios[speculation_group(entry)].append(row.seconds / entry.prediction.estimate)
    return frozenset(key for key, each in ratios.items() if np.median(each) < SPECULATION_RATIO)


def speculation_group(entry: Entry) -> str:
    """Key of the choice to speculate: group, precision and engine version of the row."""
    precision = entry.measurement.precision if entry.measurement else ""
    return f"{entry.group} {precision} {entry.version}"


def _explained(entry: Entry, groups: frozenset[str]) -> str:
    row = entry.measurement
    if entry.unit:
        return entry.unit
    if speculation_group(entry) in groups:
        return "tokens seem to be speculated, which the table does not state"
    pools = row.pools if row is not None else None
    if pools is not None and not (pools.prefill.stated and pools.decode.stated):
        return "its workers are not given: those of most such runs were assumed"
    if row is not None and row.assumed:
        return f"assumed, as it is not given: {row.assumed}"
    if row is not None and not row.quality.startswith(("clean", "run")):
        return f"marked {row.quality!r} by its source"
    return "suspect data or a fault of ours"


MAX_WORST_ROWS = 10
ALL_LABEL = "all of them"
# Labels of groupings in tables without an engine that serves a model.
LABELS = {
    "collectives": {"engine": "algorithm", "model": "operation"},
    "exchanges": {"engine": "algorithm", "model": "operation"},
    "steady batches": {"engine": "engine or source"},
    "training runs": {"engine": "recomputation"},
}


def document(
    wanted: str,
    read: Iterable[tuple[Measurements, Sequence[Entry]]],
    by: Sequence[str] = tuple(GROUP_KEYS),
    refit: str | None = None,
    skipped: Sequence[validation_result.SkippedFile] = (),
) -> validation_result.ValidationDocument:
    """Validation of some files, and the errors that the profiles record of themselves.

    Args:
        wanted: the profile that was asked for.
        read: tables with their entries.
        by: groupings of the tables: engine, chip, model, maker.
        refit, skipped: as in `ValidationDocument`.
    """
    tables = list(read)
    files = [_file(table, entries, by) for table, entries in tables]
    kinds = by_kind([entry for _, entries in tables for entry in entries])
    scored = any(part.scores for file in files for part in file.sections)
    serving = [file for file in files if file.kind != TRAINING]  # training has its own file
    profiles = sorted({name for file in serving for name in file.profiles})
    status = "scored" if scored else ("nothing to score" if files else "recorded")
    # Errors that profiles record of themselves, on held-out rows.
    names = profiles if files else profile_names()
    shipped, of_user = profile_names(), Path(wanted).stem if wanted.endswith(".toml") else None
    # Others are fits to the rows themselves, or the collectives that follow.
    used = [profile(wanted if x == of_user else x) for x in names if x in (of_user, *shipped)]
    recorded = [
        validation_result.ProfileRecord(
            x.name,
            "serving",
            x.as_of,
            x.engine,
            x.chips,
            x.rows,
            x.source,
            x.coverage,
            x.errors,
            x.left_out if x.engine == "any" else (),  # of one engine they are those of all
        )
        for x in used
    ]
    if not files or "collectives" in names:
        x = collectives()
        chips = sorted(x.families)
        of = ("collectives", "collectives", x.as_of, "any", chips)
        record = validation_result.ProfileRecord(*of, x.rows, x.source, x.coverage, x.errors)
        recorded.append(record)
    question = (wanted, refit, kinds, files, skipped)
    versions = {"version": version("token-planner")}
    return validation_result.ValidationDocument("validation", status, *question, recorded, versions)


def _file(
    table: Measurements, entries: Sequence[Entry], by: Sequence[str]
) -> validation_result.FileScores:
    distinct = {e.row for e in entries if not e.repeat}
    shipped = set(profile_names())
    unseen = (
        e.engine
        for e in entries
        if e.measurement is not None
        and e.profile in shipped
        and not {engine_name(e.measurement), e.measurement.engine} & {*profile(e.profile).engines}
    )
    return validation_result.FileScores(
        table.name,
        table.kind,
        dict(sorted(table.models.items())),
        rows=len(table.rows),
        repeats=len(table.rows) - len(distinct),
        predicted=len({e.row for e in entries if e.prediction is not None and not e.repeat}),
        labels={name: LABELS.get(table.kind, {}).get(name, name) for name in by},
        profiles=sorted({e.profile for e in entries if e.profile}),
        engines_unseen=dict(Counter(unseen).most_common()),
        sections=[_section(*part, by) for part in _by_part(entries)],
        below_bound=[_suspect(e, why) for e, why in faster_than_bound(entries)],
        bounded=sum(e.seconds is not None and e.bound is not None for e in entries),
        units=[_suspect(e, why) for e, why in suspected_unit_errors(entries)],
    )


def _by_part(entries: Sequence[Entry]) -> list[tuple[str, str, list[Entry]]]:
    """Entries by part and quantity; where one column holds several quantities, all of them first.

    Quantities without a prediction are then left to the whole, which says why.
    """
    parts = []
    for part in dict.fromkeys(entry.part for entry in entries):
        whole = [entry for entry in entries if entry.part == part]
        quantities = dict.fromkeys(entry.quantity for entry in whole)
        split = [(part, name, [e for e in whole if e.quantity == name]) for name in quantities]
        if len(split) > 1 and len({entry.column for entry in whole}) == 1:
            split = [each for each in split if any(entry.scored for entry in each[2])]
            split = [(part, ALL_LABEL, whole), *(split if len(split) > 1 else [])]
        parts += split
    return sorted(parts, key=lambda part: not any(entry.scored for entry in part[2]))


def _section(
    part: str, quantity: str, entries: Sequence[Entry], by: Sequence[str]
) -> validation_result.ValidationSection:
    distinct = [entry for entry in entries if not entry.repeat]
    scored = [entry for entry in distinct if entry.scored]
    suspects = inferred_speculation(distinct)
    rest = [entry for entry in distinct if speculation_group(entry) not in suspects]
    unseen = [entry for entry in distinct if entry.seen is False]
    refused: dict[str, list[int]] = defaultdict(list)
    for entry in distinct:
        if entry.reason:
            refused[general_reason(entry.reason)].append(entry.line)
    counts = Counter({why: len(lines) for why, lines in refused.items()})
    ranked = sorted(scored, key=lambda e: -abs(_ratio(e) - 1))
    return validation_result.ValidationSection(
        part,
        quantity,
        entries[0].column,
        rows=len(distinct),
        predicted=len(scored),
        refused=dict(counts.most_common()),
        refused_rows=refused,
        in_sample=sum(e.seen is True for e in scored),
        sample_known=all(e.seen is not None for e in scored),
        scores=section(distinct),
        speculating=sorted(suspects),
        without_speculation=section(rest) if suspects else None,
        unseen=section(unseen) if any(e.seen for e in scored) else None,
        by={name: group_scores(distinct, name) for name in by},
        worst=[_listed(entry) for entry in ranked[:MAX_WORST_ROWS]],
        points=[
            validation_result.PlotPoint(
                e.line, e.engine, e.chip, e.model, e.seconds, made.estimate, made.low, made.high
            )
            for e in scored
            if (made := e.prediction) is not None and e.seconds is not None
        ],
    )


def _ratio(entry: Entry) -> float:
    if entry.prediction is None or entry.measured is None:
        return 1.0
    return entry.in_unit(entry.prediction.estimate) / entry.measured


def _listed(entry: Entry) -> validation_result.ListedRow:
    engine = f"{entry.engine} {entry.version}".strip()
    made = (entry.quantity, entry.model, entry.chip, engine, entry.setting)
    estimate = entry.prediction.estimate if entry.prediction else None
    times = (entry.measured, entry.seconds, estimate, entry.bound)
    return validation_result.ListedRow(entry.line, *made, *times)


def _suspect(entry: Entry, why: str) -> validation_result.SuspectRow:
    return validation_result.SuspectRow(**asdict(_listed(entry)), why=why)
