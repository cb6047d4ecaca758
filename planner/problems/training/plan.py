"""The answer to a training question, typed: layout, step, memory, days and money, proof, sources.

Everything is in base units; `to_document` makes JSON of it, keys in the order of the fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from planner.problems.training.question import TrainingQuestion
from planner.protocol.document import Byte, Day, Second, Share, Unit, Usd
from planner.protocol.plan import Answer, Plan, presentation_method
from planner.text.wording import degrees

Interval = tuple[float, float]


@dataclass(frozen=True)
class TrainingLayout:
    """Degrees of parallelism of a layout, and its other choices."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    tp_expert: int
    micro_batch: int
    virtual_stages: int
    schedule: str
    recompute: str
    zero: int
    offload: str
    sequence_parallel: bool
    overlap: bool

    @property
    def degrees(self) -> str:
        """Degrees of parallelism as text: `PP8 × TP2 × DP128, EP256`."""
        experts = self.tp_expert if self.ep > 1 else 1  # of others it is as `tp`
        return degrees(self.pp, self.tp, self.dp, self.cp, self.ep, experts)

    @property
    def text(self) -> str:
        """The layout with its choices, in words."""
        words = [self.degrees]
        virtual = f" VP{self.virtual_stages}" if self.virtual_stages > 1 else ""
        words += [f"{self.schedule}{virtual}"] * (self.pp > 1)
        words += [f"recompute {self.recompute}"] * (self.recompute != "none")
        words += [f"ZeRO-{self.zero}"] * (self.zero > 0)
        words += [f"{self.offload} offload"] * (self.offload != "none")
        return ", ".join([*words, f"micro-batch {self.micro_batch}"])


@dataclass(frozen=True)
class MemoryPerChip:
    """Memory per chip of the fullest stage; the parts and `free` add up to `total`.

    `total` is what a stack may fill; `free` is negative where the layout does not fit.
    """

    worst_stage: int
    stages: int
    weights: Byte
    gradients: Byte
    optimizer: Byte
    activations: Byte
    logits: Byte
    buffers: Byte
    free: Byte
    total: Byte


@dataclass(frozen=True)
class StepTerms:
    """Time of a step by part: `terms` add up to it, `hidden` runs behind arithmetic.

    `exposed_communication` and `hidden_communication` are sums of parts of either.
    """

    terms: Mapping[str, Second]
    hidden: Mapping[str, Second]
    exposed_communication: Second
    hidden_communication: Second


@dataclass(frozen=True, kw_only=True)
class TrainingPoint:
    """Layout, with all quantities computed from it by the equations of `formulas`."""

    system: str
    chips: int
    chips_used: int
    layout: TrainingLayout
    step_time: Second
    tokens_per_s: Annotated[float, Unit("token/s")]
    tokens_per_s_per_chip: Annotated[float, Unit("token/(s*chip)")]
    mfu: Share
    hfu: Share
    bubble: Share
    micro_batches: int
    steps: float | None
    days: Day | None
    usd: Usd | None
    usd_per_mtok: Annotated[float, Unit("USD per million tokens")]
    energy: Annotated[float, Unit("J")] | None
    joule_per_token: Annotated[float, Unit("J/token")] | None
    goodput: Share | None
    checkpoint_interval: Second | None
    time_between_failures: Second | None
    memory_per_chip: MemoryPerChip
    time_per_step: StepTerms
    fits: bool


@dataclass(frozen=True)
class RunBand:
    """Ranges that hold the stated share of measured runs; the error is of runs left out."""

    coverage: Share
    step_time: Interval
    tokens_per_s: Interval
    mfu: Interval
    days: Interval | None
    usd: Interval | None
    stack: str
    rows: int
    median_error: Share | None


@dataclass(frozen=True)
class TrainingBound:
    """Lower bounds on the step time of any layout on the chips of the plan.

    `step_time` is the causal arithmetic at peak; `with_traffic` adds the least time of every other
    term over all layouts that fit.
    """

    step_time: Second
    with_traffic: Second


@dataclass(frozen=True)
class TrainingCertificate:
    """Certificate that the layout is optimal.

    `layouts_seen` were timed, `layouts_fitting` fit into memory, `layouts_within` keep the limits
    too. `objective` and `relaxation` are in the unit of what is made small; `recheck` is how far
    the scalar evaluation of the chosen layout lies from the arrays, relative.
    """

    method: str
    layouts_seen: int
    layouts_fitting: int
    layouts_within: int
    objective: float | None
    relaxation: float | None
    gap: Share | None
    recheck: float | None


@dataclass(frozen=True)
class OtherLayout:
    """Alternative layout: its step time, MFU and memory, and its relative loss of the objective."""

    system: str
    chips: int
    choice: str
    layout: TrainingLayout
    step_time: Second
    mfu: Share
    memory: Byte
    loses: Share


@dataclass(frozen=True)
class CurrentLayout:
    """Layout in use, and the share of the objective that the plan saves against it."""

    plan: TrainingPoint
    short_by: Byte | None
    saving: Share | None


@dataclass(frozen=True)
class Repair:
    """Single change PATH=VALUE that makes the question feasible, with the step time and price."""

    change: str
    choice: str
    step_time: Second
    usd_per_mtok: Annotated[float, Unit("USD per million tokens")]


@dataclass(frozen=True)
class NearestLayout:
    """The layout nearest to fitting, by how much memory is short, and changes that repair it."""

    plan: TrainingPoint
    short_by: Byte
    repairs: tuple[Repair, ...]


@dataclass(frozen=True, kw_only=True)
class TrainingAnswer(Answer):
    """The whole answer to a training question."""

    problem: str = "training"
    plan: TrainingPoint | None = None
    band: RunBand | None = None
    bound: TrainingBound | None = None
    certificate: TrainingCertificate
    alternatives: tuple[OtherLayout, ...] = ()
    current: CurrentLayout | None = None
    nearest: NearestLayout | None = None
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlan(Plan[TrainingAnswer]):
    """The answer to a training question, and the question."""

    question: TrainingQuestion

    kind = "training"
    cost_of = "usd_per_mtok"  # USD per million tokens
    answer_type = TrainingAnswer

    why = presentation_method("explanation_text")
