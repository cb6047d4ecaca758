"""Records of the advice on a plan: promises, sizes, remedies, other weights, accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.problems.serving.point import Chips, PerHour, Share, ShortPoint, UsdPerMtok
from planner.protocol.plan import MissedPromise


@dataclass(frozen=True)
class WayOut:
    """A change that leaves a plan, as `--set` takes it, and what that plan costs."""

    sets: Mapping[str, str | float | None]
    usd_per_mtok: UsdPerMtok
    usd_per_hour: PerHour


@dataclass(frozen=True)
class CheaperWeights:
    """Weights of another format that the chips run, as `choose.weights` takes it, and its price.

    `engines` run that plan from the checkpoint as it stands: none where it must be converted.
    """

    weights: str
    engines: tuple[str, ...] | None
    usd_per_mtok: UsdPerMtok
    saving: Share


@dataclass(frozen=True)
class CheaperCaches:
    """Caches of a narrower format, as `choose.kv` takes it, and the price with them."""

    kv: str
    usd_per_mtok: UsdPerMtok
    saving: Share


@dataclass(frozen=True)
class FleetSize:
    """Number of chips, its cost, and the minimum chance over the promises of its plan.

    `reason` says why it is looked at: the fewest that keep the promises with the chance asked for
    (`fewest`) or with nine in ten (`sure`), or the least price per token (`least price`). `unit`
    are the chips rented together, `machines` how many such units; `sets` leads to the plan. One
    unit fewer `lacks` these, as far as that was looked at.
    """

    reason: str
    chips: Chips
    unit: Chips
    machines: int
    usd_per_hour: PerHour
    usd_per_mtok: UsdPerMtok
    chance: Share | None
    word: str | None
    plan: ShortPoint
    sets: Mapping[str, str | float | None]
    lacks: tuple[MissedPromise, ...] = ()


@dataclass(frozen=True)
class SimplerPlan:
    """The best plan inside the fit, of whole equal machines or parts, without stages or overlap.

    `behind` is by how much its objective is worse; `is_plan` where the plan is that one.
    """

    plan: ShortPoint
    behind: Share
    is_plan: bool


@dataclass(frozen=True)
class SurePlan:
    """Best plan whose promises hold in nine of ten cases, and its extra cost per token."""

    chance: Share
    usd_per_mtok: UsdPerMtok | None
    usd_per_hour: PerHour | None
    dearer: Share | None
    plan: ShortPoint | None


@dataclass(frozen=True)
class UsedLimit:
    """Used share of a limit; `binds`: all of it, or one more sequence would exceed it."""

    limit: str
    used: Share
    binds: bool


@dataclass(frozen=True)
class QuotedAccuracy:
    """Median held-out errors of one kind of plan, from fits that excluded such runs.

    `left_out` is what those fits did not see, None where none left such runs out.
    """

    of: str
    left_out: str | None
    tpot: Share | None
    tpot_rows: int | None
    ttft: Share | None
    ttft_rows: int | None


@dataclass(frozen=True)
class NarrowingRun:
    """Measurement run that would narrow the extrapolation most, as commands in their order.

    `sigma` is the standard deviation of the logarithm of the time that it takes away. Where the
    plan overlaps two batches the run does not: it would not tell what they hide (`overlap_off`).
    """

    narrows: str
    sigma: Share
    commands: tuple[str, ...]
    overlap_off: bool
