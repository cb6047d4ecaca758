"""Counts of a model for a training step: parameters by how they are divided, widths, attention.

Layers are counted by their mean: a stage of a pipeline has as many of each kind as another.
"""

from dataclasses import dataclass

from planner.architecture.counts import ModelSizes, model_sizes
from planner.architecture.layers import Model

FLOP = 2  # of a parameter and token: a multiply and an add
PASSES = 3  # multiples of the forward FLOP: 1 forward, 2 backward
LATENT = 0.1  # of full projections: compressed ones have a share between this and the rest to one
SCORES = 4  # FLOP of a query and a key, per element of a head: scores, and values


@dataclass(frozen=True)
class AttentionKind:
    """Arithmetic of one kind of attention in all layers per pair of tokens [flop], and its reach.

    `limit` is how many tokens a query looks back on, None for all.
    """

    flop: float
    limit: int | None = None

    def pairs(self, sequence: float) -> float:
        """Pairs of a causal mask in a sequence [token**2]."""
        if self.limit is None or self.limit >= sequence:
            return sequence**2 / 2
        return self.limit * (sequence - self.limit / 2)


@dataclass(frozen=True)
class TrainingCounts:
    """Model as a training step sees it: means over its layers, its embedding and its head.

    `attention`, `ffn` (dense and shared), `picked` (routed experts that a token passes), `routed`
    (all of them) and `rest` are parameters of a layer, the routed ones of a routed layer; `head`
    and `embedding` of the model. `queries` and `keys` are widths of all heads together, `width`
    that of the dense and shared feed-forward part, `gates` how many matrices lead into it.
    """

    name: str
    n_layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    width: float
    gates: int
    vocab: int
    attention: float
    ffn: float
    rest: float
    head: float
    embedding: float
    kinds: tuple[AttentionKind, ...]
    n_experts: int = 0
    topk: int = 0
    expert_width: int = 0
    n_moe_layers: int = 0
    picked: float = 0.0
    routed: float = 0.0
    n_total: float = 0.0
    max_context: int | None = None

    @property
    def queries(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.head_dim

    @property
    def moe_share(self) -> float:
        """Share of the layers that are routed."""
        return self.n_moe_layers / self.n_layers

    @property
    def multiplied(self) -> float:
        """Parameters that a token is multiplied with, the head among them [param]."""
        layer = self.attention + self.ffn + self.moe_share * self.picked
        return self.n_layers * layer + self.head

    def pair_flop(self, sequence: float) -> float:
        """Mean arithmetic of a layer per pair, as if all pairs of a causal mask counted [flop]."""
        done = sum(kind.flop * kind.pairs(sequence) for kind in self.kinds)
        return done / (sequence**2 / 2) / self.n_layers

    def flop(self, batch: float, sequence: float) -> float:
        """Arithmetic of the model in one step, attention counted by its causal half [flop]."""
        attention = self.n_layers * self.pair_flop(sequence) * sequence**2 / 2
        return PASSES * batch * (FLOP * self.multiplied * sequence + attention)


def training_counts(model: Model) -> TrainingCounts:
    """Counts of a catalogue model for a training step."""
    return counts_from_sizes(model_sizes(model))


def counts_from_sizes(counted: ModelSizes) -> TrainingCounts:
    """Counts for a training step from the sizes of a model."""
    layers = counted.n_layers
    params, active = counted.params, counted.active
    dense = [each.width for each in counted.inner if each.group in ("dense_ffn", "shared")]
    routed = [each.width for each in counted.inner if each.group == "routed"]
    width = max(dense, default=0)
    ffn = params["dense_ffn"] + params["shared"]
    heads = counted.n_q_heads
    pairs = sum(kind.flop_per_pair_prefill for kind in counted.caches)
    dim = round(pairs / (SCORES * heads * max(1, counted.n_attention_layers))) if pairs else 0
    moe = counted.n_moe_layers
    return TrainingCounts(
        name=counted.name,
        n_layers=layers,
        hidden=counted.hidden,
        heads=heads,
        kv_heads=min(heads, counted.n_kv_heads) if not counted.latent else heads,
        head_dim=max(1, dim),
        width=width if not moe else ffn / max(1, layers) / (3 * counted.hidden),
        gates=2 if not width or ffn / max(1, layers) > 2.5 * width * counted.hidden else 1,
        vocab=counted.vocab,
        attention=params["attention"] / layers,
        ffn=ffn / layers,
        rest=(params["router"] + params["other"]) / layers,
        head=float(active["head"]),
        embedding=float(params["embedding"] if not counted.tied else 0),
        kinds=tuple(
            AttentionKind(kind.flop_per_pair_prefill, kind.limit) for kind in counted.caches
        ),
        n_experts=counted.n_experts,
        topk=counted.n_experts_active,
        expert_width=max(routed, default=0),
        n_moe_layers=moe,
        picked=active["routed"] / moe if moe else 0.0,
        routed=params["routed"] / moe if moe else 0.0,
        n_total=float(counted.n_total),
        max_context=counted.max_context,
    )


def shape_counts(
    name: str, *, layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, ffn: int,
    gates: int, vocab: int, experts: int = 0, topk: int = 0, expert_ffn: int = 0,
    shared_ffn: int = 0, dense_layers: int = 0, tied: bool = False, total: float = 0.0,
) -> TrainingCounts:  # fmt: skip
    """Counts for a training step from the widths of a model in a table row.

    Args:
        ffn: Width of the feed-forward part of layers without experts.
        gates: Matrices that lead into it: 2 where it is gated.
        dense_layers: Layers without experts of a routed model.
        total: Parameters in all, 0 where not known: attention that is compressed has what is left.
    """
    routed_layers = layers - dense_layers if experts else 0
    queries, keys = heads * head_dim, kv_heads * head_dim
    attention = float(hidden * (2 * queries + 2 * keys))
    matrices = gates + 1
    width = (ffn * (layers - routed_layers) + shared_ffn * routed_layers) / layers
    dense = matrices * hidden * width
    expert = matrices * hidden * expert_ffn
    rest = 2 * hidden + experts * hidden * routed_layers / layers
    embedding = float(vocab * hidden)
    routed_total = routed_layers * experts * expert
    ends = (1 if tied else 2) * embedding
    left = (total - routed_total - ends) / layers - dense - rest
    if LATENT * attention < left < attention * (1 - LATENT):
        attention = left
    total = total or layers * (attention + dense + rest) + routed_total + ends
    return TrainingCounts(
        name, layers, hidden, heads, kv_heads, head_dim, width, gates, vocab, attention,
        dense, rest, embedding, 0.0 if tied else embedding,
        (AttentionKind(float(SCORES * queries * layers)),), experts, topk, expert_ffn,
        routed_layers, float(topk * expert), float(experts * expert), total,
    )  # fmt: skip
