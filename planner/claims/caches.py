"""The physical column of C38 to C48: real chips, models and storage through the equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.catalogue.chips import chip
from planner.catalogue.prices import tier, tier_names
from planner.claims.figure import PhysicalFigure, chip_case, figure_of, model_case, record
from planner.claims.training import prompt_attention

V3 = "deepseek-v3"
PUBLISHED = "model as published, weights and caches in fp8"
CACHES = (
    "llama-3.1-70b", V3, "deepseek-v4-pro", "deepseek-v4-flash", "nemotron-3-nano-30b-a3b",
)  # fmt: skip
RATIOS = (("h100", "fp8"), ("h100", "bf16"), ("b200", "fp4"), ("gb300", "fp4"), ("rubin", "fp4"))
WALLS = (("holds", "longest_context"), ("reads in 20 ms", "readable_context"))
SHEET = "data sheet, dense peak"
CLIFF = {"N_active": 1e11, "L_ctx": 2e5}  # the lecture's model and cliff


def bytes_from_cliff() -> tuple[PhysicalFigure, ...]:
    """C38: what the lecture's cliff means on real chips."""
    return tuple(
        figure_of(f"{name}, {fmt}", "cache_bytes_from_cliff", chip_case(name, fmt) | CLIFF,
                  SHEET, "B")
        for name, fmt in RATIOS
    )  # fmt: skip


def cache_sizes() -> tuple[PhysicalFigure, ...]:
    """C39: cache bytes per token that models have."""
    return tuple(
        PhysicalFigure(name, model_case(name)["b_kv"] / 1e3, "kB", "grouped_cache_bytes",
                       PUBLISHED, "counted layer by layer")
        for name in CACHES
    )  # fmt: skip


def break_even() -> tuple[PhysicalFigure, ...]:
    """C44: hold time in HBM after which DeepSeek-V3 had better compute a cache again."""
    case = model_case(V3) | chip_case("h200", "fp8") | {"e_pf": 0.5}
    case["a_kv"] = prompt_attention(V3, "fp8")
    return tuple(
        figure_of(f"{V3} on h200, prefix of {length:.0f}, prefill at half of the peak",
                  "break_even_hold", case | {"L_in": length}, PUBLISHED, "s")
        for length in (1e3, 3e4)
    )  # fmt: skip


def drain_times() -> tuple[PhysicalFigure, ...]:
    """C45: drain times of chips, host memory, flash and disks."""
    chips = [(name, chip(name).memory, chip(name).memory_bandwidth) for name in ("h100", "gb300")]
    tiers = [(name, tier(name).capacity, tier(name).read_rate) for name in tier_names()]
    return tuple(
        figure_of(name, "tier_drain_time", {"M_tier": size, "W_tier": rate}, "catalogue", "s")
        for name, size, rate in chips + tiers
    )


def sparse_reads() -> tuple[PhysicalFigure, ...]:
    """C46: share of the cache that an index of every token still reads."""
    index, entry, chosen = record("deepseek-sparse-attention", "index", "entry", "chosen")
    case = {"b_index": index, "b_kv": entry, "k_top": chosen}
    source = "DeepSeek-V3.2-Exp, bytes per layer"
    at = [
        figure_of(f"at {length:.0f} tokens", "top_share", case | {"L_ctx": length}, source)
        for length in (32_768.0, 131_072.0)
    ]
    return (*at, figure_of("in the limit", "top_slope", case, source))


def walls() -> tuple[PhysicalFigure, ...]:
    """C47: how long the contexts of 2400 sequences can be on 72 GB200."""
    rack = chip_case("gb200", "fp8", 72) | {"B": 2400.0, "T_kv_max": 0.02}
    cases = {V3: model_case(V3), "1T parameters, 2 kB per token": {"N_total": 1e12, "b_kv": 2000.0}}
    figures = []
    for name, case in cases.items():
        for what, equation in (
            ("holds", "longest_context"),
            ("reads in 20 ms", "readable_context"),
        ):
            label = f"72 gb200, {name}: {what}"
            figures.append(figure_of(label, equation, rack | case, PUBLISHED, "tokens"))
    return tuple(figures)


FIGURES: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    "C38": bytes_from_cliff,
    "C39": cache_sizes,
    "C44": break_even,
    "C45": drain_times,
    "C46": sparse_reads,
    "C47": walls,
}
