"""Scaling laws as a budget uses them: loss, monomials, range, intervals, files."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from formulas.registry import by_name
from formulas.scaling.power_laws import rl_reward
from planner.catalogue.scaling_laws import law, law_names
from planner.laws.law_forms import FORMS, reward_arithmetic
from planner.laws.laws import scaling_law
from planner.laws.scaling_law import ALLOCATIONS
from planner.text.errors import CatalogueError, FieldError, InputError
from planner.token_costs.budget_task import LossTarget
from planner.token_costs.optimum import NoBudget, solve_one
from planner.token_costs.posynomial_form import Saturation
from tests.cases.budget import question, solved
from tests.loops import for_all

LOSSES = [
    name
    for name in law_names()
    if law(name).form in FORMS and "loss" not in FORMS[law(name).form].lacks
]
ROUTED = "besiroglu-2024 + clark-2022-s-base"
BESIROGLU = scaling_law("besiroglu-2024")
MUENNIGHOFF = scaling_law("muennighoff-2023")

TOML = """
form = "chinchilla"
title = "ours"
source = "runs of spring"
as_of = "2026-05"
range.n = [1e8, 1e10]
range.d = [2e9, 2e11]
[coefficients]
loss_min = 1.7
A_N = { value = 6.0, ln = true }
B_D = { value = 1000, error = 300 }
alpha_N = { value = 0.34, error = 0.02 }
beta_D = { value = 0.33, error = 0.02 }
"""


def of(name, **case):
    """The value of an equation of the catalogue."""
    return by_name()[name].numpy()(**case)


# --- what a law says ------------------------------------------------------------------------------


@for_all("name", [*LOSSES, ROUTED])
def test_monomials_are_the_equation(name):
    """Floor and monomials give what the law's own equation gives, at every sparsity."""
    found = scaling_law(name)
    rng = np.random.default_rng(0)
    n, d = np.exp(rng.uniform(np.log(1e7), np.log(1e13), (2, 20)))
    for sparsity in (1.0, 8.0, 43.0):
        if sparsity != (found.fixed_sparsity or sparsity):
            continue
        terms = found.terms(sparsity)
        if found.form == "repetition":
            n = np.minimum(n, found.fed(1.0) * d)  # models that are fed
        if terms is not None:
            assert terms.loss(n, d) == pytest.approx(found.loss(n, d, sparsity=sparsity), rel=1e-12)


@for_all("name", [*LOSSES, ROUTED])
def test_more_of_either_never_harms(name):
    """Loss falls with size and with tokens, and stays above the floor."""
    found = scaling_law(name)
    sparsity = found.fixed_sparsity or 4.0
    for n, d in ((np.geomspace(1e8, 1e11, 9), 1e12), (1e9, np.geomspace(2e10, 1e14, 9))):
        losses = found.loss(n, d, sparsity=sparsity)
        assert (np.diff(losses) <= 0).all()
        terms = found.terms(sparsity)
        assert terms is None or (losses > terms.floor).all()


def test_losses_broadcast():
    """Sizes down, tokens across."""
    found = BESIROGLU.loss(np.array([[1e9], [1e10]]), np.array([1e10, 1e11, 1e12]))
    assert found.shape == (2, 3)
    assert found[1, 2] == pytest.approx(1.8172 + 482.01 * 1e10**-0.3478 + 2085.43 * 1e12**-0.3658)


def test_the_outer_exponent_is_undone():
    """Kaplan: a loss of L leaves L^(1/alpha_D) to the monomials."""
    terms = scaling_law("kaplan-2020").terms()
    assert terms.power == pytest.approx(0.103)
    at = sum(float(term(1e9, 1e10)) for term in terms.terms)
    assert terms.limit(2.4197) == pytest.approx(at, rel=1e-3)
    assert BESIROGLU.terms().limit(1.8) == 0.0


@pytest.mark.parametrize(
    ("name", "ask", "why"),
    [
        ("besiroglu-2024", {"sparsity": 8.0}, "dense models and knows no sparsity"),
        ("besiroglu-2024", {"unique": 1e10}, "fresh tokens and knows no repetition"),
        ("llama-3-2024", {}, "how to split a given arithmetic and gives no loss"),
        ("minicpm-2024", {}, "gives no loss"),
    ],
)
def test_what_a_law_cannot_express_is_refused_by_name(name, ask, why):
    """One sentence with the law and the reason."""
    with pytest.raises(FieldError, match=f"law: {name}: .*{why}"):
        scaling_law(name).loss(1e9, 2e10, **ask)


def test_a_law_of_reward_is_no_law_of_loss():
    """And says where a loss is to be had."""
    with pytest.raises(FieldError, match=r"scalerl-2025 gives a reward .* besiroglu-2024"):
        scaling_law("scalerl-2025")


def test_choices_that_are_lacking_are_listed():
    """So that a budget can refuse before it computes."""
    assert set(BESIROGLU.lacks) == {"sparsity", "repetition", "rl"}
    assert "tokens" in scaling_law("clark-2022-s-base").lacks
    assert "interval" in scaling_law("kaplan-2020").lacks
    assert set(MUENNIGHOFF.lacks) == {"sparsity", "rl", "interval"}
    assert scaling_law("krajewski-2024").fixed_sparsity == 43
    assert BESIROGLU.fixed_sparsity == 1
    assert scaling_law("abnar-2025").fixed_sparsity is None


def test_granularity_is_chosen():
    """Finer experts help, by the law's own term."""
    fine = scaling_law("krajewski-2024")
    coarse = replace(fine, values={**fine.values, "G_fine": 1.0})
    gap = coarse.loss(1e9, 1e11, sparsity=43.0) - fine.loss(1e9, 1e11, sparsity=43.0)
    assert gap == pytest.approx(2.1 * (1 - 16**-0.58) * 43e9**-0.115, rel=1e-9)


def test_a_routed_law_upon_a_dense_one():
    """The loss of the dense law at the effective parameters of the routed one."""
    both, routing = scaling_law(ROUTED), law("clark-2022-s-base").values
    experts = 1 + 7 / 0.31
    start = 1 / (1 / routing["E_first"] - 1 / routing["E_limit"])
    saturated = 1 / (1 / (experts - 1 + start) + 1 / routing["E_limit"])
    below = routing["a_route"] - routing["c_route"] * math.log10(routing["E_first"])
    above = routing["a_route"] - routing["c_route"] * math.log10(saturated)
    size = 1e9 ** (above / below) * (saturated / routing["E_first"]) ** (routing["b_route"] / below)
    assert both.loss(1e9, 1e11, sparsity=8.0) == pytest.approx(BESIROGLU.loss(size, 1e11))
    assert both.loss(1e9, 1e11) == pytest.approx(BESIROGLU.loss(1e9, 1e11))
    assert both.limits["sparsity"] == law("clark-2022-s-base").range["sparsity"]
    assert both.limits["n"] == (5.73e7, 1.31e9)  # what both were fitted on
    again = scaling_law({"law": "besiroglu-2024", "routing": "clark-2022-s-base"})
    assert again.values == both.values


@pytest.mark.parametrize(
    ("active", "total", "measured"),
    [
        (368123904, 7503224832, 2.2108),
        (368123904, 368123904, 2.4633),
        (1308819456, 1308819456, 2.2420),
    ],
)
def test_measured_losses_of_routed_models(active, total, measured):
    """Three runs of Clark et al.: S-BASE with 64 experts, and two dense ones."""
    refit = scaling_law("clark-2022-refit")
    found = refit.loss(active, 1.3e11, sparsity=total / active)
    assert float(found) == pytest.approx(measured, rel=0.012)


def test_routing_wants_a_dense_law_of_size_and_tokens():
    """Nothing else can bear it."""
    with pytest.raises(FieldError, match="can bear a routed one"):
        scaling_law("kaplan-2020 + clark-2022-hash")


# --- repeated data --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "tokens", "expected"),
    [(6.34e9, 2.42e11, 2.2256440889984477), (8.67e9, 1.78e11, 2.2269634075087867)],
)
def test_repeated_data(size, tokens, expected):
    """Both values that Muennighoff et al. print, to twelve digits."""
    found = MUENNIGHOFF.loss(size, tokens, unique=2.5e10)
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_no_repetition_exceeds_the_ceiling():
    """16.4 times the distinct tokens."""
    reach = np.array([MUENNIGHOFF.values["R_half"]])
    repeated = Saturation(np.log([1e10]), reach)
    assert np.exp(repeated.ceiling) == pytest.approx(16.388e10, rel=1e-4)
    assert repeated.at(np.log([1e14]))[0] == pytest.approx(repeated.ceiling)
    assert np.exp(repeated.at(np.log([4e10]))[0]) == pytest.approx(3.726e10, rel=1e-3)


# --- range ----------------------------------------------------------------------------------------


def test_values_outside_the_range_are_named():
    """One sentence each, with what was fitted and how far away the value is."""
    told = BESIROGLU.outside(7e10, 1e12, 1.0)
    assert len(told) == 2
    assert told[0] == (
        "besiroglu-2024 was fitted on 57.3 M–16.2 B active parameters; 70 B is 4.32× the largest"
    )
    assert "1e+23 FLOP" in scaling_law("llama-3-2024").outside(arithmetic=1e23)[0]
    assert "0.5 times" not in " ".join(told)


def test_values_inside_the_range_are_not():
    """Nor those of a quantity whose range no one says."""
    assert BESIROGLU.outside(1e9, 2e10, 1.0) == []
    assert BESIROGLU.outside(epochs=4.0) == []
    assert scaling_law("abnar-2025").outside(1e15, 1e15, 50.0) == []
    assert "of the smallest" in BESIROGLU.outside(1e6)[0]
    assert "epochs" not in BESIROGLU.limits
    assert BESIROGLU.limits["n"] == (5.73e7, 1.62e10)


# --- intervals ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """2,000 laws drawn from the covariance, as arrays by symbol."""
    laws = BESIROGLU.draws(2000, seed=1)
    return {name: np.array([each.values[name] for each in laws]) for name in BESIROGLU.values}


@pytest.mark.parametrize(
    ("name", "published", "room"),
    [("A_N", 124.58, 0.08), ("B_D", 1293.23, 0.3), ("loss_min", 0.026, 0.05),
     ("alpha_N", 0.015, 0.05), ("beta_D", 0.021, 0.05)],
)  # fmt: skip
def test_drawn_laws_have_the_published_standard_errors(drawn, name, published, room):
    """Those of Besiroglu's notebook; that of B_D has a tail which a normal ln B_D has not."""
    assert drawn[name].std() == pytest.approx(published, rel=room)


def test_the_split_of_arithmetic_has_its_published_error(drawn):
    """a = beta/(alpha + beta): 0.020, and 0.051 from the tenth to the ninetieth percentile."""
    split = drawn["beta_D"] / (drawn["alpha_N"] + drawn["beta_D"])
    assert split.std() == pytest.approx(0.020, abs=0.001)
    assert np.ptp(np.percentile(split, [10, 90])) == pytest.approx(0.051, abs=0.003)


def test_levels_follow_their_exponents(drawn):
    """Drawn together the loss at the runs is known to 0.01; drawn apart it would not be at all."""
    assert np.corrcoef(np.log(drawn["B_D"]), drawn["beta_D"])[0, 1] > 0.999
    assert loss(drawn, 8.5e8, 1.7e10).std() < 0.005
    rng = np.random.default_rng(0)
    apart = {name: rng.permutation(values) for name, values in drawn.items()}
    assert loss(apart, 8.5e8, 1.7e10).std() > 0.1


def loss(values, n, d):
    """The law by hand."""
    size = values["A_N"] * n ** -values["alpha_N"]
    return values["loss_min"] + size + values["B_D"] * d ** -values["beta_D"]


def test_intervals_widen_away_from_the_runs(drawn):
    """0.003 at the centre, 0.018 at 6e11 parameters, as resampling the points gives."""
    assert loss(drawn, 1e9, 2e10).std() == pytest.approx(0.003, abs=0.001)
    assert loss(drawn, 6e11, 1e13).std() == pytest.approx(0.018, abs=0.002)


def test_standard_errors_alone_hold_the_loss_at_the_centre():
    """Exponents have their errors, the loss at the centre of the ranges has none worth naming."""
    bare = replace(BESIROGLU, covariance=None)
    laws = bare.draws(1500, seed=2)
    values = {name: np.array([each.values[name] for each in laws]) for name in bare.values}
    assert values["beta_D"].std() == pytest.approx(0.02, rel=0.06)
    assert values["loss_min"].std() == pytest.approx(0.03, rel=0.06)
    low, high = bare.limits["n"]
    few, many = bare.limits["d"]
    at_centre = loss(values, math.sqrt(low * high), math.sqrt(few * many))
    assert at_centre.std() < 1e-9
    assert loss(values, 6e11, 1e13).std() < 0.05
    split = values["beta_D"] / (values["alpha_N"] + values["beta_D"])
    assert split.std() == pytest.approx(0.020, abs=0.0015)


def test_a_pair_errs_by_both_of_its_laws():
    """Wider than the dense law alone where experts matter; the same where there are none."""
    pair = scaling_law("besiroglu-2024 + clark-2022-refit")
    laws = pair.draws(300, seed=4)
    spread = {
        sparsity: np.std([float(each.loss(1e9, 1e11, sparsity=sparsity)) for each in laws])
        for sparsity in (1.0, 32.0)
    }
    assert spread[32.0] > 1.5 * spread[1.0]
    assert spread[32.0] < 0.05
    assert "sparsity" not in pair.lacks


def test_draws_repeat():
    """One seed, one set."""
    first, again, other = (BESIROGLU.draws(3, seed=s)[2].values for s in (5, 5, 6))
    assert first == again
    assert first != other


def test_a_published_interval_is_an_error():
    """Hoffmann's first approach: from the tenth to the ninetieth percentile."""
    sizes = [each.allocated(1e21)[0] for each in scaling_law("hoffmann-2022-approach-1").draws(200)]
    assert 0 < np.std(np.log(sizes)) < 0.05


def test_no_interval_without_standard_errors():
    """Nor with those of exponents whose levels nobody can place."""
    with pytest.raises(FieldError, match="kaplan-2020: no standard errors"):
        scaling_law("kaplan-2020").draws(3)
    with pytest.raises(FieldError, match="alpha_N and its level err together is not known"):
        replace(BESIROGLU, covariance=None, limits={}).draws(3)


# --- size and tokens for an arithmetic ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arithmetic", "size", "tokens"),
    [
        ("besiroglu-2024", 1e20, 8.535e8, 1.953e10),
        ("besiroglu-2024", 5.76e23, 7.225e10, 1.329e12),
        ("besiroglu-2024", 3.8e25, 6.187e11, 1.024e13),
        ("hoffmann-2022-approach-3", 5.76e23, 4.036e10, 2.379e12),
        ("hoffmann-2022-approach-3-rounded", 3.8e25, 2.135e11, 2.967e13),
        ("llama-3-2024", 3.8e25, 3.89e11, 1.629e13),
    ],
)
def test_optima(name, arithmetic, size, tokens):
    """The rows of the table of published laws."""
    law = scaling_law(name)
    if law.form in ALLOCATIONS:
        pair = law.allocated(arithmetic)
    else:
        best = solved(question(name, limit=arithmetic))
        pair = (best.n_active, best.pretrain)
    assert pair == pytest.approx((size, tokens), rel=1e-3)


def test_an_optimum_is_the_closed_form():
    """Kaplan's and Hoffmann's forms, to the digits of a double."""
    units = {"c_fwd": 2}
    best = solved(question("kaplan-2020", limit=1e23))
    closed = of(
        "kaplan_optimal_parameters", **units, C_pt=1e23, **scaling_law("kaplan-2020").values
    )
    assert best.n_active == pytest.approx(closed, rel=1e-9)


def test_an_optimum_of_repeated_data():
    """Against every size on a fine grid."""
    best = solved(question("muennighoff-2023", limit=1e23, unique=1e10))
    sizes = np.geomspace(1e9, 1e12, 20001)
    losses = MUENNIGHOFF.loss(sizes, 1e23 / 6 / sizes, unique=1e10)
    assert best.loss <= losses.min() * (1 + 1e-12)
    assert best.n_active == pytest.approx(sizes[losses.argmin()], rel=1e-3)


def test_twenty_tokens_per_parameter():
    """Equal exponents: one ratio for every arithmetic."""
    for arithmetic in (1e20, 1e24):
        best = solved(question("muennighoff-2023", limit=arithmetic))
        assert best.pretrain / best.n_active == pytest.approx(19.61, rel=1e-3)


@pytest.mark.parametrize("name", ["besiroglu-2024", "kaplan-2020", "abnar-2025"])
def test_a_loss_becomes_the_model_that_reaches_it(name):
    """There and back."""
    there = solved(question(name, limit=3e23))
    back = solved(question(name, required=LossTarget(loss=there.loss)))
    assert back.n_active == pytest.approx(there.n_active, rel=1e-7)
    assert back.total == pytest.approx(3e23, rel=1e-7)


def test_no_model_reaches_the_floor():
    """The law, its floor, and what was asked."""
    none = solve_one(question(required=LossTarget(loss=1.8)))
    assert isinstance(none, NoBudget)
    assert none.short_by == pytest.approx(BESIROGLU.values["loss_min"] / 1.8)
    assert none.reason == "the law besiroglu-2024 has 1.817 that no size and no data removes"


def test_rules_need_a_prefactor():
    """Exponents alone are no rule."""
    with pytest.raises(FieldError, match="needs a_size and k_size or a_tokens and k_tokens"):
        scaling_law({"form": "allocation", "coefficients": {"a_size": 0.49}})


@for_all(
    ("size", "second", "third", "tokens"),
    [
        (4e8, 1.84e19, 2.21e19, (7.7e9, 9.2e9)),
        (1e9, 1.20e20, 1.62e20, (20.0e9, 27.1e9)),
        (1e10, 1.32e22, 2.46e22, (219.5e9, 410.1e9)),
        (67e9, 6.88e23, 1.71e24, (1.7e12, 4.1e12)),
        (280e9, 1.18e25, 3.52e25, (7.1e12, 20.1e12)),
        (520e9, 4.19e25, 1.36e26, (13.4e12, 43.5e12)),
        (1e12, 1.59e26, 5.65e26, (26.5e12, 94.1e12)),
        (1e13, 1.75e28, 8.55e28, (292.0e12, 1425.5e12)),
    ],
)
def test_hoffmann_table_a3(size, second, third, tokens):
    """The second approach to 1 % (67B: 4 %), the third, from its coefficients, to 8 %."""
    room = 0.04 if size == 67e9 else 0.011
    pair = scaling_law("hoffmann-2022-approach-2").allocated(second)
    assert pair == pytest.approx((size, tokens[0]), rel=room)
    best = solved(question("hoffmann-2022-approach-3", limit=third))
    assert best.n_active == pytest.approx(size, rel=0.08)
    assert best.pretrain == pytest.approx(tokens[1], rel=0.11)


def test_hoffmann_at_a_zettaflop():
    """The first approach asks for 2.86e9 parameters at 1e21 FLOP."""
    size, _ = scaling_law("hoffmann-2022-approach-1").allocated(1e21)
    assert size == pytest.approx(2.86e9, rel=0.015)


def test_a_law_of_size_alone_cannot_split():
    """It does not know tokens."""
    with pytest.raises(FieldError, match="clark-2022-s-base: it was fitted at one number"):
        scaling_law("clark-2022-s-base").need("tokens")


# --- rewards --------------------------------------------------------------------------------------


def test_a_reward_and_back():
    """Half of the gain at C_mid; the arithmetic of a reward gives it again."""
    own = {"C_mid": 1e22, "R_start": 0.3}
    sigmoid = partial(rl_reward.numpy("C_rl"), **law("scalerl-2025").values, **own)
    assert sigmoid(1e22) == pytest.approx((0.3 + 0.61) / 2)
    for reward in (0.31, 0.5, 0.609):
        assert sigmoid(reward_arithmetic(reward, **own)) == pytest.approx(reward, rel=1e-12)


def test_a_reward_above_the_ceiling_is_never_reached():
    """GRPO's recipe ends at 0.49."""
    with pytest.raises(FieldError, match=r"from 0\.3 towards 0\.49, which it never reaches; 0\.6"):
        reward_arithmetic(0.6, C_mid=1e22, R_start=0.3, R_most=0.49)


def test_what_belongs_to_the_model_must_be_given():
    """No catalogue knows C_mid and R_start."""
    with pytest.raises(FieldError) as caught:
        reward_arithmetic(0.5)
    assert {path for path, _ in caught.value.faults} == {"rl.C_mid", "rl.R_start"}
    with pytest.raises(CatalogueError, match="unknown law of reward 'scalerl'"):
        reward_arithmetic(0.5, "scalerl", C_mid=1e22, R_start=0.1)


# --- files ----------------------------------------------------------------------------------------


def test_a_law_from_a_file(tmp_path):
    """TOML, and YAML of the same shape, relative to a folder."""
    (tmp_path / "ours.toml").write_text(TOML, encoding="utf-8")
    found = scaling_law("ours.toml", tmp_path)
    assert found.name == "ours"
    assert found.values["A_N"] == pytest.approx(math.exp(6))
    assert found.errors == {"B_D": 300, "alpha_N": 0.02, "beta_D": 0.02}
    assert "interval" not in found.lacks
    assert found.draws(2)[0].values["loss_min"] == 1.7
    (tmp_path / "ours.yaml").write_text(
        "form: chinchilla\ncoefficients: {loss_min: 1.7, A_N: 403.4287934927351, B_D: 1000, "
        "alpha_N: 0.34, beta_D: 0.33}\n",
        encoding="utf-8",
    )
    again = scaling_law(Path("ours.yaml"), tmp_path)
    assert again.loss(1e9, 1e10) == pytest.approx(found.loss(1e9, 1e10))


def test_a_law_with_reinforcement_learning():
    """A term of its own, for those who measured one."""
    values = dict(BESIROGLU.values) | {"B_rl": 40, "beta_rl": 0.3}
    found = scaling_law({"form": "reinforced", "coefficients": values})
    assert "rl" not in found.lacks
    expected = BESIROGLU.loss(1e9, 1e11) + 40 * 1e9**-0.3
    assert found.loss(1e9, 1e11, d_rl=1e9) == pytest.approx(expected)
    assert found.terms().loss(1e9, 1e11, 1e9) == pytest.approx(expected)


@for_all(
    ("change", "path", "message"),
    [
        ({"form": "chinchila"}, "law.form", "expected one of chinchilla"),
        ({"form": "kaplan"}, "law.coefficients", "needs D_c, N_c, alpha_D too"),
        ({"coefficients": {}}, "law.coefficients", "a mapping of numbers"),
        ({"colour": "red"}, "law.colour", "unknown"),
        ({"range": {"n": [1e9]}}, "law.range.n", r"expected \[lowest, highest\]"),
        ({"range": {"N": [1, 2]}}, "law.range.N", "unknown"),
        ({"title": 4}, "law.title", "expected text"),
        ({"settings": {"G_fine": -1}}, "law.settings.G_fine", "positive"),
        ({"covariance": {"of": ["ln Z"]}}, "law.covariance.of", "no coefficient 'Z'"),
    ],
)
def test_a_law_that_is_none_is_refused_by_path(change, path, message):
    """Every fault with its path."""
    given = {"form": "chinchilla", "coefficients": dict(BESIROGLU.values)} | change
    with pytest.raises(FieldError, match=message) as caught:
        scaling_law(given)
    assert path in {at for at, _ in caught.value.faults}


@for_all("value", [-0.3, 0, "0.34", None, math.nan, True, {"error": 1}, {"x": 1}])
def test_a_coefficient_is_a_positive_number(value):
    """Or a mapping with one."""
    given = {"form": "chinchilla", "coefficients": dict(BESIROGLU.values) | {"alpha_N": value}}
    with pytest.raises(FieldError, match=r"law\.coefficients\.alpha_N: expected"):
        scaling_law(given)


def test_faults_of_a_file_have_a_place(tmp_path):
    """File, line and path."""
    file = tmp_path / "bad.yaml"
    file.write_text("form: chinchilla\ncoefficients:\n  A_N: -3\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        scaling_law(file)
    lines = {str(each.line) + each.path for each in caught.value.mistakes}
    assert "3coefficients.A_N" in lines
    with pytest.raises(InputError, match="no such file"):
        scaling_law(tmp_path / "none.toml")


def test_a_file_cannot_name_itself(tmp_path):
    """Nor any other: a pair of laws in a file is of catalogue names."""
    (tmp_path / "ours.toml").write_text('law = "ours.toml"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot name another file, 'ours\.toml'"):
        scaling_law("ours.toml", tmp_path)
    text = 'law = "besiroglu-2024"\nrouting = "clark-2022-hash"\n'
    (tmp_path / "pair.toml").write_text(text, encoding="utf-8")
    assert scaling_law("pair.toml", tmp_path).form == "routed"


def test_correlations_that_cannot_be_are_refused():
    """Three coefficients cannot all be opposed to each other."""
    table = [[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]]
    names = ["alpha_N", "beta_D", "loss_min"]
    covariance = {"of": names, "spread": [0.01, 0.01, 0.01], "correlation": table}
    given = {"form": "chinchilla", "coefficients": dict(BESIROGLU.values), "covariance": covariance}
    with pytest.raises(FieldError, match="no negative variance"):
        scaling_law(given)


def test_errors_larger_than_exponents_leave_no_laws():
    """Said so, instead of fewer draws."""
    with pytest.raises(FieldError, match="most laws drawn from them are none"):
        replace(BESIROGLU, covariance=None, errors={"alpha_N": 50.0, "beta_D": 50.0}).draws(200)


def test_an_unknown_name_is_met_with_the_nearest():
    """As everywhere."""
    with pytest.raises(CatalogueError, match="did you mean 'kaplan-2020'"):
        scaling_law("kaplan-2021")
