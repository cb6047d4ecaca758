"""Random sound questions of serving, their answers computed anew with nothing that the search has.

Parameters and caches are counted here from the configuration, prices, counts, waits and roofs from
what the document says, in plain arithmetic.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import planner
from planner.text.errors import InputError
from tests.paths import ROOT

CLOSE = 1e-6  # relative: two ways of writing down one product
MODELS = (
    "llama-3.1-8b",
    "llama-2-7b",
    "llama-2-13b",
    "llama-3.1-70b",
    "mistral-7b-v0.3",
    "mixtral-8x7b",
)
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-a100", "hgx-b200", "mi300x-8", "h100-pcie")
BYTES = {
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "nvfp4": 0.5,
    "mxfp4": 0.5,
}
Document = dict[str, Any]


def question(number: int) -> Document:
    """A sound question, by its number."""
    rng = random.Random(f"soundness:{number}")
    asked: Document = {
        "problem": "serving",
        "model": rng.choice(MODELS),
        "system": rng.choice(SYSTEMS),
        "chips": rng.choice((1, 2, 4, 8, [1, 2, 4], [2, 3, 8], {"from": 1, "to": 6}, 16)),
        "price": f"${rng.choice((1.25, 2, 3.5, 7))}/hour",
        "workload": {
            "input_tokens": rng.choice((64, 500, 2000, 7000)),
            "output_tokens": rng.choice((16, 100, 400, 1200)),
        },
        "promises": {},
    }
    for name, values in (
        ("tpot", (8, 20, 50, 200)),
        ("ttft", (150, 800, 4000)),
        ("e2e", (3000, 20000, 90000)),
    ):
        if rng.random() < 0.5:
            asked["promises"][name] = f"{rng.choice(values)} ms"
    if rng.random() < 0.3:
        asked["choose"] = {"weights": rng.choice(("bf16", ["bf16", "int8"], "int4"))}
    if rng.random() < 0.5:
        asked.setdefault("choose", {})["mode"] = rng.choice(
            ("aggregated", "disaggregated", "decode")
        )
    if asked.get("choose", {}).get("mode") == "disaggregated" and asked["chips"] == 1:
        asked["chips"] = 2
    if rng.random() < 0.2 and asked.get("choose", {}).get("mode") != "decode":
        asked["workload"]["demand"] = f"{rng.choice((0.2, 1, 3))} requests/s"
    return asked


def answer(asked: Document) -> Document | None:
    """The document of the answer; None where the question is refused."""
    try:
        return json.loads(json.dumps(planner.solve(deepcopy(asked)).document, allow_nan=False))  # type: ignore[no-any-return]
    except InputError:
        return None


def checked(asked: Document, document: Document) -> list[str]:
    """What does not hold of an answer."""
    plan = document["plan"]
    if document["status"] == "infeasible":
        rows = document["infeasible"]
        reasons = plan is None and rows and all(row.get("promise") for row in rows)
        return [] if reasons else ["infeasible without a reason"]
    return [
        *_chips(asked, plan),
        *_memory(asked, plan),
        *_promises(asked, plan),
        *_prices(asked, plan),
        *_bound(document),
        *_roof(asked, plan),
    ]


def pools(plan: Document) -> list[Document]:
    """The pools of a plan: itself, or those it has."""
    return [plan[name] for name in ("prefill", "decode") if plan.get(name)] or [plan]


def replica(pool: Document) -> int:
    """Chips of a replica."""
    layout = pool["layout"]
    return int(layout["tp"] * layout["dp_attention"] * layout["pp"] * layout["cp"])


def _close(first: float, second: float, relative: float = CLOSE) -> bool:
    return abs(first - second) <= relative * max(abs(first), abs(second))


def _offered(chips: Any) -> set[int]:
    if isinstance(chips, dict):
        return set(range(chips["from"], chips["to"] + 1))
    return set(chips) if isinstance(chips, list) else {chips}


def _chips(asked: Document, plan: Document) -> Iterator[str]:
    if plan["chips"] not in _offered(asked["chips"]):
        yield f"{plan['chips']} chips are not among {asked['chips']}"
    if sum(pool["chips_used"] for pool in pools(plan)) > plan["chips"]:
        yield "more chips are used than paid"
    for pool in pools(plan):
        layout = pool["layout"]
        if (
            layout["tp"] * layout["dp_attention"] != layout["tp_expert"] * layout["ep"]
            and layout["ep"] > 1
        ):
            yield f"attention and experts cut other chips: {layout}"
        if replica(pool) * layout["replicas"] != pool["chips_used"]:
            yield f"{layout} is not {pool['chips_used']} chips"


def _config(asked: Document) -> Document:
    file = ROOT / "planner" / "catalogue" / "models" / f"{asked['model']}.json"
    raw = json.loads(file.read_text(encoding="utf-8"))
    return raw.get("config", raw)  # type: ignore[no-any-return]


def parameters(config: Document) -> float:
    """Weights of a decoder of the Llama and Mixtral families, by hand."""
    wide, deep, heads = (
        config[x] for x in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    )
    head, ways = config.get("head_dim") or wide // heads, config.get("num_key_value_heads") or heads
    experts = config.get("num_local_experts", 1)
    layer = wide * head * (2 * heads + 2 * ways) + experts * 3 * wide * config["intermediate_size"]
    tables = 1 if config.get("tie_word_embeddings") else 2
    return float(deep * layer + tables * wide * config["vocab_size"])


def cache_bytes(config: Document, dtype: str) -> float:
    """Of one token in all layers."""
    wide, heads = config["hidden_size"], config["num_attention_heads"]
    head, ways = config.get("head_dim") or wide // heads, config.get("num_key_value_heads") or heads
    return 2 * config["num_hidden_layers"] * ways * head * BYTES[dtype]


def _memory(asked: Document, plan: Document) -> Iterator[str]:
    config, load = _config(asked), asked["workload"]
    for pool in pools(plan):
        memory = pool["memory_per_chip"]
        parts = sum(value for name, value in memory.items() if name not in ("capacity", "free"))
        if memory["free"] < 0 or not _close(parts + memory["free"], memory["capacity"]):
            yield f"memory does not add up: {memory}"
        chips = replica(pool)
        least = parameters(config) * BYTES[pool["weights"]]
        if memory["weights"] * chips < least * (1 - 1e-3):
            yield f"{memory['weights'] * chips:.4g} byte of weights, by hand {least:.4g}"
        if pool.get("batch_per_replica") is None or asked["workload"].get("demand"):
            continue
        read = load["input_tokens"] + (
            0 if pool is plan.get("prefill") else load["output_tokens"] / 2
        )
        least = pool["batch_per_replica"] * read * cache_bytes(config, pool["kv"])
        if memory["kv"] * chips < least * (1 - 1e-3):
            yield f"a cache of {memory['kv'] * chips:.4g} byte in a replica, by hand {least:.4g}"


def _promises(asked: Document, plan: Document) -> Iterator[str]:
    for name, words in asked["promises"].items():
        value = plan.get(name)
        if value is not None and value > float(words.split()[0]) * 1e-3 * (1 + CLOSE):
            yield f"{name} of {value:.6g} s breaks {words}"
    late = None not in (plan["ttft"], plan["e2e"])
    whole = (plan["ttft"] or 0) + (asked["workload"]["output_tokens"] - 1) * plan["tpot"]
    if late and not _close(whole, plan["e2e"]):
        yield f"e2e {plan['e2e']:.6g} s is not ttft and all tokens, {whole:.6g} s"
    demand = asked["workload"].get("demand")
    if demand and plan["requests_per_s"] < float(demand.split()[0]) * (1 - CLOSE):
        yield f"{plan['requests_per_s']} requests/s of {demand}"


def _prices(asked: Document, plan: Document) -> Iterator[str]:
    rent = float(asked["price"].strip("$").split("/")[0]) * plan["chips"]
    load = asked["workload"]
    if not _close(rent, plan["usd_per_hour"]):
        yield f"{plan['chips']} chips cost {rent} USD/h, not {plan['usd_per_hour']}"
    if plan["usd_per_mtok"] is None or plan["requests_per_s"] is None:
        return
    tokens = load["input_tokens"] + load["output_tokens"]
    mean = rent / 3600 / (plan["requests_per_s"] * tokens) * 1e6
    if plan["mode"] in ("aggregated", "disaggregated") and not _close(mean, plan["usd_per_mtok"]):
        yield f"price {plan['usd_per_mtok']:.6g} per million, by hand {mean:.6g}"
    both = (plan["usd_per_mtok_input"], plan["usd_per_mtok_output"])
    if None not in both:
        paid = (both[0] * load["input_tokens"] + both[1] * load["output_tokens"]) / tokens
        if not _close(paid, plan["usd_per_mtok"]):
            yield f"input and output make {paid:.6g}, not {plan['usd_per_mtok']:.6g}"


def _bound(document: Document) -> Iterator[str]:
    bound, plan = document["bound"] or {}, document["plan"]
    for name in ("usd_per_mtok", "tpot", "ttft"):
        least, value = bound.get(name), plan.get(name)
        if name == "usd_per_mtok" and None not in (least, value) and least > value * (1 + CLOSE):
            yield f"the bound of {name}, {least:.6g}, lies above the plan's {value:.6g}"


def _roof(asked: Document, plan: Document) -> Iterator[str]:
    """A step reads a dense model's weights and the cache once, at the chip's bandwidth at best."""
    pool = pools(plan)[-1]
    if (
        asked["model"].startswith("mixtral")
        or plan["tpot"] is None
        or asked["workload"].get("demand")
    ):
        return
    figures = planner.catalog("chips", pool["chip"])["figures"]
    rate = next(row["base"] for row in figures if row["name"] == "memory_bandwidth")
    memory = pool["memory_per_chip"]
    read = memory["weights"] + memory["kv"]
    if read / rate > plan["tpot"] * (1 + CLOSE) * pool["layout"]["pp"]:
        yield f"{read:.4g} byte in {plan['tpot']:.4g} s are faster than {rate:.4g} byte/s"


# Relations between two answers.


def price_of(document: Document | None) -> float:
    """What a million tokens cost; infinite where nothing keeps the promises."""
    if document is None or document["plan"] is None:
        return float("inf")
    return float(document["plan"]["usd_per_mtok"] or document["plan"]["usd_per_mtok_output"])


def related(asked: Document, document: Document) -> list[str]:
    """What does not hold between an answer and those to questions near it."""
    rng, faults, cost = random.Random(json.dumps(asked)), [], price_of(document)
    dearer = {**asked, "price": f"${3 * float(asked['price'].strip('$').split('/')[0])}/hour"}
    if not _close(price_of(answer(dearer)), 3 * cost) and cost < float("inf"):
        faults.append("chips of three times the price do not cost three times as much")
    if asked["promises"]:
        name = rng.choice(list(asked["promises"]))
        loose = {**asked, "promises": {k: v for k, v in asked["promises"].items() if k != name}}
        if price_of(answer(loose)) > cost * (1 + CLOSE):
            faults.append(f"without the promise {name} it is dearer")
    more = {
        **asked,
        "system": [asked["system"], "hgx-h200" if asked["system"] != "hgx-h200" else "hgx-h100"],
    }
    both = price_of(answer(more))
    if both > cost * (1 + CLOSE):
        faults.append("with one system more to choose from it is dearer")
    turned = price_of(answer({**more, "system": more["system"][::-1]}))
    if both < float("inf") and not _close(both, turned):
        faults.append("the order of two systems changes the price")
    return faults
