"""Elasticities of a compiled output to every argument at once, by carrying slopes along the tape.

Two slopes are carried, to the left and to the right: where the branches of a Max tie they differ,
and the answer is a pair rather than an arbitrary one of the two. A ceiling is flat between steps.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from formulas.nomenclature.symbol_error import SymbolError
from formulas.numerics.kernel import Kernel
from formulas.numerics.tape import Tape
from formulas.numerics.trees import TIE

Pair = tuple[float, float]


def elasticities(kernel: Kernel, output: str, values: Mapping[str, float]) -> dict[str, Pair]:
    """Percent of an output per percent of each argument: {argument: (as it falls, as it rises)}.

    The two differ only at a kink, where branches of a Max or Min tie. Raises SymbolError if the
    kernel has no such output, a value is missing, or the output is zero or infinite at the point.
    """
    # Only messages need the nomenclature, which needs SymPy.
    from formulas.nomenclature.symbols import describe, did_you_mean

    if output not in kernel.outputs:
        hint = did_you_mean(output, kernel.outputs)
        raise SymbolError(f"the kernel has no output {describe(output)}{hint}")
    total = kernel(**values)[output]
    if not isinstance(total, float) or not math.isfinite(total) or total == 0:
        raise SymbolError(f"{describe(output)} has no elasticity where it is {total}")
    slopes = (
        tape_derivatives(kernel.tape, kernel.names, values)[kernel.tape.outputs[output]] / total
    )
    return {n: (float(slopes[0, i]), float(slopes[1, i])) for i, n in enumerate(kernel.names)}


def tape_values(tape: Tape, numbers: Mapping[str, float]) -> dict[str, float]:
    """The outputs of a tape at one point, by name, with Python's own arithmetic.

    Raises ArithmeticError or ValueError where a node has no value: a division by zero, a logarithm
    of nothing, an overflow.
    """
    values: list[float] = []
    for operation, *operands in tape.nodes:
        if operation == "constant":
            value = operands[0]
        elif operation == "argument":
            value = numbers[operands[0]]
        elif operation == "sum":
            value = sum([values[i] for i in operands[0]]) - sum([values[i] for i in operands[1]])
        elif operation == "product":
            value = 1.0
            for i in operands[0]:
                value *= values[i]
            for i in operands[1]:
                value /= values[i]
        elif operation == "power":
            value = values[operands[0]] ** values[operands[1]]
        elif operation == "maximum":
            value = max([values[i] for i in operands])
        elif operation == "minimum":
            value = min([values[i] for i in operands])
        elif operation == "where":
            value = values[operands[1] if values[operands[0]] else operands[2]]
        else:
            rule = getattr(math, operation, None) or getattr(np, operation)
            value = rule(*(values[i] for i in operands))
        values.append(value)
    return {name: float(values[place]) for name, place in tape.outputs.items()}


def tape_derivatives(
    tape: Tape, names: Sequence[str], numbers: Mapping[str, float]
) -> list[np.ndarray]:
    """d value / d ln argument of every node of a tape, at one point.

    One array a node, shape (2, n_names): to the left, to the right; a column for each argument.
    """
    values: list[float] = []
    slopes: list[np.ndarray] = []
    column = {name: index for index, name in enumerate(names)}
    for operation, *operands in tape.nodes:
        slope = np.zeros((2, len(names)))
        if operation == "constant":
            value = operands[0]
        elif operation == "argument":
            value = float(numbers[operands[0]])
            slope[:, column[operands[0]]] = value
        elif operation in ("sum", "product"):
            rule = _sum if operation == "sum" else _product
            value, slope = rule(operands[0], operands[1], values, slopes)
        elif operation in ("maximum", "minimum"):
            value, slope = _extreme(operation == "maximum", operands, values, slopes)
        elif operation == "where":
            chosen = operands[1] if values[operands[0]] else operands[2]
            value, slope = values[chosen], slopes[chosen]
        elif operation == "power":
            value, slope = _power(operands[0], operands[1], values, slopes)
        else:
            inner = [values[operand] for operand in operands]
            value = float(getattr(np, operation)(*inner))
            if operation in _DERIVATIVES:
                steep, moved = _DERIVATIVES[operation](inner[0], value), slopes[operands[0]]
                # A zero inner slope stays 0, even if the derivative is infinite (square root at 0).
                np.multiply(steep, moved, out=slope, where=moved != 0)
        values.append(value)
        slopes.append(slope)
    return slopes


def _sum(more: Sequence[int], less: Sequence[int], values: list, slopes: list) -> tuple:
    value = sum(values[i] for i in more) - sum(values[i] for i in less)
    slope = sum(slopes[i] for i in more) - sum(slopes[i] for i in less)
    return value, slope


def _product(over: Sequence[int], under: Sequence[int], values: list, slopes: list) -> tuple:
    """Factor by factor, so that a factor of zero needs no division."""
    value: float = 1.0
    slope: np.ndarray | float = 0.0
    for i in over:
        slope = _scaled(slope, values[i]) + _scaled(slopes[i], value)
        value = value * values[i]
    for i in under:
        value = value / values[i] if values[i] else math.copysign(math.inf, value)
        slope = (slope - value * slopes[i]) / values[i] if values[i] else slope * math.nan
    return value, slope


def _scaled(slope: np.ndarray | float, factor: float) -> np.ndarray | float:
    return factor * slope if factor else np.zeros_like(slope)


def _extreme(largest: bool, operands: Sequence[int], values: list, slopes: list) -> tuple:
    pick = max if largest else min
    value = pick(values[i] for i in operands)
    tied = [slopes[i] for i in operands if abs(values[i] - value) <= TIE * abs(value)]
    stacked = np.stack(tied or [slopes[i] for i in operands if values[i] == value])
    rising, falling = (np.max, np.min) if largest else (np.min, np.max)
    return value, np.stack([falling(stacked[:, 0], axis=0), rising(stacked[:, 1], axis=0)])


def _power(base: int, exponent: int, values: list, slopes: list) -> tuple:
    x, n = values[base], values[exponent]
    value = x**n
    slope = n * x ** (n - 1) * slopes[base] if x or n >= 1 else slopes[base] * math.nan
    if np.any(slopes[exponent]):
        slope = slope + value * math.log(x) * slopes[exponent]
    return value, slope


_DERIVATIVES: dict[str, Callable[[float, float], float]] = {
    "negative": lambda x, y: -1.0,
    "exp": lambda x, y: y,
    "log": lambda x, y: 1 / x,
    "sqrt": lambda x, y: 0.5 / y if y else math.inf,
    "expm1": lambda x, y: y + 1,
    "log1p": lambda x, y: 1 / (1 + x),
    "absolute": lambda x, y: math.copysign(1.0, x),
}
