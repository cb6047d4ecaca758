"""The numbers of a step from the times of its pools, by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from planner.problems.rl import problem, search
from planner.problems.rl.problem import _binding, _lanes, _others, missed_promises, rl_point
from planner.problems.rl.rollouts import Rollouts
from planner.problems.rl.search import Pools, PoolTally, TrainerTime, _placed, _splits

WORK = SimpleNamespace(rollouts=256, prompt=100, answer=1500, updates=2)


def pools(writing: float, learning: float, *, beside: float = 0.5, **changes: Any) -> Pools:
    """Twelve of sixteen chips write and four learn, slowed by 1.5 and 2; weights take 0.25 s."""
    asked = {"policy": "off", "lag": 1, "chips": 16, "steps": None, "work": WORK, **changes}
    question: Any = SimpleNamespace(**asked)
    framework = SimpleNamespace(rollouts=1.5, learning=2.0, beside=beside)
    resolution: Any = SimpleNamespace(
        question=question, framework=framework, price=SimpleNamespace(value=0.01),
        system=SimpleNamespace(name="ours", scale_out=5e9, scale_up=1e10), weight_bytes=2e10,
    )  # fmt: skip
    replica: Any = SimpleNamespace(tp=4, pp=2, chips=8)
    on = question.policy == "on"
    writes = Rollouts(
        replica, chips=16 if on else 12, replicas=3, answers=86, batch=64, longest=4000.0,
        full=0.02, alone=0.01, ending=3.0, seconds=writing,
    )  # fmt: skip
    layout = SimpleNamespace(step_time=4.0, mfu=0.4)
    learner = TrainerTime(16 if on else 4, layout, "TP4", 2, 3.0, learning)
    return search._timed(resolution, writes, learner)


# Times of both pools with what a framework adds, and their step: in turn, beside, in flight.
STEPS = {
    "on": ({"policy": "on"}, 12.0 + 10.0 + 0.5 + 0.5),
    "beside": ({}, 12.0 + 0.5), "learns longer": ({"beside": 3.0}, 10.0 + 3.0 + 0.5),
    "in flight": ({"beside": 3.0, "lag": 2}, 12.0 + 0.5),
}  # fmt: skip


@pytest.mark.parametrize("case", STEPS)
def test_a_step_and_what_follows_from_it(case):
    """8 s of rollouts at 1.5, 5 s of learning at 2; weights of 20 GB to eight chips at 5 GB/s."""
    changes, seconds = STEPS[case]
    made = pools(8.0, 5.0, **changes, steps=1000)
    point = rl_point(made)
    assert made.sent == pytest.approx(0.5)
    assert point.step_time == pytest.approx(seconds)
    assert (point.rollouts.seconds, point.learning.seconds) == (12.0, 10.0)
    assert point.tokens_per_s == pytest.approx(256 * 1600 / seconds)
    assert point.tokens_per_s_per_chip == pytest.approx(16 * 1600 / seconds)
    busy = (16 * 12 + 16 * 10 if case == "on" else 12 * 12 + 4 * 10) / (16 * seconds)
    assert point.idle == pytest.approx(1 - busy)
    assert point.usd_per_step == pytest.approx(16 * 0.01 * seconds)
    assert point.days == pytest.approx(1000 * seconds / 86400)
    assert point.usd == pytest.approx(1000 * 16 * 0.01 * seconds)
    assert (point.weights_sent, point.beside) == (0.5, changes.get("beside", 0.5))
    assert (point.system, point.chips, point.policy) == ("ours", 16, changes.get("policy", "off"))
    assert (rl_point(pools(8.0, 5.0)).days, rl_point(pools(8.0, 5.0)).usd) == (None, None)
    assert made.choice.endswith(f"generate (PP2 × TP4), {16 if case == 'on' else 4} train (TP4)")
    lanes = _lanes(point)
    assert lanes[-1][2] == pytest.approx(seconds)
    assert [name for name, *_ in lanes] == ["generation", "training", "framework", "weights"]
    assert lanes[1][1:] == ((12.0, 22.0) if case == "on" else (0.0, 10.0))


@pytest.mark.parametrize("case", STEPS)
def test_what_binds_is_what_one_percent_of_its_time_shows(case):
    """d ln(step) / d ln(time of a pool) by making the pool slower; what does not bind has none."""
    changes, seconds = STEPS[case]
    limits = {each.name: each.elasticity for each in _binding(pools(8.0, 5.0, **changes))}
    slower = {"rollouts": pools(8.08, 5.0, **changes), "learning": pools(8.0, 5.05, **changes)}
    rises = {name: (each.seconds / seconds - 1) / 0.01 for name, each in slower.items()}
    assert limits == pytest.approx({name: rise for name, rise in rises.items() if rise > 1e-9})


def test_other_pools_lose_what_they_take_longer():
    """The next four, in their order, against the best."""
    ranked = [pools(8.0 + number, 1.0) for number in range(7)]
    others = _others(PoolTally(9, 7, ranked))
    assert [each.step_time for each in others] == [each.seconds for each in ranked[1:5]]
    assert [each.loses for each in others] == pytest.approx([1.5 * n / 12.5 for n in range(1, 5)])
    assert _others(PoolTally()) == []
    (missed,) = missed_promises(PoolTally(seen=9))
    assert (missed.promise, "9 pairs" in missed.expression) == ("memory", True)


def splits(domain: int | None, **changes: Any) -> list[tuple[int, int]]:
    """Chips that write and learn, of 24 off policy."""
    asked: Any = {"chips": 24, "policy": "off", "unit": None, "split": None, **changes}
    return list(_splits(SimpleNamespace(**asked), SimpleNamespace(chips_per_domain=domain)))  # type: ignore[arg-type]


def test_pools_are_whole_machines_and_the_most_write_first():
    """Units of a machine, of what is asked for, or of one where a machine is all there is."""
    assert splits(8) == [(16, 8), (8, 16)]
    assert splits(16) == [(16, 8), (8, 16)]  # eight is what both are multiples of
    assert splits(8, unit=6) == [(18, 6), (12, 12), (6, 18)]
    assert splits(8, unit=6, split=(6, 18)) == [(18, 6), (6, 18)]
    for domain in (24, None):
        assert splits(domain) == [(n, 24 - n) for n in range(23, 0, -1)]
    assert splits(8, policy="on") == [(24, 24)]


def test_no_step_is_shorter_than_its_arithmetic(monkeypatch):
    """Two updates, each a step and two forward passes of a third, at the peak of all chips."""
    point = SimpleNamespace(mfu=0.4, step_time=6.0, chips_used=12)
    question: Any = SimpleNamespace(chips=16, forwards=2)
    learner = SimpleNamespace(point=point, updates=2)
    monkeypatch.setattr(search, "best_trainer_layout", lambda *_: learner)
    least = search.min_step_seconds(question)
    assert least == pytest.approx(2 * (1 + 2 / 3) * 6.0 * 0.4 * 12 / 16)
    monkeypatch.setattr(search, "best_trainer_layout", lambda *_: None)
    assert search.min_step_seconds(question) == 0.0


def test_mistakes_of_learning_are_placed_in_the_scenario():
    """Keys that the scenario has itself stand as they are."""
    assert _placed("work.global_batch") == "work"
    assert _placed("system.scale_up") == "system.scale_up"
    assert _placed("choose.tp") == "training.choose.tp"
    assert problem.DAY == 24 * 3600
