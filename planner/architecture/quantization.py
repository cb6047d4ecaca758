"""Number formats of weights and caches, and which weights of a checkpoint are stored in which.

Three sources say so: `quantization_config` inside the configuration, `hf_quant_config.json`
beside it (NVIDIA ModelOpt), and DeepSeek-V4's `expert_dtype`. Each gives a default format for the
matrices of linear layers and a list of modules left alone. Embeddings, routers, norms and biases
keep the checkpoint's own format in all of them; the head does unless it is named.

A format's bytes per weight are exact fractions: a block of FP8 weights of 128 by 128 shares one
four-byte scale, sixteen NVFP4 weights share one byte, thirty-two MXFP4 weights share one byte.
`fp4`, `int4`, `int8` and `fp8` alone are the bare format, for a question that names no block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from planner.architecture.module_names import Patterns, unmatched_words
from planner.text.errors import ModelError, did_you_mean, quoted
from planner.text.tables import table


@dataclass(frozen=True, slots=True)
class Precision:
    """A number format: its name and the bytes one number takes, scales included [byte].

    `block` weights along a row or a column share a scale, so that nothing cuts between them.
    """

    name: str
    bytes: Fraction
    block: int = 1

    def with_scales(self, group: int, scale_bytes: Fraction, block: int | None = None) -> Precision:
        """The bare format with `scale_bytes` [byte] shared by every `group` of weights.

        `block` of them are along one side, all of them where nothing else is said.
        """
        return Precision(self.name, self.bytes + scale_bytes / group, block or group)


FORMATS = table("planner.architecture", "number_formats.toml")
DTYPES = {
    name: Precision(name, Fraction(size), FORMATS["blocks"].get(name, 1))
    for name, size in FORMATS["bytes"].items()
}


def dtype(name: str) -> Precision:
    """The format called `name`; raises ModelError with the nearest known name."""
    if isinstance(name, str) and name.lower() in DTYPES:
        return DTYPES[name.lower()]
    hint = did_you_mean(name, DTYPES) or f" (known: {', '.join(DTYPES)})"
    raise ModelError(f"unknown number format {quoted(name)}{hint}")


def torch_dtype(name: str) -> Precision | None:
    """The format a checkpoint calls `name` (`bfloat16`, `torch.float16`), or None if unknown."""
    precision = FORMATS["torch"].get(name.removeprefix("torch."))
    return DTYPES[precision] if precision else DTYPES.get(name)


_NEVER = frozenset({"embedding", "router"})


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint's matrices are stored.

    `default` is the format of linear layers (None: not quantised), `experts` that of routed
    experts where it differs, `kept` the modules left in the checkpoint's own format, `chosen`
    formats of modules named one by one; `head` says whether the head may be converted; `cache`
    is the key-value cache's format where the checkpoint fixes one, and `activation` that of the
    matrices' inputs (None: the checkpoint's own, as in weight-only quantisation).
    """

    method: str = ""
    default: Precision | None = None
    experts: Precision | None = None
    unquantized: Patterns = field(default_factory=Patterns)
    chosen: tuple[tuple[Patterns, Precision], ...] = ()
    head: bool = False
    cache: Precision | None = None
    activation: Precision | None = None

    @property
    def active(self) -> bool:
        """Whether any weight is quantised."""
        return self.default is not None or self.experts is not None or bool(self.chosen)

    def precision(self, path: str, group: str, linear: bool) -> Precision | None:
        """The quantised format of the matrix at `path`, or None where it is left alone."""
        if not linear or group in _NEVER or not self.active:
            return None
        if self.unquantized.match(path):
            return None
        for patterns, precision in self.chosen:
            if patterns.match(path):
                return precision
        if group == "head" and not self.head:
            return None
        if group == "routed" and self.experts is not None:
            return self.experts
        return self.default

    def placed(self, paths: Sequence[str], layers: int) -> tuple[Quantization, tuple[str, ...]]:
        """The same among a model's own `paths`, and a warning of patterns that match nothing."""
        if not (self.unquantized.names or self.chosen):
            return self, ()
        taken = frozenset(part for path in paths for part in path.split("."))
        kept = replace(self.unquantized, taken=taken)
        chosen = tuple((replace(each, taken=taken), form) for each, form in self.chosen)
        lost = {"left alone": kept.unmatched(paths, layers)}
        lost["chosen"] = [name for each, _ in chosen for name in each.unmatched(paths, layers)]
        words = tuple(
            unmatched_words(f"quantised modules {key}", names)
            for key, names in lost.items()
            if names
        )
        return replace(self, unquantized=kept, chosen=chosen), words
