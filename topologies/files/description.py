"""Fabrics described in YAML: a builder and its arguments, or a machine, with `overrides`.

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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import cast

from topologies.builders import BUILDERS
from topologies.fabric.fabric import Fabric
from topologies.fabric.limits import TopologyError, count_fault, quote, suggest
from topologies.fabric.overrides import OverrideChange, override
from topologies.files.arc_counts import MAX_ARCS, TOO_MANY, arcs
from topologies.files.located_yaml import AtLocation, YamlDocument
from topologies.files.units import UnitMismatch, latency, rate
from topologies.machines.hardware import Machine
from topologies.machines.named_machines import graph, machine, names

QUANTITIES = {"bandwidth": rate, "latency": latency}
PLACEHOLDER_VALUES = {"bandwidth": 1.0, "latency": 0.0}
INDEX = re.compile(r"override\[(\d+)\]: (?:after it, )?")


def with_overrides(G: Fabric, node: AtLocation, document: YamlDocument, path: str) -> Fabric | None:
    """`G` with its overrides; None when something of them is wrong, which is noted."""
    if not isinstance(node.value, list):
        document.fault(node, f"{path}: a list of changes was expected")
        return None
    before = len(document.faults)
    changes = [_change(item, document, f"{path}[{i}]") for i, item in enumerate(node.value)]
    try:
        new = override(G, changes)
    except TopologyError as error:
        for problem in error.problems:
            index = INDEX.match(problem)
            item = node.value[int(index.group(1))] if index else node
            named = f"{path}[{index.group(1)}]" if index else path
            document.fault(item, f"{named}: {problem[index.end() if index else 0 :]}")
        return None
    return new if len(document.faults) == before else None


def _change(node: AtLocation, document: YamlDocument, path: str) -> OverrideChange:
    """An override in plain values, figures in base units [byte/s, s]."""
    plain = node.plain
    if isinstance(plain, dict):
        for key, quantity in QUANTITIES.items():
            if key in plain:
                try:
                    plain[key] = quantity(plain[key])
                except UnitMismatch as fault:
                    document.fault(node.value[key], f"{path}.{key} {fault}")
                    # Told with its place; the rest of the change is judged with a sound figure.
                    plain[key] = PLACEHOLDER_VALUES[key]
    return cast(OverrideChange, plain)  # `override` reports a value that is not a mapping


# Plain numbers among the arguments of builders; all others that are no counts are bandwidths.
RATIOS = ("oversubscription",)
MAX_RATIO = 1e6


def read_value(
    node: AtLocation,
    convert: Callable[[object], object],
    document: YamlDocument,
    at: str,
    *,
    many: bool = False,
    only: bool = False,
) -> object:
    """A value converted by `convert`; a tuple where `many` are allowed, or `only` many.

    What it cannot make anything of is noted as a fault of `at`, and None.
    """
    if many and isinstance(node.value, list):
        items = enumerate(node.value)
        return tuple(read_value(item, convert, document, f"{at}[{i}]") for i, item in items)
    if only:
        document.fault(node, f"{at} is {as_given(node)}; a list was expected")
        return None
    if isinstance(node.value, list | dict) or node.value is None:
        document.fault(node, f"{at} is {as_given(node)}; one value was expected")
        return None
    try:
        return convert(node.value)
    except UnitMismatch as fault:
        document.fault(node, f"{at} {fault}")
        return None


def reader(name: str, annotation: str) -> Callable[[object], object]:
    """The converter from a plain value to an argument of a builder."""
    if name.endswith("latency"):
        return latency
    if "float" in annotation:
        return partial(_sound, _ratio_fault) if name in RATIOS else rate
    return partial(_sound, next(FAULTS[kind] for kind in FAULTS if kind in annotation))


def _sound(fault_of: Callable[[object], str | None], value: object) -> object:
    if (fault := fault_of(value)) is not None:
        raise UnitMismatch(fault)
    return value


def _ratio_fault(value: object) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    sound = number and abs(cast(float, value)) < MAX_RATIO
    return None if sound else f"is {quote(value)}; a number was expected, such as 4 for 4:1"


def _type_fault(wanted: type, words: str, value: object) -> str | None:
    return None if isinstance(value, wanted) else f"is {quote(value)}; {words} was expected"


FAULTS: Mapping[str, Callable[[object], str | None]] = {
    "int": count_fault,
    "bool": partial(_type_fault, bool, "true or false"),
    "str": partial(_type_fault, str, "a word"),
}


def as_given(node: AtLocation) -> str:
    """A value as a message quotes it."""
    if node.value is None:
        return "empty"
    if isinstance(node.value, dict):
        return "a mapping"
    return quote(
        [item.plain for item in node.value] if isinstance(node.value, list) else node.value
    )


METADATA_KEYS = ("name", "source", "as_of")
SOURCE_KEYS = ("source", "as_of")
COMMON = (*METADATA_KEYS, "overrides")
LINK = ("bandwidth", "latency")
NAME_KEYS = ("name", "which")  # what functions of machines call the machine itself
MAX_DEPTH = 6


def parse_fabric(document: YamlDocument, where: str, name: str) -> Fabric:
    """The fabric that a document describes.

    Raises TopologyError, listing every problem with its line and column.
    """
    G = None if document.root is None else _fabric(document.root, document, "", 0)
    if G is None or document.faults:
        raise TopologyError(where, document.problems)
    return G


def _fabric(node: AtLocation, document: YamlDocument, path: str, depth: int) -> Fabric | None:
    """The fabric of one description; None when something of it is wrong, which is noted."""
    place = path or "the file"
    if not isinstance(node.value, dict):
        got = "nothing" if node.value is None else as_given(node)
        document.fault(node, f"{place}: a mapping with kind or machine was expected, not {got}")
        return None
    if depth > MAX_DEPTH:
        document.fault(node, f"{path}: more than {MAX_DEPTH} fabrics inside each other")
        return None
    if ("kind" in node.value) == ("machine" in node.value):
        _which(node, document, place)
        return None
    before = len(document.faults)
    G = _built(node, document, path, depth)
    labels = dict(_labels(node, document, path))
    if G is not None and "overrides" in node.value:
        G = with_overrides(G, node.value["overrides"], document, _join(path, "overrides"))
    if G is None or len(document.faults) > before:
        return None
    G.graph.update(labels)
    return G


def _which(node: AtLocation, document: YamlDocument, place: str) -> None:
    if "kind" in node.value:
        document.fault(
            node.keys["machine"], f"{place}: kind and machine are both given; one was expected"
        )
        return
    close = [suggest(key, ("kind", "machine")) for key in node.value]
    keys = ", ".join(map(quote, node.value)) or "nothing"
    hint = f", but {keys}; kinds are {', '.join(BUILDERS)}; a machine is one such as hgx-h200"
    hint = next((f"; {said}" for said in close if said.startswith("did")), hint)
    if "nodes" in node.value:
        hint = "; nodes and links are listed in a .json file"
    document.fault(node, f"{place}: neither kind nor machine is given{hint}")


def _labels(node: AtLocation, document: YamlDocument, path: str) -> Iterator[tuple[str, str]]:
    for key in METADATA_KEYS:
        if key in node.value:
            value = node.value[key]
            text = value.value
            if isinstance(text, str) and text.strip() and text.isprintable():
                yield key, text
            else:
                fault = f"{_join(path, key)} is {as_given(value)}; a line of text was expected"
                document.fault(value, fault)


def _built(node: AtLocation, document: YamlDocument, path: str, depth: int) -> Fabric | None:
    """The fabric that a builder or the catalogue makes from the arguments in the file."""
    key = "kind" if "kind" in node.value else "machine"
    which, choices = node.value[key], BUILDERS if key == "kind" else names()
    if not isinstance(which.value, str) or which.value not in choices:
        fault = f"{_join(path, key)} is {as_given(which)}; {suggest(which.plain, choices)}"
        document.fault(which, fault)
        return None
    make, wanted = _maker(key, which.value)
    before = len(document.faults)
    _refuse_unknown_keys(node, document, path, (key, *wanted, *COMMON))
    arguments = _arguments(node, wanted, document, path, depth)
    for name, parameter in wanted.items():
        if parameter.default is parameter.empty and name not in node.value:
            document.fault(which, f"{_join(path, name)} is missing, which a {which.value} needs")
    if len(document.faults) > before:
        return None
    if (size := arcs(which.value if key == "kind" else key, arguments)) > MAX_ARCS:
        document.fault(which, f"{path or which.value}: up to {size:,} arcs; {TOO_MANY}")
        return None
    try:
        G = make(**arguments)
    except TopologyError as error:
        for problem in error.problems:
            # Report at the argument that begins the builder's problem, else at the builder's name.
            word = re.match(r"\w+", problem)
            named = node.value.get(word.group()) if word else None
            document.fault(which if named is None else named, _join(path, problem))
        return None
    # Source metadata comes from the component fabrics unless the file gives its own.
    parts = [value.graph for value in arguments.values() if hasattr(value, "graph")]
    G.graph.update({key: part[key] for part in parts for key in SOURCE_KEYS if part.get(key)})
    return G


def _maker(key: str, which: str) -> tuple[Callable[..., Fabric], Mapping[str, inspect.Parameter]]:
    """The function that builds the fabric, and its parameters."""
    if key == "kind":
        return BUILDERS[which], inspect.signature(BUILDERS[which]).parameters
    slices, others = (inspect.signature(f).parameters for f in (machine, graph))
    wanted = {name: p for name, p in (*slices.items(), *others.items()) if name not in NAME_KEYS}

    def make(chips: int | None = None, **arguments: object) -> Fabric:
        cut = {name: arguments.pop(name) for name in slices if name in arguments}
        sliced: Callable[..., Machine] = machine
        drawn: Callable[..., Fabric] = graph
        return drawn(sliced(which, chips, **cut) if cut else which, chips, **arguments)

    return make, wanted


def _refuse_unknown_keys(
    node: AtLocation, document: YamlDocument, path: str, allowed: tuple[str, ...]
) -> None:
    for key in (key for key in node.value if key not in allowed):
        fault = f"unknown key {quote(key)}; {suggest(key, allowed)}"
        document.fault(node.keys[key], f"{path}: {fault}" if path else fault)


def _arguments(
    node: AtLocation,
    wanted: Mapping[str, inspect.Parameter],
    document: YamlDocument,
    path: str,
    depth: int,
) -> dict[str, object]:
    """Valid arguments by name; the latency of a link becomes an argument of its own."""
    arguments: dict[str, object] = {}
    late: dict[str, tuple[object, str]] = {}
    for name, parameter in wanted.items():
        if name not in node.value:
            continue
        value, at = node.value[name], _join(path, name)
        if parameter.annotation.startswith("Fabric"):
            arguments[name] = _fabric(value, document, at, depth + 1)
            continue
        convert = reader(name, parameter.annotation)
        if convert is rate and isinstance(value.value, dict):
            target = f"{name}_latency" if f"{name}_latency" in wanted else "latency"
            value = _link(value, document, at, target, late)
            if value is None:
                continue
        many = "Sequence" in parameter.annotation
        only = parameter.annotation.startswith("Sequence")
        arguments[name] = read_value(value, convert, document, at, many=many, only=only)
    for name, (seconds, at) in late.items():
        if name in node.value:
            fault = f"{_join(path, name)} is given, and as the latency of {at} too"
            document.fault(node.keys[name], fault)
        arguments[name] = seconds
    return arguments


def _link(
    node: AtLocation,
    document: YamlDocument,
    at: str,
    target: str,
    late: dict[str, tuple[object, str]],
) -> AtLocation | None:
    """The bandwidth of a link that is described by more than one figure."""
    _refuse_unknown_keys(node, document, at, LINK)
    if "latency" in node.value:
        value = node.value["latency"]
        seconds = read_value(value, latency, document, f"{at}.latency")
        earlier = late.get(target)
        if earlier is not None and seconds is not None and earlier[0] != seconds:
            document.fault(
                value, f"{at}.latency: {earlier[1]} has another latency, and these have one"
            )
        elif seconds is not None:
            late[target] = (seconds, at)
    if "bandwidth" not in node.value:
        document.fault(node, f"{at}.bandwidth is missing")
        return None
    return node.value["bandwidth"]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
