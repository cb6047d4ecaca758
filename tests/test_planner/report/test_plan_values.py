"""Values of a plan in the equations: what is read of it or looked up, what is refused."""

import json

import pytest

from formulas.nomenclature.symbols import SYMBOLS
from formulas.registry import by_name
from planner.report.text.plan_values import plan_case, plan_text
from planner.text.errors import InputError
from tests.cases.frozen import FROZEN


@pytest.fixture
def file(tmp_path):
    """A plan of one pool of two replicas, as far as it is read."""
    plan = {
        "chip": "h200", "chips_used": 16, "weights": "fp8", "kv": "bf16", "batch": 128,
        "batch_per_replica": 64, "tpot": 0.02, "usd_per_hour": 56.0, "decode": None,
        "layout": {"replicas": 2, "pp": 1}, "tokens_per_s": 6400.0,
    }  # fmt: skip
    workload = {"input_tokens": 4000.0, "output_tokens": 1000.0}
    answer = {"plan": plan, "scenario": {"model": "deepseek-v3", "workload": workload}}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(answer))
    return path


def test_one_replica_is_read(file):
    """Half of the chips, its batch, the mean context, caches in their own format."""
    case = plan_case(file)
    assert case["B"] == 64
    assert case["n_chips"] == 8
    assert case["W"] == 8 * case["W_each"]
    assert case["L_ctx"] == 4500
    assert case["b_kv"] == 61 * 576 * 2
    assert case["p_chip"] == pytest.approx(3.5 / 3600)
    assert case["X_tok"] == 6400
    assert case.keys() <= SYMBOLS.keys()


@pytest.mark.slow
def test_the_equations_take_them(file):
    """The weights of the model over the bandwidth of eight chips; every line names an equation."""
    case = plan_case(file)
    assert by_name()["weight_time"].numpy()(
        N_total=case["N_total"], b_w=case["b_w"], W=case["W"]
    ) == pytest.approx(671e9 / 38.4e12, rel=1e-3)
    head, _, listed = plan_text(file).partition("\n\n")
    assert f"{len(case)} symbols of" in head
    assert "  weight_time                0.01747 s" in listed
    names = [line.split()[0] for line in listed.splitlines()[1:]]
    assert set(names) <= by_name().keys()
    assert "critical_batch_with_kv     none" in listed


@pytest.mark.slow
def test_what_is_undefined_for_a_plan_is_said(file):
    """A dense model has no experts: their equations have no value there, the others do."""
    answer = json.loads(file.read_text())
    answer["scenario"]["model"] = "llama-3.1-70b"
    file.write_text(json.dumps(answer))
    listed = plan_text(file)
    assert "  active_parameters          none" in listed
    assert "  weight_time                0.001837 s" in listed


def test_a_plan_of_another_kind_is_read(tmp_path):
    """Over-training from a budget's own tokens, sizes and exponents is what the budget says."""
    plan = {
        "n_active": 6.968595127465447e9, "n_total": 6.968595127465447e9, "over_training": 4.538,
        "tokens": {"pretrain": 1.2478398653007122e12, "rl": 0.0, "inference": 2e12},
        "cost": {"pretrain": {"flop": 5.21741448311501e22}, "rl": {"flop": 0.0},
                 "inference": {"flop": 2.787438050986179e22}},
        "coefficients": {"beta_D": 0.283},
    }  # fmt: skip
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"plan": plan, "scenario": {}}))
    assert "overtraining_proportional  4.538" in plan_text(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "name a plan.json of planner solve"),
        ("half a {", "no JSON"),
        ("[]", "no plan is in it"),
        ('{"plan": null, "scenario": {}}', "no plan kept its promises"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, content, words):
    """One sentence that names the file."""
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words) as refused:
        plan_case(path)
    assert str(path) in str(refused.value)


def test_plans_that_the_planner_gave_are_read(tmp_path):
    """Of every kind, as the frozen answers hold them."""
    kinds = set()
    for frozen in sorted((FROZEN / "answers").glob("*.json")):
        answer = json.loads(frozen.read_text("utf-8")).get("document") or {}
        if answer.get("plan"):
            path = tmp_path / frozen.name
            path.write_text(json.dumps(answer))
            assert plan_case(path)["c_fwd"] == 2
            kinds.add(answer["problem"])
    assert len(kinds) >= 3
