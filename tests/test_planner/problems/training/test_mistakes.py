"""Every mistake of a training question is named, where it stands, with what would put it right."""

from __future__ import annotations

import pytest

import planner
from planner.scenario import load
from tests.cases.training import asked
from tests.loops import for_all

INTERLEAVED = {"schedule": "interleaved", "pp": 8, "tp": 8, "dp": 8, "micro_batch": 32}
MISTAKES = {
    "a batch that dp does not divide": (asked(choose__dp=3), "choose.dp: a batch of 512 sequences"),
    "dp * micro_batch": (
        asked(choose__dp=64, choose__micro_batch=16),
        "choose.micro_batch: a batch of 512 sequences is not divisible by dp 64",
    ),
    "too few chips": (asked(chips=4, choose__tp=8), "chips: the choices need 8 chips"),
    "chips no tuple uses": (
        asked(chips=96, choose={"tp": 8, "pp": 4, "cp": 3}), "choose.cp: 8,192 tokens",
    ),
    "heads": (asked(choose__tp=7), "choose.tp: 64 heads are not divisible by 7; tp may be 1, 2"),
    "experts": (asked(model="deepseek-v3", choose__ep=7), "choose.ep: 256 experts"),
    "virtual stages without a pipeline": (
        asked(choose={"virtual_stages": 2, "pp": 1}), "choose.virtual_stages: 2 virtual stages",
    ),
    "interleaving": (asked(choose=INTERLEAVED), "a multiple of pp"),
    "ZeRO-3 under a pipeline": (
        asked(choose={"zero": 3, "pp": 4}), "choose.zero: the stack has no ZeRO-3",
    ),
    "ep of a dense model": (asked(choose__ep=4), "choose.ep: the model is dense"),
    "cp longer than the sequence": (
        asked(choose__cp=16384), "choose.cp: cp 16384 is longer than the sequence",
    ),
    "reversible": (asked(choose__recompute="reversible"), "choose.recompute: the model is not"),
    "fp8": (asked(system="hgx-a100", precision="fp8"), "precision: the chip a100 has no fp8"),
    "fewer tokens than a batch": (
        asked(work__tokens="1 M tokens"), "work.tokens: 1e\\+06 tokens are fewer than a batch",
    ),
    "current of other chips": (
        asked(current={"tp": 8, "pp": 4, "dp": 8}), "current: tp 8 .* = 256 chips, but chips is",
    ),
    "limits without tokens": (
        asked(work__tokens=None, limits__days=10), "limits.days: .* give work.tokens",
    ),
    "a misspelt word": (asked(choose__recompute="selektive"), "did you mean 'selective'"),
    "a described model": (
        asked(model={"total_params": "70B", "weights": "bf16", "kv_bytes_per_token": 1e3}),
        "model: training needs the layers",
    ),
    "failures without pause": (
        asked(reliability={"mtbf": "50 hours/chip", "save": "60 s", "restart": "10 minutes"}),
        "reliability: 512 chips fail every",
    ),
    "a batch of part of a sequence": (
        asked(work__global_batch="1.5 sequences"), "expected a whole number of sequences",
    ),
}  # fmt: skip


@for_all("name", MISTAKES)
def test_a_mistake_is_named(name):
    """It is refused with its place and what clashes."""
    question, words = MISTAKES[name]
    with pytest.raises(planner.InputError, match=words):
        planner.solve(question)


def test_mistakes_are_named_all_at_once():
    """Three wrong choices are three lines."""
    choose = {"tp": 7, "cp": 3, "ep": 2}
    with pytest.raises(planner.InputError) as refused:
        planner.solve(asked(choose=choose))
    assert {mistake.path for mistake in refused.value.mistakes} == {
        "choose.tp", "choose.cp", "choose.ep",
    }  # fmt: skip


def test_a_current_layout_that_does_not_go_together():
    """Every fault of it stands at its key."""
    current = {"tp": 8, "pp": 4, "dp": 16, "virtual_stages": 3, "zero": 3, "micro_batch": 64}
    with pytest.raises(planner.InputError) as refused:
        planner.solve(asked(current=current))
    assert {mistake.path for mistake in refused.value.mistakes} == {
        "current.micro_batch", "current.zero", "current.virtual_stages",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "sequences"), [("4 M tokens", 512), ("16 M tokens", 2048), ("3 sequences", 3),
                             ("4194304 tokens", 512), ("12288 tokens", 2)],
)  # fmt: skip
def test_batches_in_tokens(batch, sequences):
    """Millions of tokens are 2^20 where that is whole, as batches are published."""
    work = load(asked(work__global_batch=batch)).work
    assert work.sequences == sequences


def test_a_question_loads_again_as_it_is_resolved():
    """What `solve` prints as the scenario is the same question."""
    from planner.scenario import resolve_keys

    question = load(asked(current={"tp": 8}, choose={"offload": True, "overlap": [True, False]}))
    again = load(resolve_keys(question))
    assert resolve_keys(again) == resolve_keys(question)
