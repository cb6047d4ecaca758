"""Error band of an estimated time, by its coefficients and the rows that measured them.

What is not known of a coefficient at a place has two parts: the covariance that the fitted rows
leave, and the prior variance of every effect that no row there measured. A time rests on
coefficients by its shares, so its standard deviation follows from both. Quantiles of errors over
that standard deviation, of rows that no fit saw, turn it into a band.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.catalogue.chips import Chip

NOISE = 0.06  # standard deviation of ln(time) of repeated runs, which no coefficient explains
IN_SAMPLE, NEW_MODEL, NEW_CHIP, DISTANCE_POOLED = "known", "new_model", "new_chip", "pooled"
DISTANCE_ASSUMED, NEW_ARCHITECTURE, NEW_ENGINE = "assumed", "new_architecture", "new_engine"
NEW_PAIR, NEW_VERSION = "new_engine_on_chip", "new_version"
# Kinds of distance from the fitted rows, the farthest first, with the attributes that are new.
DISTANCES: Mapping[str, tuple[str, ...]] = {
    NEW_ARCHITECTURE: ("architecture",),
    NEW_CHIP: ("chip",),
    NEW_MODEL: ("shape",),
    NEW_ENGINE: ("engine",),
    NEW_PAIR: ("engine", "chip"),
    NEW_VERSION: ("engine", "version"),
}
LATENT, ATTENTION_GROUPED, ATTENTION_INDEXED = "latent", "grouped", "indexed"
HALF = np.dtype("<f2")
# Low and high quantile [standard deviations], and the scatter of known places added to sigma.
Quantiles = Mapping[str, Mapping[str, tuple[float, float, float]]]
# Masks of points by kind of distance: an array over points, or a single value for all.
ScopeMask = Mapping[str, "np.ndarray | np.bool_"]
EMPTY_PLACE: ScopeMask = MappingProxyType({})


class Effective(Protocol):
    """Effect that changes some coefficients at the places of a scope, once or per month."""

    @property
    def of(self) -> tuple[str, ...]:
        """Coefficients."""

    @property
    def scope(self) -> Mapping[str, str]:
        """Attributes of the places that it holds at."""

    @property
    def monthly(self) -> bool:
        """True if it counts once for each month before the profile's date."""


@dataclass(frozen=True)
class RunContext:
    """Attributes that select a coefficient's place; empty if unknown or irrelevant.

    `math` is the number format that the feed-forward part multiplies in, `cache` that of keys and
    values, `attention` latent, indexed or grouped, `months` how long before the profile's date the
    run was, `pooled` whether prompts are read on other chips, `assumed` whether numbers had to be
    worked out that the table does not give, `shape` what tunings of one model share, `experts` that
    it has some, `runs` the engines of which one is to run it where the question says so.
    """

    chip: str = ""
    architecture: str = ""
    engine: str = ""
    version: str = ""
    math: str = ""
    cache: str = ""
    attention: str = ""
    model: str = ""
    months: float = 0.0
    pooled: bool = False
    assumed: bool = False
    shape: str = ""
    maker: str = ""
    experts: bool = False
    runs: tuple[str, ...] = ()

    @classmethod
    def of(cls, sizes: ModelSizes, chip: Chip, **more: object) -> RunContext:
        """The place of a model on a chip; `more` are the other attributes where known."""
        part = "routed" if sizes.n_experts else "dense_ffn"
        place: Callable[..., RunContext] = cls
        return place(
            chip=chip.name,
            architecture=chip.architecture,
            maker=chip.maker,
            math=sizes.weight_dtype[part],
            cache=sizes.kv_dtype,
            attention=_attention(sizes),
            model=sizes.name,
            shape=architecture_key(sizes),
            experts=sizes.n_experts > 0,
            **more,
        )


def _attention(sizes: ModelSizes) -> str:
    if any(cache.kind == "index" for cache in sizes.caches):
        return ATTENTION_INDEXED
    return LATENT if any(cache.latent for cache in sizes.caches) else ATTENTION_GROUPED


def architecture_key(sizes: ModelSizes) -> str:
    """Text of the shape shared by a model's tunings and formats: layers, width, experts."""
    experts = f", {sizes.n_experts} experts of {sizes.expert_width}" if sizes.n_experts else ""
    return f"{sizes.n_layers} layers of {sizes.hidden}{experts}"


@dataclass(frozen=True)
class EffectFamily:
    """Adjustments of some coefficients, one for each value of some attributes of a place.

    `width` is the standard deviation of their logarithms beforehand, by month if `monthly`.
    """

    keys: tuple[str, ...]
    of: tuple[str, ...]
    width: float
    monthly: bool = False

    def holds(self, effect: Effective) -> bool:
        """True if an effect belongs to this family."""
        alike = tuple(effect.scope) == self.keys and tuple(effect.of) == self.of
        return alike and effect.monthly == self.monthly


@dataclass(frozen=True)
class CoefficientSpread:
    """Covariance of the logarithms of all unknowns: coefficients, then effects.

    It is `factor` @ `factor`.T, a lower triangle of shape (n_unknowns, n_unknowns). `values` are
    those that the rows held, by kind of distance; `quantiles` those of measured over predicted by
    kind of distance and quantity.
    """

    families: tuple[EffectFamily, ...]
    factor: np.ndarray
    values: Mapping[str, tuple[str, ...]]
    quantiles: Quantiles

    @classmethod
    def from_table(cls, raw: Mapping[str, Any]) -> CoefficientSpread:
        """The spread that the table of a profile's file holds."""
        families = [
            EffectFamily(tuple(x["by"]), tuple(x["of"]), x["width"], x.get("monthly", False))
            for x in raw["families"]
        ]
        return cls(
            families=tuple(families),
            factor=decode_triangle(raw["factor"]),
            values={kind: tuple(names) for kind, names in raw["values"].items()},
            quantiles={
                kind: {quantity: (low, high, more) for quantity, (low, high, more) in each.items()}
                for kind, each in raw["quantiles"].items()
            },
        )

    def covariance(
        self, coefficients: Sequence[str], effects: Sequence[Effective], place: RunContext
    ) -> np.ndarray:
        """Covariance of the logarithms of coefficients at a place, shape (n, n) of them.

        Args:
            coefficients, effects: the unknowns, in the order of the factor.
        """
        n = len(coefficients)
        # Of hundreds of effects a few reach a place.
        here = [i for i, effect in enumerate(effects) if effect_applies(effect, place)]
        reach = np.eye(n + len(here), n)
        for row, i in enumerate(here, n):
            reach[row] = effect_multiplicity(effects[i], place) * coefficient_indicator(
                effects[i].of, coefficients
            )
        factor = reach.T @ self.factor[[*range(n), *(n + i for i in here)]]
        spread: np.ndarray = factor @ factor.T
        for family in self.unmeasured(effects, place):
            on = coefficient_indicator(family.of, coefficients)
            by = family.width * (place.months if family.monthly else 1.0)
            spread += by**2 * np.outer(on, on)
        return spread

    def unmeasured(self, effects: Sequence[Effective], place: RunContext) -> list[EffectFamily]:
        """Families without a measured effect that applies at `place`."""
        at = [effect for effect in effects if effect_applies(effect, place)]
        return [f for f in self.families if not any(f.holds(effect) for effect in at)]

    def regime(self, place: RunContext) -> str:
        """The kind of distance of a place from the rows."""
        return self.setup(place) or next(self.new_at(place), IN_SAMPLE)

    def setup(self, place: RunContext) -> str:
        """Kind of a place with assumed numbers or separate pools; empty string otherwise."""
        both = {DISTANCE_ASSUMED: place.assumed, DISTANCE_POOLED: place.pooled}
        return next((kind for kind, is_so in both.items() if is_so and kind in self.quantiles), "")

    def new_at(self, place: RunContext) -> Iterator[str]:
        """Kinds of distance that make a place new, the farthest first."""
        for kind in DISTANCES:
            # An engine that nobody names is none that is new.
            stated = all(getattr(place, key) for key in DISTANCES[kind]) and kind in self.values
            if stated and attribute(place, kind) not in self.values[kind]:
                yield kind

    def ends(
        self, regime: str, quantity: str, sigma: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends of the bands of times of these standard deviations, as ratios to them.

        Those of known places where the regime has none; None where they have none either.
        """
        for kind in (regime, IN_SAMPLE):
            if quantity in self.quantiles.get(kind, {}):
                low, high, scatter = self.quantiles[kind][quantity]
                off = np.hypot(sigma, scatter)
                return np.exp(low * off), np.exp(high * off)
        return None

    def widest(
        self, regime: str, beyond: ScopeMask, quantity: str, sigma: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The ends of a regime, no nearer than where it is known or kinds of distance hold too.

        Rows of two pools, or whose setup is worked out, are known as such.
        """
        base = regime if regime in (DISTANCE_POOLED, DISTANCE_ASSUMED) else IN_SAMPLE
        ends = self.ends(base, quantity, sigma)
        for kind, holds in {regime: np.True_, **beyond}.items() if ends else ():
            if quantity not in self.quantiles.get(kind, {}) or not holds.any():
                continue
            pairs = zip(ends or (), self.ends(kind, quantity, sigma) or (), strict=True)
            (low, lower), (high, higher) = pairs
            ends = (
                np.where(holds, np.minimum(low, lower), low),
                np.where(holds, np.maximum(high, higher), high),
            )
        return ends


def variances(covariance: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Variances of n logarithms that rest on coefficients by shares of shape (n_coefficients, n).

    Added up in one order: the last digits of a product of matrices depend on how many there are.
    """
    variance = np.zeros(shares.shape[1])
    live = np.flatnonzero(shares.any(axis=1)).tolist()
    for place, i in enumerate(live):
        beside = covariance[i, i] / 2 * shares[i]
        for j in live[place + 1 :]:
            beside += covariance[i, j] * shares[j]
        variance += 2 * shares[i] * beside
    return variance


def decode_triangle(text: str) -> np.ndarray:
    """The lower triangle in a text; raises ValueError if it is none."""
    rows = np.frombuffer(b64decode(text, validate=True), HALF).astype(float)
    n = int((2 * len(rows)) ** 0.5)
    factor = np.zeros((n, n))
    factor[np.tril_indices(n)] = rows
    return factor


def attribute(place: RunContext, kind: str) -> str:
    """Text of the attributes that a kind of distance compares at a place."""
    return " ".join(str(getattr(place, key)) for key in DISTANCES[kind])


def effect_applies(effect: Effective, place: RunContext) -> bool:
    """True if an effect's scope matches a place."""
    return all(getattr(place, key) == value for key, value in effect.scope.items())


def effect_multiplicity(effect: Effective, place: RunContext) -> float:
    """Multiplicity of an effect at a place: 1, or the months if monthly; 0 out of its scope."""
    return (place.months if effect.monthly else 1.0) * effect_applies(effect, place)


def coefficient_indicator(of: Sequence[str], coefficients: Sequence[str]) -> np.ndarray:
    """Indicator of the `coefficients` that are in `of`, 1 or 0, shape (n_coefficients,)."""
    return np.array([float(name in of) for name in coefficients])
