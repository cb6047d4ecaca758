"""What is promised under random arrivals: room, queues, prefixes, and the bound of a load."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner import solve
from planner.problems.serving.presentation import answer
from planner.text.errors import InputError
from tests.cases.arrivals import witnessed
from tests.cases.loaded_plans import MODES, broken, drawn_question, followed
from tests.loops import for_all
from tests.sizes import first, seldom

LOADED = (0, 2, 3, 8, 10, 13, 16, 26, 36, 40)  # questions that have a plan of either mode
FULL = {"input_tokens": 4000, "output_tokens": 4000}


def scenario(load: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Llama 3.1 8B with long answers, whose caches fill an H100 before anything else does.

    Each chip is a replica: copies of attention that share weights have room for many more.
    """
    asked = {
        "problem": "serving", "units": "base", "model": "llama-3.1-8b", "system": "hgx-h100",
        "chips": [*range(1, 9)], "rent": {"unit": 1}, "price": "$2.50/hour",
        "workload": FULL | load,
        "choose": {"mode": "aggregated", "tp": 1, "pp": 1, "cp": 1, "dp_attention": 1},
    }  # fmt: skip
    return asked | changes


def planned(load: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The plan of such a question."""
    found: dict[str, Any] = solve(scenario(load, **changes)).document["plan"]
    return found


@pytest.mark.slow
def test_caches_fit_for_99_percent_of_the_time_unless_the_question_says_otherwise():
    """Looser room needs no more chips, tighter room no fewer; `crowded` is the complement."""
    chips = []
    for fits in (0, "50%", None, "99.99%"):
        plan = planned({"demand": "3.3 requests/s"}, promises={"cache_fits": fits})
        limit = {0: 1.0, "50%": 0.5, None: 0.01, "99.99%": 1e-4}[fits]
        assert plan["demand"]["crowded"] <= limit
        chips.append(plan["chips"])
    assert chips == sorted(chips)
    assert chips[0] < chips[2]


@pytest.mark.slow
def test_one_more_chip_than_room_asks_for_is_not_paid():
    """On one chip fewer the caches would be too small too often."""
    plan = planned({"demand": "3.3 requests/s"})
    found = solve(scenario({"demand": "3.3 requests/s"}, chips=[plan["chips"] - 1])).document
    assert found["status"] == "infeasible"
    loose = {"chips": [plan["chips"] - 1], "promises": {"cache_fits": 0}}
    assert planned({"demand": "3.3 requests/s"}, **loose)["demand"]["crowded"] > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("load", [3.3, 3.5, 3.7])
def test_how_often_there_is_no_room_by_hand(load):
    """Requests in flight by the products x T(n)/n, T(n) through the tokens of two batches."""
    plan = planned({"demand": f"{load} requests/s"})
    demand, rate = plan["demand"], load / plan["layout"]["replicas"]
    room = demand["room_per_replica"]
    tokens = [
        planned({}, choose={"mode": "aggregated", "tp": 1, "batch": n}, chips=[1])["tpot"]
        for n in (room, room // 2)
    ]
    each = (tokens[0] - tokens[1]) / (room - room // 2)

    def chance(rate):
        number = np.arange(1, 20 * room)
        terms = np.log(rate * 3999 * (tokens[0] + each * (number - room)) / number)
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        share = np.exp(sums - sums.max())
        return float(share[room + 1 :].sum() / share.sum())

    # A plan's time per token is that of a whole batch, which would carry a little more.
    batch = np.ceil(demand["decoding_per_replica"])
    carried = batch / (3999 * (tokens[0] + each * (batch - room)))
    assert carried >= rate
    # Contexts between 4,000 and 8,000 tokens add a little, and prompts that hold up what decodes.
    assert 0.8 * chance(rate) <= demand["crowded"] <= 1.5 * chance(carried)


@pytest.mark.slow
def test_infeasible_room_says_what_could_be_promised():
    """One replica at the load it can just serve: caches fit less often than promised."""
    alone = {"chips": [1], "promises": {"cache_fits": "99%", "tpot": "1 s"}}
    most = planned({"demand": "max"}, **alone)["requests_per_s"]
    found = solve(scenario({"demand": f"{most * 1.02} requests/s"}, **alone)).document
    eased = {row["promise"]: row for row in found["eased"]}
    assert eased["cache_fits"]["promised"] == pytest.approx(0.99)
    assert 0.9 < eased["cache_fits"]["alone"] < 0.99
    share = eased["cache_fits"]["alone"] - 1e-6
    kept = {"chips": [1], "promises": {"cache_fits": share, "tpot": "1 s"}}
    assert planned({"demand": f"{most * 1.02} requests/s"}, **kept)


def test_room_is_no_promise_without_arrivals():
    """A batch as it is given fits or does not."""
    with pytest.raises(InputError, match=r"cache_fits.*demand"):
        solve(scenario({}, promises={"cache_fits": "99%"}))


def test_a_promise_without_demand_names_the_queue_it_leaves_out():
    """Readers busy as the rates say, and the Pollaczek-Khinchine wait at that load."""
    asked = scenario({"input_tokens": 2000, "output_tokens": 1000}, promises={"ttft": "1 s"},
                     choose={"mode": "disaggregated"}, chips=[4])  # fmt: skip
    plan = solve(asked)
    late, chosen = plan.document["plan"]["unqueued"], plan.document["plan"]
    pool = chosen["prefill"]
    assert late["readers_busy"] == pytest.approx(pool["utilisation"], rel=1e-6)
    busy = late["readers_busy"]
    occupied = busy * pool["layout"]["replicas"] / chosen["requests_per_s"]
    line = busy * occupied / (2 * (1 - busy)) * math.log(busy / 0.05) / busy
    assert line <= late["added_p95"] <= line + 2 * occupied
    text = answer(plan)
    assert f"prefill {100 * busy:.0f}% busy" in " ".join(text.split())
    assert "without" not in text.split("TTFT")[1].splitlines()[0]


@pytest.mark.slow
def test_a_demand_leaves_no_queue_uncounted():
    """Nor does a closed loop, where others are waited for, nor the bound."""
    assert planned({"demand": "1 requests/s"})["unqueued"] is None
    assert planned({"concurrency": 8})["unqueued"] is None
    assert planned({}, estimate="bound")["unqueued"] is None


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_a_utilisation_in_place_of_a_demand_sizes_for_it(mode):
    """The busiest pool is as busy as that, and the same load as a demand gives the same queue."""
    short = {"input_tokens": 2000, "output_tokens": 200}
    choose = {"choose": {"mode": mode}, "chips": [4], "promises": {"ttft_p95": "3 s"}}
    plan = planned(short | {"utilisation": 0.8}, **choose)
    demand = plan["demand"]
    assert max(demand["load"], demand["readers_busy"]) <= 0.8 + 1e-9
    pools = [plan[name]["utilisation"] for name in ("prefill", "decode") if plan[name]]
    busiest = max([demand["readers_busy"], demand["load"], *pools])
    assert busiest == pytest.approx(0.8, rel=0.02)
    assert demand["ttft_p95"] <= 3.0


@pytest.mark.parametrize("key", ["demand", "concurrency", "headroom"])
def test_a_utilisation_stands_alone(key):
    """A demand, a closed loop and headroom say how busy pools are in their own way."""
    value = {"demand": "2 requests/s", "concurrency": 4, "headroom": 0.1}[key]
    with pytest.raises(InputError, match="utilisation"):
        solve(scenario({"utilisation": 0.8, key: value}))


@pytest.mark.slow
def test_prefix_hits_last_as_far_as_caches_hold_the_conversations():
    """All where they fit, the share that fits where not; divided by replicas only if routed."""
    load = {"cached_input": 0.75, "demand": "0.2 requests/s", "output_tokens": 500}
    at = {"choose": {"mode": "aggregated", "tp": 1, "replicas": 4}, "chips": [4], "promises": {}}
    room = planned(load | {"conversations": 1}, **at)["prefixes"]["room_per_rank"]
    for conversations, dispatch, held in (
        (room, "random", 1.0), (2 * room, "random", 0.5), (2 * room, "prefix", 1.0),
        (8 * room, "prefix", 0.5),
    ):  # fmt: skip
        kept = planned(load | {"conversations": conversations, "dispatch": dispatch}, **at)
        assert kept["prefixes"]["cached_input"] == pytest.approx(0.75 * held, rel=1e-9)
        read = planned(load | {"cached_input": 0.75 * held}, **at)
        assert kept["ttft"] == pytest.approx(read["ttft"], rel=1e-9)


@pytest.mark.slow
def test_a_plan_on_prefixes_nobody_counted_warns():
    """Without conversations, and with more of them than fit; not where all of them fit."""
    load = {"cached_input": 0.75, "demand": "0.2 requests/s", "output_tokens": 500}
    at = {"choose": {"mode": "aggregated", "tp": 1}, "chips": [1], "promises": {}}

    def warned(**more: Any) -> str:
        return " ".join(solve(scenario(load | more, **at)).warnings)

    assert "workload.conversations" in warned()
    assert "hits collapse" in warned(conversations=1000)
    assert "prefix" not in warned(conversations=4)


def test_prompts_that_differ_in_length_take_longer_to_read():
    """Attention of a prompt goes as the mean of the squares of their lengths, in one pass each."""
    alone = {"choose": {"mode": "prefill", "tp": 1, "batch": 1, "chunk": 262_144}, "chips": [1]}
    times = {
        (tokens, spread): 1 / planned(
            {"input_tokens": {"mean": tokens, "cv": spread}}, **alone)["requests_per_s"]
        for tokens in (8000, 16_000) for spread in (0.0, 1.0)
    }  # fmt: skip
    longer = [times[tokens, 1.0] - times[tokens, 0.0] for tokens in (8000, 16_000)]
    assert longer[1] == pytest.approx(4 * longer[0], rel=1e-6)
    # Twice the square adds what the square itself takes: of T(L) = c + a L + b L^2 it is b L^2.
    half = 1 / planned({"input_tokens": 4000}, **alone)["requests_per_s"]
    curve = np.polyfit([4000, 8000, 16_000], [half, times[8000, 0], times[16_000, 0]], 2)
    assert longer[0] == pytest.approx(curve[0] * 8000**2, rel=0.05)


def test_a_bound_of_a_load_that_the_estimate_cannot_carry_is_a_document():
    """Finite numbers all through, nothing expected, and a word on why."""
    plan = solve(scenario({"demand": "5 requests/s"}, estimate="bound", promises={}))
    assert plan.document["estimate"] is None
    assert any("does not carry" in warning for warning in plan.warnings)
    assert plan.document["bound"]["usd_per_mtok"] == pytest.approx(plan.cost)


def drawn_load(seed: int) -> dict[str, Any]:
    """A small loaded question of any mode."""
    question, draw = drawn_question(seed), np.random.default_rng(seed)
    question["choose"] = {"mode": [["aggregated"], ["disaggregated"], None][seed % 3]}
    question["model"] = ["llama-3.1-8b", "gpt-oss-120b", "mixtral-8x7b"][int(draw.integers(3))]
    question["chips"] = [1, 2, 4, 8]
    question["workload"]["demand"] = f"{draw.choice([0.3, 1.0, 3.0])} requests/s"
    return question


def bounded(seed: int, *modes: str) -> bool:
    """Whether there is a plan; neither it nor that of another mode costs less than its bound."""
    question = drawn_load(seed)
    found = solve(question)
    if found.bound is None:
        return False
    least = found.bound.usd_per_mtok * (1 - 1e-9)
    others = [solve(question | {"choose": {"mode": mode}}) for mode in modes]
    assert all(plan.cost is None or plan.cost >= least for plan in (found, *others))
    return True


@for_all("seed", range(20))
def test_no_plan_costs_less_than_the_bound_of_its_load(seed):
    """Of one pool or two, as few chips as efficiency one would take."""
    bounded(seed)


def test_the_bound_of_a_load_is_what_the_bound_alone_would_pay():
    """`estimate: bound` finds the same number of chips."""
    question = drawn_load(3)
    bound = solve(question | {"estimate": "bound"})
    assert solve(question).bound.usd_per_mtok == pytest.approx(bound.cost, rel=1e-12)


@pytest.mark.slow
def test_no_plan_of_any_mode_costs_less_than_the_bound_of_its_load():
    """The campaign asks ten times as many."""
    assert sum(bounded(seed, "aggregated", "disaggregated") for seed in range(30)) > 20


def simulated(seed: int, mode: str, requests: int = 100_000) -> bool:
    """Whether a question has a plan; its promises hold within the sampling error."""
    question = drawn_question(seed, mode)
    plan = solve(question).document["plan"]
    if plan is None:
        return False
    seen = witnessed(followed(question, plan), requests, seed)
    assert not broken(question, seen), f"{broken(question, seen)}: {plan['demand']}, {seen}"
    return True


DRAWN = [(seed, mode) for seed in LOADED for mode in MODES]


@pytest.mark.parametrize(("seed", "mode"), [*first(0, DRAWN[:6]), *seldom(DRAWN[6:])])
def test_promises_hold_in_a_simulation_of_their_arrivals(seed, mode):
    """TTFT of 95% and room for caches, 100,000 requests each."""
    assert simulated(seed, mode)


@pytest.mark.parametrize(
    ("tpot", "ttft", "tokens", "output", "chips"),
    [(17, 0.5, 600, 800, 6), (17, 1.0, 600, 300, 12), (21, 0.5, 1200, 800, 6),
     (23, 1.5, 1200, 300, 4), (23, 2.0, 4000, 300, 12)],
)  # fmt: skip
def test_prompts_of_a_pass_at_the_most_load_are_not_those_of_the_quickest_pass(
    tpot: int, ttft: float, tokens: int, output: int, chips: int
) -> None:
    """What two pools serve at most is recomputed at the passes that carry it, not the quickest."""
    most: dict[str, Any] = {
        "problem": "serving", "units": "base",
        "model": "qwen3-32b", "system": "hgx-h200", "chips": chips,
        "workload": {"input_tokens": tokens, "output_tokens": output, "demand": "max"},
        "promises": {"ttft_p95": ttft, "tpot": tpot / 1000}, "choose": {"mode": "disaggregated"},
    }  # fmt: skip
    plan = solve(most)
    assert plan.feasible
    load = plan.point.demand.requests_per_s  # type: ignore[attr-defined]
    workload = {**most["workload"], "demand": f"{0.999 * load} requests/s"}
    again = solve(most | {"workload": workload})
    assert again.cost <= plan.cost * 1.0011
    assert again.point.chips <= plan.point.chips  # type: ignore[attr-defined]
