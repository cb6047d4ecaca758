"""Networks of accelerators as graphs, and their rates and latencies as plain numbers.

A fabric is a `networkx.DiGraph` in the vocabulary of `topologies.fabric.fabric`; a `Machine` is the
same thing as a handful of figures, known by name. Bandwidths are in byte/s one way, latencies in s.
Names are fetched when they are first used, so that asking for a machine loads no graph library.
"""

import ast
import sys
from importlib import import_module
from inspect import getsource
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

# {name: its module}, from the imports for type checkers above, so that each is listed once.
_MODULE = {
    name.name: str(node.module)
    for block in ast.parse(getsource(sys.modules[__name__])).body
    for node in (block.body if isinstance(block, ast.If) else ())
    if isinstance(node, ast.ImportFrom)
    for name in node.names
}

__all__ = list(_MODULE)


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
