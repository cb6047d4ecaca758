"""Every number of a plan is the value of its equation, printed and computed again alike."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from formulas.numerics.evaluate import scalar
from formulas.serving.pools import two_pools as equations_of_two
from planner.problems.serving.answer import answer
from planner.problems.serving.closed_form import closed_form
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.deployment.questions import all_searches
from planner.problems.serving.problem import PROBLEM
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from planner.text.errors import SolverError
from tests.cases.plan_symbols import candidate_symbols
from tests.cases.serving import dense, one_pool, question, sparse
from tests.loops import for_all
from tests.sizes import sized

SAME = 1e-12
MODES, ESTIMATES = ("aggregated", "decode", "prefill"), ("calibrated", "bound")
LOADS = ({}, {"arrivals": 20.0}, {"arrivals": 300.0, "headroom": 0.2},
         {"arrivals": math.inf, "headroom": 0.1}, {"batches": (7,)})  # fmt: skip
PAIRS = (
    {"model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4},
    {"model": "llama-3.1-8b", "system": "hgx-h200", "chips": 8, "estimate": "bound"},
)
DEMANDS = (None, 2.0, "max")


def singles():
    """Pools of plans of one: every mode, estimate and load, dense models and experts."""
    for mode, estimate, change in itertools.product(MODES, ESTIMATES, LOADS):
        for model, chips in ((dense(), (4,)), (sparse(), (2, 3, 4)), (dense(layers=3), (8,))):
            task = question(model, mode=mode, estimate=estimate, chips=chips, **change)
            yield from (point.candidate.last for point in one_pool(task).points())


def pairs():
    """Candidates of two pools: under a load, at the most they serve, and without arrivals."""
    for base, demand in itertools.product(PAIRS, DEMANDS):
        scenario = load({
            "problem": "serving", "units": "base", "choose": {"mode": "disaggregated"},
            "workload": {"input_tokens": 1000, "output_tokens": 300, "demand": demand}, **base,
        })  # fmt: skip
        (found,) = all_searches(resolve(scenario))
        yield from (point.candidate for point in found.points())


@pytest.fixture(scope="module")
def plans():
    """At least 200 plans of one pool, and some of two."""
    return list(singles()), list(pairs())


PLAIN = {"tpot": False, "energy": False, "counted": False}  # no promise binds, no power is paid


@pytest.mark.slow
def test_the_printed_closed_form_gives_the_price(plans):
    """The equations that `--why` prints, at the values the plan binds, are the plan's price."""
    count = 0
    for pool in plans[0]:
        task = pool.task
        equations = closed_form(task.mode, bound=task.uses_bound, load=task.load, **PLAIN)
        values = candidate_symbols(Candidate((pool,)))
        made = {e.symbol.name for e in equations}
        given = {name: value for name, value in values.items() if name not in made}
        price = equations[0].symbol.name
        # The slot's own equations are printed down to the step; what is below them is given.
        again = scalar(equations, [price], given)[price] * 1e6
        assert again == pytest.approx(Candidate((pool,)).usd_per_mtok, rel=SAME)
        count += 1
    for candidate in plans[1]:
        load_ = "none" if candidate.demand is None else "given"
        bound = candidate.task.uses_bound
        first, rate, *_ = closed_form("disaggregated", bound=bound, load=load_, **PLAIN)
        again = scalar((first, rate), ["C_pools"], candidate.joint.symbols)["C_pools"] * 1e6
        assert again == pytest.approx(candidate.usd_per_mtok, rel=SAME)
        count += 1
    assert count >= 200


@pytest.mark.slow
def test_a_load_fills_the_slots_as_the_price_has_it(plans):
    """Rent over what is served: all chips, over all requests that arrive."""
    for pool in plans[0]:
        if pool.task.loaded:
            paid = pool.task.price * float(pool.layouts.chips[0])
            values = pool.chosen_by
            assert values["requests"] == pytest.approx(pool.task.arrivals, rel=SAME)
            assert values["usd_per_request"] == pytest.approx(paid / pool.task.arrivals, rel=SAME)


def test_every_plan_survives_its_recheck(plans):
    """Both evaluations agree on every output of every plan, of one pool and of two."""
    for candidate in (*plans[0][::5], *plans[1][::3]):
        candidate.recheck()


ASKED = {
    "aggregated": {"choose": {"mode": "aggregated"}},
    "decode": {"choose": {"mode": "decode"}},
    "prefill": {"choose": {"mode": "prefill"}},
    "two pools": {"choose": {"mode": "disaggregated"}},
    "bound": {"choose": {"mode": "aggregated"}, "estimate": "bound"},
    "energy": {"choose": {"mode": "aggregated"}, "objective": "energy"},
}
ARRIVING = {"none": {}, "given": {"demand": 3.0}, "most": {"demand": "max"},
            "loop": {"concurrency": 16}}  # fmt: skip


@pytest.mark.sized
@for_all(("case", "load_"), [*itertools.product(ASKED, ARRIVING)][:: sized(3, 1)])
def test_every_output_has_the_equation_that_gives_it(case, load_):
    """The symbols of an output's equation evaluate to the number that is printed."""
    if load_ == "loop" and case == "two pools":
        pytest.skip("a closed loop of two pools is not planned")
    scenario = load({
        "problem": "serving", "units": "base",
        "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
        "workload": {"input_tokens": 1000, "output_tokens": 300, **ARRIVING[load_]}, **ASKED[case],
    })  # fmt: skip
    plan = answer(scenario)
    (found,) = all_searches(resolve(scenario))
    values = candidate_symbols(found.points()[0].candidate)
    for output in PROBLEM.outputs:
        printed, expression = getattr(plan.point, output.name), output.equation(plan)
        assert (printed is None) == (expression is None)
        if printed is not None:
            again = float(expression.subs({x: values[x.name] for x in expression.free_symbols}))
            # Sequences are printed whole.
            again = max(1, round(again)) if output.name == "batch" else again
            assert again == pytest.approx(printed, rel=1e-9), output.name


@pytest.mark.parametrize("arrivals", [None, 20.0])
def test_a_wrong_output_of_one_pool_is_refused(arrivals):
    """Whichever number a plan prints, of the estimate or of the bound: the price above all."""
    point = one_pool(question(dense(), arrivals=arrivals)).points()[0]
    good = point.candidate.last
    good.recheck()
    for name, value in good.estimate.items():
        if not value or name.startswith("wait."):
            continue
        with pytest.raises(SolverError, match=name):
            replace(good, estimate={**good.estimate, name: value * 1.334}).recheck()
    for name in ("usd_per_token", "tpot", "ttft"):
        with pytest.raises(SolverError, match=name):
            replace(good, bound={**good.bound, name: good.bound[name] * 1.334}).recheck()


def test_a_wrong_output_of_two_pools_is_refused(plans):
    """Whichever number two pools together print."""
    good = plans[1][0]
    good.recheck()
    for field in ("outputs", "bound"):
        for name, value in getattr(good, field).items():
            if value:
                wrong = {**getattr(good, field), name: value * 1.334}
                with pytest.raises(SolverError, match=name):
                    replace(good, joint=replace(good.joint, **{field: wrong})).recheck()


def test_a_broken_promise_is_refused():
    """A plan that was right, under promises that it does not keep."""
    task = question(dense())
    good = one_pool(task).points()[0].candidate.last
    tight = replace(task, promises={"tpot": good.estimate["tpot"] / 2})
    with pytest.raises(SolverError, match="breaks the promise tpot"):
        evaluate(tight, good.layouts, good.batch).recheck()


def test_two_pools_have_every_output():
    """No symbol that the outputs of two pools need is left without an equation or a value."""
    for kind in ("none", "given"):
        assert {e.symbol.name for e in equations_of_two(kind)} >= {"C_pools", "X_pools", "T_e2e"}
