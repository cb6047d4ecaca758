"""One reader per family of configurations, by the `model_type` that names it.

A reader takes the keys of one configuration and returns the model's layers; it reads every
structural key it depends on, with the family's published defaults for absent ones.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.architecture.config_reader import Reader
from planner.architecture.families.deepseek import LATENT, deepseek_v4
from planner.architecture.families.dense import DENSE, llama, llama4, mistral, mixtral, phi3
from planner.architecture.families.gemma import gemma2, gemma3, gemma3n, gemma4
from planner.architecture.families.hybrid import (
    lfm2,
    lfm2_moe,
    lfm3,
    olmo_hybrid,
    recurrent_gemma,
    rwkv,
    xlstm,
)
from planner.architecture.families.kimi import bailing_hybrid, kimi_linear
from planner.architecture.families.mamba import (
    bamba,
    falcon_h1,
    granite_hybrid,
    jamba,
    mamba,
    mamba_2,
)
from planner.architecture.families.minimax import minimax_m1, minimax_m2, minimax_m3
from planner.architecture.families.nemotron import nemotron_h
from planner.architecture.families.older import OLDER, gpt2, gpt_oss, palm
from planner.architecture.families.singular import dbrx, jetmoe, longcat
from planner.architecture.families.sparse import (
    SPARSE,
    glm4_moe,
    qwen2,
    qwen2_moe,
    qwen3,
    qwen3_hybrid,
    qwen3_moe,
)
from planner.architecture.families.uneven import laguna, mimo_v2, nemotron_nas, step
from planner.architecture.layers import Model

__all__ = ["FAMILIES", "REFUSED", "WRAPPERS"]

FAMILIES: dict[str, Callable[[Reader, str], Model]] = {
    **OLDER,
    **DENSE,
    **SPARSE,
    **LATENT,
    "bailing_hybrid": bailing_hybrid,
    "bamba": bamba,
    "dbrx": dbrx,
    "deepseek_ref": deepseek_v4,
    "deepseek_v4": deepseek_v4,
    "falcon_h1": falcon_h1,
    "falcon_mamba": mamba,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "gemma3n_text": gemma3n,
    "gemma4_text": gemma4,
    "gemma4_unified_text": gemma4,
    "glm4_moe": glm4_moe,
    "glm4v_moe_text": glm4_moe,
    "glm4v_text": DENSE["glm4"],
    "gpt2": gpt2,
    "gpt_oss": gpt_oss,
    "granitemoehybrid": granite_hybrid,
    "jamba": jamba,
    "jetmoe": jetmoe,
    "kimi_k2": LATENT["deepseek_v3"],
    "kimi_linear": kimi_linear,
    "laguna": laguna,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "llama": llama,
    "llama4_text": llama4,
    "longcat_flash": longcat,
    "mamba": mamba,
    "mamba2": mamba_2,
    "mimo_v2_flash": mimo_v2,
    "minimax": minimax_m1,
    "minimax_m1": minimax_m1,
    "minimax_m2": minimax_m2,
    "minimax_m3": minimax_m3,
    "minimax_m3_vl_text": minimax_m3,
    "minimax_text_01": minimax_m1,
    "mistral": mistral,
    "mixtral": mixtral,
    "nemotron_h": nemotron_h,
    "nemotron-nas": nemotron_nas,
    "olmo_hybrid": olmo_hybrid,
    "palm": palm,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen2_5_vl_text": qwen2,
    "qwen2_moe": qwen2_moe,
    "qwen2_5_omni_text": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen3": qwen3,
    "qwen3_5_moe_text": qwen3_hybrid,
    "qwen3_5_text": qwen3_hybrid,
    "qwen3_moe": qwen3_moe,
    "qwen3_next": qwen3_hybrid,
    "qwen3_omni_moe_text": qwen3_moe,
    "qwen3_vl_moe_text": qwen3_moe,
    "qwen3_vl_text": qwen3,
    "recurrent_gemma": recurrent_gemma,
    "rwkv": rwkv,
    "step3p5": step,
    "xlstm": xlstm,
}

# Types whose configuration nests the language model under `text_config`, and the type of that
# nested part where it does not name one itself.
WRAPPERS: dict[str, str] = {
    "aria": "aria_text",
    "aya_vision": "cohere2",
    "cohere2_vision": "cohere2",
    "exaone4_5": "exaone4",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "idefics3": "llama",
    "internvl": "qwen2",
    "kimi_k25": "deepseek_v3",
    "kimi_k3": "kimi_linear",
    "kimi_vl": "deepseek_v3",
    "lfm2_vl": "lfm2",
    "lfm3_vl": "lfm3",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "minimax_m3_vl": "minimax_m3",
    "mistral3": "mistral",
    "muse_glimmer": "muse_glimmer_text",
    "paligemma": "gemma",
    "phi4_multimodal": "phi3",
    "qwen2_5_vl": "qwen2",
    "qwen2_vl": "qwen2",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "smolvlm": "llama",
    "step3p7": "step3p5",
}

_SHARED_BLOCKS = "blocks whose weights several layers share"
_ENCODER = "an encoder, or a decoder that attends to one"

# Families whose layers cannot be said in the terms there are, and what is missing.
REFUSED: dict[str, str] = {
    "arctic": "a dense part beside experts of its own norms is not read",
    "axk2": "gated norms, and query gates in a latent, are not read",
    "bart": _ENCODER,
    "bert": _ENCODER,
    "blt": "bytes are grouped into patches by a model of their own",
    "dots3_note": "latent attention whose widths change by layer is not read",
    "dots3_note_text": "latent attention whose widths change by layer is not read",
    "glm5_next_text": "hyper-connections around latent attention are not read",
    "hrm_text": "layers are passed through several times",
    "inkling_text": "convolutions of keys, values and outputs are not read",
    "inkling2_text": "convolutions of keys, values and outputs are not read",
    "mistral_large4_text": "keys of layers that share others' are not read",
    "mllama": "some layers attend to another tower's output",
    "mllama_text_model": "some layers attend to another tower's output",
    "muse_spark_text": "gated residuals are not read",
    "qwen4_exp": "tables looked up by runs of tokens are not read",
    "qwen4_exp_text": "tables looked up by runs of tokens are not read",
    "t5": _ENCODER,
    "whisper": _ENCODER,
    "zamba": _SHARED_BLOCKS,
    "zamba2": _SHARED_BLOCKS,
    "zaya": "a router of several layers, and convolutions of keys, are not read",
}
