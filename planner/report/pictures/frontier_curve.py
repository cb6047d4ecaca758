"""The picture of a frontier: price against speed on logarithmic axes, layouts in a strip below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

from planner.report.pictures import style
from planner.text.tolerances import AGREE
from planner.text.wording import chip_numbers, length, pools_text, reference_text, three_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.protocol.trade_off import ParetoFrontier

INCHES = (9.5, 5.0)  # of the curve; the strip comes below
ROW_HEIGHT = 0.19  # inches of a row in the strip
MAX_ROWS = 12
MARGIN = 1.06  # factor on speed: margin outside the first and last point
LABEL_MARGIN_RATIO = 1.8  # room under the cheapest point for its label, as a factor
SINGLE_POINT_MARGIN_RATIO = 3.0  # room around a single point, as a factor
MAX_RIGHT_SHARE = 0.7  # share of the log speed range; further right, labels go left of the point
MAX_LABELLED_BATCHES = 9  # batches written along the curve
COLOURS = {"aggregated": style.BLUE, "disaggregated": style.ORANGE, "decode": style.GREEN}
MARKERS = {"tp": "o", "tp and dp attention": "D", "dp attention": "s", "pp": "^", "one chip": "v"}
MINOR_TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
DECADE = 12.0  # a range of speeds with room for fine ticks

ChartPoint = tuple[float, float]  # speed [token/s per user], price [USD per million tokens]


@dataclass(frozen=True)
class FrontierMark:
    """A plan of the frontier: chart point, lower bound, error band, batch, decode layout."""

    place: ChartPoint
    floor: float
    band: tuple[ChartPoint, ChartPoint] | None  # the slow and dear end, the fast and cheap one
    batch: int
    mode: str
    family: str
    layout: str

    @property
    def speed(self) -> float:
        """Output tokens per second and user [token/s]."""
        return self.place[0]


def draw_frontier(document: Mapping[str, Any], form: str) -> bytes:
    """The picture of a frontier with at least one point as `svg`, `png` or `pdf`.

    Raises MissingExtra if Matplotlib is not installed.
    """
    points = tuple(map(_point, document["points"]))
    # Neighbours that decode on one layout: (its name, first place, last place).
    names = [point.layout for point in points]
    turns = [0, *(i for i, (a, b) in enumerate(pairwise(names), 1) if a != b), len(points)]
    stretches = [(names[a], a, b - 1) for a, b in pairwise(turns)]
    rows = len({name for name, *_ in stretches})
    strip = ROW_HEIGHT * min(rows, MAX_ROWS + 1) + 0.1

    def filled(canvas: Figure) -> None:
        above, below = canvas.subplots(2, 1, sharex=True, height_ratios=[INCHES[1] - 0.8, strip])
        _curve(above, points, document)
        tiers = {
            x["name"]: x["place"] for x in document.get("tiers") or () if x["place"] is not None
        }
        _marks(above, points, tiers | document["marks"])
        above.set_xscale("log")
        above.set_yscale("log")
        if len(points) == 1:
            speed, price = points[0].place
            above.set_xlim(speed / SINGLE_POINT_MARGIN_RATIO, speed * SINGLE_POINT_MARGIN_RATIO)
            above.set_ylim(price / SINGLE_POINT_MARGIN_RATIO, price * SINGLE_POINT_MARGIN_RATIO)
        else:
            low, high = above.get_ylim()
            above.set_ylim(
                min(low, min(point.place[1] for point in points) / LABEL_MARGIN_RATIO), high
            )
        fine = points[0].speed < DECADE * points[-1].speed
        style.set_ticks(above.xaxis, decade=MINOR_TICKS if fine else style.STEPS)
        style.set_ticks(above.yaxis, "${:,g}".format, style.STEPS)
        style.grid_lines(above)
        above.set_ylabel("price [USD per million tokens]")
        scenario, ground = document["scenario"], document["provenance"]
        model, system = (reference_text(scenario[key], key) for key in ("model", "system"))
        sizes = (length(scenario["workload"][f"{way}_tokens"]) for way in ("input", "output"))
        title = f"{model} on {chip_numbers(scenario['chips'])} of {system}: "
        style.axes_title(above, title + "{} tokens in, {} out".format(*sizes), pad=18)
        subtitle = (
            "each point is the cheapest plan that is as fast; assumptions "
            f"{ground['assumptions']}, estimate {ground['estimate']}"
        )
        above.text(0, 1.015, subtitle, fontsize=8, color="0.35", transform=above.transAxes)
        _strip(below, points, stretches)
        for _, first, _ in stretches[1:]:
            above.axvline(points[first].speed, color="0.85", lw=0.6, zorder=0)
            below.axvline(points[first].speed, color="0.85", lw=0.6, zorder=0)
        # The curve rises, so this corner is free.
        above.legend(loc="upper left", frameon=False, fontsize=7.5, borderaxespad=0.2)

    return style.render_figure((INCHES[0], INCHES[1] + strip), filled, form)


def draw_pareto(curve: ParetoFrontier, form: str) -> bytes:
    """The picture of a frontier of any kind with at least one row: objective against limit.

    Raises MissingExtra if Matplotlib is not installed.
    """

    def filled(canvas: Figure) -> None:
        axes = canvas.subplots()
        x, y = ([row[over.name] for row in curve.rows] for over in (curve.limited, curve.objective))
        axes.plot(x, y, "o-", color=style.BLUE, ms=4, lw=1.2)
        axes.set_yscale("log")
        style.set_ticks(axes.yaxis, decade=style.STEPS if max(y) < DECADE * min(y) else (1.0,))
        style.large_numbers(axes.yaxis, y[len(y) // 2])
        style.large_numbers(axes.xaxis, x[len(x) // 2])
        style.grid_lines(axes)
        axes.set_xlabel(f"{curve.limited.name} [{curve.limited.unit}]")
        axes.set_ylabel(f"{curve.objective.name} [{curve.objective.unit}]")
        style.axes_title(axes, curve.title)

    return style.render_figure(INCHES, filled, form)


def _point(point: Mapping[str, Any]) -> FrontierMark:
    plan, band = point["plan"], point["band"]
    pool = plan if plan["layout"] is not None else plan["decode"]
    layout, ends = pool["layout"], None
    if layout["pp"] > 1:
        family = "pp"
    elif layout["dp_attention"] > 1:
        family = "tp and dp attention" if layout["tp"] > 1 else "dp attention"
    else:
        family = "tp" if layout["tp"] > 1 else "one chip"
    if band:
        (fast, slow), (cheap, dear) = band["tpot"], band["usd_per_mtok"]
        ends = (1 / slow, dear), (1 / fast, cheap)
    return FrontierMark(
        (float(plan["tokens_per_s_per_user"]), plan["usd_per_mtok"]),
        point["bound"]["usd_per_mtok"],
        ends,
        plan["batch"],
        plan["mode"],
        family,
        f"{'decode ' if plan['layout'] is None else ''}{pools_text(pool)}",
    )


def _curve(axes: Axes, points: Sequence[FrontierMark], document: Mapping[str, Any]) -> None:
    """The band, the frontier, its points by mode and layout, its bound, batches along it."""
    band, mine = document["points"][0]["band"], document["current"]
    bands = [point.band for point in points if point.band]
    if band:
        outline = [*(slow for slow, _ in bands), *reversed([fast for _, fast in bands])]
        inside = not any(point["outside"] for point in document["points"])
        share = f"{band['coverage']:.0%} of measured runs" if inside else "band, partly beyond them"
        axes.fill(*zip(*outline, strict=True), color="0.5", alpha=0.13, lw=0,
                  label=f"{share} (profile {band['from']})")  # fmt: skip
    speed, price = zip(*(point.place for point in points), strict=True)
    axes.plot(speed, price, color="0.35", lw=1.1, zorder=2)
    if any(point.floor < point.place[1] * (1 - AGREE) for point in points):
        axes.plot(speed, [point.floor for point in points], color="0.45", lw=1, ls=(0, (4, 2)),
                  label="no implementation of the same plan is cheaper")  # fmt: skip
    for mode, family in dict.fromkeys((point.mode, point.family) for point in points):
        members = [point.place for point in points if (point.mode, point.family) == (mode, family)]
        axes.plot(*zip(*members, strict=True), ls="", marker=MARKERS[family], ms=5,
                  color=COLOURS[mode], zorder=3, label=f"{mode}, {family}")  # fmt: skip
    for point in points[:: max(1, -(-len(points) // MAX_LABELLED_BATCHES))]:
        axes.annotate(f"{point.batch:,}", point.place, xytext=(-6, 4), textcoords="offset points",
                      ha="right", fontsize=7, color="0.35")  # fmt: skip
    if mine and mine["tpot"]:
        label = f"yours: {pools_text(mine)}, batch {mine['batch']}"
        axes.plot(1 / mine["tpot"], mine["usd_per_mtok"], ls="", marker="X", ms=8, color="black",
                  label=label)  # fmt: skip


def _marks(axes: Axes, points: Sequence[FrontierMark], marks: Mapping[str, int]) -> None:
    """Fast, normal and slow, and listed tiers, with speed and price."""
    places: dict[int, list[str]] = {}
    for name, place in marks.items():
        places.setdefault(place, []).append(name)
    left, end = (log(points[place].speed) for place in (-1, 0))
    end += left == end
    for place, names in places.items():
        at = points[place].place
        axes.plot(*at, ls="", marker="o", ms=12, mfc="none", mec="black", mew=1.1, zorder=4)
        label = f"{', '.join(names)}: {three_figures(at[0])} tokens/s, ${at[1]:.3g}"
        right = (log(at[0]) - left) / (end - left) > MAX_RIGHT_SHARE
        down = 14 if right else -6 if "normal" in names or "fast" in names else -20
        axes.annotate(label, at, xytext=(-10 if right else 10, down), textcoords="offset points",
                      ha="right" if right else "left", va="bottom" if right else "top",
                      fontsize=8.5, fontweight="bold", zorder=5, bbox=style.PAPER)  # fmt: skip


def _strip(
    axes: Axes, points: Sequence[FrontierMark], stretches: Sequence[tuple[str, int, int]]
) -> None:
    """Draw a bar per speed range with the same cheapest layout, labelled with the decode pool."""
    names = list(dict.fromkeys(name for name, *_ in stretches))
    shown = names[:MAX_ROWS]
    for name, first, last in stretches:
        row = names.index(name) if name in shown else MAX_ROWS
        slowest = points[last].speed
        left = points[last + 1].speed if last + 1 < len(points) else slowest / MARGIN
        axes.barh(row, points[first].speed - left, left=left, height=0.62,
                  color=COLOURS[points[first].mode], alpha=0.75, lw=0)  # fmt: skip
    rest = len(names) - len(shown)
    labels = [*shown, *([f"{rest} more"] if rest else [])]
    axes.set_yticks(range(len(labels)), labels, fontsize=7.5)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("speed [output tokens/s per user]     "
                    "numbers along the curve: sequences in flight")  # fmt: skip
