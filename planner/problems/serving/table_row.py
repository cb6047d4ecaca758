"""A serving plan as a row of a table: the quantities that people compare, and their units."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.protocol.document import document_of
from planner.text.wording import laid_out

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.point import ServingPoint

LAYOUT = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas")
BANDS = ("usd_per_mtok", "tpot", "ttft")
NUMBERS = {
    "usd_per_mtok": "USD per million tokens",
    "usd_per_mtok_input": "USD per million input tokens",
    "usd_per_mtok_output": "USD per million output tokens",
    "usd_per_hour": "USD/hour",
    "ttft": "s",
    "tpot": "s",
    "e2e": "s",
    "tokens_per_s": "token/s",
    "tokens_per_s_per_chip": "token/(s*chip)",
    "tokens_per_s_per_user": "token/s",
    "requests_per_s": "seq/s",
    "chips": "chip",
    "batch": "seq",
}
WORDS = ("mode", "chip", "weights", "kv", "bottleneck")
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        **NUMBERS,
        **dict.fromkeys(("layout", *WORDS, *LAYOUT), ""),
        **{f"{name}_{end}": NUMBERS[name] for name in BANDS for end in ("low", "high")},
        **{f"{name}_bound": NUMBERS[name] for name in BANDS},
        "gap": "",
    }
)


def row_of(best: Candidate, plan: ServingPoint) -> dict[str, object]:
    """The columns of a plan; `gap`, which takes a proof, is left empty."""
    layout = vars(plan.layout) if plan.layout else {}
    band, bound = best.band(plan), best.floor()
    row = {name: getattr(plan, name) for name in (*NUMBERS, *WORDS)}
    row |= {"layout": laid_out(document_of(plan)), "gap": None}
    row |= {name: layout.get(name) for name in LAYOUT}
    for name in BANDS:
        low, high = getattr(band, name, None) or (None, None)
        row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_bound": getattr(bound, name)}
    return {name: row[name] for name in COLUMNS}
