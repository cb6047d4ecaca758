"""The physical column of C38 to C48: real chips, models and storage through the equations.

The physical column of C29 to C37: fitted scaling laws and real shapes through the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from formulas.claims.claim import Worked
from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import tier, tier_names
from planner.catalogue.scaling_laws import Law, law
from planner.claims.figure import PhysicalFigure, chip_case, counted, figure_of, model_case, record

LAWS = (
    "besiroglu-2024", "hoffmann-2022-approach-3", "hoffmann-2022-approach-3-rounded",
    "muennighoff-2023",
)  # fmt: skip
ONES = {"one_param": 1.0, "one_token": 1.0, "c_fwd": 2.0}
SIZE = 1e11  # the lecture's model
TOKENS = 2e14  # and its tokens
SHAPES = ("llama-3.1-70b", "deepseek-v3")
LENGTH = 8192.0  # a choice: tokens of a training sequence


def attention_share() -> tuple[PhysicalFigure, ...]:
    """C30: FLOP of training per parameter and token once attention is counted."""
    figures = []
    for name in SHAPES:
        case = model_case(name, "bf16") | {"c_fwd": 2.0, "x_causal": 0.5, "L_train": LENGTH}
        size = counted(name, "bf16").n_active["no_input_embedding"]
        case |= {"D_pt": 1.0 / size, "a_kv": prompt_attention(name, "bf16")}
        label = f"{name}, sequences of 8192, causal half"
        figures.append(
            figure_of(label, "training_arithmetic_attention", case, "model as published", "FLOP")
        )
    return tuple(figures)


def prompt_attention(name: str, fmt: str) -> float:
    """FLOP per query-key pair in passes over a whole sequence, where latents are expanded."""
    caches = counted(name, fmt).caches
    return float(sum(each.flop_per_pair_prefill for each in caches if each.limit is None))


def tokens_per_parameter() -> tuple[PhysicalFigure, ...]:
    """C35: compute-optimal tokens per parameter of the lecture's size, and what 200T are then."""
    figures = []
    for name, entry in laws():
        case = ONES | entry.values | {"N_active": SIZE, "D_pt": TOKENS}
        ratio = figure_of(f"{name}, tokens per parameter", "optimal_ratio", case, cited(entry))
        case["r_opt"] = Worked("", "optimal_ratio").value(case)
        figures += [
            ratio,
            figure_of(f"{name}, 200T over optimal", "chinchilla_multiple", case, cited(entry)),
        ]
    return tuple(figures)


def equal_pools() -> tuple[PhysicalFigure, ...]:
    """C36: the over-training that three equal pools ask for, by each law."""
    return tuple(
        figure_of(f"three pools, {name}", "equal_pools_overtraining",
                  found.values | {"n_pools": 3.0}, cited(found))
        for name, found in laws()
    )  # fmt: skip


def shift() -> tuple[PhysicalFigure, ...]:
    """C37: how training tokens follow served tokens where two pools are equal."""
    return tuple(
        figure_of(f"percent per percent, {name}", "serving_shift",
                  found.values | {"r_all": 2.0}, cited(found))
        for name, found in laws()[:2]
    )  # fmt: skip


def laws() -> list[tuple[str, Law]]:
    """The laws that have an exponent of the data, with their names."""
    return [(name, law(name)) for name in LAWS]


def cited(law: Law) -> str:
    """The source of a law in one line."""
    return f"{law.source} ({law.as_of})"


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
    "C30": attention_share,
    "C35": tokens_per_parameter,
    "C36": equal_pools,
    "C37": shift,
    "C38": bytes_from_cliff,
    "C39": cache_sizes,
    "C44": break_even,
    "C45": drain_times,
    "C46": sparse_reads,
    "C47": walls,
}
