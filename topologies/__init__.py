"""Networks of accelerators as graphs, and their rates and latencies as plain numbers.

A fabric is a `networkx.DiGraph` in the vocabulary of `topologies.fabric.fabric`; a `Machine` is the
same thing as a handful of figures, known by name. Bandwidths are in byte/s one way, latencies in s.
Names are fetched when they are first used, so that asking for a machine loads no graph library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topologies.builders.clusters import clos, hierarchy, rails
    from topologies.builders.switches import dragonfly, mesh, planes, switch
    from topologies.builders.torus import torus, twisted_torus
    from topologies.fabric.limits import TopologyError
    from topologies.fabric.measure import (
        Bisection,
        bisection,
        domain,
        domain_size,
        hops,
        latency,
        path_rate,
        slowdown,
    )
    from topologies.fabric.overrides import override
    from topologies.fabric.placement import Placement, place
    from topologies.fabric.soundness import check, suspicions
    from topologies.files.disk import read, write
    from topologies.groups.group_rate import group_rate, rate_table
    from topologies.groups.parallel_axes import AxisRate, axis_rate, axis_rates
    from topologies.machines.hardware import Machine
    from topologies.machines.named_machines import graph, machine, names
    from topologies.picture import svg
    from topologies.rates.concurrent_collectives import (
        all_reduce_bounds,
        best_all_reduce,
        joint_rate,
    )
    from topologies.rates.cut import all_gather_rate, all_reduce_rate, reduce_scatter_rate
    from topologies.rates.equal_domains import GroupRate, RateTable
    from topologies.rates.flow import Flow, all_to_all_rate, concurrent_flow
    from topologies.rates.traffic import Traffic, all_to_all, pairs

_HOME = {
    "builders.clusters": "clos hierarchy rails",
    "builders.switches": "dragonfly mesh planes switch",
    "builders.torus": "torus twisted_torus",
    "fabric.limits": "TopologyError",
    "fabric.measure": "Bisection bisection domain domain_size hops latency path_rate slowdown",
    "fabric.overrides": "override",
    "fabric.placement": "Placement place",
    "fabric.soundness": "check suspicions",
    "files.disk": "read write",
    "groups.group_rate": "group_rate rate_table",
    "groups.parallel_axes": "AxisRate axis_rate axis_rates",
    "machines.hardware": "Machine",
    "machines.named_machines": "graph machine names",
    "picture": "svg",
    "rates.concurrent_collectives": "all_reduce_bounds best_all_reduce joint_rate",
    "rates.cut": "all_gather_rate all_reduce_rate reduce_scatter_rate",
    "rates.equal_domains": "GroupRate RateTable",
    "rates.flow": "Flow all_to_all_rate concurrent_flow",
    "rates.traffic": "Traffic all_to_all pairs",
}
_MODULE = dict(sorted((name, home) for home, names_ in _HOME.items() for name in names_.split()))

__all__ = list(_MODULE)


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"topologies.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
