"""The document and the text of a token budget, as a library and on the command line."""

from __future__ import annotations

import json
import math
import re
from functools import cache

import pytest

import planner
from planner.cli.app import main
from planner.problems.budget.problem import PROBLEM
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.output import output_values
from planner.report.files import dumps
from planner.scenario import load
from planner.token_costs.budget_task import compute_optimal_tokens
from planner.token_costs.optimum import select_best, solve_many
from planner.token_costs.outputs import loss_equations
from planner.token_costs.phase_costs import symbol_values
from tests.loops import for_all
from tests.sizes import first

PHASES = {
    "pretrain": {"system": "hgx-h100", "mfu": 0.4, "price": "$2.50/hour"},
    "rl": {"system": "hgx-h100", "mfu": 0.2, "price": "$2.50/hour"},
    "inference": {"system": "hgx-h200", "mfu": 0.2, "price": "$3.50/hour"},
}
PLAIN = {"problem": "budget", "quality": {"like": {"n_active": 13e9}},
         "inference": {"tokens": 2e12}}  # fmt: skip
RATED = {"problem": "budget", "inference": {"tokens": 1e12},
         "phases": {"pretrain": {"mfu": 0.5}, "inference": {"mfu": 0.1}}}  # fmt: skip
MONEY = {**PLAIN, "objective": "cost", "phases": PHASES, "rl": {"tokens": 2e11}}
CASES = {
    "plain": PLAIN,
    "money": MONEY,
    "cost": {"problem": "budget", "cost": "$5M", "phases": PHASES, "inference": {"tokens": 2e12}},
    "sparse": {**PLAIN, "law": "abnar-2025", "choose": {"sparsity": [1, 8, 32]}},
    "repeated": {**PLAIN, "law": "muennighoff-2023", "data": {"unique": 2e11}},
    "end of the data": {**PLAIN, "data": {"unique": 5e11}},
    "reward": {**MONEY, "rl": {"reward": {"needed": 0.5, "start": 0.2, "middle": 1e21,
                                          "steepness": 1.5}}},
    "term": {**PLAIN, "quality": {"loss": 2.3},
             "rl": {"loss": {"coefficient": 5, "exponent": 0.2}}},
    "for ever": {**PLAIN, "inference": {"rate": 1e6, "lifetime": "forever", "discount": 0.2,
                                        "obsolescence": 0.5}},
    "other laws": {**PLAIN, "law": ["sardana-2024", "besiroglu-2024", "krajewski-2024",
                                    "llama-3-2024"]},
    "all given": {**PLAIN, "choose": {"n_active": 7e9, "pretrain": 1e12}},
    "a rule": {"problem": "budget", "law": "llama-3-2024", "cost": "3.8e25 FLOP"},
    "below the floor": {**PLAIN, "quality": {"loss": 1.7}},
    "too little data": {**PLAIN, "law": "muennighoff-2023", "data": {"unique": 2e10}},
    "one FLOP": {"problem": "budget", "cost": "1 FLOP"},
}  # fmt: skip
KEYS = {
    "schema", "problem", "status", "gap", "scenario", "plan", "band", "bound", "certificate",
    "binding", "elasticities", "alternatives", "heuristic", "compute_optimal", "demand", "laws",
    "over_laws", "unique_data",
    "infeasible", "notes", "outside", "provenance",
}  # fmt: skip
WITHOUT = ("below the floor", "too little data", "one FLOP")


@cache
def solved(name: str) -> planner.Plan:
    """The answer to one of the scenarios, worked out once."""
    return planner.solve(CASES[name])


@for_all("name", CASES)
def test_every_document_has_the_same_shape(name):
    """Keys of the interface, never absent; finite numbers; a text of at most 80 columns."""
    plan = solved(name)
    document = json.loads(dumps(plan.document))
    assert document.keys() == KEYS
    assert document["problem"] == "budget"
    unproved = {**dict.fromkeys(WITHOUT, "infeasible"), "a rule": "feasible"}
    assert document["status"] == unproved.get(name, "optimal")
    assert (document["plan"] is None) == (name in WITHOUT)
    for text in (str(plan), plan.why()):
        assert text
        assert max(map(len, text.splitlines())) <= 80
    assert "Plan budget" in repr(plan)
    assert plan._repr_html_().startswith("<div")


@for_all("name", [name for name in CASES if name not in WITHOUT])
def test_costs_and_shares_add_up(name):
    """Phases add up to the total; shares to one; total parameters are sparsity times active."""
    plan = solved(name).chosen
    cost = plan["cost"]
    for key in ("usd", "flop", "flop_paid", "chip_hours"):
        parts = [cost[phase][key] for phase in ("pretrain", "rl", "inference")]
        if cost["total"][key] is None:
            assert None in parts
        else:
            assert cost["total"][key] == pytest.approx(math.fsum(parts))
    assert sum(plan["share"].values()) == pytest.approx(1)
    assert plan["n_total"] == plan["sparsity"] * plan["n_active"]
    assert cost["pretrain"]["flop"] == pytest.approx(
        6 * plan["n_active"] * plan["tokens"]["pretrain"]
    )
    assert cost["inference"]["flop"] == pytest.approx(
        2 * plan["n_active"] * plan["tokens"]["inference"]
    )


def test_dollars_are_chip_hours_at_their_price():
    """USD = FLOP / (peak * mfu) * rent, in each phase with its own chip."""
    plan = solved("money")
    cost = plan.chosen["cost"]
    for phase, given in PHASES.items():
        each = cost[phase]
        hours = each["flop"] / (given["mfu"] * 989.4e12) / 3600
        price = 3.5 if phase == "inference" else 2.5
        assert each["chip_hours"] == pytest.approx(hours, rel=1e-3)
        assert each["usd"] == pytest.approx(each["chip_hours"] * price)
        assert each["flop_paid"] == pytest.approx(each["flop"] / given["mfu"])
    assert plan.cost == cost["total"]["usd"]


@pytest.mark.slow
def test_of_several_systems_the_cheapest_flop_is_bought():
    """Each phase picks its own chip; a dearer one alone costs more."""
    several = ["hgx-h100", "hgx-b200", "hgx-a100"]
    phases = {name: {"system": several, "mfu": 0.3} for name in ("pretrain", "inference")}
    asked = {**PLAIN, "objective": "cost"}
    best = planner.solve({**asked, "phases": phases})
    alone = [
        planner.solve({**asked, "phases": {name: {"system": one, "mfu": 0.3} for name in phases}})
        for one in several
    ]
    assert best.cost == pytest.approx(min(each.cost for each in alone))
    assert best.chosen["phases"]["pretrain"]["system"] in several


def test_the_best_sparsity_is_the_best_of_all_asked():
    """Sparsities are tried one by one; the others stand as alternatives, dearer."""
    plan = solved("sparse")
    alone = [
        planner.solve({**CASES["sparse"], "choose": {"sparsity": [s]}}).chosen["cost"]["total"]
        for s in (1, 8, 32)
    ]
    assert plan.chosen["cost"]["total"]["flop"] == pytest.approx(min(c["flop"] for c in alone))
    others = [each["cost"]["total"]["flop"] for each in plan.document["alternatives"]]
    assert others == sorted(others)
    assert others[0] > plan.chosen["cost"]["total"]["flop"]
    assert plan.certificate.points_considered == 3


@for_all("name", [name for name in CASES if name not in (*WITHOUT, "a rule")])
def test_outputs_are_what_their_equations_give(name):
    """At the symbols of the plan each expression evaluates to the number printed beside it."""
    plan = solved(name)
    point = plan.answer.plan
    task = select_best(solve_many(resolve_budget(plan.question).tasks)).task
    values = symbol_values(task.phases, point.n_active, point.tokens)
    values |= {"sigma": point.sparsity, "D_opt": compute_optimal_tokens(task.terms, point.n_active)}
    for _, symbols in loss_equations(task, point.n_active, point.tokens):
        values |= symbols
    unlike = set()
    for output in PROBLEM.outputs:
        printed = output_values([output], point).get(output.name)
        if output.equation is None or printed is None:
            unlike.add(output.name)
            continue
        expression = output.equation(plan)
        again = expression.subs({x: values[x.name] for x in expression.free_symbols})
        assert float(again) == pytest.approx(printed, rel=1e-12), output.name
    chosen = {"n_active", "tokens.pretrain", "tokens.rl"}  # the choices themselves
    assert unlike - chosen <= {"cost.total.usd", "cost.pretrain.usd", "cost.inference.usd",
                               "over_training"}  # fmt: skip
    assert (point.over_training is None) == ("over_training" in unlike)
    assert (plan.cost is None) == ("cost.total.usd" in unlike)


def test_a_dense_law_leaves_other_sparsities_out_and_says_so():
    """The scenario of the page asks for four sparsities of a dense law."""
    plan = planner.solve({**PLAIN, "choose": {"sparsity": [1, 8, 16, 32]}})
    assert plan.chosen["sparsity"] == 1
    assert any("8, 16, 32 of choose.sparsity is left out" in each for each in plan.warnings)


def test_extrapolation_is_warned_of_or_refused():
    """Outside the fitted range: a warning, or a mistake at the law where it is not wanted."""
    plan = solved("plain")
    assert any("was fitted on" in each for each in plan.warnings)
    assert plan.document["provenance"]["warnings"] == list(plan.warnings)
    with pytest.raises(planner.InputError, match="law: besiroglu-2024 was fitted on"):
        planner.solve({**PLAIN, "extrapolate": False})
    sparse = {**PLAIN, "law": "abnar-2025", "choose": {"sparsity": [1, 100]}}
    assert planner.solve(sparse).chosen["sparsity"] == 1
    assert planner.solve({**sparse, "extrapolate": True}).chosen["sparsity"] == 100


def test_other_laws_stand_beside_the_first():
    """Each answers the same question, or says why it cannot."""
    laws = solved("other laws").document["laws"]
    assert [each["law"] for each in laws] == ["besiroglu-2024", "krajewski-2024", "llama-3-2024"]
    alone = solved("plain").chosen
    assert laws[0]["plan"]["n_active"] == pytest.approx(alone["n_active"])
    assert laws[2]["plan"] is None
    assert "gives no loss" in laws[2]["why_not"]


def test_the_certificate_says_what_agreed():
    """The program by name, its bound below the answer, and how far the ways differ."""
    proof = solved("plain").certificate
    assert "geometric program" in proof.method
    assert "SciPy" in proof.method
    assert proof.relaxation <= proof.objective
    assert proof.gap == pytest.approx(0, abs=1e-6)
    assert max(proof.differences.values()) < 1e-4
    tangent = solved("repeated").certificate
    assert "tangent" in tangent.method


def test_binding_limits_and_elasticities_agree():
    """The worth of the limit that binds is the elasticity to it."""
    plan = solved("cost")
    (limit,) = plan.binding
    assert (limit.name, limit.elasticity) == ("cost", plan.elasticities["cost"])
    ends = solved("end of the data")
    names = {each.name: each.elasticity for each in ends.binding}
    assert names.keys() == {"loss", "unique data"}
    assert names["unique data"] == ends.elasticities["data.unique"] < 0


def test_what_does_not_matter_is_shown_as_nothing():
    """The floor cancels where the quality is that of a model; the table says ~0."""
    lines = solved("plain").why().splitlines()
    (floor,) = [line for line in lines if line.strip().startswith("law.loss_min")]
    assert floor.split()[-1] == "~0"


def test_what_a_percent_is_worth_stands_in_one_column():
    """However long the names are."""
    told = solved("money").why().split("One percent more of")[1].split("Closed form")[0]
    ends = {line.index("%") for line in told.splitlines() if "%" in line}
    assert len(ends) == 1


def test_exponents_are_printed_with_the_answer():
    """Rounding them moves the answer by a fifth, so they stand in the text."""
    text = " ".join(solved("plain").text("more").split())
    assert "alpha_N 0.3478" in text
    assert "beta_D 0.3658" in text


def test_the_model_of_the_catalogue_has_its_own_size():
    """`like: {model: ...}` counts the active parameters of a published model."""
    quality = {"like": {"model": "llama-3.1-8b", "tokens": 15e12}}
    plan = planner.solve({**PLAIN, "quality": quality})
    same = planner.solve({**PLAIN, "quality": {"like": {"n_active": 8030261248, "tokens": 15e12}}})
    assert plan.chosen["loss"] == pytest.approx(same.chosen["loss"], rel=1e-9)


def test_many_scenarios_are_answered_as_one_by_one():
    """A sweep's answers are those of `solve`, the ones without answer in their places."""
    names = [name for name in CASES if name != "a rule"]
    searches = PROBLEM.search_many([load(CASES[name]) for name in names])
    for name, each in zip(names, searches, strict=True):
        plan = planner.solve({**CASES[name], "draws": 0})
        assert each.feasible == (name not in WITHOUT)
        if each.feasible:
            assert each.score == pytest.approx(plan.certificate.objective, rel=1e-9)
        else:
            assert each.shortfalls[0].expression == plan.infeasible[0].expression


def test_a_rule_among_many_scenarios_is_read_off():
    """It has no optimum that could be sought with the others'."""
    rule, other = PROBLEM.search_many([load(CASES["a rule"]), load(PLAIN)])
    assert (rule.choice, other.choice) == ("by rule", "sparsity 1")


def run(*words: object, capsys) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_the_command_line_answers_budgets(tmp_path, capsys):
    """0 with an answer, 1 without, 2 for a mistake; warnings go to standard error."""
    file = tmp_path / "b.yaml"
    file.write_text(
        "problem: budget\nquality: {like: {n_active: 13B}}\ninference: {tokens: 2e12}\n",
        encoding="utf-8",
    )
    status, out, err = run("solve", file, "--why", capsys=capsys)
    assert status == 0
    assert "6.10B parameters" in out
    assert "Closed form" in out
    assert "! law fitted on" in out
    assert err == ""
    status, out, _ = run("solve", file, "--json", "--set", "quality={loss: 1.7}", capsys=capsys)
    assert status == 1
    assert json.loads(out)["infeasible"][0]["promise"] == "loss"
    status, out, err = run("solve", file, "--set", "law=llama-3-2024", capsys=capsys)
    assert (status, out) == (2, "")
    assert "law: llama-3-2024: it says how to split" in err
    assert run("check", file, capsys=capsys)[:2] == (0, f"{file}: ok (budget)\n")


@pytest.mark.parametrize(
    ("question", "over", "of"),
    first(
        2,
        [
            (CASES["cost"], "cost.total.usd", "loss"),
            (PLAIN, "loss", "cost.total.flop"),
            ({"problem": "budget", "cost": "1e24 FLOP"}, "cost.total.flop", "loss"),
            ({**RATED, "cost": "1e24 FLOP"}, "cost.total.flop_paid", "loss"),
            ({**RATED, "quality": {"loss": 2.1}}, "loss", "cost.total.flop_paid"),
        ],
    ),
)
def test_a_frontier_of_a_budget_is_the_best_at_each_level(question, over, of):
    """Every level is the plan that `solve` gives for that limit alone; each easing gains."""
    curve = planner.pareto(question, points=5)
    limits, values = ([row[name] for row in curve.rows] for name in (over, of))
    assert len(curve.rows) == 5
    assert limits == sorted(limits)
    assert values == sorted(values, reverse=True)
    for row in curve.rows[1::2]:
        given = {"loss": {"quality": {"loss": row[over]}},
                 "cost.total.flop": {"cost": f"{row[over]!r} FLOP"},
                 "cost.total.flop_paid": {"cost": f"{row[over]!r} FLOP"},
                 "cost.total.usd": {"cost": f"{row[over]!r} USD"}}[over]  # fmt: skip
        bare = {key: value for key, value in question.items() if key not in ("quality", "cost")}
        alone = planner.solve(bare | given).answer.plan
        assert row["n_active"] == pytest.approx(alone.n_active, rel=1e-4)
        value = alone.loss if of == "loss" else getattr(alone.cost.total, of.rpartition(".")[2])
        assert row[of] == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_a_frontier_keeps_to_the_law_where_it_must(capsys, tmp_path):
    """Levels beyond the fitted range are left out, and warned of where they are not."""
    asked = {"problem": "budget", "cost": "1e21 FLOP"}
    free = planner.pareto(asked, points=9)
    held = planner.pareto({**asked, "extrapolate": False}, points=9)
    assert max(row["n_active"] for row in held.rows) <= 16.2e9
    assert max(row["tokens.pretrain"] for row in held.rows) <= 318e9
    assert free.document["provenance"]["law"]["name"] == "besiroglu-2024"
    assert any(
        "was fitted on" in x for x in planner.pareto({**asked, "cost": "1e26 FLOP"}).warnings
    )
    with pytest.raises(planner.InputError, match="extrapolate: true answers"):
        planner.pareto({**asked, "cost": "1e26 FLOP", "extrapolate": False})


def test_why_prints_the_equation_of_what_is_counted():
    """USD, FLOP of the peak where an MFU is given, else FLOP done."""
    for question, symbol in ((MONEY, "K_life = "), (PLAIN, "C_done = "),
                             ({**RATED, "cost": "1e24 FLOP"}, "C_paid = ")):  # fmt: skip
        assert f"  {symbol}" in planner.solve(question).why()


@pytest.mark.slow
def test_a_frontier_is_a_table_a_document_and_a_picture(tmp_path, capsys):
    """Widths of 80 columns; the same rows as JSON and CSV; bad numbers of levels are refused."""
    file, out = tmp_path / "b.yaml", tmp_path / "b.csv"
    file.write_text("problem: budget\ncost: 1e24 FLOP\n", encoding="utf-8")
    status, text, _ = run("pareto", file, "--points", "4", "--out", out, capsys=capsys)
    assert status == 0
    assert text.startswith("Least loss at every arithmetic, of a budget\n")
    assert max(map(len, text.splitlines())) <= 80
    _, document, _ = run("pareto", file, "--points", "4", "--json", capsys=capsys)
    rows = json.loads(document)["points"]
    assert len(rows) == 4
    assert out.read_text().splitlines()[0].split(",") == list(rows[0])
    run("pareto", file, "--points", "4", "--out", tmp_path / "b.svg", capsys=capsys)
    assert "<svg" in (tmp_path / "b.svg").read_text()
    for few in ("0", "1"):
        status, _, err = run("pareto", file, "--points", few, capsys=capsys)
        assert (status, f"points: {few} is not between 2 and 1000" in err) == (2, True)
    file.write_text("problem: budget\nquality: {loss: 1.0}\n", encoding="utf-8")
    status, text, _ = run("pareto", file, capsys=capsys)
    assert (status, "nothing keeps the limit: misses loss" in text) == (1, True)
    file.write_text("problem: budget\ncost: 1e24 FLOP\nlaw: llama-3-2024\n", encoding="utf-8")
    status, _, err = run("pareto", file, capsys=capsys)
    assert (status, "problem: its plan has no loss" in err) == (2, True)


def test_a_law_of_ones_own_lies_beside_the_scenario(tmp_path, capsys):
    """A file of a law, by its path from the scenario."""
    (tmp_path / "mine.toml").write_text(
        'form = "chinchilla"\n[coefficients]\nloss_min = 1.7\nA_N = 400\nB_D = 800\n'
        "alpha_N = 0.34\nbeta_D = 0.33\n",
        encoding="utf-8",
    )
    file = tmp_path / "b.yaml"
    file.write_text("problem: budget\nlaw: mine.toml\ncost: 1e24 FLOP\n", encoding="utf-8")
    status, out, _ = run("solve", file, "--json", capsys=capsys)
    assert status == 0
    assert json.loads(out)["plan"]["coefficients"]["A_N"] == 400


def test_the_starter_is_answered(tmp_path, capsys):
    """What `planner init budget` prints has an answer as it is."""
    status, text, _ = run("init", "budget", capsys=capsys)
    file = tmp_path / "start.yaml"
    file.write_text(text, encoding="utf-8")
    assert status == 0
    status, out, _ = run("solve", file, "--json", capsys=capsys)
    assert status == 0
    assert json.loads(out)["plan"]["cost"]["total"]["usd"] > 0


@pytest.mark.parametrize(
    "change",
    [{"cost": "1e24 FLOP"},
     {"cost": "$5M", "phases": {"pretrain": {"system": "hgx-h100", "mfu": "40%"}}}],
)  # fmt: skip
def test_a_law_that_says_no_loss_stands_beside_one_that_does(change):
    """Whatever is limited; its line says that it knows none."""
    laws = ["besiroglu-2024", "hoffmann-2022-approach-2"]
    text = planner.solve({"problem": "budget", "law": laws, **change}).text("more")
    assert re.search(r"hoffmann-2022-approach-2: .* tokens, no loss known", text)
