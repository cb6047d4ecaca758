"""Which box of a torus a given number of chips should take.

A slice of its own may close its sides into rings where the machine's optics allow it; a group
inside a slice has a ring only along a side that it fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import ceil, prod

from topologies.fabric.errors import TopologyError
from topologies.rates.closed_form.closed_form import box

__all__ = ["Sides", "best_box", "boxes"]

Sides = tuple[int, ...]


def boxes(dims: Sequence[int], chips: int) -> Iterator[Sides]:
    """Boxes within `dims` that hold `chips`, the last side no longer than it must be."""
    *first, last = dims
    for sides in product(*(range(1, side + 1) for side in first)):
        rest = ceil(chips / prod(sides))
        if rest <= last:
            yield (*sides, rest)


def best_box(
    dims: Sequence[int],
    chips: int,
    links: Sequence[float],
    rings: Callable[[Sides], Sequence[bool]],
    *,
    exact: bool,
) -> Sides:
    """The smallest box for two or more `chips`; of equals where they exchange most, then compact.

    Parameters
    ----------
    links : sequence of float
        Bandwidth of a link along each dimension. [byte/s one way]
    rings : function
        Which sides of a box close into rings.
    exact : bool
        Whether the box must hold no more than `chips`.

    Raises
    ------
    TopologyError
        When no such box fits.
    """
    candidates = [sides for sides in boxes(dims, chips) if not exact or prod(sides) == chips]
    if not candidates:
        whole = "x".join(map(str, dims))
        raise TopologyError(f"box of {chips} chips", f"none fits into {whole}")

    def worth(sides: Sides) -> tuple[int, float, int, Sides]:
        return prod(sides), -box(sides, links, rings(sides)).all_to_all, sum(sides), sides

    return min(candidates, key=worth)
