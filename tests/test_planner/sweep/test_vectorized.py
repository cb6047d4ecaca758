"""Sweeps of a fixed layout are array operations, with the very values that `solve` gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from planner.protocol.output import tolist
from planner.sweep.chunk import chunks, solved
from planner.sweep.run import Order, prepare_sweep
from tests.loops import for_all

FIXED: dict[str, Any] = {
    "problem": "serving",
    "model": "deepseek-v3",
    "system": "hgx-h200",
    "chips": 16,
    "workload": {"input_tokens": 4000, "output_tokens": 1000},
    "promises": {"ttft": "2 s", "tpot": "50 ms"},
    "choose": {
        "mode": "aggregated", "tp": 1, "dp_attention": 16, "ep": 16, "pp": 1, "batch": 256,
        "replicas": 1,
    },
}  # fmt: skip
WINDOWED = {
    **FIXED,
    "model": "gpt-oss-120b",
    "choose": {"mode": "aggregated", "tp": 8, "dp_attention": 1, "ep": 1, "pp": 1, "replicas": 2},
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "lengths and price": (
        FIXED,
        {"workload.input_tokens": "log(100..200k,50)", "price": "lin($1/hour..$5/hour,5)"},
        [],
    ),
    "batch, answer, system": (
        FIXED,
        {
            "choose.batch": "1..600",
            "workload.output_tokens": "lin(2..3000,20)",
            "system": "hgx-h200,gb200-nvl72,hgx-h100",
        },
        [],
    ),
    "layouts, some of them none": (
        FIXED,
        {
            "choose.tp": "1,3,8",
            "choose.dp_attention": "2,16",
            "choose.ep": "1,16",
            "system.memory_bandwidth": "log(1 TB/s..10 TB/s,9)",
        },
        ["choose.tp=1", "choose.dcp=1"],
    ),
    "promises": (
        FIXED,
        {
            "promises.tpot": "log(5 ms..100 ms,9)",
            "promises.ttft": "0.1 s,1 s,3 s",
            "workload.cached_input": "0,0.5,0.9",
            "choose.batch": "64,256,2048",
        },
        [],
    ),
    "the chip": (
        FIXED,
        {
            "system.memory": "log(80 GB..400 GB,9)",
            "system.flops.fp8": "log(1 PFLOP/s..3 PFLOP/s,9)",
            "choose.chunk": "1024,8192",
        },
        [],
    ),
    "the bound": (FIXED, {"workload.routing_skew": "1,1.5,2"}, ["estimate=bound"]),
    "decode": (FIXED, {"workload.input_tokens": "log(100..200k,50)"}, ["choose.mode=decode"]),
    "prefill": (FIXED, {"workload.input_tokens": "log(100..200k,50)"}, ["choose.mode=prefill"]),
    "windows, closed loop": (
        WINDOWED,
        {"workload.concurrency": "1..100", "workload.input_tokens.mean": "log(10..100k,50)"},
        ["promises={}"],
    ),
}


def evaluated(order: Order, point: int) -> dict[str, Any]:
    """One row of the closed form."""
    assert order.closed is not None
    return {name: tolist(column)[0] for name, column in order.closed.columns(point, point).items()}


@for_all("case", CASES)
def test_a_value_of_the_closed_form_is_that_of_solve(case):
    """Status, reason, words and numbers to 1e-9, at points drawn at random."""
    base, over, sets = CASES[case]
    order = prepare_sweep(base, over, sets)
    assert order.method == "closed form"
    drawn = random.Random(case).sample(range(order.points), min(8, order.points))
    for point in drawn:
        ours = evaluated(order, point)
        (theirs,) = solved(next(chunks(order.survey, [(point, point)], 1)))
        for name, value in theirs.items():
            if name not in ("elapsed_s", "gap"):
                mine = ours.get(name, "absent")
                same = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                assert mine == same, (point, name)
                assert type(mine) is type(value), (point, name)


def test_a_piece_is_the_same_in_whatever_company():
    """A point does not depend on those that are computed with it."""
    base, over, sets = CASES["batch, answer, system"]
    order = prepare_sweep(base, over, sets)
    assert order.closed is not None
    whole = {n: tolist(c) for n, c in order.closed.columns(100, 160).items() if n != "elapsed_s"}
    for point in (100, 131, 160):
        alone = evaluated(order, point)
        assert {name: column[point - 100] for name, column in whole.items()} == {
            name: value for name, value in alone.items() if name != "elapsed_s"
        }


@pytest.mark.parametrize(
    ("sets", "over"),
    [
        (["choose.batch=null"], {"price": "$3/hour,$7/hour"}),
        (["choose.ep=[8,16]"], {"price": "$3/hour,$7/hour"}),
        (["chips=32", "choose.replicas=null", "choose={}"], {"price": "$3/hour,$7/hour"}),
        (["choose.weights=[fp8,bf16]"], {"price": "$3/hour,$7/hour"}),
        (["choose.mode=null", "choose.batch=null"], {"price": "$3/hour,$7/hour"}),
        (["choose.batch=null", "workload.demand=1 requests/s"], {"price": "$3/hour,$7/hour"}),
        ([], {"workload.output_tokens": "1,2"}),
    ],
)
def test_what_leaves_a_choice_is_solved(sets, over):
    """Several layouts, batches, formats or modes, or a load: no closed form."""
    assert prepare_sweep(FIXED, over, sets).closed is None


def test_whole_numbers_between_two_ends_must_be_whole():
    """A span whose steps are no whole numbers is refused where only these are read."""
    with pytest.raises(ValueError, match="whole number"):
        prepare_sweep(FIXED, {"choose.batch": "log(1..512,8)"})
    assert prepare_sweep(FIXED, {"choose.batch": "log(1..512,10)"}).closed is not None
