"""The best of several questions, and the bound over them, without looking at those that lose."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.problems.serving import answer
from planner.problems.serving.bounds.lower_bound import Relaxation
from planner.problems.serving.deployment.questions import (
    SearchCounts,
    TwoPools,
    all_searches,
    searches_with_best_point,
)
from planner.problems.serving.deployment.scored_points import best_point
from planner.problems.serving.pairs.evaluated_pairs import evaluate_pair
from planner.problems.serving.task.resolve import resolve
from planner.scenario.loading import load


@dataclass
class Searched:
    """A question with points of these scores, and a bound that takes some programs."""

    scores: list[float]
    least_score: float = 0.0
    bound: float = 1.0
    task: Any = field(default_factory=lambda: SimpleNamespace(prefer_simple=0.0))
    solves: int = 50
    looks: list[float] = field(default_factory=list)

    @property
    def decided(self) -> SearchCounts:
        """One layout."""
        return SearchCounts(1, 2, 3)

    def points(self) -> list[Any]:
        """Its points."""
        self.looks.append(self.least_score)
        return [SimpleNamespace(score=score, tasks=()) for score in self.scores]

    def relaxation(self, incumbent: float, enough: float) -> Relaxation:
        """The bound, which stops after one program where it is beyond what is enough."""
        self.looks.append(enough)
        short = self.bound >= enough
        return Relaxation(enough if short else self.bound, 1 if short else self.solves)


def test_questions_that_cannot_hold_the_best_point_are_not_settled() -> None:
    """The least floor comes first; a floor above the best so far ends the search."""
    scores, floors = ([9.0], [5.0, 3.0], [4.0], [3.2]), (8.0, 2.0, 2.5, 3.1)
    many = [Searched(*question) for question in zip(scores, floors, strict=True)]
    best = best_point(cast(Any, many))
    assert best is not None
    assert best.score == 3.0
    assert [len(question.looks) for question in many] == [0, 1, 1, 0]
    assert best_point(cast(Any, [Searched([], 0.0)])) is None


def test_a_certificate_of_many_programs_stops_with_bounds_that_are_not_the_least() -> None:
    """Beyond so many programs a question need only show that its bound is no less."""
    made = SimpleNamespace(usd_per_mtok=20.0)
    best = SimpleNamespace(score=10.0, candidate=made, objective="cost")
    bounds = [9.0, 8.0, 9.5, 9.5, 7.0, 7.5]
    many = [Searched([], bound=bound) for bound in bounds]
    proof = answer._certificate(cast(Any, many), cast(Any, best))
    assert proof.relaxation == pytest.approx(2 * min(bounds))
    assert proof.gap == pytest.approx(0.3)
    # Three in full pass the 120; then one that stops, one that is the least, one that stops.
    assert proof.programs_solved == 3 * 50 + 1 + 50 + 1
    assert [question.looks[0] for question in many] == [float("inf")] * 3 + [8.0, 8.0, 7.0]
    assert proof.layouts_considered == len(many)


LOAD = {"input_tokens": 4000, "output_tokens": 400, "demand": "8 requests/s"}
LOADED = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "price": "$2/hour",
    "rent": {"unit": 1},
    "workload": LOAD,
    "promises": {"tpot": "6 ms", "ttft": "1 s"},
}


@pytest.mark.parametrize(
    ("changes", "pools", "rest"),
    [
        # Paid whatever runs on them: two pools can but cost the same, and the plainer comes first.
        ({"chips": 16, "promises": {"tpot": "50 ms"}}, 1, "tied"),
        ({"chips": [2, 3, 4, 6, 8]}, 2, "some"),
        ({"chips": [2, 4, 8], "power_price": "$0.3/kWh", "promises": {"tpot": "8 ms"}}, 2, "some"),
        (
            {"chips": 8, "workload": LOAD | {"demand": "1 requests/s"}, "objective": "energy"},
            2,
            "all",
        ),
        ({"chips": 8, "promises": {"ttft": "30 ms", "tpot": "2.6 ms"}}, 0, "all"),
    ],
)
def test_layouts_of_two_pools_left_out_cost_more_than_one_pool(
    changes: dict[str, Any], pools: int, rest: str
) -> None:
    """The best point is that of all layouts, whichever of them are left out (of 27 in a pool)."""
    tasks = resolve(load({**LOADED, **changes}))
    every, rivals = all_searches(tasks), searches_with_best_point(tasks)
    best, same = best_point(every), best_point(rivals)
    left = [len(pool.step.layouts) for question in rivals[1:] for pool in question.pools]
    assert (len(best.tasks) if best else 0) == pools
    assert (best and best.candidate.plan()) == (same and same.candidate.plan())
    if rest == "some":
        assert 0 < min(left) <= max(left) < 27
    else:
        assert set(left) == {33 if rest == "tied" else 27}


@pytest.mark.parametrize(
    "change",
    [
        {"objective": "energy", "workload": {"input_tokens": 4000, "output_tokens": 400}},
        {"power_price": "$0.3/kWh", "speculation": {"drafts": "auto"}, "chips": [2, 4]},
        {"power_price": "$0.3/kWh", "workload": LOAD | {"demand": "1 requests/s"}},
    ],
    ids=["energy", "drafts", "demand"],
)
def test_pairs_evaluated_together_are_those_evaluated_alone(change):
    """Where power counts: batches of both pools, the score, and every output."""
    promises = {"promises": {"tpot": "50 ms"}}
    tasks = resolve(load({**LOADED, **promises, "chips": [2, 4], **change}))
    questions = [each for each in all_searches(tasks) if isinstance(each, TwoPools)]
    assert sum(len(question.pairs) for question in questions) > 2
    for question in questions:
        reading, decoding = (pool.step for pool in question.pools)
        for pair in question.pairs:
            alone = evaluate_pair(question.pair, reading, decoding, pair)
            together = question.evaluated(pair)
            assert [p.batch for p in together.pools] == [p.batch for p in alone.pools]
            assert dict(together.outputs) == pytest.approx(dict(alone.outputs), rel=1e-12)
            for first, second in zip(together.pools, alone.pools, strict=True):
                assert dict(first.estimate) == pytest.approx(dict(second.estimate), rel=1e-12)
        assert question.evaluated(question.pairs[0]) is question.evaluated(question.pairs[0])
