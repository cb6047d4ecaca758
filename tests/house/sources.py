"""The sources of the three packages as data: files, syntax trees, and who imports whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.paths import ROOT

PACKAGES = ("planner", "formulas", "topologies")
TOOLS = "tools"  # of the maintainers, in no wheel: counted on a line of its own
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files() -> tuple[Path, ...]:
    """Every Python file of the three packages."""
    return tuple(sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")))


@cache
def tools() -> tuple[Path, ...]:
    """Every Python file of the maintainers' tools."""
    return tuple(sorted((ROOT / TOOLS).rglob("*.py")))


def place(file: Path) -> str:
    """A file as it is named from the root."""
    return file.relative_to(ROOT).as_posix()


@cache
def text(file: Path) -> str:
    """What stands in a file."""
    return file.read_text(encoding="utf-8")


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(text(file))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """All that the syntax tree of a file holds; `ast.walk` costs as much as parsing."""
    return tuple(ast.walk(parsed(file)))


def callee(node: ast.Call) -> str:
    """The last name of what is called, as `method` of `object.method()`; "" where it has none."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


@cache
def modules() -> dict[str, Path]:
    """{dotted name: file}; a package bears the name of its folder."""
    listed = {}
    for file in files():
        parts = file.relative_to(ROOT).with_suffix("").parts
        listed[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return listed


def size(node: ast.AST) -> int:
    """Lines of a definition, decorators apart."""
    return int(node.end_lineno or 0) - int(node.lineno) + 1  # type: ignore[attr-defined]


def functions(file: Path) -> Iterator[Function]:
    """Every function and method of a file."""
    return (node for node in nodes(file) if isinstance(node, Function))


@cache
def imported(name: str, *, loaded: bool = False) -> frozenset[str]:
    """The project's modules that a module imports anywhere, or (`loaded`) when it is loaded."""
    listed: set[str] = set()
    for node in _imports(parsed(modules()[name]).body, loaded):
        if isinstance(node, ast.Import):
            listed |= {alias.name for alias in node.names}
        elif node.level == 0 and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                listed.add(below if below in modules() else node.module)
    return frozenset(listed & modules().keys() - {name})


def _imports(body: list[ast.stmt], loaded: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif loaded and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, loaded)
        elif not loaded or not isinstance(node, Function):
            for block in ("body", "orelse", "finalbody"):
                yield from _imports(getattr(node, block, []), loaded)
            for handler in getattr(node, "handlers", []):
                yield from _imports(handler.body, loaded)


@cache
def graph(*, loaded: bool = False) -> dict[str, frozenset[str]]:
    """{module: the project's modules it imports}; TYPE_CHECKING blocks count unless `loaded`."""
    return {name: imported(name, loaded=loaded) for name in modules()}


def components(edges: Mapping[str, frozenset[str] | set[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan), each after those it points to."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    closed: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component: list[str] = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            closed.append(component)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return closed


def longest_chain(package: str = "") -> list[str]:
    """The longest run of modules of a package each of which loads the next."""
    inside = {
        name: {other for other in below if in_package(other, package)}
        for name, below in graph(loaded=True).items()
        if in_package(name, package)
    }
    best: dict[str, list[str]] = {}
    for component in components(inside):  # of one module each: test_layers.py
        for name in component:
            below = (best[other] for other in inside[name] if other in best)
            best[name] = [name, *max(below, key=len, default=[])]
    return max(best.values(), key=len, default=[])


def in_package(name: str, package: str) -> bool:
    """Whether a module lies in a package; everything lies in the one without a name."""
    return not package or name == package or name.startswith(package + ".")
