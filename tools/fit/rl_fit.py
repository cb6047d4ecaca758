"""What a framework of reinforcement learning adds to its pools, fitted to measured steps.

Three numbers: factors on the time of rollouts and of learning, and the time of a step that neither
has. The pools are planned once a row; where a row does not say how chips were split, the split that
is best by the numbers of the fit is taken, as a plan takes it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy.optimize import least_squares

from planner.measurements.published_names import BadRow
from planner.measurements.readers.sheets import Measurements, positive_or_none
from planner.measurements.training_steps import rl_scenario
from planner.problems import rl
from planner.problems.rl.search import resolve_rl
from planner.text.errors import InputError, PlannerError
from planner.text.quantities import show

FEWEST = 6  # rows that say something of three numbers
STARTS = ((1.0, 1.0, 1.0), (2.0, 1.0, 60.0))  # (1, 1, s)
USUAL = 0.1  # error in logarithms beyond which a row counts less than its square
EXPERIMENTAL = 0.2  # mean error on rows left out above which an answer is called so
LEAVES = ("model", "version", "chip")


@dataclass(frozen=True)
class RlRow:
    """A measured step [s] with its pools: rows of (rollouts, learning, weights sent) [s]."""

    id: str
    line: int
    cells: Mapping[str, str]
    seconds: float
    pools: np.ndarray
    combined: Callable[[np.ndarray, tuple[float, float, float]], np.ndarray]

    def predicted(self, numbers: tuple[float, float, float]) -> float:
        """Time of the step by a framework's numbers, the best split taken [s]."""
        return float(np.min(self.combined(self.pools, numbers)))

    def error(self, numbers: tuple[float, float, float]) -> float:
        """Predicted over measured time, less one [1]."""
        return self.predicted(numbers) / self.seconds - 1


@dataclass(frozen=True)
class UnseenErrors:
    """Errors of rows that a fit did not see [1], by what was left out together."""

    kind: str
    errors: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean absolute error [1]."""
        return fmean(map(abs, self.errors))

    @property
    def median(self) -> float:
        """Median absolute error [1]."""
        return median(map(abs, self.errors))


@dataclass(frozen=True)
class RlScores:
    """A framework's numbers by all rows, its errors, and the rows that are not used."""

    framework: str
    rows: tuple[RlRow, ...]
    numbers: tuple[float, float, float]
    left_out: tuple[UnseenErrors, ...]
    refused: tuple[tuple[int, str], ...]

    @property
    def document(self) -> dict[str, object]:
        """Everything as plain data."""
        return {
            "kind": "reinforcement learning scores",
            "framework": self.framework,
            "fit": dict(zip(("rollouts", "learning", "beside_s"), self.numbers, strict=True)),
            "rows": [{"line": row.line, "id": row.id, "measured_s": row.seconds,
                      "error": row.error(self.numbers)} for row in self.rows],
            "unfitted": self._errors((1.0, 1.0, 0.0)).mean,
            "left_out": [{"kind": x.kind, "n": len(x.errors), "mean": x.mean, "median": x.median}
                         for x in self.left_out],
            "refused": [{"line": line, "reason": why} for line, why in self.refused],
        }  # fmt: skip

    def _errors(self, numbers: tuple[float, float, float]) -> UnseenErrors:
        return UnseenErrors("nothing", tuple(row.error(numbers) for row in self.rows))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        writes, learns, beside = self.numbers
        yield (
            f"{self.framework}, {len(self.rows)} steps: rollouts x {writes:.2f}, learning x "
            f"{learns:.2f}, {show(beside, 'time')} beside; absolute errors, median / mean [%]"
        )
        plain, fitted = self._errors((1.0, 1.0, 0.0)), self._errors(self.numbers)
        for words, errors in (
            ("both pools alone, nothing fitted", plain),
            ("fitted to these rows", fitted),
            *((f"a {x.kind} left out", x) for x in self.left_out),
        ):
            both = f"{100 * errors.median:.1f} / {100 * errors.mean:.1f}"
            yield f"  {words:<36}{len(errors.errors):>4}{both:>16}"
        worst = max((x.mean for x in self.left_out), default=math.inf)
        if worst > EXPERIMENTAL:
            yield f"  experimental: over {EXPERIMENTAL:.0%} on rows left out".replace("%", " %")
        for row in self.rows:
            cells = row.cells
            made = f"{cells['model']} on {cells['chips']} {cells['chip']}, {cells['policy']} policy"
            yield (f"  {row.id or row.line:<8}{made:<46}{row.seconds:>8.4g} s"
                   f"{100 * row.error(self.numbers):>+8.1f} %")  # fmt: skip
        for line, why in self.refused:
            yield f"  line {line} not used: {why}"


def rl_scores(table: Measurements) -> RlScores:
    """The framework of a table fitted, and scored on rows left out.

    Raises InputError where rows of several stand together, or too few can be planned.
    """
    names = dict.fromkeys(cells.get("framework", "") for *_, cells in table.numbered)
    if len(names) > 1:
        raise InputError(f"{table.path}: steps of {', '.join(names)}; fit each by itself")
    rows: list[RlRow] = []
    refused: list[tuple[int, str]] = []
    for _, line, cells in table.numbered:
        try:
            rows.append(_row(line, cells))
        except (PlannerError, BadRow) as error:
            refused.append((line, " ".join(str(error).split())))
    if len(rows) < FEWEST:
        reasons = "".join(f"; line {line}: {why}" for line, why in refused)
        raise InputError(f"{table.path}: fewer than {FEWEST} steps can be planned{reasons}")
    name = next(iter(names))
    return RlScores(name, tuple(rows), fitted(rows), tuple(_left_out(rows)), tuple(refused))


def fitted(rows: Sequence[RlRow]) -> tuple[float, float, float]:
    """The numbers of least error in logarithms, few large ones weighed little; none is negative."""

    def missed(logs: np.ndarray) -> np.ndarray:
        first, second, third = np.exp(logs).tolist()
        numbers = first, second, third
        return np.array([math.log(row.predicted(numbers) / row.seconds) for row in rows])

    runs = [least_squares(missed, np.log(start), loss="soft_l1", f_scale=USUAL) for start in STARTS]
    best = min(runs, key=lambda run: float(run.cost))
    first, second, third = np.exp(best.x).tolist()
    return first, second, third


def _row(line: int, cells: Mapping[str, str]) -> RlRow:
    pools, combined = pools_of(cells)
    seconds = positive_or_none(cells["step_s"])
    if seconds is None:
        raise InputError(f"step_s is {cells['step_s']!r}, not a positive number")
    return RlRow(cells.get("id", ""), line, cells, seconds, pools, combined)


def pools_of(
    cells: Mapping[str, str],
) -> tuple[np.ndarray, Callable[[np.ndarray, tuple[float, float, float]], np.ndarray]]:
    """Times of rollouts, learning and weights sent (n, 3) [s] of every split, and their step.

    Raises BadRow for a cell that is not understood, PlannerError for what a planner refuses, or
    where no split fits.
    """
    question = rl_scenario(cells, "none")
    pools = rl.search_pools(resolve_rl(question), every=True).ranked
    if not pools:
        raise BadRow("none of the pools holds the model")
    times = [(each.rollouts.seconds, each.learning.seconds, each.sent) for each in pools]
    return np.array(times), rl.step_function(question)


def _left_out(rows: Sequence[RlRow]) -> Iterator[UnseenErrors]:
    """Errors by fits that did not see a model, a version, a chip."""
    for kind in LEAVES:
        groups = dict.fromkeys(row.cells.get(kind, "") for row in rows)
        if len(groups) < 2:
            continue
        errors: list[float] = []
        for group in groups:
            others = [row for row in rows if row.cells.get(kind, "") != group]
            numbers = fitted(others)
            errors += [row.error(numbers) for row in rows if row.cells.get(kind, "") == group]
        yield UnseenErrors(kind, tuple(errors))
