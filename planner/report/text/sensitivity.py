"""Table of an answer's sensitivities in words: value, change, worth in dollars, next plans.

Break-even points in words: at which value one choice is as good as another.

A global study in words: the spread, what it comes from, which choice is best how often.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from planner.protocol.document import json_key
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD, Elasticity
from planner.protocol.section import sections_text, table
from planner.text import quantities
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import (
    increase,
    output_words,
    path_words,
    quantity,
    three_digits,
    usd_text,
    wrap_text,
    wrapped,
)

NO_EFFECT = 5e-3  # elasticity in percent, which rounds to nothing
HELD = {LAYOUT_HELD: "layout kept", EVERYTHING_FOLLOWS: "re-planned"}  # words of a question
DIMENSIONS = {row.unit: name for name, row in reversed(quantities.DIMENSIONS.items())}


def sensitivity_text(document: Mapping[str, Any], rows: Sequence[Elasticity]) -> str:
    """Format the table in words, dollars at the bill beside each share, as wide as the terminal."""
    goal, unit, value = output_words(document["of"]), document["unit"], document["value"]
    bill, per = _bill(document)
    at = f", at a bill of {quantity(bill, 'USD' + per)}" if unit != f"USD{per}" and bill else ""
    present = dict.fromkeys(row.question for first in rows for row in (first, *first.beside))
    questions = [x for x in HELD if x in present] or [*present]
    shown = [x for x in rows if x.solved and any(
        abs(each.elasticity) >= NO_EFFECT for each in (x, *x.beside))]  # fmt: skip
    shown.sort(key=lambda row: -abs(row.when(questions[-1]).elasticity))
    slopes = [row.when(questions[-1]).elasticity for row in shown]
    worths = [_dollars(slope * bill / 100) for slope in slopes if bill]
    columns = {
        "1% more of": [path_words(row.path) for row in shown],
        "today": [with_unit(row.value, row.unit) for row in shown],
        goal: [elasticity_text(row.when(questions[-1])) for row in shown],
        f"worth{per}": worths,
    }
    if len(questions) > 1:
        columns[HELD[questions[0]]] = [elasticity_text(row.when(questions[0])) for row in shown]
    lines = [
        *wrap_text(f"What moves the {goal} of {quantity(value, unit)}{at}?"),
        *wrapped(f"plan: {', '.join(filter(None, (document['choice'], document['counts'])))}"), "",
        *sections_text([table(columns)]).split("\n"),
    ]  # fmt: skip
    for title, left in (
        ("No effect", [x for x in rows if x.solved and x not in shown]),
        ("Unknown, no answer was found beside them", [x for x in rows if not x.solved]),
    ):
        lines += (
            wrap_text(f"{title}: {', '.join(path_words(x.path) for x in left)}") if left else []
        )
    if changes := [pair for row in rows for pair in _changes(row)]:
        lines += ["", "Where another plan is best", *(x for _, x in sorted(changes))]
    worth = f", {worths[0][1:]}{per}" if worths else ""
    return "\n".join([*lines, "", *wrap_text(_reading(goal, questions, shown, worth))])


def _bill(document: Mapping[str, Any]) -> tuple[float, str]:
    """Dollars that the output stands for, and the time they are for; 0 where it is no money."""
    unit = document["unit"]
    if unit == "USD per million tokens":
        return document["usd_per_hour"] or 0.0, "/hour"
    return (document["value"], unit.removeprefix("USD")) if unit.startswith("USD") else (0.0, "")


def _dollars(value: float) -> str:
    size = abs(value)
    return f"{'-+'[value > 0]}{usd_text(size) if size >= 1000 else f'${three_digits(size)}'}"


def _reading(goal: str, questions: Sequence[str], rows: Sequence[Elasticity], worth: str) -> str:
    """Say what the first row of the table means."""
    if not rows:
        return f"Nothing that the scenario gives moves the {goal}."
    slope = rows[0].when(questions[-1]).elasticity
    words = f"1% more {path_words(rows[0].path)} {'lowers' if slope < 0 else 'raises'} the {goal}"
    words += f" by {abs(slope):.2f}%{worth}, {HELD.get(questions[-1], questions[-1])}"
    fixed = rows[0].when(questions[0]).elasticity
    return f"{words}; {fixed:+.2f}% with the layout kept." if len(questions) > 1 else f"{words}."


def with_unit(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None:
        return ""
    if unit == "USD" and value >= 1000:
        return f"${value:,.0f}"
    if unit in DIMENSIONS and unit != "1":
        return show(value, DIMENSIONS[unit])
    return f"{value:.4g} {unit}".removesuffix(" 1").rstrip()


def elasticity_text(row: Elasticity) -> str:
    """The change by one percent more; at a kink by one percent less | more."""
    left, right = row.left + 0.0, row.right + 0.0
    if not row.solved:
        return "unknown: no answer was found beside it"
    return f"{right:+.2f}%" if abs(left - right) < UNSEEN else f"{left:+.2f}% | {right:+.2f}%"


def _at(row: Elasticity, factor: float) -> str:
    return f"{factor:.3g}×" if row.value is None else with_unit(row.value * factor, row.unit)


def _changes(row: Elasticity) -> Iterator[tuple[float, str]]:
    """How far each next change of the plan is, and its text: `memory bandwidth 4.12 TB/s: TP8`."""
    for move in row.switches or ():
        at, plan = _at(row, move["factor"]), _new_choice(move["from"], move["to"], move["counts"])
        change = "" if row.value is None else f" ({increase(move['factor'] - 1)})"
        text = f"{path_words(row.path)} {at}{change}: {plan}"
        yield abs(math.log(move["factor"])), "\n".join(wrapped(text))


def _new_choice(before: str, after: str, counts: tuple[str, str]) -> str:
    (_, _, system), (layout, _, new_system) = (x.rpartition(" on ") for x in (before, after))
    name = layout if layout and system == new_system else after
    first, then = counts
    if first == then or not then:
        return name
    return then if before == after else f"{name}, {then}"


def even_text(comparisons: Sequence[Mapping[str, Any]]) -> str:
    """All comparisons of `planner.sensitivity.break_even`, one paragraph each."""
    return "\n\n".join("\n".join(_comparison_lines(each)) for each in comparisons)


def _comparison_lines(compared: Mapping[str, Any]) -> list[str]:
    first, rival, path = compared["first"], compared["rival"], compared["over"]
    whose = f" of {rival}" if compared["varied"] == "rival" else ""
    lines = [f"{rival} against {first}, by {compared['of']}, over {path}{whose}"]
    for point in compared["crossings"]:
        value = with_unit(point["value"], compared["unit"])
        lines += wrapped(f"{value}: below it {point['better_below']}, above it "
                         f"{point['better_above']} is better")  # fmt: skip
        pair = [point[side][who] for side in ("below", "above") for who in ("first", "rival")]
        shown = [("keeps no promise" if value is None else f"{value:.6g}") for value in pair]
        lines += wrapped(
            f"solved on both sides: {first} {shown[0]}, {rival} {shown[1]} just below it; "
            f"{shown[2]} and {shown[3]} just above [{compared['unit_of']}]"
        )
    if not compared["crossings"]:
        low, high = (with_unit(value, compared["unit"]) for value in compared["looked_at"])
        better = compared["ends"][0]
        verdict = "neither keeps the promises" if better is None else f"{better} is better"
        lines += wrapped(f"{verdict} from {low} to {high}")
    return lines


MEANS = {
    "uniform": "{0} to {1}",
    "log_uniform": "{0} to {1}, even in ratio",
    "lognormal": "{0} to {1} in nine of ten draws",
    "triangular": "{0} to {2}, likeliest {1}",
    "normal": "{0} with a standard deviation of {1}",
}

INDEPENDENCE_NOTE = (
    "each drawn without regard to the others; a study of givens that move together is not made"
)


@dataclass(frozen=True)
class Uncertainty:
    """Distribution of a parameter: `ends` in base units, or equally likely texts.

    `source` says of a range of the catalogue what it is of.
    """

    path: str
    kind: str
    ends: tuple[Any, ...]
    unit: str = ""
    source: str | None = None


@dataclass(frozen=True)
class SobolIndex:
    """Shares of the variance that a given has alone and with the others, each with its interval."""

    first: float
    first_interval: tuple[float, float]
    total: float
    total_interval: tuple[float, float]


@dataclass(frozen=True)
class MorrisEffect:
    """Effect of a given over its whole range: mean, mean size, deviation; None without a plan."""

    mean: float | None
    size: float | None
    deviation: float | None


@dataclass(frozen=True)
class ValueOfInformation:
    """Saving from knowing all parameters, or each alone, before the choice, over `draws` draws.

    Of the choices `compared` the `best` has the `mean`.
    """

    json_first: ClassVar = ("all", "each")

    all: float
    best: str | None
    mean: float | None
    draws: int
    compared: Sequence[str]
    alone: Mapping[str, float] = json_key("each")


def study_text(document: Mapping[str, Any]) -> str:
    """The whole study, with its value of knowing typed, never wider than 80 columns."""
    choices, unit = document["choices"], document["unit"]
    rows = document["uncertain"]
    lines = ["uncertain"]
    for row in rows:
        ends = [end if isinstance(end, str) else with_unit(end, row.unit) for end in row.ends]
        of = f" ({row.source})" if row.source else ""
        # A catalogue range is printed as its ends: its source states the coverage.
        form = "{0} to {1}" if of and row.kind == "lognormal" else MEANS.get(row.kind)
        span = form.format(*ends) if form else f"one of {', '.join(ends)}"
        lines += wrapped(f"{row.path}: {span}{of}")
    blocks = [
        ([*lines, *wrapped(INDEPENDENCE_NOTE)] if len(rows) > 1 else lines),
        _spread(document) if document["distribution"] else [],
        _sobol(document["sobol"]) if document["sobol"] is not None else [],
        _morris(document["morris"]) if document["morris"] is not None else [],
        ["the best choice, by share of the draws"] if choices else [],
        _knowing(document["knowing"], len(choices), unit),
    ]
    blocks[4] += [x for each in choices for x in wrapped(f"{each['best']:.1%}  {each['choice']}")]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _spread(document: Mapping[str, Any]) -> list[str]:
    spread, unit = document["distribution"], document["unit"]
    quantiles = spread["quantiles"]
    lines = [f"{document['of']} over {document['draws']:,} draws, {document['method']}"]
    lines += wrapped(
        f"mean {with_unit(spread['mean'], unit)}, standard deviation {spread['deviation']:.3g}; "
        f"half of the draws lie between {quantiles['0.25']:.4g} and {quantiles['0.75']:.4g}, nine "
        f"of ten between {quantiles['0.05']:.4g} and {quantiles['0.95']:.4g}"
    )
    if document["without_plan"]:
        lines += wrapped(f"at {document['without_plan']:.1%} of the draws no plan keeps promises")
    return lines


def _sobol(indices: Mapping[str, SobolIndex]) -> list[str]:
    width = max(map(len, indices))
    lines = [f"{'share of the variance':<{width + 2}}  {'alone':<20}  with the others"]
    for path, index in sorted(indices.items(), key=lambda pair: -pair[1].total):
        alone = _between_ends(index.first, index.first_interval)
        together = _between_ends(index.total, index.total_interval)
        lines.append(f"  {path:<{width}}  {alone:<20}  {together}")
    return lines


def _between_ends(value: float, ends: tuple[float, float]) -> str:
    low, high = (max(end, 0.0) for end in ends)
    return f"{max(value, 0.0):.3f} ({low:.2f} to {high:.2f})"


def _morris(effects: Mapping[str, MorrisEffect]) -> list[str]:
    width = max(map(len, effects))
    lines = [f"{'over its whole range':<{width + 2}}  size of effect  mean        deviation"]
    for path, effect in sorted(effects.items(), key=lambda pair: -(pair[1].size or 0.0)):
        moments = "no step of it has a plan on both ends"
        if effect.size is not None:
            moments = f"{effect.size:<14.4g}  {effect.mean:<+10.4g}  {effect.deviation:.4g}"
        lines.append(f"  {path:<{width}}  {moments}")
    return lines


def _knowing(worth: ValueOfInformation | None, choices: int, unit: str) -> list[str]:
    lines = ["what knowing before choosing is worth"]
    if worth is None:
        text = "not known: too few draws at which all of these choices can be compared"
        return [*lines, *wrapped(text)] if choices > 1 else []
    if not worth.all or worth.mean is None:
        return [*lines, *wrapped("nothing: the same choice is best, or nearly so, at every draw")]
    share = worth.all / abs(worth.mean)
    lines += wrapped(f"all of it: {with_unit(worth.all, unit)}, {share:.2%} of "
                     f"{with_unit(worth.mean, unit)} with the one choice that is best on average "
                     f"({worth.best})")  # fmt: skip
    for path, value in sorted(worth.alone.items(), key=lambda pair: -pair[1]):
        lines += wrapped(f"{path} alone: {value / abs(worth.mean):.2%}")
    return lines
