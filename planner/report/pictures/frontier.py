"""The picture of a frontier: price against speed on logarithmic axes, layouts in a strip below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

from planner.report.pictures.canvas import PAPER, pictured
from planner.text.wording import figure, laid_out, length, named, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (9.5, 5.0)  # of the curve; the strip comes below
ROW = 0.19  # inches of a row in the strip
MOST_ROWS = 12
MARGIN = 1.06  # room beside the first and last point, as a factor of speed
BELOW = 1.8  # room under the cheapest point for its label, as a factor
ALONE = 3.0  # room around a single point, as a factor
SAME = 1e-6  # a bound this close is the price itself: the load, or the question, fixes it
RIGHTMOST = 0.7  # share of the speeds from which on there is no room beside a point
LABELLED = 9  # batches written along the curve
# Safe for readers who see red and green alike (Okabe and Ito, 2008).
COLOURS = {"aggregated": "#0072B2", "disaggregated": "#D55E00", "decode": "#009E73"}
MARKERS = {"tp": "o", "tp and dp attention": "D", "dp attention": "s", "pp": "^", "one chip": "v"}
COARSE, FINE = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
DECADE = 12.0  # a range of speeds with room for fine ticks


def drawn(document: Mapping[str, Any], form: str) -> bytes:
    """The frontier of a document with at least one point, as `svg`, `png` or `pdf`.

    Raises
    ------
    MissingExtra
        If Matplotlib is not installed.
    """
    return pictured(INCHES, lambda canvas: _filled(canvas, document), form)


def _filled(canvas: Figure, document: Mapping[str, Any]) -> None:
    plans = [point["plan"] for point in document["points"]]
    stretches = _stretches(plans)
    rows = len({name for name, *_ in stretches})
    strip = ROW * min(rows, MOST_ROWS + 1) + 0.1
    canvas.set_size_inches(INCHES[0], INCHES[1] + strip)
    above, below = canvas.subplots(2, 1, sharex=True, height_ratios=[INCHES[1] - 0.8, strip])
    _curve(above, document, plans)
    _marks(above, document, plans)
    _axes(above, document, plans)
    _strip(below, plans, stretches)
    for _, first, _, _ in stretches[1:]:
        above.axvline(_speed(plans[first]), color="0.85", lw=0.6, zorder=0)
        below.axvline(_speed(plans[first]), color="0.85", lw=0.6, zorder=0)
    # The curve rises, so this corner is free.
    above.legend(loc="upper left", frameon=False, fontsize=7.5, borderaxespad=0.2)


def _curve(axes: Axes, document: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> None:
    """The band, the frontier, its points by mode and layout, its bound, batches along it."""
    points = document["points"]
    speed, price = [_speed(plan) for plan in plans], [plan["usd_per_mtok"] for plan in plans]
    band = points[0]["band"]
    if band:
        spans = [(point["band"]["tpot"], point["band"]["usd_per_mtok"]) for point in points]
        slow = [(1 / tpot[1], usd[1]) for tpot, usd in spans]
        fast = [(1 / tpot[0], usd[0]) for tpot, usd in spans]
        outline = [*slow, *reversed(fast)]
        label = f"{band['coverage']:.0%} of measured runs (profile {band['from']})"
        axes.fill(*zip(*outline, strict=True), color="0.5", alpha=0.13, lw=0, label=label)
    axes.plot(speed, price, color="0.35", lw=1.1, zorder=2)
    floor = [point["bound"]["usd_per_mtok"] for point in points]
    if any(low < usd * (1 - SAME) for low, usd in zip(floor, price, strict=True)):
        axes.plot(speed, floor, color="0.45", lw=1, ls=(0, (4, 2)),
                  label="no implementation of the same plan is cheaper")  # fmt: skip
    for mode, family in dict.fromkeys((plan["mode"], _family(plan)) for plan in plans):
        members = [plan for plan in plans if (plan["mode"], _family(plan)) == (mode, family)]
        axes.plot([_speed(plan) for plan in members], [plan["usd_per_mtok"] for plan in members],
                  ls="", marker=MARKERS[family], ms=5, color=COLOURS[mode], zorder=3,
                  label=f"{mode}, {family}")  # fmt: skip
    every = max(1, -(-len(plans) // LABELLED))
    for plan in plans[::every]:
        at = (_speed(plan), plan["usd_per_mtok"])
        axes.annotate(f"{plan['batch']:,}", at, xytext=(-6, 4), textcoords="offset points",
                      ha="right", fontsize=7, color="0.35")  # fmt: skip
    mine = document["current"]
    if mine and mine["tpot"]:
        axes.plot(1 / mine["tpot"], mine["usd_per_mtok"], ls="", marker="X", ms=8, color="black",
                  label=f"yours: {laid_out(mine)}, batch {mine['batch']}")  # fmt: skip


def _marks(axes: Axes, document: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> None:
    """Fast, normal and slow, with speed and price."""
    places: dict[int, list[str]] = {}
    for name, place in document["marks"].items():
        places.setdefault(place, []).append(name)
    left, end = (log(_speed(plans[place])) for place in (-1, 0))
    end += left == end
    for place, names in places.items():
        plan = plans[place]
        at = (_speed(plan), plan["usd_per_mtok"])
        axes.plot(*at, ls="", marker="o", ms=12, mfc="none", mec="black", mew=1.1, zorder=4)
        label = f"{', '.join(names)}: {figure(at[0])} tokens/s, ${at[1]:.3g}"
        right = (log(at[0]) - left) / (end - left) > RIGHTMOST
        down = 14 if right else -6 if "normal" in names or "fast" in names else -20
        axes.annotate(label, at, xytext=(-10 if right else 10, down), textcoords="offset points",
                      ha="right" if right else "left", va="bottom" if right else "top",
                      fontsize=8.5, fontweight="bold", zorder=5, bbox=PAPER)  # fmt: skip


def _axes(axes: Axes, document: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    prices = [plan["usd_per_mtok"] for plan in plans]
    if len(plans) == 1:
        axes.set_xlim(_speed(plans[0]) / ALONE, _speed(plans[0]) * ALONE)
        axes.set_ylim(prices[0] / ALONE, prices[0] * ALONE)
    else:
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, min(prices) / BELOW), high)
    fine = _speed(plans[0]) < DECADE * _speed(plans[-1])
    for axis, form in ((axes.xaxis, "{:,g}"), (axes.yaxis, "${:,g}")):
        axis.set_major_locator(LogLocator(10, subs=FINE if fine and axis is axes.xaxis else COARSE))
        axis.set_major_formatter(FuncFormatter(lambda value, _, form=form: form.format(value)))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="0.93", lw=0.6, zorder=0)
    axes.set_ylabel("price [USD per million tokens]")
    scenario = document["scenario"]
    load = scenario["workload"]
    model, system = named(scenario["model"], "model"), named(scenario["system"], "system")
    axes.set_title(
        f"{model} on {numbers(scenario['chips'])} chips of {system}: "
        f"{length(load['input_tokens'])} tokens in, {length(load['output_tokens'])} out",
        loc="left", fontsize=10.5, fontweight="bold", pad=18,
    )  # fmt: skip
    ground = document["provenance"]
    grounds = f"assumptions {ground['assumptions']}, estimate {ground['estimate']}"
    axes.text(0, 1.015, f"each point is the cheapest plan that is as fast; {grounds}", fontsize=8,
              color="0.35", transform=axes.transAxes)  # fmt: skip


def _strip(
    axes: Axes, plans: Sequence[Mapping[str, Any]], stretches: Sequence[tuple[str, int, int, str]]
) -> None:
    """Where each layout is the cheapest: a bar for each stretch, the pool that decodes named."""
    names = list(dict.fromkeys(name for name, *_ in stretches))
    shown = names[:MOST_ROWS]
    for name, first, last, mode in stretches:
        row = names.index(name) if name in shown else MOST_ROWS
        left = _speed(plans[last + 1]) if last + 1 < len(plans) else _speed(plans[last]) / MARGIN
        axes.barh(row, _speed(plans[first]) - left, left=left, height=0.62, color=COLOURS[mode],
                  alpha=0.75, lw=0)  # fmt: skip
    rest = len(names) - len(shown)
    labels = [*shown, *([f"{rest} more"] if rest else [])]
    axes.set_yticks(range(len(labels)), labels, fontsize=7.5)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("speed [output tokens/s per user]     "
                    "numbers along the curve: sequences in flight")  # fmt: skip


def _stretches(plans: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int, str]]:
    """Neighbours that decode on one layout: (its name, first place, last place, mode)."""
    names = [_decoding(plan) for plan in plans]
    turns = [0, *(i for i, (a, b) in enumerate(pairwise(names), 1) if a != b), len(plans)]
    return [(names[a], a, b - 1, plans[a]["mode"]) for a, b in pairwise(turns)]


def _decoding(plan: Mapping[str, Any]) -> str:
    """The layout that decodes, in short words."""
    pool = plan if plan["layout"] is not None else plan["decode"]
    return f"{'decode ' if plan['layout'] is None else ''}{laid_out(pool)}"


def _family(plan: Mapping[str, Any]) -> str:
    """The kind of layout that decodes."""
    layout = plan["layout"] or plan["decode"]["layout"]
    if layout["pp"] > 1:
        return "pp"
    if layout["dp_attention"] > 1:
        return "tp and dp attention" if layout["tp"] > 1 else "dp attention"
    return "tp" if layout["tp"] > 1 else "one chip"


def _speed(plan: Mapping[str, Any]) -> float:
    return float(plan["tokens_per_s_per_user"])
