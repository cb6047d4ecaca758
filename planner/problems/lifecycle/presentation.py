"""The whole life of a model on a terminal: model and tokens, costs, chips, how it is served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from planner.protocol.document import document_of
from planner.protocol.plan import status_text
from planner.text import wording as say
from planner.text.tolerances import UNSEEN
from planner.token_costs import presentation as life

if TYPE_CHECKING:
    from planner.problems.lifecycle import plan as records

ROWS = 9  # sizes shown beside the best
DEAREST = 1000.0  # times the cost of the plan: sizes that cost more are no choice
NAMES = 36  # width of the names of quantities, unless one is longer
UNSERVED = "No model does that."


def answer(plan: records.LifecyclePlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    whole, point = plan.answer, plan.answer.plan
    blocks = () if point is None else (
        life.chosen(point, whole.band, say.figure(point.tokens_per_parameter), say.money,
                    shape=_shape(point), of_what="its "),
        life.spent(point), hardware(point, whole),
        life.planned_text(getattr(whole, "training", None), say.money), _sizes(point, whole),
        _simpler_rules(whole),
        life.listing("next best, of other sparsities", _others(whole)),
        _proof(whole),
    )  # fmt: skip
    proved = status_text(whole.status, whole.gap)
    method = [f"{proved}: {whole.certificate.method}"] if point is not None else []
    return life.answer_text(question_text(plan), plan, blocks, UNSERVED, method)


def why(plan: records.LifecyclePlan) -> str:
    """What binds, what a percent of anything is worth, and the closed form it comes from."""
    whole, point = plan.answer, plan.answer.plan
    if point is None:
        return life.shortfall(UNSERVED, plan.infeasible)
    lines = ["Why this life", *life.binding(whole.binding, "cost")]
    total = plan.cost or 0.0
    slopes = {name: slope for name, slope in whole.elasticities.items() if abs(slope) >= UNSEEN}
    width = max([NAMES, *map(len, slopes)])
    lines += ["", f"{'One percent more of':<{width + 3}}changes the cost by"]
    for name, slope in life.by_size(slopes):
        lines.append(f"  {name:<{width}}{slope:+8.3f}%{say.signed(slope * total / 100):>12}")
    lines += ["", "Closed form on the active constraints", *_closed_form(point, whole)]
    return "\n".join(lines)


def hardware(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> str:
    """Chips of every phase, and the plan that serves."""
    lines = []
    for name, label in (("pretrain", "train on"), ("rl", "RL on")):
        chips = getattr(point.chips, name, None)
        if chips is None:
            continue
        text = f"{chips.chip} at {chips.mfu:.0%} of its peak"
        if chips.count:
            text = f"{chips.count:,} {text}, for {chips.days:.3g} days"
        lines.append(say.row(label, text))
    serving, unit = document_of(point.serving), point.chips.inference
    chip = unit.chip or "chips of two kinds"
    rate = f"{unit.tokens_per_s_per_unit:,.0f} tokens/s, input and output together"
    if unit.units:
        rate += f"; {unit.units:,} units of {unit.count:,} chips in all carry the first rate"
    band = whole.serving_band
    text = f"{f'${point.usd_per_mtok:.3g}/Mtok':<17}"
    ends = band and band.usd_per_mtok
    text += f"${ends[0]:.3g} to ${ends[1]:.3g}/Mtok" if ends else ""
    least = whole.bound.usd_per_mtok if whole.bound else 0.0
    times = [f"{k.upper()} {say.duration(serving[k])}" for k in ("tpot", "ttft") if serving[k]]
    slope = f"a model one percent larger costs {point.slope_of_price:.2f}% more per token"
    store = point.checkpoints
    stored = (
        f"{store.count} of {say.size(store.bytes)} for {store.seconds / 86400:.3g} days are "
        f"{say.money(store.usd)}, {say.percent(store.share)} of the cost: left out"
    )
    contents = f"{unit.chips_per_unit} {chip}, {say.formats(serving)}, {serving['batch']} in flight"
    lines += [
        say.row("serve as", say.laid_out(serving)),
        say.row("a unit is", contents),
        say.row("it carries", rate),
        f"{'price':<{say.LABEL}}{text:<42} bound ${least:.3g}/Mtok",
        say.row("times", ", ".join(times)),
        say.row("by size", slope),
        say.row("checkpoints", stored),
    ]
    return "\n".join(lines)


def question_text(plan: records.LifecyclePlan) -> str:
    """What was asked, in a sentence."""
    served = life.served_text(plan.answer.demand)
    unit = cast("Mapping[str, Any]", plan.answer.scenario["serving"])
    load, limits = unit["workload"], unit["promises"]
    speed = limits["tokens_per_s_per_user"]
    promises = [
        f"{name} {say.duration(value)}" for name, value in limits.items()
        if value and name != "tokens_per_s_per_user"
    ]  # fmt: skip
    promises += [f"{speed:g} tokens/s per user"] if speed else []
    promised = f"keeping {', '.join(promises)}" if promises else "with no promise"
    text = (
        f"{life.quality_text(plan.question.quality)}, {served}, in requests of "
        f"{say.length(load['input_tokens'])} tokens in and {say.length(load['output_tokens'])} out "
        f"on {say.named(unit['system'], 'system')}, {promised}; least cost of the whole life"
    )
    return "\n".join(say.filled(text))


def _shape(point: records.LifecyclePoint) -> str:
    """Layers, width, heads and experts."""
    model = point.model
    text = f"{model.layers} layers of width {model.hidden:.0f}, {model.heads} heads"
    if model.experts:
        beside = f" beside {model.shared_experts} shared" if model.shared_experts else ""
        text += f", {model.experts_active} of {model.experts} experts{beside}"
    cache = say.size(model.kv_bytes_per_token)
    return f"{text}, {cache} of cache per token (family: {model.family})"


def _sizes(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> str:
    """The cost of the whole life at other sizes, the quality the same."""
    best = point.cost.total.usd or 0.0
    rows = {
        say.count(each.n_active): each
        for each in whole.evaluated or ()
        if each.total_usd and each.total_usd < DEAREST * best
    }
    mine = say.count(point.n_active)
    others = [name for name in rows if name != mine]
    every = max(1, -(-len(others) // ROWS))
    shown = {*others[::every], mine}
    title = f"{'tokens':>9}{'training':>11}{'$/Mtok':>9}{'serving':>11}{'in all':>11}"
    lines = [f"{'at the same loss':<18}{title}"]
    for name, at in rows.items():
        if name in shown:
            training, serving, total = (
                say.money(usd or 0.0) for usd in (at.training_usd, at.serving_usd, at.total_usd)
            )
            note = "the plan" if name == mine else say.increase((at.total_usd or 0.0) / best - 1)
            lines.append(f"  {name:<16}{say.count(at.pretrain or 0.0):>9}{training:>11}"
                         f"{at.usd_per_mtok:>9.3g}{serving:>11}{total:>11}  {note}")  # fmt: skip
    return "\n".join(lines)


def _simpler_rules(whole: records.LifecycleAnswer) -> str:
    """Simpler rules, with what it costs to follow them."""
    rules = (("equal pools", whole.heuristic), ("flat price", whole.flat_price))
    text = life.listing("beside it", (
        (label, f"{say.count(rule.n_active)} on {say.count(rule.tokens.pretrain)} tokens: "
                f"{say.money(rule.cost)}, {say.increase(rule.worse_by)}")
        for label, rule in rules if rule is not None
    ))  # fmt: skip
    note = say.wrapped("(flat price: the size that a budget gives which takes the price of a "
                       "served FLOP for constant, charged what serving it costs)")  # fmt: skip
    return "\n".join([text, *note]) if whole.flat_price is not None else text


def _others(whole: records.LifecycleAnswer) -> Iterator[tuple[str, str]]:
    for choice in whole.alternatives:
        label = f"sparsity {choice.sparsity:.3g}" if choice.sparsity > 1 else "dense"
        size, tokens = say.count(choice.n_active), say.count(choice.tokens.pretrain)
        text = f"{size} of {say.count(choice.n_total)} on {tokens} tokens, "
        yield label, f"{text}${choice.usd_per_mtok:.3g}/Mtok: {say.money(choice.cost.total.usd)}"


def _proof(whole: records.LifecycleAnswer) -> str:
    """How the optimum was found, and how far whole numbers lie from it."""
    proof = cast("records.LifecycleCertificate", whole.certificate)
    smooth = proof.smooth
    text = (
        f"with real numbers of layers and sequences the optimum of this layout is"
        f" {say.count(smooth.n_active)} on {say.count(smooth.pretrain)} tokens at "
        f"{say.money(smooth.usd)}, {say.percent(abs(proof.whole_over_smooth))} "
        f"{'below' if proof.whole_over_smooth >= 0 else 'above'} the plan; prices between the "
        f"sizes asked are good to {say.percent(proof.interpolation_error)}"
    )
    if proof.program is not None:
        bound = 1 - proof.program.lower_bound / proof.program.usd
        text += (
            "; one geometric program over size, tokens and batch, from the bandwidth of memory to "
            "the exponents of the law, has the same optimum, and no choice on this layout lies "
            f"more than {say.gap_text(bound).removeprefix('less than ')} below it"
        )
    return "\n".join(say.filled(text))


def _closed_form(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> Iterator[str]:
    """The identity of over-training in numbers, and the equations it comes from."""
    from formulas.scaling.budget_outputs import served_life_cost
    from formulas.scaling.overtraining import overtraining
    from formulas.scaling.power_laws import chinchilla_loss
    from formulas.serving.outputs import mixed_price

    proof = cast("records.LifecycleCertificate", whole.certificate).over_training
    yield from say.wrapped(str(served_life_cost))
    yield from say.wrapped(str(mixed_price))
    if {"A_N", "B_D", "loss_min"} <= point.coefficients.keys():
        yield from say.wrapped(str(chinchilla_loss))
    if proof.from_pools is not None:
        yield from say.wrapped(str(overtraining.equation()))
        yield from say.wrapped(
            f"here eps_inf = {point.slope_of_price:.4g}, and at the optimum of the layout "
            f"D_pt/D_opt is {proof.ratio:.5g}; the pools ask for {proof.from_pools:.5g}"
        )
