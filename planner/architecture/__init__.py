"""Model architecture: layers read from a configuration, and the sizes counted from them."""

from planner.architecture.counts import ModelSizes, model_sizes, summary
from planner.architecture.huggingface import from_config, read_config
from planner.architecture.layers import Model
from planner.architecture.quantization import DTYPES, dtype

__all__ = [
    "DTYPES",
    "Model",
    "ModelSizes",
    "dtype",
    "from_config",
    "model_sizes",
    "read_config",
    "summary",
]
