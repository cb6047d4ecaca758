"""The scenario of a token budget: what is read, and every mistake at its place."""

from __future__ import annotations

import json
import math

import pytest
from scipy.integrate import quad

from planner.problems.budget.question import BudgetScenario
from planner.problems.budget.resolve import resolve_budget
from planner.scenario import json_schema, load, resolve_keys
from planner.scenario.kinds import starter
from planner.text.errors import FieldError, InputError
from planner.token_costs.phase_costs import served_tokens
from planner.token_costs.phase_keys import YEAR, Inference
from tests.loops import for_all

PLAIN = {"problem": "budget", "quality": {"like": {"n_active": "13B"}}}


def given(**changes):
    return {**PLAIN, **changes}


def refused(source) -> str:
    with pytest.raises(InputError) as error:
        load(source)
    return str(error.value)


def test_counts_are_read_as_people_write_them():
    """13B, 2 T tokens and 2e12 are counts; $5M and 1e24 FLOP are limits in two currencies."""
    scenario = load(given(inference={"tokens": "2 T tokens"}, data={"unique": "500B"}))
    assert isinstance(scenario, BudgetScenario)
    assert scenario.quality.like.n_active == 13e9
    assert scenario.inference.tokens == 2e12
    assert scenario.data.unique == 5e11
    phases = {"pretrain": {"system": "hgx-h100", "mfu": "40%"}}
    for text, value, per in (("$5M", 5e6, "USD"), ("1e24 FLOP", 1e24, "FLOP"), (1e24, 1e24, None)):
        limit = load({"problem": "budget", "cost": text, "phases": phases}).cost
        assert (limit.value, limit.per) == (value, per)


def test_defaults_are_those_of_the_page():
    """Besiroglu, FLOP, k of 3, dense, nothing served."""
    scenario = load(PLAIN)
    assert (scenario.law, scenario.objective, scenario.rl.k) == ("besiroglu-2024", "flop", 3.0)
    assert scenario.choose.sparsity == (1.0,)
    assert scenario.used == ("pretrain",)
    assert load(given(rl=None, phases=None, choose=None, data=None, inference=None)) == scenario


CASES = {
    "plain": PLAIN,
    "curve": given(inference={"rate": 1e6, "lifetime": "forever", "discount": 0.1, "growth": 0.05}),
    "phases": given(phases={"pretrain": {"system": ["hgx-h100", {"like": "hgx-h200",
                                                                 "flops": {"bf16": "1 PFLOP/s"}}],
                                         "mfu": 0.4, "price": "$2/hour"}}),
    "limit": {"problem": "budget", "cost": "1e24 FLOP"},
    "laws": given(law=["besiroglu-2024", "besiroglu-2024 + clark-2022-s-base"]),
    "reward": given(rl={"k": 4, "reward": {"needed": 0.5, "start": 0.2, "middle": "1e21 FLOP",
                                           "steepness": 1.5}}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_resolved_scenario_loads_again_to_an_equal_one(name):
    """And it is JSON: no infinity, no objects."""
    scenario = load(CASES[name])
    plain = resolve_keys(scenario)
    assert load(json.loads(json.dumps(plain, allow_nan=False))) == scenario


def test_every_mistake_is_told_at_once_with_its_place(tmp_path):
    """One line each, with line and column, and the word that was meant."""
    file = tmp_path / "b.yaml"
    file.write_text(
        "problem: budget\n"
        "law: besirolu-2024\n"
        "quality: {loss: 2, like: {n_activ: 13e9}}\n"
        "inference: {rate: -5 tokens/s, growth: 0.1, lifetime: forever}\n"
        "rl: {k: 7}\n"
        "data: {unique: 0}\n"
        "choose: {sparsity: [1, 0.5]}\n"
        "phases:\n"
        "  pretrain: {mfu: 1.2}\n"
        "objective: usd\n",
        encoding="utf-8",
    )
    lines = [line.removeprefix(f"{file}:") for line in refused(file).splitlines()]
    expected = [
        "2:6  law: unknown law 'besirolu-2024'; did you mean 'besiroglu-2024'?",
        "3:20  quality.like.n_active: give either n_active or model",
        "3:27  quality.like.n_activ: unknown key 'n_activ'; did you mean 'n_active'?",
        '4:19  inference.rate: expected a token rate such as "5000 tokens/s", got "-5 tokens/s"',
        "5:9  rl.k: expected at most 6, got 7",
        "6:16  data.unique: expected a value above zero",
        "7:24  choose.sparsity.1: expected N_total/N_active, 1 (dense) or more, got 0.5",
        "9:19  phases.pretrain.mfu: expected at most 1, got 1.2",
        "10:12  objective: expected one of flop, cost, got 'usd'",
    ]
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


MISTAKES = {
    "neither": ({"problem": "budget"}, "cost: give quality"),
    "both": (given(cost="1e24 FLOP"), "cost: give quality (the least cost is sought) or cost"),
    "loss and like": (given(quality={"loss": 2, "like": {"n_active": 1e9}}), "give like or loss"),
    "no quality": (given(quality={}), "give like or loss, one of them"),
    "two models": (given(quality={"like": {"model": "llama-3.1-8b", "n_active": 8e9}}),
                   "give either n_active or model"),
    "unknown model": (given(quality={"like": {"model": "lama-3.1-8b"}}),
                      "did you mean 'llama-3.1-8b'?"),
    "a cost in seconds": ({"problem": "budget", "cost": "3 s"}, 'such as "1e24 FLOP" or "$5M"'),
    "tokens and rate": (given(inference={"tokens": 1, "rate": 1, "lifetime": "1 s"}), "not both"),
    "no lifetime": (given(inference={"rate": 1e6}), "give lifetime too"),
    "no rate": (given(inference={"lifetime": "1 year"}), "give rate too"),
    "growth of nothing": (given(inference={"tokens": 1e12, "growth": 1}), "give rate and lifetime"),
    "no finite sum": (given(inference={"rate": 1e6, "lifetime": "forever", "growth": 0.2,
                                       "discount": 0.1}), "has no finite sum"),
    "neither grows nor falls": (given(inference={"rate": 1e6, "lifetime": "forever"}),
                                "has no finite sum"),
    "too much growth": (given(inference={"rate": 1e6, "lifetime": "1000 years", "growth": 10}),
                        "no sum that is a number of tokens"),
    "shrinks below nothing": (given(inference={"rate": 1, "lifetime": 1, "growth": -2}),
                              "more than -100 %"),
    "a bad growth": (given(inference={"rate": 1, "lifetime": 1, "growth": "fast"}), "5 %/month"),
    "a vast growth": (
        given(inference={"rate": 1, "lifetime": 1, "growth": "1e30 %/month"}),
        "got '1e30 %/month', which is not finite",
    ),
    "a file that is no law": (given(law=__file__), "expected a file that ends in one of .json"),
    "surely obsolete": (given(inference={"tokens": 1, "obsolescence": 1}), "less than 1"),
    "negative demand": (given(inference={"tokens": -1}), "which is negative"),
    "k too small": (given(rl={"k": 1}), "at least 2"),
    "tokens and reward": (given(rl={"tokens": 1e9, "reward": {
        "needed": 0.5, "start": 0.1, "middle": 1e20, "steepness": 1}}), "give tokens or reward"),
    "nothing to learn": (given(rl={"reward": {
        "needed": 0.5, "start": 0.6, "middle": 1e20, "steepness": 1}}),
        "the start meets it already"),
    "a price of nothing": (given(phases={"pretrain": {"price": "$2/hour"}}), "give the system"),
    "no such arithmetic": (given(phases={"pretrain": {"system": "hgx-a100", "dtype": "fp8"}}),
                           "has no fp8 arithmetic"),
    "dollars without chips": (given(objective="cost", inference={"tokens": 1e12}),
                              "needs phases.pretrain.system, phases.pretrain.mfu, phases.inf"),
    "a limit without chips": ({"problem": "budget", "cost": "$5M"}, "needs phases.pretrain.system"),
    "half of the utilisations": (given(inference={"tokens": 1}, phases={"pretrain": {"mfu": 0.4}}),
                                 "give phases.inference.mfu too"),
    "a family of laws": (given(law="clark-2022"), "several laws are called 'clark-2022': clark-20"),
    "the model of a law": (given(law="chinchilla"), "besiroglu-2024 (the default, which corrects"),
    "no laws": (given(law=[]), "expected 1 to 200 laws"),
    "a law in a law": (given(law=3), "expected a law such as besiroglu-2024"),
    "an unknown routing": (given(law="besiroglu-2024 + clark-2022-s-bas"), "did you mean"),
    "no draws": (given(draws=-1), "at least 0"),
}  # fmt: skip


@for_all("name", MISTAKES)
def test_a_mistake_is_a_sentence(name):
    """What is wrong and what was expected, for each."""
    source, told = MISTAKES[name]
    assert told in refused(source)


ASKED_IN_VAIN = {
    "no loss": (given(law="llama-3-2024"), "law", "gives no loss"),
    "a reward": (given(law="scalerl-2025"), "law", "no loss"),
    "a ceiling": (given(rl={"reward": {"needed": 0.7, "start": 0.1, "middle": 1e20,
                                       "steepness": 1}}), "rl.reward", "never reaches"),
    "sparsity": (given(choose={"sparsity": [8]}), "choose.sparsity", "nothing is left to try"),
    "no price": (given(objective="cost", phases={"pretrain": {"system": "vera-rubin-nvl72",
                                                              "mfu": 0.4}}),
                 "phases.pretrain.system", "no verified on-demand price"),
    "two terms": (given(law={"form": "reinforced", "coefficients": {
        "loss_min": 1.8, "A_N": 482, "B_D": 2085, "alpha_N": 0.35, "beta_D": 0.37, "B_rl": 5,
        "beta_rl": 0.2}}, rl={"loss": {"coefficient": 1, "exponent": 0.1}}),
        "rl.loss", "has a term in tokens of reinforcement learning"),
    "a term in a power": (given(law="kaplan-2020",
                                rl={"loss": {"coefficient": 1, "exponent": 0.1}}),
                          "rl.loss", "no sum of terms"),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED_IN_VAIN)
def test_what_a_law_or_a_catalogue_cannot_answer_is_told_at_its_key(name):
    """Sound values that cannot be answered together."""
    source, path, told = ASKED_IN_VAIN[name]
    with pytest.raises(FieldError) as error:
        resolve_budget(load(source))
    assert [each for each, _ in error.value.faults] == [path]
    assert told in str(error.value)


CURVES = {
    "steady": {"rate": 5e7, "lifetime": "60 days"},
    "growing": {"rate": 1e6, "lifetime": "3 years", "growth": 0.8},
    "discounted": {"rate": 1e6, "lifetime": "3 years", "discount": 0.15},
    "both": {"rate": 1e6, "lifetime": "3 years", "growth": 0.5, "discount": 0.15},
    "cancelling": {"rate": 1e6, "lifetime": "3 years", "growth": 0.15, "discount": 0.15},
    "nearly cancelling": {"rate": 1e6, "lifetime": "1 year", "growth": 0.15, "discount": 0.1500001},
    "fading": {"rate": 1e6, "lifetime": "forever", "growth": -0.5},
}


@pytest.mark.parametrize("name", CURVES)
def test_a_demand_over_a_life_is_the_integral_of_its_rate(name):
    """Growth and discount compound per year; the sum is that of numerical integration."""
    demand = Inference(**CURVES[name])
    growth, discount = CURVES[name].get("growth", 0.0), CURVES[name].get("discount", 0.0)

    def rate(years: float, change: float) -> float:
        return demand.rate * YEAR * change**years

    years = min(demand.lifetime / YEAR, 80.0)
    counted, _ = quad(rate, 0, years, args=((1 + growth) / (1 + discount),))
    total, _ = quad(rate, 0, years, args=(1 + growth,))
    served = served_tokens(demand)
    assert served.counted == pytest.approx(counted, rel=1e-6)
    assert served.tokens == pytest.approx(total, rel=1e-6)


def test_a_chance_of_obsolescence_takes_its_share_of_the_tokens():
    """Half of the models serve: half of the tokens count, all of them are planned for."""
    served = served_tokens(Inference(tokens=2e12, obsolescence=0.5))
    assert (served.counted, served.tokens) == (1e12, 2e12)


def test_the_lectures_frontier_case_serves_259_trillion_tokens():
    """50 million tokens a second for two months, not 200 trillion."""
    demand = Inference(rate="50e6 tokens/s", lifetime="60 days")
    assert served_tokens(demand).tokens == pytest.approx(2.592e14)


def test_growth_per_month_is_compounded():
    """5 % a month is 1.05**12 a year; a bare number is per year."""
    assert Inference(rate=1, lifetime="1 s", growth="5 %/month").growth == pytest.approx(
        1.05**12 - 1
    )
    assert Inference(rate=1, lifetime="1 s", growth=0.5).growth == 0.5
    assert math.isinf(Inference(rate=1, lifetime="forever", discount=0.1).lifetime)


def test_changes_from_the_command_line_reach_the_phases():
    """--set opens a system that was given by name."""
    sets = ["phases.pretrain.system.price=$2/hour", "inference.tokens=3e12", "law=sardana-2024"]
    phases = {"pretrain": {"system": "hgx-h100", "mfu": 0.4},
              "inference": {"system": "hgx-h100", "mfu": 0.2}}  # fmt: skip
    scenario = load(given(phases=phases), sets)
    assert scenario.phases.pretrain.system.price == pytest.approx(2 / 3600)
    assert scenario.inference.tokens == 3e12
    assert scenario.law == "sardana-2024"


def test_the_schema_knows_budgets():
    """The shape of a budget stands beside that of serving, with its words and units."""
    schema = json_schema()
    assert {"$ref": "#/$defs/BudgetScenario"} in schema["oneOf"]
    shape = schema["$defs"]["BudgetScenario"]
    assert set(shape["properties"]) == {*BudgetScenario.model_fields, "units"}
    assert shape["properties"]["problem"]["const"] == "budget"
    assert shape["properties"]["objective"]["enum"] == ["flop", "cost"]
    assert set(schema["$defs"]["Like"]["properties"]) == {"model", "n_active", "tokens", "sparsity"}
    json.dumps(schema)


def test_the_starter_loads_and_the_schema_takes_it(tmp_path):
    """What `planner init budget` writes can be answered as it is."""
    file = tmp_path / "start.yaml"
    file.write_text(starter("budget"), encoding="utf-8")
    scenario = load(file)
    assert scenario.quality.like.n_active == 13e9
    assert scenario.in_usd


def test_a_slip_in_the_name_of_a_family_names_its_laws():
    """And says that no law is called so."""
    document = {"problem": "budget", "law": "chinchila", "cost": "1e24 FLOP"}
    told = "unknown law 'chinchila'; several laws are called 'chinchilla': hoffmann-2022-appr"
    with pytest.raises(InputError, match=told):
        load(document)
