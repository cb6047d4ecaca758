"""Claims C29 to C57 under the lecture's assumptions: the worked numbers, and where each fails."""

import math

import pytest

from formulas.claims import all_claims
from formulas.claims.claim import CLAIM_KINDS, Verdict
from formulas.registry import by_name, tags
from tests.loops import for_all

IDS = [f"C{number}" for number in range(29, 58)]
CLAIMS = {claim.id: claim for claim in all_claims() if claim.id in IDS}

# What an independent recomputation of the lecture's table gives, in the units shown.
NUMBERS = {
    "C29": (300 / 11, 700 / 39, 300 / 19, 3, 0),
    "C30": (6, 2),
    "C31": (1, 9),
    "C32": (1, 2 / 3, 0.3, 0.2),
    "C33": (1, 1 / 3),
    "C34": (259.2, 198.72, 151.2),
    "C35": (100, 75, 129.6),
    "C36": (math.log(3) / math.log(100), math.log(2) / math.log(100)),
    "C37": (129.6, 259.2 * (1 - math.exp(-1)), 0.5),
    "C38": (5000 / 3, 2500 / 3, 10_000 / 3),
    "C39": (163.84, 2.048),
    "C40": (5000 / 3, 2000 / 3, 1000),
    "C41": (300_000, 3),
    "C42": (5000 / 3 * 3600 / 288e9,),
    "C43": (14.4, 0.5, 150),
    "C44": (2880, 2880),
    "C45": (14.4,),
    "C46": (2 * math.sqrt(16 * 2e5), 2 * math.sqrt(16 * 2e7), 50_128, 5_000_128),
    "C47": ((72 * 288e9 - 8e11) / (2400 * 5000 / 3), 7.2e6, 25 / 3),
    "C48": (50 / 3, 10 / 3),
    "C50": (8, 4 / 3, 7.75, 16),
    "C54": (60 / 4 * 32 * 2, 32 * 2),
    "C55": (2400, 2400),
    "C56": (18, 1, 1575),
    "C57": (100 * 800 / (72 * 288),),
}


def test_every_claim_is_there_once_and_in_order():
    """C1 to C57."""
    assert [claim.id for claim in all_claims()] == [f"C{number}" for number in range(1, 58)]


@for_all("name", IDS)
def test_every_claim_rests_on_equations_that_bear_its_id(name):
    """All but the rumour; what is worked is among them. That all checks test_registry.py tests."""
    claim = CLAIMS[name]
    assert set(claim.equations) <= by_name().keys()
    assert {each.equation for each in claim.worked} <= set(claim.equations)
    assert any(name in tags(each) for each in claim.equations) or claim.kind == "rumour"
    assert claim.why.endswith(".")
    assert claim.kind in CLAIM_KINDS


@for_all("name", NUMBERS)
def test_worked_numbers(name):
    """What the equations make of the lecture's own inputs."""
    assert CLAIMS[name].values() == pytest.approx(NUMBERS[name], rel=1e-4)


def test_which_claims_reproduce():
    """Whether each number that the lecture gives comes out within its rounding."""
    words = {name: Verdict(claim.compared()).word for name, claim in CLAIMS.items()}
    right = {name for name, word in words.items() if word == "holds"}
    assert right == {
        "C30", "C33", "C37", "C38", "C42", "C43", "C44", "C46", "C47", "C48", "C54",
        "C55",
    }  # fmt: skip
    assert words["C39"] == words["C57"] == "far"


def test_a_rumour_rests_on_nothing():
    """C51 alone: no equation, no number."""
    rumours = [claim for claim in all_claims() if claim.kind == "rumour"]
    assert [claim.id for claim in rumours] == ["C51"]
    assert not rumours[0].equations
    assert not rumours[0].worked


def test_only_claims_without_numbers_have_no_worked_numbers():
    """An inversion is a formula, a rumour is nothing, chips and models stand in the planner."""
    assert {name for name, claim in CLAIMS.items() if not claim.worked} == {
        "C49", "C51", "C52", "C53",
    }  # fmt: skip


@pytest.mark.parametrize("result", [4, 5, 6, 7, 10])
def test_results_are_derived_and_checked(result):
    """Each result beyond the lecture stands in derivations of its own."""
    found = [name for name in by_name() if f"result {result}" in tags(name)]
    assert len(found) >= 3
    assert all(by_name()[name].check() for name in found)
