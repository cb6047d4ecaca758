"""What `planner catalog` prints: every entry, and every figure with its source and date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from planner.catalogue import models
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.figures import Figure
from planner.catalogue.prices import default_price, rentals
from planner.catalogue.profile import profile, profile_names
from planner.catalogue.scaling_laws import RANGES, Coefficient, Covariance, Law, law, law_names
from planner.catalogue.systems import system, system_names
from planner.catalogue.tiers import tier, tier_names
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.quantities import show

__all__ = ["catalog_text", "listed"]

STRONG = 0.9  # correlations of coefficients that are printed


def listed(kind: str | None, name: str | None) -> dict[str, Any]:
    """Kinds, the names of one kind, or one entry with its figures.

    Raises
    ------
    CatalogueError
        If the kind or the name is unknown.
    """
    if kind is None:
        return {"kinds": {each: list(names()) for each, (names, _) in _KINDS.items()}}
    if kind not in _KINDS:
        raise CatalogueError(
            f"no catalogue of {kind!r}{did_you_mean(kind, _KINDS)} known: {', '.join(_KINDS)}"
        )
    names, entry = _KINDS[kind]
    if name is None:
        return {"kind": kind, "names": list(names())}
    if name not in names():
        raise CatalogueError.unknown(kind.rstrip("s"), name, names())
    return {"kind": kind, "name": name, **entry(name)}


def catalog_text(found: Mapping[str, Any]) -> str:
    """The same on a terminal."""
    if "kinds" in found:
        return "\n\n".join(
            f"{kind} ({len(names)})\n  " + "\n  ".join(names)
            for kind, names in found["kinds"].items()
        )
    if "names" in found:
        return "\n".join(found["names"])
    lines = [f"{found['name']}{': ' + found['title'] if found.get('title') else ''}"]
    lines += [f"{key}: {value}" for key, value in found.get("facts", {}).items()]
    for figure in found.get("figures", []):
        note = f"  {figure['note']}" if figure["note"] else ""
        lines += [
            f"{figure['name']:<18} {figure['value']:g} {figure['unit']}{note}",
            f"{'':<18} {figure['source']} "
            f"({figure['as_of'] or 'undated'}, verified: {figure['verified']})",
        ]
    return "\n".join(lines)


def _figures(figures: Mapping[str, Figure]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": f.value,
            "unit": f.unit,
            "base": f.base,
            "source": f.source,
            "as_of": f.as_of,
            "verified": f.verified,
            "note": f.note,
        }
        for name, f in figures.items()
    ]


def _chip(name: str) -> dict[str, Any]:
    found = chip(name)
    return {"title": found.title, "figures": _figures(found.figures)}


def _system(name: str) -> dict[str, Any]:
    found = system(name)
    facts = {"chip": found.chip.name, "network": found.topology}
    return {"facts": facts, "figures": _figures(found.figures)}


def _model(name: str) -> dict[str, Any]:
    record = models.record(name)
    return {"facts": {"source": record.source, "as_of": record.as_of}}


def _price(name: str) -> dict[str, Any]:
    rows = [
        {
            "name": row.tier,
            "value": row.value * 3600,
            "unit": "USD/hour",
            "base": row.value,
            "source": f"{row.provider}: {row.source}",
            "as_of": row.as_of,
            "verified": row.verified,
            "note": row.note,
        }
        for row in rentals(name)
    ]
    counted = any(row.tier == "on-demand" and row.verified != "no" for row in rentals(name))
    facts = {}
    if counted:
        price = default_price(name)
        facts["default"] = (
            f"{show(price.value, 'price')}, {show(price.low, 'price')} to "
            f"{show(price.high, 'price')}, {price.source} ({price.as_of})"
        )
    return {"facts": facts, "figures": rows}


def _profile(name: str) -> dict[str, Any]:
    found = profile(name)
    facts = {
        "engine": found.engine,
        "chips": ", ".join(found.chips),
        "rows": found.rows,
        "source": found.source,
        "as_of": found.as_of,
        **{f"error {key}": value for key, value in found.errors.items()},
        **{f"band {key}": f"{b.low:g} to {b.high:g}" for key, b in found.bands.items()},
        **dict(found.values),
    }
    return {"facts": facts}


def _law(name: str) -> dict[str, Any]:
    found = law(name)
    facts = {
        "form": found.form,
        **{symbol: _spread(each) for symbol, each in found.coefficients.items()},
        **{symbol: f"{value:g} (chosen)" for symbol, value in found.settings.items()},
        **_together(found.covariance),
        "fitted on": found.scope,
        **_ranges(found),
        **({"note": found.note} if found.note else {}),
        "source": f"{found.source} {found.link} ({found.as_of}, verified: {found.verified})",
    }
    numbers = {symbol: asdict(each) for symbol, each in found.coefficients.items()}
    more = {"range": dict(found.range), "settings": dict(found.settings)}
    if found.covariance is not None:
        more["covariance"] = asdict(found.covariance)
    return {"title": found.title, "facts": facts, "coefficients": numbers, **more}


def _tier(name: str) -> dict[str, Any]:
    found = tier(name)
    drain = show(found.capacity / found.read_rate, "time")
    facts = {"kind": found.kind, "drain time": drain}
    return {"title": found.title, "facts": facts, "figures": _figures(found.figures)}


def _ranges(found: Law) -> dict[str, str]:
    """The ranges that were fitted on, as `range of n`: lowest to highest."""
    facts = {}
    for key, (low, high) in found.range.items():
        ends = (_end(x, RANGES[key]) for x in (low, high))
        facts[f"range of {key}"] = " to ".join(dict.fromkeys(ends))
    return facts


def _end(value: float, dimension: str) -> str:
    if dimension == "number":
        return f"{value:g}"
    return f"{value:g} FLOP" if dimension == "work" else show(value, dimension)


def _together(covariance: Covariance | None) -> dict[str, str]:
    """The correlations that are larger than the rest, and where they come from."""
    if covariance is None:
        return {}
    pairs = [
        f"{covariance.of[i]} and {covariance.of[j]} {row[j]:+.4f}"
        for i, row in enumerate(covariance.correlation)
        for j in range(i)
        if abs(row[j]) >= STRONG
    ]
    return {"correlated": f"{', '.join(pairs) or 'weakly'}; {covariance.source}"}


def _spread(coefficient: Coefficient) -> str:
    """A coefficient with its standard error or interval."""
    text = f"{coefficient.value:g}"
    if coefficient.error is not None:
        return f"{text} ± {coefficient.error:g}"
    if coefficient.low is not None:
        return f"{text} ({coefficient.low:g} to {coefficient.high:g})"
    return text


def _priced() -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.chip for row in rentals()))


_Entry = Callable[[str], dict[str, Any]]
_KINDS: Mapping[str, tuple[Callable[[], tuple[str, ...]], _Entry]] = {
    "chips": (chip_names, _chip),
    "systems": (system_names, _system),
    "models": (models.names, _model),
    "prices": (_priced, _price),
    "profiles": (profile_names, _profile),
    "laws": (law_names, _law),
    "tiers": (tier_names, _tier),
}
