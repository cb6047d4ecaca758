"""Pictures of a budget or of a whole life: cost against size, pools, equal loss and equal cost.

The same answer draws the same bytes, in the style of the frontier's picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.laws.scaling_law import ScalingLaw
from planner.report.pictures import style
from planner.report.pictures.style import PAPER, render_figure
from planner.text.errors import InputError
from planner.text.wording import count, usd_text
from planner.token_costs.budget_task import BudgetTask, LossTarget
from planner.token_costs.posynomial_form import Array
from planner.token_costs.presentation import PHASE_LABELS
from planner.token_costs.spending import EqualPools, LawInterval, LifeAnswer, LifePoint
from planner.token_costs.stationary_points import training_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.contour import ContourSet
    from matplotlib.figure import Figure


MAX_COST_RATIO = 8.0  # multiple of the minimum cost; sizes of higher cost are left out
MAX_SIZE_RATIO = 60.0  # factor below and above the plan's size, range of the cost curve
CURVE_POINTS = 193  # sizes of the curve
MESH = 141
NO_CURVE = "nothing is left to choose, so there is no curve to draw"
SIDE_FACTORS = (4.0, 12.0)  # factors below and above the plan's size and tokens, range of the plane


@dataclass(frozen=True)
class CostCurve:
    """Cost by size at the quality of the plan, all (P,), in the unit of the plan's objective."""

    sizes: Array
    tokens: Array
    training: Array
    serving: Array

    @property
    def total(self) -> Array:
        """Cost of the whole life (P,)."""
        return self.training + self.serving

    def where(self, mask: Array) -> CostCurve:
        """The sizes where a mask (P,) is true."""
        columns = (self.sizes, self.tokens, self.training, self.serving)
        return CostCurve(*(column[mask] for column in columns))


@dataclass(frozen=True)
class LossPlane:
    """Loss [nat] and cost at every size (P,) and number of tokens (Q,): shape (Q, P)."""

    sizes: Array
    tokens: Array
    loss: Array
    cost: Array


@dataclass(frozen=True)
class LifePicture:
    """The picture of a budget or a lifecycle.

    Attributes:
        curve: Cost by size; sizes that cost many times the least are not shown.
        rule: Equal pools.
        unique: Distinct tokens, None where all are fresh.
        rewarded: Whether reinforcement learning costs the same whatever the size.
        evaluated: (size, cost of serving) where the serving planner was asked.
    """

    plan: LifePoint
    law: ScalingLaw
    curve: CostCurve
    band: LawInterval | None
    rule: EqualPools | None
    unique: float | None = None
    rewarded: bool = False
    evaluated: tuple[tuple[float, float], ...] = ()

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises MissingExtra without Matplotlib."""
        return render_figure(INCHES, lambda canvas: _filled(canvas, self), form)

    def plane(self) -> LossPlane:
        """Loss and cost around the plan, at the plan's served tokens and reinforcement learning."""
        plan, law, along = self.plan, self.law, self.curve
        size, trained = plan.n_active, plan.tokens.pretrain
        sizes = np.geomspace(size / SIDE_FACTORS[0], size * SIDE_FACTORS[0], MESH)
        tokens = np.geomspace(trained / SIDE_FACTORS[1], trained * SIDE_FACTORS[1], MESH)
        n, d = np.meshgrid(sizes, tokens)
        routed = plan.sparsity if "sparsity" not in law.lacks else 1.0
        unique = self.unique if "repetition" not in law.lacks else None
        loss = law.loss(n, d, sparsity=routed, unique=unique)
        key = "usd" if plan.objective == "usd" else "flop_paid"
        pretrain, rl = (getattr(phase, key) for phase in (plan.cost.pretrain, plan.cost.rl))
        training = pretrain / (size * trained) * n * d + rl * (1.0 if self.rewarded else n / size)
        # Beyond the sizes that are known serving is taken to cost in proportion to the size.
        inside = np.clip(sizes, along.sizes[0], along.sizes[-1])
        serving = np.interp(np.log(inside), np.log(along.sizes), along.serving) * sizes / inside
        return LossPlane(sizes, tokens, np.asarray(loss), training + serving[None, :])


def plotted_point(answer: LifeAnswer) -> LifePoint:
    """Return the plan to be drawn; raises InputError if the answer has no plan."""
    if answer.plan is None:
        raise InputError("there is no plan to draw")
    return answer.plan


def cut_curve(curve: CostCurve) -> CostCurve:
    """A curve, cut where it costs many times the least.

    Raises InputError for one of less than two sizes: they were given.
    """
    if curve.sizes.size < 2:
        raise InputError(NO_CURVE)
    return curve.where(curve.total <= MAX_COST_RATIO * curve.total.min())


INCHES = (10.5, 8.2)
COLOURS = {"training": style.BLUE, "rl": style.GREEN, "serving": style.ORANGE, "both": "black"}
BARS = {"pretrain": COLOURS["training"], "rl": COLOURS["rl"], "inference": COLOURS["serving"]}
MAX_COST_REDUCTION = 30.0  # factor below the least cost that is drawn
MARGIN = 0.06  # share of the axes along their frame; contour labels there would be cut
AXIS_MARGIN = 1.3  # factor above the largest
LOSSES = (0.4, 0.7, 1.0, 1.4, 2.0)  # losses over the least of the plane, over that of the plan
COSTS = (0.25, 0.5, 1.0, 2.0, 4.0)  # costs drawn, over the plan's


def _filled(canvas: Figure, picture: LifePicture) -> None:
    grid = canvas.add_gridspec(2, 2, height_ratios=[1.25, 1.0], width_ratios=[1.0, 1.35])
    _curve(canvas.add_subplot(grid[0, :]), picture)
    _pools(canvas.add_subplot(grid[1, 0]), picture.plan)
    _map(canvas.add_subplot(grid[1, 1]), picture.plan, picture.plane())


def _curve(axes: Axes, picture: LifePicture) -> None:
    """Training, serving and both against the size, at the quality asked for."""
    point, along = picture.plan, picture.curve
    best, unit, sizes = point.total, point.objective, along.sizes
    for name, heights in (("training", along.training), ("serving", along.serving),
                          ("both", along.total)):  # fmt: skip
        if heights.max() > 0:
            whole = name == "both"
            axes.plot(sizes, heights, color=COLOURS[name], lw=2.0 if whole else 1.2, label=name,
                      zorder=3 if whole else 2)  # fmt: skip
    band, rule = picture.band, picture.rule
    if band and band.n_active:
        axes.axvspan(*band.n_active, color="0.5", alpha=0.12, lw=0,
                     label=f"{band.coverage:.0%} of laws drawn from their errors")  # fmt: skip
    if picture.evaluated:
        axes.plot(*zip(*picture.evaluated, strict=True), ls="", marker=".", ms=6,
                  color=COLOURS["serving"], zorder=4,
                  label="plans of the serving planner")  # fmt: skip
    text = f"{count(point.n_active)} on {count(point.tokens.pretrain)} tokens"
    axes.plot(point.n_active, best, ls="", marker="o", ms=11, mfc="none", mec="black", mew=1.5,
              zorder=5, label=f"the plan: {text}, {_cost(best, unit)}")  # fmt: skip
    size, cost = (rule.n_active or 0.0, rule.cost or 0.0) if rule else (0.0, 0.0)
    if rule is not None and sizes[0] <= size <= sizes[-1]:
        label = f"equal pools: {count(size)}, {100 * (rule.worse_by or 0.0):+.0f}%"
        axes.plot(size, cost, ls="", marker="D", ms=6, color="0.35", zorder=5,
                  label=label)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="active parameters",
             ylabel=f"cost of the whole life [{unit.upper()}]")  # fmt: skip
    axes.set_ylim(along.total.min() / MAX_COST_REDUCTION, along.total.max() * AXIS_MARGIN)
    _ticks(axes.xaxis, count)
    _ticks(axes.yaxis, _figures(unit))
    style.grid_lines(axes)
    served = count(point.tokens.inference)
    title = f"cost at a loss of {point.loss:.4f} by {point.law}, {served} tokens served"
    style.axes_title(axes, title)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.01, -0.12), ncols=3, frameon=False,
                fontsize=8.5)  # fmt: skip


def _pools(axes: Axes, point: LifePoint) -> None:
    """Draw the cost of each phase of the plan as a stacked bar."""
    unit, bottom = point.objective, 0.0
    for name, label in PHASE_LABELS.items():
        share = getattr(point.share, name)
        height = share * point.total
        if not height:
            continue
        axes.bar(0, height, 0.6, bottom=bottom, color=BARS[name], alpha=0.85, lw=0)
        text = f"{label} {_cost(height, unit)} ({share:.0%})"
        axes.annotate(text, (0.36, bottom + height / 2), fontsize=8.5, va="center")
        bottom += height
    axes.set_xlim(-0.5, 2.2)
    axes.set_xticks([])
    _ticks(axes.yaxis, _figures(unit), log=False)
    style.axes_title(axes, "pools", 9.5)
    axes.spines["bottom"].set_visible(False)


def _map(axes: Axes, point: LifePoint, around: LossPlane) -> None:
    """Size against tokens: curves of equal loss and of equal cost that touch at the plan."""
    unit, middle = point.objective, (point.n_active, point.tokens.pretrain)
    # Contour labels are placed as they are drawn, so the axis limits must be final before.
    axes.set(xscale="log", yscale="log", xlabel="active parameters",
             ylabel="tokens of pre-training", xlim=around.sizes[[0, -1]],
             ylim=around.tokens[[0, -1]])  # fmt: skip
    least = float(around.loss.min())
    span = (point.loss or least) - least
    levels = [least + span * share for share in LOSSES]
    lines = axes.contour(around.sizes, around.tokens, around.loss, levels=levels,
                         colors=COLOURS["training"], linewidths=0.9)  # fmt: skip
    _labelled(axes, lines, {level: f"{level:.3f}" for level in levels})
    whole = [point.total * share for share in COSTS]
    lines = axes.contour(around.sizes, around.tokens, around.cost, levels=whole,
                         colors=COLOURS["serving"], linewidths=0.9,
                         linestyles="dashed")  # fmt: skip
    form = _figures(unit)
    _labelled(axes, lines, {level: form(level) for level in whole})
    axes.plot(*middle, ls="", marker="o", ms=8, mfc="none", mec="black", mew=1.3, zorder=5)
    _ticks(axes.xaxis, count)
    _ticks(axes.yaxis, count)
    style.axes_title(axes, "equal loss (full) and equal cost (dashed)", 9.5)


def _labelled(axes: Axes, lines: ContourSet, labels: Mapping[float, str]) -> None:
    for text in axes.clabel(lines, fmt=dict(labels), fontsize=7, inline=False):
        x, y = axes.transAxes.inverted().transform(axes.transData.transform(text.get_position()))
        text.set(visible=all(MARGIN < each < 1 - MARGIN for each in (x, y)), bbox=PAPER)


def _ticks(axis: Axis, form: Callable[[float], str], *, log: bool = True) -> None:
    if log:
        low, high = axis.get_view_interval()
        wide = math.log10(high / low) > 1.5
        style.set_ticks(axis, form, (1.0, 3.0) if wide else (1.0, 1.5, 2, 3, 5, 7))
        return
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(5))
    style.set_ticks(axis, form)


def _figures(unit: str) -> Callable[[float], str]:
    return usd_text if unit == "usd" else "{:.3g}".format


def _cost(value: float, unit: str) -> str:
    return usd_text(value) if unit == "usd" else f"{value:.3g} FLOP"


def cost_curve(task: BudgetTask, point: LifePoint) -> CostCurve:
    """Each phase of a budget at sizes around the plan's, at the plan's loss."""
    wanted = replace(task, required=LossTarget(loss=point.loss), limit=None, fixed_choices={})
    size, serving = point.n_active, task.weights().get("inference", 0.0) * task.served
    curve = training_curve(
        wanted, np.geomspace(size / MAX_SIZE_RATIO, size * MAX_SIZE_RATIO, CURVE_POINTS)
    )
    cheap = curve.sizes[curve.training <= MAX_COST_RATIO * np.min(curve.training)]
    if cheap.size:  # resample the shown range at full resolution
        curve = training_curve(wanted, np.geomspace(cheap[0], cheap[-1], CURVE_POINTS))
    served = serving * curve.sizes
    costs = CostCurve(curve.sizes, curve.tokens, curve.training - served, served)
    return costs.where(np.isfinite(curve.training))
