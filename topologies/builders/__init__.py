"""Builders of fabrics: a few figures in, a checked `networkx.DiGraph` out; one family a file.

`BUILDERS` knows them by name and loads the one that is asked for, so that the names alone load
no graph library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric

__all__ = ["BUILDERS"]

_HOME = {
    "switch": "switches",
    "planes": "switches",
    "mesh": "switches",
    "torus": "torus",
    "twisted_torus": "torus",
    "rails": "clusters",
    "clos": "clusters",
    "dragonfly": "dragonfly",
    "hierarchy": "clusters",
}


class _Builders(Mapping[str, "Callable[..., Fabric]"]):
    def __getitem__(self, name: str) -> Callable[..., Fabric]:
        builder: Callable[..., Fabric] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return builder

    def __iter__(self) -> Iterator[str]:
        return iter(_HOME)

    def __len__(self) -> int:
        return len(_HOME)


BUILDERS: Mapping[str, Callable[..., Fabric]] = _Builders()
