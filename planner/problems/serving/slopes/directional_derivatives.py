"""Slopes of the serving equations at one point, in the direction of each given, branch by branch.

A given is several symbols that move together, each by its own power; the tape of the equations is
rewritten so that the given itself is an argument. Where two branches of a Max tie, the slopes to
the left and to the right then differ by what the branches do, whatever their symbols do apart.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from formulas.numerics.slopes import tape_derivatives, tape_values
from formulas.numerics.tape import Tape

BATCH = "B"

Directions = Mapping[str, Mapping[str, float]]
"""{given: {symbol: d ln symbol / d ln given}}"""


def without_ceilings(tape: Tape) -> Tape:
    """Tape without ceilings of batch-dependent terms (continuous number of sequences)."""
    nodes: list[tuple] = []
    places: list[int] = []
    depends: list[bool] = []
    unit = _append(nodes, ("constant", 1.0))
    for operation, *operands in tape.nodes:
        inner = _inner(operation, operands)
        moves = (operation, *operands) == ("argument", BATCH) or any(depends[i] for i in inner)
        node = _renumbered(operation, operands, places)
        if operation == "ceil" and moves:
            node = ("maximum", node[1], unit)
        places.append(_append(nodes, node))
        depends.append(moves)
    return Tape(nodes, {name: places[place] for name, place in tape.outputs.items()})


def symbol_slopes(directions: Directions, symbol: str) -> np.ndarray:
    """d ln symbol / d ln of every given, shape (n_givens,)."""
    return np.array([moved.get(symbol, 0.0) for moved in directions.values()])


def evaluate_tape(tape: Tape, row: Mapping[str, float], batch: float) -> dict[str, float]:
    """The outputs of a tape with a batch."""
    return tape_values(tape, {**row, BATCH: batch})


def differentiate_tape(
    tape: Tape, row: Mapping[str, float], batch: float, directions: Directions
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Values of the outputs, and d ln output / d ln of every given, last of the batch.

    Slopes are of shape (2, n_givens + 1): to the left, to the right; zero where the value is.
    """
    names = [*directions, BATCH]
    turned = _turned(tape, row, directions)
    values = evaluate_tape(tape, row, batch)
    slopes = tape_derivatives(turned, names, {**dict.fromkeys(directions, 1.0), BATCH: batch})
    elasticities = {
        name: slopes[place] / values[name] if values[name] else np.zeros((2, len(names)))
        for name, place in turned.outputs.items()
    }
    return values, elasticities


def _turned(tape: Tape, row: Mapping[str, float], directions: Directions) -> Tape:
    """The tape at one point: symbols are constants times powers of the givens that move them."""
    powers: dict[str, list[tuple[str, float]]] = {}
    for direction, moved in directions.items():
        for symbol, power in moved.items():
            powers.setdefault(symbol, []).append((direction, power))
    nodes: list[tuple] = []
    places: list[int] = []
    arguments = {name: _append(nodes, ("argument", name)) for name in (*directions, BATCH)}
    for operation, *operands in tape.nodes:
        if operation != "argument":
            places.append(_append(nodes, _renumbered(operation, operands, places)))
        elif operands[0] == BATCH:
            places.append(arguments[BATCH])
        else:
            place = _append(nodes, ("constant", float(row[operands[0]])))
            factors = [place]
            for direction, power in powers.get(operands[0], ()):
                exponent = _append(nodes, ("constant", power))
                factors.append(_append(nodes, ("power", arguments[direction], exponent)))
            alone = len(factors) == 1
            places.append(place if alone else _append(nodes, ("product", tuple(factors), ())))
    return Tape(nodes, {name: places[place] for name, place in tape.outputs.items()})


def _append(nodes: list[tuple], node: tuple) -> int:
    nodes.append(node)
    return len(nodes) - 1


def _inner(operation: str, operands: Sequence) -> list[int]:
    if operation in ("constant", "argument"):
        return []
    if operation in ("sum", "product"):
        return [*operands[0], *operands[1]]
    return list(operands)


def _renumbered(operation: str, operands: Sequence, places: Sequence[int]) -> tuple:
    if operation in ("constant", "argument"):
        return (operation, *operands)
    if operation in ("sum", "product"):
        return (operation, *(tuple(places[i] for i in group) for group in operands))
    return (operation, *(places[i] for i in operands))
