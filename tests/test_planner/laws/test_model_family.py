"""Members of a model family: sizes as asked, shapes as published, prices as the planner's own."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import planner
from planner.architecture import model_sizes
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.catalogue.systems import system
from planner.catalogue.training.training_runs import training_rates
from planner.laws.model_family import TIED_PARAMS, ModelFamily
from planner.problems.lifecycle.members import FamilyRule, Formats, ScaledModel
from planner.problems.lifecycle.question import Serving
from planner.problems.lifecycle.serving_cost import serving_question
from planner.text.errors import FieldError, ModelError
from planner.token_costs.phase_costs import best_phase, spending, symbol_values
from planner.token_costs.spending import PhaseTokens
from tests.loops import for_all

LOAD = {"input_tokens": 3000, "output_tokens": 600}
HOUR = 3600.0


def serving(**changes):
    """A serving part of a lifecycle on one server of H100."""
    given = {
        "system": "hgx-h100",
        "chips": [1, 2, 4, 8],
        "workload": LOAD,
        "promises": {"tpot": "50 ms", "ttft": "2 s"},
        "choose": {"weights": "fp8", "mode": "aggregated"},
    }
    return serving_question(Serving.model_validate(given | changes))


@for_all("attention", ["gqa", "mla"])
@for_all("sparsity", [1.0, 2.0, 8.0, 32.0])
def test_members_have_the_parameters_they_are_asked_for(attention, sparsity):
    """Active and total parameters are within a percent at every size."""
    for n in np.geomspace(6e8, 5e12, 25):
        made = model_sizes(ModelFamily(attention).member(float(n), sparsity))
        assert made.n_active["all"] == pytest.approx(n, rel=0.01)
        assert made.n_total == pytest.approx(n * sparsity, rel=0.01)


@pytest.mark.parametrize("ends", [(1e9, 0.999 * TIED_PARAMS), (TIED_PARAMS, 1e12)])
@pytest.mark.parametrize("sparsity", [1.0, 16.0])
def test_larger_members_are_nowhere_smaller(ends, sparsity):
    """Depth, width and cache never fall with the size, but where embedding and head part."""
    made = [model_sizes(ModelFamily().member(float(n), sparsity)) for n in np.geomspace(*ends, 60)]
    for name in ("n_layers", "hidden", "kv_bytes_per_token"):
        found = [getattr(each, name) for each in made]
        assert found == sorted(found)


@pytest.mark.parametrize(
    "name", ["llama-3.2-3b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"]
)
def test_dense_members_look_like_the_llama_of_their_size(name):
    """Layers, width and cache are within a fifth of the published model's."""
    known = model_sizes(models.load(name))
    made = model_sizes(ModelFamily().member(float(known.n_total)))
    for each in ("n_layers", "hidden", "kv_bytes_per_token", "n_q_heads"):
        assert getattr(made, each) == pytest.approx(getattr(known, each), rel=0.2)


def test_a_sparse_member_looks_like_deepseek_v3():
    """Layers, width, heads, experts and cache are within a tenth of the published model's."""
    known = model_sizes(models.load("deepseek-v3"))
    ratio = known.n_total / known.n_active["all"]
    made = model_sizes(ModelFamily("mla").member(float(known.n_active["all"]), ratio))
    for each in ("n_layers", "hidden", "kv_bytes_per_token", "n_q_heads", "n_experts"):
        assert getattr(made, each) == pytest.approx(getattr(known, each), rel=0.1)


@pytest.mark.parametrize(("n", "sparsity"), [(1e7, 1), (1e14, 1), (1e10, 1.2), (1e10, 1e4)])
def test_sizes_outside_the_rule_are_refused(n, sparsity):
    """Too small, too large, neither dense nor sparse, too sparse: a sentence each."""
    with pytest.raises(ModelError, match="family rule makes"):
        ModelFamily().member(n, sparsity)


def test_a_router_that_leaves_nothing_to_experts_is_refused():
    """The smallest models have no room for hundreds of experts."""
    with pytest.raises(ModelError, match="no sparse model so small"):
        ModelFamily("mla").member(3e8, 64.0)


@pytest.mark.parametrize(
    "family",
    [FamilyRule(ModelFamily()), FamilyRule(ModelFamily("mla")), ScaledModel("llama-3.1-70b")],
)
def test_a_member_moved_has_the_size_it_is_moved_to(family):
    """All parts add up to the new size, and ten percent further the rule's own member agrees."""
    member = family.member(30e9, 1.0, Formats("fp8"))
    moved, other = member.at(33e9), family.member(33e9, 1.0, Formats("fp8")).sizes
    assert sum(moved.params.values()) == pytest.approx(33e9, rel=1e-9)
    assert moved.kv_bytes_per_token == pytest.approx(other.kv_bytes_per_token, rel=0.03)
    assert moved.total_weight_bytes == pytest.approx(other.total_weight_bytes, rel=0.01)


def test_a_model_like_one_of_the_catalogue_costs_what_that_one_costs():
    """At its own size it is the published model, and the price is the serving planner's."""
    question = {
        "system": "hgx-h100",
        "chips": [4, 8],
        "promises": {"tpot": "50 ms"},
        "engine": "none",
    }  # as for every member that nobody published
    choose = {"weights": "fp8"}
    plan = planner.solve(
        {"problem": "serving", "model": "llama-3.1-70b", "workload": LOAD, "choose": choose}
        | question
    )
    family = ScaledModel("llama-3.1-70b")
    asked = serving(chips=[4, 8], promises={"tpot": "50 ms"}, choose=choose)
    served = asked.cheapest(family, float(family.published.n_total), 1.0)
    assert served.price * 1e6 == pytest.approx(plan.cost, rel=1e-12)


def test_a_model_like_a_sparse_one_keeps_its_sparsity():
    """Another ratio of total to active parameters is refused."""
    with pytest.raises(ModelError, match=r"models like deepseek-v3 have 17\.9"):
        ScaledModel("deepseek-v3").member(30e9, 4.0, Formats())


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
@pytest.mark.parametrize("n", [5e9, 20e9, 60e9])
def test_the_slope_of_the_price_is_its_finite_difference(mode, n):
    """d ln price / d ln N from the duals, against two more programs beside the member."""
    asked = serving(chips=[8], choose={"weights": "fp8", "mode": mode})
    served = asked.cheapest(FamilyRule(ModelFamily()), n, 1.0)
    here, step = served.member.n_active, 1e-4
    high, low = served.at(here * (1 + step)), served.at(here * (1 - step))
    measured = math.log(high / low) / (math.log1p(step) - math.log1p(-step))
    assert served.tangent(served.member.n_active)[1] == pytest.approx(measured, abs=1e-4)


def test_units_that_are_half_empty_cost_twice_as_much():
    """The price of a token is over the share of the time that is sold."""
    full = serving().cheapest(FamilyRule(ModelFamily()), 8e9, 1.0)
    half = serving(utilisation=0.5).cheapest(FamilyRule(ModelFamily()), 8e9, 1.0)
    assert half.price == pytest.approx(2 * full.price)
    assert half.tokens_per_s == pytest.approx(full.tokens_per_s / 2)


def test_what_no_unit_can_serve_has_no_price():
    """A model that does not fit on the chips of a unit."""
    assert serving(chips=1).cheapest(FamilyRule(ModelFamily()), 4e11, 1.0) is None


def test_limits_that_admit_no_layout_name_the_part_of_the_file():
    """The fault stands at serving.choose."""
    asked = serving(choose={"tp": 7, "mode": "aggregated"}, chips=8)
    with pytest.raises(FieldError) as caught:
        asked.cheapest(FamilyRule(ModelFamily()), 8e9, 1.0)
    assert caught.value.faults[0][0] == "serving.choose.tp"


def trained(name: str, dtype: str, mfu: float | None, price: float, *, sparse: bool = False):
    """Pre-training on a chip at a price per hour, at a given share of the peak or a published."""
    on = replace(system("hgx-h100"), chip=chip(name))
    phase = SimpleNamespace(mfu=mfu, dtype=dtype, systems=lambda: (on,), price=price / HOUR)
    return best_phase("pretrain", phase, 6.0, unpriced="phases.pretrain.price", sparse=sparse)


def test_deepseek_v3_takes_its_published_hours():
    """2.664 million hours of H800 for 14.8 trillion tokens."""
    phase = trained("h800", "fp8", None, 2.0, sparse=True)
    tokens = PhaseTokens(14.8e12, 0.0, 0.0)
    spent = spending(symbol_values({"pretrain": phase}, 37e9, tokens)).pretrain
    assert spent.chip_hours == pytest.approx(2.664e6, rel=1e-3)
    assert spent.usd == pytest.approx(5.328e6, rel=1e-3)
    assert phase.borrowed == "h100"


def test_a_given_share_of_the_peak_is_taken_as_it_is():
    """6 N D over the delivered arithmetic."""
    phase = trained("h100", "bf16", 0.4, 3.0)
    spent = spending(symbol_values({"pretrain": phase}, 7e9, PhaseTokens(1e12, 0.0, 0.0)))
    assert spent.total.flop == pytest.approx(4.2e22, rel=1e-15)
    peak = chip("h100").peak("bf16")
    assert spent.total.chip_hours == pytest.approx(4.2e22 / (0.4 * peak) / HOUR)


def test_a_chip_without_a_published_run_asks_for_an_mfu():
    """The refusal says what is known, and what to give."""
    with pytest.raises(FieldError, match=r"mi300x is known; give mfu"):
        trained("mi300x", "bf16", None, 1.0)
    with pytest.raises(FieldError, match="known are bf16 of dense models"):
        trained("a100", "bf16", None, 1.0, sparse=True)


def test_published_rates_are_shares_of_the_peak():
    """No run is faster than its chip."""
    for row in training_rates():
        assert 0.1 < row.mfu(chip(row.chip).peak(row.dtype)) < 0.7
