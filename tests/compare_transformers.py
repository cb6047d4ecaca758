"""Our counts beside those of transformers' own modules, family by family; no test, a script.

    python tests/compare_transformers.py --python OTHER/bin/python [FAMILY ...]

`OTHER` is a virtual environment with transformers and torch; the project neither needs nor imports
them. The same file runs there as a worker: it builds each family's causal language model without
weights and answers with the configuration, its parameters (tied ones once, selection biases of
routers included) and, of small ones, the caches one forward pass leaves. Each family is asked for
its default and for small variations drawn with a seed: widths, heads, experts, biases, windows.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

SEED = 20261121
VARIATIONS = 12
TOKENS = 24
# Parameters of the largest model that is run [param].
MOST = 20_000_000

# Where the reference implementation is known to hold something else, and why.
EXPLAINED = {
    "gemma3": "theirs has the vision tower",
    "gemma3n": "theirs has towers",
    "gemma4": "theirs has towers",
    "gemma4_unified": "theirs has towers",
    "deepseek_v4": "theirs has no selection bias in hash-routed layers",
    "gpt_neo": "theirs keeps the whole context of local layers",
    "helium": "theirs has a square output projection whatever the heads' width",
    "longcat_flash": "theirs allocates up-projections for experts without weights",
    "lfm2_moe": "theirs leaves the selection bias out",
}
# What a family's class needs to be told before it can be built.
START: dict[str, dict[str, Any]] = {
    "dots1": {"first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 2},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}
SWITCHES = (
    *("attention_bias", "mlp_bias", "use_bias", "use_qkv_bias", "qk_layernorm", "use_qk_norm"),
    *("use_parallel_residual", "parallel_attn", "multi_query", "new_decoder_architecture", "bias"),
    *("tie_word_embeddings", "lm_head_bias", "attention_out_bias", "use_post_norm", "conv_bias"),
    *("mamba_proj_bias", "mamba_conv_bias", "use_conv_bias", "mamba_rms_norm", "projectors_bias"),
    *("enable_bias", "use_double_wide_mlp", "attention_k_eq_v", "use_attention_gate", "gating"),
    *("use_sandwich_norm", "do_layer_norm_before", "layer_norm_elementwise_affine"),
)
WHOLE = {
    ("vocab_size", "vocab_size_per_layer_input"): (96, 160),
    ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "dense_intermediate_size"): (
        32,
        64,
        96,
    ),
    ("moe_intermediate_size", "expert_ffn_hidden_size"): (16, 24, 40),
    ("shared_expert_intermediate_size", "shared_intermediate_size"): (8, 16, 48),
    ("moe_shared_expert_intermediate_size", "prefix_dense_intermediate_size"): (24, 32),
    ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"): (4, 8),
    ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_k"): (1, 2),
    ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"): (1, 2),
    ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"): (0, 1, 2),
    ("kv_lora_rank", "q_lora_rank", "laurel_rank", "qk_nope_head_dim", "v_head_dim"): (16, 32),
    ("qk_rope_head_dim",): (8, 16),
    ("index_head_dim",): (32,),
    ("index_n_heads", "zero_expert_num", "num_global_key_value_heads"): (2, 4),
    ("linear_key_head_dim", "linear_value_head_dim", "linear_head_dim"): (16, 32),
    ("linear_num_key_heads",): (2,),
    ("linear_num_value_heads",): (2, 4),
    ("linear_num_heads",): (2, 4),
    ("mamba_d_state", "state_size", "ssm_state_size"): (8, 16),
    ("hidden_size_per_layer_input",): (0, 16),
    ("swa_num_key_value_heads", "num_hash_layers"): (2,),
    ("n_group", "topk_group", "num_expert_group", "num_mtp_layers", "num_nextn_predict_layers"): (
        1,
    ),
    ("sliding_window", "attention_window_size", "window_size", "attention_chunk_size"): (8, 12),
    ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"): (64,),
    ("decoder_sparse_step",): (1, 2),
    ("num_kv_shared_layers",): (0, 1),
    ("global_head_dim",): (32,),
    ("moe_layer_interval", "interleave_moe_layer_step"): (1, 2),
}
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
CACHED = ("num_key_value_heads", "num_kv_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def main() -> None:
    """Ask for every family, print a table, exit with 1 where a count differs unexplained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--python", help="of the environment that has transformers")
    parser.add_argument("--variations", type=int, default=VARIATIONS)
    parser.add_argument("--verbose", action="store_true", help="print each difference")
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    if given.python is None:
        parser.error("--python is needed")
    with subprocess.Popen(
        [given.python, __file__, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        listed = ask(other, {"list": True})["names"]
        names = given.families or [name for name in listed if known(name)]
        failed = [name for name in names if not compared(other, name, given)]
        if other.stdin is not None:
            other.stdin.close()
    print(f"\nunknown to us: {', '.join(name for name in listed if not known(name))}")
    print(f"{len(names) - len(failed)} of {len(names)} agree; not: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


def known(name: str) -> bool:
    """Whether we have a reader for this type."""
    from planner.architecture.families import FAMILIES, WRAPPERS

    return name in FAMILIES or name in WRAPPERS


def ask(other: subprocess.Popen[str], question: dict[str, Any]) -> dict[str, Any]:
    """One answer of the worker."""
    if other.stdin is None or other.stdout is None:
        raise RuntimeError("the worker has no pipes")
    print(json.dumps(question), file=other.stdin, flush=True)
    answer: dict[str, Any] = json.loads(other.stdout.readline())
    return answer


def compared(other: subprocess.Popen[str], name: str, given: argparse.Namespace) -> bool:
    """Print one family's row; whether every count agrees."""
    start = START.get(name, {})
    default = ask(other, {"kind": name, "changes": start})
    if "config" not in default:
        print(f"{name:<22} not built by default: {default['error'][:70]}")
        return True
    draw = random.Random(f"{SEED} {name}")
    rows = [(default, False)]
    for _ in range(given.variations):
        changes = start | varied(default["config"], draw)
        rows.append((ask(other, {"kind": name, "changes": changes, "cache": True}), True))
    equal, unequal, refused, failed, caches = 0, [], [], 0, [0, 0]
    for answer, small in rows:
        if "total" not in answer:
            failed += 1
            continue
        ours, why = counted(answer["config"])
        if ours is None:
            refused.append(why)
        elif ours["total"] == answer["total"] + answer["biases"]:
            equal += 1
        else:
            unequal.append((ours["total"], answer["total"] + answer["biases"]))
        if ours is not None and small and "per_token" in answer and not ours["latent"]:
            same = all(ours[key] == answer[key] for key in ("per_token", "window"))
            caches[0 if same else 1] += 1
            if not same and given.verbose:
                print(
                    "   cache", {key: (ours[key], answer[key]) for key in ("per_token", "window")}
                )
    ok = not unequal and not caches[1]
    note = f"  {refused[0][:90]}" if refused else ""
    note = f"  ours {unequal[0][0]}, theirs {unequal[0][1]}" if unequal else note
    note += f"  ({EXPLAINED[name]})" if name in EXPLAINED and unequal else ""
    print(
        f"{name:<22} default {default.get('total', 0):>15,}  equal {equal:>2}  unequal"
        f" {len(unequal):>2}  refused {len(refused):>2}  not built {failed:>2}"
        f"  caches {caches[0]}/{sum(caches)}{note}",
        flush=True,
    )
    return ok or name in EXPLAINED


def counted(config: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Our total and caches of a configuration, or the refusal."""
    from planner.architecture import from_config, sizes
    from planner.errors import ModelError

    try:
        found = sizes(from_config(config, "m"))
    except ModelError as error:
        return None, str(error)
    return {
        "total": found.n_total,
        "per_token": found.kv_elements_per_token,
        "window": sum(int(c.elements_per_token) for c in found.caches if not c.grows),
        "latent": any(c.kind in ("latent", "sparse", "index", "compressed") for c in found.caches),
    }, ""


def varied(config: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Small values for the keys a family has: head groups divide, lists fit the layers."""
    layers = next((config[key] for key in LAYERS if isinstance(config.get(key), int)), 0)
    depth = draw.choice((3, 4, 6))
    heads = draw.choice((4, 8))
    changes: dict[str, Any] = {key: depth for key in LAYERS if key in config}
    changes |= {key: heads for key in HEADS if key in config}
    changes |= {key: draw.choice((1, 2, heads)) for key in CACHED if key in config}
    changes |= {key: heads * 16 for key in HIDDEN if key in config}
    changes |= dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1)
    if isinstance(config.get("head_dim"), int):
        changes["head_dim"] = draw.choice((16, 32))
    for keys, values in WHOLE.items():
        changes |= {
            key: draw.choice(values)
            for key in keys
            if key in config and key not in changes and isinstance(config[key], int | None)
        }
    for key in SWITCHES:
        if isinstance(config.get(key), bool):
            changes[key] = draw.random() < 0.5
    for key, value in config.items():
        if isinstance(value, list) and layers and len(value) == layers and key not in changes:
            words = sorted(set(value)) if all(isinstance(item, str) for item in value) else None
            if key == "layer_types" and set(words or ()) <= {"full_attention"}:
                changes[key] = ["full_attention"] * depth
            elif words:
                changes[key] = [draw.choice(words) for _ in range(depth)]
            else:
                changes[key] = value[:depth]
    return changes


def worker() -> None:
    """Answer questions on standard input, one JSON value a line."""
    import logging
    import os
    import warnings

    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told = {"names": _names()} if "list" in asked else _built(asked)
        except Exception as error:  # whatever it raises is its answer
            told = {"error": f"{type(error).__name__}: {str(error)[:120]}"}
        print(json.dumps(told), file=answers, flush=True)


def _names() -> list[str]:
    """Families of both: what their table of causal language models holds and ours knows."""
    import importlib

    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    return sorted(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def _built(asked: dict[str, Any]) -> dict[str, Any]:
    import importlib

    torch = importlib.import_module("torch")
    hub = importlib.import_module("transformers")
    torch.set_num_threads(1)
    config = hub.AutoConfig.for_model(asked["kind"], **asked["changes"])
    told: dict[str, Any] = {"config": json.loads(json.dumps(config.to_dict(), default=str))}
    with torch.device("meta"):
        model = hub.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    told["total"] = sum(each.numel() for each in model.parameters())
    told["biases"] = sum(
        each.numel() for name, each in model.named_buffers() if "correction_bias" in name
    )
    if asked.get("cache") and told["total"] < MOST:
        told |= dict(_caches(torch, hub, config))
    return told


def _caches(torch: Any, hub: Any, config: Any) -> Iterator[tuple[str, int]]:
    """Cached elements per token of full layers, and per entry of windowed ones."""
    try:
        torch.manual_seed(0)
        model = hub.AutoModelForCausalLM.from_config(config).eval().float()
        with torch.no_grad():
            out = model(input_ids=torch.ones(1, TOKENS, dtype=torch.long), use_cache=True)
        layers = out.past_key_values.layers
    except Exception:  # a model that does not run says nothing of its caches
        return
    full, window = 0, 0
    for layer in layers:
        for kept in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            if kept is None or kept.dim() != 4 or not kept.numel():
                continue
            each = kept.shape[1] * kept.shape[3]
            full, window = (
                (full + each, window) if kept.shape[2] == TOKENS else (full, window + each)
            )
    yield "per_token", full
    yield "window", window


if __name__ == "__main__":
    main()
