"""Small fleets drawn by a seed, and the least bill of each by trying every plan.

The rules are stated here once more, from the scenario alone: prices are per chip, hours are cyclic,
and nothing of the planner is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np

Scenario = dict[str, Any]
MOST_TRIED = 6000  # combinations of an hour
TRIED = 250  # states of linked hours; above it no bill is given
State = tuple[int, ...]  # firm replicas of every column, then spot ones


def small_scenario(seed: int) -> Scenario:
    """A fleet of at most 3 models, 3 pools and 4 hours; half link their hours."""
    draw = np.random.default_rng(seed)
    style = ("plain", "starts", "plain", "waits", "starts", "plain")[seed % 6]
    linked = style != "plain"
    models = int(draw.integers(1, 2 if linked else 4))
    pools = int(draw.integers(1, 3 if linked else 4))
    hours = int(draw.integers(2, 4 if linked else 5))
    names = [f"p{k}" for k in range(pools)]
    scenario: Scenario = {
        "problem": "fleet", "units": "base", "hours": hours, "models": {},
        "pools": {name: _pool(draw) for name in names},
        "spare": {"replicas": int(draw.integers(0, 2)), "headroom": float(draw.choice([0, 0.15]))},
        "start": {"time": float(draw.choice([300, 600, 1800])) if style == "starts" else 0.0},
        "spot_share": float(draw.choice([0.3, 0.5, 1.0])),
    }  # fmt: skip
    for m in range(models):
        columns = []
        for name in draw.permutation(names)[: 2 if linked or models > 1 else 3]:
            size = scenario["pools"][name]["size"]
            for chips in draw.choice([1, 2, 3, 4, 8, 12], int(draw.integers(1, 3)), replace=False):
                if chips <= 2 * size and len(columns) < (2 if linked or models > 1 else 3):
                    rate = float(np.round(chips * draw.uniform(0.7, 1.3), 2))
                    columns.append({"pool": str(name), "chips": int(chips), "rate": rate})
        if not columns:
            columns = [{"pool": names[0], "chips": 1, "rate": 1.5}]
        most = max(c["rate"] for c in columns) * (1.6 if linked or models > 1 else 2.4)
        demand: Scenario = {
            "hourly": [float(np.round(draw.uniform(0.2, most), 2)) for _ in range(hours)]
        }
        if style == "waits":
            demand["deferrable"] = 3600.0 * int(draw.integers(1, 3))
        scenario["models"][f"m{m}"] = {"demand": demand, "columns": columns}
    if draw.random() < 0.3:
        scenario["have"] = {names[0]: int(draw.integers(1, 3))}
    return scenario


def _pool(draw: np.random.Generator) -> Scenario:
    rent = draw.uniform(1.5, 5) / 3600
    pool: Scenario = {"size": int(draw.choice([4, 8])), "on_demand": {"price": rent}}
    if draw.random() < 0.25:
        pool["on_demand"]["most"] = int(draw.integers(1, 6))
    if draw.random() < 0.7:
        most = int(draw.integers(1, 4))
        pool["reserved"] = {"price": rent * draw.uniform(0.5, 1.05), "most": most}
    if draw.random() < 0.6:
        pool["spot"] = {
            "price": rent * draw.uniform(0.4, 0.9), "machines": int(draw.integers(1, 4)),
            "lost": float(draw.choice([0.0, 0.05, 0.2])),
            "redo": float(draw.choice([0.0, 0.5, 1.0])),
        }  # fmt: skip
    return pool


def least_bill(scenario: Scenario) -> float:
    """The least bill over the horizon [USD]; infinite where no plan keeps the rules.

    NaN where there are too many plans to try.
    """
    columns = [(m, c) for m in scenario["models"] for c in scenario["models"][m]["columns"]]
    starts = scenario["start"]["time"] / 3600
    waits = any("deferrable" in m["demand"] for m in scenario["models"].values())
    if starts or waits:
        return _linked(scenario, columns, starts, waits)
    return _apart(scenario, columns)


def chance_lost(pool: Any, chips: int) -> float:
    """The chance that one of a replica's spot machines is gone in an hour."""
    return float(1 - (1 - pool.get("spot", {}).get("lost", 0.0)) ** math.ceil(chips / pool["size"]))


def room(scenario: Scenario, columns: list[Any], model: str, now: State, before: State) -> float:
    """What a model's replicas carry, without its spare and beside its headroom [seq/s]."""
    count, tau = len(columns), scenario["start"]["time"] / 3600
    carried = largest = 0.0
    for i, (name, column) in enumerate(columns):
        if name != model:
            continue
        lost = chance_lost(scenario["pools"][column["pool"]], column["chips"])
        there, was = now[i] + now[count + i], before[i] + before[count + i]
        carried += column["rate"] * (now[i] + (1 - lost) * now[count + i])
        carried -= column["rate"] * tau * max(0, there - was)
        largest = max(largest, column["rate"] if there else 0.0)
    spare = scenario["spare"]
    if spare["replicas"] and not largest:
        return -1.0
    return (carried - spare["replicas"] * largest) / (1 + spare["headroom"])


def firm(columns: list[Any], model: str, now: State) -> float:
    """What a model's replicas on firm machines serve [seq/s]."""
    return sum(c["rate"] * now[i] for i, (name, c) in enumerate(columns) if name == model)


@cache
def bins(parts: tuple[int, ...], size: int) -> int:
    """The fewest machines that hold replicas of so many chips, each in one or in whole ones."""
    whole = sum(math.ceil(part / size) for part in parts if part >= size)
    small = [part for part in parts if part < size]
    if not small:
        return whole
    rooms: list[int] = []
    for part in sorted(small, reverse=True):  # first fit; as few as their chips need is fewest
        place = next((i for i, left in enumerate(rooms) if left >= part), None)
        if place is None:
            rooms.append(size)
            place = len(rooms) - 1
        rooms[place] -= part
    if len(rooms) == math.ceil(sum(small) / size):
        return whole + len(rooms)
    return whole + min(
        (len(rooms) for rooms in _packings(tuple(sorted(small, reverse=True)), size)), default=0
    )


def _packings(parts: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """Every way to put parts into machines, as the room that is left in each."""
    if not parts:
        yield ()
        return
    for rooms in set(_packings(parts[1:], size)):
        yield tuple(sorted((*rooms, size - parts[0])))
        for i, left in enumerate(rooms):
            if left >= parts[0]:
                yield tuple(sorted((*rooms[:i], left - parts[0], *rooms[i + 1 :])))


def machines(scenario: Scenario, columns: list[Any], now: State) -> tuple[list[int], float]:
    """Firm machines of each pool that a state needs, and what its spot machines cost."""
    count, needed, usd = len(columns), [], 0.0
    for name, pool in scenario["pools"].items():
        mine = [i for i, (_, c) in enumerate(columns) if c["pool"] == name]
        chips = {i: columns[i][1]["chips"] for i in mine}
        needed.append(
            bins(tuple(sorted(chips[i] for i in mine for _ in range(now[i]))), pool["size"])
        )
        lost = bins(
            tuple(sorted(chips[i] for i in mine for _ in range(now[count + i]))), pool["size"]
        )
        if lost:
            spot = pool["spot"]
            if lost > spot["machines"]:
                return needed, math.inf
            hourly = 3600 * pool["size"] * spot["price"]
            usd += lost * hourly * (1 + spot["lost"] * spot["redo"])
    return needed, usd


def _reservations(scenario: Scenario, most: list[int]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every number of reserved machines, and what they cost over the horizon."""
    pools = list(scenario["pools"].values())
    limits = [min(p["reserved"]["most"], n) if "reserved" in p else 0
              for p, n in zip(pools, most, strict=True)]  # fmt: skip
    for counts in product(*(range(limit + 1) for limit in limits)):
        hourly = sum(
            n * 3600 * p["size"] * p["reserved"]["price"]
            for n, p in zip(counts, pools, strict=True)
            if n
        )
        yield counts, hourly * scenario["hours"]


def _rented(scenario: Scenario, needed: np.ndarray, reserved: tuple[int, ...]) -> np.ndarray:
    """What machines on demand cost beside those reserved and owned; needs are (n, pools)."""
    usd = np.zeros(len(needed))
    for k, (name, pool) in enumerate(scenario["pools"].items()):
        more = np.maximum(0, needed[:, k] - reserved[k] - scenario.get("have", {}).get(name, 0))
        usd += more * 3600 * pool["size"] * pool["on_demand"]["price"]
        usd[more > pool["on_demand"].get("most", math.inf)] = math.inf
    return usd


def _most(scenario: Scenario, columns: list[Any], tau: float) -> list[range]:
    """Numbers of replicas of each column that could help, firm and spot."""
    ranges = []
    for on_spot in (False, True):
        for model, column in columns:
            demand = scenario["models"][model]["demand"]
            peak = max(demand["hourly"]) * (1 + scenario["spare"]["headroom"])
            if "deferrable" in demand:
                peak = min(sum(demand["hourly"]), peak * (1 + demand["deferrable"] / 3600))
            pool = scenario["pools"][column["pool"]]
            lost = chance_lost(pool, column["chips"])
            widest = max(c["rate"] for m, c in columns if m == model)
            spare = scenario["spare"]["replicas"] * widest
            most = math.ceil((peak + spare) / (column["rate"] * (1 - lost - tau)))
            ranges.append(range(1 if on_spot and "spot" not in pool else most + 1))
    return ranges


def _apart(scenario: Scenario, columns: list[Any]) -> float:
    """Hours that nothing links but the reservation."""
    count, ranges = len(columns), _most(scenario, columns, 0.0)
    hours = []
    for t in range(scenario["hours"]):
        lists = []
        for model, asked in scenario["models"].items():
            mine = [i for i, (m, _) in enumerate(columns) if m == model]
            free = [*mine, *(count + i for i in mine)]
            good = set()
            if math.prod(len(ranges[i]) for i in free) > MOST_TRIED:
                return math.nan
            for values in product(*(ranges[i] for i in free)):
                state = [0] * (2 * count)
                for i, value in zip(free, values, strict=True):
                    state[i] = value
                if _meets(scenario, columns, model, tuple(state), asked["demand"]["hourly"][t]):
                    good.add(tuple(state))
            lists.append([s for s in good if not any(_less(s, i) in good for i in free if s[i])])
        found: dict[tuple[int, ...], float] = {}
        if math.prod(map(len, lists)) > MOST_TRIED:
            return math.nan
        for states in product(*lists):
            needed, usd = machines(scenario, columns, tuple(map(sum, zip(*states, strict=True))))
            key = tuple(needed)
            if len(key) == len(scenario["pools"]):
                found[key] = min(found.get(key, math.inf), usd)
        if not found:
            return math.inf
        hours.append((np.array(list(found)), np.array(list(found.values()))))
    return _with_reservations(scenario, hours)


def _with_reservations(scenario: Scenario, hours: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The least bill of hours that nothing else links; of each machines needed and spot paid."""
    most = [int(x) for x in np.max([needed.max(axis=0) for needed, _ in hours], axis=0)]
    return min(
        paid + sum((usd + _rented(scenario, needed, counts)).min() for needed, usd in hours)
        for counts, paid in _reservations(scenario, most)
    )


def _meets(scenario: Scenario, columns: list[Any], model: str, state: State, asked: float) -> bool:
    firmly = (1 - scenario["spot_share"]) * asked
    return (
        room(scenario, columns, model, state, state) >= asked - 1e-9
        and firm(columns, model, state) >= firmly - 1e-9
    )


def _less(state: State, i: int) -> State:
    return (*state[:i], state[i] - 1, *state[i + 1 :])


def _linked(scenario: Scenario, columns: list[Any], tau: float, waits: bool) -> float:
    """Hours linked by starts, or by work that waits; of one model."""
    (model,) = scenario["models"]
    asked = scenario["models"][model]["demand"]
    ranges = _most(scenario, columns, tau)
    if math.prod(map(len, ranges)) > 2 * TRIED:
        return math.nan
    states = list(product(*ranges))
    pairs = [machines(scenario, columns, s) for s in states]
    kept = [i for i, (needed, usd) in enumerate(pairs) if math.isfinite(usd)]
    states = [states[i] for i in kept]
    needed = np.array([pairs[i][0] for i in kept])
    spot = np.array([pairs[i][1] for i in kept])
    if len(states) > TRIED:
        return math.nan  # too many to try
    reservations = list(_reservations(scenario, [int(x) for x in needed.max(axis=0)]))
    if waits:
        return _waiting(scenario, columns, states, needed, spot, reservations)
    # Rates and what starting costs, from every state to every other
    table = np.array(states)
    count = len(columns)
    there = table[:, :count] + table[:, count:]
    begun = np.maximum(0, there[None, :, :] - there[:, None, :])
    begun = begun if scenario["hours"] > 1 else np.zeros_like(begun)
    chips, rates = [], np.array([c["rate"] for _, c in columns])
    for _, column in columns:
        size = scenario["pools"][column["pool"]]["size"]
        used = (
            column["chips"] if column["chips"] <= size else math.ceil(column["chips"] / size) * size
        )
        chips.append(used * 3600 * scenario["pools"][column["pool"]]["on_demand"]["price"] * tau)
    steady = np.array([room(scenario, columns, model, s, s) for s in states])
    late = begun @ (rates * tau) / (1 + scenario["spare"]["headroom"])
    firmly = np.array([firm(columns, model, s) for s in states])
    costs = begun @ np.array(chips)
    steps = []
    for t in range(scenario["hours"]):
        level = asked["hourly"][t]
        good = steady[None, :] - late >= level - 1e-9
        good &= (firmly >= (1 - scenario["spot_share"]) * level - 1e-9)[None, :]
        steps.append(np.where(good, costs, np.inf))
    best = math.inf
    for counts, paid in reservations:
        hourly = spot + _rented(scenario, needed, counts)
        alive = np.flatnonzero(np.isfinite(hourly))
        total = None
        for step in steps:
            here = (step + hourly[None, :])[np.ix_(alive, alive)]
            total = here if total is None else _min_plus(total, here)
        if total is not None and total.size:
            best = min(best, paid + float(np.diag(total).min()))
    return best


def _min_plus(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.array([(row[:, None] + second).min(axis=0) for row in first])


def _waiting(
    scenario: Scenario, columns: list[Any], states: list[State], needed: np.ndarray,
    spot: np.ndarray, reservations: list[Any],
) -> float:  # fmt: skip
    """Work that waits: every sequence of states, checked by serving what came first first."""
    (model,) = scenario["models"]
    asked = scenario["models"][model]["demand"]
    rooms = np.array([room(scenario, columns, model, s, s) for s in states])
    firmly = np.array([firm(columns, model, s) for s in states])
    share = 1 - scenario["spot_share"]
    # No more is served than what firm machines' share allows
    most = np.minimum(rooms, firmly / share) if share > 0 else rooms
    levels = sorted({round(float(m), 9) for m in most if m >= 0})
    window = min(int(asked["deferrable"] // 3600), scenario["hours"] - 1)
    paths = product(levels, repeat=scenario["hours"])
    good = [path for path in paths if done_in_time(asked["hourly"], path, window)]
    best = math.inf
    for counts, paid in reservations:
        hourly = spot + _rented(scenario, needed, counts)
        at = {level: hourly[most >= level - 1e-9].min(initial=math.inf) for level in levels}
        best = min([best, *(paid + sum(at[level] for level in path) for path in good)])
    return best


def done_in_time(arrivals: list[float], rooms: tuple[float, ...], window: int) -> bool:
    """Whether cyclic work is done at most `window` hours after it came, first come first served."""
    hours, waiting = len(arrivals), 0.0
    if sum(rooms) < sum(arrivals) - 1e-9:
        return False
    for t in range(4 * hours):
        waiting = max(0.0, waiting + arrivals[t % hours] - rooms[t % hours])
        recent = sum(arrivals[(t - back) % hours] for back in range(window))
        if t >= 2 * hours and waiting > recent + 1e-7:
            return False
    return True


TOLD = 2.0  # promised time to first token [s]


def regional_scenario(seed: int) -> Scenario:
    """One model in two regions over two or three hours; some requests may move."""
    draw = np.random.default_rng(seed)
    scenario = small_scenario(6 * seed + 900)  # of the style without starts and waits
    (column, *more) = scenario["models"]["m0"]["columns"]
    columns = [column, *more][:2]
    for each in columns:
        each["ttft_p95"] = float(draw.choice([1.5, 1.95]))
    demand = {"hourly": [float(np.round(x, 2)) for x in draw.uniform(0.5, 5, scenario["hours"])]}
    scenario["models"] = {
        "m0": {"demand": demand, "columns": columns, "promises": {"ttft_p95": TOLD}}
    }
    share = float(draw.choice([0.3, 0.5, 0.8]))
    scenario["regions"] = {
        name: {"demand": part, "utc": int(draw.integers(-2, 3)),
               **({"moves": "allowed", "latency": 0.1} if draw.random() < 0.7 else {})}
        for name, part in (("us", share), ("eu", 1 - share))
    }  # fmt: skip
    for pool in scenario["pools"].values():
        if draw.random() < 0.5:
            pool["region"] = str(draw.choice(["us", "eu"]))
    scenario.pop("have", None)
    return scenario


def least_regional_bill(scenario: Scenario) -> float:
    """As `least_bill`, of a regional scenario: every plan of every hour, all ways to move."""
    regions, model = scenario["regions"], scenario["models"]["m0"]
    placed = [(f"{name} {region}", region, name) for name, pool in scenario["pools"].items()
              for region in regions if pool.get("region", region) == region]  # fmt: skip
    flat = {**scenario, "pools": {name: scenario["pools"][pool] for name, _, pool in placed}}
    columns = [(region, {**c, "pool": name}) for name, region, pool in placed
               for c in model["columns"] if c["pool"] == pool]  # fmt: skip
    whole = {"demand": {**model["demand"], "hourly": [max(model["demand"]["hourly"])]}}
    flat["models"] = dict.fromkeys(regions, whole)

    def served(t: int, state: State) -> bool:
        rates = model["demand"]["hourly"]
        asked = {name: region["demand"] * rates[(t + region["utc"]) % len(rates)]
                 for name, region in regions.items()}  # fmt: skip
        return _moved(flat, columns, state, asked)

    return _every_state(flat, columns, served)


def _every_state(
    scenario: Scenario, columns: list[Any], served: Callable[[int, State], bool]
) -> float:
    """The least bill of hours apart, of all states that serve their hour."""
    ranges = _most(scenario, columns, 0.0)
    if math.prod(map(len, ranges)) > 10 * MOST_TRIED:
        return math.nan
    states = list(product(*ranges))
    pairs = [machines(scenario, columns, state) for state in states]
    offered = [i for i, (_, usd) in enumerate(pairs) if math.isfinite(usd)]
    hours = []
    for t in range(scenario["hours"]):
        good = [i for i in offered if served(t, states[i])]
        if not good:
            return math.inf
        hours.append((np.array([pairs[i][0] for i in good]), np.array([pairs[i][1] for i in good])))
    return _with_reservations(scenario, hours)


def _moved(scenario: Scenario, columns: list[Any], state: State, asked: dict[str, float]) -> bool:
    """Whether a state serves two regions, with some requests of one of them in the other."""

    def most(region: str, late: float) -> float:
        near = [(r if c["ttft_p95"] + late <= TOLD else "", c) for r, c in columns]
        served = room(scenario, near, region, state, state)
        share = 1 - scenario["spot_share"]
        return min(served, firm(near, region, state) / share) if share > 0 else served

    here = {name: most(name, 0.0) for name in asked}
    if all(here[name] >= rate - 1e-9 for name, rate in asked.items()):
        return True
    for name, other in (tuple(asked), tuple(asked)[::-1]):
        if scenario["regions"][name].get("moves") == "allowed":
            needed = max(0.0, asked[name] - max(0.0, here[name]))
            if needed <= min(here[other] - asked[other], most(other, 0.1)) + 1e-9:
                return True
    return False


def paired_scenario(seed: int) -> Scenario:
    """One model with replicas that prefill, that decode, and perhaps some that do all."""
    draw = np.random.default_rng(seed)
    scenario = small_scenario(6 * seed + 900)
    pools = list(scenario["pools"])[:2]
    columns = [
        {"pool": str(pool), "chips": int(draw.choice([1, 2, 3, 4])), "phase": phase,
         "rate": float(np.round(draw.uniform(1.5, 6), 2))}
        for pool in pools[: int(draw.integers(1, 3))] for phase in ("prefill", "decode")
    ]  # fmt: skip
    if len(columns) == 2 and draw.random() < 0.6:
        rate = float(np.round(draw.uniform(0.5, 3), 2))
        columns.append({"pool": str(draw.choice(pools)), "chips": 2, "rate": rate})
    demand = {"hourly": [float(np.round(x, 2)) for x in draw.uniform(0.3, 4, scenario["hours"])]}
    scenario["models"] = {"m0": {"demand": demand, "columns": columns}}
    return scenario


def least_paired_bill(scenario: Scenario) -> float:
    """As `least_bill`, of a paired scenario: each pool serves what both of its phases do."""
    model = scenario["models"]["m0"]
    columns = [("m0", column) for column in model["columns"]]
    groups = {(c["pool"] if "phase" in c else "", c.get("phase")) for _, c in columns}
    pools = {pool for pool, _ in groups}

    def most(state: State, group: tuple[str, str | None]) -> float:
        mine = [("m0" if (c["pool"] if "phase" in c else "", c.get("phase")) == group else "", c)
                for _, c in columns]  # fmt: skip
        share = 1 - scenario["spot_share"]
        rate = room(scenario, mine, "m0", state, state)
        return min(rate, firm(mine, "m0", state) / share) if share > 0 else rate

    def served(t: int, state: State) -> bool:
        rates = [min(most(state, g) for g in groups if g[0] == pool) for pool in pools]
        return sum(max(0.0, rate) for rate in rates) >= model["demand"]["hourly"][t] - 1e-9

    return _every_state(scenario, columns, served)
