"""Names: banned bindings, class names that stand twice, file names that repeat."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import Function, files, nodes, place

BANNED = {
    *("found", "told", "each", "some", "own", "asked", "one", "kept", "held", "given", "said"),
    *("known", "thing", "way", "few", "other", "so"),
}
# A file of this name is the same part of every room that has it.
REPEATED = {
    *("question", "parameters", "search", "answer", "plan", "presentation", "problem", "outputs"),
    *("resolve", "comparisons", "elasticities", "picture", "__init__", "__main__"),
}
# Two folders about the same subjects: claims and what catalogues say of them, text and pictures.
SIDE_BY_SIDE = (
    {"formulas/claims", "planner/claims"},
    {"planner/report/text", "planner/report/pictures"},
)


def bindings(file: Path) -> Iterator[tuple[str, int]]:
    """Every name that a file binds, and its line; targets of comprehensions apart."""
    inside = {
        id(name)
        for node in nodes(file)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
    }
    for node in nodes(file):
        if id(node) in inside:
            continue
        match node:
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)):
                yield name, node.lineno


def banned_bindings() -> list[str]:
    """Bindings of words that say nothing of the quantity, as "file:line name"."""
    return [
        f"{place(file)}:{line} {name}"
        for file in files()
        for name, line in bindings(file)
        if name.strip("_") in BANNED
    ]


def classes_twice() -> list[str]:
    """Class names that more than one class bears, each with its files."""
    where: dict[str, list[str]] = defaultdict(list)
    for file in files():
        for node in nodes(file):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(place(file))
    return [f"{name}: {', '.join(at)}" for name, at in sorted(where.items()) if len(at) > 1]


def file_names_twice() -> list[str]:
    """File names that repeat and do not mean the same part of each room."""
    where: dict[str, list[str]] = defaultdict(list)
    for file in files():
        if file.stem not in REPEATED:
            where[file.stem].append(place(file))
    pairs = [
        (name, at)
        for name, at in sorted(where.items())
        if len(at) > 1 and {path.rpartition("/")[0] for path in at} not in SIDE_BY_SIDE
    ]
    return [f"{name}: {', '.join(at)}" for name, at in pairs]


def signatures_with_any(package: str) -> tuple[int, int]:
    """Functions of a package whose signature holds `Any`, and all its functions."""
    count: Counter[bool] = Counter()
    for file in files():
        if not place(file).startswith(package + "/"):
            continue
        for node in nodes(file):
            if isinstance(node, Function):
                arguments = node.args
                listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                listed += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
                notes = [a.annotation for a in listed if a.annotation] + [node.returns]
                count[any(_names_any(note) for note in notes if note is not None)] += 1
    return count[True], count.total()


def _names_any(annotation: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(annotation))
