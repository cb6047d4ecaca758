"""Room of replicas, growth of a step, hits, crowding and queues, each worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.occupancy import (
    Occupancy,
    arrival_values,
    first,
    overflow_probability,
    queue,
    recheck_overflow,
)
from planner.problems.serving.step.step import Step
from tests.loops import for_all


@dataclass(frozen=True)
class Line:
    """A step whose memory is a straight line of its sequences, its time one of full units of them.

    Time is `idle` + `each` a sequence between `turns` [sequences], and stands still beside them.
    A `unit` is a group unless it is given.
    """

    group: np.ndarray
    weights: np.ndarray
    cache: np.ndarray
    idle: np.ndarray
    each: np.ndarray
    turns: tuple[float, float] = (0.0, math.inf)
    unit: float | None = None
    word: str = "step"
    arrivals: float | None = 7.0

    @property
    def task(self) -> Any:
        return SimpleNamespace(with_layout=lambda arrivals: arrivals)

    def with_task(self, arrivals: float | None) -> Line:
        return replace(self, arrivals=arrivals)

    @property
    def bound(self) -> bool:
        return self.word == "tpot"

    @property
    def layouts(self) -> Any:
        one = np.ones(self.group.size, np.int64)
        return Layouts(one, one, one, self.group, *[one] * 5)

    @property
    def limits(self) -> dict[str, float]:
        return {"need": 1000.0}

    def take(self, rows: np.ndarray) -> Line:
        columns = ("group", "weights", "cache", "idle", "each")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    holds_together = Step.holds_together

    def only(self, words: tuple[str, ...], batch: np.ndarray) -> dict[str, np.ndarray]:
        assert self.arrivals is None, "memory is counted without a load"
        unit = self.unit or self.group
        whole = np.ceil(batch / unit) * unit
        time = self.idle + self.each * np.clip(whole, *self.turns)
        every = {"need": self.weights + self.cache * batch, self.word: time}
        return {word: every[word] for word in words}


def line(group: int, weights: float, cache: float, idle: float, each: float, **more: Any) -> Line:
    """One row of it."""
    return Line(*(np.array([x]) for x in (group, weights, cache, idle, each)), **more)


def test_room_is_what_memory_holds_beside_the_weights():
    """(1000 - weights) / cache to the last whole one that fits exactly, of rows apart."""
    step = Line(np.array([1, 2, 4, 1, 64]), np.array([200.0, 300.0, 999.0, 100.0, 0.0]),
                np.array([80.0, 99.9, 2.0, 0.0, 20.0]), *np.full((2, 5), 0.5))  # fmt: skip
    room = Occupancy.of(step).room
    assert room.tolist() == [800 // 80, 700 // 99.9, 0, 2**20, 1000 // 20]


@for_all("word", ["step", "tpot"])
@for_all(("group", "cache"), [(1, 10.0), (4, 23.5), (5, 24.0), (3, 330.0)])
def test_sequences_that_add_as_much_as_an_idle_step(word, group, cache):
    """Of a line idle + each n that is idle / each, between numbers that fill every rank."""
    step = line(group, 10.0, cache, 30.0, 0.4, word=word)
    full = Occupancy.of(step)
    assert full.room[0] > group or group == 3
    if full.room[0] > group:
        assert full.flat[0] == pytest.approx(30.0 / 0.4)


def test_steps_of_one_full_group_grow_within_it():
    """Where memory holds no two groups three quarters of one stand beside it."""
    within = line(8, 100.0, 95.0, 30.0, 0.4)
    assert Occupancy.of(within).room[0] == 9
    assert Occupancy.of(within).flat[0] == pytest.approx(8 * (1e6 - 1))  # one ceiling for both
    for unit in (1.0, 2.0, 6.0):
        growing = replace(within, unit=unit, turns=(5.0, 8.0))
        assert Occupancy.of(growing).flat[0] == pytest.approx(30.0 / 0.4)


@pytest.mark.parametrize("group", [1, 5])
def test_growth_is_measured_over_the_last_quarter(group):
    """A step that grows up to half of what memory holds, or beyond it, does not grow there."""
    for turns in ((0.0, 50.0), (100.0, 200.0)):
        still = line(group, 0.0, 10.0, 30.0, 0.4, turns=turns)
        assert Occupancy.of(still).flat[0] == pytest.approx(100 * (1e6 - 1))
    late = line(group, 0.0, 10.0, 30.0, 0.4, turns=(75.0, 100.0))
    assert Occupancy.of(late).flat[0] == pytest.approx(30.0 / 0.4)


def test_a_step_that_only_grows_stays_below_its_end():
    """Without an idle part 99 of 100 parts grow, as far as anything is steady."""
    assert Occupancy.of(line(1, 0.0, 10.0, 0.0, 0.4)).flat[0] == pytest.approx(100 / 99)
    steep = line(1, 0.0, 10.0, 0.4, 0.4)  # at 100 sequences 40 parts of 40.4 grow: 0.99009...
    assert Occupancy.of(steep).flat[0] == pytest.approx(100 / 99)
    below = line(1, 0.0, 10.0, 2.0, 0.4)
    assert Occupancy.of(below).flat[0] == pytest.approx(2.0 / 0.4)


def test_rows_of_an_occupancy():
    """Room and growth of the rows taken, each its own."""
    whole = Occupancy(np.array([3.0, 5.0, 8.0]), np.array([0.1, 0.2, 0.4]))
    part = whole.take(np.array([2, 0]))
    assert (part.room.tolist(), part.flat.tolist()) == ([8.0, 3.0], [0.4, 0.1])


def test_conversations_met_again_are_those_that_room_holds():
    """Whole sequences of a rank; of all ranks and replicas where requests find their own."""
    one = np.ones(3, np.int64)
    ranks, replicas = np.array([1, 2, 3]), np.array([2, 3, 1])
    layouts = Layouts(one, one, one, ranks, one, one, replicas, one, one)
    room = Occupancy(np.array([7.0, 7.0, 2.0]), np.zeros(3))
    for routed, held in ((False, [7, 3, 0]), (True, [7 * 2, 3 * 6, 0])):
        for many in (40, 4):
            task = SimpleNamespace(cached_input=0.6, routed=routed, conversations=many)
            by_hand = [0.6 * min(1, number / many) for number in held]
            assert room.hits(task, layouts) == pytest.approx(np.array(by_hand))


SYMBOLS = {"L_in": 1000.0, "v_in": 0.0, "L_out": 1e-6, "v_out": 0.0, "L_ctx": 1000.0,
           "L_dec": 200.0, "one_seq": 1.0, "r_pf": 0.0}  # fmt: skip


@pytest.mark.parametrize("ranks", [1.0, 4.0])
@pytest.mark.parametrize("flat", [1e12, 60.0])
def test_crowding_of_ranks_by_hand(ranks, flat):
    """Little's law, and the tail of a Poisson or negative binomial number of a rank's own part.

    Of a step 1 + n/flat times as long the variance over mean of n is 1/(1 - n/(n + flat)).
    """
    load, pace, room = 5.0, 0.03, 38.0
    symbols = {**SYMBOLS, "x_load": load, "T_tpot": np.array([pace]), "dp": ranks}
    decoding, late = Occupancy(np.array([room]), np.array([flat])).crowding(symbols)
    number = load * 200 * pace
    assert decoding == pytest.approx(number)
    spread = 1 / (1 - number / (number + flat))
    mean, variance = number / ranks + (spread - 1) / ranks, 1 + (spread - 1) / ranks
    fits = math.floor(room / ranks)
    if flat > 1e9:
        by_hand = stats.poisson.sf(fits, mean)
    else:
        by_hand = stats.nbinom.sf(fits, mean / (variance - 1), 1 / variance)
    assert late == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("case", [
    (2.5, 1.4, 3), (2.5, 2.0, 0), (9.0, 1.0, 12), (9.0, 1.0 + 1e-9, 6), (0.2, 1.0, 0),
    (0.2, 3.0, 2),
])  # fmt: skip
def test_more_in_flight_than_there_is_room_for_term_by_term(case):
    """One less the sum of all numbers that fit: Poisson, or negative binomial of that variance."""
    mean, spread, room = case
    fits = 0.0
    for n in range(room + 1):
        if spread - 1 < 1e-6:
            fits += math.exp(-mean) * mean**n / math.factorial(n)
        else:
            shape = mean / (spread - 1)
            ways = math.gamma(n + shape) / (math.factorial(n) * math.gamma(shape))
            fits += ways * (1 / spread) ** shape * (1 - 1 / spread) ** n
    late = overflow_probability(*map(np.array, (mean, spread, float(room))))
    assert float(late) == pytest.approx(1 - fits, rel=1e-7)


def test_a_hardly_spread_number_is_poisson():
    """Up to a millionth of the mean the variance is the mean's, beyond it its own."""
    mean, room = np.full(2, 50.0), np.full(2, 60.0)
    late = overflow_probability(mean, 1 + np.array([0.9e-6, 1.2e-6]), room)
    assert late[0] == stats.gamma.cdf(50.0, 61)
    assert late[1] == pytest.approx(late[0], rel=1e-4)
    assert late[1] != late[0]


def test_nobody_is_in_flight_where_nothing_arrives():
    """The share is zero, whatever the spread."""
    late = overflow_probability(np.zeros(2), np.array([1.0, 3.0]), np.zeros(2))
    assert late == pytest.approx([0.0, 0.0], abs=1e-300)


def asked(load: str, mode: str = "aggregated", *, bound: bool = False) -> Any:
    """What `arriving` reads of a step."""
    return SimpleNamespace(bound=bound, task=SimpleNamespace(load=load, mode=mode, headroom=0.2))


def test_the_share_of_time_that_is_read():
    """Requests a second times the seconds of a prompt, up to 99 of 100; headroom is not offered.

    A load that is given leaves room already; chips that only decode, and the bound, read nothing.
    """
    values = {"arrivals": np.array([2.0, 5.0, 40.0]), "tpot": np.ones(3), "busy": np.full(3, 0.1)}
    free, given_ = arrival_values(asked("none"), values), arrival_values(asked("given"), values)
    assert free["x_load"] == pytest.approx(values["arrivals"] * 0.8)
    assert free["r_pf"] == pytest.approx([0.16, 0.4, 0.99])
    assert given_["x_load"].tolist() == [2.0, 5.0, 40.0]
    assert given_["r_pf"] == pytest.approx([0.2, 0.5, 0.99])
    for step in (asked("given", "decode"), asked("given", bound=True)):
        assert arrival_values(step, values)["r_pf"].tolist() == 0.0


def test_crowding_by_walking_the_equations_is_the_same():
    """Four ranks whose room is no multiple of them; nothing where it is not counted."""
    room = Occupancy(np.array([38.0]), np.array([60.0]))
    task = SimpleNamespace(load="given", mode="aggregated")
    step = SimpleNamespace(crowds=True, bound=False, task=task, occupancy=room)
    symbols = {**SYMBOLS, "dp": 4.0, "v_in": 0.5, "v_out": 0.2, "L_out": 300.0}
    again = {"arrivals": 5.0, "tpot": 0.03, "busy": 0.04}
    _, late = room.crowding({**symbols, "x_load": 5.0, "T_tpot": 0.03, "r_pf": 5.0 * 0.04})
    assert 0.01 < late[0] < 0.99
    assert recheck_overflow(step, symbols, again) == {"crowded": pytest.approx(late[0], rel=1e-12)}
    step.crowds = False
    assert recheck_overflow(step, symbols, again) == {}


# Chips that only read, prompts of one length and a chunk that each fills: an M/D/1 queue.
READERS = {"T_pf_busy": 0.1, "dp": 1.0, "s_mixed": 0.0, "L_in": 512.0, "x_hit": 0.0, "T_dec": 0.0,
           "pp": 1.0, "c_chunk": 512.0, "one_seq": 1.0, "v_in": 0.0, "a_pf": 0.0,
           "a_idx": 0.0, "r_idx": 1.0, "f_stage": 1.0,
           "F_sdpa": 1.0, "tp": 1.0, "cp": 1.0, "e_pf_a": 1.0}  # fmt: skip


def waits_by_hand(load: float, service: float = 0.1) -> tuple[float, float, float]:
    """Mean wait and the tails of one and five percent: the line's, and half of a pass beside it.

    Where readers are mostly idle the first piece of M/D/1, (1 - rho) exp(x t), has the longer tail.
    """
    busy = load * service
    line_, beside = busy * service / (2 * (1 - busy)), busy**2 * service / 2
    mean = line_ + beside
    heavy = math.sqrt(max(busy + 2 * (1 - busy) / 3, 1))
    tails = []
    for share in (0.05, 0.01):
        waiting = heavy * line_ * math.log(max(busy, share) / share) / max(busy, share)
        rest = math.log((1 - share) / (1 - max(busy, share))) / load - mean if load else 0.0
        tails.append(mean + max(waiting + beside - line_, rest, 0.0))
    return mean, tails[0], tails[1]


def test_queues_of_one_server_by_hand():
    """Pollaczek and Khinchine's mean, an exponential tail; a table, a row and numbers alike."""
    loads = np.array([[1.0, 2.0, 0.3], [6.0, 8.0, 9.5]])
    table = queue({**READERS, "x_load": loads})
    row = queue({**READERS, "x_load": loads[1]})
    for place in np.ndindex(loads.shape):
        load = float(loads[place])
        number = queue({**READERS, "x_load": load})
        by_hand = dict(zip(("wait", "ttft_p95", "ttft_p99"), waits_by_hand(load), strict=True))
        for name, wanted in {"readers": load * 0.1, **by_hand}.items():
            assert float(table[name][place]) == pytest.approx(wanted, rel=1e-9)
            assert float(number[name]) == pytest.approx(wanted, rel=1e-9)
            if place[0] == 1:
                assert float(row[name][place[1]]) == pytest.approx(wanted, rel=1e-9)


def test_nobody_waits_where_nothing_arrives_and_without_end_where_too_much_does():
    """At a load of one the line has no end; the others of a row are what they are alone."""
    late = queue({**READERS, "T_pf_busy": 0.125, "x_load": np.array([0.0, 4.0, 8.0, 9.0, 800.0])})
    assert late["readers"] == pytest.approx([0.0, 0.5, 1.0, 1.125, 100.0])
    mixed = {**READERS, "T_pf_busy": 0.0625, "s_mixed": 1.0, "T_dec": 0.0625}
    late_too = queue({**mixed, "x_load": np.array([4.0, 8.0, 9.0])})
    assert late_too["readers"] == pytest.approx([0.5, 1.0, 1.125])
    assert np.isinf(late_too["wait"]).tolist() == [False, True, True]
    by_hand = waits_by_hand(4.0, 0.125)
    for name, wanted in zip(("wait", "ttft_p95", "ttft_p99"), by_hand, strict=True):
        assert late[name] == pytest.approx([0.0, wanted, math.inf, math.inf, math.inf])


def test_readers_that_are_busy_all_the_time_but_for_a_rounding():
    """The time that prompts take is all there is; divided by its ranks it is a bit less."""
    each, load = 0.4946618363463363, 2.021583082669536
    late = queue({**READERS, "T_pf_busy": each, "dp": 3.0, "x_load": np.array([load, 1.0])})
    assert each * load == 1 > late["readers"][0]
    assert np.isinf(late["wait"]).tolist() == [True, False]


@pytest.mark.parametrize("turn", [1, 2, 7, 63, 64, 100])
def test_the_first_whole_number_by_bisection(turn):
    """From anywhere below to anywhere above; numbers are asked of inside the ends alone."""
    low, high = (
        np.array([0.0, 0.0, turn - 1.0, turn // 2, -1.0]),
        np.array([100.0, turn, turn, 101, 128]),
    )

    def holds(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        assert (low[rows] < numbers).all()
        assert (numbers < high[rows]).all()
        assert (numbers == np.floor(numbers)).all()
        return numbers >= turn

    before = low.copy(), high.copy()
    assert first(holds, low, high).tolist() == [turn] * 5
    assert (low == before[0]).all()
    assert (high == before[1]).all()
