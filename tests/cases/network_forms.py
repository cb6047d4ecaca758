"""Closed-form rates of whole networks: planes of switches, rails, Clos networks. [byte/s]"""

from __future__ import annotations

from collections.abc import Sequence

from topologies.rates.closed_forms import Shares, switch


def planes(members: int, switches: int, link: float) -> Shares:
    """Several switches, each with a link of every chip: as one switch with all of them.

    Notes
    -----
    Every pair sends an equal part through each plane, which fills a chip's links alike; no chip
    can do better than to send at the sum of its links.
    """
    return switch(members, switches * link)


def rails(
    nodes: int,
    chips: int,
    *,
    up: float,
    out: float,
    relay: bool = True,
    oversubscription: float | None = None,
) -> Shares:
    """All chips of nodes on a switch each, whose cards hang on the rail of their rank.

    Parameters
    ----------
    nodes, chips : int
        Nodes, and chips of each: two or more chips in all.
    up, out : float
        Of a chip into its node's switch, and of its card. [byte/s one way]
    relay : bool
        Whether chips pass on what is not theirs. Without a spine above the rails they must.
    oversubscription : float, optional
        o of o:1 between a rail and the spines above it; none without a spine.

    Notes
    -----
    Of n = m g chips each sends to n - g others through its card: theta <= b/(n - g). What
    changes rank, m (g - 1) of a chip's pairs, crosses a node's switch, or a spine: theta <=
    (B + b/o)/(m (g - 1)), without the second term if there is no spine. What stays in the node
    may leave a full switch for the spine, but then takes the card: theta <= (B + b)/(n - 1).
    If chips do not relay, what goes to another rank of another node has the spine alone: theta
    <= b/(o (m - 1)(g - 1)). The shares of the two ways can be chosen whenever all these hold.

    All-gather: around a chip, a node, and a rail enter B + b, g b and m (B + b/o), for the
    n - 1, n - g and n - m others.
    """
    m, g, n = nodes, chips, nodes * chips
    spine = 0.0 if oversubscription is None else out / oversubscription
    thetas, cuts = [], []
    if m > 1:
        thetas.append(out / (n - g))
        cuts.append(g * out / (n - g))
    if g > 1:
        thetas.append((up + spine) / (m * (g - 1)))
        cuts.append(m * (up + spine) / (n - m))
    if m > 1 and g > 1:
        cuts.append((up + out) / (n - 1))
        if oversubscription is not None:
            thetas.append((up + out) / (n - 1))
            if not relay:
                thetas.append(spine / ((m - 1) * (g - 1)))
    return Shares(min(thetas), min(cuts))


def clos(
    members: int,
    *,
    out: float,
    leaf: int,
    oversubscription: Sequence[float] = (1.0,),
    pod: int | None = None,
    chips: int = 1,
    up: float = 0.0,
) -> Shares:
    """All chips below a Clos network of two or three levels, whole domains below a leaf.

    Parameters
    ----------
    members : int
        Chips in all.
    out : float
        Of a chip's card. [byte/s one way]
    leaf : int
        Cards on one leaf, a multiple of `chips`; the last leaf may have fewer.
    oversubscription : sequence of float
        o of o:1 above leaves and, with three levels, above pods.
    pod : int, optional
        Leaves in a pod.
    chips : int
        Chips of one domain on a switch of its own; 1 if they come alone.
    up : float
        Of a chip into that switch. [byte/s one way]

    Notes
    -----
    Each part of q chips sends to n - q others across what leads out of it: a domain through
    its cards q b, a leaf through q b and at most its trunks leaf b/o, a pod through those of
    its leaves and at most its own pod leaf b/(o o'). So theta <= cut/(q (n - q)), and
    all-gather hears n - q others through it: alpha <= cut/(n - q). Around one chip there are
    its card and its link into the domain: theta, alpha <= (B + b)/(n - 1). What the switch of a
    domain cannot carry goes out and comes back, which is why it is no bound of its own.
    """
    n = members
    trunk = leaf * out / oversubscription[0]
    fills = [min(leaf, n - first) for first in range(0, n, leaf)]
    parts = [(1, up + out if chips > 1 else out), (chips, chips * out)]
    parts += [(q, min(trunk, q * out)) for q in set(fills)]
    if pod is not None:
        beyond = pod * trunk / oversubscription[1]
        for first in range(0, len(fills), pod):
            inside = fills[first : first + pod]
            enter = sum(min(trunk, q * out) for q in inside)
            parts.append((sum(inside), min(beyond, enter)))
    bound = [(q, cut) for q, cut in parts if q < n]
    return Shares(
        min(cut / (q * (n - q)) for q, cut in bound), min(cut / (n - q) for q, cut in bound)
    )
