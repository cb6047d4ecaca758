"""The two sets of assumptions that derivations are shown under: the lecture's, and a real machine.

The lecture's figures are those that its claims are worked with. The physical ones come from the
catalogues, for one model on one domain of chips.
"""

from __future__ import annotations

from collections.abc import Mapping

from formulas.claims import all_claims
from formulas.claims.claim import LECTURE
from planner.catalogue.prices import default_price
from planner.claims.figure import chip_case, counted, model_case

__all__ = ["ABOUT", "CHIP", "CHIPS", "FORMAT", "MODEL", "cases", "lecture", "physical"]

MODEL, CHIP, CHIPS, FORMAT = "deepseek-v3", "h200", 8, "fp8"
# What is asked of it: a choice, not a measurement.
WORKLOAD: Mapping[str, float] = {"B": 256, "L_ctx": 4096, "m_pos": 1, "g": 1}


ABOUT = (
    "Two sets of assumptions stand side by side. The lecture counts a multiply-add as one FLOP; "
    "it takes a chip of 300 of them per byte of bandwidth, one byte per weight, and 100 of 800 "
    "billion parameters active. What stands under lecture is what its own figures give. Under "
    f"physical stands {MODEL} on {CHIPS} chips {CHIP} in {FORMAT}, decoding "
    f"{WORKLOAD['B']:g} sequences of {WORKLOAD['L_ctx']:g} tokens: dense data-sheet peaks at two "
    "FLOP per multiply-add, the model's own shape, a listed rent.",
)


def cases() -> dict[str, dict[str, float]]:
    """`{"lecture": ..., "physical": ...}`, values of symbols in their own units."""
    return {"lecture": lecture(), "physical": physical()}


def lecture() -> dict[str, float]:
    """The lecture's machine and model, its cache and its fast mode, as its claims state them."""
    stated = {claim.id: claim.lecture for claim in all_claims()}
    whole = {**LECTURE, **stated["C13"], **stated["C6"]}
    return {name: float(value) for name, value in whole.items()}


def physical() -> dict[str, float]:
    """DeepSeek-V3 on eight H200 in fp8: data sheets, the model's own shape, a listed rent."""
    return {
        **chip_case(CHIP, FORMAT, CHIPS),
        **model_case(MODEL, FORMAT),
        **WORKLOAD,
        "n_chips": float(CHIPS),
        "n_domain": float(CHIPS),
        "n_layers": float(counted(MODEL, FORMAT).n_attention_layers),
        "p_chip": default_price(CHIP).value,
    }
