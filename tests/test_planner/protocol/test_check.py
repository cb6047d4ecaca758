"""`planner check` finds what `planner solve` refuses, and nothing else."""

import copy

import pytest

from planner.protocol import solve as protocol
from planner.scenario import load
from planner.text.errors import InputError
from tests.cases.near_sound import near_sound, spoilt_somewhere, stored
from tests.sizes import first, seldom, sized

QUICK = ("prices", "cache", "schedule", "budget", "serving")


def refusal(function, data) -> str:
    """What a function refuses a scenario with; empty where it does not."""
    try:
        function(copy.deepcopy(data))
    except InputError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _beside_the_examples(monkeypatch, tmp_path):
    """Files that are named lie in the folder; one of them is a trace of other columns."""
    (tmp_path / "columns.csv").write_text("a,b,c\n1,2,3\n")
    monkeypatch.chdir(tmp_path)


def test_both_have_one_verdict_and_the_same_words():
    """Stored scenarios with values changed, added and left out, of the kinds that are quick."""
    seen = {True: 0, False: 0}
    for seed in range(sized(60, 1500)):
        data = near_sound(seed, QUICK)
        if refusal(load, data):
            continue  # both read alike
        found = refusal(protocol.check, data)
        assert found == refusal(protocol.solve, data), (seed, data)
        seen[bool(found)] += 1
    assert min(seen.values()) > 5


def agree(data) -> None:
    """What `check` takes `solve` answers, if only by saying that there is no plan."""
    if not refusal(protocol.check, data):
        assert not refusal(protocol.solve, data), data


@pytest.mark.parametrize("seed", [*first(20, range(40)), *seldom(range(40, 3000))])
def test_what_check_takes_is_answered_at_every_place_of_the_schema(seed):
    """Odd values anywhere in the quick kinds."""
    agree(spoilt_somewhere(seed, QUICK))


@pytest.mark.parametrize("seed", seldom(range(1500)))
def test_what_check_takes_is_answered_for_every_kind(seed):
    """Also of kinds whose answers take seconds."""
    agree(spoilt_somewhere(seed))
    agree(near_sound(seed))


POWER = {"power_price": "$0.1/kWh"}
ENDS = {
    "the least prefix": ("cache", {"prefix": 1}, "prefix"),
    "all of the peak": ("cache", {"prefill_efficiency": "100%"}, "prefill_efficiency"),
    "no cooling": ("training", {"objective": "cost", "pue": 1, **POWER}, "pue"),
    "the most cooling": ("training", {"objective": "cost", "pue": 10, **POWER}, "pue"),
    "the most seats": ("schedule", {"capacity": 1_000_000, "arrivals": "1 request/s"}, None),
    "one seat": ("schedule", {"capacity": 1, "arrivals": "1 request/s"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_quantity_at_the_end_of_its_range_is_answered(name):
    """What one percent of it is worth is that of the side that is left."""
    kind, changes, path = ENDS[name]
    data = next(copy.deepcopy(each) for each in stored() if each["problem"] == kind) | changes
    protocol.check(copy.deepcopy(data))
    document = protocol.solve(data).document
    if path is not None:
        assert path in document["elasticities"]


CHANGES = {
    "a sheet of another list": ("prices", {"sheet": "GLM-4.5"}, "sheet"),
    "a sheet of a vendor": ("prices", {"sheet": "anthropic/claude-sonnet-4.5"}, "sheet"),
    "a trace of other columns": ("cache", {"reuse": {"trace": "columns.csv"}}, "reuse.trace"),
    "a law beyond its range": ("budget", {"extrapolate": False, "choose": {"n_active": "1e13"}},
                               "law"),
    "a layout of other heads": ("serving", {"current": {"tp": 7, "batch": 64}}, "current.tp"),
    "a layout without a batch": ("serving", {"current": {"tp": 8}}, "current.batch"),
    "hosts that serve no such model": ("serving", {"buy": {"prices": "catalogue", "model": "x"}},
                                       "buy.model"),
    "chips that fail too fast": (
        "training", {"reliability": {"mtbf": "1 hour/chip", "save": "1 min", "restart": "10 min"}},
        "reliability",
    ),
    "splits that are none": ("rl", {"unit": 8, "split": [7]}, "split"),
    "more splits than are searched": ("rl", {"chips": 1_000_000}, "chips"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_check_refuses_at_its_place(name):
    """Sheets, traces, hosts, layouts in use, and what no run would finish."""
    kind, changes, path = CHANGES[name]
    data = next(copy.deepcopy(each) for each in stored() if each["problem"] == kind)
    found = refusal(protocol.check, data | changes)
    assert found.startswith(f"scenario  {path}: "), found
    assert found == refusal(protocol.solve, data | changes)


def test_a_prompt_that_no_engine_takes_is_planned_with_a_warning():
    """Above the context of the model `solve` warns, so that `check` lets it by; an engine not."""
    data = next(copy.deepcopy(each) for each in stored() if each["problem"] == "serving")
    data |= {"model": "llama-3.3-70b", "promises": {}}
    data["workload"] = {"input_tokens": 300_000, "output_tokens": 100}
    assert not refusal(protocol.check, data)
    assert any("is longer than the" in words for words in protocol.solve(data).warnings)
    assert "workload.input_tokens: " in refusal(protocol.check, data | {"engine": "vllm"})


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("training", {"chips": 10**9}, "chips: expected at most 1,000,000"),
        ("schedule", {"capacity": 10**9}, "capacity: expected at most 1,000,000"),
        ("fleet", {"hours": 10**7}, "hours: expected at most 8,784"),
    ],
)
def test_counts_above_what_is_worked_out_are_refused_with_the_limit(kind, changes, words):
    """Where they stand, before anything is allocated."""
    data = next(copy.deepcopy(each) for each in stored() if each["problem"] == kind)
    assert words in refusal(load, data | changes)
