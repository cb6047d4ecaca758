"""What a model is made of: layers read from a configuration, and the sizes counted from them."""

from __future__ import annotations

from planner.architecture.caches import CacheKind
from planner.architecture.counts import Sizes, sizes, summary
from planner.architecture.huggingface import from_config, read_config
from planner.architecture.layers import Layer, Model
from planner.architecture.quantization import DTYPES, Precision, dtype

__all__ = [
    "DTYPES",
    "CacheKind",
    "Layer",
    "Model",
    "Precision",
    "Sizes",
    "dtype",
    "from_config",
    "read_config",
    "sizes",
    "summary",
]
