"""A tape made into two-operand array instructions for a pattern of shapes, run block by block.

Within a sum or product small operands meet first, so that what depends on one axis only is never
expanded; what does not vary along the blocked axes is computed once, before the first block.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, product
from math import prod
from typing import NamedTuple

import numpy as np

from formulas.numerics.tape import Tape

BLOCK = 16_384  # points per block: operands and result of one instruction stay in the cache

Shape = tuple[int, ...]
Instruction = tuple[Callable, int, tuple[int, ...]]
Cuts = tuple[slice, ...]


class Schedule(NamedTuple):
    """Instructions parted by whether their result changes from block to block."""

    blocked: set[int]
    arguments: list[int]
    before: list[Instruction]
    within: list[Instruction]
    dead: list[list[int]]  # after each instruction within, the temporaries no longer needed


class ExecutionPlan(NamedTuple):
    """Instructions parted by whether their result changes with some of the arguments.

    `wanted` are the slots that must be known before those `within` run, `rows` those of them that
    hold arrays.
    """

    arguments: dict[str, int]
    outputs: dict[str, int]
    before: list[Instruction]
    within: list[Instruction]
    wanted: list[int]
    rows: frozenset[int]


@dataclass(frozen=True, eq=False, repr=False)
class PreparedTape:
    """A tape with most of its arguments put in, to be run many times for the others.

    Instructions are those of the whole tape in the same order, so results are the same to the bit;
    those that some `outputs` need are kept in `partial`.
    """

    plan: ExecutionPlan
    values: dict[int, object]
    partial: dict[tuple[str, ...], list[tuple[Instruction, list[int]]]] = field(
        default_factory=dict
    )

    def take(self, rows: np.ndarray) -> PreparedTape:
        """Return a `PreparedTape` restricted to the given rows."""
        values = {
            slot: value[rows] if slot in self.plan.rows else value  # type: ignore[index]
            for slot, value in self.values.items()
        }
        return PreparedTape(self.plan, values, self.partial)

    def run(
        self, arguments: Mapping[str, np.ndarray], outputs: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Compute `outputs` at the varying arguments, arrays with one value per row."""
        plan = self.plan
        if outputs not in self.partial:
            needed = {plan.outputs[name] for name in outputs}
            instructions = []
            for instruction in reversed(plan.within):
                if instruction[1] in needed:
                    needed.update(instruction[2])
                    instructions.append(instruction)
            within = instructions[::-1]
            lasting = {plan.outputs[name] for name in outputs}
            dead = _last_uses(within, lasting)
            self.partial[outputs] = list(zip(within, dead, strict=True))
        count = max((array.size for array in arguments.values()), default=1)
        if count <= BLOCK:
            return self._run_rows(arguments, outputs, dict(self.values))
        results = {name: np.empty(count) for name in outputs}
        for start in range(0, count, BLOCK):
            cut = slice(start, start + BLOCK)
            values = {
                slot: value[cut] if slot in plan.rows else value  # type: ignore[index]
                for slot, value in self.values.items()
            }
            part = {name: array[cut] for name, array in arguments.items()}
            for name, value in self._run_rows(part, outputs, values).items():
                results[name][cut] = value
        return results

    def _run_rows(
        self, arguments: Mapping[str, np.ndarray], outputs: tuple[str, ...], values: dict
    ) -> dict[str, np.ndarray]:
        """Compute the outputs of one block of rows; `values` holds the slots already computed."""
        plan = self.plan
        for name, slot in plan.arguments.items():
            values[slot] = arguments[name]
        for (function, target, sources), dead in self.partial[outputs]:
            if len(sources) == 2:
                values[target] = function(values[sources[0]], values[sources[1]])
            else:
                values[target] = function(*[values[s] for s in sources])
            for slot in dead:
                del values[slot]
        return {name: np.asarray(values[plan.outputs[name]], np.float64) for name in outputs}


class BlockExecutor:
    """Instructions for one tape and one pattern of argument shapes.

    A pattern says along which axes each argument varies (2) or not (1), so that one executor
    serves arrays of any length.
    """

    def __init__(self, tape: Tape, pattern: Mapping[str, Shape], block: int = BLOCK) -> None:
        self._block = block
        self._values: list = []
        self._shapes: list[Shape] = []
        self._arguments: dict[str, int] = {}
        self._instructions: list[Instruction] = []
        self._pairs: dict[tuple, int] = {}
        self._schedule = cache(self._scheduled)  # by the axis
        self._plan = cache(self._planned)  # by the arguments that vary
        self._whole: Shape = np.broadcast_shapes(*pattern.values()) if pattern else ()
        slots: list[int] = []
        for node in tape.nodes:
            slots.append(self._node(node, slots, pattern))
        self.outputs = {name: slots[slot] for name, slot in tape.outputs.items()}

    def run(self, arguments: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values of the outputs; one that does not vary along an axis comes as a read-only view.

        Raises ValueError if the arguments cannot be broadcast against each other.
        """
        shape = _common_shape(arguments)
        axis, step = _cut(shape, self._block)
        schedule = self._schedule(axis)
        values = list(self._values)
        for name, slot in self._arguments.items():
            values[slot] = arguments[name][()]  # a 0-d array becomes a scalar
        _carry_out(schedule.before, values)
        blocked = {n: slot for n, slot in self.outputs.items() if slot in schedule.blocked}
        results = {n: np.empty(_sized(self._shapes[s], shape)) for n, s in blocked.items()}
        if results:
            for where in _blocks(shape, axis, step):
                self._run_block(where, shape, schedule, list(values), results)
        for name, slot in self.outputs.items():
            result = np.asarray(results.get(name, values[slot]), dtype=np.float64)
            results[name] = result if result.shape == shape else np.broadcast_to(result, shape)
        return {name: results[name] for name in self.outputs}

    def _run_block(
        self, where: Cuts, shape: Shape, schedule: Schedule, values: list, results: dict
    ) -> None:
        """All instructions that vary from block to block, for one of them."""
        for slot in schedule.arguments:
            values[slot] = values[slot][_inside(where, self._shapes[slot])]
        full = tuple(len(range(*cut.indices(n))) for cut, n in zip(where, shape, strict=True))
        pool: list[np.ndarray] = []
        for (function, target, sources), dead in zip(schedule.within, schedule.dead, strict=True):
            operands = [values[s] for s in sources]
            if self._shapes[target] == self._whole and isinstance(function, np.ufunc):
                kind = bool if function in _TRUTHS else np.float64
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

    def _scheduled(self, axis: int) -> Schedule:
        """Split the instructions into those before and those within blocks cut along `axis`.

        Axis −1 stands for a single block: everything comes before.
        """
        missing = [len(self._whole) - len(shape) for shape in self._shapes]
        blocked = {
            slot
            for slot, (shape, absent) in enumerate(zip(self._shapes, missing, strict=True))
            if max(shape[: max(0, axis + 1 - absent)], default=1) > 1
        }
        within = [i for i in self._instructions if i[1] in blocked]
        return Schedule(
            blocked,
            [slot for slot in self._arguments.values() if slot in blocked],
            [i for i in self._instructions if i[1] not in blocked],
            within,
            _last_uses(within, set(self.outputs.values())),
        )

    def prepared(
        self, arguments: Mapping[str, np.ndarray], varying: frozenset[str]
    ) -> PreparedTape:
        """Compute all values independent of the `varying` arguments; return the remaining tape.

        For arguments that are numbers or have one axis.
        """
        plan = self._plan(varying)
        values = list(self._values)
        for name, slot in self._arguments.items():
            if name not in varying:
                values[slot] = arguments[name][()]
        _carry_out(plan.before, values)
        return PreparedTape(plan, {slot: values[slot] for slot in plan.wanted})

    def _planned(self, varying: frozenset[str]) -> ExecutionPlan:
        """Plan the instructions that depend on the varying arguments, and the slots they read."""
        changing = {self._arguments[name] for name in varying if name in self._arguments}
        within = []
        for instruction in self._instructions:
            if changing.intersection(instruction[2]):
                changing.add(instruction[1])
                within.append(instruction)
        before = [i for i in self._instructions if i[1] not in changing]
        used = {s for _, _, sources in within for s in sources} | set(self.outputs.values())
        return ExecutionPlan(
            {name: slot for name, slot in self._arguments.items() if name in varying},
            self.outputs,
            before,
            within,
            sorted(used - changing),
            frozenset(slot for slot in used - changing if self._shapes[slot]),
        )

    # -- instructions ---------------------------------------------------------------------------

    def _node(self, node: tuple, slots: Sequence[int], pattern: Mapping[str, Shape]) -> int:
        operation, *operands = node
        if operation == "constant":
            return self._place(np.float64(operands[0]), ())
        if operation == "argument":
            slot = self._place(None, pattern[operands[0]])
            self._arguments[operands[0]] = slot
            return slot
        if operation == "sum":
            return self._fold(operands, slots, np.add, np.subtract, np.negative)
        if operation == "product":
            return self._fold(operands, slots, np.multiply, np.divide, np.reciprocal)
        operand_slots = [slots[operand] for operand in operands]
        function = getattr(np, operation)
        if operation in _CHAINS:
            return self._chain(function, operand_slots)
        return self._instruct(function, *operand_slots)

    def _place(self, value: object, shape: Shape) -> int:
        self._values.append(value)
        self._shapes.append(shape)
        return len(self._values) - 1

    def _instruct(self, function: Callable, *sources: int) -> int:
        key = (function, *sources)
        target = self._pairs.get(key)
        if target is None:
            shape = np.broadcast_shapes(*(self._shapes[s] for s in sources))
            target = self._place(None, shape)
            quick = function if shape else _OF_NUMBERS.get(function, function)
            self._instructions.append((quick, target, sources))
            self._pairs[key] = target
        return target

    def _size(self, slot: int) -> tuple:
        return (prod(self._shapes[slot]), self._shapes[slot])

    def _chain(self, function: Callable, slots: Sequence[int]) -> int:
        first, *others = sorted(slots, key=self._size)
        for slot in others:
            first = self._instruct(function, first, slot)
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


def _carry_out(instructions: Sequence[Instruction], values: list) -> None:
    for function, target, sources in instructions:
        if len(sources) == 2:  # nearly all; to unpack a list takes three times as long
            values[target] = function(values[sources[0]], values[sources[1]])
        else:
            values[target] = function(*[values[s] for s in sources])


def _common_shape(arguments: Mapping[str, np.ndarray]) -> Shape:
    try:
        return np.broadcast_shapes(*{array.shape for array in arguments.values()})
    except ValueError:
        shapes = ", ".join(f"{n} {a.shape}" for n, a in arguments.items() if a.ndim)
        raise ValueError(f"arrays of these shapes do not fit together: {shapes}") from None


def _cut(shape: Shape, block: int) -> tuple[int, int]:
    """The axis to cut and the length of a piece, so that a block holds about `block` points.

    Axis −1 when one block holds all.
    """
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] > block:
            return axis, max(1, block // inner)
        inner *= shape[axis]
    return -1, 1


def _blocks(shape: Shape, axis: int, step: int) -> Iterator[Cuts]:
    """Slices of the whole shape, one tuple for each block."""
    rest = (slice(None),) * (len(shape) - axis - 1)
    for index in product(*(range(size) for size in shape[:axis])):
        single = tuple(slice(i, i + 1) for i in index)
        for start in range(0, shape[axis], step):
            yield (*single, slice(start, start + step), *rest)


def _sized(pattern: Shape, shape: Shape) -> Shape:
    lengths = shape[len(shape) - len(pattern) :]
    return tuple(size if varies > 1 else 1 for size, varies in zip(lengths, pattern, strict=True))


def _last_uses(within: Sequence[Instruction], lasting: set[int]) -> list[list[int]]:
    """For each instruction, the temporaries that nothing needs after it."""
    made = {target for _, target, _ in within}
    seen: set[int] = set()
    dead: list[list[int]] = []
    for _, _, sources in reversed(within):
        last = {s for s in sources if s in made and s not in lasting and s not in seen}
        seen |= last
        dead.append(list(last))
    return dead[::-1]


def _inside(where: Cuts, shape: Shape) -> Cuts:
    cuts = where[len(where) - len(shape) :]
    return tuple(cut if size > 1 else slice(None) for cut, size in zip(cuts, shape, strict=True))


_OF_NUMBERS: dict[Callable, Callable] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
}  # on single numbers a tenth of the time
_CHAINS = frozenset({"maximum", "minimum", "logical_and", "logical_or"})
_TRUTHS = (
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
    *(np.logical_and, np.logical_or, np.logical_not),
)
