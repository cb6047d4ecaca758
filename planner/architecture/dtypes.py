"""Number formats of weights and caches, with the bytes of their scales counted in.

A format's bytes per weight are exact fractions: a block of FP8 weights of 128 by 128 shares one
four-byte scale, sixteen NVFP4 weights share one byte, thirty-two MXFP4 weights share one byte.
`fp4`, `int4`, `int8` and `fp8` alone are the bare format, for a question that names no block.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from planner.text.errors import ModelError, did_you_mean, quoted

__all__ = ["DTYPES", "Precision", "dtype", "torch_dtype", "with_scales"]


@dataclass(frozen=True, slots=True)
class Precision:
    """A number format: its name and the bytes one number takes, scales included [byte]."""

    name: str
    bytes: Fraction


# OCP Microscaling Formats specification v1.0 (MXFP4: blocks of 32, one byte of scale); NVIDIA
# Blackwell NVFP4: blocks of 16, one FP8 scale (the scale per tensor is negligible).
DTYPES: dict[str, Precision] = {
    name: Precision(name, size)
    for name, size in {
        "fp32": Fraction(4),
        "bf16": Fraction(2),
        "fp16": Fraction(2),
        "fp8": Fraction(1),
        "int8": Fraction(1),
        "fp4": Fraction(1, 2),
        "int4": Fraction(1, 2),
        "nvfp4": Fraction(1, 2) + Fraction(1, 16),
        "mxfp4": Fraction(1, 2) + Fraction(1, 32),
    }.items()
}

_TORCH = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


def dtype(name: str) -> Precision:
    """The format called `name`; raises ModelError with the nearest known name."""
    if isinstance(name, str) and name.lower() in DTYPES:
        return DTYPES[name.lower()]
    hint = did_you_mean(name, DTYPES) or f" (known: {', '.join(DTYPES)})"
    raise ModelError(f"unknown number format {quoted(name)}{hint}")


def torch_dtype(name: str) -> Precision | None:
    """The format a checkpoint calls `name` (`bfloat16`, `torch.float16`), or None if unknown."""
    known = _TORCH.get(name.removeprefix("torch."))
    return DTYPES[known] if known else DTYPES.get(name)


def with_scales(name: str, group: int, scale_bytes: Fraction) -> Precision:
    """The bare format `name` with `scale_bytes` [byte] shared by every `group` of weights."""
    return Precision(name, DTYPES[name].bytes + scale_bytes / group)
