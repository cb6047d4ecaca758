"""Table of an answer's sensitivities: value, unit, elasticity, by group, and next switch.

Break-even points in words: at which value one choice is as good as another.

A global study in words: the spread, what it comes from, which choice is best how often.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from planner.protocol.document import json_key
from planner.protocol.elasticity import Elasticity
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import WIDTH, wrap_text, wrapped

SWITCH = " " * 6
DIMENSIONS = {
    "byte": "size", "byte/s": "bandwidth", "s": "time", "token": "tokens", "token/s": "token_rate",
    "USD/(chip*s)": "price", "J/s": "power", "USD/J": "energy_price", "g/J": "carbon",
    "flop/s": "compute", "seq/s": "request_rate", "param": "params", "USD": "money",
}  # fmt: skip


def sensitivity_text(document: Mapping[str, Any], rows: Sequence[Elasticity]) -> str:
    """Format the whole table, at most 78 columns wide; `document` provides the lines above it."""
    sought = any(row.switches is not None for row in rows)
    below = "; below it, the nearest changes at which another choice is the best" if sought else ""
    others = dict.fromkeys(each.question for row in rows for each in _companions(row))
    text = "One percent more of a quantity changes it by so many percent (at a kink: less | more)"
    if others:
        text += f", {rows[0].question}; in brackets, {', '.join(others)}"
    lines = [
        f"{document['of']} = {with_unit(document['value'], document['unit'])}",
        *wrapped(f"held: {', '.join(filter(None, (document['choice'], document['counts'])))}"),
        *wrap_text(f"{text}{below}", rest=""),
    ]
    width = max((len(row.path) for row in rows), default=0)
    for group in dict.fromkeys(row.group for row in rows):
        lines += ["", group]
        for row in rows:
            if row.group == group:
                lines += [_line(row, width), *_switches(row)]
    return "\n".join(lines)


def with_unit(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None:
        return ""
    if unit == "USD" and value >= 1000:
        return f"${value:,.0f}"
    if unit in DIMENSIONS:
        return show(value, DIMENSIONS[unit])
    return f"{value:.4g}" if unit in ("", "1") else f"{value:.4g} {unit}"


def elasticity_text(row: Elasticity) -> str:
    """An elasticity, both sides where they differ, ~0 where it does not matter."""
    left, right = row.left, row.right
    if not row.solved:
        return "unknown: no answer was found beside it"
    if abs(left) < UNSEEN and abs(right) < UNSEEN:
        return "~0"
    return f"{right:+.3f}" if abs(left - right) < UNSEEN else f"{left:+.3f} | {right:+.3f}"


def _line(row: Elasticity, width: int) -> str:
    beside = "".join(f"  ({elasticity_text(each)})" for each in _companions(row))
    line = (
        f"  {row.path:<{width}}  {with_unit(row.value, row.unit):>16}  "
        f"{elasticity_text(row)}{beside}"
    )
    return line[:WIDTH] if len(line) > WIDTH else line.rstrip()


def _companions(row: Elasticity) -> list[Elasticity]:
    return [each for each in row.beside if each.question != row.question]


def _switches(row: Elasticity) -> list[str]:
    lines = []
    for move in row.switches or ():
        change = 100 * (move["factor"] - 1)
        value = with_unit(None if row.value is None else row.value * move["factor"], row.unit)
        at = f" ({value})" if value else ""
        line = f"{change:+.3g}%{at}: {_new_choice(move['from'], move['to'], move['counts'])}"
        lines += wrap_text(line, SWITCH, f"{SWITCH}  ")
    return lines


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
