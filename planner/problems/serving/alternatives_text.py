"""Runners-up of another kind in words, what would let them win, and the way out of no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.text.quantities import show
from planner.text.wording import duration, laid_out, row, wrapped

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingPlan

UNSURE = 0.05  # chance from which on it is worth a word that a runner-up may be the better one
SAME = 5e-4  # told with three digits, what is less is no difference
WORSE = {"cost": "dearer", "latency": "slower", "energy": "more energy"}
WORDS = {
    "memory_bandwidth": "memory bandwidth",
    "flops": "arithmetic",
    "scale_up": "the network in a domain",
    "scale_out": "the network between domains",
    "price": "the price per chip",
    "input_tokens": "the input",
    "output_tokens": "the output",
    "ttft": "the promised TTFT",
    "ttft_p95": "the promised TTFT of 95%",
    "ttft_p99": "the promised TTFT of 99%",
    "tpot": "the promised TPOT",
    "e2e": "the promised whole request",
    "tokens_per_s_per_user": "the promised speed",
}
# How more and less of a quantity are said.
COMPARED = {
    "tokens": ("longer", "shorter"),
    "time": ("longer", "shorter"),
    "price": ("above", "below"),
}
PROMISED = {"ttft": "TTFT", "ttft_p95": "TTFT of 95%", "ttft_p99": "TTFT of 99%", "tpot": "TPOT",
            "e2e": "time of a whole request"}  # fmt: skip


def alternatives(document: Mapping[str, Any]) -> str:
    """The next best layouts, with the chance that one is the cheaper where it is no small one."""
    if not document["alternatives"]:
        return ""
    lines = ["next best, of other layouts"]
    for plan in document["alternatives"]:
        tpot = f", TPOT {duration(plan['tpot'])}" if plan["tpot"] is not None else ""
        price = f"${plan['usd_per_mtok']:.4g}/Mtok"
        chance = plan.get("chance_better")
        told = f" ({chance:.0%} to be cheaper)" if chance and chance >= UNSURE else ""
        lines.append(f"  {price:<16}{laid_out(plan)}, batch {plan['batch']}{tpot}{told}")
    return "\n".join(lines)


def others(document: Mapping[str, Any]) -> str:
    """The best plan of every other kind, and by how much it is worse."""
    if not document["rivals"]:
        return ""
    lines = ["next best, of other kinds"]
    for each in document["rivals"]:
        plan = each["plan"]
        worse = _worse(document, each["behind"])
        text = f"{each['kind']}: {worse}, {laid_out(plan)}, batch {plan['batch']}"
        lines += wrapped(text)
    return "\n".join(lines)


def systems(document: Mapping[str, Any]) -> list[str]:
    """Which system of a list is best, and by how much each other alone is worse."""
    told = []
    for each in document["systems"] or ():
        behind = each["behind"]
        if behind is None:
            told.append(f"{each['system']} keeps no promise")
        elif behind <= 0:
            told.append(f"{each['system']} is best")
        else:
            told.append(f"{each['system']} alone is {_worse(document, behind)}")
    return [row("systems", "; ".join(told))] if told else []


def turns(plan: ServingPlan) -> list[str]:
    """What would let each other kind win, one sentence each."""
    lines = ["What would have to change for another kind to win"]
    names = [each["system"] for each in plan.document["systems"] or ()]
    for each in plan.rivals:
        ways = " or if ".join(_way(vars(change), names) for change in each.wins_if or ())
        if ways:
            lines += wrapped(f"{each.kind} wins if {ways}")
        else:
            told = "no single quantity found that would do, up to three times or a third of it"
            lines += wrapped(f"{each.kind}: {told}")
    if not plan.rivals:
        lines.append("  no other kind keeps the promises")
    return lines


def alone(document: Mapping[str, Any]) -> list[str]:
    """What each promise would have to be, others unchanged, or that no value of it is feasible."""
    would, never = [], []
    for each in document.get("eased") or ():
        name = PROMISED[each["promise"]]
        if each["alone"] is None:
            never.append(f"any {name}")
        else:
            value, given = duration(each["alone"]), duration(each["promised"])
            would.append(
                f"{name} {value if value != given else 'a little more'} instead of {given}"
            )
    lines = wrapped(f"feasible if {' or '.join(would)}, other promises unchanged") if would else []
    names = " or ".join(never)
    return lines + (
        wrapped(f"not feasible with {names}, other promises unchanged") if never else []
    )


def _worse(document: Mapping[str, Any], behind: float) -> str:
    objective = document["scenario"]["objective"]
    if behind < SAME:
        return "as good"
    if objective == "throughput":
        return f"{100 * (1 - 1 / (1 + behind)):.3g}% less throughput"
    return f"{100 * behind:.3g}% {WORSE[objective]}"


def _way(change: Mapping[str, Any], systems: Sequence[str]) -> str:
    """One change: what, how far, and by which factor."""
    *where, name = change["what"].split(".")
    more = change["factor"] > 1
    up, down = COMPARED.get(change["dimension"], ("above", "below"))
    times = f"x{change['factor']:.3g}"
    system = f" of {systems[int(where[1])]}" if len(where) > 1 else ""
    words = f"{WORDS[name]}{system} is {up if more else down}"
    if change["value"] is None:
        return f"{words} {times} of what it is"
    return (
        f"{words} than {_value(change)} ({times})"
        if up == "longer"
        else (f"{words} {_value(change)} ({times})")
    )


def _value(change: Mapping[str, Any]) -> str:
    dimension, value = change["dimension"], change["value"]
    if dimension == "tokens":
        return f"{value:,.0f} tokens"
    return duration(value) if dimension == "time" else show(value, dimension)
