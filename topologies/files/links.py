"""Fabrics as node-link JSON, for networks that were measured or drawn by other means.

The shape is that of node-link data: `{"directed": true, "graph": {...}, "nodes": [{"id": ...}],
"links": [{"source": ..., "target": ...}]}` with a fabric's attributes in plain numbers, byte/s
and s. Records are judged one by one before there is a graph, since a graph would merge equal ids,
keep the last of two links and invent the ends that are missing.
"""

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator
from numbers import Integral, Real
from typing import Any

from topologies.fabric import fabric
from topologies.fabric.fabric import Arc, Attributes, Fabric, Node
from topologies.fabric.limits import TopologyError, as_tuples, quote, suggest
from topologies.fabric.soundness import arc_faults, check, graph_faults, node_faults

MAX_DEPTH = 12
DUPLICATE_KEY = object()  # the key under which an object keeps the keys that it was given twice

Path = tuple[str | int, ...]


def json_value(text: str, where: str) -> tuple[object, list[tuple[Path, str]]]:
    """The value of a text, and each fault with the keys and numbers that lead to it.

    Faults are keys given twice, NaN and Infinity, numbers beyond all range, halves of characters,
    and lists in lists without end. Raises TopologyError when the text is no JSON at all.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TopologyError(where, f"{place}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        message = " ".join(str(error).split())[:200]
        raise TopologyError(where, f"not JSON: {message}") from None
    return value, list(_faults(value, ()))


def _object(pairs: list[tuple[str, object]]) -> dict[object, object]:
    made: dict[object, object] = dict(pairs)
    if len(made) < len(pairs):
        times = Counter(key for key, _ in pairs)
        made[DUPLICATE_KEY] = {key: many for key, many in times.items() if many > 1}
    return made


def _faults(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if len(path) > MAX_DEPTH:
        yield path[:4], f"more than {MAX_DEPTH} levels deep"
    elif isinstance(value, dict):
        for key, times in value.pop(DUPLICATE_KEY, {}).items():
            yield path, f"the key {quote(key)} is given {times} times"
        for key, item in value.items():
            yield from _text_faults(key, path)
            yield from _faults(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _faults(item, (*path, i))
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number of JSON, or beyond all range"
    elif isinstance(value, str):
        yield from _text_faults(value, path)


def _text_faults(text: str, path: Path) -> Iterator[tuple[Path, str]]:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        yield path, f"{text[:40]!a} holds half a character"


TOP = ("directed", "multigraph", "graph", "nodes", "links", "edges")
MAX_NODES = 200  # nodes or problems; from this number on no similar name is suggested


def parse_fabric(text: str, where: str, name: str) -> Fabric:
    """The fabric that a JSON text lists, called `name` unless it says otherwise.

    A link is one arc; with `"directed": false` it is one each way. Two links between the same two
    are summed if both say `"parallel": true`; `bandwidth` is that of all `count` cables of a link
    together. Raises TopologyError, listing every problem with the number and the id of its record.
    """
    whole, faults = json_value(text, where)
    problems = [f"{_spelled(whole, path)}: {fault}" for path, fault in faults]
    if not isinstance(whole, dict):
        raise TopologyError(where, [*problems, "file: an object with nodes and links was expected"])
    problems += _top_faults(whole)
    details, orbits = whole.get("graph", {}), False
    if isinstance(details, dict):
        orbits = details.get("orbits") is True
        problems += [f"graph: {fault}" for fault in graph_faults(details)]
    else:
        problems.append(f"file: graph is {quote(details)}; an object was expected")
    nodes = _nodes(whole.get("nodes"), orbits, problems)
    arcs = _arcs(whole, nodes, orbits, problems)
    if problems:
        raise TopologyError(where, problems)
    G = fabric.fabric(name)
    G.graph.update({key: value for key, value in details.items() if value is not None})
    G.add_nodes_from(nodes.items())
    G.add_edges_from((u, v, data) for (u, v), data in arcs.items())
    try:
        return check(G)
    except TopologyError as error:
        raise TopologyError(where, error.problems) from None


def format_fabric(G: Fabric) -> str:
    """`G` as JSON, one record a line; `parse_fabric` makes the same fabric of it.

    Raises TopologyError when an id is no text, whole number or tuple of these.
    """
    where = f"fabric {G.graph.get('name')!r}"
    strange = [
        f"node {node!r}: an id is a text, a whole number or a tuple of these"
        for node in G
        if not _is_id(tuples_to_lists(node))
    ]
    if strange:
        raise TopologyError(where, strange)
    nodes = [_line({"id": node, **data}) for node, data in G.nodes(data=True)]
    links = [_line({"source": u, "target": v, **data}) for u, v, data in G.edges(data=True)]
    return (
        f'{{"directed": true,\n"graph": {_line(G.graph)},\n'
        f'"nodes": [\n{_block(nodes)}],\n"links": [\n{_block(links)}]}}\n'
    )


def _block(lines: list[str]) -> str:
    return ",\n".join(f"  {line}" for line in lines) + ("\n" if lines else "")


def _number(value: Any) -> int | float:
    return int(value) if isinstance(value, Integral) else float(value)


# JSON encoder for NumPy numbers; it writes tuples as lists.
_line = json.JSONEncoder(allow_nan=False, default=_number).encode


def tuples_to_lists(value: object) -> object:
    """Tuples as lists, and the numbers of arrays as plain ones."""
    if isinstance(value, tuple):
        return [tuples_to_lists(item) for item in value]
    if isinstance(value, str | bool | None):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _spelled(whole: object, path: Path) -> str:
    if not isinstance(whole, dict) or len(path) < 2 or path[0] not in ("nodes", "links", "edges"):
        return ", ".join(["file", *map(_word, path)])
    key, i, *below = path
    record = whole[key][i]
    return ", ".join([_place(str(key), i, record), *map(_word, below)])


def _word(part: str | int) -> str:
    return part if isinstance(part, str) and part.isidentifier() else quote(part)


def _place(key: str, i: int | str, record: object) -> str:
    if not isinstance(record, dict) or (key == "nodes" and "id" not in record):
        return f"{key}[{i}]"
    if key == "nodes":
        return f"nodes[{i}], id {quote(as_tuples(record['id']))}"
    ends = (quote(as_tuples(record.get(end))) for end in ("source", "target"))
    return f"{key}[{i}], {' -> '.join(ends)}"


def _records(
    records: object, key: str, problems: list[str]
) -> Iterator[tuple[int, Attributes, str]]:
    """Index, record and location of each object of a list; a non-object is a problem."""
    for i, record in enumerate(records if isinstance(records, list) else []):
        place = _place(key, i, record)
        if isinstance(record, dict):
            yield i, record, place
        else:
            problems.append(f"{place}: an object was expected, not {quote(record)}")


def _top_faults(whole: Attributes) -> Iterator[str]:
    for key in whole:
        if key not in TOP:
            yield f"file: unknown key {quote(key)}; {suggest(key, TOP)}"
    for key in ("directed", "multigraph"):
        if not isinstance(whole.get(key, True), bool):
            yield f"file: {key} is {quote(whole[key])}; true or false was expected"
    if "links" in whole and "edges" in whole:
        yield "file: links and edges are two names of one list; one of them was expected"
    for key in ("nodes", *(("links",) if "edges" not in whole else ())):
        if key not in whole:
            yield f"file: no {key}; a list of records was expected"
    for key in ("nodes", "links", "edges"):
        if key in whole and not isinstance(whole[key], list):
            yield f"file: {key} is {quote(whole[key])}; a list of records was expected"


def _nodes(records: object, orbits: bool, problems: list[str]) -> dict[Node, Attributes]:
    """Attributes of the sound nodes by id."""
    nodes: dict[Node, Attributes] = {}
    first: dict[Hashable, int] = {}
    for i, record, place in _records(records, "nodes", problems):
        data = {key: as_tuples(value) for key, value in record.items()}
        name = data.pop("id", None)
        problems += [
            f"{place}: {fault}" for fault in _attribute_faults(data, fabric.NODE_ATTRIBUTES)
        ]
        problems += [f"{place}: {fault}" for fault in node_faults(data, orbits=orbits)]
        if not _is_id(record.get("id")):
            fault = (
                "no id" if name is None else "an id is a text, a whole number or a list of these"
            )
            problems.append(f"{place}: {fault}")
        elif name in nodes:
            problems.append(f"{place}: nodes[{first[name]}] has this id already")
        else:
            nodes[name], first[name] = data, i
    return nodes


def _arcs(
    whole: Attributes, nodes: dict[Node, Attributes], orbits: bool, problems: list[str]
) -> dict[Arc, Attributes]:
    """{(source, target): attributes}, parallel links summed."""
    key = "edges" if "edges" in whole else "links"
    arcs: dict[Arc, Attributes] = {}
    first: dict[Arc, tuple[int, bool]] = {}
    for i, record, place in _records(whole.get(key), key, problems):
        data = {name: as_tuples(value) for name, value in record.items()}
        u, v, parallel = (data.pop(name, None) for name in ("source", "target", "parallel"))
        if whole.get("multigraph") is True:
            data.pop("key", None)
        faults = [
            *_end_faults(record, nodes, guess=max(len(nodes), len(problems)) < MAX_NODES),
            *_attribute_faults(data, fabric.ARC_ATTRIBUTES),
            *arc_faults(data, orbits=orbits),
        ]
        if not isinstance(parallel, bool | None):
            faults.append(f"parallel is {quote(parallel)}; true or false was expected")
        problems += [f"{place}: {fault}" for fault in faults]
        if faults:
            continue
        for arc in ((u, v),) if whole.get("directed", True) else ((u, v), (v, u)):
            if arc not in arcs:
                arcs[arc], first[arc] = dict(data), (i, bool(parallel))
            elif fault := _sum_fault(arcs[arc], data, bool(parallel) and first[arc][1]):
                problems.append(f"{place}: {key}[{first[arc][0]}] joins these two already; {fault}")
                break
            else:
                arcs[arc]["bandwidth"] += data["bandwidth"]
                arcs[arc]["count"] = arcs[arc].get("count", 1) + data.get("count", 1)
    return arcs


def _end_faults(record: Attributes, nodes: dict[Node, Attributes], *, guess: bool) -> Iterator[str]:
    ends = []
    for end in ("source", "target"):
        if not _is_id(record.get(end)):
            fault = f"{end} is {quote(record.get(end))}; the id of a node was expected"
            yield fault if end in record else f"no {end}"
            continue
        ends.append(as_tuples(record[end]))
        if ends[-1] not in nodes:
            close = suggest(ends[-1], map(str, nodes)) if guess else ""
            hint = f"; {close}" if close.startswith("did you mean") else ""
            yield f"{end} {quote(ends[-1])} is no node{hint}"
    if len(ends) == 2 and ends[0] == ends[1]:
        yield "a node cannot be linked to itself"


def _attribute_faults(data: Attributes, vocabulary: dict[str, str]) -> Iterator[str]:
    for name in vocabulary:
        if isinstance(data.get(name), dict):
            yield f"{name} is an object; a plain value was expected"


def _sum_fault(first: Attributes, second: Attributes, parallel: bool) -> str | None:
    if not parallel:
        return 'cables in parallel say "parallel": true in each, or are one link with a count'
    for name in ("latency", "tier", "orbit"):
        a, b = first.get(name), second.get(name)
        if a != b:
            return f"cables in parallel have one {name}, not {a!r} and {b!r}"
    return None


def _is_id(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_id, value))
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""
