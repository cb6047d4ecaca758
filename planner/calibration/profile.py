"""A profile: what real engines reach, as dated data with its errors on rows the fit did not see.

Profiles are TOML files under `catalogue/profiles`. A chip or engine without a profile of its own
takes the nearest one, and the answer says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from planner.errors import CatalogueError, did_you_mean

__all__ = ["Band", "Profile", "choose_profile", "profile", "profile_from", "profile_names"]

COEFFICIENTS = (
    "e_w",
    "e_kv",
    "e_c",
    "e_pf",
    "e_ar",
    "e_ar_pf",
    "e_a2a",
    "t_layer",
    "t_moe",
    "t_ar",
    "t_a2a",
    "t_hop",
    "t_seq",
    "t_step",
    "t_pf_chunk",
    "t_request",
)
EFFICIENCIES = frozenset({"e_w", "e_kv", "e_c", "e_pf", "e_ar", "e_ar_pf", "e_a2a"})


@dataclass(frozen=True)
class Band:
    """Measured over predicted: the quantiles that hold `coverage` of the rows left out."""

    low: float
    high: float


@dataclass(frozen=True)
class Profile:
    """Coefficients of the estimate: efficiencies [1] and overheads [s, s/seq].

    `rows` counts the measurements it was fitted on, `errors` are fractions on rows left out of the
    fit. `intervals` hold 80 % of refits; coefficients in `held` were not identified by the rows.
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
    held: tuple[str, ...] = ()

    def band(self, quantity: str) -> Band:
        """Band of `tpot`, `ttft` or `usd_per_mtok`."""
        return self.bands[quantity]


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that ship."""
    folder = files("planner.catalogue").joinpath("profiles")
    return tuple(
        sorted(p.name[: -len(".toml")] for p in folder.iterdir() if p.name.endswith("toml"))
    )


@cache
def profile(name: str) -> Profile:
    """A profile by name.

    Raises
    ------
    CatalogueError
        If no profile has that name.
    """
    known = profile_names()
    if name not in known:
        raise CatalogueError(
            f"no profile {name!r}{did_you_mean(name, known)} known profiles: {', '.join(known)}"
        )
    path = files("planner.catalogue").joinpath("profiles", f"{name}.toml")
    return profile_from(name, tomllib.loads(path.read_text(encoding="utf-8")))


def profile_from(name: str, raw: Mapping[str, Any]) -> Profile:
    """A profile from the contents of its file.

    Raises
    ------
    CatalogueError
        If a coefficient is missing or unknown.
    """
    values = raw["coefficients"]
    missing = [c for c in COEFFICIENTS if c not in values]
    unknown = [c for c in values if c not in COEFFICIENTS]
    if missing or unknown:
        raise CatalogueError(f"profile {name}: missing {missing}, unknown {unknown}")
    return Profile(
        name=name,
        as_of=raw["as_of"],
        engine=raw["engine"],
        chips=tuple(raw["chips"]),
        rows=raw["rows"],
        source=raw["source"],
        coverage=raw["coverage"],
        bands=MappingProxyType({k: Band(*v) for k, v in raw["bands"].items()}),
        errors=MappingProxyType(dict(raw["errors"])),
        values=MappingProxyType({c: float(values[c]) for c in COEFFICIENTS}),
        intervals=MappingProxyType({c: (a, b) for c, (a, b) in raw.get("intervals", {}).items()}),
        held=tuple(raw.get("held", ())),
    )


def choose_profile(wanted: str, chip: str) -> tuple[Profile, str | None]:
    """The profile to use and, where it is not the chip's own, a sentence that says so.

    Parameters
    ----------
    wanted : a profile's name, or `auto`: the newest profile fitted on this chip.
    chip : catalogue name of the chip.
    """
    if wanted != "auto":
        found = profile(wanted)
    else:
        ranked = sorted(
            map(profile, profile_names()), key=lambda p: (chip in p.chips, p.as_of, p.rows)
        )
        found = ranked[-1]
    if chip in found.chips:
        return found, None
    return found, (
        f"profile {found.name} was fitted on {', '.join(found.chips)}, not on {chip}: "
        "the band is wider than it says"
    )
