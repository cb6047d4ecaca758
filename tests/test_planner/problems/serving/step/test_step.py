"""One serving model evaluated in parts, in rows, joined: the numbers are those of the whole."""

from dataclasses import replace

import numpy as np
import pytest

from planner.catalogue.chips import ChipPower
from planner.problems.serving.step.step import NEGLIGIBLE_REPLICAS, Step
from planner.problems.serving.task.task import ClosedLoop
from tests.cases.serving import columns, dense, question, sparse
from tests.loops import for_all

ROWS = [(1, 1, 1, 1, 1, 1, 4, 4), (2, 1, 1, 1, 2, 1, 2, 4), (1, 2, 1, 2, 2, 1, 1, 4),
        (2, 2, 1, 1, 1, 2, 3, 12)]  # fmt: skip
LAYOUTS, BATCH = columns(ROWS), np.array([8.0, 16.0, 4.0, 24.0])
DRAW = ChipPower(idle=80, least=70, byte=1e-10, peak=300, rated=700, tile=16, soft=4, low=0.9,
                 high=1.1, coverage=0.8, measured=True, source="", as_of="")  # fmt: skip
SPREAD = {"input_spread": 1.0, "output_spread": 1.0}
TASKS = {
    "plain": {}, "decode": {"mode": "decode"}, "prefill": {"mode": "prefill"},
    "bound": {"estimate": "bound"}, "given": {"arrivals": 0.5, "spare": 1, **SPREAD},
    "most": {"arrivals": np.inf, "headroom": 0.1, **SPREAD},
    "cache fits": {"promises": {"cache_fits": 0.2}, "mode": "decode"},
    "decode given": {"mode": "decode", "arrivals": 0.5}, "drawn": {"draw": DRAW},
    "billed": {"draw": DRAW, "electricity": 1e-4},
    "loop": {"loop": ClosedLoop(), "engine": "sglang"},
    "slowed": {"engine": "trtllm-2024", "mode": "decode"},
    "conversations": {"conversations": 40, "cached_input": 0.6},
}  # fmt: skip


def step_of(name, layouts=LAYOUTS, **changes):
    """The model of a task on the layouts."""
    task = question(sparse(), **{**TASKS[name], **changes})
    return Step(task, layouts, bound=task.uses_bound)


def same(first, second, rows=slice(None)):
    """Two answers agree on all outputs, the first of them at some rows."""
    assert first.keys() == second.keys()
    for name, values in first.items():
        whole = np.broadcast_to(values, (4,)) if np.ndim(values) == 0 else values
        assert np.broadcast_to(second[name], np.shape(whole[rows])) == pytest.approx(
            whole[rows], rel=1e-12
        ), name  # fmt: skip


@for_all("name", TASKS)
def test_rows_of_a_step_are_those_of_all_its_layouts(name):
    """Taken once or twice, before or after all were evaluated; and one layout by itself."""
    step, rows = step_of(name), np.array([2, 0])
    early = step_of(name).take(rows)
    same(step(BATCH), early(BATCH[rows]), rows)
    same(step(BATCH), step.take(rows)(BATCH[rows]), rows)
    twice = step.take(np.array([3, 2, 0])).take(np.array([1, 2]))
    same(step(BATCH), twice(BATCH[rows]), rows)
    alone = step_of(name, columns([ROWS[2]]))
    same(step(BATCH), alone(BATCH[[2]]), [2])
    assert {k: np.ravel(v).tolist() for k, v in early.values(BATCH[rows]).items()} == {
        k: np.ravel(v[rows] if np.ndim(v) else v).tolist() for k, v in step.values(BATCH).items()
    }


@for_all("name", TASKS)
def test_some_outputs_are_those_of_all(name):
    """One by one and together, with the share of time in which caches lack room where it counts."""
    step = step_of(name)
    every = step(BATCH)
    words = [*every]
    for some in ([word] for word in words):
        alone = step.only(some, BATCH)
        same({word: every[word] for word in some}, {word: alone[word] for word in some})
    same(every, {k: step.only(words, BATCH)[k] for k in words})
    if not step.prompts_gather and step.task.load == "none":
        assert set(step.only(("tpot", "need"), BATCH)) == {"tpot", "need"}
    assert ("crowded" in every) is (name in ("given", "most", "cache fits", "decode given"))


@pytest.mark.parametrize("name", ["given", "most", "decode given"])
def test_filling_fixed_batches_is_evaluating_them_filled(name):
    """Times of the work do not follow how busy a load lets a replica be."""
    step = step_of(name)
    for fill in (1.0, 0.5, np.array([0.2, 0.4, 0.6, 0.8])):
        same(step(BATCH, fill), step.filled(BATCH)(fill))
    work = step.work(BATCH)
    whole = step(BATCH)
    for word in ("tpot", "need", "slot", "busy", "first"):
        assert work[word] == pytest.approx(whole[word], rel=1e-12)
    assert work["ttft"] == pytest.approx(whole["first"], rel=1e-12)


def test_steps_of_several_questions_are_evaluated_as_one():
    """Joined where they ask with the same equations; other lengths, promises and loads are rows."""
    lengths = ({"input_tokens": 1000.0}, {"input_tokens": 3000.0})
    for name, changes in (("plain", lengths), ("plain", ({}, {})), ("given", lengths),
                          ("given", ({"arrivals": 0.5}, {"arrivals": 0.7}))):  # fmt: skip
        steps = [step_of(name, **each) for each in changes]
        assert steps[0].joinable() == steps[1].joinable() is not None
        joined = Step.joined(steps)
        assert len(joined.layouts) == 8
        every = joined(np.tile(BATCH, 2))
        for place, step in enumerate(steps):
            rows = slice(4 * place, 4 * place + 4)
            own = {word: np.broadcast_to(x, (8,))[rows] for word, x in every.items()}
            same(own, step(BATCH))
    assert Step.joined(steps[:1]) is steps[0]
    promised = [step_of("plain", promises={"tpot": limit}) for limit in (0.02, 0.03)]
    limits = Step.joined(promised).limits
    assert limits["tpot"].tolist() == [0.02] * 4 + [0.03] * 4
    two = Step.joined(promised)
    assert two.take(np.array([1, 5])).limits["tpot"].tolist() == [0.02, 0.03]
    assert [(rows.tolist(), part.task) for rows, part in two.take(np.array([1, 5])).by_task()] == [
        ([0], promised[0].task),
        ([1], promised[1].task),
    ]
    ((rows, part),) = promised[0].by_task()
    assert (rows.tolist(), part) == ([0, 1, 2, 3], promised[0])
    assert "need" in promised[0].limits


def test_what_is_no_symbol_is_not_joined():
    """Engines that slow a step, and prompts that gather; a bound knows neither."""
    assert step_of("slowed").joinable() is None
    assert step_of("loop").joinable() is None
    task = question(sparse(), **TASKS["slowed"])
    assert Step(task, LAYOUTS, bound=True).joinable() is not None
    looped = question(sparse(), **TASKS["loop"])
    assert not Step(looped, LAYOUTS, bound=True).prompts_gather
    assert step_of("loop").prompts_gather
    assert step_of("plain", static=True).prompts_gather
    assert not step_of("plain").prompts_gather


def test_which_equations_answer():
    """A power that is given, or counted from the work, or counted and billed; none of a bound's."""
    kinds = {"plain": "given", "drawn": "counted", "billed": "billed"}
    assert {name: step_of(name).model.powered for name in kinds} == kinds
    assert step_of("plain", power=None).model.powered == ""
    bound = step_of("drawn", estimate="bound")
    assert (bound.model.powered, bound.model.bound, bound.model.load) == ("given", True, "none")
    assert [step_of(name).model.load for name in ("plain", "given", "most")] == [
        "none", "given", "most"
    ]  # fmt: skip
    assert "P_chip" in step_of("plain").values(BATCH)
    assert {"P_chip", "p_power", "p_chip"}.isdisjoint(step_of("billed").values(BATCH))
    assert "p_chip" in step_of("drawn").values(BATCH)
    assert "P_chip" not in step_of("drawn").values(BATCH)


def test_how_busy_replicas_are_by_hand():
    """Without a load the share of slots; under one the replicas that run, and their busy share."""
    assert step_of("plain").values(BATCH, 0.5)["r_fill"] == 0.5
    given = step_of("given").values(BATCH)
    assert given["n_up"].tolist() == [3, 1, NEGLIGIBLE_REPLICAS, 2]
    assert given["X_arr"] == 0.5
    assert given["n_rep"].tolist() == [4, 2, 1, 3]
    assert "r_fill" not in given
    most = step_of("most", spare=1).values(BATCH, 0.7)
    assert most["n_up"].tolist() == [3, 1, NEGLIGIBLE_REPLICAS, 2]
    assert most["x_free"] == 0.1
    assert most["r_busy"].tolist() == [0.7, 0.7, 1 / NEGLIGIBLE_REPLICAS, 0.7]
    none = step_of("given", columns([(1, 1, 1, 1, 1, 1, 0, 4)])).values(np.ones(1))
    assert none["n_rep"].tolist() == [NEGLIGIBLE_REPLICAS]
    rates = np.array([0.1, 0.2, 0.3, 0.4])
    bearing = step_of("plain").bearing(rates)
    assert bearing.values(BATCH)["X_arr"].tolist() == rates.tolist()
    one = bearing(BATCH)
    for place in range(4):
        alone = step_of("plain", columns([ROWS[place]]), arrivals=rates[place])(BATCH[[place]])
        for word in ("load", "wait", "ttft_p95", "usd_per_request"):
            assert np.ravel(one[word])[place] == pytest.approx(float(np.ravel(alone[word])[0]))


@pytest.mark.parametrize(
    ("prompt", "cached", "passes"), [(1000.0, 0.0, 1), (100.0, 0.5, 11), (128.0, 0.0, 4)]
)
def test_prompts_that_fill_a_pass_by_hand(prompt, cached, passes):
    """A chunk of 512: the last prompt in part; two parts of a context have two chunks."""
    layouts = columns([(1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 2, 1, 1, 1, 1, 2)])
    step = step_of("prefill", layouts, input_tokens=prompt, cached_input=cached)
    both = 2 * 512 / (prompt * (1 - cached))
    assert step.prompts_of_a_pass.tolist() == [passes, np.ceil(both)]


def test_the_same_layouts_on_other_chips_or_of_another_question():
    """Counts of replicas and chips, coefficients, lengths: bound anew, all else as it was."""
    more = replace(LAYOUTS, replicas=LAYOUTS.replicas * 2, chips=LAYOUTS.chips * 2)
    for name in ("plain", "given", "conversations"):
        same(step_of(name).on(more)(BATCH), step_of(name, more)(BATCH))
        longer = question(sparse(), **{**TASKS[name], "input_tokens": 2000.0})
        same(step_of(name).with_values_of(longer)(BATCH), Step(longer, LAYOUTS, bound=False)(BATCH))
    plain = step_of("plain")
    slower = {**plain.task.profile.values, "e_w": plain.task.profile.values["e_w"] / 2}
    task = replace(plain.task, profile=replace(plain.task.profile, values=slower))
    same(plain.under(slower)(BATCH), Step(task, LAYOUTS, bound=False)(BATCH))
    shared = Step(question(dense()), columns([(1, 1, 1, 2, 1, 1, 1, 2)]), bound=False)
    alone = Step(question(dense()), columns([(1, 1, 1, 1, 1, 1, 1, 1)]), bound=False)
    half = shared.task.sizes.weight_bytes["dense_ffn"] / 2
    weights = [float(np.ravel(x(np.ones(1))["memory.weights"])[0]) for x in (alone, shared)]
    assert weights[0] - weights[1] == pytest.approx(half)


def test_uniform_routing_reads_more_experts_than_the_least():
    """Eight sequences of two of eight experts miss each with (3/4)**8; the bound reads two."""
    step = step_of("bound", columns([ROWS[0]]))
    uniform = step.routed_uniformly(8.0)
    assert uniform.values(np.array([8.0]))["k_experts"] == pytest.approx(8 * (1 - 0.75**8))
    assert step.values(np.array([8.0]))["k_experts"] == 2


def test_powers_of_coefficients_are_those_of_engines_that_slow_a_step():
    """No engine, a bound or an engine of today has none."""
    slowed = step_of("slowed", columns([ROWS[1]]))
    assert slowed.coefficient_powers(8.0)
    for name, bound in (("plain", False), ("slowed", True)):
        step = Step(question(sparse(), **TASKS[name]), columns([ROWS[1]]), bound=bound)
        assert step.coefficient_powers(8.0) == {}
    # A cache is read as much slower as a multiprocessor is slower than the chip.
    times = slowed.values(np.ones(1)), Step(slowed.task, slowed.layouts, bound=True).values(1.0)
    lone = slowed.task.chip.memory_bandwidth / (50e9 * 1)
    assert times[1]["e_kv"] / times[0]["e_kv"] == pytest.approx(lone)
    assert not Step(slowed.task, slowed.layouts, bound=True).crowds


def test_which_questions_count_how_often_caches_lack_room():
    """Those of requests that come at random and decode, or where it is promised."""
    crowds = {name: step_of(name).crowds for name in TASKS}
    assert [name for name, each in crowds.items() if each] == [
        "given", "most", "cache fits", "decode given"
    ]  # fmt: skip
    assert not step_of("prefill", arrivals=0.5).crowds
