"""The equations of a plan from the price down to bytes, set in MathML, with their letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sympy as sp

from formulas.algebra.equation import Equation
from formulas.export.typesetting.layout import layout, relation
from formulas.export.typesetting.markup import mathml
from formulas.nomenclature.symbols import SYMBOLS, meaning, unit_of_symbol
from planner.problems.serving.closed_form import closed_form
from planner.problems.serving.step import equations
from planner.problems.serving.step.kernels import PARTS
from planner.protocol.live_page import LiveEquation, LiveSymbol

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingPlan

MEMORY = ("M_need", "M_weights", "M_kv", "M_reserve")
BEHIND = ("T_tpot", "T_share", "T_ttft", "L_ctx")


def chain(plan: ServingPlan) -> tuple[tuple[LiveEquation, ...], tuple[LiveSymbol, ...]]:
    """The equations behind the price, the times and the memory, and every letter in them."""
    mode = plan.mode or "aggregated"
    bound = plan.answer.provenance.estimate == "bound"
    first = closed_form(mode, bound=bound, load="none", tpot=False, energy=False, counted=False)
    phase = "decode" if mode == "disaggregated" else mode
    defined = {e.symbol.name: e for e in equations.pool(phase, bound, "none")}
    parts = [name for names in PARTS.values() for name in names if name != "T_spec"]
    wanted = dict.fromkeys((*BEHIND, *parts, *MEMORY))
    every = list(dict.fromkeys((*first, *(defined[name] for name in wanted if name in defined))))
    return tuple(map(_set, every)), tuple(_letters(every))


def _set(equation: Equation) -> LiveEquation:
    return LiveEquation(
        equation.name,
        mathml(relation(equation.symbol, "=", equation.rhs), display=True),
        equation.symbol.name,
        str(unit_of_symbol(equation.symbol)),
        str(equation.source),
    )


def _letters(every: Iterable[Equation]) -> list[LiveSymbol]:
    names: dict[str, None] = {}
    for equation in every:
        names |= dict.fromkeys([equation.symbol.name])
        names |= dict.fromkeys(sorted(x.name for x in equation.rhs.free_symbols))
    return [
        LiveSymbol(
            mathml(layout(SYMBOLS[x])), x, meaning(SYMBOLS[x]), str(unit_of_symbol(SYMBOLS[x]))
        )
        for x in names
        if isinstance(SYMBOLS[x], sp.Symbol)
    ]
