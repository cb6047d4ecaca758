"""Closed forms: how fast n accelerators can all talk at once on the fabrics that have a formula.

Rates are per ordered pair of members, which is what adds up on a link:

* all-to-all: what each sends to each other one, all pairs at once;
* all-gather: how fast each receives what one other member holds (reduce-scatter is its mirror,
  and all-reduce is the two in turn).

Upper bounds are cuts and hop counts; that they are reached is held by tests against a linear
program and a maximum flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

__all__ = ["Shares", "box", "box_diameter", "joined", "mesh", "switch"]


@dataclass(frozen=True)
class Shares:
    """Rates per ordered pair of members. [byte/s]"""

    all_to_all: float
    all_gather: float


def switch(members: int, up: float) -> Shares:
    """One non-blocking switch: what leaves a chip is shared by the other members."""
    return Shares(up / (members - 1), up / (members - 1))


def mesh(link: float) -> Shares:
    """A full mesh: every pair has a link of its own, whatever the size of the group."""
    return Shares(link, link)


def box(sides: Sequence[int], links: Sequence[float], rings: Sequence[bool]) -> Shares:
    """A box of forwarding chips, each side a ring or an open line.

    Parameters
    ----------
    sides, links, rings
        Chips, bandwidth of a link [byte/s one way] and whether the ends are joined, for each
        dimension. A side of two has one link whether or not it is a ring.

    Notes
    -----
    All-to-all: half of a side of k sends to the other half across 1 (line) or 2 (ring) links in
    each row, so theta <= w B k / (N floor(k**2 / 4)); for an odd ring the same number follows
    from its sum of distances. Routing one dimension after the other reaches the least of these.

    All-gather: a cut around c chips lets in what the N - c others hold. Of all boxes the worst
    are those that are one chip wide or full in every dimension.
    """
    n = prod(sides)
    long = [
        (k, B, 2 if ring and k > 2 else 1)
        for k, B, ring in zip(sides, links, rings, strict=True)
        if k > 1
    ]
    theta = min(w * B * k / (n * (k * k // 4)) for k, B, w in long)
    cuts = []
    for full in product((False, True), repeat=len(long)):
        inside = prod(k for (k, _, _), whole in zip(long, full, strict=True) if whole)
        if inside < n:
            enter = sum(w * B for (_, B, w), whole in zip(long, full, strict=True) if not whole)
            cuts.append(inside * enter / (n - inside))
    return Shares(theta, min(cuts))


def box_diameter(sides: Sequence[int], rings: Sequence[bool]) -> int:
    """Links between the two chips of a box that are farthest apart."""
    return sum(k // 2 if ring else k - 1 for k, ring in zip(sides, rings, strict=True))


def joined(
    members: int, *, least: int, most: int, out: float, smallest: Shares, largest: Shares
) -> Shares:
    """A group spread over several domains that non-blocking rails of network cards join.

    Parameters
    ----------
    members, least, most : int
        Chips in the group, and in those of its domains that hold fewest and most of them.
    out : float
        Bandwidth of one chip's network card. [byte/s one way]
    smallest, largest : Shares
        What the group's part of such a domain reaches inside (not looked at for a single chip).

    Notes
    -----
    A chip of the smallest part sends to n - g others through its own card: theta <= b/(n - g).
    A rail joins the chips of equal place, so what goes to another place crosses the domain
    first: every pair inside carries n/g times its own traffic. With a switch of rate B inside
    this is B/((g - 1)(1 + (n - g)/g)). All-gather is bounded by what enters one chip,
    (B + b)/(n - 1), and by what enters the smallest part, g b/(n - g). With cards faster than
    the scale-up links the cut around a rail, not looked at here, is narrower.
    """
    theta = out / (members - least)
    if most > 1:
        theta = min(theta, largest.all_to_all * least / members)
    enter = smallest.all_gather * (least - 1) if least > 1 else 0.0
    alpha = min((enter + out) / (members - 1), least * out / (members - least))
    return Shares(theta, alpha)
