"""Fleets for a load against an exhaustive search over chips, layouts and whole batches."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.numerics.evaluate import Kernel, kernel
from formulas.serving.queues import QUEUE
from planner.problems.serving.deployment.missed_promises import shortfalls
from planner.problems.serving.search.sizing import min_batch_for_load
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import MAX_UTILISATION, Task
from tests.cases.serving import MODELS, all_layouts, columns, one_pool, question, searched
from tests.sizes import examples

MOST = 1000  # the largest batch that is tried one by one
TAILS = {"ttft_p95": 0.05, "ttft_p99": 0.01}
NAMES = {
    False: ("T_tpot", "T_ttft", "M_need", "phi_mixed", "T_slot", "T_pf_busy"),
    True: ("T_tpot_bound", "T_ttft_bound", "M_need", "T_slot_bound", "T_pf_busy_bound"),
}
WAITS = ("T_line", "T_join", "T_dec", "S_occ", "v_occ", "x_heavy", "r_both")


@cache
def times(mode: str, *, bound: bool) -> Kernel:
    return kernel(BOUND if bound else ESTIMATE[mode], NAMES[bound])


@cache
def queues(mode: str, *names: str) -> Kernel:
    return kernel((*ESTIMATE[mode], *QUEUE), names)


def points(task: Task, row: tuple[int, ...]) -> dict[str, Any]:
    """Every whole batch of one layout: times, memory, rate of a replica, from the equations."""
    step = Step(task, columns([row]), bound=task.uses_bound)
    batch = np.arange(1.0, MOST + 1)
    if task.mode == "prefill":
        new = task.input_tokens * (1 - task.cached_input)
        room = 1 if task.uses_bound else max(math.ceil(task.chunk * row[2] / new), 1)
        batch = batch[:room] * row[1] * row[3]
    values = {k: float(np.ravel(v)[0]) for k, v in step.values(np.ones(1)).items()} | {"B": batch}
    compiled = times(task.mode, bound=task.uses_bound)
    found = compiled(**{name: values[name] for name in compiled.names})
    end = "_bound" if task.uses_bound else ""
    slot = found[f"T_pf_busy{end}" if task.mode == "prefill" else f"T_slot{end}"]
    whole = {
        "B": batch, "ttft": found[f"T_ttft{end}"], "tpot": found[f"T_tpot{end}"], "slot": slot,
        "need": found["M_need"], "mixed": found.get("phi_mixed", 0.0),
    }  # fmt: skip
    return {k: np.broadcast_to(v, batch.shape) for k, v in whole.items()} | {"values": values}


def waits(task: Task, at: dict[str, Any], index: int, rate: float) -> dict[str, float]:
    """How long requests wait where `rate` of them come to a replica per second."""
    if task.uses_bound or task.mode == "decode":
        return {"readers": 0.0, "wait": 0.0, **dict.fromkeys(TAILS, 0.0)}
    given_ = {**at["values"], "B": float(at["B"][index]), "x_load": rate}
    compiled, busy_only = queues(task.mode, *WAITS), queues(task.mode, "rho_pf")
    busy = float(busy_only(**{n: given_[n] for n in busy_only.names})["rho_pf"])
    if busy >= MAX_UTILISATION * (1 + 1e-12):
        return {"readers": busy, "wait": math.inf, **dict.fromkeys(TAILS, math.inf)}
    found = compiled(**{n: given_[n] for n in compiled.names})
    late = {
        name: found["T_line"]
        + found["T_join"]
        + math.hypot(
            max(
                found["x_heavy"]
                * found["T_line"]
                * max(0.0, math.log(busy / share))
                / max(busy, share)
                + found["T_join"]
                - found["T_line"],
                math.log((1 - max(share - found["r_both"], 0)) / (1 - max(busy, share)))
                * given_["dp"]
                / rate
                + given_["s_mixed"] * found["T_dec"] / given_["pp"] / 2
                - found["T_join"]
                - found["T_line"],
                0.0,
            ),
            found["v_occ"] * found["S_occ"] * (math.log(1 / share) - 1),
        )
        for name, share in TAILS.items()
    }
    return {"readers": busy, "wait": found["T_line"] + found["T_join"], **late}


def kept(task: Task, at: dict[str, Any], index: int, rate: float) -> tuple[bool, float]:
    """Whether the promises hold at one batch and rate, and the time from arrival to the end."""
    late = waits(task, at, index, rate)
    ttft, tpot = float(at["ttft"][index]), float(at["tpot"][index])
    emitted = task.output_tokens - (task.mode == "aggregated")
    e2e = {
        "aggregated": ttft + late["wait"] + emitted * tpot, "decode": emitted * tpot,
        "prefill": ttft + late["wait"],
    }[task.mode]  # fmt: skip
    made = {
        "ttft": ttft + late["wait"], "tpot": tpot, "e2e": e2e,
        **{name: ttft + late[name] for name in TAILS},
    }  # fmt: skip
    good = all(made[name] <= limit for name, limit in task.promises.items())
    good &= float(at["need"][index]) <= task.chip.memory and late["readers"] <= MAX_UTILISATION
    good &= task.mode != "aggregated" or task.uses_bound or float(at["mixed"][index]) <= 1
    return bool(good), e2e


def smallest(task: Task, row: tuple[int, ...], at: dict[str, Any]) -> int | None:
    """The first batch whose slots carry the load, as an index; None where none does."""
    up = row[6] - task.spare
    if up < 1:
        return None
    enough = (task.arrivals or 0.0) * at["slot"] / up <= 1 - task.headroom
    return int(np.argmax(enough)) if enough.any() else None


def exhaustive(task: Task) -> float:
    """The least objective over all numbers of chips and all layouts, infinite where none."""
    best = math.inf
    for chips in task.chips:
        for row in all_layouts(replace(task, chips=(chips,))):
            at = points(task, row)
            index = smallest(task, row, at)
            if index is None:
                continue
            good, e2e = kept(task, at, index, (task.arrivals or 0.0) / (row[6] - task.spare))
            if good:
                score = {"cost": task.price * chips / (task.arrivals or 1.0), "latency": e2e}
                best = min(best, score[task.objective])
    return best


def chips_of(task: Task) -> float:
    """Chips of the plan, infinite where there is none."""
    found = one_pool(task).points()
    return float(found[0].candidate.pools[0].layouts.chips[0]) if found else math.inf


@st.composite
def fleets(draw: st.DrawFn) -> Task:
    """Small questions with a load, near what some of the chips carry."""
    mode = draw(st.sampled_from(["aggregated", "aggregated", "decode", "prefill"]))
    changes: dict[str, Any] = {
        "chips": draw(st.sampled_from([(1, 2, 3, 4), (2, 4, 8), (4, 6, 12), (3,)])),
        "domain": draw(st.sampled_from([2, 4])),
        "mode": mode,
        "estimate": draw(st.sampled_from(["calibrated", "calibrated", "bound"])),
        "output_tokens": draw(st.sampled_from([20.0, 200.0])),
        "slow": draw(st.sampled_from(["", "memory"])),
        "spare": draw(st.sampled_from([0, 0, 1])),
        "headroom": draw(st.sampled_from([0.0, 0.25])),
        "input_spread": draw(st.sampled_from([0.0, 0.8])),
        "chunk": draw(st.sampled_from([256.0, 512.0, 4096.0])),
        "objective": draw(st.sampled_from(["cost", "cost", "latency"])),
        "arrivals": 1.0,
    }
    model = MODELS[draw(st.sampled_from(["dense", "sparse"]))]
    task = question(model, batch=draw(st.sampled_from([9.0, 60.0])), **changes)
    step = searched(replace(task, chips=(1,)))
    fast = step(np.full(len(step.layouts), 4.0))
    rate = float(1 / np.min(np.broadcast_to(fast["slot"], len(step.layouts))))
    task = replace(task, arrivals=draw(st.sampled_from([0.21, 0.83, 2.7])) * rate)
    tight = draw(st.sampled_from([None, 1.09, 1.6, 4.1]))
    if tight is None:
        return task
    names = {"aggregated": ("tpot", "ttft", "ttft_p95"), "decode": ("tpot",),
             "prefill": ("ttft", "ttft_p99")}[mode]  # fmt: skip
    name = draw(st.sampled_from(names))
    own = name.split("_")[0]
    return replace(task, promises={name: tight * float(np.min(fast[own]))})


@examples(7, 30)
@given(fleets())
def test_a_fleet_equals_exhaustive_search(task: Task) -> None:
    """Fewest chips, or least latency, over all numbers of chips, layouts and batches."""
    found = one_pool(task).points()
    best = found[0].score if found else math.inf
    assert best == pytest.approx(exhaustive(task), rel=1e-9)


@examples(6, 25)
@given(fleets())
def test_the_batch_is_the_smallest_that_carries_the_load(task: Task) -> None:
    """Of every layout, found by bisection, against trying one batch after the other."""
    if task.mode == "prefill":
        return
    rows = all_layouts(replace(task, chips=task.chips[-1:]))
    found = min_batch_for_load(Step(task, columns(rows), bound=task.uses_bound), LARGEST_BATCH)
    for row, batch in zip(rows, found, strict=True):
        index = smallest(task, row, points(task, row))
        assert (batch if 0 < batch <= MOST else None) == (None if index is None else index + 1)


@examples(3, 15)
@given(fleets())
def test_a_load_that_is_too_large_is_short_by_what_it_exceeds_the_most(task: Task) -> None:
    """Divided by the factor reported the load is carried, a millionth above it is not."""
    heavy = replace(task, arrivals=50 * (task.arrivals or 0.0), objective="cost")
    asked = one_pool(heavy)
    if asked.searched.rows.size:
        return
    missed = shortfalls(asked.step)
    if [name for name, _ in missed] != ["load"]:
        # Not even a single request keeps the promises.
        easy = replace(heavy, arrivals=1e-9)
        assert not one_pool(easy).searched.rows.size
        return
    factor = missed[0][1]
    for slack, carried in ((1 - 1e-9, True), (1 + 1e-6, False)):
        eased = replace(heavy, arrivals=(heavy.arrivals or 0.0) / factor * slack)
        assert bool(one_pool(eased).searched.rows.size) is carried


def most_kept(task: Task, at: dict[str, Any], index: int, least: float, rate: float) -> float:
    """The largest rate from `least` to `rate` that keeps the promises, 0 if `least` does not."""
    if not kept(task, at, index, least)[0]:
        return 0.0
    if kept(task, at, index, rate)[0]:
        return rate
    low, high = least, rate
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(task, at, index, middle)[0] else (low, middle)
    return low


@examples(6, 30)
@given(fleets())
def test_the_most_that_can_be_served_equals_exhaustive_search(task: Task) -> None:
    """demand: max finds the layout, batch and load of the highest rate within the promises.

    A batch carries what no smaller one does, from the most of those up to its own.
    """
    most = replace(task, arrivals=math.inf, objective="throughput", chips=task.chips[-1:])
    best = 0.0
    for row in all_layouts(most):
        at = points(most, row)
        up = row[6] - most.spare
        rates = (1 - most.headroom) / at["slot"]
        smaller = np.maximum.accumulate(np.concatenate([[0.0], rates[:-1]]))
        if most.mode == "prefill":
            smaller = 0.0 * rates
        carries = (at["need"] <= most.chip.memory) & (rates > smaller) & (up > 0)
        for index in sorted(np.flatnonzero(carries), key=lambda index: -rates[index]):
            if up * rates[index] <= best:
                break
            least = max(float(smaller[index]), best / up, 1e-9) * (1 + 1e-12)
            rate = most_kept(most, at, index, least, float(rates[index]))
            best = max(best, up * rate)
    found = one_pool(most).searched
    served = 1 / float(found.score[0]) if found.rows.size else 0.0
    assert served == pytest.approx(best, rel=1e-9)


CHIPS = tuple(range(1, 17))


def fleet(**changes: Any) -> Task:
    """One question of a fleet whose answer is some chips of two dozen."""
    given_ = {"chips": CHIPS, "batch": 30.0, "arrivals": 500.0, "promises": {"ttft": 0.08}}
    return question(MODELS["sparse"], **{**given_, **changes})


def paid(changes: list[dict[str, Any]]) -> list[float]:
    """Chips of the answers to one question asked in several ways."""
    found = [chips_of(fleet(**each)) for each in changes]
    assert len(set(found)) > 1, "every answer is the same, which tests nothing"
    return found


def test_more_load_never_takes_fewer_chips():
    """The fewest chips over a range of loads, one of them too large."""
    found = paid([{"arrivals": float(load)} for load in np.geomspace(100, 2e4, 7)])
    assert found == sorted(found)
    assert found[-1] == math.inf


@pytest.mark.slow
def test_a_looser_promise_never_takes_more_chips():
    """Time to first token, its tail, and time per token."""
    for name, limits in (
        ("ttft", np.geomspace(0.015, 0.05, 6)),
        ("ttft_p99", np.geomspace(0.02, 0.1, 5)),
        ("tpot", np.geomspace(0.0012, 0.01, 5)),
    ):
        found = paid([{"promises": {name: float(limit)}} for limit in limits])
        assert found == sorted(found, reverse=True)


@pytest.mark.slow
def test_more_room_to_spare_never_takes_fewer_chips():
    """Replicas that may be down, slots that stay free, prompts of more varied lengths."""
    for name, values in (
        ("spare", (0, 1, 3)),
        ("headroom", (0.0, 0.3, 0.6)),
        ("input_spread", (0.0, 1.0, 3.0)),
    ):
        found = paid([{name: value, "promises": {"ttft_p95": 0.03}} for value in values])
        assert found == sorted(found)


def test_with_the_spare_replicas_down_the_rest_carry_the_load():
    """Without them the same layout and batch keep every promise, and one fewer does not."""
    task = fleet(spare=2, promises={"ttft_p95": 0.06, "tpot": 0.004})
    plan = one_pool(task).points()[0].candidate.last
    layouts = plan.layouts
    rest = replace(layouts, replicas=layouts.replicas - 2)
    alone = Step(replace(task, spare=0), rest, bound=False)(np.array([plan.batch]))
    whole = Step(task, layouts, bound=False)(np.array([plan.batch]))
    for name in ("ttft", "ttft_p95", "tpot", "load", "readers"):
        assert float(alone[name][0]) == pytest.approx(float(whole[name][0]), rel=1e-12)
    fewer = replace(rest, replicas=rest.replicas - 1)
    short = Step(replace(task, spare=0), fewer, bound=False)
    batch = min_batch_for_load(short, LARGEST_BATCH)
    limits = replace(task, spare=0).limits
    values = short(np.maximum(batch, 1))
    assert not batch[0] or any(values[name][0] > limit for name, limit in limits.items())


def test_spare_replicas_are_all_there_is_where_there_are_no_more():
    """A fleet of one replica has none to spare."""
    assert chips_of(fleet(spare=1, chips=(1,))) == math.inf
