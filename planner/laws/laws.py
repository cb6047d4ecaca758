"""A scaling law by name, from a file, from a mapping, or fitted to points of the user's own.

A file is TOML, YAML or JSON of the shape of a catalogue entry: `form`, `coefficients` (a number,
or `value` with `error`, or `low` and `high`), and where wanted `title`, `source`, `as_of`,
`scope`, `range`, `settings`, `covariance`; every mistake in it is listed. In place of coefficients,
`fit: points.csv` fits the form of Hoffmann's third approach. `law: NAME` with `routing: NAME` puts
a routed law on a dense one, as does the text `besiroglu-2024 + clark-2022-s-base`.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from planner.catalogue.scaling_laws import RANGES, Covariance, Law, law, law_names, parse_law
from planner.laws.law_forms import FORMS, form_kernel
from planner.laws.scaling_law import ScalingLaw, law_from_record
from planner.scenario.keys.references import File
from planner.scenario.loading import read
from planner.text.errors import FieldError, InputError, did_you_mean, quote

Fault = tuple[str, str]

TEXT_KEYS = ("title", "source", "link", "as_of", "scope", "verified", "note")
KEYS = ("name", "form", "coefficients", "range", "settings", "covariance", *TEXT_KEYS)
ROUNDING = 1e-4  # of correlations given with four digits
# Limits of coefficients by the first part of the name: outside, a law fits no language and
# its powers are no numbers. Guessing among a million words costs 13.8 nat.
LIMITS: Mapping[str, tuple[float, float]] = {
    "loss": (1e-12, 20.0), "alpha": (1e-3, 10.0), "beta": (1e-3, 10.0), "E": (0.1, 1e6),
    "R": (1e-3, 1e6), "x": (1e-3, 1.0), "G": (1e-3, 1e6),
    **dict.fromkeys(("gamma", "delta", "lambda", "omega", "zeta", "eta"), (1e-12, 10.0)),
    **dict.fromkeys(("a", "b", "c", "d"), (1e-12, 10.0)),
}  # fmt: skip
LEVEL_LIMITS = (1e-100, 1e100)  # every other coefficient
COEFFICIENT = ("value", "error", "low", "high", "ln", "scale")
SYMBOLS = {"N_active", "D_pt", "D_rl", "D_unique", "C_pt", "sigma", "c_fwd"}
RULES: Mapping[str, tuple[frozenset[str], ...]] = {  # any one of these is enough
    "allocation": (frozenset({"k_size", "a_size"}), frozenset({"k_tokens", "a_tokens"})),
    "ratio": (frozenset({"K_ratio", "eta_ratio", "N_unit", "D_unit"}),),
}


def required_coefficients(form: str) -> frozenset[str]:
    """Coefficients and settings that the equation of a form takes."""
    kernel = form_kernel(form)
    if kernel is None:
        return RULES[form][0]
    return frozenset(x for x in kernel.names if x not in SYMBOLS and not x.startswith("one_"))


def law_from_mapping(name: str, description: Mapping[str, object]) -> Law:
    """The law of a checked mapping; what says where it comes from may be left out."""
    row = {
        "title": name, "source": "given", "link": "", "as_of": "given", "scope": "not said",
        "verified": "given", **{key: value for key, value in description.items() if key != "name"},
    }  # fmt: skip
    coefficients = description["coefficients"]
    assert isinstance(coefficients, Mapping)
    row["coefficients"] = {
        x: dict(each) if isinstance(each, Mapping) else {"value": each}
        for x, each in coefficients.items()
    }
    return parse_law(name, row)


def entry_faults(description: Mapping[str, object]) -> list[Fault]:
    """Faults (dotted path, message) that keep a mapping from being a law; empty if it is sound."""
    unknown = [key for key in description if key not in KEYS]
    faults = [(str(key), f"unknown{did_you_mean(key, KEYS)}") for key in unknown]
    faults += [
        (key, f"expected text, got {quote(description[key])}")
        for key in TEXT_KEYS
        if key in description and not isinstance(description[key], str)
    ]
    form = description.get("form")
    if not isinstance(form, str) or form not in FORMS or form == "routed":
        forms = ", ".join(each for each in FORMS if each != "routed")
        return [*faults, ("form", f"expected one of {forms}, got {quote(form)}")]
    faults += [
        *_coefficients(form, description), *_ranges(description.get("range", {})),
        *_covariance(description),
    ]  # fmt: skip
    return faults or _together(description)


def _coefficients(form: str, description: Mapping[str, object]) -> list[Fault]:
    coefficients, settings = description.get("coefficients"), description.get("settings", {})
    if not isinstance(coefficients, Mapping) or not coefficients:
        return [("coefficients", f"expected a mapping of numbers, got {quote(coefficients)}")]
    if not isinstance(settings, Mapping):
        return [("settings", f"expected a mapping of numbers, got {quote(settings)}")]
    faults = [fault for x, each in coefficients.items() for fault in _coefficient(f"{x}", each)]
    faults += [fault for x, each in settings.items() for fault in _bare(f"settings.{x}", x, each)]
    there = {*coefficients, *settings}
    if form in RULES:
        if not any(rule <= there for rule in RULES[form]):
            either = " or ".join(" and ".join(sorted(rule)) for rule in RULES[form])
            faults.append(("coefficients", f"the form {form} needs {either}"))
        return faults
    wanted = required_coefficients(form)
    lacking = sorted(wanted - there)
    if lacking:
        faults.append(("coefficients", f"the form {form} needs {', '.join(lacking)} too"))
    faults += [
        (f"coefficients.{x}", f"the form {form} has none of that name{did_you_mean(x, wanted)}")
        for x in coefficients
        if x not in wanted
    ]
    return faults


def _coefficient(name: str, entry: object) -> list[Fault]:
    """Faults of the entry of one coefficient."""
    at = f"coefficients.{name}"
    if not isinstance(entry, Mapping):
        return _bare(at, name, entry)
    wrong = [key for key in entry if key not in COEFFICIENT]
    if wrong or "value" not in entry:
        there = ", ".join(map(str, entry)) or "nothing"
        return [(at, f"expected value with error, or low and high, got {there}")]
    if not isinstance(entry.get("ln", False), bool):
        return [(f"{at}.ln", f"expected true or false, got {quote(entry['ln'])}")]
    number = _finite if entry.get("ln") else _positive
    faults = []
    for key in ("value", "error", "low", "high", "scale"):
        sound = _positive if key in ("error", "scale") else number
        if key in entry and not sound(entry[key]):
            faults.append((f"{at}.{key}", f"expected a positive number, got {quote(entry[key])}"))
    if faults:
        return faults
    if entry.get("ln") and abs(entry["value"]) > 600:
        return [(f"{at}.value", "the exponential of this is no number")]
    low, high = (entry.get(key, entry["value"]) for key in ("low", "high"))
    if not low <= entry["value"] <= high:
        return [(at, f"expected low <= value <= high, got {low:g}, {entry['value']:g}, {high:g}")]
    value = math.exp(entry["value"]) if entry.get("ln") else float(entry["value"])
    return _beyond(f"{at}.value", name, value * entry.get("scale", 1.0))


def _bare(at: str, name: str, number: object) -> list[Fault]:
    if not _positive(number):
        return [(at, f"expected a positive number, got {quote(number)}")]
    return _beyond(at, name, float(number))  # type: ignore[arg-type]


def _beyond(at: str, name: str, value: float) -> list[Fault]:
    least, most = LIMITS.get(name.partition("_")[0], LEVEL_LIMITS)
    if least <= value <= most:
        return []
    return [(at, f"expected {least:g} to {most:g}, got {value:.4g}")]


def _together(description: Mapping[str, object]) -> list[Fault]:
    """Coefficients that are sound alone and no law together."""
    x = law_from_mapping("given", description).values
    at = "coefficients"
    if "E_limit" in x and not x["E_limit"] > x["E_first"]:
        first, limit = x["E_first"], x["E_limit"]
        return [(f"{at}.E_limit", f"expected more than E_first = {first:g}, got {limit:g}")]
    if description["form"] == "kaplan":
        steep = x["alpha_N"] / x["alpha_D"]
        if abs(steep * math.log(x["N_c"])) > math.log(LEVEL_LIMITS[1]):
            fault = f"N_c to the power alpha_N/alpha_D = {steep:.3g} is beyond any loss"
            return [(f"{at}.alpha_D", fault)]
    return []


def _ranges(ranges: object) -> list[Fault]:
    if not isinstance(ranges, Mapping):
        return [("range", f"expected n, d, sparsity with two numbers each, got {quote(ranges)}")]
    faults = []
    for key, pair in ranges.items():
        if key not in RANGES:
            faults.append((f"range.{key}", f"unknown{did_you_mean(key, RANGES)}"))
        elif not (isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_positive, pair))
                  and pair[0] <= pair[1]):  # fmt: skip
            faults.append((f"range.{key}", f"expected [lowest, highest], got {quote(pair)}"))
    return faults


def _covariance(description: Mapping[str, object]) -> list[Fault]:
    covariance, at = description.get("covariance"), "covariance"
    if covariance is None:
        return []
    keys = {"of", "spread", "correlation", "source"}
    if not isinstance(covariance, Mapping) or set(covariance) - keys:
        return [(at, "expected of, spread, correlation and source")]
    names, spread, table = (covariance.get(key) for key in ("of", "spread", "correlation"))
    if not (isinstance(names, list) and all(isinstance(x, str) for x in names)):
        return [(f"{at}.of", 'expected coefficients, or "ln" and a coefficient')]
    bare = [re.sub(r"^ln ", "", x) for x in names]
    coefficients = description.get("coefficients")
    lost = [x for x in bare if not isinstance(coefficients, Mapping) or x not in coefficients]
    if lost:
        return [(f"{at}.of", f"there is no coefficient {quote(lost[0])}")]
    if not (isinstance(spread, list) and len(spread) == len(names) and all(map(_positive, spread))):
        return [(f"{at}.spread", f"expected {len(names)} positive numbers")]
    if not _correlates(table, len(names)):
        message = "of correlations: ones on the diagonal, symmetric, no negative variance"
        return [(f"{at}.correlation", f"expected {len(names)} rows {message}")]
    source = covariance.get("source", "")
    return [] if isinstance(source, str) else [(f"{at}.source", "expected text")]


def _correlates(table: object, size: int) -> bool:
    if not isinstance(table, list) or len(table) != size:
        return False
    if not all(isinstance(row, list) and len(row) == size for row in table):
        return False
    if not all(_finite(x) and abs(x) <= 1 for row in table for x in row):
        return False
    matrix = np.array(table, float)
    sound = (matrix == matrix.T).all() and (np.diag(matrix) == 1).all()
    return bool(sound and np.linalg.eigvalsh(matrix).min() >= -ROUNDING)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _positive(value: object) -> bool:
    return _finite(value) and value > 0  # type: ignore[operator]


FILES = (".toml", ".yaml", ".yml", ".json")
COUNTS, MAX_COUNT = ("drop_highest", "resamples", "seed"), 100_000
FIT_KEYS = ("fit", *COUNTS, "title", "name")


def scaling_law(
    source: str | Path | File | Mapping[str, object] | ScalingLaw, folder: Path | None = None
) -> ScalingLaw:
    """The law of a catalogue name, two names with a plus, a file, or a mapping.

    Args:
        source: See the module. A CSV file is fitted.
        folder: That of the scenario, against which a relative path is read.

    Raises CatalogueError if no law is called so; InputError if a file cannot be read or is no law,
    with every mistake; FieldError if a mapping is no law, or a law gives a reward and no loss; at
    `law`.
    """
    if isinstance(source, ScalingLaw):
        return source
    if isinstance(source, Mapping):
        return _of_mapping(source, "law", folder)
    text = str(source.path if isinstance(source, File) else source)
    suffix = Path(text).suffix.lower()
    if suffix in FILES:
        path = (folder or Path()) / Path(text).expanduser()  # which a whole path replaces
        tree = read(path)
        if tree.mistakes:
            raise InputError(tree.mistakes)
        if not isinstance(tree.data, Mapping):
            raise InputError(tree.mistake((), f"expected a law, got {quote(tree.data)}"))
        try:
            return _of_mapping(tree.data, "", path.parent, path.stem)
        except FieldError as error:
            faults = [(tuple(p for p in at.split(".") if p), text) for at, text in error.faults]
            raise InputError(tree.mistake(at, text) for at, text in faults) from None
    if suffix == ".csv":
        return _fitted({"fit": text}, folder, Path(text).stem)
    if "+" in text:
        dense, _, routing = (part.strip() for part in text.partition("+"))
        return scaling_law(dense, folder).routed_by(scaling_law(routing, folder))
    entry = law(text)
    if entry.form == "sigmoid":
        dense = ", ".join(each for each in law_names() if law(each).form == "chinchilla")
        raise FieldError(
            ("law", f"{text} gives a reward over reinforcement learning and no loss; a loss is "
                    f"given by {dense} and others"),
        )  # fmt: skip
    return law_from_record(entry)


def _of_mapping(
    description: Mapping[str, object], at: str, folder: Path | None, name: str = "given"
) -> ScalingLaw:
    """Build a law from the mapping at a dotted path."""
    name = str(description.get("name", name))
    if "law" in description or "routing" in description:
        law, routing = description.get("law"), description.get("routing")
        if set(description) - {"law", "routing", "name"} or not isinstance(law, str | Mapping):
            raise FieldError((at or "law", "expected law: NAME, and with it routing: NAME"))
        files = [x for x in description.values() if str(x).lower().endswith(FILES)]
        if not at and files:
            raise FieldError(
                ("law", f"a file of a law cannot name another file, {quote(files[0])}")
            )
        dense = scaling_law(law, folder)
        if "routing" not in description:
            return dense
        named = routing if isinstance(routing, Mapping) else str(routing)
        return dense.routed_by(scaling_law(named, folder))
    if "fit" in description:
        return _fitted(description, folder, name, at)
    faults = entry_faults(description)
    if faults:
        raise FieldError(*((".".join(p for p in (at, path) if p), text) for path, text in faults))
    return law_from_record(law_from_mapping(name, description))


def _fitted(
    description: Mapping[str, object], folder: Path | None, name: str, at: str = ""
) -> ScalingLaw:
    """The law fitted to a CSV file of points."""
    from planner.laws.law_fit import COORDINATES, fit_law

    wrong = [key for key in description if key not in FIT_KEYS]
    points, counts = description["fit"], {x: description.get(x, 0) for x in COUNTS}
    wrong += [x for x, n in counts.items() if type(n) is not int or not 0 <= n <= MAX_COUNT]
    if wrong or not isinstance(points, str):
        path = ".".join(part for part in (at, wrong[0] if wrong else "fit") if part)
        raise FieldError((path, f"expected fit: points.csv, with whole {', '.join(COUNTS)}"))
    options = {x: n for x, n in counts.items() if x in description and isinstance(n, int)}
    fit = fit_law((folder or Path()) / Path(points).expanduser(), **options)
    spread, correlation = fit.spread_and_correlation
    size, tokens = fit.points.size, fit.points.tokens
    return ScalingLaw(
        name=name,
        form="chinchilla",
        title=str(description.get("title", f"fit of {Path(fit.points.file).name}")),
        source=f"{len(fit.points)} points of {Path(fit.points.file).name}",
        as_of="given",
        scope=f"{len(fit.points)} runs of {Path(fit.points.file).name}",
        values=fit.values,
        errors=fit.errors,
        covariance=Covariance(
            COORDINATES, spread, correlation, f"{len(fit.resamples)} resamples of the points"
        ),
        limits={
            "n": (float(size.min()), float(size.max())),
            "d": (float(tokens.min()), float(tokens.max())),
            "sparsity": (1.0, 1.0),
        },
        note=f"root mean square {fit.scatter:.2g} in the logarithm of the loss",
    )
