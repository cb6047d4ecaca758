"""A token budget on a terminal: size and tokens first, then what they cost and rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.laws.law_forms import FORMS, form_equation
from planner.text.tolerances import UNSEEN
from planner.text.wording import (
    apart,
    count,
    digits,
    filled,
    flop,
    listed,
    loss,
    money,
    percent,
    ranged,
    row,
    wrapped,
)
from planner.token_costs.presentation import (
    PHASE_LABELS,
    band_text,
    binding,
    by_size,
    grounds,
    quality_text,
    shortfall,
    size_and_tokens,
    spent,
)

if TYPE_CHECKING:
    from planner.problems.budget.plan import BudgetAnswer, BudgetPlan, BudgetPoint
    from planner.problems.budget.question import BudgetScenario
    from planner.token_costs.spending import ServedTokens


LONGEST = 34  # of a label that keeps its text beside it
NAMES = 32  # width of the names of quantities, unless one is longer
SAVINGS = 17  # width of what a budget is compared with


def answer(plan: BudgetPlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    whole_answer, scenario = plan.answer, plan.question
    blocks = [question_text(scenario, whole_answer.demand)]
    point = whole_answer.plan
    if point is not None:
        in_loss = scenario.cost is not None
        blocks += [_chosen(point, whole_answer), spent(point), _machines(point)]
        blocks += [_beside(whole_answer, in_loss), _others(whole_answer, in_loss)]
        blocks.append(_laws(whole_answer, in_loss))
    else:
        blocks.append(shortfall("No budget does that.", plan.infeasible))
    blocks.append(_grounds(whole_answer))
    return "\n\n".join(block for block in blocks if block)


def why(plan: BudgetPlan) -> str:
    """What binds, what a percent of each quantity is worth, and the closed form it comes from."""
    whole_answer = plan.answer
    point, slopes = whole_answer.plan, whole_answer.elasticities
    if point is None:
        return shortfall("No budget does that.", plan.infeasible)
    if not slopes:
        return "Why this budget\n" + "\n".join(wrapped(whole_answer.certificate.method))
    aim = "loss" if plan.question.cost is not None else "cost"
    lines = ["Why this budget", *binding(whole_answer.binding, aim)]
    width = max([NAMES, *map(len, slopes)])
    lines += ["", f"{'One percent more of':<{width + 4}}changes the {aim} by"]
    lines += [f"  {name:<{width}}{_percents(slope):>10}" for name, slope in by_size(slopes)]
    form = whole_answer.provenance.law.form
    lines += ["", "Closed form on the active constraints", *_closed_form(point, form)]
    return "\n".join(lines)


def _percents(slope: float) -> str:
    return "~0" if abs(slope) < UNSEEN else f"{slope:+.3f} %"


def question_text(scenario: BudgetScenario, served: ServedTokens) -> str:
    """What was asked, in a sentence."""
    rl, limit = scenario.rl, scenario.cost
    if scenario.quality is not None:
        wanted = quality_text(scenario.quality)
    else:
        assert limit is not None  # one of both is given
        per = limit.per or ("USD" if scenario.objective == "cost" else "FLOP")
        wanted = f"the best model that costs {limit.value:g} {per}"
    parts = [wanted]
    if served.tokens is None:
        parts.append(f"tokens served for ever, counted as {count(served.counted)}")
    elif served.counted != served.tokens:
        total, counted = count(served.tokens), count(served.counted)
        parts.append(f"{total} tokens served, counted as {counted}")
    else:
        parts.append(f"{count(served.tokens)} tokens served" if served.tokens else "not served")
    if rl.tokens:
        parts.append(f"{count(rl.tokens)} tokens of RL")
    if rl.reward:
        parts.append(f"a reward of {rl.reward.needed:g} after RL")
    if scenario.data.unique:
        parts.append(f"{count(scenario.data.unique)} unique tokens")
    least = "cost in USD" if scenario.objective == "cost" else "FLOP"
    aim = "best loss" if scenario.quality is None else f"least {least}"
    return "\n".join(filled(f"{', '.join(parts)}; {aim}"))


def _chosen(point: BudgetPoint, whole_answer: BudgetAnswer) -> str:
    band = whole_answer.band
    lines = size_and_tokens(point, band, f"{point.tokens_per_parameter:.3g}")
    if point.over_training is not None:
        ratio = f"{point.over_training:.3g} x compute-optimal tokens"
        lines.append(ranged("over-trained", ratio, band.over_training if band else None, digits))
    if point.loss is not None:
        text = f"{point.loss:.4f} nat per token"
        lines.append(ranged("loss", text, band.loss if band else None, loss))
    form = money if point.objective == "usd" else flop
    peak = " of the peak" if form is flop and point.total != point.cost.total.flop else ""
    lines.append(ranged("cost", f"{form(point.total)}{peak}", band.cost if band else None, form))
    return "\n".join([*lines, *band_text(band)])


def _machines(point: BudgetPoint) -> str:
    """What each phase runs on, how well, and at which price."""
    lines = []
    for name, machine in point.phases.items():
        if machine.system is None:
            continue
        price = f", ${machine.usd_per_chip_hour:.2f} per chip and hour"
        used = f"{machine.mfu:.0%} of its {machine.dtype} peak"
        lines.append(row(PHASE_LABELS[name], f"{machine.system} at {used}{price}"))
    return "\n".join(lines)


def _beside(whole_answer: BudgetAnswer, in_loss: bool) -> str:
    """The compute-optimal model and equal pools, with what it costs to follow them."""
    lines = []
    aim = "loss" if in_loss else "cost"
    rules = ((whole_answer.compute_optimal, "compute-optimal"),
             (whole_answer.heuristic, "equal pools"))  # fmt: skip
    for rule, label in rules:
        if rule is None:
            continue
        trained = f"{count(rule.tokens.pretrain)} tokens"
        if rule.n_active is None or rule.worse_by is None or rule.saving is None:
            why_not = getattr(rule, "why_not", "")
            lines += listed(label, f"{trained}: {why_not}", SAVINGS)
            continue
        text = f"{count(rule.n_active)} on {trained}: {percent(rule.worse_by, 3)} more {aim}"
        if rule.worse_by > UNSEEN and not in_loss:
            text += f"; the budget above saves {percent(rule.saving, 3)}"
        lines += listed(label, text, SAVINGS)
    return "\n".join(["beside it", *lines]) if lines else ""


def _others(whole_answer: BudgetAnswer, in_loss: bool) -> str:
    lines = []
    for point in whole_answer.alternatives:
        label = f"sparsity {point.sparsity:g}" if point.sparsity > 1 else "dense"
        lines += listed(label, _short(point, in_loss), SAVINGS)
    return "\n".join(["next best, of other choices", *lines]) if lines else ""


def _laws(whole_answer: BudgetAnswer, in_loss: bool) -> str:
    laws = whole_answer.laws or ()
    width = min(LONGEST, max((len(other.law) for other in laws), default=0))
    lines = [
        line for other in laws
        for line in listed(
            other.law,
            _short(other.plan, in_loss) if other.plan else other.why_not or "", width,
        )
    ]  # fmt: skip
    return "\n".join(["by other laws", *lines]) if lines else ""


def _short(point: BudgetPoint, in_loss: bool) -> str:
    """A plan in half a line."""
    text = f"{count(point.n_active)} on {count(point.tokens.pretrain)} tokens, "
    if in_loss:
        return text + f"loss {point.loss:.4f}"
    return text + (money if point.objective == "usd" else flop)(point.total)


def _grounds(whole_answer: BudgetAnswer) -> str:
    """What the answer rests on: proof, law with its coefficients, sources with dates."""
    proof, ground, point = whole_answer.certificate, whole_answer.provenance, whole_answer.plan
    lines = []
    if proof.gap is not None:
        considered = proof.points_considered
        many = f"best of {considered} choices, each on its first-order conditions; "
        lines.append(
            f"{many if considered > 1 else ''}solved by {proof.method}; the proven bound lies "
            f"{apart(proof.gap)} away"
        )
    elif point is not None:
        lines.append(proof.method)
    coefficients = point.coefficients if point is not None else None
    law = ground.law
    return grounds(lines, coefficients, law.name, law.scope, law.note, ground.version, ground.data)


def _closed_form(point: BudgetPoint, form: str) -> Iterator[str]:
    """The equations on the active constraints, and the identity of over-training in numbers."""
    from formulas.scaling.overtraining import overtraining_proportional
    from formulas.scaling.token_budgets import equalisation

    yield from wrapped("cost = sum over the phases of (FLOP per parameter and token) * N_active * "
                       "tokens * (price of a FLOP)")  # fmt: skip
    if FORMS[form].equation is not None:
        yield from wrapped(str(form_equation(form)))
    if point.over_training_from_pools is not None:
        total = 1 / point.share.pretrain
        yield from wrapped(
            "at the optimum one percent more size and one percent more tokens lower the loss in "
            f"proportion to what they cost, here as {_pulls(point)}"
        )
        yield from wrapped(
            f"{overtraining_proportional.equation()}, where every pool grows with the size: here "
            f"{point.over_training:.4g} from a total of {total:.4g} x pre-training"
        )
        yield from wrapped("the exponent of the tokens alone decides that power")
    yield from wrapped(
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
