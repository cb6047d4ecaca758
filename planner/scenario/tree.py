"""A scenario as plain values, with the place of every value and key in its file.

A scenario's YAML text as a tree with places, and the faults of the text as mistakes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.text.errors import InputError, Mistake
from topologies.files.located_yaml import Fault, Located, document

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Position:
    """File, line and column (from 1); line None where the source has no positions."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Tree:
    """Values and their places: `values` where a value begins, `keys` where its key does.

    `mistakes` are those of the text itself that leave a tree to check, such as duplicate keys;
    what is wrong below the `unread` paths follows from them.
    """

    file: str
    data: Any
    values: Mapping[Path, Position] = field(default_factory=dict)
    keys: Mapping[Path, Position] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    unread: tuple[Path, ...] = ()

    def mistake(self, path: Path, message: str, *, at_key: bool = False) -> Mistake:
        """A mistake at the value (or key) of `path`, or at the nearest parent that has a place."""
        place = self.keys.get(path) if at_key else None
        place = place or self.values.get(path)
        parent = path
        while place is None and parent:
            parent = parent[:-1]
            place = self.keys.get(parent) or self.values.get(parent)
        place = place or Position(self.file)
        return Mistake(place.file, place.line, place.column, dotted(path), message)

    def copied(self) -> Tree:
        """A tree whose data and places can be changed without changing this one."""
        data = copy.deepcopy(self.data)
        return Tree(self.file, data, dict(self.values), dict(self.keys), self.mistakes, self.unread)


def dotted(path: Path) -> str:
    """`workload.input_tokens`, `chips.0`; keys of other kinds as they print."""
    return ".".join(_part(part) for part in path)


def _part(part: object) -> str:
    text = str(part)[:60]
    return text if text.isprintable() else ascii(text)


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
