"""Which of many equal things are drawn, so that a large fabric stays a picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["SIZES", "Gap", "Size", "chosen", "shown"]


@dataclass(frozen=True)
class Size:
    """How much is drawn: chips in all, domains, switches of one row, places along a torus' side."""

    chips: int
    domains: int
    row: int
    side: int


# Tried in turn until the picture has few enough marks.
SIZES = (Size(36, 4, 9, 8), Size(28, 4, 8, 5), Size(20, 3, 6, 4), Size(12, 3, 4, 3))


@dataclass(frozen=True, eq=False)
class Gap:
    """More of the same, not drawn; each gap is itself alone."""

    items: tuple[Any, ...]

    @property
    def count(self) -> int:
        """How many are left out."""
        return len(self.items)


def chosen(items: Sequence[Any], limit: int, must: Collection[Any] = ()) -> list[Any]:
    """At most `limit` of the items in their order, with a `Gap` wherever some are left out.

    Those that `must` be there come first, then the first ones, and the last.
    """
    limit = max(limit, 2)
    if len(items) <= limit:
        return list(items)
    wanted = [i for i, item in enumerate(items) if item in must][: limit - 1]
    keep = dict.fromkeys([*wanted, len(items) - 1])
    for i in range(len(items)):
        if len(keep) >= limit - 1:
            break
        keep.setdefault(i)
    found: list[Any] = []
    before = -1
    for i in sorted(keep):
        left_out = i - before - 1
        if left_out == 1:
            found.append(items[i - 1])
        elif left_out:
            found.append(Gap(tuple(items[before + 1 : i])))
        found.append(items[i])
        before = i
    return found


def shown(items: Iterable[Any]) -> list[Any]:
    """The items themselves, without the gaps."""
    return [item for item in items if not isinstance(item, Gap)]
