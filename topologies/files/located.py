"""YAML text as values that know their line and column; nothing is constructed or run.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` a text, `2026-11-01` a text.
Duplicate keys, tags and anything that would grow without bound are problems with their places.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from topologies.limits import shown

__all__ = ["Document", "Located", "document"]

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
    *(CORE + name for name in ("timestamp", "merge", "value")),
    "!",
}


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
    faults: list[tuple[int, int, str]] = field(default_factory=list)

    def fault(self, at: Located, said: str) -> None:
        """Note a problem at a place."""
        if (at.line, at.column, said) not in self.faults:
            self.faults.append((at.line, at.column, said))

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
        with warnings.catch_warnings():
            warnings.simplefilter("error", YAMLWarning)
            node = YAML(typ="rt", pure=True).compose(text)
        if node is None:
            found.fault(nowhere, "the file holds nothing")
        else:
            found.root = _located(node, found, 0, iter(range(MOST_VALUES)))
    except _TooMuch as error:
        found.fault(nowhere, str(error))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Located(None, mark.line + 1, mark.column + 1) if mark else nowhere
        said = " ".join(str(error.problem or error.context).split())
        if said == "but found another document":
            said = "a second document begins here, one was expected"
        found.fault(place, f"not YAML: {said}")
    except (YAMLError, YAMLWarning, ValueError, IndexError, RecursionError) as error:
        found.fault(nowhere, f"not YAML: {' '.join(str(error).split())[:200]}")
    return found


def _located(node: Node, found: Document, depth: int, room: Iterator[int]) -> Located:
    """A node and all below it; aliases are written out, which `room` and `depth` bound."""
    if next(room, None) is None:
        raise _TooMuch(f"more than {MOST_VALUES} values, aliases written out")
    if depth > DEEPEST:
        raise _TooMuch(f"more than {DEEPEST} levels deep, or a value inside itself")
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if str(node.tag) not in TAGS:
        found.fault(
            Located(None, line, column), f"tags such as {shown(str(node.tag))} are not read"
        )
        return Located(None, line, column)
    if isinstance(node, SequenceNode):
        items = [_located(item, found, depth + 1, room) for item in node.value]
        return Located(items, line, column)
    if isinstance(node, MappingNode):
        return _mapping(node, found, depth, room)
    return Located(_scalar(node), line, column)


def _mapping(node: MappingNode, found: Document, depth: int, room: Iterator[int]) -> Located:
    values: dict[str, Located] = {}
    keys: dict[str, Located] = {}
    for name, below in node.value:
        key = _located(name, found, depth + 1, room)
        value = _located(below, found, depth + 1, room)
        if not isinstance(name, ScalarNode):
            found.fault(key, "a word was expected as a key, not a list or a mapping")
            continue
        word = str(name.value)
        if word in keys:
            first = keys[word]
            where = f"line {first.line}, column {first.column}"
            found.fault(key, f"the key {shown(word)} is given twice, first at {where}")
            continue
        keys[word], values[word] = key, value
    return Located(values, node.start_mark.line + 1, node.start_mark.column + 1, keys)


def _scalar(node: Any) -> Any:
    text = str(node.value)
    if node.style in ('"', "'", "|", ">") or str(node.tag) == "!":
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
