"""A plan: what to run, what it costs, why, and how good it is at most.

`Plan` is the answer in the words of the interface; it holds the document that `--json` prints and
gives the parts names. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

__all__ = ["Plan"]

# What says a plan in words, by problem; imported when it is shown.
WORDS = {
    "serving": "planner.problems.serving.presentation",
    "budget": "planner.problems.budget.presentation",
    "lifecycle": "planner.problems.lifecycle.presentation",
}


@dataclass(frozen=True)
class Plan:
    """The answer to one scenario; frozen.

    `document` is the whole answer in base units (s, byte, USD, token), exactly what `--json`
    prints; `elasticities` maps given quantities to d ln objective / d ln quantity at the chosen
    layout with a real batch. `explain` works out what would let other kinds of plan win.
    """

    document: Mapping[str, Any]
    elasticities: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    explain: Callable[[], list[dict[str, Any]]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def problem(self) -> str:
        """Which question was asked."""
        return str(self.document["problem"])

    @property
    def status(self) -> str:
        """`optimal`, or `infeasible` when nothing keeps the promises."""
        return str(self.document["status"])

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The chosen plan; empty when there is none."""
        return MappingProxyType(self.document["plan"] or {})

    @property
    def cost(self) -> float | None:
        """USD per million tokens of a serving plan, input and output together; else USD in all."""
        if self.problem == "serving":
            return self.chosen.get("usd_per_mtok")
        total: float | None = self.chosen.get("cost", {}).get("total", {}).get("usd")
        return total

    @property
    def layout(self) -> Mapping[str, int]:
        """tp, pp, cp, dp_attention, ep, tp_expert and replicas."""
        return MappingProxyType(self.chosen.get("layout") or {})

    @property
    def batch(self) -> int | None:
        """Sequences in flight over all replicas."""
        return self.chosen.get("batch")

    @property
    def bound(self) -> Mapping[str, Any]:
        """The pure roofline of the same plan, which no implementation beats."""
        return MappingProxyType(self.document["bound"] or {})

    @property
    def certificate(self) -> Mapping[str, Any]:
        """How many layouts and points were considered, and the gap to the relaxation."""
        return MappingProxyType(self.document["certificate"])

    @property
    def binding(self) -> tuple[Mapping[str, Any], ...]:
        """Promises and limits that bind, with their elasticities."""
        return tuple(self.document["binding"])

    @property
    def infeasible(self) -> tuple[Mapping[str, Any], ...]:
        """Promises that fall short and by which factor; empty when the plan is optimal."""
        return tuple(self.document["infeasible"] or ())

    @cached_property
    def rivals(self) -> tuple[Mapping[str, Any], ...]:
        """The best plan of every other kind, and the nearest changes that would let it win.

        Worked out when first asked for, by solving both kinds again at other values.
        """
        return tuple(self.explain() if self.explain else self.document.get("rivals", ()))

    def explained(self) -> Plan:
        """The same with what would let the rivals win in its document."""
        return replace(self, document={**self.document, "rivals": list(self.rivals)})

    def why(self) -> str:
        """What binds, what each quantity is worth, and the closed form, as text."""
        told: str = self._words().why(self)
        return told

    def __str__(self) -> str:
        told: str = self._words().answer(self)
        return told

    def _words(self) -> ModuleType:
        """The module that says plans of this problem in words."""
        return import_module(WORDS[self.problem])

    def __repr__(self) -> str:
        if not self.chosen:
            short = ", ".join(f"{s['promise']} {s['short_by']:.3g}x" for s in self.infeasible)
            return f"<Plan {self.problem}: infeasible, short by {short}>"
        if self.problem != "serving":
            return self._life()
        sizes = " ".join(f"{k}={v}" for k, v in self.layout.items() if v != 1)
        return f"<Plan {self.problem}: {sizes} batch={self.batch}, ${self.cost:.4g}/Mtok>"

    def _life(self) -> str:
        """The short form of a budget, or of a whole life."""
        plan, spent = self.chosen, self.chosen["cost"]["total"]
        cost = f"{spent['flop']:.4g} FLOP" if self.cost is None else f"${self.cost:,.4g}"
        sizes = f"{plan['n_active']:.4g} parameters on {plan['tokens']['pretrain']:.4g} tokens"
        return f"<Plan {self.problem}: {sizes}, {cost}>"

    def _repr_html_(self) -> str:
        from planner.report.formats import answer

        return answer(self)
