"""A number of the physical column, and the cases that catalogue entries make of the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from formulas.claims.claim import Worked, shown
from planner.architecture.counts import Sizes, sizes
from planner.architecture.quantization import dtype
from planner.catalogue.chips import chip
from planner.catalogue.models import load


@dataclass(frozen=True)
class PhysicalFigure:
    """One number computed from the catalogues by an equation of `formulas`.

    `value` is in `unit`, or None where no such number exists (`note` says why); `source` names
    the catalogue entries that went in.
    """

    what: str
    value: float | None
    unit: str
    equation: str
    source: str
    note: str = ""

    @property
    def text(self) -> str:
        """`H100, fp8: 590.7`."""
        number = self.note if self.value is None else shown(self.value, self.unit)
        return f"{self.what}: {number}"


def figure_of(
    what: str, equation: str, case: Mapping[str, float], source: str, unit: str = ""
) -> PhysicalFigure:
    """The number that an equation gives under a case."""
    value = Worked(what, equation, unit=unit).value(case)
    return PhysicalFigure(what, value, unit, equation, source)


def chip_case(name: str, fmt: str, count: int = 1) -> dict[str, float]:
    """Rates and memory of `count` chips at the dense peak of a format, 2 FLOP per parameter."""
    entry = chip(name)
    return {
        "F": count * entry.peak(fmt),
        "W": count * entry.memory_bandwidth,
        "M": count * entry.memory,
        "M_each": entry.memory,
        "W_each": entry.memory_bandwidth,
        "b_w": float(dtype(fmt).bytes),
        "c_fwd": 2.0,
        "m_pos": 1.0,
        "g": 1.0,
    }


def model_case(name: str, fmt: str = "fp8") -> dict[str, float]:
    """Counts of a model with weights and caches in one format; active without input embedding."""
    sizes = counted(name, fmt)
    routed = float(sizes.params.get("routed", 0))
    return {
        "N_total": float(sizes.n_total),
        "N_active": float(sizes.n_active["no_input_embedding"]),
        "N_routed": routed,
        "N_dense": sizes.n_total - routed,
        "k_experts": float(sizes.n_experts_active),
        "n_experts": float(sizes.n_experts),
        "b_kv": sizes.kv_bytes_per_token,
        "a_kv": sizes.attention_flop_per_cached_token,
        "h_act": float(sizes.hidden),
        "h_exp": float(sizes.hidden),
        "n_moe": float(sizes.n_moe_layers),
        "one_position": 1.0,
        "b_w": float(dtype(fmt).bytes),
    }


@cache
def counted(name: str, fmt: str) -> Sizes:
    """The sizes of a catalogue model, weights and caches in one format."""
    return sizes(load(name), weights=fmt, kv=fmt)
