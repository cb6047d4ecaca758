"""A budget or a whole life for the reader: its sections, and the blocks that both have as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.protocol.output import Output, values_in
from planner.protocol.section import Line, Section
from planner.text import wording as say

if TYPE_CHECKING:
    from planner.protocol.plan import BindingLimit, MissedPromise
    from planner.token_costs.phase_keys import Quality
    from planner.token_costs.spending import (
        LawInterval,
        LifePlan,
        LifePoint,
        LifeProvenance,
        PlannedLayout,
        ServedTokens,
        SizeAndTokens,
    )

LABELS = {
    "cost.total.usd": "cost", "cost.total.flop": "arithmetic", "cost.pretrain.usd": "pre-training",
    "cost.inference.usd": "serving", "n_active": "active parameters", "n_total": "parameters",
    "tokens.pretrain": "pre-training data", "tokens.rl": "RL data",
    "cost.total.flop_paid": "arithmetic of the peak, paid for",
    "over_training": "over-trained, times", "tokens_per_parameter": "tokens per parameter",
    "loss": "loss", "usd_per_mtok": "price of serving",
}  # fmt: skip
FIRST = ("cost.total.usd", "n_active", "tokens.pretrain", "loss")  # of the headline
PHASE_LABELS = {"pretrain": "pre-training", "rl": "RL", "inference": "serving"}
# Where the band of an output stands, and its bound.
BANDS = {"cost.total.usd": "cost", "tokens.pretrain": "pretrain"}
BOUNDS = {"cost.total.usd": "usd"}
BAR, SHORT = 20, 12  # of a share, without and with dollars beside it

SPENT = {"usd": "USD", "flop": "flop", "flop_paid": "flop", "chip_hours": "chip*hour"}
COLUMNS: Mapping[str, str] = {
    "n_active": "param", "n_total": "param", "tokens_per_parameter": "token/param",
    **{f"tokens.{phase}": "token" for phase in PHASE_LABELS},
    **{f"cost.{phase}.{name}": unit
       for phase in (*PHASE_LABELS, "total") for name, unit in SPENT.items()},
}  # fmt: skip


def sections(plan: LifePlan[Any], outputs: Sequence[Output]) -> tuple[Section, ...]:
    """The answer as sections under the question; of an infeasible one only what was asked."""
    answer, title = plan.answer, " ".join(plan.question_text().split())
    point = answer.plan
    if point is None:
        return (Section(title, ()),)
    numbers = Section(title, tuple(_outputs(outputs, point, answer.band, answer.bound)))
    costs = {label: getattr(point.cost, name) for name, label in PHASE_LABELS.items()}
    key, unit = ("usd", "USD") if any(c.usd for c in costs.values()) else ("flop", "flop")
    lines = tuple(Line(label, getattr(spent, key), unit) for label, spent in costs.items())
    return (numbers, Section("what it costs", lines, adds_up=True), *_next(answer.alternatives))


def _outputs(
    outputs: Sequence[Output], point: LifePoint, band: LawInterval | None, bound: object
) -> Iterator[Line]:
    """Every number with its range and its bound, the headline's first."""
    values = values_in(outputs, point)
    units = {output.name: output.unit for output in outputs}
    for name in (*FIRST, *(name for name in units if name not in FIRST)):
        if values.get(name):
            ends = getattr(band, BANDS.get(name, name), None)
            least = getattr(bound, BOUNDS.get(name, name), None)
            yield Line(LABELS[name], values[name], units[name], "", ends, least)


def _next(alternatives: Sequence[SizeAndTokens]) -> Iterator[Section]:
    """The best of other choices."""
    lines = tuple(
        Line(
            f"sparsity {other.sparsity:g}" if other.sparsity > 1 else "dense",
            other.n_active,
            "param",
            f"on {other.tokens.pretrain:.3g} tokens",
        )
        for other in alternatives
    )
    if lines:
        yield Section("next best, of other choices", lines)


def binding(limits: tuple[BindingLimit, ...], aim: str) -> Iterator[str]:
    """The limits that bind, and what a percent of each changes."""
    for limit in limits:
        yield from say.wrapped(
            f"binds: {limit.name}; one percent more of it changes the {aim} by "
            f"{limit.elasticity:+.3f}%"
        )


def by_size(slopes: Mapping[str, float]) -> list[tuple[str, float]]:
    """Elasticities, the largest first; those that differ by rounding alone, by name."""
    return sorted(slopes.items(), key=lambda pair: (-float(f"{abs(pair[1]):.9g}"), pair[0]))


def quality_text(quality: Quality) -> str:
    """The loss or the model that is to be reached."""
    if quality.like is None:
        return f"a loss of {quality.loss:g}"
    like = quality.like
    size = like.model or f"{say.count(like.n_active or 0.0)} parameters"
    trained = f" on {say.count(like.tokens)} tokens" if like.tokens else ""
    kind = "a model" if like.tokens else "a compute-optimal model"
    return f"as good as {kind} of {size}{trained}"


def served_text(served: ServedTokens) -> str:
    """How many tokens are served, and as how many they are counted."""
    many = "tokens served for ever"
    if served.tokens is not None:
        many = f"{say.count(served.tokens)} tokens served"
    if served.counted != served.tokens:
        return f"{many}, counted as {say.count(served.counted)}"
    return many if served.tokens else "not served"


def chosen(
    point: LifePoint,
    band: LawInterval | None,
    ratio: str,
    form: Callable[[float], str],
    *,
    shape: str = "",
    of_what: str = "",
    peak: str = "",
) -> str:
    """Size with its `shape`, tokens of training and their `ratio`, loss and cost with its ranges.

    `of_what` says whose compute-optimal tokens, `peak` of what the arithmetic is.
    """
    size = f"{say.count(point.n_active)} parameters"
    if point.sparsity > 1:
        size = f"{say.count(point.n_active)} active of {say.count(point.n_total)}"
    pretrain, rl = f"{say.count(point.tokens.pretrain)} tokens", point.tokens.rl
    lines = [with_band("model", size, band, "n_active", say.count)]
    if shape:
        lines.append(say.row("", shape))
    lines.append(with_band("pre-training", pretrain, band, "pretrain", say.count))
    if rl:
        lines.append(say.row("RL", f"{say.count(rl)} tokens"))
    if (point.epochs or 1) > 1:
        lines.append(say.row("epochs", f"{point.epochs:.3g} over the unique tokens"))
    lines.append(say.row("ratio", f"{ratio} tokens per active parameter"))
    if point.over_training is not None:
        text = f"{point.over_training:.3g} x {of_what}compute-optimal tokens"
        lines.append(with_band("over-trained", text, band, "over_training", say.digits))
    if point.loss is not None:
        text = f"{point.loss:.4f} nat per token"
        lines.append(with_band("loss", text, band, "loss", say.loss))
    lines.append(with_band("cost", f"{form(point.total)}{peak}", band, "cost", form))
    if band is not None:
        text = f"ranges hold {band.coverage:.0%} of {band.source}"
        left = f"; {1 - band.answered:.0%} of them leave no answer" if band.answered < 1 else ""
        lines.append(say.row("", text + left))
    return "\n".join(lines)


def spent(point: LifePoint) -> str:
    """What each phase costs: FLOP, dollars, chip hours, and its share as a bar."""
    total = point.cost.total
    priced, rated = total.usd is not None, total.flop_paid != total.flop
    titles = f"{'FLOP':>10}"
    if rated:
        titles += f"{'paid for':>10}"
    if priced:
        titles += f"{'USD':>11}{'chip hours':>12}"
    lines = [f"{'':<14}{titles}"]
    for name in (*PHASE_LABELS, "total"):
        spending = getattr(point.cost, name)
        if not spending.flop:
            continue
        line = f"{PHASE_LABELS.get(name, name):<14}{spending.flop:>10.3g}"
        if rated:
            line += f"{spending.flop_paid:>10.3g}"
        if priced:
            line += f"{say.money(spending.usd):>11}{say.count_text(spending.chip_hours):>12}"
        if name in PHASE_LABELS:
            share = getattr(point.share, name)
            bar = "█" * max(1, round((SHORT if priced else BAR) * share))
            line += f"  {share:4.0%} {bar}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def shortfall(title: str, missed: Sequence[MissedPromise]) -> str:
    """Why there is no answer, and by how much it falls short."""
    lines = [title]
    for miss in missed:
        factor = miss.short_by or 1.0
        what = f"misses {miss.promise} by {say.excess(factor)}" if factor > 1 else miss.promise
        lines += say.wrapped(f"{what}: {miss.expression}")
    return "\n".join(lines)


def answer_text(
    question: str, plan: LifePlan[Any], blocks: Iterable[str], nothing: str, method: list[str]
) -> str:
    """The whole answer as lines of at most 80 columns; `nothing` says that there is none."""
    middle = blocks if plan.answer.plan is not None else [shortfall(nothing, plan.infeasible)]
    ends = _grounds(method, plan.answer.plan, plan.answer.provenance)
    return "\n\n".join(block for block in (question, *middle, ends) if block)


def listing(title: str, rows: Iterable[tuple[str, str]], width: int = say.LABEL) -> str:
    """Labels with their texts beside them under a title; nothing where there are none."""
    lines = [line for label, text in rows for line in say.listed(label, text, width)]
    return "\n".join([title, *lines]) if lines else ""


def with_band(
    label: str, text: str, band: LawInterval | None, name: str, form: Callable[[float], str]
) -> str:
    """A label, its value, and the ends that a band has under a name."""
    return say.ranged(label, text, getattr(band, name, None), form)


def _grounds(method: list[str], point: LifePoint | None, ground: LifeProvenance) -> str:
    """How it was solved, then the law with its coefficients, and sources with dates."""
    lines, law = list(method), ground.law
    if point is not None:
        values = ", ".join(f"{name} {value:.6g}" for name, value in point.coefficients.items())
        lines.append(f"law {law.name} ({law.scope}): {values}")
        if law.note:
            lines.append(f"note on it: {law.note}")
    lines.append(f"token-planner {ground.version}")
    for source in ground.data:
        date = f" ({source.as_of})" if source.as_of else ""
        lines.append(f"{source.what}: {source.source}{date}")
    return "\n".join(text for line in lines for text in say.filled(line))


def planned_text(training: PlannedLayout | None, form: Callable[[float], str]) -> str:
    """How pre-training is laid out, and what a fixed share of the peak gave; "" where not planned.

    `form` says what is made small, money or FLOP.
    """
    if training is None:
        return ""
    share, mfu = say.percent(training.share, 3), say.percent(training.mfu, 3)
    lines = [
        *say.filled(f"{'train as':<{say.LABEL}}{training.layout}"),
        *say.filled(
            f"{'':<{say.LABEL}}{training.chips:,} chips of {training.system}, a step "
            f"{say.duration(training.step_time)}, {training.days:.3g} days; "
            f"{share} of the peak (MFU {mfu}), ${training.usd_per_mtok:.3g}/Mtok"
        ),
    ]
    fixed = training.fixed_mfu
    if fixed is not None:
        text = (
            f"{say.count(fixed.n_active)} on {say.count(fixed.tokens.pretrain)} tokens at "
            f"{form(fixed.claimed)}"
        )
        if fixed.cost is not None and fixed.worse_by is not None:
            text += (
                f"; trained by its best layout {form(fixed.cost)}, {say.increase(fixed.worse_by)}"
            )
        lines += say.filled(
            f"{'a fixed MFU':<{say.LABEL}}of {say.percent(fixed.mfu, 3)} gave {text}"
        )
    return "\n".join(lines)
