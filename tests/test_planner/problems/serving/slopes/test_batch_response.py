"""One pool with its layout held: its real batch, and slopes against responding again nearby."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.chips import chip_power
from planner.problems.serving.slopes.batch_response import (
    ARRIVALS,
    LIMIT,
    FixedLayout,
    Response,
    _total,
    waits,
    with_wait,
)
from planner.problems.serving.slopes.directional_derivatives import evaluate_tape
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.task.task import ClosedLoop
from tests.cases.serving import MODELS, question, searched
from tests.loops import for_all

NEARBY = 1e-4  # of a symbol, in logarithms
FULL = 37.6  # sequences, no whole number of any group
GIVENS = {name: {name: 1.0} for name in ("W_chip", "L_dec", "M_cap", "b_store")}
GIVENS |= {"faster": {"W_chip": 1.0, "t_step": -0.5}}


def pool_of(batch: float = 24.0, *, free: bool = True, **changes: Any) -> FixedLayout:
    """Two stages of a dense model, whose memory holds far more than it is asked to."""
    limits = {"tp": (1,), "pp": (2,), "dp_attention": (1,)}
    changes = {"chips": (4,), **changes}
    drawn = changes.pop("drawn", False)
    task = question(MODELS["dense"], batch=4000.0, limits_of=limits, **changes)
    task = replace(task, draw=chip_power(task.chip)) if drawn else task
    layouts = searched(task).layouts
    assert len(layouts) == 1
    return FixedLayout(task, layouts, batch, free)


def put(pool: FixedLayout, moved: dict[str, float], by: float) -> FixedLayout:
    """The pool with symbols moved, each by its power of `exp(by)`."""
    factors = {name: math.exp(power * by) for name, power in moved.items()}
    promises = {
        name: limit * factors.get(f"{LIMIT}{name}", 1.0)
        for name, limit in pool.task.promises.items()
    }
    task = replace(pool.task, promises=promises)
    if task.arrivals is not None and ARRIVALS in factors:
        task = replace(task, arrivals=task.arrivals * factors[ARRIVALS])
    twin = replace(pool, task=task)
    row = {name: value * factors.get(name, 1.0) for name, value in pool.row.items()}
    vars(twin)["row"] = row
    return twin


def smooth(pool: FixedLayout, batch: float) -> dict[str, float]:
    """The outputs at a real batch."""
    return evaluate_tape(pool.tape, pool.row, batch)


def agrees(pool: FixedLayout, givens=GIVENS, nearby=NEARBY, near=2e-5) -> Response:
    """The response, its slopes to either side compared with responses again nearby."""
    response = pool.response(givens)
    for place, (given, moved) in enumerate(givens.items()):
        for side, sign in ((0, -1), (1, 1)):
            there = [put(pool, moved, sign * k * nearby).response({}).values for k in (1, 2)]
            for name, slope in response.slopes.items():
                if not response.values[name]:
                    assert not slope[side, place]
                    continue
                at, one, two = (math.log(v[name]) for v in (response.values, *there))
                expected = sign * (4 * one - two - 3 * at) / (2 * nearby)
                assert slope[side, place] == pytest.approx(expected, abs=near), (given, name, side)
    return response


HOLDS = {
    "tpot": {}, "ttft": {}, "e2e": {}, "memory": {}, "site_power": {"drawn": True},
    "mixed": {"output_tokens": 20.0},
    "decode e2e": {"mode": "decode"},
    "bound tpot": {"estimate": "bound"},
}  # fmt: skip


@for_all("limit", HOLDS)
def test_the_batch_is_what_its_limit_lets_in_and_moves_with_it(limit):
    """What 37.6 sequences take is promised; what they fill is there; slopes to 2e-5."""
    pool = pool_of(**HOLDS[limit])
    values, task = smooth(pool, FULL), pool.task
    name = limit.rpartition(" ")[2]
    first = values.get("ttft", 0.0) if task.mode == "aggregated" else 0.0
    promised = {
        "tpot": values["tpot"], "ttft": values.get("ttft"),
        "e2e": first + pool.row["L_dec"] * values["tpot"],
    }  # fmt: skip
    if name in promised:
        task = replace(task, promises={name: promised[name]})
    if name == "memory":
        row = pool.row
        full = (values["need"] - (1 - row["x_mem"]) * row["M_cap"]) / row["x_mem"]
        task = replace(task, chip=replace(task.chip, memory=full))
    if name == "site_power":
        task = replace(task, site_power=values["watts"] * 4)
    if name == "mixed":
        # Passes have room for so many new tokens a prompt where 37.6 sequences come and go.
        length = pool.row["L_dec"] * 512 * 2 / (FULL - 1)
        task = replace(task, input_tokens=length)
    pool = replace(pool, task=task)
    givens = GIVENS | {f"{LIMIT}{name}": {f"{LIMIT}{name}": 1.0}} if name in promised else GIVENS
    response = agrees(pool, givens)
    assert response.values["batch"] == pytest.approx(FULL, rel=1e-9)
    # A smaller batch to begin from, or a larger one, makes no difference.
    for batch in (2.0, 300.0):
        again = replace(pool, batch=batch).response({})
        assert again.values["batch"] == pytest.approx(FULL, rel=1e-9)
    held = replace(pool, batch=FULL, free=False)
    assert held.response({}).values["batch"] == FULL


def test_without_a_limit_the_batch_is_the_largest_there_is():
    """Memory for more than ever run: no given moves the batch."""
    pool = pool_of()
    pool = replace(pool, task=replace(pool.task, chip=replace(pool.task.chip, memory=1e30)))
    pool.row["kappa"] = pool.row["x_pf"] = 0.0  # no prompt keeps a pass busy
    response = pool.response({"W_chip": {"W_chip": 1.0}})
    assert response.values["batch"] == LARGEST_BATCH
    assert (response.slopes["batch"] == 0).all()


def test_of_two_limits_the_first_met_holds_the_batch():
    """Both at 37.6 sequences: upwards whichever holds it then, downwards whichever falls first."""
    pool = pool_of()
    values = smooth(pool, FULL)
    promises = {"tpot": values["tpot"], "ttft": values["ttft"]}
    pool = replace(pool, task=replace(pool.task, promises=promises))
    limits = {f"{LIMIT}{name}": {f"{LIMIT}{name}": 1.0} for name in promises}
    response = agrees(pool, {"W_chip": {"W_chip": 1.0}, "L_in": {"L_in": 1.0}, **limits})
    grows = response.slopes["batch"]
    # One promise longer is held by the other; one shorter is met.
    assert (grows[1, 2:] == 0).all()
    assert (grows[0, 2:] > 0).all()


KINKED = np.array([[0.5, -0.5, 0.2], [0.5, -0.5, 0.4]])  # by two givens, and by the batch


def test_at_a_kink_a_batch_that_grows_has_its_right_slope():
    """Whichever way the given goes: one that lets it grow when it falls, and one when it rises."""
    grows = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    total = _total({"x": KINKED}, grows)
    assert total["x"] == pytest.approx(np.array([[0.5 - 0.4, -0.5 + 0.2], [0.5 - 0.2, -0.5 + 0.4]]))
    assert total["batch"] is grows
    pool = pool_of(promises={"tpot": 1.0})
    values = {"need": 0.0, "mixed": 0.0, "tpot": 1.0}
    growth = pool._growth(values, {"tpot": KINKED}, {"a": {}, "b": {}})
    assert growth == pytest.approx(np.array([[-0.5 / 0.4, 0.5 / 0.2], [-0.5 / 0.2, 0.5 / 0.4]]))
    # Short of every limit, or where no batch changes what is limited, nothing moves it.
    for less, flat in ((1 - 1e-6, KINKED), (1.0, KINKED * [1, 1, 0])):
        short = pool._growth({**values, "tpot": less}, {"tpot": flat}, {"a": {}, "b": {}})
        assert (short == 0).all()
    # A limit that holds it on one side alone lets it go as far as that side tells.
    level = KINKED * [1, 1, 0] + [[0, 0, 0.0], [0, 0, 0.4]]
    growth = pool._growth(values, {"tpot": level}, {"a": {}, "b": {}})
    assert growth == pytest.approx(np.array([[-0.5 / 0.4, 0.5 / 0.4]] * 2))

    class Kinked(FixedLayout):
        def _at(self, batch: float, directions: Any) -> Any:
            return {"slot": 1.0}, {"slot": KINKED * [1, 1, -1]}

        def _carries(self, load: float) -> float:
            return 24.0

    carried = Kinked(pool.task, pool.layouts, 24.0, True).carrying(
        {"a": {}, "b": {}}, 1.0, np.array([0.1, 0.1])
    )
    expected = np.array([[0.6 / 0.2, -0.4 / 0.4], [0.6 / 0.4, -0.4 / 0.2]])
    assert carried.slopes["batch"] == pytest.approx(expected)


def test_a_batch_that_is_held_does_not_move():
    """Slopes are those at the batch as it is, ceilings and all."""
    pool = pool_of(23.0, free=False, promises={"tpot": 1e-9})
    response = agrees(pool)
    assert (response.slopes["batch"] == 0).all()
    exact = pool.step(np.array([23.0]))
    for name in ("ttft", "tpot", "slot", "busy", "need"):
        assert response.values[name] == pytest.approx(float(np.ravel(exact[name])[0])), name


LOADED = {"aggregated": {}, "decode": {"mode": "decode"}, "bound": {"estimate": "bound"},
          "spare": {"spare": 1, "headroom": 0.2, "chips": (6,)}}  # fmt: skip


@pytest.mark.parametrize("case", LOADED)
def test_the_batch_carries_its_load_and_moves_with_it(case):
    """Slots of 37.6 sequences are as many as the load keeps in use, of the replicas that run."""
    pool = pool_of(300.0, **{"arrivals": 1.0, **LOADED[case]})
    up = {"spare": 2}.get(case, 2)
    assert pool.replicas == up + pool.task.spare
    assert pool.up == up
    slot = smooth(pool, FULL)["slot"]
    load = up * (1 - pool.task.headroom) / slot
    pool = replace(pool, task=replace(pool.task, arrivals=load))
    response = agrees(pool, {**GIVENS, "load": {ARRIVALS: 1.0}})
    assert response.values["batch"] == pytest.approx(FULL, rel=1e-9)
    assert response.slopes["batch"][1, -1] > 1 or case == "bound"
    # What next to nothing brings one sequence carries, and no batch what is beyond all.
    none = replace(pool, task=replace(pool.task, arrivals=load / 1e6)).response({})
    assert none.values["batch"] == 1.0
    beyond = replace(pool, task=replace(pool.task, arrivals=load * 1e6)).response({})
    assert beyond.values["batch"] == 300.0
    few = up * (1 - pool.task.headroom) / smooth(pool, 1.8)["slot"]
    carried = replace(pool, task=replace(pool.task, arrivals=few)).response({}).values["batch"]
    assert carried == pytest.approx(1.8, rel=1e-9) or case == "bound"


def test_a_pool_that_follows_another_carries_its_rate():
    """At the rate of the other, which a given moves as well, up to the largest batch it has."""
    pool = pool_of(20.0, mode="decode")
    tpot = smooth(pool, FULL)["tpot"]
    pool = replace(pool, task=replace(pool.task, promises={"tpot": tpot}))
    rate = 2 / smooth(pool, 30.5)["slot"]
    rising = np.array([[0.3], [0.5]])
    response = pool.carrying({"W_chip": {"W_chip": 1.0}}, rate, rising)
    assert response.values["batch"] == pytest.approx(30.5, rel=1e-9)
    for side, sign in ((0, -1), (1, 1)):
        nearby = put(pool, {"W_chip": 1.0}, sign * NEARBY)
        moved = rate * math.exp(sign * NEARBY * rising[side, 0])
        there = nearby.carrying({}, moved, np.zeros((2, 0))).values
        for name in ("batch", "tpot", "slot"):
            slope = sign * math.log(there[name] / response.values[name]) / NEARBY
            assert response.slopes[name][side, 0] == pytest.approx(slope, rel=2e-3), name
    most = pool.carrying({}, 100 * rate, np.zeros((2, 0))).values["batch"]
    assert most == pytest.approx(FULL, rel=1e-9)


def test_where_a_larger_batch_is_no_cheaper_it_is_the_smallest_that_is_as_cheap():
    """The bound's price falls until arithmetic is the highest roof: that batch, and how it moves.

    Bytes of weights over bandwidth are then as long as the products of so many sequences.
    """
    limits = {"tp": (1,), "pp": (1,), "dp_attention": (1,)}
    task = question(MODELS["dense"], batch=4e4, mode="decode", estimate="bound", chips=(1,),
                    context=0.0, limits_of=limits)  # fmt: skip
    task = replace(task, chip=replace(task.chip, memory=1e9))
    pool = FixedLayout(task, searched(task).layouts, 3000.0, True)
    row = pool.row
    products = row["c_fwd"] * sum(row[f"N_{part}"] / row[f"F_{part}"]
                                  for part in ("attn", "ffn", "head"))  # fmt: skip
    turn = row["S_fixed"] / row["W_chip"] / products
    givens = {"W_chip": {"W_chip": 1.0}, "S_fixed": {"S_fixed": 1.0}, "t": {"L_dec": 1.0}}
    response = pool.response(givens)
    assert response.values["batch"] == pytest.approx(turn, rel=1e-6)
    assert response.slopes["batch"] == pytest.approx(np.array([[-1, 1, 0]] * 2), abs=1e-6)
    # A step of more sequences is as long as they are many, whatever bandwidth is.
    assert response.slopes["slot"] == pytest.approx(np.array([[0, 0, 1]] * 2), abs=1e-6)
    assert response.slopes["tpot"] == pytest.approx(np.array([[-1, 1, 0]] * 2), abs=1e-6)


def test_first_tokens_wait_under_a_load_and_in_a_loop_where_prompts_are_read():
    """The bound knows no queue, and a pool that only decodes reads nothing."""
    task = question(MODELS["dense"])
    for changes, late in (
        ({}, False), ({"arrivals": 1.0}, True), ({"loop": ClosedLoop()}, True),
        ({"arrivals": math.inf}, False), ({"arrivals": 1.0, "mode": "prefill"}, True),
        ({"arrivals": 1.0, "mode": "decode"}, False),
        ({"arrivals": 1.0, "estimate": "bound"}, False),
    ):  # fmt: skip
        assert waits(replace(task, **changes)) == late, changes


@pytest.mark.parametrize("case", ["load", "loop"])
def test_a_wait_moves_with_what_it_waits_for(case):
    """Time to first token at a held batch is the step's own, and its slopes, batch and all."""
    changes = {"arrivals": 20.0} if case == "load" else {"loop": ClosedLoop(poll=2.0, hold=3.0)}
    pool = pool_of(24.0, free=False, **changes)
    names = ("W_chip", "t_pf_chunk", "X_arr") if case == "load" else ("W_chip", "t_pf_chunk")
    givens = {name: {name: 1.0} for name in names} | {"both": {"W_chip": 2.0, "t_pf_chunk": 0.5}}
    response = agrees(pool, givens, near=1e-4)
    exact = float(np.ravel(pool.step(np.array([24.0]))["ttft"])[0])
    assert response.values["ttft"] == pytest.approx(exact, rel=1e-9)
    alone = evaluate_tape(pool.tape, pool.row, 24.0)["ttft"]
    assert exact > 1.01 * alone
    nothing = alone, np.zeros((2, len(givens) + 1))
    tape = replace(pool, free=True).tape
    total, slopes = with_wait(pool.task, tape, pool.row, 24.0, givens, nothing)
    assert total == pytest.approx(exact, rel=1e-9)
    later = [with_wait(pool.task, tape, pool.row, 24 * math.exp(by), {}, nothing)[0]
             for by in (-NEARBY, NEARBY)]  # fmt: skip
    # Of the wait alone, as a share of the whole.
    assert slopes[:, -1] * total == pytest.approx((later[1] - later[0]) / (2 * NEARBY), rel=1e-3)
