"""The network between the chips of a measured row, where the catalogue holds a machine and not."""

from __future__ import annotations

from functools import cache

from planner.measurements.published_names import aliases
from topologies import Machine, TopologyError, machine

__all__ = ["network_between"]

ALONE = 1e21  # byte/s inside a group of one chip
# One way, of sixteen lanes: PCI-SIG, PCI Express 4.0 and 5.0 base specifications, 128b/130b coding.
PCIE = {4: 31.5e9, 5: 63e9}


@cache
def network_between(chip: str, name: str | None, chips: int) -> Machine | None:
    """The machine that joins so many chips of a kind; None where nothing is known to.

    Parameters
    ----------
    chip : catalogue name of the chip.
    name : the machine that usually joins such chips, None for none.
    chips : chips of one replica or worker.

    Cards without a machine of their own, and groups larger than theirs, meet on the PCI Express of
    their host; a single chip meets nobody.
    """
    if chips == 1:
        return Machine.from_figures("alone", 1, ALONE)
    if name is not None:
        one = _sized(name, chips)
        if one is not None and (one.scale_out is not None or chips <= one.chips_per_domain):
            return one
    generation = aliases()["pcie"].get(chip)
    if generation is None:
        return None
    return Machine.from_figures(f"pcie-{generation}", chips, PCIE[generation])


def _sized(name: str, chips: int) -> Machine | None:
    """A machine, of a torus the slice of so many chips; None where there is no such slice."""
    one = machine(name)
    if one.kind != "torus":
        return one
    try:
        return machine(name, chips)
    except TopologyError:
        return None
