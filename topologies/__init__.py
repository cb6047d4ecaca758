"""Networks of accelerators as graphs, and their rates and latencies as plain numbers.

A fabric is a `networkx.DiGraph` in the vocabulary of `topologies.fabric.fabric`; a `Machine` is the
same thing as a handful of figures, known by name. Bandwidths are in byte/s one way, latencies
in s. Names are fetched when they are first used, so that asking for a machine loads no graph
library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topologies.builders.clos import clos
    from topologies.builders.dragonfly import dragonfly
    from topologies.builders.hierarchy import hierarchy
    from topologies.builders.rails import rails
    from topologies.builders.switches import mesh, planes, switch
    from topologies.builders.torus import torus, twisted_torus
    from topologies.fabric.limits import TopologyError
    from topologies.fabric.measure import domain, domain_size, hops, latency, path_rate, slowdown
    from topologies.fabric.overrides import override
    from topologies.fabric.placement import Placement, place
    from topologies.fabric.validation import check, suspicions
    from topologies.files.disk import read, write
    from topologies.groups.bisection import Bisection, bisection
    from topologies.groups.group_rate import GroupRate, RateTable, group_rate, rate_table
    from topologies.groups.parallel_axes import AxisRate, axis_rate, axis_rates
    from topologies.machines.hardware import Machine
    from topologies.machines.machines import graph, machine, names
    from topologies.picture import svg
    from topologies.rates.cut.cut import all_gather_rate, all_reduce_rate, reduce_scatter_rate
    from topologies.rates.flow.flow import Flow, all_to_all_rate, concurrent_flow
    from topologies.rates.routing.all_reduce import all_reduce_bounds, best_all_reduce
    from topologies.rates.routing.concurrent_collectives import joint_rate
    from topologies.rates.traffic import Traffic, all_to_all, pairs

_HOME = {
    "groups.parallel_axes": "AxisRate axis_rate axis_rates",
    "builders.clos": "clos",
    "builders.dragonfly": "dragonfly",
    "builders.hierarchy": "hierarchy",
    "builders.switches": "mesh planes switch",
    "builders.rails": "rails",
    "builders.torus": "torus twisted_torus",
    "fabric.limits": "TopologyError",
    "fabric.validation": "check suspicions",
    "files.disk": "read write",
    "groups.group_rate": "GroupRate RateTable group_rate rate_table",
    "groups.bisection": "Bisection bisection",
    "machines.hardware": "Machine",
    "machines.machines": "graph machine names",
    "fabric.measure": "domain domain_size hops latency path_rate slowdown",
    "fabric.overrides": "override",
    "picture": "svg",
    "fabric.placement": "Placement place",
    "rates.cut.cut": "all_gather_rate all_reduce_rate reduce_scatter_rate",
    "rates.flow.flow": "Flow all_to_all_rate concurrent_flow",
    "rates.routing.concurrent_collectives": "joint_rate",
    "rates.routing.all_reduce": "all_reduce_bounds best_all_reduce",
    "rates.traffic": "Traffic all_to_all pairs",
}
_MODULE = dict(sorted((name, home) for home, names_ in _HOME.items() for name in names_.split()))

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"topologies.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
