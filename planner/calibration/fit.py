"""Fit the profiles that ship.

Run `python -m planner.calibration.fit --steady CSV --runs CSV --out DIR`. One set of coefficients
serves all engines, chips, formats and models; sets per engine start from it. Errors are those on
rows left out. Everything is seeded: the same tables give the same files.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from planner.calibration.adapters import read_runs, read_steady
from planner.calibration.features import features
from planner.calibration.profile import COEFFICIENTS, EFFICIENCIES
from planner.calibration.sample import Sample, runs_sample, steady_sample
from planner.calibration.squares import PRIOR, score, solve, values_of
from planner.calibration.validation import COVERAGE, Fit, bands, errors, folds, leave_out, roofline

__all__ = ["Fitted", "fit_profile", "main", "profiles", "written"]

SEED = 20261121
DRAWS = 40
MODELS = "unseen_models_"
RUNS = "ai-dynamo aiconfigurator-core 0.12.0, end-to-end runs of 2025-10 to 2026-04"
STATIC = "published TensorRT-LLM 0.9 static batches and NVIDIA NIM 2024 runs"
DIGITS = 4
# Engines whose own set errs less than the set of all on other rows of the groups it saw. That of
# TensorRT-LLM hardly does and errs more on unseen groups: its versions differ among themselves.
ENGINES = ("vllm-2026", "sglang-2026")
FROM_STATIC = ("e_c",)  # static batches of up to 1,024 sequences are bound by arithmetic
# Few runs send to experts on other chips, and none does beyond eight: exchanges are taken as they
# were measured by themselves.
FIRM = (*FROM_STATIC, "e_a2a")


@dataclass(frozen=True)
class Fitted:
    """One profile as it is written."""

    name: str
    as_of: str
    engine: str
    source: str
    sample: Sample
    unknowns: np.ndarray
    intervals: Mapping[str, tuple[float, float]]
    held: tuple[str, ...]
    bands: Mapping[str, list[float]]
    errors: Mapping[str, float]


def profiles(steady: Path, runs: Path) -> list[Fitted]:
    """Every profile that ships: TensorRT-LLM of 2024, all engines of 2026, and some alone."""
    static = steady_sample(read_steady(steady)[0], "trtllm-2024")
    older = fit_profile("trtllm-2024", "2024-06", "trtllm", STATIC, static, _of_static)
    sample = runs_sample(read_runs(runs)[0])
    prior = _prior()
    for name in FROM_STATIC:
        prior[COEFFICIENTS.index(name)] = older.unknowns[COEFFICIENTS.index(name)]
    taken = {name: older.intervals[name] for name in FROM_STATIC}
    every = _of_runs(prior)
    found = [
        older,
        fit_profile("engines-2026", "2026-04", "any", RUNS, sample, every, given=taken),
    ]
    for name in ENGINES:
        focus, one = sample.column("engine") == name, _of_engine(name, every)
        engine_only = name.removesuffix("-2026")
        found.append(fit_profile(name, "2026-04", engine_only, RUNS, sample, one, focus, taken))
    return found


def fit_profile(
    name: str,
    as_of: str,
    engine: str,
    source: str,
    sample: Sample,
    fit: Fit,
    focus: np.ndarray | None = None,
    given: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> Fitted:
    """Coefficients with intervals, errors on groups and on whole models left out, bands.

    Parameters
    ----------
    sample : rows that `fit` may see.
    fit : unknowns from some of the rows.
    focus : mask of the rows that the profile is for, all by default.
    given : intervals of the coefficients that `fit` takes from elsewhere.
    """
    mask = np.ones(len(sample.rows), dtype=bool) if focus is None else focus
    models = np.unique(sample.column("model"), return_inverse=True)[1]
    left = leave_out(sample, folds(sample.column("group"), SEED), fit).take(mask)
    unseen = leave_out(sample, models, fit).take(mask)
    own = sample.take(mask)
    floor, found = roofline(own), fit(sample)
    quantiles, coverage = bands(left)
    scores = {
        **errors(left, floor),
        **coverage,
        **{MODELS + key: value for key, value in errors(unseen, floor).items()},
        **_with_speculation(own, left.estimate, found),
    }
    intervals = _intervals(sample, fit) | dict(given)
    return Fitted(
        name,
        as_of,
        engine,
        source,
        own,
        found,
        intervals,
        _held(own, found, tuple(given)),
        quantiles,
        scores,
    )


def written(one: Fitted) -> str:
    """The profile as a TOML file."""
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(one.sample.left_out.items()))
    chips = sorted(set(one.sample.column("chip_name")))
    lines = [
        f"# Written by planner.calibration.fit. Rows left out of the fit: {left_out or 'none'}.",
        "# Intervals hold 80 % of refits to resampled groups. Errors are on groups left out of the",
        "# fit, unseen_models_ on whole models left out. Bands: measured / predicted.",
        f'as_of = "{one.as_of}"',
        f'engine = "{one.engine}"',
        f"chips = [{', '.join(_quoted(chip) for chip in chips)}]",
        f"rows = {len(one.sample.rows)}",
        f'source = "{one.source}"',
        f"coverage = {COVERAGE}",
        "# Not identified by these rows, so held near the value expected beforehand.",
        f"held = [{', '.join(_quoted(name) for name in one.held)}]",
        "\n[coefficients]",
        *(f"{name} = {_short(v)}" for name, v in values_of(one.unknowns).items()),
        "\n[intervals]",
        *(f"{name} = [{_short(a)}, {_short(b)}]" for name, (a, b) in one.intervals.items()),
        "\n[bands]",
        *(f"{name} = [{_short(a)}, {_short(b)}]" for name, (a, b) in one.bands.items()),
        "\n[errors]",
        *(f"{name} = {_short(value)}" for name, value in one.errors.items()),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Read the tables, fit every profile, write one file each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("--steady", "--runs", "--out"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args(arguments)
    for one in profiles(given.steady, given.runs):
        (given.out / f"{one.name}.toml").write_text(written(one), encoding="utf-8")


def _of_static(sample: Sample) -> np.ndarray:
    return solve(sample.columns, sample.seconds, sample.weights)


def _of_runs(prior: np.ndarray) -> Fit:
    """A fit of runs, which hold too few steps that tell the coefficients FIRM."""

    def fit(sample: Sample) -> np.ndarray:
        return solve(sample.columns, sample.seconds, sample.weights, prior=prior, firm=FIRM)

    return fit


def _of_engine(engine: str, every: Fit) -> Fit:
    """A fit of one engine's rows that starts from the fit of all rows it is given."""

    def fit(sample: Sample) -> np.ndarray:
        own = sample.take(sample.column("engine") == engine)
        return _of_runs(every(sample))(own)

    return fit


def _intervals(sample: Sample, fit: Fit) -> dict[str, tuple[float, float]]:
    """Ranges [10 %, 90 %] of the coefficients over samples of whole groups, drawn with return."""
    draw = np.random.default_rng(SEED)
    groups = sample.column("group")
    names = np.unique(groups)
    members = [np.flatnonzero(groups == name) for name in names]
    drawn = []
    for _ in range(DRAWS):
        chosen = np.concatenate([members[i] for i in draw.integers(0, len(names), len(names))])
        drawn.append(list(values_of(fit(sample.take(chosen))).values()))
    low, high = np.quantile(np.array(drawn), [0.1, 0.9], axis=0)
    return dict(zip(COEFFICIENTS, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _held(sample: Sample, found: np.ndarray, given: tuple[str, ...]) -> tuple[str, ...]:
    """Those given, and those worth a hundredth of a row's time in less than a tenth of the rows."""
    worth = values_of(found)
    share = sample.columns.matrix * np.maximum(found, _prior()) / sample.seconds[:, None]
    seen = (share > 0.01).mean(axis=0) >= 0.1
    return tuple(name for name, yes in zip(worth, seen, strict=True) if name in given or not yes)


def _prior() -> np.ndarray:
    return np.array([1 / v if name in EFFICIENCIES else v for name, v in PRIOR.items()])


def _with_speculation(sample: Sample, estimate: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Errors when the rows set aside count too, predicted as if nothing were speculated."""
    aside = [row for row in sample.aside if row.quantity == "tpot"]
    engines = set(sample.column("engine"))
    aside = [row for row in aside if row.engine in engines]
    if not aside:
        return {}
    columns = features(aside)
    times = np.concatenate([estimate[sample.decodes], columns.matrix @ found + columns.rest])
    measured = np.concatenate([sample.seconds[sample.decodes], [row.seconds for row in aside]])
    whole = score(times, measured)
    return {
        "with_speculation_tpot_rows": whole.n,
        "with_speculation_tpot_median": whole.median,
        "with_speculation_tpot_mean": whole.mean,
    }


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.{DIGITS}g}"


def _quoted(text: str) -> str:
    return f'"{text}"'


if __name__ == "__main__":
    main()
