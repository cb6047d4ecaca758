"""Parts of a live page, which runs the search itself, for any problem kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Slider:
    """A quantity that a reader of a page may move, in base units.

    Args:
        name: what the address of the page calls it.
        label, group: what stands beside it, and the title above those that belong together.
        unit: base unit, "" for a factor on what the scenario has.
        value, low, high: of the scenario, and the ends of the track; None for no value of its own.
        sets: {path: value in the scenario} that the slider moves in proportion, as `--set` takes
            them; empty where no file says it. `written` is the unit beside the value there, if any.
        whole, logarithmic: whether only whole numbers are values; how the track is spaced.
    """

    name: str
    label: str
    group: str
    unit: str
    value: float | None
    low: float
    high: float
    sets: Mapping[str, float] = field(default_factory=dict)
    whole: bool = False
    logarithmic: bool = True
    written: str = ""


@dataclass(frozen=True)
class LiveEquation:
    """Equation of the chain from the objective down: MathML, symbol of its value, unit, source."""

    title: str
    mathml: str
    symbol: str
    unit: str
    source: str


@dataclass(frozen=True)
class LiveSymbol:
    """A symbol of the chain in MathML, with its meaning and unit; its value by its name."""

    mathml: str
    symbol: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class LivePage:
    """Content that a kind supplies for a live page; without a script only `refused` counts.

    Args:
        script: JavaScript that defines `pageModel(data, kernels)`, the search of the kind.
        kernels: JavaScript of the equations, an array of objects of functions.
        data: what the script reads: layouts as columns, values, limits; plain and finite.
        sliders: what may be moved.
        equations, symbols: the chain of equations, and what its letters mean.
        fixed: what no slider moves, in sentences.
        refused: why there is no slider at all; empty where there are some.
    """

    script: str = ""
    kernels: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    sliders: tuple[Slider, ...] = ()
    equations: tuple[LiveEquation, ...] = ()
    symbols: tuple[LiveSymbol, ...] = ()
    fixed: tuple[str, ...] = ()
    refused: str = ""
