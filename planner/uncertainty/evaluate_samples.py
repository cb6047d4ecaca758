"""Uncertain parameters from the unit interval to values, and a scenario answered at many draws.

As arrays where nothing is chosen, else searched together.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from planner.catalogue.ranges import no_range
from planner.protocol.parameter import assignment, lookup_value, path_unit
from planner.protocol.plan import max_gap
from planner.protocol.problem import NO_PLAN, PREFIX, HasArrays, Search, get_problem, search_each
from planner.report.text.sensitivity import Uncertainty
from planner.scenario import check_tree, in_base_units
from planner.scenario.loading import Question
from planner.scenario.tree import Tree, apply_sets
from planner.text.console import progress
from planner.text.errors import FieldError, InputError, quote

DEFAULT_COVERAGE = 0.9  # probability that a lognormal value falls between its ends
MAX_NORMAL_QUANTILE = 4.0  # standard deviations; a normal draw is clipped there


@dataclass(frozen=True)
class Marginal(Uncertainty):
    """The distribution of one path; `within` is the share of a lognormal's values in its ends."""

    within: float = field(default=DEFAULT_COVERAGE, repr=False)  # no part of JSON

    @property
    def numeric(self) -> bool:
        """True if its values are numbers."""
        return self.kind != "one_of"

    def at(self, share: np.ndarray) -> np.ndarray:
        """The values that these shares of the draws do not exceed; places in `ends` of `one_of`."""
        from scipy.special import ndtri

        kind, ends = self.kind, self.ends
        if not self.numeric:
            return np.minimum(np.floor(share * len(ends)), len(ends) - 1).astype(int)
        if kind == "uniform":
            return np.asarray(ends[0] + share * (ends[1] - ends[0]))
        if kind == "log_uniform":
            return np.asarray(ends[0] * (ends[1] / ends[0]) ** share)
        if kind == "triangular":
            low, mode, high = ends
            turn = (mode - low) / (high - low)
            rising = low + np.sqrt(share * (high - low) * (mode - low))
            falling = high - np.sqrt((1 - share) * (high - low) * (high - mode))
            return np.where(share < turn, rising, falling)
        normal = np.clip(ndtri(share), -MAX_NORMAL_QUANTILE, MAX_NORMAL_QUANTILE)
        if kind == "normal":
            return np.asarray(ends[0] + ends[1] * normal)
        middle, half = math.sqrt(ends[0] * ends[1]), math.log(ends[1] / ends[0]) / 2
        return np.asarray(middle * np.exp(normal * half / ndtri((1 + self.within) / 2)))


def read_marginals(tree: Tree, folder: Path, scenario: Question) -> list[Marginal]:
    """Every uncertain parameter of a scenario, its ends read as the path reads them.

    Raises InputError with every mistake: paths that do not exist, ends that are no value of theirs.
    """
    uncertain: Mapping[str, Any] | None = getattr(scenario, "uncertain", None)
    if not uncertain:
        raise InputError(
            "uncertain: is missing: which givens are uncertain, such as "
            "price: {uniform: [$2/hour, $4/hour]}"
        )
    marginals, faults, mistakes = [], [], []
    for path, spread in uncertain.items():
        try:
            marginals.append(_marginal(tree, folder, scenario, path, spread))
        except FieldError as error:
            faults += list(error.faults)
        except InputError as error:
            mistakes += [(f"uncertain.{path}", each.message) for each in error.mistakes] or [
                (f"uncertain.{path}", str(error))
            ]
    if faults or mistakes:
        raise InputError(
            tree.mistake(("uncertain", name.removeprefix("uncertain.")), words)
            for name, words in [*faults, *mistakes]
        )
    return marginals


def _marginal(
    tree: Tree,
    folder: Path,
    scenario: Question,
    path: str,
    spread: str | Mapping[str, Sequence[object]],
) -> Marginal:
    problem = get_problem(scenario.problem)
    coefficient = problem.coefficient(scenario, path)
    unit = coefficient.unit if coefficient else path_unit(problem.kind, path.split(".")) or ""
    if isinstance(spread, str):  # `catalogue`, the only word that is read
        listed = coefficient.listed if coefficient else problem.listed(scenario, path)
        if listed is None:
            raise no_range(path, coefficient.unlisted if coefficient else None)
        source = listed.source or None
        return Marginal(path, listed.kind, listed.ends, unit, source, listed.within)
    ((kind, ends),) = spread.items()
    if kind == "one_of":
        if coefficient is not None:
            words = "one_of: a coefficient of a profile is drawn from numbers between two ends"
            raise FieldError((f"uncertain.{path}", words))
        for value in ends:
            _with(tree, folder, path, value)
        return Marginal(path, kind, tuple(ends))
    read = coefficient.read if coefficient else partial(_read, tree, folder, path)
    if kind == "normal":
        mean, text = read(ends[0]), str(ends[1]).strip()
        deviation = mean * _share(path, text) if text.endswith("%") else read(ends[1])
        values: tuple[float, ...] = (mean, deviation)
    else:
        values = tuple(map(read, ends))
    mistake = _wrong(kind, values)
    if mistake:
        raise FieldError((f"uncertain.{path}", f"{kind}: {mistake}"))
    return Marginal(path, kind, values, unit)


def _with(tree: Tree, folder: Path, path: str, written: object) -> Question:
    return check_tree(apply_sets(tree, [assignment(path, written)]), folder)


def _read(tree: Tree, folder: Path, path: str, written: object) -> float:
    value = lookup_value(_with(tree, folder, path, written), path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        message = f"expected a number, got {quote(written)}; one_of takes words"
        raise FieldError((f"uncertain.{path}", message))
    return float(value)


def _share(path: str, text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        message = f"normal: expected a standard deviation such as 5%, got {quote(text)}"
        raise FieldError((f"uncertain.{path}", message))
    return share


def _wrong(kind: str, ends: tuple[float, ...]) -> str | None:
    """Error text about the ends of a distribution; None if they are valid."""
    if kind == "normal":
        mean, deviation = ends
        if deviation <= 0:
            return f"expected a standard deviation above zero, got {deviation:g}"
        if mean - MAX_NORMAL_QUANTILE * deviation <= 0:
            return (
                f"{MAX_NORMAL_QUANTILE:g} standard deviations below the mean there is nothing "
                "left; give a smaller deviation, or lognormal: [low, high]"
            )
        return None
    if not ends[0] < ends[-1] or list(ends) != sorted(ends):
        return f"expected rising values, got {', '.join(f'{each:g}' for each in ends)}"
    if kind in ("log_uniform", "lognormal") and ends[0] <= 0:
        return f"expected values above zero, got {ends[0]:g}"
    return None


T = TypeVar("T")
Sets: TypeAlias = Sequence[str]

CHUNK = 8  # draws that a process searches together
SAMPLES_PER_BATCH = 128  # draws that are searched together in this process


@dataclass(frozen=True)
class SampleAnswers:
    """The answer at each draw: an output, nan without a feasible plan, and the choice, in words.

    `sets` are the choices as changes of the scenario; empty where nothing is chosen. `gap` is the
    widest of the answers.
    """

    values: np.ndarray
    choices: tuple[str | None, ...]
    sets: dict[str, tuple[str, ...]]
    method: str
    gap: float | None = 0.0


@dataclass(frozen=True)
class Draws:
    """A scenario and its uncertain values, drawn by `marginals`; `name` is the output studied.

    `workers` are processes that solve; with `shown` a bar on standard error shows how far it is.
    """

    tree: Tree
    folder: Path
    marginals: Sequence[Marginal]
    name: str
    workers: int = 1
    shown: bool = False

    def by_path(self, rows: Sequence[T]) -> dict[str, T]:
        """Rows of the marginals, by path."""
        return {marginal.path: row for marginal, row in zip(self.marginals, rows, strict=True)}

    def at(self, shares: np.ndarray, sets: Sequence[str] = ()) -> SampleAnswers:
        """Answers at shares of every marginal, shape (n, d); `sets` are changes made first."""
        base = apply_sets(self.tree, list(sets))
        drawn = [marginal.at(shares[:, i]) for i, marginal in enumerate(self.marginals)]
        closed = _closed(base, self.folder, self.marginals, drawn, self.name)
        if closed is not None:
            return closed
        based = in_base_units(base)
        points = [tuple(map(_set, self.marginals, values)) for values in zip(*drawn, strict=True)]
        plans: list[Search] = []
        with progress(len(points), 0, shown=self.shown) as advance:
            for several in _pieces(partial(_searched, based, self.folder), points, self.workers):
                plans += several
                advance(len(several))
        plans = [plan if self.name in plan.outputs else NO_PLAN for plan in plans]
        return SampleAnswers(
            np.array([plan.outputs.get(self.name, np.nan) for plan in plans], dtype=np.float64),
            tuple(plan.choice if plan.feasible else None for plan in plans),
            {plan.choice: plan.holds for plan in plans if plan.feasible},
            "solved again at each draw",
            max_gap(plan.gap for plan in plans if plan.feasible),
        )


def _pieces(
    searched: Callable[[Sequence[Sets]], list[Search]], points: Sequence[Sets], workers: int
) -> Iterator[list[Search]]:
    """The answers of all points, piece by piece, in their order."""
    alone = workers == 1 or len(points) <= workers
    size = SAMPLES_PER_BATCH if alone else CHUNK
    pieces = [points[i : i + size] for i in range(0, len(points), size)]
    if alone:
        yield from map(searched, pieces)
        return
    # A fresh process: a solver's threads do not survive a fork.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(searched, pieces)


def _set(marginal: Marginal, value: float) -> str:
    if not marginal.numeric:
        return f"{marginal.path}={marginal.ends[int(value)]}"
    return assignment(marginal.path, float(value))


def _searched(tree: Tree, folder: Path, points: Sequence[Sets]) -> list[Search]:
    questions, beside = zip(*(_question(tree, folder, sets) for sets in points), strict=True)
    searched = search_each(questions, beside, [", ".join(sets) for sets in points])
    # A point and what works out its numbers stay in the process that searched.
    return [
        replace(plan, plan=None, missed=None, row=None, outputs=dict(plan.outputs))
        for plan in (each or NO_PLAN for each in searched)
    ]


def _question(tree: Tree, folder: Path, sets: Sets) -> tuple[Question | None, Mapping[str, float]]:
    beside = [change for change in sets if change.startswith(PREFIX)]
    pairs = (change.removeprefix(PREFIX).partition("=") for change in beside)
    try:
        question = check_tree(
            apply_sets(tree, [each for each in sets if each not in beside]), folder
        )
    except InputError:
        return None, {}
    return question, {name: float(value) for name, _, value in pairs}


def _closed(
    tree: Tree, folder: Path, marginals: Sequence[Marginal], drawn: Sequence[np.ndarray], name: str
) -> SampleAnswers | None:
    """All draws in closed form; None unless every path is numeric and no choice is left open."""
    question = check_tree(tree, folder)
    problem = get_problem(question.problem)
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
    return SampleAnswers(
        np.where(feasible, columns[name], np.nan),
        tuple(label if each else None for each in feasible.tolist()),
        {label: ()},
        "closed form",
    )
