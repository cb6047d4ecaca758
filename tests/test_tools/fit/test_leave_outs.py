"""Bands of rows left out hold what they say, and what is left out has no say in them."""

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.cross_validation import mean_by_group
from planner.calibration.hierarchy import effects, fit_hierarchy
from planner.calibration.sample import Sample
from planner.catalogue.coefficient_spread import (
    DISTANCES,
    CoefficientSpread,
    EffectFamily,
    RunContext,
    decode_triangle,
)
from planner.catalogue.profile import COEFFICIENTS, COVERAGE, profile
from planner.measurements.prediction import Features
from tools.fit.fit_spread import SpreadHierarchy
from tools.fit.leave_outs import LEAVE_OUTS, LeaveOut, Residuals, quantiles_by_group
from tools.fit.left_out_errors import leave_out
from tools.fit.serving_fit import RUNS
from tools.fit.shipped_profile import triangle_text, values_of

N = len(COEFFICIENTS)
WIDTH = 0.2
FAMILY = EffectFamily(("engine",), ("e_w", "t_layer"), WIDTH)


def groups(draw, n, rows, spread=0.3, noise=0.1):
    """Errors of `n` groups of some rows each, and the standard deviation that each has."""
    sigma = draw.uniform(0.5, 2.0, n) * spread
    error = sigma[:, None] * draw.normal(size=(n, 1)) + noise * draw.normal(size=(n, rows))
    name = np.repeat(np.arange(n).astype(str), rows)
    wide = np.repeat(np.hypot(sigma, noise), rows)
    return Residuals(error.ravel(), wide, name, name, np.arange(n * rows))


def test_a_band_of_groups_holds_what_it_says_of_groups_to_come():
    """Of 30 groups that share errors of their own, 80 % of new groups' rows, over 200 worlds."""
    draw = np.random.default_rng(7)
    shares = []
    for _ in range(200):
        seen, new = groups(draw, 30, 8), groups(draw, 30, 8)
        low, high, _ = seen.ends(0.0)
        z = new.error / new.sigma
        shares.append(mean_by_group(((z >= low) & (z <= high)).astype(float), new.group))
    # One world's share scatters by sqrt(0.8 * 0.2 / 30) and its own ends as much again.
    assert np.mean(shares) == pytest.approx(COVERAGE, abs=0.02)


def test_scatter_is_what_sigma_lacks():
    """Errors of 0.3 that a sigma of 0.06 does not explain: the rest, by groups."""
    draw = np.random.default_rng(3)
    error = draw.normal(0, 0.3, 4000)
    name = np.arange(4000).astype(str)
    rows = Residuals(error, np.full(4000, 0.06), name, name, np.arange(4000))
    assert rows.scatter() == pytest.approx((0.3**2 - 0.06**2) ** 0.5, rel=0.05)
    low, high, _ = rows.ends(rows.scatter())
    assert (low, high) == pytest.approx((-1.2816, 1.2816), abs=0.1)


def test_every_group_weighs_the_same():
    """A group of a thousand rows counts as one of three, one of a single row as a third of it."""
    values = np.r_[np.full(1000, 1.0), np.full(3, 3.0), np.full(3, 5.0)]
    group = np.r_[np.full(1000, 0), np.full(3, 1), np.full(3, 2)]
    assert mean_by_group(values, group) == pytest.approx(3.0)
    assert quantiles_by_group(values, group, [0.5]) == [pytest.approx(3.0)]
    assert mean_by_group(np.r_[np.full(9, 1.0), 5.0], np.r_[np.full(9, 0), 1]) == pytest.approx(2.0)


def sample_of_engines(draw, engines, rows=40):
    """Rows whose times rest on two coefficients, each engine with an effect drawn on both."""
    names = np.repeat([f"engine {i}" for i in range(engines)], rows)
    effect = np.repeat(draw.normal(0, WIDTH, engines), rows)
    matrix = np.zeros((len(names), N))
    part = draw.uniform(0.2, 0.8, len(names))
    matrix[:, COEFFICIENTS.index("e_w")] = part * 0.8
    matrix[:, COEFFICIENTS.index("t_layer")] = (1 - part) / 4e-5
    flat = np.zeros(len(names))
    columns = Features(matrix, flat, np.zeros_like(matrix), flat, flat)
    seconds = np.exp(effect + draw.normal(0, 0.06, len(names)))
    places = tuple(RunContext(engine=name, shape="any", chip="any") for name in names)
    return Sample((), columns, seconds, np.ones(len(names)), places, {}), names


def fit(rows):
    """A fit with one family of effects, by engine."""
    made = fit_hierarchy(rows, effects(rows.places, [FAMILY]), RUNS.prior)
    return SpreadHierarchy.of(made, (FAMILY,))


class Bare(Sample):
    """A sample without measurements behind its columns."""

    def take(self, mask):
        """Some of the rows."""
        i = np.arange(len(self.places))[mask]
        return Bare((), self.columns.take(i), self.seconds[i], self.weights[i],
                    tuple(self.places[k] for k in i), {})  # fmt: skip


def test_sigma_is_how_far_an_engine_left_out_is_off():
    """Effects drawn at their prior width: errors over sigma have the standard deviation of one."""
    draw, scores = np.random.default_rng(11), []
    for _ in range(6):
        rows, names = sample_of_engines(draw, 12)
        rows = Bare(**{**vars(rows), "rows": names})
        left = leave_out(rows, np.unique(names, return_inverse=True)[1], fit)
        z = np.log(rows.seconds / left.estimate) / left.sigma(left.shares, np.arange(len(names)))
        scores.append([z[names == name].mean() for name in np.unique(names)])
    off = np.ravel(scores)
    # 72 engines: the standard deviation is told to 1 / sqrt(2 * 72), a twelfth.
    assert off.std() == pytest.approx(1.0, abs=0.2)


def test_what_is_left_out_has_no_say_in_its_prediction():
    """No fit sees a row of the engine that it predicts, whatever stands there."""
    rows, names = sample_of_engines(np.random.default_rng(2), 4)
    rows = Bare(**{**vars(rows), "rows": names})
    fold = np.unique(names, return_inverse=True)[1]
    seen = []

    def watched(part):
        seen.append({place.engine for place in part.places})
        return fit(part)

    before = leave_out(rows, fold, watched)
    assert [len(engines) for engines in seen] == [3] * 4
    assert all(f"engine {k}" not in engines for k, engines in enumerate(seen))
    changed = replace(rows, seconds=np.where(fold == 0, 9.0, rows.seconds))
    after = leave_out(changed, fold, fit)
    assert np.array_equal(before.estimate[fold == 0], after.estimate[fold == 0])
    assert not np.allclose(before.estimate[fold == 1], after.estimate[fold == 1])


def test_a_row_without_a_key_is_never_left_out():
    """Of the scale of deployments only rows of more than a node are."""
    rows, names = sample_of_engines(np.random.default_rng(2), 3)
    rows = Bare(**{**vars(rows), "rows": names})
    leave = LeaveOut("some", lambda name, _: name if name == "engine 1" else "", "new")
    left = leave.predictions(rows, fit)
    assert np.isnan(left.estimate[names != "engine 1"]).all()
    assert np.isfinite(left.estimate[names == "engine 1"]).all()


def test_a_repeat_leaves_other_fifths_out():
    """Of ten engines, whose rows stay together and are predicted each time."""
    rows, names = sample_of_engines(np.random.default_rng(2), 10)
    rows = Bare(**{**vars(rows), "rows": names})
    leave = LeaveOut("some", lambda name, _: name, "new", by_fifths=True)
    first, second = (leave.predictions(rows, fit, repeat=i) for i in range(2))
    assert np.array_equal(first.fold, leave.fold(rows))
    assert (first.fold != second.fold).any()
    for left in (first, second):
        assert len(np.unique(left.fold)) == 5
        assert all(len(np.unique(left.fold[names == name])) == 1 for name in names)
        assert np.isfinite(left.estimate).all()


def test_an_effect_that_no_row_told_has_its_prior_width():
    """Of an engine that was fitted the band is narrower, of another by its width, all shares."""
    rows, names = sample_of_engines(np.random.default_rng(5), 4)
    made = fit(Bare(**{**vars(rows), "rows": names}))
    here, new = RunContext(engine="engine 1"), RunContext(engine="another")
    spread = made.covariances([here, new])
    share = np.zeros(N)
    share[[COEFFICIENTS.index("e_w"), COEFFICIENTS.index("t_layer")]] = 0.5
    told, untold = (float(share @ spread[place] @ share) for place in (here, new))
    assert told < 0.1 * WIDTH**2
    assert untold > WIDTH**2
    half = share / 2
    assert half @ spread[new] @ half == pytest.approx(untold / 4)


def test_a_covariance_comes_back_from_its_text():
    """To half precision, whatever its size."""
    draw = np.random.default_rng(1)
    factor = np.tril(draw.normal(size=(17, 17)))
    assert decode_triangle(triangle_text(factor)) == pytest.approx(factor, rel=1e-3)
    with pytest.raises(ValueError, match="base64"):
        decode_triangle("no base 64!")


def test_the_farthest_that_is_new_names_the_distance():
    """An architecture before a chip, a chip before a model, and so on to what is known."""
    place = RunContext(
        architecture="a", chip="c", shape="s", engine="e", version="v", math="fp8", cache="fp8"
    )
    spread = CoefficientSpread((), np.zeros((0, 0)), values_of([place]), {})
    assert spread.regime(place) == "known"
    changes = {
        "new_architecture": {"architecture": "b", "chip": "d"},
        "new_chip": {"chip": "d", "shape": "t"},
        "new_model": {"shape": "t", "engine": "f"},
        "new_engine": {"engine": "f"},
        "new_version": {"version": "w"},
    }
    for kind, change in changes.items():
        assert spread.regime(replace(place, **change)) == kind
    assert set(DISTANCES) == {*changes, "new_engine_on_chip"}


def test_every_way_of_leaving_out_has_a_word_of_its_own():
    """And a kind of distance that its bands are for."""
    assert len({x.word for x in LEAVE_OUTS}) == len({x.regime for x in LEAVE_OUTS}) == 12


@pytest.mark.parametrize("name", ["engines-2026", "vllm-2026"])
def test_shipped_profiles_widen_with_distance(name):
    """What was never fitted there has the wider band, of all times alike."""
    whole = profile(name)
    assert whole.coefficient_spread is not None
    near = whole.at(_nearest(whole))
    far = whole.at(replace(_nearest(whole), engine="another", architecture="another", chip="x"))
    shares = {"e_w": 0.5, "t_layer": 0.3, "e_kv": 0.2}
    assert near.sigma(shares) < far.sigma(shares)
    assert far.regime == "new_architecture"
    bands = [one.band("tpot", shares) for one in (near, far)]
    widths = [band.high / band.low for band in bands]
    assert 1 < widths[0] < widths[1]


def _nearest(whole):
    """A place that the rows of a profile held, as far as its kinds of distance say."""
    values = whole.coefficient_spread.values
    engine = whole.engine if whole.engine != "any" else values["new_engine"][0]
    chip = next(
        pair.removeprefix(f"{engine} ")
        for pair in values["new_engine_on_chip"]
        if pair.startswith(f"{engine} ")
    )
    return RunContext(
        engine=engine, chip=chip, shape=values["new_model"][0],
        architecture=values["new_architecture"][0],
    )  # fmt: skip
