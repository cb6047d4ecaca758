"""Options of engines as people spell them, and that each is read, passed over, named or refused."""

from __future__ import annotations

import json

import pytest

from planner.engines import ENGINES
from planner.engines.imported import scenario_from_launch
from planner.engines.option_names import OptionError, engine_options
from planner.text.errors import InputError
from planner.text.tables import table
from tests.paths import DATA

SAID = ("system=hgx-h200", "workload.input_tokens=1000", "workload.output_tokens=200")
RECORDED = json.loads((DATA / "engine_options.json").read_text("utf-8"))
OSS = "openai/gpt-oss-120b"


def read(text: str, *sets: str):
    """A command as a scenario."""
    return scenario_from_launch([text], (*SAID, *sets))


def notes(text: str) -> str:
    """What is said beside a command's scenario."""
    return " / ".join(read(text).notes)


SPELLED = {
    "--tensor_parallel_size 4": 4,
    "--tensor-parallel-size=4": 4,
    "--tensor_parallel_size=4": 4,
    "--tensor-par 4": 4,
    "-tp=4": 4,
    "--enforce-eager --tensor-parallel-size 4": 4,
    "--trust-remote-code --no-enable-prefix-caching -tp 4 2>&1 | tee -a -tp 9": 4,
}


@pytest.mark.parametrize("options", SPELLED)
def test_an_option_is_what_the_parser_takes_it_for(options):
    """Underscores, equals signs, unique beginnings; what follows the command is not of it."""
    assert read(f"vllm serve {OSS} {options}").data["current"]["tp"] == SPELLED[options]


@pytest.mark.parametrize("options", ["--max-num 4", "--tensr-parallel-size 4", "--data-parallel 2"])
def test_what_lays_out_chips_is_not_guessed(options):
    """A beginning of several options, and a slip of the pen, are refused by name."""
    with pytest.raises(InputError, match=options.split()[0]):
        read(f"vllm serve {OSS} {options}")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_option_of_an_engine_is_known(engine):
    """What its parser lists is known by name; a release's rows carry options that it has."""
    known = engine_options(engine)
    for option in RECORDED[engine]["options"]:
        name, positive = known.named(option) or pytest.fail(option)
        assert positive
        assert name in known.names.values()
    assert not known.idle & known.carried
    assert not known.idle & (known.refused.keys() | known.effects.keys())
    assert set(known.effects) <= set(known.names.values())
    assert set(known.refused) <= set(known.names.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_options_stand_in_one_list(engine):
    """No option is both passed over and not, and none is listed twice."""
    lists = table("planner.engines", "engine_options.toml")[engine]
    words = [*lists["idle"].split(), *lists["rest"].split()]
    assert len(words) == len(set(words))
    assert set(lists["switches"].split()) <= set(words)


def test_what_is_not_counted_is_named():
    """Memory that a plan does not count, options of other releases; logs and addresses are not."""
    text = notes(
        f"vllm serve {OSS} --cpu-offload-gb 40 --enforce-eager --num-scheduler-steps 10 "
        "--host 0.0.0.0 --port 8000 --disable-log-requests --trust-remote-code --seed 0"
    )
    assert "--cpu-offload-gb: may change where weights lie" in text
    assert "--enforce-eager: may change time" in text
    assert "no options of vLLM 0.33.0, not read: --num-scheduler-steps" in text
    for silent in ("--host", "--port", "--disable-log-requests", "--trust-remote", "--seed"):
        assert silent not in text
    assert "--cpu-offload-gb" not in notes(f"vllm serve {OSS} --cpu-offload-gb 0")
    start = f"python3 -m sglang.launch_server --model-path {OSS} --tp 2 --enable-hisparse"
    text = notes(f"SGLANG_PP_LAYER_PARTITION=20,16 {start} --pp 2")
    assert "--enable-hisparse: may change where caches lie" in text
    assert "SGLANG_PP_LAYER_PARTITION: may change which layers each stage has" in text


REFUSED = {
    f"vllm serve {OSS} --prefill_context_parallel_size 2": "prompts that are cut over chips",
    f"python3 -m sglang.launch_server --model-path {OSS} --tp 8 --dp 2": "launch each by itself",
    f"trtllm-serve {OSS} --cp_size 2": "prompts that are cut",
    f"vllm serve {OSS} --max-model-len 1000": "requests of 1200 tokens are longer than the 1000",
    f"vllm serve {OSS} --speculative-config mtp": "expects JSON",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_layout_without_a_key_is_refused(text):
    """By the option's name, with what it does."""
    with pytest.raises(InputError, match=REFUSED[text]):
        read(text)


def test_a_value_that_changes_nothing_is_let_through():
    """One part of a context is none."""
    text = f"vllm serve {OSS} -dcp 1 -tp 2 --max-model-len auto --max-num-batched-tokens 8k"
    current = read(text).data["current"]
    assert (current["tp"], current["chunk"]) == (2, 8000)


def test_old_attention_copies_of_sglang():
    """--dp beside --enable-dp-attention counts copies of attention, as --attn-dp-size does."""
    start = f"python3 -m sglang.launch_server --model-path {OSS} --tp 8 --ep 8"
    old = read(f"{start} --dp 8 --enable-dp-attention --max-running-requests 64").data
    new = read(f"{start} --attn-dp-size 8 --max-running-requests 64").data
    assert old == new
    assert old["current"]["dp_attention"] == 8


@pytest.mark.parametrize(
    "written",
    [
        """'{"num_speculative_tokens": 3, "method": "mtp", "draft_tensor_parallel_size": 1}'""",
        "--speculative-config.method mtp --speculative-config.num_speculative_tokens=3",
    ],
)
def test_json_is_read_by_its_keys(written):
    """In any order, with further keys, and key by key."""
    option = "" if written.startswith("--") else "--speculative-config "
    assert "3 drafts a step" in notes(f"vllm serve deepseek-ai/DeepSeek-V3 {option}{written}")


def test_an_unknown_option_of_the_parser_is_none():
    """What no release has is no option, and no mistake."""
    assert engine_options("vllm").named("--zzzz") is None
    with pytest.raises(OptionError):
        engine_options("sglang").named("--speculative-num")
