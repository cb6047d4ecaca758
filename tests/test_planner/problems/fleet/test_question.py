"""What a fleet's scenario may say, what is refused and in which words, and what it answers."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

import planner
from planner.problems.fleet.answer import recheck
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import solve_min_cost
from planner.scenario import load
from planner.text.errors import InputError, SolverError
from tests.loops import for_all

BASE = {
    "problem": "fleet",
    "models": {
        "chat": {
            "demand": {"hourly": ["4 requests/s", "9 requests/s"]},
            "columns": [{"pool": "big", "chips": 4, "rate": "2.5 requests/s"}],
        }
    },
    "pools": {
        "big": {"size": 8, "on_demand": "$4/hour", "reserved": {"price": "$3/hour", "most": 9}}
    },
    "hours": 2,
}
SERVED = {
    "model": "qwen3-32b", "workload": {"input_tokens": 3000, "output_tokens": 300},
    "promises": {"ttft_p95": "4 s", "tpot": "90 ms"}, "demand": "30 requests/s",
}  # fmt: skip


def scenario(**changes):
    """The base with values at dotted paths."""
    data = deepcopy(BASE)
    for path, value in changes.items():
        *above, last = path.split("__")
        holder = data
        for part in above:
            holder = holder[part]
        holder[last] = value
    return data


@for_all(
    ("changes", "words"),
    [
        ({"models__chat__demand": {"tokens_per_day": "5 G"}}, "a demand in tokens needs lengths"),
        ({"models__chat__demand": {"mean": "4 req/s", "peak_to_mean": 2.5}},
         "give the demand as a list"),
        ({"models__chat__demand": {"hourly": ["1 req/s", "2 req/s", "3 req/s"]}}, "say hours: 3"),
        ({"models__chat__demand": {"hourly": ["1 req/s", "-2 req/s"]}}, "negative"),
        ({"models__chat__columns": [{"pool": "bog", "chips": 4, "rate": "1 req/s"}]},
         "did you mean 'big'"),
        ({"models__chat__columns": []}, "at least one column"),
        ({"pools__big": {"size": 8}}, "has no contract"),
        ({"pools__big": {"on_demand": "$4/hour"}}, "give system"),
        ({"have": {"bag": 3}}, "did you mean 'big'"),
        ({"hours": 9000}, "at most 8,784"),
        ({"regions": {"us": {"demand": "60%"}, "eu": {"demand": "30%"}}}, "together 90"),
        ({"regions": {"us": {"demand": 1, "moves": "allowed"}}}, "go together"),
        ({"regions": {"us": {"demand": 1}}, "pools__big__region": "uk"}, "no region 'uk'"),
        ({"regions": {"us": {"demand": 1, "moves": "allowed", "latency": {"eu": "90 ms"}}}},
         "no region 'eu'"),
        ({"regions": {"us": {"demand": 0.5}, "eu": {"demand": 0.5}}, "have": {"big": 3}},
         "in which region"),
        ({"models__chat__columns": [
            {"pool": "big", "chips": 1, "rate": "1 req/s", "phase": "decode"}]},
         "one of each"),
        ({"pools__big__region": "us"}, "the scenario has no regions"),
        ({"start": {"time": "2 h"}}, "at most 60 min"),
        ({"models": {}}, "models: expected at least 1, got none"),
        ({"models__chat": {**SERVED, "profiles": {"bag": "auto"}}}, "did you mean 'big'"),
        ({"models__chat__profiles": {"big": "auto"}}, "leave one out"),
        ({"models__chat__promises": {"ttft_p95": "1 s"}, "models__chat__columns": [
            {"pool": "big", "chips": 1, "rate": "1 requests/s", "ttft_p95": "2 s"}]},
         "2 s is above the promise of 1 s"),
        ({"models__chat__demand": "none.csv"}, "no demand file 'none.csv' is found"),
        (
            {"models__chat__workload": {"input_tokens": 9, "output_tokens": 9,
                                        "spare_replicas": 1}},
            "spare: {replicas: 1} says it once",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_in_words(changes, words):
    """Every refusal says what would do."""
    with pytest.raises(InputError, match=words.replace("{", r"\{").replace("}", r"\}")):
        load(scenario(**changes))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,1\n2,1", "hour 1 is missing"),
        ("0,1\n0,1", "hour 0 is doubled"),
        ("1,1\n0,1", "hour 0 is missing"),
        ("0,1\n2,1\n1,1", "hour 1 is out of order, hour 3 was expected"),
        ("0,1\n1,-3", "at least 0"),
        ("2026-05-01T00:00Z,1\n2026-05-01T01:00+01:00,1", "2026-05-01 00:00 is doubled"),
    ],
)
def test_a_file_of_hours_is_checked_line_by_line(tmp_path, rows, words):
    """Missing, doubled and unordered hours, negative values, a shift of the time zone."""
    (tmp_path / "day.csv").write_text(f"hour,requests/s\n{rows}\n")
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps(scenario(models__chat__demand="day.csv")))
    with pytest.raises(InputError, match=words):
        load(str(file))


def test_the_wave_is_that_of_the_specification():
    """d(h) = mean (1 + (p - 1) cos 2 pi (h - peak)/24), less at the weekend of a week."""
    wave = {"mean": "10 requests/s", "peak_to_mean": 1.5, "peak_hour": 15, "weekend": 0.5}
    demand = load(scenario(models__chat__demand=wave, hours=168)).models["chat"].demand
    rates = demand.rates(168, None)
    assert rates[15] == pytest.approx(15)
    assert rates[3] == pytest.approx(5)
    assert sum(rates[:24]) == pytest.approx(240)
    assert rates[5 * 24 + 15] == pytest.approx(7.5)


def test_a_small_fleet_has_the_bill_of_hand():
    """4 and 9 requests/s are 2 and 4 replicas of 4 chips: 1 and 2 machines of 8."""
    plan = planner.solve(scenario())
    # One reserved at $24 in both hours, one on demand at $32 in one of them
    assert plan.cost == pytest.approx((2 * 24 + 32) / 2)
    assert plan.document["plan"]["reserved"] == {"big": 1}
    assert plan.document["plan"]["on_demand"] == {"big": [0, 1]}
    assert plan.document["plan"]["replicas"]["chat"] == {"big x4": [2, 4]}
    assert plan.answer.certificate.gap == pytest.approx(0, abs=1e-6)
    assert "Proven: no plan that keeps every rule costs less" in str(plan)
    assert plan.why()


def test_an_infeasible_fleet_names_hour_model_and_repair():
    """Hour 1 wants two machines where one is offered."""
    pool = {"size": 8, "reserved": {"price": "$3/hour", "most": 1}}
    plan = planner.solve(scenario(pools__big=pool))
    assert plan.status == "infeasible"
    (missed,) = plan.infeasible
    assert missed.promise == "models.chat.demand"
    assert "hour 1: 1 more machine of big would do" in missed.expression


def regional(**europe) -> dict:
    """The base with half of its demand in a region without machines, an hour ahead."""
    regions = {"us": {"demand": 0.5}, "eu": {"demand": 0.5, "utc": 1, **europe}}
    data = scenario(regions=regions, pools__big__region="us")
    data["models"]["chat"]["promises"] = {"ttft_p95": "2 s"}
    data["models"]["chat"]["columns"] += [
        {"pool": "big", "chips": 4, "rate": "2.2 requests/s", "name": "quick", "ttft_p95": "1.9 s"}
    ]
    return data


def test_requests_that_move_are_served_by_replicas_that_are_quick_enough():
    """Of 2 + 4.5 requests/s those of eu take quick replicas: 1 + 3 and 2 + 1, two machines."""
    plan = planner.solve(regional(moves="allowed", latency="90 ms"))
    point = plan.document["plan"]
    assert point["served_in"]["chat eu"] == {"chat us": [4.5, 2.0]}
    assert point["served_in"]["chat us"] == {"chat us": [2.0, 4.5]}
    assert plan.cost == pytest.approx(2 * 24)
    quick, plain = (point["replicas"]["chat us"].get(name, [0, 0]) for name in ("quick", "big x4"))
    assert [q >= most for q, most in zip(quick, (3, 1), strict=True)] == [True, True]
    assert [2.2 * q + 2.5 * p >= 6.5 for q, p in zip(quick, plain, strict=True)] == [True, True]
    assert "100% as chat us, at most 4.5 requests/s in hour 0" in plan.text("more")
    assert "no requests move" in plan.text("more")


def test_prompts_and_answers_of_two_regions_by_replicas_of_a_phase():
    """Of 6.5 requests/s 2 replicas of 5 prefill, near enough to eu, and 3 of 3 decode."""
    data = regional(moves="allowed", latency="90 ms")
    data["models"]["chat"]["columns"] = [
        {
            "pool": "big",
            "chips": 2,
            "rate": "5 requests/s",
            "phase": "prefill",
            "ttft_p95": "1.9 s",
        },
        {"pool": "big", "chips": 4, "rate": "3 requests/s", "phase": "decode"},
    ]
    plan = planner.solve(data)
    point = plan.document["plan"]
    assert plan.cost == pytest.approx(2 * 24)
    assert point["served_in"]["chat eu"] == {"chat us in two pools of big": [4.5, 2.0]}
    least = {"big x2 prefill": 2, "big x4 decode": 3}
    for column, row in point["replicas"]["chat us"].items():
        assert min(row) >= least.pop(column)
    assert not least
    task = resolve_fleet(load(data)).task
    choice = solve_min_cost(task)
    recheck(task, choice)
    for flows in (choice.flows * 0.9, choice.flows[:, ::-1]):
        with pytest.raises(SolverError, match="requests/s go"):
            recheck(task, replace(choice, flows=flows))
    for column in range(2):
        fewer = choice.firm.copy()
        fewer[column] = (1, 2)[column]
        with pytest.raises(SolverError, match="are served with the spare kept"):
            recheck(task, replace(choice, firm=fewer))


@pytest.mark.parametrize("europe", [{}, {"moves": "allowed", "latency": "200 ms"}])
def test_requests_that_may_not_move_far_enough_are_named(europe):
    """By model, region and hour; 1.9 s and 200 ms are more than is promised."""
    plan = planner.solve(regional(**europe))
    assert plan.status == "infeasible"
    (missed,) = plan.infeasible
    assert missed.promise == "models.chat eu"
    assert "hour 0: no pool holds chat eu for 4.5 requests/s" in missed.expression


def test_replicas_of_a_phase_serve_what_two_pools_of_a_serving_plan_do():
    """Four chips of each phase: 98 % of its most requests in one machine, at the same rates."""
    # Kept by the estimate alone: what a phase by itself is off by is not what two pools are.
    asked = {"model": "qwen3-32b", "promises": {"ttft_p95": "2 s", "tpot": "20 ms", "chance": 0.01}}
    work, choose = {"input_tokens": 3000, "output_tokens": 800}, {"mode": "disaggregated"}
    pair = planner.solve({"problem": "serving", **asked, "system": "hgx-h200", "chips": 8,
                          "workload": {**work, "demand": "max"}, "choose": choose})  # fmt: skip
    most = pair.answer.plan.requests_per_s
    model = {
        **asked,
        "workload": work,
        "choose": choose,
        "demand": {"mean": f"{0.98 * most} requests/s"},
    }
    plan = planner.solve({
        "problem": "fleet", "hours": 1, "models": {"m": model},
        "pools": {"h": {"system": "hgx-h200", "on_demand": "$4/hour"}},
    })  # fmt: skip
    assert plan.answer.plan.on_demand == {"h": (1,)}
    decode = {c.chips: c.rate for c in plan.answer.columns if c.column.endswith("decode")}
    assert decode[4] == pytest.approx(
        most * 799 / 800, rel=1e-6
    )  # a pair's first token is a prompt's
    assert all(c.ttft_p95 <= 2 for c in plan.answer.columns if c.column.endswith("prefill"))


def test_a_cache_that_no_network_carries_is_refused_by_model_and_pool():
    """Prefill and decode apart; where whole replicas are allowed too, a warning."""
    changes = {"hours": 1, "pools__big": {"system": "h100-nvl", "on_demand": "$4/hour"}}
    words = "mode: disaggregated is not possible on big: .* give scale_out"
    apart = {**SERVED, "choose": {"mode": "disaggregated"}}
    with pytest.raises(InputError, match=f"models.chat: no pool can hold it: {words}"):
        resolve_fleet(load(scenario(models__chat=apart, **changes)))
    both = {**SERVED, "choose": {"mode": ["aggregated", "disaggregated"]}}
    resolution = resolve_fleet(load(scenario(models__chat=both, **changes)))
    assert not any(column.phase for column in resolution.task.columns)
    assert "is not possible on big" in " ".join(resolution.warnings)


def test_owned_machines_cost_nothing_more():
    """Two owned machines serve all; the bill is what is added."""
    assert planner.solve(scenario(have={"big": "2 machines"})).cost == pytest.approx(0)


def test_warnings_say_what_was_taken():
    """A spot contract without a loss, a reservation that is dearer than renting."""
    pool = {"size": 8, "on_demand": "$4/hour", "reserved": {"price": "$5/hour"},
            "spot": {"price": "$2/hour", "machines": 1}}  # fmt: skip
    late = {"hourly": ["4 requests/s", "9 requests/s"], "deferrable": "12 h"}
    question = scenario(pools__big=pool, models__chat__demand=late)
    warnings = " ".join(planner.solve(question).warnings)
    assert "12 hours count as 1 of the 2 hours" in warnings
    assert "5%/hour is taken" in warnings
    assert "dearer than on demand" in warnings
