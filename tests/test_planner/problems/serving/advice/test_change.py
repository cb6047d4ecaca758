"""What stands beside a plan: marginal prices, cheaper weights, fewer chips, ties, accuracy."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.optimize import linprog

import planner
from planner.catalogue.profile import profile
from planner.protocol.plan import Plan

SCENARIO: dict[str, Any] = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h200", "chips": 16,
    "price": "$3/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
    "promises": {"ttft": "1 s", "tpot": "25 ms"}, "choose": {"mode": "disaggregated"},
}  # fmt: skip
LOADED = SCENARIO | {
    "chips": {"from": 2, "to": 24},
    "workload": SCENARIO["workload"] | {"demand": "6 requests/s"},
}


@pytest.fixture(scope="module")
def pools() -> Plan:
    return planner.solve(SCENARIO)


def _least_rent(plan: Any, more: dict[str, float]) -> float:
    """USD/s of the cheapest continuous pools that serve so many tokens/s of either kind.

    Replicas of the layouts chosen, by SciPy's linear program; the rate of a replica is that of its
    pool at its most, which the pool's share in use tells.
    """
    point, rent = plan.point, 3 / 3600
    rows = []
    for pool, tokens in ((point.prefill, 2000), (point.decode, 500)):
        most = point.requests_per_s / pool.utilisation / pool.layout.replicas
        rows.append((rent * pool.chips_used / pool.layout.replicas, most * tokens))
    served = (10_000.0 * (1 + more.get("input", 0.0)), 2_500.0 * (1 + more.get("output", 0.0)))
    solved = linprog(
        [price for price, _ in rows],
        A_ub=[[-rows[0][1], 0.0], [0.0, -rows[1][1]]],
        b_ub=[-tokens for tokens in served],
    )
    return float(solved.fun)


@pytest.mark.parametrize(("kind", "tokens"), [("input", 10_000.0), ("output", 2_500.0)])
def test_long_run_prices_are_finite_differences_of_the_continuous_problem(
    pools: Plan, kind: str, tokens: float
) -> None:
    step = 1e-3
    slope = (_least_rent(pools, {kind: step}) - _least_rent(pools, {kind: -step})) / (
        2 * step * tokens
    )
    told = getattr(pools.point.marginal, f"usd_per_mtok_{kind}")  # type: ignore[attr-defined]
    assert told == pytest.approx(slope * 1e6, rel=0.01)


def test_marginal_prices_of_both_kinds_are_at_most_the_average_and_a_fleet_bears_its_bill(
    pools: Plan,
) -> None:
    point = pools.point  # type: ignore[attr-defined]
    marginal = point.marginal
    long_run = marginal.usd_per_mtok_input * 2000 + marginal.usd_per_mtok_output * 500
    assert long_run <= point.usd_per_mtok * 2500 * (1 + 1e-9)
    fleet = marginal.this_fleet_input * 2000 + marginal.this_fleet_output * 500
    assert fleet == pytest.approx(point.usd_per_mtok * 2500, rel=1e-9)
    busiest = max(point.phases, key=lambda name: point.phases[name].utilisation)
    assert marginal.full == busiest
    text = pools.text("more")
    assert f"input, if both pools may grow: ${marginal.usd_per_mtok_input:.4g}/Mtok" in text
    assert "more load: with these chips extra" in text


def test_under_a_load_both_kinds_are_free_until_a_pool_is_full() -> None:
    plan = planner.solve(LOADED)
    marginal = plan.point.marginal  # type: ignore[attr-defined]
    assert marginal.room > 0
    assert (marginal.this_fleet_input, marginal.this_fleet_output) == (0, 0)
    most = {"demand": f"{6 * (1 + marginal.room) * 0.999} requests/s"}
    fleet = LOADED | {"workload": LOADED["workload"] | most, "chips": plan.point.chips}  # type: ignore[attr-defined]
    assert planner.solve(fleet).feasible


def test_one_pool_has_no_marginal_prices_of_two() -> None:
    plan = planner.solve(SCENARIO | {"choose": {"mode": "aggregated"}})
    assert plan.point.marginal is None  # type: ignore[attr-defined]


def test_weights_of_a_format_the_chip_runs_are_named_with_their_price_and_key() -> None:
    asked = SCENARIO | {"choose": {"mode": "aggregated"}}
    plan = planner.solve(asked)
    cheaper = plan.answer.cheaper_weights
    assert cheaper.weights == "fp8"
    other = planner.solve(asked, [f"choose.weights={cheaper.weights}"])
    assert other.cost == pytest.approx(cheaper.usd_per_mtok, rel=1e-9)
    assert cheaper.saving == pytest.approx(1 - other.cost / plan.cost)
    assert "--set choose.weights=fp8" in str(plan)
    assert cheaper.engines == other.point.engines != ()  # an engine loads it as it stands
    assert other.answer.cheaper_weights is None  # who has chosen is not told again


def test_weights_are_not_named_where_no_other_saves_a_tenth() -> None:
    asked = SCENARIO | {"model": "deepseek-v3", "choose": {"mode": "aggregated"}}
    assert planner.solve(asked).answer.cheaper_weights is None  # fp8 already, and no fp4 unit


def test_how_much_of_each_limit_is_used_is_told_fullest_first(pools: Plan) -> None:
    used = {limit.limit: limit.used for limit in pools.answer.limits_used}
    point = pools.point  # type: ignore[attr-defined]
    assert used["tpot"] == pytest.approx(point.tpot / 25e-3)
    assert used["ttft"] == pytest.approx(point.ttft / 1.0)
    assert list(used.values()) == sorted(used.values(), reverse=True)


@pytest.mark.parametrize(
    ("mode", "quantity"), [("aggregated", "tpot"), ("disaggregated", "pooled tpot")]
)
def test_the_accuracy_quoted_is_that_of_the_kind_of_plan(mode: str, quantity: str) -> None:
    choose = {"mode": mode, "weights": "fp8", "prefill": {"pp": 1}, "decode": {"pp": 1}}
    if mode == "aggregated":
        choose = {"mode": mode, "weights": "fp8", "pp": 1}
    plan = planner.solve(SCENARIO | {"choose": choose})
    assert plan.outside == ()
    assert plan.band.kind == "runs"
    assert plan.between == "80% of measured runs lie between"
    quoted = plan.answer.accuracy
    rows = profile("engines-2026").left_out
    (row,) = (r for r in rows if (r["word"], r["quantity"]) == (quoted.left_out, quantity))
    assert (quoted.tpot, quoted.tpot_rows) == (row["median"], row["rows"])
    assert f"TPOT {100 * row['median']:.1f}% off" in " ".join(plan.text("more").split())


MODEL_LEFT_OUT = {
    "model": "llama-2-70b",
    "choose": {"mode": "aggregated", "weights": "fp8", "pp": 1},
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (MODEL_LEFT_OUT, "models"),
        ({"choose": {"mode": "aggregated", "weights": "fp8", "tp": 4, "pp": 2}}, None),
        (MODEL_LEFT_OUT | {"workload": {"input_tokens": 50, "output_tokens": 500}}, None),
    ],
    ids=["a model", "stages, which no run has", "a model and short prompts"],
)
def test_the_accuracy_quoted_is_of_what_is_outside_or_none(
    change: dict[str, Any], word: str | None
) -> None:
    """One error of the very kind, from many runs; else that none is known, and a range expected."""
    plan = planner.solve(SCENARIO | change)
    quoted, text = plan.answer.accuracy, " ".join(plan.text("more").split())
    assert plan.outside
    assert plan.band.kind == plan.document["band"]["kind"] == "expected"
    assert plan.between == "expected between"
    assert "measured runs" not in text
    assert "price expected between" in text
    assert quoted.left_out == word
    if word is None:
        assert (quoted.tpot, quoted.ttft, quoted.tpot_rows, quoted.ttft_rows) == (None,) * 4
        assert "not known: no fit left out runs of such a plan" in text
        return
    rows = {(r["word"], r["quantity"]): r for r in profile("engines-2026").left_out}
    assert (quoted.tpot, quoted.tpot_rows) == (rows[word, "tpot"]["median"], 2204)
    assert f"with {word} left out" in text


def test_what_is_given_and_changes_nothing_is_named() -> None:
    spread = {"price": {"uniform": ["$2/hour", "$4/hour"]}}
    plan = planner.solve(
        SCENARIO | {"choose": {"mode": "prefill", "batch": 8}, "uncertain": spread}
    )
    said = " ".join(plan.warnings)
    assert "uncertain: is left aside" in said
    assert "promises.tpot is left aside" in said
    assert plan.batch == 8


def test_prices_that_are_equal_are_a_tie() -> None:
    plan = planner.solve(
        SCENARIO | {"system": "hgx-h100", "chips": 8, "choose": {"mode": "prefill", "batch": 3}}
    )
    first = plan.alternatives[0]
    assert first.tied  # type: ignore[attr-defined]
    assert first.usd_per_mtok == pytest.approx(plan.cost, rel=5e-4)  # type: ignore[attr-defined]
    assert "a tie" in plan.text("more")
    assert "50% to be cheaper" not in str(plan)


@pytest.mark.parametrize("tokens", [(2000, 500), (2500, 500), (4000, 1000), (4000, 200)])
def test_the_split_of_the_bill_follows_the_pools_and_marginal_prices_what_is_used_of_them(
    tokens: tuple[int, int],
) -> None:
    """Equal pools at 3:1 charge output three times input, however idle one of them is."""
    given, written = tokens
    workload = {"input_tokens": given, "output_tokens": written}
    point = planner.solve(SCENARIO | {"workload": workload}).point  # type: ignore[attr-defined]
    reads, writes, marginal = point.prefill, point.decode, point.marginal
    ratio = point.usd_per_mtok_output / point.usd_per_mtok_input
    assert ratio == pytest.approx(writes.chips_used / reads.chips_used * given / written, rel=1e-9)
    in_use = writes.utilisation / reads.utilisation
    assert marginal.usd_per_mtok_output / marginal.usd_per_mtok_input == pytest.approx(
        ratio * in_use, rel=1e-6
    )


def test_readers_that_are_always_busy_hold_a_plan_of_two_pools() -> None:
    """Decoding has room then: none of its limits is full, its chips count for what is used."""
    free = {
        "workload": {"input_tokens": 4000, "output_tokens": 500}, "chips": 8, "promises": {},
        "choose": {"mode": "disaggregated", "prefill": {"tp": 1, "pp": 2, "dp_attention": 1},
                   "decode": {"tp": 2, "pp": 1, "dp_attention": 1, "replicas": 2}},
    }  # fmt: skip

    def answered(bandwidth: float) -> Plan:
        system = {"like": "hgx-h200", "memory_bandwidth": f"{bandwidth} TB/s"}
        return planner.solve(SCENARIO | free | {"system": system})

    def spent(plan: Any) -> float:
        marginal = plan.point.marginal
        return float(marginal.usd_per_mtok_input * 4000 + marginal.usd_per_mtok_output * 500)

    plan: Any = answered(4.8)
    assert plan.point.prefill.utilisation == pytest.approx(1)
    assert plan.point.decode.utilisation < 0.9
    assert [x.limit for x in plan.answer.limits_used if x.binds] == ["prefill queue is stable"]
    assert "Limit     time to read prompts binds" in str(plan)
    slope = math.log(spent(answered(4.9)) / spent(answered(4.7))) / math.log(4.9 / 4.7)
    by = plan.explained().elasticities["system.memory_bandwidth"]
    assert slope == pytest.approx(by, rel=0.002)


def test_a_limit_binds_where_one_more_sequence_would_exceed_it() -> None:
    limits = {"model": "qwen3-30b-a3b", "system": "l40s", "chips": 2, "price": "$0.80/hour",
              "problem": "serving", "workload": {"input_tokens": 1500, "output_tokens": 300},
              "promises": {"ttft": "1 s", "tpot": "36 ms"}}  # fmt: skip
    plan = planner.solve(limits)
    first = plan.answer.limits_used[0]
    assert (first.limit, first.binds) == ("tpot", True)
    assert first.used < 0.995, "the batch is small: a whole sequence is more than half a percent"
    more = planner.solve(limits | {"choose": {"batch": plan.batch + 1}})
    assert more.status == "infeasible"
    assert "Limit     TPOT binds" in str(plan)


@pytest.mark.parametrize(
    ("model", "system", "chips", "saving"),
    [("deepseek-v3", "hgx-h200", 32, 0.13), ("qwen3-32b-fp8", "hgx-h100", 8, 0.20)],
)
def test_caches_of_half_the_bytes_are_named_with_what_they_save(model, system, chips, saving):
    """As much as two of the questions of a review save, what engines take of memory charged."""
    asked = {
        "problem": "serving", "model": model, "system": system, "chips": chips,
        "workload": {"input_tokens": 4000, "output_tokens": 1000},
        "promises": {"ttft": "2 s", "tpot": "50 ms"},
    }  # fmt: skip
    plan = planner.solve(asked)
    caches = plan.answer.cheaper_caches
    assert caches.kv == "fp8"
    assert caches.saving == pytest.approx(saving, abs=0.06)
    other = planner.solve(asked, ["choose.kv=fp8"])
    assert other.cost == pytest.approx(caches.usd_per_mtok, rel=1e-9)
    assert caches.saving == pytest.approx(1 - other.cost / plan.cost)
    assert "--set choose.kv=fp8" in str(plan)
    assert other.answer.cheaper_caches is None


def test_caches_are_not_named_where_they_save_little_or_no_chip_multiplies_them() -> None:
    """Few caches are read of short requests; an A100 has no fp8."""
    asked = SCENARIO | {"choose": {"mode": "aggregated"}}
    short = asked | {"workload": {"input_tokens": 20, "output_tokens": 20, "concurrency": 4}}
    assert planner.solve(short).answer.cheaper_caches is None
    old = asked | {"model": "llama-3.1-8b", "system": "hgx-a100"}
    assert planner.solve(old).answer.cheaper_caches is None
