"""A profile as the text of its TOML file, a user's own or one that ships."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from planner.calibration.scores import COVERAGE
from planner.catalogue.profile import COEFFICIENTS, Adjustment, Profile

if TYPE_CHECKING:
    from planner.calibration.fit import Fitted
    from planner.calibration.hierarchy import Effect

DIGITS, SHIPPED_DIGITS = 6, 4


def written(profile: Profile, comments: Iterable[str] = (), **more: Any) -> str:
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
        f"held = {listed(profile.held)}",
        "",
        "[coefficients]",
        *(f"{name} = {number(profile.values[name])}" for name in COEFFICIENTS),
        "",
        "[intervals]",
        *(f"{name} = {pair(profile.intervals[name])}" for name in profile.intervals),
    ]
    for adjustment in profile.adjustments:
        lines += adjusted(adjustment, adjustment.factor, adjustment.interval)
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            lines += ["", f"[bands.{_key(kind)}.{_key(engine)}]"]
            lines += [f"{name} = {pair((band.low, band.high))}" for name, band in bands.items()]
    if profile.spread:
        lines += ["", "# Of logarithms of measured over predicted price, where the fit started."]
        lines += ["[spread]", *(f"{name} = {number(x)}" for name, x in profile.spread.items())]
    lines += ["", "[errors]"]
    lines += [f"{name} = {number(value)}" for name, value in profile.errors.items()]
    return "\n".join(lines) + "\n"


def adjusted(
    of: Adjustment | Effect, factor: float, interval: tuple[float, float], digits: int = DIGITS
) -> list[str]:
    """An adjustment of coefficients as a table of the file."""
    return [
        "",
        "[[adjustments]]",
        f"of = {listed(of.of)}",
        *(f"{key} = {_value(value)}" for key, value in of.scope.items()),
        f"factor = {number(factor, digits)}",
        f"interval = {pair(interval, digits)}",
        *(["monthly = true"] if of.monthly else []),
    ]


def listed(texts: Iterable[str]) -> str:
    """Texts as an array."""
    return f"[{', '.join(map(_text, texts))}]"


def pair(ends: Iterable[float], digits: int = DIGITS) -> str:
    """The ends of a range as an array."""
    return f"[{', '.join(number(end, digits) for end in ends)}]"


def number(value: float, digits: int = DIGITS) -> str:
    """A number to some digits; one that is whole by its type in full."""
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _value(value: Any) -> str:
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
    sample, spec = fit.sample, fit.spec
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
        "\n[coefficients]",
        *(f"{name} = {number(v, SHIPPED_DIGITS)}" for name, v in fit.hierarchy.values.items()),
        "\n[intervals]",
        *_shipped_intervals(fit),
        *_adjustments(fit),
        *_bands(fit.bands),
        "\n# Of logarithms of measured over predicted price: between runs alike, and among all.",
        "[spread]",
        *(f"{name} = {number(value, SHIPPED_DIGITS)}" for name, value in fit.spread.items()),
        "\n[errors]",
        *(f"{name} = {number(value, SHIPPED_DIGITS)}" for name, value in fit.errors.items()),
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


def _shipped_intervals(fit: Fitted) -> Iterable[str]:
    low, high = fit.low.values, fit.high.values
    for name in COEFFICIENTS:
        yield f"{name} = {pair(sorted((low[name], high[name])), SHIPPED_DIGITS)}"


def _adjustments(fit: Fitted) -> Iterable[str]:
    rows = zip(
        fit.hierarchy.effects, fit.hierarchy.factors, fit.low.factors, fit.high.factors, strict=True
    )
    for effect, factor, low, high in rows:
        yield from adjusted(effect, factor, (low, high), SHIPPED_DIGITS)


def _bands(kinds: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> Iterable[str]:
    for kind, engines in kinds.items():
        for engine, quantities in engines.items():
            yield f'\n[bands.{kind}."{engine}"]'
            yield from (
                f"{name} = {pair(ends, SHIPPED_DIGITS)}" for name, ends in quantities.items()
            )


def _words(names: Iterable[str]) -> str:
    return listed(sorted(set(names)))
