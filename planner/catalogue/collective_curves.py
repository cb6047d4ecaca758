"""Measured times of collectives as dated curves, with fallbacks for chips without curves.

A curve is one operation by one algorithm in a group of one size on one chip. Chips without curves
of their own take those of their family, and chips of no known family those of `any`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from planner.text.errors import CatalogueError, did_you_mean
from planner.text.tables import table

ANY_CHIP = "any"


@dataclass(frozen=True, eq=False)
class Curve:
    """Times of one operation by one algorithm in groups of `n` chips.

    Attributes:
        chip: A chip of the catalogue, a family of chips, or `any`.
        rate: Of one chip into the network, one way, where it was measured. [byte/s]
        traffic: Bytes on the wire per byte. [1]
        evidence: `measured`, or `borrowed` from other curves.
        alpha, efficiency, gamma: T = alpha + q V/(rate efficiency) + gamma sqrt(V), fitted to the
            curve. [s, 1, s/byte**0.5]
        intervals: Ranges that hold 80 % of refits, by coefficient.
        sizes, seconds: The curve itself: bytes as nccl-tests counts them, and times that never
            fall. [byte, s]
    """

    chip: str
    operation: str
    algorithm: str
    n: int
    rate: float
    traffic: float
    evidence: str
    alpha: float
    efficiency: float
    gamma: float
    intervals: Mapping[str, tuple[float, float]]
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class CrossingCosts:
    """Costs added by crossing from one scale-up domain to another.

    Attributes:
        step: Latency of one step between domains, library included. [s]
        efficiency: Share of the bound that long messages reach. [1]
        delay: The square-root term is sqrt(q V delay / rate). [s]
    """

    network: str
    operation: str
    algorithm: str
    step: float
    efficiency: float
    delay: float


@dataclass(frozen=True, eq=False)
class Collectives:
    """All curves, with the errors and the bands of predictions made from them.

    `bands` are quantiles of measured over predicted that hold `coverage`, by kind of evidence;
    `reduce_from` is the size of a group from which the library lets the switch reduce, by family;
    `families` says to which family a chip belongs.
    """

    as_of: str
    source: str
    rows: int
    coverage: float
    families: Mapping[str, str]
    reduce_from: Mapping[str, int]
    bands: Mapping[str, tuple[float, float]]
    errors: Mapping[str, Mapping[str, float]]
    between: tuple[CrossingCosts, ...]
    curves: tuple[Curve, ...]

    def of(self, chip: str, operation: str, algorithm: str) -> tuple[Curve, ...]:
        """Curves of a chip, else of its family, else of any chip, by size of group.

        Where only single chips have such curves, those of the one with most of them, one of the
        same family if there is one; empty where none has.
        """
        family = self.families.get(chip, ANY_CHIP)
        for owner in (chip, family, ANY_CHIP):
            curves = self._index.get((owner, operation, algorithm))
            if curves:
                return curves
        others = [c for (_, *same), c in self._index.items() if same == [operation, algorithm]]
        near = [c for c in others if self.families.get(c[0].chip) == family]
        return max(near or others, key=len, default=())

    @cached_property
    def _index(self) -> Mapping[tuple[str, str, str], tuple[Curve, ...]]:
        made: dict[tuple[str, str, str], list[Curve]] = {}
        for curve in self.curves:
            made.setdefault((curve.chip, curve.operation, curve.algorithm), []).append(curve)
        return {key: tuple(sorted(each, key=lambda c: c.n)) for key, each in made.items()}

    def crossing(self, network: str, operation: str, algorithm: str) -> CrossingCosts:
        """Costs added by crossing between domains; the default is that of any operation.

        Raises CatalogueError if no such network is known.
        """
        every = {(b.network, b.operation, b.algorithm): b for b in self.between}
        for of in ((operation, algorithm), (operation, ANY_CHIP), (ANY_CHIP, ANY_CHIP)):
            if (network, *of) in every:
                return every[network, *of]
        networks = tuple(dict.fromkeys(b.network for b in self.between))
        raise CatalogueError(
            f"no network {network!r}{did_you_mean(network, networks)} known: {', '.join(networks)}"
        )


@cache
def collectives() -> Collectives:
    """The curves that ship."""
    raw = table("planner.catalogue", "collectives.toml")
    return Collectives(
        **{key: raw[key] for key in ("as_of", "source", "rows", "coverage")},
        families=MappingProxyType(raw["families"]),
        reduce_from=MappingProxyType(raw["reduce_from"]),
        errors=MappingProxyType(raw["errors"]),
        bands=MappingProxyType({k: (low, high) for k, (low, high) in raw["bands"].items()}),
        between=tuple(CrossingCosts(**each) for each in raw["between"]),
        curves=tuple(_curve(each) for each in raw["curve"]),
    )


def _curve(raw: Mapping[str, Any]) -> Curve:
    fields = dict(raw)
    intervals = {name: (low, high) for name, (low, high) in fields.pop("intervals").items()}
    seconds = tuple(us / 1e6 for us in fields.pop("us"))
    sizes = tuple(map(float, fields.pop("bytes")))
    return Curve(**fields, intervals=MappingProxyType(intervals), sizes=sizes, seconds=seconds)
