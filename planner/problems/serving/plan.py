"""The plan of a serving question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from planner.protocol.plan import MappingPlan

__all__ = ["ServingPlan"]


@dataclass(frozen=True, eq=False, repr=False)
class ServingPlan(MappingPlan):
    """The answer to a serving question; `explain` works out what would let other kinds win."""

    kind = "serving"

    explain: Callable[[], list[dict[str, Any]]] | None = field(default=None)
    slopes_held: Callable[[], Mapping[str, tuple[float, float]]] | None = field(default=None)

    @property
    def cost(self) -> float | None:
        """USD per million tokens, input and output together."""
        return self.chosen.get("usd_per_mtok")

    @property
    def layout(self) -> Mapping[str, int]:
        """tp, pp, cp, dp_attention, ep, tp_expert and replicas."""
        return MappingProxyType(self.chosen.get("layout") or {})

    @property
    def batch(self) -> int | None:
        """Sequences in flight over all replicas."""
        return self.chosen.get("batch")

    @cached_property
    def rivals(self) -> tuple[Mapping[str, Any], ...]:
        """The best plan of every other kind, and the nearest changes that would let it win."""
        return tuple(self.explain() if self.explain else self.document.get("rivals", ()))

    @cached_property
    def layout_held(self) -> Mapping[str, tuple[float, float]]:
        """d ln price / d ln parameter, left and right, with the layout held.

        `elasticities` are those where everything follows: replicas, pools and chips. Empty where
        both are one question.
        """
        return self.slopes_held() if self.slopes_held else {}

    def explained(self) -> ServingPlan:
        """The same with what would let the rivals win, and with the layout held."""
        sides = {path: list(pair) for path, pair in self.layout_held.items()}
        raw = {**self.raw, "rivals": list(self.rivals), "layout_held": sides or None}
        return replace(self, raw=raw)

    def summary(self) -> str:
        """Layout, batch and price."""
        sizes = " ".join(f"{k}={v}" for k, v in self.layout.items() if v != 1)
        return f"{sizes} batch={self.batch}, ${self.cost:.4g}/Mtok"
