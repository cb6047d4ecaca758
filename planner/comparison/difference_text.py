"""A comparison of two scenarios on a terminal."""

from collections.abc import Iterator

from planner.comparison.answer_files import value_text
from planner.comparison.price_difference import ComparedSide, PriceDifference
from planner.text.quantities import DIMENSIONS, show
from planner.text.tolerances import REL_TOL
from planner.text.wording import excess, increase, quantity, wrapped


def difference_text(result: PriceDifference) -> str:
    """Return the text of both sides, the cost of each change, and the outputs that moved."""
    before, after = result.before, result.after
    lines = [f"{result.problem}: {before.file} against {after.file}", ""]
    for side in (before, after):
        lines += _side_lines(side, result)
    if not result.changes:
        lines += ["", "no key differs"]
        return "\n".join(lines)
    lines += ["", *_change_lines(result)]
    moved = list(_moved(result))
    if moved:
        lines += ["", "what moved", *moved]
    return "\n".join(lines)


def _side_lines(side: ComparedSide, result: PriceDifference) -> list[str]:
    if side.value is None:
        lines = [f"{side.file}: no plan keeps every promise"]
        for missed in side.infeasible:
            by = f" by {excess(missed.short_by)}" if missed.short_by else ""
            lines += wrapped(f"misses {missed.promise}{by}")
        return lines
    month = f", {_month(side.usd_per_month)}" if side.usd_per_month is not None else ""
    return [f"{side.file}: {quantity(side.value, result.unit)}{month}", *wrapped(side.choice)]


def _change_lines(result: PriceDifference) -> Iterator[str]:
    whole, base = result.difference, result.before.value
    if whole is None:
        yield "what changed; nothing is split, for one of them has no plan"
    else:
        share = f" ({increase(whole / base)})" if base else ""
        month = "" if result.usd_per_month is None else f", {_month(result.usd_per_month, '+')}"
        yield f"difference {_signed(whole, result.unit)}{share}{month}"
        method = "in file order: each change as it is made after those above it in the file"
        if result.method == "shapley":
            method = f"by Shapley's value over {result.orders:,} orders of the changes"
        yield from wrapped(f"split {method}")
    for row in result.changes:
        cost = "" if row.cost is None else f"{_signed(row.cost, result.unit)}  "
        month = "" if row.usd_per_month is None else f"{_month(row.usd_per_month, '+')}  "
        yield f"  {cost}{month}{' and '.join(row.keys)}"
        for before, after, unit in zip(row.before, row.after, row.units, strict=True):
            yield f"      {_value(before, unit)} -> {_value(after, unit)}"


def _value(value: object, unit: str | None) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool) or unit is None:
        return value_text(value)
    dimension = next((name for name, x in DIMENSIONS.items() if x.unit == unit), None)
    return show(value, dimension) if dimension else quantity(value, unit)


def _signed(value: float, unit: str) -> str:
    return f"{'-' if value < 0 else '+'}{quantity(abs(value), unit)}"


def _month(usd: float, sign: str = "") -> str:
    mark = ("-" if usd < 0 else "+") if sign else ""
    return f"{mark}${abs(usd):,.0f}/month"


def _moved(result: PriceDifference) -> Iterator[str]:
    """Outputs that differ, before and after."""
    for output in result.outputs:
        pair = [side.outputs.get(output.name) for side in (result.before, result.after)]
        first, second = pair
        if output.name == result.of or first is None or second is None:
            continue
        if abs(second - first) > REL_TOL * max(abs(first), abs(second)):
            share = f" ({increase(second / first - 1)})" if first else ""
            shown = f"{quantity(first, output.unit)} -> {quantity(second, output.unit)}"
            yield f"  {output.name:<24}{shown}{share}"
