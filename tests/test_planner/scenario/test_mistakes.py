"""Every mistake in a scenario is told in one go, at its line and column."""

# ruff: noqa: E501 - one case is one line

from __future__ import annotations

import pytest

from planner.scenario import load
from planner.scenario.kinds import PROBLEMS
from planner.text.errors import InputError
from tests.loops import for_all

RIGHT = """\
problem: serving
model: {total_params: 8e11, kv_bytes_per_token: 2 kB, weights: fp8}
system: hgx-h200
chips: 32
workload:
  input_tokens: 4000
  output_tokens: 1000
promises:
  ttft: 2 s
  tpot: 50 ms
"""


def told(tmp_path, text, *sets):
    """The printed lines, with the file's folder taken off."""
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(file, sets)
    assert caught.value.exit_status == 2
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.mistakes)
    return [line.replace(f"{tmp_path}/", "") for line in lines]


def one(tmp_path, old, new):
    """The only line told when one piece of the right scenario is replaced."""
    assert RIGHT.count(old) == 1
    (line,) = told(tmp_path, RIGHT.replace(old, new))
    return line


CASES = [
    ("tpot: 50 ms", "tpott: 50 ms", "10:3  promises.tpott: unknown key 'tpott'; did you mean 'tpot'?"),
    ("problem: serving", "problem: serving\ndemand: 3 requests/s", "2:1  demand: unknown key 'demand'; it can stand as workload.demand"),
    ("tpot: 50 ms", "tpot: 50 GB", '10:9  promises.tpot: expected a time such as "50 ms", got "50 GB" (bytes)'),
    ("tpot: 50 ms", "tpot: -50 ms", '10:9  promises.tpot: expected a time such as "50 ms", got "-50 ms", which is negative'),
    ("tpot: 50 ms", "tpot: .nan", '10:9  promises.tpot: expected a time such as "50 ms", got nan, which is not a number'),
    ("tpot: 50 ms", "tpot: .inf", '10:9  promises.tpot: expected a time such as "50 ms", got inf, which is not finite'),
    ("tpot: 50 ms", "tpot: 0", '10:9  promises.tpot: expected a value above zero such as "50 ms", got 0'),
    ("tpot: 50 ms", "tpot: yes please", '10:9  promises.tpot: expected a time such as "50 ms", got "yes please", which does not begin with a number'),
    ("tpot: 50 ms", "tpot: [1]", '10:9  promises.tpot: expected a time such as "50 ms", got a list of 1 items'),
    ("tpot: 50 ms", "tpot: true", '10:9  promises.tpot: expected a time such as "50 ms", got True'),
    ("tpot: 50 ms", "ttft: 3 s", "10:3  promises.ttft: duplicate key 'ttft', first given at line 9, column 3"),
    ("tpot: 50 ms", "tpot: 1 s\n  tokens_per_s_per_user: 3", "11:26  promises.tokens_per_s_per_user: give tpot or its inverse tokens_per_s_per_user, not both"),
    ("chips: 32", "chips: 0", "4:8  chips: expected a whole number of at least 1 such as 8, got 0"),
    ("chips: 32", "chips: 2.5", "4:8  chips: expected a whole number of at least 1 such as 8, got 2.5"),
    ("chips: 32", "chips: [8, x]", "4:12  chips.1: expected a whole number of at least 1 such as 8, got 'x'"),
    ("chips: 32", "chips: {from: 64, to: 8}", "4:23  chips.to: expected at least 64 (from), got 8"),
    ("chips: 32", "chips: {from: 1, to: 1e9}", "4:22  chips.to: expected a span of at most 1,000,000 numbers"),
    ("chips: 32", "chips: {from: 64}", "4:1  chips.to: missing required key 'to'"),
    ("chips: 32", "chips: 8 GB", "4:8  chips: expected a whole number of at least 1 such as 8, got '8 GB'"),
    ("chips: 32", "chips: 32\nprice: 3.5", '5:8  price: expected a price per chip and time such as "$3.50/hour", got 3.5 without a unit; write "$3.50/hour"'),
    ("chips: 32", "chips: 32\nprice: $3.5", '5:8  price: expected a price per chip and time such as "$3.50/hour", got "$3.5" (USD); did you mean "$3.5/hour"?'),
    ("chips: 32", "chips: 32\nobjective: costs", "5:12  objective: expected one of cost, throughput, latency, energy, got 'costs'; did you mean 'cost'?"),
    ("chips: 32", "chips: 32\nchoose: {mode: agregated}", "5:16  choose.mode: expected one of aggregated, disaggregated, decode, prefill, got 'agregated'; did you mean 'aggregated'?"),
    ("chips: 32", "chips: 32\nchoose: {tp: 64, pp: 2}", "5:14  choose.tp: tp 64 * pp 2 needs 128 chips, but chips is 32"),
    ("chips: 32", "chips: 32\nchoose: {weights: nvfp4}", "5:19  choose.weights: the chip h200 has no nvfp4 arithmetic (it has bf16, fp8, int8); give activations: bf16 to keep only the weights in nvfp4"),
    ("chips: 32", "chips: 32\ncurrent: {tp: 8, ep: 4, tp_expert: 1}", "5:10  current: ep * tp_expert = 4 must equal tp * dp_attention = 8: the experts re-partition the same chips"),
    ("chips: 32", "chips: 32\npue: 0.5", "5:6  pue: expected at least 1, got 0.5"),
    ("chips: 32", "chips: 32\nspeculation: {acceptance: 0.7}", "5:1  speculation.drafts: missing required key 'drafts': tokens drafted per sequence and step, or auto: as many as pay at each batch"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 2, acceptance: 0.7, accepted: 2.1}", "5:53  speculation.accepted: accepted says how many tokens a step brings, and acceptance says it again; leave one of the two out"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: auto, accepted: 2.1}", "5:39  speculation.accepted: one length cannot tell other depths, and drafts: auto needs them; give a list by depth such as [1.7, 2.1, 2.4], or a number of drafts"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 2, accepted: 3.1}", "5:36  speculation.accepted: a step of 2 drafts emits at most 3 tokens, not 3.1; give more drafts, or a smaller length"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 3, accepted: [1.7, 3.2]}", "5:42  speculation.accepted.1: 3.2 tokens of a step of 2 drafts; it emits at most 3"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 0}", "5:23  speculation.drafts: expected a whole number of at least 1 such as 8, got 0"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: atuo}", "5:23  speculation.drafts: expected a whole number, or auto, got 'atuo'; did you mean 'auto'?"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 2, method: eagel-3}", "5:34  speculation.method: expected one of mtp, eagle, eagle-2, eagle-3, n-gram, draft-model, got 'eagel-3'; did you mean 'eagle-3'?"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 2, draft_model: llama-3.2-1c}", "5:39  speculation.draft_model: unknown model 'llama-3.2-1c'; did you mean 'llama-3.2-1b'?"),
    ("chips: 32", "chips: 32\nspeculation: {drafts: 2, method: mtp, draft_model: llama-3.2-1b}", "5:52  speculation.draft_model: a model of its own drafts, and method says mtp; leave one of the two out"),
    ("problem: serving", "problem: servng", f"1:10  problem: expected one of {', '.join(PROBLEMS)}, got 'servng'; did you mean 'serving'?"),
    ("system: hgx-h200", "system: hgx-h201", "3:9  system: unknown system 'hgx-h201'; did you mean 'hgx-h20'?"),
    ("system: hgx-h200", "system: hgx-mi300x", "3:9  system: unknown system 'hgx-mi300x'; did you mean 'mi300x-8'?"),
    ("system: hgx-h200", "system: p5-h100", "3:9  system: unknown system 'p5-h100'; did you mean 'hgx-h100'?"),
    ("system: hgx-h200", "system: ./net.yaml", "3:9  system: no system file './net.yaml' is found"),
    ("system: hgx-h200", "system: {like: hgx-h200, memory: -1 GB}", '3:34  system.memory: expected a size in bytes such as "80 GB", got "-1 GB", which is negative'),
    ("system: hgx-h200", "system: {like: hgx-h100, scale_up: 900 GB/s}", "3:36  system.scale_up: expected the bandwidth one way, got 900 GB/s, twice the catalogue's 450 GB/s; this looks like the bidirectional figure, did you mean \"450 GB/s\"?"),
    ("system: hgx-h200", "system: {like: hgx-h100, flops: {fp8: 3958 TFLOP/s}}", "3:39  system.flops.fp8: expected the dense peak, got 3.96 PFLOP/s, twice the catalogue's 1.98 PFLOP/s; this looks like the sparse figure, did you mean \"1.98 PFLOP/s\"?"),
    ("system: hgx-h200", "system: {like: hgx-h200, flops: {fp9: 1e15}}", "3:34  system.flops.fp9: unknown key 'fp9'; did you mean 'fp8'?"),
    ("system: hgx-h200", "system: {memory: 80 GB, memory_bandwidth: 1 TB/s}", "3:1  system.flops: missing required key 'flops' (or give like: a system to vary)"),
    ("system: hgx-h200", "system: [hgx-h200, hgx-h99]", "3:20  system.1: unknown system 'hgx-h99'; did you mean 'hgx-h20'?"),
    ("system: hgx-h200", "system: {like: hgx-h200, price: 2}", '3:33  system.price: expected a price per chip and time such as "$3.50/hour", got 2 without a unit; write "$2.00/hour"'),
    ("system: hgx-h200", "system: {like: hgx-h200, price: $2/h}\nprice: $3/h", "4:8  price: give price here or in system, not both"),
    ("system: hgx-h200", "system: []", "3:9  system: expected at least one system, got an empty list"),
    ("weights: fp8}", "weights: fp8, bytes_per_weight: 1}", "2:87  model.bytes_per_weight: give weights (a dtype) or bytes_per_weight, not both"),
    ("weights: fp8}", "weights: fp8, active_params: 9e11}", "2:84  model.active_params: expected at most total_params = 800 B params, got 900 B params"),
    ("input_tokens: 4000", "cached_input: 0", "5:1  workload.input_tokens: missing required key 'input_tokens': prompt length [token], a number or a distribution"),
    ("output_tokens: 1000", "output_tokens: 0.5", "7:18  workload.output_tokens: expected at least 1, got 0.5"),
    ("output_tokens: 1000", "output_tokens: {mean: 9, cv: -1}", '7:32  workload.output_tokens.cv: expected a plain number such as "1.2", got -1, which is negative'),
    ("output_tokens: 1000", "output_tokens: {quantiles: {p50: 9}}", "7:30  workload.output_tokens.quantiles: expected at least two quantiles such as {p50: 3000, p90: 9000}, got a dict of 1 items"),
    ("output_tokens: 1000", "output_tokens: {quantiles: {p50: 9, q90: 10}}", "7:44  workload.output_tokens.quantiles.q90: expected a quantile such as p50 or 0.5, got 'q90'"),
    ("output_tokens: 1000", "output_tokens: 1\n  cached_input: 1", "8:17  workload.cached_input: expected less than 1, got 1"),
    ("output_tokens: 1000", "output_tokens: 1\n  demand: 1 requests/s\n  concurrency: 2", "9:16  workload.concurrency: give demand (an open loop) or concurrency (a closed loop), not both"),
    ("output_tokens: 1000", "output_tokens: 1\n  demand: 3 GB", '8:11  workload.demand: expected a request rate such as "10 requests/s", got "3 GB" (bytes); output tokens such as "5000 tokens/s" are read too, and max: the largest load that the chips serve'),
    ("output_tokens: 1000", "output_tokens: !!python/name:os.system ''", "7:18  workload.output_tokens: tags such as 'tag:yaml.org,2002:python/name:os.system' are not read"),
    ("system: hgx-h200", "system: hgx-h200\npue: 250%", "4:6  pue: expected a factor such as 1.2, got '250%'"),
    ("output_tokens: 1000", "output_tokens: 1\n  routing_skew: 250%", "8:17  workload.routing_skew: expected a factor such as 1.2, got '250%'"),
    ("output_tokens: 1000", "output_tokens: *x", "7:18  workload.output_tokens: unknown alias *x, or one inside what it names"),
]  # fmt: skip


@for_all(("old", "new", "line"), CASES)
def test_a_mistake_is_told_at_its_place(tmp_path, old, new, line):
    """One thing wrong gives one line: file, line, column, path, what was expected and meant."""
    assert one(tmp_path, old, new) == f"s.yaml:{line}"


def test_a_misspelt_required_key_is_both_unknown_and_missing(tmp_path):
    """The unknown key names the one that was meant, the missing one stands at the parent."""
    lines = told(tmp_path, RIGHT.replace("weights: fp8}", "weight: fp8}"))
    assert lines == [
        "s.yaml:2:1  model.weights: missing required key 'weights', such as fp8",
        "s.yaml:2:55  model.weight: unknown key 'weight'; did you mean 'weights'?",
    ]


def test_all_mistakes_are_told_in_the_order_of_the_file(tmp_path):
    """Nine mistakes of nine kinds give nine lines."""
    text = """\
problem: serving
model: no-such-model-anywhere
system: hgx-h20O
chips: 0
price: $3.5
workload:
  output_tokens: .nan
promises:
  ttft: 2 GB
  tpott: 50 ms
  ttft: 3 s
colour: red
"""
    lines = told(tmp_path, text)
    assert [line.split("  ")[0] for line in lines] == [
        "s.yaml:2:8", "s.yaml:3:9", "s.yaml:4:8", "s.yaml:5:8", "s.yaml:6:1", "s.yaml:7:18",
        "s.yaml:9:9", "s.yaml:10:3", "s.yaml:11:3", "s.yaml:12:1",
    ]  # fmt: skip


def test_missing_top_level_keys(tmp_path):
    """Every required key is asked for by name."""
    lines = told(tmp_path, "objective: cost\n")
    for key in ("problem", "model", "system", "chips", "workload"):
        assert any(f"missing required key '{key}'" in line for line in lines)


def test_changes_are_told_by_their_own_text(tmp_path):
    """A mistake in PATH=VALUE names the change, not a line of the file."""
    lines = told(tmp_path, RIGHT, "promises.tpott=1 s", "chips=none", "promises.ttft=2 GB")
    assert sorted(lines) == [
        "--set chips=none  chips: expected a whole number of at least 1 such as 8, got 'none'",
        "--set promises.tpott=1 s  promises.tpott: unknown key 'tpott'; did you mean 'tpot'?",
        '--set promises.ttft=2 GB  promises.ttft: expected a time such as "50 ms", '
        'got "2 GB" (bytes)',
    ]


@for_all(
    ("change", "said"),
    [
        ("chips", "expected PATH=VALUE"),
        ("=3", "expected PATH=VALUE"),
        ("promises..tpot=3", "has an empty part"),
        ("promises.tpot=[", "not YAML"),
        ("promises.tpot=!!python/name:os.system x", "are not read"),
        ("chips.x=3", "holds 32, which has no keys"),
        ("nowhere.at.all=3", "unknown key 'nowhere'"),
        ("__class__.x=3", "unknown key '__class__'"),
        ("promises.tpot=__import__('os')", "does not begin with a number"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(tmp_path, change, said):
    """No change is evaluated, and none is dropped."""
    assert said in "\n".join(told(tmp_path, RIGHT, change))


def test_a_change_below_a_list_needs_one_of_its_places(tmp_path):
    """A word is no place of a list, at its end or on the way; nothing is dropped in silence."""
    text = RIGHT.replace("chips: 32", "chips: [16, 32]")
    for change in ("chips.x=3", "chips.x.y=3", "chips.2=3"):
        assert "expected an index below 2" in "\n".join(told(tmp_path, text, change))


def test_mistakes_of_a_mapping_have_paths():
    """Without a file there are no lines, only paths."""
    with pytest.raises(InputError) as caught:
        load({"problem": "serving", "chips": -1})
    assert "scenario  chips: expected a whole number" in str(caught.value)


@pytest.mark.parametrize("value", ["2e-313 s", "1e-60 s", "1e300 s"])
def test_a_value_that_nothing_has_is_refused(tmp_path, value):
    """Numbers whose ratios would overflow are mistakes, not failures of ours."""
    line = one(tmp_path, "ttft: 2 s", f"ttft: {value}")
    assert "promises.ttft: expected a value that something real could have" in line


@pytest.mark.parametrize("problem", ["problem: budgets\n", ""])
def test_a_problem_that_is_not_known_is_not_read_as_another(tmp_path, problem):
    """Its keys say which one was meant, so that no key of another problem is asked for."""
    lines = told(tmp_path, f"{problem}quality: {{loss: 2,05}}\nphases: {{}}\n")
    row = 1 + bool(problem)
    assert len(lines) == 2
    assert "  problem: " in lines[0]
    assert lines[1] == (
        f"s.yaml:{row}:19  quality.5: unknown key 5 (known: loss, like); "
        "in {a: 2,05} the comma ends the value: write 2.05"
    )
