"""What the plans of a budget and of a life have alike: by hand, by equation, and refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import planner
from formulas.nomenclature.symbols import SYMBOLS
from planner.laws.law_forms import Term, Terms
from planner.laws.laws import scaling_law
from planner.scenario import load
from planner.text.errors import SolverError
from planner.token_costs import outputs as module
from planner.token_costs.budget_task import compute_optimal_tokens
from planner.token_costs.outputs import (
    OUTPUTS,
    at_limit,
    evaluate,
    formula,
    law_loss,
    life_point,
    loss_equations,
    overtraining_of_pools,
    recheck_shared,
    require,
    size_overtraining_ratio,
)
from planner.token_costs.outputs import _loss as loss_expression
from planner.token_costs.phase_costs import SizedShare, spending, symbol_values
from planner.token_costs.phase_keys import RewardedLoss
from planner.token_costs.spending import PhaseTokens
from tests.cases.budget import phases, question, solved

TASK = question(served=2e12, phases=phases(2.0, 3.0, 5.0), sparsity=1.0)
TOKENS = PhaseTokens(3e11, 2e10, 2e12)
SIZE = 4e9
LAW = TASK.law.values
LOSS = LAW["loss_min"] + LAW["A_N"] * SIZE ** -LAW["alpha_N"] + LAW["B_D"] * 3e11 ** -LAW["beta_D"]


def point(task=TASK, unique=None):
    """The point of a size and tokens, with what its phases cost."""
    cost = spending(symbol_values(task.phases, SIZE, TOKENS))
    return life_point(task, SIZE, TOKENS, cost, unique)


def test_a_plan_has_its_numbers_by_hand():
    """In USD: six FLOP to train, three a rollout, two to serve, at two, three and five USD each."""
    found = point()
    paid = np.array([6 * 3e11 * 2, 3 * 2e10 * 3, 2 * 2e12 * 5]) * SIZE
    shares = [found.share.pretrain, found.share.rl, found.share.inference]
    assert shares == pytest.approx(list(paid / paid.sum()))
    assert (found.n_active, found.n_total, found.sparsity) == (SIZE, SIZE, 1.0)
    assert (found.tokens, found.epochs) == (TOKENS, None)
    assert found.tokens_per_parameter == pytest.approx(75)
    assert found.loss == pytest.approx(LOSS, rel=1e-12)
    optimal = compute_optimal_tokens(TASK.terms, SIZE)
    assert found.over_training == pytest.approx(3e11 / optimal)
    assert (found.law, found.objective) == ("besiroglu-2024", "usd")
    assert found.coefficients == dict(LAW)
    assert found.total == pytest.approx(paid.sum())


def test_a_plan_in_flop_shares_what_of_the_peak_is_paid_for():
    """A rollout at half the peak bears twice its FLOP; data seen three times counts its passes."""
    given = {name: replace(x, usd_per_flop=None) for name, x in phases().items()}
    given["rl"] = replace(given["rl"], mfu=0.5)
    found = point(replace(TASK, phases=given, in_usd=False), unique=1e11)
    paid = np.array([6 * 3e11, 3 * 2e10 / 0.5, 2 * 2e12])
    assert found.share.rl == pytest.approx(paid[1] / paid.sum())
    assert found.objective == "flop"
    assert found.total == pytest.approx(paid.sum() * SIZE)
    assert found.epochs == pytest.approx(3.0)
    assert point(unique=1e12).epochs == 1.0


def test_experts_count_among_all_parameters():
    """At a sparsity of eight there are eight times as many as are active."""
    sparse = replace(TASK, law=scaling_law("abnar-2025"), sparsity=8.0)
    assert point(sparse).n_total == pytest.approx(8 * SIZE)
    of_size = Terms(1.0, (Term(400.0, -0.3, 0.0),))
    assert size_overtraining_ratio(SimpleNamespace(terms=of_size), SIZE, 3e11) is None


@pytest.mark.parametrize("walk", [False, True])
def test_a_loss_is_the_sum_of_its_equations(walk):
    """The law's, and what reinforcement learning takes off; compiled or walked."""
    assert law_loss(TASK, SIZE, TOKENS, walk=walk) == pytest.approx(LOSS, rel=1e-12)
    beside = replace(TASK, rl_term=RewardedLoss(coefficient=5.0, exponent=0.2))
    assert len(list(loss_equations(beside, SIZE, TOKENS))) == 2
    expected = LOSS + 5 * 2e10**-0.2
    assert law_loss(beside, SIZE, TOKENS, walk=walk) == pytest.approx(expected, rel=1e-12)
    repeated = question("muennighoff-2023", unique=1e11)
    expected = float(repeated.law.loss(SIZE, 3e11, unique=1e11))
    assert law_loss(repeated, SIZE, TOKENS, walk=walk) == pytest.approx(expected, rel=1e-12)
    fresh = float(repeated.law.loss(SIZE, 3e11))
    assert law_loss(replace(repeated, unique=None), SIZE, TOKENS) == pytest.approx(fresh, rel=1e-12)
    reinforced = scaling_law(
        {"form": "reinforced", "coefficients": {**LAW, "B_rl": 5.0, "beta_rl": 0.2}}
    )
    found = law_loss(replace(TASK, law=reinforced), SIZE, TOKENS, walk=walk)
    assert found == pytest.approx(LOSS + 5 * 2e10**-0.2, rel=1e-12)


def test_a_number_is_refused_that_is_another_by_its_equation():
    """By more than a part in 1e9, or where there is none."""
    require("it", 2.0, 2.0 * (1 + 0.9e-9))
    require("it", 0.0, 0.9e-300)
    for number, again in ((2.0, 2.0 * (1 + 1.1e-9)), (None, 2.0), (0.0, 1.1e-300)):
        with pytest.raises(SolverError, match=r"it is .* in the plan, but"):
            require("it", number, again)


WRONG = 1 + 1e-6
WRONGS = {
    "loss": lambda x: replace(x, loss=x.loss * WRONG),
    "n_total": lambda x: replace(x, n_total=x.n_total * WRONG),
    "over_training": lambda x: replace(x, over_training=x.over_training * WRONG),
    "tokens_per_parameter": lambda x: replace(
        x, tokens_per_parameter=x.tokens_per_parameter * WRONG
    ),
    **{
        f"cost.*.{column}": lambda x, column=column: replace(
            x, cost=replace(x.cost, rl=replace(x.cost.rl, **{column: 1.0}))
        )
        for column in ("usd", "flop", "flop_paid")
    },
}


@pytest.mark.parametrize("name", WRONGS)
def test_what_is_wrong_in_a_plan_is_refused(name):
    """Each number is checked; as it is the plan passes, and without a loss by the law it does."""
    sparse = replace(TASK, law=scaling_law("abnar-2025"), sparsity=8.0)
    for task in (TASK, sparse):
        right = point(task)
        recheck_shared(right, task)
        if right.over_training is not None or name != "over_training":
            with pytest.raises(SolverError, match=name.replace("*", r"\*")):
                recheck_shared(WRONGS[name](right), task)


def test_a_loss_is_checked_without_what_computed_it(monkeypatch):
    """Walked: a kernel that is off by a millionth is found out."""
    monkeypatch.setattr(module, "evaluate", lambda *e, **x: WRONG * evaluate(*e, **x))
    off = replace(point(), n_total=SIZE, tokens_per_parameter=75.0)
    assert off.loss == pytest.approx(LOSS * WRONG, rel=1e-12)
    with pytest.raises(SolverError, match="loss is"):
        recheck_shared(off, TASK)


@pytest.mark.parametrize("reward", [0.0, 3e22])
def test_pools_ask_for_the_tokens_that_the_optimum_has(reward):
    """Over compute-optimal ones; arithmetic of a reward does not grow with the size."""
    asked = question(served=2e12, phases=phases(rl=3.0), rl_flop=reward,
                     rl_tokens=0.0 if reward else 3e11)  # fmt: skip
    best = solved(asked)
    ratio = size_overtraining_ratio(best.task, best.n_active, best.pretrain)
    assert overtraining_of_pools(best) == pytest.approx(ratio, rel=1e-8)
    training, rl, serving = best.cost
    by_hand = (training + (0 if reward else rl) + 0.5 * serving) / training
    power = 1 / asked.law.values["beta_D"]
    assert overtraining_of_pools(best, 0.5) == pytest.approx(by_hand**power, rel=1e-12)


def test_pools_that_do_not_grow_ask_for_nothing():
    """A power of the size that planned layouts take off; none where training shrinks with it.

    None either for a law that is no sum of one term in size and one in tokens.
    """
    best = solved(question(served=2e12))
    sizes, shares = np.array([1e9, 1e12]), np.array([0.2, 0.4])

    def grown(growth: float):
        share = SizedShare(1e9, sizes, shares, growth)
        pretrain = replace(best.task.phases["pretrain"], sized=share)
        return replace(best, task=replace(best.task, phases={**best.task.phases,
                                                             "pretrain": pretrain}))  # fmt: skip

    training, _, serving = best.cost
    expected = (0.75 + serving / training) ** (1 / best.task.law.values["beta_D"])
    assert overtraining_of_pools(grown(0.25)) == pytest.approx(expected)
    level = (serving / training) ** (1 / best.task.law.values["beta_D"])
    assert overtraining_of_pools(grown(1.0)) == pytest.approx(level)
    assert overtraining_of_pools(grown(1.01)) is None
    mixed = solved(question("abnar-2025", served=2e12, sparsity=8.0))
    assert any(term.size and term.tokens for term in mixed.task.terms.terms) == (
        overtraining_of_pools(mixed) is None
    )
    both = replace(best.task.terms.terms[1], size=-0.1)
    for terms in ((both,), (best.task.terms.terms[1],) * 2, best.task.terms.terms[:1]):
        law = SimpleNamespace(terms=terms)
        task = SimpleNamespace(terms=law, phases=best.task.phases, rl_flop=0.0)
        assert overtraining_of_pools(SimpleNamespace(task=task, cost=best.cost)) is None


# -- equations ----------------------------------------------------------------------------------

QUESTION = {"problem": "budget", "quality": {"loss": 2.2}, "draws": 0}


@pytest.fixture(scope="module")
def plan():
    """The plan of a small budget, with a term of reinforcement learning beside the law."""
    return planner.solve({**QUESTION, "rl": {"loss": {"coefficient": 0.5, "exponent": 0.2}}})


def test_an_equation_of_a_phase_has_the_tokens_of_no_other(plan):
    """What is absent is 0 in it, and all else stands."""
    whole, alone = formula("life_cost")(plan), formula("life_cost", "D_rl", "D_inf")(plan)
    rest = {x.name for x in whole.free_symbols}
    assert {"D_rl", "D_inf", "D_pt"} < rest
    assert alone == whole.subs({SYMBOLS["D_rl"]: 0, SYMBOLS["D_inf"]: 0})
    assert {x.name for x in alone.free_symbols} == {"N_active", "c_fwd", "D_pt", "w_pt"}


def test_a_loss_is_printed_as_it_is_computed(plan):
    """The law's expression, and reinforcement learning's where it is asked for; by name or law."""
    best, values = plan.answer.plan, {}
    task = question(rl_term=RewardedLoss(coefficient=0.5, exponent=0.2))
    for _, symbols in loss_equations(task, best.n_active, best.tokens):
        values |= symbols
    expression = loss_expression(plan)
    again = expression.subs({x: values[x.name] for x in expression.free_symbols})
    assert float(again) == pytest.approx(best.loss, rel=1e-9)
    asked = SimpleNamespace(law=("besiroglu-2024", "kaplan-2020"), rl=SimpleNamespace(loss=None))
    alone = loss_expression(replace(plan, question=asked))  # of several laws the first
    again = alone.subs({x: values[x.name] for x in alone.free_symbols})
    taken_off = values["B_rl"] * values["D_rl"] ** -values["beta_rl"]
    assert float(again) == pytest.approx(best.loss - taken_off, rel=1e-9)


@pytest.mark.parametrize(
    ("in_usd", "rated", "totals"),
    [(True, True, ["usd"]), (True, False, ["usd"]), (False, True, ["flop_paid", "flop"]),
     (False, False, ["flop"])],
)  # fmt: skip
def test_a_cost_is_limited_in_what_it_is_counted_in(in_usd, rated, totals):
    """USD where it is money; else FLOP, and those of the peak where its share is known."""
    asked = SimpleNamespace(in_usd=in_usd, rated=rated)
    costs = [x for x in OUTPUTS if x.promise == "cost" and x.applies(asked)]
    assert [x.name for x in costs] == [f"cost.total.{column}" for column in totals]


def test_a_limit_is_asked_for_in_its_own_unit():
    """A quality as a loss, a cost as money, or as FLOP where these are counted; all else as is."""
    asked = load(QUESTION)
    assert at_limit(asked, "quality.loss", 2.5).quality.loss == 2.5
    assert at_limit(asked, "data.unique", 1e12).data.unique == 1e12
    limited = {"problem": "budget", "cost": "1e24 FLOP", "draws": 0}
    assert at_limit(load(limited), "cost", 3e24).cost == load({**limited, "cost": "3e24 FLOP"}).cost
    priced = {**limited, "cost": "$1e6", "phases": {
        "pretrain": {"system": "hgx-h100", "mfu": 0.4},
        "inference": {"system": "hgx-h100", "mfu": 0.4},
    }}  # fmt: skip
    assert at_limit(load(priced), "cost", 3e6).cost == load({**priced, "cost": "$3e6"}).cost
