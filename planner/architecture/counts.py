"""The sizes a plan needs, counted from a model's layers: parameters, bytes, caches, arithmetic.

Three conventions of "active parameters" are published, and all are given: everything, without the
input embedding (a look-up multiplies nothing; the one for FLOP), without embedding and head. Or the
sizes of a model known only by a few numbers: weights, cache per token, perhaps depth and width.
"""

import math
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from planner.architecture.layers import GROUPS, CacheKind, Experts, Model, cache_kinds, layer_kinds
from planner.architecture.quantization import Precision, dtype
from planner.text.errors import ModelError

SUMMARY = (
    *("name", "family", "layers", "n_layers", "hidden", "vocab", "max_context", "experts"),
    *("n_total", "n_active", "n_active_range", "params", "weight_bytes", "weight_dtypes"),
    *("weight_mix", "activation_dtype", "kv_dtype", "kv_bytes_per_token", "index_bytes_per_token"),
    *("window_bytes_per_sequence", "state_bytes_per_sequence", "attention_flop_per_cached_token"),
    *("state_flop_per_token", "mtp", "excluded", "source", "warnings"),
)
_CONVERTED = frozenset({"attention", "dense_ffn", "shared", "routed"})
_WEIGHT_ONLY = frozenset({"int8", "int4"})
_CUT = ("down_proj", "w2")  # the matrices whose inner side tensor parallelism cuts
_COPIED = (".q_a_proj", ".kv_a_proj_with_mqa")  # those that it leaves whole, and routers


@dataclass(frozen=True)
class InnerWidth:
    """Inner width of a feed-forward part of a weight class, in whole blocks that share a scale."""

    group: str
    width: int
    block: int


@dataclass(frozen=True)
class ModelSizes:
    """Everything downstream needs of a model.

    Dictionaries are keyed by weight class: attention, dense_ffn, shared, routed, embedding, head,
    router, other. `params` are stored, `active` are multiplied with by one token (the input
    embedding not, the head once even where it is tied); `weight_bytes` are stored [byte] and
    `streamed_bytes` are read by a step that visits every expert [byte]: the same without the
    input embedding and with a tied head. `inner` are the widths that tensor parallelism cuts, none
    where they are not known; `stored` and `stored_kv` are the dtypes that the checkpoint has, of
    most weights and of the cache. Where experts without weights may be chosen, active parameters
    are means (experts the nearest whole number), `n_active_range` the fewest and most of them
    without the input embedding. `layer_bytes` are stored layer by layer, outside the routed experts
    and in them [byte], none of a model of bare numbers; `copied` are parameters and their bytes
    that no tensor parallelism cuts.
    """

    name: str
    family: str
    source: str
    n_layers: int
    n_dense_ffn_layers: int
    n_attention_layers: int
    hidden: int
    expert_width: int
    n_q_heads: int
    n_total: int
    n_active: dict[str, int]
    params: dict[str, int]
    active: dict[str, int]
    weight_bytes: dict[str, float]
    streamed_bytes: dict[str, float]
    weight_dtype: dict[str, str]
    weight_mix: dict[str, dict[str, int]]
    activation_dtype: str
    kv_dtype: str
    caches: tuple[CacheKind, ...]
    state_bytes_per_sequence: float = 0.0
    n_state_layers: int = 0
    state_flop_per_token: int = 0
    n_moe_layers: int = 0
    n_parallel_layers: int = 0
    vocab: int = 0
    tied: bool = False
    n_experts: int = 0
    n_experts_active: int = 0
    n_active_range: tuple[int, int] = (0, 0)
    n_shared_experts: int = 0
    expert_groups: int = 1
    expert_groups_active: int = 1
    max_context: int | None = None
    mtp_blocks: int = 0
    mtp_params: int | None = None
    excluded: tuple[str, ...] = ()
    inner: tuple[InnerWidth, ...] = ()
    stored: str = ""
    stored_kv: str = ""
    layer_bytes: tuple[tuple[float, float], ...] = ()
    copied: tuple[float, float] = (0.0, 0.0)

    @property
    def latent(self) -> bool:
        """True if attention caches one compressed head (MLA and its sparse variants)."""
        return any(one.latent for one in self.caches)

    @property
    def n_kv_heads(self) -> int:
        """Over how many heads every cache can be sharded."""
        return min((one.heads for one in self.caches), default=1)

    @property
    def n_cut_heads(self) -> int:
        """Over how many heads the caches that can be cut by tokens are sharded; 0 without any."""
        return max((one.heads for one in self.caches if one.cut), default=0)

    @property
    def kv_bytes_per_token(self) -> float:
        """KV cache growth per token, indexer keys included [byte/token]."""
        return sum(one.bytes_per_token for one in self.caches if one.grows)

    @property
    def index_bytes_per_token(self) -> float:
        """KV cache growth per token from indexer keys alone [byte/token]."""
        growing = (one for one in self.caches if one.grows and one.kind == "index")
        return sum(one.bytes_per_token for one in growing)

    @property
    def window_bytes_per_sequence(self) -> float:
        """Caches that stop at a window, when full [byte]."""
        return sum(one.stored_bytes(math.inf) for one in self.caches if not one.grows)

    @property
    def attention_flop_per_cached_token(self) -> float:
        """Arithmetic per cached token, on the caches that every query reads in full [flop]."""
        full = (one for one in self.caches if one.grows and one.limit is None)
        return sum(one.flop_per_cached_token for one in full)

    @property
    def total_weight_bytes(self) -> float:
        """Bytes of all stored weights [byte]."""
        return sum(self.weight_bytes.values())

    def stored_bytes(self, context: float) -> float:
        """Memory one sequence of `context` tokens takes: caches and states [byte]."""
        caches = sum(cache.stored_bytes(context) for cache in self.caches)
        return caches + self.state_bytes_per_sequence

    def read_bytes(self, context: float) -> float:
        """Cache and state bytes a decode step reads for one sequence at `context` [byte]."""
        caches = sum(cache.read_bytes(context) for cache in self.caches)
        return caches + self.state_bytes_per_sequence


@lru_cache(maxsize=256)
def model_sizes(
    model: Model, weights: str | None = None, kv: str | None = None, activations: str | None = None
) -> ModelSizes:
    """Count a model, as published or with weights, caches or activations in another format.

    `weights` converts the matrices the checkpoint quantises, or, where it quantises none, those of
    attention, dense, shared and routed parts. Activations follow the weights except under int8 and
    int4, weight-only unless `activations` says otherwise. Raises ModelError for unknown formats.
    """
    cache = dtype(kv) if kv is not None else _cache(model)
    mix, active, more = _tally(model, dtype(weights) if weights is not None else None)
    params = {group: sum(mix[group].values()) for group in GROUPS}
    stored = {x: float(sum(n * each.bytes for each, n in mix[x].items())) for x in GROUPS}
    # The embedding matrix of a tied model is its head: only the head counts as read and multiplied.
    twice = active["head"] - params["head"] if model.tied else 0
    parts = [layer.feed_forward for layer in model.layers if layer.feed_forward is not None]
    experts = next((p.experts for p in parts if p.experts), Experts(0, 0, 0, model.hidden))
    return ModelSizes(
        name=model.name,
        family=model.family,
        source=model.source,
        n_layers=len(model.layers),
        n_dense_ffn_layers=sum(part.kind == "dense" for part in parts),
        n_attention_layers=sum(bool(x.mixer and x.mixer.caches) for x in model.layers),
        hidden=model.hidden,
        expert_width=experts.width,
        n_q_heads=model.q_heads,
        n_total=sum(params.values()),
        n_active=_by_convention(active, params["embedding"] - twice),
        params=params,
        active=active,
        weight_bytes=stored,
        streamed_bytes=_streamed(stored, twice, params["embedding"]),
        weight_dtype={group: _dominant(mix[group], model.precision) for group in GROUPS},
        weight_mix={group: _by_name(mix[group]) for group in GROUPS},
        activation_dtype=_activation(model, weights, activations),
        kv_dtype=cache.name,
        caches=cache_kinds(model.layers, cache),
        state_bytes_per_sequence=float(sum(state.bytes for state in model.states)),
        n_state_layers=len(model.states),
        state_flop_per_token=sum(state.flop for state in model.states),
        n_moe_layers=sum(part.kind == "moe" for part in parts),
        n_parallel_layers=sum(layer.parallel for layer in model.layers),
        vocab=model.vocab,
        tied=model.tied,
        n_experts=experts.routed,
        n_experts_active=round(experts.passed),
        n_active_range=experts.ends(active["routed"], sum(active.values())),
        n_shared_experts=experts.shared,
        expert_groups=experts.groups,
        expert_groups_active=experts.groups_active,
        max_context=model.max_context,
        mtp_blocks=model.prediction.blocks if model.prediction else 0,
        mtp_params=model.prediction.parameters if model.prediction else None,
        excluded=model.excluded,
        inner=_inner_widths(model, experts, weights),
        stored=_stored(model, "routed" if experts.routed else "dense_ffn"),
        stored_kv=_cache(model).name,
        **more,
    )


def _cache(model: Model) -> Precision:
    return model.quantization.cache or model.precision


def _stored(model: Model, group: str) -> str:
    return _dominant(_tally(model, None)[0][group], model.precision)


def _inner_widths(model: Model, experts: Experts, chosen: str | None) -> tuple[InnerWidth, ...]:
    """Inner widths of all feed-forward parts; a format that is chosen has no blocks yet."""
    widths: dict[InnerWidth, None] = {}
    for path, weight in model.all_weights():
        if not path.endswith(_CUT) or weight.group not in _CONVERTED:
            continue
        outer = experts.width * experts.routed if weight.group == "routed" else model.hidden
        stored = model.quantization.precision(path, weight.group, weight.linear)
        as_stored = stored is not None and chosen in (None, stored.name)
        block = stored.block if stored is not None and as_stored else 1
        widths[InnerWidth(weight.group, weight.count // outer, block)] = None
    return tuple(widths)


def _by_convention(active: dict[str, int], looked_up: int) -> dict[str, int]:
    used = sum(active.values())
    return {
        "all": used + looked_up,
        "no_input_embedding": used,
        "no_embedding_no_head": used - active["head"],
    }


def _streamed(stored: dict[str, float], tied: int, embedded: int) -> dict[str, float]:
    """Weights read per step, by group [byte]; `tied` of the `embedded` parameters are the head."""
    head = stored["head"] + (stored["embedding"] * tied / embedded if tied else 0)
    return {**stored, "embedding": 0.0, "head": head}


def _tally(
    model: Model, chosen: Precision | None
) -> tuple[dict[str, Counter[Precision]], dict[str, int], dict[str, Any]]:
    """Stored parameters by class and format, active ones by class, `layer_bytes` and `copied`."""
    mix: dict[str, Counter[Precision]] = {group: Counter() for group in GROUPS}
    active, by_layer = dict.fromkeys(GROUPS, 0), [[0.0, 0.0] for _ in model.layers]
    copied = 0.0, 0.0
    quantised = model.quantization.active
    for path, weight in model.all_weights():
        stored_as = model.quantization.precision(path, weight.group, weight.linear)
        plain = weight.linear and weight.group in _CONVERTED
        converts = stored_as is not None if quantised else plain
        precision = (chosen if converts else None) or stored_as or model.precision
        mix[weight.group][precision] += weight.count
        active[weight.group] += weight.used
        stored = weight.count * float(precision.bytes)
        if path.startswith("layers."):
            by_layer[int(path.split(".")[1])][weight.group == "routed"] += stored
        if weight.group == "router" or path.endswith(_COPIED):
            copied = copied[0] + weight.used, copied[1] + stored
    return mix, active, {"layer_bytes": tuple(map(tuple, by_layer)), "copied": copied}


def _activation(model: Model, weights: str | None, activations: str | None) -> str:
    if activations is not None:
        return dtype(activations).name
    if weights is None:
        return (model.quantization.activation or model.precision).name
    if weights.lower() in _WEIGHT_ONLY:
        return model.precision.name
    return dtype(weights).name


def _dominant(mix: dict[Precision, int], default: Precision) -> str:
    return (max(mix, key=mix.__getitem__) if any(mix.values()) else default).name


def _by_name(mix: dict[Precision, int]) -> dict[str, int]:
    named: Counter[str] = Counter()
    for precision, count in mix.items():
        named[precision.name] += count
    return dict(+named)


def summary(model: Model, counted: ModelSizes | None = None) -> dict[str, object]:
    """The model's make-up as plain data; `counted` replaces the sizes as published.

    Bytes in byte, attention in FLOP; `kv_bytes_per_token` includes indexer keys.
    """
    counted = model_sizes(model) if counted is None else counted
    experts = {
        "routed": counted.n_experts,
        "active": counted.n_experts_active,
        "shared": counted.n_shared_experts,
    }
    more: dict[str, object] = {
        "layers": layer_kinds(model),
        "experts": experts,
        "n_active_range": list(counted.n_active_range),
        "weight_dtypes": dict(counted.weight_dtype),
        "mtp": {"blocks": counted.mtp_blocks, "params": counted.mtp_params},
        "excluded": list(counted.excluded),
        "warnings": list(model.warnings),
    }
    return {key: more[key] if key in more else deepcopy(getattr(counted, key)) for key in SUMMARY}


# With nothing said of heads, attention divides over any number of chips up to this.
HEADS = 5040  # 2^4 * 3^2 * 5 * 7: divisible by every small group size
NumberType = TypeVar("NumberType", int, float)


class Description(Protocol):
    """Totals of a described model; params, byte/param, byte/token, flop/token, byte."""

    total_params: float | None
    active_params: float | None
    weights: str | None
    kv: str | None
    activations: str | None
    bytes_per_weight: float | None
    kv_bytes_per_token: float | None
    attention_flops_per_cached_token: float | None
    state_bytes_per_sequence: float | None
    layers: int | None
    hidden: int | None


def abstract_sizes(
    description: Description,
    weights: str | None = None,
    kv: str | None = None,
    activations: str | None = None,
) -> ModelSizes:
    """Sizes of a model described by totals: every weight of one dtype, one unbounded cache.

    Every step is taken to read all weights, and a token to pass through the active ones: nothing
    is known of experts. Raises ModelError when another dtype of the cache is asked for than the
    one its bytes per token are given in.
    """
    total = round(description.total_params or 0.0)
    active = round(description.active_params or total)
    name = weights or description.weights or "bf16"
    if kv is not None and kv != description.kv:
        raise ModelError(
            "choose.kv: the model is described by kv_bytes_per_token, which has a dtype already; "
            "give other bytes per token instead"
        )
    size = float(dtype(name).bytes)
    if weights is None and description.bytes_per_weight:
        size = description.bytes_per_weight
    narrow = "bf16" if name in ("int8", "int4", "fp32") else name
    layers, stored = description.layers or 1, _all_dense(total * size)
    cached = float(description.kv_bytes_per_token or 0.0)
    flop = float(description.attention_flops_per_cached_token or 0.0)
    cache = CacheKind("full", layers, cached, cached, None, True, flop, flop, HEADS, flop / 2)
    return ModelSizes(
        name="described model",
        family="abstract",
        source="described in the scenario",
        hidden=description.hidden or 0,
        expert_width=description.hidden or 0,
        n_q_heads=HEADS,
        n_total=total,
        n_active=dict.fromkeys(("all", "no_input_embedding", "no_embedding_no_head"), active),
        params=_all_dense(total),
        active=_all_dense(active),
        weight_bytes=stored,
        streamed_bytes=dict(stored),
        weight_dtype=dict.fromkeys(GROUPS, name),
        weight_mix={"dense_ffn": {name: total}},
        activation_dtype=activations or description.activations or narrow,
        kv_dtype=description.kv or name,
        caches=(cache,),
        state_bytes_per_sequence=float(description.state_bytes_per_sequence or 0.0),
        n_layers=layers,
        n_dense_ffn_layers=layers,
        n_attention_layers=layers,
    )


def _all_dense(value: NumberType) -> dict[str, NumberType]:
    return dict.fromkeys(GROUPS, 0) | {"dense_ffn": value}
