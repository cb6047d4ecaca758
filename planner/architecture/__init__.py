"""What a model is made of: layers read from a configuration, and the sizes counted from them."""

from planner.architecture.counts import Sizes, sizes, summary
from planner.architecture.huggingface import from_config, read_config
from planner.architecture.layers import Model
from planner.architecture.quantization import DTYPES, dtype

__all__ = ["DTYPES", "Model", "Sizes", "dtype", "from_config", "read_config", "sizes", "summary"]
