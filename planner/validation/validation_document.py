"""Everything a validation says, as one typed result: the text, the page and the JSON show it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from planner.catalogue.collective_curves import collectives
from planner.catalogue.profile import profile, profile_names
from planner.measurements.entry import Entry
from planner.measurements.measurement import engine_of
from planner.measurements.readers.sheets import MeasurementTable
from planner.measurements.roofline_bound import general_reason
from planner.measurements.training_steps import TRAINING
from planner.protocol.results import validation_result
from planner.validation import entry_scores

WORST = 10
EVERY = "all of them"
# What the groupings are called where no engine serves no model.
LABELS = {
    "collectives": {"engine": "algorithm", "model": "operation"},
    "exchanges": {"engine": "algorithm", "model": "operation"},
    "steady batches": {"engine": "engine or source"},
    "training runs": {"engine": "recomputation"},
}


def document(
    wanted: str,
    read: Iterable[tuple[MeasurementTable, Sequence[Entry]]],
    by: Sequence[str] = tuple(entry_scores.GROUPINGS),
    refit: str | None = None,
    skipped: Sequence[validation_result.SkippedFile] = (),
) -> validation_result.ValidationDocument:
    """The validation of some files, and what the profiles record of themselves.

    Parameters
    ----------
    wanted : the profile that was asked for.
    read : tables with their entries.
    by : groupings of the tables: engine, chip, model, maker.
    refit, skipped : as in `ValidationDocument`.
    """
    tables = list(read)
    files = [_file(table, entries, by) for table, entries in tables]
    kinds = entry_scores.by_kind([entry for _, entries in tables for entry in entries])
    scored = any(part.scores for file in files for part in file.sections)
    serving = [file for file in files if file.kind != TRAINING]  # stacks stand in their own file
    profiles = sorted({name for file in serving for name in file.profiles})
    status = "scored" if scored else ("nothing to score" if files else "recorded")
    recorded = _recorded(profiles if files else profile_names(), wanted, bool(files))
    question = (wanted, refit, kinds, files, skipped)
    versions = {"version": version("token-planner")}
    return validation_result.ValidationDocument("validation", status, *question, recorded, versions)


def _file(
    table: MeasurementTable, entries: Sequence[Entry], by: Sequence[str]
) -> validation_result.FileScores:
    distinct = {e.row for e in entries if not e.repeat}
    return validation_result.FileScores(
        table.name,
        table.kind,
        dict(sorted(table.models.items())),
        rows=len(table.rows),
        repeats=len(table.rows) - len(distinct),
        predicted=len({e.row for e in entries if e.prediction is not None and not e.repeat}),
        labels={name: LABELS.get(table.kind, {}).get(name, name) for name in by},
        profiles=sorted({e.profile for e in entries if e.profile}),
        engines_unseen=_engines_unseen(entries),
        sections=[_section(*part, by) for part in _by_part(entries)],
        below_bound=[_suspect(e, why) for e, why in entry_scores.below_bound(entries)],
        bounded=sum(e.seconds is not None and e.bound is not None for e in entries),
        units=[_suspect(e, why) for e, why in entry_scores.unit_suspects(entries)],
    )


def _engines_unseen(entries: Sequence[Entry]) -> dict[str, int]:
    """Engines that the profile of their rows was not fitted on, with how many values each."""
    shipped = set(profile_names())
    unseen = (
        e.engine
        for e in entries
        if e.measurement is not None
        and e.profile in shipped
        and not {engine_of(e.measurement), e.measurement.engine} & {*profile(e.profile).engines}
    )
    return dict(Counter(unseen).most_common())


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
            split = [(part, EVERY, whole), *(split if len(split) > 1 else [])]
        parts += split
    return sorted(parts, key=lambda part: not any(entry.scored for entry in part[2]))


def _section(
    part: str, quantity: str, entries: Sequence[Entry], by: Sequence[str]
) -> validation_result.ValidationSection:
    distinct = [entry for entry in entries if not entry.repeat]
    scored = [entry for entry in distinct if entry.scored]
    suspects = entry_scores.speculating(distinct)
    rest = [entry for entry in distinct if entry_scores.settled(entry) not in suspects]
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
        scores=entry_scores.section(distinct),
        speculating=sorted(suspects),
        without_speculation=entry_scores.section(rest) if suspects else None,
        unseen=entry_scores.section(unseen) if any(e.seen for e in scored) else None,
        by={name: entry_scores.grouped(distinct, name) for name in by},
        worst=[_listed(entry) for entry in ranked[:WORST]],
        points=[
            validation_result.PlotPoint(
                e.line, e.engine, e.chip, e.model, e.seconds, made.estimate, made.low, made.high
            )
            for e in scored
            if (made := e.prediction) is not None and e.seconds is not None
        ],
    )


def _ratio(entry: Entry) -> float:
    """Predicted over measured, in the value's own unit."""
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


def _recorded(
    names: Sequence[str], wanted: str, scored: bool
) -> list[validation_result.ProfileRecord]:
    """What profiles say of their own errors, on rows that their fits did not see."""
    shipped, of_user = profile_names(), Path(wanted).stem if wanted.endswith(".toml") else None
    # Others are fits to the rows themselves, or the collectives that follow.
    used = [profile(wanted if x == of_user else x) for x in names if x in (of_user, *shipped)]
    records = [
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
    if not scored or "collectives" in names:
        x = collectives()
        chips = sorted(x.families)
        of = ("collectives", "collectives", x.as_of, "any", chips)
        record = validation_result.ProfileRecord(*of, x.rows, x.source, x.coverage, x.errors)
        records.append(record)
    return records
