"""The rules of style that a machine can hold; each test lists all that breaks its rule."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
import sympy as sp

from formulas.nomenclature.sources import Citation, definition
from formulas.registry import all_equations, by_name
from tests.house.measures import exceptions, key
from tests.house.sizes import too_large
from tests.house.sources import PACKAGES, modules
from tests.house.style import private_places, running_text, without_docstring


def test_files_functions_and_folders_are_short():
    """A file has at most 400 lines, a function 60, a folder 15 files."""
    allowed = exceptions()["files, functions and folders that are too large"]
    assert not [line for line in too_large() if key(line) not in allowed]


def test_modules_and_public_names_say_what_they_are():
    """Every module, every public class and every longer public function has a docstring."""
    assert not without_docstring()


def test_names_that_packages_and_modules_promise_are_there():
    """Every name of an `__all__` imports, and no module of a package hides one of its names."""
    missing, hidden = [], []
    for name in modules():
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        missing += [f"{name}.{x}" for x in getattr(module, "__all__", ()) if not hasattr(module, x)]
    for package in PACKAGES:
        module = importlib.import_module(package)
        assert set(module.__all__) <= set(dir(module))
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018
        hidden += [x for x in module.__all__ if isinstance(getattr(module, x), ModuleType)]
    assert not missing
    assert not hidden


def test_text_is_never_run_and_every_statement_has_a_source():
    """No text becomes code, no private place is named; an equation cites, and holds no float."""
    unsourced = []
    for name, entry in by_name().items():
        if not isinstance(entry.source, Citation) or not str(entry.source).strip():
            unsourced.append(f"{name} has no source")
        if not all(assumption.strip() for assumption in entry.assumes):
            unsourced.append(f"{name} has an empty assumption")
    for equation in all_equations():
        if equation.rhs.atoms(sp.Float):
            unsourced.append(f"{equation.name} holds a measured number")
        if not equation.assumes and equation.source is not definition:
            unsourced.append(f"{equation.name} assumes nothing and is no definition")
    assert not running_text()
    assert not private_places()
    assert not unsourced
