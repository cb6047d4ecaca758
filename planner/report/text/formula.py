"""Text of `planner formula`: the list of equations, or an equation solved for values.

SYMBOL=VALUE is a quantity, read and shown in the symbol's unit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.domains import violated_conditions
from formulas.algebra.equation import Equation
from formulas.export import LANGUAGES, code
from formulas.nomenclature.symbols import SymbolError, describe, did_you_mean, meaning, symbol_unit
from formulas.numerics.evaluate import Assignment, Kernel, collect, expand_all, kernel, scalar
from formulas.numerics.expressions import top_extreme, undefined_reason
from formulas.numerics.slopes import elasticities
from formulas.registry import by_name, entry_name, find, subject, tags
from planner.protocol.document import json_key
from planner.text.errors import InputError, quote
from planner.text.listing import Listing
from planner.text.quantities import DIMENSIONS, Dimension, show
from planner.text.quantities import describe as worded
from topologies.files.units import Powers, QuantityParseError, parse_quantity

SymbolValuesMap = Mapping[str, float]
Exponents = tuple[tuple[str, Fraction], ...]

COUNTS = ("chip", "param", "seq", "token")
NUMBER_DIMENSIONS = ("number", "share")
IMPLICIT = (
    "bytes_per_param",
    "bytes_per_token",
    "flop_per_token",
)  # dimensions shown without their denominator


@dataclass(frozen=True)
class GivenSymbol:
    """A symbol of an equation, with its value where it is given."""

    symbol: str
    unit: str
    meaning: str
    value: float | None = json_key("given")


Slopes = dict[str, list[float] | None]


@dataclass(frozen=True)
class FormulaCard:
    """One equation with its symbols and source; the last five are known where all is given.

    `shown` is the value in a unit that fits it, `decides` the branch of a Max or Min at the top,
    `outside` the conditions that the point breaks.
    """

    name: str
    title: str
    text: str
    exact: bool
    latex: str
    solved_for: str | None
    symbols: tuple[GivenSymbol, ...]
    where: tuple[str, ...]
    assumes: tuple[str, ...]
    source: str
    link: str
    tags: tuple[str, ...]
    values: SymbolValuesMap = field(metadata={"key": "given"})
    missing: tuple[str, ...]
    unit: str
    value: float | None = None
    shown: str | None = None
    decides: str | None = None
    elasticities: Slopes | None = None
    outside: tuple[str, ...] = ()


@dataclass(frozen=True)
class FormulaRow:
    """One line of the list of equations."""

    name: str
    subject: str
    title: str
    text: str


def formula_card(name: str, solve_for: str | None, sets: Sequence[str]) -> FormulaCard:
    """One equation with its symbols and source; its value and elasticities where all is given.

    Raises InputError if the name, a symbol or a value is not what it should be, if nothing can be
    solved for, or if the equation has no value at the point.
    """
    try:
        entry = find(name)
        equation = _equation(entry)
        if isinstance(equation, Derivation):
            raise InputError(f"{entry.name} does not end in one symbol; see it with planner derive")
        if solve_for is not None:
            read_values(equation, sets, solve_for)  # report faults before the slow algebra
        turned = equation if solve_for is None else equation.solve_for(solve_for)
    except ValueError as error:
        raise InputError(str(error)) from error
    values = read_values(turned, sets)
    # Compile the equation as a function of the given values and of the symbols left open.
    compiled = kernel(_definitions(turned, values), {turned.symbol.name: turned.rhs})
    exact = isinstance(entry, Equation) or entry.exact
    missing = tuple(each for each in compiled.names if each not in values)
    python = entry_name(entry)
    # The symbol that is given, then those it is given by, those computed on the way among them.
    seen = dict.fromkeys((turned.symbol, *turned.symbols, *turned.givens))
    card = FormulaCard(
        name=python,
        title=turned.name,
        text=str(turned) if exact else str(turned).replace(" = ", " ≈ ", 1),
        exact=exact,
        latex=turned.latex(),
        solved_for=solve_for,
        symbols=tuple(
            GivenSymbol(x.name, str(symbol_unit(x)), meaning(x), values.get(x.name)) for x in seen
        ),
        where=tuple(map(str, turned.where)),
        assumes=turned.assumes,
        source=str(turned.source),
        link=turned.source.link,
        tags=tags(python),
        values=values,
        missing=missing,
        unit=str(symbol_unit(turned.symbol)),
    )
    return card if missing else _with_numbers(card, turned, compiled)


def formula_code(name: str, solve_for: str | None, language: str) -> str:
    """The equation as a function of a language, turned round to give `solve_for` if that is named.

    Raises InputError if the name, the symbol or the language is unknown, or nothing can be solved.
    """
    if language not in LANGUAGES:
        raise InputError(f"--format {language}: no such language (known: {', '.join(LANGUAGES)})")
    try:
        entry = find(name)
        if solve_for is not None:
            entry = entry.equation() if isinstance(entry, Derivation) else entry
            entry = entry.solve_for(solve_for)
        return code([entry], language)
    except ValueError as error:
        raise InputError(str(error)) from error


def formula_text(card: FormulaCard) -> str:
    """One equation on a terminal."""
    lines = [card.title, "", f"  {card.text}"]
    lines += [*(f"  where {each}" for each in card.where), ""]
    symbols = [
        row.symbol if row.value is None else f"{row.symbol} = {shown_value(row.symbol, row.value)}"
        for row in card.symbols
    ]
    width, units = max(map(len, symbols)), max(len(row.unit) + 2 for row in card.symbols)
    for shown, row in zip(symbols, card.symbols, strict=True):
        lines.append(f"  {shown:<{width}}  {f'[{row.unit}]':<{units}}  {row.meaning}")
    lines += ["", *(f"assumes: {each}" for each in card.assumes)]
    lines.append(f"source: {card.source}{' ' + card.link if card.link else ''}")
    symbol = card.symbols[0].symbol
    if card.shown is not None:
        notes = []
        if card.value is not None:
            base = f"{card.value:.6g}" + ("" if card.unit == "1" else f" {card.unit}")
            notes += [base] if base != card.shown else []
        if card.decides:
            notes.append(f"{card.decides} decides")
        lines += ["", (f"{symbol} = {card.shown}" + (f"   ({'; '.join(notes)})" if notes else ""))]
        lines += [f"outside: {condition}" for condition in card.outside]
        lines += _elasticity_lines(symbol, card.elasticities)
    elif card.values:
        lines += ["", f"for a value of {symbol}, still give {', '.join(card.missing)}"]
    return "\n".join(lines)


def _equation(value: Equation | Derivation) -> Equation | Derivation:
    if isinstance(value, Equation) or value.numeric or not value.lhs.is_Symbol:
        return value
    return value.equation()


def _definitions(equation: Equation, values: SymbolValuesMap) -> list[Assignment]:
    rest = collect(equation.where)
    return [Assignment(x, expression) for x, expression in rest.items() if x.name not in values]


def _with_numbers(card: FormulaCard, equation: Equation, compiled: Kernel) -> FormulaCard:
    """The card with the value at the point, what decides there, and what moves it."""
    name, values = equation.symbol.name, card.values
    if idle := [each for each in values if each not in compiled.names]:
        raise InputError(
            f"--set {idle[0]}: not needed: the other given symbols determine the value"
        )
    whole = expand_all(equation.rhs, _definitions(equation, values))
    unbounded = False
    try:
        value = float(compiled(**values)[name])
        unbounded = value == math.inf and bool(whole.has(sp.oo))
        reason = ""
        if value < 0:
            reason = f"it would be negative, {value:.6g}; there is no real solution above zero"
        elif (value == math.inf and not unbounded) or math.isnan(value):
            reason = "it is infinite, or too large for a number"
    except SymbolError as error:
        value, reason = math.nan, str(error)
    if reason:
        point = {x: values[x.name] for x in whole.free_symbols}
        why = undefined_reason(whole, point) or reason
        raise InputError(f"{equation.name}: no value for {describe(name)} at this point: {why}")
    return replace(
        card,
        value=None if unbounded else value,
        shown="∞" if unbounded else shown_value(name, value),
        decides=_deciding(whole, equation, values),
        elasticities=None if unbounded or not value else _slopes(compiled, name, values),
        outside=violated_conditions(equation.assumes, equation.where, values),
    )


def _deciding(whole: sp.Expr, equation: Equation, values: SymbolValuesMap) -> str | None:
    named = equation.branches or equation.expanded.branches
    extreme = top_extreme(whole)
    if not named or extreme is None:
        return None
    sizes = scalar(_definitions(equation, values), dict(named), values)
    pick = min if isinstance(extreme, sp.Min) else max
    return pick(sizes, key=sizes.__getitem__)


def _slopes(compiled: Kernel, name: str, values: SymbolValuesMap) -> Slopes:
    pairs = elasticities(compiled, name, values)
    return {x: list(pair) if all(map(math.isfinite, pair)) else None for x, pair in pairs.items()}


def _elasticity_lines(symbol: str, slopes: Slopes | None) -> list[str]:
    """One line for each symbol that moves the value, the strongest first."""
    if not slopes:
        return []
    nonzero = {x: pair for x, pair in slopes.items() if pair is not None and any(pair)}
    ranked = sorted(nonzero, key=lambda x: (-max(map(abs, nonzero[x])), x))
    lines = [f"one percent more of a symbol changes {symbol} by, in percent:"]
    for x in ranked:
        down, up = nonzero[x]
        kink = "" if math.isclose(down, up, rel_tol=1e-9, abs_tol=1e-12) else "  (at a kink: "
        kink += f"{down:+.3f} per percent less)" if kink else ""
        lines.append(f"  {x:<{max(map(len, ranked))}}  {up:+.3f}{kink}")
    return lines if ranked else []


def formula_rows(find: str | None = None, where: Sequence[str] = ()) -> list[FormulaRow]:
    """Every equation and derivation, or those that `Listing.selected` takes."""
    rows = [
        FormulaRow(name, subject(name), value.name, str(_equation(value)))
        for name, value in by_name().items()
    ]
    if not find and not where:
        return rows
    names = set(_listing(rows).selected(find, where).names)
    return [row for row in rows if row.name in names]


def _listing(rows: Sequence[FormulaRow]) -> Listing:
    columns = dict.fromkeys(("name", "subject", "gives", "title"))
    return Listing(columns, tuple((x.name, x.subject, _gives(x.name), x.title) for x in rows))


def _gives(name: str) -> str:
    equation = _equation(by_name()[name])
    return equation.symbol.name if isinstance(equation, Equation) else ""


def formulas_text(rows: Sequence[FormulaRow]) -> str:
    """The list on a terminal."""
    return str(_listing(rows)) if rows else "no equation is that"


def read_values(
    equation: Equation, sets: Sequence[str], wanted: str | None = None
) -> dict[str, float]:
    """{symbol: value in base units} from texts such as `W=3.35 TB/s` and `B=64`.

    `wanted` is the symbol that the equation is asked for, its left side if none is named.

    Counts below the line may be left out, since the symbol's meaning says them: `b_kv=70 kB` is per
    token, `p_chip=$3.50/hour` per chip. Raises InputError if a symbol does not occur or is given
    twice, or a value is not of the symbol's unit, negative, or not finite.
    """
    wanted = wanted or equation.symbol.name
    every = {x.name: x for x in (*equation.symbols, *equation.givens, equation.symbol)}
    symbols = {name: x for name, x in every.items() if name != wanted}
    values: dict[str, float] = {}
    for change in sets:
        name, equals, written = (part.strip() for part in change.partition("="))
        if not equals or not name:
            raise InputError(f"--set {quote(change)}: expected SYMBOL=VALUE, such as B=64")
        if name == wanted:
            raise InputError(
                f"--set {name}: it is what this equation gives; ask for another symbol "
                "with --solve-for to give it a value"
            )
        if name not in symbols:
            hint = did_you_mean(name, symbols) or f"; it has {', '.join(symbols)}"
            raise InputError(f"--set {name}: {describe(name)} does not occur here{hint}")
        if name in values:
            raise InputError(f"--set {name}: given twice")
        values[name] = _read(name, written)
    return values


def shown_value(name: str, value: float) -> str:
    """The value as a person would write it: `46.2 ms`, `4000 tokens/seq`, `0.85`."""
    powers, below = symbol_unit(name).powers, ""
    dimension = _dimension(powers)
    if dimension is not None and dimension.name in IMPLICIT:
        dimension = None
    for count in COUNTS:
        if dimension is None and (count, -1) in powers:
            powers = tuple(each for each in powers if each[0] != count)
            below = f"{below}*{count}" if below else count
            dimension = _dimension(powers)
    if dimension is None or dimension.name in NUMBER_DIMENSIONS or not math.isfinite(value):
        unit = str(symbol_unit(name))
        return f"{value:.6g}" if unit == "1" else f"{value:.6g} {unit}"
    per = f"/({below})" if "*" in below else f"/{below}" if below else ""
    return show(value, dimension.name).replace("requests", "seq") + per


def _read(name: str, written: str) -> float:
    """The value of one symbol in base units."""
    unit = symbol_unit(name)
    powers, dimension = unit.powers, _dimension(unit.powers)
    example = dimension.example if dimension else f"2 {unit}"
    wanted = f"--set {name}: {meaning(name)} is a plain number"
    if powers:
        wanted = f'--set {name}: {meaning(name)} is in {unit}, such as "{example}"'
    try:
        read = parse_quantity(written)
    except QuantityParseError as reason:
        raise InputError(f"{wanted}; {reason}") from None
    # The value if it is of these powers, save for counts left out below the line; else None.
    # 70B means 70e9 of any count, or bytes if the symbol is in bytes.
    billions = bool(read.magnitude) and dict(read.powers) == {"byte": 1}
    value: float | None = read.value * 1e9
    if not billions or any(base == "byte" for base, _ in powers):
        plain = read.bare or (read.magnitude and not billions)
        value = read.value if plain or _agree(read.powers, powers) else None
    if value is None:
        raise InputError(f'{wanted}; got "{written}" ({worded(read.powers)})')
    if not math.isfinite(value):
        raise InputError(f'{wanted}; got "{written}", which is not finite')
    if value < 0:
        raise InputError(f'{wanted}; got "{written}", which is negative')
    return value


def _agree(read: Powers, powers: Exponents) -> bool:
    lacking = {base: Fraction(power) for base, power in powers}
    for base, power in read:
        if lacking.get(base) != power:
            return False
        del lacking[base]
    return all(base in COUNTS and power < 0 for base, power in lacking.items())


def _dimension(powers: Exponents) -> Dimension | None:
    return next((each for each in DIMENSIONS.values() if each.powers == powers), None)
