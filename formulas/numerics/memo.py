"""Functions of columns that give the same for the same numbers, looked up where they stand again.

Neighbouring questions differ in a price, a promise or a length, and then ask for the same groups
of the same network. A column counts by its numbers and their type, everything else as in a
dictionary; what is given is shared, so that its columns can only be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
MOST_ANSWERS = 128  # of one function, the latest asked for
LONGEST = 4096  # rows of a column that is kept; longer ones are computed each time


class ColumnKey(NamedTuple):
    """An array (n,) by its numbers."""

    dtype: str
    numbers: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> ColumnKey:
        """The column of an array (n,)."""
        return cls(array.dtype.str, array.tobytes())

    @property
    def array(self) -> np.ndarray:
        """The array again, read-only."""
        return np.frombuffer(self.numbers, self.dtype)


def by_columns(function: Callable[P, T]) -> Callable[P, T]:
    """The same function of hashable values and arrays (n,), remembering its latest answers.

    The function gives an array, or a dataclass of arrays, and depends on nothing else; what it
    raises, or gives to arguments by name, is not remembered.
    """
    compute: Callable[..., T] = function

    @lru_cache(maxsize=MOST_ANSWERS)
    def remembered(*key: object) -> T:
        answer = compute(*(each.array if isinstance(each, ColumnKey) else each for each in key))
        parts = [getattr(answer, f.name) for f in fields(answer)] if is_dataclass(answer) else []
        for part in (answer, *parts):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return answer

    @wraps(function)
    def looked_up(*arguments: P.args, **named: P.kwargs) -> T:
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        if named or any(each.ndim != 1 or each.size > LONGEST for each in arrays):
            return function(*arguments, **named)
        return remembered(
            *(ColumnKey.of(each) if isinstance(each, np.ndarray) else each for each in arguments)
        )

    return looked_up
