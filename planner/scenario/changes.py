"""Changes to a scenario from the command line: `promises.tpot=40 ms`, read like the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.scenario.tree import Path, Position, Tree, dotted, yaml_tree
from planner.text.errors import InputError, Mistake, quoted

# the symbols of the equations, where they mean one key
ALIASES: dict[str, Path] = {
    "B": ("choose", "batch"),
    "L_in": ("workload", "input_tokens"),
    "L_out": ("workload", "output_tokens"),
    "M": ("system", "memory"),
    "W": ("system", "memory_bandwidth"),
}
# a plain value that becomes a mapping when a key below it is set
OPENED: dict[Path, str] = {
    ("model",): "like",
    ("system",): "like",
    ("phases", "inference", "system"): "like",
    ("phases", "pretrain", "system"): "like",
    ("phases", "rl", "system"): "like",
    ("workload", "input_tokens"): "mean",
    ("workload", "output_tokens"): "mean",
}
LONGEST = 10_000


def changed(tree: Tree, sets: Sequence[str]) -> Tree:
    """A new tree with every `PATH=VALUE` applied in order; raises InputError with all mistakes."""
    if not sets:
        return tree
    if not isinstance(tree.data, dict):
        return tree
    tree = tree.copied()
    mistakes: list[Mistake] = []
    for change in sets:
        try:
            path, value = parsed_change(change)
            _put(tree, path, value, change)
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    return tree


def parsed_change(change: str) -> tuple[Path, Any]:
    """The path and the value of `PATH=VALUE`; the value is one YAML scalar, list or mapping."""
    name, sign, text = change.partition("=")
    name = name.strip()
    place = _place(change)
    if not sign or not name:
        raise InputError(
            Mistake(place.file, None, None, "", "expected PATH=VALUE such as promises.tpot=40ms")
        )
    if len(change) > LONGEST:
        raise InputError(Mistake(place.file, None, None, "", "is too long"))
    if any(not part for part in name.split(".")):
        raise InputError(
            Mistake(place.file, None, None, "", f"{quoted(name)} has an empty part between dots")
        )
    path = ALIASES.get(name) or tuple(
        int(part) if part.isascii() and part.isdigit() and len(part) < 6 else part
        for part in name.split(".")
    )
    try:
        value = yaml_tree(text, place.file)
        mistakes = value.mistakes
    except InputError as error:
        mistakes = error.mistakes
    if mistakes:
        faults = [Mistake(place.file, None, None, dotted(path), m.message) for m in mistakes]
        raise InputError(faults)
    return path, value.data


def _place(change: str) -> Position:
    shown = change if len(change) <= 80 else change[:77] + "..."
    return Position("--set " + (shown if shown.isprintable() else ascii(shown)))


def _put(tree: Tree, path: Path, value: Any, change: str) -> None:
    """Set the value in the tree's data, opening mappings on the way; its place is the change."""
    place = _place(change)
    holder = tree.data
    for depth, part in enumerate(path[:-1], start=1):
        below = path[:depth]
        inner = _item(holder, part)
        if below in OPENED and isinstance(inner, str | int | float):
            inner = {OPENED[below]: inner}
            old = tree.values.get(below)
            _assign(holder, part, inner)
            if old is not None:
                tree.values[(*below, OPENED[below])] = old  # type: ignore[index]
        elif inner is None and isinstance(part, str):
            inner = {}
            _assign(holder, part, inner)
        if not isinstance(inner, dict | list):
            message = f"{dotted(below)} holds {quoted(inner)}, which has no keys"
            raise InputError(Mistake(place.file, None, None, dotted(path), message))
        holder = inner
    last = path[-1]
    if isinstance(holder, list) and not (isinstance(last, int) and last < len(holder)):
        message = f"expected an index below {len(holder)}, got {quoted(last)}"
        raise InputError(Mistake(place.file, None, None, dotted(path), message))
    _assign(holder, last, value)
    for places in (tree.values, tree.keys):
        for stale in [at for at in places if at[: len(path)] == path]:
            del places[stale]  # type: ignore[attr-defined]
        places[path] = place  # type: ignore[index]


def _item(holder: Any, part: str | int) -> Any:
    if isinstance(holder, list):
        return holder[part] if isinstance(part, int) and part < len(holder) else None
    return holder.get(part) if isinstance(holder, dict) else None


def _assign(holder: Any, part: str | int, value: Any) -> None:
    if isinstance(holder, dict) or (isinstance(part, int) and part < len(holder)):
        holder[part] = value
