"""Coefficients of a user's own law that no law of language could have are told, not tried."""

import random
from dataclasses import replace

import pytest

import planner
from planner.catalogue.scaling_laws import law, law_names
from planner.laws.scaling_law import law_from_record
from planner.text.errors import FieldError, InputError
from planner.token_costs.budget_task import law_terms
from tests.loops import for_all

DENSE = {"loss_min": 1.8, "A_N": 480, "B_D": 2000, "alpha_N": 0.35, "beta_D": 0.37}
ROUTED = {"a_route": 0.08, "b_route": 0.11, "c_route": 0.009, "d_route": 1.1, "E_first": 1.8,
          "E_limit": 300, "x_routed": 0.31}  # fmt: skip
KAPLAN = {"alpha_N": 0.076, "alpha_D": 0.103, "N_c": 6.4e13, "D_c": 1.8e13}

MISTAKES = {
    "a steep exponent": ("chinchilla", DENSE | {"beta_D": 30}, "beta_D: expected 0.001 to 10"),
    "a flat exponent": ("chinchilla", DENSE | {"alpha_N": 1e-9}, "alpha_N: expected 0.001 to 10"),
    "a floor above guessing": ("chinchilla", DENSE | {"loss_min": 1e300}, "loss_min: expected"),
    "a level beyond numbers": ("chinchilla", DENSE | {"A_N": 1e308}, "A_N: expected 1e-100 to"),
    "a logarithm beyond them": (
        "chinchilla", DENSE | {"A_N": {"value": 500.0, "ln": True}}, "A_N.value: expected 1e-100"),
    "an interval without its value": (
        "chinchilla", DENSE | {"A_N": {"value": 480, "low": 500, "high": 600}},
        "A_N: expected low <= value <= high, got 500, 480, 600"),
    "fewer experts at the limit": ("clark", ROUTED | {"E_limit": 1.2}, "E_limit: expected more"),
    "no experts at first": ("clark", ROUTED | {"E_first": 1e-15}, "E_first: expected 0.1 to"),
    "more routed than there is": ("clark", ROUTED | {"x_routed": 3}, "x_routed: expected 0.001"),
    "a power of a power": ("kaplan", KAPLAN | {"alpha_N": 9.7}, "alpha_D: N_c to the power"),
}  # fmt: skip


@for_all("name", MISTAKES)
def test_a_coefficient_beyond_every_law_is_told_at_its_key(name):
    """One sentence, with what was expected."""
    form, coefficients, told = MISTAKES[name]
    asked = {"problem": "budget", "cost": "1e24 FLOP",
             "law": {"form": form, "coefficients": coefficients}}  # fmt: skip
    with pytest.raises(InputError) as caught:
        planner.solve(asked)
    assert told in str(caught.value)


def test_parameters_that_raise_the_loss_are_refused():
    """Far beyond its sparsities a joint law turns round: no budget is sought there."""
    joint = law_from_record(law("ludziejewski-2025"))
    joint = replace(joint, values={**joint.values, "gamma_E": 0.08})
    with pytest.raises(FieldError, match="more parameters, or more tokens, raise the loss"):
        law_terms(joint, 20.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_law_with_coefficients_that_nobody_fitted_is_answered_or_refused(seed):
    """Every form with coefficients scaled by up to thirty orders of magnitude, never a fault."""
    rng = random.Random(seed)
    names = [each for each in law_names() if law(each).form != "sigmoid"]
    for _ in range(40):
        entry = law(rng.choice(names))
        found = {name: each.value for name, each in entry.coefficients.items()}
        for name in rng.sample(list(found), rng.choice((1, 1, 2, len(found)))):
            found[name] *= 10 ** rng.uniform(*rng.choice(((-1, 1), (-3, 3), (-30, 30))))
        own = {"form": entry.form, "coefficients": found, "settings": dict(entry.settings)}
        asked = {"problem": "budget", "law": own, "draws": 0, "extrapolate": True}
        aim = rng.choice(({"cost": 1e22}, {"quality": {"loss": 2.2}},
                          {"quality": {"like": {"n_active": 1e10}}}))  # fmt: skip
        try:
            planner.solve(asked | aim | {"inference": {"tokens": 1e12}})
        except InputError:
            continue
