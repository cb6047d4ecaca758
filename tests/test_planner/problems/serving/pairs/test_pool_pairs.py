"""Each step of the search over pairs of pools against loops over every pair, split and chips."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.chips import chip, chip_power
from planner.problems.serving.deployment.marginal_prices import pools_symbols
from planner.problems.serving.pairs import pool_pairs
from planner.problems.serving.pairs.evaluated_pairs import evaluate_pair
from planner.problems.serving.pairs.pool_pairs import Pair
from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.task.task import TaskPair
from tests.cases.serving import dense, product
from tests.cases.two_pools import phase, pools_of, solved, steps_of
from tests.loops import for_all

MODEL = dense(2)
# Layouts that read and that decode, replicas of different chips, rates, prices and times. Chips
# that decode are no dearer: those that no replica uses are theirs.
READS = {"stage": [1, 2, 3], "rate": [2.0, 5.0, 6.5], "weight": [1.2, 1.5, 2.0],
         "latency": [0.3, 0.2, 0.1], "batch": [1.0, 2.0, 3.0], "slot": [0.5, 0.2, 0.1]}  # fmt: skip
DECODES = {"stage": [1, 2, 4], "rate": [1.5, 4.0, 7.0], "weight": [1.0, 1.2, 0.7],
           "latency": [4.0, 3.0, 2.0], "batch": [8.0, 16.0, 48.0],
           "slot": [5.0, 4.0, 6.0]}  # fmt: skip
OBJECTIVES = ("cost", "throughput", "latency")


def crossed() -> tuple[PhaseLayouts, PhaseLayouts]:
    """Every pair of the layouts above, as rows of both."""
    i, j = (column.ravel() for column in np.indices((3, 3)))
    return phase(**READS).take(i), phase(**DECODES).take(j)


def question(**changes: Any) -> TaskPair:
    """A question of two pools of the same system, whose layouts do not matter here."""
    return pools_of(MODEL, domain=8, **changes)


@pytest.mark.parametrize("together", [1, 3, 100])
def test_pairs_are_all_of_one_group(monkeypatch, together):
    """Every row of either pool with every row of the other where both have the group."""
    monkeypatch.setattr(pool_pairs, "MAX_SORTED", together)
    first, second = np.array([0, 0, 2, 2, 3, 7]), np.array([0, 2, 2, 2, 5, 7, 7])
    expected = [(i, j) for i, j in itertools.product(range(6), range(7)) if first[i] == second[j]]
    every = np.arange(7)
    blocks = [*pool_pairs._pairs(first, second, every)]
    assert [x for i, j in blocks for x in zip(i.tolist(), j.tolist(), strict=True)] == expected
    assert [i.size for i, _ in blocks[:-1]] == [together] * (len(blocks) - 1)
    some = np.array([0, 3, 6])
    i, j = (np.concatenate(x) for x in zip(*pool_pairs._pairs(first, second, some), strict=True))
    assert [*zip(i.tolist(), j.tolist(), strict=True)] == [(0, 0), (1, 0), (2, 3), (3, 3), (5, 6)]
    assert not [*pool_pairs._pairs(first, second + 10, every)]
    assert not [*pool_pairs._pairs(first[:0], second, every)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_least_score_is_that_of_chips_split_at_will(objective):
    """The best of many splits of 12 chips where replicas need not be whole."""
    (a, b), paid = crossed(), np.array([4, 12])
    least = pool_pairs._least_score(question(chips=(4, 12), objective=objective), a, b, paid)
    share = np.linspace(0, 1, 40_001)[1:-1, None]
    read, decode = 12 * share * a.rate / a.room.chips, 12 * (1 - share) * b.rate / b.room.chips
    served = np.minimum(read, decode)
    bill = 12 * (share * a.weight + (1 - share) * b.weight)
    score = {"cost": bill / served, "throughput": 1 / served, "latency": a.latency + b.latency}
    expected = np.min(np.broadcast_to(score[objective], served.shape), axis=0)
    np.testing.assert_allclose(least, expected, rtol=1e-3)
    assert (least <= expected * (1 + 1e-12)).all()


@pytest.mark.parametrize("spare", [0, 1])
def test_the_least_bill_of_a_load_is_of_the_fewest_chips_that_hold_its_replicas(spare):
    """Whole replicas, as many as the load asks for and the spare ones, the rest of the chips."""
    (a, b), paid = crossed(), np.array([4, 7, 12])
    pools = question(chips=(4, 7, 12), spare=spare, demand=6.0)
    for row, least in enumerate(pool_pairs._least_score(pools, a, b, paid)):
        n, m = (math.ceil(6.0 / of.rate[row]) + spare for of in (a, b))
        read, decode = n * a.stage[row], m * b.stage[row]
        chips = min((one for one in (4, 7, 12) if one >= read + decode), default=math.inf)
        bill = read * a.weight[row] + (chips - read) * b.weight[row]
        assert least == pytest.approx(bill / 6.0)
    every = pool_pairs._least_score(question(demand=4.0, objective="throughput"), a, b, paid)
    np.testing.assert_array_equal(every, 0.25)


@pytest.mark.parametrize("demand", [None, 6.0])
@pytest.mark.parametrize("chips", [(9,), (7, 9, 12)])
def test_under_a_load_the_fewest_chips_that_hold_it_are_tried(demand, chips):
    """Of several numbers of chips; of one, or without a load, every number is tried."""
    (a, b), paid = crossed(), np.array(chips)
    pools = question(chips=chips, demand=demand)
    rows, tried = pool_pairs._paying(pools, a, b, paid)
    expected = list(itertools.product(range(9), chips))
    if demand and len(chips) > 1:
        expected = [
            (row, fits[0])
            for row in range(9)
            if (fits := [one for one in chips if holds(a, b, row, one)])
        ]
        assert {7, 9} <= {fewest for _, fewest in expected}
    assert sorted(zip(rows.tolist(), tried.tolist(), strict=True)) == expected


def holds(a: PhaseLayouts, b: PhaseLayouts, row: int, chips: int) -> bool:
    """Whether domains of eight chips, the last a smaller one, hold replicas for 6 requests/s."""
    n, m = (math.ceil(6.0 / of.rate[row]) for of in (a, b))
    domains = [8] * (chips // 8) + [chips % 8]

    def placed(sizes: list[int], free: list[int]) -> bool:
        if not sizes:
            return True
        return any(
            placed(sizes[1:], [room - sizes[0] * (k == at) for k, room in enumerate(free)])
            for at in range(len(free))
            if free[at] >= sizes[0]
        )

    return placed(sorted([a.stage[row]] * n + [b.stage[row]] * m, reverse=True), domains)


@for_all("case", product(objective=OBJECTIVES, demand=(None, 3.0), spare=(0, 1)))
def test_the_split_of_each_pair_is_the_best_of_all(case):
    """Every number of replicas of either pool on every number of chips, prices by hand."""
    a, b = crossed()
    chips = (6, 8)
    pools = question(chips=chips, **case)
    rows = [at.ravel() for at in np.meshgrid(range(9), chips, indexing="ij")]
    pairs = pool_pairs._split(pools, a.take(rows[0]), b.take(rows[0]), rows[1])
    assert pairs
    best = {
        (int(a.rows[k]), int(b.rows[k])): split
        for k in range(9)
        if (split := best_split(a, b, k, chips, **case)) is not None
    }
    for pair in pairs:
        i, j = pair.rows
        (n, m), (read, decode) = pair.replicas, pair.chips
        bill = read * READS["weight"][i] + decode * DECODES["weight"][j]
        by_hand = {"cost": bill / pair.requests, "throughput": 1 / pair.requests}
        assert pair.score == pytest.approx(by_hand.get(case["objective"], pair.latency))
        assert pair.score >= best[pair.rows] * (1 - 1e-12)
        assert read == n * READS["stage"][i]
        assert read + decode in chips
        assert m * DECODES["stage"][j] <= decode
        most = min((n - case["spare"]) * READS["rate"][i], (m - case["spare"]) * DECODES["rate"][j])
        assert pair.requests == pytest.approx(case["demand"] or most)
        assert pair.latency == pytest.approx(READS["latency"][i] + DECODES["latency"][j])
        assert (pair.reads, pair.batch) == (READS["batch"][i], DECODES["batch"][j])
        assert pair.slots == (READS["slot"][i], DECODES["slot"][j])
        assert pair.fills == (1.0, 1.0)
    # Of those that decode each has a pair that is as good as any with it.
    for j in range(3):
        scores = [score for rows, score in best.items() if rows[1] == j]
        mine = [pair.score for pair in pairs if pair.rows[1] == j]
        assert min(mine, default=0.0) == pytest.approx(min(scores, default=0.0))


def best_split(
    a: PhaseLayouts, b: PhaseLayouts, k: int, chips: tuple[int, ...], **case: Any
) -> float | None:
    """The least objective of one pair over replicas and chips of one domain; None if none does."""
    scores, spare, demand = [], case["spare"], case["demand"]
    for whole in chips:
        for n, m in itertools.product(range(1 + spare, whole), repeat=2):
            read = n * int(a.stage[k])
            most = min((n - spare) * a.rate[k], (m - spare) * b.rate[k])
            if read + m * b.stage[k] > whole or most < (demand or 0.0):
                continue
            served = demand or most
            bill = read * a.weight[k] + (whole - read) * b.weight[k]
            score = {"cost": bill / served, "throughput": 1 / served,
                     "latency": a.latency[k] + b.latency[k]}[case["objective"]]  # fmt: skip
            scores.append(float(score))
    return min(scores, default=None)


def test_idle_chips_of_two_systems_are_of_the_cheaper_one():
    """One replica of four dear chips decodes, one cheap chip reads enough: seven are paid."""
    one = {"tp": (1,), "pp": (1,), "dp_attention": (1,)}
    dear = {"price": 10 / 3600, "limits_of": {**one, "tp": (4,)}}
    _, pairs = solved(pools_of(MODEL, chips=(7,), limits_of=one, second=dear))
    best = pairs[0]
    assert (best.replicas, best.chips) == ((3, 1), (3, 4))
    assert best.score == pytest.approx((3 * 3.5 + 4 * 10) / 3600 / best.requests)


def random_systems(seed: int) -> tuple[TaskPair, PhaseLayouts, PhaseLayouts]:
    """A question of two systems of random domains, prices and units, and layouts of either."""
    draw = random.Random(seed)
    unit, spare = draw.choice([1, 1, 2, 4, 8]), draw.choice([0, 0, 1])
    units = [unit, unit * random.Random(-seed).choice([1, 1, 2, 4])]
    random.Random(seed + 1000).shuffle(units)
    chips = {unit * draw.randint(max(1, 2 // unit), max(2, 24 // unit)) for _ in range(2)}

    def table() -> PhaseLayouts:
        domain, count = draw.choice([2, 4, 8]), draw.randint(1, 2)
        stages = [x for x in (1, 2, 3, 4, 5, 8) if x <= domain]
        columns = {"stage": stages, "stages": [1, 1, 2, 3]}
        whole = {name: draw.choices(of, k=count) for name, of in columns.items()}
        rates, late = ([draw.uniform(0.3, 9) for _ in range(count)] for _ in range(2))
        return phase(**whole, rate=rates, weight=draw.uniform(0.2, 6), latency=late, domain=domain)

    def limits() -> dict[str, tuple[int, ...]]:
        return {"replicas": (draw.randint(1 + spare, 4),)} if draw.random() < 0.2 else {}

    pools = question(
        chips=tuple(sorted(chips)), objective=draw.choice(["cost", *OBJECTIVES]), spare=spare,
        demand=draw.choice([None, draw.uniform(0.5, 20)]), limits_of=limits(),
        second={"system": "hgx-h100", "limits_of": limits()},
    )  # fmt: skip
    rented = (task.with_layout(unit=n) for task, n in zip(pools.tasks, units, strict=True))
    return replace(pools, **dict(zip(("prefill", "decode"), rented, strict=True))), table(), table()


def most_in(chips: int, stage: int, stages: int, domain: int) -> int:
    """Replicas that domains hold, stage by stage."""
    held = [room // stage for room in [domain] * (chips // domain) + [chips % domain]]
    return sum(held) // stages


@for_all("seed", range(150))
def test_no_split_of_two_systems_is_better(seed):
    """Whole units of either system, any replicas that they hold: every one of them by loops."""
    pools, a, b = random_systems(seed)
    spare, wanted = pools.prefill.spare, [x.limits_of.get("replicas") for x in pools.tasks]
    scores = []
    for i, j in itertools.product(range(a.rate.size), range(b.rate.size)):
        for whole in pools.prefill.chips:
            for read in range(0, whole + 1, pools.prefill.unit):
                if (whole - read) % pools.decode.unit:
                    continue
                most = [
                    most_in(chips, int(of.stage[k]), int(of.stages[k]), int(of.domain[k]))
                    for chips, of, k in ((read, a, i), (whole - read, b, j))
                ]
                counts = [
                    [n for n in limit or range(1 + spare, top + 1) if n <= top]
                    for limit, top in zip(wanted, most, strict=True)
                ]
                bill = read * a.weight[i] + (whole - read) * b.weight[j]
                for n, m in itertools.product(*counts):
                    served = min((n - spare) * a.rate[i], (m - spare) * b.rate[j])
                    if served < (pools.demand or 0.0):
                        continue
                    by = {"cost": bill / (pools.demand or served), "latency":
                          a.latency[i] + b.latency[j],
                          "throughput": 1 / (pools.demand or served)}  # fmt: skip
                    scores.append(by[pools.prefill.objective])
    best, _ = pool_pairs.best_pairs(pools, (a, b))
    assert [one.score for one in best[:1]] == pytest.approx(sorted(scores)[:1], rel=1e-9)
    for one in best:
        (read, decode), (n, m), (i, j) = one.chips, one.replicas, one.rows
        assert read % pools.prefill.unit == decode % pools.decode.unit == 0
        assert read + decode in pools.prefill.chips
        assert n <= most_in(read, int(a.stage[i]), int(a.stages[i]), int(a.domain[i]))
        assert m <= most_in(decode, int(b.stage[j]), int(b.stages[j]), int(b.domain[j]))


def test_of_splits_that_are_alike_those_near_the_best_of_each_decoding_layout_lead():
    """Each layout that decodes has its best split, and those beside it that rounding parts."""
    close = 1 + 2e-9
    score = np.array([1.0, 2.0, close, 2.0 * close, 1.1, 3.0])
    decode = np.array([5, 4, 5, 4, 5, 9])
    order = np.argsort(score, kind="stable")
    assert pool_pairs._leading(score, decode, order).tolist() == [0, 2, 1, 3, 5]
    score[[2, 3]] = 1 + 6e-9, 2 * (1 + 6e-9)
    order = np.argsort(score, kind="stable")
    assert pool_pairs._leading(score, decode, order).tolist() == [0, 1, 5]


@pytest.mark.parametrize("demand", [None, 3.0])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_split_is_scored_by_the_slower_pool_without_the_spare_replicas(objective, demand):
    """One spare replica of each: none of one pool, one more, several; more than chips hold."""
    a = phase(rate=[2.0] * 5, weight=1.0, stage=2, latency=0.25)
    b = phase(rate=[3.0] * 5, weight=4.0, latency=2.0)
    n, m, chips = np.array([1, 3, 3, 0, 5]), np.array([2, 1, 4, 0, -1]), np.array([9, 9, 12, 9, 9])
    pools = question(objective=objective, demand=demand, spare=1)
    taken, served, score = pool_pairs._scored(pools, a, b, n, m, chips)
    assert taken.tolist() == (2 * n).tolist()
    expected = [demand * up if demand else up * 4.0 for up in (0, 0, 1, 0, 0)]
    np.testing.assert_allclose(served, expected)
    works = served > 0
    bills = (2 * n + 4.0 * (chips - 2 * n))[works]
    by_hand = {"cost": bills / served[works], "throughput": 1 / served[works], "latency": [2.25]}
    np.testing.assert_allclose(score[works], by_hand[objective])


def test_energy_of_readers_that_wait_is_that_of_chips_in_part_idle():
    """Three replicas read 6 requests/s at most, two decode 5: readers work five sixths of it."""
    draw = chip_power(chip("h200"))
    assert draw is not None
    a, b = phase(rate=[2.0], weight=[300.0]), phase(rate=[2.5], weight=[500.0])
    idle = draw.idle
    for demand, served in ((None, 5.0), (3.0, 3.0)):
        pools = question(objective="energy", draw=draw, demand=demand)
        counts = np.array([3]), np.array([2]), np.array([8])
        _, _, score = pool_pairs._scored(pools, a, b, *counts)
        watts = idle + served / 6.0 * (300.0 - idle)
        np.testing.assert_allclose(score, (3 * watts + 2 * 500.0 + 3 * idle) / served)


def test_splits_that_share_the_best_score_are_so_many_at_most():
    """Layouts that decode alike are as many pairs, of which a few are enough."""
    many = phase(rate=np.full(80, 4.0))
    a, b, chips = phase(rate=np.full(80, 4.0), rows=0), many, np.full(80, 2)
    assert len(pool_pairs._split(question(), a, b, chips)) == pool_pairs.MAX_TIES == 64


def test_of_splits_that_cost_the_same_the_one_that_reads_sooner_stays():
    """Of three replicas two may read or two decode: one request a second either way."""
    a = phase(rate=[1.0], weight=[1.0])
    (split,) = pool_pairs._split(question(), a, a, np.array([3]))
    assert (split.replicas, split.requests) == ((2, 1), 1.0)


def test_energy_is_scored_by_what_chips_draw():
    """Joule per request: chips of either pool times the watts of each, over what is served."""
    a, b = phase(rate=[2.0], weight=[300.0]), phase(rate=[3.0], weight=[500.0])
    pools = question(objective="energy")
    counts = np.array([3]), np.array([2]), np.array([8])
    taken, served, score = pool_pairs._scored(pools, a, b, *counts)
    assert (taken.tolist(), served.tolist()) == ([3], [6.0])
    np.testing.assert_allclose(score, (3 * 300.0 + 5 * 500.0) / 6.0)


def test_chips_that_work_less_than_they_could_draw_less():
    """Between idle and what they draw at work, by the share of their time that is used."""
    draw = chip_power(chip("h200"))
    assert draw is not None
    of, share = phase(weight=[400.0] * 3), np.array([0.25, 1.0, 0.0])
    task = question(objective="energy", draw=draw, site=1.5, power=200.0).prefill
    idle = 1.5 * draw.idle
    drawn = pool_pairs._drawn(task, of, share)
    np.testing.assert_allclose(drawn, [idle + 0.25 * (400.0 - idle), 400.0, idle])
    for other in (replace(task, draw=None), replace(task, estimate="bound")):
        np.testing.assert_array_equal(pool_pairs._drawn(other, of, share), 400.0)


@for_all("seed", range(60))
def test_no_split_draws_less(seed):
    """Of one system or two: replicas at work, readers that wait and chips of no replica by loops.

    Without a load, under which what the best draw is worked out in full.
    """
    draw = random.Random(seed)
    chips, laws = draw.randint(3, 20), [chip_power(chip(name)) for name in ("h200", "h100")]
    first, second = laws if seed % 2 else laws[:1] * 2
    assert first is not None
    assert second is not None
    apart = {"second": {"system": "hgx-h100", "draw": second}} if seed % 2 else {}
    pools = question(chips=(chips,), objective="energy", draw=first, **apart)
    a, b = (
        phase(
            stage=[draw.choice([1, 2, 4])], rate=draw.uniform(0.3, 9), domain=32,
            weight=law.idle * draw.uniform(1.3, 4),
        )
        for law in (first, second)
    )  # fmt: skip
    (read, x, at), (decode, y, work) = (
        (int(of.stage[0]), float(of.rate[0]), float(of.weight[0])) for of in (a, b)
    )
    scores = []
    for n, m in itertools.product(range(1, chips), repeat=2):
        idle = chips - n * read - m * decode
        if idle < 0:
            continue
        served = min(n * x, m * y)
        reading = first.idle + served / (n * x) * (at - first.idle)
        least = min(first.idle, second.idle)
        watts = n * read * reading + m * decode * work + idle * least
        scores.append(watts / served)
    best, _ = pool_pairs.best_pairs(pools, (a, b))
    assert [one.score for one in best[:1]] == pytest.approx(sorted(scores)[:1], rel=1e-9)


def pair(score: float, decode: int, latency: float = 1.0) -> Pair:
    """A pair of which only the score, the layout that decodes and the latency count."""
    return Pair(score, latency, (0, decode), (1, 1), (1, 1), 1.0, 1.0, 1.0, (1.0, 1.0), (1.0, 1.0))


def test_the_best_few_pairs_have_each_another_layout_that_decodes():
    """In the order of their scores, the quicker first where these are one price."""
    same = 1 + 0.4e-9
    old = [pair(1.0, 0, 2.0), pair(2.0, 1)]
    new = [
        pair(same, 2, 1.0),
        pair(1.5, 1),
        pair(3.0, 0),
        *(pair(4.0 + k, 3 + k) for k in range(9)),
    ]
    merged = pool_pairs._merged(old, new)
    assert [one.rows[1] for one in merged] == [2, 0, 1, 3, 4, 5]
    assert merged[2].score == 1.5
    assert len(merged) == pool_pairs.N_PAIRS
    assert pool_pairs._merged([], []) == []
    assert pool_pairs._merged([pair(1.0, 0)], [pair(1 + 3e-9, 2, 0.1)])[0].rows[1] == 0


class Joinable:
    """A step that says which others it may be joined with."""

    def __init__(self, value: tuple[object, ...] | None) -> None:
        self.value = value

    def joinable(self) -> tuple[object, ...] | None:
        """The value."""
        return self.value


def test_questions_are_alike_where_all_their_steps_and_keys_are():
    """Those whose steps cannot be joined stand alone; numbers keep their order."""
    one, two, alone = Joinable(("a",)), Joinable(("b",)), Joinable(None)
    steps: Any = [(one, one), (one, two), (one, one), (one, alone), (one, alone), (one, two)]
    assert pool_pairs.group_compatible_steps(steps) == [[0, 2], [1, 5], [3], [4]]
    assert pool_pairs.group_compatible_steps(steps, [*"xyxxxz"]) == [[0, 2], [1], [3], [4], [5]]


def test_parts_that_are_looked_at_together_double(monkeypatch):
    """Few pairs at first, then twice as many each time up to the most; none is left out."""
    monkeypatch.setattr(pool_pairs, "FIRST_SPLITS", 2)
    monkeypatch.setattr(pool_pairs, "MAX_SPLITS", 8)
    pools = question(chips=(2, 4))
    looked = []

    def split(_: Any, a: PhaseLayouts, b: PhaseLayouts, chips: np.ndarray) -> list[Pair]:
        looked.append((a.rows.tolist(), b.rows.tolist(), chips.tolist()))
        return []

    monkeypatch.setattr(pool_pairs, "_split", split)
    reads, decodes = phase(rate=np.arange(1.0, 6.0)), phase(rate=np.arange(1.0, 5.0))
    best, count = pool_pairs.best_pairs(pools, (reads, decodes))
    # Two numbers of chips: a part of s splits are s / 2 pairs.
    assert [len(rows) for rows, _, _ in looked] == [2, 4, 8, 8, 8, 8, 2]
    assert (best, count) == ([], 40)
    splits = [split for part in looked for split in zip(*part, strict=True)]
    assert sorted(splits) == [*itertools.product(range(5), range(4), (2, 4))]
    least = [1 / (i + 1) + 1 / (j + 1) for i, j, _ in splits]
    assert least == sorted(least)


def test_a_search_ends_where_no_pair_left_can_be_among_the_best(monkeypatch):
    """What is left out promises no less than the last of the best few."""
    monkeypatch.setattr(pool_pairs, "FIRST_SPLITS", 1)
    monkeypatch.setattr(pool_pairs, "MAX_SPLITS", 1)
    reads, decodes = phase(rate=np.full(1, 50.0)), phase(rate=np.arange(1.0, 31.0))
    pools = question(chips=(8,))
    best, looked = pool_pairs.best_pairs(pools, (reads, decodes))
    assert [one.rows[1] for one in best] == [29, 28, 27, 26, 25, 24]
    assert pool_pairs.N_PAIRS <= looked < 30
    every = np.sort(1 / 50 + 1 / decodes.rate)
    assert every[looked] >= best[-1].score / (1.0 + 1e-12) or looked == 30


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_of_a_given_batch_each_kind_stands_for_its_slower_layouts(objective):
    """The fastest that decode come first, and others of their kind where prompts are too slow."""
    pools = question(chips=(4,), objective=objective, output_tokens=20.0, batch=30.0)
    pools = replace(pools, decode=replace(pools.decode, batches=(12,)))
    reads = phase(rate=[3.0])
    decodes = phase(rate=[1.0, 2.5, 4.0], slower=[0, 1, 2], count=[1, 1, 1], batch=12.0,
                    latency=[3.0, 2.0, 1.0])  # fmt: skip
    best, _ = pool_pairs.best_pairs(pools, (reads, decodes))
    # Three prompts per second for each replica that reads; one decodes: 3 read 9 >= 4.
    assert [one.rows for one in best] == [(0, 2)]
    slow = pool_pairs.best_pairs(pools, (phase(rate=[1.0]), decodes))[0]
    # Up to 3 replicas read 3 requests/s, less than the fastest would decode.
    assert [one.rows for one in slow] == [(0, 1)]


@for_all("case", product(demand=(None, 2.0), spare=(0, 1), paired=(True, False)))
def test_symbols_of_two_pools_are_those_of_their_layouts(case):
    """Chips, replicas that are up, prices and rates of either pool, and the times of both."""
    paired = case.pop("paired")
    pools = pools_of(MODEL, chips=(6,), headroom=0.25, carbon=2e-4, **case)
    steps, pairs = solved(pools)
    plan = evaluate_pair(pools, *steps, pairs[0])
    first, last = plan.pools
    values: Any = [{"first": 0.3, "wait": 0.1, "watts": 300.0}, {"tpot": 0.02, "chip_price": 7.0}]
    made = replace(pairs[0], fills=(0.5, 0.75)) if paired else None
    symbols = pools_symbols(pools, plan.pools, values, 0.04, made, (2.0, 5.0))
    up, free = (case["spare"], 0.25) if paired else (0, 0.0)
    expected = {
        "one_seq": 1.0, "L_in": 1000.0, "L_out": 200.0, "L_dec": 199.0, "T_move": 0.04,
        "T_ttft": 0.3, "T_wait": 0.1, "T_tpot": 0.02, "m_grid": 2e-4,
        "p_chip_pf": 3.5 / 3600, "p_chip_dec": 7.0, "p_power_pf": 0.0, "p_power_dec": 0.0,
        "n_chips_pf": pairs[0].chips[0], "n_chips_dec": pairs[0].chips[1],
        "n_pf": first.replicas - up, "n_dec": last.replicas - up,
        "X_pf": (1 - free) * (0.5 if paired else 1.0) / 2.0,
        "X_dec": (1 - free) * (0.75 if paired else 1.0) / 5.0, "P_chip_pf": 300.0,
        **({"X_arr": 2.0} if case["demand"] else {}),
    }  # fmt: skip
    assert symbols == pytest.approx(expected)
    del values[0]["wait"]
    bare = replace(pools, decode=replace(pools.decode, carbon=None))
    free_pools = [replace(pool, task=replace(pool.task, carbon=None)) for pool in plan.pools]
    again = pools_symbols(bare, free_pools, values, 0.0, made, (2.0, 5.0))
    assert (again["T_wait"], again["m_grid"]) == (0.0, 1.0)


def test_pairs_of_questions_searched_together_are_those_searched_alone():
    """At several promises and loads at once, and for parts of the layouts that decode."""
    several = [pools_of(MODEL, chips=(2,), promises={"tpot": pace}) for pace in (0.0015, 0.002)]
    several += [replace(several[0], demand=2.0), pools_of(MODEL, chips=(3,))]
    together = pool_pairs.search_pools_batched([(each, *steps_of(each)) for each in several])
    for each, (pairs, _) in zip(several, together, strict=True):
        assert pairs == solved(each)[1]
    (reading, decoding), every = solved(several[0])
    parts = np.array_split(np.arange(len(decoding.layouts))[::-1], 3)
    split = [*pool_pairs.search_parts(several[0], reading, decoding, parts)]
    best = min((one for pairs in split for one in pairs), key=lambda one: one.score)
    assert best.score == pytest.approx(every[0].score, rel=1e-12)
    for rows, pairs in zip(parts, split, strict=True):
        assert {one.rows[1] for one in pairs} <= {*rows.tolist()}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("whole", [{}, {"e2e": 0.4}])
def test_pairs_at_many_paces_are_those_of_each_promise(objective, whole):
    """What is worked out once for all paces changes no pair."""
    free = pools_of(MODEL, chips=(2,), objective=objective, promises=whole)
    paces = np.array([0.0012, 0.0016, 1.0])
    every = pool_pairs.search_at_tpots(free, *steps_of(free), paces)
    assert any(every)
    for pace, pairs in zip(paces.tolist(), every, strict=True):
        alone = pools_of(MODEL, chips=(2,), objective=objective, promises={**whole, "tpot": pace})
        mine = solved(alone)[1]
        assert [(one.rows, one.replicas, one.batch) for one in pairs[:1]] == [
            (one.rows, one.replicas, one.batch) for one in mine[:1]
        ]
        assert [one.score for one in pairs] == pytest.approx([one.score for one in mine])
