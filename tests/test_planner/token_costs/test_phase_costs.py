"""What phases cost and how many tokens are served, by hand and by integrals."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.integrate import quad

from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import chip_rent, given_price
from planner.catalogue.ranges import mfu_range, rent_range
from planner.catalogue.systems import system
from planner.catalogue.training.training_runs import training_rate
from planner.text.errors import CatalogueError, FieldError
from planner.token_costs.phase_costs import (
    PhaseCost,
    SizedShare,
    best_phase,
    listed_of_phases,
    phase_costs,
    price_source,
    price_warnings,
    rl_flop_needed,
    served_tokens,
    spending,
    symbol_values,
)
from planner.token_costs.phase_keys import Inference, Phase, Reward
from planner.token_costs.spending import PhaseTokens
from tests.loops import for_all

YEAR, HOUR = 365.25 * 86400.0, 3600.0
H100 = system("hgx-h100")
SHARES = SizedShare(4e9, np.array([1e9, 4e9, 16e9]), np.array([0.2, 0.4, 0.5]), 0.25, trend=0.33)


def phase(**given: object) -> Phase:
    """A phase of a scenario."""
    return Phase.model_validate(given)


def tokens(pretrain: float = 0.0, rl: float = 0.0, inference: float = 0.0) -> PhaseTokens:
    """Tokens of the phases."""
    return PhaseTokens(pretrain, rl, inference)


# -- one phase ----------------------------------------------------------------------------------


def test_a_share_is_a_line_in_logarithms_between_the_sizes_laid_out():
    """Halfway in logarithms the geometric mean, level beyond both ends."""
    assert SHARES.at(2e9) == pytest.approx(math.sqrt(0.2 * 0.4))
    found = SHARES.at(np.array([1e3, 1e9, 8e9, 16e9, 1e15]))
    assert found == pytest.approx(np.array([0.2, 0.2, math.sqrt(0.4 * 0.5), 0.5, 0.5]))


def test_a_share_that_follows_the_size_makes_the_cost_follow_it():
    """Dearer where it falls short of the plan's, a power below one where it grows."""
    level = PhaseCost("pretrain", 6.0, 0.4)
    sized = replace(level, sized=SHARES)
    assert sized.dearer(2e9) == pytest.approx(0.4 / math.sqrt(0.08))
    assert sized.dearer(np.array([1e9, 4e9])) == pytest.approx(np.array([2.0, 1.0]))
    assert sized.size_power() == 0.75
    assert sized.at_one() == pytest.approx(0.25 * math.log(4e9))
    assert sized.smooth().size_power() == pytest.approx(0.67)
    assert sized.smooth().sized.trend == 0.33
    assert replace(sized, mfu=None).dearer(1e9) == 1.0
    assert (level.dearer(1e9), level.size_power(), level.at_one()) == (1.0, 1.0, 0.0)
    assert level.smooth() is level


def test_what_a_flop_counts():
    """Its price; without one what of the peak is paid for; one where the FLOP alone count."""
    cost = PhaseCost("rl", 3.0, 0.25, 2e-18)
    assert (cost.weight(True), cost.weight(False)) == (2e-18, 4.0)
    assert PhaseCost("rl", 3.0).weight(False) == 1.0
    with pytest.raises(FieldError, match=r"phases\.rl: a cost in USD needs system and mfu"):
        PhaseCost("rl", 3.0, 0.25).weight(True)


def test_what_a_chip_delivers_is_a_share_of_its_peak():
    """None without a chip, or without a share; whose figure it is is told of another chip's."""
    peak = H100.chip.peak("bf16")
    cost = PhaseCost("rl", 3.0, 0.25, system=H100)
    assert cost.delivered == pytest.approx(0.25 * peak)
    assert replace(cost, dtype="fp8").delivered == pytest.approx(0.25 * H100.chip.peak("fp8"))
    assert replace(cost, system=None).delivered is None
    assert replace(cost, mfu=None).delivered is None
    run = training_rate(H100.chip, "bf16", sparse=False)
    assert cost.borrowed is None
    assert replace(cost, rate=replace(run, chip=H100.chip.name)).borrowed is None
    assert replace(cost, rate=replace(run, chip="a100-sxm-80gb")).borrowed == "a100-sxm-80gb"
    assert replace(cost, rate=replace(run, chip="a100-sxm-80gb"), system=None).borrowed is None


def test_what_a_phase_runs_on_is_told_in_hours():
    """System, chip and price of an hour; nothing of a chip that there is none of."""
    price = replace(given_price(2.5 / HOUR), as_of="2026-01-01")
    cost = PhaseCost("rl", 3.0, 0.25, 2e-18, H100, price, "fp8")
    machine = cost.machine()
    assert (machine.system, machine.chip, machine.dtype) == ("hgx-h100", H100.chip.name, "fp8")
    assert machine.usd_per_chip_hour == pytest.approx(2.5)
    assert (machine.mfu, machine.usd_per_flop) == (0.25, 2e-18)
    bare = PhaseCost("rl", 3.0, 0.25).machine()
    assert (bare.system, bare.chip, bare.dtype, bare.usd_per_chip_hour) == (None,) * 4


# -- all phases ---------------------------------------------------------------------------------


def test_every_phase_is_counted_with_its_own_tokens_chip_and_price():
    """Six FLOP a parameter and token to train, `k` a rollout, two to serve; by hand."""
    peak = H100.chip.peak("bf16")
    given = {
        "pretrain": PhaseCost("pretrain", 6.0, 0.4, 2e-18, H100),
        "rl": PhaseCost("rl", 4.5, 0.2, 3e-18, H100),
        "inference": PhaseCost("inference", 2.0, 0.5, 5e-18, H100),
    }
    done = {"pretrain": 6 * 3e9 * 7e11, "rl": 4.5 * 3e9 * 2e10, "inference": 2 * 3e9 * 9e12}
    found = spending(symbol_values(given, 3e9, tokens(7e11, 2e10, 9e12)))
    for name, flop in done.items():
        one, cost = getattr(found, name), given[name]
        assert one.flop == pytest.approx(flop, rel=1e-12)
        assert one.flop_paid == pytest.approx(flop / cost.mfu, rel=1e-12)
        assert one.usd == pytest.approx(flop * cost.usd_per_flop, rel=1e-12)
        assert one.chip_hours == pytest.approx(flop / (cost.mfu * peak) / 3600, rel=1e-12)
    for column in ("flop", "flop_paid", "usd", "chip_hours"):
        parts = [getattr(getattr(found, name), column) for name in done]
        assert getattr(found.total, column) == pytest.approx(sum(parts), rel=1e-12)


def test_what_nobody_gave_is_not_known_and_what_is_absent_costs_nothing():
    """A phase without chip and price: no hours and no USD of it nor in all, FLOP all the same."""
    given = {"pretrain": PhaseCost("pretrain", 6.0, 0.4, 2e-18, H100),
             "inference": PhaseCost("inference", 2.0)}  # fmt: skip
    found = spending(symbol_values(given, 1e9, tokens(1e11, 5e10, 1e12)))
    assert (found.inference.usd, found.inference.chip_hours) == (None, None)
    assert (found.total.usd, found.total.chip_hours) == (None, None)
    assert found.pretrain.usd == pytest.approx(6e20 * 2e-18)
    assert (found.inference.flop, found.inference.flop_paid) == pytest.approx((2e21, 2e21))
    assert (found.rl.usd, found.rl.flop, found.rl.flop_paid, found.rl.chip_hours) == (0, 0, 0, 0)
    assert found.total.flop_paid == pytest.approx(6e20 / 0.4 + 2e21)
    assert symbol_values(given, 1e9, tokens())["c_rl"] == 6.0  # as training, where there is none
    absent = {key: symbol_values(given, 1e9, tokens(rl=5.0))[f"{key}_rl"] for key in "Duvw"}
    assert absent == {"D": 0.0, "u": 1.0, "v": 1.0, "w": 0.0}


def test_a_flop_costs_the_rent_over_what_the_chip_does_in_it():
    """Of several systems the cheapest FLOP is taken; a price that is given is that of all."""
    names = ["hgx-h100", "hgx-a100"]
    cost = best_phase("rl", phase(system=names, mfu=0.3), 4.5, unpriced="x", duration=9.0)
    each = {}
    for name in names:
        machine = system(name)
        price = chip_rent(name.removeprefix("hgx-"))
        each[name] = price.value / (0.3 * machine.chip.peak("bf16"))
    best = min(each, key=each.__getitem__)
    assert (cost.name, cost.arithmetic, cost.mfu, cost.dtype) == ("rl", 4.5, 0.3, "bf16")
    assert cost.usd_per_flop == pytest.approx(each[best], rel=1e-12, abs=0)
    assert (cost.system.name, cost.rate, cost.duration) == (best, None, 9.0)
    turned = best_phase("rl", phase(system=names[::-1], mfu=0.3), 4.5, unpriced="x")
    assert turned.system.name == best
    rented = phase(system=names, mfu=0.3, price="$1/hour")
    cost = best_phase("rl", rented, 4.5, unpriced="x")
    assert cost.system.name == "hgx-h100"  # at one rent, the faster chip
    assert cost.usd_per_flop == pytest.approx(
        1 / 3600 / (0.3 * H100.chip.peak("bf16")), rel=1e-12, abs=0
    )
    assert cost.price.value == pytest.approx(1 / 3600)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_share_that_is_not_given_is_that_of_a_published_run(sparse):
    """On a model of its kind, of the peak of the chip that it ran on."""
    cost = best_phase("pretrain", phase(system="hgx-h100"), 6.0, unpriced="x", sparse=sparse)
    run = training_rate(H100.chip, "bf16", sparse=sparse)
    expected = run.mfu(chip(run.chip).peak("bf16"))
    assert cost.rate == run
    assert cost.mfu == pytest.approx(expected)
    paid = cost.price.value / (expected * H100.chip.peak("bf16"))
    assert cost.usd_per_flop == pytest.approx(paid, rel=1e-12, abs=0)
    if not sparse:
        default = best_phase("pretrain", phase(system="hgx-h100"), 6.0, unpriced="x")
        assert default.rate == run


def test_what_is_lacking_is_refused_where_it_is_lacking(monkeypatch):
    """A price, at the path of the system; a run, at the phase's share."""
    monkeypatch.setattr("planner.token_costs.phase_costs.training_rate", _unknown)
    with pytest.raises(FieldError, match=r"phases\.rl\.mfu: none is known"):
        best_phase("rl", phase(system="hgx-h100"), 4.5, unpriced="phases.rl.system")
    monkeypatch.setattr("planner.token_costs.phase_costs.chip_rent", _unknown)
    with pytest.raises(FieldError, match=r"phases\.rl\.system: none is known"):
        best_phase("rl", phase(system="hgx-h100", mfu=0.3), 4.5, unpriced="phases.rl.system")


def _unknown(*_: object, **__: object) -> None:
    raise CatalogueError("none is known")


def test_phases_of_a_budget_are_counted_as_they_are_given():
    """With system and share in USD, with either alone in FLOP; every figure with its source."""
    given = {
        "pretrain": phase(system="hgx-h100", mfu=0.4, price="$2/hour"),
        "rl": phase(mfu=0.2),
        "inference": phase(system="hgx-h100"),
    }
    costs, warnings, data = phase_costs(given, 4.5)
    assert [cost.arithmetic for cost in costs.values()] == [6.0, 4.5, 2.0]
    assert [cost.mfu for cost in costs.values()] == [0.4, 0.2, None]
    assert [cost.system for cost in costs.values()] == [costs["pretrain"].system, None, None]
    paid = 2 / HOUR / 0.4 / H100.chip.peak("bf16")
    assert costs["pretrain"].usd_per_flop == pytest.approx(paid, rel=1e-12, abs=0)
    assert [cost.name for cost in costs.values()] == list(given)
    entry = H100.chip.figures["bf16"]
    name = H100.chip.name
    assert (data[0].what, data[0].source, data[0].as_of) == (
        f"pretrain: chip {name}, bf16 peak", entry.source, entry.as_of,
    )  # fmt: skip
    price = costs["pretrain"].price
    assert (data[1].what, data[1].source, data[1].as_of) == (
        f"pretrain: price of {name}", price.source, price.as_of,
    )  # fmt: skip
    assert (len(data), warnings) == (2, ())
    assert price_source(costs["pretrain"]) == data[1]


def test_a_peak_stands_where_it_was_read():
    """That of half precision is bf16's; one that a scenario gives is of no data sheet."""
    sheet = H100.chip.figures["bf16"]
    own = {"like": "hgx-h100", "flops": {"bf16": "1 PFLOPS"}}
    for chosen, dtype, source in (
        ("hgx-h100", "fp16", (sheet.source, sheet.as_of)),
        (own, "bf16", ("given", "")),
        (own, "fp16", ("given", "")),
        (own, "fp8", (H100.chip.figures["fp8"].source, H100.chip.figures["fp8"].as_of)),
    ):
        described = phase(system=chosen, mfu=0.5, price="$1/hour", dtype=dtype)
        _, _, data = phase_costs({"rl": described}, 3.0)
        assert (data[0].source, data[0].as_of) == source
        assert data[0].what.endswith(f"chip h100, {dtype} peak")


def test_an_old_price_is_told_of_its_phase():
    """And one that was looked up lately, or none, is not."""
    today = date(2026, 6, 1)
    old = replace(given_price(1.0), as_of=(today - timedelta(days=2000)).isoformat())
    cost = PhaseCost("rl", 3.0, price=old)
    (sentence,) = price_warnings(cost, today)
    assert sentence == f"rl: {old.warning(today)}"
    assert price_warnings(replace(cost, price=replace(old, as_of="2026-05-31")), today) == []
    assert price_warnings(PhaseCost("rl", 3.0), today) == []


# -- tokens served ------------------------------------------------------------------------------


@for_all(
    ("growth", "discount"),
    [(0.0, 0.0), (0.5, 0.0), (0.0, 0.07), (0.5, 0.07), (-0.3, 0.0), (0.05, 0.05), (1e-8, 0.0)],
)
@for_all("obsolescence", [0.0, 0.2])
def test_tokens_of_a_demand_are_its_integral(growth, discount, obsolescence):
    """Counted at the worth of money when they are served, and at the chance that they are."""
    demand = Inference(rate=1e5, lifetime=f"{3 * YEAR} s", growth=growth, discount=discount,
                       obsolescence=obsolescence)  # fmt: skip
    found = served_tokens(demand)
    total = quad(lambda t: (1 + growth) ** t, 0, 3)[0] * 1e5 * YEAR
    counted = quad(lambda t: ((1 + growth) / (1 + discount)) ** t, 0, 3)[0] * 1e5 * YEAR
    assert found.tokens == pytest.approx(total, rel=1e-7)
    assert found.counted == pytest.approx((1 - obsolescence) * counted, rel=1e-7)


def test_a_demand_without_end_counts_as_far_as_it_fades():
    """A perpetuity: the rate over its fall; without a discount the tokens have no number."""
    demand = Inference(rate=1e5, lifetime=math.inf, growth=-0.2, discount=0.05)
    found = served_tokens(demand)
    assert found.tokens == pytest.approx(1e5 * YEAR / -math.log(0.8))
    assert found.counted == pytest.approx(1e5 * YEAR / math.log(1.05 / 0.8))
    steady = served_tokens(Inference(rate=1e5, lifetime=math.inf, discount=0.05))
    assert steady.tokens is None
    assert steady.counted == pytest.approx(1e5 * YEAR / math.log(1.05))


def test_growth_that_nobody_counts_has_no_number():
    """Beyond e**300 of the rate at the start; what is discounted as fast has one."""
    life = 301 / math.log(2)  # years of doubling
    endless = Inference(rate=1e5, lifetime=f"{life * YEAR} s", growth=1.0, discount=1.0)
    found = served_tokens(endless)
    assert found.tokens is None
    assert found.counted == pytest.approx(1e5 * life * YEAR)
    shorter = Inference(
        rate=1e5, lifetime=f"{life * YEAR * 299.9 / 301} s", growth=1.0, discount=1.0
    )
    expected = 1e5 * YEAR / math.log(2) * math.exp(299.9)
    assert served_tokens(shorter).tokens == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("change", [1e-14, 0.7e-6, 0.9e-5, 1.1e-5, 1e-4, -0.9e-5, -1.1e-5])
def test_a_demand_that_hardly_changes_keeps_its_digits(change):
    """The integral of an exponential, of which expm1 loses none however little it changes."""
    found = served_tokens(Inference(rate=1e5, lifetime=f"{YEAR} s", growth=math.expm1(-change)))
    expected = 1e5 * YEAR * -math.expm1(-change) / change
    assert found.tokens == pytest.approx(expected, rel=1e-10)


def test_given_tokens_are_served_as_likely_as_the_model_is_not_overtaken():
    """As many as given; none where nothing is said."""
    found = served_tokens(Inference(tokens=4e12, obsolescence=0.25))
    assert (found.tokens, found.counted) == (4e12, pytest.approx(3e12))
    nothing = served_tokens(Inference())
    assert (nothing.tokens, nothing.counted) == (0.0, 0.0)


# -- a reward, and what the catalogues know ------------------------------------------------------


def test_a_reward_needs_the_arithmetic_at_which_its_sigmoid_reaches_it():
    """Half of the gain at the middle; three quarters at 3**(1/steepness) of it."""
    given = {"start": 0.2, "middle": "1e22 FLOP", "steepness": 1.5, "most": 0.6}
    half = Reward.model_validate({"needed": 0.4, **given})
    more = Reward.model_validate({"needed": 0.5, **given})
    assert rl_flop_needed(half) == pytest.approx(1e22)
    assert rl_flop_needed(more) == pytest.approx(1e22 * 3 ** (1 / 1.5))
    recipe = Reward.model_validate({"needed": 0.4, "start": 0.2, "middle": "1e22 FLOP",
                                    "steepness": 1.5})  # fmt: skip
    assert rl_flop_needed(recipe) != pytest.approx(1e22)  # its ceiling is the recipe's own
    steep = Reward.model_validate({**given, "needed": 0.5, "steepness": 0.01})
    with pytest.raises(FieldError, match="out of reach"):
        rl_flop_needed(steep)


def test_a_reward_is_within_reach_up_to_1e40_flop():
    """Of a gain n times as far from the ceiling as from the start, at n times the middle."""
    given = {"start": 0.0, "steepness": 1.0, "most": 1.0, "middle": "1e32 FLOP"}
    for short, there in ((1.01e-8, True), (0.99e-8, False)):
        reward = Reward.model_validate({**given, "needed": 1 - short})
        if there:
            assert rl_flop_needed(reward) == pytest.approx(1e32 / short, rel=1e-6)
        else:
            with pytest.raises(FieldError, match="over 1e"):
                rl_flop_needed(reward)


def test_the_catalogues_know_rents_and_shares_of_the_peak():
    """Of a phase of the scenario; of nothing else."""

    class Phases:
        pretrain = phase(system="hgx-h100", dtype="fp8")
        draws = 7

    rents = listed_of_phases(Phases, "phases.pretrain.price")
    systems = Phases.pretrain.systems()
    assert rents == rent_range(systems, "phases.pretrain.price")
    shares = listed_of_phases(Phases, "phases.pretrain.mfu")
    assert shares == mfu_range("fp8", "phases.pretrain.mfu")
    for path in (
        "phases.draws.price",
        "phases.rl.price",
        "pretrain.price",
        "phases.pretrain.dtype",
    ):
        with pytest.raises(FieldError):
            listed_of_phases(Phases, path)
