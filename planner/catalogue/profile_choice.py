"""Choice of a profile for a chip and an engine, and checks that its figures are possible."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields

from planner.catalogue.chips import borrowed_efficiency_note, chip, chip_names
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Profile, profile, profile_names
from planner.text.errors import quote

MAX_RATIO = 1.1  # maximum efficiency: boost clocks may exceed the listed peak
BANDS = ("tpot", "ttft", "usd_per_mtok")
SPREADS = ("alike", "other")
# Figures of a way of leaving rows out that answers and `validate` quote.
LEFT_OUT = (
    "rows", "groups", "median", "mean", "within_10", "group_log", "holds", "width",
    "constant_group_log",
)  # fmt: skip
_LIST = ", ".join(LEFT_OUT)
ANY_ENGINE = "any"
DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")
CONTEXT_FIELDS = frozenset(field.name for field in fields(RunContext))


def choose_profile(
    wanted: str, on: str, engines: Collection[str] = ()
) -> tuple[Profile, str | None]:
    """The profile to use and, where it is not the chip's or the engines' own, what says so.

    Args:
        wanted: a profile's name, or `auto`: of those that speak for the engines the newest fitted
            on this chip, else on one of its architecture, else on any.
        on: catalogue name of the chip.
        engines: those of which one is to run; empty where the speeds of any will do.
    """
    auto = wanted == "auto"
    chosen = max(_speaking(engines), key=lambda x: _nearness(x, on)) if auto else profile(wanted)
    words = []
    if auto and chosen.engine != ANY_ENGINE and {*engines} != {chosen.engine}:
        words.append(f"profile {chosen.name} is of {chosen.engine} alone: others take other times")
    if on not in chosen.chips:
        whose = f"was fitted on {', '.join(chosen.chips)}, not on {on}: its band is that of chips"
        if on in chosen.fitted:
            whose = f"has no run of {chosen.engine} on {on}: its band is that of such pairs"
        borrowed = borrowed_efficiency_note(on, chosen.fitted)
        named = "it" if words else f"profile {chosen.name}"
        words.append(f"{named} {whose} left out of the fit{borrowed}")
    return chosen, "; ".join(words) or None


def _speaking(engines: Collection[str]) -> list[Profile]:
    every = [x for x in map(profile, profile_names()) if not x.base]
    alone = [x for x in every if x.engine in engines]
    joint = [x for x in every if x.engine == ANY_ENGINE and {*x.engines} & {*engines}]
    return (alone if len(engines) == 1 and alone else alone + joint) or every


def _nearness(fit: Profile, on: str) -> tuple[bool, bool, str, bool, int]:
    here = {chip(x).architecture for x in (on,) if x in chip_names()}
    akin = any(chip(x).architecture in here for x in fit.chips)
    return on in fit.chips, akin, fit.as_of, fit.engine == ANY_ENGINE, fit.rows


def profile_fault(profile: Profile) -> str | None:
    """First impossible figure of a profile, as text; None if all are possible.

    Figures of a file of one's own may be of any type.
    """
    return next(_faults(profile), None)


def _faults(profile: Profile) -> Iterator[str]:
    if not isinstance(profile.as_of, str) or not DATE.fullmatch(profile.as_of):
        yield f"as_of is {_quoted(profile.as_of)}, expected a date such as 2026-11-21"
    if not isinstance(profile.engine, str) or not isinstance(profile.source, str):
        yield "engine and source are texts"
    if not _finite(profile.coverage, 0, 1):
        yield f"coverage is {_quoted(profile.coverage)}, expected a share such as 0.8"
    for name, value in profile.values.items():
        if name in EFFICIENCIES and not _finite(value, 0, MAX_RATIO):
            yield f"{name} is {value:g}, expected an efficiency above 0 and not above {MAX_RATIO:g}"
        elif value != 0 and not _finite(value, 0):
            yield f"{name} is {value:g}, expected 0 or more"
    for name, (low, high) in profile.intervals.items():
        if name not in COEFFICIENTS or not all(x == 0 or _finite(x, 0) for x in (low, high)):
            yield f"the interval {quote(name)} is {_quoted(low)} to {_quoted(high)}"
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            for name, band in bands.items():
                if not (_finite(band.low, 0) and _finite(band.high, 0) and band.low <= band.high):
                    yield f"the band {kind}.{engine}.{name} is {_quoted(band.low)} to " + _quoted(
                        band.high
                    )
    for name in BANDS:
        if name not in profile.bands:
            yield f"no band of {name} is given"
    for name in SPREADS if profile.spread else ():
        if not _finite(profile.spread.get(name), 0):
            yield f"the spread {name} is {_quoted(profile.spread.get(name))}, expected above 0"
    places = ", ".join(sorted(CONTEXT_FIELDS))
    for row in profile.adjustments:
        for part in row.of:
            if part not in COEFFICIENTS:
                yield f"an adjustment of {_quoted(part)}, which is no coefficient"
        for key in row.scope:
            if key not in CONTEXT_FIELDS:
                yield f"an adjustment by {_quoted(key)}, expected one of {places}"
        if not _finite(row.factor, 0):
            yield f"a factor on {', '.join(map(str, row.of))} is {_quoted(row.factor)}"
    yield from _recorded(profile)


def _recorded(profile: Profile) -> Iterator[str]:
    """Faults of the errors on rows left out, and of the quantiles of the bands."""
    for row in profile.left_out:
        if not isinstance(row, Mapping) or not {"word", "quantity", *LEFT_OUT} <= row.keys():
            yield f"a row of left_out is {_quoted(row)}, expected word, quantity and {_LIST}"
            return
        for name in LEFT_OUT:
            if not _finite(row[name], -math.inf):
                yield f"{name} of a row of left_out is {_quoted(row[name])}, expected a number"
    spread = profile.coefficient_spread
    for kind, quantities in spread.quantiles.items() if spread else ():
        for name, figures in quantities.items():
            if not all(_finite(figure, -math.inf) for figure in figures):
                yield f"the quantiles {kind}.{name} are {', '.join(map(_quoted, figures))}"


def _finite(value: object, above: float, most: float = math.inf) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return above < value <= most and math.isfinite(value)


def _quoted(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if number else quote(value)
