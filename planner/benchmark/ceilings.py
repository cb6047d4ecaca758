"""Upper limits of an engine's efficiencies from a measured chip, as shares of catalogue peaks.

A profile's efficiencies hold the losses of engines and of chips together. No engine reads faster
than the memory was seen to sustain, nor multiplies faster than the best product, so the measured
shares are upper limits of them and nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.text.errors import InputError
from planner.text.quantities import show

if TYPE_CHECKING:
    from planner.benchmark.record import MeasuredChip
    from planner.catalogue.chips import Chip

MAX_PEAK_SHARE = 1.1  # of the peak: more is no measurement of this chip
MIN_SHARE = 0.2  # of the peak bandwidth: less is another chip, or one that others used meanwhile
FABRICS = ("nccl", "xccl")  # gloo passes through the host


def ceilings(measured: MeasuredChip, chip: Chip, link: float | None = None) -> dict[str, float]:
    """Upper limits of a profile's efficiencies on this chip [1], those that were measured.

    `e_w` and `e_kv` by the memory bandwidth; `e_c` and `e_pf` by the best product of any precision
    that the chip lists; `e_ar` and `e_ar_pf` by the all-reduce where `link`, the fast network per
    chip and one way [byte/s], is known. Raises InputError if the file is of another chip, or more
    was measured than the chip has.
    """
    fault = chip_mismatch(measured, chip)
    if fault is not None:
        raise InputError(fault)
    efficiencies: dict[str, float] = {}
    bandwidth = measured.memory_bandwidth
    if bandwidth is not None:
        efficiencies |= dict.fromkeys(("e_w", "e_kv"), bandwidth / chip.memory_bandwidth)
    shares = [
        rate / chip.peak(dtype)
        for dtype, rate in measured.product_rates.items()
        if chip.computes(dtype)
    ]
    if shares:
        efficiencies |= dict.fromkeys(("e_c", "e_pf"), max(shares))
    rates = [
        measured.all_reduces[each.work.devices].rate
        for each in measured.all_reduce
        if each.work.backend in FABRICS and each.work.devices in measured.all_reduces
    ]
    if rates and link:
        efficiencies |= dict.fromkeys(("e_ar", "e_ar_pf"), max(rates) / link)
    return efficiencies


def chip_mismatch(measured: MeasuredChip, chip: Chip) -> str | None:
    """Return the reason why the file was not measured on this chip, None if it was.

    A chip described in full (`inline`) is taken to be the one that was measured.
    """
    head = measured.head
    if chip.name not in ("inline", head.chip):
        meant = f"the chip {head.chip}" if head.chip else "no chip of the catalogue by that name"
        return (
            f"it was measured on {head.device!r} ({meant}), and this system has {chip.name}; "
            f"measure that chip, or write chip = {chip.name!r} in the file if it is one"
        )
    bandwidth, peak = measured.memory_bandwidth, chip.memory_bandwidth
    if bandwidth is not None and not MIN_SHARE * peak <= bandwidth <= MAX_PEAK_SHARE * peak:
        return _discrepancy("memory bandwidth", bandwidth, peak, "bandwidth")
    for dtype, rate in measured.product_rates.items():
        if chip.computes(dtype) and rate > MAX_PEAK_SHARE * chip.peak(dtype):
            return _discrepancy(f"{dtype} rate", rate, chip.peak(dtype), "compute")
    return None


def _discrepancy(what: str, measured: float, peak: float, dimension: str) -> str:
    far = "above" if measured > peak else "far below"
    return (
        f"the measured {what} of {show(measured, dimension)} is {far} the "
        f"{show(peak, dimension)} that this system has; one of the two is of another chip, or the "
        "chip was in use"
    )
