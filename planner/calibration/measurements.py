"""One measurement of serving in the catalogue's words, or the reason why it has no prediction.

Published tables name chips, models, formats and layouts freely; the names are kept as data in
`aliases.toml`, so that an unknown one is refused by name instead of guessed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from planner.architecture import Model, from_config, sizes
from planner.architecture.counts import Sizes
from planner.catalogue.chips import Chip, chip
from planner.catalogue.models import load
from planner.errors import InputError

__all__ = ["Measurement", "NotComputed", "Refused", "aliases", "chip_of", "layout_of", "sizes_of"]

ONE = {"tp": 1, "pp": 1, "dp_attention": 1, "ep": 1, "tp_expert": 1}
AXES = {"TP": "tp", "PP": "pp", "DP": "dp_attention", "EP": "ep"}


class Refused(InputError):  # noqa: N818 - an answer, raised
    """A row cannot be put into the catalogue's words; the message is the reason."""


@dataclass(frozen=True)
class NotComputed:
    """A row without a prediction and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Measurement:
    """One measured time of one replica.

    `quantity` is `step` (one decode step, or per token under speculation), `ttft` (the whole
    batch's prompts), `e2e` (a static batch, prompts and all steps) or `tpot` (mean under load at
    a concurrency); `seconds` its value [s]. `batch` are sequences over the replica, lengths are
    in tokens; `layout` holds ways by axis, None where it was not understood. `drafts` is the
    number of speculated tokens per step; `looped` says that `batch` requests were kept in flight
    by a closed loop, prompts included. `leanest` are the sizes in the narrowest formats that the
    table leaves possible, for the bound; None where it leaves no choice. `group` names model,
    chip and engine.
    """

    id: str
    source: str
    engine: str
    model: str
    sizes: Sizes
    chip: Chip
    machine: str | None
    chips: int
    layout: Mapping[str, int] | None
    batch: float
    prompt: float
    output: float
    context: float
    quantity: str
    seconds: float
    quality: str
    drafts: int = 0
    precision: str = ""
    version: str = ""
    looped: bool = False
    leanest: Sizes | None = None

    @property
    def chip_name(self) -> str:
        """Catalogue name of the chip."""
        return self.chip.name

    @property
    def group(self) -> str:
        """Model, chip and engine: rows of one group are never split between fit and test."""
        return f"{self.model} {self.chip.name} {self.engine}"


@cache
def aliases() -> Mapping[str, Any]:
    """The table of names."""
    path = files("planner.calibration").joinpath("aliases.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def chip_of(name: str) -> Chip:
    """The catalogue's chip for a published spelling; raises Refused for one without figures."""
    known = aliases()["chips"]
    if name not in known:
        raise Refused(f"no chip figures for {name!r}")
    return chip(known[name])


@cache
def sizes_of(
    model: str, weights: str | None, kv: str | None, activations: str | None = None
) -> Sizes:
    """Sizes of a published model name in the given formats, None meaning the checkpoint's own."""
    table = aliases()
    if model in table["shapes"]:
        shape = table["shapes"][model]
        layers: Model = from_config(shape["config"], model, where=model, source=shape["source"])
    elif model in table["models"]:
        name = table["models"][model]
        other = table["quantised"].get(f"{name} {weights}")
        layers = load(other or name)
        weights = None if other else weights
    else:
        raise Refused(f"no shape for the model {model!r}")
    return sizes(layers, weights, kv, activations)


def layout_of(text: str, chips: int, experts: int) -> dict[str, int] | None:
    """Ways by axis of a free-text layout such as TP8, TP8EP4, EP32/DP32 or DEP4.

    None where the text names no axis or does not multiply to the number of chips.
    """
    text = re.split(r"[+,]", text, maxsplit=1)[0]
    if text == "single":
        return dict(ONE)
    if text.startswith("layer-split"):
        return {**ONE, "pp": chips}
    ways = {AXES[axis]: int(n) for axis, n in re.findall(r"(TP|PP|DP|EP)(\d+)", text)}
    joined = re.fullmatch(r"(D|T)EP(\d+)", text)
    if joined:
        ways = {"dp_attention" if joined[1] == "D" else "tp": int(joined[2]), "ep": int(joined[2])}
    if not ways:
        return None
    found = {**ONE, **ways}
    stage = found["tp"] * found["dp_attention"]
    if stage * found["pp"] != chips or stage % found["ep"]:
        return None
    return {**found, "tp_expert": stage // found["ep"] if experts else 1}
