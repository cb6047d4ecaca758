"""What serving a member costs in a lifecycle: rent, idle time, both pools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.laws.model_family import ModelFamily
from planner.problems import serving
from planner.problems.lifecycle.members import FamilyRule, Formats
from planner.problems.lifecycle.question import Serving
from planner.problems.lifecycle.serving_cost import ServedMember, ServingQuestion, serving_question
from planner.text.errors import FieldError, error_paths

N, INTO, OUT = 8e9, 3000, 600
GIVEN: dict[str, Any] = {
    "system": "hgx-h100",
    "chips": [8],
    "price": "$2.50/hour",
    "workload": {"input_tokens": INTO, "output_tokens": OUT},
    "promises": {"tpot": "50 ms", "ttft": "2 s"},
    "choose": {"weights": "fp8", "mode": "aggregated", "tp": 1, "pp": 1, "batch": 256},
}
PAIR = {"choose": {"weights": "fp8", "mode": "disaggregated"}}


def served(**changes: Any) -> ServedMember:
    """The cheapest plan of a dense member of eight billion parameters."""
    question = serving_question(Serving.model_validate({**GIVEN, **changes}))
    member = question.cheapest(FamilyRule(ModelFamily()), N, 1.0)
    assert member is not None
    return member


@pytest.mark.parametrize("change", [{}, PAIR], ids=["one pool", "two pools"])
def test_a_price_is_the_rent_over_what_is_served(change):
    """Of all chips that are paid, over prompts and answers together."""
    member = served(**change)
    rent = member.plan.chips_used * 2.5 / 3600
    assert member.price == pytest.approx(rent / member.tokens_per_s, rel=1e-6)


@pytest.mark.parametrize("change", [{}, PAIR], ids=["one pool", "two pools"])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_idle_time_is_paid_too(share, change):
    """At a share of the time sold, the rate falls and the price grows by as much."""
    full, idle = served(**change), served(utilisation=share, **change)
    requests = full.plan.requests_per_s
    assert full.tokens_per_s == pytest.approx(requests * (INTO + OUT))
    assert idle.tokens_per_s == pytest.approx(share * full.tokens_per_s)
    assert idle.tokens_per_chip_second == pytest.approx(share * requests * (INTO + OUT) / 8)
    assert idle.price == pytest.approx(full.price / share)
    assert idle.band.usd_per_mtok == pytest.approx([end / share for end in full.band.usd_per_mtok])


def test_the_price_is_that_of_the_serving_planner():
    """At the member's own size, and it follows the size as two members do."""
    member = served()
    assert member.price * 1e6 == pytest.approx(member.plan.usd_per_mtok)
    size = member.member.n_active
    assert size == pytest.approx(N, rel=0.01)
    assert member.at(size) == pytest.approx(member.price)
    price, slope = member.tangent(size)
    assert price == pytest.approx(member.price)
    step = 1e-3
    ends = member.at(size * (1 + step)), member.at(size * (1 - step))
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step * member.price), rel=1e-3)
    assert 0 < slope < 1.1


def test_each_pool_bears_what_it_would_cost_alone():
    """A pool that waits for the other counts for its time in use: shares of balanced pools."""
    member = served(**PAIR)
    plan = member.plan
    assert plan.prefill.utilisation < 1 or plan.decode.utilisation < 1
    used = [pool.usd_per_hour * pool.utilisation for pool in (plan.prefill, plan.decode)]
    shares = [share for _, share, _ in member.parts]
    assert shares == pytest.approx([each / sum(used) for each in used], rel=1e-3)


def test_elasticities_of_a_served_member_are_those_of_prices():
    """What a faster memory saves, against members on machines with one percent more and less."""
    member = served()
    slopes = member.elasticities_at(member.member.n_active)
    faster = served(system={"like": "hgx-h100", "memory_bandwidth": "3383.5 GB/s"})
    nearby = served(system={"like": "hgx-h100", "memory_bandwidth": "3316.5 GB/s"})
    difference = (faster.price - nearby.price) / (0.02 * member.price)
    assert slopes["system.memory_bandwidth"] == pytest.approx(difference, abs=0.02)


# -- away from the member ------------------------------------------------------------------------


@cache
def once(two_pools: bool) -> ServedMember:
    """A member served by one pool or by two, half of the time."""
    return served(utilisation=0.5, **(PAIR if two_pools else {}))


@pytest.mark.parametrize("two_pools", [False, True], ids=["one pool", "two pools"])
@pytest.mark.parametrize("factor", [0.7, 1.6])
def test_a_tangent_touches_the_price_at_other_sizes_too(two_pools, factor):
    """On the same layouts: the price there, and its slope by differences."""
    member = once(two_pools)
    size, step = member.member.n_active * factor, 1e-4
    price, slope = member.tangent(size)
    assert price == pytest.approx(member.at(size), rel=1e-9, abs=0)
    assert price / member.price == pytest.approx(factor, rel=0.35)
    ends = [np.log(member.at(size * (1 + side * step))) for side in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3)


@pytest.mark.parametrize("two_pools", [False, True], ids=["one pool", "two pools"])
def test_elasticities_at_other_sizes_are_those_of_changed_machines(two_pools):
    """Layouts held: the price with memory, and with arithmetic, one percent faster and slower."""
    member, step = once(two_pools), 1e-3
    size = member.member.n_active * 1.6

    def price(**factors: float) -> float:
        def change(task):
            chip = task.chip
            flops = {x: rate * factors.get("flops", 1.0) for x, rate in chip.flops.items()}
            memory = chip.memory_bandwidth * factors.get("memory", 1.0)
            return replace(task, chip=replace(chip, memory_bandwidth=memory, flops=flops))

        return member.changed(change).at(size)

    assert price() == pytest.approx(member.at(size), rel=1e-12, abs=0)
    slopes = member.elasticities_at(size)
    for name, quantity in (("memory", "system.memory_bandwidth"), ("flops", "system.flops")):
        ends = [np.log(price(**{name: 1 + side * step})) for side in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * step)
        assert slopes.get(quantity, 0.0) == pytest.approx(expected, abs=2e-4)
    assert sum(slopes[x] for x in ("system.memory_bandwidth", "system.flops")) < -0.3


def test_parts_of_a_price_are_shares():
    """One pool bears all of it; two what each would cost alone, at the values of their programs."""
    ((_, whole, _),) = once(False).parts
    assert whole == 1.0
    assert sum(share for _, share, _ in once(True).parts) == pytest.approx(1.0)
    member = once(True)
    size = member.member.n_active * 1.3
    solved = list(member._solved_at(size))
    parts = zip(solved, member.parts, strict=True)
    expected = [share * solution.value / value for (_, solution, _), (_, share, value) in parts]
    assert [part for *_, part in solved] == pytest.approx(expected)
    assert member.at(size) == pytest.approx(member.price * sum(expected), abs=0, rel=1e-9)
    told = [sentence for _, solution, _ in solved for sentence in solution.warnings]
    assert list(member.warnings_at(size)) == told


# -- which plan ----------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_the_cheapest_of_formats_and_machines_is_taken(turned):
    """In whichever order they are listed: the least of the prices of each alone."""
    formats, machines = ["bf16", "fp8"], ["hgx-a100", "hgx-h100"]
    if turned:
        formats, machines = formats[::-1], machines[::-1]
    given = {"activations": "bf16", "mode": "aggregated", "tp": 1, "pp": 1, "batch": 64}
    alone = {
        (weights, machine): served(system=machine, choose={**given, "weights": weights})
        for weights, machine in product(formats, machines)
    }
    best = served(system=machines, choose={**given, "weights": formats})
    prices = {key: member.price for key, member in alone.items()}
    cheapest = min(prices, key=prices.__getitem__)
    assert max(prices.values()) > 1.05 * prices[cheapest]
    assert best.price == pytest.approx(prices[cheapest], rel=1e-9, abs=0)
    assert best.plan.weights == cheapest[0]
    assert best.member.sizes.weight_dtype == alone[cheapest].member.sizes.weight_dtype
    assert best.candidate.task.chip.name == alone[cheapest].candidate.task.chip.name


def test_the_best_plan_of_the_best_format_is_taken(monkeypatch):
    """The first of each, which is its cheapest; a format without any is passed over."""
    ranked = {"bf16": [5.0, 6.0, 9.0], "fp8": [2.0, 7.0], "nvfp4": [], "int4": [3.0, 8.0]}
    points = iter([[SimpleNamespace(score=x, candidate=(name, x)) for x in scores]
                   for name, scores in ranked.items()])  # fmt: skip
    question = serving_question(Serving.model_validate(GIVEN))
    monkeypatch.setattr(ServingQuestion, "_questions", lambda *_: iter(()))
    monkeypatch.setattr(
        ServingQuestion, "_formats",
        lambda _: [(Formats(weights=name), None, 0, 0) for name in ranked],
    )  # fmt: skip
    monkeypatch.setattr(serving, "ranked_points", lambda _: next(points))
    best = question.cheapest(FamilyRule(ModelFamily()), N, 1.0)
    assert best.candidate == ("fp8", 2.0)
    assert best.member.sizes.weight_dtype["attention"] == "fp8"
    assert best.utilisation == 1.0


def test_every_format_is_tried_with_every_way_to_prefill():
    """All together; what nothing is said of as the checkpoint has it, with no copies of experts."""

    def formats(**given: Any) -> list[Any]:
        names = ("weights", "kv", "activations", "chunk", "redundant_experts")
        choose = SimpleNamespace(**{**dict.fromkeys(names), **given})
        scenario = SimpleNamespace(choose=choose, speculation=None)
        return list(ServingQuestion(scenario, (), 1.0, (), ())._formats())

    assert formats() == [(Formats(None, None, None), None, 0, 0)]
    found = formats(weights=("bf16", "fp8"), kv=("bf16", "fp8"), activations=("fp8",),
                    chunk=(512, 2048), redundant_experts=(0, 2))  # fmt: skip
    expected = {
        (Formats(weights, kv, "fp8"), chunk, copies, 0)
        for weights, kv, chunk, copies in product(
            ("bf16", "fp8"), ("bf16", "fp8"), (512, 2048), (0, 2)
        )
    }
    assert len(found) == len(expected) == 16
    assert set(found) == expected


def test_a_dense_member_has_no_experts_to_copy():
    """Copies are not tried of what is not there; with nothing else to try there is no plan."""
    choose = {**GIVEN["choose"], "redundant_experts": [2]}
    question = serving_question(Serving.model_validate({**GIVEN, "choose": choose}))
    assert question.cheapest(FamilyRule(ModelFamily()), N, 1.0) is None
    both = served(choose={**choose, "redundant_experts": [0, 2]})
    assert both.price == pytest.approx(served().price, rel=1e-9, abs=0)


def test_experts_are_copied_where_they_are_held_apart():
    """A sparse member on eight chips: two copies of some, in its plan."""
    choose = {"weights": "fp8", "mode": "aggregated", "pp": 1, "ep": 8, "redundant_experts": [8]}
    question = serving_question(Serving.model_validate({**GIVEN, "choose": choose}))
    member = question.cheapest(FamilyRule(ModelFamily()), N, 16.0)
    assert member is not None
    assert member.member.sizes.n_experts
    assert member.candidate.task.redundant == 8


# -- what is told of it --------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """A range of prices, or none."""

    usd_per_mtok: tuple[float, float] | None


def stub(plan: Any = None, band: Band | None = None, **task: Any) -> ServedMember:
    """A member half of whose time is sold, of a plan by hand."""
    candidate = SimpleNamespace(
        plan=lambda: plan, floor=lambda: "the floor", usd_per_mtok=3.0,
        band=lambda told, floor: band if (told, floor) == (plan, "the floor") else "mistaken",
        task=SimpleNamespace(**task),
    )  # fmt: skip
    return ServedMember(SimpleNamespace(), candidate, 0.5)


def test_a_range_of_prices_pays_idle_time():
    """Where there is one; a range of other things stays as it is."""
    assert stub(band=Band((2.0, 5.0))).band == Band((4.0, 10.0))
    assert stub(band=Band(None)).band == Band(None)
    assert stub().band is None
    assert stub().price == pytest.approx(6e-6, abs=0)


def test_tokens_are_read_and_written():
    """By all chips, in the time that is sold; a plan without one kind has none of it."""
    both = SimpleNamespace(tokens_per_s=600.0, input_tokens_per_s=3000.0, chips=8)
    assert stub(both).tokens_per_s == 1800.0
    assert stub(both).tokens_per_chip_second == 225.0
    assert stub(SimpleNamespace(tokens_per_s=None, input_tokens_per_s=8.0)).tokens_per_s == 4.0
    assert stub(SimpleNamespace(tokens_per_s=8.0, input_tokens_per_s=None)).tokens_per_s == 4.0


def test_a_peak_is_that_of_the_estimate():
    """Of the dtype that the weights are multiplied in, not of the fastest that a bound allows."""
    peaks = {("fp8", False): 2e15, ("fp8", True): 4e15}
    plan = SimpleNamespace(weights="fp8")
    assert stub(plan, peak=lambda weights, bound: peaks[weights, bound]).peak == 2e15


def test_what_contradicts_itself_is_told_of_the_serving_part():
    """The path of the file, not that of a serving question."""
    with pytest.raises(FieldError) as caught:
        served(choose={"tp": 64})
    assert [place for place, _ in caught.value.faults] == ["serving.choose"]
    with pytest.raises(FieldError) as caught, error_paths("serving.{}".format):
        raise FieldError(("system", "no price"), ("profile", "no chip"))
    assert caught.value.faults == (
        ("serving.system", "no price"), ("serving.profile", "no chip"),
    )  # fmt: skip


def test_a_question_has_all_but_the_model():
    """Machines, sources and the share of time that is sold; nothing of the model in its place."""
    question = serving_question(Serving.model_validate({**GIVEN, "utilisation": 0.25}))
    assert question.utilisation == 0.25
    told = [source.what for source in question.data]
    assert "model" not in told
    assert any(what.startswith("chip") for what in told)
    assert [machine.chip.name for machine in question.hardware] == ["h100"]
