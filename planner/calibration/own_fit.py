"""Fit to a user's own rows: a shipped profile, moved only where the rows identify a change.

What the profile says of the rows' engine and version is worked into its coefficients, what it says
of chips, formats and models stays beside them. The prior of each coefficient is the profile's
value, as wide as its interval: a few dozen rows move only what they can tell. How far rows scatter
is taken from the rows themselves. No efficiency is moved above what the chip was measured to
sustain, where that is known.

A handful of runs cannot tell how far they scatter: they are taken to scatter as the profile's rows
left out do. They move all times together as well, by as much as the profile is off where the model
or the chip is new to it, and the profile keeps its part of every difference (shrinkage).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from planner.calibration import hierarchy
from planner.calibration.cross_validation import LeftOut, folds
from planner.calibration.hierarchy import (
    MAX_WIDTH_RATIO,
    OUTLIER,
    Effect,
    EffectFamily,
    Hierarchy,
    Loss,
    Prior,
)
from planner.calibration.sample import Sample
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import (
    COEFFICIENTS,
    EFFICIENCIES,
    IN_SAMPLE,
    NEW_CHIP,
    NEW_MODEL,
    Adjustment,
    Profile,
)
from planner.measurements.prediction import WAIT, unknowns
from planner.protocol.results.calibration_result import FittedCoefficient
from planner.text.tolerances import QUANTILE_90

MIN_PRIOR_SD, MAX_PRIOR_SD = 0.2, 0.7  # standard deviation of a coefficient's logarithm beforehand
MEASURED_LIMIT_PRIOR_SD = 1e-3  # prior standard deviation of ln coefficient at a measured limit
ABSENT = 1e-9  # s, or steps: in place of the nothing that a profile may hold
MIN_SCATTER = 0.05  # of rows about any fit: configurations share errors that no sweep shows
SCATTERS = 2  # times that the scatter is taken from the rows
NORMAL = 1.4826  # standard deviation over median absolute deviation, normal distribution
MIN_TIME_SHARE = 0.01  # minimum share of a row's time for a coefficient to affect the row
CONFIGURATIONS = 5  # minimum number of configurations to leave out whole configurations
FOLDS = 10
# Runs: this number or fewer show neither their scatter nor which run is an outlier.
SMALL_SAMPLE = 5
PLAIN_LOSS = Loss(outlier=0.5)  # of a handful: three times the scatter of first tokens
MIN_SHOWN_CHANGE = 0.02  # relative change of a coefficient that counts as moved
STATES = ("moved", "kept", "limited")
# Effects by engine (overheads) and by chip (memory) if the rows hold several engines or chips.
OVERHEADS = tuple(name for name in COEFFICIENTS if name.startswith("t_"))
MEMORY = tuple(name for name in COEFFICIENTS if name in ("e_w", "e_kv"))
TIMES = tuple(name for name in COEFFICIENTS if name != "n_sched")
ENGINES, CHIPS = EffectFamily(("engine",), OVERHEADS, 0.3), EffectFamily(("chip",), MEMORY, 0.15)


@dataclass(frozen=True)
class OwnFit:
    """The profile that the rows give, without errors and bands, and how each coefficient moved."""

    profile: Profile
    coefficients: tuple[FittedCoefficient, ...]


def seen_by_rows(like: Profile, places: Sequence[RunContext]) -> Profile:
    """Profile with the adjustments that all rows share applied: engine, version, date.

    Adjustments of other engines or versions fall away; what the months before the profile's date
    change is taken at the rows' median. Coefficients are above zero.
    """
    engines, versions = {p.engine for p in places}, {p.version for p in places}
    same = {
        key: values.pop()
        for key, values in (("engine", engines), ("version", versions))
        if len(values) == 1
    }
    if not same.get("engine", "any"):
        same["engine"] = like.engine
    months = float(np.median([place.months for place in places]))
    factors, elsewhere = dict.fromkeys(COEFFICIENTS, 1.0), []
    for adjustment in like.adjustments:
        if any(same.get(key, value) != value for key, value in adjustment.scope.items()):
            continue
        rest = {key: value for key, value in adjustment.scope.items() if key not in same}
        power = months if adjustment.monthly else 1.0
        if rest:
            low, high = (end**power for end in adjustment.interval)
            ends = (min(low, high), max(low, high))
            elsewhere.append(Adjustment(adjustment.of, rest, adjustment.factor**power, ends))
        else:
            for name in adjustment.of:
                factors[name] *= adjustment.factor**power
    above_zero = {name: max(value, ABSENT) for name, value in like.values.items()}
    return replace(
        replace(like, values=above_zero).scaled(factors),
        engine=same.get("engine", "any") or "any",
        adjustments=tuple(elsewhere),
        coefficient_spread=None,
    )


def own_fit(sample: Sample, base: Profile, limits: Mapping[str, float]) -> OwnFit:
    """The coefficients that fit the rows best, starting from a profile seen by them.

    Raises ValueError if there is no row.

    Args:
        base: as `seen_by_rows` gives it.
        limits: the most that an efficiency can be on the measured chip [1]; may be empty.
    """
    shared, handful = _at_places(sample, base), len({row.id for row in sample.rows}) <= SMALL_SAMPLE
    if handful:
        # A handful cannot tell how far it scatters: as rows left out of the profile do about it.
        scatter = [base.width(IN_SAMPLE, "ttft" if first else "tpot") for first in sample.prompts]
        weights = (PLAIN_LOSS.outlier / np.maximum(scatter, MIN_SCATTER)) ** 2
        shared = replace(shared, weights=weights)
    common = common_width(base, sample.places)
    prior = {name: _prior(base, name) for name in COEFFICIENTS}
    at = [base.at(place).values for place in dict.fromkeys(sample.places)]
    most_shared = {
        name: most * min(base.values[name] / values[name] for values in at)
        for name, most in limits.items()
    }
    firm: dict[str, float] = {}
    while True:
        priors = prior | {name: (most, MEASURED_LIMIT_PRIOR_SD) for name, most in firm.items()}
        fit = _moved_together(shared, priors, common) if handful else _identified(shared, priors)
        for _ in range(0 if handful else SCATTERS):
            fit = _identified(_as_scattered(shared, fit), priors)
        over = {
            name: most
            for name, most in most_shared.items()
            if name not in firm and fit.values[name] > most
        }
        if not over:
            break
        firm |= over
    # The largest share of a row's time that each coefficient takes, shape (n_coefficients,).
    parts = shared.columns.parts(fit.unknowns(shared.places))
    shares: np.ndarray = (parts / fit.times(shared)[:, None]).max(axis=0)
    widths = fit.freedom.tolist()
    coefficients = tuple(
        _coefficient(name, base.values[name], fit.values[name], kept, priors[name][1], share,
                     limited=name in firm)
        for name, kept, share in zip(COEFFICIENTS, widths, shares.tolist(), strict=False)
    )  # fmt: skip
    more = [
        Adjustment(each.of, each.scope, factor, _spread(factor, kept * each.width))
        for each, factor, kept in zip(
            fit.effects, fit.factors, widths[len(COEFFICIENTS) :], strict=True
        )
    ]
    profile = replace(
        base,
        values=MappingProxyType({each.name: each.value for each in coefficients}),
        intervals=MappingProxyType({each.name: (each.low, each.high) for each in coefficients}),
        unidentified=tuple(each.name for each in coefficients if each.state not in STATES),
        adjustments=(*base.adjustments, *more),
    )
    return OwnFit(profile, coefficients)


def leave_one_out(
    sample: Sample, base: Profile, limits: Mapping[str, float]
) -> tuple[LeftOut, str]:
    """Predictions of each row by a fit without its group, and the type of group left out.

    Rows of one `configuration` (all but the number of requests) where there are enough, else one
    `run` at a time.
    """
    keys, what = sample.configurations, "configuration"
    if len(np.unique(keys)) < CONFIGURATIONS:
        keys, what = np.array([row.id for row in sample.rows]), "run"
    fold, estimate = folds(keys, FOLDS), np.empty(len(sample.rows))
    for k in np.unique(fold):
        fit = own_fit(sample.take(fold != k), base, limits)
        estimate[fold == k] = predict_times(sample.take(fold == k), fit.profile)
    return LeftOut(sample, fold, estimate), what


def predict_times(sample: Sample, profile: Profile) -> np.ndarray:
    """Times [s] of the rows under a profile at each row's place, shape (n_rows,)."""
    by_place = {place: unknowns(profile.at(place).values) for place in dict.fromkeys(sample.places)}
    return sample.columns.times(np.array([by_place[place] for place in sample.places]))


def _identified(sample: Sample, prior: Prior) -> Hierarchy:
    several = [
        f for f in (ENGINES, CHIPS) if len({getattr(p, f.keys[0]) for p in sample.places}) > 1
    ]
    candidates = hierarchy.effects(sample.places, several)
    return hierarchy.prune_effects(
        lambda of, _: hierarchy.fit_hierarchy(sample, of, prior), candidates, _told_effects
    )


def common_width(base: Profile, places: Sequence[RunContext]) -> float:
    """Additional standard deviation of an error common to all times, for a new model or chip.

    It is what bands of models or chips left out have more than those of configurations left out; 0
    where nothing is new.
    """
    new = [
        kind
        for kind, names, key in ((NEW_MODEL, base.models, "model"), (NEW_CHIP, base.chips, "chip"))
        if not {getattr(place, key) for place in places} <= {*names}
    ]
    known_width = base.width(IN_SAMPLE, "tpot")
    widest = max((base.width(kind, "tpot") for kind in new), default=known_width)
    return math.sqrt(max(widest**2 - known_width**2, 0.0))


def _moved_together(sample: Sample, prior: Prior, common: float) -> Hierarchy:
    if not common:
        return hierarchy.fit_hierarchy(sample, (), prior, loss=PLAIN_LOSS)
    fit = hierarchy.fit_hierarchy(sample, (Effect(TIMES, {}, common),), prior, loss=PLAIN_LOSS)
    moved = fit.adjusted[0] * np.array([name in TIMES for name in COEFFICIENTS])
    alone = fit.freedom[: len(COEFFICIENTS)]
    return replace(fit, shared=fit.shared + moved, effects=(), adjusted=np.empty(0), freedom=alone)


def _told_effects(fit: Hierarchy) -> tuple[Effect, ...]:
    widths = fit.freedom[len(COEFFICIENTS) :]
    return tuple(
        each for each, kept in zip(fit.effects, widths, strict=True) if kept <= MAX_WIDTH_RATIO
    )


def _as_scattered(sample: Sample, fit: Hierarchy) -> Sample:
    """The rows, each kind weighed by how far it scatters about a fit."""
    error = np.log(fit.times(sample) / sample.seconds)
    # Coefficients that the rows set.
    identified = float(np.sum(1 - np.minimum(fit.freedom, 1.0) ** 2))
    free = max(1 - identified / len(error), 0.25) ** 0.5
    weights = sample.weights.copy()
    for kind in (sample.prompts, ~sample.prompts):
        if kind.any():
            scatter = NORMAL * float(np.median(np.abs(error[kind]))) / free
            weight = OUTLIER / max(scatter, MIN_SCATTER)
            weights[kind] = np.maximum(weights[kind], weight**2)
    return replace(sample, weights=weights)


def _at_places(sample: Sample, base: Profile) -> Sample:
    """Rows for unknowns shared by all contexts: adjustments of a context scale its columns."""
    shared = unknowns(base.values)
    by_place = {p: unknowns(base.at(p).values) / shared for p in dict.fromkeys(sample.places)}
    by = np.array([by_place[place] for place in sample.places])
    columns, waits = sample.columns, by[:, [WAIT]]
    scaled = replace(
        columns,
        matrix=columns.matrix * by,
        step=columns.step * by * waits,
        step_rest=columns.step_rest * waits[:, 0],
    )
    return replace(sample, columns=scaled)


def _coefficient(
    name: str,
    before: float,
    value: float,
    freedom: float,
    width: float,
    share: float,
    limited: bool,
) -> FittedCoefficient:
    if math.isclose(before, value, rel_tol=1e-6):
        value = before
    low, high = _spread(value, freedom * width)
    if name in EFFICIENCIES:
        high = min(high, 1.0)
    if limited:
        state = "limited"
    elif freedom <= MAX_WIDTH_RATIO:
        state = "kept" if low <= before <= high else "moved"
    elif share < MIN_TIME_SHARE:
        state = "idle"
    else:
        state = "joint" if abs(value / before - 1) > MIN_SHOWN_CHANGE else "inseparable"
    if max(before, value) <= 2 * ABSENT:
        before = value = low = high = 0.0
    return FittedCoefficient(name, before, value, low, high, share, state)


def _prior(base: Profile, name: str) -> tuple[float, float]:
    low, high = base.intervals.get(name, (0.0, 0.0))
    if low <= 0:
        return base.values[name], MAX_PRIOR_SD
    width = math.log(high / low) / (2 * QUANTILE_90)
    return base.values[name], min(max(width, MIN_PRIOR_SD), MAX_PRIOR_SD)


def _spread(middle: float, width: float) -> tuple[float, float]:
    by = math.exp(QUANTILE_90 * width)
    return middle / by, middle * by
