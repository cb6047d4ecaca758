"""Builders of fabrics: a few figures in, a checked `networkx.DiGraph` out; one family a file."""

from collections.abc import Callable, Mapping

from topologies.builders import clusters, switches, torus
from topologies.fabric.fabric import Fabric

__all__ = ["BUILDERS"]

BUILDERS: Mapping[str, Callable[..., Fabric]] = {
    "switch": switches.switch,
    "planes": switches.planes,
    "mesh": switches.mesh,
    "torus": torus.torus,
    "twisted_torus": torus.twisted_torus,
    "rails": clusters.rails,
    "clos": clusters.clos,
    "dragonfly": switches.dragonfly,
    "hierarchy": clusters.hierarchy,
}
