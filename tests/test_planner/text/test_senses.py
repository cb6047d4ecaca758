"""Suggestions: what a word means before how it is spelled."""

import pytest

from planner.catalogue.models import model_names
from planner.catalogue.systems import system_names
from planner.scenario import load
from planner.scenario.kinds import question_types
from planner.text.errors import InputError, _senses, did_you_mean
from tests.loops import for_all

SERVING = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2,
    "workload": {"input_tokens": 500, "output_tokens": 100},
}  # fmt: skip
KEYS = ("model", "system", "chips", "nodes", "objective")


@for_all(
    ("word", "candidates", "meant"),
    [
        ("gpus", KEYS, "chips"), ("servers", KEYS, "nodes"), ("Hardware", KEYS, "system"),
        ("nodes", ("model", "system", "chips"), "chips"), ("goal", KEYS, "objective"),
        ("latency", ("ttft", "tpot"), "tpot"), ("modle", KEYS, "model"),
        ("lama-3.1-8b", model_names(), "llama-3.1-8b"),
        ("qwen3-32", model_names(), "qwen3-32b"), ("8xH100", system_names(), "hgx-h100"),
        ("8x MI300X", system_names(), "mi300x-8"),
    ],
)  # fmt: skip
def test_a_word_is_answered_with_what_it_means(word, candidates, meant):
    """Synonyms by a table, slips by their letters, counted chips as machines."""
    assert did_you_mean(word, candidates) == f"; did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("word", "candidates"),
    [("nodes", ("model", "objective")), ("gpt-5", model_names()), ("qwen4-32b", model_names()),
     ("llama-5", model_names()), ("input", ("buy", "pue"))],
)  # fmt: skip
def test_nothing_is_suggested_for_what_means_something_else(word, candidates):
    """Nodes are no model, and another version is another model."""
    assert did_you_mean(word, candidates) == ""


@for_all(
    ("changes", "words"),
    [
        ({"input": "3k"}, "input: unknown key 'input'; it can stand as workload.input_tokens"),
        ({"users": 9}, "it can stand as workload.concurrency"),
        ({"speed": "30 tok/s"}, "it can stand as promises.tokens_per_s_per_user"),
        ({"promises": {"latency": "9 ms"}}, "did you mean 'tpot'?"),
        ({"promises": {"tpot": "30 tok/s"}}, 'as a time per token "33.3 ms"'),
        ({"promises": {"tpot": 33}}, 'write "33 ms" or "33 s"'),
        ({"promises": {"tpot": "33"}}, 'write "33 ms" or "33 s"'),
        ({"workload": SERVING["workload"] | {"demand": 10}}, 'write "10 requests/s"'),
        ({"workload": SERVING["workload"] | {"demand": "10"}}, 'write "10 requests/s"'),
        ({"system": {"like": "hgx-h100", "memory": 80}}, 'write "80 GB" or "80 B"'),
        ({"system": {"like": "hgx-h100", "power": 700}}, 'write "700 W" or "700 kW"'),
        ({"price": 0.09}, 'write "$0.09/hour"'),
        ({"promises": {"speed": 30, "tokens_per_s_per_user": 30}}, "leave one out"),
        ({"units": "SI"}, "units: expected base"),
    ],
)
def test_a_scenario_is_told_the_key_and_the_unit(changes, words):
    """Keys by what is meant wherever they stand, numbers with the units that they may have."""
    with pytest.raises(InputError) as refused:
        load(SERVING | changes)
    assert words in str(refused.value)


def test_a_speed_is_a_promise_wherever_it_is_written():
    """In a file, by `--set`, and in base units where the scenario says so."""
    for scenario in (
        load(SERVING | {"promises": {"speed": "25 tok/s"}}),
        load(SERVING, ["promises.speed=25 tok/s"]),
        load(SERVING | {"promises": {"tpot": 0.04}, "units": "base"}),
    ):
        assert scenario.promises.slowest_tpot == pytest.approx(0.04)


def test_every_sense_is_a_key_of_some_scenario():
    """The table suggests nothing that is not read anywhere, and no key for itself alone."""
    keys = {key for shape in question_types() for key in _keys_below(shape.model_json_schema())}
    assert {key for meant in _senses().values() for key in meant} <= keys


def _keys_below(schema):
    parts = [schema, *schema.get("$defs", {}).values()]
    return {key for part in parts for key in part.get("properties", {})}
