"""Results of works are told right from wrong: rounding is no fault, another number is."""

from __future__ import annotations

import numpy as np

from planner.benchmark.device import TimingSample
from planner.benchmark.session import fault
from planner.benchmark.works import (
    AllReduce,
    Attention,
    KernelLaunch,
    Product,
    Stream,
    TimedKernelSpec,
)
from tests.cases.measuring_device import computed
from tests.loops import for_all

WORKS: list[TimedKernelSpec] = [
    Stream("read", 2**20),
    Stream("copy", 2**20),
    Stream("triad", 2**20),
    Product("bf16", 3, 3, 8192),
    Product("fp8", 3, 3, 8192),
    Product("int8", 3, 3, 8192),
    Attention("bf16", 2, 512, 64, 8, 128),
    KernelLaunch("call"),
]
IDS = [str(work) for work in WORKS]


@for_all("work", WORKS, ids=IDS)
def test_a_right_result_is_right_after_rounding(work: TimedKernelSpec) -> None:
    """As the precision rounds it, and no further."""
    assert fault(work, computed(work)) is None


@for_all("work", WORKS, ids=IDS)
def test_one_wrong_number_is_found_and_counted(work: TimedKernelSpec) -> None:
    """The message has it, and what was expected."""
    right = computed(work)
    result = right.result.copy()
    result.flat[-1] = 2 * result.flat[-1] + 10
    told = fault(work, TimingSample(right.operands, result))
    assert told is not None
    assert told.startswith(f"1 of {result.size} sampled numbers are wrong")


@for_all("work", WORKS, ids=IDS)
@for_all("bad", [np.nan, np.inf])
def test_what_is_no_number_is_wrong(work: TimedKernelSpec, bad: float) -> None:
    """It compares with nothing, and must not pass for that."""
    right = computed(work)
    result = right.result.copy()
    result.flat[0] = bad
    assert (
        fault(work, TimingSample(right.operands, result)) == "it holds numbers that are not finite"
    )


def test_a_transposed_product_is_wrong() -> None:
    """Same numbers in other places."""
    work = Product("bf16", 3, 3, 4096)
    right = computed(work)
    assert fault(work, TimingSample(right.operands, right.result.T)) is not None


def test_a_product_that_skips_terms_is_wrong() -> None:
    """A tenth of the terms left out is beyond any rounding of this precision."""
    work = Product("fp8", 3, 3, 8192)
    right = computed(work)
    short = right.operands["a"][:, :7372] @ right.operands["b"][:, :7372].T
    assert fault(work, TimingSample(right.operands, short)) is not None


def test_an_attention_without_its_scale_is_wrong() -> None:
    """Scores are divided by the root of the head's width."""
    work = Attention("bf16", 2, 512, 64, 8, 128)
    right = computed(work)
    q = right.operands["q"] * 128**0.5
    assert fault(work, TimingSample({**right.operands, "q": q}, right.result)) is not None


def test_a_sum_must_be_on_every_device() -> None:
    """One that holds its own part alone is found."""
    work = AllReduce("gloo", 2, 1024)
    parts = np.array([[1.0, 2.0], [3.0, 5.0]])
    both = TimingSample({"parts": np.tile(parts, 2)}, np.array([4.0, 7.0, 4.0, 7.0]))
    alone = TimingSample({"parts": np.tile(parts, 2)}, np.array([4.0, 7.0, 3.0, 5.0]))
    assert fault(work, both) is None
    assert fault(work, alone) == ("2 of 4 sampled numbers are wrong: 5 where 7 was expected")


def test_a_lost_launch_is_found() -> None:
    """Every launch adds one."""
    sample = TimingSample({"calls": np.array([100.0])}, np.array([99.0]))
    assert "99 where 100 was expected" in str(fault(KernelLaunch("graph"), sample))


def test_a_result_of_another_shape_is_wrong() -> None:
    """Not broadcast into a right one."""
    work = Stream("read", 2**20)
    right = computed(work)
    assert "shape" in str(fault(work, TimingSample(right.operands, right.result[:1])))
