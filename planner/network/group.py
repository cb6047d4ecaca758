"""A group of chips that talk: how fast its network is, and which algorithms it may use."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from formulas.numerics.store import cached_kernel
from planner.catalogue.collective_curves import ANY_CHIP, collectives
from planner.text.errors import CatalogueError, did_you_mean
from topologies import Machine, group_rate

if TYPE_CHECKING:
    from formulas.numerics.kernel import Kernel
    from topologies.fabric.fabric import Fabric

# Each with the equation of its traffic, in `formulas.network.collectives`.
OPERATIONS = {
    "all-reduce": "all_reduce_traffic",
    "all-gather": "all_gather_traffic",
    "reduce-scatter": "all_gather_traffic",
    "all-to-all": "all_to_all_traffic",
    "dispatch": "all_to_all_traffic",
    "combine": "all_to_all_traffic",
}
EXCHANGES = ("dispatch", "combine")
# Largest group that is offered an algorithm by default, over the largest measured group.
MAX_GROUP_EXTRAPOLATION = 2
INTRA_DOMAIN_ALGORITHMS: dict[str, tuple[str, ...]] = {
    "all-reduce": ("ring", "fused"),
    "all-gather": ("ring",),
    "reduce-scatter": ("ring",),
    "all-to-all": ("pairwise",),
    "dispatch": ("nvlink-two-sided", "deepep-low-latency"),
    "combine": ("nvlink-two-sided", "deepep-low-latency"),
}
INTER_DOMAIN_ALGORITHMS = ("deepep-low-latency", "deepep-normal")
# Within domains and between them, as an optimal gather goes; a ring sends all of it across.
TWO_LEVEL = "two-level"
# Two-level algorithm for long messages, which the library sends in pieces, as in prefill.
LONG_MESSAGE = "long"


@dataclass(frozen=True)
class Group:
    """A group of `n` chips of one kind.

    Attributes:
        chip: The catalogue's name of the chip, or anything else where it is not known.
        domains: Scale-up domains the group touches.
        all_to_all, all_gather: Rates of each chip, one way, as `topologies.GroupRate` defines them.
            [byte/s]
        reduces: Whether the switch adds up what an all-reduce of this group sends.
        inside: The chips of a group over several domains that share the fullest of them.
        ring: Bus bandwidth of rings through it, where that was looked for. [byte/s]
    """

    chip: str
    n: int
    domains: int
    all_to_all: float
    all_gather: float
    reduces: bool = False
    inside: Group | None = None
    ring: float | None = None

    @property
    def family(self) -> str:
        """The family of the chip, `any` where it has none."""
        return collectives().families.get(self.chip, ANY_CHIP)

    def rate(self, operation: str, algorithm: str = "") -> float:
        """Rate of each chip in an operation [byte/s]."""
        if algorithm == "ring" and self.ring is not None:
            return self.ring
        exchange = operation in ("all-to-all", *EXCHANGES)
        return self.all_to_all if exchange else self.all_gather

    def traffic(self, operation: str, algorithm: str) -> float:
        """Bytes on the wire per byte."""
        in_switch = operation == "all-reduce" and self.reduces
        if in_switch and algorithm in ("in-network", "fused"):
            traffic = collective_kernel("in_network_traffic")()
        else:
            traffic = collective_kernel(OPERATIONS[operation])(n_group=float(self.n))
        return float(*traffic.values())


def place_group(
    of: Machine | Fabric, n: int, chip: str | None = None, *, rings: Fabric | None = None
) -> Group:
    """The group of `n` chips of a machine or a fabric, placed in the best way.

    Raises TopologyError if there is no such group.

    Args:
        chip: whose curves to take; by the name of the machine or fabric if not given.
        rings: the fabric of these chips, where rings through the group are looked at too.
    """
    measured = collectives()
    if isinstance(of, Machine):
        name, adds, least = of.name, of.in_network_reduce, of.reduce_from
    else:
        name, least = str(of.graph.get("name", "")), None
        adds = any(flag for _, flag in of.nodes(data="in_network_reduce"))
    whose = chip or chip_in_name(name)
    if least is None:  # of a chip without a family, as late as of any
        late = max(measured.reduce_from.values())
        least = measured.reduce_from.get(measured.families.get(whose, ANY_CHIP), late)

    def group(size: int) -> Group:
        rate = group_rate(of, size)
        inside = group(ceil(size / rate.domains)) if rate.domains > 1 else None
        reduces = adds and size >= least and inside is None
        return Group(whose, size, rate.domains, rate.all_to_all, rate.all_gather, reduces, inside)

    if rings is None:
        return group(n)
    from topologies.groups.fabric_groups import fabric_groups

    return replace(group(n), ring=fabric_groups(rings).ring(n))


def chip_in_name(name: str) -> str:
    """Return the chip in the name of a machine or fabric; `any` if it names no measured chip."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    measured = {c.chip for c in collectives().curves} | set(collectives().families)
    return next((word for word in words if word in measured), ANY_CHIP)


def library(group: Group, operation: str) -> str:
    """Algorithm chosen by the library: for an all-reduce a ring, or in-network if switches reduce.

    Across domains its trees go by levels, which is what crossing was measured on.
    """
    if operation == "all-reduce" and group.domains == 1:
        return "in-network" if group.reduces else "ring"
    return algorithms(group, operation)[0]


def algorithms(group: Group, operation: str) -> tuple[str, ...]:
    """Algorithms among which the fastest is taken.

    Raises CatalogueError if there is no such operation.
    """
    if operation not in OPERATIONS:
        raise CatalogueError(
            f"no collective {operation!r}{did_you_mean(operation, OPERATIONS)} "
            f"known: {', '.join(OPERATIONS)}, send"
        )
    if operation in EXCHANGES and group.domains > 1:
        return INTER_DOMAIN_ALGORITHMS
    first, *others = INTRA_DOMAIN_ALGORITHMS[operation]
    if group.domains > 1 and first == "ring":
        return (TWO_LEVEL, *((first,) if group.ring is not None else ()))
    if operation == "all-reduce":
        first, others = library(group, operation), ["fused"]
        if group.family == ANY_CHIP:
            return (first,)
    curves = {name: collectives().of(group.chip, operation, name) for name in others}
    return first, *(
        name for name in others if curves[name][-1].n * MAX_GROUP_EXTRAPOLATION >= group.n
    )


def get_algorithm(group: Group, operation: str, algorithm: str) -> str:
    """Return an algorithm by name; `library` means the choice of the library.

    Raises CatalogueError if this group cannot use an algorithm of that name.
    """
    offered = algorithms(group, operation)
    if algorithm == "library":
        return library(group, operation)
    more = INTRA_DOMAIN_ALGORITHMS[operation] if group.domains == 1 else ()
    usable = tuple(dict.fromkeys((*offered, *more)))
    if algorithm not in usable:
        raise CatalogueError(
            f"{operation} of {group.n} chips over {group.domains} domains has no algorithm "
            f"{algorithm!r}{did_you_mean(algorithm, usable)} usable: {', '.join(usable)}"
        )
    return algorithm


@cache
def collective_kernel(equation: str) -> Kernel:
    """Return the kernel of an equation of collectives, from the cache if possible."""

    def lowered() -> Kernel:
        from formulas.network import collectives
        from formulas.numerics.evaluate import kernel

        of = getattr(collectives, equation)
        return kernel([*of.where, of], [of.symbol])

    return cached_kernel(f"network-{equation}", lowered, (Path(__file__),))
