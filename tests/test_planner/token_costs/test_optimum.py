"""One optimum, found four ways: Newton, a geometric program, SciPy, and trying many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.laws.laws import scaling_law
from planner.problems.budget.certificate import proof, solve_geometric_program
from planner.problems.budget.outputs import life_cost
from planner.text.errors import FieldError, SolverError
from planner.token_costs.budget_task import LossTarget, stack_budgets
from planner.token_costs.optimum import (
    BudgetOptimum,
    NoBudget,
    _check_fed,
    best_possible,
    data_exhaustion,
    extrapolation_warnings,
    implausible_optimum,
    lagrangian_slope,
    min_loss,
    not_converged,
    select_best,
    solve_many,
    solve_one,
)
from planner.token_costs.phase_keys import RewardedLoss
from planner.token_costs.stationary_points import start, stationary_point, stationary_points
from tests.cases.budget import brute_force, phases, question, solved
from tests.loops import for_all

CASES = {
    "served": question(served=2e12),
    "not served": question(),
    "dear serving": question(served=2e12, phases=phases(inference=4.0)),
    "reinforcement": question(served=1e12, rl_tokens=3e11, phases=phases(rl=3.0, k=4.5)),
    "a loss": question(served=1e13, required=LossTarget(loss=2.0)),
    "an over-trained model": question(served=1e13, required=LossTarget(n_active=8e9, tokens=15e12)),
    "a cost": question(served=1e12, limit=1e24),
    "a small cost": question(limit=1e20),
    "sardana": question("sardana-2024", served=2e12),
    "abnar": question("abnar-2025", served=2e12, sparsity=8.0),
    "abnar at a cost": question("abnar-2025", served=2e12, sparsity=16.0, limit=1e23),
    "kaplan": question("kaplan-2020", served=1e12),
    "kaplan at a cost": question("kaplan-2020", served=1e11, limit=1e22),
    "a reward": question(served=2e12, rl_flop=3e22),
    "a reward at a cost": question(served=2e12, rl_flop=3e22, limit=1e24),
    "repeated": question("muennighoff-2023", served=2e12, unique=2e11),
    "much repeated": question("muennighoff-2023", served=1e11, unique=4e10, limit=5e22),
    "enough data": question("muennighoff-2023", served=2e12, unique=1e13),
    "routed": question("besiroglu-2024 + clark-2022-s-base", served=2e12, sparsity=8.0),
}


@for_all("name", CASES)
def test_the_four_ways_agree(name):
    """Sizes, tokens and what is made small agree to 1e-4; the program's bound lies below."""
    asked = CASES[name]
    best = solved(asked)
    size, tokens, score = brute_force(asked)
    assert best.score == pytest.approx(score, rel=1e-6)
    assert best.n_active == pytest.approx(size, rel=3e-3)  # a valley is flat: 1e-6 in the score
    assert best.pretrain == pytest.approx(tokens, rel=3e-3)
    assert best.score <= score * (1 + 1e-9)
    there, program = solve_geometric_program(best.budgets.tangent(best.point), start(best.budgets))
    assert there == pytest.approx(best.point[0], abs=1e-4)
    assert program.multipliers["limit"] == pytest.approx(best.multiplier, rel=1e-4)
    point, error = stationary_point(best.budgets)
    assert point == pytest.approx(best.point[0], abs=1e-4)
    assert error < 1e-7
    proven = proof(best)
    assert proven.relaxation <= best.score
    assert proven.relaxation == pytest.approx(best.score, rel=1e-6)
    assert best.gap < 1e-9


def test_tokens_of_reinforcement_learning_are_chosen_where_the_loss_knows_them():
    """A term in RL tokens: three choices, and no neighbour on the limit is cheaper."""
    asked = question(
        served=1e12,
        rl_term=RewardedLoss(coefficient=5.0, exponent=0.2),
        required=LossTarget(loss=2.3),
    )
    best = solved(asked)
    proof(best)
    cost = [best.cost[0] / best.total, best.cost[1] / best.total]
    terms = asked.terms.terms
    gain_tokens = -terms[1].tokens * terms[1](best.n_active, best.pretrain)
    gain_rl = 0.2 * 5.0 * best.rl**-0.2
    assert cost[0] / cost[1] == pytest.approx(float(gain_tokens) / gain_rl, rel=1e-9)
    assert best.loss == pytest.approx(2.3, abs=1e-9)


def test_a_law_with_a_term_of_its_own_is_as_one_with_a_term_given():
    """The same coefficients in the law, or beside it, have the same optimum."""
    beside = question(
        served=1e12,
        rl_term=RewardedLoss(coefficient=5.0, exponent=0.2),
        required=LossTarget(loss=2.3),
    )
    values = {**beside.law.values, "B_rl": 5.0, "beta_rl": 0.2}
    law = scaling_law({"form": "reinforced", "coefficients": values})
    own = solved(replace(beside, law=law, rl_term=None))
    proof(own)
    expected = solved(beside)
    assert (own.n_active, own.pretrain, own.rl, own.total) == pytest.approx(
        (expected.n_active, expected.pretrain, expected.rl, expected.total), rel=1e-9
    )
    given = solved(replace(own.task, fixed_choices={"rl": own.rl}))
    proof(given)
    assert given.total == pytest.approx(own.total, rel=1e-9)
    with pytest.raises(FieldError, match=r"give quality\.loss"):
        solve_one(replace(own.task, required=LossTarget(n_active=1e9)))


def test_arithmetic_that_a_reward_asks_for_moves_no_size():
    """The sigmoid's arithmetic does not grow with the model: the size is that without it."""
    plain = solved(question(served=2e12))
    rewarded = solved(question(served=2e12, rl_flop=1e22))
    assert rewarded.n_active == pytest.approx(plain.n_active, rel=1e-9)
    assert rewarded.cost[1] == pytest.approx(1e22)
    assert rewarded.rl == pytest.approx(1e22 / (3 * rewarded.n_active))


def test_data_that_runs_out_ends_the_training_where_the_law_knows_no_repetition():
    """All unique tokens are used, the size follows from the loss, and more data would be worth."""
    asked = question(served=2e12, unique=5e11)
    best = solved(asked)
    free = solved(replace(asked, unique=None))
    assert best.pretrain == pytest.approx(5e11)
    assert best.total > free.total
    assert best.loss == pytest.approx(free.loss, abs=1e-12)
    more = solved(replace(asked, unique=5e11 * 1.0001))
    slope = np.log(more.total / best.total) / np.log(1.0001)
    assert -best.data_bound == pytest.approx(slope, rel=1e-3)
    assert solved(replace(asked, unique=1e14)).total == pytest.approx(free.total)


PRICED = {
    **{name: CASES[name] for name in ("served", "a loss", "a cost", "a small cost", "kaplan",
                                      "kaplan at a cost", "a reward at a cost", "repeated")},
    "a large reward": question(served=2e12, rl_flop=3e23),
    "a given size": question(served=2e12, fixed_choices={"n_active": 7e9}),
    "data that runs out": question(served=2e12, unique=5e11),
    "little data for a cost": question(limit=1e24, served=1e12, unique=1e11),
}  # fmt: skip


@for_all("name", PRICED)
def test_the_price_of_a_loss_is_what_a_little_more_of_it_saves(name):
    """Percent of the whole cost per nat, by the answers to a little more and less of the limit."""
    asked, step = PRICED[name], 1e-4
    best = solved(asked)
    if asked.required is None:
        ends = [solved(replace(asked, limit=asked.limit * (1 + s))) for s in (step, -step)]
    else:
        ends = [solved(replace(asked, required=LossTarget(loss=best.loss * (1 + s))))
                for s in (step, -step)]  # fmt: skip
    cost = np.log(ends[0].total / ends[1].total)
    loss = ends[0].loss - ends[1].loss
    assert best.loss_price == pytest.approx(-cost / loss, rel=1e-5)


def test_what_more_data_would_be_worth_where_it_runs_out():
    """For the best loss at a cost: percent of the loss above the floor per percent of the data."""
    asked, step = PRICED["little data for a cost"], 1e-4
    best = solved(asked)
    floor = asked.terms.floor
    more, less = (
        solved(replace(asked, unique=asked.unique * (1 + s))).loss - floor for s in (step, -step)
    )
    slope = np.log(more / less) / np.log((1 + step) / (1 - step))
    assert best.data_bound == pytest.approx(-slope, rel=1e-6)
    assert best.pretrain == pytest.approx(asked.unique)
    rewarded = question(served=2e12, rl_flop=3e23, unique=5e11)
    more, less = (
        solved(replace(rewarded, unique=rewarded.unique * (1 + s))).total for s in (step, -step)
    )
    slope = np.log(more / less) / np.log((1 + step) / (1 - step))
    assert solved(rewarded).data_bound == pytest.approx(-slope, rel=1e-5)
    assert solved(CASES["a cost"]).data_bound == solved(CASES["served"]).data_bound == 0.0


def test_a_limit_that_leaves_no_choice_has_no_price():
    """Of the least cost nothing more of the loss would be saved; of the best loss all would."""
    both = {"n_active": 7e9, "pretrain": 1e12}
    assert solved(question(required=LossTarget(loss=2.5), fixed_choices=both)).loss_price == 0.0
    assert solved(question(limit=1e23, fixed_choices=both)).loss_price == np.inf


def test_the_conditions_hold_along_choices_that_are_free():
    """Zero there; along a held one by the sum of both slopes, here by differences."""
    best, step = solved(CASES["reinforcement"]), 1e-5
    whole = stack_budgets([best.task])
    at = best.at(whole.choices)
    assert np.exp(at[0]) == pytest.approx([best.n_active, best.pretrain])
    for choice in whole.choices:
        assert lagrangian_slope(whole, at, choice, best.multiplier) == pytest.approx(0.0, abs=1e-9)
    ends = [at + s * step * np.array([[0.0, 1.0]]) for s in (1, -1)]
    cost = np.subtract(*(whole.costs(end).value[0] for end in ends)) / (2 * step)
    loss = np.subtract(*(whole.losses(end).value[0] for end in ends)) / (2 * step)
    found = lagrangian_slope(whole, at, "pretrain", 3.0)
    assert found == pytest.approx(cost + 3.0 * loss, abs=1e-8)
    limited = replace(best.task, required=None, limit=best.total)
    found = lagrangian_slope(stack_budgets([limited]), at, "pretrain", 3.0)
    assert found == pytest.approx(loss + 3.0 * cost, abs=1e-8)


def test_choices_that_are_given_are_kept():
    """A given size leaves the tokens to the loss; both given leave nothing."""
    asked = question(served=2e12, fixed_choices={"n_active": 7e9})
    best = solved(asked)
    assert best.n_active == pytest.approx(7e9)
    assert best.loss == pytest.approx(asked.required.value(asked.law), abs=1e-12)
    both = solved(question(served=2e12, fixed_choices={"n_active": 7e9, "pretrain": 1e12}))
    assert both.total == pytest.approx(life_cost(both.task, 7e9, 1e12))
    proof(best)
    proof(both)


def test_many_budgets_are_as_one_by_one():
    """Questions of several shapes in one call, each as if asked alone, in their order."""
    rng = np.random.default_rng(7)
    names = list(CASES)
    several = [
        replace(CASES[names[i % len(names)]], served=float(10 ** rng.uniform(10, 14)))
        for i in range(4 * len(names))
    ]
    together = solve_many(several)
    for asked, found in zip(several, together, strict=True):
        alone = solve_one(asked)
        assert type(alone) is type(found)
        if isinstance(found, BudgetOptimum):
            assert found.score == pytest.approx(alone.score, rel=1e-10)
            assert found.n_active == pytest.approx(alone.n_active, rel=1e-7)


def test_random_budgets_have_no_better_neighbour():
    """Sizes a little off, with the tokens that keep the loss, cost more; a thousand at once."""
    rng = np.random.default_rng(3)
    several = [
        question(served=float(10 ** rng.uniform(9, 15)), rl_tokens=float(10 ** rng.uniform(9, 12)),
                 phases=phases(*rng.uniform(0.3, 3, 3)),
                 required=LossTarget(n_active=float(10 ** rng.uniform(8, 12))))
        for _ in range(300)
    ]  # fmt: skip
    best = solve_many(several)
    for factor in (0.99, 1.01):
        near = solve_many(
            [replace(q, fixed_choices={"n_active": a.n_active * factor})
             for q, a in zip(several, best, strict=True)]
        )  # fmt: skip
        for here, there in zip(best, near, strict=True):
            assert there.total > here.total


def test_a_start_from_before_leads_to_the_same_optimum():
    """A warm start saves steps and moves nothing."""
    budgets = stack_budgets([CASES["served"]])
    cold = stationary_points(budgets)
    warm = stationary_points(budgets, cold.point + 1e-3)
    assert warm.steps < cold.steps
    assert warm.point == pytest.approx(cold.point, abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "promise", "told"),
    [(question(required=LossTarget(loss=1.8)), "loss", "no size and no data removes"),
     (question("muennighoff-2023", unique=2e10), "loss", "however often they are repeated"),
     (question(unique=1e9), "loss", "unique tokens"),
     (question(fixed_choices={"n_active": 1e8}), "loss", "at the values in choose"),
     (question(limit=1e3), "cost", "it buys a model of"),
     (question("muennighoff-2023", limit=1e26, unique=1e10), "data", "cannot make use of it"),
     (question(limit=1e20, rl_flop=1e21), "cost", "alone cost more")],
)  # fmt: skip
def test_why_there_is_no_budget(asked, promise, told):
    """A sentence and the factor by which it falls short."""
    found = solve_one(asked)
    assert isinstance(found, NoBudget)
    assert found.promise == promise
    assert found.short_by > 1
    assert told in found.reason


def test_more_parameters_than_the_data_feeds_count_for_less():
    """Given few tokens the size follows from the law's own loss, excess parameters included."""
    for unique in (None, 1e11):
        asked = question("muennighoff-2023", fixed_choices={"pretrain": 1.8e11}, unique=unique,
                         required=LossTarget(n_active=11e9))  # fmt: skip
        best = solved(asked)
        proof(best)
        assert best.n_active > asked.law.fed(min(1.8e11, unique or 1.8e11))
        assert asked.law.loss(best.n_active, 1.8e11, unique=unique) == pytest.approx(best.loss)
    with pytest.raises(FieldError, match="counts them for less"):
        solve_one(question("muennighoff-2023", fixed_choices={"n_active": 1e12}))


def test_an_answer_that_does_not_hold_is_refused():
    """A plan whose loss the law itself denies, or whose point is off, raises a fault of ours."""
    best = solved(CASES["served"])
    with pytest.raises(SolverError, match="the law besiroglu-2024 itself says"):
        proof(replace(best, loss=best.loss + 1e-3))
    with pytest.raises(SolverError, match="differs from that on the first-order conditions"):
        proof(replace(best, point=best.point + 1e-3))


IDLE = {  # what a percent of one choice changes is far below what a program is solved to
    "little training": question(served=1e24, fixed_choices={"n_active": 1e12},
                                required=LossTarget(n_active=1e12, tokens=1e13)),
    "hardly any rollouts": question(served=1e12,
                                    rl_term=RewardedLoss(coefficient=1e-3, exponent=5.0)),
    "rollouts at a cost": question(limit=1e25,
                                   rl_term=RewardedLoss(coefficient=1e-3, exponent=3.0)),
    "kaplan on little data": question("kaplan-2020", limit=2e27, unique=4e4, served=8e7),
    "repeated as good as for ever": question("muennighoff-2023", served=4e18, unique=9e5,
                                             required=LossTarget(n_active=2e8, tokens=3e6)),
}  # fmt: skip


@pytest.mark.parametrize("name", IDLE)
def test_a_choice_that_hardly_matters_is_found_as_closely(name):
    """Its own first-order condition holds: SciPy, on ratios, agrees to 1e-8; so does the proof."""
    best = solved(IDLE[name])
    found = stationary_point(best.budgets, best.point[0])
    assert found is not None
    assert found[0] == pytest.approx(best.point[0], abs=1e-8)
    proven = proof(best)
    assert max(proven.differences.values()) < 1e-4
    assert proven.relaxation == pytest.approx(best.score, rel=1e-6)


def test_a_budget_of_more_passes_than_anything_changes_is_no_fault():
    """A singular system of equations, at a few dozen tokens, is told as a budget without answer."""
    asked = question("muennighoff-2023", served=3.5e18, unique=83.65, limit=3.3e25)
    assert isinstance(solve_one(asked), NoBudget)


# -- why there is none, in numbers ---------------------------------------------------------------

LAW = question().law.values
FLOOR = LAW["loss_min"]


def of_size(n: float) -> float:
    """What a size leaves of the loss [nat]."""
    return LAW["A_N"] * n ** -LAW["alpha_N"]


def of_tokens(d: float) -> float:
    """What tokens leave of the loss [nat]."""
    return LAW["B_D"] * d ** -LAW["beta_D"]


REPEATED = question("muennighoff-2023", unique=2e10)
CEILING = float(REPEATED.law.loss(1e90, 1e90, unique=2e10))
KAPLAN = question("kaplan-2020").law.values
KAPLAN_SIZE = (KAPLAN["N_c"] / 1e8) ** KAPLAN["alpha_N"]  # data without end


@for_all(
    ("asked", "short_by", "least"),
    [(question(required=LossTarget(loss=FLOOR / 2)), 2.0, None),
     (question(required=LossTarget(loss=FLOOR)), 1.0, None),
     (question(required=LossTarget(loss=2.0), unique=1e9), (FLOOR + of_tokens(1e9)) / 2, None),
     (replace(REPEATED, required=LossTarget(loss=2.0)), CEILING / 2, CEILING),
     (question(required=LossTarget(loss=1.9), fixed_choices={"n_active": 1e8}),
      (FLOOR + of_size(1e8)) / 1.9, FLOOR + of_size(1e8)),
     (question(required=LossTarget(loss=2.0), fixed_choices={"n_active": 1e9, "pretrain": 2e10}),
      (FLOOR + of_size(1e9) + of_tokens(2e10)) / 2, FLOOR + of_size(1e9) + of_tokens(2e10)),
     (question(limit=1e20, rl_flop=1e21), 10.0, FLOOR),
     (question("kaplan-2020", required=LossTarget(loss=2.0), fixed_choices={"n_active": 1e8}),
      KAPLAN_SIZE / 2, KAPLAN_SIZE)],
)  # fmt: skip
def test_by_how_much_a_limit_falls_short(asked, short_by, least):
    """Of the least there is of it at no matter what, by the law's own terms."""
    found = solve_one(asked)
    assert isinstance(found, NoBudget)
    assert found.task is asked
    assert found.promise == ("cost" if asked.required is None else "loss")
    assert found.short_by == pytest.approx(short_by, rel=1e-9)
    if least is not None:
        assert min_loss(asked) == pytest.approx(least, rel=1e-9)
        assert f"{least:.4g}" in found.reason or asked.required is None


def test_the_least_of_what_is_limited_is_without_end_unless_something_is_held():
    """Nothing of a loss is left at choices without end, nothing of a cost at none."""
    for asked in (question(), question(limit=1e24)):
        assert best_possible(stack_budgets([asked]))[0] < -20
    held = stack_budgets([question()]).fixed("n_active", np.log([1e9]))
    assert np.exp(best_possible(held)[0]) == pytest.approx(of_size(1e9))
    paid = stack_budgets([question(limit=1e24, served=1e12)]).fixed("n_active", np.log([1e9]))
    assert np.exp(best_possible(paid)[0]) == pytest.approx(2 * 1e9 * 1e12)


def test_a_cost_that_repeats_data_in_vain():
    """Past eight times its reach beyond the knee, of tokens and of parameters, by hand."""
    asked = question("muennighoff-2023", unique=1e10, limit=1e26)
    x = asked.law.values
    size = asked.law.fed(1e10) * (1 + 8 * x["R_excess"])
    useless = 6 * size * 1e10 * (1 + 8 * x["R_half"])
    found = solve_one(asked)
    assert isinstance(found, NoBudget)
    assert (found.promise, found.short_by) == ("data", pytest.approx(1e26 / useless))
    assert f"{useless:.3g}" in found.reason
    for factor, worn in ((1.001, True), (0.999, False)):
        limited = replace(asked, limit=useless * factor)
        assert (data_exhaustion(limited, stack_budgets([limited])) is not None) == worn
    wanted = stack_budgets([replace(asked, limit=None, required=LossTarget(loss=3.0))])
    assert data_exhaustion(asked, wanted) is None  # a loss is limited, no cost
    row = stack_budgets([asked])
    assert data_exhaustion(asked, replace(row, curved={})) is None
    only = replace(row, curved={"pretrain": row.curved["pretrain"]})
    assert data_exhaustion(asked, only) is None  # a size without a knee is of use without end
    both = {"n_active": 1e9, "pretrain": 1e11}
    assert solved(replace(asked, fixed_choices=both)).total == pytest.approx(6e20)


@for_all(
    ("aim", "n", "d", "promise", "short_by"),
    [("quality", 2e3, 5e9, "cost", 5.0), ("quality", 2e9, 2e3, "cost", 5.0),
     ("quality", 1.01e4, 5e9, None, None), ("quality", 1e9, 1.01e25, "loss", 1.0),
     ("cost", 2e3, 5e9, None, None), ("cost", 0.99, 5e9, "loss", 1.0),
     ("cost", 1.01, 0.99e25, None, None), ("cost", 1.01e25, 5e9, "loss", 1.0)],
)  # fmt: skip
def test_what_is_no_model_that_anybody_could_train(aim, n, d, promise, short_by):
    """Less than ten thousand of a cost, less than one or over 1e25 of either."""
    task = question() if aim == "cost" else question(limit=1e20)
    found = implausible_optimum(task, {"n_active": np.log(n), "pretrain": np.log(d)})
    assert (found is None) == (promise is None)
    if found is not None:
        assert (found.promise, found.short_by) == (promise, pytest.approx(short_by))
        assert f"{n:.2g} parameters and {d:.2g} tokens" in found.reason


def test_what_the_steps_do_not_reach_is_told_of_what_is_limited():
    """Its promise is the loss, or the cost; by how much it falls short no number says."""
    for asked, promise in ((question(), "loss"), (question(limit=1.0), "cost")):
        found = not_converged(asked)
        assert (found.promise, found.short_by) == (promise, 1.0)


def test_sentences_on_a_law_are_warnings_unless_they_are_refused():
    """Told where nothing is said of them; a fault where the file forbids them."""
    for extrapolate in (None, True):
        assert extrapolation_warnings(["far", "out"], extrapolate) == ("far", "out")
    assert extrapolation_warnings([], False) == ()
    with pytest.raises(FieldError, match="far; out; extrapolate: true answers all the same"):
        extrapolation_warnings(["far", "out"], False)


def test_a_size_is_fed_to_a_millionth():
    """Where a size is given and tokens are free: by what is seen of the data, not its repeats."""
    asked = question("muennighoff-2023", unique=1e11, fixed_choices={"n_active": 1e9},
                     required=LossTarget(n_active=1e9, tokens=3e10))  # fmt: skip
    for tokens, seen in ((5e10, 5e10), (4e11, 1e11)):
        fed = asked.law.fed(seen)
        _check_fed(asked, fed * (1 + 0.9e-6), tokens)
        with pytest.raises(FieldError, match="are more than"):
            _check_fed(asked, fed * (1 + 1.1e-6), tokens)
    assert solved(asked).n_active == pytest.approx(1e9)
    everything = replace(asked, unique=None)
    _check_fed(everything, asked.law.fed(4e11), 4e11)
    _check_fed(replace(asked, fixed_choices={"n_active": 1e9, "pretrain": 1e9}), 1e15, 1e9)
    _check_fed(replace(asked, fixed_choices={}), 1e15, 1e9)
    _check_fed(question(fixed_choices={"n_active": 1e9}), 1e15, 1e9)


def test_the_best_of_several_is_the_best_answer_or_the_nearest_miss():
    """By its score; where none is an answer, by the factor."""
    dear, cheap = solved(question(served=1e13)), solved(question(served=1e12))
    miss, near = (solve_one(question(required=LossTarget(loss=x))) for x in (1.0, 1.5))
    assert select_best([miss, dear, cheap, near]) is cheap
    assert select_best([miss, near]) is near
    assert (dear.score, cheap.score) == (dear.total, cheap.total)
    poor, rich = solved(question(limit=1e22)), solved(question(limit=1e24))
    assert select_best([poor, rich]) is rich
    assert (poor.score, rich.score) == (poor.loss, rich.loss)
    assert poor.total == pytest.approx(1e22)
    assert sum(poor.cost) == poor.total
    phases_of = solved(CASES["reinforcement"])
    assert phases_of.shares == {
        name: cost / phases_of.total
        for name, cost in zip(("pretrain", "rl", "inference"), phases_of.cost, strict=True)
    }


def test_what_lies_beyond_a_law_is_told_with_its_passes_over_the_data():
    """Passes where the law knows repetition, never fewer than one; none are told elsewhere."""
    seen = []

    class Law:
        form = "repetition"

        def outside(self, n, d, *, epochs):
            seen.append((n, d, epochs))
            return ["far"]

    best = solved(CASES["much repeated"])
    for unique, form in ((4e10, "repetition"), (1e14, "repetition"), (4e10, "chinchilla")):
        Law.form = form
        assert replace(best, task=replace(best.task, law=Law(), unique=unique)).outside == ["far"]
    n, d = best.n_active, best.pretrain
    assert d > 4e10
    assert seen == [(n, d, d / 4e10), (n, d, 1.0), (n, d, None)]
