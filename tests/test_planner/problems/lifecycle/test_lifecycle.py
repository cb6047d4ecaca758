"""The whole life of a model agrees with serving, budgets, brute force and finite differences."""

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from ruamel.yaml import YAML

import planner
from planner.problems.lifecycle.elasticities import lifecycle_elasticities, overtraining_from_pools
from planner.problems.lifecycle.resolve import resolve_life, with_serving
from planner.problems.lifecycle.search.joint_program import joint_optimum
from planner.problems.lifecycle.search.optimal_size import fixed_layout_optimum, optimal_size
from planner.scenario import load, resolve_keys
from planner.scenario.kinds import starter
from planner.text.errors import InputError, SolverError
from planner.token_costs.budget_task import compute_optimal_tokens, stack_budgets
from planner.token_costs.optimum import solve_one
from planner.token_costs.phase_costs import PhaseCost
from planner.token_costs.stationary_points import stationary_points, training_curve
from tests.cases.lifecycle import scenario
from tests.cases.planned_training import written
from tests.loops import for_all

STEP = 1e-3


@pytest.fixture(scope="module")
def plan():
    """The answer to the scenario."""
    return planner.solve(scenario())


@pytest.fixture(scope="module")
def settled():
    """The optimum behind it."""
    return optimal_size(resolve_life(load(scenario())), 1.0)


@pytest.mark.slow
def test_it_carries_what_of_its_serving_no_row_covers(plan):
    """A model of its own was never measured: text, JSON and page say so, and strict refuses."""
    outside = {each.what: each.share for each in plan.outside}
    assert 0 < outside["model"] <= 1
    assert plan.document["outside"][0]["what"] in outside
    assert "outside the fit: " in str(plan)
    assert "outside the fit" in plan._repr_html_()
    with pytest.raises(InputError, match="outside the fit"):
        planner.solve(scenario(), strict=True)


@pytest.mark.slow
def test_serving_the_chosen_model_alone_costs_the_same(settled, tmp_path):
    """Written as a config.json and asked as a serving problem it has the same price and batch."""
    model = written(settled.served.member.sizes, tmp_path)
    asked = {**scenario()["serving"], "problem": "serving", "model": model}
    alone = planner.solve(asked)
    assert alone.cost == pytest.approx(settled.served.price * 1e6, rel=1e-12)
    assert alone.batch == settled.served.plan.batch


def test_a_use_of_the_second_solver_is_a_warning(settled, monkeypatch):
    """Where Clarabel gives up on the layout at the optimum, the life says who solved it."""

    def gives_up(*_):
        raise SolverError("gave up")

    size = settled.answer.n_active
    assert not settled.served.warnings_at(size)
    monkeypatch.setattr("planner.programs.geometric.solver.Program._optimum", gives_up)
    assert any("solved by SCS" in each for each in settled.served.warnings_at(size))


def test_training_the_chosen_model_alone_costs_the_same(plan):
    """A budget of that size without serving has the same tokens and the same cost."""
    alone = planner.solve(
        {
            "problem": "budget",
            "quality": {"like": {"n_active": 30e9}},
            "choose": {"n_active": plan.chosen["n_active"]},
            "phases": {
                "pretrain": {"system": "hgx-h100", "mfu": plan.chosen["chips"]["pretrain"]["mfu"]}
            },
            "objective": "cost",
            "draws": 0,
        }
    )
    tokens, cost = plan.chosen["tokens"]["pretrain"], plan.chosen["cost"]["pretrain"]["usd"]
    assert alone.chosen["tokens"]["pretrain"] == pytest.approx(tokens, rel=1e-6)
    assert alone.cost == pytest.approx(cost, rel=1e-6)


def test_a_price_in_proportion_to_the_size_is_a_budget(settled):
    """With a slope of one the program is that of a budget whose served FLOP has that price."""
    question, member = settled.answer.task, settled.served.member
    price = settled.served.price
    mine = stationary_points(
        with_serving(stack_budgets([question]), member.n_active, price, 1.0, question.served)
    )
    serving = PhaseCost("inference", 2.0, 1.0, price / (2 * member.n_active))
    other = solve_one(replace(question, phases={**question.phases, "inference": serving}))
    assert np.exp(mine.point[0]) == pytest.approx([other.n_active, other.pretrain], rel=1e-8)


def test_no_size_on_the_layout_is_cheaper(settled):
    """Brute force over sizes at the real price of the layout."""
    best = settled.answer
    sizes = best.n_active * np.geomspace(0.9, 1.1, 41)
    trained = training_curve(best.task, sizes).training
    total = trained + [settled.served.at(float(n)) * best.task.served for n in sizes]
    assert total.min() == pytest.approx(best.total, rel=1e-6)
    assert sizes[np.argmin(total)] == pytest.approx(best.n_active, rel=0.01)


def test_no_member_in_whole_numbers_is_much_cheaper(settled):
    """Brute force over forty members, each served by the planner's own search."""
    life, question = settled.life, settled.answer.task
    found = []
    for size in np.geomspace(0.6, 1.6, 40) * settled.whole.n_active:
        served = life.serving.cheapest(life.family, float(size), 1.0)
        trained = training_curve(question, [served.member.n_active]).training[0]
        found.append(trained + served.price * question.served)
    assert settled.whole.total <= min(found) * 1.005


def test_one_program_from_memory_to_tokens_has_the_same_optimum(settled):
    """Size, tokens and batch chosen together in one geometric program, duals included."""
    program, best = joint_optimum(settled), settled.answer
    assert program.n_active == pytest.approx(best.n_active, rel=1e-8)
    assert program.pretrain == pytest.approx(best.pretrain, rel=1e-8)
    assert program.cost == pytest.approx(best.total, rel=1e-9)
    assert program.lower_bound == pytest.approx(best.total, rel=1e-6)
    worth = lifecycle_elasticities(settled)
    for path, symbol in (
        ("serving.system.memory_bandwidth", "W_chip"),
        ("serving.price", "p_chip"),
        ("serving.promises.tpot", "tpot"),
        ("phases.pretrain.price", "u_pretrain"),
    ):
        assert program.elasticities[symbol] == pytest.approx(worth.get(path, 0.0), abs=1e-6)


@pytest.mark.slow
def test_two_pools_are_not_one_program():
    """Where prompts are read elsewhere the search stands alone, and says so."""
    given = scenario()["serving"] | {"choose": {"weights": "fp8", "mode": "disaggregated"}}
    plan = planner.solve(scenario(serving=given, draws=0))
    assert plan.document["certificate"]["program"] is None
    assert plan.document["certificate"]["differences"]["scipy"] < 1e-6


def test_over_training_is_what_the_pools_ask_for(settled):
    """D / D_opt(N) = ((C_pt + eps * C_inf) / C_pt)**(1 / beta), eps the slope of the price."""
    answer = settled.answer
    ratio = answer.pretrain / compute_optimal_tokens(answer.task.terms, answer.n_active)
    assert overtraining_from_pools(settled) == pytest.approx(ratio, rel=1e-7)


def resettled(settled, *, task=None, question=None):
    """The cost at the optimum of a changed question on the same layout."""
    served = settled.served if task is None else settled.served.changed(task)
    asked = question or settled.answer.task
    return fixed_layout_optimum(settled.life, asked, served, settled.sparsity).answer.total


def faster(name, factor):
    """A task whose chip has more of something."""

    def change(task):
        if name == "flops":
            flops = {unit: rate * factor for unit, rate in task.chip.flops.items()}
            return replace(task, chip=replace(task.chip, flops=MappingProxyType(flops)))
        if name == "price":
            return replace(task, price=task.price * factor)
        if name == "tpot":
            return replace(task, promises={**task.promises, "tpot": task.promises["tpot"] * factor})
        return replace(task, chip=replace(task.chip, **{name: getattr(task.chip, name) * factor}))

    return change


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("serving.system.memory_bandwidth", "memory_bandwidth"),
        ("serving.system.flops", "flops"),
        ("serving.price", "price"),
        ("serving.promises.tpot", "tpot"),
    ],
)
def test_elasticities_of_serving_are_finite_differences(settled, path, name):
    """The machine, its price and the promise, chained through both programs."""
    high, low = (resettled(settled, task=faster(name, 1 + s)) for s in (STEP, -STEP))
    measured = math.log(high / low) / (math.log1p(STEP) - math.log1p(-STEP))
    assert lifecycle_elasticities(settled).get(path, 0.0) == pytest.approx(measured, abs=1e-3)


def scaled(question, name, factor):
    """A question with one given changed."""
    if name == "inference.tokens":
        return replace(question, served=question.served * factor)
    if name.startswith("law."):
        symbol = name.removeprefix("law.")
        values = question.law.values
        law = replace(question.law, values={**values, symbol: values[symbol] * factor})
        return replace(question, law=law)
    if name == "quality.like.n_active":
        needed = question.required
        return replace(question, required=replace(needed, n_active=needed.n_active * factor))
    phase = question.phases["pretrain"]
    price = phase.usd_per_flop * (factor if name.endswith("price") else 1 / factor)
    return replace(question, phases={"pretrain": replace(phase, usd_per_flop=price)})


@for_all(
    "path",
    [
        "inference.tokens",
        "phases.pretrain.price",
        "phases.pretrain.mfu",
        "quality.like.n_active",
        "law.alpha_N",
        "law.beta_D",
        "law.A_N",
        "law.B_D",
    ],
)
def test_elasticities_of_training_and_law_are_finite_differences(settled, path):
    """Demand, prices, utilisation, quality and every exponent."""
    question = settled.answer.task
    high, low = (resettled(settled, question=scaled(question, path, 1 + s)) for s in (STEP, -STEP))
    measured = math.log(high / low) / (math.log1p(STEP) - math.log1p(-STEP))
    assert lifecycle_elasticities(settled)[path] == pytest.approx(measured, abs=1e-3)


def test_prices_add_up_to_the_whole(settled):
    """One percent on every price is one percent on the cost."""
    worth = lifecycle_elasticities(settled)
    assert worth["serving.price"] + worth["phases.pretrain.price"] == pytest.approx(1, abs=1e-6)
    assert worth["together.h100.price"] == pytest.approx(1, abs=1e-6)


def reinforced(**rl):
    """The scenario with reinforcement learning on the chip that trains."""
    phases = scenario()["phases"] | {"rl": {"system": "hgx-h100", "mfu": 0.15}}
    return scenario(rl=rl, phases=phases, draws=0)


@pytest.mark.slow
def test_rollouts_make_a_model_smaller_and_are_paid(settled):
    """Given tokens cost k FLOP per parameter each, and weigh on the size like served ones."""
    plan = planner.solve(reinforced(tokens=1e12, k=4)).chosen
    spent = plan["cost"]["rl"]
    assert spent["flop"] == pytest.approx(4 * plan["n_active"] * 1e12)
    assert spent["chip_hours"] == pytest.approx(spent["flop"] / (0.15 * 989e12) / 3600)
    assert plan["n_active"] < settled.whole.n_active * 1.01


@pytest.mark.slow
def test_a_reward_costs_the_same_whatever_the_size(settled):
    """Its arithmetic is a number beside the program: the model stays, the cost grows by it."""
    reward = {"needed": 0.55, "start": 0.2, "middle": 1e22, "steepness": 0.8}
    plan = planner.solve(reinforced(reward=reward)).chosen
    flop = 1e22 * ((0.55 - 0.2) / (0.61 - 0.55)) ** (1 / 0.8)
    assert plan["cost"]["rl"]["flop"] == pytest.approx(flop, rel=1e-3)
    assert plan["n_active"] == settled.whole.n_active
    more = plan["cost"]["total"]["usd"] - settled.whole.total
    assert more == pytest.approx(plan["cost"]["rl"]["usd"], rel=1e-6)
    assert more > 0


@pytest.mark.slow
def test_more_tokens_served_ask_for_a_smaller_model():
    """Ten times the demand: fewer parameters, more tokens of training."""
    few, many = (planner.solve(scenario(inference={"tokens": t}, draws=0)) for t in (2e12, 2e14))
    assert many.chosen["n_active"] < few.chosen["n_active"]
    assert many.chosen["tokens"]["pretrain"] > few.chosen["tokens"]["pretrain"]


@pytest.mark.slow
def test_the_cheapest_sparsity_is_chosen():
    """The plan is the least of what each sparsity costs by itself."""
    law = "besiroglu-2024 + clark-2022-s-base"
    both = planner.solve(scenario(law=law, choose={"sparsity": [1, 8]}, draws=0))
    alone = [planner.solve(scenario(law=law, choose={"sparsity": s}, draws=0)).cost for s in (1, 8)]
    assert both.cost == pytest.approx(min(alone), rel=1e-12)
    assert both.document["alternatives"][0]["cost"]["total"]["usd"] == pytest.approx(max(alone))


def test_parts_of_the_plan_add_up(plan):
    """Dollars, FLOP, hours and shares are those of the phases together."""
    chosen = plan.chosen
    for key in ("usd", "flop", "chip_hours"):
        parts = sum(chosen["cost"][name][key] for name in ("pretrain", "rl", "inference"))
        assert chosen["cost"]["total"][key] == pytest.approx(parts)
    assert sum(chosen["share"].values()) == pytest.approx(1)
    assert chosen["cost"]["inference"]["usd"] == pytest.approx(chosen["usd_per_mtok"] * 2e7)
    assert chosen["checkpoints"]["share"] < 0.01


def test_chips_carry_the_rate_and_keep_the_duration():
    """Training within its time, and enough units for the first rate."""
    plan = planner.solve(
        scenario(
            inference={"rate": "1e6 tokens/s", "lifetime": "1 year"},
            phases={"pretrain": {"system": "hgx-h100", "duration": "60 days"}},
            draws=0,
        )
    ).chosen
    trains, serves = plan["chips"]["pretrain"], plan["chips"]["inference"]
    hours = plan["cost"]["pretrain"]["chip_hours"]
    assert trains["count"] == math.ceil(hours / (60 * 24))
    assert serves["units"] == math.ceil(1e6 / serves["tokens_per_s_per_unit"])
    assert serves["count"] == serves["units"] * serves["chips_per_unit"]


def test_the_interval_holds_the_plan(plan):
    """Drawn laws lie on both sides of the fitted one."""
    band = plan.document["band"]
    assert band["n_active"][0] < plan.chosen["n_active"] * 1.02
    assert band["n_active"][1] > plan.chosen["n_active"] * 0.98
    assert band["cost"][0] < plan.cost < band["cost"][1]


def test_following_simpler_rules_costs_more(plan):
    """Equal pools are dearer; a flat price of a FLOP is at best as cheap, whole numbers aside."""
    assert plan.document["heuristic"]["worse_by"] > 0.01
    assert plan.document["flat_price"]["worse_by"] > -0.005


def test_a_resolved_scenario_loads_again():
    """What `check --json` prints is the same question."""
    read = load(scenario())
    assert load(resolve_keys(read)) == read


def test_the_answer_is_told_in_words(plan):
    """Text and reasons are there, no line wider than the terminal."""
    told = f"{plan.text('more')}\n{plan.why()}"
    assert "over-trained" in told
    assert "serving.system.memory_bandwidth" in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["5e12", "2e13", "1e14"])
def test_a_plan_lies_in_its_own_range(tokens):
    """The starter's, at several amounts that are served: size, tokens and cost."""
    document = YAML(typ="safe", pure=True).load(starter("lifecycle"))
    document["inference"]["tokens"] = tokens
    answer = planner.solve(document).document
    plan, band = answer["plan"], answer["band"]
    for value, name in ((plan["n_active"], "n_active"), (plan["tokens"]["pretrain"], "pretrain")):
        assert band[name][0] <= value <= band[name][1], name
    assert band["cost"][0] <= plan["cost"]["total"]["usd"] <= band["cost"][1]
