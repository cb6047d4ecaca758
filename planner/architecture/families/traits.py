"""Standard decoders: layer properties as data, for families that differ in few properties.

Most published decoders are Llama's layer with other norms, biases, gates, windows or a mixture in
place of the dense part. A family is then a row of `Traits` in `families.toml`; what a configuration
says by key (heads, widths, experts, windows by layer) is read the same way for all of them. Where a
family needs more than a value, a row names a function, `Layout` for a family's mixers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.architecture.config_reader import Keys, Reader
from planner.architecture.layers import FeedForward, Layer, Mixer, PredictionBlocks, Weight, vector

# A property that is fixed, or that a key turns on and off, with its value where the key is absent.
Switch = bool | tuple[Keys, bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """The outer measures of a transformer: widths, heads, layers, vocabulary."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    width: int
    vocab: int
    tied: bool
    max_context: int | None

    def norms(self, count: int = 2) -> tuple[Weight, ...]:
        """The scales of `count` norms over the hidden width."""
        return (vector("norms", "other", count * self.hidden),)


@dataclass(frozen=True, slots=True)
class Windows:
    """A family's habit where `layer_types` is absent.

    `always` windows every layer that a window is given for; `every` leaves each nth layer full,
    the last of each run, or the first of it with `leading`; otherwise none is windowed, whatever
    window is given. Of these, only layers below `max_window_layers` are where `until` is `below`,
    and only those from there on where it is `from`. `size` is the window where the key is absent;
    `used_if` is the key (and its default) that switches windows on.
    """

    always: bool = False
    every: int | None = None
    leading: bool = False
    until: str = ""
    size: int | None = None
    used_if: tuple[str, bool] | None = None


_UNBOUNDED = Windows()


@dataclass(frozen=True, slots=True)
class Moe:
    """Configuration keys and defaults of a family's mixture layers.

    `inner` names the experts' width; `shared` the key of the shared part's whole width, with
    `shared_width` where absent (None: refused), else it is the count of shared experts times
    `inner`, `shared_count` where absent. Layers below `first_dense` are dense where no key says,
    unless mixtures are `everywhere`, or nowhere, whatever keys say, or `layers` has a way of its
    own to tell them; `dense_inner` names the width of the dense ones if other than usual,
    `dense_width` where absent. `latent` is the key of the
    width that routed experts work at, `latent_norm` whether a norm follows.
    """

    inner: Keys = "moe_intermediate_size"
    dense_inner: Keys = ()
    dense_width: int | None = None
    shared: Keys = ()
    shared_width: int | None = None
    shared_count: int = 0
    shared_gate: bool = False
    shared_path: str = "shared_experts"
    router: str = "gate"
    router_bias: Switch = False
    shared_bias: Switch = False
    expert_bias: bool = False
    experts: int | None = None
    active: int | None = None
    first_dense: int = 0
    everywhere: bool | None = None
    layers: Callable[[Reader, int], list[bool] | None] | None = None
    latent: str = ""
    latent_norm: Switch = False
    path: str = "mlp"


@dataclass(frozen=True, slots=True)
class LatentKeys:
    """Default widths of latent attention: None requires the key, rank 0 is a full query."""

    query_rank: int = 1536
    cache_rank: int | None = None
    nope: int | None = None
    rope: int | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """Differences of a family's layer from Llama's; counts are of vectors of the hidden width.

    `width`, `heads`, `kv_heads`, `vocab`, `context` and `tied` are the family's values where keys
    are absent; `own_kv_heads` counts key-value heads by keys of its own. `norms` is how many norms
    a layer has, two more where `post_norms`, `sparse_norms` more in a mixture layer, one fewer
    where `parallel` parts have a `shared_norm`; `norm_bias` whether they have biases, `final_norm`
    whether one follows the layers. `qk_norm` is `head` (one vector of the head's width for all) or
    `all` (one of all heads together), and `qk_norm_bias` gives them biases. `gate` is `full` or
    `head`, or `query` where the query projection makes it. A dense part is `inner_ratio` times the
    hidden width where no key says, and `inner_divisor` times narrower than the key says; an
    `inner_norm` stands between its matrices, and its activation has `activation_scalars` to learn.
    `positions` are learned: those of the context and so many before. `loose_attention` counts
    further vectors of attention, `around` has further weights of a layer, `outside` those outside
    the layers. `mixers`, `parts` and `prediction` read what is unlike other families; `defaults`
    are such a function's values where keys are absent. A flag that `expected` names is refused,
    with its words, where it is not as there.
    """

    width: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    own_kv_heads: Callable[[Reader, int], int] | None = None
    vocab: int | None = None
    vocab_key: str = "vocab_size"
    context: int | None = None
    tied: bool = False
    norms: int = 2
    post_norms: Switch = False
    sparse_norms: int = 0
    norm_bias: bool = False
    final_norm: bool = True
    qkv_bias: Switch = False
    output_bias: Switch = False
    qk_norm: str = ""
    qk_norm_if: Switch = True
    qk_norm_bias: bool = False
    gate: str = ""
    gate_if: Switch = True
    sinks: bool = False
    gated: bool = True
    mlp_bias: Switch = False
    mlp_path: str = "mlp"
    inner_ratio: int | None = None
    inner_divisor: int = 1
    inner_norm: bool = False
    activation_scalars: int = 0
    parallel: Switch = False
    shared_norm: bool = True
    head_bias: Switch = False
    positions: int | None = None
    windows: Windows = _UNBOUNDED
    moe: Moe | None = None
    latent: LatentKeys | None = None
    defaults: Mapping[str, int] = field(default_factory=dict)
    mixers: Callable[[Reader, Shape, Traits], Sequence[Mixer]] | None = None
    parts: Callable[[Reader, Shape, Traits], Sequence[FeedForward]] | None = None
    prediction: Callable[[Reader, Layer, int], PredictionBlocks | None] | None = None
    loose_attention: Callable[[Reader, Shape], int] | None = None
    around: Callable[[Reader, Shape], tuple[Weight, ...]] | None = None
    outside: Callable[[Reader, Shape], tuple[Weight, ...]] | None = None
    head_dim: tuple[str, ...] = ("head_dim",)
    ignored: tuple[str, ...] = ()
    expected: tuple[tuple[str, bool | int, str], ...] = ()
    path: str = "self_attn"


def is_enabled(reader: Reader, switch: Switch) -> bool:
    """True if a property is on in this configuration."""
    return switch if isinstance(switch, bool) else reader.flag(*switch)
