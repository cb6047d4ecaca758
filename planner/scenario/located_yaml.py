"""A scenario's YAML text as a tree with places, and the faults of the text as mistakes."""

from __future__ import annotations

from typing import Any

from planner.scenario.tree import Path, Position, Tree, dotted
from planner.text.errors import InputError, Mistake
from topologies.files.located_yaml import Fault, Located, document

MOST_VALUES = 20_000  # of a scenario, aliases written out


def yaml_tree(text: str, file: str) -> Tree:
    """The one document of a YAML text, with duplicate keys and foreign tags as its mistakes.

    Raises
    ------
    InputError
        If the text is not YAML, or too large or deep.
    """
    parsed = document(text, MOST_VALUES)
    mistakes = tuple(_mistake(file, fault) for fault in parsed.faults)
    if parsed.root is None and mistakes:
        raise InputError(mistakes)
    values: dict[Path, Position] = {}
    keys: dict[Path, Position] = {}
    data = _plain(parsed.root, (), file, values, keys) if parsed.root else None
    return Tree(file, data, values, keys, mistakes, tuple(parsed.unread))


def _mistake(file: str, fault: Fault) -> Mistake:
    return Mistake(file, fault.line, fault.column, dotted(fault.path), fault.message)


def _plain(
    node: Located, path: Path, file: str, values: dict[Path, Position], keys: dict[Path, Position]
) -> Any:
    """Plain values below a node; notes where each value and key stands."""
    values[path] = Position(file, node.line, node.column)
    if isinstance(node.value, list):
        return [_plain(item, (*path, i), file, values, keys) for i, item in enumerate(node.value)]
    if not isinstance(node.value, dict):
        return node.value
    mapping = {}
    for word, item in node.value.items():
        key = node.keys[word]
        below = (*path, key.value)
        keys[below] = Position(file, key.line, key.column)
        mapping[key.value] = _plain(item, below, file, values, keys)
    return mapping
