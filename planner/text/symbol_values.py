"""SYMBOL=VALUE: quantities for the symbols of an equation, read and shown in the symbol's unit."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from formulas.algebra.equation import Equation
from formulas.nomenclature.symbols import describe, did_you_mean, meaning, unit_of_symbol
from planner.text.errors import InputError, quoted
from planner.text.quantities import DIMENSIONS, Dimension, show
from planner.text.quantities import describe as worded
from topologies.files.units import Amount, Powers, UnreadAmount, amount

Values = Mapping[str, float]
Exponents = tuple[tuple[str, Fraction], ...]

COUNTS = ("chip", "param", "seq", "token")
NUMBERS = ("number", "share")
UNSAID = ("bytes_per_param", "bytes_per_token", "flop_per_token")  # shown without what they are per


def read_values(equation: Equation, sets: Sequence[str]) -> dict[str, float]:
    """{symbol: value in base units} from texts such as `W=3.35 TB/s` and `B=64`.

    Counts below the line may be left out, since the symbol's meaning says them: `b_kv=70 kB` is per
    token, `p_chip=$3.50/hour` per chip. Raises InputError if a symbol does not occur or is given
    twice, or a value is not of the symbol's unit, negative, or not finite.
    """
    symbols = {x.name: x for x in (*equation.symbols, *equation.givens)}
    values: dict[str, float] = {}
    for change in sets:
        name, equals, written = (part.strip() for part in change.partition("="))
        if not equals or not name:
            raise InputError(f"--set {quoted(change)}: expected SYMBOL=VALUE, such as B=64")
        if name == equation.symbol.name:
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
    powers, below = unit_of_symbol(name).powers, ""
    dimension = _dimension(powers)
    if dimension is not None and dimension.name in UNSAID:
        dimension = None
    for count in COUNTS:
        if dimension is None and (count, -1) in powers:
            powers = tuple(each for each in powers if each[0] != count)
            below = f"{below}*{count}" if below else count
            dimension = _dimension(powers)
    if dimension is None or dimension.name in NUMBERS or not math.isfinite(value):
        unit = str(unit_of_symbol(name))
        return f"{value:.6g}" if unit == "1" else f"{value:.6g} {unit}"
    per = f"/({below})" if "*" in below else f"/{below}" if below else ""
    return show(value, dimension.name).replace("requests", "seq") + per


def _read(name: str, written: str) -> float:
    """The value of one symbol in base units."""
    unit = unit_of_symbol(name)
    powers, dimension = unit.powers, _dimension(unit.powers)
    example = dimension.example if dimension else f"2 {unit}"
    wanted = f"--set {name}: {meaning(name)} is a plain number"
    if powers:
        wanted = f'--set {name}: {meaning(name)} is in {unit}, such as "{example}"'
    try:
        read = amount(written)
    except UnreadAmount as reason:
        raise InputError(f"{wanted}; {reason}") from None
    value = _counted(read, powers)
    if value is None:
        raise InputError(f'{wanted}; got "{written}" ({worded(read.powers)})')
    if not math.isfinite(value):
        raise InputError(f'{wanted}; got "{written}", which is not finite')
    if value < 0:
        raise InputError(f'{wanted}; got "{written}", which is negative')
    return value


def _counted(read: Amount, powers: Exponents) -> float | None:
    """The value if it is of these powers, save for counts left out below the line; else None."""
    # 70B is a count of whatever is counted, and bytes where bytes are
    billions = bool(read.magnitude) and dict(read.powers) == {"byte": 1}
    if billions and not any(base == "byte" for base, _ in powers):
        return read.value * 1e9
    plain = read.bare or (read.magnitude and not billions)
    return read.value if plain or _agree(read.powers, powers) else None


def _agree(read: Powers, powers: Exponents) -> bool:
    """Whether the powers are the same, or lack only counts below the line."""
    lacking = {base: Fraction(power) for base, power in powers}
    for base, power in read:
        if lacking.get(base) != power:
            return False
        del lacking[base]
    return all(base in COUNTS and power < 0 for base, power in lacking.items())


def _dimension(powers: Exponents) -> Dimension | None:
    """The kind of quantity with exactly these exponents."""
    return next((each for each in DIMENSIONS.values() if each.powers == powers), None)
