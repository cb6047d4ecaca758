"""A budget or a whole life for the reader: words, rows of the head and tables that both have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.catalogue.chips import chip, chip_names
from planner.catalogue.systems import system, system_names
from planner.protocol.note import Note, default_notes, sort_notes
from planner.protocol.output import Output, output_values
from planner.protocol.section import KEPT, Line, Section, table
from planner.text import wording as say
from planner.text.tolerances import UNSEEN

if TYPE_CHECKING:
    from planner.token_costs.phase_keys import Like, Quality
    from planner.token_costs.spending import (
        LawInterval,
        LifePlan,
        LifePoint,
        PlannedLayout,
        ServedTokens,
    )

LABELS = {
    "cost.total.usd": "cost", "cost.total.flop": "arithmetic", "cost.pretrain.usd": "pre-training",
    "cost.inference.usd": "serving", "n_active": "active parameters", "n_total": "parameters",
    "tokens.pretrain": "pre-training data", "tokens.rl": "RL data",
    "cost.total.flop_paid": "FLOP rented (at peak)",
    "over_training": "over-trained, times", "tokens_per_parameter": "tokens per parameter",
    "loss": "loss", "usd_per_mtok": "price of serving",
}  # fmt: skip
FIRST = ("cost.total.usd", "n_active", "tokens.pretrain", "loss")  # of the headline
PHASE_LABELS = {"pretrain": "pre-training", "rl": "RL", "inference": "serving"}
# Attribute with the error band of an output, if its name differs.
BANDS = {"cost.total.usd": "cost", "tokens.pretrain": "pretrain"}
BOUND_OUTPUT = "usd_per_mtok"  # by the hardware; a budget is its own floor
BAR, NAME_WIDTH = 12, 32  # columns of a share, and of the names of quantities unless one is longer
SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
EQUAL = "equal spending on training and serving"

SPENDING_UNITS = {"usd": "USD", "flop": "flop", "flop_paid": "flop", "chip_hours": "chip*hour"}
COLUMNS: Mapping[str, str] = {
    "n_active": "param", "n_total": "param", "tokens_per_parameter": "token/param",
    **{f"tokens.{phase}": "token" for phase in PHASE_LABELS},
    **{f"cost.{phase}.{name}": unit
       for phase in (*PHASE_LABELS, "total") for name, unit in SPENDING_UNITS.items()},
}  # fmt: skip


# ---- words ----


def scale_text(value: float) -> str:
    """Three digits and the letter of their scale, zeros kept: 16.8B, 5.90B."""
    scale, letter = next(((x, y) for x, y in SCALES if value >= x * 0.9995), (1.0, ""))
    return f"{say.three_digits(value / scale)}{letter}"


def dollars(usd: float) -> str:
    """Dollars: three digits from a million on, whole below."""
    return f"${scale_text(usd)}" if usd >= 999_500 or usd < 99.5 else f"${usd:,.0f}"


def goal_format(point: LifePoint) -> Callable[[float], str]:
    """Format of the objective: in dollars, or in FLOP."""
    return dollars if point.objective == "usd" else "{:.2e} FLOP".format


def ends_text(ends: Sequence[float] | None, form: Callable[[float], str]) -> str:
    """Text of a range, empty if it is None or has no width: $35.7–43.1M."""
    low, high = map(form, ends or (0.0, 0.0))
    return "" if low == high else say.joined_ends(low, high)


def product(name: object) -> str:
    """Product name of a chip or of a system's chip; of a list, the names joined by `or`."""
    if isinstance(name, list):
        return " or ".join(map(product, name))
    if isinstance(name, str) and name in system_names():
        return system(name).chip.product
    return chip(name).product if name in chip_names() else say.reference_text(name, "system")


def like_text(like: Like) -> str:
    """The model that another is to be as good as."""
    size = like.model or say.count(like.n_active or 0.0)
    trained = f"{size} trained on {say.count(like.tokens)} tokens" if like.tokens else ""
    return trained or f"a compute-optimal {size}"


def quality_text(quality: Quality) -> str:
    """Text of the required quality: a loss, or a model whose loss must be met."""
    like = quality.like
    return f"a model as good as {like_text(like)}" if like else f"a loss of {quality.loss:g} nat"


def served_text(served: ServedTokens) -> str:
    """Text of the number of tokens served, and of their counted number if it differs."""
    many = "tokens served for ever"
    if served.tokens is not None:
        many = f"{say.count(served.tokens)} tokens served"
    if served.counted != served.tokens:
        return f"{many}, counted as {say.count(served.counted)}"
    return many if served.tokens else "not served"


def size_text(point: LifePoint) -> str:
    """The size and the tokens that it is trained on."""
    total = f" active of {scale_text(point.n_total)}" if point.sparsity > 1 else ""
    trained = scale_text(point.tokens.pretrain)
    text = f"{scale_text(point.n_active)}{total} parameters on {trained} tokens"
    text += f" in {point.epochs:.3g} epochs" if (point.epochs or 1) > 1 else ""
    return text + f", {scale_text(point.tokens.rl)} tokens of RL" * bool(point.tokens.rl)


def train_text(training: PlannedLayout) -> str:
    """The chips of pre-training that is planned, and how long it takes."""
    chips = f"{training.chips:,} {product(training.system)}"
    return f"on {chips} in {say.three_digits(training.days)} days"


def cost_text(point: LifePoint, band: LawInterval | None) -> str:
    """Text of the life cost with its range; in dollars, also the cost of each phase."""
    form, total = goal_format(point), point.cost.total
    ends = ends_text(band.cost if band else None, form)
    spread = f" ({ends})" if ends else ""
    if point.objective != "usd":
        return f"{form(point.total)}{' rented' * (total.flop_paid != total.flop)}{spread}"
    parts = [f"{label.removeprefix('pre-')} {form(cost)} ({getattr(point.share, name):.0%})"
             for name, label in PHASE_LABELS.items()
             if (cost := getattr(point.cost, name).usd)]  # fmt: skip
    return f"{form(point.total)}{spread}: {' + '.join(parts)}"


def rule_text(rule: Any, form: Callable[[float], str], *, in_loss: bool = False) -> str:
    """Text of another size and tokens, with its cost or loss: `... $130M (+239%)`."""
    size = f"{scale_text(rule.n_active)} on " if rule.n_active else ""
    text = f"{size}{scale_text(rule.tokens.pretrain)} tokens"
    if rule.worse_by is None:
        return f"{text}: {getattr(rule, 'why_not', None) or 'not known'}"
    value = f"loss {rule.loss:.4f}" if in_loss else form(rule.cost)
    return f"{text}: {value} ({say.increase(rule.worse_by)})"


def loss_text(point: LifePoint, quality: Quality | None) -> str:
    """The loss that is reached, and whose it is; empty of a law that knows none."""
    whose = f"that of {like_text(quality.like)}" if quality and quality.like else "as asked"
    return "" if point.loss is None else f"{KEPT} loss {point.loss:.4f}, {whose}"


def limit_texts(plan: LifePlan[Any], *, in_loss: bool = False) -> list[str]:
    """Texts of the binding limits and the effect of a percent of each, or `none binds`."""
    lines, point = [], plan.answer.plan
    for limit in plan.binding:
        worth, form = abs(limit.elasticity) / 100, goal_format(point)
        if in_loss:
            lower = "lowers" if limit.elasticity < 0 else "raises"
            lines.append(f"{limit.name} binds: 1% more {lower} the loss by {say.percent(worth)}")
            continue
        less = "more" if limit.elasticity > 0 else "lower" if limit.name == "loss" else "less"
        costs = f"{say.percent(worth)} more ({form(worth * point.total)})"
        lines.append(f"{limit.name} binds: 1% {less} costs {costs}")
    return lines or ["none binds"]


def limit_row(plan: LifePlan[Any], *, in_loss: bool = False) -> tuple[str]:
    """Binding limits in one row: the first in full, the others with the effect of a percent."""
    others = [f"; {x.name} too ({say.percent(abs(x.elasticity) / 100)})" for x in plan.binding[1:]]
    return ("".join([limit_texts(plan, in_loss=in_loss)[0], *others]),)


def law_notes(
    outside: str, beyond: Sequence[str], warnings: Sequence[str], others: Iterable[Note] = ()
) -> tuple[Note, ...]:
    """Sorted notes: `outside` measured ranges, the law `beyond` its fit, warnings, `others`."""
    rest = default_notes(outside, (words for words in warnings if words not in beyond))
    shortened = (f"law {words.partition(' was ')[2]}" for words in beyond)
    law = (Note("extrapolated", "law", words, "provenance.law") for words in shortened)
    return sort_notes((*rest, *law, *others))


# ---- tables ----


def sections(
    plan: LifePlan[Any], outputs: Sequence[Output], title: str, rest: Iterable[Section]
) -> tuple[Section, ...]:
    """The numbers under the question, then of `rest` what says something, then the law.

    Of no answer it is what falls short.
    """
    point, law = plan.answer.plan, plan.answer.provenance.law
    if point is None:
        return (Section(title, tuple(Line(x.promise, x.expression) for x in plan.infeasible)),)
    numbers = tuple(_outputs(outputs, point, plan.answer.band, plan.answer.bound))
    values = ", ".join(f"{name} {value:.6g}" for name, value in point.coefficients.items())
    facts = (Line(law.name, values), Line("fitted on", law.scope), Line("note", law.note))
    source = Section("law", tuple(line for line in facts if line.value))
    return (Section(title, numbers), *(x for x in rest if x.lines or x.cells), source)


def _outputs(
    outputs: Sequence[Output], point: LifePoint, band: LawInterval | None, bound: object
) -> Iterator[Line]:
    """Every number with its range, the headline's first, and the bound of the price of serving."""
    values = output_values(outputs, point)
    units = {output.name: output.unit for output in outputs}
    for name in (*FIRST, *(name for name in units if name not in FIRST)):
        if values.get(name):
            ends = getattr(band, BANDS.get(name, name), None)
            least = getattr(bound, name, None) if name == BOUND_OUTPUT else None
            yield Line(LABELS[name], values[name], units[name], "", ends, least)


def spending_lines(point: LifePoint, *, shown: bool = True) -> Section:
    """Table of the cost of each phase: share of the total, dollars, FLOP and chip hours."""
    total = point.cost.total
    priced, rated = total.usd is not None, total.flop_paid != total.flop
    phases = {x: spent for x in PHASE_LABELS if (spent := getattr(point.cost, x)).flop}
    shares, costs = [getattr(point.share, name) for name in phases], [*phases.values()]
    labels = [PHASE_LABELS[name] for name in phases]
    columns = {
        "": [f"{label[0].upper()}{label[1:]}" for label in labels],
        "cost": [dollars(x.usd) if priced else "" for x in costs],
        "share": [f"{share:4.0%} {'█' * max(1, round(BAR * share))}" for share in shares],
        "FLOP done": [f"{x.flop:.2e}" for x in costs],
        "FLOP rented": [f"{x.flop_paid:.2e}" if rated else "" for x in costs],
        "chip-hours": [say.count_text(x.chip_hours) if priced else "" for x in costs],
    }
    key, unit = ("usd", "USD") if priced else ("flop", "flop")
    lines = [Line(x, getattr(y, key), unit) for x, y in zip(labels, costs, strict=True)]
    return table(columns, shown=shown, lines=lines, adds_up=True)


def training_section(training: PlannedLayout | None, point: LifePoint, *, in_loss: bool) -> Section:
    """Section with the planned training step, and the result of a fixed share of the peak."""
    if training is None:
        return Section("")
    share = f"{say.percent(training.share, 3)} of the peak, idle chips paid"
    lines = [
        Line("layout", training.layout), Line("step", training.step_time, "s"),
        Line("MFU", f"{say.percent(training.mfu, 3)}; {share}"),
        Line("price of training", training.usd_per_mtok, "USD per million tokens"),
    ]  # fmt: skip
    if fixed := training.fixed_mfu:
        form = "loss {:.4f}".format if in_loss else goal_format(point)
        words = rule_text(fixed, form).replace("tokens:", f"tokens, claimed {form(fixed.claimed)}:")
        lines.append(Line(f"had you assumed {say.percent(fixed.mfu, 3)} MFU", words))
    return Section("training as planned", tuple(lines))


def why_text(
    plan: LifePlan[Any],
    slopes: Mapping[str, float],
    closed: Iterable[str],
    *,
    in_loss: bool = False,
) -> str:
    """Text of the binding limits, the elasticities, and the closed form behind them."""
    lines = [f"Why this {plan.kind}"]
    lines += [line for each in limit_texts(plan, in_loss=in_loss) for line in say.wrapped(each)]
    width, usd = max([NAME_WIDTH, *map(len, slopes)]), 0.0 if in_loss else plan.cost or 0.0
    aim = "loss" if in_loss else "cost"
    lines += ["", f"{'One percent more of':<{width + 3}}changes the {aim} by"]
    for name, slope in sorted(slopes.items(), key=lambda x: (-float(f"{abs(x[1]):.9g}"), x[0])):
        worth = "~0" if abs(slope) < UNSEEN else f"{slope:+.3f}%"
        paid = f"{say.signed_usd(slope * usd / 100):>12}" if usd and abs(slope) >= UNSEEN else ""
        lines.append(f"  {name:<{width}}{worth:>9}{paid}")
    lines += ["", "Closed form on the active constraints"]
    return "\n".join([*lines, *(line for each in closed for line in say.wrapped(each))])
