"""Budgets: the law as published, costs by hand, and the best size by a search of one variable.

Tokens follow from a size by the law's own terms, so that a bounded minimiser over the logarithm of
the size is all that it takes. Coefficients are those of the papers, written down here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from tests.campaign.rechecks.common import DAY, HOUR, YEAR, Document, close, differs, figure

# Loss of no reducible error, factor and power of the size, of the tokens.
LAWS = {
    "besiroglu-2024": (1.8172, 482.01, 0.3478, 2085.43, 0.3658),
    "hoffmann-2022-approach-3": (1.6933737, 406.40102, 0.33917084, 410.72283, 0.2849083),
}
CHIPS = {"hgx-h100": "h100", "hgx-h200": "h200", "hgx-a100": "a100"}
FLAT = 1e-9  # of a score: a minimiser that compares scores is no surer


def question(number: int) -> Document:
    """A sound budget, by its number."""
    rng = random.Random(f"budget:{number}")
    asked: Document = {
        "problem": "budget", "law": rng.choice([*LAWS]), "draws": 0,
        "objective": rng.choice(("cost", "flop")),
        "phases": {
            name: {"system": rng.choice([*CHIPS]), "mfu": round(rng.uniform(0.1, 0.6), 3),
                   "price": f"${rng.uniform(1, 5)}/hour"}
            for name in ("pretrain", "rl", "inference")
        },
    }  # fmt: skip
    if rng.random() < 0.6:
        size = 10 ** rng.uniform(8.5, 11.5)
        asked["quality"] = {"like": {"n_active": size}}
        if rng.random() < 0.4:
            asked["quality"] = {"loss": round(LAWS[asked["law"]][0] + rng.uniform(0.1, 0.5), 4)}
    else:
        asked["cost"] = (
            f"${10 ** rng.uniform(4, 8)}"
            if asked["objective"] == "cost"
            else (f"{10 ** rng.uniform(20, 25)} FLOP")
        )
    asked["inference"] = {"tokens": 10 ** rng.uniform(9, 14)}
    if rng.random() < 0.3:
        asked["inference"] = {"rate": f"{10 ** rng.uniform(3, 7)} tokens/s",
                              "lifetime": f"{rng.randint(30, 1500)} days"}  # fmt: skip
        if rng.random() < 0.5:
            asked["inference"] |= {"growth": "20%/year", "discount": 0.1}
    if rng.random() < 0.5:
        asked["rl"] = {"tokens": 10 ** rng.uniform(9, 12), "k": rng.choice((2, 3, 6))}
    return asked


@dataclass(frozen=True)
class Hand:
    """A budget's numbers: its law, and prices of a parameter and token by phase."""

    law: tuple[float, float, float, float, float]
    prices: dict[str, float]
    tokens: dict[str, float]

    def loss(self, size: float, trained: float) -> float:
        """The law."""
        least, a, alpha, b, beta = self.law
        return least + a / size**alpha + b / trained**beta

    def trained(self, size: float, loss: float) -> float:
        """Tokens at which a size has the loss; infinite where none do."""
        least, a, alpha, b, beta = self.law
        left = loss - least - a / size**alpha
        return (b / left) ** (1 / beta) if left > 0 else math.inf

    def cost(self, size: float, trained: float) -> float:
        """What training and all later tokens take."""
        later = sum(self.prices[name] * self.tokens[name] for name in ("rl", "inference"))
        return size * (self.prices["pretrain"] * trained + later)


def served(keys: Document) -> float:
    """Tokens that are served over the lifetime, counted as they are worth at its beginning."""
    if "tokens" in keys:
        return float(keys["tokens"])
    rate, lasts = float(keys["rate"].split()[0]), float(keys["lifetime"].split()[0]) * DAY
    # growth and discount of a year, compounded
    more = math.log(1.2) if "growth" in keys else 0.0
    less = math.log(1.1) if "discount" in keys else 0.0
    return rate * quad(lambda t: math.exp((more - less) * t / YEAR), 0, lasts, epsrel=1e-12)[0]


def by_hand(asked: Document, unit: str) -> Hand:
    """Prices of a parameter and token in FLOP that are paid, or in USD."""
    flop = {"pretrain": 6.0, "rl": float(asked.get("rl", {}).get("k", 3)), "inference": 2.0}
    prices = {}
    for name, keys in asked["phases"].items():
        rent = float(keys["price"].strip("$").split("/")[0]) / HOUR
        each = rent / figure(CHIPS[keys["system"]], "bf16") if unit == "usd" else 1.0
        prices[name] = flop[name] * each / keys["mfu"]
    tokens = {"rl": float(asked.get("rl", {}).get("tokens", 0.0)),
              "inference": served(asked["inference"])}  # fmt: skip
    return Hand(LAWS[asked["law"]], prices, tokens)


def wanted_loss(asked: Document, law: Hand) -> float:
    """The loss that is asked for: given, or that of a compute-optimal model of a size."""
    quality = asked["quality"]
    if "loss" in quality:
        return float(quality["loss"])
    size = float(quality["like"]["n_active"])
    return law.loss(size, compute_optimal(law, size))


def optimum(asked: Document, hand: Hand) -> tuple[float, float]:
    """The best size and its score: the cost of a loss, or the loss of a cost."""
    if "quality" in asked:
        loss = wanted_loss(asked, hand)

        def score(log_size: float) -> float:
            size = math.exp(log_size)
            trained = hand.trained(size, loss)
            return math.log(hand.cost(size, trained)) if math.isfinite(trained) else 1e6
    else:
        limit = float(asked["cost"].strip("$").split()[0])
        later = sum(hand.prices[name] * hand.tokens[name] for name in ("rl", "inference"))

        def score(log_size: float) -> float:
            size = math.exp(log_size)
            trained = (limit / size - later) / hand.prices["pretrain"]
            return hand.loss(size, trained) if trained > 1 else 1e6

    grid = np.linspace(math.log(1e2), math.log(1e14), 4000)
    scores = [score(x) for x in grid]
    place = int(np.argmin(scores))
    ends = (grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)])
    found = minimize_scalar(score, bounds=ends, method="bounded", options={"xatol": 1e-10})
    best = math.exp(found.fun) if "quality" in asked else found.fun
    return math.exp(found.x), float(best)


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    plan = document["plan"]
    if plan is None:
        yield f"no plan: {document['infeasible']}"
        return
    money = by_hand(asked, "usd")
    hand = money if asked["objective"] == "cost" else by_hand(asked, "flop")
    size, trained = plan["n_active"], plan["tokens"]["pretrain"]
    yield from differs("loss", plan["loss"], hand.loss(size, trained))
    yield from differs("tokens served", document["demand"]["counted"], hand.tokens["inference"])
    yield from _table(asked, plan, money)
    yield from _facts(asked, plan, money)
    total = plan["cost"]["total"]["usd" if asked["objective"] == "cost" else "flop_paid"]
    best_size, best = optimum(asked, hand)
    if "quality" in asked:
        yield from differs("loss that is asked for", plan["loss"], wanted_loss(asked, hand))
        if not close(total, best, FLAT * 10):
            yield f"it costs {total}, the best by hand {best}"
    else:
        limit = float(asked["cost"].strip("$").split()[0])
        yield from differs("all that may be spent", total, limit)
        if not close(plan["loss"], best, FLAT * 10):
            yield f"a loss of {plan['loss']}, the best by hand {best}"
    if not close(size, best_size, 1e-3):
        yield f"{size:.6g} parameters, the best by hand {best_size:.6g}"
    yield from _beside(asked, document, hand)


def _table(asked: Document, plan: Document, money: Hand) -> Iterator[str]:
    """FLOP, chip-hours and dollars by phase, their sums and shares."""
    size = plan["n_active"]
    tokens = {**money.tokens, "pretrain": plan["tokens"]["pretrain"]}
    flops = by_hand(asked, "flop")
    whole = {"usd": 0.0, "flop": 0.0, "flop_paid": 0.0, "chip_hours": 0.0}
    for name, keys in asked["phases"].items():
        paid = size * tokens[name] * flops.prices[name]
        by_part = {
            "usd": size * tokens[name] * money.prices[name], "flop": paid * keys["mfu"],
            "flop_paid": paid, "chip_hours": paid / figure(CHIPS[keys["system"]], "bf16") / HOUR,
        }  # fmt: skip
        for part, value in by_part.items():
            yield from differs(f"{part} of {name}", plan["cost"][name][part], value)
            whole[part] += value
    for part, value in whole.items():
        yield from differs(f"{part} in all", plan["cost"]["total"][part], value)
    unit = "usd" if asked["objective"] == "cost" else "flop_paid"
    for name, share in plan["share"].items():
        yield from differs(f"share of {name}", share, plan["cost"][name][unit] / whole[unit])
    yield from differs("shares", sum(plan["share"].values()), 1.0)
    each = plan["tokens"]["pretrain"] / size
    yield from differs("tokens a parameter", plan["tokens_per_parameter"], each)


def compute_optimal(hand: Hand, size: float) -> float:
    """Tokens of a size where training alone is least: alpha A / N^alpha = beta B / D^beta."""
    _, a, alpha, b, beta = hand.law
    return float((beta * b * size**alpha / (alpha * a)) ** (1 / beta))


def _facts(asked: Document, plan: Document, money: Hand) -> Iterator[str]:
    """The law and the phases as they are said, and tokens over those of a compute-optimal size."""
    names = ("loss_min", "A_N", "alpha_N", "B_D", "beta_D")
    for name, value in zip(names, money.law, strict=True):
        yield from differs(name, plan["coefficients"][name], value)
    for name, row in plan["phases"].items():
        keys = asked["phases"][name]
        rent = float(keys["price"].strip("$").split("/")[0])
        flop = rent / HOUR / figure(CHIPS[keys["system"]], "bf16") / keys["mfu"]
        for key, value in (("mfu", keys["mfu"]), ("usd_per_chip_hour", rent),
                           ("usd_per_flop", flop)):  # fmt: skip
            yield from differs(f"{key} of {name}", row[key], value, absolute=0.0)
    size = plan["n_active"]
    over = plan["tokens"]["pretrain"] / compute_optimal(money, size)
    for key in ("over_training", "over_training_from_pools"):
        if plan[key] is not None:
            yield from differs(key, plan[key], over, 1e-5)
    for name, value in (("n_total", size), ("sparsity", 1.0), ("epochs", 1.0)):
        yield from differs(name, plan[name], value)
    for name, value in money.tokens.items():
        yield from differs(f"tokens of {name}", plan["tokens"][name], value)


def _beside(asked: Document, document: Document, hand: Hand) -> Iterator[str]:
    """The compute-optimal choice beside it, the bound, the elasticity of the loss."""
    plan = document["plan"]
    row = document["compute_optimal"]
    if row and "quality" in asked:

        def gap(log_size: float) -> float:
            size = math.exp(log_size)
            return hand.loss(size, compute_optimal(hand, size)) - wanted_loss(asked, hand)

        size = math.exp(brentq(gap, math.log(1e4), math.log(1e16)))
        yield from differs("size of Chinchilla", row["n_active"], size)
        cost = hand.cost(size, hand.trained(size, wanted_loss(asked, hand)))
        yield from differs("cost of Chinchilla", row["cost"], cost)
        unit = "usd" if asked["objective"] == "cost" else "flop_paid"
        best = plan["cost"]["total"][unit]
        yield from differs("saved beside Chinchilla", row["saving"], 1 - best / cost, 1e-5)
        if document["bound"][unit] > best * (1 + 1e-6):
            yield "the bound lies above the cost"
