"""The answer to a cache question, typed: tiers, what to do by hold time, hit rates of a trace."""

from dataclasses import dataclass
from typing import Annotated

from planner.problems.cache.question import CacheScenario
from planner.protocol.document import Byte, PerMtok, Second, Share, Unit
from planner.protocol.plan import Answer, Plan


@dataclass(frozen=True)
class HitCost:
    """Cost of reading a cached token at one hold time, by part; `share` is relative to a miss."""

    store: PerMtok
    fetch: PerMtok
    hbm: PerMtok
    total: PerMtok
    share: Share


@dataclass(frozen=True)
class TierEconomics:
    """Economics of one tier: break-even hold time, storage price, fetch cost and fetch time.

    `break_even_hold` is the time after which computing again is cheaper, null where reading back
    alone costs more; `usd_per_mtok_hour` what it costs to hold; `reads_per_hour` how often a prefix
    must be read for it to pay; `ttft_saved` is null without a prefix or a read rate.
    """

    name: str
    kind: str
    break_even_hold: Second | None
    drain_time: Second | None
    usd_per_gb_hour: Annotated[float, Unit("USD/(1e9*byte*hour)")]
    usd_per_mtok_hour: Annotated[float, Unit("USD/(1e6*token*hour)")]
    reads_per_hour: Annotated[float, Unit("1/hour")] | None
    fetch: PerMtok
    fetch_time: Second | None
    ttft_saved: Second | None
    price_from: str


@dataclass(frozen=True)
class TierOption:
    """One tier at one hold time: cost at the chance of a hit, the chance that would pay."""

    tier: str
    cost: PerMtok
    hit_chance_needed: Share | None
    hit: HitCost
    floor: PerMtok
    price: PerMtok | None


@dataclass(frozen=True)
class HoldDecision:
    """Best action for one hold time: keep (in HBM), move (to a tier), or recompute.

    `cost` is what the choice costs per cached token, expected at the chance of a hit; `recompute`
    the same of computing again. `floor` is the least price of a token read from the chosen tier,
    `price` the one at the margin; null where computing again is the choice.
    """

    hold: Second
    hit: Share
    choice: str
    tier: str | None
    cost: PerMtok
    recompute: PerMtok
    hit_chance_needed: Share | None
    floor: PerMtok | None
    price: PerMtok | None
    ttft_saved: Second | None
    options: tuple[TierOption, ...]


@dataclass(frozen=True)
class LifetimeRate:
    """Share of the blocks that are found at a lifetime."""

    ttl: Second
    hit_rate: Share


@dataclass(frozen=True)
class CapacityRate:
    """Block hit rate of an LRU cache with a capacity of `blocks` blocks."""

    blocks: int
    bytes: Byte
    hit_rate: Share


@dataclass(frozen=True)
class TierLifetime:
    """The lifetime that pays best in a tier, on the trace.

    `saved` is the share of the cost of computing every block again that is saved; `bytes` what is
    held on average; both null together with the lifetime where no lifetime pays.
    """

    tier: str
    ttl: Second | None
    hit_rate: Share
    saved: Share
    bytes: Byte


@dataclass(frozen=True)
class TraceReuse:
    """Hit rates of a trace, and the best lifetime in each tier; shared prefixes are stored once."""

    requests: int
    blocks: int
    block: Annotated[int, Unit("token")]
    duration: Second
    ttl: tuple[LifetimeRate, ...]
    lru: tuple[CapacityRate, ...]
    best_ttl: tuple[TierLifetime, ...]


@dataclass(frozen=True)
class CachePoint:
    """Plan for a cached token: cost of a miss and of a hit, and the decision at each hold time."""

    choice: str
    kv_bytes_per_token: Annotated[float, Unit("byte/token")]
    miss: PerMtok
    cost: PerMtok
    prefill_time: Second | None
    holds: tuple[HoldDecision, ...]
    tiers: tuple[TierEconomics, ...]
    trace: TraceReuse | None


@dataclass(frozen=True)
class CacheBound:
    """Lower bound on the cost of a hit over all tiers, without storage cost."""

    cost: PerMtok


@dataclass(frozen=True)
class CacheCertificate:
    """Comparison method, number of options compared, and objective of the chosen option."""

    method: str
    options_considered: int
    objective: float


@dataclass(frozen=True, kw_only=True)
class CacheAnswer(Answer):
    """The whole answer to a cache question."""

    problem: str = "cache"
    plan: CachePoint | None = None
    bound: CacheBound | None = None
    certificate: CacheCertificate


@dataclass(frozen=True, eq=False, repr=False)
class CachePlan(Plan[CacheAnswer]):
    """The answer to a cache question, and the question."""

    question: CacheScenario

    kind = "cache"
    cost_of = "cost"  # USD per million cached tokens, expected at the first hold time
    answer_type = CacheAnswer
