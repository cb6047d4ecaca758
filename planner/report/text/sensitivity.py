"""What an answer hangs on as a table: value, unit, elasticity, by group, and the next switch.

Break-even points in words: at which value one choice is as good as another.

A global study in words: the spread, what it comes from, which choice is best how often.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from planner.text.quantities import show
from planner.text.wording import WIDTH, wrapped

SWITCH = " " * 6
THOUSAND = 1000.0
NOTHING = 5e-4  # an elasticity that is no influence in three digits
DIMENSIONS = {
    "byte": "size", "byte/s": "bandwidth", "s": "time", "token": "tokens", "token/s": "token_rate",
    "USD/(chip*s)": "price", "J/s": "power", "USD/J": "energy_price", "flop/s": "compute",
    "seq/s": "request_rate", "param": "params", "USD": "money",
}  # fmt: skip


def sensitivity_text(document: Mapping[str, Any]) -> str:
    """The whole table, never wider than 78 columns."""
    rows = document["rows"]
    lines = wrapped_head(document)
    width = max((len(row["path"]) for row in rows), default=0)
    groups = dict.fromkeys(row["group"] for row in rows)
    for group in groups:
        lines += ["", group]
        for row in rows:
            if row["group"] == group:
                lines.append(_line(row, width))
                lines += _switches(row)
    return "\n".join(lines)


def wrapped_head(document: Mapping[str, Any]) -> list[str]:
    """What is looked at, and with which choice held."""
    value = valued(document["value"], document["unit"])
    sought = any(row["switches"] is not None for row in document["rows"])
    below = "; below it, the nearest changes at which another choice is the best" if sought else ""
    rows = document["rows"]
    others = dict.fromkeys(each["question"] for row in rows for each in _beside(row))
    told = "One percent more of a quantity changes it by so many percent (at a kink: less | more)"
    if others:
        told += f", {rows[0]['question']}; in brackets, {', '.join(others)}"
    return [
        f"{document['of']} = {value}",
        *wrapped(f"held: {', '.join(filter(None, (document['choice'], document['counts'])))}"),
        *textwrap.wrap(f"{told}{below}", WIDTH),
    ]


def valued(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None:
        return ""
    if unit == "USD" and value >= THOUSAND:
        return f"${value:,.0f}"
    if unit in DIMENSIONS:
        return show(value, DIMENSIONS[unit])
    return f"{value:.4g}" if unit in ("", "1") else f"{value:.4g} {unit}"


def elastic(row: Mapping[str, Any]) -> str:
    """An elasticity, both sides where they differ, ~0 where it does not matter."""
    left, right = row["left"], row["right"]
    if left is None or right is None:
        return "unknown: no answer was found beside it"
    if abs(left) < NOTHING and abs(right) < NOTHING:
        return "~0"
    if abs(left - right) < NOTHING:
        return f"{right:+.3f}"
    return f"{left:+.3f} | {right:+.3f}"


def _line(row: Mapping[str, Any], width: int) -> str:
    value = valued(row["value"], row["unit"])
    other = "".join(f"  ({elastic(each)})" for each in _beside(row))
    line = f"  {row['path']:<{width}}  {value:>16}  {elastic(row)}{other}"
    return line[:WIDTH] if len(line) > WIDTH else line.rstrip()


def _beside(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What else is known of a parameter: answers to another question than the row's."""
    return [each for each in row["beside"] if each["question"] != row["question"]]


def _switches(row: Mapping[str, Any]) -> list[str]:
    found = []
    for each in row["switches"] or ():
        change = 100 * (each["factor"] - 1)
        value = valued(None if row["value"] is None else row["value"] * each["factor"], row["unit"])
        at = f" ({value})" if value else ""
        told = f"{change:+.3g} %{at}: {_new(each)}"
        found += textwrap.wrap(told, WIDTH, initial_indent=SWITCH, subsequent_indent=f"{SWITCH}  ")
    return found


def _new(switch: Mapping[str, Any]) -> str:
    """The choice that becomes the best, without what stays the same."""
    before, after = (switch[key].rpartition(" on ") for key in ("from", "to"))
    told = after[0] if after[0] and before[2] == after[2] else switch["to"]
    first, then = switch["counts"]
    if first == then or not then:
        return str(told)
    return str(then if switch["from"] == switch["to"] else f"{told}, {then}")


def even_text(found: Sequence[Mapping[str, Any]]) -> str:
    """All comparisons, one paragraph each."""
    return "\n\n".join("\n".join(_told(each)) for each in found)


def _told(each: Mapping[str, Any]) -> list[str]:
    first, rival, path = each["first"], each["rival"], each["over"]
    whose = f" of {rival}" if each["varied"] == "rival" else ""
    lines = [f"{rival} against {first}, by {each['of']}, over {path}{whose}"]
    for point in each["crossings"]:
        value = valued(point["value"], each["unit"])
        lines += wrapped(f"{value}: below it {point['better_below']}, above it "
                         f"{point['better_above']} is better")  # fmt: skip
        pair = [point[side][who] for side in ("below", "above") for who in ("first", "rival")]
        told = [_output(value) for value in pair]
        lines += wrapped(
            f"solved on both sides: {first} {told[0]}, {rival} {told[1]} just below it; "
            f"{told[2]} and {told[3]} just above [{each['unit_of']}]"
        )
    if not each["crossings"]:
        low, high = (valued(value, each["unit"]) for value in each["looked_at"])
        better = each["ends"][0]
        verdict = "neither keeps the promises" if better is None else f"{better} is better"
        lines += wrapped(f"{verdict} from {low} to {high}")
    return lines


def _output(value: float | None) -> str:
    return "keeps no promise" if value is None else f"{value:.6g}"


MEANS = {
    "uniform": "{0} to {1}",
    "log_uniform": "{0} to {1}, even in ratio",
    "lognormal": "{0} to {1} in nine of ten draws",
    "triangular": "{0} to {2}, likeliest {1}",
    "normal": "{0} with a standard deviation of {1}",
}

APART = "each drawn without regard to the others; a study of givens that move together is not made"


def study_text(document: Mapping[str, Any]) -> str:
    """The whole study, never wider than 80 columns."""
    blocks = [
        _givens(document),
        _spread(document),
        _sobol(document),
        _morris(document),
        _choices(document),
        _knowing(document),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _givens(document: Mapping[str, Any]) -> list[str]:
    lines = ["uncertain"]
    for each in document["uncertain"]:
        ends = [end if isinstance(end, str) else valued(end, each["unit"]) for end in each["ends"]]
        form = MEANS.get(each["kind"])
        told = form.format(*ends) if form else "one of " + ", ".join(ends)
        of = each["source"]
        if of and each["kind"] == "lognormal":
            told = f"{ends[0]} to {ends[1]}"
        lines += wrapped(f"{each['path']}: {told}{f' ({of})' if of else ''}")
    return [*lines, *wrapped(APART)] if len(document["uncertain"]) > 1 else lines


def _spread(document: Mapping[str, Any]) -> list[str]:
    found, unit = document["distribution"], document["unit"]
    if found is None:
        return []
    quantiles = found["quantiles"]
    lines = [f"{document['of']} over {document['draws']:,} draws, {document['method']}"]
    lines += wrapped(
        f"mean {valued(found['mean'], unit)}, standard deviation {found['deviation']:.3g}; half of "
        f"the draws lie between {quantiles['0.25']:.4g} and {quantiles['0.75']:.4g}, nine of ten "
        f"between {quantiles['0.05']:.4g} and {quantiles['0.95']:.4g}"
    )
    if document["without_plan"]:
        lines += wrapped(f"at {document['without_plan']:.1%} of the draws no plan keeps promises")
    return lines


def _sobol(document: Mapping[str, Any]) -> list[str]:
    found = document["sobol"]
    if found is None:
        return []
    width = max(map(len, found))
    lines = [f"{'share of the variance':<{width + 2}}  {'alone':<20}  with the others"]
    for path, each in sorted(found.items(), key=lambda pair: -pair[1]["total"]):
        alone = _within(each["first"], each["first_interval"])
        lines.append(f"  {path:<{width}}  {alone:<20}  "
                     f"{_within(each['total'], each['total_interval'])}")  # fmt: skip
    return lines


def _within(value: float, ends: tuple[float, float]) -> str:
    low, high = (max(end, 0.0) for end in ends)
    return f"{max(value, 0.0):.3f} ({low:.2f} to {high:.2f})"


def _morris(document: Mapping[str, Any]) -> list[str]:
    found = document["morris"]
    if found is None:
        return []
    width = max(map(len, found))
    lines = [f"{'over its whole range':<{width + 2}}  size of effect  mean        deviation"]
    for path, each in sorted(found.items(), key=lambda pair: -(pair[1]["size"] or 0.0)):
        if each["size"] is None:
            lines.append(f"  {path:<{width}}  no step of it has a plan on both ends")
            continue
        lines.append(f"  {path:<{width}}  {each['size']:<14.4g}  {each['mean']:<+10.4g}  "
                     f"{each['deviation']:.4g}")  # fmt: skip
    return lines


def _choices(document: Mapping[str, Any]) -> list[str]:
    if not document["choices"]:
        return []
    lines = ["the best choice, by share of the draws"]
    for each in document["choices"]:
        lines += wrapped(f"{each['best']:.1%}  {each['choice']}")
    return lines


def _knowing(document: Mapping[str, Any]) -> list[str]:
    found, unit = document["knowing"], document["unit"]
    lines = ["what knowing before choosing is worth"]
    if found is None and len(document["choices"]) > 1:
        told = "not known: too few draws at which all of these choices can be compared"
        return [*lines, *wrapped(told)]
    if found is None:
        return []
    if not found["all"]:
        return [*lines, *wrapped("nothing: the same choice is best, or nearly so, at every draw")]
    share = found["all"] / abs(found["mean"])
    lines += wrapped(f"all of it: {valued(found['all'], unit)}, {share:.2%} of "
                     f"{valued(found['mean'], unit)} with the one choice that is best on average "
                     f"({found['best']})")  # fmt: skip
    for path, value in sorted(found["each"].items(), key=lambda pair: -pair[1]):
        lines += wrapped(f"{path} alone: {value / abs(found['mean']):.2%}")
    return lines
