"""What `planner formula` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formulas.catalogue import by_name, find, subject
from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.symbols import meaning, unit_of_symbol
from planner.errors import InputError, QuantityError, did_you_mean
from planner.quantities import parse

__all__ = [
    "formula_text",
    "formulas_text",
    "one_formula",
    "the_formulas",
]


def the_formulas() -> list[dict[str, Any]]:
    """Every equation and derivation: name, subject, title, text."""
    return [
        {"name": name, "subject": subject(name), "title": value.name, "text": str(_equation(value))}
        for name, value in by_name().items()
    ]


def formulas_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The list on a terminal, by subject."""
    lines: list[str] = []
    for row in rows:
        if f"{row['subject']}:" not in lines:
            lines += ["", f"{row['subject']}:"] if lines else [f"{row['subject']}:"]
        lines.append(f"  {row['name']:<24} {row['title']}")
    return "\n".join(lines)


def one_formula(name: str, solve_for: str | None, sets: Sequence[str]) -> dict[str, Any]:
    """One equation with its symbols, source, and its value where every symbol is given.

    Raises
    ------
    InputError
        If the name, a symbol or a value is not what it should be, or nothing can be solved for.
    """
    try:
        equation = _equation(find(name))
        if solve_for is not None:
            equation = equation.solve_for(solve_for)
        values = _values(equation, sets)
        value = None
        if values:
            value = float(equation.numpy()(**values))
    except ValueError as error:
        raise InputError(str(error)) from error
    symbols = (equation.symbol, *equation.symbols)
    return {
        "name": name,
        "title": equation.name,
        "text": str(equation),
        "latex": equation.latex(),
        "symbols": [
            {"symbol": s.name, "unit": str(unit_of_symbol(s)), "meaning": meaning(s)}
            for s in symbols
        ],
        "assumes": list(equation.assumes),
        "source": str(equation.source),
        "link": equation.source.link,
        "tags": list(equation.tags),
        "given": values,
        "value": value,
        "unit": str(unit_of_symbol(equation.symbol)),
    }


def formula_text(found: Mapping[str, Any]) -> str:
    """One equation on a terminal."""
    lines = [found["title"], "", f"  {found['text']}", ""]
    for row in found["symbols"]:
        given = found["given"].get(row["symbol"])
        shown = f" = {given:g}" if given is not None else ""
        lines.append(f"  {row['symbol'] + shown:<22} [{row['unit']}]  {row['meaning']}")
    lines.append("")
    lines += [f"assumes: {each}" for each in found["assumes"]]
    lines.append(f"source: {found['source']}{' ' + found['link'] if found['link'] else ''}")
    if found["value"] is not None:
        lines += ["", f"{found['symbols'][0]['symbol']} = {found['value']:.6g} [{found['unit']}]"]
    return "\n".join(lines)


def _equation(value: Equation | Derivation) -> Equation:
    return value if isinstance(value, Equation) else value.equation()


def _values(equation: Equation, sets: Sequence[str]) -> dict[str, float]:
    """SYMBOL=VALUE, the value in the symbol's base unit, a thousand as 1e3, 1k or 1_000."""
    known = {s.name for s in (*equation.symbols, *equation.givens)}
    values: dict[str, float] = {}
    for text in sets:
        symbol, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text}: expected SYMBOL=VALUE, such as B=64")
        if symbol not in known:
            raise InputError(
                f"--set {text}: no symbol {symbol!r} here{did_you_mean(symbol, known)}"
            )
        try:
            values[symbol] = parse(value, "number")
        except QuantityError as error:
            raise InputError(f"--set {text}: {error}") from error
    return values
