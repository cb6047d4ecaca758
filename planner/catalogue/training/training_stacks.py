"""Stacks: a generation of training software on the hardware, as fitted coefficients.

A stack is a name, a date and a set of coefficients of the equations of a training step, each with
how far it may be off; adjustments say what a chip, a number format or an attention kernel changes
about them, bands what measured step times were beside those predicted. A coefficient that no row of
a stack moved is that of the physical prior, which all stacks share.

Frameworks of reinforcement learning: what they add to the time of their two pools.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from planner.catalogue.figures import entry, load_toml
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.quantities import parse
from planner.text.tables import table

FILE = "training_stacks.toml"
ANY_VALUE = "every"  # an adjustment of all times together
NO_TIME = frozenset({"k_hide", "M_base", "k_act", "k_state", "k_loss"})  # shares and memory
SHARES = ("k_hide",)  # of a time: what no fit and no file may pass
IN_SAMPLE, NEW_MODEL, NEW_CHIP = "known", "new-model", "new-chip"


@dataclass(frozen=True)
class PriorCoefficient:
    """A coefficient before any row: its value, and the standard deviation of its logarithm [1].

    No fit passes `least` or `most`: a share ends at one, no collective is faster than its links.
    """

    value: float
    spread: float
    why: str
    least: float = 0.0
    most: float = math.inf


@dataclass(frozen=True)
class StackAdjustment:
    """A factor on one coefficient, at a place: `scope` is what of the place, `at` its word."""

    of: str
    scope: str
    at: str
    factor: float


@dataclass(frozen=True)
class TrainingBand:
    """Measured over predicted step time: the factors that hold 80 % of rows left out."""

    low: float
    high: float
    n: int


@dataclass(frozen=True)
class TrainingStack:
    """Coefficients of one generation of training software, and how far they may be off.

    `values` by coefficient [1, s or byte], `spreads` the standard deviations of their logarithms.
    `chips`, `models` and `formats` (such as "dense fp8") were fitted; `rows` counts the
    measurements; `varied` are the parts of a layout that they varied. `pooled_cards`: members of a
    group in one domain share their network cards. `embedding_layers` are layers that embedding and
    head count as where that evens the stages; `wire` the bytes of a gradient on the wire;
    `zero_pipeline` whether ZeRO-2 and 3 run under a pipeline. `gathered`: inputs that sequence
    parallelism gathers stay whole, and so do logits on every tensor-parallel rank; `eager`: norms,
    gates and losses of single kernels keep what stands between them; `overlaps`: gradients are
    reduced behind the backward pass. `stage_items` before and behind the layers are always dealt to
    stages as if they were layers, one more to the first where they are not even. `bands` by `dense`
    or `routed`, then by kind of distance. `errors` are, by what was left out, median and mean
    absolute error, those of a constant MFU [%], and the rows. `eras` are the latest releases, of
    dense and of routed models. `findings` are what the rows alone say of a coefficient: logarithm
    over the prior of physics, and its standard deviation [1]. `routed_noise` is what a fit takes
    the logarithms of steps of routed models to be off by, beyond what layouts explain [1].
    """

    name: str
    title: str
    as_of: str
    source: str
    chips: tuple[str, ...]
    models: tuple[str, ...]
    rows: int
    values: Mapping[str, float]
    spreads: Mapping[str, float]
    adjustments: tuple[StackAdjustment, ...] = ()
    bands: Mapping[str, Mapping[str, TrainingBand]] = field(default_factory=dict)
    errors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    pooled_cards: bool = True
    embedding_layers: int = 2
    wire: float = 4.0
    zero_pipeline: bool = False
    gathered: bool = False
    eager: bool = False
    overlaps: bool = True
    stage_items: tuple[int, ...] = ()
    memory_share: float = 1.0
    routed_noise: float = 0.04
    eras: Mapping[str, str] = field(default_factory=dict)
    varied: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    findings: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def coefficients(self, place: Mapping[str, str]) -> dict[str, float]:
        """Every coefficient at a place, such as {chip: h100, precision: fp8, kernel: flash}.

        No place makes one less than physics lets it be; in a format that no row ran in, products
        are no faster than the best that was measured on the chip.
        """
        values = dict(self.values)
        for change in self.adjustments:
            if place.get(change.scope) != change.at:
                continue
            for name in sorted(values.keys() - NO_TIME) if change.of == ANY_VALUE else (change.of,):
                values[name] *= change.factor
        priors = coefficient_priors()
        routed = place.get("part") == "routed"
        strange = not self.measured_in(place.get("precision", ""), routed=routed)
        share = _reached().get((place.get("chip", ""), place.get("precision", "")), math.inf)
        floor = {"k_mat": 1 / share, "k_expert": 1 / share} if strange else {}
        return {
            name: max(priors[name].least, floor.get(name, 0.0), value)
            for name, value in values.items()
        }

    def measured_in(self, precision: str, *, routed: bool) -> bool:
        """True if a row ran such models in this format, or if the stack lists no formats."""
        part = "routed" if routed else "dense"
        return not self.formats or f"{part} {precision}" in self.formats

    def band(
        self, *, routed: bool, model: str = "", chip: str = "", precision: str = ""
    ) -> TrainingBand:
        """Factors on a step time that contain 80 % of rows at an equal distance from the fit.

        A kind of distance that no row measured, a number format among them, is taken twice as
        wide, in logarithms, as the farthest that one did.
        """
        part = "routed" if routed and "routed" in self.bands else "dense"
        kinds, kind = self.bands[part], IN_SAMPLE
        if model and model not in self.models:
            kind = NEW_MODEL
        if chip and chip not in self.chips:
            kind = NEW_CHIP
        farthest = kinds.get(NEW_CHIP) or kinds.get(NEW_MODEL) or kinds[IN_SAMPLE]
        band = kinds.get(kind) or _twice(farthest)
        strange = precision and not self.measured_in(precision, routed=routed)
        return _twice(band) if strange or (routed and part == "dense") else band


def _twice(band: TrainingBand) -> TrainingBand:
    return TrainingBand(band.low**2, band.high**2, 0)


@cache
def coefficient_priors() -> Mapping[str, PriorCoefficient]:
    """Physical prior of every coefficient, by name."""
    rows = table("planner.catalogue", FILE)["prior"]
    return {name: PriorCoefficient(**row) for name, row in rows.items()}


@cache
def _reached() -> Mapping[tuple[str, str], float]:
    """Share of the peak that the best product reached [1], by chip and format."""
    rows = table("planner.catalogue", FILE)["reached"]
    return {(row["chip"], row["precision"]): row["share"] for row in rows}


@cache
def usual_adjustments() -> tuple[StackAdjustment, ...]:
    """Physical prior of the adjustments by place, before any row."""
    rows = table("planner.catalogue", FILE)["usual"]
    return tuple(
        StackAdjustment(*(row[k] for k in ("of", "scope", "at", "factor"))) for row in rows
    )


@cache
def training_stack_names() -> tuple[str, ...]:
    """Names of the stacks that ship."""
    return tuple(table("planner.catalogue", FILE)["stack"])


@cache
def training_stack(name: str) -> TrainingStack:
    """A stack by name, or by the path of a file that `planner calibrate` wrote.

    Raises CatalogueError with the nearest name.
    """
    stacks = table("planner.catalogue", FILE)["stack"]
    if name in stacks:
        return parse_stack(name, stacks[name])
    if name.endswith(".toml"):
        path = Path(name)
        raw = load_toml(path, "training stack")
        try:
            return parse_stack(path.stem, raw)
        except KeyError as error:
            raise CatalogueError(f"{path}: is no training stack: no {error.args[0]}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise CatalogueError(f"{path}: is no training stack: {error}") from None
    raise CatalogueError(
        f"no training stack {name!r}{did_you_mean(name, tuple(stacks))}; known stacks: "
        f"{', '.join(stacks)}; or the path of a .toml file that planner calibrate wrote"
    )


def choose_training_stack(wanted: str, chip: str, *, routed: bool = False) -> TrainingStack:
    """The stack to use.

    Args:
        wanted: a stack's name, a file, or `auto`: the newest that was fitted on this chip in
            layouts with tensor and pipeline parallelism.
        routed: whether the model has routed experts.
    """
    if wanted != "auto":
        return training_stack(wanted)
    return max(
        (training_stack(name) for name in training_stack_names()),
        key=lambda s: (
            chip in s.chips, routed <= ("routed" in s.bands), {"tp", "pp"} <= {*s.varied},
            s.as_of, s.rows,
        ),
    )  # fmt: skip


def parse_stack(name: str, raw: Mapping[str, Any]) -> TrainingStack:
    """Stack from the contents of its table; coefficients that no row moved are the prior's.

    Raises CatalogueError for a coefficient that there is not.
    """
    priors = coefficient_priors()
    for table_name in ("coefficients", "spreads"):
        for coefficient in raw.get(table_name, {}):
            if coefficient not in priors:
                hint = did_you_mean(coefficient, tuple(priors))
                raise CatalogueError(f"stack {name}: no coefficient {coefficient!r}{hint}")
    values = {c: prior.value for c, prior in priors.items()} | raw["coefficients"]
    for share in SHARES:
        if not 0 <= values[share] <= priors[share].most:
            raise CatalogueError(
                f"stack {name}: {share} = {values[share]:g} is a share: give 0 to "
                f"{priors[share].most:g}, since communication cannot hide in more than the step"
            )
    spreads = {c: prior.spread for c, prior in priors.items()} | raw.get("spreads", {})
    bands = {
        part: {kind: TrainingBand(low, high, int(n)) for kind, (low, high, n) in kinds.items()}
        for part, kinds in raw["bands"].items()
    }
    simple = ("title", "as_of", "source", "rows", "pooled_cards", "embedding_layers", "wire",
              "zero_pipeline", "gathered", "eager", "overlaps", "memory_share",
              "routed_noise")  # fmt: skip
    return TrainingStack(
        name=name, chips=tuple(raw["chips"]), models=tuple(raw.get("models", ())),
        varied=tuple(raw.get("varied", ())), formats=tuple(raw.get("formats", ())),
        values={c: float(v) for c, v in values.items()},
        spreads={c: float(v) for c, v in spreads.items()},
        adjustments=tuple(StackAdjustment(**row) for row in raw.get("adjustments", ())),
        bands=bands, errors=dict(raw.get("errors", {})), eras=dict(raw.get("eras", {})),
        findings={c: (mean, sd) for c, (mean, sd) in raw.get("findings", {}).items()},
        stage_items=tuple(raw.get("stage_items", ())),
        **{key: raw[key] for key in simple if key in raw},
    )  # fmt: skip


@dataclass(frozen=True)
class RlFramework:
    """Factors on the time of rollouts and of learning [1], and a further time [s]."""

    name: str
    title: str
    rollouts: float
    learning: float
    beside: float
    source: str
    as_of: str


@cache
def rl_frameworks() -> dict[str, RlFramework]:
    """All frameworks by name."""
    rows = table("planner.catalogue.training", "rl_frameworks.toml")
    return {
        name: RlFramework(name, **row | {"beside": parse(row["beside"], "time")})
        for name, row in rows.items()
    }


def rl_framework(name: str) -> RlFramework:
    """A framework by name; raises CatalogueError for one that is not known."""
    return entry("framework", name, rl_frameworks())
