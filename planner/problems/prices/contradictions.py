"""Inferences that cannot all hold: which assumptions clash, and which one alone would reconcile.

In logarithms every reading is a row of a linear program, and every assumption a bound. What is one
of several machines is one program for each machine: assumptions clash where every one of them is
infeasible. The dual of a program names rows that already clash, and leaving out one after the other
makes the set minimal.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, repeat

import numpy as np
from scipy.optimize import linprog

from planner.problems.prices.inferences import Assumption, Reading, SheetInference
from planner.text.errors import SolverError

QUANTITIES = {"N_active": "n_active", "N_total": "n_total", "b_kv": "kv_bytes_per_token",
              "q_mem": "memory_over_arithmetic"}  # fmt: skip
PER_PRICE = ("break_even_requests",)  # each of its own write price: two that differ do not clash
FEASIBLE_TOL = 1e-7  # ln; rows violated by more are infeasible


@dataclass(frozen=True)
class LogRow:
    """`low <= sum of coefficients times variables <= high`, in logarithms, of one assumption.

    A row of a `machine` holds where that one serves. What an assumption is off by, it is off in its
    rows that are not `firm`.
    """

    group: str
    coefficients: Mapping[str, float]
    low: float
    high: float
    machine: str = ""
    firm: bool = False


@dataclass(frozen=True)
class LogSystem:
    """Rows in logarithms, each of one assumption, which is dropped with all its rows."""

    rows: tuple[LogRow, ...]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The assumptions, in the order of the rows."""
        return tuple(dict.fromkeys(row.group for row in self.rows))

    def feasible(self, groups: Iterable[str]) -> bool:
        """True if the assumptions of `groups` can all hold."""
        return self._elastic(tuple(groups), None)[0] <= FEASIBLE_TOL

    def stretch(self, group: str) -> float | None:
        """By how much one assumption must give way alone; None where that reconciles nothing."""
        broken, _ = self._elastic(self.groups, group)
        return None if math.isinf(broken) else broken

    def minimal(self, without: Iterable[str] = ()) -> tuple[str, ...]:
        """Minimal set of assumptions that clash; empty if all can hold.

        The dual of the elastic program names a clashing set; a deletion filter makes it minimal.

        Args:
            without: assumptions that are not sought among.
        """
        broken, clashing = self._elastic(tuple(x for x in self.groups if x not in {*without}), None)
        if broken <= FEASIBLE_TOL:
            return ()
        needed = clashing
        for group in clashing:  # whoever was needed in a larger set is needed in a smaller one
            rest = tuple(each for each in needed if each != group)
            broken, certificate = self._elastic(rest, None)
            if broken > FEASIBLE_TOL:
                needed = tuple(each for each in rest if each in certificate)
        return needed

    def _elastic(self, groups: tuple[str, ...], only: str | None) -> tuple[float, tuple[str, ...]]:
        """Minimum violation of the rows, and the assumptions with non-zero duals.

        Every row may be broken, or those of `only`, in which case infinity says that it is not
        enough, and the most that one of them is broken counts, not the sum. Of several machines the
        best counts, and what clashes for each of them.
        """
        rows = [row for row in self.rows if row.group in groups]
        machines = tuple(dict.fromkeys(row.machine for row in rows if row.machine)) or ("",)
        least, weighed = math.inf, dict.fromkeys(groups, False)
        for machine in machines:
            broken, binding = _broken([x for x in rows if x.machine in ("", machine)], only)
            names = dict.fromkeys(row.group for row in binding)
            if only is None and (broken <= FEASIBLE_TOL or not any(row.machine for row in binding)):
                return broken, tuple(names)  # it clashes without any machine, or not at all
            least = min(least, broken)
            weighed |= dict.fromkeys(names, True)
        return least, tuple(group for group, binds in weighed.items() if binds)


def _broken(rows: Sequence[LogRow], only: str | None) -> tuple[float, list[LogRow]]:
    """Minimum violation of the rows of one machine, and the rows with non-zero duals."""
    names = list(dict.fromkeys(x for row in rows for x in row.coefficients))
    sides, limits, owners = [], [], []
    for row in rows:
        line = [row.coefficients.get(name, 0.0) for name in names]
        for sign, limit in ((1.0, row.high), (-1.0, -row.low)):
            if math.isfinite(limit):
                sides.append([sign * x for x in line])
                limits.append(limit)
                owners.append(row)
    if not sides:
        return 0.0, []
    if only is None:
        slack = -np.eye(len(sides))
    else:
        slack = -np.array([[float(row.group == only and not row.firm)] for row in owners])
    solved = linprog(
        np.r_[np.zeros(len(names)), np.ones(slack.shape[1])],
        A_ub=np.c_[np.array(sides), slack], b_ub=np.array(limits),
        bounds=[(None, None)] * len(names) + [(0, None)] * slack.shape[1],
    )  # fmt: skip
    if solved.status == 2 and only is not None:
        return math.inf, []
    if solved.status != 0 or solved.fun is None:
        raise SolverError(f"the program of the assumptions was not solved: {solved.message}")
    duals = solved.ineqlin.marginals
    return float(solved.fun), [
        row for row, y in zip(owners, duals, strict=True) if y < -FEASIBLE_TOL
    ]


@dataclass(frozen=True)
class Reconciliation:
    """An assumption that reconciles the readings alone, and its required factor."""

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
) -> tuple[tuple[Contradiction, ...], tuple[str, ...]]:
    """Clashes of readings, and the fewest assumptions without which all that is left can hold.

    Every pair that does not meet is a clash. Others, of which each two readings meet, are sought as
    long as the fewest assumptions that settle those before do not settle all.

    Args:
        stated: what is stated of a quantity, by its name.
    """
    readings = [line for line in lines if line.reading is not None and line.name not in PER_PRICE]
    clashes = [*_disagreements(readings, stated)]
    system = build_log_system([line.reading for line in readings if line.reading], stated)
    origins = {_taken_for_granted(x.reading): x.origin for x in readings if x.reading}
    while True:
        ways = minimum_hitting_sets([x.minimal for x in clashes])
        for left_out in ways:
            if system.feasible(x for x in system.groups if x not in left_out):
                return tuple(clashes), left_out
        clashing = system.minimal(without=ways[0])
        settled = _settled(system, clashing)
        factor = min((each.factor for each in settled), default=None)
        read = tuple(dict.fromkeys(origins[x] for x in clashing if x in origins))
        clashes.append(Contradiction("together", read, factor, clashing, settled, system))


def minimum_hitting_sets(sets: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Every hitting set of minimum size: at least one name from each of the sets."""
    names = list(dict.fromkeys(name for each in sets for name in each))
    ways: list[tuple[str, ...]] = []
    for count in range(len(sets) + 1):
        several = combinations(names, count)
        ways = [chosen for chosen in several if all({*chosen} & {*each} for each in sets)]
        if ways:
            break
    return ways


def _disagreements(
    readings: Sequence[SheetInference], stated: Mapping[str, Assumption]
) -> Iterator[Contradiction]:
    """Contradictions between two readings of one quantity, or a reading and a stated value."""
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
    if a[1] < b[0] * (1 - FEASIBLE_TOL):
        return b[0] / a[1] if a[1] > 0 else math.inf
    if b[1] < a[0] * (1 - FEASIBLE_TOL):
        return a[0] / b[1] if b[1] > 0 else math.inf
    return None


def _between(
    name: str, clash: tuple[SheetInference, ...], origins: tuple[str, ...], factor: float,
    readings: Sequence[SheetInference], stated: Mapping[str, Assumption],
) -> Contradiction:  # fmt: skip
    """Contradiction of `clash`, with its minimal set of assumptions and its reconciliations."""
    behind = [line.reading for line in clash if line.reading is not None]
    derived = {
        QUANTITIES[symbol]
        for reading in behind for each in reading.assumptions if each.derived
        for symbol in each.symbols
    }  # fmt: skip
    for quantity in derived:  # first reading of a quantity: later readings use it
        first = next(line.reading for line in readings if line.name == quantity)
        if first is not None and first not in behind:
            behind.append(first)
    system = build_log_system(
        behind, {x: v for x, v in stated.items() if x == name or len(clash) == 2}
    )
    clashing = system.minimal()
    return Contradiction(name, origins, factor, clashing, _settled(system, clashing), system)


def _settled(system: LogSystem, clashing: Sequence[str]) -> tuple[Reconciliation, ...]:
    stretches = ((group, system.stretch(group)) for group in clashing)
    settled = [Reconciliation(group, math.exp(x)) for group, x in stretches if x is not None]
    return tuple(sorted(settled, key=lambda row: (round(row.factor, 9), row.assumption)))


def build_log_system(readings: Sequence[Reading], stated: Mapping[str, Assumption]) -> LogSystem:
    """Rows of readings and of their assumptions; a stated value bounds its quantity.

    A reading that is no product of powers is one row between its ends, dropped as a whole.
    """
    rows: dict[tuple[str, ...], LogRow] = {}
    for reading in readings:
        logarithm, group = reading.monomial, _taken_for_granted(reading)
        if logarithm is None:
            low, high = (math.log(end) if end > 0 else -math.inf for end in reading.ends)
            rows[group, reading.name] = LogRow(group, {reading.name: 1.0}, low, high)
            continue
        constant, powers = logarithm
        coefficients = {reading.name: 1.0}
        for assumption in reading.assumptions:
            name, power, bounds = _variable(assumption, powers)
            if name:
                coefficients[name] = coefficients.get(name, 0.0) - power
            rows |= {(row.group, row.machine, *row.coefficients): row for row in bounds}
        low = -math.inf if reading.sense == "<=" else constant
        high = math.inf if reading.sense == ">=" else constant
        rows[group, reading.name] = LogRow(group, coefficients, low, high)
    for quantity, fact in stated.items():
        logs = [math.log(value) for point in fact.points for value in point.values()]
        row = LogRow(str(fact), {quantity: 1.0}, min(logs), max(logs))
        rows[row.group, quantity] = row
    return LogSystem(tuple(rows.values()))


def _taken_for_granted(reading: Reading) -> str:
    if reading.monomial is None:
        return f"{reading.origin}: {', '.join(map(str, reading.assumptions))}"
    return f"{reading.origin}: {reading.statement}"


def _variable(
    assumption: Assumption, powers: Mapping[str, float]
) -> tuple[str, float, tuple[LogRow, ...]]:
    """Variable of an assumption in a reading (of a machine one), its power, its bounds."""
    used = {x: powers[x] for x in assumption.symbols if powers.get(x)}
    if not used:
        return "", 0.0, ()
    scale = next(iter(used.values()))
    pattern = {x: power / scale for x, power in used.items()}
    single = next(iter(used)) if len(used) == 1 else ""
    if single in QUANTITIES:
        name = QUANTITIES[single]
    else:
        name = f"{assumption.name}: " + "*".join(f"{x}^{p:g}" for x, p in sorted(pattern.items()))
    if assumption.derived:
        return name, scale, ()
    by_machine: dict[str, list[Mapping[str, float]]] = {}
    for machine, point in zip(assumption.machines or repeat(""), assumption.points, strict=False):
        by_machine.setdefault(machine, []).append({x: math.log(point[x]) for x in pattern})
    rows, group = [], str(assumption)
    for machine, points in by_machine.items():
        # A product of symbols between its ends; of a machine, tied to its symbols that are open.
        ends = {x: (min(y[x] for y in points), max(y[x] for y in points)) for x in pattern}
        free = {x for x, (low, high) in ends.items() if machine and low < high}
        logs = [sum(p * at[x] for x, p in pattern.items() if x not in free) for at in points]
        tied = {f"{assumption.name}: {x}": -pattern[x] for x in free}
        rows.append(LogRow(group, {name: 1.0, **tied}, min(logs), max(logs), machine))
        for x in free:
            alone = {f"{assumption.name}: {x}": 1.0}
            rows.append(LogRow(group, alone, *ends[x], machine, firm=True))
    return name, scale, tuple(rows)
