"""Reads machines.toml: figures of machines, each with its source and the date it was read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Figure", "aliases", "entries", "figures", "usual_latency"]

GUESSES = ("assumed", "memory")
FILE = Path(__file__).with_name("machines.toml")


@dataclass(frozen=True)
class Figure:
    """One number of a machine, where it comes from, when it was read, and if it is a mere guess."""

    name: str
    value: Any
    unit: str
    source: str
    as_of: str
    assumed: bool = False


def entries() -> Mapping[str, Mapping[str, Any]]:
    """The machines as they stand in the file, by name."""
    machines: Mapping[str, Mapping[str, Any]] = _read()["machine"]
    return machines


def aliases() -> Mapping[str, str]:
    """Other names of machines of the file, and the machines that they mean."""
    known: Mapping[str, str] = _read()["alias"]
    return known


def figures(name: str) -> tuple[Figure, ...]:
    """The sourced figures of a machine of the file; latencies not its own are the usual ones."""
    entry = entries()[name]
    own = [_figure(key, value) for key, value in entry.items() if isinstance(value, dict)]
    usual = [
        usual_latency(tier, key)
        for tier, key in ((entry["kind"], "scale_up_latency"), ("scale_out", "scale_out_latency"))
        if key not in entry
    ]
    return (*own, *usual)


def usual_latency(tier: str, name: str = "latency") -> Figure:
    """Latency of one arc of a switch, a mesh, a torus or scale_out, if no better is known. [s]"""
    return _figure(name, _read()["latency"][tier])


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def _figure(name: str, entry: Mapping[str, Any]) -> Figure:
    source = _read()["source"][entry["source"]]
    note = f" ({entry['note']})" if "note" in entry else ""
    guess = entry["source"] in GUESSES
    return Figure(
        name, _tuple(entry["value"]), entry["unit"], source + note, str(entry["as_of"]), guess
    )


def _tuple(value: Any) -> Any:
    """Lists as tuples, which may be compared and kept."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
