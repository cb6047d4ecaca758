"""Pictures of a sweep: lines over one axis, maps over two, with units and kinks; its table as text.

A region is where one layout is best, or one bottleneck where the layout is always the same; a line
is marked where it passes from one region to the next. The same table draws the same bytes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.protocol.output import Cell
from planner.protocol.problem import get_problem
from planner.protocol.section import BROKEN, sections_text, table
from planner.report.pictures import sweep_axes
from planner.report.pictures.style import PALETTE, axes_title, grid_lines, render_figure
from planner.report.pictures.sweep_axes import (
    Boundary,
    ScaledColumn,
    SweptTable,
    scale_column,
    unit_factor,
)
from planner.text.errors import InputError
from planner.text.wording import (
    excess,
    output_words,
    path_words,
    three_digits,
    three_figures,
    wrap_text,
)
from planner.text.wording import quantity as quantity_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.protocol.output import Output

NO_FORM = "a switch between layouts has no closed form"
PRICES = ("usd_per_mtok", "cost.total.usd", "cost.total.flop")


@dataclass(frozen=True)
class PartCrossing:
    """One part gives way to another at `at`, in the base unit of the column `along`.

    `rows` are the rows of the table before and after. `symbol` has the closed form `form` and the
    value `value` there; or `why` says why there is none.
    """

    rows: tuple[int, int]
    along: str
    at: float
    before: str
    after: str
    symbol: str | None = None
    value: float | None = None
    form: str | None = None
    why: str | None = None

    def __str__(self) -> str:
        form = f"at {self.symbol} = {self.form}" if self.form else f"no closed form ({self.why})"
        return f"{self.before} = {self.after}{' ' if self.form else ', '}{form}"


Kinks = Sequence[PartCrossing] | Sequence[Boundary]  # of lines, or of a map


def draw_sweep(table: SweptTable, form: str, of: str | None = None, crossings: Kinks = ()) -> bytes:
    """A table of one or two axes as `svg`, `png` or `pdf`.

    Raises InputError if the column is no number, or the sweep has more than two axes with several
    values; MissingExtra if Matplotlib is not installed.

    Args:
        table: with `over`, `units`, `meta`, and columns by name, as `planner.sweep` gives it.
        of: the column that is drawn; what it costs, if None.
        crossings: where lines have kinks, as `planner.sweep.boundaries` finds them.
    """
    axes = sweep_axes.varied_axes(table)
    prices = (name for name in PRICES if name in table.columns and any(table[name]))
    quantity = scale_column(table, of or next(prices, PRICES[0]))
    if not axes or len(axes) > 2:
        raise InputError(
            f"a picture has one or two axes, the sweep varies {len(axes)} "
            f"({', '.join(axes) or 'nothing'}); keep the others at one value"
        )
    fill = partial(_filled, table=table, names=axes, quantity=quantity, crossings=crossings)
    return render_figure(sweep_axes.INCHES, fill, form)


def _filled(
    canvas: Figure,
    table: SweptTable,
    names: Sequence[str],
    quantity: ScaledColumn,
    crossings: Kinks,
) -> None:
    """Lines, or a map where both axes are numbers of many values."""
    axes = canvas.subplots()
    numeric, others = sweep_axes.arrange_axes(table, names)
    if len(numeric) == 2:
        edges = [kink for kink in crossings if isinstance(kink, Boundary)]
        sweep_axes.draw_heat_map(canvas, axes, table, numeric, quantity, edges)
    elif not numeric or len(others) > 1:
        _bars(axes, table, names, quantity)
    else:
        kinks = [kink for kink in crossings if isinstance(kink, PartCrossing)]
        _lines(axes, table, numeric[0], others, quantity, kinks)
    scenario = table.meta["scenario"]
    about = scenario if isinstance(scenario, Mapping) else {}
    subject = [str(about[key]) for key in ("model", "system") if isinstance(about.get(key), str)
               and key not in table.over]  # fmt: skip
    axes_title(axes, f"{quantity.name}: {' on '.join(subject)}" if subject else quantity.name)


def _lines(
    axes: Axes, table: SweptTable, along: str, others: Sequence[str], quantity: ScaledColumn,
    crossings: Sequence[PartCrossing],
) -> None:  # fmt: skip
    """One line for each value of the other axis, kinks marked and named."""
    x = scale_column(table, along)
    kind, words = sweep_axes.regions(table, *(["bottleneck"] if crossings else []))
    apart = table[others[0]] if others else [None] * len(x.values)
    entries: list[str] = []
    count = 0
    for number, value in enumerate(dict.fromkeys(apart)):
        rows = [i for i, each in enumerate(apart) if each == value]
        rows.sort(key=x.values.__getitem__)
        colour = PALETTE[number % len(PALETTE)]
        style = "-" if number < len(PALETTE) else "--"
        label = _with_unit(table, others[0], value) if others else None
        if not others:
            _around(axes, table, rows, x, quantity)
        axes.plot([x.values[i] for i in rows], [quantity.values[i] for i in rows], style,
                  color=colour, lw=1.4, marker="." if len(rows) < 40 else "", ms=4,
                  label=label)  # fmt: skip
        for i, j in pairwise(rows):
            if words[i] != words[j] and None not in (words[i], words[j]):
                for at, word, form in switches((i, j), x, words, crossings, unit_factor(table, x)):
                    letter = sweep_axes.LETTERS[count] if count < len(sweep_axes.LETTERS) else ""
                    count += 1
                    _kink(axes, (at, interpolate_line(at, (i, j), x, quantity)), letter, colour)
                    place = f"{label}, " if label else ""
                    entries.append(f"{letter}  {place}from {three_figures(at)} {x.unit}: {word}")
                    entries += form
    sweep_axes.set_axis(axes.xaxis, x)
    sweep_axes.tick_points(axes, x)
    sweep_axes.set_axis(axes.yaxis, quantity)
    grid_lines(axes)
    if entries:
        entries += [NO_FORM] if kind == "layout" else []
        title = f"kinks, where another {kind} is {sweep_axes.SUPERLATIVE[kind]}:"
        sweep_axes.draw_legend(axes, title, entries)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, title=others[0] if others else None,
                    title_fontsize=8)  # fmt: skip


def _around(
    axes: Axes, table: SweptTable, rows: Sequence[int], x: ScaledColumn, quantity: ScaledColumn
) -> None:
    """The band and the bound of the quantity, where the table has them."""
    name, at = quantity.name, [x.values[i] for i in rows]
    factor = unit_factor(table, quantity)
    if {f"{name}_low", f"{name}_high"} <= set(table.columns):
        low, high = ([_or_nan(table[f"{name}_{end}"][i], factor) for i in rows]
                     for end in ("low", "high"))  # fmt: skip
        axes.fill_between(at, low, high, color="0.5", alpha=0.15, lw=0, label="band of the profile")
    if f"{name}_bound" in table.columns:
        floor = [_or_nan(table[f"{name}_bound"][i], factor) for i in rows]
        axes.plot(at, floor, color="0.45", lw=1, ls=(0, (4, 2)), label="bound of the same plan")


def _kink(axes: Axes, at: tuple[float, float], letter: str, colour: str) -> None:
    axes.plot(*at, ls="", marker="o", ms=5, mfc="white", mec=colour, zorder=4)
    axes.annotate(letter, at, xytext=(5, 5), textcoords="offset points", fontsize=8,
                  fontweight="bold", color=colour, zorder=5)  # fmt: skip


def _bars(axes: Axes, table: SweptTable, names: Sequence[str], quantity: ScaledColumn) -> None:
    """Draw a bar for each label, or pair of labels; rows without an answer show their status."""
    labels = []
    _, words = sweep_axes.regions(table)
    for i, (value, word) in enumerate(zip(quantity.values, words, strict=True)):
        finite = math.isfinite(value)
        if finite:
            axes.barh(i, value, color=PALETTE[0], height=0.62)
        axes.annotate(f" {three_figures(value) if finite else table['status'][i]}",
                      (value if finite else 0, i), va="center", fontsize=7.5,
                      color="0.25")  # fmt: skip
        # The region is named on the lines below the label.
        label = ", ".join(str(table[name][i]) for name in names)
        labels.append("\n".join([label, *textwrap.wrap(word or "", 34)]))
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(quantity.label)
    axes.margins(x=0.1)


def _with_unit(table: SweptTable, name: str, value: Cell) -> str:
    unit = table.units.get(name)
    return quantity_text(value, unit) if unit and isinstance(value, int | float) else str(value)


def _or_nan(value: Cell, factor: float) -> float:
    return math.nan if value is None else float(value) * factor


def switches(
    rows: tuple[int, int],
    x: ScaledColumn,
    words: Sequence[str | None],
    crossings: Sequence[PartCrossing],
    factor: float,
) -> Iterator[tuple[float, str, list[str]]]:
    """Yield the switches between two points of a line: position, next choice, equation.

    Places are in the units of the picture, of which `factor` make one of the table. Where nothing
    nearer is known, the later point is the place.
    """
    kinks = [kink for kink in crossings if kink.rows == rows]
    if not kinks:
        yield x.values[rows[1]], str(words[rows[1]]), []
    for kink in kinks:
        wrapped = textwrap.wrap(str(kink), sweep_axes.WIDTH, break_long_words=False)
        yield kink.at * factor, kink.after, [f"     {line}" for line in wrapped]


def interpolate_line(
    at: float, rows: tuple[int, int], x: ScaledColumn, quantity: ScaledColumn
) -> float:
    """The height of the drawn line at a place between two of its points."""
    (low, high), (first, last) = (
        [math.log(each.values[i]) if each.logarithmic else each.values[i] for i in rows]
        for each in (x, quantity)
    )
    share = ((math.log(at) if x.logarithmic else at) - low) / (high - low)
    height = last if at == x.values[rows[1]] else first + share * (last - first)
    return math.exp(height) if quantity.logarithmic else height


def crossing_lines(crossings: Kinks, units: Mapping[str, str]) -> list[str]:
    """Text lines on the kinks of a sweep, on lines or along the lines of a map."""
    lines = []
    for kink in crossings:
        place = ""
        if isinstance(kink, PartCrossing):
            unit = f" {units[kink.along]}" if units.get(kink.along) else ""
            place = f"{kink.along} {three_figures(kink.at)}{unit}: "
        lines.append(f"  {place}{kink}")
    return ["where another part of a step becomes the largest:", *lines] if lines else []


MAX_ROWS, END_ROWS = 20, 5  # rows of a printed table; of a longer one, those of either end
MAX_READ = 1_000_000  # points of a table that is read for its best row
MAX_OUTPUTS = 4
SOLVED = ("optimal", "feasible")
MONEY = {"USD per million tokens": "$/Mtok", "USD/hour": "$/hour", "USD": "$"}  # units as heads
PLANS = ("layout", "choice", "move")  # columns with the plan in words


def sweep_columns(swept: SweptTable, name: str) -> tuple[str, dict[str, list[str]], list[str]]:
    """Title, columns of words by head, and closing sentences of a finished sweep called `name`.

    At most 20 points have a row: of more the first five, the best and the last five.
    """
    where = f"{name} has {len(swept):,} rows of {len(swept.columns)} columns."
    if len(swept) > MAX_READ:
        return f"{len(swept):,} points", {}, [where]
    solved = [place for place, status in enumerate(swept["status"]) if status in SOLVED]
    outputs = _printed_outputs(swept, solved)
    goal = output_words(outputs[0].name) if outputs else "answers"
    title = f"{goal[:1].upper()}{goal[1:]} against {' and '.join(map(path_words, swept.over))}"
    best, places = None, [*range(len(swept))]
    if outputs:
        choose, values = max if outputs[0].rises else min, swept[outputs[0].name]
        best = choose(solved, key=lambda place: float(values[place] or 0.0))
        at = ", ".join(f"{path_words(x)} {_varied(swept, x, best)}" for x in swept.over)
        end = "highest" if outputs[0].rises else "lowest"
        value = quantity_text(values[best], outputs[0].unit)
        where = f"The {end} {goal} is {value}, at {at}. {where}"
    if len(places) > MAX_ROWS:
        places = sorted({*places[:END_ROWS], *places[-END_ROWS:], best or 0})
    columns = dict(_table_columns(swept, outputs, places, best))
    notes = [f"({len(swept) - len(places):,} more rows)"] * (len(places) < len(swept))
    outside = swept["outside"] if "outside" in swept.columns else ()
    if words := [str(outside[place]) for place in solved if outside and outside[place]]:
        beyond = f"{len(words):,} of {len(solved):,} plans are extrapolated"
        notes.append(f"! {beyond}: {', '.join(dict.fromkeys(words[:3]))}")
    return f"{title}: {len(swept):,} points, {len(solved):,} with a plan", columns, [*notes, where]


def sweep_text(swept: SweptTable, name: str) -> str:
    """The text of `sweep_columns`, as wide as the terminal."""
    title, columns, notes = sweep_columns(swept, name)
    below = [line for each in notes for line in wrap_text(each)]
    return "\n".join([*wrap_text(title), "", sections_text([table(columns)]), "", *below])


def _printed_outputs(swept: SweptTable, solved: Sequence[int]) -> list[Output]:
    """The outputs that are printed: what is made small, then the bill and what may be promised."""
    every = get_problem(str(swept.meta["problem"])).outputs
    full = [x for x in every if solved and x.name in swept.columns
            and swept[x.name][solved[0]] is not None]  # fmt: skip
    first = [x for x in full if "cost" in x.aliases][:1] or full[:1]
    others = [x for x in full if x.unit == "USD/hour" or x.promise]
    return list(dict.fromkeys([*first, *others]))[:MAX_OUTPUTS]


def _varied(swept: SweptTable, name: str, place: int) -> str:
    value = swept[name][place]
    words = "none" if value is None else quantity_text(value, swept.units.get(name, ""))
    return f"{value:,}" if isinstance(value, int) else words


def _table_columns(
    swept: SweptTable, outputs: Sequence[Output], places: Sequence[int], best: int | None
) -> Iterator[tuple[str, list[str]]]:
    """Heads of the table with the words of each row; the head of an amount of money is its unit."""
    for name in swept.over:
        yield path_words(name), [_varied(swept, name, place) for place in places]
    for output in outputs:
        head, values = MONEY.get(output.unit), swept[output.name]
        form = three_digits if head else partial(quantity_text, unit=output.unit)
        cells = ["" if values[x] is None else form(values[x]) for x in places]  # type: ignore[arg-type]
        yield head or output_words(output.name), cells
    names = [x for x in ("status", "reason", "short_by", *PLANS) if x in swept.columns]
    columns = {name: swept[name] for name in names}
    plans = [_plan_of({name: x[place] for name, x in columns.items()}) for place in places]
    marks = [" (best)" * (place == best) for place in places]
    yield "plan", [f"{plan}{mark}".strip() for plan, mark in zip(plans, marks, strict=True)]


def _plan_of(row: Mapping[str, Cell]) -> str:
    """The plan of a row in words, or what it lacks: `✗ TPOT missed by 79%`."""
    if row["status"] in SOLVED:
        return next((str(row[name]) for name in PLANS if row.get(name)), "")
    short, reason = float(row.get("short_by") or 1.0), str(row["reason"] or row["status"])
    by = f" by {excess(short)}" if short > 1 else ""
    lack = f"{output_words(reason)} missed{by}" if row["status"] == "infeasible" else reason
    return f"{BROKEN} {lack}"
