"""Claims C1 to C28 under the lecture's assumptions: the worked numbers, and where each fails."""

import math

import numpy as np
import pytest

from formulas.claims import all_claims
from formulas.claims.claim import CLAIM_KINDS, LECTURE, Claim, ComputedNumber, Verdict, figure_text
from formulas.nomenclature.sources import lecture_notes
from formulas.registry import by_name, find, tags
from tests.loops import for_all

SERVING = {f"C{number}" for number in range(1, 29)}
CLAIMS = {claim.id: claim for claim in all_claims() if claim.id in SERVING}

# What an independent recomputation of the lecture's table gives, in the units shown.
NUMBERS = {
    "C1": (80, 120),
    "C2": (40,),
    "C3": (80,),
    "C4": (40, 5),
    "C5": (300, 2400, 300),
    "C6": (5 / 14, 1 / 15, 2.8),
    "C7": (1, 5),
    "C8": (300, 2400),
    "C9": (300,),
    "C10": (8, 32 / 256, 6 / 256),
    "C11": (2400,),
    "C13": (4800, 200_000),
    "C14": (14.4,),
    "C15": (40, 30),
    "C16": (50, 120_000, 128_000),
    "C17": (781.25, 1000, 1562.5, 2343.75),
    "C18": (1300 / 370, 1 / 3),
    "C19": (4, 256 / 72, 4 * 72 / 256),
    "C20": (32 * 7.168 * 2 * 63 / 64,),
    "C21": (50, 4, 6, 6.828427),
    "C22": (1.5, 480, 800_000),
    "C23": (2400, 5),
    "C24": (1600 / 72,),
    "C25": (1600 / 72, 1000 / 72, 600 / 72),
    "C26": (9, 0.8e12 / (72 * 20e12) * 1e3),
    "C27": (6, 8, 30, 40),
    "C28": (13.824, 100 / 13.5),
}
# Whose numbers all come out within the lecture's rounding from its own inputs.
REPRODUCED = {
    "C1", "C2", "C3", "C6", "C7", "C8", "C9", "C11", "C13", "C14", "C15", "C20", "C21", "C23",
    "C24", "C25", "C28",
}  # fmt: skip


def of(name, **case):
    """The value of an equation of the catalogue at a case."""
    run = find(name).numpy()
    return run(**{key: case[key] for key in run.kernel.names})


def test_every_serving_claim_is_there_once():
    """C1 to C28, in order."""
    ids = [claim.id for claim in all_claims() if claim.id in SERVING]
    assert ids == [f"C{number}" for number in range(1, 29)]


@for_all("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_every_serving_claim_rests_on_equations_that_bear_its_id(claim):
    """A claim names what it rests on, worked numbers too; test_registry.py checks all of it."""
    assert set(claim.equations) <= by_name().keys()
    assert {each.equation for each in claim.worked} <= set(claim.equations)
    assert any(claim.id in tags(each) for each in claim.equations)
    assert claim.why.endswith(".")
    assert claim.kind in CLAIM_KINDS


@for_all("name", NUMBERS)
def test_worked_numbers(name):
    """What the equations make of the lecture's own inputs."""
    assert CLAIMS[name].values() == pytest.approx(NUMBERS[name], rel=1e-6)


def test_which_claims_reproduce():
    """Whether each number that the lecture gives comes out within its rounding."""
    judged = {name: Verdict(claim.compared()).word for name, claim in CLAIMS.items()}
    assert {name for name, word in judged.items() if word == "holds"} == REPRODUCED
    assert {name for name, word in judged.items() if word == "unnumbered"} == {"C12"}


def test_only_claims_without_numbers_have_no_worked_numbers():
    """Where nothing is worked, there is a formula, or a physical record in the planner."""
    silent = {name for name, claim in CLAIMS.items() if not claim.worked}
    assert silent == {"C12"}


def test_a_claim_of_no_known_kind_is_refused():
    """Kinds are a closed list."""
    with pytest.raises(
        ValueError, match="unknown kind 'guess'; known: derived, data, name, rumour"
    ):
        Claim("C0", "", lecture_notes.at(""), "", "", kind="guess")


def test_assumptions_on_top_change_the_numbers():
    """With data-sheet FLOP and the same rates, the critical batch of a dense model is halved."""
    assert CLAIMS["C8"].values({"c_fwd": 2}) == pytest.approx((150, 1200))


def test_numbers_are_shown_to_four_digits():
    """A unit follows, a percent sign without a space."""
    assert figure_text(2400.0) == "2,400"
    assert figure_text(14.4, "ms") == "14.4 ms"
    assert figure_text(2.592e14) == "2.592e+14"
    assert figure_text(30, "%") == "30%"
    assert ComputedNumber("steps", "trains_per_second").value(LECTURE) == pytest.approx(50)


# -- what the statements leave out -----------------------------------------------------------------


def test_a_summary_has_the_direction_of_sparsity_wrong():
    """C11: the critical batch rises with the inactive parameters, by whichever name."""
    inputs = {name: float(LECTURE[name]) for name in ("F", "W", "b_w", "c_fwd", "N_active")}
    dense, sparse = (of("rule_of_thumb", **inputs, N_total=n * 1e11) for n in (1, 8))
    assert (dense, sparse) == (300, 2400)
    by_share = find("critical_batch_by_share").numpy()
    assert by_share(**inputs, N_total=8e11) == pytest.approx(2400)


def test_steps_shorter_than_the_drain_time_exist():
    """C15: weights of 800 GB in a rack of 20.7 TB can be read in 4 % of the drain time."""
    rack = {"M": 72 * 288e9, "W": 72 * 20e12, "N_total": 8e11, "b_w": 1.0}
    drain, floor = of("drain_time", **rack), of("latency_floor", **rack)
    assert floor < drain
    assert floor / drain == pytest.approx(of("floor_over_drain", **rack))


def test_a_full_memory_is_read_in_the_drain_time():
    """C14: the largest batch that fits makes a step exactly as long as the drain time."""
    rack = {"M": 72 * 288e9, "W": 72 * 20e12, "N_total": 8e11, "b_w": 1.0}
    caches = {"L_ctx": 2e5, "b_kv": 5000 / 3}
    batch = of("largest_batch", **rack, **caches)
    step = of("memory_time", **rack, **caches, B=batch)
    assert step == pytest.approx(of("drain_time", **rack))


def test_waits_of_uniform_arrivals():
    """C15: the mean over many moments is 1.5 intervals and none exceeds two."""
    moments = (np.arange(100_000) + 0.5) / 100_000
    waits = find("arrival_wait").numpy("u_arr")(moments, T_step=1.0)
    assert waits.mean() == pytest.approx(find("mean_wait").numpy()(T_step=1.0))
    assert waits.max() == pytest.approx(find("longest_wait").numpy()(T_step=1.0), rel=1e-4)


def test_waits_of_bursts_and_full_departures_are_longer():
    """C15 fails where all arrive just after a departure, and where departures leave full."""
    mean = find("mean_wait").numpy()(T_step=1.0)
    assert find("arrival_wait").numpy()(u_arr=0.01, T_step=1.0) > mean
    assert find("longest_wait_full").numpy()(j_full=3, T_step=1.0) == 5


@pytest.mark.parametrize(("racks", "slow"), [(2, 8), (4, 8), (2, 18), (5, 1.1)])
def test_the_exchange_over_racks_by_hand(racks, slow):
    """C21: 1/R of the bytes stays, the rest leaves, each at its own rate."""
    kept, left = 1 / racks / 1.0, (racks - 1) / racks * slow
    found = of("scale_out_penalty", n_span=racks, r_up=slow, r_out=1.0)
    assert found == pytest.approx(max(kept, left))


def test_the_one_rack_bound_is_broken_by_a_fast_enough_network():
    """C21 fails below the break-even slowdown: two racks at 1.5 are no slower than one."""
    even = of("break_even_slowdown", n_span=2)
    assert even == 2
    assert of("scale_out_penalty", n_span=2, r_up=1.5, r_out=1.0) < 1
    assert of("scale_out_penalty", n_span=2, r_up=2.0, r_out=1.0) == 1


def test_enough_racks_recover_the_speed_but_not_the_cost():
    """C21: the same batch over seven racks is exchanged faster, by seven times the chips."""
    even = find("racks_that_recover").numpy()(x_slow=8.0)
    for racks, faster in ((6, False), (7, True)):
        penalty = of("scale_out_penalty", n_span=racks, r_up=8.0, r_out=1.0)
        assert (penalty / racks < 1) == faster == (racks > even)
        assert penalty > 1


def test_clark_law_against_its_own_loss():
    """C18: the effective parameters give a dense model the loss of the routed one."""
    law = {"a_route": 0.082, "b_route": 0.108, "c_route": 0.009}
    first, limit = 1.847, 314.478
    hat = of("saturated_experts", n_experts=64, E_first=first, E_limit=limit)
    size = of("effective_parameters", **law, N_active=3.7e8, one_param=1, E_hat=hat, E_first=first)

    def loss(parameters, experts):
        n, e = math.log10(parameters), math.log10(experts)
        return -0.082 * n - 0.108 * e + 0.009 * n * e

    assert loss(size, first) == pytest.approx(loss(3.7e8, hat))
    assert size == pytest.approx(1.369e9, rel=1e-3)


@pytest.mark.parametrize(("experts", "saturated"), [(1, 1.847), (1e12, 314.478)])
def test_experts_saturate_at_both_ends(experts, saturated):
    """C18: a dense model counts as E_first experts, and no number as more than E_limit."""
    found = of("saturated_experts", n_experts=experts, E_first=1.847, E_limit=314.478)
    assert found == pytest.approx(saturated)


def test_expert_bytes_of_deepseek_v3():
    """C20: eight vectors of 7168 there in one byte and back in two: 172 kB before the own share."""
    case = {"k_experts": 8, "h_exp": 7168, "b_disp": 1, "b_comb": 2}
    assert of("expert_layer_bytes", **case, n_group=1e12) == pytest.approx(172_032)
    whole = of("expert_bytes", **case, n_group=1e12, n_moe=58)
    assert whole == pytest.approx(9.98e6, rel=1e-3)


def test_what_a_slow_mode_saves_depends_on_the_batch():
    """C7 fails below the critical batch, and with long caches there is less to save."""
    case = {name: float(LECTURE[name]) for name in ("F", "W", "b_w", "c_fwd", "m_pos")}
    case |= {"N_active": 1e11, "N_total": 8e11, "b_kv": 5000 / 3}
    save = find("slow_saving").numpy()
    assert save(**case, B=4800.0, L_ctx=0.0) == 1
    assert save(**case, B=480.0, L_ctx=0.0) == pytest.approx(5)
    assert save(**case, B=480.0, L_ctx=2e6) == pytest.approx(1.5)
