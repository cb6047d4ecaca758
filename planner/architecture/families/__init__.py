"""One reader per family of configurations, by the `model_type` that names it.

A family is a row of `families.toml`, or a function where its layers are unlike all others. It reads
every structural key it depends on, with the family's published defaults for absent ones.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name

from planner.architecture.config_reader import Reader
from planner.architecture.families.standard import standard
from planner.architecture.families.traits import LatentKeys, Moe, Traits, Windows
from planner.architecture.layers import Model
from planner.text.tables import table

__all__ = ["FAMILIES", "REFUSED_FAMILIES", "WRAPPERS"]

_TABLE = table("planner.architecture.families", "families.toml")
# Types whose configuration nests the language model, and the type of that nested part.
WRAPPERS: Mapping[str, str] = _TABLE["wrappers"]
# Families whose layers no supported layer type expresses, with the unsupported feature.
REFUSED_FAMILIES: Mapping[str, str] = _TABLE["refused"]

_GROUPS: Mapping[str, type] = {"windows": Windows, "moe": Moe, "latent": LatentKeys}


def _traits(name: str) -> Traits:
    made: Callable[..., Traits] = Traits
    return made(**{key: _value(key, value) for key, value in _words(name).items()})


def _words(name: str) -> dict[str, object]:
    row = dict((_TABLE["habits"] | _TABLE["families"])[name])
    row.pop("kind", None)
    base = row.pop("like", None)
    return row if base is None else {**_words(base), **row}


def _value(key: str, value: object) -> object:
    if isinstance(value, list):
        return tuple(_value("", each) for each in value)
    if isinstance(value, str) and ":" in value:
        return resolve_name(f"{__name__}.{value}")
    if isinstance(value, dict) and key in _GROUPS:
        return _GROUPS[key](**{word: _value(word, each) for word, each in value.items()})
    return value


FAMILIES: dict[str, Callable[[Reader, str], Model]] = {
    name: partial(standard, kind=row.get("kind", name), traits=_traits(name))
    for name, row in _TABLE["families"].items()
} | {name: resolve_name(f"{__name__}.{each}") for name, each in _TABLE["readers"].items()}
