"""Training of dense models: time and memory of a step by hand, and every layout tried in turn.

Plain floats in the order in which a chip works. From the product come listed figures alone: those
of chips, and the coefficients of a software stack.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import planner
from planner.catalogue.training.training_stacks import TrainingStack, training_stack
from tests.campaign.rechecks.common import (
    CLOSE,
    DAY,
    HOUR,
    Document,
    config,
    differs,
    figure,
    head_width,
    layer_parameters,
    norm_parameters,
    table_parameters,
)

MODELS = ("llama-3.1-8b", "llama-2-7b", "llama-2-13b")
CHIPS = {"hgx-h100": "h100", "hgx-h200": "h200", "hgx-a100": "a100"}
STACKS = ("megatron-bridge-2026", "torchtitan-2025", "physical")
STATE = {"weights": 2.0, "gradients": 4.0, "optimizer": 12.0}
PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
Layout = Mapping[str, Any]


def question(number: int) -> Document:
    """A sound question of training, by its number."""
    rng = random.Random(f"training:{number}")
    asked: Document = {
        "problem": "training", "model": rng.choice(MODELS), "system": rng.choice([*CHIPS]),
        "chips": rng.choice((4, 8, 16, 32)), "price": f"${rng.uniform(1, 5)}/hour",
        "work": {"global_batch": f"{rng.choice((16, 64))} sequences",
                 "sequence": rng.choice((2048, 4096, 8192)), "tokens": rng.choice((1e10, 3e11))},
        "profile": rng.choice(STACKS), "objective": rng.choice(("time", "cost")),
        "choose": {"schedule": "1f1b", "offload": "none", "overlap": True, "cp": [1, 2],
                   "recompute": rng.choice(("none", "full", ["none", "full"]))},
    }  # fmt: skip
    if rng.random() < 0.3:
        asked["state"] = {"weights": 2, "gradients": 2, "optimizer": rng.choice((4, 8))}
    if rng.random() < 0.3:
        asked["reliability"] = {"mtbf": "30000 hours/chip", "save": "60 s", "restart": "600 s"}
    return asked


@dataclass(frozen=True)
class Machine:
    """Listed figures of a system in base units."""

    peak: float
    bandwidth: float
    memory: float
    node: float
    link: float
    card: float

    def rate(self, size: int, stride: int, pooled: bool) -> float:
        """What a group reaches between its members [byte/s]."""
        if size * stride <= self.node:
            return self.link
        near = min(size, max(1, self.node // stride)) if pooled else 1
        return min(self.link, self.card * near)


@cache
def machine(system: str) -> Machine:
    """The figures of a system."""
    chip = CHIPS[system]
    rows = {row["name"]: row["base"] for row in planner.catalog("systems", system)["figures"]}
    listed = {row["name"] for row in planner.catalog("chips", chip)["figures"]}
    memory = "memory_reported" if "memory_reported" in listed else "memory"
    return Machine(
        figure(chip, "bf16"), figure(chip, "memory_bandwidth"), figure(chip, memory),
        rows["chips_per_domain"], rows["scale_up"], rows["scale_out"],
    )  # fmt: skip


@dataclass(frozen=True)
class Hand:
    """A question with what a step needs, worked out once."""

    asked: Document
    stack: TrainingStack
    k: Mapping[str, float]
    state: Mapping[str, float]

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return int(self.asked["work"]["global_batch"].split()[0])


def by_hand(asked: Document) -> Hand:
    """The stack's coefficients for flash attention in bf16 on the chip."""
    stack = training_stack(asked["profile"])
    place = {"chip": CHIPS[asked["system"]], "precision": "bf16", "kernel": "flash",
             "norm": "plain", "era": stack.eras.get("dense", ""), "part": "dense"}  # fmt: skip
    return Hand(asked, stack, stack.coefficients(place), {**STATE, **asked.get("state", {})})


def stages(hand: Hand, pp: int) -> tuple[float, float, float]:
    """Layers of the fullest, the first and the last stage; the ends count as layers or not."""
    layers, ends = config(hand.asked["model"])["num_hidden_layers"], hand.stack.embedding_layers
    if layers % pp and not (layers + ends) % pp and ends:
        full = (layers + ends) / pp
        return full, full - ends / 2, full - ends / 2
    full = math.ceil(layers / pp)
    return full, full, max(0, layers - full * (pp - 1))


def odd(width: float, tile: int) -> float:
    """How far a width is from a multiple of a tile: 0 to 1, by powers of two."""
    return 1 - math.log2(math.gcd(max(1, round(width)), tile)) / math.log2(tile)


def layer_terms(hand: Hand, layout: Layout) -> dict[str, float]:
    """Time of one layer and micro-batch on a chip, forward and backward, by what it does [s]."""
    model, m, k = config(hand.asked["model"]), machine(hand.asked["system"]), hand.k
    tp, cp, micro, length = layout["tp"], layout["cp"], layout["micro_batch"], _length(hand)
    wide, inner, heads = model["hidden_size"], model["intermediate_size"], _heads(model)
    full, tokens, head = layout["recompute"] == "full", micro * length / cp, head_width(model)
    queries, keys = heads[0] * head, heads[1] * head
    attention = wide * 2 * (queries + keys)
    share = attention / layer_parameters(model)
    uneven = share * (odd((queries + 2 * keys) / tp, 256) + odd(wide, 256)) / 2
    uneven += (1 - share) * (odd(2 * inner / tp, 256) + odd(wide, 256)) / 2
    narrow = 128 * tp * (share * 3 / (queries + 2 * keys) + (1 - share) / inner)
    loss = k["k_mat"] + k["k_narrow"] * narrow + k["k_few"] * 128 / tokens + k["k_uneven"] * uneven
    passes = 3 + full
    matrix = passes * 2 * layer_parameters(model) * tokens / tp / m.peak * loss
    pairs = 4 * queries * micro * length**2 / 2 / (tp * cp)
    scores = (3.5 + full) * (k["k_att"] + k["k_odd"] * odd(head, 64)) * pairs / m.peak
    apart = 1 / tp if layout["sequence_parallel"] else 1.0
    moved = k["k_norm"] * 2 * 10 * wide * apart
    moved += k["k_cut"] * 2 * (2 * (queries + keys) + 3 * inner) / tp
    reduce = k["k_tp"] * 2 * (tp - 1) / tp * tokens * 2 * wide
    tensor = (4 + 2 * full) * (reduce / _rate(hand, tp, 1) + k["t_tp"] * (tp - 1))
    ring = passes * k["k_cp"] * (cp - 1) * 2 * 2 * keys * tokens / (tp * _rate(hand, cp, tp))
    ring = max(0.0, ring - hand.stack.overlaps * scores)
    terms = {"matrix": matrix, "attention": scores, "element_wise": passes * tokens * moved
             / m.bandwidth, "tp": tensor, "cp": ring}  # fmt: skip
    work, launch = sum(terms.values()), passes * k["t_launch"]
    return {**terms, "launch": (work**4 + launch**4) ** 0.25 - work}


def step_terms(hand: Hand, layout: Layout, *, hidden: bool = False) -> dict[str, float]:
    """Time of a step by its terms [s]; and what of the gradients' traffic is hidden."""
    model, m, k = config(hand.asked["model"]), machine(hand.asked["system"]), hand.k
    tp, pp, dp, cp = (layout[name] for name in ("tp", "pp", "dp", "cp"))
    runs, tokens = hand.batch // (dp * layout["micro_batch"]), _tokens(hand, layout)
    layer = layer_terms(hand, layout)
    full, _, last = stages(hand, pp)
    one = sum(layer.values())
    terms = {name: runs * full * value for name, value in layer.items()}
    gathered = 1 if hand.stack.gathered else tp
    logits = 4 * (1 + hand.stack.eager) * model["vocab_size"] * tokens / gathered
    head = 3 * 2 * table_parameters(model) * tokens / (tp * m.peak) * k["k_mat"]
    head += 3 * k["k_logit"] * logits / m.bandwidth
    over = max(0.0, head - (full - last) * one)
    rate = m.link if pp * tp * cp * dp <= m.node else m.card
    sent = k["k_pp"] * tokens * 2 * model["hidden_size"] / (tp * rate) + k["t_pp"]
    hop = 2 * sent if pp > 1 else 0.0
    slow = full * one + over + hop
    bubble = max(0.0, model["num_hidden_layers"] * one + head + pp * hop - slow)
    rest = norm_parameters(model) / model["num_hidden_layers"]
    held = full * (layer_parameters(model) / tp + rest) + 2 * table_parameters(model) / (tp * pp)
    zero, group, state = layout["zero"], dp * cp, hand.state
    wire = hand.stack.wire * (1 if zero == 1 else runs if zero >= 2 else 2)
    wire += state["weights"] * (1 if zero in (1, 2) else 2 * runs if zero == 3 else 0)
    traffic = k["k_dp"] * wire * held * (group - 1) / (group * _rate(hand, group, tp))
    calls = 1 + (zero >= 1) + (runs - 1) * (zero >= 2) + (2 * runs - 1) * (zero >= 3)
    traffic += k["t_dp"] * full * calls if group > 1 else 0.0
    window = hand.stack.overlaps * k["k_hide"] * (slow - hop) * (runs if zero >= 2 else 2 / 3)
    states = held * (1 / group if zero else 1.0)
    update = k["k_opt"] * 2 * (state["optimizer"] + state["weights"]) * states / m.bandwidth
    every = {**terms, "head": runs * over, "pp": runs * hop, "bubble": bubble,
             "dp_exposed": max(0.0, traffic - window), "optimizer": update,
             "constant": k["t_fixed"]}  # fmt: skip
    return every | {"hidden": min(traffic, window)} if hidden else every


def memory(hand: Hand, layout: Layout, *, numbered: bool = False) -> dict[str, float]:
    """Memory of the chip that needs most, by part [byte], and the number of its stage."""
    model, k, state = config(hand.asked["model"]), hand.k, hand.state
    tp, pp, wide = layout["tp"], layout["pp"], model["hidden_size"]
    zero, group, runs = layout["zero"], layout["dp"] * layout["cp"], 0
    runs = hand.batch // (layout["dp"] * layout["micro_batch"])
    heads, tokens, head = _heads(model), _tokens(hand, layout), head_width(model)
    apart = 1 / tp if layout["sequence_parallel"] else 1.0
    normed = 8 * wide if hand.stack.eager else 0
    whole = (4 if hand.stack.gathered else 8) * wide + normed
    gated = 3 + hand.stack.eager
    split = 2 * (2 * head * sum(heads) + gated * model["intermediate_size"])
    one = tokens * (4 * wide * hand.stack.gathered + whole * apart + split / tp)
    waits, works = (one, 0.0)
    if layout["recompute"] == "full":
        waits, works = tokens * 2 * wide * apart, one
    gathered = 1 if hand.stack.gathered else tp
    logits = k["k_loss"] * 4 * (1 + hand.stack.eager) * model["vocab_size"] * tokens / gathered
    rest = norm_parameters(model) / model["num_hidden_layers"]
    layer, table = layer_parameters(model) / tp + rest, table_parameters(model) / tp
    full, first, last = stages(hand, pp)
    every = [(first, table * (2 if pp == 1 else 1), min(runs, pp), logits if pp == 1 else 0.0)]
    if pp > 1:
        every += [(full, 0.0, min(runs, max(1, pp - 1)), 0.0), (last, table, 1, logits)]
    found = []
    for layers, tables, waves, scores in every:
        held = k["k_state"] * (layers * layer + tables)
        found.append({
            "weights": held * state["weights"] / (group if zero >= 3 else 1),
            "gradients": held * state["gradients"] / (group if zero >= 2 else 1),
            "optimizer": held * state["optimizer"] / (group if zero >= 1 else 1),
            "activations": k["k_act"] * (layers * waves * waits + works),
            "logits": scores, "buffers": k["M_base"],
        })  # fmt: skip
    worst = max(range(len(found)), key=lambda place: sum(found[place].values()))
    number = (1, min(2, pp), pp)[worst]
    return found[worst] | {"stage": number} if numbered else found[worst]


def _length(hand: Hand) -> int:
    return int(hand.asked["work"]["sequence"])


def _tokens(hand: Hand, layout: Layout) -> float:
    return float(layout["micro_batch"] * _length(hand) / layout["cp"])


def _heads(model: Mapping[str, Any]) -> tuple[int, int]:
    return model["num_attention_heads"], model.get("num_key_value_heads") or model[
        "num_attention_heads"
    ]


def _rate(hand: Hand, size: int, stride: int) -> float:
    return machine(hand.asked["system"]).rate(size, stride, hand.stack.pooled_cards)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if not number % each]


def layouts(hand: Hand) -> Iterator[dict[str, Any]]:
    """Every layout that uses all chips."""
    asked, model = hand.asked, config(hand.asked["model"])
    chips, again = asked["chips"], asked["choose"]["recompute"]
    for tp, cp, pp in product(_divisors(chips), (1, 2), _divisors(chips)):
        dp, left = divmod(chips, tp * cp * pp)
        if left or not dp or hand.batch % dp or model["num_attention_heads"] % tp:
            continue
        if pp > model["num_hidden_layers"]:
            continue
        deepest = 3 if hand.stack.zero_pipeline or pp == 1 else 1
        along = (False, True) if tp > 1 else (False,)
        for micro, zero, sp, recompute in product(
            _divisors(hand.batch // dp), range(deepest + 1), along,
            [again] if isinstance(again, str) else again,
        ):  # fmt: skip
            yield {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "micro_batch": micro, "zero": zero,
                   "sequence_parallel": sp, "recompute": recompute}  # fmt: skip


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    hand, plan = by_hand(asked), document["plan"]
    room = machine(asked["system"]).memory * hand.stack.memory_share
    fitting = [each for each in layouts(hand) if sum(memory(hand, each).values()) <= room]
    if plan is None:
        if fitting:
            yield f"no plan, but {fitting[0]} fits"
        return
    terms, layout = step_terms(hand, plan["layout"]), plan["layout"]
    yield from _run(hand, plan)
    for name, value in terms.items():
        yield from differs(f"term {name}", plan["time_per_step"]["terms"].get(name, 0.0), value)
    step = sum(plan["time_per_step"]["terms"].values())
    yield from differs("the step is the sum of its terms", plan["step_time"], step)
    yield from _counts(hand, plan, terms, room)
    shown, parts = plan["memory_per_chip"], memory(hand, layout)
    for name in PARTS:
        yield from differs(f"memory of {name}", shown[name], parts[name])
    yield from differs("free memory", shown["free"], room - sum(parts.values()))
    if not plan["fits"] or shown["free"] < 0:
        yield "a plan that does not fit"
    best = min((sum(step_terms(hand, each).values()) for each in fitting), default=math.inf)
    if plan["chips_used"] == plan["chips"]:
        yield from differs("the quickest layout of all", plan["step_time"], best)
    elif plan["step_time"] > best * (1 + CLOSE):
        yield f"a step takes {plan['step_time']} s, {best} s with all chips"
    if document["bound"]["step_time"] > plan["step_time"] * (1 + CLOSE):
        yield "the bound lies above the step"


def _counts(hand: Hand, plan: Document, terms: Mapping[str, float], room: float) -> Iterator[str]:
    """What follows from the layout alone, and what waits for the network."""
    layout, shown = plan["layout"], plan["memory_per_chip"]
    hidden = step_terms(hand, layout, hidden=True)["hidden"]
    exposed = sum(terms[name] for name in ("tp", "cp", "pp", "dp_exposed"))
    step = plan["time_per_step"]
    for what, value, by_hand in (
        ("ep", layout["ep"], 1), ("tp of experts", layout["tp_expert"], layout["tp"]),
        ("virtual stages", layout["virtual_stages"], 1), ("room", shown["total"], room),
        ("stages", shown["stages"], layout["pp"]),
        ("worst stage", shown["worst_stage"], memory(hand, layout, numbered=True)["stage"]),
        ("micro-batches", plan["micro_batches"],
         hand.batch // (layout["dp"] * layout["micro_batch"])),
        ("hidden", step["hidden"].get("dp_hidden", 0.0), hidden),
        ("all that is hidden", step["hidden_communication"], hidden),
        ("exposed", step["exposed_communication"], exposed),
    ):  # fmt: skip
        yield from differs(what, value, by_hand)


def _run(hand: Hand, plan: Document) -> Iterator[str]:
    """Rates, days and dollars of the whole run."""
    asked, step, chips = hand.asked, plan["step_time"], plan["chips"]
    model, work = config(asked["model"]), asked["work"]
    tokens = hand.batch * _length(hand)
    scores = 2 * head_width(model) * _heads(model)[0] * _length(hand)
    deep = model["num_hidden_layers"]
    passed = 2 * (deep * layer_parameters(model) + table_parameters(model)) + deep * scores
    used = plan["chips_used"] * machine(asked["system"]).peak
    again = passed - 2 * table_parameters(model) if plan["layout"]["recompute"] == "full" else 0.0
    good, price = 1.0, float(asked["price"].strip("$").split("/")[0]) / HOUR
    if "reliability" in asked:
        between, save, restart = 30_000 * HOUR / plan["chips_used"], 60.0, 600.0
        interval = plan["checkpoint_interval"]
        yield from differs("time between failures", plan["time_between_failures"], between)

        def left(tau: float) -> float:
            return 1 - save / tau - (restart + tau / 2) / between

        good = plan["goodput"]
        yield from differs("goodput", good, left(interval), 1e-3)
        if max(left(interval * 1.02), left(interval / 1.02)) > left(interval):
            yield f"checkpoints every {interval} s are not the best"
    usd = chips * price * step / (tokens * good)
    for name, value in {
        "tokens_per_s": tokens / step, "tokens_per_s_per_chip": tokens / step / chips,
        "mfu": 3 * tokens * passed / (step * used), "steps": work["tokens"] / tokens,
        "hfu": tokens * (3 * passed + again) / (step * used),
        "days": work["tokens"] / tokens * step / good / DAY, "usd": usd * work["tokens"],
        "usd_per_mtok": usd * 1e6, "bubble": plan["time_per_step"]["terms"].get("bubble", 0) / step,
    }.items():  # fmt: skip
        yield from differs(name, plan[name], value, 1e-5)
    if plan["energy"] is not None:
        whole = plan["joule_per_token"] * work["tokens"]
        yield from differs("energy of the run", plan["energy"], whole)
