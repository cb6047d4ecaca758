"""Small fleets: the least bill by trying every plan, its rules hour by hour, its bills by hand.

`tests.cases.fleet_brute_force` states the rules from the scenario alone, without product code.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from tests.campaign.rechecks.common import HOUR, Document, close, differs
from tests.cases.fleet_brute_force import (
    done_in_time,
    firm,
    least_bill,
    machines,
    room,
    small_scenario,
)
from tests.cases.fleet_layouts import least_of_one_layout


def question(number: int) -> Document:
    """A sound fleet of at most three models, three pools and four hours, by its number."""
    rng = random.Random(f"fleet:{number}")
    return small_scenario(20_000 + number) | {"layouts": rng.choice(("free", "one"))}


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    least = least_bill(asked)
    if asked["layouts"] == "one" and not math.isnan(least):
        least = least_of_one_layout(asked, least_bill)
    plan = document["plan"]
    if plan is None:
        if math.isfinite(least):
            yield f"no plan, but one costs {least / asked['hours']} USD/hour"
        return
    if not math.isnan(least):
        yield from differs("the least bill", plan["usd_per_hour"], least / asked["hours"])
    names = [(m, column) for m in asked["models"] for column in asked["models"][m]["columns"]]
    table = _states(asked, plan, names)
    yield from _rules(asked, plan, names, table)
    yield from _bills(asked, plan, names, table)
    proof = document["certificate"]
    if document["bound"] > plan["usd_per_hour"] * (1 + 1e-6):
        yield "the bound lies above the bill"
    yield from differs("objective", proof["objective"], plan["usd_per_hour"])
    for row in document["beside"]:
        usd, more = row["usd_per_hour"], row["more"]
        if (
            usd is not None
            and plan["usd_per_hour"]
            and not close(more, usd / plan["usd_per_hour"] - 1, absolute=2e-6)
        ):
            yield f"{row['restriction']}: {usd} USD/hour are not {more:+.3%}"


def _states(asked: Document, plan: Document, names: list[Any]) -> list[tuple[int, ...]]:
    """Firm replicas of every column in each hour, then those on spot machines."""
    nothing = [0] * asked["hours"]
    every, spots = [], []
    for model, column in names:
        words = f"{column['pool']} x{column['chips']}"
        every.append(plan["replicas"][model].get(words, nothing))
        spots.append(plan["on_spot"][model].get(words, nothing))
    return [
        (*(a[t] - s[t] for a, s in zip(every, spots, strict=True)), *(s[t] for s in spots))
        for t in range(asked["hours"])
    ]


def _rules(
    asked: Document, plan: Document, names: list[Any], table: list[tuple[int, ...]]
) -> Iterator[str]:
    """Demand, spare, share on firm machines, room in machines, limits of contracts."""
    pools = asked["pools"]
    for t, now in enumerate(table):
        needed, _ = machines(asked, names, now)
        for k, (name, pool) in enumerate(pools.items()):
            reserved = plan["reserved"][name]
            there = reserved + asked.get("have", {}).get(name, 0) + plan["on_demand"][name][t]
            if there < needed[k]:
                yield f"hour {t}: {there} machines of {name} hold replicas of {needed[k]}"
            if reserved > pool.get("reserved", {"most": 0})["most"]:
                yield f"{reserved} machines of {name} are reserved"
            if plan["spot"][name][t] > pool.get("spot", {"machines": 0})["machines"]:
                yield f"hour {t}: {plan['spot'][name][t]} spot machines of {name}"
            if plan["on_demand"][name][t] > pool["on_demand"].get("most", math.inf):
                yield f"hour {t}: {plan['on_demand'][name][t]} machines of {name} on demand"
    for model, keys in asked["models"].items():
        levels = keys["demand"]["hourly"]
        rooms = [room(asked, names, model, now, table[t - 1]) for t, now in enumerate(table)]
        if "deferrable" in keys["demand"]:
            window = min(int(keys["demand"]["deferrable"] // HOUR), asked["hours"] - 1)
            if not done_in_time(levels, tuple(x + 1e-7 for x in rooms), window):
                yield f"{model}: work waits too long"
            continue
        for t, level in enumerate(levels):
            if rooms[t] < level - 1e-6:
                yield f"{model}: hour {t}: {rooms[t]} of {level} requests/s"
            if firm(names, model, table[t]) < (1 - asked["spot_share"]) * level - 1e-6:
                yield f"{model}: hour {t}: too much rests on spot machines"


def _bills(
    asked: Document, plan: Document, names: list[Any], table: list[tuple[int, ...]]
) -> Iterator[str]:
    """The bill from prices and machines; each model's from its chips and its starts."""
    hours, count = asked["hours"], len(names)
    usd = dict.fromkeys(asked["models"], 0.0)
    whole = 0.0
    for name, pool in asked["pools"].items():
        machine = pool["size"] * HOUR
        on_demand = sum(plan["on_demand"][name]) * pool["on_demand"]["price"]
        reserved = plan["reserved"][name] * hours * pool.get("reserved", {"price": 0})["price"]
        spot = pool.get("spot", {"price": 0, "lost": 0, "redo": 0})
        lost = sum(plan["spot"][name]) * spot["price"] * (1 + spot["lost"] * spot["redo"])
        mine = [i for i, (_, column) in enumerate(names) if column["pool"] == name]
        for paid, first in (((on_demand + reserved) * machine, 0), (lost * machine, count)):
            whole += paid
            chips = {i: _used(names[i][1], pool) * sum(now[first + i] for now in table)
                     for i in mine}  # fmt: skip
            for i, held in chips.items():
                usd[names[i][0]] += paid * held / sum(chips.values()) if held else 0.0
    for i, (model, column) in enumerate(names):
        pool = asked["pools"][column["pool"]]
        there = [now[i] + now[count + i] for now in table]
        begun = sum(max(0, there[t] - there[t - 1]) for t in range(hours))
        cost = begun * _used(column, pool) * pool["on_demand"]["price"] * asked["start"]["time"]
        usd[model] += cost
        whole += cost
    yield from differs("bill", plan["usd_per_hour"], whole / hours)
    yield from differs("a day's bill", plan["usd_per_day"], 24 * whole / hours)
    month = 24 * whole / hours * 365 / 12
    yield from differs("a month's bill", plan["usd_per_month"], month, 1e-3)
    bills = plan["per_model"]
    if any(usd.values()):
        summed = sum(row["usd_per_hour"] for row in bills.values())
        yield from differs("bills of the models", summed, sum(usd.values()) / hours)
        yield from differs("shares", sum(row["share_of_bill"] for row in bills.values()), 1.0)
    for model, row in bills.items():
        requests = sum(asked["models"][model]["demand"]["hourly"]) * HOUR
        yield from differs(f"bill of {model}", row["usd_per_hour"], usd[model] / hours)
        each = usd[model] / requests * 1000
        yield from differs("a thousand requests", row["usd_per_1000_requests"], each)
    for name, share in plan["utilisation"].items():
        pool = asked["pools"][name]
        held = sum(
            _used(column, pool) * (now[i] + now[count + i])
            for i, (_, column) in enumerate(names) if column["pool"] == name for now in table
        )  # fmt: skip
        paid = (plan["reserved"][name] + asked.get("have", {}).get(name, 0)) * hours
        paid += sum(plan["on_demand"][name]) + sum(plan["spot"][name])
        yield from differs(f"utilisation of {name}", share, held / (paid * pool["size"]))


def _used(column: Document, pool: Document) -> int:
    """Chips that a replica takes: of whole machines where it is larger than one."""
    chips, size = column["chips"], pool["size"]
    return int(chips if chips <= size else math.ceil(chips / size) * size)
