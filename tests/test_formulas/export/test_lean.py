"""Theorems of Lean: what they say is what the derivations say, and Lean proves them where it is."""

import re
import shutil
import subprocess

import pytest
import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.export.lean import DECIMAL_BASE, cleared_denominators, lean
from formulas.registry import by_name
from tests.loops import for_all

PLAIN = {name: by_name()[name] for name in DECIMAL_BASE}


def read(side):
    """A side of a theorem as an expression, a function's value as one symbol."""
    applied = re.sub(r"\(([fg]) (\w+)\)", r"\1_of_\2", side).replace("^", "**")
    names = set(re.findall(r"[A-Za-z_]\w*", applied))
    return sp.parse_expr(applied, local_dict={name: sp.Symbol(name) for name in names})


def sides(item):
    """The theorems of a derivation, both sides as text."""
    pairs = zip(item.steps, item.steps[1:], strict=False)
    return [pair for pair in (cleared_denominators(*both) for both in pairs) if pair]


@for_all("name", DECIMAL_BASE)
def test_a_theorem_is_true_and_not_by_its_letters(name):
    """Both sides expand to one polynomial, and are written differently."""
    theorems = sides(PLAIN[name])
    assert theorems
    for left, right in theorems:
        assert sp.expand(read(left) - read(right)) == 0
        assert left != right


def test_a_false_claim_makes_a_false_theorem():
    """The check is not one that anything passes."""
    item = PLAIN["bubble_share"]
    before, step = item.steps[-2:]
    n_stages, n_micro = sorted(step.rhs.free_symbols, key=lambda x: x.name, reverse=True)
    changed = step.__class__(**{**vars(step), "rhs": (n_stages - 1) / n_micro})
    left, right = cleared_denominators(before, changed)
    assert sp.expand(read(left) - read(right)) != 0


def test_functions_stay_functions():
    """A round is undone for every function of the half."""
    written = lean([PLAIN["feistel_inverse"]])
    assert "(f : Int → Int) (x_left y_right : Int)" in written
    assert "(f x_left) + (y_right + (-1) * (f x_left))" in written


def test_what_is_no_identity_is_named():
    """A root or a maximum is left out with a word; equations have no steps."""
    assert "-- step 2 is no identity of rational functions" in lean(
        [by_name()["racks_that_recover"]]
    )
    assert "theorem step" not in lean([by_name()["step_time"]])
    derivations = [item for item in by_name().values() if isinstance(item, Derivation)]
    assert lean(derivations).count("\ntheorem ") > 60


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("lean"), reason="no lean: the theorems are not compiled here")
def test_lean_proves_the_ten(tmp_path):
    """No error, no warning."""
    file = tmp_path / "identities.lean"
    file.write_text(lean(PLAIN.values()), encoding="utf-8")
    done = subprocess.run(["lean", file], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "")
