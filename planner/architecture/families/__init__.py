"""One reader per family of configurations, by the `model_type` that names it.

A reader takes the keys of one configuration and returns the model's layers; it reads every
structural key it depends on, with the family's published defaults for absent ones.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.architecture.families.deepseek import (
    deepseek_v2,
    deepseek_v3,
    deepseek_v4,
    deepseek_v32,
    glm_moe_dsa,
)
from planner.architecture.families.dense import DENSE
from planner.architecture.families.gemma import gemma2, gemma3
from planner.architecture.families.glm import glm4_moe
from planner.architecture.families.gpt import gpt2, gpt_oss, palm
from planner.architecture.families.kimi import kimi_linear
from planner.architecture.families.llama import llama, llama4, mistral, mixtral, phi3
from planner.architecture.families.minimax import minimax_m1, minimax_m2
from planner.architecture.families.nemotron import nemotron_h
from planner.architecture.families.older import OLDER
from planner.architecture.families.qwen import (
    qwen2,
    qwen2_moe,
    qwen3,
    qwen3_hybrid,
    qwen3_moe,
)
from planner.architecture.families.sparse import SPARSE
from planner.architecture.layers import Model
from planner.architecture.reading import Reader

__all__ = ["FAMILIES", "WRAPPERS"]

FAMILIES: dict[str, Callable[[Reader, str], Model]] = {
    **OLDER,
    **DENSE,
    **SPARSE,
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v3,
    "deepseek_v32": deepseek_v32,
    "deepseek_v4": deepseek_v4,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "glm4_moe": glm4_moe,
    "glm_moe_dsa": glm_moe_dsa,
    "gpt2": gpt2,
    "gpt_oss": gpt_oss,
    "kimi_k2": deepseek_v3,
    "kimi_linear": kimi_linear,
    "llama": llama,
    "llama4_text": llama4,
    "minimax": minimax_m1,
    "minimax_m1": minimax_m1,
    "minimax_m2": minimax_m2,
    "minimax_text_01": minimax_m1,
    "mistral": mistral,
    "mixtral": mixtral,
    "nemotron_h": nemotron_h,
    "palm": palm,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen2_moe": qwen2_moe,
    "qwen3": qwen3,
    "qwen3_5_moe_text": qwen3_hybrid,
    "qwen3_5_text": qwen3_hybrid,
    "qwen3_moe": qwen3_moe,
    "qwen3_next": qwen3_hybrid,
    "qwen3_vl_moe_text": qwen3_moe,
    "qwen3_vl_text": qwen3,
}

# Types whose configuration nests the language model under `text_config`, and the type of that
# nested part where it does not name one itself.
WRAPPERS: dict[str, str] = {
    "gemma3": "gemma3_text",
    "kimi_k25": "deepseek_v3",
    "kimi_k3": "kimi_linear",
    "llama4": "llama4_text",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}
