"""A profile as the text of its TOML file, a user's own or one that ships."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from planner.catalogue.coefficient_spread import KNOWN, CoefficientSpread, triangle_text, values_of
from planner.catalogue.profile import COEFFICIENTS, COVERAGE, Adjustment, Band, Profile

if TYPE_CHECKING:
    from planner.calibration.fit import Fitted
    from planner.calibration.leave_outs import LeaveOutScore
    from planner.catalogue.hull import Hull

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
        *keys_of(profile, "name", "as_of", "engine", "chips", "models", "engines"),
        *keys_of(profile, "rows", *(["runs"] if profile.runs else []), "source", "coverage"),
        *(f"{name} = {_text(value)}" for name, value in more.items()),
        "# Not identified by the rows: as they were in the profile that the fit started from.",
        f"held = {listed(profile.unidentified)}",
        *_tables(profile, ", where the fit started.", DIGITS, _key),
    ]
    return "\n".join(lines) + "\n"


def keys_of(of: object, *names: str, digits: int = DIGITS) -> Iterator[str]:
    """Attributes as keys of a TOML table, a line each."""
    yield from (f"{name} = {_value(getattr(of, name), digits)}" for name in names)


def section(
    name: str, values: Mapping[str, object], digits: int = DIGITS, remark: str = ""
) -> Iterator[str]:
    """A table of a TOML file, a line each, after an empty one and a remark."""
    yield from ("", *([f"# {remark}"] if remark else ()), f"[{name}]")
    yield from (f"{key} = {_value(value, digits)}" for key, value in values.items())


def inline(values: Mapping[str, object], digits: int = DIGITS) -> str:
    """A table in one line."""
    cells = ", ".join(f"{key} = {_value(value, digits)}" for key, value in values.items())
    return f"{{ {cells} }}"


def _tables(profile: Profile, remark: str, digits: int, key: Callable[[str], str]) -> Iterator[str]:
    """Every table of a profile's file; `remark` on its spread, engines of bands spelt by `key`."""
    yield from section("coefficients", {c: profile.values[c] for c in COEFFICIENTS}, digits)
    yield from section("intervals", profile.intervals, digits)
    for x in profile.adjustments:
        monthly = {"monthly": True} if x.monthly else {}
        values = {"of": x.of, **x.scope, "factor": x.factor, "interval": x.interval, **monthly}
        yield from section("[adjustments]", values, digits)
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            ends = {quantity: (band.low, band.high) for quantity, band in bands.items()}
            yield from section(f"bands.{_key(kind)}.{key(engine)}", ends, digits)
    if profile.spread:
        words = f"Of logarithms of measured over predicted price{remark}"
        yield from section("spread", profile.spread, digits, words)
    yield from section("errors", profile.errors, digits)
    if profile.hull is not None:
        yield from hull_lines(profile.hull)
    if profile.coefficient_spread is not None:
        yield from _uncertainty(profile.coefficient_spread)


def hull_lines(hull: Hull) -> Iterator[str]:
    """What the rows cover, as a table of a profile's file."""
    words = "What the rows cover: names, and ends of ranges."
    yield from section("hull", {**hull.names, **hull.ranges}, remark=words)
    if hull.widths:
        words = "Standard deviations of logarithms before any row was seen."
        yield from section("hull.widths", hull.widths, remark=words)


def _uncertainty(spread: CoefficientSpread) -> Iterator[str]:
    """What the rows leave open: covariance of coefficients and adjustments, and bands in sigmas."""
    yield from ("", "# Of logarithms of coefficients, then adjustments, in their order: the lower")
    yield "# triangle of the covariance's factor, row by row in half precision, base 64."
    yield from ("[uncertainty]", f'factor = "{triangle_text(spread.factor)}"', "families = [")
    for x in spread.families:
        monthly = {"monthly": True} if x.monthly else {}
        cells = {"by": x.keys, "of": x.of, "width": x.width, **monthly}
        yield f"  {inline(cells, SHIPPED_DIGITS)},"
    yield "]"
    yield from section("uncertainty.values", spread.values)
    for kind, quantities in spread.quantiles.items():
        yield from section(f"uncertainty.quantiles.{kind}", quantities, SHIPPED_DIGITS)


def listed(texts: Iterable[str]) -> str:
    """Texts as an array."""
    return f"[{', '.join(map(_text, texts))}]"


def pair(ends: Iterable[float], digits: int = DIGITS) -> str:
    """The ends of a range as an array."""
    return f"[{', '.join(number(end, digits) for end in ends)}]"


def number(value: float, digits: int = DIGITS) -> str:
    """A number to some digits; one that is whole by its type in full."""
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _value(value: object, digits: int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value, digits)
    if isinstance(value, tuple):
        return listed(value) if all(isinstance(x, str) for x in value) else pair(value, digits)
    return _text(str(value))


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _text(name)


def _text(text: str) -> str:
    # What JSON escapes in a string, TOML reads alike; a file's name may be no Unicode.
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def shipped_text(fit: Fitted) -> str:
    """The profile with its adjustments, bands and errors."""
    sample, profile = fit.sample, shipped(fit)
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(sample.left_out.items()))
    lines = [
        f"# Written by planner.calibration.fit. Rows left out of the fit: {left_out or 'none'}.",
        "# Intervals hold 80 % of refits to resampled configurations. Errors are on configurations",
        "# left out of the fit; unseen_groups_, unseen_models_, unseen_chips_ on whole groups,",
        "# models and chips left out; pooled_ on runs of two pools. Bands: measured / predicted.",
        *keys_of(profile, "as_of", "engine"),
        *(["base = true  # chosen by name alone"] if profile.base else []),
        *keys_of(profile, "engines", "chips", "models", "rows", "source", "coverage"),
        "# Not identified by these rows, so held near the value expected beforehand.",
        f"held = {listed(profile.unidentified)}",
        *_left_out(fit.left_out),
        *_tables(profile, ": between runs alike, and among all.", SHIPPED_DIGITS, _text),
    ]
    return "\n".join(lines) + "\n"


def _left_out(scores: Iterable[LeaveOutScore]) -> Iterator[str]:
    """Errors of each way of leaving out, a line each."""
    yield from (
        "",
        "# Errors on rows left out, by way of leaving out and quantity; group_log is the",
    )
    yield "# mean over groups (model, chip, engine) of the median |ln (predicted / measured)|."
    yield "left_out = ["
    yield from (f"  {inline(vars(score), SHIPPED_DIGITS)}," for score in scores)
    yield "]"


def shipped(fit: Fitted) -> Profile:
    """A fit as the profile that ships."""
    sample, spec, places = fit.sample, fit.spec, fit.sample.places
    low, high, factors = fit.low.values, fit.high.values, fit.hierarchy.factors
    effects = zip(fit.hierarchy.effects, factors, fit.low.factors, fit.high.factors, strict=True)
    all_bands = {
        kind: {engine: {q: Band(*ends) for q, ends in each.items()} for engine, each in by.items()}
        for kind, by in fit.bands.items()
    }
    return Profile(
        name=spec.name,
        as_of=spec.as_of,
        engine="any",
        chips=_sorted(sample.column("chip_name")),
        rows=len(sample.rows),
        source=spec.source,
        coverage=COVERAGE,
        bands=all_bands[KNOWN]["any"],
        errors=fit.errors,
        values=fit.hierarchy.values,
        intervals={c: (min(low[c], high[c]), max(low[c], high[c])) for c in COEFFICIENTS},
        unidentified=fit.hierarchy.unidentified,
        adjustments=tuple(
            Adjustment(e.of, e.scope, factor, (least, most), e.monthly)
            for e, factor, least, most in effects
        ),
        models=_sorted(place.model for place in places),
        engines=_sorted(place.engine for place in places),
        all_bands=all_bands,
        spread=fit.spread,
        base=spec.base,
        hull=fit.hull,
        coefficient_spread=fit.hierarchy.spread(
            values_of(list(dict.fromkeys(places))), fit.quantiles
        ),
    )


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
        f"chips = {listed(_sorted(place.chip for place in places))}",
        f"rows = {int(rows)}",
        *section("errors", scores, SHIPPED_DIGITS),
    ]
    return "\n".join(lines) + "\n"


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
