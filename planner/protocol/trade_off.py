"""The frontier of any kind: optimal objective at every level of the limited output.

The limit is tightened and eased from the best plan on, until nothing keeps it, the objective is
another SPAN away, or easing it more gains nothing. Every level is the exact problem solved again;
what another level betters in both outputs is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from planner.protocol.bracket import Bracket, find_brackets, middle, within_factor
from planner.protocol.document import to_document
from planner.protocol.output import Output
from planner.protocol.page import table_page
from planner.protocol.plan import Status, gap_status, max_gap
from planner.protocol.problem import MissedPromise, Problem, Search, get_problem, search_each
from planner.protocol.section import sections_text, table
from planner.scenario import resolve_keys
from planner.scenario.loading import Question
from planner.text.errors import FieldError, InputError
from planner.text.tolerances import REL_TOL
from planner.text.wording import excess, output_words, quantity, wrap_text, wrapped

SPAN = 10.0  # factor of the objective to either side
STEPS = (1.01, 1.03, 1.1, 1.25, 1.6, 2.2, 3.0, 6.0, 10.0)  # of the limit, while its ends are sought
LEVEL_TOLERANCE = 1.01  # factor of the limit within which an end is
DEFAULT_POINTS = 25
MAX_POINTS = 1000


@dataclass(frozen=True, repr=False)
class ParetoFrontier:
    """The best objective at each level of a limited output, the tightest level first.

    `rows` have every output in base units, and the choice in words; `gap` is the widest of theirs.
    `str()` is a table.
    """

    problem: str
    outputs: Sequence[Output]
    limited: Output
    objective: Output
    scenario: Mapping[str, Any]
    provenance: Mapping[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    infeasible: tuple[MissedPromise, ...] | None = None
    warnings: tuple[str, ...] = ()
    gap: float | None = None

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` where a level's `gap` is above 1e-6, or `infeasible`."""
        return gap_status(self.gap, feasible=bool(self.rows))

    @property
    def document(self) -> Mapping[str, Any]:
        """Exactly what `planner pareto --json` prints, in base units."""
        return {
            "problem": self.problem,
            "status": self.status,
            "gap": self.gap,
            "scenario": self.scenario,
            "of": self.objective.name,
            "over": self.limited.name,
            "points": self.rows,
            "infeasible": to_document(self.infeasible),
            "provenance": self.provenance,
        }

    @property
    def title(self) -> str:
        """Names of the objective and of the limited output, as a title."""
        names = (output_words(x.name) for x in (self.objective, self.limited))
        return "Least {} at every {}, of a {}".format(*names, self.problem)

    @property
    def columns(self) -> dict[str, list[str]]:
        """The table's cells by the name of their column: both outputs, and those with an alias."""
        traded = (self.limited, self.objective)
        beside = (x for x in self.outputs if x.aliases and x not in traded)
        shown = [x for x in (*traded, *beside) if any(x.name in row for row in self.rows)]
        cells = {output_words(x.name): [quantity(row.get(x.name), x.unit) for row in self.rows]
                 for x in shown}  # fmt: skip
        return {**cells, "choice": [str(row["choice"]) for row in self.rows]}

    def __str__(self) -> str:
        lines = [*wrap_text(self.title), ""]
        for missed in self.infeasible or ():
            by = f" by {excess(missed.short_by)}" if missed.short_by else ""
            why = f": {missed.expression}" if missed.expression else ""
            lines += wrapped(f"nothing keeps the limit: misses {missed.promise}{by}{why}")
        if not self.rows:
            return "\n".join(lines)
        columns = self.columns
        choices = list(dict.fromkeys(columns["choice"]))
        columns["choice"] = [str(1 + choices.index(choice)) for choice in columns["choice"]]
        lines += [sections_text([table(columns)]), "", "choices"]
        for number, choice in enumerate(choices, 1):
            lines += wrapped(f"{number:<3}{choice}")
        lines += ["", *wrap_text(self._reading())]
        return "\n".join(lines)

    def _reading(self) -> str:
        """Say what the table shows: what the first level costs beside the last."""
        over, goal = self.limited, self.objective
        ends = self.rows[0], self.rows[-1]
        first, last = (quantity(row[over.name], over.unit) for row in ends)
        more, less = (quantity(row[goal.name], goal.unit) for row in ends)
        words, name = output_words(over.name), output_words(goal.name)
        begin = f"{words[:1].upper()}{words[1:]} {first}"
        return (
            f"{begin}: {name} {more}."
            if len(self.rows) == 1
            else f"{begin} instead of {last} takes {more} instead of {less} ({name})."
        )

    def __repr__(self) -> str:
        return f"<Pareto: {self.title}, {len(self.rows)} levels>"

    def _repr_html_(self) -> str:
        if not self.rows:
            return table_page(self.title, {}, str(self).splitlines()[2:])
        return table_page(self.title, self.columns, words="choice")


def pareto_frontier(question: Question, points: int | None = None) -> ParetoFrontier:
    """The frontier of a question's objective and of the first output that it limits.

    Args:
        points: levels to look at, 2 to 1000; fewer rows where one betters another.

    Raises FieldError for a question that limits no output.
    """
    problem = get_problem(question.problem)
    points = DEFAULT_POINTS if points is None else points
    if not 2 <= points <= MAX_POINTS:
        raise InputError(f"points: {points} is not between 2 and {MAX_POINTS}")
    applying = [x for x in problem.outputs if x.applies is None or x.applies(question)]
    limited, objective = _outputs(problem.kind, applying, question)
    answer, best = problem.answer(question), problem.search(question)
    curve = partial(
        ParetoFrontier, problem.kind, applying, limited, objective, resolve_keys(question),
        answer.document["provenance"], warnings=answer.warnings,
    )  # fmt: skip
    if not best.feasible:
        return curve(infeasible=best.shortfalls)
    for output in (limited, objective):
        if output.name not in best.outputs:
            words = f"its plan has no {output.name}, so there is nothing to trade"
            raise FieldError(("problem", words))
    level = _Level(problem, question, limited, objective, best)
    tight, loose = level.ends()
    searches = level.at(np.geomspace(tight, loose, points).tolist())
    rows: list[dict[str, Any]] = []
    gaps: list[float | None] = []
    least = np.inf
    for plan in searches:
        if plan is not None and plan.feasible:
            value = plan.outputs[objective.name]
            if value < least * (1 - REL_TOL):
                rows.append({**plan.outputs, "choice": plan.choice})
                gaps.append(plan.gap)
                least = value
    return curve(rows, gap=max_gap(gaps))


@dataclass(frozen=True)
class _Level:
    """Plans with the limited output at a factor of its value in the best plan."""

    problem: Problem[Any, Any]
    question: Question
    limited: Output
    objective: Output
    best: Search

    def at(self, factors: Sequence[float]) -> list[Search | None]:
        """The best plan at each limit; None where that makes no sense."""
        path, value = self.limited.promise or "", self.best.outputs[self.limited.name]
        questions: list[Question | None] = []
        for factor in factors:
            try:
                questions.append(self.problem.varied(self.question, path, value * factor))
            except InputError:
                questions.append(None)
        return search_each(questions)

    def ends(self) -> tuple[float, float]:
        """The tightest and the loosest factor worth looking at."""
        now = self.best.outputs[self.objective.name]
        easing = tuple(1 / step for step in STEPS) if self.limited.rises else STEPS
        tightening = STEPS if self.limited.rises else tuple(1 / step for step in STEPS)
        loosest = self._values([easing[-1]])[0]
        loosest = loosest if loosest < np.inf else 0.0

        def differences(looked_at: Sequence[tuple[int, float]]) -> list[float]:
            values = self._values([factor for _, factor in looked_at])
            floor = max(now / SPAN, loosest * (1 + REL_TOL))
            return [
                1.0 if (value > floor if number else value < now * SPAN) else -1.0
                for (number, _), value in zip(looked_at, values, strict=True)
            ]

        def proposing(steps: Sequence[float], bracket: Bracket) -> Sequence[float]:
            return middle(bracket) if bracket.closed else steps[bracket.turn : bracket.turn + 1]

        proposes = [partial(proposing, steps) for steps in (tightening, easing)]
        brackets = find_brackets(
            differences, [Bracket(1.0)] * 2, proposes, within_factor(LEVEL_TOLERANCE)
        )
        # The tightest end must still qualify; the loosest is the first without a further gain.
        tight, loose = brackets
        return tight.near, loose.far if loose.closed else loose.near

    def _values(self, factors: Sequence[float]) -> list[float]:
        name = self.objective.name
        return [
            plan.outputs[name] if plan is not None and plan.feasible else np.inf
            for plan in self.at(factors)
        ]


def _outputs(kind: str, applying: Sequence[Output], question: Question) -> tuple[Output, Output]:
    limits = [output for output in applying if output.promise]
    for limited in limits:
        if getattr(question, (limited.promise or "").partition(".")[0], None) is not None:
            free = [output for output in limits if output.promise != limited.promise]
            return limited, (free or applying)[0]
    raise FieldError(("problem", f"{kind} questions limit no output: nothing is traded for it"))
