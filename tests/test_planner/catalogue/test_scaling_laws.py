"""Published scaling laws: every number has a source, and the published optima come out."""

import csv
import math

import numpy as np
import pytest

from formulas.algebra.derivation import Derivation
from formulas.registry import by_name
from planner.catalogue.scaling_laws import RANGES, law, law_names
from planner.report.text.catalog import catalog, catalog_text
from planner.scenario.keys.budget_fields import LAW
from planner.text.errors import CatalogueError
from planner.text.tables import table
from tests.loops import for_all
from tests.paths import FACTS

FORMS = table("planner.catalogue", "laws.toml")["form"]
UNITS = {"c_fwd": 2, "one_param": 1, "one_token": 1}


def of(name, values):
    """The value of an equation of the catalogue at a case that may hold more than it needs."""
    run = by_name()[name].numpy()
    return run(**{x: values[x] for x in run.kernel.names})


def optimum(name, arithmetic):
    """Parameters, tokens and loss of a law's compute-optimal model."""
    case = UNITS | law(name).values | {"C_pt": arithmetic}
    case["N_active"] = of("optimal_parameters", case)
    case["D_pt"] = of("optimal_tokens", case)
    return case["N_active"], case["D_pt"], of("chinchilla_loss", case)


def test_laws_of_every_kind_are_there():
    """Dense, repeated, routed by three, fine-grained, sparse, rules, and a reward."""
    assert {
        "hoffmann-2022-approach-1", "hoffmann-2022-approach-2", "hoffmann-2022-approach-3",
        "besiroglu-2024", "muennighoff-2023", "kaplan-2020", "clark-2022-s-base",
        "clark-2022-rl-r", "clark-2022-hash", "abnar-2025", "krajewski-2024", "llama-3-2024",
        "ludziejewski-2025", "deepseek-llm-2024", "minicpm-2024", "scalerl-2025", "sardana-2024",
    } <= set(law_names())  # fmt: skip


@for_all("name", law_names())
def test_a_range_is_of_a_known_quantity(name):
    """Lowest before highest, both positive."""
    for key, (low, high) in law(name).range.items():
        assert key in RANGES
        assert 0 < low <= high


def test_a_covariance_is_one():
    """Symmetric, ones on the diagonal, no negative variance."""
    for name in law_names():
        found = law(name).covariance
        if found is None:
            continue
        table = np.array(found.correlation)
        assert table.shape == (len(found.of), len(found.of)) == (len(found.spread),) * 2
        assert (table == table.T).all()
        assert (np.diag(table) == 1).all()
        assert np.linalg.eigvalsh(table).min() > -1e-6


@for_all("name", law_names())
def test_every_law_is_listed_with_all_it_has(name):
    """Coefficients, settings and ranges, one line each."""
    text = catalog_text(catalog("laws", name))
    found = law(name)
    for key in (*found.coefficients, *found.settings, *(f"range of {x}" for x in found.range)):
        assert f"\n{key}: " in text
    assert ("correlated: " in text) == (found.covariance is not None)


@for_all("name", law_names())
def test_every_law_says_where_it_comes_from(name):
    """Source, link, date, range, standing; a form that is known."""
    found = law(name)
    assert found.source
    assert found.link.startswith("https://")
    assert found.scope
    assert found.as_of[:4].isdigit()
    assert found.verified in {"yes", "secondary", "no"}
    assert found.form in FORMS
    assert found.coefficients


@for_all("form", FORMS)
def test_coefficients_bear_the_names_of_symbols(form):
    """What a law of the form holds, its equations take."""
    names = set()
    for each in FORMS[form]:
        value = by_name()[each]
        equation = value.equation() if isinstance(value, Derivation) else value
        names |= {x.name for x in (*equation.symbols, *equation.givens)}
    for name in law_names(form):
        assert set(law(name).values) <= names, name


def test_the_default_is_the_refit():
    """Besiroglu et al., with the standard errors of all five coefficients."""
    assert LAW[:2] == ("law", "besiroglu-2024")
    assert all(each.error for each in law(LAW[1]).coefficients.values())


def test_a_wrong_name_is_met_with_the_nearest():
    """One sentence."""
    with pytest.raises(
        CatalogueError, match="unknown law 'besirogl-2024'; did you mean 'besiroglu"
    ):
        law("besirogl-2024")


@for_all(
    ("name", "arithmetic", "size", "tokens"),
    [
        ("besiroglu-2024", 1e20, 8.535e8, 1.953e10),
        ("besiroglu-2024", 1e21, 2.778e9, 5.999e10),
        ("besiroglu-2024", 5.76e23, 7.225e10, 1.329e12),
        ("besiroglu-2024", 3.8e25, 6.187e11, 1.024e13),
        ("hoffmann-2022-approach-3", 1e21, 2.217e9, 7.518e10),
        ("hoffmann-2022-approach-3", 5.76e23, 4.036e10, 2.379e12),
        ("hoffmann-2022-approach-3", 3.8e25, 2.732e11, 2.318e13),
        ("hoffmann-2022-approach-3-rounded", 1e21, 1.824e9, 9.136e10),
        ("hoffmann-2022-approach-3-rounded", 5.76e23, 3.219e10, 2.982e12),
        ("hoffmann-2022-approach-3-rounded", 3.8e25, 2.135e11, 2.967e13),
    ],
)
def test_compute_optimal_models(name, arithmetic, size, tokens):
    """Computed from the published coefficients elsewhere."""
    found = optimum(name, arithmetic)
    assert found[0] == pytest.approx(size, rel=1e-3)
    assert found[1] == pytest.approx(tokens, rel=1e-3)


def test_loss_at_the_budget_of_chinchilla():
    """Besiroglu: 1.9744 at 5.76e23 FLOP; 18.4 tokens per parameter there."""
    size, tokens, loss = optimum("besiroglu-2024", 5.76e23)
    assert loss == pytest.approx(1.9744, abs=1e-4)
    assert tokens / size == pytest.approx(18.4, abs=0.05)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hoffmann-2022-approach-3-rounded", 92.6),
        ("hoffmann-2022-approach-3", 58.9),
        ("muennighoff-2023", 19.61),
    ],
)
def test_tokens_per_parameter_at_the_budget_of_chinchilla(name, expected):
    """93, 59 and 19.6: two digits of the exponents matter more than twenty is a law."""
    size, tokens, _ = optimum(name, 5.76e23)
    assert tokens / size == pytest.approx(expected, rel=2e-3)


def test_rounding_the_exponents_moves_the_optimum_by_a_fifth():
    """17 to 22 % over 1e20 to 3.8e25 FLOP."""
    for arithmetic in (1e20, 1e21, 5.76e23, 3.8e25):
        exact = optimum("hoffmann-2022-approach-3", arithmetic)[0]
        rounded = optimum("hoffmann-2022-approach-3-rounded", arithmetic)[0]
        assert 0.165 < 1 - rounded / exact < 0.225


@pytest.mark.parametrize(
    ("size", "tokens", "expected"),
    [(6.34e9, 2.42e11, 2.2256440889984477), (8.67e9, 1.78e11, 2.2269634075087867)],
)
def test_repeated_data(size, tokens, expected):
    """Both values that Muennighoff et al. print, to twelve digits."""
    values = UNITS | law("muennighoff-2023").values
    unique = 2.5e10
    fed = unique * (values["A_N"] / values["B_D"]) ** (1 / values["alpha_N"])
    case = values | {"D_unique": unique, "D_pt": tokens, "N_fed": fed, "N_active": size}
    worth = {
        "D_pt": of("repetition_worth", case),
        "N_active": of("excess_worth", case) if size > fed else size,
    }
    assert of("chinchilla_loss", case | worth) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("epochs", "worth"), [(1, 1), (2, 1.968), (4, 3.726), (8, 6.624), (16, 10.582), (40, 15.167)]
)
def test_epochs(epochs, worth):
    """Four epochs are worth 93 % of fresh tokens, and none exceed 16.4 data sets."""
    values = law("muennighoff-2023").values | {"D_unique": 1, "D_pt": epochs}
    assert of("repetition_worth", values) == pytest.approx(worth, rel=1e-3)
    assert of("repetition_ceiling", values) == pytest.approx(16.388, abs=1e-3)


def test_coefficients_are_those_of_the_shared_table():
    """The same numbers stand in the table of published laws."""
    file = FACTS / "scaling_laws.csv"
    with file.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    pairs = {
        "Besiroglu refit": "besiroglu-2024",
        "approach 3 rounded": "hoffmann-2022-approach-3-rounded",
        "approach 3 unrounded": "hoffmann-2022-approach-3",
    }
    names = {"E": "loss_min", "A": "A_N", "B": "B_D", "alpha": "alpha_N", "beta": "beta_D"}
    for variant, name in pairs.items():
        text = next(row["coefficients"] for row in rows if row["variant"] == variant)
        for part in text.split():
            key, _, value = part.partition("=")
            assert law(name).values[names[key]] == pytest.approx(float(value), rel=1e-7)


def test_logarithms_are_undone():
    """A coefficient given as a logarithm is held as a number, and as published."""
    found = law("muennighoff-2023").coefficients["A_N"]
    assert found.ln
    assert found.published == pytest.approx(math.log(found.value))


def test_the_catalogue_lists_laws():
    """`planner catalog laws`, and one of them with errors and source."""
    assert set(catalog("laws", None)["names"]) == set(law_names())
    text = catalog_text(catalog("laws", "besiroglu-2024"))
    assert "beta_D: 0.3658 ± 0.02" in text
    assert "2404.10102" in text
    assert catalog("laws", "besiroglu-2024")["coefficients"]["A_N"]["error"] == 124.58
