"""Expressions as plain nested tuples, and their values at one point with Python floats.

A tree is a number, the name of a symbol, or (operation, *trees). `expressions.expr_tree` makes it
of a SymPy expression, node for node, so that walking it shares only the equations with the array
kernels; files hold it as JSON, read and walked without SymPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from formulas.nomenclature.symbol_error import SymbolError

Tree: TypeAlias = "float | bool | str | Sequence[Tree]"
Named: TypeAlias = Sequence[tuple[str, Tree]]

# Relative tolerance of a tie between branches of a Max: a few rounding errors.
TIE = 1e-12


@dataclass(frozen=True)
class ScalarProgram:
    """Definitions in topological order, evaluated at a single point.

    `arguments` are the names that must be given; `steps` and `outputs` pairs of a name and a tree.
    """

    arguments: tuple[str, ...]
    steps: tuple[tuple[str, Tree], ...]
    outputs: tuple[tuple[str, Tree], ...]

    def __call__(self, values: Mapping[str, float]) -> dict[str, float]:
        """The outputs at one point.

        Raises SymbolError if a value is missing, negative or not a number; ValueError if the value
        of a definition is undefined (0/0, ∞ − ∞).
        """
        refuse_missing(values, self.arguments)
        numbers: dict[str, float] = {}
        for name in self.arguments:
            numbers[name] = float(values[name])
            if not numbers[name] >= 0:
                raise SymbolError(f"{symbol_text(name)} is negative or not a number")
        for name, tree in self.steps:
            numbers[name] = _sound(name, tree, numbers)
        return {name: _sound(name, tree, numbers) for name, tree in self.outputs}

    def plain(self) -> tuple[Sequence[str], Named, Named]:
        """The program as JSON holds it."""
        return self.arguments, self.steps, self.outputs

    @classmethod
    def of_plain(cls, document: tuple[Sequence[str], Named, Named]) -> ScalarProgram:
        """Rebuild the program from the output of `plain` after a JSON round trip."""
        arguments, steps, outputs = document
        return cls(tuple(arguments), tuple(steps), tuple(outputs))


def _sound(name: str, tree: Tree, values: Mapping[str, float]) -> float:
    value = tree_value(tree, values)
    if math.isnan(value):
        raise ValueError(f"{name} is undefined (0/0 or ∞ − ∞) at the given point")
    return value


def tree_value(tree: Tree, values: Mapping[str, float]) -> float:
    """The value in floats; divisions by zero and overflows give infinities, as arrays do.

    Raises ValueError if a negative number is raised to a fraction.
    """
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int | float):
        return tree
    operation, *parts = tree
    if operation == "piecewise":
        for value, condition in cast("Sequence[tuple[Tree, Tree]]", parts):
            if _holds(condition, values):
                return tree_value(value, values)
        return math.nan
    return _RULES[str(operation)](*[tree_value(part, values) for part in parts])


def _holds(condition: Tree, values: Mapping[str, float]) -> bool:
    if isinstance(condition, bool):
        return condition
    operation, *parts = cast("Sequence[Tree]", condition)
    if operation == "and":
        return all(_holds(part, values) for part in parts)
    if operation == "or":
        return any(_holds(part, values) for part in parts)
    if operation == "not":
        return not _holds(parts[0], values)
    left, right = (tree_value(part, values) for part in parts)
    return COMPARE[str(operation)](left, right)


def _sum(*parts: float) -> float:
    # fsum refuses infinities.
    return math.fsum(parts) if all(map(math.isfinite, parts)) else sum(parts)


def product(*parts: float) -> float:
    """The factors multiplied from left to right, numbers of any kind."""
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total


def _complement(c: float, share: float, exponent: float, rest: float) -> float:
    if math.isnan(exponent):
        return math.nan
    power = exponent * math.log1p(-share) if share < 1 else -math.inf
    left = math.expm1(power) if power < 709 else math.inf
    return -c * left + rest


def _power(base: float, power: float) -> float:
    if base == 0 and power < 0:
        return math.inf
    if base < 0 and not power.is_integer():
        raise ValueError(f"a negative number raised to {power}")
    try:
        return float(base**power)
    except OverflowError:
        return math.inf


def _rounded(rule: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(rule(x)) if math.isfinite(x) else x


COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_RULES: Mapping[str, Callable[..., float]] = {
    "sum": _sum,
    "product": product,
    "complement": _complement,
    "power": _power,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "max": max,
    "min": min,
    "exp": lambda x: math.exp(x) if x < 709 else math.inf,
    "log": lambda x: math.log(x) if x > 0 else math.nan if x else -math.inf,
    "ceiling": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "abs": abs,
}


def refuse_missing(values: Mapping[str, object], names: Iterable[str]) -> None:
    """Raise, naming every symbol that is needed and not given."""
    missing = [name for name in names if name not in values]
    if missing:
        raise SymbolError("missing " + "; ".join(map(symbol_text, missing)))


def refuse_unknown(values: Mapping[str, object], names: Sequence[str]) -> None:
    """Raise SymbolError for the first value whose name is unknown, with the nearest known name."""
    taken = frozenset(names)
    for name in values:
        if name not in taken:
            from formulas.nomenclature.symbols import did_you_mean

            hint = did_you_mean(name, names) or f"; it takes {', '.join(names)}"
            raise SymbolError(f"there is no argument {name!r}{hint}")


def symbol_text(name: str) -> str:
    """A symbol with its meaning and unit, for messages; the nomenclature is loaded for it."""
    from formulas.nomenclature.symbols import describe

    return describe(name)
