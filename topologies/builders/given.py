"""What builders ask of their arguments before they begin."""

from __future__ import annotations

from topologies.errors import TopologyError
from topologies.limits import count_fault

__all__ = ["counted"]


def counted(builder: str, **counts: object) -> None:
    """Raise unless every count is a whole number of at least 1."""
    faults = [
        f"{name} {fault}"
        for name, value in counts.items()
        if (fault := count_fault(value)) is not None
    ]
    if faults:
        raise TopologyError(builder, faults)
