"""A column of a table that has few different values: their numbers, and the values once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class CodedColumn:
    """A column of few different values: `codes` are places in `words`, shape (n,)."""

    codes: np.ndarray
    words: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)
