"""Sharing of uplinks by concurrent groups above the leaves of a Clos network or above rails.

Domains stand one after the other, so do the groups; the pattern of groups on leaves repeats, and
its fullest leaf counts. Groups that lie below one leaf share nothing.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, lcm

from topologies.rates.closed_form.closed_form import Shares

Member = tuple[int, int]  # its domain, and the card it has of all


@dataclass(frozen=True)
class Trunk:
    """Bounds on group rates from the uplinks above leaves or rails.

    Attributes
    ----------
    shares
        Per ordered pair of members; infinite where nothing crosses. [byte/s]
    send
        Of each chip to the one half its group away. [byte/s]
    crossed
        Does any group lie below several leaves?
    """

    shares: Shares
    send: float
    crossed: bool


@lru_cache(maxsize=4096)
def clos_trunk(n: int, *, chips: int, leaf: int, above: float) -> Trunk:
    """Groups of `n` over as few domains as hold each, below leaves of `leaf` cards.

    Parameters
    ----------
    chips : int
        Chips of a domain, each with a card.
    above : float
        What leads up from one leaf, and down to it. [byte/s one way]

    Notes
    -----
    Chips of one domain reach each other inside it even where they hang on different leaves. In
    a gather that help is left out, which is on the safe side.
    """
    count = ceil(n / chips)
    groups = [
        _members(n, chips, first * count)
        for first in range(lcm(leaf, count * chips) // (count * chips))
    ]
    return _shared(n, groups, lambda card: card // leaf, above, gathers=True)


@lru_cache(maxsize=4096)
def rail_trunk(n: int, *, chips: int, above: float) -> Trunk:
    """Groups of `n` on rails below spines, where chips do not relay for each other.

    Parameters
    ----------
    above : float
        What leads up from a rail for each of its cards. [byte/s one way]

    Notes
    -----
    A chip reaches other ranks of other domains through the spines alone. A gather may pass
    through other members of a domain, whose links are wider.
    """
    trunk = ceil(n / chips) * above
    group = _members(n, chips, 0)
    return _shared(n, [group], lambda card: card % chips, trunk, gathers=False)


def _members(n: int, chips: int, first: int) -> list[Member]:
    """A group over whole domains from the `first` on, evenly filled."""
    count = ceil(n / chips)
    return [
        (first + d, (first + d) * chips + i)
        for d in range(count)
        for i in range(n // count + (d < n % count))
    ]


def _shared(
    n: int, groups: list[list[Member]], below: Callable[[int], int], above: float, *, gathers: bool
) -> Trunk:
    """Rate of each member where every leaf has `above` of uplink bandwidth each way. [byte/s]"""
    crossing: Counter[int] = Counter()
    leaves: Counter[int] = Counter()
    enters: Counter[int] = Counter()
    sends: Counter[int] = Counter()
    takes: Counter[int] = Counter()
    for members in groups:
        here = Counter(below(card) for _, card in members)
        beside = Counter((d, below(card)) for d, card in members)
        filled = Counter(d for d, _ in members)
        if len(here) == 1:
            continue
        for (d, place), k in beside.items():
            crossing[place] -= k * (filled[d] - k)
        for place, q in here.items():
            crossing[place] += q * (n - q)
            leaves[place] += q
            enters[place] += n - q
        for i, (d, card) in enumerate(members):
            partner, far = members[(i + n // 2) % n]
            if d != partner and below(card) != below(far):
                sends[below(card)] += 1
                takes[below(far)] += 1
    most = max(crossing.values(), default=0)
    heard = max([*leaves.values(), *enters.values()], default=0) if gathers else 0
    sent = max([*sends.values(), *takes.values()], default=0)
    return Trunk(
        Shares(above / most if most else inf, above / heard if heard else inf),
        above / sent if sent else inf,
        most > 0,
    )
