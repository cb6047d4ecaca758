"""The whole life of a model on a terminal: model and tokens, what phases cost, how it is served.

Chips of every phase of a life, and the plan that serves, on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from planner.problems.budget.presentation import grounds, spent
from planner.text.wording import (
    LABEL,
    apart,
    count,
    duration,
    figure,
    filled,
    formats,
    laid_out,
    length,
    listed,
    money,
    more,
    named,
    percent,
    ranged,
    row,
    signed,
    size,
    wrapped,
)

if TYPE_CHECKING:
    from planner.protocol.plan import Plan


def hardware(document: Mapping[str, Any]) -> str:
    """Chips of every phase, and the plan that serves."""
    plan, lines = document["plan"], []
    for name, label in (("pretrain", "train on"), ("rl", "RL on")):
        each = plan["chips"].get(name)
        if each is None:
            continue
        told = f"{each['chip']} at {each['mfu']:.0%} of its peak"
        if each["count"]:
            told = f"{each['count']:,} {told}, for {each['days']:.3g} days"
        lines.append(row(label, told))
    serving, unit = plan["serving"], plan["chips"]["inference"]
    lines.append(row("serve as", laid_out(serving)))
    chip = unit["chip"] or "chips of two kinds"
    told = f"{unit['chips_per_unit']} {chip}, {formats(serving)}, {serving['batch']} in flight"
    lines.append(row("a unit is", told))
    rate = f"{unit['tokens_per_s_per_unit']:,.0f} tokens/s, input and output together"
    if unit["units"]:
        rate += f"; {unit['units']:,} units of {unit['count']:,} chips in all carry the first rate"
    lines.append(row("it carries", rate))
    price, band = plan["usd_per_mtok"], document["serving_band"]
    told = f"${price:.3g}/Mtok"
    ends = band and band["usd_per_mtok"]
    told = f"{told:<17}" + (f"${ends[0]:.3g} to ${ends[1]:.3g}/Mtok" if ends else "")
    least = document["bound"]["usd_per_mtok"]
    lines.append(f"{'price':<{LABEL}}{told:<42} bound ${least:.3g}/Mtok")
    times = [f"{k.upper()} {duration(serving[k])}" for k in ("tpot", "ttft") if serving[k]]
    lines.append(row("times", ", ".join(times)))
    slope = f"a model one percent larger costs {plan['slope_of_price']:.2f} % more per token"
    lines.append(row("by size", slope))
    kept = plan["checkpoints"]
    told = (
        f"{kept['count']} of {size(kept['bytes'])} for {kept['seconds'] / 86400:.3g} days are "
        f"{money(kept['usd'])}, {percent(kept['share'])} of the cost: left out"
    )
    lines.append(row("checkpoints", told))
    return "\n".join(lines)


ROWS = 9  # sizes told beside the best
TOLD = 1000.0  # times the cost of the plan: sizes that cost more are no choice
NOTHING = 5e-4  # an elasticity below it does not matter
NAMES = 36  # width of the names of quantities, unless one is longer
RULES = {"heuristic": "equal pools", "flat_price": "flat price"}


def answer(plan: Plan) -> str:
    """The whole answer as lines of at most 80 columns."""
    document = plan.document
    blocks = [_question(document)]
    if plan.chosen:
        blocks += [_chosen(document), spent(document["plan"]), hardware(document)]
        blocks += [_sizes(document), _beside(document), _others(document), _proof(document)]
    else:
        blocks.append(_shortfall(document))
    blocks.append(grounds(document))
    return "\n\n".join(block for block in blocks if block)


def why(plan: Plan) -> str:
    """What binds, what a percent of anything is worth, and the closed form it comes from."""
    if not plan.chosen:
        return _shortfall(plan.document)
    lines = ["Why this life"]
    for each in plan.binding:
        lines += wrapped(
            f"binds: {each['name']}; one percent more of it changes the cost by "
            f"{each['elasticity']:+.2f} %"
        )
    total = plan.cost or 0.0
    told = [pair for pair in plan.elasticities.items() if abs(pair[1]) >= NOTHING]
    wide = max([NAMES, *(len(name) for name, _ in told)])
    lines += ["", f"{'One percent more of':<{wide + 3}}changes the cost by"]
    for name, value in sorted(told, key=lambda pair: (-abs(pair[1]), pair[0])):
        lines.append(f"  {name:<{wide}}{value:+8.3f} %{signed(value * total / 100):>12}")
    lines += ["", "Closed form on the active constraints", *_closed_form(plan.document)]
    return "\n".join(lines)


def question_of(plan: Plan) -> str:
    """What was asked, as one line."""
    return " ".join(_question(plan.document).split())


def _question(document: Mapping[str, Any]) -> str:
    """What was asked, in a sentence."""
    asked, served = document["scenario"], document["demand"]
    quality, unit = asked["quality"], asked["serving"]
    if quality["loss"] is not None:
        wanted = f"a loss of {quality['loss']:g}"
    else:
        like = quality["like"]
        model = like["model"] or f"{count(like['n_active'])} parameters"
        trained = f" on {count(like['tokens'])} tokens" if like["tokens"] else ""
        kind = "a model" if like["tokens"] else "a compute-optimal model"
        wanted = f"as good as {kind} of {model}{trained}"
    counted = ""
    if served["counted"] != served["tokens"]:
        counted = f", counted as {count(served['counted'])}"
    load, kept = unit["workload"], unit["promises"]
    promises = ", ".join(
        f"{name} {duration(value)}" for name, value in kept.items()
        if value and name != "tokens_per_s_per_user"
    )  # fmt: skip
    if kept["tokens_per_s_per_user"]:
        promises += f"{kept['tokens_per_s_per_user']:g} tokens/s per user"
    told = (
        f"{wanted}, {count(served['tokens'])} tokens served{counted}, in requests of "
        f"{length(load['input_tokens'])} tokens in and {length(load['output_tokens'])} out on "
        f"{named(unit['system'], 'system')}, "
        f"{f'keeping {promises}' if promises else 'with no promise'}; least cost of the whole life"
    )
    return "\n".join(filled(told))


def _chosen(document: Mapping[str, Any]) -> str:
    plan, band = document["plan"], document["band"] or {}
    model, tokens = plan["model"], plan["tokens"]
    told = f"{count(plan['n_active'])} parameters"
    if plan["sparsity"] > 1:
        told = f"{count(plan['n_active'])} active of {count(plan['n_total'])}"
    lines = [
        ranged("model", told, band.get("n_active"), count),
        row("", _shape(model)),
        ranged("pre-training", f"{count(tokens['pretrain'])} tokens", band.get("pretrain"),
                count),
    ]  # fmt: skip
    if tokens["rl"]:
        lines.append(row("RL", f"{count(tokens['rl'])} tokens"))
    if (plan["epochs"] or 1) > 1:
        lines.append(row("epochs", f"{plan['epochs']:.3g} over the unique tokens"))
    lines.append(
        row("ratio", f"{figure(plan['tokens_per_parameter'])} tokens per active parameter")
    )
    if plan["over_training"] is not None:
        told = f"{plan['over_training']:.3g} x its compute-optimal tokens"
        lines.append(row("over-trained", told))
    lines.append(row("loss", f"{plan['loss']:.4f} nat per token"))
    total = plan["cost"]["total"]["usd"]
    lines.append(ranged("cost", money(total), band.get("cost"), money))
    if band:
        held = f"ranges hold {band['coverage']:.0%} of {band['from']}"
        if band["answered"] < 1:
            held += f"; {1 - band['answered']:.0%} of them leave no answer"
        lines.append(row("", held))
    return "\n".join(lines)


def _shape(model: Mapping[str, Any]) -> str:
    """Layers, width, heads and experts."""
    told = f"{model['layers']} layers of width {model['hidden']:.0f}, {model['heads']} heads"
    if model["experts"]:
        beside = f" beside {model['shared_experts']} shared" if model["shared_experts"] else ""
        told += f", {model['experts_active']} of {model['experts']} experts{beside}"
    kept = size(model["kv_bytes_per_token"])
    return f"{told}, {kept} of cache per token (family: {model['family']})"


def _sizes(document: Mapping[str, Any]) -> str:
    """The cost of the whole life at other sizes, the quality the same."""
    plan = document["plan"]
    best = plan["cost"]["total"]["usd"]
    rows = {
        count(each["n_active"]): each
        for each in document["asked"]
        if each["total_usd"] and each["total_usd"] < TOLD * best
    }
    mine = count(plan["n_active"])
    others = [name for name in rows if name != mine]
    every = max(1, -(-len(others) // ROWS))
    kept = {*others[::every], mine}
    title = f"{'tokens':>9}{'training':>11}{'$/Mtok':>9}{'serving':>11}{'in all':>11}"
    lines = [f"{'at the same loss':<18}{title}"]
    for name, each in rows.items():
        if name not in kept:
            continue
        told = "the plan" if name == mine else more(each["total_usd"] / best - 1)
        lines.append(
            f"  {name:<16}{count(each['pretrain']):>9}{money(each['training_usd']):>11}"
            f"{each['usd_per_mtok']:>9.3g}{money(each['serving_usd']):>11}"
            f"{money(each['total_usd']):>11}  {told}"
        )
    return "\n".join(lines)


def _beside(document: Mapping[str, Any]) -> str:
    """Simpler rules, with what it costs to follow them."""
    lines = []
    for name, label in RULES.items():
        each = document[name]
        if each is not None:
            told = (
                f"{count(each['n_active'])} on {count(each['tokens']['pretrain'])} tokens: "
                f"{money(each['cost'])}, {more(each['worse_by'])}"
            )
            lines += listed(label, told)
    if document["flat_price"] is not None:
        lines += wrapped("(flat price: the size that a budget gives which takes the price of a "
                         "served FLOP for constant, charged what serving it costs)")  # fmt: skip
    return "\n".join(["beside it", *lines]) if lines else ""


def _others(document: Mapping[str, Any]) -> str:
    lines = []
    for each in document["alternatives"]:
        label = f"sparsity {each['sparsity']:.3g}" if each["sparsity"] > 1 else "dense"
        told = (
            f"{count(each['n_active'])} of {count(each['n_total'])} on "
            f"{count(each['tokens']['pretrain'])} tokens, ${each['usd_per_mtok']:.3g}/Mtok: "
            f"{money(each['cost']['total']['usd'])}"
        )
        lines += listed(label, told)
    return "\n".join(["next best, of other sparsities", *lines]) if lines else ""


def _proof(document: Mapping[str, Any]) -> str:
    """How the optimum was found, and how far whole numbers lie from it."""
    proof = document["certificate"]
    smooth = proof["smooth"]
    told = (
        f"with real numbers of layers and sequences the optimum of this layout is"
        f" {count(smooth['n_active'])} on {count(smooth['pretrain'])} tokens at "
        f"{money(smooth['usd'])}, {percent(abs(proof['whole_over_smooth']))} "
        f"{'below' if proof['whole_over_smooth'] >= 0 else 'above'} the plan; prices between the "
        f"sizes asked are good to {percent(proof['interpolation_error'])}"
    )
    if proof["program"] is not None:
        bound = 1 - proof["program"]["lower_bound"] / proof["program"]["usd"]
        told += (
            "; one geometric program over size, tokens and batch, from the bandwidth of memory to "
            "the exponents of the law, has the same optimum, and no choice on this layout lies "
            f"more than {apart(bound).removeprefix('less than ')} below it"
        )
    return "\n".join(filled(told))


def _shortfall(document: Mapping[str, Any]) -> str:
    """Why there is no such life, and by how much it falls short."""
    lines = ["No model does that."]
    for each in document["infeasible"]:
        factor = each["short_by"]
        by = f"short by a factor of {factor:.4g}: " if factor and factor > 1 else ""
        lines += wrapped(f"{each['promise']}: {by}{each['expression']}")
    return "\n".join(lines)


def _closed_form(document: Mapping[str, Any]) -> Iterable[str]:
    """The identity of over-training in numbers, and the equations it comes from."""
    from formulas.scaling.overtraining import overtraining
    from formulas.scaling.power_laws import chinchilla_loss
    from formulas.serving.throughput import mixed_price

    plan, proof = document["plan"], document["certificate"]["over_training"]
    yield from wrapped("cost = (price of a FLOP) * 6 * N_active * D_pt + (price of serving a token "
                       "at N_active) * D_inf")  # fmt: skip
    yield from wrapped(str(mixed_price))
    if {"A_N", "B_D", "loss_min"} <= plan["coefficients"].keys():
        yield from wrapped(str(chinchilla_loss))
    if proof["from_pools"] is not None:
        yield from wrapped(str(overtraining.equation()))
        yield from wrapped(
            f"here eps_inf = {plan['slope_of_price']:.4g}, and at the optimum of the layout "
            f"D_pt/D_opt is {proof['ratio']:.5g}; the pools ask for {proof['from_pools']:.5g}"
        )
