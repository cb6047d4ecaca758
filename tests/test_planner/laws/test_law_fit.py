"""A law fitted to points: what was put in comes out, and what cannot be told is refused."""

import csv

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from planner.laws.law_fit import DELTA, ScalingPoints, fit_law, read_points
from planner.laws.laws import scaling_law
from planner.text.errors import InputError

LAW = scaling_law("besiroglu-2024")
NOISE = 0.004


def made(count=240, noise=NOISE, seed=0, law=LAW):
    """Points of a law with the spread of sizes and arithmetic that Hoffmann et al. ran."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(5.7e7), np.log(1.6e10), count))
    arithmetic = np.exp(rng.uniform(np.log(6e18), np.log(3e21), count))
    tokens = arithmetic / 6 / size
    return ScalingPoints(
        size, tokens, law.loss(size, tokens) * np.exp(noise * rng.standard_normal(count))
    )


@pytest.fixture(scope="module")
def fit():
    """120 points with noise, 25 resamples."""
    return fit_law(made(120), resamples=25, seed=3)


def test_points_without_noise_give_the_law_back():
    """To the digits that were put in."""
    found = fit_law(made(60, noise=0.0), resamples=2)
    for name, value in LAW.values.items():
        assert found.values[name] == pytest.approx(value, rel=2e-3), name
    assert found.objective < 1e-9


@pytest.mark.slow
def test_noisy_points_give_it_within_three_standard_errors(fit):
    """Every coefficient of Besiroglu's."""
    for name, value in LAW.values.items():
        assert abs(fit.values[name] - value) < 3 * fit.errors[name], name
        assert fit.errors[name] > 0


def test_the_fit_predicts_better_than_its_coefficients_are_known(fit):
    """Loss to 0.3 % over the range, though the levels are known to several percent."""
    size, tokens = np.geomspace(1e8, 1e10, 7), np.geomspace(2e9, 2e11, 7)
    again = scaling_law({"form": "chinchilla", "coefficients": fit.values})
    assert again.loss(size, tokens) == pytest.approx(LAW.loss(size, tokens), rel=3e-3)
    assert fit.errors["A_N"] / fit.values["A_N"] > 0.05


def test_levels_and_exponents_err_together(fit):
    """As in every fit of this form."""
    _, correlation = fit.spread_and_correlation
    assert correlation[0][3] > 0.98
    assert correlation[1][4] > 0.98


def huber_objective(points, at):
    """Sum of Huber losses of ln(loss) - ln(law), its terms added in logarithms."""
    size, tokens = np.log(points.size), np.log(points.tokens)
    terms = [at[0] - at[3] * size, at[1] - at[4] * tokens, np.full(len(size), at[2])]
    gap = np.abs(np.log(points.loss) - np.logaddexp.reduce(terms))
    return np.where(gap <= DELTA, gap**2 / 2, DELTA * (gap - DELTA / 2)).sum()


def test_no_better_minimum_is_found_by_brute_force(fit):
    """A global search in the same five unknowns finds none lower."""
    points = fit.points
    levels = np.log(points.size).mean(), np.log(points.tokens).mean()

    def at(x):
        return huber_objective(
            points, np.array([x[0] + x[3] * levels[0], x[1] + x[4] * levels[1], *x[2:]])
        )

    bounds = [(-3, 1), (-3, 1), (-1, 1), (0.05, 1.5), (0.05, 1.5)]
    found = differential_evolution(at, bounds, seed=0, maxiter=120, popsize=10, tol=1e-10)
    assert fit.objective <= found.fun * (1 + 1e-6)
    assert huber_objective(points, fit.centre) == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.slow
def test_outliers_hardly_move_the_fit():
    """Four runs that diverged, of 80."""
    clean = made(80)
    spoilt = clean.loss.copy()
    spoilt[::20] *= 1.5
    size, tokens = np.geomspace(1e8, 1e10, 5), np.geomspace(2e9, 2e11, 5)
    found = fit_law(ScalingPoints(clean.size, clean.tokens, spoilt), resamples=2)
    again = scaling_law({"form": "chinchilla", "coefficients": found.values})
    assert again.loss(size, tokens) == pytest.approx(LAW.loss(size, tokens), rel=5e-3)


@pytest.mark.slow
def test_resampling_repeats():
    """One seed, one covariance."""
    few = made(30)
    first, again, other = (fit_law(few, resamples=3, seed=s).covariance for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_highest_losses_can_be_left_out():
    """Besiroglu et al. drop five."""
    points = made(50)
    kept = points.without_highest(5)
    assert len(kept) == 45
    assert kept.loss.max() == np.sort(points.loss)[44]


# --- what cannot be told --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p: ScalingPoints(p.size[:5], p.tokens[:5], p.loss[:5]),
            "5 points for 5 coefficients",
        ),
        (
            lambda p: ScalingPoints(p.size * 0 + 1e9, p.tokens, p.loss),
            "fewer than three model sizes",
        ),
        (
            lambda p: ScalingPoints(p.size, p.tokens * 0 + 1e9, p.loss),
            "fewer than three numbers of tok",
        ),
    ],
)
def test_too_little_to_tell_is_refused(change, message):
    """One sentence."""
    with pytest.raises(InputError, match=message):
        fit_law(change(made(40)), resamples=2)


@pytest.mark.slow
def test_a_term_that_the_points_do_not_show_is_refused():
    """Losses that do not depend on the tokens determine no data term."""
    points = made(30, noise=0.0)
    flat = 1.8 + 482 * points.size**-0.3478
    with pytest.raises(InputError, match="tokens"):
        fit_law(ScalingPoints(points.size, points.tokens, flat), resamples=2)


# --- files ----------------------------------------------------------------------------------------


def write(path, points, header, row):
    """A CSV file of points."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(
            row(*each) for each in zip(points.size, points.tokens, points.loss, strict=True)
        )


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (["n", "d", "loss"], lambda n, d, loss: [n, d, loss]),
        (["run", "Params", "Tokens", "Loss"], lambda n, d, loss: ["x", n, d, loss]),
        (
            ["N", "D", "L"],
            lambda n, d, loss: [f"{float(n) / 1e6!r}M", f"{float(d) / 1e9!r} B tokens", loss],
        ),
        (["Model Size", "Training FLOP", "loss"], lambda n, d, loss: [n, 6 * n * d, loss]),
        (["size", "tokens", "flops", "loss"], lambda n, d, loss: [n, d, 1.0, loss]),
    ],
)
def test_columns_by_many_names(tmp_path, header, row):
    """Numbers, and quantities in words; tokens before arithmetic."""
    points = made(12)
    write(tmp_path / "points.csv", points, header, row)
    found = read_points(tmp_path / "points.csv")
    assert found.size == pytest.approx(points.size)
    assert found.tokens == pytest.approx(points.tokens)
    assert found.loss == pytest.approx(points.loss)


def test_a_missing_column_is_named(tmp_path):
    """With what would have been read."""
    file = tmp_path / "points.csv"
    file.write_text("params,loss\n1e9,2.5\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"no column of tokens \(d, dpt, token\); columns: 'params'"
    ):
        read_points(file)


def test_every_wrong_cell_is_named(tmp_path):
    """Line and column."""
    file = tmp_path / "points.csv"
    file.write_text("n,d,loss\n1e9,2e10,2.5\n-1,2e10,2.5\n1e9,,2.5\n1e9,2e10,0\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_points(file)
    assert [(each.line, each.path) for each in caught.value.mistakes] == [
        (3, "n"), (4, "d"), (5, "loss"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="there is no such file of points"):
        read_points(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_points(tmp_path)


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_cells_apart_by_other_marks_than_commas_are_told(tmp_path, mark, name):
    """As spreadsheets write them where the comma is the decimal mark."""
    file = tmp_path / "points.csv"
    file.write_text(f"N{mark}D{mark}loss\n1e8{mark}1e9{mark}3,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"separated by commas, not by {name}"):
        read_points(file)


def test_a_law_is_fitted_where_a_csv_is_named(tmp_path):
    """As a text, and as a mapping with what to leave out."""
    write(tmp_path / "runs.csv", made(80), ["n", "d", "loss"], lambda *row: row)
    found = scaling_law({"fit": "runs.csv", "drop_highest": 5, "resamples": 4}, tmp_path)
    assert "75 runs of runs.csv" in found.scope
    assert "interval" not in found.lacks
    assert found.limits["n"][0] >= 5.7e7
    assert len(found.draws(5)) == 5
    assert float(found.loss(1e9, 2e10)) == pytest.approx(float(LAW.loss(1e9, 2e10)), rel=1e-2)


def test_options_of_a_fit_are_checked(tmp_path):
    """By path."""
    with pytest.raises(Exception, match=r"law\.drop_highest: expected fit"):
        scaling_law({"fit": "runs.csv", "drop_highest": -1}, tmp_path)
