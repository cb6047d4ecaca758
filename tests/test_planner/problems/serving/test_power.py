"""Power and energy of a plan: by hand, against what is given, as an objective, and as a bound."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

import planner
from planner.architecture import model_sizes
from planner.catalogue.chips import chip, chip_power
from planner.catalogue.models import load
from planner.measurements.roofline_bound import row_bounds
from planner.text.errors import InputError
from tests.paths import shared
from tests.sizes import first
from tools.fit.power_fit import PRIORS, read_power

ASKED: dict[str, Any] = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 8,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 2000, "output_tokens": 400},
    "promises": {"ttft": "2 s", "tpot": "50 ms"},
    "choose": {"mode": "aggregated"},
}
MODES = ("aggregated", "decode", "prefill", "disaggregated")


def planned(*sets: str, **changes: Any) -> dict[str, Any]:
    """The plan of the question with some changes, without what proves it; empty without one."""
    return dict(planner.solve({**ASKED, **changes}, list(sets)).chosen)


def document(*sets: str, **changes: Any) -> dict[str, Any]:
    """The document of the question with some changes."""
    answer: dict[str, Any] = planner.solve({**ASKED, **changes}, list(sets)).document
    return answer


def test_power_of_a_decoding_chip_by_hand():
    """Idle, bytes over the step, FLOP over the step, and a limit that is softly kept."""
    made = planned(
        chips=1, choose={"mode": "decode", "batch": 64, "weights": "bf16", "kv": "bf16"},
        promises={},
    )  # fmt: skip
    draw, step, model = chip_power(chip("h100")), made["tpot"], model_sizes(load("llama-3.1-8b"))
    read = sum(model.streamed_bytes.values()) + 64 * model.read_bytes(2000 + 400 / 2)
    peak = chip("h100").peak("bf16")
    flop = 2 * sum(model.active.values()) * (64 + draw.tile)
    attention = 64 * sum(c.flop_per_cached_token for c in model.caches) * 2200
    wanted = draw.idle + draw.byte * read / step + draw.peak * (flop + attention) / peak / step
    limited = wanted / (1 + (wanted / draw.rated) ** draw.soft) ** (1 / draw.soft)
    assert made["watts_per_chip"] == pytest.approx(limited, rel=2e-3)
    assert made["joule_per_token"] == pytest.approx(limited / made["tokens_per_s"], rel=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_energy_is_what_chips_draw_and_given_power_wins(mode):
    """Watts times chips over tokens; the site multiplies them; a figure of one's own is taken."""
    chosen = {"mode": mode}
    plan = planned(choose=chosen)
    tokens = {"decode": 400, "prefill": 2000}.get(mode, 2400)
    watts = plan["watts_per_chip"] * plan["chips"]
    assert plan["joule_per_token"] == pytest.approx(watts / (plan["requests_per_s"] * tokens))
    assert plan["joule_per_request"] == pytest.approx(plan["joule_per_token"] * tokens)
    assert plan["power_from"] == "measured"
    assert chip_power(chip("h100")).idle < plan["watts_per_chip"] < chip("h100").power
    site = planned(choose=chosen, pue=1.3)
    assert site["watts_per_chip"] == pytest.approx(1.3 * plan["watts_per_chip"])
    own = document(choose=chosen, pue=1.3, system={"like": "hgx-h100", "power": "500 W"})
    assert own["plan"]["watts_per_chip"] == pytest.approx(650.0)
    assert own["plan"]["power_from"] == "given"
    assert own["band"]["watts_per_chip"] is None


@pytest.mark.parametrize("mode", MODES)
def test_the_bound_draws_no_more_and_no_measured_run_less(mode):
    """The least is what idles, at the least time: below every estimate."""
    choose = {"mode": mode}
    bound = planned(choose=choose, estimate="bound", objective="energy")
    plan = planned(choose=choose, objective="energy")
    assert bound["power_from"] == "least"
    assert bound["watts_per_chip"] == pytest.approx(chip_power(chip("h100")).least)
    assert bound["joule_per_token"] < plan["joule_per_token"]


def test_no_measured_energy_lies_below_the_bound():
    """Rows of the table: energy of a token against idle power at the least time of a step."""
    rows, _ = read_power(shared("energy.csv"), PRIORS["prompts"])
    for row in rows:
        any_layout = {"prompt": 1.0, "context": row.output / 2, "layout": None, "machine": None}
        step = row_bounds([replace(row, **any_layout)])[0]
        least = chip_power(row.chip, row.model).least * row.chips * step / row.batch
        assert row.watts * row.chips / row.rate > least, row.id


def test_the_plan_of_least_energy_takes_less_than_the_cheapest_and_keeps_promises():
    """Of chips of different powers the objective takes the frugal layout; promises hold."""
    least = planned(objective="energy")
    cheap = planned()
    assert least["joule_per_token"] <= cheap["joule_per_token"] * (1 + 1e-9)
    assert least["tpot"] <= 0.05
    assert least["ttft"] <= 2.0
    tight = planned("promises.tpot=10 ms", objective="energy")
    assert tight["joule_per_token"] > least["joule_per_token"]


def test_energy_of_a_token_falls_with_the_batch():
    """Weights and idle power are shared by more."""
    taken = [
        planned(chips=1, choose={"mode": "decode", "batch": batch}, promises={})
        for batch in (1, 4, 16, 64, 128)
    ]
    joules = [plan["joule_per_token"] for plan in taken]
    assert joules == sorted(joules, reverse=True)


def test_bands_hold_power_and_time_and_no_more_than_is_rated():
    """The band of energy is wider than either; power ends at what chips are rated for."""
    answer = document()
    band, plan = answer["band"], answer["plan"]
    low, high = (end / plan["joule_per_token"] for end in band["joule_per_token"])
    times = [end / plan["usd_per_mtok"] for end in band["usd_per_mtok"]]
    assert low < times[0] < 1 < times[1] < high
    assert band["watts_per_chip"][1] <= chip("h100").power
    assert any(row["what"] == "power of h100" for row in answer["provenance"]["data"])
    other = document(system="mi300x-8")["provenance"]["data"]
    assert any("no rows of mi300x" in row["source"] for row in other)


@pytest.mark.parametrize("path", ["memory_bandwidth", "flops"])
def test_elasticities_of_energy_are_differences(path):
    """What one percent does to energy, beside two plans with the layout and batch pinned."""
    choose = {"mode": "decode", "batch": 64, "tp": 1, "replicas": 1}
    changes: dict[str, Any] = {"chips": 1, "choose": choose, "promises": {}, "objective": "energy"}
    slope = planner.solve({**ASKED, **changes}).elasticities[f"system.{path}"]
    sides = []
    for factor in (1.01, 0.99):
        rate, peak = f"{3.35 * factor} TB/s", {"bf16": f"{989 * factor} TFLOP/s"}
        figure = rate if path == "memory_bandwidth" else peak
        system = {"like": "hgx-h100", path: figure}
        sides.append(planned(**{**changes, "system": system})["joule_per_token"])
    difference = math.log(sides[0] / sides[1]) / math.log(1.01 / 0.99)
    assert slope == pytest.approx(difference, abs=5e-3)


def test_the_power_of_a_site_bounds_the_plan():
    """What is drawn stays below the limit, less of it is never cheaper, and none is told."""
    assert planned("limits.power=1 MW", pue=1.25) == planned(pue=1.25)
    prices, rates = [], []
    for watts in (6000, 5000, 4000):
        plan = planned(f"limits.power={watts} W", pue=1.25)
        assert plan["watts_per_chip"] * plan["chips"] <= watts * (1 + 1e-9)
        prices.append(plan["usd_per_mtok"])
    assert prices == sorted(prices)
    for watts in (5000, 2000):
        plan = planned(
            f"limits.power={watts} W", pue=1.25, chips={"from": 1, "to": 8},
            objective="throughput", rent={"unit": 1},
        )  # fmt: skip
        assert plan["watts_per_chip"] * plan["chips"] <= watts * (1 + 1e-9)
        rates.append(plan["tokens_per_s"])
    assert rates == sorted(rates, reverse=True)


def test_too_little_power_is_refused_with_what_it_would_take():
    """The factor by which the nearest plan is over; twice two pools are not shared out."""
    missed = document("limits.power=1 kW")["infeasible"]
    assert missed[0]["promise"] == "power"
    enough = 1.001 * missed[0]["short_by"]
    assert planned(f"limits.power={enough} kW")
    with pytest.raises(InputError, match=r"two pools would share 1 kW.*limits.power=5.6 kW"):
        document("limits.power=1 kW", choose={"mode": "disaggregated"})


def test_two_pools_are_sought_where_no_limit_on_power_can_bind():
    """Chips draw no more than they are rated for, so the plan is that without the limit."""
    rated = 8 * chip("h100").power * 1.25
    free = {"choose": {"mode": "disaggregated"}, "pue": 1.25}
    assert planned(f"limits.power={rated} W", **free) == planned(**free)
    warned = [
        any("one pool alone is sought" in each for each in made["provenance"]["warnings"])
        for made in (
            document(f"limits.power={rated - 1} W", pue=1.25, choose={}),
            document(f"limits.power={rated} W", pue=1.25, choose={}),
            document("limits.power=1 kW", choose={"mode": "aggregated"}),
        )
    ]
    assert warned == [True, False, False]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_power_of_a_chip_grows_with_the_batch(model):
    """The search for the largest batch within a limit rests on it."""
    choose = {"mode": "decode", "weights": "bf16"}
    drawn = [
        planned(model=model, chips=1, choose={**choose, "batch": batch}, promises={})
        for batch in (1, 2, 4, 8, 16, 32)
    ]
    watts = [plan["watts_per_chip"] for plan in drawn]
    assert watts == sorted(watts)


PRICED = {"power_price": "$0.30/kWh", "pue": 1.2, "carbon": "350 g/kWh"}


@pytest.mark.parametrize("mode", first(2, MODES))
def test_electricity_is_paid_and_gives_off_carbon_for_what_chips_draw(mode):
    """Price = rent + energy of a token x price of a kWh; grams = energy x grams of a kWh."""
    plan, band = (document(choose={"mode": mode}, **PRICED)[part] for part in ("plan", "band"))
    kwh = plan["joule_per_token"] * 1e6 / 3.6e6
    tokens = {"decode": 400, "prefill": 2000}.get(mode, 2400)
    rent = plan["chips"] * 2.5 / 3600 / (plan["requests_per_s"] * tokens) * 1e6
    assert plan["usd_per_mtok"] == pytest.approx(rent + 0.30 * kwh, rel=1e-9)
    drawn = plan["watts_per_chip"] * plan["chips"] / 1e3
    assert plan["power_usd_per_hour"] == pytest.approx(0.30 * drawn)
    assert plan["usd_per_hour"] == pytest.approx(2.5 * plan["chips"] + 0.30 * drawn)
    assert plan["grams_per_mtok"] == pytest.approx(350 * kwh)
    assert plan["grams_per_request"] == pytest.approx(350 * kwh * tokens / 1e6)
    ends = [end / 350 * 3.6 for end in band["grams_per_mtok"]]
    assert ends == pytest.approx(band["joule_per_token"])


def test_carbon_is_said_where_it_is_asked_and_needs_a_power():
    """One line of the text; null where nobody asked; a chip of no known power is refused."""
    plan = planner.solve({**ASKED, "carbon": "350 g/kWh"})
    assert f"{plan.chosen['grams_per_mtok']:#.3g} g CO2/Mtok" in str(plan)
    assert planned()["grams_per_mtok"] is None
    chip_alone = {"memory": "80 GB", "memory_bandwidth": "3 TB/s", "flops": {"bf16": "900 TFLOP/s"}}
    with pytest.raises(InputError, match=r"carbon.*no power figure"):
        document(system=chip_alone, chips=1, carbon="350 g/kWh", choose={})


@pytest.mark.parametrize("mode", first(1, ["aggregated", "disaggregated"]))
def test_elasticities_of_a_bill_with_counted_power_are_differences(mode):
    """Prices of rent and of electricity by their shares; bandwidth against solving again."""
    choose = {"mode": "aggregated", "batch": 256, "tp": 1, "replicas": 8}
    asked = {**ASKED, **PRICED, "choose": choose if mode == "aggregated" else {"mode": mode}}
    # Of this many chips hardly any pool waits for the other: whole replicas leave one a part in
    # 70,000 of its time, and whole sequences as much, which elasticities do not count.
    asked |= {} if mode == "aggregated" else {"chips": 100_000, "engine": "none"}
    whole = 1e-6 if mode == "aggregated" else 1e-5
    plan = planner.solve(asked)
    share = plan.chosen["power_usd_per_hour"] / plan.chosen["usd_per_hour"]
    rows = {row.path: row.right for row in planner.sensitivity(asked).rows}
    for path, value in {"power_price": share, "pue": share, "price": 1 - share}.items():
        assert rows[path] == pytest.approx(value, abs=whole)
    grams = planner.sensitivity(asked, output="carbon")
    assert {row.path: row.right for row in grams.rows}["carbon"] == pytest.approx(1)
    if mode == "aggregated":
        rates = (f"{3.35 * factor} TB/s" for factor in (1.01, 0.99))
        systems = ({"like": "hgx-h100", "memory_bandwidth": rate} for rate in rates)
        prices = (planned(**{**asked, "system": each}) for each in systems)
        above, below = (price["usd_per_mtok"] for price in prices)
        difference = math.log(above / below) / math.log(1.01 / 0.99)
        assert rows["system.memory_bandwidth"] == pytest.approx(difference, abs=2e-3)


def test_a_bill_explains_itself():
    """The equations behind the price hold what electricity costs, where it is counted."""
    billed = planner.solve({**ASKED, **PRICED, "chips": 1}).why()
    assert "p_chip = p_power + p_rent" in billed
    assert "p_power = P_chip*p_joule" in billed
    assert "p_joule" not in planner.solve({**ASKED, "chips": 1}).why()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"objective": "energy"}, {"power_price": "$2/kWh"}])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_no_layout_at_any_batch_takes_less_than_the_bound_or_the_plan(changes, model):
    """Brute force over degrees, replicas and batches of four chips."""
    asked = {**changes, "model": model, "chips": 4}
    answer = document(**asked)
    word = "joule_per_request" if "objective" in changes else "usd_per_mtok"
    plan, proof = answer["plan"], answer["certificate"]
    every = []
    for tp, replicas in ((1, 4), (1, 2), (2, 2), (2, 1), (4, 1)):
        for batch in (4, 16, 64, 128, 256, 384, 512):
            choose = {"mode": "aggregated", "tp": tp, "replicas": replicas, "batch": batch}
            made = planned(**{**asked, "choose": choose})
            every += [made[word]] if made else []
    assert len(every) > 12
    assert min(every) >= plan[word] * (1 - 1e-9)
    assert 0.6 * proof["objective"] < proof["relaxation"] <= min(every) * (1 + 1e-9)


@pytest.mark.slow
def test_what_every_chip_pays_changes_no_plan():
    """All chips of one site: energy is as many times it, and no other two pools become best."""
    asked = {**ASKED, "model": "llama-3.1-70b", "system": "hgx-h200", "objective": "energy",
             "pue": 1.2, "choose": {}}  # fmt: skip
    rows = {row.path: row for row in planner.sensitivity(asked, output="energy").rows}
    assert rows["pue"].right == pytest.approx(1)
    assert not rows["pue"].switches


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"objective": "energy"}, {"power_price": "$2/kWh"}])
def test_no_two_pools_of_four_chips_take_less(changes):
    """Brute force over degrees and replicas of both pools, decoding slower where prompts lack."""
    asked = {**ASKED, **changes, "chips": 4}
    word = "joule_per_request" if "objective" in changes else "usd_per_mtok"
    answer = planner.solve({**asked, "choose": {"mode": "disaggregated"}}).document
    sizes = [(tp, n) for tp in (1, 2) for n in (1, 2, 3) if tp * n < 4]
    every = []
    for read, made in itertools.product(sizes, repeat=2):
        if math.prod(read) + math.prod(made) <= 4:
            pools = {
                name: {"tp": tp, "replicas": n}
                for name, (tp, n) in {"prefill": read, "decode": made}.items()
            }
            plan = planned(**{**asked, "choose": {"mode": "disaggregated", **pools}})
            every += [plan[word]] if plan else []
    assert len(every) > 8
    assert answer["plan"][word] == pytest.approx(min(every), rel=1e-9)
    assert answer["certificate"]["relaxation"] <= min(every)
    others = [each[word] for each in answer["alternatives"]]
    assert others == sorted(others)


def test_a_split_that_decodes_at_full_batches_is_not_lost():
    """Three pools of readers half idle take less than two that a decoding pool waits for."""
    asked = {**ASKED, "model": "llama-3.1-70b", "system": "hgx-h200", "objective": "energy"}
    best = planned(**{**asked, "choose": {"mode": "disaggregated"}})["joule_per_token"]
    for replicas, ways in (
        (3, {"tp": 2, "pp": 1}),
        (2, {"tp": 4, "pp": 1}),
        (2, {"tp": 2, "pp": 2}),
    ):
        read = {"tp": 1, "pp": 2, "replicas": replicas}
        pools = {"prefill": read, "decode": {**ways, "replicas": 1}}
        plan = planned(**{**asked, "choose": {"mode": "disaggregated", **pools}})
        assert best <= plan["joule_per_token"] * (1 + 1e-9)


def test_two_pools_of_a_chip_of_unknown_power_are_not_held_to_a_limit():
    """Its limit on power is refused, at its place; it ended in a fault."""
    unknown = {"system": "tpu-v5e", "chips": 2, "limits": {"power": "2 MW"}}
    with pytest.raises(InputError, match=r"limits\.power.*no power figure for v5e"):
        planner.solve({**ASKED, **unknown, "choose": {"mode": "disaggregated"}})
