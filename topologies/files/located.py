"""YAML text as values that know their line and column; nothing is constructed or run.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` a text, `2026-11-01` a text.
Duplicate keys, tags and anything that would grow without bound are problems with their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from topologies.fabric.limits import shown

DEEPEST = 30
MOST_VALUES = 100_000
LONGEST_NUMBER = 60
INTEGER = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*")
BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
CORE = "tag:yaml.org,2002:"
TAGS = {
    *(CORE + name for name in ("map", "seq", "str", "int", "float", "bool", "null")),
    CORE + "timestamp",
    "!",
}
TEXTS = {CORE + "str", "!"}


@dataclass(frozen=True)
class Located:
    """A value of a document: text, number, truth value or nothing; a list; or a mapping.

    Attributes
    ----------
    value
        A scalar, a list of `Located`, or {key: `Located`}.
    keys
        Of a mapping, where each key stands.
    """

    value: Any
    line: int
    column: int
    keys: dict[str, Located] = field(default_factory=dict)

    @property
    def plain(self) -> Any:
        """The value without places; a list is a tuple."""
        if isinstance(self.value, list):
            return tuple(item.plain for item in self.value)
        if isinstance(self.value, dict):
            return {key: item.plain for key, item in self.value.items()}
        return self.value


@dataclass
class Document:
    """What a text holds, and its problems as they are found."""

    root: Located | None = None
    faults: dict[tuple[int, int, str], None] = field(default_factory=dict)

    def fault(self, at: Located, said: str) -> None:
        """Note a problem at a place."""
        self.faults[at.line, at.column, said] = None

    @property
    def problems(self) -> list[str]:
        """The problems in the order of their places."""
        return [
            f"line {line}, column {column}: {said}" for line, column, said in sorted(self.faults)
        ]


class _TooMuch(Exception):  # noqa: N818 - ends the reading, never seen outside
    pass


def document(text: str) -> Document:
    """The one document of a YAML text; without a root if it cannot be read at all."""
    found = Document()
    nowhere = Located(None, 1, 1)
    try:
        _Reader(found, iter(YAML(typ="rt", pure=True).parse(text))).run()
    except _TooMuch as error:
        found.root = None
        found.fault(nowhere, str(error))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Located(None, mark.line + 1, mark.column + 1) if mark else nowhere
        said = " ".join(str(error.problem or error.context).split())
        found.root = None
        found.fault(place, f"not YAML: {said}")
    except (YAMLError, ValueError, IndexError) as error:
        found.root = None
        found.fault(nowhere, f"not YAML: {' '.join(str(error).split())[:200]}")
    return found


@dataclass
class _Reader:
    """Builds values out of the events of a parser, no deeper and no more of them than allowed.

    `anchors` holds what aliases stand for, with its size and its height; `size` counts what was
    read, aliases written out.
    """

    found: Document
    events: Iterator[Event]
    anchors: dict[str, tuple[Located, int, int]] = field(default_factory=dict)
    size: int = 0

    def run(self) -> None:
        """Read the document, and see that there is one."""
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
            elif isinstance(event, NodeEvent) and documents == 1:
                self.found.root, _ = self._value(event, 0)
            if documents > 1:
                self.found.fault(_at(event), "a second document begins here, one was expected")
                self.found.root = None
                return
        if self.found.root is None:
            self.found.fault(Located(None, 1, 1), "the file holds nothing")

    def _value(self, event: NodeEvent, depth: int) -> tuple[Located, int]:
        """A value, and how many levels it has below it."""
        before = self.size
        if isinstance(event, AliasEvent):
            return self._alias(event, depth)
        self._count(1, depth)
        height = 0
        if isinstance(event, SequenceStartEvent):
            value, height = self._list(event, depth)
        elif isinstance(event, MappingStartEvent):
            value, height = self._mapping(event, depth)
        else:
            value = _at(event, _scalar(event))
        tag = _tag(event)
        if tag is not None and tag not in TAGS:
            self.found.fault(value, f"tags such as {shown(tag)} are not read")
        if event.anchor is not None:
            self.anchors[str(event.anchor)] = value, self.size - before, height
        return value, height

    def _alias(self, event: AliasEvent, depth: int) -> tuple[Located, int]:
        name = str(event.anchor)
        self._count(1, depth)
        if name not in self.anchors:
            said = f"unknown alias {shown('*' + name)}, or one inside what it names"
            self.found.fault(_at(event), said)
            return _at(event), 0
        value, size, height = self.anchors[name]
        self._count(size, depth + height)
        return value, height

    def _list(self, event: NodeEvent, depth: int) -> tuple[Located, int]:
        items: list[Located] = []
        height = 0
        for item in self.events:
            if isinstance(item, SequenceEndEvent) or not isinstance(item, NodeEvent):
                break
            value, below = self._value(item, depth + 1)
            items.append(value)
            height = max(height, below + 1)
        return _at(event, items), height

    def _mapping(self, event: NodeEvent, depth: int) -> tuple[Located, int]:
        values: dict[str, Located] = {}
        keys: dict[str, Located] = {}
        height = 0
        for name in self.events:
            if isinstance(name, MappingEndEvent) or not isinstance(name, NodeEvent):
                break
            key, _ = self._value(name, depth + 1)
            value, below = self._value(cast(NodeEvent, next(self.events)), depth + 1)
            height = max(height, below + 1)
            if not isinstance(name, ScalarEvent):
                self.found.fault(key, "a word was expected as a key, not a list or a mapping")
                continue
            word = str(name.value)
            if word in keys:
                where = f"line {keys[word].line}, column {keys[word].column}"
                said = f"the key {shown(word)} is given twice, first at {where}"
                self.found.fault(key, said)
                continue
            keys[word], values[word] = key, value
        return _at(event, values, keys), height

    def _count(self, size: int, depth: int) -> None:
        self.size += size
        if self.size > MOST_VALUES:
            raise _TooMuch(f"more than {MOST_VALUES} values, aliases written out")
        if depth > DEEPEST:
            raise _TooMuch(f"more than {DEEPEST} levels deep")


def _at(event: Event, value: Any = None, keys: dict[str, Located] | None = None) -> Located:
    mark = event.start_mark
    return Located(value, mark.line + 1, mark.column + 1, keys or {})


def _tag(event: Any) -> str | None:
    return None if event.tag is None else str(event.tag)


def _scalar(event: Any) -> Any:
    text, tag = str(event.value), _tag(event)
    if tag in TEXTS or (tag is None and event.style in ('"', "'", "|", ">")):
        return text
    if text in WORDS:
        return WORDS[text]
    if len(text) > LONGEST_NUMBER:
        return text
    if INTEGER.fullmatch(text):
        return int(text)
    if BASED.fullmatch(text):
        return int(text, 0)
    if FLOAT.fullmatch(text):
        return float(text)
    if ENDLESS.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text
