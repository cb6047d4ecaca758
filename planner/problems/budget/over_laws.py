"""How well a budget is known beyond its law: what the laws of the catalogue say of one question."""

from collections.abc import Iterator

from planner.catalogue.scaling_laws import law_names
from planner.laws.laws import scaling_law
from planner.laws.scaling_law import ALLOCATIONS, ScalingLaw
from planner.problems.budget.plan import LawSpread
from planner.problems.budget.resolve import ResolvedBudget, tasks_for
from planner.text.errors import InputError, SolverError
from planner.token_costs.optimum import BudgetOptimum, best_of, solve_many

NEEDED = ("loss", "size", "tokens")  # what a law must know to weigh one against the other
FEWEST = 3  # laws that make a spread


def over_laws(resolution: ResolvedBudget, best: BudgetOptimum) -> LawSpread | None:
    """Least and most of size, tokens and cost by every law that answers the question.

    All at the sparsity of the plan. None of a loss that is given as a number, which is one of the
    first law's data alone, and where too few laws answer.
    """
    quality = resolution.scenario.quality
    if quality is not None and quality.loss is not None:
        return None
    optima = {best.task.law.name: best}
    phases = {**resolution.phases, "pretrain": best.task.phases["pretrain"].smooth()}
    for law in _comparable(best.task.law):
        try:
            tasks, _ = tasks_for(law, resolution.scenario, phases, resolution.served)
            answer = best_of(solve_many(tasks))
        except (InputError, SolverError):
            continue
        if isinstance(answer, BudgetOptimum) and answer.task.sparsity == best.task.sparsity:
            optima[law.name] = answer
    if len(optima) < FEWEST:
        return None
    columns = [
        [each.n_active for each in optima.values()],
        [each.pretrain for each in optima.values()],
        [each.total for each in optima.values()],
    ]
    return LawSpread(tuple(optima), *((min(column), max(column)) for column in columns))


def _comparable(first: ScalingLaw) -> Iterator[ScalingLaw]:
    """The other laws of the catalogue that weigh size against tokens, dense as the first is."""
    for name in law_names():
        try:
            law = scaling_law(name)
        except InputError:  # one of rewards, which knows no loss
            continue
        if name == first.name or law.form in ALLOCATIONS or "rl" not in law.lacks:
            continue
        if not any(need in law.lacks for need in NEEDED):
            yield law
