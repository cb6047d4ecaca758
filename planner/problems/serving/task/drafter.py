"""Drafters of speculative decoding: a predictor layer, or a draft model; their counts.

A predictor layer is the mean layer of the model. Published heads differ in what they read beside
it, which stands in the catalogue by method (`planner.catalogue.acceptance`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.architecture.counts import ModelSizes
from planner.architecture.counts import model_sizes as counted
from planner.architecture.layers import GROUPS
from planner.architecture.quantization import dtype
from planner.catalogue import models
from planner.catalogue.acceptance import acceptance, draft_method, fit_acceptance, lengths
from planner.scenario.keys.speculation_keys import MODEL as DRAFT_MODEL
from planner.text.errors import FieldError
from planner.text.tolerances import QUANTILE_90

if TYPE_CHECKING:
    from planner.architecture.layers import CacheKind
    from planner.catalogue.acceptance import Acceptance, DraftMethod
    from planner.scenario.keys.speculation_keys import Speculation

PREDICTORS, HEAD = "mtp", "eagle-3"  # methods of models with predictor layers, and of others


@dataclass(frozen=True)
class Drafter:
    """Weights read, stored and multiplied, and caches, of one drafter pass.

    `read` and `routed_read` are weights of every pass and of all its experts, `resident` and
    `routed_resident` what stays in memory [byte]; `passed` and `routed_passed` the weights that a
    token passes [param], `layers_passed` those of `passed` before the head. `share` of the `caches`
    are the drafter's.
    """

    read: float
    routed_read: float
    resident: float
    routed_resident: float
    passed: float
    layers_passed: float
    routed_passed: float
    caches: tuple[CacheKind, ...]
    share: float
    hidden: int
    layers: int
    moe_layers: int
    experts: int
    experts_active: int
    dtype: str


def predictor(sizes: ModelSizes, method: DraftMethod) -> Drafter:
    """Predictor layer on top of a model, with a projection of its input, and a head.

    With experts where the method is trained together with the model, else a dense layer as wide as
    what a token passes. A head over fewer words than the model's is one of its own.
    """
    sparse = bool(sizes.n_moe_layers) and method.experts
    of = {group: _layers_of(sizes, group) for group in GROUPS}
    sparse_only = ("router", "shared", "routed")
    parts = ("attention", "other", *(sparse_only[:2] if sparse else ()))
    # Groups without parameters in the model take the bytes of their weight dtype.
    bytes_each = {
        group: sizes.streamed_bytes[group] / count
        if count
        else float(dtype(sizes.weight_dtype[group]).bytes)
        for group, count in sizes.params.items()
    }
    fixed = {group: sizes.params[group] / of[group] for group in parts}
    if not sparse:
        # In a model with experts, the dense layer is as wide as the experts that a token activates.
        wide = ("shared", "routed") if sizes.n_moe_layers else ("dense_ffn",)
        fixed |= {group: sizes.active[group] / of[group] for group in wide}
    fixed["attention"] += method.projections * sizes.hidden**2
    words = min(1.0, method.vocab / sizes.vocab) if method.vocab and sizes.vocab else 1.0
    head = sizes.active["head"] * words
    layer = sum(count * bytes_each[group] for group, count in fixed.items())
    routed = sizes.params["routed"] / of["routed"] if sparse else 0.0
    blocks = max(1, sizes.mtp_blocks) if sparse else 1
    head_bytes = sizes.streamed_bytes["head"] * words
    layers_with_cache = max(sizes.n_attention_layers, 1)
    return Drafter(
        read=layer + head_bytes,
        routed_read=routed * bytes_each["routed"],
        resident=blocks * layer + (head_bytes if words < 1 else 0.0),
        routed_resident=blocks * routed * bytes_each["routed"],
        passed=sum(fixed.values()) + head,
        layers_passed=sum(fixed.values()),
        routed_passed=sizes.active["routed"] / of["routed"] if sparse else 0.0,
        caches=sizes.caches,
        share=1.0 / layers_with_cache,
        hidden=sizes.hidden,
        layers=1,
        moe_layers=int(sparse),
        experts=sizes.n_experts if sparse else 0,
        experts_active=sizes.n_experts_active if sparse else 0,
        dtype=sizes.weight_dtype["attention"],
    )


def draft_model(sizes: ModelSizes) -> Drafter:
    """A model of its own, as it is published."""
    fixed = [group for group in GROUPS if group != "routed"]
    return Drafter(
        read=sum(sizes.streamed_bytes[group] for group in fixed),
        routed_read=sizes.streamed_bytes["routed"],
        resident=sum(sizes.weight_bytes[group] for group in fixed),
        routed_resident=sizes.weight_bytes["routed"],
        passed=float(sum(sizes.active[group] for group in fixed)),
        layers_passed=float(sum(sizes.active[g] for g in fixed if g != "head")),
        routed_passed=float(sizes.active["routed"]),
        caches=sizes.caches,
        share=1.0,
        hidden=sizes.hidden,
        layers=sizes.n_layers,
        moe_layers=sizes.n_moe_layers,
        experts=sizes.n_experts,
        experts_active=sizes.n_experts_active,
        dtype=sizes.weight_dtype["dense_ffn"],
    )


def _layers_of(sizes: ModelSizes, group: str) -> int:
    if group in ("routed", "shared", "router"):
        return max(sizes.n_moe_layers, 1)
    return max(sizes.n_dense_ffn_layers if group == "dense_ffn" else sizes.n_layers, 1)


MAX_AUTO_DEPTH = 8  # maximum draft tokens tried by default; published curves end there
PADDING = 0.01  # relative difference of the vocabulary sizes of one model family


@dataclass(frozen=True)
class SpeculationDepth:
    """A number of drafts per step, what draws them, and how many tokens a step brings [token].

    `low` and `high` hold four in five of such curves, where lengths are not the user's own.
    `source` is where the lengths come from; `measured` says whether any of this model and method
    were measured.
    """

    drafts: int = 0
    emitted: float = 1.0
    low: float = 1.0
    high: float = 1.0
    drafter: Drafter | None = None
    source: str = ""
    measured: bool = True

    @property
    def positions(self) -> float:
        """Positions of a sequence that a step computes [token]."""
        return 1.0 + self.drafts


def depths(speculation: Speculation | None) -> tuple[int, ...]:
    """Numbers of drafts that a question tries: none and up to a few where it leaves them free."""
    if speculation is None:
        return (0,)
    if not isinstance(speculation.drafts, str):
        return (speculation.drafts,)
    deepest = len(speculation.accepted) if isinstance(speculation.accepted, tuple) else 0
    return tuple(range(max(MAX_AUTO_DEPTH, deepest) + 1))


def speculation_depth(
    speculation: Speculation | None, sizes: ModelSizes, drafts: int
) -> SpeculationDepth:
    """Tokens per step, and drafter, of `drafts` drafts per step for a model.

    Raises FieldError if the model has no predictor layers and they are asked for.
    """
    if speculation is None or not drafts:
        return SpeculationDepth()
    name = speculation.method or (
        DRAFT_MODEL if speculation.draft_model else (PREDICTORS if sizes.mtp_blocks else HEAD)
    )
    method = draft_method(name)
    if name == PREDICTORS and not sizes.mtp_blocks:
        words = f"{sizes.name} has no predictor layers in its checkpoint"
        remedy = "choose method: eagle-3, or a draft_model"
        raise FieldError(("speculation.method", f"{words}; {remedy}"))
    drafter = None
    if speculation.draft_model is not None:
        drafter = draft_model(_sharing(speculation.draft_model, sizes))
    elif method.passes:
        drafter = predictor(sizes, method)
    curve = acceptance(sizes.name, name)
    low, mean, high = (float(lengths[drafts]) for lengths in curve.range(drafts, QUANTILE_90))
    if speculation.acceptance is not None:
        low = mean = high = float(lengths(speculation.acceptance, 1.0, drafts)[drafts])
    if isinstance(speculation.accepted, float):
        low = mean = high = speculation.accepted
    elif speculation.accepted is not None:
        low = mean = high = _continued(speculation.accepted, curve, drafts)
    users = speculation.acceptance is not None or speculation.accepted is not None
    return SpeculationDepth(
        drafts, mean, low, high, drafter, "" if users else curve.source, users or curve.measured
    )


def _sharing(name: str, sizes: ModelSizes) -> ModelSizes:
    """The counts of a model that drafts; tables of words are padded to different lengths.

    Raises FieldError if it has other words than the model that checks it.
    """
    drawn, words = counted(models.load(name)), sizes.vocab
    if words and abs(drawn.vocab / words - 1) > PADDING:
        raise FieldError(
            (
                "speculation.draft_model",
                f"{name} has {drawn.vocab:,} words and {sizes.name} {words:,}: its drafts "
                "cannot be checked one by one; choose a smaller model of the same family",
            )
        )
    return drawn


def _continued(accepted: tuple[float, ...], curve: Acceptance, drafts: int) -> float:
    """Mean tokens per step as given, extended to more drafts by a fitted curve [token]."""
    if drafts <= len(accepted):
        return accepted[drafts - 1]
    after = fit_acceptance(tuple(enumerate(accepted, 1)), curve).lengths(drafts)
    return accepted[-1] + float(after[drafts] - after[len(accepted)])
