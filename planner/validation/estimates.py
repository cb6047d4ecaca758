"""Predictions for entries that calibration can read, row by row where one of them cannot be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formulas.nomenclature.symbols import SymbolError
from planner.calibration.baselines import roofline
from planner.calibration.marks import mark, seen_by
from planner.catalogue.profile import profile as named
from planner.measurements.entry import Entry
from planner.measurements.measurement import Measurement
from planner.measurements.networks import network_between
from planner.measurements.places import profile_of
from planner.measurements.prediction import Prediction, predict
from planner.measurements.roofline_bound import bounds_of, strange_units
from planner.text.errors import PlannerError
from topologies import TopologyError

__all__ = ["estimated"]

AUTO = "auto"


def estimated(entries: Sequence[Entry], wanted: str) -> list[Entry]:
    """The entries with a bound, an estimate and its band, or the reason why there is none.

    Parameters
    ----------
    wanted : a profile's name, or `auto`.

    Raises
    ------
    CatalogueError
        If there is no such profile.
    """
    if wanted != AUTO:
        named(wanted)
    at = [i for i, entry in enumerate(entries) if entry.measurement is not None]
    rows = [entry.measurement for entry in entries if entry.measurement is not None]
    found = list(entries)
    told = [_unfit(row) for row in rows]
    fit = [i for i, why in enumerate(told) if not why]
    predictions = dict(zip(fit, _predicted([rows[i] for i in fit], wanted), strict=True))
    sound = [i for i in fit if isinstance(predictions[i], Prediction)]
    roofs = dict(zip(sound, roofline([rows[i] for i in sound]), strict=True))
    bounds, units = bounds_of(rows), strange_units(rows)
    for i, (place, row) in enumerate(zip(at, rows, strict=True)):
        made = predictions.get(i)
        if isinstance(made, Prediction):
            name = profile_of(row, wanted).name
            fitted = seen_by(name)
            found[place] = replace(
                entries[place],
                prediction=made,
                bound=float(bounds[i]),
                unit=units[i] or "",
                roofline=roofs[i],
                profile=name,
                seen=None if fitted is None else mark(row) in fitted,
            )
        else:
            reason = told[i] or made or ""
            found[place] = replace(
                entries[place], bound=float(bounds[i]), unit=units[i] or "", reason=reason
            )
    return found


def _unfit(row: Measurement) -> str:
    """Why there is a bound and no estimate, empty where there is one."""
    if row.layout is None:
        return "the layout is not understood"
    if network_between(row.chip.name, row.machine, row.chips) is None:
        return f"no network is known that joins {row.chips} {row.chip.name}"
    return ""


def _predicted(rows: Sequence[Measurement], wanted: str) -> list[Prediction | str]:
    """Predictions; where they fail together, halves are tried until the row at fault is alone."""
    if not rows:
        return []
    try:
        return list(predict(rows, wanted))
    except (PlannerError, TopologyError, SymbolError) as error:
        if len(rows) == 1:
            return [" ".join(str(error).split())]
    half = len(rows) // 2
    return [*_predicted(rows[:half], wanted), *_predicted(rows[half:], wanted)]
