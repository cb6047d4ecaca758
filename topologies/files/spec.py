"""Fabrics as a YAML file says how they are generated: a kind and its figures, or a machine.

    kind: torus
    dims: [4, 4, 4]
    link: {bandwidth: 45 GB/s, latency: 1 us}
    overrides:
      - link: [[0, 0, 0], [0, 0, 1]]
        bandwidth: 22.5 GB/s

The kinds are the builders and their keys the arguments of these. A fabric among the arguments is
a description of its own. `machine: gb200-nvl72` with `chips: 144` takes one from the catalogue.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from topologies.builders import BUILDERS
from topologies.errors import TopologyError, meant
from topologies.fabric import Fabric
from topologies.files.changes import changed
from topologies.files.located import Document, Located
from topologies.files.sizes import MOST_ARCS, arcs
from topologies.files.units import latency, rate
from topologies.files.values import as_given, read_value, reader
from topologies.limits import count_fault, shown
from topologies.machines import graph, names

__all__ = ["fabric_of"]

TOLD = ("name", "source", "as_of")
SOURCED = ("source", "as_of")
COMMON = (*TOLD, "overrides")
LINK = ("bandwidth", "latency")
DEEPEST = 6
MOST_CHIPS = 100_000


def fabric_of(found: Document, where: str, name: str) -> Fabric:
    """The fabric that a document describes.

    Raises
    ------
    TopologyError
        Listing every problem with its line and column.
    """
    G = None if found.root is None else _fabric(found.root, found, "", 0)
    if G is None or found.faults:
        raise TopologyError(where, found.problems)
    return G


def _fabric(node: Located, found: Document, path: str, depth: int) -> Fabric | None:
    """The fabric of one description; None when something of it is wrong, which is noted."""
    place = path or "the file"
    if not isinstance(node.value, dict):
        found.fault(node, f"{place}: a mapping with kind or machine was expected, {_not(node)}")
        return None
    if depth > DEEPEST:
        found.fault(node, f"{path}: more than {DEEPEST} fabrics inside each other")
        return None
    if ("kind" in node.value) == ("machine" in node.value):
        _which(node, found, place)
        return None
    before = len(found.faults)
    G = (_built if "kind" in node.value else _known)(node, found, path, depth)
    told = dict(_told(node, found, path))
    if G is not None and "overrides" in node.value:
        G = changed(G, node.value["overrides"], found, _join(path, "overrides"))
    if G is None or len(found.faults) > before:
        return None
    G.graph.update(told)
    return G


def _which(node: Located, found: Document, place: str) -> None:
    if "kind" in node.value:
        found.fault(
            node.keys["machine"], f"{place}: kind and machine are both given; one was expected"
        )
        return
    close = [meant(key, ("kind", "machine")) for key in node.value]
    hint = next((f"; {said}" for said in close if said.startswith("did")), "")
    found.fault(node, f"{place}: neither kind nor machine is given{hint}")


def _told(node: Located, found: Document, path: str) -> Iterator[tuple[str, str]]:
    for key in TOLD:
        if key in node.value:
            value = node.value[key]
            if isinstance(value.value, str) and value.value.strip():
                yield key, value.value
            else:
                found.fault(value, f"{_join(path, key)} is {as_given(value)}; a text was expected")


def _known(node: Located, found: Document, path: str, depth: int) -> Fabric | None:
    """A machine of the catalogue."""
    keys = ("machine", "chips", *COMMON)
    sound = _no_strangers(node, found, path, keys)
    which = node.value["machine"]
    if which.value not in names():
        said = f"{_join(path, 'machine')} is {as_given(which)}; {meant(which.plain, names())}"
        found.fault(which, said)
        return None
    chips = node.value.get("chips")
    if chips is not None:
        fault = count_fault(chips.plain)
        if fault is None and chips.value > MOST_CHIPS:
            fault = f"is {chips.value}; at most {MOST_CHIPS} are drawn"
        if fault is not None:
            found.fault(chips, f"{_join(path, 'chips')} {fault}")
            return None
    if not sound:
        return None
    try:
        return graph(which.value, None if chips is None else chips.value)
    except TopologyError as error:
        for problem in error.problems:
            found.fault(
                chips or which, f"{_join(path, 'chips' if chips else 'machine')}: {problem}"
            )
        return None


def _built(node: Located, found: Document, path: str, depth: int) -> Fabric | None:
    """What a builder makes of the arguments in the file."""
    kind = node.value["kind"]
    if not isinstance(kind.value, str) or kind.value not in BUILDERS:
        said = f"{_join(path, 'kind')} is {as_given(kind)}; {meant(kind.plain, BUILDERS)}"
        found.fault(kind, said)
        return None
    builder = BUILDERS[kind.value]
    wanted = inspect.signature(builder).parameters
    sound = _no_strangers(node, found, path, ("kind", *wanted, *COMMON))
    before = len(found.faults)
    given = _arguments(node, wanted, found, path, depth)
    for name, parameter in wanted.items():
        if parameter.default is parameter.empty and name not in node.value:
            found.fault(kind, f"{_join(path, name)} is missing, which a {kind.value} needs")
    if not sound or len(found.faults) > before:
        return None
    if (size := arcs(kind.value, given)) > MOST_ARCS:
        found.fault(kind, f"{path or kind.value}: up to {size} arcs; at most {MOST_ARCS} are made")
        return None
    try:
        G = builder(**given)
    except TopologyError as error:
        for problem in error.problems:
            found.fault(_concerned(node, problem), _join(path, problem))
        return None
    # What a fabric is made of says where its figures come from, unless the file does.
    parts = [value.graph for value in given.values() if hasattr(value, "graph")]
    G.graph.update({key: part[key] for part in parts for key in SOURCED if part.get(key)})
    return G


def _concerned(node: Located, problem: str) -> Located:
    """The value that a builder's problem begins with, else its kind."""
    word = re.match(r"\w+", problem)
    named = node.value.get(word.group()) if word else None
    return named if named is not None else node.value["kind"]


def _no_strangers(node: Located, found: Document, path: str, known: tuple[str, ...]) -> bool:
    strange = [key for key in node.value if key not in known]
    for key in strange:
        said = f"unknown key {shown(key)}; {meant(key, known)}"
        found.fault(node.keys[key], f"{path}: {said}" if path else said)
    return not strange


def _arguments(
    node: Located,
    wanted: Any,
    found: Document,
    path: str,
    depth: int,
) -> dict[str, Any]:
    """Arguments by name, as far as they are sound; the latency of a link goes where it belongs."""
    given: dict[str, Any] = {}
    late: dict[str, tuple[float, str]] = {}
    for name, parameter in wanted.items():
        if name not in node.value:
            continue
        value, at = node.value[name], _join(path, name)
        if parameter.annotation.startswith("Fabric"):
            given[name] = _fabric(value, found, at, depth + 1)
            continue
        one = reader(name, parameter.annotation)
        if one is rate and isinstance(value.value, dict):
            own = f"{name}_latency" if f"{name}_latency" in wanted else "latency"
            value = _link(value, found, at, own, late)
            if value is None:
                continue
        many = "Sequence" in parameter.annotation
        only = parameter.annotation.startswith("Sequence")
        given[name] = read_value(value, one, found, at, many=many, only=only)
    for name, (seconds, at) in late.items():
        if name in node.value:
            said = f"{_join(path, name)} is given, and as the latency of {at} too"
            found.fault(node.keys[name], said)
        given[name] = seconds
    return given


def _link(
    node: Located, found: Document, at: str, own: str, late: dict[str, tuple[float, str]]
) -> Located | None:
    """The bandwidth of a link that is described by more than one figure."""
    _no_strangers(node, found, at, LINK)
    if "latency" in node.value:
        value = node.value["latency"]
        seconds = read_value(value, latency, found, f"{at}.latency")
        other = late.get(own)
        if other is not None and seconds is not None and other[0] != seconds:
            found.fault(value, f"{at}.latency: {other[1]} has another latency, and these have one")
        elif seconds is not None:
            late[own] = (seconds, at)
    if "bandwidth" not in node.value:
        found.fault(node, f"{at}.bandwidth is missing")
        return None
    return node.value["bandwidth"]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _not(node: Located) -> str:
    return f"not {'nothing' if node.value is None else as_given(node)}"
