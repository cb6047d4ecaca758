"""Which measured rows the fit of a profile saw, as short digests: enough to know a row again.

Measurements themselves may not be ours to ship. A digest names model, chip, quantity, lengths,
batch and value; nothing of them can be read back from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2s
from importlib.resources import files

from planner.measurements.measurement import Measurement

__all__ = ["mark", "marks_text", "seen_by"]

BYTES = 4
A_LINE = 10


def mark(row: Measurement) -> str:
    """The digest of a row, the same for its repeats with the same value."""
    value = f"{row.seconds:.6g} {row.prompt:g} {row.output:g} {row.batch:g}"
    told = f"{row.model} {row.chip.name} {row.quantity} {value}"
    return blake2s(told.encode(), digest_size=BYTES).hexdigest()


@cache
def seen_by(profile: str) -> frozenset[str] | None:
    """Digests of the rows a profile was fitted on, None where they were not recorded."""
    path = files("planner.catalogue").joinpath("profiles", f"{profile}.rows")
    if not path.is_file():
        return None
    return frozenset(path.read_text(encoding="ascii").split())


def marks_text(rows: Iterable[Measurement]) -> str:
    """The digests of a fit's rows, as they stand in the profile's file of rows."""
    digests = sorted({mark(row) for row in rows})
    lines = [" ".join(digests[i : i + A_LINE]) for i in range(0, len(digests), A_LINE)]
    return "\n".join(lines) + "\n"
