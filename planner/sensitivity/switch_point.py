"""The value of a given at which one choice is as good as another, by solving both again.

What belongs to the rival alone (its price, its machine, its model) is varied for the rival alone;
anything else, such as the length of prompts, for both. Where the better of the two changes between
two values looked at, the change is closed in on; both sides of every bracket are solved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from planner.protocol.output import UNITS, output_named
from planner.protocol.parameter import folder_of, scenario_with, unit_of, value_at
from planner.scenario import Scenario, Tree, changed, checked, opened
from planner.sensitivity.re_solve import Exact, Nowhere, exact
from planner.sweep.grid import Axis, grid_of
from planner.text.errors import InputError, quoted

__all__ = ["break_even"]

RIVALS_OWN = ("price", "system", "model", "profile", "choose", "phases", "serving")
WIDE = 10.0  # factor up and down of the present value, where no values are given
LOOKED_AT = 9
CLOSE = 1.001  # factor within which a break-even is found
MORE_IS_BETTER = ("tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user",
                  "requests_per_s")  # fmt: skip


@dataclass(frozen=True)
class _Side:
    """One of the two choices: what it is called, and its scenario as a tree."""

    name: str
    tree: Tree
    folder: Path

    def at(self, path: str, value: float | None) -> Exact:
        """Its best plan with a value at a path, or as it is."""
        try:
            if value is None:
                return exact(checked(self.tree, self.folder))
            return exact(scenario_with(self.tree, self.folder, path, value))
        except InputError:
            return Nowhere


def break_even(
    source: Any, between: str, over: str, output: str = "cost", sets: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Where choices break even with the first of them, over one given.

    Parameters
    ----------
    between : PATH=A,B,...: the choices, such as `system=hgx-h200,hgx-b200`.
    over : the path that is varied, such as `price`, or PATH=SPEC with the values to look at.

    Returns
    -------
    list
        For each rival, `crossings` (each with `value`, `below` and `above`, the nearest values on
        either side that were solved, and which of the two is better there) and `ends`, which is
        better at the first and at the last value looked at.

    Raises
    ------
    InputError
        With every mistake in the input.
    """
    tree, scenario = opened(source, sets)
    folder = folder_of(source)
    name = output_named(scenario.problem, output)
    choices = grid_of([between]).axes[0]
    if len(choices) < 2:
        raise InputError(f"--break-even {between}: expected two choices such as system=a,b")
    sides = [_side(tree, folder, choices, i) for i in range(len(choices))]
    path = over.partition("=")[0].strip()
    if path == choices.name:
        raise InputError(f"--over {quoted(path)}: is what the choices differ in; vary another")
    return [_between(sides[0], rival, path, over, name) for rival in sides[1:]]


def _side(tree: Tree, folder: Path, choices: Axis, i: int) -> _Side:
    own = changed(tree, [choices.set_to(i)])
    checked(own, folder)
    return _Side(choices.set_to(i).partition("=")[2].strip(), own, folder)


def _between(first: _Side, rival: _Side, path: str, over: str, name: str) -> dict[str, Any]:
    values = _values(rival, path, over)
    alone = path.partition(".")[0] in RIVALS_OWN
    still = first.at(path, None) if alone else None
    lead = partial(_lead, first, rival, path, name, still)
    looked = [(value, lead(value)) for value in values]
    crossings = [
        _crossing(lead, low, high)
        for low, high in pairwise(looked)
        if (low[1] > 0) != (high[1] > 0) and not (math.isnan(low[1]) or math.isnan(high[1]))
    ]
    ends = [_better(first, rival, each[1]) for each in (looked[0], looked[-1])]
    problem = checked(first.tree, first.folder).problem
    return {
        "first": first.name,
        "rival": rival.name,
        "of": name,
        "unit_of": UNITS[name],
        "over": path,
        "unit": unit_of(problem, path.split(".")) or "",
        "varied": "rival" if alone else "both",
        "crossings": [_told(first, rival, path, name, still, each) for each in crossings],
        "looked_at": [values[0], values[-1]],
        "ends": ends,
    }


def _values(rival: _Side, path: str, over: str) -> list[float]:
    """The values looked at first, in base units, rising."""
    if "=" in over:
        axis = grid_of([over]).axes[0]
        found = [
            value_at(checked(changed(rival.tree, [axis.set_to(i)]), rival.folder), path)
            for i in range(len(axis))
        ]
        if not all(isinstance(each, int | float) and each > 0 for each in found) or len(found) < 2:
            raise InputError(f"--over {quoted(over)}: expected two or more numbers above zero")
        return sorted(float(each) for each in found)
    base = _present(rival, path)
    if base is None:
        raise InputError(
            f"--over {quoted(path)}: has no value to start from; give the values to look at, such "
            f"as {path}=log(1..10,9)"
        )
    step = WIDE ** (2 / (LOOKED_AT - 1))
    return [base / WIDE * step**i for i in range(LOOKED_AT)]


def _present(side: _Side, path: str) -> float | None:
    """The value that a path has in a scenario, or that a catalogue gives for it."""
    scenario = checked(side.tree, side.folder)
    value = value_at(scenario, path)
    if isinstance(value, int | float) and value > 0:
        return float(value)
    if not isinstance(scenario, Scenario):
        return None
    from planner.problems.serving.slopes.serving import givens_of

    known = {given.path: given.value for given in givens_of(scenario)}
    return known.get(path)


def _lead(
    first: _Side, rival: _Side, path: str, name: str, still: Exact | None, value: float
) -> float:
    """How far the first leads, in logarithms; not a number where neither has an answer."""
    mine = still if still is not None else first.at(path, value)
    theirs = rival.at(path, value)
    ours, other = mine.values.get(name), theirs.values.get(name)
    if ours is None and other is None:
        return math.nan
    if ours is None or other is None:
        return math.inf if other is None else -math.inf
    return math.log(other / ours) * (-1 if name in MORE_IS_BETTER else 1)


def _crossing(
    lead: Any, low: tuple[float, float], high: tuple[float, float]
) -> tuple[float, float, bool]:
    """A bracket in which the better one changes, and whether the first is better below it."""
    (below, ahead), (above, _) = low, high
    leads = ahead > 0
    while above / below > CLOSE:
        middle = math.sqrt(below * above)
        if (lead(middle) > 0) == leads:
            below = middle
        else:
            above = middle
    return below, above, leads


def _told(
    first: _Side,
    rival: _Side,
    path: str,
    name: str,
    still: Exact | None,
    crossing: tuple[float, float, bool],
) -> dict[str, Any]:
    """A bracket in words and numbers, solved on both sides."""
    below, above, leads = crossing
    ends = []
    for value in (below, above):
        mine = still if still is not None else first.at(path, value)
        ends.append({
            "value": value,
            "first": mine.values.get(name),
            "rival": rival.at(path, value).values.get(name),
        })  # fmt: skip
    names = (first.name, rival.name)
    return {
        "value": math.sqrt(below * above),
        "below": ends[0],
        "above": ends[1],
        "better_below": names[not leads],
        "better_above": names[leads],
        "verified": True,
    }


def _better(first: _Side, rival: _Side, lead: float) -> str | None:
    if math.isnan(lead):
        return None
    return first.name if lead > 0 else rival.name if lead < 0 else "either"
