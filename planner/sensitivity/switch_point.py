"""Switch points of the best choice: the next switch, and the break-even of two choices.

Every value looked at is the exact problem solved again, over all its choices. For the next switch
steps widen from 3 % to threefold; where the choice has changed, the change is closed in on from
both sides. A choice that comes and goes within one step is not seen.

Of two choices, what belongs to the rival alone (its price, its machine, its model) is varied for
the rival alone; anything else, such as the length of prompts, for both. Where the better of the two
changes between two values looked at, the change is closed in on.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from planner.protocol.bracket import Bracket, find_bracket, find_brackets, middle, within_factor
from planner.protocol.elasticity import Elasticity
from planner.protocol.output import Output, output_named
from planner.protocol.parameter import Parameter, base_folder, lookup_value, path_unit, set_value
from planner.protocol.problem import NO_PLAN, Search, get_problem, search, search_each
from planner.scenario import check_tree, load_tree
from planner.scenario.grid import Axis, parse_grid
from planner.scenario.loading import Question, Source
from planner.scenario.tree import Tree, apply_sets
from planner.text.console import progress
from planner.text.errors import InputError, quote
from planner.text.tolerances import REL_TOL

STEPS = (1.03, 1.1, 1.25, 1.6, 2.2, 3.0)
RATIO_TOLERANCE = 1.003  # factor within which a switch is found
MIN_ELASTICITY = 2e-3  # elasticity, of any output, below which no switch is sought
MAX_PARAMETERS = 10  # parameters that are varied

CONTENDER_ONLY_PATHS = ("price", "system", "model", "profile", "choose", "phases", "serving")
SEARCH_SPAN = 10.0  # factor up and down of the present value, where no values are given
PROBE_POINTS = 9
BREAK_EVEN_RATIO_TOLERANCE = 1.001  # factor within which a break-even is found


def switch_points(
    best: Search,
    parameters: Sequence[Parameter],
    rows: Sequence[Elasticity],
    *,
    shown: bool = False,
) -> dict[str, tuple[dict[str, object], ...]]:
    """The switches of the parameters that matter most, the nearest down and up.

    With `shown` a bar on standard error shows how far it is.
    """
    varied = {parameter.path: parameter for parameter in parameters if parameter.to is not None}
    ranked = sorted((row for row in rows if row.solved), key=lambda row: -row.influence)
    wanted = [row for row in ranked if row.path in varied and _may_switch(row)][:MAX_PARAMETERS]
    nearest = next_switches(
        best, [(varied[row.path], up) for row in wanted for up in (False, True)], shown=shown
    )
    pairs = zip(nearest[::2], nearest[1::2], strict=True)
    return {
        row.path: tuple(switch for switch in pair if switch is not None)
        for row, pair in zip(wanted, pairs, strict=True)
    }


def next_switches(
    best: Search, sought: Sequence[tuple[Parameter, bool]], *, shown: bool = False
) -> list[dict[str, object] | None]:
    """Find, per parameter and direction, the first step with another choice, then bisect.

    `factor` is the nearest value looked at with the other choice, `before` the last one with the
    present choice, both solved; None where there is none. A round is searched together.
    """
    plans: list[dict[float, Search]] = [{} for _ in sought]
    going_on = len(sought)

    def differences(points: Sequence[tuple[int, float]]) -> list[float]:
        nonlocal going_on
        going_on, before = len({number for number, _ in points}), going_on
        advance(before - going_on)
        questions: list[Question | None] = []
        for parameter, times in [(sought[number][0], factor) for number, factor in points]:
            try:
                questions.append(None if parameter.to is None else parameter.to(times))
            except InputError:
                questions.append(None)
        then = search_each(questions)
        for (number, factor), plan in zip(points, then, strict=True):
            if plan is not None:
                plans[number][factor] = plan
        return [math.nan if plan is None else -1.0 if best.switched(plan) else 1.0 for plan in then]

    def proposes(up: bool) -> Callable[[Bracket], Sequence[float]]:
        steps = STEPS if up else tuple(1 / step for step in STEPS)
        return lambda bracket: (
            middle(bracket) if bracket.closed else steps[bracket.turn : bracket.turn + 1]
        )

    with progress(len(sought), 0, shown=shown) as advance:
        brackets = find_brackets(
            differences, [Bracket(1.0)] * len(sought), [proposes(up) for _, up in sought],
            within_factor(RATIO_TOLERANCE),
        )  # fmt: skip
        advance(going_on)
    return [
        _switch(best, bracket, looked_at[bracket.far]) if bracket.closed else None
        for bracket, looked_at in zip(brackets, plans, strict=True)
    ]


def _switch(best: Search, bracket: Bracket, then: Search) -> dict[str, object]:
    """Describe a bracketed change of choice for the answer."""
    return {
        "factor": bracket.far,
        "before": bracket.near,
        "from": best.choice,
        "to": then.choice,
        "counts": [best.small_counts, best.counts_in(then)],
        "verified": True,
    }


def _may_switch(row: Elasticity) -> bool:
    # Room that a batch of a few sequences leaves free may let one more in, though no slope says so.
    limit = row.group == "promises" or row.path.endswith(".memory")
    return row.path != "price" and (row.influence >= MIN_ELASTICITY or limit)


@dataclass(frozen=True)
class _Side:
    """A side of a break-even comparison: the name of its choice, and its scenario as a tree."""

    name: str
    tree: Tree
    folder: Path

    def at(self, path: str, value: float | None) -> Search:
        """Its best plan with a value at a path, or as it is."""
        where = self.tree, self.folder
        try:
            return search(check_tree(*where) if value is None else set_value(*where, path, value))
        except InputError:
            return NO_PLAN


@dataclass(frozen=True)
class _Rivalry:
    """Two choices over a path, which is varied for the rival `alone` or for both."""

    first: _Side
    rival: _Side
    path: str
    target: Output

    @property
    def alone(self) -> bool:
        """True if the path belongs to the rival only."""
        return self.path.partition(".")[0] in CONTENDER_ONLY_PATHS

    @cached_property
    def still(self) -> Search | None:
        """The plan of the first where it stays as it is."""
        return self.first.at(self.path, None) if self.alone else None

    def outputs(self, value: float) -> tuple[float | None, float | None]:
        """Outputs of the first choice and of the rival at a value; None if infeasible."""
        mine = self.still or self.first.at(self.path, value)
        theirs = self.rival.at(self.path, value)
        return mine.outputs.get(self.target.name), theirs.outputs.get(self.target.name)

    def lead(self, value: float) -> float:
        """Lead of the first choice over the rival, a log ratio; NaN if both are infeasible."""
        mine, theirs = self.outputs(value)
        if mine is None:
            return math.nan if theirs is None else -math.inf
        if theirs is None:
            return math.inf
        lead = math.log(theirs / mine) * (-1 if self.target.rises else 1)
        return lead if abs(lead) > REL_TOL else 0.0

    def better(self, lead: float) -> str | None:
        """Name of the leading choice, `either` on a tie; None without a lead."""
        if math.isnan(lead):
            return None
        return self.first.name if lead > 0 else self.rival.name if lead < 0 else "either"

    def crossing(self, low: float, high: float, *, leads: bool) -> dict[str, object]:
        """Bracket the break-even point between two values; both ends are solved.

        `leads` says that the first is the better one below.
        """

        def difference(values: Sequence[float]) -> list[float]:
            return [1.0 if (self.lead(value) > 0) == leads else -1.0 for value in values]

        bracket = find_bracket(
            difference, Bracket(low, high), middle, within_factor(BREAK_EVEN_RATIO_TOLERANCE)
        )
        names = (self.first.name, self.rival.name)
        below, above = (
            dict(zip(("value", "first", "rival"), (value, *self.outputs(value)), strict=True))
            for value in (bracket.near, bracket.far)
        )
        return {
            "value": math.sqrt(bracket.near * bracket.far),
            "below": below,
            "above": above,
            "better_below": names[not leads],
            "better_above": names[leads],
            "verified": True,
        }

    def document(self, over: str) -> dict[str, object]:
        """Return the break-even document over the values of PATH=SPEC."""
        looked = [(value, self.lead(value)) for value in _values(self.rival, self.path, over)]
        problem = check_tree(self.first.tree, self.first.folder).problem
        return {
            "first": self.first.name,
            "rival": self.rival.name,
            "of": self.target.name,
            "unit_of": self.target.unit,
            "over": self.path,
            "unit": path_unit(problem, self.path.split(".")) or "",
            "varied": "rival" if self.alone else "both",
            "crossings": [
                self.crossing(low, high, leads=below > 0)
                for (low, below), (high, above) in pairwise(looked)
                if (below > 0) != (above > 0) and not (math.isnan(below) or math.isnan(above))
            ],
            "looked_at": [looked[0][0], looked[-1][0]],
            "ends": [self.better(lead) for _, lead in (looked[0], looked[-1])],
        }


def break_even(
    source: Source, between: str, over: str, output: str = "cost", sets: Sequence[str] = ()
) -> list[dict[str, object]]:
    """Find break-even points of choices against the first choice, over a parameter.

    For each rival `crossings`, each with its `value`, the nearest values `below` and `above` that
    were solved, and which of the two is better there; and `ends`, which is better at the first and
    at the last value looked at. Raises InputError with every mistake in the input.

    Args:
        between: PATH=A,B,...: the choices, such as `system=hgx-h200,hgx-b200`.
        over: the path that is varied, such as `price`, or PATH=SPEC with the values to look at.
    """
    tree, scenario = load_tree(source, sets)
    folder = base_folder(source)
    target = output_named(get_problem(scenario.problem), scenario, output)
    choices = parse_grid([between]).axes[0]
    if len(choices) < 2:
        raise InputError(f"--break-even {between}: expected two choices such as system=a,b")
    sides = [_side(tree, folder, choices, i) for i in range(len(choices))]
    path = over.partition("=")[0].strip()
    if path == choices.name:
        raise InputError(f"--over {quote(path)}: the choices differ in this key; vary another")
    return [_Rivalry(sides[0], rival, path, target).document(over) for rival in sides[1:]]


def _side(tree: Tree, folder: Path, choices: Axis, i: int) -> _Side:
    side = apply_sets(tree, [choices.set_to(i)])
    check_tree(side, folder)
    return _Side(choices.set_to(i).partition("=")[2].strip(), side, folder)


def _values(rival: _Side, path: str, over: str) -> list[float]:
    """The values looked at first, in base units, rising."""
    if "=" in over:
        axis = parse_grid([over]).axes[0]
        values = [
            lookup_value(check_tree(apply_sets(rival.tree, [axis.set_to(i)]), rival.folder), path)
            for i in range(len(axis))
        ]
        numbers = [float(value) for value in values if isinstance(value, int | float) and value > 0]
        if len(numbers) < max(len(values), 2):
            raise InputError(f"--over {quote(over)}: expected two or more numbers above zero")
        return sorted(numbers)
    scenario = check_tree(rival.tree, rival.folder)
    base = get_problem(scenario.problem).value(scenario, path)
    if base is None:
        raise InputError(
            f"--over {quote(path)}: has no value to start from; give the values to look at, such "
            f"as {path}=log(1..10,9)"
        )
    step = SEARCH_SPAN ** (2 / (PROBE_POINTS - 1))
    return [base / SEARCH_SPAN * step**i for i in range(PROBE_POINTS)]
