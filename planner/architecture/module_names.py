"""Names of modules as quantisers write them, matched with the paths that weights have here.

A checkpoint, transformers and an engine may call a matrix by three names (`shared_experts.up_proj`,
`shared_expert.up_proj`, `gate_up_proj`): a pattern is tried on every spelling of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property, lru_cache

from planner.text.errors import quoted
from planner.text.tables import table

_TABLE = table("planner.architecture", "module_names.toml")
_PREFIXES: tuple[str, ...] = tuple(_TABLE["prefixes"])
_UNCOUNTED = re.compile(_TABLE["uncounted"])
_FUSED = re.compile(r"(?<=\.)(" + "|".join(_TABLE["fused"]) + r")\b")
_LAYER = re.compile(r"layers\.(\d+)(?=\.)")
_SHOWN = 5


@dataclass(frozen=True)
class Patterns:
    """Module names as quantisers write them: plain, with wildcards, or `re:` expressions.

    A plain name matches a module, everything below it, and any run of whole path components
    (`gate` matches `mlp.gate`, not `gate_proj`). Prefixes before `layers.` are not compared.
    `taken` are the components of the model's own paths, which are no other name of anything.
    """

    names: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()
    _known: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

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
        """Whether the module at `path` (such as `layers.3.mlp.gate`) is named."""
        if path not in self._known:
            self._known[path] = self._any(self._spelled(path), _layer(path))
        return self._known[path]

    @cached_property
    def _fused(self) -> frozenset[str]:
        text = " ".join(self.names)
        return frozenset(word for word in _TABLE["fused"] if word in text)

    def _spelled(self, path: str) -> list[str]:
        """The spellings of a path; a fused matrix, which ends like its parts, only where named."""
        own, *others = spellings(path, self.taken)
        return [
            own,
            *(x for x in others if not (m := _FUSED.search(x)) or m.group() in self._fused),
        ]

    def _any(self, paths: Iterable[str], layer: str) -> bool:
        """Whether one of the paths, all of one layer, is named as it is spelled."""
        names = (*self._plain.get("", ()), *(self._plain.get(layer, ()) if layer else ()))
        globs = [self._globs[key] for key in dict.fromkeys(("", layer)) if key in self._globs]
        return any(
            any(name in f".{path}." for name in names)
            or any(glob.match(path) for glob in globs)
            or any(each.match(before + path) for each in self._expressions for before in _PREFIXES)
            for path in paths
        )

    def unmatched(self, paths: Iterable[str], layers: int) -> list[str]:
        """The names that match none of a model's `paths`, but for those of what is not counted."""
        by_layer: dict[str, list[str]] = {}
        for path in paths:
            by_layer.setdefault(_layer(path), []).extend(self._spelled(path))
        left = []
        for name in self.names:
            named = re.search(r"layers\.(\d+)", name)
            if _UNCOUNTED.search(name) or (named and int(named[1]) >= layers):
                continue
            one = Patterns((re.sub(r"experts\.\d+", "experts.0", name),))
            layer = _layer(_below_prefix(name))
            if not any(one._any(each, key) for key, each in by_layer.items() if layer in ("", key)):
                left.append(name)
        return left


def unmatched_words(key: str, names: list[str]) -> str:
    """What is said of patterns that match nothing."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(map(quoted, names[:_SHOWN]))
    return f"{key}: {shown}{more} match no module of this model, under any name that is known"


def spellings(path: str, taken: frozenset[str]) -> list[str]:
    """The path, and what else checkpoints and engines call it."""
    match = _LAYER.match(path)
    before = f"{match.group()}." if match else ""
    return [before + tail for tail in _tails(path[len(before) :], taken)]


@lru_cache(4096)
def _tails(tail: str, taken: frozenset[str]) -> tuple[str, ...]:
    found = [f".{tail}."]
    kind = "attention" if re.search(r"attn|attention", tail) else "feed_forward"
    for run, others in _TABLE[kind].items():
        own = {*run.split("."), "0"}
        free = [other for other in others if not ({*other.split(".")} - own) & taken]
        found += [
            spelled.replace(f".{run}.", f".{other}.")
            for spelled in found
            if f".{run}." in spelled
            for other in free
        ]
    return tuple(dict.fromkeys(spelled[1:-1] for spelled in found))


def _plain(name: str) -> str | None:
    """A name without wildcards, below its prefix; None for any other."""
    trimmed = _below_prefix(name)
    return None if name.startswith("re:") or any(mark in trimmed for mark in "*?[") else trimmed


def _below_prefix(name: str) -> str:
    """The name without what stands before `layers.`."""
    match = re.search(r"(?:^|\.)(layers\..*)$", name)
    if match:
        return match.group(1)
    for prefix in ("language_model.model.", "model.language_model.", "language_model.", "model."):
        name = name.removeprefix(prefix)
    return name


def _layer(path: str) -> str:
    """`layers.12` of a path or pattern that fixes its layer, else the empty string."""
    match = _LAYER.match(path)
    return match.group() if match else ""
