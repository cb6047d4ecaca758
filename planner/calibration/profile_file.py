"""A profile as the text of its file, in the form that `profile_from` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.catalogue.profile import COEFFICIENTS, Adjustment, Profile

if TYPE_CHECKING:
    from planner.calibration.hierarchy import Effect

__all__ = ["adjusted", "listed", "number", "pair", "written"]

DIGITS = 6


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
    for each in profile.adjustments:
        lines += adjusted(each, each.factor, each.interval)
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
