"""Batches of small questions against all batches, candidates and layouts by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.search import admitted_layouts
from planner.problems.serving.search import batch as batches
from planner.problems.serving.search.admitted_layouts import admissible_layouts, grows
from planner.problems.serving.search.batch import (
    _between,
    _memory_takes_over,
    _ranked,
    _smallest_as_cheap,
    candidate_batches,
    fixed_batches,
    largest_feasible,
    max_batch_at_tpot,
    memory_rises,
    min_chips_step,
    search,
    search_batched,
    try_batches,
)
from planner.problems.serving.search.sizing import min_batch_for_load, pass_sizes
from planner.problems.serving.step.layouts import AXES, Layouts
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.text.errors import FieldError
from tests.cases.serving import MODELS, columns, question, within_limits
from tests.loops import for_all

MOST = 250  # sequences of a replica that are tried one by one


def asked(model: str = "sparse", **changes: Any) -> Task:
    """A question of four chips whose memory holds about 20 sequences."""
    return question(MODELS[model], **{"batch": 20.0, "chips": (4,), **changes})


def step_of(model: str = "sparse", **changes: Any) -> Step:
    """That question on all its layouts."""
    task = asked(model, **changes)
    return Step(task, admissible_layouts(task), bound=task.uses_bound)


def points(step: Step, *names: str, most: int = MOST) -> list[np.ndarray]:
    """Outputs at every batch of every layout, each of shape (most, n_layouts)."""
    count = len(step.layouts)
    batch = np.repeat(np.arange(1.0, most + 1), count)
    values = step.take(np.tile(np.arange(count), most)).only(names, batch)
    return [np.broadcast_to(values[name], batch.shape).reshape(most, count) for name in names]


# -- the largest batch ---------------------------------------------------------------------------


@for_all(
    ("low", "high", "middle"),
    [(0, 2, 1), (0, 4, 2), (0, 5, 2), (0, 9, 3), (1, 100, 10), (2, 8, 5), (2, 9, 4), (9, 12, 10),
     (8, 128, 32), (0, 1 << 20, 1 << 10)],
)  # fmt: skip
def test_numbers_are_halved_as_orders_of_magnitude_and_then_as_they_are(
    low: float, high: float, middle: float
) -> None:
    """Geometric means while the ends are more than a factor of four apart; whole and between."""
    assert _between(np.array([low * 1.0]), np.array([high * 1.0])) == [middle]


def looks(answer: float) -> int:
    """Batches that a bisection looks at before it knows one between 0 and the largest there is."""
    low, high, count = 0.0, LARGEST_BATCH + 1.0, 0
    while high - low > 1:
        middle = float(_between(np.array([low]), np.array([high]))[0])
        low, high = (middle, high) if middle <= answer else (low, middle)
        count += 1
    return count


@pytest.mark.parametrize("promises", [{}, {"tpot": 0.0033}, {"ttft": 0.02}])
def test_the_largest_batch_is_the_last_that_keeps_every_promise(promises: dict[str, float]) -> None:
    """Of every layout, tried one by one; asked again it is remembered as it was."""
    step = step_of("dense", batch=4.0, promises=promises)
    values = points(step, *step.limits)
    kept = [value <= limit for value, limit in zip(values, step.limits.values(), strict=True)]
    good = np.logical_and.reduce(kept)
    expected = np.where(good.any(axis=0), MOST - np.argmax(good[::-1], axis=0), 0)
    assert len(set(expected.tolist())) > 1
    assert expected.max() < MOST
    found, looked = largest_feasible(step)
    assert found.tolist() == expected.tolist()
    assert looked.tolist() == [looks(n) for n in expected]
    found[:] = -1.0
    assert largest_feasible(step)[0].tolist() == expected.tolist()
    other = step.with_task(step.task.promising(1e-9))
    assert set(largest_feasible(other)[0].tolist()) == {0}


def test_the_largest_batch_of_all_is_a_million() -> None:
    """Where nothing limits it, and one below that where memory holds no more."""
    step = step_of("dense", mode="decode", limits_of={"tp": (1,), "pp": (1,)})
    roomy = step.with_task(replace(step.task, chip=replace(step.task.chip, memory=math.inf)))
    assert largest_feasible(roomy)[0].tolist() == [1 << 20] * len(step.layouts)
    ones = np.ones(len(step.layouts))
    need = np.max(step((LARGEST_BATCH - 1) * ones)["need"])
    full = step.with_task(replace(step.task, chip=replace(step.task.chip, memory=need)))
    assert largest_feasible(full)[0].min() == LARGEST_BATCH - 1


def test_largest_batches_at_several_paces_are_those_of_each() -> None:
    """At most what else allows, by pace and layout."""
    step = step_of(mode="decode")
    largest = np.arange(len(step.layouts)) % 30 + 1.0
    largest[:3] = 0.0, 1.0, 2.0
    (tpot,) = points(step, "tpot", most=32)
    paces = np.array([np.quantile(tpot, 0.3), np.quantile(tpot, 0.7), 1e-9, 1e9, tpot[4, 5]])
    found = max_batch_at_tpot(step, largest, paces)
    tried = np.arange(1, 33)[:, None]
    expected = [((tpot <= pace) & (tried <= largest)).sum(axis=0) for pace in paces]
    assert found.tolist() == np.array(expected).tolist()


# -- the batches worth pricing -------------------------------------------------------------------

# Copies of attention, stages and parts: groups of 12, 2 and 1 sequences, cells of 6, 2 and 1.
THREE = columns([(1, 2, 2, 3, 1, 1, 2, 24, 1), (2, 1, 1, 2, 1, 1, 3, 12, 1),
                 (4, 1, 1, 1, 1, 1, 1, 4, 1)])  # fmt: skip


def imagined(objective: str = "cost", layouts: Layouts = THREE, *, bound: bool = False) -> Any:
    """What candidates need of a step: its layouts and what is best."""

    def take(rows: np.ndarray) -> Any:
        return imagined(objective, layouts.take(rows), bound=bound)

    task = SimpleNamespace(objective=objective)
    return SimpleNamespace(task=task, layouts=layouts, bound=bound, take=take)


def tried(step: Any, *largest: float) -> dict[int, set[float]]:
    """Batches worth pricing by layout."""
    rows, batch, fill = candidate_batches(step, np.array(largest))
    assert set(fill.tolist()) <= {1}
    assert batch.size == rows.size == fill.size
    return {row: set(batch[rows == row].tolist()) for row in set(rows.tolist())}


def test_batches_worth_pricing_end_groups_cells_and_numbers_of_the_experts() -> None:
    """Of 47: three groups of 12, the cells to 42 and 47, whole fours in either, 40 and 44."""
    assert tried(imagined(), 47, 5, 3) == {0: {36, 40, 42, 44, 47}, 1: {4, 5}, 2: {3}}
    assert tried(imagined(), 37, 4, 1) == {0: {36, 37}, 1: {4}, 2: {1}}
    # Less than a group, or than a cell: what there is of it.
    assert tried(imagined(), 5, 1, 0) == {0: {1, 4, 5}, 1: {1}}
    assert tried(imagined(), 1, 0, 0) == {0: {1}}
    assert tried(imagined(), 0, 0, 0) == {}


def test_the_group_in_which_memory_takes_over_is_priced_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the third of five: the end of the second, both cells of it, and whole fours in them."""

    def third(step: Any, most: np.ndarray) -> np.ndarray:
        assert most.tolist() == [5, 2, 3]  # full groups
        return np.array([3.0, 0.0, 0.0])

    monkeypatch.setattr(batches, "_memory_takes_over", third)
    found = tried(imagined(bound=True), 60, 5, 3)
    assert found == {0: {60} | {24, 28, 30, 36}, 1: {4, 5, 1}, 2: {3, 1}}


def test_the_smallest_batch_is_the_fastest() -> None:
    """One sequence of every layout that can serve one."""
    assert tried(imagined("latency"), 47, 0, 1) == {0: {1}, 2: {1}}


@pytest.mark.parametrize(("total", "expected"), [(100, [50, 34, 100]), (4, [2, 2, 4])])
def test_a_given_batch_is_spread_over_the_replicas(total: int, expected: list[float]) -> None:
    """The fullest has as many as any; what others lack is left empty."""
    task = asked(batches=(total,))
    rows, batch, fill = fixed_batches(Step(task, THREE, bound=False))
    assert (rows.tolist(), batch.tolist()) == ([0, 1, 2], expected)
    shares = [total / (n * r) for n, r in zip(expected, (2, 3, 1), strict=True)]
    assert fill.tolist() == shares
    several = fixed_batches(Step(asked(batches=(total, 100)), THREE, bound=False))
    assert several[0].tolist() == [0, 1, 2, 0, 1, 2]
    assert several[1].tolist() == [*expected, 50, 34, 100]


def test_prompts_of_a_given_batch_lie_evenly_on_ranks_and_stages() -> None:
    """Two stages of three ranks in two replicas: 100 are nine each on twelve, and 54 a replica."""
    reading = Step(asked(batches=(100,), mode="prefill"), THREE, bound=False)
    rows, batch, fill = fixed_batches(reading)
    assert (rows.tolist(), batch.tolist()) == ([0, 1, 2], [54, 34, 100])
    assert fill.tolist() == [100 / 108, 100 / 102, 1]


def test_batches_that_are_tried_are_given_or_prompts_of_a_pass() -> None:
    """Only a pool of readers without a batch shares passes."""
    reading = step_of(mode="prefill", input_tokens=100.0)
    rows, batch, fill = try_batches(reading)
    expected = pass_sizes(reading)
    assert (rows.tolist(), batch.tolist()) == (expected[0].tolist(), expected[1].tolist())
    assert set(fill.tolist()) == {1}
    assert rows.size > len(reading.layouts)
    for mode in ("prefill", "aggregated"):
        fixed = step_of(mode=mode, batches=(6,), input_tokens=100.0)
        rows, batch, fill = try_batches(fixed)
        found = fixed_batches(fixed)
        assert [x.tolist() for x in (rows, batch, fill)] == [x.tolist() for x in found]


# -- where the bound's memory rises --------------------------------------------------------------

WHOLE = 1e12  # byte of on-chip memory, more than any weights


def roofs(sram: float, **changes: Any) -> Step:
    """The bound on chips with so much on-chip memory."""
    values = {"estimate": "bound", "sram": sram, "batch": 400.0, **changes}
    return step_of("dense", **values)


def test_memory_rises_where_weights_need_not_be_read() -> None:
    """Traffic of a sequence grows with the batch on chips that hold all weights, else never."""
    assert memory_rises(roofs(WHOLE)).all()
    assert not memory_rises(roofs(0.0)).any()
    part = roofs(MODELS["dense"].total_weight_bytes / 3)
    rises = memory_rises(part)
    assert 0 < rises.sum() < rises.size
    group = part.layouts.group * 1.0
    few, many = (np.broadcast_to(part(n * group)["roof.memory"], group.shape) / n for n in (3, 30))
    assert ((many > few * (1 + 1e-9)) == rises).all()


@pytest.mark.parametrize(
    ("share", "context"), [(0.4, 1100.0), (0.4, 20_000.0), (4.0, 1100.0), (4.0, 5000.0)]
)
def test_memory_takes_over_at_the_first_group_where_it_is_the_highest_roof(
    share: float, context: float
) -> None:
    """Tried group by group; where it never does the last group stands for it."""
    step = roofs(share * MODELS["dense"].total_weight_bytes, context=context, mode="decode",
                 positions_per_step=3.0, tokens_per_step=2.1)  # fmt: skip
    most = 2.0 + np.arange(len(step.layouts)) % 3 * 20
    most[0] = 1.0
    found = _memory_takes_over(step, most)
    rises, groups = memory_rises(step) & (most >= 2), step.layouts.group
    for row in range(len(step.layouts)):
        part = step.take(np.array([row]))
        expected = 0.0
        if rises[row]:
            for number in range(1, int(most[row]) + 1):
                batch = np.array([number * groups[row] * 1.0])
                values = part(batch)
                # Seconds that a request needs of the memory, of those it spends in its slot.
                steps = part.task.output_tokens / part.task.tokens_per_step
                memory = steps * float(np.ravel(values["roof.memory"])[0]) / batch[0]
                expected = float(number)
                if memory >= float(np.ravel(values["slot"])[0]) * (1 - 1e-9):
                    break
        assert found[row] == expected, row


@pytest.mark.parametrize("slow", ["", "flops"])
def test_the_smallest_batch_that_is_as_cheap_is_taken(slow: str) -> None:
    """Tried group by group; a batch that is no whole number of groups is not made larger."""
    step = roofs(0.0, slow=slow, mode="decode")
    group = step.layouts.group
    rows = np.repeat(np.arange(len(step.layouts)), 3)
    batch = np.concatenate([[g * 40.0, g * 7.0 + 0.5 * (g > 1), 1.0] for g in group])
    found = _smallest_as_cheap(step, rows, batch)
    part = step.take(rows)
    price = np.broadcast_to(part.task.score(part(batch)), rows.shape)
    expected = batch.copy()
    for number in range(40, 0, -1):
        tested = number * group[rows] * 1.0
        cheap = np.broadcast_to(part.task.score(part(tested)), rows.shape) <= price * (1 + 1e-9)
        expected = np.where(cheap & (tested < batch), tested, expected)
    assert found.tolist() == expected.tolist()
    assert (found < batch)[::3].any() == bool(slow)


# -- which is best -------------------------------------------------------------------------------


def order(score: list[float], latency: list[float], layouts: Layouts | None = None) -> list[int]:
    """Candidates by number, the best first."""
    alike = THREE.take(np.zeros(len(score), dtype=int))
    rows = alike if layouts is None else layouts
    values = {"usd_per_request": np.array(score), "latency": np.array(latency)}
    return _ranked(asked(), rows, values).tolist()


@for_all("price", np.exp(1e-9 * (np.arange(8) + 0.03 + np.arange(8) * 0.13)))
def test_prices_within_a_billionth_are_one_price_and_the_faster_plan_is_taken(price: float) -> None:
    """Whatever they are; beyond that the cheaper one is."""
    assert order([price * (1 + 0.7e-9), price], [1.0, 2.0]) == [0, 1]
    assert order([price * (1 + 1.4e-9), price], [1.0, 2.0]) == [1, 0]
    assert order([price, price * (1 + 1e-6), price * 3, price / 2], [1.0, 1.0, 0.1, 9.0]) == [
        3, 0, 1, 2]  # fmt: skip
    assert order([], []) == []


def test_of_plans_alike_the_plainer_one_is_taken() -> None:
    """Fewer chips a replica, then fewer stages, copies and parts of experts, and whole passes.

    Latencies that differ in the thirteenth digit are one.
    """
    ways = [axis for axis in AXES if axis != "dcp"]  # which stands last in a row
    plain = dict.fromkeys((*ways, "replicas", "chips", "halves", "dcp"), 1)
    kinds: list[dict[str, int]] = [
        {"tp": 8}, {"pp": 4}, {"dp_attention": 4}, {"tp": 4, "tp_expert": 2},
        {"tp": 4, "halves": 2}, {"tp": 4},
    ]  # fmt: skip
    rows = columns([tuple({**plain, **kind}.values()) for kind in kinds])
    assert order([1.0] * 6, [1.0] * 6, rows) == [5, 4, 3, 2, 1, 0]
    assert order([1.0, 1.0], [1.0 + 4e-13, 1.0], rows.take(np.array([5, 0]))) == [0, 1]
    assert order([1.0, 1.0], [1.0 + 4e-12, 1.0], rows.take(np.array([5, 0]))) == [1, 0]


# -- layouts -------------------------------------------------------------------------------------


def test_layouts_are_those_that_the_limits_leave() -> None:
    """Of two pools each is sized later; a roofline cuts no passes."""
    every = admissible_layouts(asked("wide", chips=(6,), domain=6))
    assert set(every.halves.tolist()) == {1, 2}
    three = admissible_layouts(asked("wide", chips=(6,), domain=6, limits_of={"replicas": (3,)}))
    assert set(three.replicas.tolist()) == {3}
    pooled = admissible_layouts(asked("wide", chips=(6,), domain=6, limits_of={"replicas": (3,)},
                              pooled=True, mode="decode"))  # fmt: skip
    assert set(pooled.replicas.tolist()) > {3}
    bound = admissible_layouts(asked("wide", chips=(6,), domain=6, estimate="bound"))
    assert set(bound.halves.tolist()) == {1}
    assert len(bound) == (every.halves == 1).sum()


def test_chips_of_layouts_are_those_that_may_be_best_or_the_most() -> None:
    """A load decides later how many of them; so does the other pool."""
    for changes, chips in (
        ({}, {2, 3, 8}), ({"pooled": True, "mode": "decode"}, {8}), ({"arrivals": 1.0}, {8}),
        ({"arrivals": math.inf}, {2, 3, 8}), ({"objective": "throughput"}, {8}),
        ({"arrivals": 1.0, "objective": "latency"}, {8}),
        ({"objective": "latency"}, {2, 3, 8}),
    ):  # fmt: skip
        found = admissible_layouts(asked("dense", chips=(2, 3, 8), **changes))
        assert set(found.chips.tolist()) == chips
        fits = found.replica_chips <= found.chips
        assert fits.all()
    task = asked("dense", chips=(12,), domain=4)
    alone = replace(task, machine=replace(task.machine, scale_out=None))
    assert admissible_layouts(task).replica_chips.max() > 4
    assert admissible_layouts(alone).replica_chips.max() == 4


def test_experts_are_spread_with_their_copies() -> None:
    """Eight and four copies lie on twelve chips; a dense model has neither."""
    for copies, most in ((0, 8), (4, 12)):
        found = admissible_layouts(asked("sparse", chips=(12,), domain=12, redundant=copies))
        assert found.ep.max() == most
    assert admissible_layouts(asked("dense", redundant=4)).ep.max() == 1


def test_copies_of_attention_of_a_dense_model_are_tried_where_they_are_asked_for() -> None:
    """The lecture tries none unasked."""
    assert admissible_layouts(asked("dense", lecture=True)).dp_attention.max() == 1
    wanted = admissible_layouts(asked("dense", lecture=True, limits_of={"dp_attention": (1, 2)}))
    assert set(wanted.dp_attention.tolist()) == {1, 2}


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"limits_of": {"tp": (3,)}}, "choose.tp", "choose.tp=2, or choose.tp=4"),
        ({"limits_of": {"pp": (1,), "tp": (7, 8)}}, "choose.tp", "would work: choose.tp=4"),
        ({"limits_of": {"tp": (3, 5, 6), "pp": (1,)}}, "choose.tp", "would work: choose.tp=2"),
        ({"limits_of": {"replicas": (3,), "tp": (2,)}, "chips": (4,)}, "choose.replicas",
         "choose.replicas=2"),
        ({"limits_of": {"halves": (2,), "tp": (1, 2, 4)}}, "choose.overlap",
         "overlap takes dp_attention and ep above 1, and two sequences a rank; what would work: "
         "choose.overlap=none"),
        ({"limits_of": {"tp": (3,), "pp": (6,)}}, "choose", "admits tp [3], pp [6]; tp divides"),
    ],
)  # fmt: skip
def test_limits_that_admit_no_layout_are_told_with_the_nearest_that_do(
    changes: dict[str, Any], key: str, words: str
) -> None:
    """At the one limit without which there were some."""
    with pytest.raises(FieldError) as raised:
        admissible_layouts(asked("dense", **changes))
    ((path, told),) = raised.value.faults
    assert path == key
    assert told.endswith(words) if "choose." in words else words in told
    assert ("overlap takes" in told) == ("halves" in changes["limits_of"])


def test_what_was_asked_for_is_no_remedy() -> None:
    """Halves of one sequence: layouts have them, and the batch leaves none."""
    with pytest.raises(FieldError, match=r"what would work: choose\.overlap=none$"):
        admissible_layouts(asked("sparse", batches=(1,), limits_of={"halves": (2,)}))


def halves_of(**changes: Any) -> set[tuple[int, int]]:
    """(halves, sequences of a full group) of the layouts of eight experts on four chips."""
    found = admissible_layouts(asked("sparse", limits_of={"replicas": (1,)}, **changes))
    return set(zip(found.halves.tolist(), found.group.tolist(), strict=True))


def test_passes_are_cut_where_each_half_has_a_sequence() -> None:
    """More than one a rank where a batch is given; never for the fastest step, always prompts."""
    cut = {group for halves, group in halves_of() if halves == 2}
    assert {2, 4} <= cut
    given = halves_of(batches=(3, 4))
    assert {group for halves, group in given if halves == 2} == {g for g in cut if g < 4}
    assert {halves for halves, _ in halves_of(objective="latency")} == {1}
    assert {halves for halves, _ in halves_of(mode="prefill")} == {1, 2}
    for changes in ({"batches": (1,)}, {"objective": "latency"}):
        assert halves_of(mode="prefill", **changes) == halves_of(mode="prefill")
    # Replicas share a batch, but for those of one of two pools, where fewer may have it.
    several = {"limits_of": {"replicas": (2,), "dp_attention": (2,), "tp": (1,), "pp": (1,)},
               "batches": (4,)}  # fmt: skip
    assert set(admissible_layouts(asked("sparse", **several)).halves.tolist()) == {1}
    pool = asked("sparse", **several, pooled=True, mode="decode")
    assert set(admissible_layouts(pool).halves.tolist()) == {1, 2}


def test_layouts_are_run_by_engines_where_some_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that none runs are left out; bounds over all of them keep everything."""
    task = asked("dense", engines=("vllm", "sglang"))
    every = admissible_layouts(replace(task, any_layout=True))
    runs = np.arange(len(every)) % 4

    def on_engines(of: Task, layouts: Layouts) -> Layouts:
        assert (of.engines, len(layouts)) == (("vllm", "sglang"), len(every))
        return replace(layouts, engines=runs)

    monkeypatch.setattr(admitted_layouts, "on_engines", on_engines)
    monkeypatch.setattr(admitted_layouts, "refusal_text", lambda *_: "none runs it; choose.tp=1")
    found = admissible_layouts(task)
    assert found.engines.tolist() == runs[runs > 0].tolist()
    assert admissible_layouts(replace(task, any_layout=True)).engines.tolist() == [-1] * len(every)
    runs = np.zeros(len(every), dtype=int)
    with pytest.raises(FieldError, match=r"none runs it") as raised:
        admissible_layouts(task)
    assert raised.value.faults[0][0] == "choose.tp"


# -- the whole search ----------------------------------------------------------------------------


@for_all(
    "changes",
    [
        {}, {"objective": "latency"}, {"estimate": "bound"}, {"batches": (3, 9)},
        {"mode": "prefill"}, {"arrivals": 2.0}, {"arrivals": math.inf},
        {"mode": "decode", "pooled": True, "batches": (3, 9)},
        {"mode": "prefill", "arrivals": math.inf}, {"promises": {"tpot": 0.0033}},
    ],
)  # fmt: skip
def test_questions_searched_together_are_answered_as_alone(changes: dict[str, Any]) -> None:
    """Rows, batches, prices and counts of points of either half of the layouts are its own."""
    step = step_of("dense", chips=(2,), **changes)
    half = len(step.layouts) // 2
    assert half > 0
    parts = [np.arange(half), np.arange(half, len(step.layouts))]
    together = search_batched(step, [part.size for part in parts])
    for part, found in zip(parts, together, strict=True):
        alone = search(step.take(part))
        assert found.layouts_considered == part.size
        assert found.rows.max(initial=0) < part.size
        for name, value in vars(alone).items():
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, err_msg=name)


def test_points_that_are_considered_and_looked_at_are_counted() -> None:
    """Every batch up to the first that fails; those of the bisection and those that are priced."""
    step = step_of("dense", chips=(2,))
    largest, looked = largest_feasible(step)
    found = search(step)
    assert found.largest.tolist() == largest.tolist()
    assert found.points_considered == (largest + 1).sum()
    tested = candidate_batches(step, largest)[0].size
    assert found.points_evaluated == looked.sum() + tested
    told = search(step, largest)
    assert (told.points_evaluated, told.points_considered) == (tested, found.points_considered)
    fixed = search(step_of("dense", chips=(2,), batches=(3, 5)))
    count = 2 * fixed.layouts_considered
    assert (fixed.points_considered, fixed.points_evaluated) == (count, count)
    reading = step_of("dense", chips=(2,), mode="prefill", input_tokens=100.0)
    passes = pass_sizes(reading)[0].size
    read = search(reading)
    assert (read.points_considered, read.points_evaluated) == (passes, passes)
    assert passes > len(reading.layouts)


def test_a_batch_of_all_replicas_is_the_most_that_one_of_a_pool_has() -> None:
    """However much memory holds; without a batch all that it does."""
    free = search(step_of("dense", mode="decode", pooled=True))
    found = search(step_of("dense", mode="decode", pooled=True, batches=(3, 9)))
    assert free.largest.max() > 9
    assert found.largest.tolist() == np.minimum(free.largest, 9).tolist()


def test_the_largest_batch_of_a_load_is_that_of_none_or_what_carries_it() -> None:
    """A pool of readers has what it carries; looking is counted with the one batch of each."""
    step = step_of("dense", arrivals=2.0)
    unloaded = step_of("dense")
    found, batch = search(step), min_batch_for_load(step, LARGEST_BATCH)
    largest, looked = largest_feasible(unloaded)
    # Where ranks share contexts memory has room for more than a step with prompts in it.
    held = step.layouts.dcp == 1
    assert found.largest[held].tolist() == np.maximum(largest, batch)[held].tolist()
    assert (found.largest <= np.maximum(largest, batch)).all()
    assert found.points_considered == (found.largest + 1).sum()
    once = looked.sum() + 2 * (batch > 0).sum()
    assert once <= found.points_evaluated <= once + (~held).sum()
    assert (batch > 0).any()
    reading = step_of("dense", mode="prefill", arrivals=2.0)
    batch = min_batch_for_load(reading, LARGEST_BATCH)
    read = search(reading)
    assert read.largest.tolist() == batch.tolist()
    assert read.points_evaluated == 2 * (batch > 0).sum()
    assert read.points_considered == (batch + 1).sum()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"arrivals": 2.0, "chips": (1, 2)}, True),
        ({"arrivals": 2.0, "chips": (2,)}, False),
        ({"arrivals": math.inf, "chips": (1, 2)}, False),
        ({"chips": (1, 2)}, False),
        ({"arrivals": 2.0, "chips": (1, 2, 3), "limits_of": {"replicas": (1,)}}, False),
        ({"arrivals": 2.0, "chips": (1, 2, 3), "objective": "latency"}, False),
        ({"arrivals": 2.0, "chips": (1, 2, 3), "limits_of": {"tp": (1,)}}, True),
    ],
)
def test_a_load_decides_how_many_chips_are_paid_where_fewer_are_as_good(
    changes: dict[str, Any], expected: bool
) -> None:
    """Not for the least latency, nor where replicas are given or there is one number of chips."""
    assert grows(asked("dense", **changes)) is expected


def test_layouts_of_a_load_are_on_the_fewest_chips_that_keep_their_promises() -> None:
    """Number by number; those that none keeps stay on the most."""
    chips = (1, 2, 3, 5, 8)
    step = step_of("dense", chips=chips, arrivals=30.0, promises={"tpot": 0.02})
    found = min_chips_step(step)
    fewest = np.full(len(step.layouts), 8)
    for number in reversed(chips):
        paid = np.full(len(step.layouts), number)
        part = step.on(step.layouts.on(paid, step.task.machine.chips_per_domain))
        batch = min_batch_for_load(part, LARGEST_BATCH)
        keeps = (batch > 0) & within_limits(part.task, part(np.maximum(batch, 1)))
        fewest[keeps] = number
    assert found.layouts.chips.tolist() == fewest.tolist()
    assert len(set(fewest.tolist())) > 2
    fixed = step_of("dense", chips=(8,), arrivals=30.0)
    assert min_chips_step(fixed) is fixed
