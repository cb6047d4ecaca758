"""Our counts beside those of transformers' own modules, family by family; no test, a script.

    python -m tests.scripts.compare_transformers --python OTHER/bin/python [FAMILY ...]

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
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEED = 20261121
VARIATIONS = 12
TOKENS = 24
# Parameters of the largest model that is run [param].
MOST = 20_000_000

# What a forward pass leaves: elements per token and per entry, of convolutions and recurrent.
CACHED = ("per_token", "window", "tail", "recurrent")
# Variations of each family that a test keeps.
KEPT = 2
QUIET = re.compile(
    r"token|version|rope|dropout|_eps$|epsilon|init|label|output_|return_dict|^dtype|architect"
    r"|chunk_size_feed|problem|_name_or|cache|hidden_act|norm_topk|scaling|multiplier|_drop$|pdrop"
    r"|router_aux|jitter|summary|time_step_(min|max|floor|limit|scale)|vision_config|audio_config"
    r"|is_decoder|cross_attention|chunkwise|kernels|sequence_kernel|step_kernel|autocast|softcap|soft_cap|_norm_eps"
)

# The tensors of routed experts, stacked or one by one.
ROUTED = re.compile(r"(?<!shared_)experts\.(gate_up_proj|down_proj|gate_proj|up_proj|\d+\.)")

SAID = re.compile(r"^tie_word|_head_dim$|experts_per_tok|_L_cache$")

# Where the reference implementation is known to hold something else, and why.
EXPLAINED = {
    "gemma3": "theirs has the vision tower",
    "gemma3n": "theirs has towers",
    "gemma4": "theirs has towers",
    "gemma4_unified": "theirs has towers",
    "deepseek_v4": "theirs has no selection bias in hash-routed layers",
    "gpt_neo": "theirs keeps the whole context of local layers",
    "jetmoe": "theirs calls routed experts by other names",
    "helium": "theirs has a square output projection whatever the heads' width",
    "kimi_linear": "theirs never ties the head",
    "xlstm": "theirs never ties the head",
    "bailing_hybrid": "theirs never ties the head",
    "nemotron_h": "theirs never ties the head, nor gives attention biases",
    "longcat_flash": "theirs allocates up-projections for experts without weights",
    "lfm2_moe": "theirs leaves the selection bias out",
}


def main() -> None:
    """Ask for every family, print a table, exit with 1 where a count differs unexplained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--python", help="of the environment that has transformers")
    parser.add_argument("--variations", type=int, default=VARIATIONS)
    parser.add_argument("--write", type=Path, help="keep two small variations of each as JSON")
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
        kept: dict[str, list[dict[str, Any]]] = {}
        failed = [name for name in names if not compared(other, name, given, kept)]
        if other.stdin is not None:
            other.stdin.close()
    if given.write is not None:
        lines = (f"{json.dumps(name)}: {json.dumps(kept[name][:KEPT])}" for name in sorted(kept))
        given.write.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
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


def compared(
    other: subprocess.Popen[str],
    name: str,
    given: argparse.Namespace,
    kept: dict[str, list[dict[str, Any]]],
) -> bool:
    """Print one family's row; whether every count agrees."""
    from tests.scripts.transformers_variations import START, varied

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
        elif (ours["total"], ours["routed"]) == (
            answer["total"] + answer["biases"],
            answer["routed"],
        ):
            equal += 1
            if small:
                ran = name not in EXPLAINED and not ours["latent"]
                kept.setdefault(name, []).append(golden(answer, ran))
        else:
            unequal.append((ours["total"], answer["total"] + answer["biases"]))
            if given.verbose:
                print("   routed", ours["routed"], answer["routed"])
        if ours is not None and small and "per_token" in answer and not ours["latent"]:
            same = all(ours[key] == answer[key] for key in CACHED)
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


def golden(answer: dict[str, Any], caches: bool) -> dict[str, Any]:
    """What a test keeps of an answer: the configuration without what says nothing of layers."""
    kept = {
        key: value
        for key, value in answer["config"].items()
        if SAID.search(key) or not QUIET.search(key)
    }
    told = {"config": kept, "total": answer["total"] + answer["biases"]}
    told["routed"] = answer["routed"]
    return told | {key: answer[key] for key in CACHED if caches and key in answer}


def counted(config: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Our total and caches of a configuration, or the refusal."""
    from planner.architecture import from_config, model_sizes
    from planner.text.errors import ModelError
    from tests.cases.elements import kv_elements

    try:
        model = from_config(config, "m")
    except ModelError as error:
        return None, str(error)
    found = model_sizes(model)
    states = [one.mixer.state for one in model.layers if one.mixer and one.mixer.state]
    return {
        "tail": sum(state.tail for state in states),
        "recurrent": sum(state.recurrent for state in states),
        "total": found.n_total,
        "per_token": kv_elements(found),
        "routed": found.params["routed"],
        "window": sum(int(c.elements_per_token) for c in found.caches if not c.grows),
        "latent": any(c.kind in ("latent", "sparse", "index", "compressed") for c in found.caches),
    }, ""


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
    told["routed"] = sum(
        each.numel() for name, each in model.named_parameters() if ROUTED.search(name)
    )
    if asked.get("cache") and told["total"] < MOST:
        told |= dict(_caches(torch, hub, config))
    return told


def _caches(torch: Any, hub: Any, config: Any) -> Iterator[tuple[str, int]]:
    """Cached elements per token of full layers and per entry of windowed ones, and states."""
    try:
        torch.manual_seed(0)
        model = hub.AutoModelForCausalLM.from_config(config).eval().float()
        with torch.no_grad():
            out = model(input_ids=torch.ones(1, TOKENS, dtype=torch.long), use_cache=True)
        layers = (out.get("past_key_values") or out["cache_params"]).layers
    except Exception:  # a model that does not run says nothing of its caches
        return
    full, window, tail, recurrent = 0, 0, 0, 0
    for layer in layers:
        tail += _elements(torch, getattr(layer, "conv_states", None))
        recurrent += _elements(torch, getattr(layer, "recurrent_states", None))
        for kept in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            if kept is None or kept.dim() != 4 or not kept.numel():
                continue
            each = kept.shape[1] * kept.shape[3]
            full, window = (
                (full + each, window) if kept.shape[2] == TOKENS else (full, window + each)
            )
    yield "per_token", full
    yield "window", window
    yield "tail", tail
    yield "recurrent", recurrent


def _elements(torch: Any, kept: Any) -> int:
    """Elements of a tensor, or of all in a list or a mapping of them."""
    if isinstance(kept, dict):
        kept = list(kept.values())
    if isinstance(kept, list | tuple):
        return sum(_elements(torch, each) for each in kept)
    return int(kept.numel()) if torch.is_tensor(kept) else 0


if __name__ == "__main__":
    main()
