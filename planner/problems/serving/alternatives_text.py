"""Runners-up of another kind in words, what would let them win, and the way out of no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.problems.serving.parameters import QUANTITIES
from planner.problems.serving.point import layout_text
from planner.problems.serving.task.plan_limits import title_of
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import duration, listed, percent, row, wrapped

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingAnswer, ServingPlan, ShortPoint, WinningChange
    from planner.problems.serving.point import ServingPoint

PRICE = 18  # columns of a price that has its plan beside it
CHANGE = 42  # columns of a change that has its price beside it
UNSURE = 0.05  # chance from which on it is worth a word that a runner-up may be the better one
WORSE = {
    "cost": ("dearer", "cheaper"), "latency": ("slower", "faster"),
    "energy": ("more energy", "less energy"), "throughput": ("less throughput", "more throughput"),
}  # fmt: skip
WORDS = {row.path.rpartition(".")[2]: row.words for row in QUANTITIES if row.words}
# How more and less of a quantity are said.
COMPARED = {
    "tokens": ("longer", "shorter"),
    "time": ("longer", "shorter"),
    "price": ("above", "below"),
}


def alternatives(answer: ServingAnswer) -> str:
    """The next best layouts, with the chance that one is the cheaper where it is no small one."""
    if not answer.alternatives:
        return ""
    lines = ["next best, of other layouts"]
    for plan in answer.alternatives:
        tpot = f", TPOT {duration(plan.tpot)}" if plan.tpot is not None else ""
        least = answer.scenario["objective"] == "energy"
        price = f"{plan.joule_per_token:.4g} J/token" if least else f"${plan.usd_per_mtok:.4g}/Mtok"
        likely = "" if least else _likely(answer, plan)
        text = f"{layout_text(plan)}, batch {plan.batch}{tpot}{likely}{_engines(answer, plan)}"
        lines.append(row(f"  {price}", text, PRICE))
    return "\n".join(lines)


def _likely(answer: ServingAnswer, plan: ServingPoint) -> str:
    """The chance that a runner-up is the cheaper one, where it is no small one."""
    chance = getattr(plan, "chance_better", None) or 0.0
    if answer.plan and abs(plan.usd_per_mtok / answer.plan.usd_per_mtok - 1) < UNSEEN:
        return " (a tie)"
    if f"{chance:.0%}" == "50%":
        return " (no telling which is cheaper)"
    return f" ({chance:.0%} to be cheaper)" if chance >= UNSURE else ""


def other_kinds(answer: ServingAnswer) -> str:
    """The best plan of every other kind, and by how much it is worse."""
    if not answer.rivals:
        return ""
    lines = ["next best, of other kinds"]
    for kind in answer.rivals:
        worse, plan = _worse(answer, kind.behind), kind.plan
        text = f"{kind.kind}: {worse}, {layout_text(plan)}, batch {plan.batch}"
        text += _engines(answer, plan)
        lines += wrapped(text)
    return "\n".join(lines)


def _engines(answer: ServingAnswer, plan: ServingPoint | ShortPoint) -> str:
    """What runs a runner-up, where some engine that runs the plan does not."""
    if answer.plan is None or plan.engines is None:
        return ""
    if {*(answer.plan.engines or ())} <= {*plan.engines}:
        return ""
    return f", on {' or '.join(plan.engines or ('none of the engines',))}"


def systems(answer: ServingAnswer) -> list[str]:
    """Which system of a list is best, and by how much each other alone is worse."""
    texts = []
    unranked = any(system.unranked for system in answer.systems or ())
    for system in answer.systems or ():
        name, behind = system.system, system.behind
        if behind is None:
            texts.append(f"{name} keeps no promise")
        elif behind <= 0:
            texts.append(f"{name} has the best estimate" if unranked else f"{name} is best")
        else:
            texts.append(f"{name} alone is {_worse(answer, behind)}")
    if unranked:
        texts.append("bands of two makers overlap or are lent, so they are not ranked")
    return [row("systems", "; ".join(texts))] if texts else []


def switch_points(plan: ServingPlan) -> list[str]:
    """What would let each other kind win, one sentence each."""
    lines = ["What would have to change for another kind to win"]
    names = [system.system for system in plan.answer.systems or ()]
    for kind in plan.rivals:
        changes = " or if ".join(_change(change, names) for change in kind.wins_if or ())
        if changes:
            lines += wrapped(f"{kind.kind} wins if {changes}")
        else:
            none = "no change of a single quantity by up to three times, or to a third, is enough"
            lines += wrapped(f"{kind.kind}: {none}")
    if not plan.rivals:
        lines.append("  no other kind keeps the promises")
    return lines


def relaxed(answer: object) -> list[str]:
    """What each promise would have to be, others unchanged, or that no value of it is feasible."""
    feasible, never = [], []
    for promise in getattr(answer, "eased", None) or ():
        name = title_of(promise.promise)
        if promise.alone is None:
            never.append(f"any {name}")
        else:
            form = percent if promise.promise == "cache_fits" else duration
            alone, promised = form(promise.alone), form(promise.promised)
            value = alone if alone != promised else "a little more"
            feasible.append(f"{name} {value} instead of {promised}")
    sentences = (("feasible if", feasible), ("not feasible with", never))
    return [
        line
        for words, names in sentences
        if names
        for line in wrapped(f"{words} {' or '.join(names)}, other promises unchanged")
    ]


def ways_out(answer: object) -> list[str]:
    """Every change that was seen to leave a plan, as it is typed, and what that plan costs."""
    ways = getattr(answer, "ways_out", None) or ()
    lines = ["", "what leaves a plan, one change at a time"] if ways else []
    for change in ways:
        words = (f"{path}={'null' if x is None else x}" for path, x in change.sets.items())
        *first, last = (f'--set "{word}"' if " " in word else f"--set {word}" for word in words)
        text = f"${change.usd_per_mtok:.3g}/Mtok, ${change.usd_per_hour:,.2f}/hour"
        lines += [*(f"  {typed}" for typed in first), *listed(last, text, CHANGE)]
    return lines


def _worse(answer: ServingAnswer, behind: float) -> str:
    """How far behind the plan; one on other chips than those that were given may be ahead."""
    objective = answer.scenario["objective"]
    if abs(behind) < UNSEEN:
        return "as good"
    change = abs(behind / (1 + behind) if objective == "throughput" else behind)
    return f"{100 * change:.3g}% {WORSE[objective][behind < 0]}"


def _change(change: WinningChange, systems: Sequence[str]) -> str:
    """One change: what, how far, and by which factor."""
    *where, name = change.what.split(".")
    up, down = COMPARED.get(change.dimension, ("above", "below"))
    system = f" of {systems[int(where[1])]}" if len(where) > 1 else ""
    words, times = f"{WORDS[name]}{system} is", f"x{change.factor:.3g}"
    words = f"{words} {up if change.factor > 1 else down}"
    if change.value is None:
        return f"{words} {times} of what it is"
    than = " than" if up == "longer" else ""
    return f"{words}{than} {_value(change.dimension, change.value)} ({times})"


def _value(dimension: str, value: float) -> str:
    if dimension == "tokens":
        return f"{value:,.0f} tokens"
    return duration(value) if dimension == "time" else show(value, dimension)
