"""A token budget on a terminal: size and tokens first, then what they cost and rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from planner.laws.law_forms import FORMS
from planner.problems.budget.question_text import question
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
    whole,
    wrapped,
)

if TYPE_CHECKING:
    from planner.protocol.plan import Plan


BAR, SHORT = 20, 12  # of a share, without and with dollars beside it
PHASES = {"pretrain": "pre-training", "rl": "RL", "inference": "serving"}
LONGEST = 34  # of a label that keeps its text beside it
NOTHING = 5e-4  # an elasticity below it does not matter
NAMES = 32  # width of the names of quantities, unless one is longer
SAVINGS = 17  # width of what a budget is compared with


def answer(plan: Plan) -> str:
    """The whole answer as lines of at most 80 columns."""
    document = plan.document
    blocks = [question(document)]
    if plan.chosen:
        plan_of = document["plan"]
        blocks += [_chosen(document), spent(plan_of), _machines(plan_of), _beside(document)]
        blocks += [_others(document), _laws(document)]
    else:
        blocks.append(_shortfall(document))
    blocks.append(grounds(document))
    return "\n\n".join(block for block in blocks if block)


def why(plan: Plan) -> str:
    """What binds, what a percent of each given is worth, and the closed form it comes from."""
    if not plan.chosen:
        return _shortfall(plan.document)
    if not plan.elasticities:
        return "Why this budget\n" + "\n".join(wrapped(plan.certificate["method"]))
    lines = ["Why this budget"]
    for each in plan.binding:
        lines += wrapped(
            f"binds: {each['name']}; one percent more of it changes the {_aim(plan.document)} by "
            f"{each['elasticity']:+.2f} %"
        )
    ranked = sorted(plan.elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    wide = max([NAMES, *(len(name) for name, _ in ranked)])
    lines += ["", f"{'One percent more of':<{wide + 4}}changes the {_aim(plan.document)} by"]
    lines += [f"  {name:<{wide}}{_worth(value):>10}" for name, value in ranked]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan.document)]
    return "\n".join(lines)


def _worth(value: float) -> str:
    return "~0" if abs(value) < NOTHING else f"{value:+.3f} %"


def _aim(document: Mapping[str, Any]) -> str:
    return "loss" if document["scenario"]["cost"] is not None else "cost"


def _chosen(document: Mapping[str, Any]) -> str:
    plan, band = document["plan"], document["band"] or {}
    tokens = plan["tokens"]
    size = f"{count(plan['n_active'])} parameters"
    if plan["sparsity"] > 1:
        size = f"{count(plan['n_active'])} active of {count(plan['n_total'])}"
    lines = [
        ranged("model", size, band.get("n_active"), count),
        ranged("pre-training", f"{count(tokens['pretrain'])} tokens", band.get("pretrain"),
                count),
    ]  # fmt: skip
    if tokens["rl"]:
        lines.append(row("RL", f"{count(tokens['rl'])} tokens"))
    if (plan["epochs"] or 1) > 1:
        lines.append(row("epochs", f"{plan['epochs']:.3g} over the unique tokens"))
    lines.append(row("ratio", f"{plan['tokens_per_parameter']:.3g} tokens per active parameter"))
    if plan["over_training"] is not None:
        ratio = f"{plan['over_training']:.3g} x compute-optimal tokens"
        lines.append(ranged("over-trained", ratio, band.get("over_training"), digits))
    if plan["loss"] is not None:
        told = f"{plan['loss']:.4f} nat per token"
        lines.append(ranged("loss", told, band.get("loss"), loss))
    cost = plan["cost"]["total"]
    form = money if plan["objective"] == "usd" else flop
    total = cost["usd"] if plan["objective"] == "usd" else cost["flop_paid"]
    peak = " of the peak" if form is flop and total != cost["flop"] else ""
    lines.append(ranged("cost", f"{form(total)}{peak}", band.get("cost"), form))
    if band:
        held = f"ranges hold {band['coverage']:.0%} of {band['from']}"
        if band["answered"] < 1:
            held += f"; {1 - band['answered']:.0%} of them leave no answer"
        lines.append(row("", held))
    return "\n".join(lines)


def spent(plan: Mapping[str, Any]) -> str:
    """What each phase costs: FLOP, dollars, chip hours, and its share as a bar."""
    cost = plan["cost"]
    priced = cost["total"]["usd"] is not None
    rated = cost["total"]["flop_paid"] != cost["total"]["flop"]
    titles = f"{'FLOP':>10}"
    if rated:
        titles += f"{'paid for':>10}"
    if priced:
        titles += f"{'USD':>11}{'chip hours':>12}"
    lines = [f"{'':<14}{titles}"]
    for name in (*PHASES, "total"):
        each = cost[name]
        if not each["flop"]:
            continue
        line = f"{PHASES.get(name, name):<14}{each['flop']:>10.3g}"
        if rated:
            line += f"{each['flop_paid']:>10.3g}"
        if priced:
            line += f"{money(each['usd']):>11}{whole(each['chip_hours']):>12}"
        if name in PHASES:
            share = plan["share"][name]
            bar = "█" * max(1, round((SHORT if priced else BAR) * share))
            line += f"  {share:4.0%} {bar}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _machines(plan: Mapping[str, Any]) -> str:
    """What each phase runs on, how well, and at which price."""
    lines = []
    for name, each in plan["phases"].items():
        if each["system"] is None:
            continue
        price = f", ${each['usd_per_chip_hour']:.2f} per chip and hour"
        used = f"{each['mfu']:.0%} of its {each['dtype']} peak"
        lines.append(row(PHASES[name], f"{each['system']} at {used}{price}"))
    return "\n".join(lines)


def _beside(document: Mapping[str, Any]) -> str:
    """The compute-optimal model and equal pools, with what it costs to follow them."""
    lines = []
    aim = _aim(document)
    for name, label in (("compute_optimal", "compute-optimal"), ("heuristic", "equal pools")):
        each = document[name]
        if each is None:
            continue
        trained = f"{count(each['tokens']['pretrain'])} tokens"
        if each["n_active"] is None:
            lines += listed(label, f"{trained}: {each['why_not']}", SAVINGS)
            continue
        text = f"{count(each['n_active'])} on {trained}: {percent(each['worse_by'], 3)} more {aim}"
        if each["worse_by"] > NOTHING and aim == "cost":
            text += f"; the budget above saves {percent(each['saving'], 3)}"
        lines += listed(label, text, SAVINGS)
    return "\n".join(["beside it", *lines]) if lines else ""


def _others(document: Mapping[str, Any]) -> str:
    lines = []
    for plan in document["alternatives"]:
        label = f"sparsity {plan['sparsity']:g}" if plan["sparsity"] > 1 else "dense"
        lines += listed(label, _short(plan, document), SAVINGS)
    return "\n".join(["next best, of other choices", *lines]) if lines else ""


def _laws(document: Mapping[str, Any]) -> str:
    laws, lines = document["laws"] or (), []
    width = min(LONGEST, max((len(each["law"]) for each in laws), default=0))
    for each in laws:
        text = _short(each["plan"], document) if each["plan"] else each["why_not"]
        lines += listed(each["law"], text, width)
    return "\n".join(["by other laws", *lines]) if lines else ""


def _short(plan: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A plan in half a line."""
    text = f"{count(plan['n_active'])} on {count(plan['tokens']['pretrain'])} tokens, "
    if _aim(document) == "loss":
        return text + f"loss {plan['loss']:.4f}"
    total = plan["cost"]["total"]
    usd = plan["objective"] == "usd"
    return text + (money(total["usd"]) if usd else flop(total["flop_paid"]))


def _shortfall(document: Mapping[str, Any]) -> str:
    """Why there is no budget, and by how much it falls short."""
    lines = ["No budget does that."]
    for each in document["infeasible"]:
        factor = each["short_by"]
        by = f"short by a factor of {factor:.4g}: " if factor > 1 else ""
        lines += wrapped(f"{each['promise']}: {by}{each['expression']}")
    return "\n".join(lines)


def grounds(document: Mapping[str, Any]) -> str:
    """What the answer rests on: proof, law with its coefficients, sources with dates."""
    proof, ground = document["certificate"], document["provenance"]
    lines = []
    if proof["gap"] is not None:
        considered = proof["points_considered"]
        many = f"best of {considered} choices, each on its first-order conditions; "
        lines.append(
            f"{many if considered > 1 else ''}solved by {proof['method']}; the proven bound lies "
            f"{apart(proof['gap'])} away"
        )
    elif document["plan"]:
        lines.append(proof["method"])
    law = ground["law"]
    if document["plan"]:
        values = ", ".join(f"{k} {v:.6g}" for k, v in document["plan"]["coefficients"].items())
        lines.append(f"law {law['name']} ({law['scope']}): {values}")
        if law["note"]:
            lines.append(f"note on it: {law['note']}")
    lines.append(f"token-planner {ground['version']}")
    for each in ground["data"]:
        date = f" ({each['as_of']})" if each["as_of"] else ""
        lines.append(f"{each['what']}: {each['source']}{date}")
    return "\n".join(text for line in lines for text in filled(line))


def _closed_form(document: Mapping[str, Any]) -> Iterable[str]:
    """The equations on the active constraints, and the identity of over-training in numbers."""
    from formulas.scaling.overtraining import overtraining_proportional
    from formulas.scaling.token_budgets import equalisation

    plan = document["plan"]
    yield from wrapped("cost = sum over the phases of (FLOP per parameter and token) * N_active * "
                       "tokens * (price of a FLOP)")  # fmt: skip
    place = FORMS[document["provenance"]["law"]["form"]].equation
    if place is not None:
        yield from wrapped(str(getattr(import_module(f"formulas.{place[0]}"), place[1])))
    if plan["over_training_from_pools"] is not None:
        total = 1 / plan["share"]["pretrain"]
        yield from wrapped(
            "at the optimum one percent more size and one percent more tokens lower the loss in "
            f"proportion to what they cost, here as {_pulls(plan)}"
        )
        yield from wrapped(
            f"{overtraining_proportional.equation()}, where every pool grows with the size: here "
            f"{plan['over_training']:.4g} from a total of {total:.4g} x pre-training"
        )
        yield from wrapped("the exponent of the tokens alone decides that power")
    yield from wrapped(
        f"pools are as percent of quality per percent of them, {equalisation.equation()}: equal "
        "pools are best only where those are equal"
    )


def _pulls(plan: Mapping[str, Any]) -> str:
    """What one percent of size and of tokens take off the loss."""
    x = plan["coefficients"]
    if not {"A_N", "B_D", "alpha_N", "beta_D"} <= x.keys() or plan["sparsity"] > 1:
        return f"{1 / plan['share']['pretrain']:.4g} : 1"
    size = x["alpha_N"] * x["A_N"] * plan["n_active"] ** -x["alpha_N"]
    tokens = x["beta_D"] * x["B_D"] * plan["tokens"]["pretrain"] ** -x["beta_D"]
    return f"alpha_N*A_N/N**alpha_N : beta_D*B_D/D**beta_D = {size:.4g} : {tokens:.4g}"
