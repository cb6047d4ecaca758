"""A scenario in, a plan out, or a frontier of them, whatever its problem."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from planner.protocol.document import versioned_schema
from planner.protocol.plan import EXTRAPOLATION_LABEL, STRICT, Plan, extrapolation_text
from planner.protocol.problem import FrontierAnswer, HasFrontier, get_problem
from planner.protocol.trade_off import pareto_frontier
from planner.scenario import load_tree
from planner.scenario.keys.fields import QuestionRecord
from planner.scenario.kinds import starter
from planner.scenario.loading import STARTS, Source
from planner.scenario.tree import Tree, yaml_text, yaml_tree
from planner.text.errors import FieldError, InputError

P = TypeVar("P", bound=Plan[Any])


@overload
def solve(source: Source, sets: Sequence[str] = (), *, strict: bool = False) -> Plan: ...


@overload
def solve(
    source: Source, sets: Sequence[str] = (), *, strict: bool = False, kind: type[P]
) -> P: ...


def solve(
    source: Source, sets: Sequence[str] = (), *, strict: bool = False, kind: type[Plan] = Plan
) -> Plan:
    """Answer a scenario: a file's path, a mapping of the same shape, or a scenario that was read.

    Raises InputError with every mistake in the input, of an answer that `strict` refuses, or of a
    question of another kind; SolverError when the plan does not survive its own checks.

    Args:
        sets: changes "path.in.file=value", as `--set` takes them.
        strict: refuse an answer that rests on what no measured row covers.
        kind: the type of the plan, such as `planner.ServingPlan`, whose quantities a type checker
            then knows; any if absent.
    """
    return solve_with_question(source, sets, strict=strict, kind=kind)[1]


def solve_with_question(
    source: Source, sets: Sequence[str] = (), *, strict: bool = False, kind: type[Plan] = Plan
) -> tuple[QuestionRecord, Plan]:
    """Question of a source, read once, and its plan: `solve` for callers that need both."""
    with _opened(source, sets) as question:
        problem = get_problem(question.problem)
        if not issubclass(problem.plan_type, kind):
            words = f"{question.problem} is answered by a {problem.plan_type.__name__}"
            raise FieldError(("problem", f"{words}, not by a {kind.__name__} (kind)"))
        plan = problem.answer(question)
        if strict and plan.outside:
            raise InputError(f"{extrapolation_text(plan.outside)}; {STRICT}")
        return question, plan


def check(source: Source, sets: Sequence[str] = ()) -> QuestionRecord:
    """The scenario, read and refused where that takes no search: `solve` without its answer.

    Raises InputError with every mistake in the input.
    """
    tree, question = load_tree(source, sets)
    with _placing(tree):
        get_problem(question.problem).check(question)
    return question


def pareto(
    source: Source, sets: Sequence[str] = (), points: int | None = None, *, strict: bool = False
) -> FrontierAnswer:
    """The frontier of a scenario: the best objective at each level of the limited output.

    Of serving that is the cheapest plan at each speed, of a budget the least cost at each loss.

    Raises InputError with every mistake in the input, or where `strict` refuses a plan; SolverError
    when a plan does not survive its own checks.

    Args:
        source, sets: as for `solve`.
        points: how many levels to look at; as many as usual if None.
        strict: refuse a frontier of which a plan rests on what no measured row covers.
    """
    with _opened(source, sets) as question:
        problem = get_problem(question.problem)
        if not isinstance(problem, HasFrontier):
            return pareto_frontier(question, points)
        curve = problem.frontier(question, points)
        plans = curve.document.get("points", ()) if strict else ()
        parts = dict.fromkeys(each["what"] for plan in plans for each in plan.get("outside", ()))
        if parts:
            raise InputError(f"{EXTRAPOLATION_LABEL}: {', '.join(parts)}; {STRICT}")
        return curve


def answer_schema(kind: str) -> dict[str, object]:
    """The JSON Schema of a kind's `--json` output, units included.

    Raises InputError for a kind that this version does not answer.
    """
    problem = get_problem(kind)
    return versioned_schema(problem.plan_type.answer_type, f"{kind}/{problem.version}")


@contextmanager
def _opened(source: Source, sets: Sequence[str]) -> Iterator[QuestionRecord]:
    tree, question = load_tree(source, sets)
    with _placing(tree):
        yield question


@contextmanager
def _placing(tree: Tree) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise _placed(error, tree) from error


def _placed(error: InputError, tree: Tree) -> InputError:
    if isinstance(error, FieldError):
        return InputError(tree.mistake(tuple(p.split(".")), fault) for p, fault in error.faults)
    return error if error.mistakes else InputError(tree.mistake((), str(error)))


def starter_text(kind: str, sets: Sequence[str] = ()) -> str:
    """A commented starter scenario; with changes, the scenario that they make.

    Raises CatalogueError for an unknown kind, InputError for a wrong change.
    """
    text = starter(kind)
    source: Source = kind if kind in STARTS else yaml_tree(text, kind).data
    return scenario_text(source, sets) if sets else text


def scenario_text(source: Source, sets: Sequence[str] = ()) -> str:
    """The scenario of a source as YAML, changes put in; raises InputError as `solve` does."""
    return yaml_text(load_tree(source, sets)[0].data)
