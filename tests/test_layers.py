"""Who may import whom, held by walking the sources and by looking at what a command loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.house.sources import parsed
from tests.paths import ROOT

MAY_IMPORT: dict[str, set[str]] = {
    "formulas": set(),
    "topologies": set(),
    "planner": {"formulas", "topologies"},
    "tools": {"formulas", "topologies", "planner"},
}
LIBRARIES = {
    "formulas": {"sympy", "numpy", "mpmath"},
    "topologies": {"networkx", "scipy", "numpy", "ruamel"},
}
HEAVY = ("sympy", "cvxpy", "scipy", "networkx", "matplotlib")
EXAMPLE = str(ROOT / "examples" / "serve-deepseek-v3-h200.yaml")
LIGHT = {
    "help": "import planner.cli as cli; cli.main(['--help'])",
    "version": "import planner.cli as cli; cli.main(['--version'])",
    "check": f"import planner.cli as cli; cli.main(['check', {EXAMPLE!r}])",
    "init": "import planner.cli as cli; cli.main(['init'])",
    "schema": "import planner.cli as cli; cli.main(['schema'])",
    "catalog": "import planner.cli as cli; cli.main(['catalog'])",
    "catalog of one chip": "import planner.cli as cli; cli.main(['catalog', 'chips', 'h200'])",
    "model": "import planner.cli as cli; cli.main(['model', 'deepseek-v3'])",
    "import planner": "import planner",
    "import formulas": "import formulas",
    "import topologies": "import topologies",
}  # fmt: skip


@cache
def modules() -> dict[str, Path]:
    """{dotted name: file} of the three packages, and of the tools that none of them knows."""
    found = {}
    for package in MAY_IMPORT:
        for file in (ROOT / package).rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def statements(body: list[ast.stmt], *, inside: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements run when a module is loaded; with `inside`, those of functions too."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from statements(node.orelse, inside=inside)
        elif inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for block in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, block, []), inside=inside)
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body, inside=inside)


def imported(name: str, *, inside: bool) -> set[str]:
    """Full names of the modules that one module imports."""
    found: set[str] = set()
    for node in statements(parsed(modules()[name]).body, inside=inside):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{name} imports relatively"
            module = str(node.module)
            below = {f"{module}.{alias.name}" for alias in node.names}
            found |= (below & modules().keys()) or {module}
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_look_only_downward(package):
    """formulas and topologies know nobody; planner knows both; not even inside a function."""
    others = MAY_IMPORT.keys() - MAY_IMPORT[package] - {package}
    for name in modules():
        if name.split(".")[0] == package:
            wrong = {
                other for other in imported(name, inside=True) if other.split(".")[0] in others
            }
            assert not wrong, f"{name} imports {wrong}"


def test_no_module_imports_itself_over_others():
    """The modules can be put in an order in which each needs only those before it."""
    needs = {name: imported(name, inside=False) & modules().keys() for name in modules()}
    order = list(TopologicalSorter(needs).static_order())
    assert len(order) == len(modules())


def test_equations_know_no_graphs_and_wires_no_symbols():
    """formulas loads SymPy and NumPy only, topologies NetworkX, SciPy, NumPy and a YAML reader."""
    for package, libraries in LIBRARIES.items():
        for name in modules():
            if name.split(".")[0] != package:
                continue
            outside = {other.split(".")[0] for other in imported(name, inside=True)}
            outside -= {package, *libraries, *sys.stdlib_module_names}
            assert not outside, f"{name} imports {outside}"


def test_light_commands_load_nothing_heavy():
    """What validates, lists or explains itself starts in a blink: no solver, no algebra.

    One process runs all of them: what one alone would load, it has loaded after that one.
    """
    steps = (
        f"try:\n    {code}\nexcept SystemExit as e:\n    assert not e.code, e.code\n"
        f"print({name!r}, [x for x in {HEAVY!r} if x in sys.modules], file=sys.stderr)\n"
        for name, code in LIGHT.items()
    )
    run = subprocess.run(
        [sys.executable, "-c", "import sys\n" + "".join(steps)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert run.stderr.splitlines() == [f"{name} []" for name in LIGHT]
