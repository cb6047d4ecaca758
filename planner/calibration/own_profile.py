"""A profile from a user's own rows, with its errors on rows left out and baselines beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.benchmark import ceilings, read_measured
from planner.calibration.bands import FEWEST_OWN, everywhere, own_bands, own_coverage
from planner.calibration.baselines import constant, roofline
from planner.calibration.cross_validation import LeftOut
from planner.calibration.own_fit import OwnFit, estimates_at, left_out, own_fit, seen_by_rows
from planner.calibration.sample import (
    BELOW,
    Rows,
    Sample,
    own_rows,
    own_sample,
    row_digest,
    seen_by,
)
from planner.calibration.scores import score
from planner.catalogue.profile import KNOWN, Band, Profile, choose_profile
from planner.catalogue.profile_checks import unsound
from planner.catalogue.systems import system, system_names
from planner.measurements.measurement import Measurement
from planner.measurements.readers import Readings
from planner.text.errors import Infeasible, InputError

FEWEST_RUNS = 3
WORST = 3  # rows that are named
QUANTITIES = ("tpot", "ttft")


@dataclass(frozen=True)
class Calibrated:
    """The profile, None where the rows identify none, and the document that says all of it."""

    profile: Profile | None
    document: dict[str, Any]
    why: str = ""


def calibrated(
    files: Mapping[str, Readings], name: str, as_of: str, like: str, measured: Path | None = None
) -> Calibrated:
    """A profile fitted on the rows of files, by name, starting from a shipped one.

    Parameters
    ----------
    as_of : the day that the profile is dated.
    like : name or file of the profile to start from, `auto` for the one that a plan would take.
    measured : a file of `planner measure`, whose figures limit efficiencies.

    Raises
    ------
    CatalogueError
        If there is no profile `like`.
    InputError
        If the measured chip is not that of the rows, or the file is none.
    """
    rows = own_rows(files)
    head = _head(files, rows, name, as_of)
    try:
        _enough(rows)
    except Infeasible as why:
        return Calibrated(None, {**head, "status": "not identified", "why": str(why)}, str(why))
    start, notes = _start(rows.usable, like)
    sample = own_sample(rows, start.as_of)
    base = seen_by_rows(start, sample.places)
    limits = _limits(rows.usable, measured)
    fit = own_fit(sample, base, limits)
    left, what = left_out(sample, base, limits)
    measured_bands = own_bands(left)
    scores = _scores(sample, start, left)
    coverage = own_coverage(left)
    profile = _profile(
        fit, sample, measured_bands, scores, coverage, name, as_of, start, list(files)
    )
    document = {
        **head,
        "status": "fitted",
        "like": start.name,
        "engine": profile.engine,
        "chips": list(profile.chips),
        "models": list(profile.models),
        "left_out_by": what,
        "errors": scores,
        "coefficients": [asdict(each) for each in fit.coefficients],
        "adjustments": [
            {"of": list(a.of), "scope": dict(a.scope), "factor": a.factor,
             "interval": list(a.interval)}
            for a in fit.profile.adjustments[len(base.adjustments):]
        ],
        "bands": _told_bands(profile, measured_bands, start, coverage),
        "worst": _worst(sample, left),
        "limits": dict(limits),
        "notes": [*notes, *_beside(scores, start, sample.rows)],
    }  # fmt: skip
    return Calibrated(profile, document)


def _head(files: Mapping[str, Readings], rows: Rows, name: str, as_of: str) -> dict[str, Any]:
    return {
        "calibration": name,
        "as_of": as_of,
        "files": [
            {
                "name": file,
                "kind": one.columns,
                "lines": one.lines,
                "models": dict(sorted(one.models.items())),
            }
            for file, one in files.items()
        ],
        "rows": {
            "lines": rows.lines,
            "values": len(rows.usable) + sum(rows.left_out.values()),
            "used": len(rows.usable),
            "runs": len({row.id for row in rows.usable}),
            "left_out": dict(rows.left_out),
        },
    }


def _enough(rows: Rows) -> None:
    """Raises Infeasible, in a sentence, where the rows cannot identify anything."""
    runs = len({row.id for row in rows.usable})
    if runs >= FEWEST_RUNS:
        return
    reason = f"{runs} of {rows.lines} runs can be used" if runs else "no run can be used"
    below = rows.left_out.get(BELOW, 0)
    if below > len(rows.usable):
        reason += f", {below:,} values are faster than the bound"
        hint = "check chip, formats, layout and units of the rows"
    else:
        hint = f"a profile needs {FEWEST_RUNS} runs at least, better some at different batches"
    raise Infeasible(f"{reason}: nothing can be identified; {hint}")


def _start(rows: Sequence[Measurement], like: str) -> tuple[Profile, list[str]]:
    """The profile to start from: for most of the rows, where their chips ask for several."""
    chips = Counter(row.chip.name for row in rows)
    chip = max(sorted(chips), key=lambda name: chips[name])
    start, borrowed = choose_profile(like, chip)
    unsound_reason = unsound(start)
    if unsound_reason is not None:
        raise InputError(f"{like}: is no sound profile: {unsound_reason}")
    return start, [borrowed] if borrowed else []


def _limits(rows: Sequence[Measurement], path: Path | None) -> Mapping[str, float]:
    """The most that efficiencies can be, by the file of a measured chip."""
    if path is None:
        return {}
    measured, refusals = read_measured(path), []
    for row in {row.chip.name: row for row in rows}.values():
        links = {
            one.scale_up
            for one in map(system, system_names())
            if one.chip.name == row.chip.name and one.topology == row.machine
        }
        link = links.pop() if len(links) == 1 else None
        try:
            return ceilings(measured, row.chip, link)
        except InputError as error:
            refusals.append(str(error))
    raise InputError(f"{path.name}: {refusals[0]}")


def _scores(sample: Sample, start: Profile, left: LeftOut) -> dict[str, dict[str, Any]]:
    """Errors by quantity: of the profile before, of fits that did not see a row, of baselines."""
    before, roofs = estimates_at(sample, start), np.array(roofline(sample.rows))
    groups = [str(fold) for fold in left.fold]
    scores_by_quantity = {}
    for name, mask in zip(QUANTITIES, (~sample.prompts, sample.prompts), strict=True):
        if not mask.any():
            continue
        seconds, row_groups = sample.seconds[mask], [groups[i] for i in np.flatnonzero(mask)]
        scaled = constant(roofs[mask], seconds, row_groups)
        scores_by_quantity[name] = {
            which: asdict(score(times, seconds))
            for which, times in (
                ("before", before[mask]),
                ("after", left.estimate[mask]),
                ("constant", scaled),
                ("roofline", roofs[mask]),
            )
        }
    return scores_by_quantity


def _beside(
    scores: Mapping[str, Mapping[str, Any]], start: Profile, rows: Sequence[Measurement]
) -> list[str]:
    """What to know of the errors before: whether they are in sample, and whether they fell."""
    digests = seen_by(start.name)
    seen = sum(row_digest(row) in digests for row in rows) if digests else 0
    if seen:
        return [
            f"IN SAMPLE: {start.name} was fitted on {seen:,} of these {len(rows):,} values, so its "
            "errors as it is are no errors on rows left out"
        ]
    if any(each["after"]["mean"] < each["before"]["mean"] for each in scores.values()):
        return []
    return [
        f"on rows left out this profile errs no less than {start.name} as it is: these rows ask "
        "for none of their own"
    ]


def _profile(
    fit: OwnFit,
    sample: Sample,
    measured_bands: Mapping[str, Band],
    scores: Mapping[str, Mapping[str, Any]],
    coverage: Mapping[str, float],
    name: str,
    as_of: str,
    start: Profile,
    files: Sequence[str],
) -> Profile:
    bands = everywhere(start, measured_bands)
    errors: dict[str, float] = {}
    for quantity, by_method in scores.items():
        for key in ("n", "median", "mean", "within_10", "within_20"):
            errors[f"{quantity}_{'rows' if key == 'n' else key}"] = by_method["after"][key]
        for which in ("before", "constant", "roofline"):
            errors[f"{quantity}_{which}_median"] = by_method[which]["median"]
    errors |= {f"{name}_band_holds": share for name, share in coverage.items()}
    runs = len({row.id for row in sample.rows})
    return replace(
        fit.profile,
        name=name,
        as_of=as_of,
        chips=tuple(sorted(set(sample.column("chip_name").tolist()))),
        # As the checkpoint is called that ran, and as a scenario with `choose.weights` calls it.
        models=tuple(sorted({n for row in sample.rows for n in (row.sizes.name, row.model)})),
        engines=tuple(sorted({p.engine for p in sample.places if p.engine})),
        rows=len(sample.rows),
        source=f"{', '.join(files)}: {runs} runs of one's own, starting from {start.name}",
        bands=bands[KNOWN]["any"],
        all_bands=MappingProxyType(dict(bands)),
        errors=MappingProxyType(errors),
    )


def _told_bands(
    profile: Profile,
    measured_bands: Mapping[str, Band],
    start: Profile,
    coverage: Mapping[str, float],
) -> dict[str, Any]:
    return {
        name: {
            "low": band.low,
            "high": band.high,
            "from": "rows left out" if name in measured_bands else start.name,
            "fewest": FEWEST_OWN,
            "holds": coverage.get(name) if name in measured_bands else None,
        }
        for name, band in profile.bands.items()
    }


def _worst(sample: Sample, left: LeftOut) -> list[dict[str, Any]]:
    """The rows that the others explain least."""
    off = np.abs(np.log(left.estimate / sample.seconds))
    return [
        {
            "row": sample.rows[i].id,
            "quantity": sample.rows[i].quantity,
            "measured": float(sample.seconds[i]),
            "estimate": float(left.estimate[i]),
        }
        for i in np.argsort(-off, kind="stable")[:WORST].tolist()
    ]
