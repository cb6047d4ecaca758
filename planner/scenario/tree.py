"""A scenario as plain values with the place of each in its file, and changes to it.

A change of the command line, `promises.tpot=40 ms`, is read like the file itself.
"""

import copy
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from planner.text.errors import InputError, Mistake, printable, quote
from topologies.files.located_yaml import AtLocation, document

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
        place = place or self.values.get(path) or self.values.get(("engine", *path))
        parent = path
        while place is None and parent:
            parent = parent[:-1]
            place = self.keys.get(parent) or self.values.get(parent)
        place = place or Position(self.file)
        return Mistake(place.file, place.line, place.column, key_path(path), message)

    def first_mistakes(self, more: Iterable[Mistake] = ()) -> list[Mistake]:
        """The first 20 mistakes by position, and if there are more; unread values have none."""
        unread = tuple(f"{key_path(path)}." for path in self.unread)
        others = (each for each in more if not f"{each.path}.".startswith(unread))
        listed = list(dict.fromkeys(islice(chain(self.mistakes, others), MAX_MISTAKES + 1)))
        shown = sorted(listed[:MAX_MISTAKES], key=lambda at: (at.line or 0, at.column or 0))
        words = f"there are more mistakes than these {MAX_MISTAKES}"
        return [*shown, *(Mistake(self.file, None, None, "", words) for _ in listed[MAX_MISTAKES:])]


def key_path(path: Path) -> str:
    """`workload.input_tokens`, `chips.0`; keys of other kinds as they print."""
    return ".".join(printable(part, 60) for part in path)


MAX_MISTAKES = 20  # mistakes of a scenario that are listed
MAX_VALUES = 20_000  # of a scenario, aliases written out


def yaml_tree(text: str, file: str) -> Tree:
    """Tree of a YAML text's single document; duplicate keys and foreign tags are mistakes.

    Raises InputError if the text is not YAML, or too large or deep.
    """
    parsed = document(text, MAX_VALUES)
    mistakes = tuple(
        Mistake(file, x.line, x.column, key_path(x.path), x.message) for x in parsed.faults
    )
    if parsed.root is None and mistakes:
        raise InputError(mistakes)
    values: dict[Path, Position] = {}
    keys: dict[Path, Position] = {}
    data = _plain(parsed.root, (), file, values, keys) if parsed.root else None
    return Tree(file, data, values, keys, mistakes, tuple(parsed.unread))


def yaml_text(data: Mapping[str, Any]) -> str:
    """Plain values as the text of a YAML file."""
    from ruamel.yaml import YAML

    writer, stream = YAML(), io.StringIO()
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.dump(json.loads(json.dumps(data)), stream)
    return stream.getvalue()


def _plain(
    node: AtLocation,
    path: Path,
    file: str,
    values: dict[Path, Position],
    keys: dict[Path, Position],
) -> object:
    """Plain values below a node; records the position of each value and key."""
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


# keys as people call them, by the key above: each is read as the other one
SAME_KEYS: dict[Path, str] = {("promises", "speed"): "tokens_per_s_per_user"}


def named_once(tree: Tree) -> Tree:
    """Tree with every key by its canonical name; a key given under both names is a mistake."""
    mistakes: list[Mistake] = []

    def named(value: object, path: Path) -> object:
        if isinstance(value, list):
            return [named(item, (*path, i)) for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        for key in value:
            name = SAME_KEYS.get((*path[-1:], key))
            if name in value:
                words = f"is {name}, which is given too; leave one out"
                mistakes.append(tree.mistake((*path, key), words, at_key=True))
        return {SAME_KEYS.get((*path[-1:], key), key): named(item, (*path, key))
                for key, item in value.items()}  # fmt: skip

    data = named(tree.data, ())
    values, keys = (
        {canonical(path): place for path, place in places.items()}
        for places in (tree.values, tree.keys)
    )
    return replace(tree, data=data, values=values, keys=keys, mistakes=(*tree.mistakes, *mistakes))


def canonical(path: Path) -> Path:
    """A path with its keys by their one names."""
    return tuple(SAME_KEYS.get(path[max(i - 1, 0) : i + 1], part) for i, part in enumerate(path))


# the symbols of the equations, where they mean one key
ALIASES: dict[str, Path] = {
    "promises.speed": ("promises", "tokens_per_s_per_user"),
    "B": ("choose", "batch"),
    "L_in": ("workload", "input_tokens"),
    "L_out": ("workload", "output_tokens"),
    "M": ("system", "memory"),
    "W": ("system", "memory_bandwidth"),
}
# a plain value that becomes a mapping when a key below it is set
SHORTHAND_KEYS: dict[Path, str] = {
    ("model",): "like",
    ("system",): "like",
    ("phases", "inference", "system"): "like",
    ("phases", "pretrain", "system"): "like",
    ("phases", "rl", "system"): "like",
    ("workload", "input_tokens"): "mean",
    ("workload", "output_tokens"): "mean",
}
MAX_TEXT_LENGTH = 10_000


def apply_sets(tree: Tree, sets: Sequence[str]) -> Tree:
    """A new tree with every `PATH=VALUE` applied in order; raises InputError with all mistakes."""
    if not sets or not isinstance(tree.data, dict):
        return tree
    # The tree that was given stays as it is.
    tree = replace(
        tree, data=copy.deepcopy(tree.data), values=dict(tree.values), keys=dict(tree.keys)
    )
    mistakes: list[Mistake] = []
    for change in sets:
        try:
            path, value = parsed_change(change)
            _put(tree, path, value, change)
        except InputError as error:
            mistakes += error.mistakes
        if len(mistakes) > MAX_MISTAKES:
            break
    if mistakes:
        raise InputError(Tree(tree.file, None, mistakes=tuple(mistakes)).first_mistakes())
    return tree


def parsed_change(change: str) -> tuple[Path, object]:
    """The path and the value of `PATH=VALUE`; the value is one YAML scalar, list or mapping."""
    name, sign, text = change.partition("=")
    name = name.strip()
    if not sign or not name:
        raise _refused(change, "expected PATH=VALUE such as promises.tpot=40ms")
    if len(change) > MAX_TEXT_LENGTH:
        raise _refused(change, "is too long")
    if any(not part for part in name.split(".")):
        raise _refused(change, f"{quote(name)} has an empty part between dots")
    path = ALIASES.get(name) or canonical(tuple(
        int(part) if part.isascii() and part.isdigit() and len(part) < 6 else part
        for part in name.split(".")
    ))  # fmt: skip
    try:
        value = yaml_tree(text, "")
        mistakes = value.mistakes
    except InputError as error:
        mistakes = error.mistakes
    if mistakes:
        raise _refused(change, *(mistake.message for mistake in mistakes), path=path)
    return path, value.data


def _refused(change: str, *messages: str, path: Path = ()) -> InputError:
    file = _place(change).file
    return InputError(Mistake(file, None, None, key_path(path), message) for message in messages)


def _place(change: str) -> Position:
    shown = change if len(change) <= 80 else change[:77] + "..."
    return Position(f"--set {printable(shown)}")


def _put(tree: Tree, path: Path, value: object, change: str) -> None:
    """Set the value in the tree's data, opening mappings on the way; its place is the change."""
    holder: dict[str | int, object] | list[object] = tree.data
    for depth, part in enumerate(path, start=1):
        if isinstance(holder, list) and not (isinstance(part, int) and part < len(holder)):
            message = f"expected an index below {len(holder)}, got {quote(part)}"
            raise _refused(change, message, path=path)
        below = path[:depth]
        if below == path:
            break
        inner = holder[part] if isinstance(holder, list) else holder.get(part)  # type: ignore[index]
        if below in SHORTHAND_KEYS and isinstance(inner, str | int | float):
            inner = holder[part] = {SHORTHAND_KEYS[below]: inner}  # type: ignore[index]
            if below in tree.values:
                tree.values[(*below, SHORTHAND_KEYS[below])] = tree.values[below]  # type: ignore[index]
        elif inner is None and isinstance(part, str):
            inner = holder[part] = {}  # type: ignore[call-overload]
        if not isinstance(inner, dict | list):
            message = f"{key_path(below)} holds {quote(inner)}, which has no keys"
            raise _refused(change, message, path=path)
        holder = inner
    holder[path[-1]] = value  # type: ignore[index]  # no word below a list is let by
    for places in (tree.values, tree.keys):
        for stale in [at for at in places if at[: len(path)] == path]:
            del places[stale]  # type: ignore[attr-defined]
        places[path] = _place(change)  # type: ignore[index]
