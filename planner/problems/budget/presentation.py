"""Token budget for the reader: size and tokens, their cost, their accuracy and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.laws.law_forms import form_equation
from planner.protocol.note import Note
from planner.protocol.output import Output
from planner.protocol.plan import OPTIMALITY_GAP
from planner.protocol.section import KEPT, AnswerHead, Line, Section, no_plan, table
from planner.text import wording as say
from planner.token_costs import presentation as life

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation
    from planner.problems.budget import plan as records
    from planner.problems.budget.question import BudgetScenario

FOLLOWING = "planner pareto FILE    (cost against quality)"


def head(plan: records.BudgetPlan) -> AnswerHead:
    """Head of the answer: size to build, its cost, and the usual alternative model."""
    whole, point, question = plan.answer, plan.answer.plan, plan.question
    if point is None:
        return no_plan(_question_text(plan), plan.infeasible)
    training, in_loss = getattr(whole, "training", None), question.cost is not None
    ratio = f" ({say.three_digits(point.tokens_per_parameter)} tokens a parameter)"
    planned = (f"trained {life.train_text(training)}",) if training else ()
    form, rules = life.goal_format(point), {
        "Chinchilla-optimal": whole.compute_optimal, life.EQUAL: whole.heuristic,
    }  # fmt: skip
    others = [f"{label} {life.rule_text(rule, form, in_loss=in_loss)}"
              for label, rule in rules.items() if rule is not None]  # fmt: skip
    promised = f"{KEPT} cost {form(point.total)}, as much as it may" if in_loss else (
        life.loss_text(point, question.quality))  # fmt: skip
    return AnswerHead(
        _question_text(plan),
        run=(life.size_text(point) + ratio, *planned),
        cost=(life.cost_text(point, whole.band),),
        against=(*others[:1],) or ("no other model is known to be as good",),
        promises=(promised or "no loss is known of this law",),
        certainty=(_certainty(whole, point),),
        limit=life.limit_row(plan, in_loss=in_loss),
        next=(FOLLOWING,),
        labels={"run": "Build", "against": "Instead"},
        proof=_proof(whole),
    )


def sections(plan: records.BudgetPlan, outputs: Sequence[Output]) -> tuple[Section, ...]:
    """The question with its numbers, the tables of ranges and of costs, then what else is known."""
    whole, point, rest = plan.answer, plan.answer.plan, list[Section]()
    if point is not None:
        in_loss, rule = plan.question.cost is not None, whole.heuristic
        equal = life.rule_text(rule, life.goal_format(point), in_loss=in_loss) if rule else None
        choices = {f"sparsity {x.sparsity:g}" if x.sparsity > 1 else "dense": _short(x, in_loss)
                   for x in whole.alternatives}  # fmt: skip
        laws = {x.law: _short(x.plan, in_loss) if x.plan else x.why_not for x in whole.laws or ()}
        chips = {life.PHASE_LABELS[x]: f"{y.system} at {y.mfu:.0%} of its {y.dtype} peak, "
                 f"${y.usd_per_chip_hour:.2f} per chip and hour"
                 for x, y in point.phases.items() if y.system}  # fmt: skip
        listed: Mapping[str, Mapping[str, str | None]] = {
            "rules": {life.EQUAL: equal} if equal else {}, "runners-up": choices,
            "by other laws": laws, "chips": chips,
        }  # fmt: skip
        rest = [_ranges(whole, point), life.spending_lines(point)]
        rest += [Section(title, tuple(Line(x, y) for x, y in rows.items()))
                 for title, rows in listed.items()]  # fmt: skip
        rest.append(life.training_section(getattr(whole, "training", None), point, in_loss=in_loss))
    return life.sections(plan, outputs, _question_text(plan), rest)


def explanation_text(plan: records.BudgetPlan) -> str:
    """Text of the binding limits, the elasticities, and the closed form behind them."""
    whole, point = plan.answer, plan.answer.plan
    if point is None:
        return head(plan).text()
    if not whole.elasticities:
        return "Why this budget\n" + "\n".join(say.wrapped(whole.certificate.method))
    closed = _closed_form(point, whole.provenance.law.form, _cost_equation(plan.question))
    return life.why_text(plan, whole.elasticities, closed, in_loss=plan.question.cost is not None)


def _question_text(plan: records.BudgetPlan) -> str:
    """Question of the scenario in a sentence."""
    scenario, point = plan.question, plan.answer.plan
    rl, limit, unique = scenario.rl, scenario.cost, scenario.data.unique
    least = "Smallest total cost" if scenario.objective == "cost" else "Fewest FLOP"
    if scenario.quality is not None:
        wanted = f"{least} for {life.quality_text(scenario.quality)}"
    else:
        assert limit is not None  # the scenario gives quality or cost
        per = limit.per or ("USD" if scenario.objective == "cost" else "FLOP")
        wanted = f"Best model that costs {limit.value:g} {per}"
    on = {name: f" on {life.product(each.chip)}"
          for name, each in (point.phases if point else {}).items() if each.chip}  # fmt: skip
    parts = [wanted, life.served_text(plan.answer.demand) + on.get("inference", "")]
    parts += [f"trained{on['pretrain']}"] if "pretrain" in on else []
    parts += [f"{say.count(rl.tokens)} tokens of RL"] if rl.tokens else []
    parts += [f"a reward of {rl.reward.needed:g} after RL"] if rl.reward else []
    return ", ".join([*parts, *([f"{say.count(unique)} unique tokens"] if unique else [])])


def _certainty(whole: records.BudgetAnswer, point: records.BudgetPoint) -> str:
    beyond = "EXTRAPOLATED: " * any(note.code == "law" for note in whole.notes)
    text, spread = f"{beyond}law {whole.provenance.law.name}", whole.over_laws
    if spread is None:
        return f"{text}; no other laws to compare"
    ranges = (life.ends_text(spread.n_active, life.scale_text),
            life.ends_text(spread.cost, life.goal_format(point)))  # fmt: skip
    return f"{text}; {len(spread.laws)} laws: {', '.join(filter(None, ranges)) or 'the same'}"


def _ranges(whole: records.BudgetAnswer, point: records.BudgetPoint) -> Section:
    """Table of size, tokens, loss and cost, with ranges over law fits and over other laws."""
    band, spread = whole.band, whole.over_laws
    rows = [
        ("Parameters", point.n_active, life.scale_text, "n_active"),
        ("Tokens", point.tokens.pretrain, life.scale_text, "pretrain"),
        ("Over-trained", point.over_training, lambda x: f"{say.three_digits(x)}×", "over_training"),
        ("Loss", point.loss, "{:.4f}".format, "loss"),
        ("Cost", point.total, life.goal_format(point), "cost"),
    ]  # fmt: skip
    shown = [(name, value, form, key) for name, value, form, key in rows if value is not None]
    columns = {"": [x[0] for x in shown], "expected": [form(x) for _, x, form, _ in shown]}
    for title, ranges in (
        (f"{band.coverage:.0%} of law fits" if band else "", band),
        (f"over {len(spread.laws)} laws" if spread else "", spread),
    ):
        if ranges is not None:
            columns[title] = [life.ends_text(getattr(ranges, key, None), form)
                              for _, _, form, key in shown]  # fmt: skip
    return table(columns)


def notes(
    band: records.BudgetInterval | None, spread: records.LawSpread | None,
    data: records.UniqueData | None,
) -> Iterator[Note]:  # fmt: skip
    """Yield notes on the range to plan with and on the share of public text that is used."""
    drawn = band.cost if band else None
    if spread and drawn and spread.cost[1] / spread.cost[0] > drawn[1] / drawn[0]:
        words = "laws disagree more than any one law's error: use the last column"
        yield Note("assumed", "laws", words, "over_laws")
    if served := getattr(spread, "served", None):
        words = f"other laws: optimal with {life.ends_text(served, life.scale_text)} served"
        yield Note("assumed", "laws", words, "over_laws.served")
    if band is not None and band.answered < 1:
        words = f"{1 - band.answered:.0%} of law fits leave no answer"
        yield Note("left out", "law fits", words, "band.answered")
    if data is not None:
        there = f"{say.count(data.stock)}; {say.count(data.low)}–{say.count(data.high)}"
        taken = f"{say.percent(data.needed / data.stock)} of the public text there is ({there})"
        yield Note(
            "tip", "data", f"{life.scale_text(data.needed)} tokens are {taken}", "unique_data"
        )


def _short(point: records.BudgetPoint, in_loss: bool) -> str:
    loss = "no loss known" if point.loss is None else f"loss {point.loss:.4f}"
    return f"{life.size_text(point)}, {loss if in_loss else life.goal_format(point)(point.total)}"


def _proof(whole: records.BudgetAnswer) -> str:
    proof, considered = whole.certificate, whole.certificate.points_considered
    if proof.gap is None or proof.gap > OPTIMALITY_GAP:
        return f"Nothing proved: {proof.method}"
    best = f"best of {considered} choices, all tried; " if considered > 1 else ""
    apart = say.gap_text(max(map(abs, proof.differences.values()), default=0.0))
    return f"Proven: {best}solvers agree to {apart}, the bound lies {say.gap_text(proof.gap)} away"


def _cost_equation(question: BudgetScenario) -> Equation:
    from formulas.scaling.budget_outputs import done_arithmetic, life_cost, paid_arithmetic

    if question.in_usd:
        return life_cost
    return paid_arithmetic if question.rated else done_arithmetic


def _closed_form(point: records.BudgetPoint, form: str, cost: Equation) -> Iterator[str]:
    """The equations on the active constraints, and the identity of over-training in numbers."""
    from formulas.scaling.overtraining import overtraining_proportional
    from formulas.scaling.token_budgets import equalisation

    yield str(cost)
    equation = form_equation(form)
    if equation is not None:
        yield str(equation)
    if point.over_training_from_pools is not None:
        total = 1 / point.share.pretrain
        yield (
            "at the optimum one percent more size and one percent more tokens lower the loss in "
            f"proportion to what they cost, here as {_pulls(point)}"
        )
        yield (
            f"{overtraining_proportional.equation()}, where every pool grows with the size: here "
            f"{point.over_training:.4g} from a total of {total:.4g} x pre-training"
        )
        yield "the exponent of the tokens alone decides that power"
    yield (
        f"pools are as percent of quality per percent of them, {equalisation.equation()}: equal "
        "pools are best only where those are equal"
    )


def _pulls(point: records.BudgetPoint) -> str:
    x = point.coefficients
    if not {"A_N", "B_D", "alpha_N", "beta_D"} <= x.keys() or point.sparsity > 1:
        return f"{1 / point.share.pretrain:.4g} : 1"
    size = x["alpha_N"] * x["A_N"] * point.n_active ** -x["alpha_N"]
    tokens = x["beta_D"] * x["B_D"] * point.tokens.pretrain ** -x["beta_D"]
    return f"alpha_N*A_N/N**alpha_N : beta_D*B_D/D**beta_D = {size:.4g} : {tokens:.4g}"
