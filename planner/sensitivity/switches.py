"""The nearest change of a given quantity, each way, at which another choice is the best.

Every value looked at is the exact problem solved again, over all layouts and batches. Steps widen
from 3 % to threefold; where the choice has changed, the change is closed in on from both sides. A
choice that comes and goes within one step is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.problems.serving.parameters import Given
from planner.sensitivity.elasticities import Row
from planner.sensitivity.re_solve import Exact, exact
from planner.text.console import progress
from planner.text.errors import InputError

__all__ = ["STEPS", "next_switch", "switched"]

STEPS = (1.03, 1.1, 1.25, 1.6, 2.2, 3.0)
CLOSE = 1.003  # factor within which a switch is found
MATTERS = 2e-3  # elasticity, of any output, below which no switch is sought
MOST = 10  # quantities that are varied


def switched(
    best: Exact,
    givens: Sequence[Given],
    rows: Sequence[Row],
    most: int = MOST,
    *,
    shown: bool = False,
) -> dict[str, tuple[dict[str, Any], ...]]:
    """The switches of the quantities that matter most, the nearest down and up.

    With `shown` a bar on standard error tells how far it is.
    """
    known = {given.path: given for given in givens}
    ranked = sorted((row for row in rows if row.known), key=lambda row: -row.influence)
    wanted = [row for row in ranked if _varied(known, row) and _may_switch(row)][:most]
    found = {}
    with progress(2 * len(wanted), 0, shown=shown) as advance:
        for row in wanted:
            ways = []
            for up in (False, True):
                ways.append(next_switch(best, known[row.path], up=up))
                advance(1)
            found[row.path] = tuple(way for way in ways if way is not None)
    return found


def next_switch(best: Exact, given: Given, *, up: bool) -> dict[str, Any] | None:
    """The first step at which the choice differs, closed in on; None if there is none.

    `factor` is the nearest value looked at with the other choice, `before` the last one with the
    present choice; both were solved.
    """
    near = 1.0
    for step in STEPS:
        factor = step if up else 1 / step
        found = _at(given, factor)
        if found is None:
            return None
        if best.switched(found):
            return _closed(best, given, near, factor, found)
        near = factor
    return None


def _varied(known: Mapping[str, Given], row: Row) -> bool:
    return row.path in known and known[row.path].to is not None


def _may_switch(row: Row) -> bool:
    # Room that a batch of a few sequences leaves free may let one more in, though no slope says so.
    held = row.group == "promises" or row.path.endswith(".memory")
    return row.path != "price" and (row.influence >= MATTERS or held)


def _at(given: Given, factor: float) -> Exact | None:
    """The best plan with the quantity times a factor; None where there can be none such."""
    if given.to is None:
        return None
    try:
        return exact(given.to(factor))
    except InputError:
        return None


def _closed(best: Exact, given: Given, near: float, far: float, then: Exact) -> dict[str, Any]:
    while abs(math.log(far / near)) > math.log(CLOSE):
        middle = math.sqrt(near * far)
        found = _at(given, middle)
        if found is None:
            break
        if not best.switched(found):
            near = middle
        else:
            far, then = middle, found
    return {
        "factor": far,
        "before": near,
        "from": best.choice,
        "to": then.choice,
        "counts": [best.few, best.told(then)],
        "verified": True,
    }
