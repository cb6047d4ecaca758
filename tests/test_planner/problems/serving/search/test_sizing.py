"""Batches, shares and replicas that a search for a load finds, against trying every one.

Steps are made up of a few ceilings, so that all their batches can be tried at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.search import sizing
from planner.problems.serving.search.batch import candidate_batches, largest_feasible
from planner.problems.serving.search.promise_limits import PromiseLimits
from planner.problems.serving.search.sizing import (
    NEXT_TO_NOTHING,
    evaluate_chunked,
    filled_in_part,
    max_utilisation,
    min_batch_for_load,
    shared_batches,
)
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from tests.cases.serving import MODELS, question, searched, within_limits


def layouts(**columns: Any) -> Layouts:
    """Layouts of these columns, one chip of everything else."""
    count = max(np.size(column) for column in columns.values())
    names = [each.name for each in fields(Layouts) if each.name != "engines"]
    given = {name: np.broadcast_to(columns.get(name, 1), count).astype(np.int64) for name in names}
    return Layouts(**given)


# -- the batch of a load ------------------------------------------------------------------------


@dataclass(frozen=True)
class Ceilings:
    """Steps whose time is a constant and so much for the fullest rank, expert and part.

    `times` are those of the step, of a sequence of a rank, of an expert, of a part and of any,
    shape (5, n). As much as carries the load may a sequence take: `most`, shape (n,).
    """

    layouts: Layouts
    times: np.ndarray
    most: np.ndarray
    mode: str = "decode"

    @property
    def task(self) -> Any:
        return SimpleNamespace(mode=self.mode)

    @property
    def limits(self) -> dict[str, np.ndarray]:
        return {"load": self.most}

    def take(self, rows: np.ndarray) -> Ceilings:
        return replace(self, layouts=self.layouts.take(rows), times=self.times[:, rows],
                       most=self.most[rows])  # fmt: skip

    def only(self, words: tuple[str, ...], batch: np.ndarray) -> dict[str, np.ndarray]:
        assert words == ("load",)
        pp, dp, cp = (getattr(self.layouts, name) for name in ("pp", "dp_attention", "cp"))
        alike = (pp * dp * cp, pp * dp, pp * cp)
        fixed, *each, any_ = self.times
        full = sum(time * np.ceil(batch / n) for time, n in zip(each, alike, strict=True))
        return {"load": (fixed + full + any_ * batch) / np.maximum(batch, 1)}


def ceilings(seed: int, count: int = 60, most: int = 6) -> tuple[Ceilings, np.ndarray]:
    """Random ones, each just carrying its load at one batch, and those batches."""
    rng = np.random.default_rng(seed)
    pp, dp, cp = (rng.integers(1, n, count) for n in (4, 6, 5))
    table = layouts(pp=pp, dp_attention=dp, cp=cp)
    times = rng.integers(0, 6, (5, count)) * 1.0
    times[0] += 1
    step = Ceilings(table, times, np.ones(count))
    batch = np.ceil(rng.random(count) * table.group * most)
    return replace(step, most=step.only(("load",), batch)["load"]), batch


def least_batches(step: Ceilings, most: int) -> np.ndarray:
    """Of each layout the first batch of `most` that carries the load, 0 where none does."""
    least = np.zeros(len(step.layouts))
    for batch in np.arange(most, 0, -1.0):
        every = np.full(least.size, batch)
        least[step.only(("load",), every)["load"] <= step.most] = batch
    return least


@pytest.mark.parametrize("seed", range(4))
def test_the_least_batch_is_that_of_trying_every_one(seed):
    """Of ranks, stages and parts in all numbers; a load that a batch just carries is carried."""
    step, batch = ceilings(seed)
    found = min_batch_for_load(step, 4000)
    assert found.tolist() == least_batches(step, int(batch.max())).tolist()
    assert (found <= batch).all()
    assert len(set(found / step.layouts.group % 1)) > 10, "no batch lies within a group"


def test_no_batch_beyond_the_largest_is_found():
    """Full groups up to the largest of each, and one of them in any case."""
    step, _ = ceilings(7)
    group, every = step.layouts.group, least_batches(step, 1000)
    for largest in (1, 40, np.where(np.arange(group.size) % 2, 2 * group, 3 * group + 1)):
        most = np.maximum(np.floor(largest / group), 1) * group
        assert (
            min_batch_for_load(step, largest).tolist() == np.where(every <= most, every, 0).tolist()
        )


def test_a_load_beyond_any_batch_has_none():
    """Zero for every layout, or for that one alone."""
    step, _ = ceilings(3)
    least = step.times[1:].sum(axis=0) * 0
    assert not min_batch_for_load(replace(step, most=least), 100).any()
    least[5] = step.most[5]
    assert np.flatnonzero(min_batch_for_load(replace(step, most=least), 4000)).tolist() == [5]


# -- how busy a layout may be -------------------------------------------------------------------


@dataclass(frozen=True)
class Waits:
    """Layouts whose wait is `late` fill/(1 - fill), and whose readers are `reads` fill busy."""

    late: np.ndarray
    reads: np.ndarray
    slot: np.ndarray
    limits: dict[str, Any]

    @property
    def layouts(self) -> np.ndarray:
        return self.late

    def take(self, rows: np.ndarray) -> Waits:
        limits = {k: v[rows] if np.ndim(v) else v for k, v in self.limits.items()}
        return Waits(self.late[rows], self.reads[rows], self.slot[rows], limits)

    def filled(self, batch: np.ndarray) -> Any:
        assert batch.shape == self.late.shape

        def at(fill: np.ndarray) -> dict[str, np.ndarray]:
            free = np.maximum(1 - fill, 1e-300)
            return {
                "slot": self.slot,
                "readers": self.reads * fill,
                "wait": self.late * fill / free,
            }

        return at

    def keeps(self, values: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        good = values["wait"] <= 2.0
        if "readers" in self.limits:
            good &= (
                values["readers"] <= np.broadcast_to(self.limits["readers"], self.late.shape)[rows]
            )
        return good


def waiting(count: int = 12, **limits: Any) -> Waits:
    """Waits that bind at shares from a tenth on, and the last row that never waits."""
    late = np.geomspace(18, 0.2, count)
    late[-1] = 0.0
    return Waits(late, np.linspace(0.1, 3, count), np.geomspace(0.2, 9, count), limits)


@pytest.mark.parametrize("limit", [None, 0.75, 0.99])
def test_shares_at_which_waits_reach_their_limit(limit):
    """late f/(1 - f) = 2 at f = 2/(2 + late), and no more than what readers can read."""
    step = waiting(**({} if limit is None else {"readers": limit}))
    by_hand = 2 / (2 + step.late)
    if limit is not None:
        by_hand = np.minimum(by_hand, limit / step.reads)
    rows, fill = max_utilisation(step, np.ones(12), step.keeps)
    assert rows.tolist() == list(range(12))
    assert fill == pytest.approx(by_hand, rel=1e-10)
    assert (fill <= by_hand * (1 + 1e-12)).all()
    assert fill[-1] == 1 or limit is not None


def test_readers_alone_end_where_they_are_busy_enough_without_halving():
    """A rounding below their limit, and at all there is where they never reach it."""
    step = replace(waiting(readers=0.75), late=np.zeros(12))
    shares = []

    def keeps(values: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        shares.append(values["readers"] / step.reads[rows])
        return step.keeps(values, rows)

    _, fill = max_utilisation(step, np.ones(12), keeps)
    by_hand = 1 / np.maximum(step.reads / 0.75 * (1 + 2.0**-40), 1)
    assert fill == pytest.approx(by_hand, rel=1e-14, abs=0)
    assert len(shares) == 2, "next to nothing, and the most"


def test_rows_of_which_none_may_be_filled():
    """All of them are halved until they are near their limits."""
    step = waiting().take(np.arange(3))
    _, fill = max_utilisation(step, np.ones(3), step.keeps)
    assert fill == pytest.approx(2 / (2 + step.late), rel=1e-10)


def test_rows_that_keep_no_promise_at_the_least_share_are_left_out():
    """Of those that are left the share lies between the least and the most."""
    step = waiting()
    by_hand = 2 / (2 + step.late)
    least = np.where(np.arange(12) % 3, 0.5, by_hand * 0.9)
    rows, fill = max_utilisation(step, np.ones(12), step.keeps, least=least)
    assert rows.tolist() == np.flatnonzero(least <= by_hand).tolist()
    assert fill == pytest.approx(by_hand[rows], rel=1e-10)


@pytest.mark.parametrize(("behind", "left"), [(1, 10), (2, 10), (3, 7), (4, 6)])
def test_rows_that_fall_behind_are_left_out_where_they_are_many(behind, left):
    """Rates that are compared are shares over slots; up to two of ten that fall behind stay."""
    step = waiting(10)
    seen = []

    def ahead(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        seen.append((low * step.slot[rows], high * step.slot[rows]))
        return (rows >= behind) | (len(seen) == 1)

    rows, fill = max_utilisation(step, np.ones(10), step.keeps, ahead)
    assert rows.tolist() == list(range(10 - left, 10))
    assert fill == pytest.approx(2 / (2 + step.late[rows]), rel=1e-10)
    assert seen[0][0] / NEXT_TO_NOTHING == pytest.approx(np.ones(10))
    assert seen[0][1] == pytest.approx(np.ones(10))
    low, high = seen[-1]
    assert (low <= fill).all()
    assert high - low == pytest.approx(np.zeros(left), abs=1e-9)


# -- the most that can be served -----------------------------------------------------------------


def most_by_trying(step: Step, most: int) -> np.ndarray:
    """Requests a second of a replica that any batch serves within every promise, by layout.

    A batch serves what no smaller one carries, up to all of its own.
    """
    count = len(step.layouts)
    rows, batch = np.repeat(np.arange(count), most), np.tile(np.arange(1.0, most + 1), count)
    at, free = step.take(rows).filled(batch), 1 - step.task.headroom
    rate = free / np.broadcast_to(at(1.0)["slot"], rows.shape)
    best = np.maximum.accumulate(rate.reshape(count, most), axis=1)
    smaller = np.hstack([np.zeros((count, 1)), best[:, :-1]]).ravel()

    def keeps(fill: np.ndarray) -> np.ndarray:
        values = at(fill)
        limits = step.task.limits.items()
        return np.all([np.broadcast_to(values[k] <= x, fill.shape) for k, x in limits], axis=0)

    low, high = np.clip(smaller / rate * (1 + 1e-12), NEXT_TO_NOTHING, 1), np.ones(rows.size)
    serves = (rate > smaller) & keeps(low)
    low = np.where(keeps(high), high, low)
    for _ in range(50):
        middle = (low + high) / 2
        good = keeps(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(serves, low * rate, 0).reshape(count, most).max(axis=1)


@pytest.mark.parametrize(("model", "batch", "parts", "changes"), [
    ("dense", 0.5, 12, {"promises": {"cache_fits": 0.05}, "limits_of": {"cp": (1, 2)}}),
    ("dense", 9.0, 8, {"promises": {"ttft_p95": 0.012}, "output_tokens": 20.0}),
    ("sparse", 9.0, 6, {"promises": {"ttft_p99": 0.02}, "spare": 1, "headroom": 0.25}),
    # One batch more keeps them for a part of its load, and the next for all that it carries.
    ("sparse", 6.0, 19, {"promises": {"ttft_p95": 0.0478}, "headroom": 0.25, "chips": (6,),
                         "input_spread": 1.0}),
])  # fmt: skip
def test_batches_filled_in_part_serve_the_most_of_all(model, batch, parts, changes):
    """With the full ones beside them they serve what trying every batch and share does."""
    task = question(MODELS[model], batch=batch, domain=4, arrivals=np.inf, objective="throughput",
                    **changes)  # fmt: skip
    step = searched(task)
    step = step.take(np.flatnonzero(step.layouts.replicas > task.spare))
    full = candidate_batches(step, largest_feasible(step)[0])
    partly = filled_in_part(step, *full[:2])
    assert partly[0].size >= parts
    rows, batches, fill = map(np.concatenate, zip(full, partly, strict=True))
    values = step.take(rows)(batches, fill)
    served = fill * (1 - task.headroom) / np.broadcast_to(values["slot"], rows.shape)
    best = np.zeros(len(step.layouts))
    np.maximum.at(best, rows, np.where(within_limits(task, values), served, 0))
    larger = int(batches.max() * 1.2) + 9  # memory, or a promise, ends before
    assert best == pytest.approx(most_by_trying(step, larger), rel=1e-10)
    assert best.any()


def test_slots_of_many_seconds_are_filled_as_far_as_promises_hold():
    """All of them, of a request that takes minutes: readers are idle, as little as arrives."""
    task = question(MODELS["dense"], batch=600.0, chips=(1,), arrivals=np.inf, slow="memory",
                    input_tokens=2e4, output_tokens=2e4, context=3e4)  # fmt: skip
    step = searched(task)
    batch = np.full(len(step.layouts), 40.0)
    values = step.filled(batch)(1.0)
    assert (values["slot"] > 200).all()
    assert (values["readers"] < 0.1).all()
    rows, fill = max_utilisation(step, batch, PromiseLimits(step, batch).hold)
    assert (rows.tolist(), fill.tolist()) == ([0], [1.0])


def filled(**changes: Any) -> list[int]:
    """How many are filled in part of a small question."""
    step = searched(question(MODELS["dense"], arrivals=np.inf, **changes))
    full = candidate_batches(step, largest_feasible(step)[0])
    return [column.size for column in filled_in_part(step, *full[:2])]


@pytest.mark.parametrize(("batch", "counts", "changes"), [
    (0.5, (22, 6), {"promises": {"ttft_p95": 0.012}, "output_tokens": 20.0}),
    (9.0, (624, 0), {"promises": {"ttft_p95": 0.03}}),
])  # fmt: skip
def test_batches_that_are_left_out_are_no_sooner(batch, counts, changes):
    """Where latency is to be least, fewer are filled in part, and the least is that of all."""
    soonest, filled = [], []
    for objective in ("throughput", "latency"):
        task = question(MODELS["dense"], batch=batch, arrivals=np.inf, objective=objective,
                        **changes)  # fmt: skip
        step = searched(task)
        every = np.arange(len(step.layouts))
        partly = filled_in_part(step, every, np.ones(every.size))
        full = every, np.ones(every.size), np.ones(every.size)
        rows, batches, fill = map(np.concatenate, zip(full, partly, strict=True))
        values = evaluate_chunked(step, rows, batches, fill)
        latency = np.where(within_limits(task, values), values["latency"], np.inf)
        soonest.append([latency[rows == row].min() for row in every])
        filled.append(partly[0].size)
    assert soonest[0] == soonest[1]
    assert np.isfinite(soonest[0]).any()
    assert tuple(filled) == counts


def test_replicas_that_are_all_spare_serve_nothing():
    """Nothing is filled in part where none is up, or where even more are to be spare."""
    for spare in (4, 5):
        assert filled(spare=spare, promises={"ttft_p95": 0.03}) == [0, 0, 0]
    assert sum(filled(spare=3, output_tokens=20.0, promises={"ttft_p95": 0.012}))


def test_beyond_the_largest_batch_none_is_filled_in_part():
    """Where memory holds more than is ever tried, and no promise is made."""
    assert filled(batch=1e8, chips=(1,), mode="decode") == [0, 0, 0]


# -- batches given for all replicas -------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, (3, 5)])
def test_batches_for_all_replicas_by_loops(asked):
    """Each number of replicas with fewer sequences than any smaller one has, or those asked for."""
    rng = np.random.default_rng(5)
    count = 40
    replicas, halves, ranks, stages = (rng.integers(1, n, count) for n in (14, 3, 4, 3))
    table = layouts(replicas=replicas, halves=halves, dp_attention=ranks, pp=stages)
    largest = rng.integers(1, 13, count) * 1.0
    limits = {} if asked is None else {"replicas": asked}
    task = SimpleNamespace(batches=(1, 7, 12, 24), limits_of=limits)
    rows = []
    for total in (1, 7, 12, 24):
        each: dict[int, int] = {}  # the fewest replicas of so many sequences
        for number in range(1, min(total, int(table.replicas.max())) + 1):
            each.setdefault(-(-total // number), number)
        for number in each.values() if asked is None else asked:
            fullest = -(-total // number)
            for row in range(count):
                halved = table.halves[row] == 1 or total > number * table.group[row]
                if number <= table.replicas[row] and fullest <= largest[row] and halved:
                    rows.append((row, fullest, total / (number * fullest), number))
    found = shared_batches(SimpleNamespace(task=task, layouts=table), largest)
    assert sorted(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(rows)
    assert len(rows) > 50


# -- what many rows say ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """A step that says its row number beside batch and share, and that no more may be computed."""

    number: np.ndarray

    def take(self, rows: np.ndarray) -> Told:
        return Told(self.number[rows])

    def __call__(self, batch: np.ndarray, fill: np.ndarray) -> dict[str, Any]:
        assert self.number.size <= 3
        return {"row": self.number, "batch": batch, "fill": fill, "same": np.float64(4.0)}


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_rows_are_computed_a_few_at_a_time(monkeypatch, count):
    """Each once, in their order; what is one number for all stands in every row."""
    monkeypatch.setattr(sizing, "CHUNK_POINTS", 3)
    rows = np.arange(count)[::-1] * 2
    values = evaluate_chunked(Told(np.arange(100)), rows, rows + 0.5, rows / 10)
    assert values["row"].tolist() == rows.tolist()
    assert values["batch"].tolist() == (rows + 0.5).tolist()
    assert values["fill"].tolist() == (rows / 10).tolist()
    assert values["same"].tolist() == [4.0] * count
