"""Worked price sheets: every number from the scenario, against published or hand-made figures."""

import csv
import itertools
import math
from datetime import date

import pytest

import planner
from planner.architecture.counts import model_sizes
from planner.catalogue import api_prices, models
from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import default_price, rentals
from planner.catalogue.systems import system_names
from planner.text.errors import InputError
from tests.paths import shared

MACHINE = {  # 300 multiply-adds per byte; 80 GB at $3.20 an hour are $0.040 per GB-hour
    "flops": {"bf16": "600 TFLOP/s"},
    "memory_bandwidth": "1 TB/s",
    "memory": "80 GB",
    "price": "$3.20/hour",
}
SHEET = {"input": "$1.25/Mtok", "output": "$10/Mtok", "cached": "$0.125/Mtok"}


def solved(sheet, chips=MACHINE, **given):
    """The plan of a sheet as `planner solve --json` has it."""
    scenario = {"problem": "prices", "sheet": sheet, "given": given}
    if chips is not None:
        scenario["chips"] = chips
    return planner.solve(scenario).document["plan"]


def lines(plan, name, origin=""):
    """Inferences of a name whose origin begins so."""
    return [x for x in plan["inferences"] if x["name"] == name and x["from"].startswith(origin)]


def test_every_line_has_the_eight_keys():
    """One line for each inference, with the keys that are promised."""
    plan = solved("anthropic/claude-opus-4-6")
    keys = ["name", "low", "mid", "high", "from", "assumes", "formula", "verdict"]
    assert all(list(line) == keys for line in plan["inferences"])


def test_steps_bound_caches_and_attention():
    """100e9 active parameters at 300 per byte: 0.3 to 1.7 kB; attention at 25k to 245k tokens."""
    sheet = SHEET | {"steps": [{"above": "200k", "input": "2x", "output": "1.5x"}]}
    plan = solved(sheet, n_active="100B")
    bound, point = lines(plan, "kv_bytes_per_token", "output step")
    assert bound["low"] == pytest.approx(100e9 / 300 / ((500e3 - 1.5 * 5e3) / 0.5))
    assert bound["high"] == pytest.approx(100e9 / 300 / 200e3)
    assert round(bound["low"], -2) == 300
    assert round(bound["high"], -2) == 1700
    assert point["low"] == point["high"] == pytest.approx(1667, rel=1e-3)
    (attention,) = lines(plan, "attention_context")
    assert (attention["low"], attention["high"]) == (pytest.approx(25e3), pytest.approx(245e3))


@pytest.mark.parametrize(
    ("price", "share", "batch", "limit"), [(6, 5 / 14, 1 / 15, 2.8), (2, 1 / 4, 1 / 5, 4.0)]
)
def test_fast_modes(price, share, batch, limit):
    """A fast mode at 2.5 x the speed: fixed share, batch and the fastest of all modes."""
    tier = {"name": "fast", "price": f"{price}x", "speed": "2.5x"}
    plan = solved(SHEET | {"tiers": [tier]})
    for name, value in (
        ("fixed_share", share), ("batch_over_normal", batch), ("speed_limit", limit)
    ):  # fmt: skip
        (line,) = lines(plan, name)
        assert line["low"] == line["mid"] == line["high"] == pytest.approx(value, rel=1e-12)


def test_a_fast_and_a_batch_tier_contradict_one_step():
    """0.357 below 0.5: the two modes clash, and 22.2 % of idle hours would do."""
    tiers = [{"name": "fast", "price": "6x", "speed": "2.5x"}, {"name": "batch", "price": "0.5x"}]
    plan = solved(SHEET | {"tiers": tiers})
    assert lines(plan, "fixed_share", "batch")[0]["low"] == pytest.approx(0.5)
    alone, both = lines(plan, "idle_share", "batch")
    assert (alone["low"], both["low"]) == (pytest.approx(0.5), pytest.approx(1 - 0.5 / (9 / 14)))
    (clash,) = plan["contradictions"]
    assert clash["factor"] == pytest.approx(0.5 / (5 / 14))
    assert len(clash["minimal"]) == 2
    assert len(clash["reconciled_by"]) == 2
    assert any("22.2%" in words for words in clash["minimal"])


def test_a_slow_tier_that_the_fixed_share_allows_is_consistent():
    """Half the price beside a fixed share of 0.6: no contradiction."""
    tiers = [{"name": "fast", "price": "4x", "speed": "1.5x"}, {"name": "batch", "price": "0.5x"}]
    plan = solved(SHEET | {"tiers": tiers})
    assert lines(plan, "fixed_share", "fast")[0]["low"] == pytest.approx(3 / 5)
    assert not plan["contradictions"]


def test_writes_are_a_straight_line_in_time():
    """1.25 x at 5 minutes and 2 x at an hour: 0.182 + 0.818 per hour over the input price."""
    write = [{"hold": "5 min", "price": "$3.75/Mtok"}, {"hold": "1 hour", "price": "$6/Mtok"}]
    plan = solved({"input": "$3/Mtok", "output": "$15/Mtok", "write": write})
    assert lines(plan, "write_surcharge")[0]["mid"] == pytest.approx(2 / 11)
    assert lines(plan, "hold_over_input")[0]["mid"] * 3600 == pytest.approx(9 / 11)
    assert lines(plan, "hold_price")[0]["mid"] * 3600 == pytest.approx(9 / 11 * 3e-6)


WRITES = [{"hold": "5 min", "price": "$3.75/Mtok"}, {"hold": "1 hour", "price": "$6/Mtok"}]
WRITTEN = {"input": "$3/Mtok", "output": "$15/Mtok", "cached": "$0.30/Mtok", "write": WRITES}


def test_a_write_pays_from_some_request_on():
    """(w - r) / (1 - r): 1.28 requests for writes at 1.25x, 2.11 at 2x, reads at 0.1x."""
    plan = solved(WRITTEN)
    five, hour = lines(plan, "break_even_requests")
    assert (five["mid"], hour["mid"]) == (pytest.approx(1.15 / 0.9), pytest.approx(1.9 / 0.9))
    assert ["from request 2" in five["verdict"], "from request 3" in hour["verdict"]] == [True] * 2
    assert plan["values"]["break_even_requests"] == five["mid"]
    assert not plan["contradictions"]


def test_requests_are_whole_and_a_tie_has_not_paid():
    """At a write of 1.9x, N* is 2: two requests cost the same, the third has paid."""
    row = {"hold": "5 min", "price": "$5.70/Mtok"}
    (line,) = lines(solved(WRITTEN | {"write": [row]}), "break_even_requests")
    assert line["mid"] == pytest.approx(2)
    assert "from request 3" in line["verdict"]


def test_reads_that_save_nothing_give_no_break_even():
    """A sheet that charges cached tokens as others, or lists none."""
    for cached in ({"cached": "$3/Mtok"}, {"cached": None}):
        assert not lines(solved(WRITTEN | cached), "break_even_requests")


def test_one_listed_write_has_no_hold_time():
    """OpenAI lists one price of a write, 1.25x, beside cached reads at 0.1x."""
    asked = {"problem": "prices", "sheet": "openai/gpt-6-sol", "date": "2026-11-24"}
    (line,) = lines(planner.solve(asked).document["plan"], "break_even_requests")
    assert line["mid"] == pytest.approx(1.15 / 0.9)
    assert line["from"] == "a write, how long held not listed"


def test_a_longer_write_is_no_cheaper():
    """Held an hour for less than five minutes: the two are swapped."""
    rows = [WRITES[0], {"hold": "1 hour", "price": "$3.50/Mtok"}]
    with pytest.raises(InputError, match=r"sheet\.write\.1\.price: cheaper than a write held for"):
        solved(WRITTEN | {"write": rows})


def test_multiples_stack_on_every_price():
    """Half by batch, a tenth more for residency: all prices 0.55x, and what are ratios stay."""
    asked = {"problem": "prices", "sheet": WRITTEN}
    times = asked | {"multiply": {"batch": "0.5x", "residency": "1.1x"}}
    one, other = planner.solve(asked), planner.solve(times)
    was, now = one.document["plan"], other.document["plan"]
    for name in ("input", "output", "cached"):
        assert now["sheet"][name] == pytest.approx(0.55 * was["sheet"][name])
    for name, power in {"hold_price": 1, "break_even_requests": 0, "break_even_reads": 0,
                        "write_surcharge": 0, "n_active": 1}.items():  # fmt: skip
        assert now["values"][name] == pytest.approx(0.55**power * was["values"][name])
    assert other.text().startswith(
        "What does your price sheet, batch 0.5x, residency 1.1x imply? $1.65 in"
    )
    assert max(map(len, other.text().splitlines())) <= 80


def test_multiples_hold_of_a_listed_sheet_too():
    """A sheet of the catalogue at 0.5x."""
    asked = {"problem": "prices", "sheet": "openai/gpt-6-sol", "date": "2026-11-24"}
    half = asked | {"multiply": {"flex": 0.5}}
    was, now = (planner.solve(x).document["plan"]["sheet"] for x in (asked, half))
    assert [now[x] / was[x] for x in ("input", "output", "cached")] == pytest.approx([0.5] * 3)


def test_prices_of_writes_have_slopes():
    """d ln N / d ln w = w / (w - r), of r: r / (1 - r) - r / (w - r); multiples change no ratio."""
    asked = {"problem": "prices", "sheet": WRITTEN, "multiply": {"batch": "0.5x"}}
    slopes = planner.sensitivity(asked, output="break_even_requests")
    assert slopes["sheet.write.0.price"] == pytest.approx(1.25 / 1.15, rel=1e-3)
    assert slopes["sheet.cached"] == pytest.approx(0.1 / 0.9 - 0.1 / 1.15, rel=1e-3)
    for path in ("sheet.write.1.price", "multiply.batch"):
        assert slopes[path] == pytest.approx(0, abs=1e-6)


def test_storage_breaks_even_and_implies_a_cache():
    """$4.50 per Mtok-hour at an input of 1.25: 3.6 per hour, 4 reads, 112 kB in HBM."""
    plan = solved(SHEET | {"storage": "$4.50/Mtok/hour"})
    assert lines(plan, "hold_over_input")[0]["mid"] * 3600 == pytest.approx(3.6)
    assert lines(plan, "break_even_reads")[0]["mid"] * 3600 == pytest.approx(4.0)
    assert lines(plan, "kv_bytes_per_token", "storage")[0]["mid"] == pytest.approx(112.5e3)


def test_a_step_and_storage_contradict_each_other():
    """112 kB against 1.7 kB: 67 x, and every assumption alone would settle it."""
    steps = [{"above": "200k", "output": "1.5x"}]
    plan = solved(SHEET | {"storage": "$4.50/Mtok/hour", "steps": steps}, n_active="100B")
    (clash,) = plan["contradictions"]
    assert clash["name"] == "kv_bytes_per_token"
    assert clash["factor"] == pytest.approx(112.5e3 / (100e9 / 300 / 200e3))
    assert int(clash["factor"]) == 67
    factors = [row["factor"] for row in clash["reconciled_by"]]
    assert len(factors) == len(clash["minimal"])
    assert factors == pytest.approx([67.5] * len(factors))


def test_the_physical_size_holds_every_open_model():
    """20 of 20: the truth lies within the physical interval, which spans a factor of hundreds."""
    spans = set()
    for name in api_prices.open_models():
        counted = model_sizes(models.load({"deepseek-v3.1": "deepseek-v3"}.get(name, name)))
        plan = solved(name, chips=None)
        line = lines(plan, "n_active", "input price, physical")[0]
        assert line["low"] <= counted.n_active["no_input_embedding"] <= line["high"]
        spans.add(round(line["high"] / line["low"]))
        assert f"spans {line['high'] / line['low']:.0f}x" in line["verdict"]
    assert len(spans) == 1
    assert 170 < min(spans) < 400


def test_the_physical_size_is_the_corner_of_every_assumption():
    """Chips, rents, peaks, efficiencies and margins, each combination by hand."""
    plan = solved(
        SHEET, chips=["hgx-h100", "hgx-a100"],
        prefill_efficiency=["25%", "65%"], margin=[1, 6],
    )  # fmt: skip
    line = lines(plan, "n_active")[0]
    values = []
    for name, share, margin in itertools.product(("h100", "a100"), (0.25, 0.65), (1, 6)):
        rents, flops = default_price(name), chip(name).flops
        for peak in {flops[x] for x in ("bf16", "fp8") if x in flops}:
            for rent in (rents.low, rents.high):
                values.append(1.25e-6 / margin * peak * share / (2 * rent))
    assert line["low"] == pytest.approx(min(values))
    assert line["high"] == pytest.approx(max(values))
    assert line["mid"] == pytest.approx(math.sqrt(min(values) * max(values)))


def test_kv_is_refused_from_the_level():
    """Nothing is said of caches from the level, and why."""
    line = lines(solved(SHEET), "kv_bytes_per_token", "level")[0]
    assert line["low"] is line["mid"] is line["high"] is None
    assert line["verdict"].startswith("no signal")


def test_a_ratio_bounds_batch_and_cache():
    """Output over input: least batch over the critical one, most bytes of a cache."""
    eff = {"prefill_efficiency": "50%", "decode_efficiency": "75%"}
    plan = solved(SHEET, n_active="100B", context="20k", **eff)
    memory = 8 * 0.75 / 0.5
    assert lines(plan, "batch_over_critical")[0]["low"] == pytest.approx(1 / memory)
    bound = lines(plan, "kv_bytes_per_token", "output over")[0]
    assert bound["low"] is None
    assert bound["high"] == pytest.approx(memory * 100e9 / 300 / 20e3)


@pytest.mark.slow
def test_two_of_twenty_open_models_are_priced_below_memory_cost_first():
    """The context that each pays for at its loosest corner: Llama 3.1 8B and Mixtral first.

    By hand from the sheet's ratio, the chip with the most bandwidth for its arithmetic, and what
    the model reads at that length; with a longer mean context the sheet contradicts the model.
    """
    names = {row.chip for row in rentals() if row.tier == "on-demand" and row.verified != "no"}
    chips = [chip(name) for name in names if name in system_names()]
    widest = max(
        each.memory_bandwidth / min(each.flops[x] for x in ("bf16", "fp8") if x in each.flops)
        for each in chips
    )
    paid_for = {}
    for name in api_prices.open_models():
        alike = {"deepseek-v3.1": "deepseek-v3"}.get(name, name)
        counted, scenario = model_sizes(models.load(alike)), {"problem": "prices", "sheet": name}
        plan = planner.solve(scenario | {"given": {"model": alike}}).document["plan"]
        (line,) = lines(plan, "afforded_context")
        ratio = plan["sheet"]["output"] / plan["sheet"]["input"] * 0.9 / 0.25
        room = ratio * counted.n_active["no_input_embedding"] * 2 * widest
        assert counted.read_bytes(line["high"]) == pytest.approx(room)
        assert line["low"] is None
        paid_for[name] = line["high"]
    first = sorted(paid_for, key=paid_for.__getitem__)
    assert first[:2] == ["llama-3.1-8b", "mixtral-8x7b"]
    assert [round(paid_for[x], -2) for x in first[:3]] == [4800, 5600, 7700]


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_above_the_context_that_is_paid_for_sheet_and_model_contradict(factor):
    """A little less context is consistent, a little more is not."""
    stated = {"model": "mixtral-8x7b"}
    paid_for = lines(solved("mixtral-8x7b", "hgx-h100", **stated), "afforded_context")[0]["high"]
    plan = solved("mixtral-8x7b", "hgx-h100", **stated, context=paid_for * factor)
    clash = [x for x in plan["contradictions"] if x["name"] == "kv_bytes_per_token"]
    assert bool(clash) == (factor > 1)
    words = lines(plan, "kv_bytes_per_token", "output over")[0]["verdict"]
    assert words.startswith("priced below memory cost") == (factor > 1)


def test_a_listed_sheet_is_its_rows():
    """Steps and tiers of a sheet by name are those of its rows in the published table."""
    with shared("api_tiers.csv").open(encoding="utf-8") as text:
        rows = [x for x in csv.DictReader(text) if x["model"] == "gemini-2.5-pro"]
    base = next(x for x in rows if x["tier"] == "standard" and x["context_over"] == "0")
    above = next(x for x in rows if x["tier"] == "standard" and x["context_over"] != "0")
    plan = solved("google/gemini-2.5-pro")
    assert plan["sheet"]["input"] == pytest.approx(float(base["usd_in"]) / 1e6)
    (step,) = lines(plan, "balance_context")
    x = float(above["usd_out"]) / float(base["usd_out"])
    assert step["low"] == pytest.approx((250e3 - x * 100e3) / (x - 1))


def test_a_sheet_of_another_day_has_that_days_rows():
    """Before a step was dropped there is one, after it there is none."""
    for day, steps in ((date(2026, 3, 1), 1), (date(2026, 4, 1), 0)):
        sheet = {"problem": "prices", "sheet": "anthropic/claude-opus-4-6", "date": day.isoformat()}
        plan = planner.solve(sheet).document["plan"]
        assert len(lines(plan, "balance_context")) == steps
