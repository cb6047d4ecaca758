"""What may be paired, against loops over layouts, batches and receivers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.chips import chip, chip_power
from planner.problems.serving.pairs import pool_matching
from planner.problems.serving.pairs.pool_pairs import search_parts
from planner.problems.serving.pairs.receiving_chips import ReceivingChips, by_engine
from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair
from planner.text.errors import CatalogueError
from tests.cases.serving import columns, dense
from tests.cases.two_pools import phase, pools_of, solved, steps_of
from tests.loops import for_all

MODEL = dense(2)  # four heads, two of them of keys and values
MOST = 120  # the largest batch that is tried one by one
# tp, pp, cp, dp_attention, ep, tp_expert, replicas, chips, halves
ROWS = [(1, 1, 1, 1, 1, 1, 4, 4, 1), (2, 1, 1, 1, 1, 1, 2, 4, 1), (4, 1, 1, 1, 1, 1, 1, 4, 1),
        (2, 2, 1, 1, 1, 1, 1, 4, 1), (1, 1, 1, 2, 1, 1, 2, 4, 1)]  # fmt: skip


def steps(pools: TaskPair) -> tuple[Step, Step]:
    """Both pools on the few layouts above."""
    first, second = (Step(task, columns(ROWS), bound=task.uses_bound) for task in pools.tasks)
    return first, second


def values_of(step: Step, row: int, batch: float) -> dict[str, float]:
    """What one layout gives at one batch, computed alone."""
    alone = Step(step.task, columns([ROWS[row]]), bound=step.bound)
    return {name: float(np.ravel(x)[0]) for name, x in alone(np.array([float(batch)])).items()}


def at_every_batch(step: Step, row: int) -> list[dict[str, float]]:
    """The same at every whole batch up to `MOST`."""
    alone = Step(step.task, columns([ROWS[row]] * MOST), bound=step.bound)
    values = alone(np.arange(1.0, MOST + 1))
    every = {name: np.broadcast_to(value, (MOST,)) for name, value in values.items()}
    return [{name: float(value[k]) for name, value in every.items()} for k in range(MOST)]


def entries(of: PhaseLayouts, *names: str) -> list[tuple[float, ...]]:
    """Some columns as rows, in order."""
    return [*zip(*(getattr(of, name).tolist() for name in names), strict=True)]


def test_a_cache_lies_in_parts_on_the_heads_stages_and_contexts():
    """No more parts of a layer than heads of keys and values; one where all share one."""
    task = pools_of(MODEL).decode
    rows = [(tp, pp, cp, 1, 1, 1, 1, 16, 1) for tp in (1, 2, 4) for pp in (1, 2) for cp in (1, 2)]
    expected = [min(row[0], 2) * row[1] * row[2] for row in rows]
    assert pool_matching.shards(Step(task, columns(rows), bound=False)).tolist() == expected
    latent = pools_of(dense(2, kv_heads=1)).decode
    expected = [row[1] * row[2] for row in rows]
    assert pool_matching.shards(Step(latent, columns(rows), bound=False)).tolist() == expected


def test_layouts_that_read_keep_their_promise_with_the_caches_way_in_it():
    """Each number of prompts of a pass, by itself; rates are those that headroom leaves."""
    late, limit = np.array([0.0, 1e-3, 2e-3, 3e-3, 4e-3]), 0.008
    pools = pools_of(MODEL, promises={"ttft": limit}, headroom=0.2, input_tokens=200.0)
    reading, _ = steps(pools)
    reads = pool_matching.prefill_layouts(reading, late)
    expected = {}
    for row, batch in itertools.product(range(5), range(1, 5)):
        values = values_of(reading, row, batch * ROWS[row][1] * ROWS[row][3])
        if batch <= reading.prompts_of_a_pass[row] and values["ttft"] + late[row] <= limit:
            expected[row, batch * ROWS[row][1] * ROWS[row][3]] = values
    assert 5 < len(expected) < 5 * reading.prompts_of_a_pass[0]
    assert sorted(entries(reads, "rows", "batch")) == sorted(expected)
    for k, key in enumerate(entries(reads, "rows", "batch")):
        values, row = expected[key], ROWS[key[0]]
        assert reads.slot[k] == pytest.approx(values["slot"])
        assert reads.rate[k] == pytest.approx(0.8 / values["slot"])
        assert reads.latency[k] == pytest.approx(values["ttft"] + late[key[0]])
        assert (reads.fill[k], reads.group[k], reads.count[k], reads.slower[k]) == (1.0, 0, 0, 0)
        assert reads.weight[k] == reading.task.price
        assert (reads.stage[k], reads.stages[k], reads.domain[k]) == (row[0] * row[3], row[1], 4)


@pytest.mark.parametrize("arrivals", [None, np.inf])
def test_layouts_that_are_not_ahead_are_left_out(arrivals):
    """Who is ahead is asked by the rates of those that keep their promises."""
    pools = pools_of(MODEL, promises={"ttft": 0.05})
    pools = replace(pools, prefill=pools.prefill.with_layout(arrivals=arrivals))
    reading, _ = steps(pools)
    every = pool_matching.prefill_layouts(reading, np.zeros(5))
    asked = []

    def ahead(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        asked.append((rows, low, high))
        return rows != 1

    left = pool_matching.prefill_layouts(reading, np.zeros(5), ahead)
    assert entries(left, "rows", "rate") == [x for x in entries(every, "rows", "rate") if x[0] != 1]
    rows, low, high = asked[0]
    assert rows.tolist() == every.rows.tolist()
    most = 1 / every.slot
    np.testing.assert_allclose(high, most if arrivals is None else np.minimum(high, most))
    assert (low == high).all() if arrivals is None else (low < high).all()


def test_readers_under_a_load_fill_what_their_own_way_leaves():
    """Of five different ways of the cache each layout's promise is met to the last bit of time."""
    late = np.array([0.0, 2e-3, 4e-3, 6e-3, 8e-3])
    pools = pools_of(MODEL, promises={"ttft": 0.02})
    task = pools.prefill.with_layout(arrivals=np.inf)
    reads = pool_matching.prefill_layouts(Step(task, columns(ROWS), bound=False), late)
    assert len(set(reads.rows.tolist())) == 5
    busy = reads.fill < 0.98
    assert busy.sum() > 3
    np.testing.assert_allclose(reads.latency[busy], 0.02, rtol=1e-6)
    for k in range(reads.rows.size):
        arriving = task.with_layout(arrivals=float(reads.rate[k] * ROWS[reads.rows[k]][6]))
        one = Step(arriving, columns([ROWS[reads.rows[k]]]), bound=False)
        values = one(np.array([float(reads.batch[k])]))
        assert reads.latency[k] == pytest.approx(values["ttft"][0] + late[reads.rows[k]])
        assert reads.rate[k] == pytest.approx(reads.fill[k] / values["slot"][0])


@pytest.mark.parametrize("objective", ["cost", "latency"])
@pytest.mark.parametrize("known", [False, True])
def test_layouts_that_decode_are_at_their_best_batch(objective, known):
    """The most requests per second, or the soonest last token, of all batches at the pace."""
    promises = {"tpot": 0.0012, "e2e": 1e-9}  # a promise on the whole is not theirs to keep
    pools = pools_of(MODEL, promises=promises, objective=objective, headroom=0.1)
    _, decoding = steps(pools)
    every = [at_every_batch(decoding, row) for row in range(5)]
    for tpot in (None, 0.0011, 0.0013):
        limit, largest, best = tpot or 0.0012, np.zeros(5), {}
        for row, batch in itertools.product(range(5), range(1, MOST + 1)):
            values = every[row][batch - 1]
            if values["tpot"] <= limit and values["need"] <= decoding.task.chip.memory:
                largest[row] = batch
                score = values["latency"] if objective == "latency" else values["slot"] / 0.9
                best[row] = min(best.get(row, np.inf), score)
        assert best
        assert largest.max() < MOST
        made = pool_matching.decode_layouts(decoding, tpot, largest if known else None)
        assert {*made.rows.tolist()} == {*best}
        score = made.latency if objective == "latency" else 1 / made.rate
        for row, least in best.items():
            assert score[made.rows == row].min() == pytest.approx(least)
        assert (made.count == 0).all()


def test_a_batch_given_is_in_flight_on_each_number_of_replicas():
    """All of it: 6 on one replica, 3 on two, 2 on three; on more none would be fuller."""
    pools = pools_of(MODEL, chips=(4,), batch=30.0)
    pools = replace(pools, decode=replace(pools.decode, batches=(6,)))
    _, decoding = steps(pools)
    made = pool_matching.decode_layouts(decoding, None)
    expected = [
        (row, -(-6 // n), n, 6 / (n * -(-6 // n)))
        for row in range(5)
        for n in range(1, ROWS[row][6] + 1)
        if n == 1 or -(-6 // n) < -(-6 // (n - 1))
    ]
    assert sorted(entries(made, "rows", "batch", "count", "fill")) == sorted(expected)


def test_the_energy_of_a_chip_of_unknown_power_cannot_be_least():
    """The error names the chip."""
    pools = pools_of(MODEL, objective="energy", power=None)
    with pytest.raises(CatalogueError, match="no power figure for h200"):
        pool_matching.decode_layouts(steps(pools)[1], None)


def test_a_caches_way_is_added_to_first_tokens_and_the_whole():
    """And to nothing else; what is not there stays away."""
    values = {name: np.array([1.0, 2.0]) for name in ("ttft", "latency", "ttft_p95", "busy")}
    late = pool_matching._delayed(values, np.array([0.5, 0.25]))
    assert late["busy"].tolist() == [1.0, 2.0]
    assert {name: late[name].tolist() for name in late if name != "busy"} == {
        name: [1.5, 2.25] for name in ("ttft", "latency", "ttft_p95")
    }


def test_a_pool_that_decodes_under_a_load_is_sized_for_what_it_carries():
    """Where latency is to be small and a load is given; else by the objective."""
    for objective, demand, expected in [
        ("latency", 2.0, "throughput"),
        ("latency", None, "latency"),
        ("cost", 2.0, "cost"),
        ("cost", None, "cost"),
    ]:
        pools = pools_of(MODEL, objective=objective, demand=demand)
        step = steps(pools)[1]
        sized = pool_matching._at_most(pools, step)
        assert sized.task == step.task.with_layout(objective=expected)


def test_layouts_of_questions_that_follow_each_other_are_told_apart():
    """Rows count from each question; one that has none is empty."""
    whole = phase(rows=[0, 1, 4, 2, 6, 1], rate=np.arange(6.0))
    parts = pool_matching._parted(whole, [2, 1, 1, 3])
    assert [entries(part, "rows", "rate") for part in parts] == [
        [(0, 0.0), (1, 1.0), (1, 5.0)], [(0, 3.0)], [], [(0, 2.0), (2, 4.0)]
    ]  # fmt: skip


def test_groups_of_each_part_are_apart_from_all_others():
    """Layouts are paired within a part, where they were, and with none of another part."""
    groups = [([0, 2], [0, 1, 1]), ([], []), ([0, 0, 1], [3, 0]), ([0], [0])]
    parts = []
    for number, pools in enumerate(groups):
        parts.append(tuple(
            phase(rows=10 * number + np.arange(len(of)), group=np.array(of, dtype=np.int64))
            if of else phase(rows=[0]).take(np.arange(0))
            for of in pools
        ))  # fmt: skip
    first, second = pool_matching._grouped(parts)
    pairs = {
        (i, j) for (i, g), (j, h) in itertools.product(
            entries(first, "rows", "group"), entries(second, "rows", "group")
        ) if g == h
    }  # fmt: skip
    assert pairs == {
        (10 * number + i, 10 * number + j)
        for number, (a, b) in enumerate(groups)
        for (i, g), (j, h) in itertools.product(enumerate(a), enumerate(b))
        if g == h
    }


def test_a_cache_is_sized_once_for_each_number_of_chips_that_it_moves_between():
    """The fewer of those that send and those that receive; every receiver has every layout."""
    sending, numbers = np.array([1, 2, 4, 8, 2]), np.array([1, 2, 6])
    way = ReceivingChips.of(sending, numbers)
    keys = [*zip(way.layouts.tolist(), way.chips.tolist(), strict=True)]
    wanted = {(row, min(n, chips)) for row, n in enumerate(sending) for chips in numbers}
    assert len(keys) == len(wanted)
    assert {*keys} == wanted
    # Each key is read with as many batches as its number says: 0, 1, 2, 0, ...
    rows = np.repeat(np.arange(len(keys)), np.arange(len(keys)) % 3)[::-1]
    read = way.grouped(phase(rows=rows, batch=np.arange(rows.size)))
    expected = [
        (row, chips, float(at))
        for chips in numbers.tolist()
        for row, n in enumerate(sending.tolist())
        for at in np.flatnonzero(rows == keys.index((row, min(n, chips))))
    ]
    assert entries(read, "rows", "group", "batch") == expected


def test_pools_are_paired_on_engines_that_run_both():
    """Of each old group, wherever one engine runs the two; as they are where one runs all."""
    reads = phase(engines=[0b0011, 0b0100, 0b1010, 0b0111], group=[0, 0, 4, 1])
    decodes = phase(engines=[0b0110, 0b1001, 0b0010, 0b0001, 0b1110], group=[0, 0, 4, 4, 1])
    first, second = by_engine(reads, decodes)
    pairs = {
        (int(first.rows[i]), int(second.rows[j]))
        for i, j in itertools.product(range(first.rows.size), range(second.rows.size))
        if first.group[i] == second.group[j]
    }
    old = [(entries(of, "engines", "group")) for of in (reads, decodes)]
    assert pairs == {
        (i, j)
        for (i, (a, g)), (j, (b, h)) in itertools.product(*(enumerate(rows) for rows in old))
        if g == h and a & b
    }
    for engines in (0b0011, -1):
        alone = phase(engines=[engines, 0b0110])
        assert by_engine(alone, decodes.take(np.array([0, 2])))[0] is alone
    none = decodes.take(np.arange(0))
    assert by_engine(reads, none) == (reads, none)


@for_all("objective", ["cost", "latency"])
@for_all("demand", [None, 2.0])
@for_all("batches", [None, (6,)])
def test_what_another_layout_betters_is_left_out(objective, demand, batches):
    """By what counts: price per request, latency, or both rates and times where both may."""
    pools = pools_of(MODEL, objective=objective, demand=demand)
    pools = replace(pools, decode=replace(pools.decode, batches=batches))
    # The first is quick and slow to serve, the second the other way round, the third neither.
    table = phase(rate=[1.0, 4.0, 0.9], latency=[1.0, 3.0, 3.5], weight=[1.0, 6.0, 1.0])
    reads, decodes = pool_matching._best(pools, table, table)
    kept = {"cost": [0], "latency": [0, 1]}[objective]
    if batches is None:
        assert sorted(reads.rows.tolist()) == ([0] if objective == "cost" else kept)
        quick = [0] if objective == "cost" or demand is None else [0, 1]
        assert sorted(decodes.rows.tolist()) == quick
        return
    # USD per request: 1, 1.5, 1.11; the faster second may be too fast for the prompts.
    assert sorted(reads.rows.tolist()) == [0, 1]
    expected = {"cost": [2, 0], "latency": [2, 0]}[objective]
    assert decodes.rows.tolist() == expected
    assert decodes.slower.tolist() == [0, 1]


def test_who_may_be_the_fastest_is_judged_among_layouts_of_one_room_and_way():
    """Stage, stages, receivers, whether more send than receive, plainness, engines, question."""
    pools = pools_of(MODEL)
    reading = [Step(pools.prefill, columns(ROWS * 4), bound=False)] * 2
    numbers = np.array([1, 2])
    ways = [ReceivingChips.of(pool_matching.shards(step), numbers) for step in reading]
    at = np.concatenate([way.layouts for way in ways])
    layouts = columns(ROWS * 4).take(at)
    bits = np.array([-1, -1, 0b01, 0b10])[at // 5]
    layouts = replace(layouts, engines=bits)
    step = Step(pools.prefill, layouts, bound=False)
    odd = pool_matching.plain_plans.coarse_oddness(step) // 100
    ahead = pool_matching._ahead([pools, pools], reading, step, ways, odd)
    assert ahead is not None
    rng = np.random.default_rng(0)
    low = rng.choice([1.0, 2.0, 3.0], at.size)
    high = low * (1 + rng.choice([-5e-10, 0.0, 0.5], at.size))
    sends = np.concatenate([pool_matching.shards(step)[way.layouts] for step, way in zip(
        reading, ways, strict=True)])  # fmt: skip
    chips = np.concatenate([way.chips for way in ways])
    question = np.repeat([0, 1], [way.layouts.size for way in ways])
    kinds = [
        *zip(question, layouts.stage, layouts.pp, chips, sends > chips, odd, bits, strict=True)
    ]
    assert 1 < len({*kinds}) < len(kinds)
    expected = [
        high[k] * (1 + 1e-9) >= max(low[n] for n in range(at.size) if kinds[n] == kinds[k])
        for k in range(at.size)
    ]
    assert not all(expected)
    assert ahead(np.arange(at.size), low, high).tolist() == expected
    # What was ahead once stays in mind.
    again = ahead(np.arange(at.size), low / 4, high / 4)
    assert not (again & (np.array(expected) == 0)).any()


def test_where_more_than_a_rate_counts_nobody_is_ahead():
    """Times, energy, and chips that are billed for what they draw; a promise on the whole."""
    draw = chip_power(chip("h200"))
    way = [ReceivingChips.of(np.array([1]), np.array([1]))]

    def judged(promises: dict[str, float] | None = None, **changes: Any) -> bool:
        pools = pools_of(MODEL, promises=promises, **changes)
        step = Step(pools.prefill, columns(ROWS[:1]), bound=False)
        return pool_matching._ahead([pools], [step], step, way, np.zeros(1)) is not None

    assert judged()
    assert judged(objective="throughput")
    assert judged(draw=draw)
    assert not judged(objective="latency")
    assert not judged(objective="energy")
    assert not judged(draw=draw, electricity=1e-4)
    assert not judged({"e2e": 1.0})


@for_all("objective", ["cost", "throughput", "latency"])
@for_all("promises", [{}, {"e2e": 0.4}, {"ttft": 0.05, "tpot": 0.0015}])
def test_layouts_that_read_are_sized_for_each_number_that_receives(objective, promises):
    """Whichever is left out is no faster, in its room, than one that stays."""
    pools = pools_of(MODEL, objective=objective, promises=promises)
    reading, decoding = steps(pools)
    (reads,) = pool_matching._receivers([pools], (reading,), (decoding,))
    receivers = {*pool_matching.shards(decoding).tolist()}
    assert {*reads.group.tolist()} == receivers
    sends = pool_matching.shards(reading)
    for number, row in itertools.product(sorted(receivers), range(5)):
        late = float(pools.transfer(sends[row], number))
        values = values_of(reading, row, ROWS[row][1] * ROWS[row][3])
        at = np.flatnonzero((reads.group == number) & (reads.rows == row))
        if values["ttft"] + late > promises.get("ttft", np.inf):
            assert not at.size
            continue
        room = (reads.group == number) & (reads.stage == ROWS[row][0] * ROWS[row][3])
        room &= reads.stages == ROWS[row][1]
        assert at.size or reads.rate[room].max() >= 1 / values["slot"] * (1 - 1e-9)
        if at.size:
            assert reads.latency[at[0]] == pytest.approx(values["ttft"] + late)
            assert reads.rate[at[0]] == pytest.approx(1 / values["slot"])


def test_a_promise_on_the_whole_leaves_each_reader_its_own_time_to_decode(monkeypatch):
    """Every pair keeps it and the pace, at the best batch that does; none that does is missing."""
    monkeypatch.setattr(pool_matching, "_best", lambda _, *matched: matched)
    # Steps take 0.33 to 1.05 ms: both limits are met below what memory holds.
    whole, paces = 0.2, np.array([0.0003, 0.00065, np.inf])
    pools = pools_of(MODEL, promises={"e2e": whole})
    _, decoding = steps(pools)
    receiving = pool_matching.shards(decoding)
    numbers = np.unique(receiving)
    late = [0.03, 0.06, 0.1, 0.12, 0.21]
    readers = phase(
        rows=np.tile(np.arange(5), numbers.size), latency=late * numbers.size,
        rate=np.tile(np.arange(1.0, 6.0), numbers.size), group=np.repeat(numbers, 5),
    )  # fmt: skip
    every = [at_every_batch(decoding, row) for row in range(5)]
    memory = decoding.task.chip.memory
    for pace, (reads, decodes) in zip(
        paces, pool_matching._within_request(pools, decoding, readers, paces), strict=True
    ):
        expected = {}
        for read, row in itertools.product(range(5), range(5)):
            limit = min(pace, (whole - late[read]) / 199)
            slots = [x["slot"] for x in every[row] if x["tpot"] <= limit and x["need"] <= memory]
            if slots:
                expected[read, row] = 1 / min(slots)
        mine: dict[tuple[int, int], float] = {}
        for i, j in itertools.product(range(reads.rows.size), range(decodes.rows.size)):
            if reads.group[i] == decodes.group[j]:
                key = int(reads.rows[i]), int(decodes.rows[j])
                mine[key] = max(mine.get(key, 0.0), float(decodes.rate[j]))
                assert reads.latency[i] + decodes.latency[j] <= whole * (1 + 1e-12)
        assert mine == pytest.approx(expected)
        assert expected or pace < 0.0004


def test_of_the_readers_of_many_parts_only_the_fastest_count_where_no_time_does(monkeypatch):
    """Beside a promise on the whole, or where times are to be small, the quick ones stay."""
    readers = phase(rate=[1.0, 2.0], latency=[1.0, 2.0])
    monkeypatch.setattr(pool_matching, "_receivers", lambda *_: [readers])
    monkeypatch.setattr(pool_matching, "_beside", lambda _, reads, steps: [(*reads, *steps)])
    for objective, promises, expected in [
        ("cost", {}, [1]), ("throughput", {"tpot": 1.0}, [1]), ("latency", {}, [0, 1]),
        ("cost", {"e2e": 1.0}, [0, 1]), ("latency", {"e2e": 1.0}, [0, 1]),
    ]:  # fmt: skip
        pools = pools_of(MODEL, objective=objective, promises=promises)
        parts = [np.array([3, 0]), np.array([2])]
        matched: Any = [*pool_matching.matched_parts(pools, *steps(pools), parts)]
        for part, (rows, (reads, step)) in zip(parts, matched, strict=True):
            assert reads.rows.tolist() == expected
            assert rows is part
            assert step.layouts.tp.tolist() == [ROWS[row][0] for row in part]


@pytest.mark.parametrize("objective", ["cost", "latency"])
@pytest.mark.parametrize("promises", [{"tpot": 0.0016}, {"e2e": 0.4}])
def test_parts_of_the_layouts_that_decode_have_the_best_of_all(objective, promises):
    """One part after the other, the best pair of all is among theirs."""
    pools = pools_of(MODEL, chips=(2,), objective=objective, promises=promises)
    (reading, decoding), every = solved(pools)
    parts = np.array_split(np.arange(len(decoding.layouts))[::-1], 2)
    split = [*search_parts(pools, reading, decoding, parts)]
    best = min((one for pairs in split for one in pairs), key=lambda one: one.score)
    assert best.score == pytest.approx(every[0].score, rel=1e-12)
    for rows, pairs in zip(parts, split, strict=True):
        assert {one.rows[1] for one in pairs} <= {*rows.tolist()}


def test_questions_matched_together_are_those_matched_alone():
    """Two promises, of other lengths, whose layouts are evaluated together."""
    several = [pools_of(MODEL, promises={"tpot": pace}) for pace in (0.0012, 0.0016)]
    reading, decoding = zip(*(steps_of(pools) for pools in several), strict=True)
    together = pool_matching.matched_pools(several, reading, decoding)
    for k, matched in enumerate(together):
        (alone,) = pool_matching.matched_pools(several[k : k + 1], reading[k : k + 1],
                                               decoding[k : k + 1])  # fmt: skip
        for mine, other in zip(matched, alone, strict=True):
            for name, column in vars(mine).items():
                np.testing.assert_allclose(column, getattr(other, name), rtol=1e-12)
