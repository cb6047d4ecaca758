"""Layouts that cannot have run: ways that do not multiply, more weights than memory.

A row with one is refused by its number, with the reading that would make sense.
"""

from __future__ import annotations

import math

from planner.architecture.counts import Sizes
from planner.catalogue.chips import Chip
from planner.measurements.published_names import Refused

GIB_OF_GB = 2**30 / 1e9  # what is listed as GB of memory is GiB on the cards


def capacity(chip: Chip) -> float:
    """The most that a chip can hold: what its driver reports, else the larger reading [byte]."""
    figure = chip.figures.get("memory")
    larger = GIB_OF_GB if figure is not None and figure.unit == "GB" else 1.0
    return chip.memory_reported or chip.memory * larger


def refuse_overfull(sizes: Sizes, chip: Chip, chips: int) -> None:
    """Raises Refused if the weights of one replica exceed the memory of its chips."""
    stored, room = sum(sizes.weight_bytes.values()), capacity(chip)
    if stored <= chips * room:
        return
    least = 2 ** math.ceil(math.log2(stored / room))
    raise Refused(
        f"{stored / 1e9:.0f} GB of weights do not fit on {chips} {chip.name} "
        f"({chips * room / 1e9:.0f} GB): {least} would hold them; are ways left out, such as "
        "copies of attention, or is another number format meant?"
    )


def copies_left_out(tp: int, expert_ways: int) -> int:
    """Copies of attention where a table gives tensor ways and the experts' ways alone.

    Every chip of a stage holds a share of the experts: tp x dp = tp_expert x ep. Raises Refused if
    no whole number of copies does.
    """
    if expert_ways % tp:
        raise Refused(
            f"ways do not multiply: experts on {expert_ways} chips, tp {tp} does not divide them"
        )
    return expert_ways // tp


def refuse_unequal(tp: int, copies: int, tp_expert: int, ep: int) -> None:
    """Raises Refused unless tp x dp = tp_expert x ep."""
    stage, experts = tp * copies, tp_expert * ep
    if stage == experts:
        return
    meant = f": dp {experts // tp} would" if experts % tp == 0 else ""
    raise Refused(
        f"ways do not multiply: tp {tp} x dp {copies} are {stage} chips, the experts' "
        f"tp {tp_expert} x ep {ep} are {experts}{meant}"
    )
