"""Whole lives: loss and bills by hand, the model served by itself, every size that was asked for.

A file with the model's shape is written from what the answer says of it, the width of its
feed-forward part from its parameters, and `problem: serving` gives its price, which
`tests.campaign.soundness` re-checks.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize_scalar

import planner
from tests.campaign.rechecks.budget import CHIPS, LAWS, Hand, compute_optimal
from tests.campaign.rechecks.cache import folder
from tests.campaign.rechecks.common import HOUR, Document, differs, figure

HEAD = 128  # width of a head of the family
BETWEEN = 0.06  # of the price between two sizes that were asked for: layers and heads are whole


def question(number: int) -> Document:
    """A sound question of a model's whole life, by its number."""
    rng = random.Random(f"lifecycle:{number}")
    law = rng.choice([*LAWS])
    return {
        "problem": "lifecycle", "law": law, "draws": 0, "family": {"attention": "gqa"},
        "quality": {"loss": round(LAWS[law][0] + rng.uniform(0.15, 0.45), 4)},
        "inference": {"tokens": 10 ** rng.uniform(11, 14)},
        "serving": {
            "system": rng.choice(("hgx-h100", "hgx-h200")), "chips": 8,
            "price": f"${rng.uniform(1, 5)}/hour", "estimate": "bound",
            "workload": {"input_tokens": rng.choice((500, 3000)), "output_tokens": 500},
            "promises": {"tpot": "50 ms"},
            "choose": {"weights": "bf16", "kv": "bf16", "mode": "aggregated", "pp": 1,
                       "tp": rng.choice((1, 2, 4)), "dp_attention": 1},
        },
        "phases": {"pretrain": {"system": rng.choice([*CHIPS]),
                                "price": f"${rng.uniform(1, 5)}/hour",
                                "mfu": round(rng.uniform(0.2, 0.6), 3)}},
    }  # fmt: skip


def by_hand(asked: Document) -> tuple[Hand, float]:
    """The law with prices of a parameter and token, and the loss that is asked for."""
    keys = asked["phases"]["pretrain"]
    rent = float(keys["price"].strip("$").split("/")[0]) / HOUR
    each = 6 * rent / figure(CHIPS[keys["system"]], "bf16") / keys["mfu"]
    hand = Hand(LAWS[asked["law"]], {"pretrain": each}, {"inference": asked["inference"]["tokens"]})
    return hand, float(asked["quality"]["loss"])


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    plan = document["plan"]
    if plan is None:
        yield f"no plan: {document['infeasible']}"
        return
    hand, loss = by_hand(asked)
    size, trained = plan["n_active"], plan["tokens"]["pretrain"]
    yield from differs("loss", plan["loss"], hand.loss(size, trained))
    yield from differs("loss that is asked for", plan["loss"], loss)
    tokens = hand.tokens["inference"]
    bills = {"pretrain": size * trained * hand.prices["pretrain"],
             "inference": plan["usd_per_mtok"] / 1e6 * tokens, "rl": 0.0}  # fmt: skip
    whole = sum(bills.values())
    for name, value in bills.items():
        yield from differs(f"bill of {name}", plan["cost"][name]["usd"], value)
        yield from differs(f"share of {name}", plan["share"][name], value / whole)
    yield from differs("bill", plan["cost"]["total"]["usd"], whole)
    keys = asked["phases"]["pretrain"]
    flop = {"pretrain": 6 * size * trained, "inference": 2 * size * tokens}
    for name, value in flop.items():
        yield from differs(f"FLOP of {name}", plan["cost"][name]["flop"], value)
    peak = figure(CHIPS[keys["system"]], "bf16")
    hours = {"pretrain": flop["pretrain"] / keys["mfu"] / peak / HOUR,
             "inference": tokens / plan["chips"]["inference"]["tokens_per_s_per_unit"]
             * plan["chips"]["inference"]["chips_per_unit"] / HOUR}  # fmt: skip
    for name, value in hours.items():
        yield from differs(f"chip-hours of {name}", plan["cost"][name]["chip_hours"], value)
    yield from _facts(asked, plan, hand, flop)
    yield from _asked(document, hand, loss)
    yield from _between(document, hand, loss)
    yield from _served(asked, plan)


def _facts(asked: Document, plan: Document, hand: Hand, flop: Document) -> Iterator[str]:
    """Sums of the bills, FLOP that are rented, the law, tokens over the compute-optimal ones."""
    size, cost, model = plan["n_active"], plan["cost"], plan["model"]
    mfu = asked["phases"]["pretrain"]["mfu"]
    served = figure(CHIPS[asked["serving"]["system"]], "bf16")
    paid = {"pretrain": flop["pretrain"] / mfu,
            "inference": cost["inference"]["chip_hours"] * HOUR * served}  # fmt: skip
    for name, value in paid.items():
        yield from differs(f"FLOP rented for {name}", cost[name]["flop_paid"], value)
    for key, value in cost["total"].items():
        summed = sum(cost[name][key] for name in ("pretrain", "rl", "inference"))
        yield from differs(f"{key} in all", value, summed)
    trained = plan["tokens"]["pretrain"]
    rows = {
        "n_total": size, "sparsity": 1.0, "tokens_per_parameter": trained / size,
        "over_training": trained / compute_optimal(hand, size),
    }  # fmt: skip
    for name, value in rows.items():
        yield from differs(name, plan[name], value)
    yield from differs("tokens served", plan["tokens"]["inference"], hand.tokens["inference"])
    yield from differs("mfu", plan["chips"]["pretrain"]["mfu"], mfu)
    names = ("loss_min", "A_N", "alpha_N", "B_D", "beta_D")
    for name, value in zip(names, hand.law, strict=True):
        yield from differs(name, plan["coefficients"][name], value)
    cache = 2 * 2 * model["layers"] * model["kv_heads"] * HEAD
    yield from differs("bytes of a token", model["kv_bytes_per_token"], cache)


def _asked(document: Document, hand: Hand, loss: float) -> Iterator[str]:
    """Every size that the serving planner was asked for, with its bills; none is cheaper."""
    plan, tokens = document["plan"], hand.tokens["inference"]
    served = [row for row in document["asked"] if row["usd_per_mtok"] is not None]
    for row in served:
        size = row["n_active"]
        trained = hand.trained(size, loss)
        yield from differs("tokens of a size", row["pretrain"], trained)
        yield from differs(
            "training", row["training_usd"], size * trained * hand.prices["pretrain"]
        )
        yield from differs("serving", row["serving_usd"], row["usd_per_mtok"] / 1e6 * tokens)
        yield from differs("both", row["total_usd"], row["training_usd"] + row["serving_usd"])
    least = min(row["total_usd"] for row in served)
    yield from differs("the cheapest size asked for", plan["cost"]["total"]["usd"], least)


def _between(document: Document, hand: Hand, loss: float) -> Iterator[str]:
    """The best of all sizes between those that were asked for, prices between theirs."""
    rows = {
        math.log(row["n_active"]): math.log(row["usd_per_mtok"])
        for row in document["asked"] if row["usd_per_mtok"] is not None
    }  # fmt: skip
    if len(rows) < 3:
        return
    price = PchipInterpolator(sorted(rows), [rows[x] for x in sorted(rows)])

    def bill(log_size: float) -> float:
        size = math.exp(log_size)
        trained = hand.trained(size, loss)
        if not math.isfinite(trained):
            return math.inf
        serving = math.exp(float(price(log_size))) / 1e6 * hand.tokens["inference"]
        return size * trained * hand.prices["pretrain"] + serving

    grid = np.linspace(min(rows), max(rows), 400)
    place = int(np.argmin([bill(x) for x in grid]))
    ends = (grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)])
    found = minimize_scalar(bill, bounds=ends, method="bounded")
    total = document["plan"]["cost"]["total"]["usd"]
    if total > found.fun * (1 + BETWEEN):
        yield f"{math.exp(found.x):.4g} parameters would cost {found.fun}, the plan {total}"


def written(model: Document, size: float) -> Path:
    """A configuration of the model, its feed-forward part as wide as its parameters leave."""
    wide, deep, heads = model["hidden"], model["layers"], model["heads"]
    tied = size < 4e9
    attention = wide * HEAD * (2 * heads + 2 * model["kv_heads"])
    tables = (1 if tied else 2) * model["vocab"] * wide
    rest = size - tables - wide - deep * (attention + 2 * wide)
    inner = rest / (3 * wide * deep)
    assert abs(inner - round(inner)) < 1e-3, inner
    file = folder() / f"model-{size:.0f}.json"
    keys = {
        "model_type": "llama", "hidden_size": wide, "num_hidden_layers": deep, "head_dim": HEAD,
        "num_attention_heads": heads, "num_key_value_heads": model["kv_heads"],
        "intermediate_size": round(inner), "vocab_size": model["vocab"],
        "tie_word_embeddings": tied, "torch_dtype": "bfloat16",
    }  # fmt: skip
    file.write_text(json.dumps(keys), encoding="utf-8")
    return file


def _served(asked: Document, plan: Document) -> Iterator[str]:
    """The price of the model that was chosen, asked for by itself."""
    file = written(plan["model"], plan["n_active"])
    alone = planner.solve({**asked["serving"], "problem": "serving", "model": str(file)}).document
    price = alone["plan"]["usd_per_mtok"]
    yield from differs("price of the model by itself", plan["usd_per_mtok"], price)
    served = plan["serving"]
    rate = served["requests_per_s"] * sum(asked["serving"]["workload"].values())
    yield from differs("price", plan["usd_per_mtok"], served["usd_per_hour"] / HOUR / rate * 1e6)
