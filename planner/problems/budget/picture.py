"""What a picture of a budget or lifecycle shows: cost by size, and loss and cost on a plane.

Pictures of a budget or of a whole life: cost against size, pools, equal loss and equal cost.

The same document draws the same bytes, in the style of the frontier's picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.laws.scaling_law import ScalingLaw
from planner.problems.budget.budget_task import BudgetTask, Required
from planner.problems.budget.optimum import solve_one
from planner.problems.budget.posynomial_form import Array
from planner.problems.budget.question import BudgetScenario
from planner.problems.budget.resolve import resolve_budget
from planner.problems.lifecycle.fixed_layout_optimum import training_curve
from planner.problems.lifecycle.question import LifecycleScenario
from planner.report.pictures.canvas import PAPER, pictured
from planner.scenario import load
from planner.text.errors import InputError
from planner.text.wording import count, money

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.protocol.plan import Plan


POINTS = 193
WIDEST = 60.0  # factor of sizes beside the plan that is looked at
TALLEST = 8.0  # factor of the least cost up to which sizes are shown
MESH = 141
SIDE = (4.0, 12.0)  # factors of size and tokens beside the plan on the plane


@dataclass(frozen=True)
class Costs:
    """Cost by size at the quality of the plan, all (P,), in the unit of the plan's objective."""

    sizes: Array
    tokens: Array
    training: Array
    serving: Array

    @property
    def total(self) -> Array:
        """Cost of the whole life."""
        return self.training + self.serving


@dataclass(frozen=True)
class Plane:
    """Loss [nat] and cost at every size (P,) and number of tokens (Q,): shape (Q, P)."""

    sizes: Array
    tokens: Array
    loss: Array
    cost: Array


def costs(document: Mapping[str, Any]) -> Costs:
    """The curve of an answered budget or lifecycle, cut where it costs many times the least.

    Raises InputError for a plan whose size or tokens were given: there is no curve.
    """
    if document["problem"] == "lifecycle":
        rows = document["curve"]
        keys = ("n_active", "pretrain", "training_usd", "serving_usd")
        found = Costs(*(np.array([row[key] for row in rows]) for key in keys))
    else:
        found = _of_budget(document)
    if found.sizes.size < 2:
        raise InputError("nothing is left to choose, so there is no curve to draw")
    kept = found.total <= TALLEST * found.total.min()
    return Costs(*(each[kept] for each in
                   (found.sizes, found.tokens, found.training, found.serving)))  # fmt: skip


def plane(document: Mapping[str, Any], along: Costs) -> Plane:
    """Loss and cost around the plan, what is served and reinforced as in the plan."""
    plan, law = document["plan"], _law(document)
    size, trained = plan["n_active"], plan["tokens"]["pretrain"]
    sizes = np.geomspace(size / SIDE[0], size * SIDE[0], MESH)
    tokens = np.geomspace(trained / SIDE[1], trained * SIDE[1], MESH)
    n, d = np.meshgrid(sizes, tokens)
    asked = document["scenario"]
    unique = asked["data"]["unique"] if "repetition" not in law.lacks else None
    routed = plan["sparsity"] if "sparsity" not in law.lacks else 1.0
    loss = law.loss(n, d, sparsity=routed, unique=unique)
    key = "usd" if plan["objective"] == "usd" else "flop_paid"
    each = plan["cost"]["pretrain"][key] / (size * trained)
    rl = plan["cost"]["rl"][key] * (1.0 if asked["rl"]["reward"] else n / size)
    # Beyond the sizes that are known serving is taken to cost in proportion to the size.
    known = np.clip(sizes, along.sizes[0], along.sizes[-1])
    serving = np.interp(np.log(known), np.log(along.sizes), along.serving) * sizes / known
    return Plane(sizes, tokens, np.asarray(loss), each * n * d + rl + serving[None, :])


def _of_budget(document: Mapping[str, Any]) -> Costs:
    """Each phase of a budget at sizes around the plan's, at the plan's loss."""
    question, plan = _question(document), document["plan"]
    asked = replace(question, required=Required(loss=plan["loss"]), limit=None, fixed_choices={})
    size, serving = plan["n_active"], question.weights().get("inference", 0.0) * question.served
    found = training_curve(asked, np.geomspace(size / WIDEST, size * WIDEST, POINTS))
    shown = found.sizes[found.training <= TALLEST * np.min(found.training)]
    if shown.size:  # once more, as finely over what is shown
        found = training_curve(asked, np.geomspace(shown[0], shown[-1], POINTS))
    known = np.isfinite(found.training)
    return Costs(
        found.sizes[known],
        found.tokens[known],
        (found.training - serving * found.sizes)[known],
        serving * found.sizes[known],
    )


def _question(document: Mapping[str, Any]) -> BudgetTask:
    """The question that the plan answers, asked once more."""
    read = load(document["scenario"])
    if not isinstance(read, BudgetScenario):
        raise InputError("a curve of cost by size is of a budget")
    sparsity = document["plan"]["sparsity"]
    questions = [each for each in resolve_budget(read).questions if each.sparsity == sparsity]
    return min(questions, key=_score)


def _score(question: BudgetTask) -> float:
    found = solve_one(question)
    return getattr(found, "score", np.inf)


def _law(document: Mapping[str, Any]) -> ScalingLaw:
    read = load(document["scenario"])
    if isinstance(read, LifecycleScenario):
        from planner.problems.lifecycle.resolve import resolve_life

        return resolve_life(read).law
    return _question(document).law


INCHES = (10.5, 8.2)
# Safe for readers who see red and green alike (Okabe and Ito, 2008).
COLOURS = {"training": "#0072B2", "rl": "#009E73", "serving": "#D55E00", "both": "black"}
NAMES = {"pretrain": "pre-training", "rl": "RL", "inference": "serving"}
BARS = {"pretrain": COLOURS["training"], "rl": COLOURS["rl"], "inference": COLOURS["serving"]}
DEEPEST = 30.0  # factor below the least cost that is drawn
MARGIN = 0.06  # share of the axes beside their frame where a value would be cut
ROOM = 3.0  # factor above the largest, for the legend
LOSSES = (0.4, 0.7, 1.0, 1.4, 2.0)  # losses over the least of the plane, over that of the plan
COSTS = (0.25, 0.5, 1.0, 2.0, 4.0)  # costs drawn, over the plan's


def drawn(plan: Plan, form: str) -> bytes:
    """The picture of an answered budget or lifecycle, as `svg`, `png` or `pdf`.

    Raises
    ------
    MissingExtra
        If Matplotlib is not installed.
    """
    return pictured(INCHES, lambda canvas: _filled(canvas, plan.document), form)


def _filled(canvas: Figure, document: Mapping[str, Any]) -> None:
    along = costs(document)
    grid = canvas.add_gridspec(2, 2, height_ratios=[1.25, 1.0], width_ratios=[1.0, 1.35])
    _curve(canvas.add_subplot(grid[0, :]), document, along)
    _pools(canvas.add_subplot(grid[1, 0]), document)
    _map(canvas.add_subplot(grid[1, 1]), document, plane(document, along))


def _curve(axes: Axes, document: Mapping[str, Any], along: Costs) -> None:
    """Training, serving and both against the size, at the quality asked for."""
    plan = document["plan"]
    best, unit, sizes = _total(plan), plan["objective"], along.sizes
    for name, heights in (("training", along.training), ("serving", along.serving),
                          ("both", along.total)):  # fmt: skip
        if heights.max() > 0:
            whole = name == "both"
            axes.plot(sizes, heights, color=COLOURS[name], lw=2.0 if whole else 1.2, label=name,
                      zorder=3 if whole else 2)  # fmt: skip
    band = document["band"]
    if band and band["n_active"]:
        axes.axvspan(*band["n_active"], color="0.5", alpha=0.12, lw=0,
                     label=f"{band['coverage']:.0%} of laws drawn from their errors")  # fmt: skip
    _asked(axes, document)
    told = f"{count(plan['n_active'])} on {count(plan['tokens']['pretrain'])} tokens"
    axes.plot(plan["n_active"], best, ls="", marker="o", ms=11, mfc="none", mec="black", mew=1.5,
              zorder=5, label=f"the plan: {told}, {_cost(best, unit)}")  # fmt: skip
    _beside(axes, document, sizes.tolist())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(along.total.min() / DEEPEST, along.total.max() * ROOM)
    _ticks(axes.xaxis, count)
    _ticks(axes.yaxis, _figures(unit))
    axes.grid(True, which="major", color="0.93", lw=0.6, zorder=0)
    axes.set_xlabel("active parameters")
    axes.set_ylabel(f"cost of the whole life [{unit.upper()}]")
    axes.set_title(_title(document), loc="left", fontsize=10.5, fontweight="bold")
    axes.legend(loc="best", frameon=False, fontsize=8.5)


def _asked(axes: Axes, document: Mapping[str, Any]) -> None:
    """Sizes at which the serving planner was asked."""
    asked = [each for each in document.get("asked") or () if each["serving_usd"]]
    if asked:
        axes.plot([each["n_active"] for each in asked], [each["serving_usd"] for each in asked],
                  ls="", marker=".", ms=6, color=COLOURS["serving"], zorder=4,
                  label="plans of the serving planner")  # fmt: skip


def _beside(axes: Axes, document: Mapping[str, Any], sizes: Sequence[float]) -> None:
    """The lecture's equal pools."""
    each = document["heuristic"]
    if not each or not each["n_active"] or not sizes[0] <= each["n_active"] <= sizes[-1]:
        return
    told = f"equal pools: {count(each['n_active'])}, {100 * each['worse_by']:+.0f} %"
    axes.plot(each["n_active"], each["cost"], ls="", marker="D", ms=6, color="0.35", zorder=5,
              label=told)  # fmt: skip


def _pools(axes: Axes, document: Mapping[str, Any]) -> None:
    """What each phase costs: the plan, and beside it equal pools."""
    plan, unit = document["plan"], document["plan"]["objective"]
    bottom = 0.0
    for name, label in NAMES.items():
        height = plan["share"][name] * _total(plan)
        if not height:
            continue
        axes.bar(0, height, 0.6, bottom=bottom, color=BARS[name], alpha=0.85, lw=0)
        told = f"{label} {_cost(height, unit)} ({plan['share'][name]:.0%})"
        axes.annotate(told, (0.36, bottom + height / 2), fontsize=8.5, va="center")
        bottom += height
    axes.set_xlim(-0.5, 2.2)
    axes.set_xticks([])
    _ticks(axes.yaxis, _figures(unit), log=False)
    axes.set_title("pools", loc="left", fontsize=9.5, fontweight="bold")
    axes.spines["bottom"].set_visible(False)


def _map(axes: Axes, document: Mapping[str, Any], around: Plane) -> None:
    """Size against tokens: curves of equal loss and of equal cost that touch at the plan."""
    plan = document["plan"]
    unit, middle = plan["objective"], (plan["n_active"], plan["tokens"]["pretrain"])
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Where values stand is decided as they are drawn, so the axes must be what they will be.
    axes.set_xlim(around.sizes[0], around.sizes[-1])
    axes.set_ylim(around.tokens[0], around.tokens[-1])
    least = float(around.loss.min())
    span = plan["loss"] - least
    levels = [least + span * share for share in LOSSES]
    lines = axes.contour(around.sizes, around.tokens, around.loss, levels=levels,
                         colors=COLOURS["training"], linewidths=0.9)  # fmt: skip
    _labelled(axes, lines, {level: f"{level:.3f}" for level in levels})
    whole = [_total(plan) * share for share in COSTS]
    lines = axes.contour(around.sizes, around.tokens, around.cost, levels=whole,
                         colors=COLOURS["serving"], linewidths=0.9,
                         linestyles="dashed")  # fmt: skip
    form = _figures(unit)
    _labelled(axes, lines, {level: form(level) for level in whole})
    axes.plot(*middle, ls="", marker="o", ms=8, mfc="none", mec="black", mew=1.3, zorder=5)
    _ticks(axes.xaxis, count)
    _ticks(axes.yaxis, count)
    axes.set_xlabel("active parameters")
    axes.set_ylabel("tokens of pre-training")
    axes.set_title("equal loss (full) and equal cost (dashed)", loc="left", fontsize=9.5,
                   fontweight="bold")  # fmt: skip


def _labelled(axes: Axes, lines: Any, told: Mapping[float, str]) -> None:
    """Values on paper over their lines, which stay whole whatever the layout becomes."""
    for text in axes.clabel(lines, fmt=dict(told), fontsize=7, inline=False):
        x, y = axes.transAxes.inverted().transform(axes.transData.transform(text.get_position()))
        inside = MARGIN < x < 1 - MARGIN and MARGIN < y < 1 - MARGIN
        text.set(visible=inside, bbox=PAPER)


def _title(document: Mapping[str, Any]) -> str:
    plan = document["plan"]
    served = count(plan["tokens"]["inference"])
    return f"cost at a loss of {plan['loss']:.4f} by {plan['law']}, {served} tokens served"


def _total(plan: Mapping[str, Any]) -> float:
    total = plan["cost"]["total"]
    return float(total["usd"] if plan["objective"] == "usd" else total["flop_paid"])


def _ticks(axis: Any, form: Any, *, log: bool = True) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if log:
        low, high = axis.get_view_interval()
        few = math.log10(high / low) > 1.5
        axis.set_major_locator(LogLocator(10, subs=(1.0, 3.0) if few else (1.0, 1.5, 2, 3, 5, 7)))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def _figures(unit: str) -> Callable[[float], str]:
    """Costs as short as they can be told, where the unit stands beside."""
    return money if unit == "usd" else "{:.3g}".format


def _cost(value: float, unit: str) -> str:
    return money(value) if unit == "usd" else f"{value:.3g} FLOP"
