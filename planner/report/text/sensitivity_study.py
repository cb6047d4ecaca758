"""A global study in words: the spread, what it comes from, which choice is best how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.report.text.sensitivity import valued
from planner.text.words import wrapped

__all__ = ["study_text"]

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
    if found is None and len(document["choices"]) > 1 and document["problem"] == "serving":
        told = "not known: too few draws at which all of these choices have a plan"
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
