"""Standard decoders: what a layer has, said as data, for the families that differ in few things.

Most published decoders are Llama's layer with other norms, biases, gates, windows or a mixture in
place of the dense part. A family is then a row of `Traits`; what a configuration says by key
(heads, widths, experts, windows by layer) is read the same way for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    INNER,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    Windows,
    assemble,
    check_experts,
    expert_groups,
    predict,
    shape,
    sparse_layers,
    windows,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, Weight, vector

# A property that is fixed, or that a key turns on and off, with its value where the key is absent.
Switch = bool | tuple[str | tuple[str, ...], bool]
_UNBOUNDED = Windows()


@dataclass(frozen=True, slots=True)
class Moe:
    """How the mixture layers of a family are written.

    `inner` names the experts' width; `shared` the key of the shared part's whole width (else the
    count of shared experts times `inner`, `shared_count` where absent). Layers below `first_dense`
    are dense where no key says; `dense_inner` names the width of those.
    """

    inner: str | tuple[str, ...] = "moe_intermediate_size"
    dense_inner: str | tuple[str, ...] = INNER
    shared: str | tuple[str, ...] = ()
    shared_count: int = 0
    shared_gate: bool = False
    router_bias: Switch = False
    shared_bias: Switch = False
    experts: int | None = None
    active: int | None = None
    first_dense: int = 0
    path: str = "mlp"


@dataclass(frozen=True, slots=True)
class Traits:
    """How a family's layer differs from Llama's; counts are of vectors of the hidden width.

    `width`, `heads`, `kv_heads`, `vocab` and `tied` are the family's values where keys are absent.
    `norms` is how many norms a layer has, one fewer where `parallel` parts have a `shared_norm`;
    `norm_bias` whether they have biases, `final_norm` whether one follows the layers. `qk_norm`
    is `head` (one vector of the head's width for all) or `all` (one of all heads together), and
    `qk_norm_bias` gives them biases. `gate` is `full` or `head`. A dense part is `inner_ratio`
    times the hidden width where no key says, and `inner_divisor` times narrower than the key
    says. `loose_attention` and `loose_feed_forward` count further vectors of a layer, `outside`
    those outside the layers.
    """

    width: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocab: int | None = None
    tied: bool = False
    norms: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    qkv_bias: Switch = False
    output_bias: Switch = False
    qk_norm: str = ""
    qk_norm_if: Switch = True
    qk_norm_bias: bool = False
    gate: str = ""
    sinks: bool = False
    gated: bool = True
    mlp_bias: Switch = False
    inner_ratio: int | None = None
    inner_divisor: int = 1
    parallel: Switch = False
    shared_norm: bool = True
    head_bias: Switch = False
    windows: Windows = _UNBOUNDED
    moe: Moe | None = None
    loose_attention: Callable[[Shape], int] | None = None
    loose_feed_forward: Callable[[Shape, int], int] | None = None
    outside: Callable[[Reader, Shape], int] | None = None
    head_dim: tuple[str, ...] = ("head_dim",)
    ignored: tuple[str, ...] = ()
    path: str = "self_attn"


def family(kind: str, **traits: Any) -> Callable[[Reader, str], Model]:
    """The reader of the family called `kind`, whose layers have these `Traits`."""
    return _Family(kind, Traits(**traits))


@dataclass(frozen=True, slots=True)
class _Family:
    kind: str
    traits: Traits

    def __call__(self, reader: Reader, name: str) -> Model:
        return standard(reader, name, self.kind, self.traits)


def switched(reader: Reader, switch: Switch) -> bool:
    """Whether a property is on in this configuration."""
    return switch if isinstance(switch, bool) else reader.flag(*switch)


def standard(reader: Reader, name: str, kind: str, traits: Traits, **overrides: Any) -> Model:
    """The model of a standard decoder; `given` replaces measures of its `Shape`."""
    reader.ignore(*traits.ignored)
    form = shape(
        reader,
        width=traits.width,
        heads=traits.heads,
        kv_heads=traits.kv_heads,
        vocab=traits.vocab,
        tied=traits.tied,
        head_dim=traits.head_dim,
    )
    form = replace(form, **overrides)
    parallel = switched(reader, traits.parallel)
    norm = form.hidden * (2 if traits.norm_bias else 1)
    count = traits.norms - (1 if parallel and traits.shared_norm else 0)
    norms = (vector("norms", "other", count * norm),) if count else ()
    mixers = _mixers(reader, form, traits)
    if traits.moe is None:
        parts = [_dense(reader, form, traits, inner) for inner in _inner(reader, form, traits)]
    else:
        parts = mixtures(reader, form, traits, traits.moe)
    layers = [
        Layer(mixer, part, norms, parallel) for mixer, part in zip(mixers, parts, strict=True)
    ]
    return assemble(
        name,
        kind,
        form,
        layers,
        extra=_outside(reader, form, traits),
        prediction=predict(reader, MTP, layers[-1], form.hidden),
        final_norm=norm if traits.final_norm else 0,
    )


def _mixers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    bias, output = switched(reader, traits.qkv_bias), switched(reader, traits.output_bias)
    norm = 0
    if traits.qk_norm and switched(reader, traits.qk_norm_if):
        wide = 2 if traits.qk_norm == "head" else form.heads + form.kv_heads
        norm = wide * form.width * (2 if traits.qk_norm_bias else 1)
    gate = 0
    if traits.gate:
        gate = form.heads * (form.width if traits.gate == "full" else 1)
    loose = traits.loose_attention(form) if traits.loose_attention else 0
    made: dict[int | None, Mixer] = {}
    listed = windows(reader, form.layers, traits.windows)
    if form.max_context is not None:
        # As long as the longest context a window bounds nothing; some families write it so.
        listed = [None if size is None or size >= form.max_context else size for size in listed]
    for window in listed:
        if window not in made:
            made[window] = form.attention(
                bias=bias,
                output_bias=output,
                norm=norm,
                gate_width=gate,
                sinks=traits.sinks,
                loose=loose,
                window=window,
                kind="full" if window is None else "window",
                path=traits.path,
            )
    return [made[window] for window in listed]


def _inner(reader: Reader, form: Shape, traits: Traits) -> list[int]:
    default = None if traits.inner_ratio is None else traits.inner_ratio * form.hidden
    listed = reader.per_layer(INNER, form.layers, default)
    return [inner // traits.inner_divisor for inner in listed]


def _dense(reader: Reader, form: Shape, traits: Traits, inner: int) -> FeedForward:
    loose = traits.loose_feed_forward(form, inner) if traits.loose_feed_forward else 0
    bias = switched(reader, traits.mlp_bias)
    return dense(form.hidden, inner, gated=traits.gated, bias=bias, loose=loose)


def mixtures(
    reader: Reader, form: Shape, traits: Traits, moe: Moe, listed: list[bool] | None = None
) -> list[FeedForward]:
    """The feed-forward part of each layer, dense or a mixture; `listed` says which where known."""
    sparse = sparse_layers(reader, form.layers, moe.first_dense) if listed is None else listed
    only = set(reader.wholes("mlp_only_layers", most=max(form.layers - 1, 0)) or ())
    step = reader.whole("decoder_sparse_step", 1, most=MAX_LAYERS)
    sparse = [
        chosen and index not in only and (index + 1) % step == 0
        for index, chosen in enumerate(sparse)
    ]
    mixed = _mixture(reader, form, moe) if any(sparse) else None
    if mixed is None:
        reader.ignore(*EXPERTS, *PER_TOKEN, *SHARED, *_names(moe.inner), *_names(moe.shared))
    if all(sparse):
        reader.ignore(*_names(moe.dense_inner))
        return [mixed] * form.layers if mixed is not None else []
    plain = _dense(reader, form, traits, reader.whole(moe.dense_inner))
    return [mixed if chosen and mixed is not None else plain for chosen in sparse]


def _mixture(reader: Reader, form: Shape, moe: Moe) -> FeedForward:
    experts = _same(reader, EXPERTS, form.layers, moe.experts)
    active = _same(reader, PER_TOKEN, form.layers, moe.active)
    check_experts(reader, experts, active)
    inner = _same(reader, moe.inner, form.layers, None)
    shared, wide = 0, None
    if moe.shared:
        wide = reader.whole(moe.shared, 0, least=0)
        reader.ignore(*SHARED)
        shared = 1 if wide else 0
    else:
        shared = _same(reader, SHARED, form.layers, moe.shared_count, least=0)
    return mixture(
        form.hidden,
        inner,
        experts,
        active,
        shared=shared,
        shared_inner=wide,
        shared_gate=moe.shared_gate,
        router_bias=switched(reader, moe.router_bias),
        shared_bias=switched(reader, moe.shared_bias),
        path=moe.path,
        groups=expert_groups(reader, experts, active),
    )


def _same(
    reader: Reader, keys: str | tuple[str, ...], count: int, default: int | None, *, least: int = 1
) -> int:
    """One number, though the configuration may list it layer by layer."""
    listed = reader.per_layer(keys, count, default, least=least)
    if len(set(listed)) > 1:
        first = keys if isinstance(keys, str) else next(key for key in keys if reader.has(key))
        raise reader.fail(first, "differs from layer to layer, expected one number for all")
    return listed[0]


def _names(keys: str | tuple[str, ...]) -> tuple[str, ...]:
    return (keys,) if isinstance(keys, str) else keys


def _outside(reader: Reader, form: Shape, traits: Traits) -> tuple[Weight, ...]:
    extra = []
    if traits.outside is not None:
        loose = traits.outside(reader, form)
        if loose:
            extra.append(vector("positions_and_norms", "other", loose))
    if switched(reader, traits.head_bias):
        extra.append(vector("lm_head.bias", "head", form.vocab))
    return tuple(extra)
