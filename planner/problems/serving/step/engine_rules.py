"""Engine rules for layouts: one table, read by the search and by the export of plans.

A rule says when a layout is broken; `engine_rules.toml` says which engines have it and where that
was read. Columns of layouts are judged at once. What needs another checkpoint than the published
one (`of_checkpoint`) refuses an export, and no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.memory.engine_table import chip_memory
from planner.problems.serving.step.layouts import Layouts
from planner.text.tables import table

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.catalogue.chips import Chip

METHODS = frozenset(table("planner.catalogue", "speculation.toml")["methods"])
PADDING_MULTIPLE = 64  # rows; vLLM and SGLang pad the vocabulary to a multiple
FP4_CACHES = frozenset({"nvfp4", "fp4"})
SENDERS = {"ranks behind stages": "pp", "ranks behind parts": "cp"}  # axes, by rule of ranks
PEERS = 8  # chips of one machine that DeepEP joins (NUM_MAX_NVL_PEERS)
WINDOWS = frozenset({"window", "chunked"})
INDEXED = ("sparse", "compressed_sparse", "block_sparse")  # caches of which an index picks


@dataclass(frozen=True)
class EngineTable:
    """Capabilities of one engine release; `rules` are names of `RULES` with their sources."""

    name: str
    title: str
    version: str
    as_of: str
    vendors: Mapping[str, str]
    caches: Mapping[str, str]
    online: Mapping[str, str]
    predicting: frozenset[str]
    drafters: Mapping[str, str]
    unpacks_fp4: bool
    dense_copies: frozenset[str]
    lacks: frozenset[str]
    overlapping: frozenset[str]
    pads: frozenset[str]
    rules: Mapping[str, str]
    named_caches: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    whole_experts: tuple[str, ...] = ()
    older: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """The engine and its version, as a reader should see them."""
        return f"{self.title} {self.version}"

    def drafter(self, method: str) -> str | None:
        """Engine's name for a drafting method, or for a named draft model; None if it has none."""
        return self.drafters.get(method if method in METHODS else "draft-model")

    def cache(self, pool: EnginePool) -> str | None:
        """Engine's name for the pool's cache dtype; None if it has no such cache for the model."""
        unfit = pool.sizes.latent or not pool.chip.computes(pool.kv)
        words = {**self.caches, **self.named_caches.get(pool.sizes.family, {})}
        return None if pool.kv in FP4_CACHES and unfit else words.get(pool.kv)


@dataclass(frozen=True)
class EnginePool:
    """Properties of a pool that rules need in addition to its layout.

    `role` is prefill or decode where the pool does one phase alone; `copies` of experts are stored
    beside the experts, `drafts` tokens are drafted in a step by `method`, empty for the
    checkpoint's own blocks. `machine` are the chips of one machine, `stages` and `parts` pp and cp
    of what prefills for a pool that decodes, `share` that of the memory; 0 where not known.
    """

    sizes: ModelSizes
    chip: Chip
    role: str
    weights: str
    copies: int = 0
    drafts: int = 0
    method: str = ""
    machine: int = 0
    stages: int = 0
    parts: int = 0
    share: float = 0.0

    @property
    def kv(self) -> str:
        """Dtype of the cache."""
        return self.sizes.kv_dtype

    @property
    def experts(self) -> int:
        """Routed experts of a layer, copies included."""
        return self.sizes.n_experts + self.copies

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of its caches."""
        return frozenset(one.kind for one in self.sizes.caches)

    @property
    def hybrid(self) -> bool:
        """True if its caches include windows or recurrent state."""
        return bool(WINDOWS & self.kinds) or self.sizes.state_bytes_per_sequence > 0

    @property
    def shares_indexers(self) -> bool:
        """True if several layers of sparse attention share the index of one layer."""
        kinds = [(one.kind, one.layers) for one in self.sizes.caches]
        indexed = sum(layers for kind, layers in kinds if kind == "index")
        return 0 < indexed < sum(layers for kind, layers in kinds if kind in INDEXED)

    @property
    def converted(self) -> bool:
        """True if the weights differ from those that the checkpoint stores."""
        return bool(self.sizes.stored) and self.weights != self.sizes.stored

    def largest_share(self, ranks: np.ndarray) -> np.ndarray:
        """Memory that is free when each of `ranks` starts, over all that its runtime sees."""
        seen, experts = chip_memory(self.chip), self.sizes.n_experts > 0
        alone, several = (seen.context(n, experts=experts) for n in (1, 2))
        return 1 - np.where(ranks > 1, several, alone) / seen.visible

    def cut(self, group: str, ways: np.ndarray, pads: frozenset[str] = frozenset()) -> np.ndarray:
        """True where an inner width of a weight class has no whole blocks on each of `ways` chips.

        Formats that are padded need no whole blocks, but chips that divide the width.
        """
        broken = np.zeros(np.shape(ways), dtype=bool)
        for part in self.sizes.inner:
            if part.group == group:
                block = 1 if self.sizes.weight_dtype[group] in pads else part.block
                broken |= (ways > 1) & (part.width % (ways * block) != 0)
        return broken


@dataclass(frozen=True)
class EngineRule:
    """Test for layouts of a pool that an engine cannot run, its message, and its remedy.

    `axes` are those whose nearest values that work are the remedy; `remedy` says it where none
    does. Both texts are filled in by the facts of a layout.
    """

    broken: Callable[[EnginePool, Layouts, EngineTable], Any]
    what: str
    axes: tuple[str, ...] = ()
    remedy: str = ""
    of_checkpoint: bool = False


def _uneven(pool: EnginePool, x: Layouts) -> np.ndarray | bool:
    return pool.sizes.n_experts > 0 and pool.experts % x.ep != 0


def _ragged(pool: EnginePool, x: Layouts) -> np.ndarray | bool:
    if not pool.machine:
        return False
    nodes = -(-x.replica_chips // pool.machine)
    size = np.maximum(x.replica_chips // nodes, 1)
    whole = (size % x.stage == 0) | (x.stage % size == 0)
    return (nodes > 1) & ((x.replica_chips % nodes != 0) | ~whole)


RULE_DENSE_REPLICAS = EngineRule(
    lambda p, x, _: p.cut("dense_ffn", x.tp),
    "the feed-forward width, {dense_ffn}, is not whole on each of tp {tp} chips", ("tp",),
)  # fmt: skip
SHARED_EXPERTS_MESSAGE = "the width of shared experts, {shared}, is not whole on each of "
INDEX_RANKS = EngineRule(
    lambda p, x, _: (x.dcp > 1) & ("index" in p.kinds),
    "dcp {dcp}: {family} models pick by an index, not known to run so on {chip}", ("dcp",),
)  # fmt: skip
BEHIND = "dcp {dcp}: ranks that share contexts are sent no caches by prefill "
CONTEXT = "cp {cp}: {stamp} cuts the contexts of prompts that a pool reads alone, or none"
RULES: dict[str, EngineRule] = {
    "query heads": EngineRule(
        lambda p, x, _: p.sizes.n_q_heads % x.tp != 0,
        "tp {tp} does not divide the {heads} attention heads of {model}", ("tp",)),
    "KV heads": EngineRule(
        lambda p, x, _: not p.sizes.latent and (
            (p.sizes.n_kv_heads % x.tp != 0) & (x.tp % p.sizes.n_kv_heads != 0)),
        "tp {tp} neither divides the {kv_heads} KV heads of {model} nor is a multiple of them",
        ("tp",)),
    "dense width over tp": RULE_DENSE_REPLICAS,
    "dense width of a dense model": replace(
        RULE_DENSE_REPLICAS,
        broken=lambda p, x, _: not p.sizes.n_experts and p.cut("dense_ffn", x.tp)),
    "dense width over the stage": EngineRule(
        lambda p, x, _: p.cut("dense_ffn", x.whole) & ((x.tp > 1) | (p.sizes.n_experts == 0)),
        "the feed-forward width, {dense_ffn}, is not whole on each of the chips that share it",
        ("tp", "dp_attention")),
    "shared width over tp": EngineRule(
        lambda p, x, _: p.cut("shared", x.tp), SHARED_EXPERTS_MESSAGE + "tp {tp} chips", ("tp",)),
    "shared width over the stage": EngineRule(
        lambda p, x, _: p.cut("shared", x.whole) & (x.tp_expert > 1),
        SHARED_EXPERTS_MESSAGE + "{whole} chips of a stage", ("tp", "dp_attention")),
    "expert width": EngineRule(
        lambda p, x, engine: p.cut("routed", x.tp_expert, engine.pads),
        "the width of an expert, {routed}, is not whole on each of expert tp {tp_expert} chips",
        ("ep", "dp_attention")),
    "vocabulary": EngineRule(
        lambda p, x, _: -(-p.sizes.vocab // PADDING_MULTIPLE) * PADDING_MULTIPLE % x.tp != 0,
        "the vocabulary of {model}, {vocab} filled up to blocks of 64, does not divide by tp {tp}",
        ("tp",)),
    "even experts": EngineRule(
        lambda p, x, _: _uneven(p, x), "{experts} experts do not divide over ep {ep}",
        ("ep", "dp_attention")),
    "even experts with copies": EngineRule(
        lambda p, x, _: (p.copies > 0) & np.asarray(_uneven(p, x)),
        "{experts} experts, copies counted, do not divide over ep {ep}",
        ("ep", "dp_attention")),
    "no copies of experts": EngineRule(
        lambda p, x, _: p.copies > 0, "{copies} redundant experts are not written by this export",
        remedy="choose.redundant_experts=0"),
    "copies of experts beside expert parallelism": EngineRule(
        lambda p, x, _: (x.ep == 1) & (p.copies > 0),
        "{copies} redundant experts with ep 1: it balances experts that are spread over chips",
        remedy="choose.redundant_experts=0, or choose.ep above 1"),
    "all experts or none": EngineRule(
        lambda p, x, _: (x.ep > 1) & (x.tp_expert > 1),
        "ep {ep} with expert tp {tp_expert}: its expert parallelism is always tp * dp attention = "
        "{whole}, or off", remedy="choose.ep={whole}, or choose.ep=1"),
    "copies on all chips or none": EngineRule(
        lambda p, x, _: (x.tp > 1) & (x.dp_attention > 1),
        "tp {tp} with dp attention {dp_attention}: it cuts attention over all {whole} chips of a "
        "stage or copies it on every one",
        remedy="choose.tp=1, or choose.dp_attention=1 with choose.tp={whole}"),
    "copies of a dense model": EngineRule(
        lambda p, x, engine: (
            (p.sizes.n_experts == 0 and p.sizes.family not in engine.dense_copies)
            & (x.dp_attention > 1)),
        "dp attention {dp_attention}: it copies attention of {family} models with all the rest "
        "only, as replicas", remedy="choose.dp_attention=1"),
    "no overlap": EngineRule(
        lambda p, x, _: x.halves > 1,
        "{stamp} has no option that lets two half-batches overlap",
        remedy="choose.overlap=none"),
    "overlap of whole exchanges": EngineRule(
        lambda p, x, _: (x.halves > 1) & (x.tp_expert > 1),
        "two half-batches overlap where experts are spread over all {whole} chips of a stage alone",
        remedy="choose.overlap=none"),
    "overlap by DeepEP": EngineRule(
        lambda p, x, _: (
            (x.halves > 1) & (p.chip.maker == "NVIDIA")
            & (_uneven(p, x) | ((x.whole >= PEERS) & (x.whole % PEERS != 0)))),
        "two half-batches overlap an exchange by DeepEP, which takes whole shares of {experts} "
        "experts, and below 8 chips of a stage or multiples of 8, not ep {ep}",
        remedy="choose.overlap=none"),
    "overlap of NVIDIA chips": EngineRule(
        lambda p, x, _: (x.halves > 1) & (bool(p.chip.maker) and p.chip.maker != "NVIDIA"),
        "two half-batches overlap an exchange by DeepEP, which runs on NVIDIA chips",
        remedy="choose.overlap=none"),
    "overlap of a family": EngineRule(
        lambda p, x, engine: (x.halves > 1) & (p.sizes.family not in engine.overlapping),
        "it overlaps two half-batches of other models than {family}",
        remedy="choose.overlap=none"),
    "overlap of shared indexers": EngineRule(
        lambda p, x, _: (x.halves > 1) & p.shares_indexers,
        "two half-batches do not hand on what another layer's index picked",
        remedy="choose.overlap=none"),
    "experts of a family whole or over all": EngineRule(
        lambda p, x, engine: (
            (x.ep > 1) & (x.tp_expert > 1) & (p.sizes.family in engine.whole_experts)
            & (p.chip.architecture != "blackwell")),
        "ep {ep}: experts of {family} models lie over all {whole} chips of a stage, or one group",
        ("ep",)),
    "nodes of one size": EngineRule(
        lambda p, x, _: _ragged(p, x),
        "a replica of {replica_chips} chips does not lie on as many equal nodes as machines of "
        "{machine} hold it", ("pp", "dp_attention")),
    "parts of a context": EngineRule(
        lambda p, x, _: x.cp > 1, "cp {cp} is not written by this export", remedy="choose.cp=1"),
    "parts of a context read alone": EngineRule(
        lambda p, x, _: (x.cp > 1) & (p.role != "prefill"), CONTEXT, remedy="choose.cp=1"),
    "ranks of a context": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (x.tp % (max(p.sizes.n_cut_heads, 1) * x.dcp) != 0),
        "dcp {dcp}: chips share contexts that would hold copies of the same KV heads, which are "
        "not so many at tp {tp}", ("dcp",)),
    "ranks of latent caches": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (not p.sizes.latent),
        "dcp {dcp}: contexts are cut over chips of tp with latent attention only", ("dcp",)),
    "ranks beside windows": EngineRule(
        lambda p, x, _: (x.dcp > 1) & bool(WINDOWS & p.kinds),
        "dcp {dcp}: {family} models have windows, whose caches are not cut", ("dcp",)),
    "ranks that share an index": INDEX_RANKS,
    "ranks that share an index before Blackwell": replace(
        INDEX_RANKS, broken=lambda p, x, _: (x.dcp > 1) & (
            "index" in p.kinds and p.chip.architecture != "blackwell")),
    "kernels of ranks": EngineRule(
        lambda p, x, _: (x.dcp > 1) & ("block_sparse" in p.kinds or (
            p.chip.maker == "AMD" and (p.kv == "fp8" or not p.sizes.latent))),
        "dcp {dcp}: no kernel of {family} models for it on {chip}, {kv} KV cache", ("dcp",)),
    "ranks that receive a cache": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (p.role == "decode") & (
            (x.dcp != x.tp) | (not p.sizes.latent) | p.hybrid),
        "dcp {dcp}: NIXL moves latent caches alone to ranks, to all of tp {tp}", ("dcp",)),
    "ranks behind stages": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (p.stages > 1), BEHIND + "pp {stages}",
        remedy="choose.dcp=1, or choose.prefill.pp=1"),
    "ranks behind parts": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (p.parts > 1), BEHIND + "cp {parts}",
        remedy="choose.dcp=1, or choose.prefill.cp=1"),
    "ranks that draft": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (p.drafts > 0 and p.chip.maker == "NVIDIA"),
        "dcp {dcp} with speculation: kernels that check drafts return no sums", ("dcp",)),
    "Helix": EngineRule(
        lambda p, x, _: (x.dcp > 1) & (
            (x.tp // x.dcp > max(p.sizes.n_cut_heads, 1))
            | (p.role != "decode" or p.chip.architecture != "blackwell")),
        "dcp {dcp}: Helix is of the pool that decodes, on Blackwell, and cuts attention over no "
        "more chips than KV heads", ("dcp",)),
    "a cache enters no pipeline": EngineRule(
        lambda p, x, _: (x.pp > 1) & (p.role == "decode" or (p.role == "prefill" and p.hybrid)),
        "pp {pp}: NIXL moves no caches into a pipeline, nor from one of layers of several kinds",
        remedy="choose.pp=1"),
    "stages that decode": EngineRule(
        lambda p, x, _: (
            (x.pp > 1) & (x.pp != p.stages) & (p.role == "decode" and p.stages > 0)),
        "pp {pp} behind prefill pp {stages}: caches go to one stage, or to as many",
        remedy="choose.pp=1, or choose.pp={stages}"),
    "no drafts in a pipeline": EngineRule(
        lambda p, x, _: (x.pp > 1) & (p.drafts > 0 and p.role != "prefill"),
        "pp {pp} with speculation: what decodes drafts without a pipeline only",
        remedy="choose.pp=1"),
    "a draft model beside copies": EngineRule(
        lambda p, x, engine: (x.dp_attention > 1) & (
            p.drafts > 0 and p.method not in METHODS and bool(p.method)),
        "dp attention {dp_attention} with a draft model of its own, which is not copied",
        remedy="choose.dp_attention=1"),
    "drafts in whole rounds": EngineRule(
        lambda p, x, _: 0 < p.sizes.mtp_blocks < p.drafts and p.drafts % p.sizes.mtp_blocks > 0,
        "{drafts} drafts are no multiple of the {blocks} prediction blocks",
        remedy="speculation.drafts={blocks}"),
    "architecture": EngineRule(
        lambda p, x, engine: p.sizes.family in engine.lacks,
        "{family} models are not among the architectures that it has", remedy="another engine"),
    "maker": EngineRule(
        lambda p, x, engine: bool(p.chip.figures) and p.chip.maker not in engine.vendors,
        "{chip} is not among the chips its options were read for ({vendors})",
        remedy="a system with chips of {vendors}"),
    "generation": EngineRule(
        lambda p, x, engine: p.chip.architecture in engine.older,
        "it does not run on chips as old as {chip}", remedy="a system with newer chips"),
    "memory that is free": EngineRule(
        lambda p, x, _: bool(p.chip.figures) and p.share > p.largest_share(x.whole),
        "a share of {share:g} of the memory of {chip} is not free when it starts",
        remedy="memory_utilisation={largest:.3f}"),
    "cache dtype": EngineRule(
        lambda p, x, engine: engine.cache(p) is None, "it has no {kv} KV cache for {model}",
        remedy="choose.kv={caches}"),
    "cache dtype of the checkpoint": EngineRule(
        lambda p, x, _: (p.kv == "bf16" != p.sizes.stored_kv) and bool(p.sizes.stored_kv),
        "the checkpoint asks for a {stored_kv} KV cache, which dtype auto follows",
        remedy="choose.kv={stored_kv}"),
    "FP4 arithmetic": EngineRule(
        lambda p, _, engine: (p.weights == "nvfp4" and p.chip.maker != "NVIDIA") or (
            p.weights in FP4_CACHES and not (p.chip.computes(p.weights) or engine.unpacks_fp4)),
        "{chip} does not multiply {weights} weights",
        remedy="a Blackwell chip, or an fp8 model"),
    "FP8 arithmetic": EngineRule(
        lambda p, x, _: p.weights == "fp8" and not p.chip.computes("fp8"),
        "{chip} has no fp8 arithmetic", remedy="a bf16 or int4 checkpoint"),
    "conversion": EngineRule(
        lambda p, x, engine: p.converted and not (
            p.sizes.stored in ("bf16", "fp16", "fp32") and p.weights in engine.online),
        "the plan takes {weights} weights, the checkpoint of {model} holds {stored}, and they are "
        "not converted while loading",
        remedy="choose.weights={stored}, or a model whose checkpoint is {weights}",
        of_checkpoint=True),
    "drafting": EngineRule(
        lambda p, _, engine: bool(p.drafts) and (
            not p.sizes.mtp_blocks or p.sizes.family not in engine.predicting
            if p.method in ("", "mtp") else engine.drafter(p.method) is None),
        "{drafter}",
        remedy="leave speculation out, or start it by hand with a draft model of its own",
        of_checkpoint=True),
}  # fmt: skip


@cache
def engine_tables() -> Mapping[str, EngineTable]:
    """Capability tables of all engines, by name, in the order of the file."""
    rows = table("planner.problems.serving.step", "engine_rules.toml")
    sets = ("predicting", "dense_copies", "lacks", "overlapping", "pads")
    return MappingProxyType({
        name: EngineTable(name, **{**row, **{key: frozenset(row[key]) for key in sets}})
        for name, row in rows.items()
    })  # fmt: skip
