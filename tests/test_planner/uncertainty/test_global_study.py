"""Global studies: indices against SALib's, distributions by their formulas, knowing by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import planner
from planner.protocol.parameter import base_folder
from planner.report.text.sensitivity import MorrisEffect, ValueOfInformation
from planner.scenario import kinds, load, load_tree
from planner.text.errors import Infeasible
from planner.uncertainty import evaluate_samples
from planner.uncertainty.evaluate_samples import Draws, Marginal, SampleAnswers, read_marginals
from planner.uncertainty.global_study import (
    Study,
    _by_morris,
    _by_sobol,
    _check_count,
    _value_of_knowing,
    effects,
    morris_design,
    rank_choices_by_frequency,
    run_global_sensitivity,
    sobol,
    sobol_design,
    value_of_information,
)
from tests.loops import for_all

FREE = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 1,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "aggregated"},
    "uncertain": {
        "price": {"uniform": ["$2/hour", "$4/hour"]},
        "system": {"memory_bandwidth": {"normal": ["3.35 TB/s", "8%"]}},
        "workload.input_tokens": {"log_uniform": [500, 8000]},
        "workload.output_tokens": {"lognormal": [200, 1000]},
    },
}
HELD = {**FREE, "choose": {"mode": "aggregated", "tp": 1, "batch": 32}}


def drawn(source: dict) -> tuple:
    tree, scenario = load_tree(source)
    return tree, base_folder(source), read_marginals(tree, base_folder(source), scenario)


def test_sobol_indices_are_those_of_salib():
    """The same scenario by SALib's own sample and estimators; within both intervals."""
    analyze = pytest.importorskip("SALib.analyze.sobol")
    sample = pytest.importorskip("SALib.sample.sobol")
    tree, folder, marginals = drawn(HELD)
    names = [marginal.path for marginal in marginals]
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    shares = sample.sample(problem, 1024, calc_second_order=False, seed=3)
    theirs = analyze.analyze(
        problem,
        Draws(tree, folder, marginals, "usd_per_mtok").at(shares).values,
        calc_second_order=False,
        seed=3,
    )
    ours = run_global_sensitivity(HELD, sobol=1024).document["sobol"]
    for i, name in enumerate(names):
        for key, their in (("first", "S1"), ("total", "ST")):
            low, high = ours[name][f"{key}_interval"]
            room = theirs[f"{their}_conf"][i] + (high - low) / 2 + 1e-3
            assert ours[name][key] == pytest.approx(theirs[their][i], abs=room), (name, key)


def test_sobol_indices_of_a_sum_are_its_shares():
    """y = x1 + 2 x2: one and four fifths, and no interaction."""
    design = sobol_design(1024, 2, 0)
    found = sobol(design @ np.array([1.0, 2.0]), 2, 0)
    assert [each.first for each in found] == pytest.approx([0.2, 0.8], abs=0.02)
    assert [each.total for each in found] == pytest.approx([0.2, 0.8], abs=0.02)
    assert all(each.first_interval[0] <= each.first for each in found)


@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_shares_of_a_variance_have_no_unit(unit):
    """A price in another currency has the same indices."""
    values = sobol_design(64, 2, 0) @ np.array([1.0, 2.0])
    first, other = (sobol(scale * values, 2, 0) for scale in (1.0, unit))
    assert [x.first for x in other or []] == pytest.approx([x.first for x in first or [1]])


def test_a_design_has_a_power_of_two_points():
    """Two are enough; of both halves and one more for each quantity."""
    assert sobol_design(2, 3, 0).shape == (2 * (3 + 2), 3)
    for count in (0, 1, 3, 12):
        with pytest.raises(planner.InputError, match="power of two"):
            sobol_design(count, 3, 0)


def test_one_quantity_alone_carries_all_of_the_variance():
    """However the answer depends on it; none where it does not."""
    for values, share in ((np.exp(sobol_design(64, 1, 0)[:, 0]), 1.0), (np.ones(192), 0.0)):
        (alone,) = sobol(values, 1, 0) or []
        assert (alone.first, alone.total) == (share, share)


def test_draws_without_a_plan_are_replaced_by_others():
    """The indices rest on the rest."""
    design = sobol_design(256, 2, 0)
    values = design @ np.array([1.0, 2.0])
    values[::8] = np.nan
    found = sobol(values, 2, 0)
    assert [each.first for each in found] == pytest.approx([0.2, 0.8], abs=0.1)
    assert sobol(np.full(1024, np.nan), 2, 0) is None


def test_morris_effects_are_those_of_salib():
    """The same trajectories and answers."""
    analyze = pytest.importorskip("SALib.analyze.morris")
    tree, folder, marginals = drawn(HELD)
    names = [marginal.path for marginal in marginals]
    design = morris_design(12, len(names), 5)
    values = Draws(tree, folder, marginals, "usd_per_mtok").at(design).values
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    theirs = analyze.analyze(problem, design, values, num_levels=4, scaled=False, seed=1)
    ours = effects(design, values)
    for name, their in (("size", "mu_star"), ("mean", "mu"), ("deviation", "sigma")):
        values = [getattr(each, name) for each in ours]
        assert values == pytest.approx(np.asarray(theirs[their], dtype=float), rel=1e-6)


def test_knowing_is_worth_what_it_is_worth_by_hand():
    """Two choices, one certain at 0.5, one as uncertain as x: E|min| is 3/8, so it is 1/8."""
    shares = np.random.default_rng(0).random((4000, 2))
    costs = np.stack([np.full(4000, 0.5), shares[:, 0]], axis=1)
    found = value_of_information(costs, shares, ("certain", "open"), ("x", "y"))
    assert found.all == pytest.approx(1 / 8, abs=0.01)
    assert found.alone["x"] == pytest.approx(1 / 8, abs=0.01)
    assert found.alone["y"] == pytest.approx(0, abs=0.005)


@pytest.mark.slow
def test_a_study_of_plans_that_are_chosen_tells_all():
    """Shares of the draws add up; what knowing is worth is not negative."""
    few = {name: FREE["uncertain"][name] for name in ("price", "workload.input_tokens")}
    asked = {**FREE, "chips": 8, "promises": {"tpot": "12 ms"}, "uncertain": few}
    study = run_global_sensitivity(asked, sobol=16, morris=2)
    document = study.document
    assert isinstance(study, Study)
    told = sum(each["best"] for each in document["choices"]) + document["without_plan"]
    assert told == pytest.approx(1)
    assert document["draws"] == 16 * 4
    assert set(document["morris"]) == set(document["sobol"]) == set(document_paths(document))
    worth = document["knowing"]
    assert worth["all"] >= 0
    quantiles = list(document["distribution"]["quantiles"].values())
    assert quantiles == sorted(quantiles)
    assert "share of the variance" in str(study)


def document_paths(document: dict) -> list[str]:
    return [each["path"] for each in document["uncertain"]]


def test_a_choice_is_held_in_the_formats_of_its_checkpoint():
    """Experts in mxfp4 beside bf16, on a chip without arithmetic of four bits: it is itself."""
    from planner.protocol.problem import search

    asked = {**FREE, "model": "gpt-oss-120b", "chips": 8, "uncertain": None}
    scenario = load(asked)
    best = search(scenario)
    again = search(load(asked, list(best.holds)))
    assert again.choice == best.choice
    assert again.outputs == pytest.approx(best.outputs)


def test_the_same_seed_draws_the_same():
    """And another one draws another."""
    first, again = (run_global_sensitivity(HELD, sobol=16, seed=4).document for _ in range(2))
    assert first == again
    other = run_global_sensitivity(HELD, sobol=16, seed=5).document
    assert other["distribution"] != first["distribution"]


def test_published_runs_are_the_range_of_an_mfu():
    """Each against the dense peak of its own chip, none above one."""
    from planner.catalogue.training.training_runs import training_rates

    scenario = {
        "problem": "budget", "quality": {"loss": 2.0}, "inference": {"tokens": "2 T tokens"},
        "phases": {"pretrain": {"system": "hgx-h100", "mfu": 0.4},
                   "inference": {"system": "hgx-h100", "mfu": 0.2}},
        "uncertain": {"phases.pretrain.mfu": "catalogue", "phases.pretrain.price": "catalogue"},
    }  # fmt: skip
    mfu, price = drawn(scenario)[2]
    assert 0.1 < mfu.ends[0] < 0.4 < mfu.ends[1] < 0.8
    assert str(sum(rate.dtype == "bf16" for rate in training_rates())) in mfu.source
    assert price.ends[0] < price.ends[1]
    study = run_global_sensitivity(scenario, sobol=8)
    assert study.document["distribution"]["deviation"] > 0
    assert "published training runs" in " ".join(str(study).split())
    assert "without regard to the others" in str(study)


def test_the_bound_has_no_profile_that_could_be_uncertain():
    """Said, not answered with a spread of nothing."""
    asked = {**HELD, "estimate": "bound", "uncertain": {"profile.t_step": "catalogue"}}
    with pytest.raises(planner.InputError, match="the bound knows no profile"):
        run_global_sensitivity(asked, sobol=4)


@for_all(
    ("uncertain", "told"),
    [
        ({"pricce": {"uniform": [1e-3, 2e-3]}}, "did you mean 'price'"),
        ({"price": {"unifrm": [1, 2]}}, "did you mean 'uniform'"),
        ({"price": {"uniform": [1]}}, "least, most"),
        ({"price": {"uniform": ["$3/hour", "$2/hour"]}}, "rising"),
        ({"price": {"normal": ["$3/hour", "40%"]}}, "lognormal"),
        ({"price": {"uniform": ["3 s", "4 s"]}}, "price"),
        ({"price": {"uniform": [True, 2]}}, "expected a quantity"),
        ({"system": {"one_of": ["hgx-h100", "hgx-h101"]}}, "hgx-h101"),
        ({"system": {"uniform": ["hgx-h100", "hgx-h200"]}}, "one_of takes words"),
        ({"workload.input_tokens": "catalogue"}, "ranges of rents"),
        ({"profile.e_ww": "catalogue"}, "did you mean 'e_w'"),
        ({"profile.t_hop": "catalogue"}, "t_hop = .* here in every refit"),
        ({"profile.e_w": {"uniform": [0.5, 1.2]}}, "at most 1"),
        ({"profile.e_w": {"uniform": ["x", 1]}}, "a number such as 0.8"),
        ({"profile.t_layer": {"uniform": ["1 GB", "2 GB"]}}, "time"),
        ({"profile.t_layer": {"one_of": ["20 us", "30 us"]}}, "between two ends"),
        ({"phases.pretrain.mfu": "catalogue"}, "phases"),
        ({"price": {"uniform": []}}, "least, most"),
        ({"price": {"normal": ["$3/hour", 0]}}, "above zero"),
        ({"workload.cached_input": {"log_uniform": [0, 0.5]}}, "above zero"),
        ({"workload.input_tokns": {"uniform": [1, 2]}}, "did you mean 'input_tokens'"),
        ({}, "such as price"),
    ],
)
def test_what_is_wrong_with_uncertain_givens_is_told(uncertain, told):
    """At its path, with what was expected."""
    with pytest.raises(planner.InputError, match=told):
        run_global_sensitivity({**HELD, "uncertain": uncertain}, sobol=4)


@pytest.mark.slow
def test_processes_find_what_one_finds():
    """Plans of a serving scenario come back from other processes with their numbers."""
    few = {name: FREE["uncertain"][name] for name in ("price", "workload.input_tokens")}
    asked = {**FREE, "uncertain": few}
    several, alone = (run_global_sensitivity(asked, sobol=4, workers=n).document for n in (2, 1))
    assert several["distribution"] == alone["distribution"]
    assert several["sobol"] == alone["sobol"]


def test_counts_of_draws_are_checked():
    """A power of two, and not more than anybody waits for."""
    with pytest.raises(planner.InputError, match="power of two"):
        run_global_sensitivity(HELD, sobol=17)
    with pytest.raises(planner.InputError, match="1 to 174,762; each takes 6 draws"):
        run_global_sensitivity(HELD, sobol=1 << 40)
    with pytest.raises(planner.InputError, match=r"0: expected 1 to 209,715; each takes 5 draws"):
        run_global_sensitivity(HELD, morris=0)
    _check_count("--sobol", 1 << 18, 4)
    _check_count("--sobol", 1, 1)
    with pytest.raises(planner.InputError, match="expected 1 to 262,144; each takes 4"):
        _check_count("--sobol", (1 << 18) + 1, 4)
    with pytest.raises(planner.InputError, match="uncertain: is missing"):
        run_global_sensitivity(
            {key: value for key, value in HELD.items() if key != "uncertain"}, sobol=4
        )


def test_an_uncertain_scenario_is_resolved_and_read_again():
    """What was read is what is written."""
    from planner.scenario import resolve_keys

    scenario = load(FREE)
    assert load(resolve_keys(scenario)) == scenario
    assert math.isclose(planner.solve(FREE).cost, planner.solve({**FREE, "uncertain": None}).cost)


# -- by hand ------------------------------------------------------------------------------------


def test_sobol_indices_of_ishigamis_function_are_known():
    """Three angles, of which the third counts only with the first (Ishigami and Homma 1990)."""
    a, b, n = 7.0, 0.1, 2048
    x = math.pi * (2 * sobol_design(n, 3, 1) - 1)
    found = sobol(
        np.sin(x[:, 0]) + a * np.sin(x[:, 1]) ** 2 + b * x[:, 2] ** 4 * np.sin(x[:, 0]), 3, 1
    )
    both = 8 * b**2 * math.pi**8 / 225
    parts = 0.5 * (1 + b * math.pi**4 / 5) ** 2, a**2 / 8, 0.0
    first = [part / (sum(parts) + both) for part in parts]
    total = [
        (part + more) / (sum(parts) + both)
        for part, more in zip(parts, (both, 0, both), strict=True)
    ]
    assert [each.first for each in found] == pytest.approx(first, abs=0.02)
    assert [each.total for each in found] == pytest.approx(total, abs=0.02)


def test_intervals_of_indices_are_those_that_scipy_resamples():
    """Nine of ten percent, by the bootstrap that SciPy's result has of itself."""
    design = sobol_design(256, 2, 3)
    values = np.exp(design[:, 0]) * (0.5 + design[:, 1])
    blocks = values.reshape(4, -1)
    theirs = stats.sobol_indices(
        func={"f_A": blocks[:1], "f_B": blocks[1:2], "f_AB": blocks[2:, None, :]}, n=256
    ).bootstrap(confidence_level=0.9, n_resamples=999)
    for i, each in enumerate(sobol(values, 2, 3)):
        for ours, (low, high) in (
            (
                each.first_interval,
                (
                    theirs.first_order.confidence_interval.low[i],
                    theirs.first_order.confidence_interval.high[i],
                ),
            ),
            (
                each.total_interval,
                (
                    theirs.total_order.confidence_interval.low[i],
                    theirs.total_order.confidence_interval.high[i],
                ),
            ),
        ):
            assert ours == pytest.approx((low, high), abs=0.15 * (high - low))


def test_a_draw_that_misses_an_answer_counts_for_nothing():
    """Not even with the answers that it has; two whole draws are enough, one is not."""
    values = sobol_design(64, 2, 0) @ np.array([1.0, 2.0])
    blocks = values.reshape(4, -1).copy()
    blocks[3, ::4] = np.nan
    expected = sobol(blocks.ravel(), 2, 0)
    blocks[:3, ::4] = 1e3
    assert sobol(blocks.ravel(), 2, 0) == expected
    blocks[3, 2:] = np.nan
    blocks[3, :2] = 1.0, 2.0
    assert sobol(blocks.ravel(), 2, 0) is not None
    blocks[3, 1] = np.nan
    assert sobol(blocks.ravel(), 2, 0) is None


@pytest.mark.parametrize(("relative", "varies"), [(0.0, False), (7e-13, False), (1.5e-12, True)])
@pytest.mark.parametrize("size", [3.0, -3.0])
def test_an_answer_varies_by_more_than_a_trillionth(relative, varies, size):
    """What digits it has beyond them is rounding, of two quantities as of one."""
    for dimensions in (1, 2):
        rising = sobol_design(8, dimensions, 0).sum(axis=1)
        part = (rising - rising.min()) / np.ptp(rising)
        found = sobol(size * (1 - relative * part), dimensions, 0)
        assert any(each.total for each in found) == varies
    assert all(each.total == 0 for each in sobol(np.zeros(32), 2, 0))


@pytest.mark.parametrize(("count", "near"), [(0, 4), (1, 4), (3, 4), (5, 8), (17, 32), (-8, 4)])
def test_a_count_that_is_no_power_of_two_is_told_the_next_one(count, near):
    """The least above it."""
    with pytest.raises(planner.InputError, match=f"a power of two such as {near}$"):
        sobol_design(count, 2, 0)


def test_a_design_is_two_samples_and_one_with_a_column_of_the_other_each():
    """Saltelli's: A, B, and A with the first, the second, the third column of B."""
    first, second, *mixed = sobol_design(8, 3, 7).reshape(5, 8, 3)
    assert not (first == second).any()
    for i, each in enumerate(mixed):
        for j in range(3):
            assert (each[:, j] == (second if i == j else first)[:, j]).all()
    assert (sobol_design(8, 3, 7) == sobol_design(8, 3, 7)).all()
    assert (sobol_design(8, 3, 8) != sobol_design(8, 3, 7)).any()


def test_trajectories_walk_a_grid_of_four_levels():
    """Each moves every given once by two thirds, up or down as likely, in any order."""
    walks = morris_design(600, 2, 4).reshape(600, 3, 2)
    assert set(np.round(3 * walks).ravel()) == {0, 1, 2, 3}
    assert walks * 3 == pytest.approx(np.round(walks * 3))
    steps = np.diff(walks, axis=1)
    assert np.sort(np.abs(steps), axis=2) == pytest.approx(np.tile([0.0, 2 / 3], (600, 2, 1)))
    assert np.abs(steps).sum(axis=1) == pytest.approx(np.full((600, 2), 2 / 3))
    ups = (steps > 0.5).any(axis=1)
    assert ups.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.1)
    assert (ups[:, 0] == ups[:, 1]).mean() == pytest.approx(0.5, abs=0.1)
    assert (steps[:, 0, 0] != 0).mean() == pytest.approx(0.5, abs=0.1)
    starts = np.round(3 * np.where(ups, walks[:, 0], walks[:, 0] - 2 / 3))
    assert starts.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.1)
    assert (morris_design(9, 2, 4) != morris_design(9, 2, 5)).any()


def test_effects_are_slopes_along_steps():
    """Of three and minus two; where some have no plan, of the others; none where all have none."""
    design = morris_design(5, 2, 0)
    values = design @ np.array([3.0, -2.0])
    assert [(x.mean, x.size) for x in effects(design, values)] == [
        pytest.approx((3.0, 3.0)), pytest.approx((-2.0, 2.0))
    ]  # fmt: skip
    assert [x.deviation for x in effects(design, values)] == pytest.approx([0, 0], abs=1e-12)
    values[3:] = np.nan
    assert [x.mean for x in effects(design, values)] == pytest.approx([3.0, -2.0])
    assert [x.deviation for x in effects(design, values)] == [0.0, 0.0]
    none = effects(design, np.full(15, np.nan))
    assert none == [MorrisEffect(None, None, None)] * 2
    # One given, up by two thirds: slopes of 3 and -1.5.
    two = np.array([[0.0], [2 / 3], [1.0], [1 / 3]])
    (one,) = effects(two, np.array([1.0, 3.0, 4.0, 5.0]))
    assert (one.mean, one.size) == pytest.approx((0.75, 2.25))
    assert one.deviation == pytest.approx(statistics.stdev([3.0, -1.5]))


def test_knowing_one_given_rests_on_a_cubic_in_its_quantile():
    """Fitted by NumPy: mean of the best on average less the mean of the best at each value."""
    shares = np.random.default_rng(2).random((60, 2))
    costs = np.stack(
        [
            1.4 + 0 * shares[:, 0],
            np.exp(2 * shares[:, 0]) - shares[:, 1],
            2 - np.sin(5 * shares[:, 1]),
        ],
        axis=1,
    )
    found = value_of_information(costs, shares, ("a", "b", "c"), ("x", "y"))
    means = costs.mean(axis=0)
    assert found.all == pytest.approx(means.min() - costs.min(axis=1).mean())
    assert (found.best, found.draws) == ("abc"[int(means.argmin())], 60)
    assert found.mean == pytest.approx(means.min())
    for i, path in enumerate(("x", "y")):
        share = shares[:, i]
        fits = np.stack([np.polyval(np.polyfit(share, cost, 3), share) for cost in costs.T])
        expected = fits.mean(axis=1).min() - fits.min(axis=0).mean()
        assert expected > 0.01
        assert found.alone[path] == pytest.approx(expected)


def test_knowing_rests_on_the_draws_at_which_every_choice_has_a_plan():
    """More than sixteen, four for each number of a cubic; none is worth less than nothing."""
    shares = np.linspace(0, 1, 20)[:, None]
    costs = np.stack([np.full(20, 1.0), np.full(20, 2.0)], axis=1)
    costs[:3, 1] = np.nan
    found = value_of_information(costs, shares, ("a", "b"), ("x",))
    assert (found.draws, found.best, found.mean) == (17, "a", 1.0)
    assert (found.all, found.alone["x"]) == (0.0, pytest.approx(0, abs=1e-12))
    costs[3, 0] = np.nan
    assert value_of_information(costs, shares, ("a", "b"), ("x",)) is None


def test_choices_are_counted_by_how_often_they_are_best():
    """Of all draws, the most frequent first, those of one frequency by name."""
    found = rank_choices_by_frequency(("b", "a", None, "c", "b", "a", None, "c", "b", "d"), 3)
    assert found == [("b", 0.3), ("a", 0.2), ("c", 0.2)]


@dataclass(frozen=True)
class Pretended(Draws):
    """Outputs of choices that are functions of the shares; the best of all where none is set."""

    outputs: Mapping[str, Callable[[np.ndarray], np.ndarray]] = field(default_factory=dict)
    rises: bool = False

    def at(self, shares: np.ndarray, sets: Sequence[str] = ()) -> SampleAnswers:
        every = np.stack([f(shares) * np.ones(len(shares)) for f in self.outputs.values()])
        costs = np.where(np.isnan(every), np.inf, -every if self.rises else every)
        here = list(self.outputs).index(sets[0]) if sets else costs.argmin(axis=0)
        names = np.array(list(self.outputs))[here * np.ones(len(shares), dtype=int)]
        values = every[here, np.arange(len(shares))]
        choices = tuple(
            None if math.isnan(v) else x for x, v in zip(names.tolist(), values, strict=True)
        )
        return SampleAnswers(values, choices, {name: (name,) for name in self.outputs}, "pretended")


def pretended(outputs, rises=False) -> Pretended:
    """Of two givens."""
    rows = [Marginal(path, "uniform", (0.0, 1.0)) for path in ("x", "y")]
    return Pretended(Path(), Path(), rows, "z", 1, False, outputs, rises)


def test_knowing_is_worth_the_same_of_what_should_rise():
    """One is 0.5, one the cube of x, so a quarter: E max = 0.5 u + (1 - u^4)/4 at u^3 = 0.5."""
    outputs = {"certain": lambda s: 0.5, "open": lambda s: s[:, 0] ** 3}
    u = 0.5 ** (1 / 3)
    worth = 0.5 * u + (1 - u**4) / 4 - 0.5
    for rises, name, mean in ((True, "certain", 0.5), (False, "open", 0.25)):
        found = _by_sobol(pretended(outputs, rises), 256, 1, rises=rises)["knowing"]
        assert (found.best, found.draws) == (name, 512)
        assert found.mean == pytest.approx(mean, abs=0.01)
        assert found.all == pytest.approx(worth, abs=0.005)
        assert found.alone["x"] == pytest.approx(worth, abs=0.005)
        assert found.alone["y"] == pytest.approx(0, abs=0.002)


def test_a_study_counts_the_two_samples_that_are_drawn_apart():
    """Not those that mix them: distribution, choices, draws without a plan."""
    outputs = {
        "low": lambda s: np.where(s[:, 0] < 0.25, np.nan, s[:, 0]),
        "high": lambda s: np.where(s[:, 1] < 0.5, np.nan, 1.3 - s[:, 1]),
    }
    draws = pretended(outputs)
    found = _by_sobol(draws, 64, 5, rises=False)
    shares = sobol_design(64, 2, 5)[:128]
    answers = draws.at(shares)
    finite = answers.values[~np.isnan(answers.values)].tolist()
    assert found["draws"] == 64 * 4
    assert found["without_plan"] == pytest.approx(1 - len(finite) / 128)
    assert 0 < found["without_plan"] < 0.2
    assert found["choices"] == [
        {"choice": name, "best": answers.choices.count(name) / 128} for name in ("low", "high")
    ]
    spread = found["distribution"]
    assert spread["mean"] == pytest.approx(statistics.mean(finite))
    assert spread["deviation"] == pytest.approx(statistics.stdev(finite))
    twenty = statistics.quantiles(finite, n=20, method="inclusive")
    assert spread["quantiles"] == {
        "0.05": pytest.approx(twenty[0]), "0.25": pytest.approx(twenty[4]),
        "0.5": pytest.approx(twenty[9]), "0.75": pytest.approx(twenty[14]),
        "0.95": pytest.approx(twenty[18]),
    }  # fmt: skip
    edges, shares = spread["histogram"]["edges"], spread["histogram"]["shares"]
    assert edges == pytest.approx(np.linspace(min(finite), max(finite), 41))
    assert sum(shares) == pytest.approx(1)
    assert shares[0] == sum(x < edges[1] for x in finite) / len(finite)
    assert list(found["sobol"]) == ["x", "y"]
    assert found["sobol"]["x"] == sobol(draws.at(sobol_design(64, 2, 5)).values, 2, 5)[0]


def test_one_plan_alone_has_a_distribution_without_a_deviation():
    """And too few draws for indices; none at all is no answer."""
    draws = pretended({"rare": lambda s: np.where(np.arange(len(s)) == 1, 7.0, np.nan)})
    found = _by_sobol(draws, 2, 0, rises=False)
    assert found["distribution"]["deviation"] == 0.0
    assert found["distribution"]["mean"] == 7.0
    assert found["sobol"] is None
    assert found["without_plan"] == 0.75
    nothing = pretended({"none": lambda s: np.nan})
    with pytest.raises(Infeasible, match="no draw has a plan that keeps the promises"):
        _by_sobol(nothing, 2, 0, rises=False)
    with pytest.raises(Infeasible, match="no draw has a plan that keeps the promises"):
        _by_morris(nothing, 2, 0, None)
    rare = _by_morris(
        pretended({"x": lambda s: np.where(s[:, 0] < 0.5, s[:, 0], np.nan)}), 9, 0, None
    )
    assert rare["method"] == "pretended"
    assert _by_morris(pretended({"x": lambda s: s[:, 0]}), 2, 0, "before")["method"] == "before"


def test_eight_choices_are_shown_and_five_frequent_ones_compared():
    """Of ten, each the best where it is said to be; one below two percent is left out."""
    names = "abcdefghij"
    many = {
        name: partial(lambda i, s: np.abs(s[:, 0] * 10 - i - 0.5), i)
        for i, name in enumerate(names)
    }
    draws = pretended(many)
    found = _by_sobol(draws, 32, 0, rises=False)
    assert len(found["choices"]) == 8
    assert found["knowing"].compared == [row["choice"] for row in found["choices"][:5]]
    answers, shares = draws.at(np.full((50, 2), 0.5)), np.random.default_rng(0).random((50, 2))
    rare = [("a", 0.9), ("b", 0.02), ("c", 0.019)]
    assert _value_of_knowing(draws, answers, shares, rare, 1.0).compared == ["a", "b"]
    one = _value_of_knowing(draws, answers, shares, rare[:1], 1.0)
    assert one == ValueOfInformation(0.0, "a", None, 50, ["a"], {"x": 0.0, "y": 0.0})
    assert _value_of_knowing(draws, answers, shares, [("a", 0.01)], 1.0).best is None
    unset = replace(answers, sets={**answers.sets, "b": ()})
    assert _value_of_knowing(draws, unset, shares, rare, 1.0) is None


def test_a_study_of_a_kind_is_that_of_its_prices(monkeypatch):
    """The toy's price is proportional to its rent, so that all of the variance is the rent's."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")
    asked = {"problem": "toy", "uncertain": {"rent": {"uniform": ["$2/hour", "$4/hour"]},
                                             "work": {"uniform": [140e9, 140.001e9]}}}  # fmt: skip
    document = run_global_sensitivity(asked, sobol=2, morris=3, seed=6).document
    price = planner.solve({"problem": "toy", "rent": "$1/hour"}).cost
    assert (document["of"], document["unit"], document["seed"]) == (
        "price",
        "USD per million tokens",
        6,
    )
    rents = 2 + 2 * sobol_design(2, 2, 6)[:4, 0]
    assert document["distribution"]["mean"] == pytest.approx(price * rents.mean(), rel=1e-4)
    assert document["draws"] == 8
    assert document["method"] == "solved again at each draw"
    assert document["morris"]["rent"]["mean"] == pytest.approx(2 * price, rel=1e-4)
    assert document["knowing"]["compared"] == ["small"]
    faster = run_global_sensitivity(asked, "tpot", ["promise=50 ms"], morris=2).document
    assert (faster["of"], faster["sobol"], faster["draws"]) == ("tpot", None, None)
    assert run_global_sensitivity(asked, sobol=2).document["seed"] == 0


def test_a_bar_is_shown_only_where_it_is_asked_for(monkeypatch):
    """The same answers with and without one."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")
    bars = []

    @contextmanager
    def bar(total, done, *, shown):
        bars.append(shown)
        yield lambda count: None

    monkeypatch.setattr(evaluate_samples, "progress", bar)
    asked = {"problem": "toy", "uncertain": {"rent": {"uniform": ["$2/hour", "$4/hour"]}}}
    plain, shown = (
        run_global_sensitivity(asked, morris=1),
        run_global_sensitivity(asked, morris=1, shown=True),
    )
    assert plain.document == shown.document
    assert bars == [False, True]
