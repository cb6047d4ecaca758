"""The rules of the house that a machine can hold: sizes, docstrings, names, sources."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import sympy as sp

from formulas.nomenclature.sources import Citation, definition
from formulas.registry import all_derivations, all_equations, by_name
from tests.paths import ROOT

PACKAGES = ("planner", "formulas", "topologies")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
LONGEST_FILE = 430
LONGEST_FUNCTION = 60
SHORT_ENOUGH = 8  # lines of a public function that its name explains
RUNS_TEXT = {"eval", "exec", "sympify", "parse_expr", "__import__"}
# Assembled, so that this file does not hold what it looks for.
PRIVATE = re.compile("|".join(f"/{place}/" for place in ("work", "opt", "root", "home")))


def shown(file: Path) -> str:
    """The file as a test id."""
    return str(file.relative_to(ROOT))


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


def size(node: ast.AST) -> int:
    """Lines of a definition, decorators apart."""
    return int(node.end_lineno or 0) - int(node.lineno) + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("file", FILES, ids=shown)
def test_files_and_functions_are_short(file):
    """A file has at most 400 lines and a function 60: a subject, and a thought."""
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert size(node) <= LONGEST_FUNCTION, f"{node.name} has {size(node)} lines"


@pytest.mark.parametrize("file", FILES, ids=shown)
def test_modules_and_public_names_say_what_they_are(file):
    """Every module has a docstring, and every public class or longer function has one too."""
    tree = parsed(file)
    assert ast.get_docstring(tree)
    holders = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    documented = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
    }
    for holder in holders:
        if isinstance(holder, ast.ClassDef) and holder.name.startswith("_"):
            continue
        for node in holder.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef) or size(node) > SHORT_ENOUGH:
                # A method that implements a documented one says the same.
                told = ast.get_docstring(node) or node.name in documented
                assert told, f"{node.name} has no docstring"


@pytest.mark.parametrize("file", FILES, ids=shown)
def test_text_is_never_run(file):
    """No file calls what turns text into code or into an expression."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            strict = called.endswith("sympify") and "strict=True" in ast.unparse(node)
            assert strict or called.split(".")[-1] not in RUNS_TEXT, f"{called}, {node.lineno}"
            assert called != "compile"


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_package_names_is_there(package):
    """`__all__` is sorted as ruff does, imports, and is all that `dir` promises in public."""
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_public_name(package):
    """A name that a module of the package bears too means the name, whatever was imported."""
    for file in (ROOT / package).glob("*.py"):
        if file.stem not in ("__init__", "__main__"):
            importlib.import_module(f"{package}.{file.stem}")
    module = importlib.import_module(package)
    hidden = [name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)]
    assert not hidden


@pytest.mark.parametrize("file", FILES, ids=shown)
def test_what_a_module_names_is_there(file):
    """Every name in a module's `__all__` can be imported from it."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    if parts[-1] == "__main__":
        pytest.skip("runs when it is imported")
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert not missing


def test_equations_hold_no_measured_number():
    """Numbers that someone measured live in a catalogue, with a source and a date."""
    for equation in all_equations():
        assert not equation.rhs.atoms(sp.Float), equation.name


@pytest.mark.parametrize("name", by_name())
def test_an_equation_has_assumptions_and_a_source(name):
    """Nothing is stated without saying when it holds and where it comes from."""
    found = by_name()[name]
    assert isinstance(found.source, Citation)
    assert str(found.source).strip()
    assert all(text.strip() for text in found.assumes)


def test_every_equation_states_its_assumptions():
    """An equation without assumptions is true by definition, and says so as its source."""
    bare = [e.name for e in all_equations() if not e.assumes and e.source is not definition]
    assert not bare


@pytest.mark.parametrize("derivation", all_derivations(), ids=lambda d: d.name)
def test_every_derivation_checks(derivation):
    """Each step of each derivation follows from the one before."""
    assert derivation.check()


def test_no_private_place_is_named():
    """No file tells of the machine it was written on."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        file = ROOT / name
        if not file.is_file():
            continue
        found = PRIVATE.search(file.read_bytes().decode("utf-8", "replace"))
        assert found is None, f"{name} names {found and found.group()}"
