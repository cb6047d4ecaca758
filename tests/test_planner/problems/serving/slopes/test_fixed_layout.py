"""Elasticities of serving plans against solving the held problem again on either side.

The other way: the scenario is read again with a value a little off, the layout is put into `choose`
by hand, and the real batch comes from the geometric program or from bisection on the equations.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from planner.problems.serving.deployment.alternatives import winner
from planner.problems.serving.deployment.questions import all_searches
from planner.problems.serving.deployment.scored_points import ranked_points
from planner.problems.serving.outputs import OUTPUTS
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.slopes import fixed_layout
from planner.problems.serving.slopes.batch_response import FixedLayout
from planner.problems.serving.slopes.fixed_layout import (
    Bound,
    _fixed_layout,
    _later,
    _power,
    _shared,
    _symbols,
    elasticities,
    fix_layouts,
    one_pool_slopes,
    slower_rate_slopes,
    two_pool_slopes,
)
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.kernels import feed
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve, resolve_hardware
from planner.protocol.parameter import Parameter
from planner.scenario import load
from tests.cases.serving import MODELS as SMALL
from tests.cases.serving import question, searched
from tests.sizes import first, seldom
from tests.test_planner.problems.serving.slopes.test_batch_response import NEARBY, pool_of, put

SYMBOLS = ("W_chip", "t_step", "L_dec", "L_in", "L_out", "p_chip", "P_chip", "p_rent", "j_byte")
POOLS: dict[str, dict[str, Any]] = {
    "aggregated": {}, "decode": {"mode": "decode"}, "prefill": {"mode": "prefill"},
    "bound": {"estimate": "bound"}, "drawn": {"drawn": True},
    "paid": {"drawn": True, "electricity": 3e-8},
    "load": {"arrivals": 20.0, "spare": 1, "chips": (6,), "mode": "decode"},
}  # fmt: skip


def evaluated(pool: FixedLayout) -> dict[str, float]:
    """Every output of a pool at its batch, nobody waiting."""
    return feed(pool.step.model.lowered("all_outputs"), {**pool.row, "B": pool.batch})


@pytest.mark.parametrize("case", POOLS)
def test_outputs_of_one_pool_move_as_when_evaluated_again(case):
    """Every output that the mode has, by givens of one symbol and of two, the batch held."""
    pool = pool_of(24.0, free=False, **POOLS[case])
    mode = pool.task.mode
    givens = {name: {name: 1.0} for name in SYMBOLS if name in pool.row}
    givens |= {"two": {"W_chip": 1.0, "L_in": 2.0}}
    if mode == "prefill":
        # Rate and prices of reading follow its own time alone.
        del givens["L_dec"]
    if case == "load":
        givens["X_arr"] = {"X_arr": 1.0}
    slopes = one_pool_slopes(pool, pool.response(givens), givens, resized=False)
    absent = {"decode": {"ttft", "e2e"}, "prefill": {"tpot", "e2e"}}.get(mode, set())
    words = {each.name: each.word for each in OUTPUTS if each.name not in absent}
    ends = {
        name: [evaluated(put(pool, moved, by)) for by in (-NEARBY, NEARBY)]
        for name, moved in givens.items()
    }
    at = evaluated(pool)
    assert set(slopes) == {name for name, word in words.items() if word in at}
    for name in set(slopes) - {"batch"}:
        for place, given in enumerate(givens):
            before, after = (end[words[name]] for end in ends[given])
            expected = math.log(after / before) / (2 * NEARBY)
            for side in slopes[name][:, place]:
                assert side == pytest.approx(expected, abs=1e-6), (name, given)
    assert (slopes["batch"] == 0).all()


def test_replicas_that_follow_a_load_pay_for_the_time_of_a_request():
    """A slower slot takes as many more chips; a larger load as many more again, each as full."""
    pool = pool_of(24.0, free=False, mode="decode", arrivals=20.0)
    givens = {"t_step": {"t_step": 1.0}, "X_arr": {"X_arr": 1.0}, "p_chip": {"p_chip": 1.0}}
    response = pool.response(givens)
    slopes = one_pool_slopes(pool, response, givens, resized=True)
    slot = response.slopes["slot"][0, 0]
    assert 0 < slot < 1
    expected = {
        "usd_per_hour": [slot, 1, 1], "tokens_per_s": [0, 1, 0], "usd_per_mtok": [slot, 0, 1],
        "tokens_per_s_per_chip": [-slot, 0, 0], "requests_per_s": [0, 1, 0], "tpot": [slot, 0, 0],
    }  # fmt: skip
    for name, slope in expected.items():
        assert slopes[name] == pytest.approx(np.array([slope] * 2), abs=1e-9), name


def sides(*numbers: float) -> np.ndarray:
    """Slopes by as many givens, the same to the left and to the right."""
    return np.array([numbers] * 2, dtype=float)


FIRST, THEN = "first", "then"  # givens: of the pool that reads, and of the one that decodes


def pools() -> list[Any]:
    """What is read of two pools: lengths, prices, power."""
    row = {"L_in": 3000.0, "L_out": 600.0, "L_dec": 600.0, "m_grid": 2e-4, "p_power": 0.0}
    return [
        SimpleNamespace(row={**row, "p_chip": 1.0, "P_chip": 500.0}),
        SimpleNamespace(row={**row, "p_chip": 2.0, "P_chip": 900.0}),
    ]


def responses(**watts: float) -> list[Any]:
    """Times of two pools, each moved by a given of its own."""
    return [
        SimpleNamespace(values={"ttft": 0.4, **watts},
                        slopes={"ttft": sides(0.7, 0.0), "watts": sides(0.2, 0.0)}),
        SimpleNamespace(values={"tpot": 0.01, **watts},
                        slopes={"tpot": sides(0.0, 0.3), "batch": sides(0.0, 0.9),
                                "watts": sides(0.0, 0.5)}),
    ]  # fmt: skip


def test_outputs_of_two_pools_by_hand():
    """Four chips at one dollar read, eight at two decode: a fifth and four fifths of the price."""
    directions = [{FIRST: {"p_chip": 1.0}, THEN: {}}, {FIRST: {}, THEN: {"L_out": 1.0}}]
    values, slopes = two_pool_slopes(
        pools(), responses(), directions, sides(0.1, -0.2), [sides(0.5, 0.0), sides(0.0, 0.25)],
        [4.0, 8.0], (0.1, np.array([0.0, 2.0])),
    )  # fmt: skip
    assert values == pytest.approx({"ttft": 0.5, "tpot": 0.01})
    bill = [1.5 / 5, 0.25 * 4 / 5]
    e2e = 0.5 + 600 * 0.01
    expected = {
        "ttft": [0.8 * 0.7, 0.2 * 2], "tpot": [0, 0.3], "batch": [0, 0.9],
        "e2e": [0.4 * 0.7 / e2e, (0.1 * 2 + 6 * 0.3) / e2e],
        "requests_per_s": [0.1, -0.2], "tokens_per_s": [0.1, 0.8], "usd_per_hour": bill,
        "usd_per_mtok": [bill[0] - 0.1, bill[1] + 0.2 - 1 / 6],
        "tokens_per_s_per_chip": [0.1 - 0.5 * 4 / 12, 0.8 - 0.25 * 8 / 12],
        "tokens_per_s_per_user": [0, -0.3],
        "watts_per_chip": watts_by_hand(500, 900, 0.0, 0.0),
    }  # fmt: skip
    for name, slope in expected.items():
        assert slopes[name] == pytest.approx(sides(*slope), abs=1e-12), name
    # Energy of a token: what all chips draw, over the tokens of both kinds.
    drawn = [0.5 * 2000 / 9200, 0.25 * 7200 / 9200]
    energy = [drawn[0] - 0.1, drawn[1] + 0.2 - 1 / 6]
    assert slopes["joule_per_token"] == pytest.approx(sides(*energy), abs=1e-12)


def watts_by_hand(first: float, then: float, more: float, yet_more: float) -> list[float]:
    """Slopes of the mean power of four and eight chips, more of which there are with a given."""
    total = 4 * first + 8 * then
    return [
        (0.5 + more) * 4 * first / total - 0.5 * 4 / 12,
        (0.25 + yet_more) * 8 * then / total - 0.25 * 8 / 12,
    ]


def test_power_of_two_pools_is_what_their_work_draws():
    """Where it follows from the work both pools' own watts count, not what is given."""
    directions = [{FIRST: {"P_chip": 5.0}, THEN: {}}, {FIRST: {}, THEN: {"P_chip": 5.0}}]
    _, slopes = two_pool_slopes(
        pools(), responses(watts=300.0), directions, sides(0.0, 0.0),
        [sides(0.5, 0.0), sides(0.0, 0.25)], [4.0, 8.0], (0.1, np.zeros(2)),
    )  # fmt: skip
    expected = watts_by_hand(300, 300, 0.2, 0.5)
    assert slopes["watts_per_chip"] == pytest.approx(sides(*expected), abs=1e-12)
    given = [{FIRST: {"P_chip": 1.0}, THEN: {}}, {FIRST: {}, THEN: {"P_chip": 1.0}}]
    _, slopes = two_pool_slopes(
        pools(), responses(), given, sides(0.0, 0.0),
        [sides(0.5, 0.0), sides(0.0, 0.25)], [4.0, 8.0], (0.1, np.zeros(2)),
    )  # fmt: skip
    expected = watts_by_hand(500, 900, 1.0, 1.0)
    assert slopes["watts_per_chip"] == pytest.approx(sides(*expected), abs=1e-12)


def test_the_slower_of_two_pools_sets_the_rate():
    """A faster slot of the other changes nothing; where both are level the worse side counts."""
    slots = sides(0.5, 0.2, 0.0), sides(0.0, -0.3, 0.4)
    assert slower_rate_slopes((1.0, 2.0), slots) == pytest.approx(sides(-0.5, -0.2, 0.0))
    assert slower_rate_slopes((2.0, 1.0), slots) == pytest.approx(sides(0.0, 0.3, -0.4))
    level = np.array([[0.0, 0.3, 0.0], [-0.5, -0.2, -0.4]])
    for rates in ((1.0, 1.0 + 5e-8), (1.0 + 5e-8, 1.0)):
        assert slower_rate_slopes(rates, slots) == pytest.approx(level)
    assert slower_rate_slopes((1.0, 1.0 + 3e-7), slots) == pytest.approx(sides(-0.5, -0.2, 0.0))


STEP = 1e-4
MODELS = ("llama-3.1-70b", "llama-3.1-8b", "deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b")
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200", "mi300x-8")


def scenario(seed: int) -> dict:
    """A random question that has one pool."""
    rng = random.Random(seed)
    promises = {}
    if rng.random() < 0.7:
        promises["tpot"] = rng.choice([0.02, 0.04, 0.08, 0.2])
    if rng.random() < 0.5:
        promises["ttft"] = rng.choice([1.0, 3.0, 10.0])
    given = {
        "problem": "serving",
        "units": "base",
        "model": rng.choice(MODELS),
        "system": rng.choice(SYSTEMS),
        "chips": rng.choice([8, 16]),
        "price": round(rng.uniform(1.5, 6.0), 2) / 3600,
        "workload": {
            "input_tokens": rng.choice([500, 3000, 12_000]),
            "output_tokens": rng.choice([100, 600, 2000]),
            "cached_input": rng.choice([0, 0, 0.5]),
        },
        "promises": {**promises, "chance": 0.01},  # the factor of a chance moves a little as well
        "choose": {"mode": rng.choice(["aggregated", "aggregated", "decode"])},
        "estimate": rng.choice(["calibrated", "calibrated", "bound"]),
    }
    return given


def found(given: dict):
    """The best point of a question, its givens and its number; None without a plan."""
    asked = load(given)
    questions = all_searches(resolve(asked))
    points = ranked_points(questions)
    if not points:
        return None
    givens = serving_parameters(asked, resolve_hardware(asked))
    number = winner(questions, points[0]).question
    return points[0], fix_layouts(asked, number, points[0]), givens


SMOOTH = ("b_rank", "b_stage", "b_mem", "b_own", "b_slice", "b_state")


class Again:
    """The held problem solved by bisection on equations without ceilings."""

    def __init__(self, task, layouts):
        self.task, self.bound = task, task.uses_bound
        step = Step(task, layouts, bound=self.bound)
        row = step.values(np.array([1.0]))
        self.row = {name: float(np.ravel(v)[0]) for name, v in row.items()}
        self.suffix = "_bound" if self.bound else ""
        kept = tuple(
            e for e in (BOUND if self.bound else ESTIMATE[task.mode]) if e.symbol.name not in SMOOTH
        )
        names = [f"{n}{self.suffix}" for n in ("T_tpot", "T_ttft", "T_slot", "T_pf_busy")]
        names += ["M_need"] + ([] if self.bound else ["phi_mixed"])
        self.kernel = kernel(kept, names)

    def at(self, batch):
        row = dict(self.row, B=batch)
        pp, dp, cp = row["pp"], row["dp"], row["cp"]
        rank, stage, mem = (max(1.0, batch / each) for each in (pp * dp, pp, dp))
        rank += row.get("c_rank", 0.0) * math.sqrt(batch / (pp * dp))
        row |= {"b_rank": rank, "b_stage": stage, "b_mem": mem}
        row |= {"b_own": max(1.0, rank / cp), "b_slice": max(1.0, stage / cp),
                "b_state": max(1.0, mem / cp)}  # fmt: skip
        values = self.kernel(**{name: row[name] for name in self.kernel.names})
        return {name.removesuffix("_bound"): float(v) for name, v in values.items()}

    def kept(self, batch):
        task, v = self.task, self.at(batch)
        held = [v["M_need"] <= task.chip.memory]
        if task.mode == "aggregated" and not self.bound:
            held.append(v["phi_mixed"] <= 1)
        for name in ("tpot", "ttft"):
            if name in task.promises:
                held.append(v[f"T_{name}"] <= task.promises[name])
        return all(held)

    def solved(self):
        low, high = 0.0, math.log(LARGEST_BATCH)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.kept(math.exp(middle)) else (low, middle)
        batch = math.exp(low)
        v, task = self.at(batch), self.task
        per = {"decode": task.output_tokens}.get(task.mode, task.input_tokens + task.output_tokens)
        cost = task.price * v["T_slot"] / per
        return {"usd_per_mtok": cost, "tpot": v["T_tpot"], "ttft": v["T_ttft"],
                "tokens_per_s": task.output_tokens / v["T_slot"], "batch": batch}  # fmt: skip


def held_again(bound, given, factor):
    changed = resolve(given.to(factor))
    (pool,) = bound.pools
    (task,) = bound.tasks(changed)
    return Again(task, pool.layouts).solved() if pool.free else stepped(task, pool)


def stepped(task, pool):
    """A batch of a few sequences, which is held, in the equations as they are."""
    step = Step(task, pool.layouts, bound=task.uses_bound)
    v = {name: float(np.ravel(value)[0]) for name, value in step(np.array([pool.batch])).items()}
    per = {"decode": task.output_tokens}.get(task.mode, task.input_tokens + task.output_tokens)
    return {"usd_per_mtok": v["usd_per_request"] / per, "tpot": v["tpot"], "ttft": v["ttft"],
            "tokens_per_s": task.output_tokens * v["requests"]}  # fmt: skip


def compared(seed: int) -> int:
    """How many elasticities of one random scenario were compared."""
    best = found(scenario(seed))
    if best is None:
        return 0
    point, bound, givens = best
    assert len(point.tasks) == 1
    varied = [given for given in givens if given.to is not None]
    _, slopes = elasticities(bound, varied)
    names = [n for n in ("usd_per_mtok", "tpot", "ttft", "tokens_per_s") if n in slopes]
    flat = bound.pools[0].task.uses_bound
    count = 0
    for i, given in enumerate(varied):
        ends = [held_again(bound, given, math.exp(sign * STEP)) for sign in (1, -1)]
        for name in names:
            if flat and name != "usd_per_mtok":
                continue  # past the critical batch the price does not say which batch it is
            left, right = slopes[name][:, i]
            if abs(left - right) > 1e-6:
                continue  # a kink, which a central difference does not see
            slope = math.log(ends[0][name] / ends[1][name]) / (2 * STEP)
            assert right == pytest.approx(slope, rel=1e-3, abs=1e-3), (seed, given.path, name)
            count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(2, range(6)))
def test_elasticities_are_those_of_solving_again(seed):
    """Price, times and throughput to 1e-3, the layout held."""
    compared(seed)


@pytest.mark.parametrize("seed", [*first(0, range(6, 19)), *seldom(range(19, 100))])
def test_elasticities_of_a_hundred_questions_are_those_of_solving_again(seed):
    """The same of many more."""
    compared(seed)


# -- by hand -------------------------------------------------------------------------------------
def pool_like(**changes: Any) -> Any:
    """What is read of a pool: its replicas and chips, its task, its coefficients."""
    given = {"replicas": 30.0, "chips": 64.0, "replica_chips": 2.0, "loaded": False,
             "batches": None, "on": (64,), "arrivals": None} | changes  # fmt: skip
    task = SimpleNamespace(
        loaded=given["loaded"], batches=given["batches"], chips=given["on"],
        arrivals=given["arrivals"],
    )  # fmt: skip
    layouts = SimpleNamespace(chips=[given["chips"]], replica_chips=[given["replica_chips"]])
    return SimpleNamespace(
        task=task, layouts=layouts, replicas=given["replicas"], up=given["replicas"]
    )


def bound_by(*pools: Any, **changes: Any) -> Bound:
    """A plan of these pools, held."""
    return Bound(None, 0, pools, **changes)  # type: ignore[arg-type]


def test_replicas_are_real_numbers_where_they_are_many_and_may_change():
    """From twenty on, unless a load has its chips, or the pool that decodes its batch."""
    many, few = pool_like(), pool_like(replicas=19.0)
    free = pool_like(loaded=True, on=(8, 16))
    paid = pool_like(loaded=True)
    given = pool_like(batches=(64,))
    for pools, resized, counted, follows in (
        ([many], True, False, False), ([pool_like(replicas=20.0)], True, False, False),
        ([few], False, False, False), ([many, many], True, True, True),
        ([many, few], False, True, True), ([free], True, True, True),
        ([paid], False, True, False), ([many, given], False, True, False),
        ([given, many], True, True, True), ([given], True, False, False),
        ([paid, many], False, True, False), ([many, many, given], False, True, False),
    ):  # fmt: skip
        bound = bound_by(*pools)
        assert (bound.resized, bound.counted, bound.may_follow) == (resized, counted, follows)
        for said in (True, False):
            assert replace(bound, follows=said).resized == said


def level(*numbers: float) -> np.ndarray:
    """Slopes by as many givens, the same to the left and to the right."""
    return np.array([numbers] * 2, dtype=float)


def moving(slot: float, *slopes: float) -> Any:
    """What two pools answer with: the time of a request, and its slopes."""
    return SimpleNamespace(values={"slot": slot}, slopes={"slot": level(*slopes)})


GIVEN = [{"a": {}, "b": {"X_arr": 1.0}}] * 2


def test_pools_that_are_held_serve_what_the_slower_serves():
    """Chips stay; the rate is that of the pool whose replicas are slower, or the load's."""
    moves = [moving(2.0, 0.5, 0.1), moving(4.0, 0.3, 0.2)]
    pools = [pool_like(replicas=1.0, chips=8.0), pool_like(replicas=1.0, chips=16.0)]
    held = bound_by(*pools, follows=False)
    requests, chips, shared, weights = _shared(held, moves, GIVEN)
    assert requests == pytest.approx(level(-0.3, -0.2))
    assert (weights, shared) == ([8.0, 16.0], moves)
    assert all((slope == 0).all() for slope in chips)
    # Prompts that come too slowly leave the other pool its share of them.
    carried = []
    slow = pool_like(replicas=4.0)
    slow.carrying = lambda *given: carried.append(given) or "carried"
    requests, _, shared, _ = _shared(bound_by(pools[0], slow, follows=False), moves, GIVEN)
    assert requests == pytest.approx(level(-0.5, -0.1))
    assert shared == [moves[0], "carried"]
    ((directions, rate, rising),) = carried
    assert (directions, rate) == (GIVEN[1], 0.5)
    assert rising == pytest.approx(requests)
    # Rates that are all but level are one: the pool that decodes is as good as full.
    even = [moves[0], moving(2.0 * (1 - 5e-8), 0.3, 0.2)]
    requests, _, shared, _ = _shared(bound_by(pools[0], pools[0], follows=False), even, GIVEN)
    assert shared == even
    assert requests == pytest.approx(np.array([[-0.3, -0.1], [-0.5, -0.2]]))
    # Of a given batch all is in flight: prompts come in time.
    batch = pool_like(replicas=4.0, batches=(64,))
    requests, _, shared, _ = _shared(bound_by(pools[0], batch, follows=False), moves, GIVEN)
    assert shared == moves
    assert requests == pytest.approx(level(-0.3, -0.2))
    loaded = pool_like(replicas=4.0, chips=16.0, loaded=True)
    requests, chips, shared, weights = _shared(
        bound_by(pools[0], loaded, follows=False), moves, GIVEN
    )
    assert requests == pytest.approx(level(0, 1))
    assert (weights, shared) == ([8.0, 16.0], moves)
    assert all((slope == 0).all() for slope in chips)


def test_pools_that_follow_stay_in_balance():
    """Chips by their times: two of one for 2 s, four of the other for 4 s are four and sixteen."""
    moves = [moving(2.0, 0.5, 0.1), moving(4.0, 0.3, 0.2)]
    pools = [pool_like(replica_chips=2.0), pool_like(replica_chips=4.0)]
    requests, chips, _, weights = _shared(bound_by(*pools, follows=True), moves, GIVEN)
    assert weights == [4.0, 16.0]
    mean = np.array([0.2 * 0.5 + 0.8 * 0.3, 0.2 * 0.1 + 0.8 * 0.2])
    assert requests == pytest.approx(-level(*mean))
    assert chips[0] == pytest.approx(level(0.5, 0.1) - level(*mean))
    assert chips[1] == pytest.approx(level(0.3, 0.2) - level(*mean))
    loaded = [pools[0], pool_like(replica_chips=4.0, loaded=True, on=(8, 16))]
    requests, chips, _, _ = _shared(bound_by(*loaded, follows=True), moves, GIVEN)
    assert requests == pytest.approx(level(0, 1))
    assert chips[1] == pytest.approx(level(0.3, 1.2))


def test_slopes_of_a_plan_are_those_of_its_pools(monkeypatch):
    """One pool by its own response; of two what they share; held where replicas follow a load."""
    parameters = [Parameter("a", None, "", "", symbols=("W_chip",)), Parameter("b", None, "", "")]
    limits = {"tp": (1,), "pp": (2,), "dp_attention": (1,)}
    asked: list[Any] = []

    class Pool(FixedLayout):
        def response(self, directions: Any) -> Any:
            return SimpleNamespace(values=self.free, directions=directions, pool=self)

    def pool(**changes: Any) -> FixedLayout:
        task = question(SMALL["dense"], limits_of=limits, **changes)
        return Pool(task, searched(task).layouts, 24.0, True)

    def single(pool: Any, response: Any, directions: Any, *, resized: bool) -> Any:
        assert response.pool is pool
        assert response.directions == directions
        asked.append((directions, resized))
        return "slopes"

    monkeypatch.setattr(fixed_layout, "one_pool_slopes", single)
    for changes, follows, free, resized in (
        ({}, True, True, False), ({}, False, True, False),
        ({"arrivals": 1.0}, True, False, True), ({"arrivals": 1.0}, False, True, False),
    ):  # fmt: skip
        bound = bound_by(pool(**changes), follows=follows)
        assert elasticities(bound, parameters) == (free, "slopes")
        assert asked.pop() == ({"a": {"W_chip": 1.0}, "b": {}}, resized)
    known = [({"e_w": 1.0},), ({},)]
    elasticities(bound, parameters, known)
    assert asked.pop()[0] == {"a": {"e_w": 1.0}, "b": {}}

    def shared(bound: Any, moves: Any, directions: Any) -> Any:
        assert [move.directions for move in moves] == directions
        return "requests", "chips", moves, "weights"

    def double(pools: Any, moves: Any, directions: Any, *rest: Any) -> Any:
        assert [move.pool for move in moves] == list(pools)
        *named, (moved, late) = rest
        assert named == ["requests", "chips", "weights"]
        return directions, moved, list(late)

    monkeypatch.setattr(fixed_layout, "_shared", shared)
    monkeypatch.setattr(fixed_layout, "two_pool_slopes", double)
    monkeypatch.setattr(fixed_layout, "_later", lambda bound, given: len(given.symbols))
    bound = bound_by(pool(), pool(mode="decode"), moved=0.5)
    directions, moved, late = elasticities(bound, parameters, [({"x": 1.0}, {"y": 2.0}), ({}, {})])
    assert directions == [{"a": {"x": 1.0}, "b": {}}, {"a": {"y": 2.0}, "b": {}}]
    assert (moved, late) == (0.5, [1, 0])


def test_a_plan_is_bound_to_its_question():
    """Questions of one pool come first by their number, those of two after them."""
    first, second = (question(SMALL["dense"], mode=mode) for mode in ("prefill", "decode"))
    pair = SimpleNamespace(prefill=first, decode=second, demand=3.0)
    varied: Any = SimpleNamespace(tasks=["a", "b", "c"], pools=["d", pair])
    pools = [
        SimpleNamespace(promised_step=SimpleNamespace(task=task), layouts=task.mode, batch=64.0)
        for task in (first, second)
    ]
    candidate = SimpleNamespace(resized=lambda: pools, transfer=0.25)
    bound = fix_layouts("scenario", 4, SimpleNamespace(candidate=candidate))  # type: ignore[arg-type]
    assert (bound.scenario, bound.number, bound.moved, bound.follows) == ("scenario", 4, 0.25, None)
    assert [(pool.task, pool.layouts, pool.free) for pool in bound.pools] == [
        (first, "prefill", False), (second, "decode", True)]  # fmt: skip
    assert bound.tasks(varied) == (
        replace(first, arrivals=3.0), replace(second, arrivals=3.0))  # fmt: skip
    assert bound._pools(varied) is pair
    assert replace(bound, number=1, pools=bound.pools[:1]).tasks(varied) == ("b",)


def test_a_symbol_moves_by_its_power():
    """Twice the logarithm of what is looked up on both sides; nothing where it is nothing."""
    step = 1e-5
    assert _power(math.exp(3 * step), math.exp(-3 * step)) == pytest.approx(3, rel=1e-6)
    assert _power(5.0, 5.0) == 0
    assert _power(0.0, 5.0) == _power(5.0, 0.0) == 0
    assert _power(1.0, 1.0 + 1e-15) == 0
    assert _power(1.0 + 1e-13, 1.0) == pytest.approx(5e-9, rel=0.01)


def test_symbols_of_a_given_are_looked_up_or_known(monkeypatch):
    """Of a parameter with a scenario on both sides; else its own, and what an engine slows."""
    limits = {"tp": (1,), "pp": (2,), "dp_attention": (1,)}
    task = question(SMALL["dense"], limits_of=limits)
    pool = FixedLayout(task, searched(task).layouts, 24.0, True)
    bound = bound_by(pool)
    monkeypatch.setattr(fixed_layout, "resolve", lambda varied: varied)

    def longer(factor: float) -> Any:
        return SimpleNamespace(tasks=[replace(task, input_tokens=1000 * factor**2)])

    (found,) = _symbols(bound, Parameter("x", 1.0, "", "", longer))
    assert found == {"L_in": pytest.approx(2)}
    known = Parameter("x", None, "", "", symbols=("W_chip", "no_such"))
    assert _symbols(bound, known) == ({"W_chip": 1.0},)
    powers = {"e_w": {"W_chip": 0.5, "b_kv": 1.0}, "e_kv": {"b_kv": 1.0}, "e_c": {"W_chip": 1e-12}}
    monkeypatch.setattr(Step, "coefficient_powers", lambda *_: powers)
    assert _symbols(bound, known) == ({"W_chip": 1.0, "e_w": 0.5},)


def test_the_way_of_a_cache_moves_with_what_it_is_made_of():
    """One millisecond and 2 GB over four chips of 10 GB/s: 51 ms, of which fifty move."""

    class Pair(SimpleNamespace):
        @property
        def prompt_bytes(self) -> float:
            return 2e9 * self.length

    def resolved(factor: float) -> Any:
        return SimpleNamespace(tasks=[], pools=[Pair(length=factor**3, rate=10e9, latency=1e-3)])

    pool = pool_like()
    bound = Bound(1.0, 0, (pool, pool), moved=0.051)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fixed_layout, "resolve", resolved)
        assert bound.transfer(resolved(1.0)) == pytest.approx(0.051)
        assert bound.transfer(resolved(2.0)) == pytest.approx(0.001 + 8 * 0.05)
        slope = _later(bound, Parameter("x", 1.0, "", "", lambda factor: factor))
    assert slope == pytest.approx(3 * 50 / 51, rel=1e-6)
    assert _later(bound, Parameter("model.kv_bytes_per_token", None, "", "")) == 1
    assert _later(bound, Parameter("model.weight_bytes", None, "", "")) == 0


def test_a_batch_is_a_choice_where_it_is_given_or_small():
    """Twenty sequences and more follow their limits, unless speed or room decide them."""
    task = question(SMALL["dense"])
    for changes, batch, free in (
        ({}, 20.0, True), ({}, 19.0, False), ({"batches": (64,)}, 64.0, False),
        ({"mode": "prefill"}, 64.0, False), ({"objective": "latency"}, 64.0, False),
        ({"objective": "latency", "arrivals": 1.0}, 64.0, True),
        ({"promises": {"cache_fits": 1.0}}, 64.0, False),
        ({"promises": {"cache_fits": 1.0}, "arrivals": 1.0}, 64.0, True),
        ({"promises": {"tpot": 1.0}}, 64.0, True),
    ):  # fmt: skip
        pool = _fixed_layout(replace(task, **changes), None, batch)
        assert (pool.free, pool.batch) == (free, batch), changes
