"""False steps are refused, at whatever points are drawn; true ones pass at all of them."""

import ast
from collections import Counter
from importlib import import_module

import pytest
import sympy as sp

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.identity import Identity
from formulas.algebra.points import sample_points
from formulas.nomenclature.training import r_all as k
from formulas.nomenclature.training import x_over as n
from formulas.nomenclature.training import x_shift as y
from formulas.numerics.expressions import maximum
from formulas.registry import all_derivations, by_name
from tests.false_steps import FALSE_STEPS, mutated, refused
from tests.loops import for_all
from tests.paths import shared
from tests.sizes import first, seldom, sized
from tests.steps_by_kind import FALSE, TRUE

DERIVED = [name for name, value in by_name().items() if isinstance(value, Derivation)]
SEEDS = (sized(1, 2),)


@pytest.mark.sized
@for_all("name", FALSE_STEPS)
def test_a_false_step_is_refused(name):
    """At points of a seed, and of one drawn now."""
    make = FALSE_STEPS[name]
    assert refused(make)
    assert all(refused(make, seed) for seed in SEEDS)


def test_there_are_forty_of_them():
    """As the specification asks."""
    assert len(FALSE_STEPS) >= 40


def test_mutants_at_every_scale_are_refused():
    """Twenty true steps, changed by as little as a billionth."""
    accepted = [name for name, make in mutated(seed=16, count=20) if not refused(make)]
    assert accepted == []


@pytest.mark.sized
@for_all("name", FALSE)
def test_a_false_step_of_each_kind_is_refused(name):
    """Rounding, windows, directions, conditions, numbers, names, functions, limits, and more."""
    assert all(refused(FALSE[name], seed) for seed in SEEDS)


@pytest.mark.sized
@for_all("name", TRUE)
def test_a_true_step_of_each_kind_passes(name):
    """The same rules leave these."""
    assert all(TRUE[name]().check(seed) for seed in SEEDS)


def test_every_kind_has_three_false_steps_and_two_true_ones():
    """So that a rule is not made for one of them."""
    counts = [Counter(name.partition(":")[0] for name in table) for table in (FALSE, TRUE)]
    assert min(counts[0].values()) >= 3
    assert min(count for kind, count in counts[1].items() if kind in counts[0]) >= 2


def test_too_few_distinct_points_show_nothing():
    """Where a condition leaves one point, or nothing else is shown, the word is `taken`."""
    start = Derivation("one point").begin(y, maximum(n, 3) ** 2)
    assert start.rewrite(sp.Integer(25), relations=(sp.Eq(n, 5),)).weakest == "taken"


@pytest.mark.parametrize("seed", first(0, [0]) + seldom([1, 2]))
def test_true_derivations_pass_wherever_the_points_lie(seed):
    """Every one of the catalogue."""
    assert all(derivation.check(seed) for derivation in all_derivations())


def test_a_refusal_names_the_point_both_sides_and_the_domain():
    """What a reader needs to see that the step is false, and where it would be true."""
    start = Derivation("false").begin(y, sp.sqrt((n - 100) ** 2))
    with pytest.raises(DerivationError, match=r"at \{x_over: .*\} the two sides differ by") as e:
        start.rewrite(100 - n).check()
    assert "against" in str(e.value)
    assert "it would need -100 + x_over <= 0" in str(e.value)
    start = Derivation("false").begin(y, n + sp.log((1 - n) ** 2) / 2)
    with pytest.raises(
        DerivationError, match=r"only one side is real: .* would need 1 - x_over > 0"
    ):
        start.rewrite(n + sp.log(1 - n))
    assert start.rewrite(n + sp.log(1 - n), relations=(n < 1,)).check()


def test_the_seed_that_found_it_is_named_and_repeats_it():
    """Points are drawn anew at every check."""
    drawn = zip(range(40), sample_points([n], 0), strict=False)
    hidden = sp.Mul(*(n - sp.Rational(point[n]) for _, point in drawn))
    step = Derivation("false").begin(y, n + hidden).rewrite(n)
    with pytest.raises(DerivationError, match=r"drawn with seed 7: check\(7\) repeats it"):
        step.check(7)


def test_points_span_the_decades():
    """Each symbol visits all eighteen in its first eighteen wide points."""
    drawn = [point for _, point in zip(range(54), sample_points([n, k], 5), strict=False)]
    for x in (n, k):
        wide = [point[x] for point in drawn[::3]]
        assert sorted(int(sp.floor(sp.log(sp.Rational(v), 10))) for v in wide) == list(range(-9, 9))
    assert drawn != [point for _, point in zip(range(54), sample_points([n, k], 6), strict=False)]


def test_more_digits_are_carried_where_a_sum_cancels():
    """exp(-n) beside 1 needs more than fifty where n is large; it is not called nothing."""
    assert Identity(sp.log(1 + sp.exp(-n)), sp.exp(-n)).difference(thorough=True) is not None
    assert Identity((1 + sp.exp(-n)) - 1, sp.exp(-n)).difference(thorough=True) is None


def test_an_unknown_verb_is_said_in_a_sentence():
    """With the verbs that there are, and the nearest."""
    with pytest.raises(AttributeError, match="no verb or attribute 'substitut'; did you mean"):
        Derivation("typo").substitut(n)


def test_derivations_of_others_find_the_names_that_they_import():
    """What they write down is read by our names: one that is renamed shuts all of them out."""
    tree = ast.parse(shared("false_steps3.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if str(node.module).startswith("formulas")]
    assert len(ours) > 5
    lost = [x.name for node in ours for x in node.names
            if not hasattr(import_module(str(node.module)), x.name)]  # fmt: skip
    assert lost == []
