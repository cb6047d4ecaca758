"""Reads machines.toml: figures of machines with source and date, and slices that makers offer.

Loads no graph library.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from topologies.fabric.limits import tupled
from topologies.rates.closed_forms import Sides

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
    """A figure as it stands in the file."""

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
    """The machines as they stand in the file, by name."""
    return _read()["machine"]


def aliases() -> Mapping[str, str]:
    """Other names of machines of the file, and the machines that they mean."""
    return _read()["alias"]


def figures(name: str) -> tuple[MachineFigure, ...]:
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
        name, tupled(entry["value"]), entry["unit"], source + note, str(entry["as_of"]), guess
    )


@dataclass(frozen=True)
class Slices:
    """The slices of one machine."""

    dims: Sides  # sides of the whole torus
    # Shapes that are offered one by one; without these and a cube every box is
    listed: tuple[Sides, ...] = ()
    cube: int = 0  # boxes of which all sides are multiples of this are offered too; 0 if none is
    largest: int | None = None  # chips of the largest slice; None if that is the whole torus
    alike: bool = True  # whether all sides have links of one rate, so that a shape may be turned

    def offers(self, shape: Sides) -> bool:
        """True if a slice of this shape is offered, in any rotation if sides are alike."""
        return any(turned in self._all() for turned in self._turns(shape))

    def of(self, chips: int) -> list[Sides]:
        """The shapes of slices with so many chips."""
        return [shape for shape in self._all() if prod(shape) == chips]

    def near(self, chips: int) -> list[Sides]:
        """One shape each of the next smaller and the next larger number of chips."""
        shapes = sorted(self._all(), key=lambda shape: (prod(shape), sum(shape)))
        below = [shape for shape in shapes if prod(shape) < chips]
        above = [shape for shape in shapes if prod(shape) > chips]
        most = [shape for shape in below if prod(shape) == prod(below[-1])] if below else []
        return [*most[:1], *above[:1]]

    def _turns(self, shape: Sides) -> list[Sides]:
        return [tuple(sorted(shape))] if self.alike else [tuple(shape)]

    def _all(self) -> list[Sides]:
        most = prod(self.dims) if self.largest is None else self.largest
        free = not self.listed and not self.cube
        boxes = self._boxes(1 if free else self.cube) if free or self.cube else iter(())
        named = (turned for shape in self.listed for turned in self._turns(shape))
        return [shape for shape in dict.fromkeys([*named, *boxes]) if prod(shape) <= most]

    def _boxes(self, step: int) -> Iterator[Sides]:
        """Boxes within the torus whose sides are multiples of `step`; sorted if turned freely."""
        dims = tuple(sorted(self.dims)) if self.alike else self.dims
        for sides in product(*(range(step, side + 1, step) for side in dims)):
            if not self.alike or list(sides) == sorted(sides):
                yield sides


def written(shape: Sequence[int]) -> str:
    """A shape as makers write it: 4x4x8."""
    return "x".join(map(str, shape))
