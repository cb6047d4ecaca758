"""Inferences that cannot all hold: which assumptions clash, and which one alone would reconcile.

In logarithms every reading is a row of a linear program, and every assumption a bound. Where two
readings of one quantity do not meet, the program of what they rest on is infeasible: its dual names
rows that already clash, and leaving out one after the other makes the set minimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from planner.problems.prices.assumptions import Assumption
from planner.problems.prices.inferences import Reading, SheetInference
from planner.text.errors import SolverError

QUANTITIES = {"N_active": "n_active", "N_total": "n_total", "b_kv": "kv_bytes_per_token",
              "q_mem": "memory_over_arithmetic"}  # fmt: skip
CLOSE = 1e-7  # of a logarithm, in which rows of a feasible program are broken


@dataclass(frozen=True)
class LogRow:
    """`low <= sum of coefficients times variables <= high`, in logarithms, of one assumption."""

    group: str
    coefficients: Mapping[str, float]
    low: float
    high: float


@dataclass(frozen=True)
class LogSystem:
    """Rows of which each belongs to an assumption; an assumption is dropped with all its rows."""

    rows: tuple[LogRow, ...]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The assumptions, in the order of the rows."""
        return tuple(dict.fromkeys(row.group for row in self.rows))

    def feasible(self, groups: Iterable[str]) -> bool:
        """Whether these assumptions can hold together."""
        return self._elastic(tuple(groups), None)[0] <= CLOSE

    def stretch(self, group: str) -> float | None:
        """By how much one assumption must give way alone; None where that reconciles nothing."""
        broken, _ = self._elastic(self.groups, group)
        return None if math.isinf(broken) else broken

    def minimal(self) -> tuple[str, ...]:
        """Assumptions that clash, none of which can be left out; empty where all can hold.

        The dual of the elastic program names a clashing set; a deletion filter makes it minimal.
        """
        broken, clashing = self._elastic(self.groups, None)
        if broken <= CLOSE:
            return ()
        needed = clashing
        for group in clashing:  # whoever was needed in a larger set is needed in a smaller one
            rest = tuple(each for each in needed if each != group)
            broken, certificate = self._elastic(rest, None)
            if broken > CLOSE:
                needed = tuple(each for each in rest if each in certificate)
        return needed

    def _elastic(self, groups: tuple[str, ...], only: str | None) -> tuple[float, tuple[str, ...]]:
        """The least by which rows are broken, and the assumptions that its dual weighs.

        Every row may be broken, or those of `only`, in which case infinity says that it is not
        enough, and the most that one of them is broken counts, not the sum.
        """
        names = list(dict.fromkeys(x for row in self.rows for x in row.coefficients))
        places = {name: i for i, name in enumerate(names)}
        sides: list[np.ndarray] = []
        limits: list[float] = []
        owners: list[str] = []
        for row in self.rows:
            if row.group not in groups:
                continue
            line = np.zeros(len(names))
            for name, coefficient in row.coefficients.items():
                line[places[name]] = coefficient
            for sign, limit in ((1.0, row.high), (-1.0, -row.low)):
                if math.isfinite(limit):
                    sides.append(sign * line)
                    limits.append(limit)
                    owners.append(row.group)
        if not sides:
            return 0.0, ()
        count = len(sides)
        if only is None:
            slack = -np.eye(count)
        else:
            slack = -np.array([[float(owner == only)] for owner in owners])
        solved = linprog(
            np.r_[np.zeros(len(names)), np.ones(slack.shape[1])],
            A_ub=np.c_[np.array(sides), slack], b_ub=np.array(limits),
            bounds=[(None, None)] * len(names) + [(0, None)] * slack.shape[1],
        )  # fmt: skip
        if solved.status == 2 and only is not None:
            return math.inf, ()
        if solved.status != 0 or solved.fun is None:
            raise SolverError(f"the program of the assumptions was not solved: {solved.message}")
        duals = solved.ineqlin.marginals
        weighed = dict.fromkeys(o for o, y in zip(owners, duals, strict=True) if y < -CLOSE)
        return float(solved.fun), tuple(weighed)


@dataclass(frozen=True)
class Reconciliation:
    """One assumption that would reconcile alone, and the factor by which it would have to give."""

    assumption: str
    factor: float


@dataclass(frozen=True)
class Contradiction:
    """Readings of one quantity whose intervals do not meet, and what clashes behind them.

    `factor` is the gap between the intervals, None where only all together clash and none of the
    assumptions would settle it alone; `minimal` the assumptions of which none can be left
    out of the clash, `reconciled_by` those that alone would settle it, the cheapest first.
    """

    name: str
    between: tuple[str, ...]
    factor: float | None
    minimal: tuple[str, ...]
    reconciled_by: tuple[Reconciliation, ...]
    system: LogSystem | None = field(default=None, repr=False, compare=False)


def contradictions(
    lines: Sequence[SheetInference], stated: Mapping[str, Assumption]
) -> tuple[Contradiction, ...]:
    """Every pair of readings that do not meet, or one clash of all where each pair does.

    Parameters
    ----------
    stated : what is stated of a quantity, by its name.
    """
    readings = [line for line in lines if line.reading is not None]
    pairs = [*_apart(readings, stated)]
    if pairs:
        return tuple(pairs)
    system = system_of([line.reading for line in readings if line.reading], stated)
    clashing = system.minimal()
    if not clashing:
        return ()
    settled = _settled(system, clashing)
    factor = min((each.factor for each in settled), default=None)
    between = tuple(each for each in clashing if each in {line.origin for line in readings})
    return (Contradiction("together", between or clashing, factor, clashing, settled, system),)


def _apart(
    readings: Sequence[SheetInference], stated: Mapping[str, Assumption]
) -> Iterator[Contradiction]:
    """Pairs of readings of one quantity, and readings beside what is stated, that do not meet."""
    for a, b in combinations(readings, 2):
        if a.name == b.name and (factor := gap(a.ends, b.ends)) is not None:
            yield _between(a.name, (a, b), (a.origin, b.origin), factor, readings, stated)
    for line in readings:
        fact = stated.get(line.name)
        if fact is None:
            continue
        ends = [value for point in fact.points for value in point.values()]
        factor = gap(line.ends, (min(ends), max(ends)))
        if factor is not None:
            yield _between(line.name, (line,), (line.origin, fact.name), factor, readings, stated)


def gap(a: tuple[float, float], b: tuple[float, float]) -> float | None:
    """The factor between two intervals; None where they meet."""
    if a[1] < b[0] * (1 - CLOSE):
        return b[0] / a[1] if a[1] > 0 else math.inf
    if b[1] < a[0] * (1 - CLOSE):
        return a[0] / b[1] if b[1] > 0 else math.inf
    return None


def _between(
    name: str, clash: tuple[SheetInference, ...], origins: tuple[str, ...], factor: float,
    readings: Sequence[SheetInference], stated: Mapping[str, Assumption],
) -> Contradiction:  # fmt: skip
    """The clash of two readings, with what they rest on."""
    behind = [line.reading for line in clash if line.reading is not None]
    derived = {
        QUANTITIES[symbol]
        for reading in behind for each in reading.assumptions if each.derived
        for symbol in each.symbols
    }  # fmt: skip
    for quantity in derived:  # the first reading of a quantity is the one that others take
        first = next(line.reading for line in readings if line.name == quantity)
        if first is not None and first not in behind:
            behind.append(first)
    system = system_of(behind, {x: v for x, v in stated.items() if x == name or len(clash) == 2})
    clashing = system.minimal()
    return Contradiction(name, origins, factor, clashing, _settled(system, clashing), system)


def _settled(system: LogSystem, clashing: Sequence[str]) -> tuple[Reconciliation, ...]:
    """The assumptions of a clash that alone would reconcile the whole system."""
    stretches = ((group, system.stretch(group)) for group in clashing)
    settled = [Reconciliation(group, math.exp(x)) for group, x in stretches if x is not None]
    return tuple(sorted(settled, key=lambda row: (round(row.factor, 9), row.assumption)))


def system_of(readings: Sequence[Reading], stated: Mapping[str, Assumption]) -> LogSystem:
    """The rows of readings and of their assumptions; what is stated bounds its quantity.

    A reading that is no product of powers is one row between its ends, dropped as a whole.
    """
    rows: dict[tuple[object, ...], LogRow] = {}
    for reading in readings:
        logarithm = reading.monomial()
        if logarithm is None:
            low, high = (math.log(end) if end > 0 else -math.inf for end in reading.ends)
            group = f"{reading.origin}: {', '.join(map(str, reading.assumptions))}"
            rows[group, reading.name] = LogRow(group, {reading.name: 1.0}, low, high)
            continue
        constant, powers = logarithm
        coefficients = {reading.name: 1.0}
        for assumption in reading.assumptions:
            for name, power, row in _variables(assumption, powers):
                coefficients[name] = coefficients.get(name, 0.0) - power
                if row is not None:
                    rows[row.group, name] = row
        group = f"{reading.origin}: {reading.statement}"
        low = -math.inf if reading.sense == "<=" else constant
        high = math.inf if reading.sense == ">=" else constant
        rows[group, reading.name] = LogRow(group, coefficients, low, high)
    for quantity, fact in stated.items():
        logs = [math.log(value) for point in fact.points for value in point.values()]
        row = LogRow(str(fact), {quantity: 1.0}, min(logs), max(logs))
        rows[row.group, quantity] = row
    return LogSystem(tuple(rows.values()))


def _variables(
    assumption: Assumption, powers: Mapping[str, float]
) -> Iterator[tuple[str, float, LogRow | None]]:
    """The variable that an assumption is in a reading, its power there, and its bounds.

    Symbols that vary together (the figures of one chip) are one variable: the product in which
    the reading has them, so that what ties them is kept.
    """
    used = {x: powers[x] for x in assumption.symbols if powers.get(x)}
    if not used:
        return
    scale = next(iter(used.values()))
    pattern = {x: power / scale for x, power in used.items()}
    single = next(iter(used)) if len(used) == 1 else ""
    if single in QUANTITIES:
        name = QUANTITIES[single]
    else:
        name = f"{assumption.name}: " + "*".join(f"{x}^{p:g}" for x, p in sorted(pattern.items()))
    logs = [sum(p * math.log(point[x]) for x, p in pattern.items()) for point in assumption.points]
    row = LogRow(str(assumption), {name: 1.0}, min(logs), max(logs))
    yield name, scale, None if assumption.derived else row
