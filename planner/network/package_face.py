"""A network looked at: what it is, what it carries, where leaving a domain begins to cost.

Rates are those of `topologies`, bounds without any overhead; all numbers are in base units.
"""

from __future__ import annotations

from planner.network.network_document import measured
from planner.network.network_source import Network, machines, network

__all__ = ["Network", "machines", "measured", "network"]
