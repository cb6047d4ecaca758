"""Global studies: indices against SALib's, distributions by their formulas, knowing by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import planner
from planner.protocol.parameter import folder_of
from planner.scenario import load, opened
from planner.uncertainty.evaluate_samples import Draws, Marginal, marginals_of
from planner.uncertainty.global_study import (
    Study,
    effects,
    explore,
    knowing,
    morris_design,
    sobol,
    sobol_design,
)

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
    tree, scenario = opened(source)
    return tree, folder_of(source), marginals_of(tree, folder_of(source), scenario)


def test_every_distribution_has_its_quantiles():
    """Ends, medians and, by their definitions, the share between the ends."""
    half = np.array([0.5])
    assert Marginal("x", "uniform", (2.0, 4.0)).at(half) == pytest.approx(3)
    assert Marginal("x", "log_uniform", (1.0, 100.0)).at(half) == pytest.approx(10)
    assert Marginal("x", "normal", (5.0, 1.0)).at(np.array([0.8413447])) == pytest.approx(6)
    nine = Marginal("x", "lognormal", (1.0, 100.0)).at(np.array([0.05, 0.5, 0.95]))
    assert nine == pytest.approx([1, 10, 100])
    likeliest = Marginal("x", "triangular", (0.0, 1.0, 3.0))
    shares = np.linspace(0, 1, 20001)
    assert likeliest.at(shares).mean() == pytest.approx(4 / 3, abs=1e-4)
    assert likeliest.at(np.array([1 / 3])) == pytest.approx(1)
    words = Marginal("x", "one_of", ("a", "b", "c")).at(np.array([0.0, 0.34, 0.99, 1.0]))
    assert words.tolist() == [0, 1, 2, 2]


def test_a_closed_form_and_the_solver_answer_alike():
    """The same draws as arrays, and each put into the scenario and solved."""
    tree, folder, marginals = drawn(HELD)
    shares = np.random.default_rng(1).random((6, len(marginals)))
    fast = Draws(tree, folder, marginals, "usd_per_mtok").at(shares)
    assert fast.method == "closed form"
    for i, share in enumerate(shares):
        values = [float(m.at(np.array([s]))[0]) for m, s in zip(marginals, share, strict=True)]
        sets = [f"{m.path}={v!r}" for m, v in zip(marginals, values, strict=True)]
        assert planner.solve(HELD, sets=sets).cost == pytest.approx(fast.values[i], rel=1e-9)


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
    ours = explore(HELD, sobol=1024).document["sobol"]
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
    found = knowing(costs, shares, ("certain", "open"), ("x", "y"))
    assert found.all == pytest.approx(1 / 8, abs=0.01)
    assert found.alone["x"] == pytest.approx(1 / 8, abs=0.01)
    assert found.alone["y"] == pytest.approx(0, abs=0.005)


@pytest.mark.slow
def test_a_study_of_plans_that_are_chosen_tells_all():
    """Shares of the draws add up; what knowing is worth is not negative."""
    few = {name: FREE["uncertain"][name] for name in ("price", "workload.input_tokens")}
    asked = {**FREE, "chips": 8, "promises": {"tpot": "12 ms"}, "uncertain": few}
    study = explore(asked, sobol=16, morris=2)
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
    first, again = (explore(HELD, sobol=16, seed=4).document for _ in range(2))
    assert first == again
    other = explore(HELD, sobol=16, seed=5).document
    assert other["distribution"] != first["distribution"]


def test_prices_of_the_catalogue_are_a_range():
    """Between the least and the most that is listed for the chip."""
    scenario = {**HELD, "uncertain": {"price": "catalogue"}}
    (marginal,) = drawn(scenario)[2]
    system = load(HELD).systems()[0]
    from planner.catalogue.listed_prices import default_price

    listed = default_price(system.chip.name)
    assert marginal.ends == (listed.low, listed.high)
    assert marginal.kind == "log_uniform"


def test_the_interval_of_a_coefficient_is_a_range():
    """Eight of ten draws lie in what refits of the profile hold, at the plan's own place."""
    from planner.problems.serving.task.resolve import resolve

    scenario = {**HELD, "uncertain": {"profile": {"t_layer": "catalogue"}}}
    (marginal,) = drawn(scenario)[2]
    profile = resolve(load(HELD)).tasks[0].profile
    assert marginal.ends == profile.intervals["t_layer"]
    assert marginal.unit == "s"
    assert profile.name in marginal.source
    assert marginal.at(np.array([0.1, 0.9])) == pytest.approx(marginal.ends)


def test_a_coefficient_that_is_drawn_is_that_of_a_profile_of_ones_own(tmp_path):
    """The answer with a draw is the answer of a file that has the drawn value."""
    scenario = {**HELD, "profile": "palm-2022", "workload": {"input_tokens": 2000,
                "output_tokens": 500}, "uncertain": {"profile.t_step": "catalogue"}}  # fmt: skip
    tree, folder, marginals = drawn(scenario)
    share = np.array([[0.9]])
    found = Draws(tree, folder, marginals, "usd_per_mtok").at(share)
    value = float(marginals[0].at(share[:, 0])[0])
    from dataclasses import replace

    from planner.problems.serving.task.resolve import resolve
    from planner.protocol.problem import search

    task = resolve(load(scenario)).tasks[0]
    assert value == pytest.approx(task.profile.intervals["t_step"][1])
    changed = replace(
        task, profile=replace(task.profile, values={**task.profile.values, "t_step": value})
    )
    from tests.cases.serving import one_pool

    again = min(point.candidate.usd_per_mtok for point in one_pool(changed).points())
    assert found.values[0] == pytest.approx(again, rel=1e-12)
    assert found.values[0] != pytest.approx(
        search(load(scenario)).outputs["usd_per_mtok"], rel=1e-6
    )


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
    study = explore(scenario, sobol=8)
    assert study.document["distribution"]["deviation"] > 0
    assert "published training runs" in " ".join(str(study).split())
    assert "without regard to the others" in str(study)


def test_the_bound_has_no_profile_that_could_be_uncertain():
    """Said, not answered with a spread of nothing."""
    asked = {**HELD, "estimate": "bound", "uncertain": {"profile.t_step": "catalogue"}}
    with pytest.raises(planner.InputError, match="the bound knows no profile"):
        explore(asked, sobol=4)


@pytest.mark.parametrize(
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
        explore({**HELD, "uncertain": uncertain}, sobol=4)


@pytest.mark.slow
def test_processes_find_what_one_finds():
    """Plans of a serving scenario come back from other processes with their numbers."""
    few = {name: FREE["uncertain"][name] for name in ("price", "workload.input_tokens")}
    asked = {**FREE, "uncertain": few}
    several, alone = (explore(asked, sobol=4, workers=n).document for n in (2, 1))
    assert several["distribution"] == alone["distribution"]
    assert several["sobol"] == alone["sobol"]


def test_counts_of_draws_are_checked():
    """A power of two, and not more than anybody waits for."""
    with pytest.raises(planner.InputError, match="power of two"):
        explore(HELD, sobol=17)
    with pytest.raises(planner.InputError, match="--sobol 1099511627776: expected 1 to"):
        explore(HELD, sobol=1 << 40)
    with pytest.raises(planner.InputError, match="--morris 0: expected 1 to"):
        explore(HELD, morris=0)
    with pytest.raises(planner.InputError, match="uncertain: is missing"):
        explore({key: value for key, value in HELD.items() if key != "uncertain"}, sobol=4)


def test_an_uncertain_scenario_is_resolved_and_read_again():
    """What was read is what is written."""
    from planner.scenario import resolved

    scenario = load(FREE)
    assert load(resolved(scenario)) == scenario
    assert math.isclose(planner.solve(FREE).cost, planner.solve({**FREE, "uncertain": None}).cost)
