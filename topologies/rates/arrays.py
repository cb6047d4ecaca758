"""Arrays of the rate engines, by what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
SparseMatrix: TypeAlias = "csr_array[np.float64, tuple[int, int]]"
