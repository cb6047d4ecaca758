"""The physical column, claim by claim: rows of `figures.toml`, and what no row can say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

from formulas.claims.claim import Worked, shown
from planner.architecture.counts import Sizes, sizes
from planner.architecture.quantization import dtype
from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import tier, tier_names
from planner.catalogue.models import load
from planner.catalogue.scaling_laws import law
from planner.catalogue.systems import system
from planner.text.tables import table

V3 = "deepseek-v3"
PUBLISHED = "model as published, weights and caches in fp8"
EDGES = (("h20", "fp8"), ("h200", "fp8"), ("h100", "fp8"), ("b200", "fp8"), ("rubin", "fp8"))
CACHES = (
    "llama-3.1-70b", V3, "deepseek-v4-pro", "deepseek-v4-flash", "nemotron-3-nano-30b-a3b",
)  # fmt: skip
LENGTH = 8192.0  # a choice: tokens of a training sequence


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


class ClaimRow(TypedDict, total=False):
    """A row of `figures.toml`, which says what each key is; `rows` only beside several."""

    what: str
    equation: str
    unit: str
    source: str
    chip: Sequence[str | int]
    model: str
    law: str
    values: Mapping[str, float | str]
    first: Mapping[str, str]
    rows: Sequence[ClaimRow]


def physical(claim: str) -> tuple[PhysicalFigure, ...]:
    """The physical numbers of a claim; empty where the catalogues have nothing to add."""
    shared, more = _tables().get(claim, ClaimRow(rows=())), FURTHER.get(claim)
    return (*(_figure(shared, row) for row in shared["rows"]), *(more() if more else ()))


def physical_ids() -> tuple[str, ...]:
    """The claims that have physical numbers."""
    return tuple(sorted({*_tables(), *FURTHER}, key=lambda claim: int(claim[1:])))


def _figure(shared: ClaimRow, single: ClaimRow) -> PhysicalFigure:
    row: ClaimRow = {**shared, **single}
    case: dict[str, float] = {}
    if "chip" in row:
        name, fmt, *count = row["chip"]
        case |= chip_case(str(name), str(fmt), *map(int, count))
    if "model" in row:
        case |= model_case(row["model"])
    if "law" in row:
        case |= law(row["law"]).values
    numbers = {**shared.get("values", {}), **single.get("values", {})}
    case |= {symbol: _number(value) for symbol, value in numbers.items()}
    for symbol, equation in row.get("first", {}).items():
        case[symbol] = Worked(symbol, equation).value(case)
    source = row.get("source") or f"{law(row['law']).source} ({law(row['law']).as_of})"
    return figure_of(row["what"], row["equation"], case, source, row.get("unit", ""))


def _number(value: float | str) -> float:
    """A number as it stands, or the one that `ENTRY.FIGURE` of a record or a system names."""
    if not isinstance(value, str):
        return value
    entry, _, figure = value.rpartition(".")
    if entry in _records():
        return float(_records()[entry][figure]["value"])
    return float(getattr(system(entry), figure))


@cache
def _tables() -> Mapping[str, ClaimRow]:
    return table("planner.claims", "figures.toml")


@cache
def _records() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    return table("planner.claims", "records.toml")


def edge_of_arithmetic(model: str, name: str, fmt: str) -> PhysicalFigure:
    """Where no batch is arithmetic-bound any more, attention counted; None where there is none."""
    case = chip_case(name, fmt) | model_case(model, fmt)
    what = f"{model} on {name}, {fmt}, attention counted"
    if case["a_kv"] / case["F"] >= case["b_kv"] / case["W"]:
        note = "no such context: attention does more arithmetic than its cache takes to read"
        return PhysicalFigure(what, None, "tokens", "never_context", PUBLISHED, note)
    return figure_of(what, "never_context", case, PUBLISHED, "tokens")


def _edges() -> tuple[PhysicalFigure, ...]:
    """C13: contexts beyond which no batch is arithmetic-bound, attention counted."""
    return tuple(edge_of_arithmetic(V3, name, fmt) for name, fmt in EDGES)


def _routed_returns() -> tuple[PhysicalFigure, ...]:
    """C18: what S-BASE's own counts give, and the exponent that its fit then has."""
    active, total, dense = (
        _number(f"clark-models.{figure}") for figure in ("active", "total", "dense")
    )
    source, fit = "clark-models", _tables()["C18"]["rows"][0]
    what = "dense model of about the same loss over active"
    gained = figure_of(what, "parameter_gain", {"N_eff": dense, "N_active": active}, source)
    counts = {"N_total": total, "N_active": active}
    resident = figure_of("total over active", "sparsity", counts, source)
    best = (_figure(_tables()["C18"], fit).value or 0.0) / 0.37  # both in billions
    case = {"x_gain": best, "sigma": resident.value or 0.0}
    return gained, resident, figure_of("exponent, S-BASE fit", "sparsity_return", case, fit["law"])


def _domains() -> tuple[PhysicalFigure, ...]:
    """C19: chips of one fast domain, as packages."""
    figures = [
        PhysicalFigure(name, _number(f"{name}.chips_per_domain"), "packages", "", "data sheets")
        for name in ("hgx-h100", "gb200-nvl72", "vera-rubin-nvl72")
    ]
    packages = _number("rubin-ultra.packages")
    return (*figures, PhysicalFigure("rubin ultra", packages, "packages", "", "rubin-ultra"))


def _attention_share() -> tuple[PhysicalFigure, ...]:
    """C30: FLOP of training per parameter and token once attention is counted."""
    figures = []
    for name in ("llama-3.1-70b", V3):
        case = model_case(name, "bf16") | {"c_fwd": 2.0, "x_causal": 0.5, "L_train": LENGTH}
        case |= {"D_pt": 1.0 / case["N_active"], "a_kv": _prompt_attention(name, "bf16")}
        what, equation = f"{name}, sequences of 8192, causal half", "training_arithmetic_attention"
        figures.append(figure_of(what, equation, case, "model as published", "FLOP"))
    return tuple(figures)


def _prompt_attention(name: str, fmt: str) -> float:
    """FLOP per query-key pair in passes over a whole sequence, where latents are expanded."""
    caches = counted(name, fmt).caches
    return float(sum(each.flop_per_pair_prefill for each in caches if each.limit is None))


def _cache_sizes() -> tuple[PhysicalFigure, ...]:
    """C39: cache bytes per token that models have."""
    equation, note = "grouped_cache_bytes", "counted layer by layer"
    return tuple(
        PhysicalFigure(name, model_case(name)["b_kv"] / 1e3, "kB", equation, PUBLISHED, note)
        for name in CACHES
    )


def _break_even() -> tuple[PhysicalFigure, ...]:
    """C44: hold time in HBM after which DeepSeek-V3 had better compute a cache again."""
    case = model_case(V3) | chip_case("h200", "fp8") | {"e_pf": 0.5}
    case["a_kv"] = _prompt_attention(V3, "fp8")
    return tuple(
        figure_of(f"{V3} on h200, prefix of {length:.0f}, prefill at half of the peak",
                  "break_even_hold", case | {"L_in": length}, PUBLISHED, "s")
        for length in (1e3, 3e4)
    )  # fmt: skip


def _drain_times() -> tuple[PhysicalFigure, ...]:
    """C45: drain times of chips, host memory, flash and disks."""
    chips = [(name, chip(name).memory, chip(name).memory_bandwidth) for name in ("h100", "gb300")]
    tiers = [(name, tier(name).capacity, tier(name).read_rate) for name in tier_names()]
    return tuple(
        figure_of(name, "tier_drain_time", {"M_tier": size, "W_tier": rate}, "catalogue", "s")
        for name, size, rate in chips + tiers
    )


# What follows the rows of a claim, or stands alone.
FURTHER: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    "C13": _edges,
    "C18": _routed_returns,
    "C19": _domains,
    "C30": _attention_share,
    "C39": _cache_sizes,
    "C44": _break_even,
    "C45": _drain_times,
}
