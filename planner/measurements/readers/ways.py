"""How the columns of a published run split a model: tables of several exports, one reading.

Runs of InferenceX state chips `tp`, expert ways `ep` and whether attention is copied. Two exports
turned these into columns. The older multiplied: `tp` = 8 and `ep` = 8 without copies became tensor
ways 64 and expert columns 8 x 8; with copies, attention ways 64. The newer writes ways: tensor 8,
experts 1 x 8, or attention 8. Some runs stand in the file in both forms with the same times to the
last digit, which shows both readings: 16 | 4 x 4 is 4 | 1 x 4, and 64 copies | 8 x 8 is
8 copies | 1 x 8.
"""

from __future__ import annotations

import math

from planner.measurements.measurement import ONE
from planner.measurements.published_names import Refused
from planner.measurements.readers.tables_adapters_part import Row, count

__all__ = ["chips_of", "ways_of"]


def ways_of(row: Row, experts: int, pool: str = "") -> dict[str, int]:
    """Ways of one worker by axis.

    Parameters
    ----------
    experts : routed experts of the model, 0 for a dense one (its expert columns say nothing).
    pool : prefix of the columns, such as `decode_`; empty for a single pool.

    Raises
    ------
    Refused
        If tensor ways are missing or the experts do not divide the chips.
    """
    tp, pp = count(row, f"{pool}tp_size"), count(row, f"{pool}pp_size", 1)
    dp = count(row, f"{pool}attention_dp_size", 1)
    tp_expert, ep = count(row, f"{pool}moe_tp_size", 1), count(row, f"{pool}moe_ep_size", 1)
    side = math.isqrt(tp * dp)
    if experts and side > 1 and side * side == tp * dp and tp_expert == ep == side:
        tp, dp, tp_expert = (1, side, 1) if dp > 1 else (side, 1, 1)
    elif dp > 1 and tp == dp and ep == tp * dp:
        # vLLM starts one copy of attention per chip; the export kept the chips as tensor ways too.
        tp, ep, tp_expert = 1, dp, 1
    stage = tp * dp
    if not experts:
        return {**ONE, "tp": tp, "pp": pp, "dp_attention": dp}
    if dp > 1 and tp_expert == stage > 8:
        # Beyond one machine of eight, copies of attention send tokens to experts: a matrix cut
        # 32-fold would need every token on every chip. SGLang's DeepEP runs are exported so.
        tp_expert, ep = 1, stage
    if stage % ep:
        raise Refused(f"{ep} expert groups on {stage} chips")
    return {**ONE, "tp": tp, "pp": pp, "dp_attention": dp, "ep": ep, "tp_expert": stage // ep}


def chips_of(layout: dict[str, int]) -> int:
    """Chips of one worker."""
    return layout["tp"] * layout["dp_attention"] * layout["pp"]
