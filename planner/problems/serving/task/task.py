"""One serving question with everything looked up: a model, a chip, a network, prices, promises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.task.plan_limits import PROMISES
from planner.text.errors import CatalogueError, InputError

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.catalogue.chips import Chip, ChipPower
    from planner.catalogue.profile import Profile
    from planner.memory.engine_table import EngineMemory
    from planner.problems.serving.task.drafter import Drafter
    from topologies.fabric.fabric import Fabric
    from topologies.machines.named_machines import Machine

WEIGHT_ONLY = frozenset({"int8", "int4"})
MAX_UTILISATION = 0.99  # share of time; beyond it the length of a queue is anyone's guess
BITS = MappingProxyType(
    {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}
    | dict.fromkeys(("fp4", "nvfp4", "mxfp4", "int4"), 4)
)
WIDER = MappingProxyType(
    {"fp4": "fp8", "nvfp4": "fp8", "mxfp4": "fp8", "int4": "int8", "fp8": "bf16", "int8": "bf16"}
)


@dataclass(frozen=True)
class ClosedLoop:
    """Requests that a load generator keeps in flight, a fixed number equal to the batch.

    With `even` lengths requests march in step: all of them where the engine reads prompts before it
    decodes on, unless their steps are `mixed`, else those that share a pass. The engine looks for
    new ones every `poll` decode steps and holds them back for `hold`; those that memory does not
    hold wait for `rounds` residences of others, or where more `users` send than there are places,
    until one is free. A pool that only prefills is reached by `burst`
    requests at once; that which decodes takes `tpot` per token and `step` per step [s], and its
    places are what `rounds` counts. Numbers, or arrays of shape (n_layouts,).
    """

    even: bool = True
    mixed: bool = False
    poll: float | np.ndarray = 0.0
    hold: float | np.ndarray = 0.0
    rounds: float | np.ndarray = 0.0
    users: int = 0
    burst: float | np.ndarray = 0.0
    tpot: float | np.ndarray = 0.0
    step: float | np.ndarray = 0.0


@dataclass(frozen=True)
class Task:
    """One model on one kind of chip, ready to be bound; lists in the question become many tasks.

    Lengths in token, times in s, `price` in USD/(chip*s), of which `electricity` pays `power`, in W
    per chip, `site` (PUE) times that of the chip: what it draws all the time or, where `draw` says
    how it follows from the work, the least it draws, and more is paid for what it does.
    `site_power` is the most that all chips may draw, None where the site allows any; `carbon` is
    what electricity gave off [g/J].
    `batches` are totals over all replicas; None leaves the batch to the search. `promises` holds
    ttft [s], tpot [s/token] and e2e [s], those that were made. `ideal` splits KV heads and experts
    evenly over any number of chips, as no engine does, for bounds of rows whose layout is unknown.
    `arrivals` are requests per second of an open loop, infinite where as many as can be served are
    wanted; `spare` replicas may be down, a share `headroom` of the slots stays free, `input_spread`
    is the coefficient of variation of prompt lengths. `fabric` is the network where it was read
    from a file, which `machine` then only sums up. A task is `pooled` where the other phase runs
    on a pool of its own.
    `redundant` experts of each layer are copies of others, `skew` is the factor by which uneven
    routing fills the fullest expert rank.
    `engine` names whose kernels run, empty for none in particular. In a closed `loop` first tokens
    wait for the prompts of others; of a `static` batch all prompts are read in one go. In a closed
    loop of `even` lengths requests keep in step, and their prompts come together. A step has as
    many positions as its `drafter` drew tokens, and one; without a drafter they cost nothing.
    The engine may fill a share `utilisation` of the memory.
    Four in five models accept between the shares in `accepted_range` of the tokens per step.
    Promises of times must hold with a `chance`, None on the bound, which has no band.
    Replicas share a machine of so many chips evenly, or fill `whole_machines`; 0 where any may be;
    chips are rented `unit` at a time. Plans that no measured run covers may be left out,
    `inside_only`; the simplest plan is taken where it is worse by no more than `prefer_simple`.
    A layout must be run by one of the `engines`, whatever runs it where none was read (None), or
    where a bound over all implementations is sought (`any_layout`); `drafting` names the method.
    The engine may be started with a limit on the sequences that one copy of it holds, and on the
    tokens of its step; it then keeps memory for a step of these.
    """

    sizes: ModelSizes
    chip: Chip
    machine: Machine
    price: float
    profile: Profile
    chips: Sequence[int]
    limits_of: Mapping[str, tuple[int, ...]]
    input_tokens: float
    output_tokens: float
    context: float
    cached_input: float
    chunk: float
    mode: str
    batches: tuple[int, ...] | None
    kappa: float
    promises: Mapping[str, float]
    objective: str
    estimate: str
    lecture: bool
    utilisation: float
    tokens_per_step: float = 1.0
    positions_per_step: float = 1.0
    drafter: Drafter | None = None
    accepted_range: tuple[float, float] = (1.0, 1.0)
    power: float | None = None
    draw: ChipPower | None = None
    site_power: float | None = None
    site: float = 1.0
    ideal: bool = False
    arrivals: float | None = None
    spare: int = 0
    headroom: float = 0.0
    input_spread: float = 0.0
    output_spread: float = 0.0
    busiest: float = MAX_UTILISATION
    conversations: int = 0
    routed: bool = False
    pooled: bool = False
    electricity: float = 0.0
    carbon: float | None = None
    redundant: int = 0
    skew: float = 1.0
    fabric: Fabric | None = None
    engine: str = ""
    loop: ClosedLoop | None = None
    static: bool = False
    even: bool = False
    engines: tuple[str, ...] | None = None
    any_layout: bool = False
    drafting: str = ""
    chance: float | None = None
    whole_machines: int = 0
    unit: int = 1
    inside_only: bool = False
    prefer_simple: float = 0.0
    memory_rules: tuple[tuple[int, EngineMemory | None], ...] = ()
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None

    @property
    def limits(self) -> dict[str, float]:
        """Upper limits by the step's own names: memory, flow of prompts, promises."""
        limits = {"need": self.chip.memory}
        if self.mode == "aggregated":
            limits["mixed"] = 1.0
        if self.mode == "prefill" and self.batches is not None:
            limits["together"] = 1.0
        if self.max_num_seqs is not None:
            limits["sequences_of_step"] = float(self.max_num_seqs)
        if self.max_num_batched_tokens is not None and self.mode != "prefill":
            limits["tokens_of_step"] = float(self.max_num_batched_tokens)
        if self.arrivals is not None:
            limits["load"] = 1.0 - self.headroom
            limits["readers"] = self.busiest
        if self.site_power is not None:
            limits["site_watts"] = self.site_power
        names = {promise: name for name, promise in PROMISES.items()}
        return limits | {names[promise]: limit for promise, limit in self.promises.items()}

    @property
    def network(self) -> Machine | Fabric:
        """Network of the chips: the fabric of a file, or a machine of the catalogue."""
        return self.machine if self.fabric is None else self.fabric

    @property
    def tiled(self) -> bool:
        """True if chips relay for each other, so that stages are slices that tile a domain."""
        if self.fabric is None:
            return self.machine.kind == "torus"
        from topologies.groups.fabric_groups import fabric_groups

        return fabric_groups(self.fabric).tiled

    @property
    def drafts(self) -> int:
        """Tokens drafted per sequence and step."""
        return round(self.positions_per_step) - 1

    @property
    def loaded(self) -> bool:
        """True if a finite load is given that the plan must serve."""
        return self.arrivals is not None and math.isfinite(self.arrivals)

    @property
    def batch_of_all(self) -> bool:
        """True if every replica on the chips shares the given batch; two pools may use fewer.

        The time of a request is the least where all of them do.
        """
        shared = not self.pooled or self.objective == "latency"
        return self.batches is not None and self.mode != "prefill" and shared

    @property
    def load(self) -> str:
        """`none` without arrivals, `given` where a load is, `most` where all that can be served."""
        if self.arrivals is None:
            return "none"
        return "given" if self.loaded else "most"

    @property
    def uses_bound(self) -> bool:
        """True if the plan is chosen on the pure roofline."""
        return self.lecture or self.estimate == "bound"

    def score(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Objective to minimise, at every point: USD, s/request, s, or J per request."""
        if self.objective == "latency":
            return values["latency"]
        if self.objective == "throughput":
            return 1 / values["requests"]
        if self.objective == "energy":
            if self.power is None:
                raise self.powerless()
            return values["joule_per_request"]
        return values["usd_per_request"]

    def powerless(self) -> CatalogueError:
        """Error if energy is the objective and the power of the chip is unknown."""
        return CatalogueError(
            f"objective energy: the catalogue has no power figure for {self.chip.name}; "
            "give power: in the system"
        )

    def peak(self, weights: str, *, bound: bool) -> float:
        """Arithmetic peak for weights of a dtype [flop/s].

        Raises InputError if the chip cannot multiply in the dtype that the estimate needs.
        """
        if bound:
            return self._fastest(weights)
        widest = max(weights, self.sizes.activation_dtype, key=BITS.__getitem__)
        math = "bf16" if BITS[widest] >= BITS["bf16"] else widest
        if not self.chip.computes(math):
            raise InputError(
                f"chip {self.chip.name} has no {math} arithmetic, which {weights} weights of "
                f"{self.sizes.name} need; choose activations: bf16, or other weights, or a chip "
                f"with {math} (this one has {', '.join(self.chip.flops)})"
            )
        return self.chip.peak(math)

    def attention_peak(self, *, bound: bool) -> float:
        """Arithmetic peak of attention over the cache [flop/s]; the estimate takes bf16."""
        return self._fastest(self.sizes.kv_dtype) if bound else self.chip.peak("bf16")

    def with_layout(self, **changes: object) -> Task:
        """Copy of the task with changed fields, such as limits or batches of a user's layout."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def waits(self) -> bool:
        """True if requests of a closed loop may exceed the available slots."""
        return self.loop is not None and self.loop.users > 0

    def queueing(self) -> Task:
        """Copy of the task with a queue: requests in flight without a slot wait."""
        if self.loop is None or self.batches is None:
            raise ValueError("the task is no closed loop")
        return replace(self, loop=replace(self.loop, users=max(self.batches)))

    def promising(self, limit: float | None, name: str = "tpot") -> Task:
        """Copy of the task with another limit of a promise [s], or without it."""
        others = {key: value for key, value in self.promises.items() if key != name}
        return self.with_layout(promises=others if limit is None else {**others, name: limit})

    def _fastest(self, dtype: str) -> float:
        if dtype in WEIGHT_ONLY and BITS[self.sizes.activation_dtype] >= BITS["bf16"]:
            dtype = "bf16"
        while not self.chip.computes(dtype) and dtype in WIDER:
            dtype = WIDER[dtype]
        return self.chip.peak(dtype if self.chip.computes(dtype) else "bf16")


@dataclass(frozen=True)
class TaskPair:
    """One question of two pools: a task for each phase, and the network between them.

    `rate` is that of one chip into this network [byte/s], `latency` that of a message through it
    and its software [s]. `together` says that both pools share the domains of one system, else
    either rents whole units of its own. `demand` are the requests per second to carry; None
    for as many as can be served.
    """

    prefill: Task
    decode: Task
    rate: float
    latency: float
    together: bool
    demand: float | None = None

    @property
    def tasks(self) -> tuple[Task, Task]:
        """Tasks of both pools, the decode task last."""
        return self.prefill, self.decode

    @property
    def load(self) -> str:
        """`given` where a demand is, as the equations of two pools have it; else `none`."""
        return "none" if self.demand is None else "given"

    @cached_property
    def prompt_bytes(self) -> float:
        """Cache of one prompt [byte]."""
        task = self.prefill
        stored = sum(cache.stored_bytes(task.input_tokens) for cache in task.sizes.caches)
        return stored + task.sizes.state_bytes_per_sequence

    def transfer(self, senders: np.ndarray | float, receivers: np.ndarray | float) -> np.ndarray:
        """KV cache transfer time of a prompt between given numbers of chips [s]."""
        chips = np.minimum(senders, receivers)
        return np.asarray(self.latency + self.prompt_bytes / (chips * self.rate))
