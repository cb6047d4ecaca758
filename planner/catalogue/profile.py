"""A profile: what real engines reach, as dated data with its errors on rows the fit did not see.

Coefficients are shared by all rows; adjustments say what an architecture, an engine, a version or
a number format changes about them, and bands what is known less well: a model or a chip that the
fit never saw borrows shared coefficients and gets a wider band. Profiles are TOML files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalogue.chips import chip, chip_names, maker_factor
from planner.catalogue.coefficient_spread import (
    DISTANCE_ASSUMED,
    DISTANCE_POOLED,
    DISTANCES,
    EMPTY_PLACE,
    IN_SAMPLE,
    NEW_CHIP,
    NEW_ENGINE,
    NEW_MODEL,
    NOISE,
    CoefficientSpread,
    RunContext,
    ScopeMask,
    effect_applies,
    variances,
)
from planner.catalogue.figures import load_toml
from planner.catalogue.hull import Hull, added_deviation, hull_names, parse_hull
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.tables import file_names, table
from planner.text.tolerances import QUANTILE_90

NAME_FIELDS = ("chips", "models", "engines")
OTHER_ENGINE = "another engine"


@dataclass(frozen=True)
class Adjustment:
    """A factor on the times of some coefficients, an efficiency being divided by it.

    It holds where `scope` does, {attribute of a place: value}. `monthly` factors count once for
    each month before the profile's date. `interval` holds 80 % of refits.
    """

    of: tuple[str, ...]
    scope: Mapping[str, str]
    factor: float
    interval: tuple[float, float]
    monthly: bool = False

    def times(self, place: RunContext) -> float:
        """The factor on times at a place in scope."""
        return self.factor**place.months if self.monthly else self.factor


COEFFICIENTS = tuple(table("planner.catalogue", "coefficients.toml"))
EFFICIENCIES = frozenset(name for name in COEFFICIENTS if name.startswith("e_"))
READING, MULTIPLYING = ("e_w",), ("e_c", "e_pf", "e_pf_x")
# Arithmetic of kernels that cannot multiply narrow weights in their own format.
MATH_DTYPE = "bf16"
STEPS_WAITED = "n_sched"  # a number of steps, not a time
HIDES = "e_ovl"  # no time is divided by it: it is the share of a time that another hides
# Coefficients switched off: every term takes zero time, and no time is hidden.
NEUTRAL: Mapping[str, float] = {
    name: math.inf if name in EFFICIENCIES - {HIDES} else 0.0 for name in COEFFICIENTS
}
Shares = Mapping[str, float]
COVERAGE = 0.8  # share of rows to come that a band is made to hold


@dataclass(frozen=True)
class Band:
    """Measured over predicted: the quantiles that hold `coverage` of the rows left out."""

    low: float
    high: float


@dataclass(frozen=True)
class Profile:
    """Coefficients of the estimate: efficiencies [1] and overheads [s, s/seq].

    `engine` is the engine it speaks for, `any` where it was fitted on several and none is meant.
    `rows` counts the measurements it was fitted on, `errors` and `left_out` are of rows left out.
    `intervals` hold 80 % of refits; coefficients in `unidentified` are not by the rows.
    `bands` are those in use, `all_bands` {kind of place: {engine: bands}}. `spread` is the width
    of logarithms of measured over predicted price `alike`, between runs of one kind, and of all.
    A `base` is what others are like, and chosen by name alone. `ceilings` are efficiencies that
    a measured chip was seen not to exceed. `hull` is what the rows cover, None where nobody wrote
    it down. `runs` counts a user's own, 0 of others. `coefficient_spread` says how far coefficients
    may be off; at a place `covariance` is of their logarithms, `regime` its farthest kind of
    distance and `kinds` all that hold there.
    """

    name: str
    as_of: str
    engine: str
    chips: tuple[str, ...]
    rows: int
    source: str
    coverage: float
    bands: Mapping[str, Band]
    errors: Mapping[str, float]
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    unidentified: tuple[str, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    models: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    all_bands: Mapping[str, Mapping[str, Mapping[str, Band]]] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    base: bool = False
    ceilings: Mapping[str, float] = field(default_factory=dict)
    hull: Hull | None = None
    runs: int = 0
    left_out: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    coefficient_spread: CoefficientSpread | None = field(default=None, compare=False)
    covariance: np.ndarray | None = field(default=None, compare=False)
    regime: str = IN_SAMPLE
    kinds: tuple[str, ...] = ()
    _adjusted_at: dict[RunContext, Profile] = field(init=False, default_factory=dict, repr=False,
                                                    compare=False)  # fmt: skip

    @property
    def fitted(self) -> tuple[str, ...]:
        """The chips whose rows its coefficients rest on, those of other engines as well."""
        spread = self.coefficient_spread
        return spread.values.get(NEW_CHIP, self.chips) if spread else self.chips

    def sigma(self, shares: Shares) -> float:
        """Standard deviation of the logarithm of a time at the profile's place.

        0 where the profile does not say how far its coefficients may be off.

        Args:
            shares: d ln time / d ln (time of a coefficient): shares of the time by coefficient.
        """
        return float(self._sigmas(_column(shares))[0])

    def band(
        self, quantity: str, shares: Shares | None = None, beyond: ScopeMask = EMPTY_PLACE
    ) -> Band:
        """Band of `tpot`, `ttft` or `usd_per_mtok`, as wide as what its time rests on is unknown.

        Without shares, or in a profile that does not say how far it may be off, it is the one of
        all rows. `beyond` says of further kinds of distance whether they hold.
        """
        if shares is None:
            return self.bands[quantity]
        low, high = self.band_ends(quantity, _column(shares), beyond)
        return Band(float(low[0]), float(high[0]))

    def width(self, kind: str, quantity: str) -> float:
        """Standard deviation of ln(measured / predicted) at a kind of place, by its band."""
        band = self.bands_of(kind, self.engine).get(quantity) or self.band(quantity)
        return math.log(band.high / band.low) / (2 * QUANTILE_90)

    def band_ends(
        self, quantity: str, shares: np.ndarray, beyond: ScopeMask = EMPTY_PLACE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the bands of n times, each of shape (n,).

        Args:
            shares: as for `sigma`, shape (n_coefficients, n).
            beyond: further kinds of distance, as for `band`.
        """
        spread, plain = self.coefficient_spread, self.bands[quantity]
        holds = {**dict.fromkeys(self.kinds, np.True_), **beyond}
        of = quantity if spread and quantity in spread.quantiles.get(IN_SAMPLE, {}) else "tpot"
        ends = spread and spread.widest(self.regime, holds, of, self._sigmas(shares))
        if not ends or self.covariance is None:
            like = np.ones(shares.shape[1])
            ends = plain.low * like, plain.high * like
        adds = [np.where(holds[kind], QUANTILE_90 * width, 0.0)
                for kind, width in added_deviation(quantity).items() if kind in holds]  # fmt: skip
        if not adds:
            return ends
        # Symmetric in ln: unmeasured effects widen the band and hardly move its median.
        more = np.sqrt(sum((width**2 for width in adds), np.zeros(shares.shape[1])))
        low, high = (np.hypot(np.log(end), more) for end in ends)
        return np.exp(-low), np.exp(high)

    def _sigmas(self, shares: np.ndarray) -> np.ndarray:
        if self.covariance is None:
            return np.zeros(shares.shape[1])
        return np.sqrt(variances(self.covariance, shares) + NOISE**2)

    def at(self, place: RunContext) -> Profile:
        """Profile for one place: adjustments applied, with the error band at its distance.

        The profile's own engine is meant where the place names none.
        """
        if place not in self._adjusted_at:  # a question asks for few places, each of them often
            self._adjusted_at[place] = self._adjusted(place)
        return self._adjusted_at[place]

    def _adjusted(self, place: RunContext) -> Profile:
        place_asked = replace(place, engine=self.engine_asked(place))
        if self.engine != "any" and not place.engine:
            place = replace(place, engine=self.engine)
        lent = maker_factor(place.maker, self.fitted)
        factors = {**dict.fromkeys(COEFFICIENTS, 1 / lent.factor), STEPS_WAITED: 1.0}
        for adjustment in (*self.adjustments, *(older_kernels() if self.adjustments else ())):
            if effect_applies(adjustment, place):
                for name in adjustment.of:
                    factors[name] *= adjustment.times(place)
        bands = {q: Band(*lent.wider(b.low, b.high)) for q, b in self._bands(place).items()}
        outside = self.hull.beyond(hull_names(place_asked)) if self.hull else {}
        outer = tuple(kind for kind, holds in outside.items() if holds)
        seen = replace(self.scaled(factors), bands=bands, adjustments=(), kinds=outer)
        spread, unknowns = self.coefficient_spread, len(COEFFICIENTS) + len(self.adjustments)
        if spread is None or len(spread.factor) != unknowns:
            return seen  # it is of other adjustments than these
        if NEW_ENGINE in outer:  # the effects that the estimate has are of another
            place = replace(place, engine=OTHER_ENGINE)
        covariance = spread.covariance(COEFFICIENTS, self.adjustments, place) + lent.spread**2
        new = {*spread.new_at(place_asked), *outer}
        kinds = tuple(dict.fromkeys(kind for kind in (*DISTANCES, *outer) if kind in new))
        regime = spread.setup(place_asked) or next(iter(kinds), IN_SAMPLE)
        return replace(seen, covariance=covariance, kinds=kinds, regime=regime)

    def engine_asked(self, place: RunContext) -> str:
        """Engine requested at a place; empty string if any measured engine will do.

        Of several that may run it none is meant, unless rows of none of them were fitted.
        """
        engine = "" if self.engine == "any" else self.engine
        measured, runs = {engine} if engine else {*self.engines}, place.runs
        lent = runs and measured and (len(runs) == 1 or not measured & {*runs})
        return place.engine or (" or ".join(runs) if lent else engine)

    def measured_at(self, place: RunContext) -> bool:
        """True if rows of the model's shape, the chip and the engine of a place were fitted."""
        if self.coefficient_spread is None:
            return place.chip in self.chips
        place_asked = replace(place, engine=self.engine_asked(place))
        return self.coefficient_spread.regime(place_asked) == IN_SAMPLE

    def scaled(self, factors: Mapping[str, float]) -> Profile:
        """The profile with the times of every coefficient, and its interval, multiplied."""
        values = {name: self._scaled(name, self.values[name], by) for name, by in factors.items()}
        intervals = {
            name: (self._scaled(name, low, factors[name]), self._scaled(name, high, factors[name]))
            for name, (low, high) in self.intervals.items()
        }
        return replace(self, values=values, intervals=intervals)

    def _scaled(self, name: str, value: float, factor: float) -> float:
        if name not in EFFICIENCIES:
            return value * factor
        return min(value / factor, 1.0, self.ceilings.get(name, 1.0))

    def _bands(self, place: RunContext) -> Mapping[str, Band]:
        kind = IN_SAMPLE
        if place.model and self.models and place.model not in self.models:
            kind = NEW_MODEL
        if place.chip and place.chip not in self.chips:
            kind = NEW_CHIP
        if place.pooled and DISTANCE_POOLED in self.all_bands:
            kind = DISTANCE_POOLED
        if place.assumed and DISTANCE_ASSUMED in self.all_bands:
            kind = DISTANCE_ASSUMED
        return self.bands_of(kind, place.engine) or self.bands

    def bands_of(self, kind: str, engine: str) -> Mapping[str, Band]:
        """Bands of a kind of place, of known ones where it has none, as an engine sees them."""
        kinds = self.all_bands.get(kind) or self.all_bands.get(IN_SAMPLE, {})
        return {**kinds.get("any", {}), **kinds.get(engine, {})}


def _column(shares: Shares) -> np.ndarray:
    return np.array([[shares.get(name, 0.0)] for name in COEFFICIENTS])


@cache
def profile_names() -> tuple[str, ...]:
    """Names of the profiles that ship; a process looks once, as it reads each of them once."""
    return file_names("planner.catalogue", "profiles", ".toml")


def profile(name: str) -> Profile:
    """Profile by name, or by the path of a user's file that ends in .toml.

    Raises CatalogueError if no profile has that name, or the file is no profile.
    """
    names = profile_names()
    if name in names:
        return _shipped(name)
    if name.endswith(".toml"):
        path = Path(name)
        raw = load_toml(path, "profile")
        try:
            for odd in (
                n for key in NAME_FIELDS for n in raw.get(key, ()) if not isinstance(n, str)
            ):
                raise TypeError(f"{odd!r} is no name; {', '.join(NAME_FIELDS)} have names")
            return parse_profile(path.stem, raw)
        except KeyError as error:
            raise CatalogueError(f"{path}: is no profile: it has no {error.args[0]}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise CatalogueError(f"{path}: is no profile: {error}") from None
    raise CatalogueError(
        f"no profile {name!r}{did_you_mean(name, names)}; known profiles: {', '.join(names)}; "
        "or the path of a .toml file that planner calibrate wrote"
    )


def parse_profile(name: str, raw: Mapping[str, Any]) -> Profile:
    """A profile from the contents of its file; with `like` it is another's, seen by one engine.

    Raises CatalogueError if a coefficient is missing or unknown.
    """
    if "like" in raw:
        whole, engine = profile(raw["like"]), raw["engine"]
        bands = whole.bands_of(IN_SAMPLE, engine)
        # Only errors on configurations are this engine's; all others are of the shared fit.
        left_out = tuple(row for row in whole.left_out if row["word"] != "configurations")
        whole = replace(whole, name=name, engine=engine, bands=bands, base=False, left_out=left_out)
        if whole.hull:
            whole = replace(whole, hull=whole.hull.of_engine(engine))
        chips, as_of = tuple(raw.get("chips", whole.chips)), raw.get("as_of", whole.as_of)
        errors = dict(raw["errors"])
        return replace(whole, chips=chips, errors=errors, as_of=as_of, rows=raw["rows"])
    values = raw["coefficients"]
    missing = [c for c in COEFFICIENTS if c not in values]
    unknown = [c for c in values if c not in COEFFICIENTS]
    if missing or unknown:
        raise CatalogueError(f"profile {name}: missing {missing}, unknown {unknown}")
    everywhere = {
        kind: {
            engine: {q: Band(*pair) for q, pair in bands.items()} for engine, bands in each.items()
        }
        for kind, each in raw["bands"].items()
    }
    return Profile(
        **{key: raw[key] for key in ("as_of", "engine", "rows", "source", "coverage")},
        name=name,
        chips=tuple(raw["chips"]),
        bands=everywhere[IN_SAMPLE]["any"],
        errors=dict(raw["errors"]),
        values={c: float(values[c]) for c in COEFFICIENTS},
        intervals={c: (low, high) for c, (low, high) in raw.get("intervals", {}).items()},
        unidentified=tuple(raw.get("held", ())),
        adjustments=tuple(map(_adjustment, raw.get("adjustments", ()))),
        models=tuple(raw.get("models", ())),
        engines=tuple(raw.get("engines", ())),
        all_bands=everywhere,
        spread=dict(raw.get("spread", {})),
        left_out=tuple(raw.get("left_out", ())),
        base=raw.get("base", False),
        hull=parse_hull(raw["hull"]) if "hull" in raw else None,
        runs=raw.get("runs", 0),
        coefficient_spread=CoefficientSpread.from_table(raw["uncertainty"])
        if "uncertainty" in raw
        else None,
    )


@cache
def older_kernels() -> tuple[Adjustment, ...]:
    """Slow-down factors of formats whose kernels reach only an older chip's rates on a new chip.

    They read and multiply there as many bytes and FLOP a second as on the older one, no more.
    """
    factors = []
    for row in table("planner.catalogue", "older_kernels.toml")["row"]:
        old = chip(row["chip"])
        for new in map(chip, chip_names()):
            if new.architecture != row["architecture"]:
                continue
            scope = {"math": row["math"], "chip": new.name}
            reading = max(1.0, new.memory_bandwidth / old.memory_bandwidth)
            products = max(1.0, new.peak(MATH_DTYPE) / old.peak(MATH_DTYPE))
            factors.append(Adjustment(READING, scope, reading, (reading, reading)))
            factors.append(Adjustment(MULTIPLYING, scope, products, (products, products)))
    return tuple(factors)


def _adjustment(raw: Mapping[str, Any]) -> Adjustment:
    scope = dict(raw)
    of, factor, (low, high) = (scope.pop(key) for key in ("of", "factor", "interval"))
    return Adjustment(tuple(of), scope, factor, (low, high), scope.pop("monthly", False))


@cache
def _shipped(name: str) -> Profile:
    return parse_profile(name, table("planner.catalogue", f"profiles/{name}.toml"))
