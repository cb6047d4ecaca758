"""What holds for every equation and derivation of the package."""

import ast
import builtins
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sympy as sp

import formulas
import planner
import topologies
from formulas.algebra.equation import Equation
from formulas.nomenclature.symbols import SYMBOLS, SymbolError
from formulas.registry import (
    MODULES,
    all_derivations,
    all_equations,
    by_name,
    dotted_module,
    find,
    subject,
    tags,
)
from tests.loops import for_all


@for_all("name", list(by_name()))
def test_every_entry_checks(name):
    """Units of both sides, and every step of a derivation."""
    assert by_name()[name].check()


def test_equations_hold_no_measured_number():
    """Numbers that someone measured live in a catalogue, with a source and a date."""
    for equation in all_equations():
        assert not equation.rhs.atoms(sp.Float), equation
    for derivation in all_derivations():
        for step in derivation.steps:
            assert not (step.lhs.atoms(sp.Float) | step.rhs.atoms(sp.Float)), derivation


def test_every_entry_has_a_source():
    """A work and a place in it, a definition, or a derivation of ours."""
    for value in by_name().values():
        assert str(value.source), value


def test_tags_are_those_of_entries():
    """What the table names is in the catalogue, once a row."""
    rows = tomllib.loads((Path(formulas.__file__).parent / "tags.toml").read_text("utf-8"))
    listed = [(tag, name) for tag, names in rows.items() for name in names.split()]
    assert {name for _, name in listed} <= set(by_name())
    assert len(set(listed)) == len(listed)
    assert tags("rule_of_thumb") == ("C8", "C9", "C10", "C55")


def test_every_symbol_in_use_is_registered():
    """Nothing is made outside the table."""
    for value in by_name().values():
        for x in value.rhs.free_symbols | value.lhs.free_symbols:
            assert SYMBOLS[x.name] == x


@pytest.mark.slow
def test_only_the_table_makes_symbols():
    """`Symbol` is called in nomenclature/symbols.py alone, by `symbol` and `auxiliary`."""
    makers = {"Symbol", "sp.Symbol", "sympy.Symbol", "sp.symbols", "sympy.symbols"}
    for package in (formulas, planner, topologies):
        for file in Path(package.__file__).parent.rglob("*.py"):
            if file.parts[-2:] != ("nomenclature", "symbols.py"):
                tree = ast.parse(file.read_text(encoding="utf-8"))
                calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
                assert not [file for call in calls if ast.unparse(call.func) in makers]


@for_all("module", MODULES)
def test_a_file_of_equations_defines_every_name_it_uses(module):
    """It takes symbols by `import *`: none is missing, and none is bound a second time."""
    loaded = importlib.import_module(f"formulas.{module}")
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    missing = {node.id for node in names} - bound - set(vars(loaded)) - set(dir(builtins))
    assert not missing
    assert not {node for node in bound if node in SYMBOLS}


def test_an_entry_belongs_to_the_module_that_makes_it():
    """The registry lists a module after those it takes equations from; no two share a name."""
    assert len({module.rpartition(".")[2] for module in MODULES}) == len(MODULES)
    for name, value in by_name().items():
        text = Path(importlib.import_module(dotted_module(subject(name))).__file__).read_text(
            "utf-8"
        )
        assert re.search(rf"^(\w+, )*{name}(, \w+)* = ", text, re.MULTILINE), value


def test_an_entry_is_found_by_name_title_or_symbol():
    """And a wrong name is met with the nearest."""
    assert find("critical_batch") is formulas.critical_batch
    assert find("critical-batch") is formulas.critical_batch
    assert find("batch at which the two roofs meet") is formulas.critical_batch
    assert find("T_drain").symbol.name == "T_drain"
    assert subject("critical_batch") == "batching"
    with pytest.raises(SymbolError, match="T_step is given by step_time"):
        find("T_step")
    with pytest.raises(SymbolError, match="no equation 'critcal_batch'; did you mean 'critical_b"):
        find("critcal_batch")


def test_the_public_names_are_importable():
    """`__all__` equals what the package gives, and little more than that."""
    assert len(formulas.__all__) <= 14
    for name in formulas.__all__:
        assert getattr(formulas, name) is not None
    assert set(dir(formulas)) == set(formulas.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        formulas.nothing  # noqa: B018


def test_importing_the_package_loads_no_sympy():
    """So that a command that needs no formula stays quick."""
    code = "import formulas, sys; sys.exit('sympy' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert isinstance(formulas.step_time, Equation)
