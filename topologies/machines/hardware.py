"""Machines as a few figures: the scale-up domain, and the interconnect of domains.

Loads no graph library. All rates are per chip and one way: a vendor's bidirectional figure is
twice ours. Figures with source and date, and slices that makers offer, stand in machines.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import product
from math import isclose, prod
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from topologies.fabric.limits import (
    TopologyError,
    as_tuples,
    count_fault,
    latency_fault,
    rate_fault,
    suggest,
)
from topologies.rates.closed_forms import BoxSides, best_box

MACHINE_KINDS = ("switch", "mesh", "torus")
JOINS = ("spine", "rails", "clos")
CERTAINTIES = {
    "stated": "",
    "announced": "figures from before its release",
    "unverified": "figures from memory or second hand, not verified",
}


@dataclass(frozen=True)
class Machine:
    """Chips in scale-up domains of one kind, and the network between the domains.

    Vary one with `dataclasses.replace`; a figure's source stays only while its value does.

    Attributes:
        kind: `switch` (one non-blocking switch), `mesh` (each chip wired to each) or `torus`.
        chips_per_domain: Chips that scale-up links join; for a torus the product of `dims`.
        scale_up: Into the scale-up network, over all links of a chip together. [byte/s one way]
        scale_out: Into the network between domains; None if there is none or it is not known.
            [byte/s one way]
        scale_up_latency, scale_out_latency: Of one arc; chip to chip is two of them through a
            switch, one in a mesh or torus. [s]
        dims, port_weights: Sides of the torus, and how a chip's rate is divided between links along
            each of them.
        ring, ring_all: A side of the torus closes into a ring if it is a multiple of `ring` (0:
            never), and, with `ring_all`, only if all the others are multiples too.
        in_network_reduce, reduce_from: Whether the switches add what passes through, and from which
            group size that is used.
        join, leaf, oversubscription: What joins domains: one non-blocking `spine`, `rails`, or a
            `clos` network with `leaf` cards on a leaf switch and o of o:1 above it.
        twisted: Whether the rings of the torus are twisted.
        slices, cube, largest_slice, twists: Shapes of slices that are offered, the side of the
            cubes that make up all others, the chips of the largest, and whether slices of sides k
            and 2k may be twisted.
        dies_per_chip: Compute dies in a package. Product names count sometimes the one, sometimes
            the other.
        certainty: `stated` by a source, `announced` before release, or `unverified`.
    """

    name: str
    kind: str
    chips_per_domain: int
    scale_up: float
    scale_out: float | None
    scale_up_latency: float
    scale_out_latency: float
    dims: tuple[int, ...] = ()
    port_weights: tuple[int, ...] = ()
    ring: int = 1
    ring_all: bool = False
    in_network_reduce: bool = False
    reduce_from: int | None = None
    title: str = ""
    join: str = "spine"
    leaf: int | None = None
    oversubscription: float = 1.0
    twisted: bool = False
    slices: tuple[BoxSides, ...] = ()
    cube: int = 0
    largest_slice: int | None = None
    twists: bool = False
    dies_per_chip: int = 1
    certainty: str = "stated"
    figures: tuple[MachineFigure, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        problems = [*_number_problems(self), *_shape_problems(self), *_joint_problems(self)]
        if problems:
            raise TopologyError(f"machine {self.name!r}", problems)
        if self.kind == "torus" and not self.port_weights:
            object.__setattr__(self, "port_weights", (1,) * len(self.dims))
        unchanged = tuple(f for f in self.figures if _agrees(f.value, getattr(self, f.name)))
        object.__setattr__(self, "figures", unchanged)

    @classmethod
    def from_figures(
        cls,
        name: str,
        chips_per_domain: int,
        scale_up: float,
        scale_out: float | None = None,
        kind: str = "switch",
        **others: object,
    ) -> Machine:
        """Build a custom machine; latencies not given are the catalogue's for its kind.

        Raises TopologyError, listing every figure that is unsound or unknown.
        """
        attributes = {f.name for f in fields(cls)} - {"figures"}
        strange = [
            f"unknown figure {o!r}; {suggest(o, attributes)}" for o in others if o not in attributes
        ]
        if strange:
            raise TopologyError(f"machine {name!r}", strange)
        # An unknown kind is reported by the machine itself, with its other faults.
        usual = {
            "scale_up_latency": usual_latency(kind if kind in MACHINE_KINDS else "switch").value,
            "scale_out_latency": usual_latency("scale_out").value,
        }
        made: Callable[..., Machine] = cls
        return made(name, kind, chips_per_domain, scale_up, scale_out, **{**usual, **others})

    @property
    def links(self) -> tuple[float, ...]:
        """Bandwidth of one link: into the switch, to one peer, or along each side. [byte/s]"""
        if self.kind == "switch":
            return (self.scale_up,)
        if self.kind == "mesh":
            return (self.scale_up / max(self.chips_per_domain - 1, 1),)
        ports = 2 * sum(self.port_weights)
        return tuple(self.scale_up * weight / ports for weight in self.port_weights)

    @property
    def rings(self) -> tuple[bool, ...]:
        """For each side of the torus, whether it closes into a ring."""
        return self.rings_of(self.dims)

    @property
    def above(self) -> float | None:
        """Uplink bandwidth of a leaf or rail per card [byte/s]; None without a level above."""
        bare = self.join == "spine" or (self.join == "rails" and self.oversubscription == 1)
        return None if bare or self.scale_out is None else self.scale_out / self.oversubscription

    def box(self, chips: int) -> tuple[int, ...]:
        """Sides of the slice that `chips` chips of a torus are given.

        Raises TopologyError when the machine is no torus or no box of that many chips fits into it.
        """
        if self.kind != "torus":
            raise TopologyError(f"machine {self.name!r}", f"a {self.kind} has no slices")
        if chips == 1:
            return (1,) * len(self.dims)
        return best_box(self.dims, chips, self.links, self.rings_of, exact=True)

    def rings_of(self, sides: BoxSides) -> tuple[bool, ...]:
        """For each side of a slice of this torus, whether it closes into a ring."""
        fits = [bool(self.ring) and side % self.ring == 0 for side in sides]
        return (all(fits),) * len(fits) if self.ring_all else tuple(fits)

    @property
    def offered(self) -> Slices:
        """The slices that are offered of this torus."""
        alike = len(set(self.port_weights)) <= 1
        return Slices(self.dims, self.slices, self.cube, self.largest_slice, alike)

    @property
    def caution(self) -> str:
        """A caution about the figures as a whole; empty if their sources state them."""
        return CERTAINTIES[self.certainty]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Uncertain figures of the machine, a line each; empty if every figure is stated."""
        whole = [f"{self.title or self.name}: {self.caution}"] if self.caution else []
        return (*whole, *(f"{f.name}: {f.source}" for f in self.figures if f.assumed))


def _agrees(value: object, now: object) -> bool:
    if isinstance(value, tuple) and isinstance(now, tuple):
        return len(value) == len(now) and all(map(_agrees, value, now))
    if isinstance(value, bool) or not (
        isinstance(value, int | float) and isinstance(now, int | float)
    ):
        return value == now
    return isclose(value, now, rel_tol=1e-12)


def _number_problems(m: Machine) -> list[str]:
    checks = [
        ("chips_per_domain", count_fault(m.chips_per_domain)),
        ("scale_up", rate_fault(m.scale_up)),
        ("scale_out", None if m.scale_out is None else rate_fault(m.scale_out)),
        ("scale_up_latency", latency_fault(m.scale_up_latency)),
        ("scale_out_latency", latency_fault(m.scale_out_latency)),
        ("reduce_from", None if m.reduce_from is None else count_fault(m.reduce_from)),
        ("dies_per_chip", count_fault(m.dies_per_chip)),
        ("leaf", None if m.leaf is None else count_fault(m.leaf)),
        ("largest_slice", None if m.largest_slice is None else count_fault(m.largest_slice)),
        *((f"dims[{d}]", count_fault(side)) for d, side in enumerate(m.dims)),
        *((f"port_weights[{d}]", count_fault(w)) for d, w in enumerate(m.port_weights)),
    ]
    return [f"{name} {fault}" for name, fault in checks if fault is not None]


def _shape_problems(m: Machine) -> list[str]:
    if m.kind not in MACHINE_KINDS:
        return [f"kind is {m.kind!r}; {suggest(m.kind, MACHINE_KINDS)}"]
    if m.kind != "torus":
        return [f"dims is {m.dims}; only a torus has them"] if m.dims else []
    problems = []
    if not 1 <= len(m.dims) <= 3:
        problems.append(f"dims is {m.dims}; a torus has one to three sides")
    elif all(count_fault(side) is None for side in m.dims) and prod(m.dims) != m.chips_per_domain:
        problems.append(f"dims {m.dims} hold {prod(m.dims)} chips, not {m.chips_per_domain}")
    if m.port_weights and len(m.port_weights) != len(m.dims):
        problems.append(f"port_weights has {len(m.port_weights)} entries for {len(m.dims)} sides")
    return problems


def _joint_problems(m: Machine) -> list[str]:
    problems = []
    if m.join not in JOINS:
        problems.append(f"join is {m.join!r}; {suggest(m.join, JOINS)}")
    if m.certainty not in CERTAINTIES:
        problems.append(f"certainty is {m.certainty!r}; {suggest(m.certainty, CERTAINTIES)}")
    ratio = m.oversubscription
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 1 <= ratio < 1e6:
        problems.append(f"oversubscription is {ratio!r}; a number of at least 1 was expected")
    elif ratio != 1 and m.join == "spine":
        problems.append("oversubscription goes with join rails or clos: a spine never blocks")
    if (m.leaf is not None) != (m.join == "clos"):
        problems.append("leaf, the cards on a leaf switch, goes with join clos and only with it")
    if m.twisted and not (m.kind == "torus" and set(m.dims) == {min(m.dims), 2 * min(m.dims)}):
        problems.append(f"twisted goes with a torus of sides k and 2k, not with {m.dims or m.kind}")
    return problems


GUESSES = ("assumed", "memory")
FILE = Path(__file__).with_name("machines.toml")


@dataclass(frozen=True)
class MachineFigure:
    """One number of a machine, where it comes from, when it was read, and if it is a mere guess."""

    name: str
    value: object
    unit: str
    source: str
    as_of: str
    assumed: bool = False


class FigureRow(TypedDict):
    """A figure as written in the file."""

    value: object
    unit: str
    source: str
    as_of: object
    note: NotRequired[str]


class MachineFile(TypedDict):
    """The tables of the file."""

    machine: Mapping[str, Mapping[str, object]]
    alias: Mapping[str, str]
    latency: Mapping[str, FigureRow]
    source: Mapping[str, str]


def entries() -> Mapping[str, Mapping[str, object]]:
    """The machines as written in the file, by name."""
    return _read()["machine"]


def aliases() -> Mapping[str, str]:
    """Other names of machines of the file, and the machines that they mean."""
    return _read()["alias"]


def sourced_figures(name: str) -> tuple[MachineFigure, ...]:
    """The sourced figures of a machine of the file; latencies not its own are the usual ones."""
    entry = entries()[name]
    rows = {key: row for key, row in entry.items() if isinstance(row, dict)}
    values = [_figure(key, cast(FigureRow, row)) for key, row in rows.items()]
    tiers = {"scale_up_latency": str(entry["kind"]), "scale_out_latency": "scale_out"}
    usual = [usual_latency(tier, key) for key, tier in tiers.items() if key not in entry]
    return (*values, *usual)


def usual_latency(tier: str, name: str = "latency") -> MachineFigure:
    """Latency of one arc of a switch, a mesh, a torus or scale_out, if no better is known. [s]"""
    return _figure(name, _read()["latency"][tier])


@cache
def _read() -> MachineFile:
    return cast(MachineFile, tomllib.loads(FILE.read_text(encoding="utf-8")))


def _figure(name: str, entry: FigureRow) -> MachineFigure:
    source = _read()["source"][entry["source"]]
    note = f" ({entry['note']})" if "note" in entry else ""
    guess = entry["source"] in GUESSES
    return MachineFigure(
        name, as_tuples(entry["value"]), entry["unit"], source + note, str(entry["as_of"]), guess
    )


@dataclass(frozen=True)
class Slices:
    """The slices of one machine."""

    dims: BoxSides  # sides of the whole torus
    # Shapes that are offered one by one; without these and a cube every box is
    listed: tuple[BoxSides, ...] = ()
    cube: int = 0  # boxes whose sides are all multiples of this are offered too; 0 for no boxes
    largest: int | None = None  # chips of the largest slice; None if that is the whole torus
    alike: bool = True  # whether all sides have links of one rate, so that a shape may be turned

    def offers(self, shape: BoxSides) -> bool:
        """True if a slice of this shape is offered, in any rotation if all links are equal."""
        return any(turned in self._all_sides() for turned in self._turns(shape))

    def of(self, chips: int) -> list[BoxSides]:
        """Shapes of slices with `chips` chips."""
        return [shape for shape in self._all_sides() if prod(shape) == chips]

    def near(self, chips: int) -> list[BoxSides]:
        """One shape each of the next smaller and the next larger number of chips."""
        shapes = sorted(self._all_sides(), key=lambda shape: (prod(shape), sum(shape)))
        below = [shape for shape in shapes if prod(shape) < chips]
        above = [shape for shape in shapes if prod(shape) > chips]
        most = [shape for shape in below if prod(shape) == prod(below[-1])] if below else []
        return [*most[:1], *above[:1]]

    def _turns(self, shape: BoxSides) -> list[BoxSides]:
        return [tuple(sorted(shape))] if self.alike else [tuple(shape)]

    def _all_sides(self) -> list[BoxSides]:
        most = prod(self.dims) if self.largest is None else self.largest
        free = not self.listed and not self.cube
        boxes = self._boxes(1 if free else self.cube) if free or self.cube else iter(())
        named = (turned for shape in self.listed for turned in self._turns(shape))
        return [shape for shape in dict.fromkeys([*named, *boxes]) if prod(shape) <= most]

    def _boxes(self, step: int) -> Iterator[BoxSides]:
        dims = tuple(sorted(self.dims)) if self.alike else self.dims
        for sides in product(*(range(step, side + 1, step) for side in dims)):
            if not self.alike or list(sides) == sorted(sides):
                yield sides


def shape_text(shape: Sequence[int]) -> str:
    """A shape as makers write it: 4x4x8."""
    return "x".join(map(str, shape))
