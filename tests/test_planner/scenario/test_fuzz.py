"""Whatever is thrown at it, `load` gives a scenario or an InputError whose lines can be printed."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.problems.serving.question import Scenario
from planner.scenario import load, resolve_keys
from planner.scenario.keys.fields import QuestionRecord
from planner.scenario.tree import yaml_tree
from planner.text.errors import InputError

RIGHT = {
    "problem": "serving",
    "model": {"total_params": "800B", "kv_bytes_per_token": "2 kB", "weights": "fp8"},
    "system": {"like": "hgx-h200", "memory_bandwidth": "5 TB/s", "flops": {"fp8": "2 PFLOP/s"}},
    "chips": {"from": 8, "to": 64},
    "price": "$3.50/hour",
    "workload": {
        "input_tokens": {"quantiles": {"p50": 4000, "p90": 9000}},
        "output_tokens": {"mean": 1000, "cv": 0.5},
        "demand": "5000 tokens/s",
        "cached_input": "20%",
    },
    "promises": {"ttft": "2 s", "tpot": "50 ms", "e2e": "90 s"},
    "choose": {"tp": [1, 2, 4, 8], "mode": "decode", "weights": ["int8", "fp8"]},
    "current": {"tp": 8, "batch": 64},
    "speculation": {"drafts": 3, "acceptance": 0.7},
}
TEXT = b"""\
problem: serving
model: {total_params: 8e11, kv_bytes_per_token: 2 kB, weights: fp8}
system: {like: hgx-h200, memory_bandwidth: 5 TB/s}
chips: [8, 16]
workload: {input_tokens: 4000, output_tokens: {mean: 1000, cv: 0.8}}
promises: {tpot: 50 ms}
"""
PATHS = [
    *((key,) for key in RIGHT),
    *((key, inner) for key, item in RIGHT.items() if isinstance(item, dict) for inner in item),
    ("workload", "input_tokens", "quantiles"),
    ("workload", "input_tokens", "quantiles", "p50"),
    ("system", "flops", "fp8"),
]
ODD = ["1e400 s", "5 GB", "-3", "$1/h", "fp8", "hgx-h200", "70B", "10**9**9", 10**500]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(ODD),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)


def assert_read_or_refused(source, *sets):
    """A scenario, or None when it was refused properly."""
    refusal = None
    try:
        scenario = load(source, sets)
    except InputError as error:
        refusal = error
    if refusal is None:
        assert isinstance(scenario, QuestionRecord)
        return scenario
    lines = str(refusal).splitlines()
    assert len(lines) == len(refusal.mistakes) >= 1
    assert all(line.isprintable() and len(line) < 1000 for line in lines)
    return None


def test_the_unchanged_scenario_is_right():
    """What is mutated below loads as it is."""
    assert assert_read_or_refused(RIGHT) is not None


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3))
def test_any_value_anywhere(edits):
    """Random values at random keys are read or refused; what is read loads again."""
    tree = copy.deepcopy(RIGHT)
    for path, value in edits:
        holder = tree
        for part in path[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder[path[-1]] = value
    scenario = assert_read_or_refused(tree)
    if isinstance(scenario, Scenario):
        assert load(resolve_keys(scenario, full_paths=True)) == scenario


@settings(deadline=None)
@given(st.sampled_from(PATHS), st.text(max_size=8))
def test_any_key_renamed(path, name):
    """A renamed key is refused, unless it was optional or renamed to itself."""
    tree = copy.deepcopy(RIGHT)
    holder = tree
    for part in path[:-1]:
        holder = holder[part]
    holder[name] = holder.pop(path[-1])
    assert_read_or_refused(tree)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_any_bytes_in_the_file(tmp_path, data):
    """Bytes replaced, inserted or cut anywhere are read or refused, in each notation."""
    content = bytearray(TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        cut = data.draw(st.integers(0, 3))
        content[place : place + cut] = data.draw(st.binary(max_size=4))
    suffix = data.draw(st.sampled_from([".yaml", ".json", ".toml", ""]))
    file = tmp_path / f"s{suffix}"
    file.write_bytes(bytes(content))
    assert_read_or_refused(file)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_as_yaml(text):
    """Any text is a tree or an InputError."""
    with contextlib.suppress(InputError):
        assert yaml_tree(text, "s.yaml").file == "s.yaml"


@settings(deadline=None)
@given(st.text(alphabet="abc.[]{}:=,&*!|>-?'\"% \n\t#0123tpchioswz_", max_size=40))
def test_any_change(change):
    """Any PATH=VALUE is applied or refused."""
    assert_read_or_refused(RIGHT, change)


@pytest.mark.parametrize("name", ["workload.input_tokens", "system.like", "choose.tp.0", "chips"])
@settings(deadline=None)
@given(value=st.text(max_size=20))
def test_any_value_of_a_change(name, value):
    """Any text on the right of a change is read or refused."""
    assert_read_or_refused(RIGHT, f"{name}={value}")
