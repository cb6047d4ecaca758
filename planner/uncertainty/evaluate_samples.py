"""Many draws of a scenario answered: as arrays where nothing is chosen, else solved one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from planner.problems.serving.profiled import drawn_apart
from planner.protocol.problem import NO_PLAN, search
from planner.scenario import Scenario, Tree, changed, checked
from planner.text.console import progress
from planner.text.errors import InputError, PlannerError
from planner.uncertainty.distributions import Marginal

__all__ = ["Answered", "answered"]

Row: TypeAlias = tuple[float, str | None, tuple[str, ...]]

CHUNK = 8  # draws that a process solves at a time


@dataclass(frozen=True)
class Answered:
    """The answer at each draw: an output, nan where there is no plan, and the choice, in words.

    `sets` are the choices as changes of the scenario; empty where nothing is chosen.
    """

    values: np.ndarray
    choices: tuple[str | None, ...]
    sets: dict[str, tuple[str, ...]]
    method: str


def answered(
    tree: Tree,
    folder: Path,
    marginals: Sequence[Marginal],
    shares: np.ndarray,
    name: str,
    *,
    workers: int = 1,
    sets: Sequence[str] = (),
    shown: bool = False,
) -> Answered:
    """Answers at shares of every marginal, shape (n, d); `sets` are changes made first.

    With `shown` a bar on standard error tells how far it is.
    """
    base = changed(tree, list(sets))
    drawn = [marginal.at(shares[:, i]) for i, marginal in enumerate(marginals)]
    closed = _closed(base, folder, marginals, drawn, name)
    if closed is not None:
        return closed
    points = [
        tuple(_set(marginal, values[k]) for marginal, values in zip(marginals, drawn, strict=True))
        for k in range(len(shares))
    ]
    one = partial(_one, base, folder, name)
    with progress(len(points), 0, shown=shown) as advance:
        rows = []
        for row in _rows(one, points, workers):
            rows.append(row)
            advance(1)
    values = np.array([row[0] for row in rows], dtype=np.float64)
    known = {row[1]: row[2] for row in rows if row[1] is not None}
    return Answered(values, tuple(row[1] for row in rows), known, "solved again at each draw")


def _rows(
    one: Callable[[Sequence[str]], Row], points: Sequence[Sequence[str]], workers: int
) -> Iterator[Row]:
    """The answer of every point, in their order."""
    if workers == 1 or len(points) <= workers:
        yield from map(one, points)
        return
    # A fresh process: a solver's threads do not survive a fork.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(one, points, chunksize=CHUNK)


def _set(marginal: Marginal, value: Any) -> str:
    """`PATH=VALUE` of one draw."""
    if not marginal.numeric:
        return f"{marginal.path}={marginal.ends[int(value)]}"
    return f"{marginal.path}={float(value)!r}"


def _one(tree: Tree, folder: Path, name: str, sets: Sequence[str]) -> Row:
    """The output, the choice, and what would hold it, at one draw."""
    found = NO_PLAN
    try:
        given, profile = drawn_apart(tuple(sets))
        scenario = checked(changed(tree, given), folder)
        found = search(scenario, profile)
    except InputError:
        pass  # a draw that makes no sense has no plan
    except PlannerError as error:
        raise type(error)(f"at {', '.join(sets)}: {error}") from error
    value = found.outputs.get(name)
    if value is None:
        return float("nan"), None, ()
    return value, found.choice, found.holds


def _closed(
    tree: Tree, folder: Path, marginals: Sequence[Marginal], drawn: Sequence[np.ndarray], name: str
) -> Answered | None:
    """All draws at once, where every path is a number of the equations and nothing is chosen."""
    from planner.problems.serving.dials import is_dial
    from planner.sweep.model import model_of

    if not all(marginal.numeric and is_dial(marginal.path) for marginal in marginals):
        return None
    scenario = checked(tree, folder)
    if not isinstance(scenario, Scenario) or not len(drawn[0]):
        return None
    values = {
        m.path: np.asarray(v, dtype=np.float64) for m, v in zip(marginals, drawn, strict=True)
    }
    model = model_of(scenario, {path: np.array([v.min(), v.max()]) for path, v in values.items()})
    if model is None:
        return None
    found = model(values)
    if name not in found or not isinstance(found[name], np.ndarray):
        return None
    kept = np.asarray(found["status"]) == 0
    label = str(model.words["layout"])
    return Answered(
        np.where(kept, found[name], np.nan),
        tuple(label if each else None for each in kept.tolist()),
        {label: ()},
        "closed form",
    )
