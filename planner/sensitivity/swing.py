"""What an answer becomes when each quantity is a little less or more: the bars of a tornado."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.problems.serving.parameters import Given
from planner.sensitivity.elasticities import Row
from planner.sensitivity.re_solve import exact
from planner.text.errors import InputError

__all__ = ["MOST", "SWING", "swung"]

SWING = 0.2
MOST = 14
NOTHING = 1e-3  # elasticity below which there is no bar


def swung(
    givens: Sequence[Given],
    rows: Sequence[Row],
    document: Mapping[str, Any],
    swing: float = SWING,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """A bar for each quantity that matters, the longest first.

    `less` and `more` are the output with the quantity less or more by the share `swing`, None where
    nothing keeps the promises; `solved` says that the problem was solved again.
    """
    known = {given.path: given for given in givens}
    name, middle = document["of"], document["value"]
    ranked = sorted((row for row in rows if row.known), key=lambda row: -abs(row.elasticity))
    bars = []
    for row in [row for row in ranked if abs(row.elasticity) >= NOTHING][:most]:
        given = known.get(row.path)
        if given is not None and given.to is not None and not given.whole:
            less, more = (_solved(given, factor, name) for factor in (1 - swing, 1 + swing))
            solved = True
        else:
            less = middle * (1 - swing) ** row.left
            more, solved = middle * (1 + swing) ** row.right, False
        bars.append({"path": row.path, "less": less, "more": more, "solved": solved,
                     "swing": swing})  # fmt: skip
    return sorted(bars, key=lambda bar: -_length(bar, middle))


def _solved(given: Given, factor: float, name: str) -> float | None:
    if given.to is None:
        return None
    try:
        return exact(given.to(factor)).values.get(name)
    except InputError:
        return None


def _length(bar: Mapping[str, Any], middle: float) -> float:
    return max(abs(value - middle) for value in (bar["less"], bar["more"], middle) if value)
