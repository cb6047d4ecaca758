"""Fit the profiles of serving that ship.

Errors are those on rows left out: configurations (a layout at its lengths, with all its
concurrencies), groups (a model on a chip under an engine), whole models, whole chips.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.calibration import hierarchy
from planner.calibration.cross_validation import folds
from planner.calibration.hierarchy import Effect, Hierarchy, Loss, Prior
from planner.calibration.sample import Sample, data_hull
from planner.catalogue.coefficient_spread import EffectFamily, Quantiles
from planner.catalogue.hull import Hull
from planner.catalogue.profile import COEFFICIENTS
from planner.measurements.measurement import Measurement
from planner.measurements.prediction import NO_ENGINE, coefficients_from_linear, times_and_shares
from planner.measurements.readers import runs, steadies
from planner.text.tables import table
from tools.fit import left_out_errors
from tools.fit.fit_spread import SpreadHierarchy, with_pruned, worthwhile
from tools.fit.leave_outs import LEAVE_OUTS, LeaveOutScore, LeaveOutStudy, inner_error, scores_text
from tools.fit.left_out_errors import SpreadLeftOut
from tools.fit.published_sample import digests_text, published_sample
from tools.fit.shipped_profile import shipped_text, thin_text

SEED, DRAWS, PRUNINGS = 20261121, 20, 3
ROUGHLY = 1e-5  # where fits that are only compared settle
INNER = ("configurations", "models", "chips")  # what is left out to choose between them
# What is left out of a fit, its kind of place, and how its errors are called.
PREFIXES = {
    "configurations": ("known", ""),
    "groups": ("", "unseen_groups_"),
    "models": ("new_model", "unseen_models_"),
    "chips": ("new_chip", "unseen_chips_"),
}
PRIORS = table("tools.fit", "fit_priors.toml")


@dataclass(frozen=True)
class FitSpec:
    """A profile to be: name, date, source, priors and families of adjustments.

    Where engines differ by years, the shared part is a `base` of profiles of one engine and
    nobody's estimate. `worth` is what an adjustment has to add to the sum of a fit, None where all
    are kept, each shrunk.
    """

    name: str
    as_of: str
    source: str
    prior: Prior
    families: tuple[EffectFamily, ...]
    base: bool = False
    loss: Loss = field(default_factory=Loss)
    worth: float | None = None


def _spec(name: str, changes: Mapping[str, Any] = MappingProxyType({})) -> FitSpec:
    """What is expected of a kind of measurements, by the name of its profile, but for changes."""
    spec, groups = {**PRIORS[name], **changes}, PRIORS["groups"]
    families = tuple(
        EffectFamily(tuple(row["by"]), of, row["width"], row.get("monthly", False))
        for row in spec.pop("families")
        for of in _together(groups, row)
    )
    prior = {key: (value, width) for key, (value, width) in spec.pop("prior").items()}
    loss = Loss(**spec.pop("loss", {}))
    return FitSpec(name=name, prior=prior, families=families, loss=loss, **spec)


def _together(groups: Mapping[str, Sequence[str]], row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    of = groups[row["of"]] if isinstance(row["of"], str) else row["of"]
    return [(name,) for name in of] if row.get("apart") else [tuple(of)]


RUNS, STEADY = _spec("engines-2026"), _spec("steady-2024")


def rivals(name: str) -> dict[str, FitSpec]:
    """What a profile could be fitted with instead, by its name in the table of priors.

    A rival adds families and takes others away by their attributes, scales widths, or counts errors
    in another way.
    """
    specs = {}
    for rival in PRIORS["rivals"]:
        shipped, scale = PRIORS[name]["families"], rival.get("widths", 1.0)
        families = [
            {**row, "width": row["width"] * scale}
            for row in shipped
            if row["by"] not in rival.get("without", ())
        ]
        changes = {"families": families + rival.get("families", [])}
        changes |= {"loss": rival["loss"]} if "loss" in rival else {}
        specs[rival["name"]] = _spec(name, changes)
    return specs


@dataclass(frozen=True)
class Fitted:
    """One profile as it is written: what was fitted, on what, and how it did on rows left out."""

    spec: FitSpec
    sample: Sample
    hierarchy: SpreadHierarchy
    low: SpreadHierarchy
    high: SpreadHierarchy
    bands: Mapping[str, Mapping[str, Mapping[str, list[float]]]]
    errors: Mapping[str, float]
    by_engine: Mapping[str, Mapping[str, float]]
    spread: Mapping[str, float]
    hull: Hull
    quantiles: Quantiles
    left_out: tuple[LeaveOutScore, ...]


def rows_of_runs(tables: Sequence[Path]) -> list[Measurement]:
    """The rows of several tables of runs, whose ids hold the table's name."""
    return [replace(row, id=f"{path.stem}:{row.id}") for path in tables for row in runs(path).rows]


def profiles(steady: Path, tables: Sequence[Path], *, choose: bool = False) -> Iterator[Fitted]:
    """Every profile that ships: steady batches of earlier engines, and engines of 2026 under load.

    The second needs tables of runs. With `choose` its form is set beside its rivals.
    """
    rows, static = rows_of_runs(tables), steadies(steady).rows
    yield fit_profile(STEADY, published_sample(static, "steady", STEADY.as_of))
    if rows:
        assumed_setup = published_sample(rows, "assumed_setup", RUNS.as_of)
        sample = published_sample((*rows, *static), "runs", RUNS.as_of)
        yield fit_profile(RUNS, sample, assumed_setup, rivals(RUNS.name) if choose else {})


def fit_of(
    spec: FitSpec, begin: Hierarchy | None = None, settled: float = hierarchy.STOP_TOL
) -> Callable[[Sample], SpreadHierarchy]:
    """The fit of a specification, as a function of the rows it may see.

    It begins at the prior or where another fit ended, and ends where it gains less than `settled`.
    """

    def solved(
        sample: Sample, candidates: tuple[Effect, ...], start: Hierarchy | None = None
    ) -> Hierarchy:
        return hierarchy.fit_hierarchy(
            sample, candidates, spec.prior, start=start or begin, loss=spec.loss, settled=settled
        )

    def fit(sample: Sample) -> SpreadHierarchy:
        candidates, worth = hierarchy.effects(sample.places, spec.families), spec.worth
        if worth is None:
            return SpreadHierarchy.of(solved(sample, candidates), spec.families)
        pruned = hierarchy.prune_effects(
            lambda effects, start: solved(sample, effects, start),
            candidates,
            lambda draft: worthwhile(sample, draft, spec.prior, worth, loss=spec.loss),
            PRUNINGS,
        )
        every = with_pruned(sample, candidates, pruned, spec.prior, spec.loss)
        return SpreadHierarchy.of(every, spec.families)

    return fit


def choosing(specs: Mapping[str, FitSpec]) -> Callable[[Sample], SpreadHierarchy]:
    """The fit of the specification that predicts best what is left out of the rows it may see."""

    def fit(sample: Sample) -> SpreadHierarchy:
        scores = inner_scores(sample, specs)
        best = min(scores, key=scores.__getitem__)
        print(", ".join(f"{name} {error:.3f}" for name, error in scores.items()), "->", best)
        return fit_of(specs[best])(sample)

    return fit


def inner_scores(sample: Sample, specs: Mapping[str, FitSpec]) -> dict[str, float]:
    """How far each specification is off where configurations, models and chips are left out.

    A fifth of them at a time: the mean over groups of the median |ln (predicted / measured)|, and
    the mean relative error, of tokens, and with the weight that they have in a fit of prompts.
    """
    scores = {}
    for name, spec in specs.items():
        refit = fit_of(spec, settled=ROUGHLY)
        scores[name] = sum(
            inner_error(replace(leave, by_fifths=True).predictions(sample, refit))
            for leave in LEAVE_OUTS
            if leave.word in INNER
        )
    return scores


def fit_profile(
    spec: FitSpec,
    sample: Sample,
    assumed_setup: Sample | None = None,
    others: Mapping[str, FitSpec] = MappingProxyType({}),
) -> Fitted:
    """Coefficients with intervals, errors on rows left out in many ways, bands.

    `assumed_setup` rows are in no fit; how far predictions are from them is a band of their own.
    Where there are `others`, errors of a fit that chooses among them are reported too.
    """
    fit = fit_of(spec)(sample)
    # Begun at its prior: begun where all rows left it, a fit remembers those that it may not see.
    refit = fit_of(spec)
    floor = sample.columns.roofline
    study = LeaveOutStudy.of(sample, refit, choosing(others) if others else None)
    left = study.left
    pooled = sample.column("pooled")
    ranges = {}
    scores: dict[str, float] = {}
    for word, (kind, prefix) in PREFIXES.items():
        part = left[word].take(~pooled)
        scores |= left_out_errors.errors(part, floor[~pooled], prefix)
        if kind:
            ranges[kind], shares = left_out_errors.bands(part)
            scores |= {prefix + name: share for name, share in shares.items()}
    if pooled.any():
        part = left["configurations"].take(pooled)
        ranges["pooled"] = {
            "any": {**ranges["known"]["any"], **left_out_errors.bands(part)[0]["any"]}
        }
        scores |= left_out_errors.errors(part, floor[pooled], "pooled_")
    assumed = None
    if assumed_setup is not None:
        assumed = _unseen(assumed_setup, fit)
        ranges["assumed"] = left_out_errors.bands(
            replace(assumed, fold=np.zeros(len(assumed.fold), dtype=int))
        )[0]
        scores |= left_out_errors.errors(assumed, assumed_setup.columns.roofline, "assumed_setup_")
    low, high = _intervals(spec, sample, fit)
    by_engine = {
        name: _of_engine(left["configurations"], floor, name)
        for name in sorted({place.engine for place in sample.places})
    }
    hull = data_hull(sample, hierarchy.MIN_ROWS, {name: w for name, (_, w) in spec.prior.items()})
    spread = left_out_errors.spreads(left["configurations"].take(~pooled))
    return Fitted(
        spec, sample, fit, low, high, ranges, scores, by_engine, spread, hull,
        study.quantiles(assumed), tuple(study.scores()),
    )  # fmt: skip


def _unseen(rows: Sample, fit: SpreadHierarchy) -> SpreadLeftOut:
    """Rows that a fit never saw as rows left out of it.

    By the serving model itself: first tokens of two pools are no sum over the coefficients.
    """
    at = fit.covariances(rows.places)
    covariances = tuple(at[place] for place in rows.places)
    values = [coefficients_from_linear(x) for x in fit.unknowns(rows.places)]
    profiles = [replace(NO_ENGINE, values=each) for each in values]
    times, shares, _ = times_and_shares(rows.rows, profiles, [(name,) for name in COEFFICIENTS])
    return SpreadLeftOut(rows, folds(rows.configurations), times, shares, covariances)


def _intervals(
    spec: FitSpec, sample: Sample, fit: SpreadHierarchy
) -> tuple[SpreadHierarchy, SpreadHierarchy]:
    """Ends of the ranges [10 %, 90 %] over samples of whole configurations, drawn with return."""
    draw = np.random.default_rng(SEED)
    names, member = np.unique(sample.configurations, return_inverse=True)
    members = [np.flatnonzero(member == i) for i in range(len(names))]
    shared, adjusted = [], []
    worth = np.flatnonzero(fit.adjusted)
    settled = ROUGHLY if spec.worth is None else hierarchy.STOP_TOL
    for _ in range(DRAWS):
        chosen = np.concatenate([members[i] for i in draw.integers(0, len(names), len(names))])
        refit = hierarchy.fit_hierarchy(
            sample.take(chosen), [fit.effects[i] for i in worth], spec.prior,
            start=fit, loss=spec.loss, settled=settled,
        )  # fmt: skip
        shared.append(refit.shared)
        adjusted.append(np.zeros(len(fit.effects)))
        adjusted[-1][worth] = refit.adjusted
    low, high = np.quantile(shared, [0.1, 0.9], axis=0)
    least, most = np.quantile(adjusted, [0.1, 0.9], axis=0)
    lowest = replace(fit, shared=low, adjusted=least)
    return lowest, replace(fit, shared=high, adjusted=most)


def _of_engine(left: SpreadLeftOut, floor: np.ndarray, engine: str) -> dict[str, float]:
    mask = np.array([place.engine == engine and not place.pooled for place in left.sample.places])
    if not mask.any():
        return {}
    return {**left_out_errors.errors(left.take(mask), floor[mask]), "rows": int(mask.sum())}


def write_profiles(steady: Path, tables: Sequence[Path], out: Path, *, choose: bool) -> None:
    """Read the tables, fit every profile, write its file, its rows, those of one engine."""
    for fit in profiles(steady, tables, choose=choose):
        name = fit.spec.name
        print(f"{name}\n{scores_text(fit.left_out)}")
        (out / f"{name}.toml").write_text(shipped_text(fit), encoding="utf-8")
        (out / f"{name}.rows").write_text(digests_text(fit.sample.rows), encoding="ascii")
        for thin, row in PRIORS["engines"].items():
            if row["like"] == name:
                text = thin_text(fit, row["engine"], row.get("as_of", ""))
                (out / f"{thin}.toml").write_text(text, encoding="utf-8")
