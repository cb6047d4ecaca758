"""A fitted profile as the TOML file that ships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from planner.calibration.profile_file import adjusted, listed, number, pair
from planner.calibration.scores import COVERAGE
from planner.catalogue.profile import COEFFICIENTS

if TYPE_CHECKING:
    from planner.calibration.fit import Fitted

__all__ = ["thin_text", "written"]

DIGITS = 4


def written(one: Fitted) -> str:
    """The profile with its adjustments, bands and errors."""
    sample, era = one.sample, one.era
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(sample.left_out.items()))
    lines = [
        f"# Written by planner.calibration.fit. Rows left out of the fit: {left_out or 'none'}.",
        "# Intervals hold 80 % of refits to resampled configurations. Errors are on configurations",
        "# left out of the fit; unseen_groups_, unseen_models_, unseen_chips_ on whole groups,",
        "# models and chips left out; pooled_ on runs of two pools. Bands: measured / predicted.",
        f'as_of = "{era.as_of}"',
        'engine = "any"',
        *(["base = true  # chosen by name alone"] if one.era.base else []),
        f"engines = {_words(place.engine for place in sample.places)}",
        f"chips = {_words(sample.column('chip_name'))}",
        f"models = {_words(place.model for place in sample.places)}",
        f"rows = {len(sample.rows)}",
        f'source = "{era.source}"',
        f"coverage = {COVERAGE}",
        "# Not identified by these rows, so held near the value expected beforehand.",
        f"held = {listed(one.found.untold)}",
        "\n[coefficients]",
        *(f"{name} = {number(v, DIGITS)}" for name, v in one.found.values.items()),
        "\n[intervals]",
        *_intervals(one),
        *_adjustments(one),
        *_bands(one.bands),
        "\n# Of logarithms of measured over predicted price: between runs alike, and among all.",
        "[spread]",
        *(f"{name} = {number(value, DIGITS)}" for name, value in one.spread.items()),
        "\n[errors]",
        *(f"{name} = {number(value, DIGITS)}" for name, value in one.errors.items()),
    ]
    return "\n".join(lines) + "\n"


def thin_text(one: Fitted, engine: str, as_of: str) -> str:
    """The profile of one engine: that of all, seen by it, with its own errors."""
    scores = dict(one.by_engine[engine])
    rows = scores.pop("rows")
    places = [place for place in one.sample.places if place.engine == engine]
    lines = [
        f"# Written by planner.calibration.fit. {one.era.name} as {engine} is expected to run.",
        f'like = "{one.era.name}"',
        f'engine = "{engine}"',
        f'as_of = "{as_of or one.era.as_of}"',
        f"chips = {_words(place.chip for place in places)}",
        f"rows = {int(rows)}",
        "\n[errors]",
        *(f"{name} = {number(value, DIGITS)}" for name, value in scores.items()),
    ]
    return "\n".join(lines) + "\n"


def _intervals(one: Fitted) -> Iterable[str]:
    low, high = one.low.values, one.high.values
    for name in COEFFICIENTS:
        yield f"{name} = {pair(sorted((low[name], high[name])), DIGITS)}"


def _adjustments(one: Fitted) -> Iterable[str]:
    each = zip(one.found.effects, one.found.factors, one.low.factors, one.high.factors, strict=True)
    for effect, factor, low, high in each:
        yield from adjusted(effect, factor, (low, high), DIGITS)


def _bands(kinds: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> Iterable[str]:
    for kind, engines in kinds.items():
        for engine, quantities in engines.items():
            yield f'\n[bands.{kind}."{engine}"]'
            yield from (f"{name} = {pair(ends, DIGITS)}" for name, ends in quantities.items())


def _words(names: Iterable[str]) -> str:
    return listed(sorted(set(names)))
