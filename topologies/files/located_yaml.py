"""YAML reader: text as values that know their line and column; no objects are constructed.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` a text, `2026-11-01` a text.
Duplicate keys, tags, and anything that would grow without bound are faults with their places.
Size and depth are limited before anything is built; an alias counts as what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

Scalar: TypeAlias = bool | int | float | str | None

MAX_DEPTH = 30
MAX_VALUES = 100_000
LONGEST_NUMBER = 60
LONGEST_QUOTE = 60
_DIGITS = "[0-9]+(?:_[0-9]+)*"
INTEGER = re.compile(rf"[-+]?{_DIGITS}")
BASED_INTEGER_PATTERN = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(rf"[-+]?(?:\.[0-9]+|{_DIGITS}(?:\.(?:{_DIGITS})?)?)(?:[eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
CONSTANT_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
CORE = "tag:yaml.org,2002:"
STRING_TAGS = {CORE + "str", "!"}
CORE_TAGS = {None, *(CORE + name for name in ("int", "float", "bool", "null", "timestamp"))}
SHAPES = {None, CORE + "map", CORE + "seq", "!"}

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class AtLocation:
    """A value of a document: text, number, truth value or nothing; a list; or a mapping.

    Attributes:
        value: A scalar, a list of `AtLocation`, or {key: `AtLocation`}.
        keys: Of a mapping, the key itself and where it stands, by its text.
    """

    value: Any
    line: int
    column: int
    keys: dict[str, AtLocation] = field(default_factory=dict)

    @property
    def plain(self) -> object:
        """The value without places; a list is a tuple."""
        if isinstance(self.value, list):
            return tuple(item.plain for item in self.value)
        if isinstance(self.value, dict):
            return {key: item.plain for key, item in self.value.items()}
        return self.value


@dataclass(frozen=True)
class Fault:
    """Error at a location of the text; `path` leads to the value, empty for the whole text."""

    line: int
    column: int
    message: str
    path: Path = ()


@dataclass
class YamlDocument:
    """Content of a YAML text, without a root if unreadable; faults in the order of reading.

    What is wrong below the `unread` paths follows from a fault of the text.
    """

    root: AtLocation | None = None
    faults: dict[Fault, None] = field(default_factory=dict)
    unread: list[Path] = field(default_factory=list)

    def fault(self, at: AtLocation, message: str) -> None:
        """Note a problem at a place."""
        self.faults[Fault(at.line, at.column, message)] = None

    @property
    def problems(self) -> list[str]:
        """The problems in the order of their places."""
        places = {(fault.line, fault.column, fault.message) for fault in self.faults}
        return [f"line {line}, column {column}: {text}" for line, column, text in sorted(places)]


class _LimitExceeded(Exception):  # noqa: N818 - ends the reading, never seen outside
    """Its one argument is the fault."""


def document(text: str, most_values: int = MAX_VALUES) -> YamlDocument:
    """Read the only document of a YAML text of at most `most_values` values, aliases expanded."""
    reader = _Reader(iter(YAML(typ="rt", pure=True).parse(text)), most_values)
    try:
        reader.run()
        return reader.document
    except _LimitExceeded as error:
        (fault,) = error.args
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(str(error.problem or error.context or "not YAML").split())
        fault = Fault(line, column, f"not YAML: {problem}")
    except (YAMLError, ValueError, IndexError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        fault = Fault(1, 1, f"not YAML: {problem}")
    return YamlDocument(None, {**reader.document.faults, fault: None})


class _Reader:
    """Builds values out of a parser's events, no deeper and no more of them than allowed."""

    def __init__(self, read: Iterator[events.Event], most_values: int) -> None:
        self.document = YamlDocument()
        self.events = read
        self.most_values = most_values
        self.anchors: dict[str, tuple[AtLocation, int, int]] = {}
        self.size = 0

    def run(self) -> None:
        """Read the document; a second document in the text is a fault."""
        documents = 0
        for event in self.events:
            documents += isinstance(event, events.DocumentStartEvent)
            if documents > 1:
                self._fault(event, (), "expected one document, a second one begins here")
                return
            if isinstance(event, events.NodeEvent):
                self.document.root, _ = self._value(event, ())

    def _value(self, event: events.Event, path: Path) -> tuple[AtLocation, int]:
        """A value, and how many levels it has below it."""
        before = self.size
        if isinstance(event, events.AliasEvent):
            name = str(event.anchor)
            if name not in self.anchors:
                self._fault(event, path, f"unknown alias *{name[:40]}, or one inside what it names")
                self.document.unread.append(path)
                return _located(event), 0
            value, size, height = self.anchors[name]
            self._count(event, size, path, len(path) + height)
            return AtLocation(value.value, *_place(event), value.keys), height
        self._count(event, 1, path, len(path))
        height = 0
        if isinstance(event, events.CollectionStartEvent) and _tag(event) not in SHAPES:
            self._foreign(event, path)
        if isinstance(event, events.SequenceStartEvent):
            value, height = self._list(event, path)
        elif isinstance(event, events.MappingStartEvent):
            value, height = self._mapping(event, path)
        elif isinstance(event, events.ScalarEvent):
            value = _located(event, self._scalar(event, path))
        else:
            raise TypeError(f"{event!r} begins no value")
        if event.anchor is not None:
            self.anchors[str(event.anchor)] = value, self.size - before, height
        return value, height

    def _list(self, event: events.SequenceStartEvent, path: Path) -> tuple[AtLocation, int]:
        items: list[AtLocation] = []
        height = 0
        for item in self.events:
            if isinstance(item, events.SequenceEndEvent):
                break
            value, below = self._value(item, (*path, len(items)))
            items.append(value)
            height = max(height, below + 1)
        return _located(event, items), height

    def _mapping(self, event: events.MappingStartEvent, path: Path) -> tuple[AtLocation, int]:
        values: dict[str, AtLocation] = {}
        keys: dict[str, AtLocation] = {}
        height = 0
        for name in self.events:
            if isinstance(name, events.MappingEndEvent):
                break
            key = self._key(name, path)
            value, below = self._value(
                next(self.events), path if key is None else (*path, key.value)
            )
            height = max(height, below + 1)
            if key is None:
                continue
            word = str(key.value)
            if word in keys:
                where = f"line {keys[word].line}, column {keys[word].column}"
                message = f"duplicate key {_quoted(word)}, first given at {where}"
                self._fault(name, (*path, key.value), message)
                continue
            keys[word], values[word] = key, value
        return _located(event, values, keys), height

    def _key(self, event: events.Event, path: Path) -> AtLocation | None:
        """A whole number or a text; 0.5, true and null as keys are their text."""
        if not isinstance(event, events.ScalarEvent):
            message = "expected a word as a key, got a list, a mapping or an alias"
            self._fault(event, path, message)
            self._value(event, (*path, "?"))
            return None
        self._count(event, 1, path, len(path))
        value = self._scalar(event, path)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _located(event, value if whole or isinstance(value, str) else str(event.value))

    def _scalar(self, event: events.ScalarEvent, path: Path) -> Scalar:
        tag, text = _tag(event), str(event.value)
        if event.style == ">":
            text = text.replace("\a", "")  # where the reader marks that lines were folded
        if tag in STRING_TAGS:
            return text
        if tag not in CORE_TAGS:
            self._foreign(event, path)
            return None
        return text if tag is None and event.style in ('"', "'", "|", ">") else core_value(text)

    def _foreign(self, event: events.ScalarEvent | events.CollectionStartEvent, path: Path) -> None:
        self._fault(event, path, f"tags such as {_quoted(str(event.tag))} are not read")
        self.document.unread.append(path)

    def _fault(self, event: events.Event, path: Path, message: str) -> None:
        self.document.faults[Fault(*_place(event), message, path)] = None

    def _count(self, event: events.Event, size: int, path: Path, depth: int) -> None:
        self.size += size
        message = ""
        if self.size > self.most_values:
            message = f"more than {self.most_values} values, aliases written out"
        elif depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels deep"
        if message:
            raise _LimitExceeded(Fault(*_place(event), message, path[:3]))


def core_value(text: str) -> Scalar:
    """A plain scalar by the YAML 1.2 core schema: null, truth value, number, or text."""
    if text in CONSTANT_WORDS:
        return CONSTANT_WORDS[text]
    if len(text) > LONGEST_NUMBER:
        return text
    if INTEGER.fullmatch(text):
        return int(text)
    if BASED_INTEGER_PATTERN.fullmatch(text):
        return int(text, 0)
    if FLOAT.fullmatch(text):
        return float(text)
    if INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text


def _place(event: events.Event) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _located(
    event: events.Event, value: object = None, keys: dict[str, AtLocation] | None = None
) -> AtLocation:
    return AtLocation(value, *_place(event), keys or {})


def _tag(event: events.ScalarEvent | events.CollectionStartEvent) -> str | None:
    return None if event.tag is None else str(event.tag)


def _quoted(text: str) -> str:
    quoted = repr(text) if text.isprintable() else ascii(text)
    return quoted if len(quoted) <= LONGEST_QUOTE else f"{quoted[: LONGEST_QUOTE - 3]}..."
