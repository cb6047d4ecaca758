"""Enumeration of layouts: every divisor tuple that the model and the machine admit.

A stage of `tp * dp * cp` chips sits inside one scale-up domain or fills whole ones, so that no
group straddles a boundary by accident; what is left of a domain stays idle. The experts of a stage
are re-partitioned over `tp * dp` chips as `ep * tp_expert`, and copied over the `cp` parts of the
contexts. Inside a tensor-parallel group `dcp` ranks share contexts where they would hold copies of
the same heads else. Where attention is copied and experts are spread, a layout stands twice: its
passes whole, and cut into two half-batches that overlap. Counts stay small because fleets are
counts of replicas, never more layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.problems.serving.step.packing import ChipSplit, max_replicas

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

AXES = ("tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert")
# Half-batches of a pass, by the name of the overlap choice.
HALVES = {"none": 1, "two-batch": 2}
OVERLAP = {count: name for name, count in HALVES.items()}
EXPERT_SIZES = {False: "even", True: "uneven"}  # groups of experts, by whether they differ in size

# The largest replica with a published use has 320 chips (DeepSeek-V3 report, section 3.4.2); more
# than this are tried only where the sizes asked for make more. Larger fleets are replicas.
LARGEST_REPLICA = 512
MAX_CACHED_TABLES = 32  # tables of layouts that a process keeps, the latest asked for


@dataclass(frozen=True)
class Layouts:
    """Layouts as columns: every field is an integer array of shape (n_layouts,)."""

    tp: np.ndarray
    pp: np.ndarray
    cp: np.ndarray
    dp_attention: np.ndarray
    ep: np.ndarray
    tp_expert: np.ndarray
    replicas: np.ndarray
    chips: np.ndarray  # paid, idle ones included
    halves: np.ndarray  # half-batches of a pass that overlap, 1 for none
    engines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # that run it, bits
    dcp: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # 1 by default

    def __post_init__(self) -> None:
        for name, value in (("engines", -1), ("dcp", 1)):  # no engine was asked about
            if getattr(self, name).size != self.tp.size:
                object.__setattr__(self, name, np.full(self.tp.size, value))

    def __len__(self) -> int:
        return int(self.tp.size)

    @property
    def whole(self) -> np.ndarray:
        """Chips that hold the weights of one stage once."""
        return self.tp * self.dp_attention

    @property
    def stage(self) -> np.ndarray:
        """Chips of one pipeline stage."""
        return self.whole * self.cp

    @property
    def replica_chips(self) -> np.ndarray:
        """Chips of one replica."""
        return self.stage * self.pp

    @property
    def group(self) -> np.ndarray:
        """Sequences that give every chip of a replica one to carry."""
        return self.pp * self.dp_attention * self.cp

    def on(self, chips: np.ndarray, domain: int) -> Layouts:
        """Copy the layouts to other numbers of chips, with the replicas that fit."""
        rooms = ChipSplit(self.stage, self.pp, np.full(len(self), domain))
        replicas = max_replicas(chips, rooms)
        return replace(self, chips=chips, replicas=replicas)

    def take(self, rows: np.ndarray) -> Layouts:
        """The layouts of the given rows (an index or a mask)."""
        return Layouts(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @classmethod
    def joined(cls, several: Sequence[Layouts]) -> Layouts:
        """The layouts of several tables one after the other."""
        names = [f.name for f in fields(cls)]
        return cls(*(np.concatenate([getattr(each, n) for each in several]) for n in names))

    @classmethod
    def of(cls, **columns: int) -> Layouts:
        """One layout as a table, one chip of everything that is not given."""
        names = (f.name for f in fields(cls) if f.name != "engines")
        return cls(**{name: np.array([columns.get(name, 1)]) for name in names})

    def split(self, i: int) -> tuple[int, ...]:
        """Sizes of one layout, without its half-batches and engines."""
        names = (f.name for f in fields(self) if f.name not in ("halves", "engines"))
        return tuple(int(getattr(self, name)[i]) for name in names)

    def row(self, i: int) -> dict[str, Any]:
        """One layout as plain numbers, in the words of the answer."""
        ways = {name: int(getattr(self, name)[i]) for name in (*AXES, "replicas")}
        return {**ways, "overlap": OVERLAP[int(self.halves[i])]}


@lru_cache(maxsize=MAX_CACHED_TABLES)
def enumerate_layouts(
    *,
    heads: int,
    layers: int,
    experts: int,
    domain: int,
    chips: tuple[int, ...],
    joined: bool = True,
    tiled: bool = False,
    copied: bool = False,
    machine: int = 0,
    kv_heads: int = 0,
    limits: frozenset[tuple[str, tuple[int, ...]]] = frozenset(),
) -> Layouts:
    """Every layout of a model with these heads, layers and experts on each number of chips.

    Columns of shape (n_layouts,), possibly none; questions that ask for the same share them,
    read-only, so arguments must be hashable.

    Args:
        heads, layers: query heads, which tensor parallelism divides; no more stages than layers.
        experts: routed experts of a layer, copies included; 0 for a dense model: ep = tp_expert =
            1.
        domain: chips of one scale-up domain.
        chips: numbers of chips that may be paid for.
        joined: whether a network joins the domains, beyond one of which no replica goes without.
        copied: whether attention of a dense model may be copied over chips that share all else.
        tiled: whether the stages of one domain divide it evenly, as slices of a torus do.
        machine: chips of a machine that replicas share evenly or fill; 0 where any size may be.
        kv_heads: heads of the caches that ranks of a group may cut by tokens; 0 where none is cut.
        limits: allowed values per axis (and `replicas`, `halves`), absent ones are free, `cp` is 1.
    """
    free = dict(limits)
    paid = np.unique(np.asarray(chips, dtype=np.int64))
    least_chips = prod(max(free.get(axis) or (1,)) for axis in ("tp", "pp", "cp", "dp_attention"))
    largest = int(min(paid.max(), max(LARGEST_REPLICA, domain, least_chips) if joined else domain))

    numbers = np.arange(1, heads + 1)
    tp = _allowed(numbers[heads % numbers == 0], free.get("tp"))
    dp = _allowed(np.arange(1, largest + 1 if experts or copied else 2), free.get("dp_attention"))
    table = _cross(tp[tp <= largest, None], dp)
    table = _cross(table[table.prod(axis=1) <= largest], np.unique(free.get("cp") or (1,)))
    table = table[(table.prod(axis=1) <= largest) & _aligned(table, domain, tiled)]

    table = _cross(table, _allowed(np.arange(1, min(layers, largest) + 1), free.get("pp")))
    table = table[table.prod(axis=1) <= largest]
    if machine:
        stage, replica = table[:, :3].prod(axis=1), table.prod(axis=1)
        even = (machine % replica == 0) | (replica % machine == 0)
        # One that is larger than a domain of the fast network fills domains with each stage.
        table = table[even & ((replica <= domain) | (stage % domain == 0))]
    table = _cross(_with_experts(table, min(experts, largest), free), paid)
    if free.get("replicas") is None:
        most = _most(table, domain)
        table = np.column_stack([table, most])[most >= 1]
    else:
        table = _cross(table, np.asarray(free["replicas"], dtype=np.int64))
        table = table[(table[:, 7] >= 1) & (table[:, 7] <= _most(table, domain))]
    table = _halved(table, free.get("halves") or tuple(OVERLAP))
    return _columns(_cut_by_tokens(table, kv_heads, free.get("dcp")))


def _columns(table: np.ndarray) -> Layouts:
    table.flags.writeable = False
    tp, dp, cp, pp, ep, xtp, bought, replicas, halves, dcp = table.T
    return Layouts(tp, pp, cp, dp, ep, xtp, replicas, bought, halves, dcp=dcp)


def _with_experts(
    table: np.ndarray, groups: int, free: Mapping[str, tuple[int, ...]]
) -> np.ndarray:
    """Rows of (tp, dp, cp, pp) with each allowed way to spread experts: ep and tp_expert."""
    sizes = np.arange(1, groups + 1) if groups else np.ones(1, dtype=np.int64)
    table = _cross(table, _allowed(sizes, free.get("ep")))
    whole, ep = table[:, 0] * table[:, 1], table[:, 4]
    table, whole, ep = (values[whole % ep == 0] for values in (table, whole, ep))
    xtp = whole // ep if groups else np.ones(len(table), np.int64)
    table = np.column_stack([table, xtp])
    return table[np.isin(xtp, _allowed(xtp, free.get("tp_expert")))]


def _halved(table: np.ndarray, wanted: Sequence[int]) -> np.ndarray:
    """Rows of (tp, dp, cp, pp, ep, ...) with each wanted number of half-batches.

    Halves overlap an exchange between copies of attention and spread experts; others stay whole.
    """
    spread = table[(table[:, 1] > 1) & (table[:, 4] > 1)]
    parts = [_cross(table if n == 1 else spread, np.array([n])) for n in OVERLAP if n in wanted]
    return np.concatenate(parts)


def _cut_by_tokens(table: np.ndarray, heads: int, wanted: Sequence[int] | None) -> np.ndarray:
    """Rows of (tp, dp, cp, ...) with each wanted number of ranks that share contexts, 1 first.

    Several only where a rank then holds less: copies of `heads` are there, and no parts beside it.
    """
    tp, parts = table[:, 0], []
    for ways in range(1, int(tp.max(initial=1) if heads else 1) + 1):
        of_each = -(-heads // np.maximum(tp // ways, 1))
        fewer = (tp % ways == 0) & (of_each < -(-heads // tp) * ways) & (table[:, 2] == 1)
        if (ways == 1 or fewer.any()) and (wanted is None or ways in wanted):
            parts.append(_cross(table if ways == 1 else table[fewer], np.array([ways])))
    return np.concatenate(parts or [np.empty((0, table.shape[1] + 1), dtype=table.dtype)])


def _cross(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Every row of the table with every value appended, shape (rows * values, columns + 1)."""
    left = np.repeat(table, len(values), axis=0)
    return np.column_stack([left, np.tile(values, len(table))])


def _aligned(table: np.ndarray, domain: int, tiled: bool) -> np.ndarray:
    """True where a stage fits in one domain, or fills whole ones without a group across an edge.

    Ranks of one tensor lie next to each other, then those that share the experts, then the parts
    of a context: the columns of the table.
    """
    tp, whole, stage = np.cumprod(table, axis=1).T
    inside = (stage <= domain) & ((domain % stage == 0) if tiled else True)
    even = [(domain % group == 0) | (group % domain == 0) for group in (tp, whole)]
    return inside | ((stage % domain == 0) & even[0] & even[1])


def _most(table: np.ndarray, domain: int) -> np.ndarray:
    rooms = ChipSplit(table[:, :3].prod(axis=1), table[:, 3], np.full(len(table), domain))
    return max_replicas(table[:, 6], rooms)


def _allowed(values: np.ndarray, wanted: Sequence[int] | None) -> np.ndarray:
    return values if wanted is None else values[np.isin(values, np.asarray(wanted))]


def hop_groups(task: Task, layouts: Layouts) -> np.ndarray:
    """Group size whose slowest pair represents a hop between stages, for every layout.

    On a machine it is the replica. The rates of a fabric from a file are computed one size after
    the other, so there it is a pair of one domain, or two whole domains.
    """
    if task.fabric is None:
        return layouts.replica_chips
    from topologies.fabric.fabric import accelerators

    domain, chips = task.machine.chips_per_domain, len(accelerators(task.fabric))
    inside = layouts.replica_chips <= domain
    return np.where(inside, min(2, domain), min(2 * domain, chips))
