"""Collective rates of groups of chips, one size or many, on a machine or on any fabric.

A group takes as few domains as hold it and spreads evenly over them. On a machine the rates are
formulas; on a fabric, formulas where its links are all alike and the flow and cut engines
elsewhere, with every group of that size talking at once and the worst of them counting.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING

from topologies.fabric.limits import TopologyError, count_fault
from topologies.machines.hardware import Machine
from topologies.rates.equal_domains import Domains, GroupRate, RateTable, columns, domain_group_rate

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric


def group_rate(
    of: Machine | Fabric, n: int, *, order: Sequence[Hashable] | None = None
) -> GroupRate:
    """Rates and latency of a group of `n` chips of a machine or a fabric.

    A single chip has nobody to talk to: its rates are those at which it enters the scale-up
    network, its latency 0. What network cards add to the scale-up links counts in a gather: 16 H100
    on two boards gather at 500 GB/s, not at the 450 of one board. Raises TopologyError when `n` is
    no count, exceeds the domain of a machine without scale-out, or exceeds the accelerators of a
    fabric.

    Args:
        of: Machine or DiGraph
        n: Chips of the group.
        order: sequence of nodes. Accelerators of a fabric in the order in which they are filled;
            domain after domain if not given. Not looked at for a machine.

    >>> from topologies import machine
    >>> group_rate(machine("mi300x-8"), 4).all_to_all
    192000000000.0
    """
    answer, where = _answering(of, order)
    fault = count_fault(n)
    if fault is not None:
        raise TopologyError(where, f"group size {fault}")
    return answer(int(n))


def rate_table(of: Machine | Fabric, sizes: Sequence[int]) -> RateTable:
    """`group_rate` of every size, as arrays.

    Raises TopologyError, listing every size that has no answer.
    """
    answer, where = _answering(of, None)
    rates: list[GroupRate] = []
    problems: list[str] = []
    for n in sizes:
        fault = count_fault(n)
        if fault is not None:
            problems.append(f"group size {fault}")
            continue
        try:
            rates.append(answer(int(n)))
        except TopologyError as error:
            problems += error.problems
    if problems:
        raise TopologyError(where, problems)
    return columns(rates)


def _answering(
    of: Machine | Fabric, order: Sequence[Hashable] | None
) -> tuple[Callable[[int], GroupRate], str]:
    """The function of a group size that gives its rate, and the name used in errors."""
    if isinstance(of, Machine):
        return lambda n: _of_machine(of, n), f"machine {of.name!r}"
    if isinstance(of, str):
        raise TopologyError("group rates", f"{of!r} is a name; give machine({of!r})")
    from topologies.groups.fabric_groups import fabric_groups

    groups = fabric_groups(of, order)
    return groups.rate, f"fabric {of.graph.get('name')!r}"


def _of_machine(machine: Machine, n: int) -> GroupRate:
    rate = domain_group_rate(_domains(machine), n)
    if rate is None:
        raise TopologyError(
            f"machine {machine.name!r}",
            f"a group of {n} exceeds the domain of {machine.chips_per_domain} chips and "
            "scale_out (byte/s per chip) is not known",
        )
    return rate


@lru_cache(maxsize=4096)
def _domains(machine: Machine) -> Domains:
    return Domains(**{figure.name: getattr(machine, figure.name) for figure in fields(Domains)})
