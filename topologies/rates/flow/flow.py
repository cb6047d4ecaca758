"""Most traffic that a fabric can carry when every flow may take any permitted path.

The maximum concurrent flow: the largest theta such that theta times every demand can be sent
at once. No schedule beats it. One linear program, with the flows of a source taken together;
what a checked symmetry makes equal is solved for once.

References
----------
Shahrokhi, Matula, The maximum concurrent flow problem, J. ACM 37, 1990; Basu et al., Efficient
all-to-all collective communication schedules for direct-connect topologies, arXiv 2309.13541.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from topologies.fabric.errors import TopologyError, meant
from topologies.fabric.fabric import Fabric, accelerators
from topologies.rates.flow.columns import by_columns
from topologies.rates.flow.flow_program import by_program, columns_of
from topologies.rates.flow.reduced_program import Solution, Task, task
from topologies.rates.flow_network import demand, network
from topologies.rates.symmetry.orbits import orbits
from topologies.rates.traffic import Traffic, all_to_all, traffic_checked

__all__ = ["ROUTINGS", "Bottleneck", "Flow", "all_to_all_rate", "concurrent_flow"]

ROUTINGS = ("optimal", "shortest_ecmp")
# Rounds of routings are quicker than one linear program where few orbits of arcs can bind, and
# where the program would have more variables than this.
FEW, LARGE = 32, 30_000
# An elasticity below this is rounding.
BINDING = 1e-9


@dataclass(frozen=True)
class Bottleneck:
    """Arcs that are full and alike.

    Attributes
    ----------
    arcs
        All of them, by their ends.
    elasticity
        By how many percent the rate changes when all of them get one percent more or less
        bandwidth. Where several sets bind at once the two directions differ, and the numbers
        of all of them together are one sound choice in between.
    """

    arcs: tuple[tuple[Any, Any], ...]
    elasticity: float

    @property
    def members(self) -> int:
        """How many arcs there are."""
        return len(self.arcs)


@dataclass(frozen=True)
class Flow:
    """How fast a demand is served.

    Attributes
    ----------
    rate
        Per unit of weight: for an all-to-all of weight 1, of each ordered pair. [byte/s]
    engine
        How it was found.
    binding
        What holds the rate down, the strongest first. Elasticities add up to 1.
    """

    rate: float
    engine: str
    binding: tuple[Bottleneck, ...]


def concurrent_flow(G: Fabric, traffic: Traffic, *, routing: str = "optimal") -> Flow:
    """The largest rate at which all of `traffic` flows at once, per unit of weight.

    Parameters
    ----------
    traffic : Traffic
        Made by `all_to_all` and `pairs`, and sums of these.
    routing : {"optimal", "shortest_ecmp"}
        Any permitted paths in the best proportions, or shortest ones in equal parts.

    Raises
    ------
    TopologyError
        When the traffic cannot be sent, the fabric is unsound, no permitted path joins two that
        talk, or the solver finds no optimum.

    >>> from topologies import torus
    >>> G = torus((4, 4), link=64e9)
    >>> round(concurrent_flow(G, all_to_all(list(G))).rate / 1e9, 6)
    8.0
    """
    if routing not in ROUTINGS:
        raise TopologyError(
            "concurrent_flow", f"unknown routing {routing!r}; {meant(routing, ROUTINGS)}"
        )
    if routing == "shortest_ecmp":
        return _shortest(G, traffic)
    traffic_checked(G, traffic)
    net = network(G)
    what = demand(net, traffic)
    found = orbits(net, what)
    program = task(net, what, found, G.graph.get("name"))
    solution = _solved(program)
    rate = solution.theta * program.unit
    if not (math.isfinite(rate) and rate > 0):
        raise TopologyError("concurrent_flow", f"the solver reports a rate of {rate}")
    senders = int(program.share.sum())
    engine = (
        f"{solution.engine}; {program.sources.size} of {senders} sources, "
        f"{program.members.size} of {net.tail.size} arcs"
    )
    return Flow(rate, engine, _binding(program, solution))


def all_to_all_rate(
    G: Fabric, members: Iterable[Any] | None = None, *, routing: str = "optimal"
) -> Flow:
    """Every one of `members` (all accelerators unless said) sends equally to every other one.

    Raises
    ------
    TopologyError
        As `concurrent_flow`; also for a single member, who talks to nobody.

    >>> from topologies import switch
    >>> all_to_all_rate(switch(8, up=450e9)).rate / 1e9
    64.28571428571429
    """
    return concurrent_flow(
        G, all_to_all(accelerators(G) if members is None else members), routing=routing
    )


def _solved(program: Task) -> Solution:
    if program.members.size <= FEW or columns_of(program) > LARGE:
        solution = by_columns(program)
        if solution is not None:
            return solution
    return by_program(program)


def _binding(program: Task, solution: Solution) -> tuple[Bottleneck, ...]:
    of = solution.classes[program.orbit]
    full = np.flatnonzero(solution.elasticity > BINDING)
    strongest = full[np.argsort(-solution.elasticity[full], kind="stable")]
    return tuple(
        Bottleneck(
            tuple(map(program.net.arc, np.flatnonzero(of == which).tolist())),
            float(solution.elasticity[which]),
        )
        for which in strongest.tolist()
    )


def _shortest(G: Fabric, traffic: Traffic) -> Flow:
    from topologies.rates.routing.routing import ecmp

    routed = ecmp(G, traffic)
    return Flow(routed.rate, "shortest paths in equal parts", (Bottleneck(routed.binding, 1.0),))
