"""Drafts: each costs a pass and brings what is accepted; how many pay depends on the batch."""

import csv
import re

import numpy as np
import pytest

import planner
from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.catalogue.acceptance import draft_method
from planner.problems.serving.task.drafter import predictor
from planner.text.errors import InputError
from tests.paths import shared
from tests.sizes import sized

HEAD = {"method": "eagle-3"}


def point(model, system, chips, batch, speculation=None, **more):
    """One layout that decodes `batch` sequences, as a plan has it."""
    scenario = {
        "problem": "serving", "model": model, "system": system, "chips": chips, "price": "$2/hour",
        "workload": {"input_tokens": 500, "output_tokens": 500},
        "choose": {"mode": "decode", "tp": chips, "replicas": 1, "batch": batch},
        "speculation": speculation,
        "engine": "none",
    } | more  # fmt: skip
    return planner.solve(scenario)


def pace(*args, **more):
    """Time per token of that plan [s]."""
    return point(*args, **more).chosen["tpot"]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3"])
def test_a_draft_is_never_free(model):
    """None accepted, each draft makes the token dearer; all but the drafts is what it was."""
    chips, system = (1, "hgx-h100") if model == "llama-3.1-8b" else (8, "hgx-h200")
    plans = [
        point(model, system, chips, 16, {"drafts": d, "acceptance": 0} if d else None).chosen
        for d in range(4)
    ]
    times = [plan["tpot"] for plan in plans]
    assert (np.diff(times) > 0.01 * times[0]).all()
    drafting = [plan["time_per_step"]["drafts"] for plan in plans]
    assert drafting[0] == 0
    assert np.diff(drafting) == pytest.approx(drafting[1], rel=1e-9)
    assert plans[3]["memory_per_chip"]["weights"] > plans[0]["memory_per_chip"]["weights"]


def test_drafted_positions_touch_more_experts():
    """Four positions of one sequence read about four times the routed weights of one."""
    one, four = (
        point("deepseek-v3", "hgx-h200", 8, 1, s).chosen["time_per_step"]["weights"]
        for s in (None, {"drafts": 3, "acceptance": 0.5})
    )
    counted = model_sizes(models.load("deepseek-v3"))
    routed = counted.streamed_bytes["routed"]
    fixed = sum(counted.streamed_bytes.values()) - routed
    share = 8 / 256
    expected = (fixed + routed * 4 * share / (1 + 3 * share)) / (fixed + routed * share)
    assert four / one == pytest.approx(expected, rel=1e-6)


def test_a_predictor_layer_is_as_large_as_published():
    """DeepSeek-V3: 11.5B in its module beside the shared head; EAGLE-3 on Llama-3.1-8B: 0.4B."""
    own = model_sizes(models.load("deepseek-v3"))
    layer = predictor(own, draft_method("mtp"))
    assert layer.resident + layer.routed_resident == pytest.approx(own.mtp_params, rel=0.03)
    assert own.mtp_params == pytest.approx(11.5e9, rel=0.02)
    small = model_sizes(models.load("llama-3.1-8b"))
    head = predictor(small, draft_method("eagle-3"))
    assert head.resident / 2 == pytest.approx(0.425e9, rel=0.1)


@pytest.mark.sized
def test_auto_is_the_best_of_every_depth():
    """At each batch none of the fixed depths, nor none, is cheaper; deep ones go first."""
    depths = []
    for batch in (1, 32, 256, 512)[:: sized(3, 1)]:
        best = point("llama-3.1-8b", "hgx-h100", 1, batch, {"drafts": "auto", **HEAD})
        fixed = [None, *({"drafts": d, **HEAD} for d in range(1, 9))]
        each = [pace("llama-3.1-8b", "hgx-h100", 1, batch, s) for s in fixed]
        assert best.chosen["tpot"] == pytest.approx(min(each), rel=1e-9)
        assert best.chosen["drafts"] == int(np.argmin(each))
        depths.append(best.chosen["drafts"])
    assert depths == sorted(depths, reverse=True)
    assert depths[0] >= 2


@pytest.mark.parametrize(("drafts", "method"), [(1, "eagle"), (2, "eagle"), (4, "eagle-3")])
def test_the_batch_up_to_which_drafts_pay_is_where_both_are_as_fast(drafts, method):
    """The closed form against the plans themselves, on a dense model; looked at from any batch."""
    asked = {"drafts": drafts, "method": method}
    short = {"workload": {"input_tokens": 100, "output_tokens": 100}}
    at = [
        point("llama-3.1-8b", "hgx-a100", 1, batch, asked, **short).chosen["drafting"]["pays_up_to"]
        for batch in (8, 64)
    ]
    assert at[0] == pytest.approx(at[1], rel=0.01)
    batch = round(at[1])
    once, more = (
        pace("llama-3.1-8b", "hgx-a100", 1, n, **short)
        / pace("llama-3.1-8b", "hgx-a100", 1, n, asked, **short)
        for n in (batch, round(1.3 * batch))
    )
    assert once == pytest.approx(1, abs=0.01)
    assert more < 1


def test_the_search_takes_the_depth_that_serves_most_cheaply():
    """Batches left free, auto is as cheap as the cheapest of the depths."""
    free = {"workload": {"input_tokens": 500, "output_tokens": 500}, "choose": {"mode": "decode"},
            "promises": {"tpot": "6 ms"}}  # fmt: skip
    best = point("llama-3.1-8b", "hgx-h100", 1, 1, {"drafts": "auto", **HEAD}, **free)
    prices = [
        point("llama-3.1-8b", "hgx-h100", 1, 1, s, **free).chosen.get("usd_per_mtok", np.inf)
        for s in (None, *({"drafts": d, **HEAD} for d in range(1, 9)))
    ]
    assert best.chosen["usd_per_mtok"] == pytest.approx(min(prices), rel=1e-9)


def test_a_model_of_its_own_drafts_with_its_own_weights():
    """It lies in memory, and drafts slower than a head of one layer."""
    plain, small, head = (
        point("llama-3.1-70b", "hgx-h100", 8, 4, s).chosen
        for s in (
            None,
            {"drafts": 3, "accepted": 2.4, "draft_model": "llama-3.2-1b"},
            {"drafts": 3, "accepted": 2.4, **HEAD},
        )
    )
    held = model_sizes(models.load("llama-3.2-1b")).total_weight_bytes / 8
    weights = [plan["memory_per_chip"]["weights"] for plan in (plain, small)]
    assert weights[1] - weights[0] == pytest.approx(held, rel=1e-6)
    assert small["memory_per_chip"]["kv"] > plain["memory_per_chip"]["kv"]
    drafting = [plan["time_per_step"]["drafts"] for plan in (small, head)]
    assert drafting[0] > 2 * drafting[1] > 0


def test_one_that_memory_does_not_hold_is_no_plan():
    """70B drafts for 8B on one chip of 80 GB."""
    asked = {"drafts": 2, "accepted": 2.0, "draft_model": "llama-3.1-70b"}
    assert point("llama-3.1-8b", "hgx-h100", 1, 1, asked).status == "infeasible"


def test_lengths_of_the_user_replace_the_catalogue():
    """A length at its depth, a list by depth, and beyond a list a curve through it."""
    at = ("llama-3.1-8b", "hgx-h100", 1, 8)
    once = pace(*at, {"drafts": 2, "accepted": 2.1, **HEAD})
    listed = pace(*at, {"drafts": 2, "accepted": [1.7, 2.1, 2.4], **HEAD})
    chance = pace(*at, {"drafts": 2, "acceptance": 0.7, **HEAD})
    assert once == pytest.approx(listed, rel=1e-12)
    assert once * 2.1 == pytest.approx(chance * (1 + 0.7 + 0.49), rel=1e-12)
    step = point(*at, {"drafts": 4, "accepted": [1.7, 2.1, 2.4], **HEAD}).chosen
    emitted = sum(step["time_per_step"].values()) / step["tpot"]
    assert 2.4 < emitted < 2.4 + 0.3


def test_where_nothing_was_measured_the_answer_says_so():
    """With the range that the lengths of other models give."""
    answer = point("qwen3-32b", "hgx-h100", 1, 1, {"drafts": 3}).document
    (warning,) = [w for w in answer["provenance"]["warnings"] if "speculation.accepted" in w]
    assert "no curve of eagle-3 of qwen3-32b is known" in warning
    known = point("llama-3.1-8b", "hgx-h100", 1, 1, {"drafts": 3}).document
    assert not [w for w in known["provenance"]["warnings"] if "speculation" in w]
    assert [d for d in known["provenance"]["data"] if d["what"] == "accepted drafts"]


def test_predictor_layers_are_asked_of_models_that_have_them():
    """Where it is wrong, what would put it right."""
    with pytest.raises(InputError, match=r"speculation\.method.*choose method: eagle-3"):
        point("llama-3.1-8b", "hgx-h100", 1, 1, {"drafts": 2, "method": "mtp"})


def test_a_draft_model_shares_its_words():
    """Tokens of another vocabulary cannot be checked one by one."""
    asked = {"drafts": 2, "accepted": 2.0, "draft_model": "qwen3-0.6b"}
    with pytest.raises(InputError, match=r"speculation\.draft_model.*same family"):
        point("llama-3.1-8b", "hgx-h100", 1, 1, asked)


MODELS = {"llama3.1-8b": "llama-3.1-8b", "llama3-8b": "llama-3-8b"}
# Of a table whose caption says A100 and whose text says RTX 3090 (arXiv 2503.01840, table 4): the
# latter, whose products are fewer for the bytes that it reads, on the short prompts it holds.
CARD = {"memory": "24 GB", "memory_bandwidth": "936 GB/s", "flops": {"bf16": "71 TFLOP/s"}}
SHORT = {"workload": {"input_tokens": 60, "output_tokens": 120}}
SYSTEMS = {"A100?": CARD, "H100": "hgx-h100", "H100?": "hgx-h100", "H200": "hgx-h200",
           "B200": "hgx-b200", "MI300X": "mi300x-8"}  # fmt: skip
NEARLY_ALL = 0.97  # of the drafts, where a row says that the threshold lets nearly every one pass


def published():
    """Speed-ups of chains of a depth that is told: row, and (model, system, chips, batch, ...)."""
    text = shared("speculation.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        chain = row["depth"].isdigit() and "tree" not in row["method"]
        if not (row["speed_up"] and chain and row["chip"] in SYSTEMS) or "NOT to" in row["unit"]:
            continue
        speculation = {"drafts": int(row["depth"]), "method": row["method"].lower()}
        if row["acceptance_length"]:
            speculation["accepted"] = float(row["acceptance_length"])
        elif row["lossy"] == "1":
            speculation["acceptance"] = NEARLY_ALL
        chips = int(row["chips"])
        wide = {"tp": 1, "dp_attention": chips, "ep": chips} if chips > 8 else {"tp": chips}
        ranks = chips if "per rank" in row["notes"] else 1
        choose = {"mode": "decode", "replicas": 1, "batch": int(row["batch"]) * ranks, **wide}
        model = MODELS.get(row["model"], row["model"])
        more = {"choose": choose, **(SHORT if row["chip"] == "A100?" else {})}
        yield row, (model, SYSTEMS[row["chip"]], chips, 1), speculation, more


@pytest.mark.slow
def test_published_speed_ups_and_the_side_of_break_even():
    """At least nine in ten pairs on the right side; EAGLE and EAGLE-3 pay up to where they did."""
    right, ratios, told = [], [], {}
    for row, at, speculation, more in published():
        ours = pace(*at, None, **more) / pace(*at, speculation, **more)
        right.append((ours > 1) == (float(row["speed_up"]) > 1))
        ratios.append(ours / float(row["speed_up"]))
        told[row["curve"], int(row["batch"])] = ours
        if row["curve"].endswith(":EAGLE-3") and row["batch"] in {"2", "16", "56"}:
            assert ours == pytest.approx(float(row["speed_up"]), rel=0.1)
    assert len(right) >= 30
    assert np.mean(right) >= 0.9
    assert np.median(np.abs(np.log(ratios))) < 0.125
    for curve in ("EAGLE", "EAGLE-3"):
        curves = [(b, s) for (name, b), s in told.items() if name == f"eagle3-vllm-a100:{curve}"]
        gains = [gain for _, gain in sorted(curves)]
        assert (np.diff(gains) < 0).all()
    # Published between 24 and 32; ours lies a batch further out, between 48 and 56.
    assert told["eagle3-vllm-a100:EAGLE", 16] > 1 > told["eagle3-vllm-a100:EAGLE", 56]
    assert told["eagle3-vllm-a100:EAGLE-3", 56] > 1


@pytest.mark.parametrize(("system", "ep", "measured"), [("hgx-h200", 4, 158), ("hgx-b200", 2, 275)])
def test_one_user_of_deepseek_r1_with_three_drafts(system, ep, measured):
    """TensorRT-LLM's best practice: tokens per second of one user on eight chips (m01854, m01855).

    Free drafts of a chance of 0.72 would be faster: each costs its layer, its head and a launch.
    """
    weights = {"weights": "nvfp4"} if system == "hgx-b200" else {}
    choose = {"mode": "decode", "tp": 8, "ep": ep, "replicas": 1, "batch": 1, **weights}
    asked = {"workload": {"input_tokens": 1024, "output_tokens": 2048}, "choose": choose,
             "profile": "trtllm-2026"}  # fmt: skip
    rate = 1 / pace("deepseek-r1", system, 8, 1, {"drafts": 3}, **asked)
    free = {"drafts": 3, "method": "n-gram", "acceptance": 0.72}
    without = 1 / pace("deepseek-r1", system, 8, 1, free, **asked)
    assert rate < 0.9 * without
    assert rate == pytest.approx(measured, rel=0.25)


def test_what_is_not_known_of_accepted_lengths_is_in_the_band():
    """Wider than where the user says the same length, and by the range of it on its own side."""
    told = point("qwen3-32b", "hgx-h100", 1, 1, {"drafts": 3})
    mean = told.chosen["drafting"]["tokens_per_step"]
    sure = point("qwen3-32b", "hgx-h100", 1, 1, {"drafts": 3, "accepted": mean})
    assert sure.chosen["tpot"] == pytest.approx(told.chosen["tpot"])
    (warning,) = [w for w in told.warnings if "speculation.accepted" in w]
    low, high = (float(x) / mean for x in re.search(r"have (\S+) to (\S+);", warning).groups())
    for name, scale in (("tpot", told.chosen["tpot"]), ("usd_per_mtok", told.cost)):
        ends = [np.log(np.array(x.document["band"][name]) / scale) for x in (sure, told)]
        floor = np.log(told.document["bound"][name] / scale)
        expected = (max(floor, -np.hypot(ends[0][0], np.log(high))),
                    np.hypot(ends[0][1], np.log(low)))  # fmt: skip
        assert ends[1] == pytest.approx(expected, abs=5e-3)
    assert told.document["band"]["ttft"] == sure.document["band"]["ttft"]


def test_the_layout_in_use_drafts_as_deep_as_serves_it_best():
    """Beside depths that are left free: as cheap as the cheapest of them on that layout."""
    current = {"tp": 1, "batch": 32}
    asked = {"choose": {"mode": "decode"}, "current": current}
    at = ("llama-3.1-8b", "hgx-h100", 1, 32)
    free = point(*at, {"drafts": "auto", **HEAD}, **asked).document["current"]
    each = [
        point(*at, {"drafts": d, **HEAD} if d else None, **asked).document["current"]
        for d in range(5)
    ]
    assert free["usd_per_mtok"] == pytest.approx(min(one["usd_per_mtok"] for one in each))
    assert free["drafts"] == int(np.argmin([one["usd_per_mtok"] for one in each]))
