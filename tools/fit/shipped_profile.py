"""A profile that ships as the text of its TOML file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from planner.calibration.own_profile import section, tables, toml_keys
from planner.catalogue.coefficient_spread import (
    DISTANCES,
    HALF,
    IN_SAMPLE,
    CoefficientSpread,
    RunContext,
    attribute,
)
from planner.catalogue.profile import COEFFICIENTS, COVERAGE, Adjustment, Band, Profile
from planner.text.tables import NumberFormat, toml_lines, toml_value

if TYPE_CHECKING:
    from tools.fit.leave_outs import LeaveOutScore
    from tools.fit.serving_fit import Fitted

SHIPPED_DIGITS = "{:.4g}".format


def inline(values: Mapping[str, object], number: NumberFormat) -> str:
    """A table in one line."""
    return f"{{ {', '.join(toml_lines(values, number))} }}"


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


def shipped_text(fit: Fitted) -> str:
    """The profile with its adjustments, bands and errors."""
    sample, profile = fit.sample, shipped(fit)
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(sample.left_out.items()))
    lines = [
        f"# Written by tools.fit. Rows left out of the fit: {left_out or 'none'}.",
        "# Intervals hold 80 % of refits to resampled configurations. Errors are on configurations",
        "# left out of the fit; unseen_groups_, unseen_models_, unseen_chips_ on whole groups,",
        "# models and chips left out; pooled_ on runs of two pools. Bands: measured / predicted.",
        *toml_keys(profile, "as_of", "engine"),
        *(["base = true  # chosen by name alone"] if profile.base else []),
        *toml_keys(profile, "engines", "chips", "models", "rows", "source", "coverage"),
        "# Not identified by these rows, so held near the value expected beforehand.",
        *toml_lines({"held": profile.unidentified}, SHIPPED_DIGITS),
        *_left_out(fit.left_out),
        *tables(
            profile,
            ": between runs alike, and among all.",
            SHIPPED_DIGITS,
            partial(toml_value, number=str),
        ),
        *(_uncertainty(profile.coefficient_spread) if profile.coefficient_spread else ()),
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
        bands=all_bands[IN_SAMPLE]["any"],
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
        f"# Written by tools.fit. {fit.spec.name} as {engine} is expected to run.",
        f'like = "{fit.spec.name}"',
        f'engine = "{engine}"',
        f'as_of = "{as_of or fit.spec.as_of}"',
        *toml_lines({"chips": _sorted(place.chip for place in places)}, SHIPPED_DIGITS),
        f"rows = {int(rows)}",
        *section("errors", scores, SHIPPED_DIGITS),
    ]
    return "\n".join(lines) + "\n"


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def triangle_text(factor: np.ndarray) -> str:
    """A lower triangle as text: its rows in half precision, base 64."""
    rows = factor[np.tril_indices(len(factor))].astype(HALF) + HALF.type(0)  # no zero has a sign
    return b64encode(rows.tobytes()).decode()


def values_of(places: Sequence[RunContext]) -> dict[str, tuple[str, ...]]:
    """Values of places by kind of distance, where all attributes are given."""
    values = {}
    for kind, keys in DISTANCES.items():
        full = {attribute(p, kind) for p in places if all(getattr(p, key) for key in keys)}
        if full:
            values[kind] = tuple(sorted(full))
    return values
