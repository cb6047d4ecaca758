"""Physical column, claim by claim: rows of `figures.toml`, and figures that need code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

import numpy as np

from formulas.claims import Claim, all_claims
from formulas.claims.claim import (
    CLAIM_KINDS,
    RULE,
    ClaimComparison,
    ComputedNumber,
    Stated,
    Verdict,
    compare_with_claim,
    figure_text,
    verdict_counts,
)
from formulas.export.formula_document import AcceptanceTable, ClaimEntry
from planner.architecture.counts import ModelSizes, model_sizes
from planner.architecture.quantization import dtype
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.listed_prices import tier, tier_names
from planner.catalogue.models import load
from planner.catalogue.scaling_laws import law
from planner.catalogue.systems import system
from planner.text.tables import table

V3 = "deepseek-v3"
PUBLISHED_NOTE = "model as published, weights and caches in fp8"
EDGES = (("h20", "fp8"), ("h200", "fp8"), ("h100", "fp8"), ("b200", "fp8"), ("rubin", "fp8"))
CACHES = (
    "llama-3.1-70b", V3, "deepseek-v4-pro", "deepseek-v4-flash", "nemotron-3-nano-30b-a3b",
)  # fmt: skip
LECTURE: Mapping[str, Stated] = {"hbm": "1/50", "dram": [1, 10], "flash": 60, "disk": 3600}  # s
LENGTH = 8192.0  # a choice: tokens of a training sequence


@dataclass(frozen=True)
class PhysicalFigure:
    """One number computed from the catalogues by an equation of `formulas`.

    `value` is in `unit`, or None where no such number exists (`note` says why); `source` names
    the catalogue entries that went in, `compared` holds it against what the lecture states.
    """

    what: str
    value: float | None
    unit: str
    equation: str
    source: str
    note: str = ""
    compared: ClaimComparison | None = None

    @property
    def text(self) -> str:
        """`H100, fp8: 590.7`."""
        number = self.note if self.value is None else figure_text(self.value, self.unit)
        return f"{self.what}: {number}"


def physical_value(
    what: str,
    equation: str,
    case: Mapping[str, float],
    source: str,
    unit: str = "",
    says: Stated | None = None,
) -> PhysicalFigure:
    """Value of an equation under a case, compared with the lecture's statement if given."""
    worked = ComputedNumber(what, equation, says, unit)
    value, beside = worked.value(case), worked.compared(case)
    return PhysicalFigure(what, value, unit, equation, source, compared=beside)


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
    sizes = quantized_sizes(name, fmt)
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
def quantized_sizes(name: str, fmt: str) -> ModelSizes:
    """The sizes of a catalogue model, weights and caches in one format."""
    return model_sizes(load(name), weights=fmt, kv=fmt)


class ClaimRow(TypedDict, total=False):
    """Row of `figures.toml`, which documents the keys; `rows` only if it holds several."""

    what: str
    equation: str
    unit: str
    source: str
    chip: Sequence[str | int]
    model: str
    law: str
    values: Mapping[str, float | str]
    first: Mapping[str, str]
    says: Stated
    rows: Sequence[ClaimRow]


def physical(claim: str) -> tuple[PhysicalFigure, ...]:
    """The physical numbers of a claim; empty where the catalogues have nothing to add."""
    shared, more = _tables().get(claim, ClaimRow(rows=())), COMPUTED_FIGURES.get(claim)
    return (*(_figure(shared, row) for row in shared["rows"]), *(more() if more else ()))


def physical_ids() -> tuple[str, ...]:
    """The claims that have physical numbers."""
    return tuple(sorted({*_tables(), *COMPUTED_FIGURES}, key=lambda claim: int(claim[1:])))


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
        case[symbol] = ComputedNumber(symbol, equation).value(case)
    source = row.get("source") or f"{law(row['law']).source} ({law(row['law']).as_of})"
    unit, says = row.get("unit", ""), row.get("says")
    return physical_value(row["what"], row["equation"], case, source, unit, says)


def _number(value: float | str) -> float:
    if not isinstance(value, str):
        return value
    entry, _, figure = value.rpartition(".")
    if entry in _records():
        return float(_records()[entry][figure]["value"])
    return float(getattr((chip if entry in chip_names() else system)(entry), figure))


@cache
def _tables() -> Mapping[str, ClaimRow]:
    return table("planner.claims", "figures.toml")


@cache
def _records() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    return table("planner.claims", "records.toml")


def edge_of_arithmetic(model: str, name: str, fmt: str) -> PhysicalFigure:
    """Minimum context without arithmetic-bound batches, attention counted; value None if absent."""
    case = chip_case(name, fmt) | model_case(model, fmt)
    what = f"{model} on {name}, {fmt}, attention counted"
    if case["a_kv"] / case["F"] >= case["b_kv"] / case["W"]:
        note = "no such context: attention does more arithmetic than its cache takes to read"
        return PhysicalFigure(what, None, "tokens", "never_context", PUBLISHED_NOTE, note)
    return physical_value(what, "never_context", case, PUBLISHED_NOTE, "tokens")


def _routed_returns() -> tuple[PhysicalFigure, ...]:
    """C18: what S-BASE's own counts give, and the exponent that its fit then has."""
    active, total, dense = (
        _number(f"clark-models.{figure}") for figure in ("active", "total", "dense")
    )
    source, fit = "clark-models", _tables()["C18"]["rows"][0]
    what, grown = "dense model of about the same loss over active", {"N_eff": dense}
    counts = {"N_total": total, "N_active": active}
    gained = physical_value(what, "parameter_gain", counts | grown, source, says=4)
    resident = physical_value("total over active", "sparsity", counts, source, says=64)
    best = (_figure(_tables()["C18"], fit).value or 0.0) / 0.37  # both in billions
    case = {"x_gain": best, "sigma": resident.value or 0.0}
    exponent = physical_value(
        "exponent, S-BASE fit", "sparsity_return", case, fit["law"], says="log(4)/log(64)"
    )
    return gained, resident, exponent


def _domains() -> tuple[PhysicalFigure, ...]:
    stated: tuple[tuple[str, str, Stated], ...] = (
        ("hgx-h100", "hgx-h100.chips_per_domain", 8),
        ("gb200-nvl72", "gb200-nvl72.chips_per_domain", 72),
        ("vera-rubin-nvl72", "vera-rubin-nvl72.chips_per_domain", [500, ""]),
        ("rubin ultra", "rubin-ultra.packages", [500, ""]),
    )
    return tuple(_counted(name, _number(figure), "packages", says) for name, figure, says in stated)


def _counted(
    what: str, value: float, unit: str, says: Stated | None, equation: str = "", note: str = ""
) -> PhysicalFigure:
    beside = compare_with_claim(what, value, says, {}, unit)
    return PhysicalFigure(what, value, unit, equation, "data sheets", note, beside)


def _attention_share() -> tuple[PhysicalFigure, ...]:
    figures = []
    for name in ("llama-3.1-70b", V3):
        case = model_case(name, "bf16") | {"c_fwd": 2.0, "x_causal": 0.5, "L_train": LENGTH}
        case |= {"D_pt": 1.0 / case["N_active"], "a_kv": _prompt_attention(name, "bf16")}
        what, equation = f"{name}, sequences of 8192, causal half", "training_arithmetic_attention"
        figures.append(
            physical_value(what, equation, case, "model as published", "FLOP", "3*c_fwd")
        )
    return tuple(figures)


def _prompt_attention(name: str, fmt: str) -> float:
    caches = quantized_sizes(name, fmt).caches
    return float(sum(each.flop_per_pair_prefill for each in caches if each.limit is None))


def _cache_sizes() -> tuple[PhysicalFigure, ...]:
    equation, note = "grouped_cache_bytes", "counted layer by layer"
    figures = []
    for name in CACHES:  # the first has the heads that the lecture speaks of
        size, says = model_case(name)["b_kv"] / 1e3, 2 if name == CACHES[0] else None
        beside = compare_with_claim(name, size, says, {}, "kB")
        figures.append(PhysicalFigure(name, size, "kB", equation, PUBLISHED_NOTE, note, beside))
    return tuple(figures)


def _break_even() -> tuple[PhysicalFigure, ...]:
    case = model_case(V3) | chip_case("h200", "fp8") | {"e_pf": 0.5}
    case["a_kv"] = _prompt_attention(V3, "fp8")
    return tuple(
        physical_value(f"{V3} on h200, prefix of {length:.0f}, prefill at half of the peak",
                  "break_even_hold", case | {"L_in": length}, PUBLISHED_NOTE, "s")
        for length in (1e3, 3e4)
    )  # fmt: skip


def _drain_times() -> tuple[PhysicalFigure, ...]:
    """C45: drain times of chips, host memory, flash and disks."""
    named = {name: chip(name) for name in ("h100", "gb300")}
    chips = [
        (name, each.memory, each.memory_bandwidth, LECTURE["hbm"]) for name, each in named.items()
    ]
    tiers = [
        (name, tier(name).capacity, tier(name).read_rate, LECTURE.get(tier(name).kind))
        for name in tier_names()
    ]
    return tuple(
        physical_value(
            name, "tier_drain_time", {"M_tier": size, "W_tier": rate}, "catalogue", "s", says
        )
        for name, size, rate, says in chips + tiers
    )


def _depths() -> tuple[PhysicalFigure, ...]:
    """C56: rounds counted on dependency graphs of 64 outputs."""
    half, stages = 32, 6
    everything = np.ones((half, half), dtype=bool)
    same, nothing = np.eye(half, dtype=bool), np.zeros((half, half), dtype=bool)
    feistel = np.block([[nothing, same], [same, everything]])  # (y, x + f(y)), f mixing all of y
    line = np.arange(2 * half)
    butterfly = [(line[:, None] ^ line) & ~(1 << stage) == 0 for stage in range(stages)]
    counted = (
        ("feistel cipher of 64 bits, f mixing its half", [feistel] * stages, "feistel_round"),
        ("butterfly of 64, two inputs each", butterfly, "mixing_depth"),
    )
    return tuple(
        PhysicalFigure(what, rounds_until_mixed(reads), "rounds", equation, "what reads what")
        for what, reads, equation in counted
    )


def rounds_until_mixed(reads: Sequence[np.ndarray]) -> float | None:
    """Rounds after which every output depends on every input; None where these do not do [-].

    Args:
        reads: For each round, which outputs of the round before an output reads: square, boolean.
    """
    depends = np.eye(len(reads[0]), dtype=bool)
    for number, matrix in enumerate(reads, 1):
        depends = matrix @ depends
        if depends.all():
            return float(number)
    return None


# Figures computed by code, appended to the rows of a claim if it has rows.
COMPUTED_FIGURES: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    # Context lengths above which no batch is compute-bound, attention included.
    "C13": lambda: tuple(edge_of_arithmetic(V3, name, fmt) for name, fmt in EDGES),
    "C18": _routed_returns,
    "C19": _domains,
    "C30": _attention_share,
    "C39": _cache_sizes,
    "C44": _break_even,
    "C45": _drain_times,
    "C56": _depths,
}


@dataclass(frozen=True)
class AcceptanceRow:
    """Claim, its figures from the catalogues, and the verdict from all its numbers."""

    claim: Claim
    physical: tuple[PhysicalFigure, ...]
    verdict: Verdict

    @property
    def why(self) -> str:
        """Under which conditions, and why not where it is not so, with counts filled in."""
        return self.claim.why.format(**self.verdict.counts) if "{" in self.claim.why else (
            self.claim.why
        )  # fmt: skip

    def entry(self) -> ClaimEntry:
        """As documents show it: labels and words."""
        claim = self.claim
        sides = (
            ("the lecture", claim.lecture_says),
            ("ours", claim.ours),
            ("physical", "; ".join(each.text for each in self.physical)),
            ("kind", "" if claim.kind == "derived" else CLAIM_KINDS[claim.kind]),
            ("verdict", self.verdict.text),
            ("why", self.why),
        )
        shown = tuple((label, words) for label, words in sides if words)
        far = self.verdict.farthest
        factor = f"{far.factor:.3g}" if far else ""
        return ClaimEntry(
            claim.id,
            claim.statement,
            self.verdict.word,
            factor,
            shown,
            claim.equations,
            claim.source,
        )


@cache
def acceptance_row(claim: Claim) -> AcceptanceRow:
    """The row of one claim; every number is computed here."""
    numbers = physical(claim.id)
    beside = tuple(each.compared for each in numbers if each.compared is not None)
    return AcceptanceRow(claim, numbers, Verdict(claim.compared(), beside))


def acceptance(claims: Iterable[Claim] | None = None, *, whole: bool = True) -> AcceptanceTable:
    """The table of these claims, or of all, with the rule and the tally of its verdicts.

    Args:
        whole: Whether a document shows the table, not only the claims beside each derivation.
    """
    rows = [acceptance_row(claim) for claim in (all_claims() if claims is None else claims)]
    entries = tuple(row.entry() for row in rows)
    return AcceptanceTable(RULE, verdict_counts(row.verdict for row in rows), entries, whole)
