"""Elasticities of outputs: of one pool against evaluating again, of two by shares and by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.outputs import OUTPUTS
from planner.problems.serving.slopes.batch_response import FixedLayout
from planner.problems.serving.slopes.output_slopes import (
    one_pool_slopes,
    slower_rate_slopes,
    two_pool_slopes,
)
from planner.problems.serving.step.kernels import fed
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
    return fed(pool.step.model.lowered("all_outputs"), {**pool.row, "B": pool.batch})


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
