"""What an answer says beside its plan, typed: ways out, other weights, fewer chips, accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.problems.serving.point import Chips, PerHour, PerMillion, Share
from planner.protocol.plan import MissedPromise


@dataclass(frozen=True)
class WayOut:
    """A change that leaves a plan, as `--set` takes it, and what that plan costs."""

    sets: Mapping[str, str | float | None]
    usd_per_mtok: PerMillion
    usd_per_hour: PerHour


@dataclass(frozen=True)
class CheaperWeights:
    """Weights of another format that the chips run, as `choose.weights` takes it, and its price.

    `engines` run that plan from the checkpoint as it stands: none where it must be converted.
    """

    weights: str
    engines: tuple[str, ...] | None
    usd_per_mtok: PerMillion
    saving: Share


@dataclass(frozen=True)
class FewerChips:
    """What the next smaller number of chips lacks, or by how much its price is higher.

    Where that is lower, `chips` is the cheapest of all smaller numbers.
    """

    chips: Chips
    missed: tuple[MissedPromise, ...]
    refused: str
    usd_per_mtok: PerMillion | None
    behind: Share | None


@dataclass(frozen=True)
class UsedLimit:
    """How much of a limit a plan uses; `binds`: all of it, or one more sequence would exceed it."""

    limit: str
    used: Share
    binds: bool


@dataclass(frozen=True)
class QuotedAccuracy:
    """How far runs of one kind of plan were off, median, in fits that did not see what they have.

    `left_out` is what those fits did not see.
    """

    of: str
    left_out: str
    tpot: Share | None
    tpot_rows: int | None
    ttft: Share | None
    ttft_rows: int | None
