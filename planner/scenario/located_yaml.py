"""YAML 1.2 text as a tree with places, built from parser events: nothing is constructed or run.

Scalars follow the core schema: `1e15` is a number, `no` a string, `2026-11-01` a string. Node
count and depth are limited before anything is built, aliases counted at what they stand for.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from planner.scenario.tree import Path, Place, Tree, dotted
from planner.text.errors import InputError, Mistake, quoted

DEEPEST = 30
MOST_NODES = 20_000
LONGEST_NUMBER = 60
CORE = "tag:yaml.org,2002:"
INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
SHAPES = {CORE + "map", CORE + "seq", "!"}
TEXTS = {CORE + "str", "!"}
PLAIN = {None, CORE + "int", CORE + "float", CORE + "bool", CORE + "null", CORE + "timestamp"}


def yaml_tree(text: str, file: str) -> Tree:
    """The one document of a YAML text, with duplicate keys and foreign tags as its mistakes.

    Raises InputError when the text is not YAML, or too large or deep.
    """
    builder = _Builder(file)
    try:
        events = YAML(typ="rt", pure=True).parse(text)
        builder.read(iter(events))
    except _TooMuch as error:
        raise InputError([*builder.mistakes, error.mistake]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        problem = " ".join(str(error.problem or error.context or "not YAML").split())
        raise InputError(
            [*builder.mistakes, Mistake(file, line, column, "", f"not YAML: {problem}")]
        ) from None
    except (YAMLError, ValueError, IndexError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            [*builder.mistakes, Mistake(file, 1, 1, "", f"not YAML: {problem}")]
        ) from None
    return builder.tree


class _TooMuch(Exception):  # noqa: N818 - ends the reading, never seen outside
    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(mistake.message)


@dataclass
class _Builder:
    file: str
    values: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)
    data: Any = None
    nodes: int = 0
    deepest: int = 0  # of the values read since the innermost open one began
    anchors: dict[str, tuple[Any, int, int]] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        return Tree(
            self.file, self.data, self.values, self.keys, tuple(self.mistakes), tuple(self.unread)
        )

    def read(self, events: Iterator[Event]) -> None:
        documents = 0
        for event in events:
            if isinstance(event, StreamStartEvent | StreamEndEvent):
                continue
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._mistake(event, (), "expected one document, a second one begins here")
                    return
                continue
            if type(event).__name__ == "DocumentEndEvent":
                continue
            self.data = self._node(event, events, ())

    def _node(self, event: Event, events: Iterator[Event], path: Path) -> Any:
        self.values[path] = place = self._place(event)
        if isinstance(event, AliasEvent):
            return self._alias(event, path)
        before, outside = self.nodes, self.deepest
        self._count(1, place, path)
        self._descend(len(path), place, path)
        self.deepest = len(path)
        value: Any
        if isinstance(event, ScalarEvent):
            value = self._scalar(event, path)
        elif isinstance(event, MappingStartEvent):
            value = self._mapping(event, events, path)
        else:
            value = self._sequence(event, events, path)
        if isinstance(event, NodeEvent) and event.anchor is not None:
            depth = self.deepest - len(path)
            self.anchors[str(event.anchor)] = (value, self.nodes - before, depth)
        self.deepest = max(self.deepest, outside)
        return value

    def _alias(self, event: AliasEvent, path: Path) -> Any:
        name = str(event.anchor)
        if name not in self.anchors:
            self._mistake(event, path, f"unknown alias *{name[:40]}, or one inside what it names")
            self.unread.append(path)
            return None
        value, size, depth = self.anchors[name]
        self._count(size, self.values[path], path)
        self._descend(len(path) + depth, self.values[path], path)
        return copy.deepcopy(value)  # a later change to one of the two leaves the other

    def _mapping(
        self, event: MappingStartEvent, events: Iterator[Event], path: Path
    ) -> dict[Any, Any]:
        self._shape(event, path)
        mapping: dict[Any, Any] = {}
        for key_event in events:
            if type(key_event).__name__ == "MappingEndEvent":
                break
            place = self._place(key_event)
            key = self._key(key_event, events, path)
            below = (*path, key)
            if key is None:
                self._node(next(events), events, below)
                continue
            first = self.keys.get(below)
            if first is not None and key in mapping:
                where = f"line {first.line}, column {first.column}"
                self.mistakes.append(
                    self._at(place, below, f"duplicate key {quoted(key)}, first given at {where}")
                )
                held = dict(self.values), dict(self.keys)
                self._node(next(events), events, below)
                self.values, self.keys = held
                continue
            self.keys[below] = place
            mapping[key] = self._node(next(events), events, below)
        return mapping

    def _key(self, event: Event, events: Iterator[Event], path: Path) -> Any:
        if isinstance(event, ScalarEvent):
            self._count(1, self._place(event), path)
            value = self._scalar(event, path)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return value
            return str(event.value)  # 0.5, true, null: a key is its text
        self._mistake(event, path, "expected a word as a key, got a list, a mapping or an alias")
        self._node(event, events, (*path, "?"))
        return None

    def _sequence(self, event: Any, events: Iterator[Event], path: Path) -> list[Any]:
        self._shape(event, path)
        items: list[Any] = []
        for item in events:
            if type(item).__name__ == "SequenceEndEvent":
                break
            items.append(self._node(item, events, (*path, len(items))))
        return items

    def _scalar(self, event: ScalarEvent, path: Path) -> Any:
        tag = None if event.tag is None else str(event.tag)
        text = str(event.value)
        if tag in TEXTS:
            return text
        if tag not in PLAIN:
            self._foreign(event, path)
            return None
        if tag is None and event.style in ('"', "'", "|", ">"):
            return text
        return core_value(text)

    def _shape(self, event: CollectionStartEvent, path: Path) -> None:
        if event.tag is not None and str(event.tag) not in SHAPES:
            self._foreign(event, path)

    def _foreign(self, event: ScalarEvent | CollectionStartEvent, path: Path) -> None:
        self._mistake(event, path, f"tags such as {quoted(str(event.tag))} are not read")
        self.unread.append(path)

    def _count(self, nodes: int, place: Place, path: Path) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise _TooMuch(
                self._at(place, path[:3], f"more than {MOST_NODES} values, aliases written out")
            )

    def _descend(self, depth: int, place: Place, path: Path) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > DEEPEST:
            raise _TooMuch(self._at(place, path[:3], f"more than {DEEPEST} levels deep"))

    def _place(self, event: Event) -> Place:
        mark = event.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1)

    def _at(self, place: Place, path: Path, message: str) -> Mistake:
        return Mistake(self.file, place.line, place.column, dotted(path), message)

    def _mistake(self, event: Event, path: Path, message: str) -> None:
        self.mistakes.append(self._at(self._place(event), path, message))


def core_value(text: str) -> Any:
    """A plain scalar by the YAML 1.2 core schema: null, truth value, number, or text."""
    if text in WORDS:
        return WORDS[text]
    if len(text) > LONGEST_NUMBER:
        return text
    if INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if BASED.fullmatch(text):
        return int(text, 0)
    if FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    if INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text
