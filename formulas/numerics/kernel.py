"""A compiled set of definitions, called with numbers or arrays; nothing here needs SymPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from formulas.nomenclature.symbol_error import SymbolError
from formulas.numerics.block_executor import BLOCK, BlockExecutor, PreparedTape, Shape
from formulas.numerics.tape import Tape
from formulas.numerics.trees import refuse_missing, refuse_unknown, symbol_text

_REMEMBERED = 32  # executors per kernel, one for each pattern of argument shapes


class Kernel:
    """A compiled set of definitions: `kernel(B=64, L_ctx=[1e3, 1e4], ...)` -> {name: value}.

    Attributes:
        names: Symbols that a call must give.
        tape: The compiled definitions.
        outputs: Names of the values that a call returns.
    """

    def __init__(self, tape: Tape, names: Sequence[str], block: int = BLOCK) -> None:
        self.names = tuple(names)
        self.outputs = tuple(tape.outputs)
        self.block = block
        self.tape = tape
        # Of no method: a kernel that nothing refers to is freed at once.
        self._executor_of = lru_cache(_REMEMBERED)(partial(_compiled, tape, self.names, block))

    def __call__(self, **values: object) -> dict[str, float | np.ndarray]:
        """Values of the outputs, in float64, broadcast over all arguments.

        Floats when every argument is a number, else arrays of the common shape; an output that
        does not vary along every axis is a read-only view. Raises SymbolError if a symbol is
        missing, unknown, negative or not a number, or an output undefined (0/0, ∞ − ∞) somewhere.
        """
        refuse_unknown(values, self.names)
        refuse_missing(values, self.names)
        arrays = {name: _sound(name, values[name]) for name in self.names}
        executor = self._executor(arrays)
        with np.errstate(all="ignore"):
            results = executor.run(arrays)
        _refuse_undefined(results)
        if not any(array.shape for array in arrays.values()):
            return {name: float(result) for name, result in results.items()}
        return dict(results)

    def prepared(self, varying: Sequence[str], **values: object) -> PreparedKernel:
        """The kernel with all arguments but the `varying` put in, for many calls with those.

        Raises SymbolError as a call does; ValueError if an array has another shape.

        Args:
            varying: Names that each call gives, as arrays of shape (n,).
            values: The other arguments: numbers, or arrays of shape (n,), one value a row.
        """
        fixed = {name: values[name] for name in self.names if name in values}
        refuse_missing({**values, **dict.fromkeys(varying)}, self.names)
        arrays = {name: _sound(name, value) for name, value in fixed.items()}
        rows = {array.shape for array in arrays.values()} - {()}
        if len(rows) > 1 or any(len(shape) > 1 for shape in rows):
            raise ValueError(f"arrays of one shape (n,) are prepared, not {sorted(rows)}")
        shape = rows.pop() if rows else (1,)
        arrays |= dict.fromkeys(varying, np.ones(shape))
        arrays = {name: arrays[name] for name in self.names}
        with np.errstate(all="ignore"):
            ready = self._executor(arrays).prepared(arrays, frozenset(varying))
        return PreparedKernel(self, tuple(varying), shape[0], ready)

    def _executor(self, arrays: Mapping[str, np.ndarray]) -> BlockExecutor:
        """Return the executor for arrays of these shapes; recent executors are cached."""
        shapes = [array.shape for array in arrays.values()]
        return self._executor_of(tuple(tuple([1 if n == 1 else 2 for n in s]) for s in shapes))

    def __getstate__(self) -> dict:
        return {"tape": self.tape, "names": self.names, "block": self.block}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["tape"], state["names"], state["block"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Kernel(({', '.join(self.names)}) -> ({', '.join(self.outputs)}))"


def _compiled(
    tape: Tape, names: Sequence[str], block: int, pattern: tuple[Shape, ...]
) -> BlockExecutor:
    """Compile the executor of a tape for arguments of these shapes."""
    return BlockExecutor(tape, dict(zip(names, pattern, strict=True)), block)


@dataclass(frozen=True, eq=False, repr=False)
class PreparedKernel:
    """A kernel with most arguments bound by `Kernel.prepared`; a call computes only the rest."""

    kernel: Kernel
    varying: tuple[str, ...]
    rows: int
    ready: PreparedTape

    def take(self, rows: np.ndarray) -> PreparedKernel:
        """Restrict the kernel to some rows (an index or a mask); an index may repeat rows."""
        count = int(np.count_nonzero(rows)) if rows.dtype == bool else rows.size
        return PreparedKernel(self.kernel, self.varying, count, self.ready.take(rows))

    def __call__(
        self, outputs: Sequence[str] | None = None, **values: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Compute the outputs (None: all), arrays of shape (n,) equal to those of the kernel.

        Raises SymbolError if a value is negative or not a number, or an output undefined in a row.
        """
        arrays = {name: _sound(name, values[name]) for name in self.varying}
        names = self.kernel.outputs if outputs is None else tuple(outputs)
        with np.errstate(all="ignore"):
            results = self.ready.run(arrays, names)
        _refuse_undefined(results)
        shape = (self.rows,)
        return {
            name: result if result.shape == shape else np.broadcast_to(result, shape)
            for name, result in results.items()
        }


def _sound(name: str, value: object) -> np.ndarray:
    """A value as float64; a number stays one. SymbolError if it is negative or not a number."""
    if type(value) is float and value >= 0:
        return np.float64(value)  # type: ignore[return-value]  # has shape and dtype as an array
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SymbolError(f"{symbol_text(name)} must be a number or an array") from error
    _refuse_negative(name, array)
    return array


def _refuse_negative(name: str, array: np.ndarray) -> None:
    if array.size and not array.min() >= 0:  # which NaN is not either
        what = "is not a number (NaN)" if np.isnan(array).any() else "is negative"
        raise SymbolError(f"{symbol_text(name)} {what}")


def _refuse_undefined(results: Mapping[str, np.ndarray]) -> None:
    for name, result in results.items():
        if np.isnan(result).any():
            raise SymbolError(f"{symbol_text(name)} is undefined (0/0 or ∞ − ∞) at a given point")
