"""A profile as the text of its file, in the form that `profile_from` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.calibration.profile import COEFFICIENTS, Adjustment, Profile

__all__ = ["written"]

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
        f"chips = {_list(profile.chips)}",
        f"models = {_list(profile.models)}",
        f"engines = {_list(profile.engines)}",
        f"rows = {profile.rows}",
        f"source = {_text(profile.source)}",
        f"coverage = {profile.coverage}",
        *(f"{name} = {_text(value)}" for name, value in more.items()),
        "# Not identified by the rows: as they were in the profile that the fit started from.",
        f"held = {_list(profile.held)}",
        "",
        "[coefficients]",
        *(f"{name} = {_number(profile.values[name])}" for name in COEFFICIENTS),
        "",
        "[intervals]",
        *(f"{name} = {_pair(profile.intervals[name])}" for name in profile.intervals),
    ]
    for each in profile.adjustments:
        lines += ["", "[[adjustments]]", *_adjustment(each)]
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            lines += ["", f"[bands.{_key(kind)}.{_key(engine)}]"]
            lines += [f"{name} = {_pair((band.low, band.high))}" for name, band in bands.items()]
    if profile.spread:
        lines += ["", "# Of logarithms of measured over predicted price, where the fit started."]
        lines += ["[spread]", *(f"{name} = {_number(x)}" for name, x in profile.spread.items())]
    lines += ["", "[errors]"]
    lines += [f"{name} = {_number(value)}" for name, value in profile.errors.items()]
    return "\n".join(lines) + "\n"


def _adjustment(each: Adjustment) -> list[str]:
    scope: Mapping[str, Any] = each.scope
    return [
        f"of = {_list(each.of)}",
        *(f"{key} = {_value(value)}" for key, value in scope.items()),
        f"factor = {_number(each.factor)}",
        f"interval = {_pair(each.interval)}",
        *(["monthly = true"] if each.monthly else []),
    ]


def _value(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else _text(str(value))


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _text(name)


def _text(text: str) -> str:
    # What JSON escapes in a string, TOML reads alike; a file's name may be no Unicode.
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _pair(ends: tuple[float, float]) -> str:
    return f"[{_number(ends[0])}, {_number(ends[1])}]"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.{DIGITS}g}"
