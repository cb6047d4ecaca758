"""What a drafter reads, keeps and brings, by hand on models of a few hundred parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.architecture.counts import ModelSizes, model_sizes
from planner.catalogue import models
from planner.catalogue.acceptance import Acceptance, DraftMethod, acceptance, draft_method, lengths
from planner.problems.serving.task.drafter import (
    SpeculationDepth,
    _continued,
    depths,
    draft_model,
    predictor,
    speculation_depth,
)
from planner.scenario.keys.speculation_keys import Speculation
from planner.text.errors import FieldError
from planner.text.tolerances import QUANTILE_90
from tests.cases.serving import MODELS

# Five layers, of which three attend and four have experts; 10 wide, 120 words.
PARAMS = {
    "attention": 500, "dense_ffn": 90, "shared": 40, "routed": 800, "embedding": 70, "head": 60,
    "router": 16, "other": 10,
}  # fmt: skip
READ = {
    "attention": 1000.0, "dense_ffn": 90.0, "shared": 20.0, "routed": 400.0, "embedding": 0.0,
    "head": 240.0, "router": 64.0, "other": 20.0,
}  # fmt: skip
SPARSE = replace(
    MODELS["sparse"], name="hand", params=PARAMS, active={**PARAMS, "routed": 200, "embedding": 0},
    streamed_bytes=READ, weight_bytes={**READ, "embedding": 140.0}, n_layers=5, n_moe_layers=4,
    n_dense_ffn_layers=1, n_attention_layers=3, hidden=10, vocab=120, mtp_blocks=2,
    weight_dtype={**MODELS["sparse"].weight_dtype, "attention": "fp8", "dense_ffn": "fp4"},
)  # fmt: skip
NONE = {"shared": 0, "routed": 0, "router": 0}
DENSE = replace(
    SPARSE, params=PARAMS | NONE, active=SPARSE.active | NONE, streamed_bytes=READ | NONE,
    n_moe_layers=0, n_dense_ffn_layers=3, mtp_blocks=0, n_experts=0,
)  # fmt: skip


def method(**changes: Any) -> DraftMethod:
    """Two projections and the model's own head and experts, with some values changed."""
    values = {"projections": 2, "vocab": 0, "experts": True, "passes": True}
    return DraftMethod(name="hand", source="", **{**values, **changes})


def test_a_predictor_layer_with_experts_is_the_mean_layer_of_its_model() -> None:
    """Attention and norms of one in five layers, experts of one in four, two such blocks."""
    drafter = predictor(SPARSE, method())
    attention, norms, router, shared, routed = 500 / 5 + 2 * 10**2, 10 / 5, 16 / 4, 40 / 4, 800 / 4
    layer = attention * 2 + norms * 2 + router * 4 + shared * 0.5  # bytes of a parameter by class
    assert drafter.read == layer + 240
    assert drafter.routed_read == routed * 0.5
    assert drafter.resident == 2 * layer
    assert drafter.routed_resident == 2 * routed * 0.5
    assert drafter.layers_passed == attention + norms + router + shared
    assert drafter.passed == drafter.layers_passed + 60
    assert drafter.routed_passed == 200 / 4
    assert drafter.share == 1 / 3
    assert (drafter.hidden, drafter.layers, drafter.moe_layers) == (10, 1, 1)
    assert (drafter.experts, drafter.experts_active) == (8, 2)
    assert (drafter.dtype, drafter.caches) == ("fp8", SPARSE.caches)
    assert predictor(replace(SPARSE, mtp_blocks=0), method()).resident == layer


def test_a_predictor_of_a_model_without_attention_reads_its_projections() -> None:
    """In the format that attention would have: fp8, one byte for each of two 10 by 10."""
    none = {"attention": 0}
    model = replace(DENSE, params=DENSE.params | none, active=DENSE.active | none,
                    streamed_bytes=DENSE.streamed_bytes | none, n_attention_layers=0)  # fmt: skip
    drafter = predictor(model, method())
    assert drafter.read == 2 * 10**2 * 1 + 90 / 3 + 10 / 5 * 2 + 240
    assert drafter.layers_passed == 2 * 10**2 + 90 / 3 + 10 / 5
    assert drafter.share == 1


def test_a_dense_layer_on_a_model_with_experts_is_as_wide_as_a_token_passes() -> None:
    """The shared expert and a quarter of the routed ones, in one block and without a router."""
    drafter = predictor(SPARSE, method(experts=False))
    attention, norms, shared, picked = 500 / 5 + 2 * 10**2, 10 / 5, 40 / 4, 200 / 4
    layer = attention * 2 + norms * 2 + shared * 0.5 + picked * 0.5
    assert (drafter.read, drafter.resident) == (layer + 240, layer)
    assert drafter.passed == attention + norms + shared + picked + 60
    assert (drafter.routed_read, drafter.routed_resident, drafter.routed_passed) == (0, 0, 0)
    assert (drafter.moe_layers, drafter.experts, drafter.experts_active) == (0, 0, 0)


@pytest.mark.parametrize("experts", [True, False])
def test_a_predictor_layer_of_a_dense_model_is_dense(experts: bool) -> None:
    """One of its three feed-forward parts, whatever the method has where there are experts."""
    drafter = predictor(DENSE, method(experts=experts))
    attention, norms, part = 500 / 5 + 2 * 10**2, 10 / 5, 90 / 3
    layer = attention * 2 + norms * 2 + part
    assert (drafter.read, drafter.resident) == (layer + 240, layer)
    assert drafter.passed == attention + norms + part + 60
    assert (drafter.moe_layers, drafter.experts, drafter.routed_read) == (0, 0, 0)


def test_a_predictor_of_a_model_of_one_layer_is_that_layer() -> None:
    """Attention, experts and cache of the one there is; without a cache it shares none."""
    one = replace(SPARSE, n_layers=1, n_moe_layers=1, n_attention_layers=1, mtp_blocks=1)
    drafter = predictor(one, method(projections=0))
    assert drafter.layers_passed == 500 + 10 + 16 + 40
    assert (drafter.routed_passed, drafter.share) == (200, 1.0)
    recurrent = replace(DENSE, n_layers=1, n_dense_ffn_layers=0, n_attention_layers=0)
    drafter = predictor(recurrent, method(projections=0))
    assert (drafter.layers_passed, drafter.share) == (500 + 10 + 90, 1.0)


@pytest.mark.parametrize(
    ("own", "words", "share"), [(30, 120, 1 / 4), (0, 120, 1), (240, 120, 1), (30, 0, 1)]
)
def test_a_head_over_fewer_words_is_one_of_its_own(own: int, words: int, share: float) -> None:
    """A quarter of the words are a quarter of the head, kept beside the model's; else it shares."""
    drafter = predictor(replace(DENSE, vocab=words), method(vocab=own))
    plain = predictor(DENSE, method())
    assert drafter.read == plain.read - 240 + 240 * share
    assert drafter.passed == plain.passed - 60 + 60 * share
    assert drafter.resident == plain.resident + (240 * share if share < 1 else 0)


def test_a_model_that_drafts_is_read_and_passed_as_it_is() -> None:
    """All but its routed experts in every pass; the embedding is kept and not read."""
    drafter = draft_model(SPARSE)
    assert drafter.read == sum(READ.values()) - 400
    assert drafter.resident == drafter.read + 140
    assert drafter.routed_read == drafter.routed_resident == 400
    assert drafter.passed == 500 + 90 + 40 + 60 + 16 + 10
    assert drafter.layers_passed == drafter.passed - 60
    assert (drafter.routed_passed, drafter.share, drafter.hidden) == (200, 1, 10)
    assert (drafter.layers, drafter.moe_layers) == (5, 4)
    assert (drafter.experts, drafter.experts_active, drafter.dtype) == (8, 2, "fp4")


def test_numbers_of_drafts_are_one_or_tried() -> None:
    """None without speculation; up to eight where they are free, or as deep as lengths go."""
    assert depths(None) == (0,)
    assert depths(Speculation(drafts=3)) == (3,)
    assert depths(Speculation(drafts=12, accepted=(1.5, 2.0))) == (12,)
    assert depths(Speculation(drafts="auto")) == tuple(range(9))
    assert depths(Speculation(drafts="auto", accepted=(1.5, 2.0))) == tuple(range(9))
    deep = Speculation(drafts="auto", accepted=(1.1,) * 10)
    assert depths(deep) == tuple(range(11))


def test_a_step_brings_one_token_where_nothing_is_drafted() -> None:
    """At one position, and it takes no drafter."""
    for speculation, drafts in ((None, 0), (None, 3), (Speculation(drafts="auto"), 0)):
        nothing = speculation_depth(speculation, SPARSE, drafts)
        assert nothing == SpeculationDepth()
        assert (nothing.positions, nothing.emitted, nothing.low, nothing.high) == (1, 1, 1, 1)
        assert (nothing.drafter, nothing.source, nothing.measured) == (None, "", True)


def test_accepted_tokens_as_the_user_gives_them_have_no_range() -> None:
    """Each of three accepted at one half: 1 + 1/2 + 1/4 + 1/8; or the length itself."""
    chance = speculation_depth(Speculation(drafts=3, acceptance=0.5), SPARSE, 3)
    assert (chance.drafts, chance.positions) == (3, 4)
    assert chance.emitted == chance.low == chance.high == 1.875
    assert (chance.source, chance.measured) == ("", True)
    length = speculation_depth(Speculation(drafts=3, accepted=2.5), SPARSE, 3)
    assert length.emitted == length.low == length.high == 2.5
    assert (length.source, length.measured) == ("", True)
    for drafts, tokens in ((1, 1.6), (2, 1.9)):
        curve = speculation_depth(Speculation(drafts="auto", accepted=(1.6, 1.9)), SPARSE, drafts)
        assert curve.emitted == curve.low == curve.high == tokens
        assert (curve.source, curve.measured) == ("", True)


@pytest.mark.parametrize(("name", "measured"), [("deepseek-v4-pro", True), ("hand", False)])
def test_accepted_tokens_that_nobody_gives_are_those_of_curves(name: str, measured: bool) -> None:
    """Of the model where there are some, with a band that four in five are in."""
    drafted = speculation_depth(Speculation(drafts=4), replace(SPARSE, name=name), 4)
    curve = acceptance(name, "mtp")
    low, middle, high = curve.range(4, QUANTILE_90)
    assert (drafted.low, drafted.emitted, drafted.high) == (low[4], middle[4], high[4])
    assert 1 < drafted.low < drafted.emitted < drafted.high < 5
    assert (drafted.measured, drafted.source) == (measured, curve.source)


def test_a_model_drafts_with_its_own_layers_or_with_a_head() -> None:
    """Or with what is asked for; looking words up takes no drafter."""
    own = speculation_depth(Speculation(drafts=2, acceptance=0.5), SPARSE, 2)
    assert own.drafter == predictor(SPARSE, draft_method("mtp"))
    head = speculation_depth(Speculation(drafts=2, acceptance=0.5), DENSE, 2)
    assert head.drafter == predictor(DENSE, draft_method("eagle-3"))
    asked = speculation_depth(Speculation(drafts=2, acceptance=0.5, method="eagle"), SPARSE, 2)
    assert asked.drafter == predictor(SPARSE, draft_method("eagle"))
    assert speculation_depth(Speculation(drafts=2, method="n-gram"), SPARSE, 2).drafter is None
    with pytest.raises(FieldError, match="hand has no predictor layers in its checkpoint; choose"):
        speculation_depth(Speculation(drafts=2, method="mtp"), DENSE, 2)


def words_of(model: str, factor: float) -> ModelSizes:
    """A model of so many times the words of another."""
    return replace(DENSE, vocab=round(model_sizes(models.load(model)).vocab * factor))


def test_a_model_drafts_for_one_of_the_same_words() -> None:
    """Tables that are padded differ by less than a hundredth; a described model has none."""
    small = Speculation(drafts=2, acceptance=0.5, draft_model="llama-3.2-1b")
    expected = draft_model(model_sizes(models.load("llama-3.2-1b")))
    for target in (words_of("llama-3.2-1b", 1.007), words_of("llama-3.2-1b", 0.993),
                   replace(DENSE, vocab=0)):  # fmt: skip
        assert speculation_depth(small, target, 2).drafter == expected
    for factor in (1.013, 0.987, 2.0):
        with pytest.raises(FieldError, match=r"llama-3.2-1b has 128,256 words and hand"):
            speculation_depth(small, words_of("llama-3.2-1b", factor), 2)


def test_lengths_go_on_beyond_what_is_given_as_the_curve_through_them_does() -> None:
    """Three lengths of one curve make the fourth and the sixth of it."""
    curve = Acceptance(0.7, 0.9, 0.5, 0.1, measured=False, source="")
    by_depth = lengths(0.7, 0.9, 6)
    given = tuple(by_depth[1:4])
    assert [_continued(given, curve, depth) for depth in range(1, 7)] == pytest.approx(
        list(by_depth[1:])
    )
    # Longer ones start from the last that is given, though the curve does not meet it.
    off = (given[0], given[1], given[2] + 0.2)
    beyond = np.diff([_continued(off, curve, depth) for depth in range(3, 7)])
    assert off[2] == _continued(off, curve, 3)
    assert (beyond > 0).all()
    assert (np.diff(beyond) < 0).all()
