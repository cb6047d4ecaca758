"""The `overrides` of a description: links and nodes that are gone or slower than the rest."""

from __future__ import annotations

import re
from typing import Any

from topologies.fabric.errors import TopologyError
from topologies.fabric.fabric import Fabric
from topologies.fabric.overrides import override
from topologies.files.located import Document, Located
from topologies.files.rate_units import Misread, latency, rate

__all__ = ["changed"]

QUANTITIES = {"bandwidth": rate, "latency": latency}
STAND_IN = {"bandwidth": 1.0, "latency": 0.0}
INDEX = re.compile(r"override\[(\d+)\]: (?:after it, )?")


def changed(G: Fabric, node: Located, found: Document, path: str) -> Fabric | None:
    """`G` with its overrides; None when something of them is wrong, which is noted."""
    if not isinstance(node.value, list):
        found.fault(node, f"{path}: a list of changes was expected")
        return None
    before = len(found.faults)
    changes = [_change(item, found, f"{path}[{i}]") for i, item in enumerate(node.value)]
    try:
        new = override(G, changes)
    except TopologyError as error:
        for problem in error.problems:
            index = INDEX.match(problem)
            item = node.value[int(index.group(1))] if index else node
            named = f"{path}[{index.group(1)}]" if index else path
            found.fault(item, f"{named}: {problem[index.end() if index else 0 :]}")
        return None
    return new if len(found.faults) == before else None


def _change(node: Located, found: Document, path: str) -> Any:
    """A change in plain values."""
    plain = node.plain
    if isinstance(plain, dict):
        for key, quantity in QUANTITIES.items():
            if key in plain:
                try:
                    plain[key] = quantity(plain[key])
                except Misread as fault:
                    found.fault(node.value[key], f"{path}.{key} {fault}")
                    # Told with its place; the rest of the change is judged with a sound figure.
                    plain[key] = STAND_IN[key]
    return plain
