"""A token budget on a terminal: size and tokens first, then what they cost and rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from planner.laws.law_forms import form_equation
from planner.protocol.plan import status_text
from planner.text import wording as say
from planner.text.tolerances import UNSEEN
from planner.token_costs import presentation as life

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation
    from planner.problems.budget.plan import BudgetAnswer, BudgetPlan, BudgetPoint
    from planner.problems.budget.question import BudgetScenario


LONGEST = 34  # of a label that keeps its text beside it
NAMES = 32  # width of the names of quantities, unless one is longer
SAVINGS = 17  # width of what a budget is compared with
NOTHING = "No budget does that."


def answer(plan: BudgetPlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    whole, point, in_loss = plan.answer, plan.answer.plan, plan.question.cost is not None
    others = [(f"sparsity {x.sparsity:g}" if x.sparsity > 1 else "dense", _short(x, in_loss))
              for x in whole.alternatives]  # fmt: skip
    laws = [
        (x.law, _short(x.plan, in_loss) if x.plan else x.why_not or "") for x in whole.laws or ()
    ]
    blocks = () if point is None else (
        _chosen(point, whole), life.spent(point), _machines(point),
        life.planned_text(
            getattr(whole, "training", None), "loss {:.4f}".format if in_loss else _form(point)
        ),
        life.listing("beside it", _reference_points(whole, in_loss), SAVINGS),
        life.listing("next best, of other choices", others, SAVINGS),
        _how_sure(whole),
        life.listing("by other laws", laws, min(LONGEST, max([0, *(len(x) for x, _ in laws)]))),
    )  # fmt: skip
    return life.answer_text(question_text(plan), plan, blocks, NOTHING, [*_method(whole)])


def why(plan: BudgetPlan) -> str:
    """What binds, what a percent of each quantity is worth, and the closed form it comes from."""
    whole = plan.answer
    point, slopes = whole.plan, whole.elasticities
    if point is None:
        return life.shortfall(NOTHING, plan.infeasible)
    if not slopes:
        return "Why this budget\n" + "\n".join(say.wrapped(whole.certificate.method))
    aim = "loss" if plan.question.cost is not None else "cost"
    lines = ["Why this budget", *life.binding(whole.binding, aim)]
    width = max([NAMES, *map(len, slopes)])
    lines += ["", f"{'One percent more of':<{width + 4}}changes the {aim} by"]
    for name, slope in life.by_size(slopes):
        worth = "~0" if abs(slope) < UNSEEN else f"{slope:+.3f}%"
        lines.append(f"  {name:<{width}}{worth:>10}")
    form, cost = whole.provenance.law.form, _cost_equation(plan.question)
    lines += ["", "Closed form on the active constraints", *_closed_form(point, form, cost)]
    return "\n".join(lines)


def question_text(plan: BudgetPlan) -> str:
    """What was asked, in a sentence."""
    scenario = plan.question
    rl, limit = scenario.rl, scenario.cost
    if scenario.quality is not None:
        wanted = life.quality_text(scenario.quality)
    else:
        assert limit is not None  # one of both is given
        per = limit.per or ("USD" if scenario.objective == "cost" else "FLOP")
        wanted = f"the best model that costs {limit.value:g} {per}"
    parts = [wanted, life.served_text(plan.answer.demand)]
    if rl.tokens:
        parts.append(f"{say.count(rl.tokens)} tokens of RL")
    if rl.reward:
        parts.append(f"a reward of {rl.reward.needed:g} after RL")
    if scenario.data.unique:
        parts.append(f"{say.count(scenario.data.unique)} unique tokens")
    least = "cost in USD" if scenario.objective == "cost" else "FLOP"
    aim = "best loss" if scenario.quality is None else f"least {least}"
    return "\n".join(say.filled(f"{', '.join(parts)}; {aim}"))


def _form(point: BudgetPoint) -> Callable[[float], str]:
    """What is made small in words: money, or FLOP."""
    return say.money if point.objective == "usd" else say.flop


def _chosen(point: BudgetPoint, whole: BudgetAnswer) -> str:
    form = _form(point)
    peak = " of the peak" if form is say.flop and point.total != point.cost.total.flop else ""
    return life.chosen(point, whole.band, f"{point.tokens_per_parameter:.3g}", form, peak=peak)


def _how_sure(whole: BudgetAnswer) -> str:
    """What other laws say of the question, and how much of the public text the plan takes."""
    lines, spread, data = [], whole.over_laws, whole.unique_data
    if spread is not None:
        size, trained = (
            f"{say.count(low)} to {say.count(high)}"
            for low, high in (spread.n_active, spread.pretrain)
        )
        form = say.money if whole.plan and whole.plan.objective == "usd" else say.flop
        low, high = map(form, spread.cost)
        text = f"{len(spread.laws)} say {size} on {trained} tokens"
        text += f", {low} to {high}" if low != high else ""
        if served := getattr(spread, "served", None):
            least, most = map(say.count, served)
            text += f"; the model asked for is optimal with {least} to {most} tokens served"
        lines.append(say.row("over laws", text))
    if data is not None:
        there = f"{say.count(data.stock)} tokens, {say.count(data.low)} to {say.count(data.high)}"
        text = f"{say.percent(data.needed / data.stock)} of the public text there is ({there})"
        lines.append(say.row("data", text))
    return "\n".join(lines)


def _machines(point: BudgetPoint) -> str:
    """What each phase runs on, how well, and at which price."""
    lines = []
    for name, machine in point.phases.items():
        if machine.system is None:
            continue
        price = f", ${machine.usd_per_chip_hour:.2f} per chip and hour"
        used = f"{machine.mfu:.0%} of its {machine.dtype} peak"
        lines.append(say.row(life.PHASE_LABELS[name], f"{machine.system} at {used}{price}"))
    return "\n".join(lines)


def _reference_points(whole: BudgetAnswer, in_loss: bool) -> Iterator[tuple[str, str]]:
    """The compute-optimal model and equal pools, with what it costs to follow them."""
    for rule, label in (
        (whole.compute_optimal, "compute-optimal"),
        (whole.heuristic, "equal pools"),
    ):
        if rule is None:
            continue
        text = f"{say.count(rule.tokens.pretrain)} tokens"
        if rule.n_active is None or rule.worse_by is None or rule.saving is None:
            yield label, f"{text}: {getattr(rule, 'why_not', '')}"
            continue
        aim = "loss" if in_loss else "cost"
        text = f"{say.count(rule.n_active)} on {text}: {say.percent(rule.worse_by, 3)} more {aim}"
        if rule.worse_by > UNSEEN and not in_loss:
            text += f"; the budget above saves {say.percent(rule.saving, 3)}"
        yield label, text


def _short(point: BudgetPoint, in_loss: bool) -> str:
    """A plan in half a line."""
    text = f"{say.count(point.n_active)} on {say.count(point.tokens.pretrain)} tokens, "
    if in_loss:
        return text + ("no loss known" if point.loss is None else f"loss {point.loss:.4f}")
    return text + (say.money if point.objective == "usd" else say.flop)(point.total)


def _method(whole: BudgetAnswer) -> Iterator[str]:
    """How the plan was found, and how far the proven bound lies."""
    proof, considered = whole.certificate, whole.certificate.points_considered
    if proof.gap is not None:
        many = f"best of {considered} choices, each on its first-order conditions; "
        yield (
            f"{many if considered > 1 else ''}solved by {proof.method}; the proven bound lies "
            f"{say.gap_text(proof.gap)} away"
        )
    elif whole.plan is not None:
        yield f"{status_text(whole.status, whole.gap)}: {proof.method}"


def _cost_equation(question: BudgetScenario) -> Equation:
    """What is made small or limited: money, FLOP of the peak, or FLOP done."""
    from formulas.scaling.budget_outputs import done_arithmetic, life_cost, paid_arithmetic

    if question.in_usd:
        return life_cost
    return paid_arithmetic if question.rated else done_arithmetic


def _closed_form(point: BudgetPoint, form: str, cost: Equation) -> Iterator[str]:
    """The equations on the active constraints, and the identity of over-training in numbers."""
    from formulas.scaling.overtraining import overtraining_proportional
    from formulas.scaling.token_budgets import equalisation

    yield from say.wrapped(str(cost))
    equation = form_equation(form)
    if equation is not None:
        yield from say.wrapped(str(equation))
    if point.over_training_from_pools is not None:
        total = 1 / point.share.pretrain
        yield from say.wrapped(
            "at the optimum one percent more size and one percent more tokens lower the loss in "
            f"proportion to what they cost, here as {_pulls(point)}"
        )
        yield from say.wrapped(
            f"{overtraining_proportional.equation()}, where every pool grows with the size: here "
            f"{point.over_training:.4g} from a total of {total:.4g} x pre-training"
        )
        yield from say.wrapped("the exponent of the tokens alone decides that power")
    yield from say.wrapped(
        f"pools are as percent of quality per percent of them, {equalisation.equation()}: equal "
        "pools are best only where those are equal"
    )


def _pulls(point: BudgetPoint) -> str:
    """What one percent of size and of tokens take off the loss."""
    x = point.coefficients
    if not {"A_N", "B_D", "alpha_N", "beta_D"} <= x.keys() or point.sparsity > 1:
        return f"{1 / point.share.pretrain:.4g} : 1"
    size = x["alpha_N"] * x["A_N"] * point.n_active ** -x["alpha_N"]
    tokens = x["beta_D"] * x["B_D"] * point.tokens.pretrain ** -x["beta_D"]
    return f"alpha_N*A_N/N**alpha_N : beta_D*B_D/D**beta_D = {size:.4g} : {tokens:.4g}"
