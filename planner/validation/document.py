"""Everything a validation says, as one document: the text, the page and the JSON show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planner.calibration.suspects import below_bound, settled, speculating, unit_suspects
from planner.catalogue.collective_curves import collectives
from planner.catalogue.profile import profile, profile_names
from planner.measurements.entry import Entry
from planner.measurements.measurement import engine_of
from planner.measurements.readers.sheets import MeasurementTable
from planner.measurements.roofline_bound import alike
from planner.validation.entry_scores import GROUPINGS, grouped, section
from planner.validation.estimates import SkippedFile

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
    by: Sequence[str] = tuple(GROUPINGS),
    refit: str | None = None,
    skipped: Sequence[SkippedFile] = (),
) -> dict[str, Any]:
    """The validation of some files, and what the profiles record of themselves.

    Parameters
    ----------
    wanted : the profile that was asked for.
    read : tables with their entries.
    by : groupings of the tables: engine, chip, model.
    refit : what was left out of fits to the rows themselves, None for a profile as it ships.
    skipped : files of folders that were not read, and why.
    """
    files = [_file(table, entries, by) for table, entries in read]
    scored = any(each["scores"] for file in files for each in file["sections"])
    used = sorted({name for file in files for name in file["profiles"]})
    return {
        "problem": "validation",
        "status": "scored" if scored else ("nothing to score" if files else "recorded"),
        "profile": wanted,
        "refit": refit,
        "files": files,
        "skipped": [asdict(each) for each in skipped],
        "recorded": _recorded(used if files else profile_names(), wanted, bool(files)),
        "provenance": {"version": version("token-planner")},
    }


def _file(table: MeasurementTable, entries: Sequence[Entry], by: Sequence[str]) -> dict[str, Any]:
    sections = [_section(*each, by) for each in _parts(entries)]
    distinct = {e.row for e in entries if not e.repeat}
    predicted = {e.row for e in entries if e.prediction is not None and not e.repeat}
    return {
        "name": table.name,
        "kind": table.kind,
        "models": dict(sorted(table.models.items())),
        "rows": len(table.rows),
        "repeats": len(table.rows) - len(distinct),
        "predicted": len(predicted),
        "labels": {name: LABELS.get(table.kind, {}).get(name, name) for name in by},
        "profiles": sorted({e.profile for e in entries if e.profile}),
        "engines_unseen": _engines_unseen(entries),
        "sections": sections,
        "below_bound": [_row(e, why=why) for e, why in below_bound(entries)],
        "bounded": sum(e.seconds is not None and e.bound is not None for e in entries),
        "units": [_row(e, why=why) for e, why in unit_suspects(entries)],
    }


def _engines_unseen(entries: Sequence[Entry]) -> dict[str, int]:
    """Engines that the profile of their rows was not fitted on, with how many values each."""
    shipped = set(profile_names())
    return dict(
        Counter(
            e.engine
            for e in entries
            if e.measurement is not None
            and e.profile in shipped
            and engine_of(e.measurement) not in profile(e.profile).engines
            and e.measurement.engine not in profile(e.profile).engines
        ).most_common()
    )


def _parts(entries: Sequence[Entry]) -> list[tuple[str, str, list[Entry]]]:
    """Entries by part and quantity; where one column holds several quantities, all of them first.

    Quantities without a prediction are then left to the whole, which tells why.
    """
    sections = []
    for part in dict.fromkeys(entry.part for entry in entries):
        whole = [entry for entry in entries if entry.part == part]
        quantities = dict.fromkeys(entry.quantity for entry in whole)
        split = [(part, name, [e for e in whole if e.quantity == name]) for name in quantities]
        if len(split) > 1 and len({entry.column for entry in whole}) == 1:
            split = [section for section in split if any(entry.scored for entry in section[2])]
            split = [(part, EVERY, whole), *(split if len(split) > 1 else [])]
        sections += split
    return sorted(sections, key=lambda section: not any(entry.scored for entry in section[2]))


def _section(
    part: str, quantity: str, entries: Sequence[Entry], by: Sequence[str]
) -> dict[str, Any]:
    distinct = [entry for entry in entries if not entry.repeat]
    scored = [entry for entry in distinct if entry.scored]
    suspects = speculating(distinct)
    rest = [entry for entry in distinct if settled(entry) not in suspects]
    ranked = sorted(scored, key=lambda e: -abs(_ratio(e) - 1))
    return {
        "part": part,
        "quantity": quantity,
        "column": entries[0].column,
        "rows": len(distinct),
        "predicted": len(scored),
        "refused": dict(Counter(alike(e.reason) for e in distinct if e.reason).most_common()),
        "in_sample": sum(e.seen is True for e in scored),
        "sample_known": all(e.seen is not None for e in scored),
        "scores": section(distinct),
        "speculating": sorted(suspects),
        "without_speculation": section(rest) if suspects else None,
        "unseen": section([e for e in distinct if e.seen is False])
        if any(e.seen for e in scored)
        else None,
        "by": {name: grouped(distinct, name) for name in by},
        "worst": [_row(entry) for entry in ranked[:WORST]],
        "points": [_point(entry) for entry in scored],
    }


def _ratio(entry: Entry) -> float:
    """Predicted over measured, in the value's own unit."""
    if entry.prediction is None or entry.measured is None:
        return 1.0
    return entry.in_unit(entry.prediction.estimate) / entry.measured


def _row(entry: Entry, **more: str) -> dict[str, Any]:
    """One row as it is listed."""
    return {
        "line": entry.line,
        "quantity": entry.quantity,
        "model": entry.model,
        "chip": entry.chip,
        "engine": f"{entry.engine} {entry.version}".strip(),
        "setting": entry.setting,
        "measured": entry.measured,
        "seconds": entry.seconds,
        "estimate": entry.prediction.estimate if entry.prediction else None,
        "bound": entry.bound,
        **more,
    }


def _point(entry: Entry) -> dict[str, Any]:
    """One point of a plot; times are in s."""
    prediction = entry.prediction
    return {
        "line": entry.line,
        "engine": entry.engine,
        "chip": entry.chip,
        "model": entry.model,
        "measured": entry.seconds,
        "estimate": prediction.estimate if prediction else None,
        "low": prediction.low if prediction else None,
        "high": prediction.high if prediction else None,
    }


def _recorded(names: Sequence[str], wanted: str, scored: bool) -> list[dict[str, Any]]:
    """What profiles say of their own errors, on rows that their fits did not see."""
    records: list[dict[str, Any]] = []
    shipped = profile_names()
    for name in names:
        is_own = wanted.endswith(".toml") and Path(wanted).stem == name
        if not is_own and name not in shipped:
            continue  # a fit to the rows themselves, or the collectives that follow
        profile_used = profile(wanted if is_own else name)
        records.append(
            {
                "name": name,
                "kind": "serving",
                "as_of": profile_used.as_of,
                "engine": profile_used.engine,
                "chips": list(profile_used.chips),
                "rows": profile_used.rows,
                "source": profile_used.source,
                "coverage": profile_used.coverage,
                "errors": dict(profile_used.errors),
            }
        )
    if not scored or "collectives" in names:
        network = collectives()
        records.append(
            {
                "name": "collectives",
                "kind": "collectives",
                "as_of": network.as_of,
                "engine": "any",
                "chips": sorted(network.families),
                "rows": network.rows,
                "source": network.source,
                "coverage": network.coverage,
                "errors": {name: dict(each) for name, each in network.errors.items()},
            }
        )
    return records
