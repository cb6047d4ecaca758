"""Gemma 2 and 3: windowed layers between full ones, four norms a layer, tied head."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import Shape, assemble, attention_kinds, shape
from planner.architecture.feedforward import dense
from planner.architecture.layers import Layer, Model, vector

__all__ = ["gemma2", "gemma3"]


def gemma2(reader: Reader, name: str) -> Model:
    """Gemma 2: windowed and full layers alternate, and no key says so."""
    form = shape(reader, width=256, kv_heads=4, vocab=256000, tied=True)
    reader.ignore("query_pre_attn_scalar", "use_bidirectional_attention")
    default = [index % 2 == 0 for index in range(form.layers)]
    return _model(reader, name, "gemma2", form, default, norm=0)


def gemma3(reader: Reader, name: str) -> Model:
    """Gemma 3 text tower: five windowed layers to one full, a norm per head."""
    form = shape(reader, width=256, heads=8, kv_heads=4, vocab=262208, tied=True)
    reader.ignore("query_pre_attn_scalar", "use_bidirectional_attention")
    every = reader.whole(("sliding_window_pattern", "_sliding_window_pattern"), 6, most=MAX_LAYERS)
    default = [(index + 1) % every != 0 for index in range(form.layers)]
    return _model(reader, name, "gemma3", form, default, norm=2 * form.width)


def _model(
    reader: Reader, name: str, family: str, form: Shape, default: list[bool], *, norm: int
) -> Model:
    window = reader.whole(("sliding_window", "sliding_window_size"), 4096)
    bias = reader.flag("attention_bias", False)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layers = []
    for windowed in attention_kinds(reader, form.layers, default):
        mixer = grouped_attention(
            form.hidden,
            form.heads,
            form.kv_heads,
            form.width,
            bias=bias,
            output_bias=bias,
            norm=norm,
            window=window if windowed else None,
            kind="window" if windowed else "full",
        )
        layers.append(Layer(mixer, part, (vector("norms", "other", 4 * form.hidden),)))
    return assemble(name, family, form, layers)
