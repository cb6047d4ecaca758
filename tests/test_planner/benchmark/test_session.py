"""A measuring session on a device that takes a known time: what it finds, keeps and refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest

from planner.benchmark.device import (
    CALLS,
    MAX_REPEATS,
    UnsupportedByDevice,
    summary,
    time_repeatedly,
)
from planner.benchmark.record import MeasuredChip, fit_alpha_beta
from planner.benchmark.session import measure, suite
from planner.benchmark.works import CACHE_MULTIPLE, Attention, Product, Stream
from tests.cases.measuring_device import H200, Imagined


def measured(device: Imagined, **options: object) -> MeasuredChip:
    """The chip that a session finds on a device."""
    found = measure(device, today=date(2026, 11, 21), clock=device.clock, **options)  # type: ignore[arg-type]
    assert not found.interrupted
    return found.chip


def test_a_session_finds_the_rates_that_the_device_has() -> None:
    """Bandwidth, arithmetic by precision, launches: as the device was made."""
    chip = measured(Imagined())
    assert chip.memory_bandwidth == pytest.approx(4e12)
    assert dict(chip.product_rates) == pytest.approx({"bf16": 7e14, "fp8": 1.4e15, "int8": 1e15})
    assert chip.attention_bandwidth == pytest.approx(4e12)
    assert dict(chip.launch_times) == pytest.approx({"call": 4e-6, "graph": 4e-6})
    assert (chip.head.chip, chip.head.complete, chip.head.as_of) == ("h200", True, "2026-11-21")
    assert not chip.refused
    assert not chip.left_out


def test_every_work_gives_its_memory_back() -> None:
    """Also one whose result is wrong, or that the device is not able to do."""
    device = Imagined(wrong=("bf16 product",), unable=("fp8",))
    measured(device)
    assert device.held == 0


@pytest.mark.parametrize("word", ["read", "triad", "bf16 product", "int8", "bf16 attention"])
def test_a_wrong_result_is_named_and_its_time_is_not_kept(word: str) -> None:
    """Nothing that computes wrongly is fast."""
    lines: list[str] = []
    chip = measured(Imagined(wrong=(word,)), say=lines.append)
    kept = [*chip.memory, *chip.products, *chip.attention, *chip.launch]
    assert chip.refused
    assert all(each.what.startswith(word) for each in chip.refused)
    assert all("was expected" in each.why for each in chip.refused)
    assert not any(str(each.work).startswith(word) for each in kept)
    assert sum(line.startswith("warning: ") for line in lines) == len(chip.refused)


def test_what_a_device_is_not_able_to_do_is_left_out_with_its_reason() -> None:
    """The other works are done, and the session is complete."""
    chip = measured(Imagined(unable=("fp8",)))
    assert {each.why for each in chip.left_out} == {"no such kernel"}
    assert "fp8" not in chip.product_rates
    assert chip.head.complete


def test_works_larger_than_the_free_memory_are_not_tried() -> None:
    """What does not fit is named with what it needs."""
    device = Imagined(replace(H200, free=3 * 10**9))
    chip = measured(device)
    assert all(work.needs <= 0.8 * 3e9 for work in device.seen)
    assert chip.left_out
    assert all("2.4 GB are free" in each.why for each in chip.left_out)


def test_a_session_without_time_says_what_it_left_out() -> None:
    """It is not complete, and what came first is kept."""
    slow = Imagined(bandwidth=1e9)
    chip = measured(slow, budget=5.0)
    assert not chip.head.complete
    assert chip.memory[0].work.kind == "read"
    assert chip.left_out[-1].why == "no time left of 5 s"


@pytest.mark.parametrize("works", [0, 1, 7])
def test_an_interrupted_session_keeps_what_it_has(works: int) -> None:
    """Marked as not complete."""
    device = Imagined(stops=works)
    found = measure(device, clock=device.clock)
    chip = found.chip
    kept = [*chip.memory, *chip.products, *chip.attention, *chip.launch]
    assert found.interrupted
    assert not chip.head.complete
    assert len(kept) == works
    assert chip.left_out[-1].why == "interrupted"


def test_several_devices_sum_together() -> None:
    """Latency and rate are told apart by the sizes of the messages."""
    chip = measured(Imagined(replace(H200, count=8)))
    found = chip.all_reduces[8]
    assert found.latency == pytest.approx(20e-6)
    assert found.rate == pytest.approx(360e9)
    assert found.error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("wrong", "unable"), [(("all-reduce",), ()), ((), ("all-reduce",))])
def test_a_sum_that_fails_leaves_the_rest(wrong: tuple[str, ...], unable: tuple[str, ...]) -> None:
    """Wrong sums are refused, sums that do not come about left out."""
    chip = measured(Imagined(replace(H200, count=4), wrong=wrong, unable=unable), quick=True)
    named = chip.refused if wrong else chip.left_out
    assert not chip.all_reduces
    assert named
    assert all(each.what.startswith("all-reduce") for each in named)
    assert chip.memory_bandwidth


def test_what_is_timed_does_not_come_from_a_cache() -> None:
    """Arrays, weights of a decode step in turn, and contexts are several times the last level."""
    facts = replace(H200, cache=130 * 2**20)
    for work in suite(facts):
        if isinstance(work, Stream):
            assert work.size >= CACHE_MULTIPLE * facts.cache
        if isinstance(work, Product) and work.m <= 512:
            assert work.copies * work.weight_bytes >= CACHE_MULTIPLE * facts.cache
        if isinstance(work, Attention):
            assert work.amount >= CACHE_MULTIPLE * facts.cache


def test_a_last_level_that_drivers_do_not_tell_is_the_catalogue_s() -> None:
    """MI300X has 256 MB behind the 4 MB that are reported."""
    facts = replace(H200, name="AMD Instinct MI300X", capacity=206 * 10**9, cache=4 * 2**20)
    chip = measured(Imagined(facts), quick=True)
    assert chip.head.chip == "mi300x"
    assert chip.head.cache >= 256e6
    assert min(each.work.size for each in chip.memory) >= 1e9


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_quick_suite_is_a_part_of_the_whole(kind: str) -> None:
    """Fewer sizes of the same works, none twice."""
    facts = replace(H200, kind=kind)
    few, all_ = suite(facts, quick=True), suite(facts)
    assert set(few) <= set(all_)
    assert len(few) < len(all_) == len(set(all_))


class _Clock:
    """A work of a fixed time, seen by a clock of a fixed step."""

    def __init__(self, one: float, step: float = 0.0) -> None:
        self.one, self.step, self.calls = one, step, [0]

    def seconds(self, calls: int) -> float:
        self.calls.append(calls)
        took = calls * self.one
        return math.floor(took / self.step) * self.step if self.step else took


@pytest.mark.parametrize("one", [1e-7, 3e-6, 1e-3, 0.4])
def test_short_works_are_run_several_times_in_a_reading(one: float) -> None:
    """The time is that of one run all the same, and no reading is longer than need be."""
    work = _Clock(one)
    found = time_repeatedly(work, 0.5)  # type: ignore[arg-type]
    assert found.median == found.best == pytest.approx(one)
    assert found.spread == pytest.approx(0, abs=1e-9)
    assert 5 <= found.repeats <= MAX_REPEATS
    assert max(work.calls) <= max(CALLS, math.ceil(0.05 / one))


def test_a_clock_that_stands_still_is_no_measurement() -> None:
    """Times of nothing are refused, not turned into rates without bound."""
    with pytest.raises(UnsupportedByDevice, match="did not move"):
        time_repeatedly(_Clock(1e-9, step=1.0), 0.5)  # type: ignore[arg-type]


def test_median_and_spread_are_those_of_the_ranked_times() -> None:
    """Median 6, deciles 2 and 10 of the numbers from 1 to 11."""
    found = summary([float(each) for each in (11, 1, 9, 3, 7, 5, 6, 4, 8, 2, 10)])
    assert (found.repeats, found.best, found.median) == (11, 1.0, 6.0)
    assert found.spread == pytest.approx((10 - 2) / 6)


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [-1.0], [math.nan], [math.inf]])
def test_times_that_are_none_are_refused(bad: list[float]) -> None:
    """No times, none at all, backwards, not a number."""
    with pytest.raises(UnsupportedByDevice):
        summary(bad)


def test_neither_part_of_a_line_is_negative() -> None:
    """Times that fall with size have no rate, times that start below zero no latency."""
    falling = fit_alpha_beta([(1e3, 2e-6), (1e6, 1e-6)])
    assert falling.rate == math.inf
    assert falling.latency > 0
    steep = fit_alpha_beta([(1e3, 1e-9), (1e6, 1e-5)])
    assert steep.latency == 0
    assert steep.rate > 0
    with pytest.raises(ValueError, match="two sizes"):
        fit_alpha_beta([(1e3, 1e-6), (1e3, 2e-6)])
