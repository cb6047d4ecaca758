"""The whole life of a model for the reader: what to build, train and serve, and other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.protocol.document import to_document
from planner.protocol.note import Note
from planner.protocol.output import Output
from planner.protocol.plan import MEASURED
from planner.protocol.promise import LIKELY as EVEN
from planner.protocol.promise import SURE_CHANCE, sum_chance
from planner.protocol.section import BROKEN, KEPT, LIKELY, AnswerHead, Line, Section, no_plan, table
from planner.text import wording as say
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.token_costs import presentation as life

if TYPE_CHECKING:
    from planner.problems.lifecycle import plan as records

NEIGHBOURS = 2  # sizes shown by default on either side of the plan
FLAT_COST = 0.02  # more cost that is hardly any
MAX_COST_RATIO = 1000.0  # times the cost of the plan: sizes that cost more are no choice
TIMES = ("ttft", "tpot", "e2e")


def head(plan: records.LifecyclePlan) -> AnswerHead:
    """Answer head: the model, its training, serving and cost, and the Chinchilla-optimal choice."""
    whole, point = plan.answer, plan.answer.plan
    if point is None:
        return no_plan(_question_text(plan), plan.infeasible)
    usual = min(_feasible_sizes(whole), key=lambda size: size.training_usd or 0.0, default=None)
    tried = f"best of {len(whole.evaluated or ())} sizes tried"
    proven = "Proven on this layout alone (geometric program)"
    program = getattr(whole.certificate, "program", None)
    cells = [x[0] for x in _sizes([usual], point).values()] if usual else []
    instead = "Chinchilla-optimal {0} on {1} tokens: {5} ({6})" if usual else "no other size known"
    return AnswerHead(
        _question_text(plan),
        run=("; ".join([life.size_text(point), *_trained(point, whole)]), _served(point, whole)),
        cost=(life.cost_text(point, whole.band),),
        against=(instead.format(*cells),),
        promises=("   ".join(_times(plan)) or life.loss_text(point, plan.question.quality),),
        certainty=(_certainty(whole),),
        limit=life.limit_row(plan),
        next=("planner sensitivity FILE    (what 1% of each input is worth)",),
        labels={"run": "Build", "against": "Instead"},
        proof=f"{proven if program is not None else 'Nothing proved'}; {tried}",
    )


def sections(plan: records.LifecyclePlan, outputs: Sequence[Output]) -> tuple[Section, ...]:
    """The question with its numbers, sizes at the same quality, then what else is known."""
    whole, point, rest = plan.answer, plan.answer.plan, list[Section]()
    if point is not None:
        sizes = {life.scale_text(x.n_active): x for x in _feasible_sizes(whole)
                 if (x.total_usd or 0.0) < MAX_COST_RATIO * point.total}  # fmt: skip
        proof = cast("records.LifecycleCertificate", whole.certificate)
        place = [*sizes].index(mine) if (mine := life.scale_text(point.n_active)) in sizes else 0
        near = [*sizes.values()][max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
        rules = ((life.EQUAL, whole.heuristic),
                 ("one price per token at every size", whole.flat_price))  # fmt: skip
        rest = [
            table(_sizes(near, point)),
            table(_sizes([*sizes.values()], point), "every size tried", shown=False),
            life.spending_lines(point, shown=False),
            Section("model and chips", tuple(_built(point, whole))),
            life.training_section(getattr(whole, "training", None), point, in_loss=False),
            Section("rules", tuple(Line(label, life.rule_text(rule, life.dollars))
                                   for label, rule in rules if rule is not None)),
            Section("runners-up", tuple(_others(whole))),
            Section("proof", (Line("price error", say.percent(proof.interpolation_error)),
                              Line("how", proof.method))),
        ]  # fmt: skip
    return life.sections(plan, outputs, _question_text(plan), rest)


def explanation_text(plan: records.LifecyclePlan) -> str:
    """Explanation: binding limits, elasticities, and the closed form behind them."""
    whole, point = plan.answer, plan.answer.plan
    if point is None:
        return head(plan).text()
    slopes = {name: slope for name, slope in whole.elasticities.items() if abs(slope) >= UNSEEN}
    return life.why_text(plan, slopes, _closed_form(point, whole))


def tips(point: records.LifecyclePoint, sizes: Sequence[records.EvaluatedSize]) -> Iterator[Note]:
    """Note on the range of sizes whose total cost is within FLAT_COST of the optimum."""
    most = (1 + FLAT_COST) * point.total
    flat = [x for x in sizes if x.total_usd and x.total_usd < most]
    if len(flat) > 1:
        ends = f"from {life.scale_text(flat[0].n_active)} to {life.scale_text(flat[-1].n_active)}"
        more = max(x.total_usd or 0.0 for x in flat) / point.total - 1
        words = f"flat: {ends} the total changes by at most {say.percent(more)}"
        yield Note("tip", "flat", words, "asked")


def _question_text(plan: records.LifecyclePlan) -> str:
    """The question in one sentence."""
    unit = cast("Mapping[str, Any]", plan.answer.scenario["serving"])
    load, limits = unit["workload"], unit["promises"]
    speed = limits["tokens_per_s_per_user"]
    promises = [f"{x.upper()} ≤ {show(limits[x], 'time')}" for x in TIMES if limits.get(x)]
    promises += [f"{speed:g} tokens/s per user"] if speed else []
    tokens = f"{say.length(load['input_tokens'])} in, {say.length(load['output_tokens'])} out"
    return (
        f"Cheapest whole life of {life.quality_text(plan.question.quality)}: "
        f"{life.served_text(plan.answer.demand)} ({tokens}; {', '.join(promises) or 'no promise'}) "
        f"on {life.product(unit['system'])}"
    )


def _feasible_sizes(whole: records.LifecycleAnswer) -> list[records.EvaluatedSize]:
    return [each for each in whole.evaluated or () if each.total_usd]


def _trained(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> Iterator[str]:
    """Chips of the phases of training."""
    planned = getattr(whole, "training", None)
    if planned is not None:
        yield life.train_text(planned)
    for name, label in (("pretrain", "on"), ("rl", "RL on")):
        chips = getattr(point.chips, name, None)
        if chips is not None and (name == "rl" or planned is None):
            many = f"{chips.count:,} " if chips.count else ""
            days = f" in {chips.days:.3g} days" if chips.count else ""
            yield f"{label} {many}{life.product(chips.chip)}{days}"


def _served(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> str:
    """The unit that serves, and its price of a token with its range."""
    serving, unit = to_document(point.serving), point.chips.inference
    ends = whole.serving_band and whole.serving_band.usd_per_mtok
    price, *low_high = (f"${say.three_digits(x)}" for x in (point.usd_per_mtok, *(ends or ())))
    spread = f" ({say.joined_ends(*low_high)})" if ends else ""
    chips = (
        f"{unit.chips_per_unit} {life.product(unit.chip) if unit.chip else 'chips of two kinds'}"
    )
    return (
        f"served by {say.pools_text(serving)} on {chips}, {serving['weights']}; "
        f"{price}/Mtok{spread}"
    )


def _times(plan: records.LifecyclePlan) -> Iterator[str]:
    """Promised times: the value, its limit, and the probability that it holds."""
    whole, unit = plan.answer, cast("Mapping[str, Any]", plan.answer.scenario["serving"])
    assert whole.plan is not None
    for name in TIMES:
        limit, value = unit["promises"].get(name), getattr(whole.plan.serving, name)
        if limit and value:
            ends, chance = getattr(whole.serving_band, name, None), 1.0
            if ends:
                chance = sum_chance(limit, [(value, ends[0] / value, ends[1] / value)])
            late = LIKELY if value <= limit * (1 + UNSEEN) else BROKEN
            odds = f" ({'likely' if chance >= EVEN else 'UNLIKELY'}, {chance:.0%})"
            mark, odds = (KEPT, "") if chance >= SURE_CHANCE else (late, odds)
            yield f"{mark} {name.upper()} {say.duration(value)} ≤ {show(limit, 'time')}{odds}"


def _certainty(whole: records.LifecycleAnswer) -> str:
    """Text on extrapolation: serving within the measurements, and the law within its fit."""
    band, law = whole.serving_band, f"law {whole.provenance.law.name}"
    beyond = [f"{x.words} ({x.rests})" if x.rests else x.words for x in whole.outside[:1]]
    if band is not None and band.kind != MEASURED and not beyond:
        beyond.append("no run of such serving")
    if any(note.code == "law" for note in whole.notes):
        return f"EXTRAPOLATED: {', '.join([*beyond, law])}"
    sure = "serving within measurements" if band else "hardware limit only, nothing measured"
    return f"EXTRAPOLATED: {beyond[0]}; {law}" if beyond else f"{sure}; {law}"


def _sizes(
    sizes: Sequence[records.EvaluatedSize], point: records.LifecyclePoint
) -> Mapping[str, Sequence[str]]:
    """The cost of the whole life at some sizes, the quality the same: columns by their heads."""
    names, usd = [life.scale_text(x.n_active) for x in sizes], life.dollars
    more = [say.increase((x.total_usd or 0.0) / point.total - 1) for x in sizes]
    mine = life.scale_text(point.n_active)
    return {
        "size": names, "tokens": [life.scale_text(x.pretrain or 0.0) for x in sizes],
        "training": [usd(x.training_usd or 0.0) for x in sizes],
        "$/Mtok": [f"${say.three_digits(x.usd_per_mtok or 0.0)}" for x in sizes],
        "serving": [usd(x.serving_usd or 0.0) for x in sizes],
        "total": [usd(x.total_usd or 0.0) for x in sizes],
        "change": ["plan" if x == mine else y for x, y in zip(names, more, strict=True)],
    }  # fmt: skip


def _built(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> Iterator[Line]:
    """Lines on the model's architecture, its training and serving, and its checkpoints."""
    model, unit, store = point.model, point.chips.inference, point.checkpoints
    experts = f"; {model.experts_active} of {model.experts} experts" if model.experts else ""
    experts += f" beside {model.shared_experts} shared" * bool(experts and model.shared_experts)
    yield Line("layers", f"{model.layers} × {model.hidden:,.0f}, {model.heads} heads{experts}")
    cache = f"{say.format_bytes(model.kv_bytes_per_token)} per token (family: {model.family})"
    yield Line("KV cache", cache)
    for name, label in (("pretrain", "pre-training"), ("rl", "RL")):
        if chips := getattr(point.chips, name, None):
            yield Line(label, f"{life.product(chips.chip)} at {chips.mfu:.0%} of its peak")
    serving = point.serving
    rate = f"{unit.tokens_per_s_per_unit:,.0f} tokens/s, input and output together"
    yield Line("serving", f"{serving.formats}, {serving.batch:,} in flight: {rate}")
    if unit.units:
        yield Line("replica sets", f"{unit.units:,} on {unit.count:,} chips carry the first rate")
    yield Line("1% larger model", f"{say.increase(point.slope_of_price / 100)} per token served")
    stored = (
        f"{store.count} of {say.format_bytes(store.bytes)} for {store.seconds / 86400:.3g} days"
    )
    share = f"{life.dollars(store.usd)}, {say.percent(store.share)}"
    yield Line("checkpoints, not counted", f"{stored}: {share}")


def _others(whole: records.LifecycleAnswer) -> Iterator[Line]:
    for x in whole.alternatives:
        text = f"{life.scale_text(x.n_active)} of {life.scale_text(x.n_total)}"
        text += f" on {life.scale_text(x.tokens.pretrain)} tokens, {life.dollars(x.cost.total.usd)}"
        yield Line(f"sparsity {x.sparsity:.3g}" if x.sparsity > 1 else "dense", text)


def _closed_form(point: records.LifecyclePoint, whole: records.LifecycleAnswer) -> Iterator[str]:
    """The identity of over-training in numbers, and the equations it comes from."""
    from formulas.scaling.budget_outputs import served_life_cost
    from formulas.scaling.overtraining import overtraining
    from formulas.scaling.power_laws import chinchilla_loss
    from formulas.serving.outputs import mixed_price

    proof = cast("records.LifecycleCertificate", whole.certificate).over_training
    yield str(served_life_cost)
    yield str(mixed_price)
    if {"A_N", "B_D", "loss_min"} <= point.coefficients.keys():
        yield str(chinchilla_loss)
    if proof.from_pools is not None:
        yield str(overtraining.equation())
        yield (
            f"here eps_inf = {point.slope_of_price:.4g}, and at the optimum of the layout "
            f"D_pt/D_opt is {proof.ratio:.5g}; the pools ask for {proof.from_pools:.5g}"
        )
