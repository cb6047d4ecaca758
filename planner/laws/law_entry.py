"""Whether a mapping is a law: its form, the coefficients that the form needs, their ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from planner.catalogue.scaling_laws import RANGES, Law, law_of
from planner.laws.law_forms import FORMS, form_kernel
from planner.text.errors import did_you_mean, quoted

__all__ = ["entry_faults", "entry_of", "needed"]

Fault = tuple[str, str]

TEXTS = ("title", "source", "link", "as_of", "scope", "verified", "note")
KEYS = ("name", "form", "coefficients", "range", "settings", "covariance", *TEXTS)
ROUNDING = 1e-4  # of correlations given with four digits
# What coefficients may be, by the first part of the name: beyond, no law of language is one and
# its powers are no numbers. Guessing among a million words costs 13.8 nat.
LIMITS: Mapping[str, tuple[float, float]] = {
    "loss": (1e-12, 20.0), "alpha": (1e-3, 10.0), "beta": (1e-3, 10.0), "E": (0.1, 1e6),
    "R": (1e-3, 1e6), "x": (1e-3, 1.0), "G": (1e-3, 1e6),
    **dict.fromkeys(("gamma", "delta", "lambda", "omega", "zeta", "eta"), (1e-12, 10.0)),
    **dict.fromkeys(("a", "b", "c", "d"), (1e-12, 10.0)),
}  # fmt: skip
LEVEL = (1e-100, 1e100)  # every other coefficient
COEFFICIENT = ("value", "error", "low", "high", "ln", "scale")
GIVEN = {"N_active", "D_pt", "D_rl", "D_unique", "C_pt", "sigma", "c_fwd"}
RULES: Mapping[str, tuple[frozenset[str], ...]] = {  # any one of these is enough
    "allocation": (frozenset({"k_size", "a_size"}), frozenset({"k_tokens", "a_tokens"})),
    "ratio": (frozenset({"K_ratio", "eta_ratio", "N_unit", "D_unit"}),),
}


def needed(form: str) -> frozenset[str]:
    """Coefficients and settings that the equation of a form takes."""
    kernel = form_kernel(form)
    if kernel is None:
        return RULES[form][0]
    return frozenset(x for x in kernel.names if x not in GIVEN and not x.startswith("one_"))


def entry_of(name: str, given: Mapping[str, Any]) -> Law:
    """The law of a checked mapping; what says where it comes from may be left out."""
    row = {
        "title": name, "source": "given", "link": "", "as_of": "given", "scope": "not said",
        "verified": "given", **{key: value for key, value in given.items() if key != "name"},
    }  # fmt: skip
    row["coefficients"] = {
        x: dict(each) if isinstance(each, Mapping) else {"value": each}
        for x, each in given["coefficients"].items()
    }
    return law_of(name, row)


def entry_faults(given: Mapping[str, Any]) -> list[Fault]:
    """(dotted path, what is wrong) for everything that keeps a mapping from being a law."""
    faults = [(str(key), f"unknown{did_you_mean(key, KEYS)}") for key in given if key not in KEYS]
    faults += [
        (key, f"expected text, got {quoted(given[key])}")
        for key in TEXTS
        if key in given and not isinstance(given[key], str)
    ]
    form = given.get("form")
    if not isinstance(form, str) or form not in FORMS or form == "routed":
        known = ", ".join(each for each in FORMS if each != "routed")
        return [*faults, ("form", f"expected one of {known}, got {quoted(form)}")]
    faults += [
        *_coefficients(form, given), *_ranges(given.get("range", {})), *_covariance(given)
    ]  # fmt: skip
    return faults or _together(given)


def _coefficients(form: str, given: Mapping[str, Any]) -> list[Fault]:
    found, settings = given.get("coefficients"), given.get("settings", {})
    if not isinstance(found, Mapping) or not found:
        return [("coefficients", f"expected a mapping of numbers, got {quoted(found)}")]
    if not isinstance(settings, Mapping):
        return [("settings", f"expected a mapping of numbers, got {quoted(settings)}")]
    faults = [fault for x, each in found.items() for fault in _coefficient(f"{x}", each)]
    faults += [fault for x, each in settings.items() for fault in _bare(f"settings.{x}", x, each)]
    there = {*found, *settings}
    if form in RULES:
        if not any(rule <= there for rule in RULES[form]):
            either = " or ".join(" and ".join(sorted(rule)) for rule in RULES[form])
            faults.append(("coefficients", f"the form {form} needs {either}"))
        return faults
    wanted = needed(form)
    lacking = sorted(wanted - there)
    if lacking:
        faults.append(("coefficients", f"the form {form} needs {', '.join(lacking)} too"))
    faults += [
        (f"coefficients.{x}", f"the form {form} has none of that name{did_you_mean(x, wanted)}")
        for x in found
        if x not in wanted
    ]
    return faults


def _coefficient(name: str, each: object) -> list[Fault]:
    """What is wrong with one coefficient."""
    at = f"coefficients.{name}"
    if not isinstance(each, Mapping):
        return _bare(at, name, each)
    wrong = [key for key in each if key not in COEFFICIENT]
    if wrong or "value" not in each:
        there = ", ".join(map(str, each)) or "nothing"
        return [(at, f"expected value with error, or low and high, got {there}")]
    if not isinstance(each.get("ln", False), bool):
        return [(f"{at}.ln", f"expected true or false, got {quoted(each['ln'])}")]
    number = _finite if each.get("ln") else _positive
    faults = []
    for key in ("value", "error", "low", "high", "scale"):
        sound = _positive if key in ("error", "scale") else number
        if key in each and not sound(each[key]):
            faults.append((f"{at}.{key}", f"expected a positive number, got {quoted(each[key])}"))
    if faults:
        return faults
    if each.get("ln") and abs(each["value"]) > 600:
        return [(f"{at}.value", "the exponential of this is no number")]
    low, high = (each.get(key, each["value"]) for key in ("low", "high"))
    if not low <= each["value"] <= high:
        return [(at, f"expected low <= value <= high, got {low:g}, {each['value']:g}, {high:g}")]
    value = math.exp(each["value"]) if each.get("ln") else float(each["value"])
    return _beyond(f"{at}.value", name, value * each.get("scale", 1.0))


def _bare(at: str, name: str, each: object) -> list[Fault]:
    """What is wrong with a number alone."""
    if not _positive(each):
        return [(at, f"expected a positive number, got {quoted(each)}")]
    return _beyond(at, name, float(each))  # type: ignore[arg-type]


def _beyond(at: str, name: str, value: float) -> list[Fault]:
    """What no law has, so that its powers would be no numbers."""
    least, most = LIMITS.get(name.partition("_")[0], LEVEL)
    if least <= value <= most:
        return []
    return [(at, f"expected {least:g} to {most:g}, got {value:.4g}")]


def _together(given: Mapping[str, Any]) -> list[Fault]:
    """Coefficients that are sound alone and no law together."""
    x = entry_of("given", given).values
    at = "coefficients"
    if "E_limit" in x and not x["E_limit"] > x["E_first"]:
        first, limit = x["E_first"], x["E_limit"]
        return [(f"{at}.E_limit", f"expected more than E_first = {first:g}, got {limit:g}")]
    if given["form"] == "kaplan":
        steep = x["alpha_N"] / x["alpha_D"]
        if abs(steep * math.log(x["N_c"])) > math.log(LEVEL[1]):
            told = f"N_c to the power alpha_N/alpha_D = {steep:.3g} is beyond any loss"
            return [(f"{at}.alpha_D", told)]
    return []


def _ranges(given: object) -> list[Fault]:
    if not isinstance(given, Mapping):
        return [("range", f"expected n, d, sparsity with two numbers each, got {quoted(given)}")]
    faults = []
    for key, pair in given.items():
        if key not in RANGES:
            faults.append((f"range.{key}", f"unknown{did_you_mean(key, RANGES)}"))
        elif not (
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and all(map(_positive, pair))
            and pair[0] <= pair[1]
        ):
            faults.append((f"range.{key}", f"expected [lowest, highest], got {quoted(pair)}"))
    return faults


def _covariance(given: Mapping[str, Any]) -> list[Fault]:
    found, at = given.get("covariance"), "covariance"
    if found is None:
        return []
    if not isinstance(found, Mapping) or set(found) - {"of", "spread", "correlation", "source"}:
        return [(at, "expected of, spread, correlation and source")]
    names, spread, table = (found.get(key) for key in ("of", "spread", "correlation"))
    if not (isinstance(names, list) and all(isinstance(x, str) for x in names)):
        return [
            (f"{at}.of", 'expected coefficients, or "ln" and a coefficient'),
        ]
    bare = [re.sub(r"^ln ", "", x) for x in names]
    known = given.get("coefficients")
    lost = [x for x in bare if not isinstance(known, Mapping) or x not in known]
    if lost:
        return [(f"{at}.of", f"there is no coefficient {quoted(lost[0])}")]
    if not (isinstance(spread, list) and len(spread) == len(names) and all(map(_positive, spread))):
        return [(f"{at}.spread", f"expected {len(names)} positive numbers")]
    if not _correlates(table, len(names)):
        message = "of correlations: ones on the diagonal, symmetric, no negative variance"
        return [(f"{at}.correlation", f"expected {len(names)} rows {message}")]
    return [] if isinstance(found.get("source", ""), str) else [(f"{at}.source", "expected text")]


def _correlates(table: object, size: int) -> bool:
    if not isinstance(table, list) or len(table) != size:
        return False
    if not all(isinstance(row, list) and len(row) == size for row in table):
        return False
    if not all(_finite(x) and abs(x) <= 1 for row in table for x in row):
        return False
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    if not all(table[i][j] == (1 if i == j else table[j][i]) for i, j in pairs):
        return False
    return bool(np.linalg.eigvalsh(np.array(table, float)).min() >= -ROUNDING)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _positive(value: object) -> bool:
    return _finite(value) and value > 0  # type: ignore[operator]
