"""A tape made into two-operand array instructions for the shapes at hand, run block by block.

Within a sum or product small operands meet first, so that what depends on one axis only is never
expanded; what does not vary along the blocked axes is computed once, before the first block.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, product
from math import prod

import numpy as np

from formulas.lowering import Tape

__all__ = ["BLOCK", "Programme"]

BLOCK = 16_384  # points per block: operands and result of one instruction stay in the cache

Shape = tuple[int, ...]
Instruction = tuple[Callable, int, tuple[int, ...]]


class Programme:
    """Instructions for one tape and one tuple of argument shapes (all of equal length)."""

    def __init__(self, tape: Tape, shapes: Mapping[str, Shape], block: int = BLOCK) -> None:
        self.shape: Shape = np.broadcast_shapes(*shapes.values()) if shapes else ()
        self._values: list = []
        self._shapes: list[Shape] = []
        self._arguments: dict[str, int] = {}
        self._instructions: list[Instruction] = []
        self._pairs: dict[tuple, int] = {}
        slots: list[int] = []
        for node in tape.nodes:
            slots.append(self._node(node, slots, shapes))
        self.outputs = {name: slots[slot] for name, slot in tape.outputs.items()}
        self._axis, self._step = _cut(self.shape, block)
        blocked = {i for i, shape in enumerate(self._shapes) if self._varies(shape)}
        self._before = [i for i in self._instructions if i[1] not in blocked]
        self._within = [i for i in self._instructions if i[1] in blocked]
        self._blocked = blocked
        self._dead = self._last_uses()

    def run(self, arguments: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values of the outputs; one that does not vary along an axis comes as a read-only view."""
        values = list(self._values)
        for name, slot in self._arguments.items():
            values[slot] = arguments[name][()]  # a number, where there is only one
        for function, target, sources in self._before:
            values[target] = function(*[values[s] for s in sources])
        results = {
            name: np.empty(self._shapes[slot])
            for name, slot in self.outputs.items()
            if slot in self._blocked
        }
        if self._within or results:
            for where in self._blocks():
                self._run_block(where, list(values), results)
        whole = {}
        for name, slot in self.outputs.items():
            found = results.get(name, values[slot])
            whole[name] = np.broadcast_to(np.asarray(found, dtype=np.float64), self.shape)
            if name in results and self._shapes[slot] == self.shape:
                whole[name] = found
        return whole

    def _run_block(self, where: tuple[slice, ...], values: list, results: dict) -> None:
        for slot in self._arguments.values():
            if slot in self._blocked:
                values[slot] = values[slot][_inside(where, self._shapes[slot])]
        full = tuple(
            len(range(*cut.indices(size))) for cut, size in zip(where, self.shape, strict=True)
        )
        pool: list[np.ndarray] = []
        for (function, target, sources), dead in zip(self._within, self._dead, strict=True):
            operands = [values[s] for s in sources]
            if self._shapes[target] == self.shape and isinstance(function, np.ufunc):
                kind = bool if function in _TRUTHS.values() else np.float64
                buffer = pool.pop() if pool and kind is np.float64 else np.empty(full, kind)
                values[target] = function(*operands, out=buffer)
            else:
                values[target] = function(*operands)
            for slot in dead:
                if values[slot].dtype == np.float64 and values[slot].shape == full:
                    pool.append(values[slot])
                values[slot] = None
        for name, result in results.items():
            slot = self.outputs[name]
            result[_inside(where, self._shapes[slot])] = values[slot]

    def _blocks(self) -> Iterator[tuple[slice, ...]]:
        """Slices of the whole shape, one tuple for each block."""
        if not self.shape:
            return
        outer = [range(size) for size in self.shape[: self._axis]]
        rest = (slice(None),) * (len(self.shape) - self._axis - 1)
        for index in product(*outer):
            single = tuple(slice(i, i + 1) for i in index)
            for start in range(0, self.shape[self._axis], self._step):
                yield (*single, slice(start, start + self._step), *rest)

    def _varies(self, shape: Shape) -> bool:
        """Whether a value of that shape changes from block to block."""
        if prod(self.shape) == prod(self.shape[self._axis + 1 :]) * self._step:
            return False  # one block: all is computed before it
        return any(size > 1 for size in shape[: self._axis + 1])

    def _last_uses(self) -> list[list[int]]:
        """For each instruction within a block, the temporaries that nothing needs after it."""
        made = {target for _, target, _ in self._within}
        kept = set(self.outputs.values())
        seen: set[int] = set()
        dead: list[list[int]] = []
        for _, _, sources in reversed(self._within):
            last = {s for s in sources if s in made and s not in kept and s not in seen}
            seen |= last
            dead.append(list(last))
        return dead[::-1]

    # -- instructions ---------------------------------------------------------------------------

    def _node(self, node: tuple, slots: Sequence[int], shapes: Mapping[str, Shape]) -> int:
        operation, *operands = node
        if operation == "constant":
            return self._place(np.float64(operands[0]), ())
        if operation == "argument":
            slot = self._place(None, shapes[operands[0]])
            self._arguments[operands[0]] = slot
            return slot
        if operation == "sum":
            return self._fold(operands, slots, np.add, np.subtract, np.negative)
        if operation == "product":
            return self._fold(operands, slots, np.multiply, np.divide, np.reciprocal)
        given = [slots[operand] for operand in operands]
        function = _FUNCTIONS[operation]
        if operation in _CHAINS:
            return self._chain(function, given)
        return self._instruct(function, *given)

    def _place(self, value: object, shape: Shape) -> int:
        self._values.append(value)
        self._shapes.append(shape)
        return len(self._values) - 1

    def _instruct(self, function: Callable, *sources: int) -> int:
        key = (function, *sources)
        found = self._pairs.get(key)
        if found is None:
            shape = np.broadcast_shapes(*(self._shapes[s] for s in sources))
            found = self._place(None, shape)
            quick = function if shape else _OF_NUMBERS.get(function, function)
            self._instructions.append((quick, found, sources))
            self._pairs[key] = found
        return found

    def _size(self, slot: int) -> tuple:
        return (prod(self._shapes[slot]), self._shapes[slot])

    def _chain(self, function: Callable, given: Sequence[int]) -> int:
        first, *others = sorted(given, key=self._size)
        for other in others:
            first = self._instruct(function, first, other)
        return first

    def _fold(
        self, groups: Sequence, slots: Sequence[int], do: Callable, undo: Callable, turn: Callable
    ) -> int:
        """Sum or product of `groups[0]` with the inverses of `groups[1]`, small operands first."""
        signed = [(slots[s], True) for s in groups[0]] + [(slots[s], False) for s in groups[1]]
        signed.sort(key=lambda pair: self._size(pair[0]))
        result: int | None = None
        for _, group in groupby(signed, key=lambda pair: self._shapes[pair[0]]):
            alike = list(group)
            over = [slot for slot, up in alike if up]
            under = [slot for slot, up in alike if not up]
            if over:
                part = self._chain(do, over)
                result = part if result is None else self._instruct(do, result, part)
            if under:
                part = self._chain(do, under)
                result = (
                    self._instruct(turn, part)
                    if result is None
                    else self._instruct(undo, result, part)
                )
        if result is None:
            raise ValueError("an empty sum or product")
        return result


def _cut(shape: Shape, block: int) -> tuple[int, int]:
    """The axis to cut and the length of a piece, so that a block holds about `block` points."""
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] > block:
            return axis, max(1, block // inner)
        inner *= shape[axis]
    return 0, shape[0] if shape else 1


def _inside(where: tuple[slice, ...], shape: Shape) -> tuple[slice, ...]:
    """The block's slices for an array that may have length one, or fewer axes."""
    cuts = where[len(where) - len(shape) :]
    return tuple(cut if size > 1 else slice(None) for cut, size in zip(cuts, shape, strict=True))


_OF_NUMBERS: dict[Callable, Callable] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
}  # on single numbers a tenth of the time
_CHAINS = frozenset({"maximum", "minimum", "logical_and", "logical_or"})
_TRUTHS: dict[str, np.ufunc] = {
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}
_FUNCTIONS: dict[str, Callable] = _TRUTHS | {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exp": np.exp,
    "log": np.log,
    "ceil": np.ceil,
    "floor": np.floor,
    "absolute": np.absolute,
    "sqrt": np.sqrt,
    "power": np.power,
    "negative": np.negative,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "where": np.where,
}
