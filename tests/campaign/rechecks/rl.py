"""Reinforcement learning: the learning pool by its own layouts, rollouts token by token.

Decoding steps of a batch are those that `problem: serving` gives a replica with that batch pinned,
which `tests.campaign.soundness` re-checks; the learning pool is laid out by hand, every layout
tried (`tests.campaign.rechecks.training`); how many answers are left is summed over their lengths.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import planner
from tests.campaign.rechecks import training
from tests.campaign.rechecks.common import (
    DAY,
    HOUR,
    Document,
    config,
    differs,
    head_width,
    layer_parameters,
    norm_parameters,
    table_parameters,
)

APART = ("dp_exposed", "optimizer")  # terms that a forward pass has not
NODES = 1200  # of the length at which answers that are left are counted
NEAR = 1e-5  # relative, of a sum over them


def question(number: int) -> Document:
    """A sound question of learning by rollouts, by its number."""
    rng = random.Random(f"rl:{number}")
    batch = rng.choice((32, 64))
    answer = rng.choice((300, 2000))
    asked: Document = {
        "problem": "rl", "model": rng.choice(("llama-3.1-8b", "llama-2-7b")),
        "system": rng.choice(("hgx-h100", "hgx-h200")), "chips": 16,
        "price": f"${rng.uniform(1, 4)}/hour", "policy": rng.choice(("on", "off")),
        "work": {"rollouts": batch * rng.choice((1, 2)), "global_batch": batch,
                 "prompt": 100, "answer": answer,
                 "most": round(answer * rng.uniform(1.2, 4))},
        "forwards": rng.choice((0, 1, 2)), "steps": rng.choice((100, 1000)),
        "rollout": {"tp": rng.choice(([1, 2], [2, 4], [4])), "weights": "bf16"},
        "training": {"profile": "megatron-bridge-2026",
                     "choose": {"schedule": "1f1b", "offload": "none", "overlap": True, "cp": [1],
                                "recompute": "full"}},
    }  # fmt: skip
    if asked["policy"] == "off" and rng.random() < 0.3:
        asked["lag"] = 2
    return asked


def learner(asked: Document, chips: int) -> Document | None:
    """The quickest layout of the learning pool and its time of a step; None where none fits."""
    work = asked["work"]
    sequence = 64 * math.ceil((work["prompt"] + work["answer"]) / 64)
    hand = training.by_hand({
        "model": asked["model"], "system": asked["system"], "chips": chips,
        "profile": asked["training"]["profile"], "choose": {"recompute": "full"},
        "work": {"global_batch": f"{work['global_batch']} sequences", "sequence": sequence},
    })  # fmt: skip
    room = training.machine(asked["system"]).memory * hand.stack.memory_share
    best: Document | None = None
    for layout in training.layouts(hand):
        if layout["cp"] > 1 or sum(training.memory(hand, layout).values()) > room:
            continue
        terms = training.step_terms(hand, layout)
        step = sum(terms.values())
        if best is None or step < best["step"]:
            forward = (step - sum(terms[name] for name in APART)) / 3
            updates = work["rollouts"] // work["global_batch"]
            seconds = updates * (step + asked["forwards"] * forward)
            model = config(asked["model"])
            passed = 2 * (model["num_hidden_layers"] * layer_parameters(model)
                          + table_parameters(model))  # fmt: skip
            heads = model["num_attention_heads"] * head_width(model)
            passed += 2 * model["num_hidden_layers"] * heads * sequence
            peak = training.machine(asked["system"]).peak
            mfu = 3 * work["global_batch"] * sequence * passed / (step * chips * peak)
            best = {"step": step, "seconds": seconds, "updates": updates, "mfu": mfu}
    return best


@cache
def decoding(model: str, system: str, tp: int, prompt: int, answer: int, batch: int) -> float:
    """Time of a decoding step of one replica with a batch [s]; infinite where it does not fit."""
    plan = planner.solve({
        "problem": "serving", "model": model, "system": system, "chips": tp, "price": "$1/hour",
        "workload": {"input_tokens": prompt, "output_tokens": answer},
        "choose": {"mode": "decode", "tp": tp, "pp": 1, "batch": batch, "replicas": 1,
                   "weights": "bf16"},
    }).document["plan"]  # fmt: skip
    return math.inf if plan is None else float(plan["tpot"])


def still_writing(work: Document, count: int) -> tuple[np.ndarray, float]:
    """Tokens written while 1, 2, ... of so many answers are left; and while any is, in all.

    Answers end at random at every token alike, and are cut off: a sum over the lengths reached.
    """

    def missing(scale: float) -> float:
        return float(scale * -np.expm1(-work["most"] / scale) - work["answer"])

    scale = brentq(missing, work["answer"] / 2, 1e7 * work["most"], rtol=1e-13)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    left = np.exp(-(nodes + 1) / 2 * work["most"] / scale)
    chances = binom.pmf(np.arange(1, count + 1)[:, None], count, left[None, :])
    tokens = chances @ (weights / 2 * work["most"])
    return tokens, float(tokens.sum())


def writer(asked: Document, plan: Document) -> Document:
    """Times of the writing pool as drawn: with the standard error of each mean."""
    work, pool = asked["work"], plan["rollouts"]
    replicas = pool["chips"] // (pool["tp"] * pool["pp"])
    answers = -(-work["rollouts"] // replicas)
    flying = asked["policy"] == "off" and asked.get("lag", 1) > 1
    most = answers * asked.get("lag", 1) if flying else answers
    sizes = [2**k for k in range(most.bit_length()) if 2**k < most] + [most]
    times = {size: decoding(asked["model"], asked["system"], pool["tp"], work["prompt"],
                            work["answer"], size) for size in sizes}  # fmt: skip
    fitting = [size for size, time in times.items() if math.isfinite(time)]
    batch = max(fitting)
    step = np.interp(np.arange(1, batch + 1), fitting, [times[size] for size in fitting])
    tokens, alone = still_writing(work, batch)
    _, longest = still_writing(work, work["rollouts"])
    ending = float(tokens @ step)
    if flying:
        seconds = answers / batch * work["answer"] * step[-1]
    else:
        seconds = (answers / batch - 1) * work["answer"] * step[-1] + ending
        seconds += (longest - alone) * step[0]
    return {
        "replicas": replicas, "answers": answers, "batch": batch, "step_full": step[-1],
        "step_alone": step[0], "longest": longest, "ending": ending, "seconds": seconds,
    }  # fmt: skip


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    plan = document["plan"]
    if plan is None:
        return
    writes, learns, work = plan["rollouts"], plan["learning"], asked["work"]
    by_hand, best = writer(asked, plan), learner(asked, learns["chips"])
    assert best is not None
    yield from differs("a step of the learning pool", learns["step_time"], best["step"])
    yield from differs("time of learning", learns["seconds"], best["seconds"])
    for name in ("updates", "mfu"):
        yield from differs(name, learns[name], best[name])
    for name, value in by_hand.items():
        yield from differs(name, writes[name], value, NEAR)
    yield from _step(asked, plan)
    yield from _others(asked, document)
    step, price = plan["step_time"], float(asked["price"].strip("$").split("/")[0]) / HOUR
    tokens = work["rollouts"] * (work["prompt"] + work["answer"])
    busy = writes["chips"] * writes["seconds"] + learns["chips"] * learns["seconds"]
    for name, value in {
        "tokens_per_s": tokens / step, "tokens_per_s_per_chip": tokens / step / plan["chips"],
        "usd_per_step": plan["chips"] * price * step, "days": asked["steps"] * step / DAY,
        "usd": asked["steps"] * plan["chips"] * price * step,
        "idle": max(0.0, 1 - busy / (plan["chips"] * step)),
    }.items():  # fmt: skip
        yield from differs(name, plan[name], value)


def sending(asked: Document, chips: int) -> float:
    """Time of sending all weights to a replica of so many chips [s]."""
    model, card = config(asked["model"]), training.machine(asked["system"]).card
    held = model["num_hidden_layers"] * layer_parameters(model) + norm_parameters(model)
    return 2 * (held + 2 * table_parameters(model)) / (chips * card)


def _step(asked: Document, plan: Document) -> Iterator[str]:
    """One after the other on policy, the slower of two off policy; then weights are sent."""
    writes, learns = plan["rollouts"], plan["learning"]
    sent = sending(asked, writes["tp"] * writes["pp"])
    yield from differs("time of sending weights", plan["weights_sent"], sent)
    both = (writes["seconds"], learns["seconds"])
    step = sum(both) if asked["policy"] == "on" else max(both)
    yield from differs("the step", plan["step_time"], step + plan["weights_sent"])
    whole = writes["chips"] if asked["policy"] == "on" else writes["chips"] + learns["chips"]
    if whole != plan["chips"] or (asked["policy"] == "on" and learns["chips"] != whole):
        yield f"{writes['chips']} and {learns['chips']} chips of {plan['chips']}"


def _others(asked: Document, document: Document) -> Iterator[str]:
    """No other split or replica is quicker, each with its learning pool laid out by hand."""
    plan, steps = document["plan"], []
    chips = asked["chips"]
    for writing, learning in [(chips, chips)] if asked["policy"] == "on" else [(8, 8)]:
        learns = learner(asked, learning)
        for tp in asked["rollout"]["tp"]:
            try:
                pool = writer(asked, {"rollouts": {"chips": writing, "tp": tp, "pp": 1}})
            except ValueError:  # no batch fits
                continue
            if learns is not None:
                both = (pool["seconds"], learns["seconds"])
                step = sum(both) if asked["policy"] == "on" else max(both)
                steps.append(step + sending(asked, tp))
    yield from differs("the quickest pair of pools", plan["step_time"], min(steps), NEAR)
