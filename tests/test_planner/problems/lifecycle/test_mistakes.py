"""What a lifecycle cannot answer is refused in a sentence, with the place in the file."""

import math

import pytest

import planner
from planner.problems.lifecycle.elasticities import lifecycle_elasticities
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.optimal_size import fixed_layout_optimum, optimal_size
from planner.scenario import load
from planner.text.errors import InputError
from tests.cases.lifecycle import scenario
from tests.loops import for_all


def serving(**changes):
    """The scenario with its serving part changed."""
    return scenario(serving=scenario()["serving"] | changes)


@for_all(
    ("given", "told"),
    [
        (scenario(law=["besiroglu-2024", "kaplan-2020"]), "law: expected one law"),
        (scenario(inference={}), "inference: give tokens, or rate and lifetime"),
        (scenario(inference={"tokens": -1}), "inference.tokens: "),
        (scenario(phases={}), "phases.pretrain: missing required key"),
        (scenario(phases={"pretrain": {}}), "phases.pretrain: give system"),
        (
            scenario(phases={"pretrain": {"system": "hgx-h100", "mfu": 1.2}}),
            "phases.pretrain.mfu: expected at most 1",
        ),
        (scenario(rl={"tokens": 1e12}), "phases: give rl: {system, mfu}"),
        (scenario(family={"like": "lama-3.1-70b"}), "did you mean 'llama-3.1-70b'"),
        (scenario(family={"attention": "mha"}), "family.attention: expected one of gqa, mla"),
        (
            scenario(choose={"smallest": 5e9, "largest": 4e9}),
            "choose.largest: expected more than smallest",
        ),
        (scenario(choose={"sparsity": [1, 8]}), "choose.sparsity: besiroglu-2024: "),
        (
            scenario(law="llama-3-2024"),
            "law: llama-3-2024: it says how to split a given arithmetic",
        ),
        (
            scenario(phases={"pretrain": {"system": "hgx-h100", "dtype": "fp4"}}),
            "phases.pretrain.dtype: the chip h100 has no fp4",
        ),
        (
            scenario(phases={"pretrain": {"system": "mi300x-8", "price": "$2/hour"}}),
            "phases.pretrain.mfu: no published training run",
        ),
        (
            scenario(phases={"pretrain": {"system": "hgx-h20", "mfu": 0.4}}),
            "phases.pretrain.price: no verified on-demand price",
        ),
        (scenario(extrapolate=False), "law: besiroglu-2024 was fitted on"),
        (serving(utilisation=0), "serving.utilisation: expected a value above zero"),
        (serving(choose={"mode": "decode"}), "serving.choose: mode: decode is one phase alone"),
        (serving(choose={"tp": 7}), "serving.choose.tp: no layout"),
        (
            serving(workload={"input_tokens": 1, "output_tokens": 9, "demand": "5 requests/s"}),
            "serving.workload: leave demand out",
        ),
        (serving(promises={"tpott": "50 ms"}), "did you mean 'tpot'"),
        (serving(profile="nobody"), "serving.profile: "),
    ],
)
def test_a_mistake_is_a_sentence_at_its_place(given, told):
    """Every refusal names its path and says what was expected."""
    with pytest.raises(InputError) as caught:
        planner.solve(given)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("given", "promise", "told"),
    [
        (scenario(quality={"loss": 1.5}), "loss", "no size and no data removes"),
        (scenario(choose={"largest": 4e9}), "loss", "no model of at most 4e+09 active parameters"),
        (
            serving(promises={"tpot": "1 us"}),
            "serving",
            "no unit of these chips keeps the promises",
        ),
        (scenario(data={"unique": 1e9}), "loss", ""),
    ],
)
def test_a_question_without_answer_says_what_falls_short(given, promise, told):
    """The document is whole, its plan null, and the reason stands in it."""
    plan = planner.solve(given)
    assert plan.status == "infeasible"
    assert plan.document["plan"] is None
    (short,) = plan.infeasible
    assert short.promise == promise
    assert told in short.expression
    assert str(plan).startswith(f"✗ NO PLAN: {promise} missed")


def test_limits_on_the_size_hold_it():
    """A model that may not be small is as small as it may be."""
    plan = planner.solve(scenario(choose={"smallest": 25e9}, draws=0))
    assert plan.chosen["n_active"] == pytest.approx(25e9, rel=0.03)


def test_a_limit_on_the_size_has_its_price():
    """d ln(cost) / d ln(smallest), against the optimum at a limit a little further."""
    near, far = (
        optimal_size(resolve_life(load(scenario(choose={"smallest": n}))), 1.0)
        for n in (25e9, 25.05e9)
    )
    moved = fixed_layout_optimum(far.life, far.answer.task, near.served, 1.0).answer
    measured = math.log(moved.total / near.answer.total) / math.log(25.05 / 25)
    assert lifecycle_elasticities(near)["choose.smallest"] == pytest.approx(measured, rel=0.01)


@pytest.mark.slow
def test_data_that_runs_out_ends_the_training():
    """With fewer unique tokens the model is larger and every token is used about once."""
    plan = planner.solve(scenario(data={"unique": 1e12}, draws=0))
    free = planner.solve(scenario(draws=0))
    assert plan.chosen["tokens"]["pretrain"] <= 1e12 < free.chosen["tokens"]["pretrain"]
    assert plan.chosen["n_active"] > free.chosen["n_active"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            scenario(family={"like": "deepseek-v3"}, choose={"sparsity": [1, 8]}),
            "choose: leave sparsity out: models like deepseek-v3 have their own",
        ),
        (
            scenario(family={"like": "llama-3.1-70b", "attention": "mla"}),
            "family.like: leave attention out: models like llama-3.1-70b have their own",
        ),
        (scenario(draws=1_000_000), "draws: expected at most 20,000, got 1000000"),
        (
            scenario(law="abnar-2025", choose={"sparsity": [60]}),
            "choose.sparsity: abnar-2025 was fitted on 1–50 total for each active parameter",
        ),
    ],
)
def test_what_would_be_ignored_is_refused(given, told):
    """A choice that a family makes itself, and sparsities that the law was not fitted on."""
    with pytest.raises(InputError) as caught:
        planner.solve(given)
    assert told in str(caught.value)


@pytest.mark.slow
def test_a_sparsity_beyond_the_law_is_left_out_and_told():
    """The others are answered; with `extrapolate: true` it is tried too."""
    law = "besiroglu-2024 + clark-2022-s-base"
    asked = scenario(law=law, choose={"sparsity": [4, 200]}, draws=0)
    plan = planner.solve(asked)
    assert plan.chosen["sparsity"] == pytest.approx(4, rel=0.01)
    assert any("200 is 1.25× the largest; left out" in each for each in plan.warnings)
    tried = resolve_life(load(asked | {"extrapolate": True}))
    assert tried.sparsities == (4.0, 200.0)
