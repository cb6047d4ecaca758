"""Experts that do not divide over their ranks, and how many copies would even them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

__all__ = ["uneven"]

WORTH = 1.05  # experts of the fullest rank over the mean, from which on it is worth a word


def uneven(plan: Mapping[str, Any], experts: int) -> tuple[str, ...]:
    """A warning for each pool of a plan whose fullest expert rank is well above the mean."""
    pools = {"": plan} if plan["layout"] else {f"{n} ": plan[n] for n in ("prefill", "decode")}
    return tuple(dict.fromkeys(_told(pools, experts)))


def _told(pools: Mapping[str, Mapping[str, Any]], experts: int) -> Iterator[str]:
    for name, pool in pools.items():
        ep, copies = pool["layout"]["ep"], pool["redundant_experts"] or 0
        held = experts + copies
        fullest = ceil(held / ep)
        if fullest * ep < held * WORTH:
            continue
        more = fullest * ep - experts
        yield (
            f"{held} experts are uneven on {name}ep {ep}: the fullest rank has {fullest}, "
            f"{fullest * ep / held - 1:.0%} more than the mean, and sets the pace; "
            f"choose.redundant_experts: {more} would even them out in the same memory"
        )
