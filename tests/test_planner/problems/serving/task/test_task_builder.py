"""Tasks of one model on one kind of machine, and pairs of them, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.catalogue.chips import chip, chip_power
from planner.problems.serving.step.engine_effects import prefill_chunk_tokens
from planner.problems.serving.task.drafter import speculation_depth
from planner.problems.serving.task.resolve import resolve_hardware
from planner.problems.serving.task.task import ClosedLoop, Task, TaskPair
from planner.problems.serving.task.task_builder import Hardware, TaskBuilder, engines_read
from planner.scenario.keys.speculation_keys import Speculation
from planner.text.errors import FieldError
from tests.cases.scenarios import small

MODEL = model_sizes(models.load("llama-3.1-8b"))
H100, H200 = (resolve_hardware(small(system=name))[0] for name in ("hgx-h100", "hgx-h200"))
PER_JOULE = 0.09 / 3.6e6  # USD
LOAD = {"demand": "3 requests/s"}
LOOP = {"concurrency": 6}


def built(
    mode: str = "aggregated", hardware: Hardware = H100, *, pooled: bool = False,
    builder: dict[str, Any] | None = None, **changes: Any,
) -> Task:  # fmt: skip
    """The task of the small scenario with some values changed."""
    values = {"chunk": None, **(builder or {})}
    return TaskBuilder(small(**changes), MODEL, **values).task(hardware, mode, pooled=pooled)


def pairs(*hardware: Hardware, warnings: list[str] | None = None, **changes: Any) -> list[TaskPair]:
    """The pairs of pools of the small scenario with some values changed."""
    return list(TaskBuilder(small(**changes), MODEL, None).pools(hardware, warnings))


def powered(power: float | None, **changes: Any) -> Hardware:
    """An H100 rated for another power, which it draws all the time."""
    return replace(H100, chip=replace(H100.chip, power=power), draws_given=True, **changes)


def test_lengths_and_formats_of_a_task_are_those_of_its_scenario() -> None:
    """A pool that reads prompts has no answer in its context; passes are the engine's own."""
    workload = {"input_tokens": {"mean": 500, "cv": 0.5}, "output_tokens": {"mean": 100, "cv": 0.3},
                "cached_input": 0.25, "conversations": 7, "dispatch": "prefix",
                "routing_skew": 1.5}  # fmt: skip
    task = built(workload=workload, chips=[2, 4])
    assert (task.input_tokens, task.output_tokens, task.cached_input) == (500, 100, 0.25)
    assert (task.input_spread, task.output_spread) == (0.5, 0.3)
    assert task.context == 500 + 100 * (1 + 0.3**2) / 2
    assert built("decode", workload=workload).context == task.context
    assert built("prefill", workload=workload).context == 500
    assert (task.conversations, task.routed, task.skew) == (7, True, 1.5)
    assert (built().conversations, built().routed) == (0, False)
    assert (task.chips, task.sizes, task.machine) == ((2, 4), MODEL, H100.machine)
    assert (task.mode, task.objective, task.estimate, task.lecture) == (
        "aggregated", "cost", "calibrated", False)  # fmt: skip
    assert (task.chunk, task.redundant) == (prefill_chunk_tokens("any"), 0)
    other = built(builder={"chunk": 96, "redundant": 3})
    assert (other.chunk, other.redundant) == (96, 3)
    assert (task.utilisation, built(memory_utilisation=0.8).utilisation) == (0.9, 0.8)
    assert built(assumptions="lecture").utilisation == 1


def test_a_chip_draws_what_is_given_or_what_was_measured_at_least() -> None:
    """Times what the site needs for it; electricity is paid on top of the rent."""
    given = built(hardware=powered(400.0), power_price="$0.09/kWh", pue=1.5)
    assert (given.draw, given.site, given.power) == (None, 1.5, 600)
    assert given.electricity == pytest.approx(600 * PER_JOULE)
    assert given.price == pytest.approx(0.001 + 600 * PER_JOULE)
    draw = chip_power(chip("h100"), "llama-3.1-8b")
    assert draw is not None
    measured = built(power_price="$0.09/kWh", pue=1.5)
    assert (measured.draw, measured.power) == (draw, pytest.approx(1.5 * draw.least))
    assert measured.price - 0.001 == pytest.approx(1.5 * draw.least * PER_JOULE)
    lecture = built(assumptions="lecture", pue=1.5)
    assert (lecture.draw, lecture.power) == (None, 1050)
    free = built(hardware=powered(400.0))
    assert (free.site, free.power, free.price, free.electricity) == (1, 400, 0.001, 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [("power_price", "$0.09/kWh"), ("carbon", "400 g/kWh"), ("limits", {"power": "9 kW"})],
)
def test_power_that_nobody_knows_is_asked_for_where_it_is_needed(key: str, value: Any) -> None:
    """By the key that needs it; without one the chip draws nobody knows what."""
    unknown = built(hardware=powered(None))
    assert (unknown.power, unknown.price, unknown.electricity) == (None, 0.001, 0)
    words = "the catalogue has no power figure for h100; give power: in the system"
    with pytest.raises(FieldError, match=words) as raised:
        built(hardware=powered(None), **{key: value})
    assert [path for path, _ in raised.value.faults] == [key.replace("limits", "limits.power")]
    assert built(hardware=powered(400.0), **{key: value}).power == 400


def test_the_power_of_a_site_limits_one_pool() -> None:
    """Two are told apart before they are searched."""
    changes: dict[str, Any] = {"limits": {"power": "9 kW"}, "carbon": "360 g/kWh"}
    assert built(**changes).site_power == 9e3
    assert built("decode", pooled=True, **changes).site_power is None
    assert built(**changes).carbon == pytest.approx(1e-4)


def test_arrivals_leave_slots_free() -> None:
    """Of a pool they are known once the search divides them; a utilisation is a headroom."""
    assert (built().arrivals, built(workload=LOAD).arrivals) == (None, 3)
    assert built("decode", pooled=True).arrivals is None
    assert built("decode", workload=LOAD, pooled=True).arrivals == math.inf
    spare = built(workload={**LOAD, "headroom": 0.2, "spare_replicas": 1})
    assert (spare.headroom, spare.spare, spare.busiest) == (0.2, 1, 0.99)
    used = built(workload={"utilisation": 0.6})
    assert (used.arrivals, used.headroom, used.busiest) == (math.inf, 0.4, 0.6)
    assert built(workload={"utilisation": 0.995}).busiest == 0.99


def test_a_closed_loop_keeps_its_requests_in_flight() -> None:
    """In step where all are as long; the lecture and a phase alone know no loop."""
    task = built(workload=LOOP)
    assert (task.batches, task.kappa, task.loop, task.even) == ((6,), 0.5, ClosedLoop(), True)
    for lengths in ("input_tokens", "output_tokens"):
        uneven = built(workload={**LOOP, lengths: {"mean": 100, "cv": 0.5}})
        assert (uneven.loop, uneven.even) == (ClosedLoop(even=False), False)
    lecture = built(workload=LOOP, assumptions="lecture")
    assert (lecture.loop, lecture.even, lecture.batches) == (None, False, (6,))
    assert built("decode", workload=LOOP).loop is None
    free = built()
    assert (free.batches, free.kappa, free.loop, free.even) == (None, 1, None, False)
    assert built("prefill", choose={"batch": 3}).batches == (3,)
    assert built("prefill", choose={"batch": 3}, pooled=True).batches is None


def test_drafts_add_positions_and_tokens_to_a_step() -> None:
    """As far as a model accepts them; a lecture draws them from nowhere."""
    asked = {"drafts": 3, "acceptance": 0.5}
    task = built(builder={"drafts": 3}, speculation=asked)
    assert (task.positions_per_step, task.tokens_per_step) == (4, 1.875)
    assert (task.accepted_range, task.drafting) == ((1, 1), "")
    assert task.drafter == speculation_depth(Speculation(**asked), MODEL, 3).drafter
    unknown = built(builder={"drafts": 2}, speculation={"drafts": 2, "method": "eagle"})
    curve = speculation_depth(Speculation(drafts=2, method="eagle"), MODEL, 2)
    ends = (curve.low / curve.emitted, curve.high / curve.emitted)
    assert unknown.accepted_range == pytest.approx(ends)
    assert unknown.drafting == "eagle"
    lecture = built(builder={"drafts": 3}, speculation=asked, assumptions="lecture")
    assert (lecture.tokens_per_step, lecture.drafter) == (1.875, None)
    assert (built().positions_per_step, built().tokens_per_step, built().drafter) == (1, 1, None)


def test_a_pool_has_the_limits_and_promises_of_its_phase() -> None:
    """One pool has those of the whole."""
    changes: dict[str, Any] = {
        "choose": {"mode": "disaggregated", "tp": 2, "decode": {"tp": 4}},
        "promises": {"ttft": "1 s", "tpot": "50 ms", "e2e": "9 s"},
    }
    decode, read, alone = (built(mode, pooled=pooled, **changes) for mode, pooled in
                           (("decode", True), ("prefill", True), ("decode", False)))  # fmt: skip
    assert [task.limits_of["tp"] for task in (decode, read, alone)] == [(4,), (2,), (2,)]
    assert decode.promises == {"tpot": 0.05, "e2e": 9}
    assert (read.promises, alone.promises) == ({"ttft": 1}, {"tpot": 0.05})
    assert (decode.pooled, alone.pooled) == (True, False)
    with pytest.raises(FieldError, match="leaves nothing to decode"):
        built("prefill", pooled=True, workload={"output_tokens": 1})


def test_an_engine_that_was_read_must_run_the_plan() -> None:
    """Those for the maker of the chip, or the one asked for; the bound of any asks for none."""
    assert built().engines == ("vllm", "sglang", "trtllm")
    assert (built().any_layout, built().engine) == (False, "any")
    assert built(engine="sglang").engines == ("sglang",)
    assert built(engine="none").engines is None
    assert built(assumptions="lecture").engines is None
    assert built(estimate="bound").any_layout
    assert not built(estimate="bound", engine="vllm").any_layout
    assert engines_read(small(), chip("mi300x")) == ("vllm", "sglang")
    assert engines_read(small(), chip("gaudi3")) is None
    assert engines_read(small(), replace(chip("h100"), figures={})) is None
    assert engines_read(small(engine="vllm"), chip("gaudi3")) == ("vllm",)


def test_engines_load_weights_that_somebody_published(tmp_path: Path) -> None:
    """A file is a checkpoint's; a description is like one, or nobody's."""
    everyone = ("vllm", "sglang", "trtllm")
    file = tmp_path / "config.json"
    file.write_text("{}", encoding="utf-8")
    described = {"total_params": "8B", "weights": "fp8", "kv_bytes_per_token": "100 KB/token"}
    for model, engines in (("gpt-3-175b", None), (described, None), (str(file), everyone),
                           ({"like": "llama-3.1-8b", "weights": "fp8"}, everyone),
                           ({"like": "palm-8b"}, None)):  # fmt: skip
        assert engines_read(small(model=model), chip("h100")) == engines


def test_two_pools_of_one_system_talk_inside_a_domain_that_holds_them() -> None:
    """Beyond it through their cards; a message takes the software's time as well."""
    machine, hop = H100.machine, H100.profile.values["t_hop"]
    (inside,) = pairs(H100, chips=8)
    assert inside.rate == machine.links[0]
    assert inside.latency == pytest.approx(2 * machine.scale_up_latency + hop)
    assert (inside.together, inside.demand) == (True, None)
    assert [(task.mode, task.pooled) for task in inside.tasks] == [
        ("prefill", True), ("decode", True)]  # fmt: skip
    (apart,) = pairs(H100, chips=[4, 8, 16], workload=LOAD)
    assert (apart.rate, apart.together, apart.demand) == (machine.scale_out, True, 3)
    assert apart.latency == pytest.approx(2 * machine.scale_out_latency + hop)
    assert pairs(H100, workload={"demand": "max"})[0].demand is None


def test_pools_of_two_systems_are_tried_both_ways() -> None:
    """Each alone and each as the one that reads; the slower cards set the pace between them."""
    wide = replace(H200.machine, scale_out=7e9, scale_out_latency=9e-6)
    values = {**H200.profile.values, "t_hop": 5e-5}
    other = replace(H200, machine=wide, profile=replace(H200.profile, values=values))
    four = pairs(H100, other)
    kinds = [(pair.prefill.chip.name, pair.decode.chip.name) for pair in four]
    assert kinds == [("h100", "h100"), ("h100", "h200"), ("h200", "h100"), ("h200", "h200")]
    assert [pair.together for pair in four] == [True, False, False, True]
    units = [(task.unit, *task.chips) for pair in four for task in pair.tasks]
    assert units == [(1, 4)] * 8
    assert [pair.rate for pair in four[1:3]] == [7e9, 7e9]
    # What decodes receives: its profile says how long a message takes.
    hops = [9e-6 * 2 + values["t_hop"], 9e-6 * 2 + H100.profile.values["t_hop"]]
    assert [pair.latency for pair in four[1:3]] == pytest.approx(hops)


def test_pools_that_cannot_talk_are_refused_where_they_are_asked_for() -> None:
    """Else one pool is sought, and that is told."""
    deaf = replace(H100, machine=replace(H100.machine, scale_out=None))
    warnings: list[str] = []
    assert pairs(deaf, chips=16, warnings=warnings) == []
    assert [text[:37] for text in warnings] == ["one pool alone is sought: two pools o"]
    assert pairs(deaf, chips=16) == []
    with pytest.raises(FieldError, match="move caches through its network cards, whose rate"):
        pairs(deaf, chips=16, choose={"mode": "disaggregated"})


def test_a_site_must_feed_the_chips_of_two_pools_whatever_they_do() -> None:
    """As many as may be paid, at what the hungrier kind is rated for, times what the site needs."""
    two: dict[str, Any] = {"choose": {"mode": "disaggregated"}, "chips": [1, 2, 4], "pue": 1.25}
    hungry = powered(900.0)
    small_power = powered(100.0)
    assert len(pairs(hungry, small_power, **two, limits={"power": "4.5 kW"})) == 4
    for order in ((hungry, small_power), (small_power, hungry)):
        with pytest.raises(FieldError, match=r"4 chips may draw 4.5 kW.*limits.power=4.5 kW"):
            pairs(*order, **two, limits={"power": "4.4 kW"})
    assert len(pairs(small_power, **two, limits={"power": "0.5 kW"})) == 1
    unknown = [replace(powered(None), chip=replace(H100.chip, name=name, power=None))
               for name in ("one", "two")]  # fmt: skip
    with pytest.raises(FieldError, match="no power figure for one"):
        TaskBuilder(small(**two, limits={"power": "4 kW"}), MODEL, None)._pair(*unknown)
    assert pairs(powered(None), **two)[0].prefill.power is None


def test_a_fabric_of_a_file_stays_with_its_machine() -> None:
    """Beside the machine that sums it up."""
    fabric: Any = object()
    assert built(hardware=replace(H100, fabric=fabric)).fabric is fabric
    assert built().fabric is None
