"""What small scenarios become: formats, machines, drafts, modes; what is refused, what is said."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planner.catalogue import models
from planner.catalogue.chips import chip, chip_names, chip_power
from planner.catalogue.profile import profile
from planner.problems.serving.profiled import LECTURE
from planner.problems.serving.question import ENGINE_CHOICES
from planner.problems.serving.step.engine_rules import engine_tables
from planner.problems.serving.task.resolve import (
    ServingTasks,
    resolve,
    resolve_hardware,
    small_sample_warning,
)
from planner.problems.serving.task.task import Task
from planner.protocol.solve import solve
from planner.text.errors import FieldError
from tests.cases.scenarios import small
from tests.loops import for_all

LOAD: dict[str, Any] = {"demand": "2 requests/s"}
TWO = {"mode": "disaggregated"}
LECTURE_OF: dict[str, Any] = {"assumptions": "lecture"}
SPARSE: dict[str, Any] = {"model": "deepseek-v3", "system": "hgx-h200", "chips": 8}
FEW = {"total_params": "8B", "weights": "int8", "kv_bytes_per_token": "100 KB/token", "kv": "fp8"}


def asked(**changes: Any) -> ServingTasks:
    """The small scenario with some values changed, resolved."""
    return resolve(small(**changes), date(2026, 11, 28))


def refused(**changes: Any) -> dict[str, str]:
    """What is said of the small scenario with some values changed, by key."""
    with pytest.raises(FieldError) as raised:
        asked(**changes)
    return dict(raised.value.faults)


def formats(task: Task) -> tuple[str, str, str]:
    """Dtypes of weights, cache and activations."""
    return task.sizes.weight_dtype["dense_ffn"], task.sizes.kv_dtype, task.sizes.activation_dtype


def test_one_model_on_one_machine_is_one_pool_or_two() -> None:
    """In its checkpoint's formats, with a source of every figure."""
    found = asked()
    ((task,), (pair,), (hardware,)) = found.tasks, found.pools, found.hardware
    assert (task.mode, formats(task)) == ("aggregated", ("bf16", "bf16", "bf16"))
    assert [each.mode for each in pair.tasks] == ["prefill", "decode"]
    assert (hardware.price, hardware.draws_given, hardware.fabric) == (0.001, False, None)
    assert task.chip.memory == pytest.approx(79.19 * 2**30)  # what logs of engines say is seen
    assert found.warnings == ()
    names = [one.what for one in found.data]
    assert names == ["model llama-3.1-8b", "chip h100", "price of h100", "profile engines-2026",
                     "power of h100"]  # fmt: skip
    model, figure = models.record("llama-3.1-8b"), chip("h100").figures["memory_bandwidth"]
    power = chip_power(chip("h100"))
    assert power is not None
    assert [(one.source, one.as_of) for one in found.data] == [
        (model.source, model.as_of), (figure.source, figure.as_of), ("given", ""),
        (profile("engines-2026").source, "2026-04-22"), (power.source, power.as_of),
    ]  # fmt: skip


def test_every_choice_of_formats_chunks_and_copies_is_a_question() -> None:
    """A format that is the checkpoint's own is asked once."""
    several = asked(choose={"weights": ["bf16", "fp8"], "kv": "fp8", "chunk": [512, 1024],
                            "activations": ["bf16"], "mode": "decode"})  # fmt: skip
    assert [(formats(task), task.chunk) for task in several.tasks] == [
        ((weights, "fp8", "bf16"), chunk) for weights in ("bf16", "fp8") for chunk in (512, 1024)
    ]
    copies = asked(**SPARSE, choose={"redundant_experts": [0, 8], "mode": "decode"})
    assert [task.redundant for task in copies.tasks] == [0, 8]
    own = asked(buy={}, choose={"mode": "aggregated"})
    assert [formats(task)[0] for task in own.tasks] == ["bf16", "fp8"]
    assert list(refused(choose={"redundant_experts": 8})) == ["choose.redundant_experts"]


def test_a_described_model_has_its_own_formats_where_nobody_chooses_others() -> None:
    """Like one of the catalogue in other dtypes, or nobody's and only some numbers."""
    like = {"like": "llama-3.1-8b", "weights": "fp8", "kv": "fp8", "activations": "bf16"}
    assert formats(asked(model=like).tasks[0]) == ("fp8", "fp8", "bf16")
    chosen = asked(model=like, choose={"weights": "bf16", "kv": "bf16"})
    assert formats(chosen.tasks[0]) == ("bf16", "bf16", "bf16")
    assert asked(model=like).data[0].what == "model llama-3.1-8b"
    few = asked(model=FEW)
    assert formats(few.tasks[0]) == ("int8", "fp8", "bf16")
    assert few.tasks[0].sizes.n_total == 8_000_000_000
    assert (few.data[0].what, few.data[0].source) == ("model", "described in the scenario")
    assert list(refused(model=FEW, choose={"kv": "bf16"})) == ["model"]


def test_a_model_of_a_file_is_read_from_it(tmp_path: Path) -> None:
    """Its source is the file as it was written."""
    config = {"model_type": "llama", "hidden_size": 512, "intermediate_size": 1536,
              "num_hidden_layers": 6, "num_attention_heads": 4, "vocab_size": 8000}  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(str(config).replace("'", '"'), encoding="utf-8")
    found = asked(model=str(file))
    assert (found.tasks[0].sizes.n_layers, found.tasks[0].sizes.hidden) == (6, 512)
    assert (found.data[0].what, found.data[0].source) == (f"model {file}", str(file))


def test_every_machine_is_asked_in_turn() -> None:
    """Alone as one pool, and each with each as two."""
    found = asked(system=["hgx-h100", "hgx-h200"])
    assert [one.chip.name for one in found.hardware] == ["h100", "h200"]
    assert [task.chip.name for task in found.tasks] == ["h100", "h200"]
    assert len(found.pools) == 4
    assert [one.what for one in found.data].count("profile engines-2026") == 2


def test_every_depth_of_drafts_is_a_question_of_what_decodes() -> None:
    """Of a pool that reads prompts it is one; where lengths come from is said once."""
    found = asked(speculation={"drafts": "auto"}, choose={"mode": ["prefill", "decode"]})
    depths = {mode: [task.drafts for task in found.tasks if task.mode == mode]
              for mode in ("prefill", "decode")}  # fmt: skip
    assert depths == {"prefill": [8], "decode": list(range(9))}
    (source,) = (one.source for one in found.data if one.what == "accepted drafts")
    assert source.startswith("eagle-3 of llama-3.1-8b: ")
    assert not any("tokens per step" in words for words in found.warnings)
    given = asked(speculation={"drafts": 2, "acceptance": 0.5})
    assert "accepted drafts" not in {one.what for one in given.data}
    unknown = asked(speculation={"drafts": 3, "method": "eagle"})
    assert any("tokens per step of 3 drafts; four in five" in words for words in unknown.warnings)


def test_a_chip_that_is_described_draws_what_it_is_given() -> None:
    """All the time, so that nothing measured speaks of it."""
    for system in (
        {"like": "hgx-h100", "power": "600 W"},
        {"memory": "80 GB", "memory_bandwidth": "3 TB/s", "flops": {"bf16": "900 TFLOP/s"},
         "scale_up": "450 GB/s", "chips_per_domain": 8, "power": "600 W"},
    ):  # fmt: skip
        found = asked(system=system)
        assert found.hardware[0].draws_given
        assert (found.tasks[0].power, found.tasks[0].draw) == (600, None)
        assert not any(one.what.startswith("power of") for one in found.data)
        lone = {key: value for key, value in system.items() if key != "scale_up"}
        if "like" not in system:
            assert "4 chips exchange" in refused(system=lone, chips=[1, 2, 4])["system"]
    assert not asked(system={"like": "hgx-h100", "memory": "96 GB"}).hardware[0].draws_given
    borrowed = asked(system="hgx-h200")
    assert ("no rows of h200" in borrowed.data[-1].source) is not chip_power(chip("h200")).measured  # type: ignore[union-attr]


def test_the_lecture_counts_multiply_accumulates() -> None:
    """Half of a data sheet's FLOP, and all of peaks that are written in the scenario."""
    sheet = chip("h100")
    found = asked(**LECTURE_OF)
    task = found.tasks[0]
    assert task.chip.flops == {name: peak / 2 for name, peak in sheet.flops.items()}
    assert (task.profile.name, task.chip.memory) == (LECTURE.name, sheet.memory)
    assert not any(one.what.startswith("power of") for one in found.data)
    varied = asked(**LECTURE_OF, system={"like": "hgx-h100", "flops": {"bf16": "100 TFLOP/s"}})
    assert dict(varied.tasks[0].chip.flops) == {
        "bf16": 1e14, **{name: peak / 2 for name, peak in sheet.flops.items() if name != "bf16"}
    }  # fmt: skip
    own = asked(**LECTURE_OF, system={
        "memory": "80 GB", "memory_bandwidth": "3 TB/s", "flops": {"bf16": "900 TFLOP/s"},
        "scale_up": "450 GB/s", "chips_per_domain": 8,
    })  # fmt: skip
    assert own.tasks[0].chip.flops == {"bf16": 9e14}
    assert [pair.prefill for pair in found.pools] == []


@pytest.mark.parametrize("sourced", [{"source": "a data sheet", "as_of": "2026-08-22"}, {}])
def test_a_topology_file_wires_the_chips_of_a_system(
    tmp_path: Path, sourced: dict[str, str]
) -> None:
    """Alone it says not which chips; with a system it is their fabric, whose source is told."""
    nodes = [{"id": x, "kind": "accelerator", "forward": False, "domain": 0} for x in ("a", "b")]
    link = {"source": "a", "target": "b", "bandwidth": 4e11, "latency": 1e-6, "tier": "scale_up"}
    file = tmp_path / "two.json"
    graph = {"directed": False, "graph": sourced, "nodes": nodes, "links": [link]}
    file.write_text(json.dumps(graph), encoding="utf-8")
    system = {"like": "hgx-h100", "topology": str(file)}
    found = asked(system=system, chips=2)
    ((hardware,), (task,)) = found.hardware, found.tasks
    assert hardware.fabric is not None
    assert task.fabric is hardware.fabric
    assert (task.chip.name, task.machine.chips_per_domain, hardware.draws_given) == (
        "h100", 2, False)  # fmt: skip
    (network,) = (one for one in found.data if one.what == "network two.json")
    assert (network.source, network.as_of) == (
        sourced.get("source", "given"), sourced.get("as_of", ""))  # fmt: skip
    assert "says how chips are wired, but not which" in refused(system=str(file))["system"]
    assert "4 chips are asked for" in refused(system=system, chips=[1, 2, 4])["chips"]


def test_what_no_engine_runs_is_left_out_or_refused() -> None:
    """Of two makers' chips one engine has the kernels of one alone."""
    both = asked(system=["hgx-h100", "mi300x-8"], engine="trtllm")
    assert [task.chip.name for task in both.tasks] == ["h100"]
    assert [[task.chip.name for task in pair.tasks] for pair in both.pools] == [["h100", "h100"]]
    assert [words for words in both.warnings if words.startswith("left out: ")]
    for mode in ("aggregated", "disaggregated"):
        one = asked(system=["hgx-h100", "mi300x-8"], engine="trtllm", choose={"mode": mode})
        assert (len(one.tasks), len(one.pools)) == ((1, 0) if mode == "aggregated" else (0, 1))
    ((path, words),) = refused(system="mi300x-8", engine="trtllm").items()
    assert path.startswith("choose")
    assert f"left out: {words}" in both.warnings
    assert not any(words.startswith("left out") for words in asked(engine="trtllm").warnings)


def test_layouts_that_no_engine_was_read_for_are_checked_by_arithmetic() -> None:
    """Which is said of the chips in question, but not where no engine was asked for."""
    words = "no engine was read for this model on {}: layouts are checked by arithmetic alone"
    several = asked(model=FEW, system=["hgx-h100", "hgx-h200"])
    assert words.format("h100 and h200") in several.warnings
    assert words.format("gaudi3") in asked(system=["hgx-h100", "gaudi3-8"]).warnings
    silent: list[dict[str, Any]] = [
        {}, {"engine": "none", "model": FEW}, {**LECTURE_OF, "model": FEW}
    ]  # fmt: skip
    for changes in silent:
        assert not any("no engine was read" in each for each in asked(**changes).warnings)


@for_all(
    ("changes", "key", "words"),
    [
        ({**LECTURE_OF, "memory_utilisation": 0.8}, "memory_utilisation", "fills the whole memory"),
        ({"workload": LOAD, "choose": {"batch": 8}}, "choose.batch", "the batch is what gathers"),
        ({"workload": {"demand": "max"}, "objective": "latency"}, "objective", "give a demand"),
        ({"promises": {"ttft_p95": "1 s"}}, "promises.ttft_p95", "concurrency nobody queues"),
        ({"promises": {"ttft_p99": "1 s"}}, "promises.ttft_p99", "concurrency nobody queues"),
        ({"promises": {"cache_fits": 0.9}}, "promises.cache_fits", "give demand with it"),
        ({**LECTURE_OF, "choose": TWO}, "choose.mode", "the lecture has one pool"),
        ({"workload": {"concurrency": 8}, "choose": TWO}, "workload.concurrency", "a closed loop"),
        ({"chips": 1, "choose": TWO}, "chips", "two pools need two chips"),
        ({"workload": {**LOAD, "spare_replicas": 4}}, "workload.spare_replicas", "one must serve"),
        ({"choose": {"mode": "aggregated", "decode": {"tp": 2}}}, "choose.decode", "one of two"),
        ({"choose": {"mode": "decode", "prefill": {"tp": 2}}}, "choose.prefill", "one of two"),
        ({"choose": {**TWO, "prefill": {"tp": 2}, "decode": {"tp": [2, 4], "pp": 2}}},
         "choose.prefill", "the pools need 2 and 4 chips at least, but chips is 4"),
        ({"choose": {**TWO, "decode": {"tp": 2, "replicas": 2}}},
         "choose.decode", "the pools need 1 and 4 chips at least, but chips is 4"),
        ({"workload": {"input_tokens": 131_000, "output_tokens": 100}, "engine": "vllm"},
         "workload.input_tokens", "longer than the 131072 that llama-3.1-8b was made for"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused_by_its_key(
    changes: dict[str, Any], key: str, words: str
) -> None:
    """And nothing else is."""
    faults = refused(**changes)
    assert list(faults) == [key]
    assert words in faults[key]


AGREES: list[dict[str, Any]] = [
    LECTURE_OF,
    {"memory_utilisation": 0.8},
    {"choose": {"batch": 8}},
    {"workload": LOAD, "promises": {"ttft_p95": "9 s", "ttft_p99": "9 s", "cache_fits": 0.9}},
    {"workload": {"concurrency": 8}},
    {"workload": {"demand": "max"}, "objective": "throughput"},
    {"workload": LOAD, "objective": "latency"},
    {"workload": {"utilisation": 0.5}, "objective": "latency"},
    {"chips": 2, "choose": TWO},
    {"chips": [1, 1, 2], "choose": TWO},
    {"chips": [1, 4, 8], "workload": {**LOAD, "spare_replicas": 6}},
    {"workload": {**LOAD, "spare_replicas": 3}},
    {"choose": {**TWO, "prefill": {"tp": 2}, "decode": {"tp": [1, 2, 4], "pp": 2}}},
    {"choose": {**TWO, "prefill": {"tp": 2}, "decode": {"tp": 2}}},
    {"choose": {"prefill": {"tp": 2}}},
    {"workload": {"input_tokens": 130_972, "output_tokens": 100}, "engine": "vllm"},
]


@for_all("changes", AGREES)
def test_what_agrees_with_itself_is_answered(changes: dict[str, Any]) -> None:
    """At the very edge of what would be refused."""
    found = asked(**changes)
    assert found.tasks or found.pools


def test_longer_requests_than_a_model_was_made_for_are_told() -> None:
    """Where any engine may run it, or none."""
    edge, beyond = ({"input_tokens": 130_972, "output_tokens": n} for n in (100, 101))
    for engine in ("any", "none"):
        told = asked(workload=beyond, engine=engine).warnings
        assert [words[:47] for words in told] == ["a request of 130972 tokens in and 101 out is lo"]
        assert not asked(workload=edge, engine=engine).warnings
    described = asked(model=FEW, workload={"input_tokens": 1_000_000}, engine="none")
    assert not any("a request of" in words for words in described.warnings)


def test_what_is_given_and_changes_nothing_is_told() -> None:
    """Promises that a phase alone knows nothing of, a spread that the lecture leaves out."""
    promises = {"ttft": "9 s", "tpot": "1 s", "e2e": "99 s"}

    def aside(**changes: Any) -> list[str]:
        told = asked(**changes).warnings
        return sorted(words.split(" ")[0] for words in told if "is left aside: mode" in words)

    assert aside(promises=promises) == aside(promises=promises, choose=TWO) == []
    assert aside(promises=promises, choose={"mode": "decode"}) == ["promises.e2e", "promises.ttft"]
    read = {"choose": {"mode": "prefill"}, "workload": LOAD}
    assert aside(promises=promises, **read) == ["promises.e2e", "promises.tpot"]
    assert aside(promises={"cache_fits": 0.9}, **read) == ["promises.cache_fits"]
    assert aside(promises=promises, choose={"mode": ["prefill", "decode"]}) == ["promises.e2e"]
    spread = {"workload": {"input_tokens": {"mean": 500, "cv": 0.5}}}
    words = "the lecture knows no spread of input_tokens: the mean is used"
    assert words in asked(**LECTURE_OF, **spread).warnings
    assert words not in asked(**LECTURE_OF).warnings
    assert words not in asked(**spread).warnings
    loose = {"uncertain": {"price": {"uniform": ["$2/hour", "$4/hour"]}}}
    assert any("uncertain" in words for words in asked(**loose).warnings)
    assert not any("uncertain" in words for words in asked().warnings)


def test_two_pools_for_a_fast_load_are_not_proven_best() -> None:
    """Only of them is it said, and only where a load is given and latency is the objective."""
    start = "two pools under a load are sized by"
    load = {"workload": LOAD}
    proven: tuple[dict[str, Any], ...] = (
        {"objective": "latency", "choose": TWO}, {"choose": TWO, **load},
        {"objective": "latency", **load},
    )  # fmt: skip
    for changes in proven:
        assert not any(words.startswith(start) for words in asked(**changes).warnings)
    told = asked(objective="latency", choose=TWO, **load).warnings
    assert [words for words in told if words.startswith(start)]


def test_on_chip_memory_that_is_not_known_is_told() -> None:
    """Where the bound would use it; the lecture does not."""
    start = "the on-chip memory of gaudi3 is not known"
    gaudi: dict[str, Any] = {"system": "gaudi3-8"}
    assert [words for words in asked(**gaudi).warnings if words.startswith(start)]
    assert not any("on-chip memory" in words for words in asked(**gaudi, **LECTURE_OF).warnings)
    assert not any("on-chip memory" in words for words in asked().warnings)
    assert any("was fitted on" in words for words in asked(**gaudi).warnings)


def test_systems_that_nobody_rents_out_are_left_aside() -> None:
    """Unless a price is given."""
    kinds: dict[str, Any] = {"system": ["hgx-h100", "cloudmatrix384"], "price": None}
    assert [one.chip.name for one in resolve_hardware(small(**kinds))] == ["h100"]
    found = asked(**kinds)
    assert [task.chip.name for task in found.tasks] == ["h100"]
    assert [words.split(" ")[0] for words in found.warnings] == ["cloudmatrix384"]
    old = resolve(small(**kinds), date(2030, 1, 1)).warnings
    assert any("days ago; give price" in words for words in old)
    assert not any("days ago" in words for words in found.warnings)


@pytest.mark.parametrize(
    ("runs", "words"), [(0, None), (1, "one run"), (2, "2 runs"), (5, "5 runs"), (6, None)]
)
def test_a_profile_of_a_handful_of_runs_says_so(runs: int, words: str | None) -> None:
    """Up to five of one's own; more are a fit, and those of the catalogue have none."""
    told = small_sample_warning(replace(LECTURE, runs=runs))
    assert told is None if words is None else f"was fitted on {words} of one's own" in str(told)


def test_faults_of_what_is_looked_up_stand_at_the_key_that_asked() -> None:
    """A price that nobody lists is asked for by that name."""
    ((path, words),) = refused(system="cloudmatrix384", price=None).items()
    assert path == "price"
    assert "ascend-910c" in words


RUN_BY = [
    (name, {"engine": engine})
    for engine, name in product(ENGINE_CHOICES, chip_names())
    if engine not in engine_tables()
    or (
        chip(name).maker in engine_tables()[engine].vendors
        and chip(name).architecture not in engine_tables()[engine].older
    )
]


@for_all(("name", "changes"), [*RUN_BY, *((x, {"model": FEW}) for x in chip_names())])
def test_the_profile_is_of_engines_that_the_answer_names(name: str, changes: Any) -> None:
    """Who is meant where none is named is said; where none was measured, no band is of known."""
    found = asked(system=name, chips=1, choose={"mode": "aggregated"}, **changes)
    (task,), (hardware,) = found.tasks, found.hardware
    speaks = hardware.profile
    assert speaks.engine in ("any", *(task.engines or (speaks.engine,)))
    if chip(name).maker in ("NVIDIA", "AMD") and changes != {"engine": "none"}:
        assert speaks.engine != "llama.cpp"
    lone = speaks.engine not in ("any", changes.get("engine"))
    assert any(f"is of {speaks.engine} alone" in words for words in found.warnings) == lone
    assert name in speaks.chips or task.profile.regime != "known"


@pytest.mark.parametrize("name", ["h100-pcie", "hgx-a100", "l40s", "rtx-6000-ada", "hgx-h200"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-8b"])
def test_the_time_of_one_plan_follows_the_engine(name: str, model: str) -> None:
    """Of each engine its own, by the profile that the answer names; with a version as without."""
    same = {"model": model, "system": name, "chips": 1, "choose": {"tp": 1, "batch": 8}}
    named = ("vllm", "sglang", "trtllm", {"name": "vllm", "version": "0.19"})
    answers: list[Any] = [solve(small(engine=engine, **same)) for engine in named]
    times = [answer.point.tpot for answer in answers]
    assert len({*times}) == 3
    assert times[0] == times[3]
    speak = [answer.document["band"]["from"] for answer in answers]
    assert [x.rpartition("-")[0] for x in speak] == ["vllm", "sglang", "trtllm", "vllm"]
