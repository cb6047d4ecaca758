"""Symbols: registered once, positive, described."""

import importlib

import pytest
import sympy as sp

from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.symbols import (
    SYMBOLS,
    SymbolError,
    auxiliary,
    describe,
    did_you_mean,
    latex_names,
    meaning,
    symbol,
    symbol_unit,
)


def test_every_symbol_is_positive_and_explained():
    """What makes roots and logarithms safe, and messages readable."""
    for name, x in SYMBOLS.items():
        assert x.name == name
        assert x.is_positive
        assert meaning(x)
        assert str(symbol_unit(x))
        assert latex_names()[x]


def test_a_name_is_registered_once():
    """A second registration is refused, with the first one's meaning."""
    with pytest.raises(SymbolError, match="sequences decoded together"):
        symbol("B", "seq", "something else")


@pytest.mark.parametrize("name", ["E", "I", "N", "O", "Q", "S", "C"])
def test_names_that_sympy_owns_are_refused(name):
    """They mean constants and functions when text is read."""
    with pytest.raises(SymbolError):
        symbol(name, "1", "a trap")
    assert name not in SYMBOLS


def test_an_unreadable_unit_registers_nothing():
    """The name stays free."""
    with pytest.raises(UnitError):
        symbol("x_never", "gram", "a mass")
    assert "x_never" not in SYMBOLS


def test_the_nearest_name_is_offered():
    """With its meaning and unit."""
    hint = did_you_mean("Lctx", SYMBOLS)
    expected = "'L_ctx' (tokens of context held per sequence) [token/seq]"
    assert hint == f"; did you mean {expected}?"
    assert did_you_mean("zzzzzz", SYMBOLS) == ""
    assert describe("L_ctx") == expected


def test_a_plain_symbol_of_the_same_name_is_not_ours():
    """SymPy holds it unequal; to look it up would hide a substitution that does nothing."""
    with pytest.raises(SymbolError):
        meaning(sp.Symbol("B"))


@pytest.mark.parametrize(
    "table", ["layout_symbols", "lecture", "schedule_symbols", "serving_symbols", "training"]
)
def test_a_table_exports_the_symbols_it_registers(table):
    """What `import *` brings into a file of equations is symbols, each under its own name."""
    module = importlib.import_module(f"formulas.nomenclature.{table}")
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    assert public
    for name, value in public.items():
        assert value is SYMBOLS[name]


def test_an_auxiliary_variable_is_not_registered():
    """A variable of a program has no unit and no meaning, and takes no name from the table."""
    x = auxiliary("x_never", nonnegative=True)
    assert x.is_nonnegative
    assert "x_never" not in SYMBOLS
    with pytest.raises(SymbolError):
        meaning(x)
