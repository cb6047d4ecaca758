"""A profile as the text of its TOML file, a user's own or one that ships."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.calibration.scores import COVERAGE
from planner.catalogue.profile import COEFFICIENTS, Adjustment, Profile

if TYPE_CHECKING:
    from planner.calibration.fit import Fitted

DIGITS, SHIPPED_DIGITS = 6, 4


def written(profile: Profile, comments: Iterable[str] = (), **more: str) -> str:
    """The profile as a TOML file; numbers to DIGITS digits.

    Parameters
    ----------
    comments : lines that stand at its head.
    more : keys that are kept beside those of a profile, such as what it started from.
    """
    lines = [
        *(f"# {' '.join(line.split())}" for line in comments),
        f"name = {_text(profile.name)}",
        f"as_of = {_text(profile.as_of)}",
        f"engine = {_text(profile.engine)}",
        f"chips = {listed(profile.chips)}",
        f"models = {listed(profile.models)}",
        f"engines = {listed(profile.engines)}",
        f"rows = {profile.rows}",
        f"source = {_text(profile.source)}",
        f"coverage = {profile.coverage}",
        *(f"{name} = {_text(value)}" for name, value in more.items()),
        "# Not identified by the rows: as they were in the profile that the fit started from.",
        f"held = {listed(profile.unidentified)}",
        *_tables(
            profile.values,
            profile.intervals,
            profile.adjustments,
            {
                f"{_key(kind)}.{_key(engine)}": {name: (x.low, x.high) for name, x in bands.items()}
                for kind, engines in profile.all_bands.items()
                for engine, bands in engines.items()
            },
            (profile.spread, ", where the fit started."),
            profile.errors,
            DIGITS,
        ),
    ]
    return "\n".join(lines) + "\n"


def _tables(
    values: Mapping[str, float],
    intervals: Mapping[str, Sequence[float]],
    adjustments: Iterable[Adjustment],
    bands: Mapping[str, Mapping[str, Sequence[float]]],
    spread: tuple[Mapping[str, float], str],
    errors: Mapping[str, float],
    digits: int,
) -> Iterator[str]:
    """Every table of a profile's file; `bands` by the keys of theirs, `spread` with its remark."""
    yield from ("", "[coefficients]")
    yield from (f"{name} = {number(values[name], digits)}" for name in COEFFICIENTS)
    yield from ("", "[intervals]")
    yield from (f"{name} = {pair(ends, digits)}" for name, ends in intervals.items())
    for adjustment in adjustments:
        yield from ("", "[[adjustments]]", f"of = {listed(adjustment.of)}")
        yield from (f"{key} = {_value(value)}" for key, value in adjustment.scope.items())
        yield f"factor = {number(adjustment.factor, digits)}"
        yield f"interval = {pair(adjustment.interval, digits)}"
        yield from ["monthly = true"] if adjustment.monthly else []
    for key, quantities in bands.items():
        yield from ("", f"[bands.{key}]")
        yield from (f"{name} = {pair(ends, digits)}" for name, ends in quantities.items())
    if spread[0]:
        yield from ("", f"# Of logarithms of measured over predicted price{spread[1]}", "[spread]")
        yield from (f"{name} = {number(value, digits)}" for name, value in spread[0].items())
    yield from ("", "[errors]")
    yield from (f"{name} = {number(value, digits)}" for name, value in errors.items())


def listed(texts: Iterable[str]) -> str:
    """Texts as an array."""
    return f"[{', '.join(map(_text, texts))}]"


def pair(ends: Iterable[float], digits: int = DIGITS) -> str:
    """The ends of a range as an array."""
    return f"[{', '.join(number(end, digits) for end in ends)}]"


def number(value: float, digits: int = DIGITS) -> str:
    """A number to some digits; one that is whole by its type in full."""
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _value(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else _text(str(value))


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _text(name)


def _text(text: str) -> str:
    # What JSON escapes in a string, TOML reads alike; a file's name may be no Unicode.
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def shipped_text(fit: Fitted) -> str:
    """The profile with its adjustments, bands and errors."""
    sample, spec, low, high = fit.sample, fit.spec, fit.low.values, fit.high.values
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(sample.left_out.items()))
    lines = [
        f"# Written by planner.calibration.fit. Rows left out of the fit: {left_out or 'none'}.",
        "# Intervals hold 80 % of refits to resampled configurations. Errors are on configurations",
        "# left out of the fit; unseen_groups_, unseen_models_, unseen_chips_ on whole groups,",
        "# models and chips left out; pooled_ on runs of two pools. Bands: measured / predicted.",
        f'as_of = "{spec.as_of}"',
        'engine = "any"',
        *(["base = true  # chosen by name alone"] if fit.spec.base else []),
        f"engines = {_words(place.engine for place in sample.places)}",
        f"chips = {_words(sample.column('chip_name'))}",
        f"models = {_words(place.model for place in sample.places)}",
        f"rows = {len(sample.rows)}",
        f'source = "{spec.source}"',
        f"coverage = {COVERAGE}",
        "# Not identified by these rows, so held near the value expected beforehand.",
        f"held = {listed(fit.hierarchy.untold)}",
        *_tables(
            fit.hierarchy.values,
            {name: sorted((low[name], high[name])) for name in COEFFICIENTS},
            [
                Adjustment(effect.of, effect.scope, factor, (least, most), effect.monthly)
                for effect, factor, least, most in zip(
                    fit.hierarchy.effects,
                    fit.hierarchy.factors,
                    fit.low.factors,
                    fit.high.factors,
                    strict=True,
                )
            ],
            {
                f'{kind}."{engine}"': quantities
                for kind, engines in fit.bands.items()
                for engine, quantities in engines.items()
            },
            (fit.spread, ": between runs alike, and among all."),
            fit.errors,
            SHIPPED_DIGITS,
        ),
    ]
    return "\n".join(lines) + "\n"


def thin_text(fit: Fitted, engine: str, as_of: str) -> str:
    """The profile of one engine: that of all, seen by it, with its own errors."""
    scores = dict(fit.by_engine[engine])
    rows = scores.pop("rows")
    places = [place for place in fit.sample.places if place.engine == engine]
    lines = [
        f"# Written by planner.calibration.fit. {fit.spec.name} as {engine} is expected to run.",
        f'like = "{fit.spec.name}"',
        f'engine = "{engine}"',
        f'as_of = "{as_of or fit.spec.as_of}"',
        f"chips = {_words(place.chip for place in places)}",
        f"rows = {int(rows)}",
        "\n[errors]",
        *(f"{name} = {number(value, SHIPPED_DIGITS)}" for name, value in scores.items()),
    ]
    return "\n".join(lines) + "\n"


def _words(names: Iterable[str]) -> str:
    return listed(sorted(set(names)))
