"""Which way imports point: the layers of pyproject.toml, rooms, faces and kinds."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from typing import Any

from tests.house.sources import components, graph, in_package, modules, nodes
from tests.paths import ROOT

FACES = ("cli", "pages", "sweep", "sensitivity", "uncertainty", "report")
KINDS = ("serving", "budget", "lifecycle")  # as `problem:` and JSON call them
LIGHT = ("sympy", "networkx", "cvxpy")


@cache
def contract() -> dict[str, Any]:
    """The contract of layers in pyproject.toml, which `lint-imports` holds too."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    return next(one for one in settings["contracts"] if one["type"] == "layers")


def excuse(imports: list[str]) -> None:
    """Write the imports that the contract of layers excuses into pyproject.toml."""
    file = ROOT / "pyproject.toml"
    lines = "".join(f'    "{line}",\n' for line in imports)
    block = f"ignore_imports = [\n{lines}]" if imports else "ignore_imports = []"
    before = file.read_text(encoding="utf-8")
    after = re.sub(r"^ignore_imports = \[.*?\]", block, before, flags=re.M | re.S)
    file.write_text(after, encoding="utf-8")


@cache
def floors() -> dict[str, int]:
    """{room: its floor}, the lowest 0."""
    listed = contract()["layers"]
    return {
        room.strip(): height
        for height, line in enumerate(reversed(listed))
        for room in line.replace("|", ":").split(":")
    }


def room(module: str) -> str:
    """The room of a module, as planner.text, planner.problems.serving or formulas.scaling."""
    parts = module.split(".")
    depth = 3 if parts[:2] == ["planner", "problems"] else 2
    return ".".join(parts[:depth]) if len(parts) > 1 else module


def upward_imports() -> list[str]:
    """Imports that point up, or aside, by the contract, as "importer -> imported"."""
    listed = []
    for name, below in graph().items():
        ours = ".".join(name.split(".")[:2])
        for imported in sorted(below):
            theirs = ".".join(imported.split(".")[:2])
            if ours != theirs and floors().get(theirs, -1) >= floors().get(ours, len(floors())):
                listed.append(f"{name} -> {imported}")
    return sorted(listed)


def rooms_in_circles() -> list[str]:
    """Rooms that import each other in a circle."""
    edges: dict[str, set[str]] = defaultdict(set)
    for name, below in graph().items():
        edges[room(name)] |= {room(other) for other in below} - {room(name)}
    found = [sorted(circle) for circle in components(edges) if len(circle) > 1]
    return sorted(name for circle in found for name in circle)


def faces_into_problems() -> list[str]:
    """Imports from a face into a problem, as "importer -> imported"."""
    return sorted(
        f"{name} -> {other}"
        for name, below in graph().items()
        for other in below
        if any(in_package(name, f"planner.{face}") for face in FACES)
        and in_package(other, "planner.problems")
    )


def kinds_inside_each_other() -> list[str]:
    """Imports from one kind into the inside of another, not its package."""
    listed = []
    for name, below in graph().items():
        for other in below:
            ours, theirs = room(name), room(other)
            both = in_package(name, "planner.problems") and in_package(other, "planner.problems")
            if both and theirs not in (ours, other):
                listed.append(f"{name} -> {other}")
    return sorted(listed)


def kinds_in_conditions() -> list[str]:
    """Comparisons with a kind's name, and tables by kind, outside the room of the kind."""
    listed = []
    for name in modules():
        if not name.startswith("planner.") or in_package(name, "planner.problems"):
            continue
        if name == "planner.scenario.kinds":
            continue
        for node in nodes(modules()[name]):
            if isinstance(node, ast.Compare):
                words = [node.left, *node.comparators]
            elif isinstance(node, ast.Dict):
                words = [key for key in node.keys if key is not None]
            else:
                continue
            named = {
                word.value
                for part in words
                for word in (part.elts if isinstance(part, ast.Tuple | ast.Set) else [part])
                if isinstance(word, ast.Constant) and word.value in KINDS
            }
            if len(named) >= (1 if isinstance(node, ast.Compare) else 2):
                listed.append(f"{name}: {ast.unparse(node)[:60]}")
    return sorted(listed)
