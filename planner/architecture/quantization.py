"""Number formats of weights and caches, and the format of each weight of a checkpoint.

Three sources say so: `quantization_config` inside the configuration, `hf_quant_config.json`
beside it (NVIDIA ModelOpt), and DeepSeek-V4's `expert_dtype`. Each gives a default format for the
matrices of linear layers and a list of modules left alone. Embeddings, routers, norms and biases
keep the checkpoint's own format in all of them; the head does unless it is named.

A format's bytes per weight are exact fractions: a block of FP8 weights of 128 by 128 shares one
four-byte scale, sixteen NVFP4 weights share one byte, thirty-two MXFP4 weights share one byte.
`fp4`, `int4`, `int8` and `fp8` alone are the bare format, for a question that names no block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from fractions import Fraction
from functools import cached_property, lru_cache

from planner.text.errors import ModelError, did_you_mean, quote
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
    raise ModelError(f"unknown number format {quote(name)}{hint}")


def torch_dtype(name: str) -> Precision | None:
    """The format a checkpoint calls `name` (`bfloat16`, `torch.float16`), or None if unknown."""
    precision = FORMATS["torch"].get(name.removeprefix("torch."))
    return DTYPES[precision] if precision else DTYPES.get(name)


_NEVER = frozenset({"embedding", "router"})


_NAMES = table("planner.architecture", "module_names.toml")
_PREFIXES: tuple[str, ...] = tuple(_NAMES["prefixes"])
_UNCOUNTED = re.compile(_NAMES["uncounted"])
_FUSED = re.compile(r"(?<=\.)(" + "|".join(_NAMES["fused"]) + r")\b")
_LAYER = re.compile(r"layers\.(\d+)(?=\.)")
_SHOWN = 5  # patterns that a warning names


@dataclass(frozen=True)
class Patterns:
    """Module names as quantisers write them: plain, with wildcards, or `re:` expressions.

    A plain name matches a module, everything below it, and any run of whole path components
    (`gate` matches `mlp.gate`, not `gate_proj`). Prefixes before `layers.` are not compared.
    `taken` are the components of the model's own paths, which are no other name of anything.
    """

    names: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()
    _matched: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _plain(self) -> dict[str, tuple[str, ...]]:
        plain: dict[str, dict[str, None]] = {}
        for name in filter(None, map(_plain, self.names)):
            plain.setdefault(_layer(f"{name}."), {})[f".{name}."] = None
        return {layer: tuple(names) for layer, names in plain.items()}

    @cached_property
    def _expressions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(name[3:]) for name in self.names if name.startswith("re:"))

    @cached_property
    def _globs(self) -> dict[str, re.Pattern[str]]:
        globs: dict[str, list[str]] = {}
        for name in self.names:
            trimmed = _below_prefix(name)
            if not name.startswith("re:") and _plain(name) is None:
                globs.setdefault(_layer(trimmed), []).append(trimmed)
        return {
            layer: re.compile(
                "|".join(translate(each) for name in group for each in (name, f"{name}.*"))
            )
            for layer, group in globs.items()
        }

    def __post_init__(self) -> None:
        _ = self._expressions, self._globs  # refused where they are read, not where they are used

    def match(self, path: str) -> bool:
        """True if a name matches the module at `path` (for example `layers.3.mlp.gate`)."""
        if path not in self._matched:
            self._matched[path] = self._any(self._spelled(path), _layer(path))
        return self._matched[path]

    @cached_property
    def _fused(self) -> frozenset[str]:
        text = " ".join(self.names)
        return frozenset(word for word in _NAMES["fused"] if word in text)

    def _spelled(self, path: str) -> list[str]:
        plain, *others = spellings(path, self.taken)
        return [
            plain,
            *(x for x in others if not (m := _FUSED.search(x)) or m.group() in self._fused),
        ]

    def _any(self, paths: Iterable[str], layer: str) -> bool:
        """True if a name matches one of the paths, all of one layer, as spelled."""
        names = (*self._plain.get("", ()), *(self._plain.get(layer, ()) if layer else ()))
        globs = [self._globs[key] for key in dict.fromkeys(("", layer)) if key in self._globs]
        return any(
            any(name in f".{path}." for name in names)
            or any(glob.match(path) for glob in globs)
            or any(each.match(before + path) for each in self._expressions for before in _PREFIXES)
            for path in paths
        )

    def unmatched(self, paths: Iterable[str], layers: int) -> list[str]:
        """Names that match no path of a model, except names of modules that are not counted."""
        by_layer: dict[str, list[str]] = {}
        for path in paths:
            by_layer.setdefault(_layer(path), []).extend(self._spelled(path))
        left = []
        for name in self.names:
            named = re.search(r"layers\.(\d+)", name)
            if _UNCOUNTED.search(name) or (named and int(named[1]) >= layers):
                continue
            single = Patterns((re.sub(r"experts\.\d+", "experts.0", name),))
            layer = _layer(_below_prefix(name))
            if not any(
                single._any(each, key) for key, each in by_layer.items() if layer in ("", key)
            ):
                left.append(name)
        return left


def unmatched_words(key: str, names: list[str]) -> str:
    """Warning about patterns that match no module."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(map(quote, names[:_SHOWN]))
    return f"{key}: {shown}{more} match no module of this model, under any name that is known"


def spellings(path: str, taken: frozenset[str]) -> list[str]:
    """The path, and what else checkpoints and engines call it."""
    match = _LAYER.match(path)
    before = f"{match.group()}." if match else ""
    return [before + tail for tail in _tails(path[len(before) :], taken)]


@lru_cache(4096)
def _tails(tail: str, taken: frozenset[str]) -> tuple[str, ...]:
    tails = [f".{tail}."]
    kind = "attention" if re.search(r"attn|attention", tail) else "feed_forward"
    for run, others in _NAMES[kind].items():
        parts = {*run.split("."), "0"}
        free = [other for other in others if not ({*other.split(".")} - parts) & taken]
        tails += [
            spelled.replace(f".{run}.", f".{other}.")
            for spelled in tails
            if f".{run}." in spelled
            for other in free
        ]
    return tuple(dict.fromkeys(spelled[1:-1] for spelled in tails))


def _plain(name: str) -> str | None:
    trimmed = _below_prefix(name)
    return None if name.startswith("re:") or any(mark in trimmed for mark in "*?[") else trimmed


def _below_prefix(name: str) -> str:
    match = re.search(r"(?:^|\.)(layers\..*)$", name)
    if match:
        return match.group(1)
    for prefix in ("language_model.model.", "model.language_model.", "language_model.", "model."):
        name = name.removeprefix(prefix)
    return name


def _layer(path: str) -> str:
    match = _LAYER.match(path)
    return match.group() if match else ""


@dataclass(frozen=True)
class Quantization:
    """Storage formats of a checkpoint's matrices.

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
        """True if any weight is quantised."""
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
        """Bind patterns to a model's `paths`; also returns warnings of patterns without match."""
        if not (self.unquantized.names or self.chosen):
            return self, ()
        taken = frozenset(part for path in paths for part in path.split("."))
        left = replace(self.unquantized, taken=taken)
        chosen = tuple((replace(each, taken=taken), form) for each, form in self.chosen)
        lost = {"left alone": left.unmatched(paths, layers)}
        lost["chosen"] = [name for each, _ in chosen for name in each.unmatched(paths, layers)]
        words = tuple(
            unmatched_words(f"quantised modules {key}", names)
            for key, names in lost.items()
            if names
        )
        return replace(self, unquantized=left, chosen=chosen), words
