"""Caches kept between requests: costs of a token by hand, hit rates by replaying a trace.

Every tier's cost is bytes times price times time; every lifetime that could matter is tried on the
trace, block by block, with clocks that use sets back.
"""

from __future__ import annotations

import random
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.campaign.rechecks.common import (
    HOUR,
    Document,
    close,
    config,
    differs,
    figure,
    head_width,
    layer_parameters,
    norm_parameters,
    table_parameters,
)

MTOK = 1e6
MODELS = ("llama-3.1-8b", "llama-2-7b", "llama-2-13b", "llama-3.1-70b", "mistral-7b-v0.3")
CHIPS = {"hgx-h100": "h100", "hgx-h200": "h200", "hgx-a100": "a100"}
Trace = list[tuple[float, list[str]]]


@cache
def folder() -> Path:
    """Where traces are written; one of each process."""
    return Path(tempfile.mkdtemp(prefix="rechecks-"))


def trace(number: int) -> Trace:
    """Conversations that go on at random times, some from one beginning."""
    rng = random.Random(f"trace:{number}")
    now, talks, rows = 0.0, {}, []
    for turn in range(rng.choice((20, 60, 120))):
        now = round(now + rng.expovariate(1 / rng.choice((2.0, 30.0, 300.0))), 3)
        talk = rng.randrange(8)
        grown = talks.setdefault(talk, ["system"])
        grown.append(f"{talk}-{turn}")
        rows.append((now, grown[: rng.randint(1, len(grown))]))
    return rows


def question(number: int) -> Document:
    """A sound question of caches, by its number."""
    rng = random.Random(f"cache:{number}")
    tiers: list[Document] = [{"name": "dram", "price": f"${rng.uniform(0.001, 0.02)}/GB/hour"}]
    if rng.random() < 0.6:
        tiers.append(
            {"name": "flash", "price": f"${rng.uniform(0.02, 0.3)}/GB/month", "capacity": "30 TB",
             "read_rate": f"{rng.choice((3, 14, 28))} GB/s", "shared": rng.choice((1, 4, 8))}
        )  # fmt: skip
    asked: Document = {
        "problem": "cache", "model": rng.choice(MODELS), "system": rng.choice([*CHIPS]),
        "price": f"${rng.uniform(1, 6)}/hour", "chips": rng.choice((1, 2, 8)), "tiers": tiers,
        "prefill_efficiency": rng.uniform(0.2, 0.7), "answer": f"{rng.choice((0, 5, 60))} s",
        "sharing": rng.choice((1, 1, 4)), "weights": "bf16",
    }  # fmt: skip
    if rng.random() < 0.7:
        asked["prefix"] = rng.choice((500, 8000, 60_000))
    if rng.random() < 0.5:
        asked["margin"] = rng.uniform(0, 0.8)
    if rng.random() < 0.5:
        file = folder() / f"trace-{number}.csv"
        rows = (f"{now},{' '.join(blocks)}" for now, blocks in trace(number))
        file.write_text("timestamp_s,block_hashes\n" + "\n".join(rows), encoding="utf-8")
        return {**asked, "reuse": {"trace": str(file), "block": 64, "capacity": [3, 10, 40],
                                   "ttl": ["1 s", "20 s", "500 s"]}}  # fmt: skip
    holds = rng.sample((5, 60, 300, 1800, 7200, 90_000), 3)
    return {**asked, "reuse": {f"{hold} s": rng.uniform(0.05, 1.0) for hold in holds}}


def costs(asked: Document, scenario: Document) -> Document:
    """Bytes of a token, cost of computing one again and of holding one [USD/token], by hand."""
    model, chip = config(asked["model"]), CHIPS[asked["system"]]
    heads, deep = model["num_attention_heads"], model["num_hidden_layers"]
    held = 2 * 2 * deep * (model.get("num_key_value_heads") or heads) * head_width(model)
    active = deep * layer_parameters(model) + table_parameters(model) + norm_parameters(model)
    work, prefix = 2 * active, asked.get("prefix")
    if prefix:
        window = model.get("sliding_window") or prefix
        pairs = sum(min(row, window) for row in range(1, prefix + 1))
        work += 4 * deep * heads * head_width(model) * pairs / prefix
    price = scenario["price"]
    peak = figure(chip, "bf16") * scenario["prefill_efficiency"]
    byte = price / figure(chip, "memory")
    rates: Document = {"HBM": {"byte": byte, "fetch": 0.0, "time": 0.0, "drain": None}}
    for tier in asked["tiers"]:
        amount, over = tier["price"].strip("$").split("/GB/")
        each = float(amount) / 1e9 / {"hour": HOUR, "month": 30.4375 * 24 * HOUR}[over]
        fetch, time, drain = 0.0, None, None
        if "read_rate" in tier:
            rate = float(tier["read_rate"].split()[0]) * 1e9
            fetch, drain = each * 30e12 * held / rate, 30e12 / rate
            time = (prefix or 0) * held / (rate * asked["chips"] / tier["shared"])
        rates[tier["name"]] = {"byte": each, "fetch": fetch, "time": time, "drain": drain}
    occupied = byte * held * float(asked["answer"].split()[0])
    return {"held": held, "again": work / peak * price, "occupied": occupied, "tiers": rates,
            "rent": price}  # fmt: skip


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    plan, parts = document["plan"], costs(asked, document["scenario"])
    yield from differs("bytes of a token", plan["kv_bytes_per_token"], parts["held"])
    yield from differs("a miss", plan["miss"], parts["again"] * MTOK, 2e-4)
    parts["again"] = plan["miss"] / MTOK  # norms and biases are counted or not: within 2e-4 above
    for hold in plan["holds"]:
        yield from _decision(asked, parts, hold)
    yield from differs("cost", plan["cost"], plan["holds"][0]["cost"])
    if "prefix" in asked:
        whole = asked["prefix"] * parts["again"] / document["scenario"]["price"] / asked["chips"]
        yield from differs("time of prefill", plan["prefill_time"], whole)
    for tier in plan["tiers"]:
        rate, hourly = parts["tiers"][tier["name"]], HOUR * parts["held"]
        hourly *= rate["byte"] / asked["sharing"]
        yield from differs("a GB for an hour", tier["usd_per_gb_hour"], rate["byte"] * 1e9 * HOUR)
        yield from differs("a token for an hour", tier["usd_per_mtok_hour"], hourly * MTOK)
        saved = parts["again"] - rate["fetch"]
        yield from differs("cost of reading", tier["fetch"], rate["fetch"] * MTOK)
        if rate["drain"]:
            yield from differs("time of reading all", tier["drain_time"], rate["drain"])
        if "prefix" in asked and rate["time"] is not None:
            yield from differs("time of reading", tier["fetch_time"], rate["time"])
            yield from differs("time saved", tier["ttft_saved"], whole - rate["time"], 1e-5)
        if saved > 0:
            yield from differs("break-even", tier["break_even_hold"], saved / hourly * HOUR)
            yield from differs("reads an hour", tier["reads_per_hour"], hourly / saved)
    if "trace" in (asked["reuse"] or {}):
        rows = [
            (float(line.split(",")[0]), line.split(",")[1].split())
            for line in Path(asked["reuse"]["trace"]).read_text(encoding="utf-8").split("\n")[1:]
        ]
        yield from _replayed(asked, parts, plan["trace"], rows)


def _decision(asked: Document, parts: Document, hold: Document) -> Iterator[str]:
    """Every choice at one hold time by hand; none is cheaper than the answer's."""
    chance, shared = hold["hit"], asked["sharing"]
    choices = {"recompute": chance * parts["again"] * MTOK}
    for name, rate in parts["tiers"].items():
        store = rate["byte"] * parts["held"] * hold["hold"] / shared
        choices[name] = (store + chance * rate["fetch"]) * MTOK
        option = next(row for row in hold["options"] if row["tier"] == name)
        yield from differs(f"cost in {name}", option["cost"], choices[name])
        hit = {"store": store / chance, "fetch": rate["fetch"], "hbm": parts["occupied"] / shared}
        for part, value in hit.items():
            yield from differs(f"{part} of a hit in {name}", option["hit"][part], value * MTOK)
        total = sum(hit.values()) * MTOK
        yield from differs(f"a hit in {name}", option["hit"]["total"], total)
        yield from differs(f"least price in {name}", option["floor"], total)
        saved = parts["again"] - rate["fetch"]
        if saved > 0:
            yield from differs("chance that pays", option["hit_chance_needed"], store / saved)
        share = total / MTOK / parts["again"]
        yield from differs("a hit over a miss", option["hit"]["share"], share)
        if asked.get("margin") is not None:
            yield from differs("price", option["price"], total / (1 - asked["margin"]))
    yield from differs("again", hold["recompute"], choices["recompute"])
    yield from differs("the cheapest choice", hold["cost"], min(choices.values()))
    chosen = choices[hold["tier"] or "recompute"]
    yield from differs("the choice named", chosen, min(choices.values()))
    if hold["choice"] != {None: "recompute", "HBM": "keep"}.get(hold["tier"], "move"):
        yield f"{hold['choice']} in {hold['tier']}"
    cheapest = min(hold["options"], key=lambda row: row["cost"])
    for key in ("hit_chance_needed", *(("floor", "price") if hold["tier"] else ())):
        if hold[key] != cheapest[key]:
            yield f"{key} of a hold time is {hold[key]}, of its tier {cheapest[key]}"
    if hold["tier"] and "prefix" in asked:
        saves = asked["prefix"] * parts["again"] / parts["rent"] / asked["chips"]
        read = parts["tiers"][hold["tier"]]["time"]
        if read is not None:  # it has a read rate
            saves -= read
            yield from differs("time that a hit saves", hold["ttft_saved"], saves, 1e-5)


def replay(rows: Trace, lifetime: float) -> tuple[int, int, float]:
    """Hits, uses and block-seconds held where every block lives so long after its last use."""
    clock: dict[str, float] = {}
    hits = uses = 0
    held = 0.0
    for now, prompt in rows:
        whole = True
        for block in prompt:
            uses += 1
            whole = whole and block in clock and round(now - clock[block], 9) <= lifetime
            hits += whole
            held += min(now - clock[block], lifetime) if block in clock else 0.0
        clock |= dict.fromkeys(prompt, now)
    return hits, uses, held + lifetime * len(clock)


def _evicted(rows: Trace, capacity: int) -> float:
    """Share of the blocks found where the least recently used give way after each request."""
    recent: OrderedDict[str, None] = OrderedDict()
    hits = uses = 0
    for _, prompt in rows:
        lost = [block not in recent for block in prompt]
        hits += lost.index(True) if any(lost) else len(prompt)
        uses += len(prompt)
        for block in prompt:
            recent.pop(block, None)
            recent[block] = None
        while len(recent) > capacity:
            recent.pop(next(iter(recent)))
    return hits / uses


def _replayed(asked: Document, parts: Document, shown: Document, rows: Trace) -> Iterator[str]:
    uses = sum(len(prompt) for _, prompt in rows)
    if (shown["requests"], shown["blocks"]) != (len(rows), uses):
        yield f"{shown['requests']} requests of {shown['blocks']} blocks, not {len(rows)}, {uses}"
    for row in shown["ttl"]:
        yield from differs(
            "found at a lifetime", row["hit_rate"], replay(rows, row["ttl"])[0] / uses
        )
    for row in shown["lru"]:
        yield from differs("found in a cache", row["hit_rate"], _evicted(rows, row["blocks"]))
    gaps: set[float] = set()
    before: dict[str, float] = {}
    for now, prompt in rows:
        gaps |= {round(now - before[block], 9) for block in prompt if block in before}
        before |= dict.fromkeys(prompt, now)
    tried = {gap: replay(rows, gap) for gap in gaps}
    for row in shown["best_ttl"]:
        rate = parts["tiers"][row["tier"]]

        def saved(ended: tuple[int, int, float], rate: Any = rate) -> float:
            kept = ended[0] * (parts["again"] - rate["fetch"])
            return float(kept - ended[2] * rate["byte"] * parts["held"]) / uses / parts["again"]

        best = max([0.0, *map(saved, tried.values())])
        yield from differs(f"saved by the best lifetime in {row['tier']}", row["saved"], best)
        if row["ttl"] is not None and not close(saved(replay(rows, row["ttl"])), best):
            yield f"{row['ttl']} s in {row['tier']} is not the lifetime that saves most"
