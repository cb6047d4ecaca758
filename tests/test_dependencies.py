"""What pyproject.toml asks to be installed is used: a dependency is imported, a tool is called."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tests.house.sources import callee, files, nodes
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Names of distributions whose module is called otherwise.
MODULES = {
    "ruamel.yaml": "ruamel",
    "dask": "distributed",
    "salib": "SALib",
    "myst-parser": "myst_parser",
    "genai-prices": "genai_prices",
    "httpx": "starlette",  # its client for tests asks for it
}
# What another package is made of, and asks for by name in every release: its module.
PART_OF = {"pydantic_core": "pydantic", "anyio": "starlette", "dask": "distributed"}
# What is called, not imported: by .ci/run, by pytest, by mypy.
TOOLS = {
    "pytest-xdist": "-n auto",
    "pytest-benchmark": "benchmark.pedantic(",
    "ruff": "bin/ruff",
    "mypy": "bin/mypy",
    "import-linter": "bin/lint-imports",
    "scipy-stubs": "bin/mypy",
    "types-networkx": "bin/mypy",
}


def names(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirements name, in small letters."""
    return {re.match(r"[\w.-]+", line)[0].lower() for line in requirements}  # type: ignore[index]


def imported(sources: Iterable[Path]) -> set[str]:
    """The top-level modules that sources import, anywhere."""
    modules = set()
    for file in sources:
        for node in nodes(file):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module.split(".")[0])
            elif isinstance(node, ast.Call) and callee(node) == "importorskip":
                modules.add(ast.literal_eval(node.args[0]).split(".")[0])
    return modules


def test_every_dependency_is_imported_by_the_packages():
    """The core's and every extra's, those for development and for the site apart."""
    extras = PROJECT["optional-dependencies"]
    apart = ("dev", "docs")
    asked = [*PROJECT["dependencies"], *(x for e in extras if e not in apart for x in extras[e])]
    modules = imported(files())
    assert not {name for name in names(asked) if MODULES.get(name, name) not in modules}


def test_whatever_is_imported_is_asked_for():
    """By the core or an extra: what another package happens to bring may be gone tomorrow."""
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(x for e in extras if e != "dev" for x in extras[e])]
    known = {MODULES.get(name, name) for name in names(asked)} | sys.stdlib_module_names
    known |= {"planner", "formulas", "topologies"}
    assert not {name for name in imported(files()) if PART_OF.get(name, name) not in known}


def test_the_site_is_made_of_what_its_extra_asks_for():
    """Each is imported below docs/, or stands in its configuration; the tests can build it."""
    extras = PROJECT["optional-dependencies"]
    configured = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    modules = imported((ROOT / "docs").rglob("*.py"))
    asked = {MODULES.get(name, name) for name in names(extras["docs"])}
    assert not {name for name in asked - modules if f'"{name}"' not in configured}
    assert re.search(r"\[.*\bdocs\b.*\]", next(x for x in extras["dev"] if PROJECT["name"] in x))


def test_every_tool_of_development_is_used():
    """Imported by a test, or called by .ci/run."""
    callers = [ROOT / ".ci" / "run", *(ROOT / "tests" / "benches").glob("*.py")]
    called = "".join(file.read_text(encoding="utf-8") for file in callers)
    modules = imported((ROOT / "tests").rglob("*.py"))
    unused = set()
    for name in names(PROJECT["optional-dependencies"]["dev"]) - {PROJECT["name"]}:
        tool = TOOLS.get(name, "")
        if MODULES.get(name, name) not in modules and not (tool and tool in called):
            unused.add(name)
    assert not unused


def test_the_command_is_the_entry_point():
    """`planner` is what `python -m planner` runs."""
    assert PROJECT["scripts"] == {"planner": "planner.__main__:main"}
