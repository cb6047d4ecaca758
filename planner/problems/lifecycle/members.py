"""Members of a family as serving counts them, and what one becomes as its size moves a little.

A family is the rule of `family`, or one model of the catalogue grown and shrunk in proportion. The
whole numbers of a member (layers to divide among stages, heads, experts) stay as they are while
its size moves; weights, caches and widths follow the rule as real numbers. So the price of serving
is a smooth function of the size around every member, and exact at the member itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from planner.architecture.counts import ModelSizes, model_sizes
from planner.catalogue import models
from planner.laws.model_family import ModelFamily
from planner.text.errors import ModelError

UNSCALED_PARTS = ("embedding", "head")
CUBE = 1 / 3  # width and depth of a model grown in proportion
LARGEST_FACTOR = 1e4  # max factor between the parameters of a member and of the published model


@dataclass(frozen=True)
class Formats:
    """Dtypes of weights, cache and activations; None as the checkpoint has them."""

    weights: str | None = None
    kv: str | None = None
    activations: str | None = None


@dataclass(frozen=True)
class Growth:
    """Factors of depth, width and heads between two sizes of one family."""

    layers: float
    hidden: float
    heads: float


@dataclass(frozen=True)
class FamilyRule:
    """Members made by the family rule."""

    family: ModelFamily

    @property
    def name(self) -> str:
        """The family in a word."""
        return f"rule, {self.family.attention}"

    def member(self, n_active: float, sparsity: float, formats: Formats) -> Member:
        """The member of this size; raises ModelError outside the range of the rule."""
        made = self.family.member(n_active, sparsity)
        counted = model_sizes(made, formats.weights, formats.kv, formats.activations)
        return Member(self, counted, sparsity)

    def growth(self, member: Member, n_active: float) -> Growth:
        """Growth factors from a member to the family rule at `n_active` parameters."""
        tied, sparsity = member.sizes.tied, member.sparsity
        here = self.family.measures(member.n_active, sparsity, tied=tied)
        there = self.family.measures(n_active, sparsity, tied=tied)
        return Growth(
            there.layers / here.layers, there.hidden / here.hidden, there.heads / here.heads
        )


@dataclass(frozen=True)
class ScaledModel:
    """A model of the catalogue at other sizes: depth and width as the cube root, the rest kept."""

    model: str

    @property
    def name(self) -> str:
        """The family in a word."""
        return f"like {self.model}"

    @cached_property
    def published(self) -> ModelSizes:
        """The model as it is published."""
        return model_sizes(models.load(self.model))

    @property
    def sparsity(self) -> float:
        """N_total / N_active of the model and of everything grown from it."""
        return self.published.n_total / self.published.n_active["all"]

    def member(self, n_active: float, sparsity: float, formats: Formats) -> Member:
        """The model at this size, with whole layers; raises ModelError at another sparsity."""
        if abs(sparsity / self.sparsity - 1) > 0.01:
            raise ModelError(
                f"models like {self.model} have {self.sparsity:.3g} parameters per active one, "
                f"got {sparsity:g}; leave sparsity out, or leave like out"
            )
        counted = model_sizes(
            models.load(self.model), formats.weights, formats.kv, formats.activations
        )
        first = Member(self, counted, self.sparsity)
        if n_active == first.n_active:
            return first  # the published model itself, and all that was measured of it
        factor = n_active / first.n_active
        if not 1 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
            raise ModelError(f"{self.model} cannot be scaled to {n_active:.3g} parameters")
        grown = first.at(n_active)
        return Member(self, _whole_layers(grown, factor**CUBE), self.sparsity)

    def growth(self, member: Member, n_active: float) -> Growth:
        """Growth factors from a member to its model scaled to `n_active` parameters."""
        factor = (n_active / member.n_active) ** CUBE
        return Growth(factor, factor, factor)


@dataclass(frozen=True)
class Member:
    """One model of a family, counted, and the sizes around it."""

    family: FamilyRule | ScaledModel
    sizes: ModelSizes
    sparsity: float

    @property
    def n_active(self) -> float:
        """Parameters one token passes through, as models are named [param]."""
        return float(self.sizes.n_active["all"])

    @property
    def n_total(self) -> float:
        """All parameters [param]."""
        return float(self.sizes.n_total)

    def at(self, n_active: float) -> ModelSizes:
        """The sizes at `n_active` parameters: real numbers follow the rule, whole ones stay."""
        if n_active == self.n_active:
            return self.sizes
        return _grown(self.sizes, n_active / self.n_active, self.family.growth(self, n_active))


def _grown(counted: ModelSizes, factor: float, growth: Growth) -> ModelSizes:
    """Weights by the factor of the size, caches by depth, activations by width."""
    inside = _inside(counted.params, counted.n_total, factor, growth.hidden)
    passed = _inside(counted.active, counted.n_active["all"], factor, growth.hidden)
    moved: dict[str, Any] = {
        "params": _scaled(counted.params, inside, growth.hidden),
        "active": _scaled(counted.active, passed, growth.hidden),
        "weight_bytes": _scaled(counted.weight_bytes, inside, growth.hidden),
        "streamed_bytes": _scaled(counted.streamed_bytes, inside, growth.hidden),
        "layer_bytes": tuple((x * inside, y * inside) for x, y in counted.layer_bytes),
        "copied": (counted.copied[0] * inside, counted.copied[1] * inside),
        "n_total": counted.n_total * factor,
        "n_active": {name: value * factor for name, value in counted.n_active.items()},
        "hidden": counted.hidden * growth.hidden,
        "expert_width": counted.expert_width * growth.hidden,
        "state_bytes_per_sequence": counted.state_bytes_per_sequence * factor**CUBE * growth.layers,
        "state_flop_per_token": counted.state_flop_per_token * factor**CUBE * growth.layers,
    }
    arithmetic = growth.layers * growth.heads
    moved["caches"] = tuple(
        replace(
            one,
            elements_per_token=one.elements_per_token * growth.layers,
            bytes_per_token=one.bytes_per_token * growth.layers,
            flop_per_cached_token=one.flop_per_cached_token * arithmetic,
            flop_per_pair_prefill=one.flop_per_pair_prefill * arithmetic,
            asked_elements=one.asked_elements * arithmetic,
        )
        for one in counted.caches
    )
    return replace(counted, **moved)


def _inside(groups: Mapping[str, float], whole: float, factor: float, width: float) -> float:
    """Factor of the weights inside the layers: the whole grows by `factor`, the ends by `width`."""
    layers = sum(value for name, value in groups.items() if name not in UNSCALED_PARTS)
    ends = whole - layers
    return (factor * whole - width * ends) / layers


def _scaled(groups: Mapping[str, float], inside: float, width: float) -> dict[str, float]:
    return {
        name: value * (width if name in UNSCALED_PARTS else inside)
        for name, value in groups.items()
    }


def _whole_layers(grown: ModelSizes, depth: float) -> ModelSizes:
    """Scale the layers of each kind by `depth`, rounded; at least one if the model has any."""

    def layers(count: int) -> int:
        return max(round(count * depth), 1) if count else 0

    sparse, plain = layers(grown.n_moe_layers), layers(grown.n_dense_ffn_layers)
    both = grown.n_moe_layers + grown.n_dense_ffn_layers == grown.n_layers
    changed: dict[str, Any] = {
        "n_layers": sparse + plain if both else layers(grown.n_layers),
        "n_moe_layers": sparse,
        "n_dense_ffn_layers": plain,
        "n_attention_layers": layers(grown.n_attention_layers),
        "n_parallel_layers": layers(grown.n_parallel_layers),
        "name": f"{grown.name} at {grown.n_active['all'] / 1e9:.4g}B",
        "caches": tuple(replace(one, layers=layers(one.layers)) for one in grown.caches),
    }
    return replace(grown, **changed)
