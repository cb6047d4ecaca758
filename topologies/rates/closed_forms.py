"""Closed-form rates of all-to-all and all-gather on regular fabrics.

Rates are per ordered pair of members, which is what adds up on a link:

* all-to-all: what each sends to each other one, all pairs at once;
* all-gather: how fast each receives what one other member holds (reduce-scatter is its mirror,
  and all-reduce is the two in turn).

Upper bounds are cuts and hop counts; that they are reached is held by tests against a linear
program and a maximum flow.

Also the best box of a torus for a number of chips.

A slice of its own may close its sides into rings where the machine's optics allow it; a group
inside a slice has a ring only along a side that it fills.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from topologies.fabric.limits import TopologyError


@dataclass(frozen=True)
class Shares:
    """Rates per ordered pair of members. [byte/s]"""

    all_to_all: float
    all_gather: float


def switch(members: int, up: float) -> Shares:
    """One non-blocking switch: what leaves a chip is shared by the other members."""
    return Shares(up / (members - 1), up / (members - 1))


def mesh(link: float) -> Shares:
    """Full mesh: every pair has its own link, for every size of the group."""
    return Shares(link, link)


def box(sides: Sequence[int], links: Sequence[float], rings: Sequence[bool]) -> Shares:
    """A box of forwarding chips, each side a ring or an open line.

    Args:
        sides, links, rings: Chips, bandwidth of a link [byte/s one way] and whether the ends are
            joined, for each dimension. A side of two has one link whether or not it is a ring.

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
    """Diameter of a box: links between its two farthest chips."""
    return sum(k // 2 if ring else k - 1 for k, ring in zip(sides, rings, strict=True))


def multi_domain_rates(
    members: int, *, least: int, most: int, out: float, smallest: Shares, largest: Shares
) -> Shares:
    """A group spread over several domains that non-blocking rails of network cards join.

    Args:
        members, least, most: Chips in the group, and in those of its domains that hold fewest and
            most of them.
        out: Bandwidth of one chip's network card. [byte/s one way]
        smallest, largest: What the group's part of such a domain reaches inside (not looked at for
            a single chip).

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


def twisted_torus_rates(sides: Sequence[int], link: float) -> Shares:
    """A twisted torus of sides k and 2k with links of one rate; chips relay.

    The fabric looks the same from every chip and along every link, so traffic averaged over its
    symmetries fills all links alike, and on shortest paths it fills as few as can be: theta is
    the capacity of all links over the sum of the distances of all ordered pairs. Who comes back
    round a short side is k farther along every long one, so a distance is the least sum of steps
    over the turns round each side. All-gather: what enters one chip, 2 B a dimension.
    """
    n, far = prod(sides), sum(_distances(sides))
    ports = 2 * len(sides)
    return Shares(ports * link * n / (n * far), ports * link / (n - 1))


def twisted_diameter(sides: Sequence[int]) -> int:
    """Diameter of a twisted torus: links between its two farthest chips."""
    return max(_distances(sides))


def _distances(sides: Sequence[int]) -> list[int]:
    """From one chip of a twisted torus to each, itself included."""
    short = min(sides)
    ways = []  # how much farther each side is walked, by the turns round each
    for turns in product((-1, 0, 1), repeat=len(sides)):
        shift = sum(turn for turn, k in zip(turns, sides, strict=True) if k == short) * short
        around = zip(turns, sides, strict=True)
        ways.append([turn * k + (0 if k == short else shift) for turn, k in around])
    places = product(*map(range, sides))
    return [
        min(sum(abs(x + y) for x, y in zip(place, way, strict=True)) for way in ways)
        for place in places
    ]


BoxSides = tuple[int, ...]


def boxes(dims: Sequence[int], chips: int) -> list[BoxSides]:
    """Boxes within `dims` that hold `chips`, no side longer than those before it leave needed."""
    *first, last = dims
    parts: list[tuple[BoxSides, int]] = [((), chips)]  # first sides, and what the others must hold
    for most in first:
        parts = [((*sides, k), -(-left // k)) for sides, left in parts
                 for k in range(1, min(most, left) + 1)]  # fmt: skip
    return [(*sides, left) for sides, left in parts if left <= last]


def best_box(
    dims: Sequence[int],
    chips: int,
    links: Sequence[float],
    rings: Callable[[BoxSides], Sequence[bool]],
    *,
    exact: bool,
) -> BoxSides:
    """The smallest box for two or more `chips`; of equals where they exchange most, then compact.

    Raises TopologyError when no such box fits.

    Args:
        links: Bandwidth of a link along each dimension. [byte/s one way]
        rings: Which sides of a box close into rings.
        exact: Whether the box must hold no more than `chips`.
    """
    candidates = [sides for sides in boxes(dims, chips) if not exact or prod(sides) == chips]
    if not candidates:
        whole = "x".join(map(str, dims))
        raise TopologyError(f"box of {chips} chips", f"none fits into {whole}")

    # In shares of the fastest link, rounded: which of two equals is taken hangs on no rounding.
    shares = [link / max(links) for link in links]

    def worth(sides: BoxSides) -> tuple[int, float, int, BoxSides]:
        exchange = round(box(sides, shares, rings(sides)).all_to_all, 12)
        return prod(sides), -exchange, sum(sides), sides

    return min(candidates, key=worth)
