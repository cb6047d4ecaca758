"""Price sheets: every interval as a linear program in logarithms, clashes by leaving rows out.

One program for each chip and peak. The ends of a reading are the least and the most of its variable
where what it assumes holds; a sheet contradicts itself where all rows together cannot hold.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from planner.problems.prices.price_regression import laws
from tests.campaign.rechecks.common import HOUR, Document, differs, figure

CHIPS = {"hgx-h100": "h100", "hgx-h200": "h200", "hgx-a100": "a100"}
ASSUMED = {
    "prefill_efficiency": (0.25, 0.65), "decode_efficiency": (0.4, 0.9), "margin": (1.0, 6.0),
}  # fmt: skip
MTOK = 1e-6


def question(number: int) -> Document:
    """A sound sheet with what is known, by its number."""
    rng = random.Random(f"prices:{number}")
    least = round(10 ** rng.uniform(-1, 1), 3)
    sheet: Document = {
        "input": f"${least}/Mtok",
        "output": f"${round(least * rng.uniform(1.2, 8), 3)}/Mtok",
    }
    if rng.random() < 0.7:
        sheet["cached"] = f"${round(least * rng.uniform(0.05, 0.5), 5)}/Mtok"
    if rng.random() < 0.5:
        first = round(least * rng.uniform(1, 1.5), 4)
        last = round(first * rng.uniform(1.1, 2), 4)
        sheet["write"] = [{"hold": "5 min", "price": f"${first}/Mtok"},
                          {"hold": "1 hour", "price": f"${last}/Mtok"}]  # fmt: skip
    if rng.random() < 0.5:
        sheet["steps"] = [{"above": "200k", "output": f"{round(rng.uniform(1.1, 2.5), 2)}x"}]
    if rng.random() < 0.5:
        sheet["tiers"] = [
            {"name": "fast", "price": f"{round(rng.uniform(1.5, 6), 2)}x",
             "speed": f"{round(rng.uniform(1.2, 3), 2)}x"},
            {"name": "batch", "price": f"{round(rng.uniform(0.4, 0.9), 2)}x"},
        ][: rng.choice((1, 2))]  # fmt: skip
    given: Document = {}
    if rng.random() < 0.5:
        given["n_active"] = [low := round(10 ** rng.uniform(9.5, 11.5)), round(low * 1.5)]
    if rng.random() < 0.6:
        given["context"] = [low := rng.choice((1000, 5000, 20_000)), 3 * low]
    if rng.random() < 0.3:
        given["margin"] = [1.0, round(rng.uniform(1.5, 4), 2)]
    if rng.random() < 0.3:
        given["prefill_efficiency"] = [0.4, 0.5]
    names = rng.sample([*CHIPS], rng.choice((1, 2)))
    chips = [{"like": name, "price": f"${round(rng.uniform(1, 5), 2)}/hour"} for name in names]
    return {"problem": "prices", "sheet": sheet, "chips": chips, "given": given}


@dataclass(frozen=True)
class Row:
    """`low <= sum of coefficients times logarithms <= high`, left out together with its group."""

    group: str
    terms: Mapping[str, float]
    low: float
    high: float


def _usd(price: str) -> float:
    return float(price.strip("$").split("/")[0]) * MTOK


def between(name: str, ends: Sequence[float], group: str | None = None) -> Row:
    """A variable between two ends."""
    return Row(group or name, {name: 1.0}, math.log(min(ends)), math.log(max(ends)))


def peaks(asked: Document) -> list[Document]:
    """Every chip with each of its peaks: the machines of which one serves."""
    found = []
    for choice in asked["chips"]:
        chip = CHIPS[choice["like"]]
        rent = float(choice["price"].strip("$").split("/")[0]) / HOUR
        formats = ("bf16", "fp8") if chip != "a100" else ("bf16",)
        memory = {"W": figure(chip, "memory_bandwidth"), "M": figure(chip, "memory"), "D": rent}
        found += [{"F": figure(chip, each), **memory} for each in formats]
    return found


def known(asked: Document, name: str) -> tuple[float, float]:
    """The ends of what is given, or taken for granted."""
    ends = asked["given"].get(name, ASSUMED.get(name))
    return float(ends[0]), float(ends[1])


def rows_of(asked: Document, machine: Document) -> list[Row]:
    """All equations of the sheet and all that is assumed, if this machine serves."""
    sheet, given, laws_of = asked["sheet"], asked["given"], laws()
    p_in, p_out = _usd(sheet["input"]), _usd(sheet["output"])
    rows = [between(name, known(asked, name)) for name in ASSUMED]
    # Arithmetic per dollar, bytes per arithmetic, bytes kept per dollar.
    for name, value, group in (
        ("F/D", machine["F"] / machine["D"], "chips"),
        ("W/F", machine["W"] / machine["F"], "chips"),
        ("M/D", machine["M"] / machine["D"], "hbm"),
    ):  # fmt: skip
        rows.append(between(name, (value,), group))
    arithmetic = {"n": 1, "F/D": -1, "prefill_efficiency": -1, "margin": 1}
    rows.append(equal("arithmetic", arithmetic, p_in / 2))
    law = laws_of["n_active"]
    fit = law.reference * (p_in / MTOK) ** law.powers[0]
    rows += [equal("hosts", {"n": 1, "fit": -1}, fit),
             between("fit", (1 / law.factor, law.factor))]  # fmt: skip
    memory = {"q": 1, "decode_efficiency": -1, "prefill_efficiency": 1}
    rows.append(equal("ratio", memory, p_out / p_in))
    e_pf, e_dec = known(asked, "prefill_efficiency"), known(asked, "decode_efficiency")
    rho = p_out / p_in
    rows.append(between("q", (rho * e_dec[0] / e_pf[1], rho * e_dec[1] / e_pf[0]), "memory"))
    if "n_active" in given:
        rows.append(between("n", known(asked, "n_active")))
    if "context" in given:
        rows.append(between("context", known(asked, "context")))
        room = {"b": 1, "q": -1, "n": -1, "W/F": -1, "context": 1}
        rows.append(Row("room", room, -math.inf, math.log(2)))
    for step in sheet.get("steps", ()):
        low, high = contexts(asked, step)
        if high > 0:
            least = math.log(low) if low > 0 else -math.inf
            rows.append(Row("contexts", {"star": 1.0}, least, math.log(high)))
            most = math.log(2) if low > 0 else math.inf
            rows.append(Row("step", {"b": 1, "n": -1, "W/F": -1, "star": 1}, math.log(2), most))
    if "write" in sheet:
        rows.append(equal("held", {"b": 1, "M/D": -1, "cost": 1}, _hold(sheet)))
        rows.append(between("cost", (1.0,)))
    for name, low, high in _shares(sheet):
        rows.append(Row(name, {"share": 1.0}, low, high))
    return rows


def equal(group: str, terms: Mapping[str, float], value: float) -> Row:
    """An equation of a product of powers."""
    return Row(group, terms, math.log(value), math.log(value))


def contexts(asked: Document, step: Document) -> tuple[float, float]:
    """Contexts at which reading equals arithmetic, by every end of those below and above."""
    edge, factor = 200_000.0, float(step["output"].strip("x"))
    below = known(asked, "context") if "context" in asked["given"] else (edge / 40, edge / 2)
    ends = [(above - factor * under) / (factor - 1)
            for above in (1.25 * edge, 2.5 * edge) for under in below]  # fmt: skip
    return min(ends), max(ends)


def _hold(sheet: Document) -> float:
    first, last = (_usd(row["price"]) for row in sheet["write"])
    return (last - first) / 3300.0


def _shares(sheet: Document) -> Iterator[tuple[str, float, float]]:
    """Logarithms of the ends of the share of a step that no batch shrinks, by tier."""
    for tier in sheet.get("tiers", ()):
        price = float(tier["price"].strip("x"))
        if price > 1:
            share = math.log((price - 1) / (float(tier["speed"].strip("x")) * price - 1))
            yield "fast", share, share
        else:
            yield "batch", math.log(1 - price), math.inf


def solved(rows: Sequence[Row], variable: str | None, sign: float) -> float | None:
    """The least of `sign` times a variable; None where the rows cannot hold."""
    names = list(dict.fromkeys(name for row in rows for name in row.terms))
    if variable is not None and variable not in names:
        return -math.inf
    sides, limits = [], []
    for row in rows:
        line = np.array([row.terms.get(name, 0.0) for name in names])
        for way, limit in ((1.0, row.high), (-1.0, -row.low)):
            if math.isfinite(limit):
                sides.append(way * line)
                limits.append(limit + 1e-8)
    costs = [sign * (name == variable) for name in names]
    found = linprog(costs, A_ub=np.array(sides), b_ub=limits, bounds=[(None, None)] * len(names))
    if found.status == 3:
        return -math.inf
    return None if found.status == 2 else float(found.fun)


def holds(systems: Sequence[Sequence[Row]], without: Sequence[str] = ()) -> bool:
    """Whether one machine lets all rows hold but those left out."""
    return any(
        solved([row for row in rows if row.group not in without], None, 0.0) is not None
        for rows in systems
    )


def ends(
    systems: Sequence[Sequence[Row]], groups: Sequence[str], variable: str
) -> tuple[float, float]:
    """The least and the most of a variable under these groups alone, over all machines."""
    low, high = math.inf, -math.inf
    for rows in systems:
        chosen = [row for row in rows if row.group in groups]
        least, most = solved(chosen, variable, 1.0), solved(chosen, variable, -1.0)
        assert least is not None
        assert most is not None
        low, high = min(low, least), max(high, -most)
    return math.exp(low), math.exp(high)


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    plan, sheet = document["plan"], asked["sheet"]
    systems = [rows_of(asked, machine) for machine in peaks(asked)]
    size = ["n"] if "n_active" in asked["given"] else ["arithmetic", "chips", "margin",
                                                       "prefill_efficiency"]  # fmt: skip
    expected = {
        ("n_active", "input price, physical"):
            ends(systems, ["arithmetic", "chips", "margin", "prefill_efficiency"], "n"),
        ("n_active", "open models, empirical"): ends(systems, ["hosts", "fit"], "n"),
        ("memory_over_arithmetic", "output over input price"):
            ends(systems, ["ratio", "decode_efficiency", "prefill_efficiency"], "q"),
    }  # fmt: skip
    if "context" in asked["given"]:
        room = _product(systems, size, ["room", "memory", "context", "chips"])
        expected["kv_bytes_per_token", "output over input price"] = (None, room[1])  # type: ignore[assignment]
    if "write" in sheet:
        kept = ends(systems, ["held", "hbm", "cost"], "b")
        expected["kv_bytes_per_token", "writes held 5 min and 60 min, in HBM"] = kept
    prices = {"p_in": _usd(sheet["input"]) / MTOK, "p_out": _usd(sheet["output"]) / MTOK}
    law = laws()["n_total"]
    fit = law.reference * math.prod(prices[x] ** k for x, k in zip(law.by, law.powers, strict=True))
    expected["n_total", "open models, empirical"] = (fit / law.factor, fit * law.factor)
    least = 1 / expected["memory_over_arithmetic", "output over input price"][1]
    expected["batch_over_critical", "output over input price"] = (least, None)  # type: ignore[assignment]
    lines = {(row["name"], row["from"]): row for row in plan["inferences"]}
    for place, (low, high) in expected.items():
        for end, value in (("low", low), ("high", high)):
            if value is not None:
                yield from differs(f"{end} of {place}", lines[place][end], value, 1e-5)
    yield from _said_again(asked, plan)
    for step in sheet.get("steps", ()):
        yield from _step(asked, systems, size, step, plan["inferences"])
    yield from _direct(sheet, plan["inferences"])
    yield from _modes(sheet, plan["inferences"])
    yield from _clashes(systems, plan)


def _said_again(asked: Document, plan: Document) -> Iterator[str]:
    """Listed prices, middles of intervals, and the first reading of each quantity."""
    for name in ("input", "output", "cached"):
        if name in asked["sheet"]:
            listed = _usd(asked["sheet"][name])
            yield from differs(name, plan["sheet"][name], listed, absolute=0.0)
    first: Document = {}
    for row in plan["inferences"]:
        low, high = row["low"], row["high"]
        if row["mid"] is not None:
            yield from differs("middle", row["mid"], math.sqrt(low * high), absolute=0.0)
        value = next((row[x] for x in ("mid", "low", "high") if row[x] is not None), None)
        if value is not None:
            first.setdefault(row["name"], value)
    for name, value in plan["values"].items():
        yield from differs(f"the value of {name}", value, first[name], absolute=0.0)


def _product(
    systems: Sequence[Sequence[Row]], size: Sequence[str], groups: Sequence[str]
) -> tuple[float, float]:
    """The ends of the bytes of a token, the size between its own ends whatever serves."""
    low, high = ends(systems, size, "n")
    boxed = [[*(x for x in rows if x.group in groups), between("n", (low, high), "box")]
             for rows in systems]  # fmt: skip
    return ends(boxed, [*groups, "box"], "b")


def _step(
    asked: Document, systems: Sequence[Sequence[Row]], size: Sequence[str], step: Document,
    lines: Sequence[Document],
) -> Iterator[str]:  # fmt: skip
    low, high = contexts(asked, step)
    named = [row for row in lines if row["from"].startswith("output step")]
    if high <= 0:
        if any(row["low"] or row["high"] for row in named):
            yield "a context from a step that longer contexts alone explain"
        return
    balance = next(row for row in named if row["name"] == "balance_context")
    yield from differs("most context of balance", balance["high"], high)
    if low > 0:
        yield from differs("least context of balance", balance["low"], low)
    point = next(row for row in named if row["verdict"].startswith("a point"))
    edge = [[*(x for x in rows if x.group != "contexts"), between("star", (200_000.0,), "contexts")]
            for rows in systems]  # fmt: skip
    at = _product(edge, size, ["step", "contexts", "chips"])
    yield from differs("least bytes at the step", point["low"], at[0], 1e-5)
    if low > 0:
        yield from differs("most bytes at the step", point["high"], at[1], 1e-5)
    kept = _product(systems, size, ["step", "contexts", "chips"])
    first = next(row for row in named if row["name"] == "kv_bytes_per_token")
    yield from differs("least bytes by the step", first["low"], kept[0], 1e-5)
    if low > 0:
        yield from differs("most bytes by the step", first["high"], kept[1], 1e-5)


def _direct(sheet: Document, lines: Sequence[Document]) -> Iterator[str]:
    """Readings that listed prices alone give."""
    p_in, cached = _usd(sheet["input"]), _usd(sheet.get("cached", sheet["input"]))
    for row in sheet.get("write", ()):
        if "cached" in sheet:
            held = "5 min" if row["hold"] == "5 min" else "60 min"
            line = next(x for x in lines if x["from"] == f"a write held {held}")
            count = (_usd(row["price"]) - cached) / (p_in - cached)
            yield from differs("requests that pay for a write", line["mid"], count)
    values = {row["name"]: row["low"] for row in lines if row["low"] is not None}
    if "write" in sheet:
        hold = _hold(sheet)
        yield from differs("price of holding", values["hold_price"], hold, absolute=0.0)
        over = values["hold_over_input"]
        yield from differs("holding over input", over, hold / p_in, absolute=0.0)
        start = (_usd(sheet["write"][0]["price"]) - 300 * hold - p_in) / p_in
        yield from differs("surcharge of a write", values["write_surcharge"], start, 1e-5)
        most = next(row["high"] for row in lines if row["name"] == "write_surcharge")
        yield from differs("surcharge of a write", most, start, 1e-5)
        if "cached" in sheet:
            reads = hold / (p_in - cached)
            yield from differs("reads that pay", values["break_even_reads"], reads, absolute=0.0)
    for name, low, high in _shares(sheet):
        shown = next(x for x in lines if x["name"] == "fixed_share" and x["from"].startswith(name))
        yield from differs(f"share that is fixed by {name}", shown["low"], math.exp(low))
        if not math.isinf(high):
            yield from differs(f"most that is fixed by {name}", shown["high"], math.exp(high))
        if (shown["high"] is None) != math.isinf(high):
            yield f"{name} bounds the share on the wrong side"


def _modes(sheet: Document, lines: Sequence[Document]) -> Iterator[str]:
    """Batch and speed of the fast mode, hours that a slow one needs."""
    fixed = 0.0
    for tier in sheet.get("tiers", ()):
        price = float(tier["price"].strip("x"))
        mine = [row for row in lines if row["from"].startswith(tier["name"])]
        if price > 1:
            fast = float(tier["speed"].strip("x")) * price
            fixed = (price - 1) / (fast - 1)
            ends = {"batch_over_normal": 1 / fast, "speed_limit": 1 / fixed}
            for name, value in ends.items():
                row = next(row for row in mine if row["name"] == name)
                yield from differs(name, row["low"], value)
                yield from differs(name, row["high"], value)
            continue
        idle = [row["low"] for row in mine if row["name"] == "idle_share"]
        by_hand = [1 - price / (1 - share) for share in (0.0, fixed) if price < 1 - share]
        for value, share in zip(idle, by_hand if fixed else by_hand[:1], strict=True):
            yield from differs("idle hours", value, share)


def _clashes(systems: Sequence[Sequence[Row]], plan: Document) -> Iterator[str]:
    """Contradictions where no machine lets all hold; as few left out as can be."""
    if holds(systems) == bool(plan["contradictions"]):
        words = ", ".join(row["name"] for row in plan["contradictions"])
        yield f"contradictions: {words or 'none'}, but all rows hold: {holds(systems)}"
        return
    groups = list(dict.fromkeys(row.group for rows in systems for row in rows))
    for count in range(len(plan["left_out"])):
        for without in combinations(groups, count):
            if holds(systems, without):
                yield f"{plan['left_out']} are left out, but {without} would do"
                return
