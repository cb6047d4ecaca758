"""How the published runs of whole engines were set up, where the table itself does not say.

Most rows were made by the scripts of InferenceX (github.com/SemiAnalysisAI/InferenceX, folder
benchmarks, history from 2025-10 to 2026-04): lengths are drawn evenly from 0.8 to 1.0 of the
nominal ones, caches are kept in fp8 where the script says so, SGLang looks for new requests only
every few decode steps (--scheduler-recv-interval), TensorRT-LLM holds them back to read several
together (batch_wait_timeout_iters) or to balance its ranks (attention_dp_config). Rows of other
lengths have fixed ones and the engines' defaults.

How the columns of a published run split a model: tables of several exports, one reading.

Runs of InferenceX state chips `tp`, expert ways `ep` and whether attention is copied. Two exports
turned these into columns. The older multiplied: `tp` = 8 and `ep` = 8 without copies became tensor
ways 64 and expert columns 8 x 8; with copies, attention ways 64. The newer writes ways: tensor 8,
experts 1 x 8, or attention 8. Some runs stand in the file in both forms with the same times to the
last digit, which shows both readings: 16 | 4 x 4 is 4 | 1 x 4, and 64 copies | 8 x 8 is
8 copies | 1 x 8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.catalogue.chips import Chip
from planner.measurements.measurement import ONE
from planner.measurements.published_names import Refused
from planner.measurements.readers.sheets import Row, count

NOMINAL = {(1024, 1024), (1024, 8192), (8192, 1024)}
DRAWN = 0.9  # mean of lengths drawn evenly from 0.8 to 1.0 of the nominal
BLACKWELL, HOPPER = "blackwell", "hopper"
LATENT = ("deepseek", "kimi")  # prefixes of models with latent attention
BUSY, RARE, OFTEN = 16, 30.0, 10.0  # requests from which SGLang's scripts look up less often
BALANCED = 60.0  # steps that TensorRT-LLM waits for its other attention ranks
# TensorRT-LLM's sweeps with drafts (scripts dsr1_*_mtp of 2026-01-14), by image.
DRAFTING = {"1.1.0rc2.post2": "2026-01-14", "1.2.0rc6.post3": ""}
POOLS_DRAFT = "2026-01-20"  # day from which pools of TensorRT-LLM were swept with drafts as well
GATHERED, GATHERED_LATER, MANY, LATER = 20.0, 40.0, 64, "2026-01-29"


class Settings(NamedTuple):
    """Share of the nominal lengths, whether they are `even`, cache format, steps between looks for
    requests (`poll`) and for which they are held back (`hold`)."""

    length: float
    even: bool
    cache: str | None
    poll: float
    hold: float


def settings_of(
    engine: str,
    model: str,
    chip: Chip,
    weights: str,
    prompt: float,
    output: float,
    requests: float,
    tp: int,
    copies: int,
    as_of: str,
) -> Settings:
    """The settings of one run.

    Parameters
    ----------
    engine : vllm, sglang or trtllm.
    weights : number format of the weights.
    requests : in flight over the engine; `copies` of attention share them.
    as_of : day of the run, empty where nobody says.
    """
    if (prompt, output) not in NOMINAL:
        return Settings(1.0, True, _usual(engine, weights), 0.0, 0.0)
    poll = hold = 0.0
    new, latent = chip.architecture == BLACKWELL, model.startswith(LATENT)
    if engine == "sglang" and new:
        poll = RARE if requests >= BUSY else OFTEN
        if latent and weights == "fp8" and tp * copies == 4:
            poll = OFTEN
    if engine == "trtllm":
        short = prompt == output
        if copies > 1:
            poll = BALANCED
        elif not latent and model.startswith("llama") and short and tp < 8:
            hold = GATHERED
        elif latent and weights == "fp8" and new and short and requests >= MANY and as_of >= LATER:
            hold = GATHERED_LATER
    return Settings(DRAWN, False, _cache(engine, model, new, weights), poll, hold)


def drafting(engine: str, version: str, as_of: str, *, pooled: bool) -> bool:
    """Whether a run of a model that can draft belongs to a sweep with drafts."""
    if engine != "trtllm":
        return False
    if pooled:
        return as_of >= POOLS_DRAFT
    return version in DRAFTING and as_of >= DRAFTING[version]


def _usual(engine: str, weights: str) -> str | None:
    """What an engine keeps its cache in if it is not told: TensorRT-LLM follows the checkpoint."""
    return "fp8" if engine == "trtllm" and weights != "bf16" else None


def _cache(engine: str, model: str, new: bool, weights: str) -> str | None:
    """fp8 where the scripts ask for it, else what the engine does by itself."""
    if engine == "vllm":
        return "fp8" if new or model.startswith("llama") else None
    if engine == "sglang":
        return "fp8" if new or not model.startswith(LATENT) else None
    return "fp8" if weights != "bf16" and (new or not model.startswith("gpt-oss")) else None


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
