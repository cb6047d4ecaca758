"""Placement of replicas on machines: nodes per pool, machine patterns, idle chips.

Price, placement and what starts an engine follow from one packing. The search has shown that the
stages fit the scale-up domains. A replica is started on nodes of one size, as engines are; of the
sizes that pack into the machines that are paid, exactly (`step.packing`), those with the fewest
nodes are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from planner.problems.serving.point import MachinePattern, MachinePlacement
from planner.problems.serving.step.packing import fits
from planner.problems.serving.step.runnable import chips_per_box

if TYPE_CHECKING:
    from planner.problems.serving.deployment.pool import EvaluatedPool

Nodes = tuple[int, int]  # nodes of a pool, chips of one


def placements(pools: Sequence[EvaluatedPool]) -> tuple[MachinePlacement, ...]:
    """The placement of one or two pools; of either alone where they have machines of their own."""
    if pools[0].task.machine is pools[-1].task.machine:
        return (_placement(pools),)
    return tuple(_placement([pool]) for pool in pools)


def _placement(pools: Sequence[EvaluatedPool]) -> MachinePlacement:
    chips = sum(int(pool.layouts.chips[0]) for pool in pools)
    machine = chips_per_box(pools[0].task)
    nodes = _nodes(pools, chips, machine)
    return MachinePlacement(
        machine,
        tuple(_chips(pool) // each for pool, (_, each) in zip(pools, nodes, strict=True)),
        tuple(each for _, each in nodes),
        tuple(_patterns(nodes, chips, machine)),
        _idle_because(pools, chips),
    )


def _nodes(pools: Sequence[EvaluatedPool], chips: int, machine: int) -> list[Nodes]:
    """Minimum nodes of each pool that fit: of whole stages, or equal parts of a stage."""
    domain = pools[0].task.machine.chips_per_domain
    choices = []
    for pool in pools:
        stage, whole = int(pool.layouts.stage[0]), _chips(pool)
        sizes = [
            size
            for size in range(min(machine, whole), 0, -1)
            if whole % size == 0
            and (
                size % stage == 0
                or (stage % size == 0 and _inside(size, stage, chips, machine, domain))
            )
        ]
        choices.append([(pool.replicas * whole // size, size) for size in sizes])
    every = sorted(product(*choices), key=lambda nodes: sum(count for count, _ in nodes))
    return list(next(nodes for nodes in every if fits(chips, machine, nodes)))


def _inside(size: int, stage: int, chips: int, machine: int, domain: int) -> bool:
    """True if nodes of part of a stage leave it in one domain, or in whole domains, as searched."""
    if machine < domain:
        return chips <= domain or machine % size == 0
    return stage > domain and size % domain == 0


def _patterns(nodes: Sequence[Nodes], chips: int, machine: int) -> Iterator[MachinePattern]:
    """Machines filled one kind after the other, as fully as leaves room for the other nodes."""
    left, sizes = [count for count, _ in nodes], [size for _, size in nodes]
    while chips:
        room = min(machine, chips)
        filling, many = next(
            (filling, many)
            for filling in _fillings(room, left, sizes)
            if (many := _alike(filling, left, sizes, chips, room))
        )
        left = [count - many * each for count, each in zip(left, filling, strict=True)]
        used = sum(each * size for each, size in zip(filling, sizes, strict=True))
        yield MachinePattern(many, room, filling, room - used)
        chips -= many * room


def _fillings(room: int, left: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Numbers of nodes of each pool in one machine, the fullest first."""
    most = [
        range(min(count, room // size), -1, -1) for count, size in zip(left, sizes, strict=True)
    ]
    every = [
        (filling, sum(h * s for h, s in zip(filling, sizes, strict=True)))
        for filling in product(*most)
    ]
    inside = [(filling, used) for filling, used in every if used <= room]
    yield from (filling for filling, _ in sorted(inside, key=lambda pair: -pair[1]))


def _alike(
    filling: Sequence[int], left: Sequence[int], sizes: Sequence[int], chips: int, room: int
) -> int:
    """Maximum machines of `room` chips with this filling while the other nodes fit, or 0."""

    def fit(many: int) -> bool:
        rest = [count - many * each for count, each in zip(left, filling, strict=True)]
        free = chips - many * room
        if min(rest) < 0 or (not free and any(rest)):
            return False
        return not free or fits(free, room, tuple(zip(rest, sizes, strict=True)))

    low, high = 0, chips // room
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(middle) else (low, middle - 1)
    return low


def _idle_because(pools: Sequence[EvaluatedPool], chips: int) -> str | None:
    """Reason why chips stay idle, in one line; None if no chip is idle."""
    idle = chips - sum(pool.replicas * _chips(pool) for pool in pools)
    if not idle:
        return None
    placed = " and ".join(f"{pool.replicas} of {_chips(pool)}" for pool in pools)
    domain = pools[0].task.machine.chips_per_domain
    reasons: dict[bool, list[str]] = {}
    for added in pools:
        counts = [
            (
                (pool.replicas + (pool is added)) * int(pool.layouts.pp[0]),
                int(pool.layouts.stage[0]),
            )
            for pool in pools
        ]
        sizes = reasons.setdefault(fits(chips, domain, counts), [])
        sizes.append(f"a replica of {_chips(added)}")
    words = []
    if False in reasons:
        beside = f"beside {placed} in domains of {domain}"
        words.append(f"{' or '.join(dict.fromkeys(reasons[False]))} does not fit {beside}")
    if True in reasons:
        more = " or ".join(dict.fromkeys(reasons[True]))
        words.append(f"{more} more would fit, but is not asked for or serves no more")
    return f"{idle} idle: {'; '.join(words)}"


def _chips(pool: EvaluatedPool) -> int:
    return int(pool.layouts.replica_chips[0])
