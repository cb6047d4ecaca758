"""A point of the serving problem, typed: its pools, times, prices and memory, in base units."""

from dataclasses import dataclass, fields
from typing import Annotated

from planner.memory.held_requests import HeldRequests
from planner.problems.serving.outputs import LoopTimes
from planner.protocol.document import Unit, json_key, to_document
from planner.protocol.plan import EXPECTED
from planner.text.wording import pools_text

Second = Annotated[float, Unit("s")]
Byte = Annotated[float, Unit("byte")]
UsdPerMtok = Annotated[float, Unit("USD per million tokens")]
PerHour = Annotated[float, Unit("USD/hour")]
Sequences = Annotated[int, Unit("seq")]
Chips = Annotated[int, Unit("chip")]
Rate = Annotated[float, Unit("seq/s")]
TokenRate = Annotated[float, Unit("token/s")]
Share = Annotated[float, Unit("1")]
Watts = Annotated[float, Unit("J/s")]
Grams = Annotated[float, Unit("g per million tokens")]
PerToken = Annotated[float, Unit("J/token")]
Interval = tuple[float, float]
MTOK = 1e6


@dataclass(frozen=True)
class PoolLayout:
    """Parallel axes of a pool; tp * dp_attention * cp * pp chips form a replica.

    Of tp `dcp` share contexts; of an `overlap` of two batches the halves of a pass work in turn.
    """

    tp: int
    pp: int
    cp: int
    dcp: int
    dp_attention: int
    ep: int
    tp_expert: int
    replicas: int
    overlap: str


@dataclass(frozen=True)
class DraftedTokens:
    """Drafted and expected tokens per step; min and max batch per replica for a gain.

    The last is null where they pay at any that is larger.
    """

    drafts: Annotated[int, Unit("token")]
    tokens_per_step: Annotated[float, Unit("token")]
    pays_from: Annotated[float, Unit("seq")]
    pays_up_to: Annotated[float, Unit("seq")] | None


@dataclass(frozen=True)
class MemoryUse:
    """Memory of one chip by use [byte]."""

    capacity: Byte
    weights: Byte
    kv: Byte
    state: Byte
    activations: Byte
    reserved: Byte
    free: Byte


@dataclass(frozen=True)
class StepTimes:
    """Parts that add up to one decode step [s]; of collectives only the exposed time."""

    weights: Second
    kv: Second
    compute: Second
    collectives: Second
    overhead: Second
    drafts: Second
    prefill: Second


@dataclass(frozen=True)
class PlannedPool:
    """Prefill pool or decode pool of a disaggregated plan."""

    layout: PoolLayout
    chip: str
    chips: Chips
    chips_used: Chips
    batch: Sequences
    batch_per_replica: Sequences
    weights: str
    kv: str
    redundant_experts: int | None
    drafts: Annotated[int, Unit("token")] | None
    memory_per_chip: MemoryUse
    holds: HeldRequests | None
    usd_per_hour: PerHour
    utilisation: Share


@dataclass(frozen=True)
class CacheTransfer:
    """Transfer of a prompt's KV cache from the prefill pool to the decode pool."""

    seconds: Second
    bytes: Byte
    bytes_per_s: Annotated[float, Unit("byte/s")]


@dataclass(frozen=True)
class MarginalPrices:
    """Marginal prices of input and output tokens in two pools: pools resized, and this fleet.

    `full` is the pool that has least room, `room` how much more the fleet serves until it has
    none; null where both pools are full at once.
    """

    usd_per_mtok_input: UsdPerMtok
    usd_per_mtok_output: UsdPerMtok
    this_fleet_input: UsdPerMtok | None
    this_fleet_output: UsdPerMtok | None
    full: str
    room: Share


@dataclass(frozen=True)
class BorneLoad:
    """Plan under open arrivals: load, waiting times, spare capacity.

    Times and requests in flight are null where the queue grows without end, of a layout that does
    not carry the load.
    """

    requests_per_s: Rate
    load: Share
    spare_replicas: int
    readers_busy: Share | None
    wait: Second | None
    ttft_p95: Second | None
    ttft_p99: Second | None
    in_flight: Annotated[float | None, Unit("seq")]
    slots: Sequences
    decoding_per_replica: Annotated[float, Unit("seq")]
    room_per_replica: Sequences
    crowded: Share


@dataclass(frozen=True)
class MachinePattern:
    """Machines with equal contents: `nodes` of each pool per machine, and unused chips.

    A node is the chips of one machine that a replica takes; `chips` are those rented of a machine.
    """

    machines: int
    chips: Chips
    nodes: tuple[int, ...]
    idle: Chips


@dataclass(frozen=True)
class MachinePlacement:
    """Placement of pools on the machines of one type, as rented and started.

    A replica of pool k is started on `nodes_per_replica[k]` nodes of `chips_per_node[k]` chips.
    `idle_because` says of idle chips why no replica uses them.
    """

    chips_per_machine: Chips
    nodes_per_replica: tuple[int, ...]
    chips_per_node: tuple[int, ...]
    machines: tuple[MachinePattern, ...]
    idle_because: str | None


@dataclass(frozen=True)
class KeptPrefixes:
    """Conversations at a time, how many of them a rank has room for, and the input found there.

    Where requests are `routed` to the rank that read their prefix a rank has its part of them.
    """

    conversations: int
    room_per_rank: Sequences
    routed: bool
    cached_input: Share


@dataclass(frozen=True)
class UncountedQueue:
    """Queueing that times omit if no demand is given: prefill at the load that the plan serves.

    `added_p95` is what 95% of requests that came at random would wait at most beyond a mean prompt;
    null where the queue would grow without end.
    """

    readers_busy: Share
    added_p95: Second | None


@dataclass(frozen=True)
class ServingPoint:
    """A layout and a batch of one pool, or of two, and everything they give.

    `watts_per_chip` is the mean over all chips, the site's share included; `power_from` says where
    it comes from: `given`, from the work by rows of the chip (`measured`) or by what such chips
    share (`shared`), or the `least` that any work takes. `engines` run it as it stands; null where
    none was read for such chips or models.
    """

    mode: str
    layout: PoolLayout | None
    prefill: PlannedPool | None
    decode: PlannedPool | None
    transfer: CacheTransfer | None
    chip: str | None
    chips: Chips
    chips_used: Chips
    placement: tuple[MachinePlacement, ...]
    batch: Sequences
    batch_per_replica: Sequences | None
    weights: str
    kv: str
    redundant_experts: int | None
    drafts: Annotated[int, Unit("token")] | None
    chunk: Annotated[int, Unit("token")] | None
    engines: tuple[str, ...] | None
    ttft: Second | None
    tpot: Second | None
    e2e: Second | None
    requests_per_s: Rate
    tokens_per_s: TokenRate | None
    input_tokens_per_s: TokenRate | None
    tokens_per_s_per_chip: Annotated[float, Unit("token/(s*chip)")] | None
    tokens_per_s_per_user: TokenRate | None
    usd_per_mtok_output: UsdPerMtok | None
    usd_per_mtok_input: UsdPerMtok | None
    usd_per_mtok: UsdPerMtok
    usd_per_hour: PerHour
    power_usd_per_hour: PerHour | None
    watts_per_chip: Watts | None
    power_from: str | None
    joule_per_token: PerToken | None
    joule_per_request: Annotated[float, Unit("J/seq")] | None
    grams_per_mtok: Grams | None
    grams_per_request: Annotated[float, Unit("g/seq")] | None
    memory_per_chip: MemoryUse
    holds: HeldRequests | None
    fits_at_full_context: bool
    time_per_step: StepTimes | None
    drafting: DraftedTokens | None
    bottleneck: str
    demand: BorneLoad | None
    marginal: MarginalPrices | None
    unqueued: UncountedQueue | None
    prefixes: KeptPrefixes | None
    loop: LoopTimes | None

    @property
    def phases(self) -> dict[str, PlannedPool]:
        """Prefill pool and decode pool by name; empty for a single pool."""
        pools = {"prefill": self.prefill, "decode": self.decode}
        return {name: pool for name, pool in pools.items() if pool}

    @property
    def formats(self) -> str:
        """Formats of weights and cache."""
        return f"weights {self.weights}, KV cache {self.kv}"

    def memories(self) -> dict[str, tuple[MemoryUse, HeldRequests | None]]:
        """Memory use of a chip of each pool and the requests that its cache holds, by title."""
        pools = {f"memory per chip that {name}s": pool for name, pool in self.phases.items()}
        parts: dict[str, PlannedPool | ServingPoint] = {**pools} or {"memory per chip": self}
        return {name: (part.memory_per_chip, part.holds) for name, part in parts.items()}


@dataclass(frozen=True)
class ShortPool:
    """Pool of a disaggregated runner-up."""

    layout: PoolLayout
    chip: str
    chips: Chips
    chips_used: Chips
    batch: Sequences


@dataclass(frozen=True)
class ShortPoint:
    """A runner-up of another kind in a few numbers."""

    mode: str
    layout: PoolLayout | None
    prefill: ShortPool | None
    decode: ShortPool | None
    chip: str | None
    chips: Chips
    batch: Sequences
    ttft: Second | None
    tpot: Second | None
    usd_per_mtok: UsdPerMtok
    tokens_per_s: TokenRate | None
    engines: tuple[str, ...] | None
    e2e: Second | None
    joule_per_token: Annotated[float, Unit("J/token")] | None


def short_point(plan: ServingPoint) -> ShortPoint:
    """A plan in a few numbers."""
    values = {f.name: getattr(plan, f.name) for f in fields(ShortPoint)}
    pools = {
        name: ShortPool(pool.layout, pool.chip, pool.chips, pool.chips_used, pool.batch)
        for name, pool in plan.phases.items()
    }
    return ShortPoint(**{**values, **pools})


@dataclass(frozen=True)
class NextBest(ServingPoint):
    """A runner-up, and the probability that it is cheaper than the plan; null if unknown.

    It is `tied` where three digits of the price are those of the plan.
    """

    chance_better: Share | None
    tied: bool


@dataclass(frozen=True)
class Roofs:
    """Times of one step by each roof: the highest is how long it takes at least."""

    memory: Second
    compute: Second
    network: Second


@dataclass(frozen=True)
class UniformRouting:
    """The roofline where tokens spread evenly over the experts."""

    usd_per_mtok: UsdPerMtok
    tpot: Second


@dataclass(frozen=True)
class ServingBound:
    """The pure roofline of the plan, which no implementation beats."""

    usd_per_mtok: UsdPerMtok
    tpot: Second | None
    ttft: Second | None
    roofs: Roofs | None
    uniform_routing: UniformRouting | None


@dataclass(frozen=True)
class ServingEstimate:
    """Price, TPOT and TTFT of the plan as estimated by the profile."""

    usd_per_mtok: UsdPerMtok
    tpot: Second | None
    ttft: Second | None


@dataclass(frozen=True)
class ServingBand:
    """Ranges of a plan by how far it is from the runs that were fitted.

    Where runs of such plans were measured, `kind` is `runs`, and `coverage` of them lie between
    the ends; else it is `expected`. `regime` is the kind of distance: `known`, or what is new
    (`new_model`, `new_chip`, ...).
    """

    coverage: Share
    profile: str = json_key("from")
    regime: str = "known"
    kind: str = EXPECTED
    tpot: Annotated[Interval, Unit("s")] | None = None
    ttft: Annotated[Interval, Unit("s")] | None = None
    usd_per_mtok: Annotated[Interval, Unit("USD per million tokens")] | None = None
    tokens_per_s: Annotated[Interval, Unit("token/s")] | None = None
    watts_per_chip: Annotated[Interval, Unit("J/s")] | None = None
    joule_per_token: Annotated[Interval, Unit("J/token")] | None = None
    grams_per_mtok: Annotated[Interval, Unit("g per million tokens")] | None = None


def layout_text(point: object) -> str:
    """The layout of a point or a pool in short words; of two pools both."""
    return pools_text(to_document(point))


def idle(point: ServingPoint | PlannedPool) -> str:
    """Chips that are paid and not used, in brackets."""
    unused = point.chips - point.chips_used
    return f" ({unused} of them idle)" if unused else ""
