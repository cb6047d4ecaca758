"""What engines change about a step, by hand: slow kernels, closed loops, static batches, memory."""

from dataclasses import replace
from math import ceil, sqrt

import numpy as np
import pytest

from planner.architecture.layers import CacheKind
from planner.catalogue.chips import chip
from planner.problems.serving.step import engine_effects
from planner.problems.serving.step.engine_effects import (
    EngineTraits,
    captures,
    coefficient_powers,
    engine_name,
    gathered_first_token,
    has_slowdown,
    loop_symbols,
    max_resident,
    overlaps,
    prefill_chunk_tokens,
    rounds_waited,
    slowdown_depends_on_batch,
    slowdown_factors,
    static_first_token,
)
from planner.problems.serving.step.kernels import feed, get_kernel
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import ClosedLoop
from tests.cases.serving import columns, dense, question
from tests.loops import for_all

H100, B200 = chip("h100"), chip("b200")
OLD = "trtllm-2024"  # leaves a cache to one multiprocessor, takes groups of up to 16 heads
LAYOUT = columns([(2, 1, 1, 2, 1, 1, 1, 4)])


def grouped(heads: float):
    """A model of 4 KV heads with so many query heads on each."""
    full = CacheKind("full", 6, 10.0, 20.0, None, True, 2 * 10.0 * heads, 1.0, 4)
    return replace(dense(), caches=(full,))


def task_of(engine, heads=8.0, **changes):
    """A question to an engine on an H100."""
    return replace(question(grouped(heads), engine=engine, **changes), chip=H100)


def test_an_engine_by_its_name():
    """With its year where that matters; a plugin has the scheduler of the engine that it names."""
    assert engine_name("trtllm", "2024-05-01") == OLD
    assert engine_name("trtllm", "2026-05-01") == "trtllm"
    assert engine_name("vllm") == "vllm"
    assert (
        prefill_chunk_tokens("vllm")
        == prefill_chunk_tokens("vllm-ascend")
        == prefill_chunk_tokens("")
        == 8192
    )
    assert prefill_chunk_tokens("llama.cpp") == prefill_chunk_tokens("my-llama.cpp-port") == 512
    assert (captures(OLD), captures("trtllm"), captures("unheard-of")) == (False, True, True)
    assert (overlaps("trtllm"), overlaps("a-trtllm"), overlaps("sglang")) == (False, False, True)


SLOW = {  # engine: whether it slows what decodes, a pool that prefills, a static batch there
    "vllm": (False, False, False), OLD: (True, True, False), "pope-2022": (False, True, False),
    "fastertransformer-2022": (True, True, False), "tile": (True, False, False),
}  # fmt: skip


@pytest.mark.parametrize("engine", SLOW)
def test_which_phases_an_engine_slows(engine, monkeypatch):
    """Lone caches and large groups while decoding; weights beside products while reading."""
    monkeypatch.setitem(engine_effects.ENGINES, "tile", EngineTraits(largest_group=16.0))
    decodes, reads, static = SLOW[engine]
    task = task_of(engine)
    prefill = replace(task, mode="prefill")
    assert [has_slowdown(x) for x in (task, prefill, replace(prefill, static=True))] == [
        decodes, reads, static
    ]  # fmt: skip
    follows = engine in (OLD, "fastertransformer-2022")
    assert slowdown_depends_on_batch(task) is slowdown_depends_on_batch(
        replace(task, mode="decode")) is follows  # fmt: skip
    assert not slowdown_depends_on_batch(prefill)
    if not decodes:
        assert slowdown_factors(task, LAYOUT, {}) == {}


@pytest.mark.parametrize(
    ("heads", "batch", "on", "lone", "vector"),
    [(8.0, 1.0, H100, 3.35e12 * 2 / (50e9 * 2), None),  # two groups of two caches on a rank
     (16.0, 1.0, H100, 3.35e12 * 2 / (50e9 * 2), None),
     (20.0, 1.0, H100, 3.35e12 * 2 / (50e9 * 40), H100.peak("bf16") / 67e12),  # head by head
     (20.0, 2.0, H100, 3.35e12 * 2 / (50e9 * 40 * 2), H100.peak("bf16") / 67e12),
     (20.0, 1e4, H100, 1.0, H100.peak("bf16") / 67e12),
     (20.0, 1.0, B200, B200.memory_bandwidth * 2 / (50e9 * 2), None)],
)  # fmt: skip
def test_a_cache_that_is_left_to_few_multiprocessors(heads, batch, on, lone, vector):
    """Each reads 50 GB/s; large groups of heads go to vector units where their speed is known."""
    task = replace(task_of(OLD, heads), chip=on)
    values = {"W_chip": on.memory_bandwidth, "dp": 2.0, "pp": 1.0, "B": np.array([batch])}
    factors = slowdown_factors(task, LAYOUT, values)
    assert factors["e_kv"] == pytest.approx(lone)
    assert factors.get("e_at") == (None if vector is None else pytest.approx(vector))
    powers = coefficient_powers(task, LAYOUT, values)
    follows = lone > 1
    for symbol in ("W_chip", "dp", "pp"):
        assert powers["e_kv"][symbol] == pytest.approx(-1.0 if follows else 0.0, abs=1e-9)
    assert "B" not in powers["e_kv"]
    assert "F_head" not in powers["e_kv"]
    if vector is not None:
        assert powers["e_at"]["F_sdpa"] == -1
        assert powers["e_at"]["W_chip"] == 0


def test_three_heads_over_two_chips_are_two_on_the_fuller():
    """A cache's heads are counted on the chip that has most of them."""
    three = replace(grouped(8.0), caches=(replace(grouped(8.0).caches[0], heads=3),))
    task = replace(task_of(OLD), sizes=three)
    values = {"W_chip": 1e12, "dp": 1.0, "pp": 1.0, "B": 1.0}
    assert slowdown_factors(task, LAYOUT, values)["e_kv"] == pytest.approx(
        1e12 / (50e9 * ceil(3 / 2))
    )


READING = {  # engine, weights: bytes written and read to widen weights, share read beside products
    "vllm": (0.0, 0.0), OLD: (0.0, 1.0), "llama.cpp": (None, None), "apple": (0.0, 1.0),
    "llama.cpp in 16 bits": (0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("case", READING)
def test_weights_are_read_beside_products(case):
    """The root of the squares of both, over reading alone; widened weights go there and back."""
    engine = "llama.cpp" if case.startswith(("llama", "apple")) else case
    task = task_of(engine, mode="prefill")
    if case in ("llama.cpp", "apple"):
        kinds = {**task.sizes.weight_dtype, "dense_ffn": "int4"}
        task = replace(task, sizes=replace(task.sizes, weight_dtype=kinds))
    if case == "apple":
        task = replace(task, chip=replace(H100, architecture="apple-silicon"))
    symbols = Step(task, LAYOUT, bound=False).values(np.array([2.0]))
    symbols = {**symbols, "e_w": 0.7, "n_pr": 1.0}
    wide, beside = READING[case]
    if wide is None:
        half = 2.0 * task.sizes.params["dense_ffn"] / sum(task.sizes.streamed_bytes.values())
        wide, beside = 2 * half, half
    read, peak = (
        float(np.ravel(feed(get_kernel("prompt", name), symbols)[name])[0])
        for name in ("T_pf_read", "T_pf_peak")
    )
    expected = 1 + wide - beside + (sqrt((beside * read) ** 2 + peak**2) - peak) / read
    factors = slowdown_factors(task, LAYOUT, symbols)
    if case == "vllm":
        assert factors == {}
        return
    assert factors["e_w"] == pytest.approx(expected, rel=1e-9)
    powers = coefficient_powers(task, LAYOUT, symbols)["e_w"]
    for symbol in ("W_chip", "F_attn"):
        ends = [
            slowdown_factors(task, LAYOUT, {**symbols, symbol: symbols[symbol] * factor})["e_w"]
            for factor in (1.01, 1 / 1.01)
        ]
        slope = np.log(ends[0] / ends[1]) / (2 * np.log(1.01))
        assert powers[symbol] == pytest.approx(-float(slope[0]), abs=1e-5)
    assert "x_hit" not in powers  # nothing is cached, and a share of zero has no logarithm


LOOPS = {  # engine, loop: what a request meets
    "plain": ("vllm", {}, {}, {"x_ramp": 0.05, "n_meet": 2, "n_back": 0, "n_others": 11}),
    "polled": ("vllm", {"poll": 10.0, "hold": 3.0}, {}, {"n_meet": 15, "n_back": 8}),
    "short answers": ("vllm", {"poll": 300.0}, {}, {"n_meet": 200, "n_back": 150}),
    "one token": ("vllm", {"poll": 9.0}, {"output_tokens": 1.0}, {"n_meet": 2}),
    "prompts first": ("sglang", {}, {}, {"x_ramp": 0.5}),
    "uneven": ("sglang", {"even": False}, {}, {"x_ramp": 0.05}),
    "mixed": ("sglang", {"mixed": True}, {}, {"x_ramp": 0.05}),
    "a pool that reads": ("sglang", {"tpot": 0.02, "step": 0.01, "burst": 7.0, "rounds": 2.0},
                          {"mode": "prefill"}, {"x_ramp": 0.05, "T_tpot": 0.02, "T_dec": 0.01,
                                                "n_burst": 7, "n_rounds": 2}),
}  # fmt: skip


@for_all("case", LOOPS)
def test_what_a_request_of_a_closed_loop_meets(case):
    """Of 24 sequences on two ranks eleven others; half of the polls of a loop are waited for."""
    engine, loop, changes, expected = LOOPS[case]
    task = task_of(engine, loop=ClosedLoop(**loop), **changes)
    symbols = loop_symbols(task, {"B": 24.0, "dp": 2.0})
    assert {name: float(symbols[name]) for name in expected} == pytest.approx(expected)
    assert ("T_dec" in symbols) is (task.mode == "prefill")
    assert float(loop_symbols(task, {"B": 1.0, "dp": 2.0})["n_others"]) == 0
    with pytest.raises(ValueError, match="no closed loop"):
        loop_symbols(replace(task, loop=None), {"B": 1.0, "dp": 1.0})


def test_sequences_that_an_engine_lets_in_by_hand():
    """Nine tenths of memory less weights and 2 GB, or six tenths of what weights leave."""
    layouts = columns([(1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 3, 1, 1, 1, 3)])
    task = replace(task_of("vllm"), chip=replace(H100, memory=80e9, memory_reported=None))
    weights, cache = np.array([40e9, 78e9]), np.array([1e9, 1e6])
    later = (0.5 * 200 + 1000) / 1100  # half of the answer must fit, of a mean context of 1100
    expected = [(72e9 - 2e9 - 40e9) / (1e9 * later), 3 * 0.6 * 2e9 / (1e6 * later)]
    assert max_resident(task, layouts, weights, cache) == pytest.approx(expected)
    reported = replace(task, chip=replace(task.chip, memory_reported=90e9))
    first = (81e9 - 2e9 - 40e9) / (1e9 * later)
    assert max_resident(reported, layouts, weights, cache)[0] == pytest.approx(first)
    whole = replace(task, engine="trtllm")
    aside = (72e9 - 2e9 - 40e9) / (1e9 * 1200 / 1100)
    assert max_resident(whole, layouts, weights, cache)[0] == pytest.approx(aside)
    # One sequence to each copy of attention at the least; caches of nothing count as a byte.
    full = max_resident(task, layouts, np.array([80e9, 80e9]), cache)
    assert full.tolist() == [1, 3]
    nothing = max_resident(task, layouts, weights, np.zeros(2))
    assert nothing == pytest.approx([72e9 - 2e9 - 40e9, 3 * 0.6 * 2e9], rel=1e-12)
    waits = rounds_waited(np.array([10.0, 4.0, 6.0]), np.array([4.0, 4.0, 8.0]))
    assert waits == pytest.approx([0.95 * 1.5, 0, 0])


def test_a_static_batch_of_one_prompt_is_that_prompt():
    """And of three to a rank, attention and head left out, one that is three times as long."""
    for engine in ("", OLD):
        task = task_of(engine, static=True)
        step = Step(task, LAYOUT, bound=False)
        values = dict(step.values(np.array([2.0])))
        if not engine:
            whole = replace(task, mode="prefill", input_tokens=1024.0)
            step = Step(whole, LAYOUT, bound=False)
            once = static_first_token(whole, step.values(np.array([2.0])))
            assert once == pytest.approx(step(np.array([2.0]))["first"], rel=1e-9)
        nothing = dict.fromkeys(("a_pf", "A_bnd_pf", "N_head"), 0.0)
        three = static_first_token(task, {**values, **nothing, "B": np.array([6.0])})
        long = {**values, **nothing, "L_in": 3 * values["L_in"]}
        # The host's work for a request is done once for each prompt, and for one alone.
        assert three == pytest.approx(static_first_token(task, long), rel=1e-9)


def test_first_tokens_where_prompts_gather():
    """That of the batch, or of the loop, or of the prompt alone where they come one by one."""
    task = task_of("vllm", static=True)
    step = Step(task, LAYOUT, bound=False)
    values = step.values(np.array([6.0]))
    first = {"first": np.array([7.0]), "step": np.array([0.01]), "tpot": np.array([0.02]),
             "busy": np.array([0.5]), "slot": np.array([0.6])}  # fmt: skip
    assert gathered_first_token(task, values, first, False) is first["first"]
    batch = gathered_first_token(task, values, first, True)
    assert batch == static_first_token(task, values)
    loop = replace(task, static=False, loop=ClosedLoop())
    looped = gathered_first_token(loop, {**values, "B": np.array([2.0])}, first, True)
    assert looped == pytest.approx(7.0)  # one sequence on each rank has nobody to wait for
    more = gathered_first_token(loop, values, first, True)
    assert more > 7.0
    held = replace(loop, loop=ClosedLoop(hold=4.0, rounds=2.0))
    alone = gathered_first_token(held, {**values, "B": np.array([2.0])}, first, True)
    # Three turns of a prompt and four steps, and two answers of 200 tokens at 20 ms.
    assert alone == pytest.approx(3 * (7.0 + 4 * 0.01) + 2 * 200 * 0.02)
