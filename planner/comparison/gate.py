"""Check a plan against its limits: one verdict per limit.

The limits are those of the scenario, those given beside it, and the price of an earlier answer. A
limit is kept where the estimate is within it, with the chance that the scenario asks for.

The JSON Schema of every document that `--json` prints with a version of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.comparison.answer_files import require_answer
from planner.comparison.price_difference import PriceDifference
from planner.protocol.document import json_key, to_document, versioned_schema
from planner.protocol.output import Output, output_values
from planner.protocol.plan import MissedPromise, Plan
from planner.protocol.problem import Problem, get_problem
from planner.protocol.promise import SURE_CHANCE
from planner.protocol.solve import answer_schema, solve
from planner.scenario import load_tree
from planner.scenario.kinds import PROBLEM_PACKAGES
from planner.scenario.loading import Question, Source
from planner.text.errors import CatalogueError, InputError, did_you_mean
from planner.text.tolerances import REL_TOL
from planner.text.wording import excess, quantity, wrapped


@dataclass(frozen=True)
class PromiseVerdict:
    """Verdict on one limit: its name, its source, the plan's value, and if the limit holds.

    `over` is the share by which the number is beyond the limit, 0 where it is within. `chance` is
    that of the limit being kept, null where nothing is known of the error; it is kept with the
    chance `needed`, null where the estimate alone is judged.
    """

    promise: str
    source: str
    value: float
    limit: float
    unit: str
    holds: bool = json_key("kept")
    over: float = 0.0
    chance: float | None = None
    needed: float | None = None

    @property
    def reason(self) -> str:
        """Excess over a broken limit, else the chance that it holds if required; may be empty."""
        if self.over:
            return f"by {excess(1 + self.over)}"
        if self.chance is None or self.needed is None:
            return ""
        share = f"{self.needed:.0%}"
        return f"holds in {100 * self.chance:.0f} of 100 cases, {share} asked for"

    def __str__(self) -> str:
        sign = "kept  " if self.holds else "BROKEN"
        value, limit = quantity(self.value, self.unit), quantity(self.limit, self.unit)
        line = f"{sign}  {self.promise}: {value}, limit {limit} ({self.source})"
        return ", ".join(filter(None, (line, self.reason)))


@dataclass(frozen=True)
class Gate:
    """All verdicts on a plan; `status` is `kept`, `broken`, or `infeasible` if no plan exists."""

    file: str
    problem: str
    status: str
    sure: bool
    summary: str
    verdicts: tuple[PromiseVerdict, ...]
    infeasible: tuple[MissedPromise, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """Exactly what `planner gate --json` prints, in base units."""
        return {"schema": "gate/2", **to_document(self)}

    @property
    def markdown(self) -> str:
        """The verdicts as a table for a pull request."""
        rows = [
            (f"`{v.promise}`", quantity(v.value, v.unit), quantity(v.limit, v.unit), _cell_of(v))
            for v in self.verdicts
        ]
        rows += [
            (f"`{m.promise}`", "-", "-", f"**no plan keeps it{_short(m)}**")
            for m in self.infeasible
        ]
        head = ("promise", "plan", "limit", "verdict")
        table = [head, ("---",) * 4, *rows]
        lines = [f"| {' | '.join(_cell(x) for x in row)} |" for row in table]
        return "\n".join([f"**{_cell(self.file)}**: {self.status}", "", *lines])

    def __str__(self) -> str:
        lines = [f"{self.file}: {self.status}"]
        lines += wrapped(self.summary) if self.summary else []
        lines += [f"  {verdict}" for verdict in self.verdicts]
        for missed in self.infeasible:
            lines += wrapped(f"no plan keeps {missed.promise}{_short(missed)}")
        if not self.verdicts and not self.infeasible:
            lines += ["  nothing was promised"]
        return "\n".join(lines)


def _short(missed: MissedPromise) -> str:
    return f": short by {excess(missed.short_by)}" if missed.short_by else ""


def _cell_of(verdict: PromiseVerdict) -> str:
    word = "kept" if verdict.holds else "broken"
    words = ": ".join(filter(None, (word, verdict.reason)))
    return words if verdict.holds else f"**{words}**"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def gate(
    source: Source,
    sets: Sequence[str] = (),
    limits: Mapping[str, float] | None = None,
    *,
    against: Path | None = None,
    may_rise: float = 0.0,
    sure: bool = False,
) -> Gate:
    """Check the plan of a scenario against its promises and the given limits.

    Raises InputError with every mistake in the input, for a limit on what the answer has no number
    of, and where `sure` asks for a band that was not measured.

    Args:
        limits: most that outputs may be, by name, in base units.
        against: a saved answer whose objective may rise by the share `may_rise`.
        sure: ask for 90 % whatever the scenario asks for.
    """
    earlier = None if against is None else require_answer(against)
    question = load_tree(source, sets)[1]
    plan = solve(source, sets)
    problem = get_problem(plan.kind)
    if earlier is not None and earlier.get("problem") != plan.kind:
        raise InputError(f"--against {against}: answers a {earlier.get('problem')}")
    verdicts: list[PromiseVerdict] = []
    if plan.feasible:
        judge = _Judge(problem, question, plan, sure)
        verdicts += judge.promises()
        verdicts += [judge.at_most(name, limit) for name, limit in (limits or {}).items()]
        if earlier is not None:
            verdicts.append(judge.rise(earlier, against, may_rise))
    unbroken = all(verdict.holds for verdict in verdicts)
    return Gate(
        file=str(source) if isinstance(source, str | Path) else "scenario",
        problem=plan.kind,
        status=("kept" if unbroken else "broken") if plan.feasible else "infeasible",
        sure=sure,
        summary=plan.summary() if plan.feasible else "",
        verdicts=tuple(verdicts),
        infeasible=tuple(
            MissedPromise(m.promise, m.short_by, m.expression) for m in plan.infeasible
        ),
        warnings=plan.warnings,
    )


@dataclass(frozen=True)
class _Judge:
    """The numbers of a plan against limits."""

    problem: Problem[Any, Any]
    question: Question
    plan: Plan
    sure: bool

    def promises(self) -> Iterator[PromiseVerdict]:
        """Yield a verdict on each promise of the scenario."""
        for output in (*self.problem.outputs, *self.problem.limited):
            if output.promise is None or (output.applies and not output.applies(self.question)):
                continue
            limit = self.problem.value(self.question, output.promise)
            if limit is not None and output_values([output], self.plan.chosen):
                yield self._verdict(output, limit, output.promise, "scenario", self.needed)

    def at_most(self, name: str, limit: float) -> PromiseVerdict:
        """Return the verdict on a limit given in addition to the scenario."""
        every = {x.name: x for x in (*self.problem.outputs, *self.problem.limited)}
        if name not in every:
            hint = did_you_mean(name, every) or f" (it has {', '.join(every)})"
            raise InputError(f"a {self.problem.kind} answer has no {name}{hint}")
        return self._verdict(every[name], limit, name, "given", self.needed)

    def rise(self, earlier: Mapping[str, Any], file: Path | None, share: float) -> PromiseVerdict:
        """The objective against that of an earlier answer."""
        applying = (x for x in self.problem.outputs if not x.applies or x.applies(self.question))
        output = next(applying)
        before = output_values([output], earlier["plan"] or {}).get(output.name)
        if before is None:
            raise InputError(f"--against {file}: has no plan, so there is no price to rise from")
        words = f"{file} + {100 * share:g}%" if share else str(file)
        needed = SURE_CHANCE if self.sure else None  # both estimates share the errors of the model
        return self._verdict(output, before * (1 + share), output.name, words, needed)

    @property
    def needed(self) -> float | None:
        """Required chance that a limit holds; None if only the estimate is judged."""
        return SURE_CHANCE if self.sure else self.plan.answer.needed_chance

    def _verdict(
        self, output: Output, limit: float, name: str, source: str, needed: float | None
    ) -> PromiseVerdict:
        value = output_values([output], self.plan.chosen).get(output.name)
        if value is None:
            raise InputError(f"the plan has no {output.name} that could be limited")
        chance = self.plan.answer.chance(output.name, value, limit, rises=output.rises)
        if self.sure and chance is None:
            raise InputError(
                f"--sure: the answer has no error band of {output.name}; leave out --sure, "
                "or that limit"
            )
        ratio = limit / value if output.rises else value / limit
        over = 0.0 if ratio <= 1 + REL_TOL else ratio - 1
        holds = not over and (chance is None or needed is None or chance >= needed - REL_TOL)
        return PromiseVerdict(name, source, value, limit, output.unit, holds, over, chance, needed)


DOCUMENTS = {"diff": PriceDifference, "gate": Gate}
VERSIONS = {"diff": 1, "gate": 2}


def document_schema(name: str) -> dict[str, object]:
    """The schema of the answers of a problem, or of a command that compares or judges them.

    Raises InputError for a name that is neither, with the nearest.
    """
    if name in DOCUMENTS:
        return versioned_schema(DOCUMENTS[name], f"{name}/{VERSIONS[name]}")
    if name not in PROBLEM_PACKAGES:
        raise CatalogueError.unknown("kind of answer", name, (*PROBLEM_PACKAGES, *DOCUMENTS))
    return answer_schema(name)
