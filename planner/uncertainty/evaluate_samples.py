"""Many draws of a scenario answered: as arrays where nothing is chosen, else searched together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from planner.protocol.problem import BESIDE, NO_PLAN, HasArrays, Search, problem_of, search_each
from planner.scenario import checked
from planner.scenario.loading import Question
from planner.scenario.tree import Tree, changed
from planner.text.console import progress
from planner.text.errors import InputError
from planner.uncertainty.distributions import Marginal

T = TypeVar("T")
Sets: TypeAlias = Sequence[str]

CHUNK = 8  # draws that a process searches together
TOGETHER = 128  # draws that are searched together in this process


@dataclass(frozen=True)
class Answered:
    """The answer at each draw: an output, nan where there is no plan, and the choice, in words.

    `sets` are the choices as changes of the scenario; empty where nothing is chosen.
    """

    values: np.ndarray
    choices: tuple[str | None, ...]
    sets: dict[str, tuple[str, ...]]
    method: str


@dataclass(frozen=True)
class Draws:
    """A scenario and what of it is drawn; `name` is the output that is looked at.

    `workers` are processes that solve; with `shown` a bar on standard error shows how far it is.
    """

    tree: Tree
    folder: Path
    marginals: Sequence[Marginal]
    name: str
    workers: int = 1
    shown: bool = False

    def by_path(self, rows: Sequence[T]) -> dict[str, T]:
        """What is said of each marginal, by its path."""
        return {marginal.path: row for marginal, row in zip(self.marginals, rows, strict=True)}

    def at(self, shares: np.ndarray, sets: Sequence[str] = ()) -> Answered:
        """Answers at shares of every marginal, shape (n, d); `sets` are changes made first."""
        base = changed(self.tree, list(sets))
        drawn = [marginal.at(shares[:, i]) for i, marginal in enumerate(self.marginals)]
        closed = _closed(base, self.folder, self.marginals, drawn, self.name)
        if closed is not None:
            return closed
        points = [tuple(map(_set, self.marginals, values)) for values in zip(*drawn, strict=True)]
        plans: list[Search] = []
        with progress(len(points), 0, shown=self.shown) as advance:
            for several in _pieces(partial(_searched, base, self.folder), points, self.workers):
                plans += several
                advance(len(several))
        plans = [plan if self.name in plan.outputs else NO_PLAN for plan in plans]
        return Answered(
            np.array([plan.outputs.get(self.name, np.nan) for plan in plans], dtype=np.float64),
            tuple(plan.choice if plan.feasible else None for plan in plans),
            {plan.choice: plan.holds for plan in plans if plan.feasible},
            "solved again at each draw",
        )


def _pieces(
    searched: Callable[[Sequence[Sets]], list[Search]], points: Sequence[Sets], workers: int
) -> Iterator[list[Search]]:
    """The answers of all points, piece by piece, in their order."""
    alone = workers == 1 or len(points) <= workers
    size = TOGETHER if alone else CHUNK
    pieces = [points[i : i + size] for i in range(0, len(points), size)]
    if alone:
        yield from map(searched, pieces)
        return
    # A fresh process: a solver's threads do not survive a fork.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(searched, pieces)


def _set(marginal: Marginal, value: float) -> str:
    """`PATH=VALUE` of one draw."""
    if not marginal.numeric:
        return f"{marginal.path}={marginal.ends[int(value)]}"
    return f"{marginal.path}={float(value)!r}"


def _searched(tree: Tree, folder: Path, points: Sequence[Sets]) -> list[Search]:
    """The best plan at several draws, searched together; a draw that makes no sense has none."""
    questions, beside = zip(*(_question(tree, folder, sets) for sets in points), strict=True)
    searched = search_each(questions, beside, [", ".join(sets) for sets in points])
    # A point and what works out its numbers stay in the process that searched.
    return [
        replace(plan, plan=None, missed=None, row=None, outputs=dict(plan.outputs))
        for plan in (each or NO_PLAN for each in searched)
    ]


def _question(tree: Tree, folder: Path, sets: Sets) -> tuple[Question | None, Mapping[str, float]]:
    """The question of a draw, None where it makes no sense, with the coefficients beside it."""
    beside = [change for change in sets if change.startswith(BESIDE)]
    pairs = (change.removeprefix(BESIDE).partition("=") for change in beside)
    try:
        question = checked(changed(tree, [each for each in sets if each not in beside]), folder)
    except InputError:
        return None, {}
    return question, {name: float(value) for name, _, value in pairs}


def _closed(
    tree: Tree, folder: Path, marginals: Sequence[Marginal], drawn: Sequence[np.ndarray], name: str
) -> Answered | None:
    """All draws at once, where every path is a number of the equations and nothing is chosen."""
    question = checked(tree, folder)
    problem = problem_of(question.problem)
    if not isinstance(problem, HasArrays) or not len(drawn[0]):
        return None
    if not all(marginal.numeric and problem.is_array(marginal.path) for marginal in marginals):
        return None
    values = {
        m.path: np.asarray(v, dtype=np.float64) for m, v in zip(marginals, drawn, strict=True)
    }
    ends = {path: np.array([v.min(), v.max()]) for path, v in values.items()}
    model = problem.array_model(question, ends)
    if model is None:
        return None
    columns = model(values)
    if not isinstance(columns.get(name), np.ndarray):
        return None
    feasible = np.asarray(columns["status"]) == 0
    label = str(model.words["layout"])
    return Answered(
        np.where(feasible, columns[name], np.nan),
        tuple(label if each else None for each in feasible.tolist()),
        {label: ()},
        "closed form",
    )
