"""Which layers see a window of the context only: lists by layer, patterns, and families' habits."""

from __future__ import annotations

from dataclasses import dataclass

from planner.architecture.config_reader import MAX_LAYERS, Reader

__all__ = ["SIZES", "Windows", "windows"]

SIZES = ("sliding_window", "sliding_window_size", "attention_window_size", "window_size")
PATTERNS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "global_attn_every_n_layers",
    "layer_group_size",
)
_WORDS = {
    "full_attention": False,
    "attention": False,
    "global": False,
    "sliding_attention": True,
    "local": True,
}


@dataclass(frozen=True, slots=True)
class Windows:
    """A family's habit where `layer_types` is absent.

    `named` says so layer by layer; `always` windows every layer that a window is given for;
    `every` leaves each nth layer full, the last of each run, or the first of it with `leading`;
    otherwise none is windowed, whatever window is given. `size` is the window where the key is
    absent; `used_if` is the key (and its default) that switches windows on.
    """

    named: tuple[bool, ...] = ()
    always: bool = False
    every: int | None = None
    leading: bool = False
    size: int | None = None
    used_if: tuple[str, bool] | None = None


def windows(reader: Reader, count: int, habit: Windows) -> list[int | None]:
    """The window of each of `count` layers [token], None where attention is full."""
    named = reader.words("layer_types", count, tuple(_WORDS))
    size = reader.optional(SIZES, least=0) or None
    if size is None and not any(reader.given(key) for key in SIZES):
        size = habit.size
    used = habit.used_if is None or reader.flag(*habit.used_if)
    pattern = reader.value(PATTERNS)
    if not used:
        bounded = [False] * count
    elif habit.named:
        bounded = list(habit.named)
    elif named is not None:
        bounded = [_WORDS[word] for word in named]
    elif isinstance(pattern, str):
        bounded = _lettered(reader, pattern, count)
    elif habit.every is not None and size is not None:
        every = reader.whole(PATTERNS, habit.every, most=MAX_LAYERS)
        full = 0 if habit.leading else every - 1
        bounded = [index % every != full for index in range(count)]
    else:
        bounded = [habit.always and size is not None] * count
    if any(bounded) and size is None:
        raise reader.fail(SIZES[0], "is missing; layer_types names windowed layers")
    return [size if one else None for one in bounded]


def _lettered(reader: Reader, pattern: str, count: int) -> list[bool]:
    """A run of L (local) and G (global) repeated over the layers."""
    if not pattern or len(pattern) > MAX_LAYERS or set(pattern) - set("LG"):
        raise reader.fail(PATTERNS[0], "expected a number, or letters L (local) and G (global)")
    return [pattern[index % len(pattern)] == "L" for index in range(count)]
