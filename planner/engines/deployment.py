"""A plan in the terms that every engine shares: a checkpoint, layouts, batches, memory shares.

The layout is the planner's (see layouts.py): a replica has tp * dp_attention * cp * pp chips, and
the experts of a stage share the same tp * dp_attention chips as ep * tp_expert. What an engine
calls these its own rows of `releases.toml` say.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planner.architecture import Model, read_config
from planner.architecture.counts import ModelSizes, model_sizes
from planner.catalogue import models
from planner.catalogue.chips import Chip, chip, chip_names
from planner.problems.serving.point import MemoryUse
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.engine_rules import EnginePool
from planner.problems.serving.step.memory_terms import pool_context
from planner.problems.serving.task.requests import draft_method
from planner.scenario.keys.engine_keys import SETTINGS
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File, HubFile
from planner.text.errors import Infeasible, InputError

ROUNDING = 64  # tokens; the longest request is rounded up to a multiple
SPARE = 16  # tokens that engines keep back of the longest request
NORMAL_QUANTILE_999 = 3.090232306167813  # normal quantile of 99.9 %
ROLES = MappingProxyType({"aggregated": ("",), "disaggregated": ("prefill", "decode")})


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoint that an engine loads: repository or folder, and its model."""

    place: str
    model: Model
    folder: bool

    @property
    def sizes(self) -> ModelSizes:
        """Its counts as published."""
        return model_sizes(self.model)

    @property
    def weights(self) -> str:
        """Dtype of most of the stored weights."""
        return self.sizes.stored


@dataclass(frozen=True)
class Deployment:
    """One pool of a plan as every engine needs it: numbers of one replica, lengths in tokens.

    `role` is prefill or decode where there are two pools, else empty; `pool` holds the pool's
    layout, batch and memory, `whole` the plan. `sequences` run on one copy of attention at most,
    `in_step` of them in one step (a pipeline takes them in turns); `chunk` prompt tokens join a
    step on one copy; `longest` is input and output of the longest request; `method` drafts where
    the scenario names one, `engine_limits` are those that it is told, `engine_version` is the one
    that the scenario names or empty. `share` maps what a
    replica's chip holds to shares of its memory. A replica stands on `nodes` of `local` chips, of
    which, and of those of others, a machine holds `on_machine` at most.
    """

    role: str
    checkpoint: Checkpoint
    chip: Chip
    layout: Mapping[str, int]
    pool: Mapping[str, Any]
    whole: Mapping[str, Any]
    sequences: int
    in_step: int
    chunk: int
    longest: int
    longest_is_quantile: bool
    drafts: int
    method: str
    cached_input: float
    engine_limits: Mapping[str, int]
    engine_version: str
    share: Mapping[str, float]
    nodes: int
    local: int
    on_machine: int

    @property
    def own_blocks(self) -> bool:
        """True if the checkpoint's own multi-token prediction blocks draft."""
        return self.drafts > 0 and self.method in ("", "mtp")

    @property
    def two_batches(self) -> bool:
        """True if two half-batches of a pass overlap."""
        return bool(self.layout["overlap"] == "two-batch")

    @property
    def stage(self) -> int:
        """Chips of one pipeline stage."""
        return self.layout["tp"] * self.layout["dp_attention"]

    @cached_property
    def asked_of_rules(self) -> EnginePool:
        """Properties of the pool that the rules of engines check in addition to its layout."""
        weights = self.pool["weights"] if self.converted else None
        counted = model_sizes(self.checkpoint.model, weights, self.pool["kv"])
        copies = self.pool["redundant_experts"] or 0
        kinds, decodes = self.whole["placement"], self.role == "decode"
        machine = kinds[-1 if decodes else 0]["chips_per_machine"]
        sent = self.whole["prefill"]["layout"] if decodes else {"pp": 0, "cp": 0}
        return EnginePool(counted, self.chip, self.role, self.pool["weights"], copies,
                          self.drafts, self.method, machine, sent["pp"], sent["cp"],
                          self.share["all"])  # fmt: skip

    @property
    def step_tokens(self) -> int:
        """Maximum tokens per step of one attention replica: the limit given, else by its phases."""
        if "max_num_batched_tokens" in self.engine_limits:
            return self.engine_limits["max_num_batched_tokens"]
        prompt = 0 if self.role == "decode" else self.chunk
        answers = 0 if self.role == "prefill" else self.in_step * (1 + self.drafts)
        return max(prompt + answers, self.sequences)

    @property
    def converted(self) -> bool:
        """True if the weight format of the plan differs from the checkpoint's stored format."""
        return bool(self.pool["weights"] != self.checkpoint.weights)

    @property
    def even(self) -> bool:
        """True if every chip of a stage holds an equal number of experts, or the model has none."""
        experts = self.checkpoint.sizes.n_experts
        return not experts or experts % self.layout["ep"] == 0


def deployments(
    scenario: Scenario, weights: Checkpoint, plan: Mapping[str, Any]
) -> tuple[Deployment, ...]:
    """The pools of a plan, or of one of its alternatives, as engines need them.

    Raises InputError if the chip is nobody's; Infeasible if a server cannot run the plan, whatever
    the engine.
    """
    if plan["mode"] not in ROLES:
        raise Infeasible(
            f"a plan of mode {plan['mode']} is one phase, and a server both reads prompts and "
            "decodes; what would work: choose.mode=aggregated"
        )
    return tuple(_deployment(scenario, weights, plan, role) for role in ROLES[plan["mode"]])


def _deployment(
    scenario: Scenario, weights: Checkpoint, plan: Mapping[str, Any], role: str
) -> Deployment:
    pool = plan[role] if role else plan
    layout = pool["layout"]
    drafts = plan["drafts"] or 0
    running = math.ceil(pool["batch_per_replica"] / layout["dp_attention"])
    longest, quantile = longest_request(scenario, drafts, weights.sizes)
    used = chip_called(pool["chip"])
    nodes, local, on_machine = _nodes(plan["placement"], second=role == "decode")
    # Shares of chip memory, in the definition of each engine. `all`: the engine's use, relative to
    # the capacity; `pool`: weights and caches, relative to the memory without contexts; `free`:
    # caches, relative to the memory left at the peak of a step.
    share, memory = _floor(scenario.memory_utilisation), MemoryUse(**pool["memory_per_chip"])
    return Deployment(
        role=role,
        checkpoint=weights,
        chip=used,
        layout=layout,
        pool=pool,
        whole=plan,
        sequences=scenario.max_num_seqs or running,
        in_step=math.ceil(running / layout["pp"]),
        chunk=plan["chunk"],
        longest=longest,
        longest_is_quantile=quantile,
        drafts=drafts,
        method=draft_method(scenario),
        cached_input=0.0 if role == "decode" else scenario.workload.cached_input,
        engine_limits={x: limit for x in SETTINGS if (limit := getattr(scenario, x)) is not None},
        engine_version=scenario.engine_version or "",
        share=MappingProxyType({"all": share, "pool": pool_share(memory, used), "free": share}),
        nodes=nodes,
        local=local,
        on_machine=on_machine,
    )


def checkpoint(scenario: Scenario) -> Checkpoint:
    """Return the checkpoint of a scenario's model; raises InputError if no checkpoint exists."""
    model = scenario.model
    name = model.like if isinstance(model, ModelDescription) else model
    if name is None:
        raise InputError(
            "a model described by its numbers has no checkpoint to load; name a model of the "
            "catalogue or the config.json of one"
        )
    if isinstance(name, HubFile):
        return Checkpoint(name.repository, read_config(name.path), folder=False)
    if isinstance(name, File):
        parent = str(Path(name.written).parent)
        # An engine would read a path that begins with a dash as an option.
        place = f"./{parent}" if parent.startswith("-") else parent
        return Checkpoint(place, read_config(name.path), folder=True)
    repository = models.repository(name)
    if repository is None:
        raise InputError(
            f"the weights of {name} are not published on Hugging Face; name a model whose "
            "checkpoint an engine can load, or your own config.json with its checkpoint"
        )
    return Checkpoint(repository, models.load(name), folder=False)


def chip_called(name: str) -> Chip:
    """The chip of the catalogue; raises InputError for one described by its numbers."""
    if name not in chip_names():
        raise InputError(
            "a chip described by its numbers has no maker, so no image and no resource is known "
            "for it; describe the system as {like: hgx-h200, ...}"
        )
    return chip(name)


def longest_request(scenario: Scenario, drafts: int, sizes: ModelSizes) -> tuple[int, bool]:
    """Maximum request length that is admitted [token], and true if some requests may be longer."""
    load = scenario.workload
    lengths = (load.input_tokens, load.output_tokens)
    needed = sum(_quantile(each.mean, each.cv) for each in lengths) + drafts
    usual = sum(each.mean for each in lengths) + drafts
    rounded = math.ceil((needed + SPARE) / ROUNDING) * ROUNDING
    if scenario.max_model_len is not None:
        return scenario.max_model_len, needed > scenario.max_model_len
    limit = sizes.max_context
    if limit is not None and math.ceil(usual) > limit:
        raise Infeasible(
            f"a request of {usual:g} tokens is longer than the context of {sizes.name}, {limit}; "
            "what would work: shorter input_tokens and output_tokens"
        )
    return rounded if limit is None else min(rounded, limit), any(each.cv for each in lengths)


def _quantile(mean: float, cv: float) -> float:
    variance = math.log1p(cv**2)
    return mean * math.exp(NORMAL_QUANTILE_999 * math.sqrt(variance) - variance / 2)


def _nodes(placement: Sequence[Mapping[str, Any]], *, second: bool) -> tuple[int, int, int]:
    """Nodes of one replica, chips of each, as they are placed and paid; most nodes of a machine."""
    pools = [
        (*pair, max(sum(row["nodes"]) for row in kind["machines"] if row["nodes"][pool]))
        for kind in placement
        for pool, pair in enumerate(
            zip(kind["nodes_per_replica"], kind["chips_per_node"], strict=True)
        )
    ]
    return pools[second]


def pool_utilisation(pool: float, memory: MemoryUse, share: float, chip: Chip) -> float:
    """Convert an engine's pool share (weights and KV cache) to the equivalent `memory_utilisation`.

    `memory` is that of the layout at another `share`: what is reserved beside that, libraries and
    graphs, is so at any. Engines are told thousandths: the roundest of shares that are told alike.
    """
    beside = memory.reserved - (1 - share) * memory.capacity
    context = pool_context(chip)
    more = memory.activations + beside - share * context
    least = round(pool + more / (memory.capacity - context), 9)
    roundest = (math.ceil(round(least * ten, 6)) / ten for ten in (10, 100, 1000))
    return min(next(share for share in roundest if share - least < 0.001), 1.0)


def pool_share(memory: MemoryUse, chip: Chip) -> float:
    """Share of weights and KV cache in the memory without contexts, to a thousandth, never more."""
    left = memory.capacity - memory.reserved - memory.activations
    return _floor(left / (memory.capacity - pool_context(chip)))


def _floor(share: float) -> float:
    return math.floor(round(share * 1000, 6)) / 1000
