"""What should stand once: bracketed searches, lists of what may be varied, routes to a slope."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.sources import Function, callee, functions, in_package, modules, nodes, parsed

# Rooms whose searches move a parameter of a question; a search over batches is part of the solver.
ASKING = ("cli", "sweep", "sensitivity", "uncertainty", "report", "protocol")
ROOT_FINDERS = {"brentq", "brenth", "bisect", "ridder", "toms748", "root_scalar", "newton"}
PATH = re.compile(
    r"(promises|workload|choose|system|phases|serving|law|family|quality|data|price)(\.\w+)+"
)


def bracketed_searches() -> list[str]:
    """Functions of the asking rooms that close in by halves, besides protocol.bracket."""
    listed = []
    for name, file in modules().items():
        outside = not any(in_package(name, f"planner.{room}") for room in ASKING)
        if outside or name == "planner.protocol.bracket":
            continue
        listed += [f"{name}.{f.name}" for f in functions(file) if _halves(f)]
    return sorted(listed)


def _halves(function: Function) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and callee(node) in ROOT_FINDERS:
            return True
        if isinstance(node, ast.For | ast.While) and any(map(_middle, ast.walk(node))):
            return True
    return False


def _middle(node: ast.AST) -> bool:
    """(a + b) / 2, or the root of a * b."""
    match node:
        case ast.BinOp(ast.BinOp(_, ast.Add(), _), ast.Div(), ast.Constant(2)):
            return True
        case ast.Call(args=[ast.BinOp(_, ast.Mult(), _)]):
            return ast.unparse(node.func) == "math.sqrt"
    return False


def parameter_lists() -> list[str]:
    """Module-level collections of three and more paths of scenarios outside a kind's parameters."""
    listed = []
    for name, file in modules().items():
        if not name.startswith("planner.") or name.endswith(".parameters"):
            continue
        if in_package(name, "planner.scenario"):
            continue
        for node in parsed(file).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            if len(set(_paths(node.value))) >= 3:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                listed.append(f"{name}.{ast.unparse(target)}")
    return sorted(listed)


def _paths(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and PATH.fullmatch(str(node.value)):
            yield str(node.value)


def elasticity_methods() -> set[str]:
    """The methods that rows of elasticities are made with."""
    return {
        argument.value
        for name, file in modules().items()
        if name.startswith("planner.")
        for node in nodes(file)
        if isinstance(node, ast.Call) and callee(node).endswith("Elasticity")
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        if isinstance(argument, ast.Constant) and argument.value in ("dual", "slope", "re-solve")
    }
