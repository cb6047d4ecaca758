"""A difference split over the changes that made it.

Shapley: each change bears the mean of what it adds over every order in which the changes may be
made one by one. Where some scenario in between has no value (no plan keeps its promises, or its
keys contradict each other) the mean is over the orders in which every one has. (L. S. Shapley,
A value for n-person games, 1953.)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Values = Mapping[int, Sequence[float] | None]  # of sets of changes, as bits; None without a value
MOST = 10  # changes of which every set is looked at


@dataclass(frozen=True)
class Split:
    """What each group of changes adds, in each measured number; the groups in order.

    `orders` is over how many orders the mean was taken.
    """

    groups: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[float, ...], ...]
    orders: int


def shapley(count: int, values: Values) -> Split | None:
    """The mean over every order in which each step has a value; None where no order has.

    `values` are those of all sets of `count` changes, by their bits. The parts sum to the whole.
    """
    whole = (1 << count) - 1
    begun, ended = _orders(count, values)
    if not begun[whole]:
        return None
    size = len(values[whole] or ())
    terms: list[list[list[float]]] = [[[] for _ in range(size)] for _ in range(count)]
    for have in range(whole + 1):
        for change in range(count):
            then = have | 1 << change
            weight = 0 if then == have else begun[have] * ended[then]
            first, second = values[have], values[then]
            if not weight or first is None or second is None:
                continue
            for number in range(size):
                step = second[number] - first[number]
                terms[change][number].append(step * (weight / begun[whole]))
    parts = tuple(tuple(map(math.fsum, each)) for each in terms)
    return Split(tuple((change,) for change in range(count)), parts, begun[whole])


def _orders(count: int, values: Values) -> tuple[list[int], list[int]]:
    """In how many orders each set is come to, and gone on from, over sets that have a value."""
    whole = (1 << count) - 1
    begun, ended = [0] * (whole + 1), [0] * (whole + 1)
    begun[0] = ended[whole] = 1
    for have in range(1, whole + 1):
        if values[have] is not None:
            begun[have] = sum(begun[have & ~(1 << x)] for x in range(count) if have >> x & 1)
    for have in range(whole - 1, -1, -1):
        if values[have] is not None:
            ended[have] = sum(ended[have | 1 << x] for x in range(count) if not have >> x & 1)
    return begun, ended


def in_order(count: int, value: Callable[[int], Sequence[float] | None]) -> Split:
    """What each change adds when they are made in their order.

    A change after which there is no value is taken together with those that follow it.
    """
    groups: list[tuple[int, ...]] = []
    parts: list[tuple[float, ...]] = []
    before, have, group = value(0), 0, ()  # type: Sequence[float] | None, int, tuple[int, ...]
    for change in range(count):
        have, group = have | 1 << change, (*group, change)
        after = value(have)
        if after is not None and before is not None:
            groups.append(group)
            parts.append(tuple(b - a for a, b in zip(before, after, strict=True)))
            before, group = after, ()
    return Split(tuple(groups), tuple(parts), 1)
