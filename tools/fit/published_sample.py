"""Which published rows profiles that ship are fitted on, which not and why; what each counts.

The rows that a fit saw are kept as digests beside its profile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from planner.calibration.sample import (
    EXCLUDE_MIXED_STEPS,
    EXCLUDE_QUEUED_PREFILL,
    EXCLUDE_UNFINISHED,
    REPEAT,
    TTFT_WEIGHT,
    USER_EXCLUSION_RULES,
    Rule,
    Sample,
    first_reason,
    make_sample,
    row_digest,
)
from planner.catalogue.coefficient_spread import RunContext, effect_applies
from planner.catalogue.profile import COEFFICIENTS, older_kernels
from planner.measurements.measurement import Measurement, is_new, row_context, skip_reason
from planner.measurements.roofline_bound import row_bounds
from planner.text.tables import table

# The few published steps of engines of 2025 are all there is of groups of more than eight chips.
WIDE_WEIGHT = 5.0
NO_LAYOUT, NO_NETWORK = "layout not understood", "no network known between the chips"
MAKERS: Mapping[str, float] = table("tools.fit", "fit_priors.toml")["weights"]
POOLED_WEIGHT = 0.5  # the number of requests that decode is worked out, not given
QUALITY: Rule = ("quality {0.quality}", lambda row: not row.quality.startswith("clean"))
DRAFTED: Rule = ("tokens are drafted", lambda row: bool(row.drafts or row.speculated))
ASSUMED_SETUP: Rule = (
    "workers or requests of the pools not published",
    lambda row: bool(row.assumed),
)
PUBLISHED_SETUP: Rule = (
    "all of the setup is published",
    lambda row: not row_context(row, "2026-01").assumed,
)
OLD: Rule = ("of an engine before those of the runs", lambda row: not is_new(row))
NEW: Rule = ("of an engine of the runs", is_new)
# Runs under load: TPOT and TTFT of one pool, TPOT of two; clean steady batches of their engines.
LOOPED, STATIC = (
    (EXCLUDE_UNFINISHED, EXCLUDE_QUEUED_PREFILL, DRAFTED, ASSUMED_SETUP, EXCLUDE_MIXED_STEPS),
    (QUALITY, DRAFTED, OLD, EXCLUDE_MIXED_STEPS),
)
RULES: Mapping[str, Callable[[Measurement], Sequence[Rule]]] = {
    "runs": lambda row: LOOPED if row.looped else STATIC,
    "assumed_setup": lambda row: (EXCLUDE_UNFINISHED, PUBLISHED_SETUP),
    "steady": lambda row: (QUALITY, NEW, DRAFTED, EXCLUDE_MIXED_STEPS),
}


def published_sample(rows: Sequence[Measurement], kind: str, as_of: str) -> Sample:
    """Published rows of a kind whose network is known, as seen by a profile of a date.

    Parameters
    ----------
    kind : `runs` of whole engines, and clean steady batches of the same engines, that may be
        fitted; `assumed_setup` runs of two pools, which no fit may see because something about
        them is worked out; clean `steady` batches of engines before those of the runs.
    """
    left_out: Counter[str] = Counter()
    usable = []
    # What only fewer requests in flight explain tells nothing of steps with those that were sent.
    for row, bound in zip(rows, row_bounds(rows, sent=True), strict=True):
        why = _unfit(row, float(bound)) or first_reason(row, RULES[kind](row))
        if why:
            left_out[why] += 1
        else:
            usable.append(row)
    return weighed(usable, [row_context(row, as_of) for row in usable], dict(left_out))


def weighed(
    rows: Sequence[Measurement],
    places: Sequence[RunContext],
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> Sample:
    """Rows with their columns, each counting what `weight_of` says.

    What a profile charges for kernels of an older chip stands in the columns: no fit learns it.
    """
    sample = make_sample(rows, places, [weight_of(row) for row in rows], left_out)
    slower = np.ones(sample.columns.matrix.shape)
    for factor in older_kernels():
        at = [effect_applies(factor, place) for place in places]
        slower[np.ix_(at, [COEFFICIENTS.index(name) for name in factor.of])] *= factor.factor
    columns = sample.columns
    columns = replace(columns, matrix=columns.matrix * slower, step=columns.step * slower)
    return replace(sample, columns=columns)


def left_out_because(row: Measurement) -> str:
    """Why a row may be in no fit of its kind, empty where it may."""
    kind = "runs" if row.looped or is_new(row) else "steady"
    return first_reason(row, USER_EXCLUSION_RULES if row.quality == "own" else RULES[kind](row))


def weight_of(row: Measurement) -> float:
    """What a row counts in a fit."""
    share = MAKERS.get(row.chip.maker, 1.0)
    if row.looped and row.quantity == "ttft":
        return share * TTFT_WEIGHT
    if not row.looped and is_new(row):
        return share * WIDE_WEIGHT
    return share * (POOLED_WEIGHT if row.pooled else 1.0)


def _unfit(row: Measurement, bound: float) -> str:
    if row.repeats:
        return REPEAT
    if skip_reason(row):
        return NO_LAYOUT if row.layout is None else NO_NETWORK
    if row.seconds < bound:
        return "faster than the bound"
    return ""


A_LINE = 10


def digests_text(rows: Iterable[Measurement]) -> str:
    """The digests of a fit's rows, as they stand in the profile's file of rows."""
    digests = sorted({row_digest(row) for row in rows})
    lines = [" ".join(digests[i : i + A_LINE]) for i in range(0, len(digests), A_LINE)]
    return "\n".join(lines) + "\n"
