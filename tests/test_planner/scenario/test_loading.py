"""A scenario that is right: what its fields hold, what changes do, what is given out again."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from planner.problems.serving.question import Scenario
from planner.scenario import json_schema, load, resolve_keys
from planner.scenario.keys.references import File
from planner.scenario.keys.workload import Demand, Distribution
from planner.scenario.kinds import starter
from planner.scenario.loading import read as tree_of
from planner.scenario.tree import ALIASES
from planner.text.errors import InputError

MODEL = {
    "total_params": "800B",
    "active_params": 100e9,
    "kv_bytes_per_token": "2 kB",
    "weights": "fp8",
}


def given(**changes):
    """A small right scenario with some keys changed; None removes one."""
    tree = {
        "problem": "serving",
        "model": MODEL,
        "system": "hgx-h200",
        "chips": 32,
        "workload": {"input_tokens": 4000, "output_tokens": 1000},
    }
    tree.update(changes)
    return {key: value for key, value in tree.items() if value is not None}


def test_quantities_are_in_base_units():
    """Text with units becomes floats in base units."""
    scenario = load(given(price="$3.50/hour", promises={"ttft": "2 s", "tpot": "50 ms"}))
    assert scenario.price == pytest.approx(3.5 / 3600)
    assert (scenario.promises.ttft, scenario.promises.tpot) == (2.0, 0.05)
    assert scenario.model.total_params == 800e9
    assert scenario.model.kv_bytes_per_token == 2000
    assert scenario.workload.input_tokens == Distribution(4000.0)


def test_defaults():
    """What is left out has the documented default."""
    scenario = load(given())
    assert (scenario.objective, scenario.estimate) == ("cost", "calibrated")
    assert (scenario.profile, scenario.assumptions) == ("auto", "physical")
    assert scenario.workload.cached_input == 0
    assert scenario.workload.demand is scenario.current is scenario.price is None
    assert load(given(promises=None, choose=None)).choose.tp is None


@pytest.mark.parametrize(
    ("value", "numbers"),
    [(8, (8,)), (1e3, (1000,)), ([32, 8, 8], (8, 32)), ({"from": 8, "to": 64}, range(8, 65))],
)
def test_chips_are_a_number_a_list_or_a_span(value, numbers):
    """`in`, `min` and `max` work on every form."""
    chips = load(given(chips=value)).chips
    assert chips == numbers
    assert max(numbers) in chips


def test_choices_are_tuples():
    """A value and a list of values read alike."""
    choose = {"tp": [8, 4], "pp": 1, "mode": "decode", "weights": ["int8", "fp8"], "batch": 32}
    read = load(given(choose=choose)).choose
    assert (read.tp, read.pp, read.batch) == ((4, 8), (1,), (32,))
    assert (read.mode, read.weights) == (("decode",), ("int8", "fp8"))
    assert read.kv is None


def test_demand_counts_requests_or_tokens():
    """Requests per second and output tokens per second are told apart."""
    workload = {"input_tokens": 4000, "output_tokens": 1000}

    def of(demand):
        return load(given(workload=workload | {"demand": demand})).workload.demand

    assert of("10 requests/s") == Demand(10.0, "request")
    assert of("5000 tokens/s") == Demand(5000.0, "token")
    assert of("5000 tokens/s").requests_per_s(1000) == 5.0


def test_lengths_fitted_to_quantiles_keep_them():
    """A log-normal through two quantiles has exactly these quantiles' mean and spread."""
    quantiles = {"p50": 3000, 0.9: "9k"}
    workload = {"input_tokens": {"quantiles": quantiles}, "output_tokens": {"mean": 500, "cv": 0.8}}
    read = load(given(workload=workload)).workload
    sigma = math.log(3) / 1.2815515655446004  # the 90 % point of the normal distribution
    assert read.input_tokens.mean == pytest.approx(3000 * math.exp(sigma**2 / 2))
    assert read.input_tokens.cv == pytest.approx(math.expm1(sigma**2) ** 0.5)
    assert read.output_tokens == Distribution(500.0, 0.8)


def test_speed_is_the_inverse_of_tpot():
    """A promised speed per user is a promised time per token."""
    assert load(given(promises={"tokens_per_s_per_user": 20})).promises.slowest_tpot == 0.05
    assert load(given(promises={"tpot": "40 ms"})).promises.slowest_tpot == 0.04


def test_a_varied_system_resolves_with_its_chip():
    """`like` with changes gives the catalogue's system with only these changes."""
    scenario = load(given(system={"like": "hgx-h200", "memory_bandwidth": "5 TB/s"}))
    (system,) = scenario.systems()
    assert system.chip.memory_bandwidth == 5e12
    assert system.chip.memory == 141e9
    assert scenario.price_of(system).count > 5
    assert load(given(price="$2/h")).price_of(system).source == "given"


def test_a_list_of_systems_and_an_inline_one():
    """Several systems may be asked about; an inline one stands alone."""
    inline = {"memory": "100 GB", "memory_bandwidth": "1 TB/s", "flops": {"bf16": "500 TFLOP/s"}}
    assert len(load(given(system=["hgx-h100", inline])).systems()) == 1  # nobody rents it out
    systems = load(given(system=["hgx-h100", {**inline, "price": "$1/hour"}])).systems()
    assert [system.name for system in systems] == ["hgx-h100", "inline"]
    assert systems[1].chip.peak("fp16") == 500e12


def test_a_model_file_is_found_beside_the_scenario(tmp_path):
    """A path is relative to the scenario file and may have any file name."""
    (tmp_path / "weird name").write_text("{}")
    file = tmp_path / "s.json"
    file.write_text(json.dumps(given(model="weird name")))
    model = load(file).model
    assert model == File("weird name", tmp_path / "weird name")
    assert resolve_keys(load(file))["model"] == "weird name"
    absolute = load(given(model={"like": str(tmp_path / "weird name"), "kv": "fp8"})).model
    assert absolute.like.path == tmp_path / "weird name"


def test_yaml_toml_and_json_read_alike(tmp_path):
    """One shape, three notations."""
    texts = {
        "s.yaml": "problem: serving\n"
        "model: {total_params: 1e15, kv_bytes_per_token: 1, weights: fp8}\n"
        "system: hgx-h200\nchips: 8\nworkload:\n  input_tokens: 1e3\n  output_tokens: 10\n",
        "s.toml": 'problem = "serving"\nsystem = "hgx-h200"\nchips = 8\n'
        'model = {total_params = 1e15, kv_bytes_per_token = 1, weights = "fp8"}\n'
        "[workload]\ninput_tokens = 1e3\noutput_tokens = 10\n",
        "s.json": '{"problem": "serving", "system": "hgx-h200", "chips": 8,\n\t"model": '
        '{"total_params": 1e15, "kv_bytes_per_token": 1, "weights": "fp8"},\n'
        '"workload": {"input_tokens": 1e3, "output_tokens": 10}}',
    }
    read = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        read.append(load(tmp_path / name))
    assert read[0] == read[1] == read[2]
    assert read[0].model.total_params == 1e15


def test_yaml_is_version_1_2(tmp_path):
    """`no` is a string, not false; `1e15` a number; 1:30 a string."""
    file = tmp_path / "s.yaml"
    text = "a: no\nb: 1e15\nc: 1:30\nd: 2026-11-01\ne: 0o17\nf: yes\ng: ~\n"
    file.write_text(text)
    assert tree_of(file).data == {
        "a": "no", "b": 1e15, "c": "1:30", "d": "2026-11-01", "e": 15,
        "f": "yes", "g": None,
    }  # fmt: skip


def test_changes_apply_in_order_and_open_names():
    """PATH=VALUE is read as the file is; a name becomes `like` when a key below it is set."""
    sets = ["promises.tpot=40 ms", "promises.tpot=30 ms", "system.memory=100 GB",
            "choose.tp=[2, 4]", "workload.input_tokens.cv=0.5"]  # fmt: skip
    scenario = load(given(), sets)
    assert scenario.promises.tpot == 0.03
    assert scenario.systems()[0].chip.memory == 100e9
    assert scenario.choose.tp == (2, 4)
    assert scenario.workload.input_tokens == Distribution(4000.0, 0.5)


def test_changes_do_not_touch_the_source():
    """A mapping given to `load` is left as it was."""
    tree = given(promises={"tpot": "50 ms"})
    load(tree, ["promises.tpot=40 ms"])
    assert tree == given(promises={"tpot": "50 ms"})


@pytest.mark.parametrize(
    ("symbol", "value", "read"),
    [
        ("B", "64", lambda s: s.choose.batch == (64,)),
        ("L_in", "123", lambda s: s.workload.input_tokens.mean == 123),
        ("L_out", "45", lambda s: s.workload.output_tokens.mean == 45),
        ("W", "5 TB/s", lambda s: s.systems()[0].chip.memory_bandwidth == 5e12),
        ("M", "99 GB", lambda s: s.systems()[0].chip.memory == 99e9),
    ],
)
def test_symbols_stand_for_keys(symbol, value, read):
    """The blackboard's symbols are accepted where they mean one key."""
    assert symbol in ALIASES
    assert read(load(given(), [f"{symbol}={value}"]))


def test_a_scenario_can_be_changed_again():
    """A loaded scenario, loaded again, is itself; with changes, a new one."""
    scenario = load(given(promises={"tpot": "50 ms"}))
    assert load(scenario) is scenario
    assert load(scenario, ["chips=8"]).chips == (8,)
    assert load(scenario, ["chips=8"]).promises == scenario.promises


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"chips": {"from": 8, "to": 64}, "price": "$3/h", "current": {"tp": 8, "batch": 64}},
        {"system": {"like": "hgx-h200", "flops": {"fp8": "1.9 PFLOP/s"}}},
        {"workload": {"input_tokens": {"mean": 9, "cv": 1}, "output_tokens": 5,
                      "demand": "3 req/s"}},
        {"speculation": {"drafts": 3, "acceptance": "70%"}, "power_price": "$0.09/kWh", "pue": 1.2},
    ],
)  # fmt: skip
def test_resolved_is_json_and_loads_again(changes):
    """What is given out in base units is the same scenario."""
    scenario = load(given(**changes))
    again = load(json.loads(json.dumps(resolve_keys(scenario))))
    assert again == scenario


def test_scenario_is_frozen():
    """A scenario never changes."""
    scenario = load(given())
    with pytest.raises(ValueError, match="frozen"):
        scenario.chips = (1,)


def test_schema_describes_every_key():
    """The JSON Schema has every field, its words and its units."""
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert {"$ref": "#/$defs/Scenario"} in schema["oneOf"]
    serving = schema["$defs"]["Scenario"]
    assert set(serving["properties"]) == {*Scenario.model_fields, "units"}
    assert serving["additionalProperties"] is False
    assert serving["properties"]["problem"]["const"] == "serving"
    assert serving["properties"]["objective"]["enum"] == ["cost", "throughput", "latency", "energy"]
    promise = schema["$defs"]["Promises"]["properties"]["tpot"]["anyOf"][0]
    assert promise["type"] == ["string", "number"]
    assert promise["examples"] == ["50 ms"]
    json.dumps(schema)


def test_the_starter_loads_without_a_mistake(tmp_path):
    """What `planner init` writes can be answered as it is."""
    file = tmp_path / "start.yaml"
    file.write_text(starter("serving"), encoding="utf-8")
    scenario = load(file)
    assert (scenario.model, scenario.system, scenario.chips) == ("deepseek-v3", "hgx-h200", (32,))
    assert scenario.promises.tpot == 0.05


def test_the_starter_has_every_field_documented_in_it():
    """The starter names every part of the workload, the promises and the four switches."""
    text = starter("serving")
    for key in ("demand", "concurrency", "cached_input", "e2e", "current", "estimate", "profile"):
        assert f"{key}:" in text
    with pytest.raises(InputError, match="did you mean 'serving'"):
        starter("servng")


def test_reading_a_scenario_imports_nothing_heavy():
    """`planner check` of a catalogue name needs no algebra, solver, arrays or graphs."""
    code = (
        "import sys; from planner.scenario import load; "
        f"load({given()!r}).systems(); "
        "print([m for m in ('sympy','cvxpy','scipy','networkx','numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
