"""One reader per family of configurations, by the `model_type` that names it.

A family is a row of `families.toml`, or a function where its layers are unlike all others. It reads
every structural key it depends on, with the family's published defaults for absent ones.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from planner.architecture.config_reader import Reader
from planner.architecture.families import gemma, hybrids, latent, singular, standard, uneven
from planner.architecture.families.nemotron import nemotron_h, nemotron_nas
from planner.architecture.families.standard import Family
from planner.architecture.families.traits import LatentKeys, Moe, Traits, Windows
from planner.architecture.layers import Model

__all__ = ["FAMILIES", "REFUSED", "WRAPPERS"]

_TABLE = tomllib.loads(
    files("planner.architecture.families").joinpath("families.toml").read_text(encoding="utf-8")
)
# Types whose configuration nests the language model, and the type of that nested part.
WRAPPERS: Mapping[str, str] = _TABLE["wrappers"]
# Families whose layers cannot be said in the terms there are, and what is missing.
REFUSED: Mapping[str, str] = _TABLE["refused"]

_GROUPS = {"windows": Windows, "moe": Moe, "latent": LatentKeys}
_FUNCTIONS = frozenset(
    {
        "mixers", "parts", "prediction", "around", "outside", "layers", "own_kv_heads",
        "loose_attention", "loose_feed_forward",
    }
)  # fmt: skip
_MODULES = (gemma, hybrids, latent, singular, standard, uneven)


def _row(name: str) -> dict[str, Any]:
    """The words of a family or habit, with those of the one it is like."""
    own = (_TABLE["habits"] | _TABLE["families"])[name]
    return {**_row(own["like"]), **own} if "like" in own else own


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Words as arguments: lists as tuples, groups as their classes, names as functions."""
    values = {key: _tuples(value) for key, value in row.items() if key not in ("like", "kind")}
    for key in values:
        if key in _GROUPS and isinstance(row[key], Mapping):
            values[key] = _GROUPS[key](**_values(row[key]))
        elif key in _FUNCTIONS:
            values[key] = next(
                getattr(module, row[key]) for module in _MODULES if hasattr(module, row[key])
            )
    return values


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


FAMILIES: dict[str, Callable[[Reader, str], Model]] = {
    name: Family(_TABLE["families"][name].get("kind", name), Traits(**_values(_row(name))))
    for name in _TABLE["families"]
} | {
    "RefinedWeb": singular.falcon,
    "RefinedWebModel": singular.falcon,
    "dbrx": singular.dbrx,
    "falcon": singular.falcon,
    "falcon_mamba": singular.mamba,
    "jetmoe": singular.jetmoe,
    "longcat_flash": latent.longcat,
    "mamba": singular.mamba,
    "mamba2": singular.mamba_2,
    "mpt": singular.mpt,
    "nemotron-nas": nemotron_nas,
    "nemotron_h": nemotron_h,
    "opt": singular.opt,
    "rwkv": singular.rwkv,
    "xlstm": singular.xlstm,
}
