"""Every command does what the interface says: text, JSON, files, exit status, the right stream."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loops import for_all
from tests.paths import ROOT
from tests.sizes import first
from tests.test_planner.cli.conftest import document, numbers

SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 2
price: $2.50/hour
workload: {input_tokens: 500, output_tokens: 100}
promises: {ttft: 2 s, tpot: 50 ms}
"""
ANSWER = {
    "problem", "status", "scenario", "plan", "band", "bound", "certificate", "binding",
    "alternatives", "infeasible", "provenance",
}  # fmt: skip
PLAN = {
    "mode", "layout", "prefill", "decode", "chips", "batch", "batch_per_replica", "ttft", "tpot",
    "tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user", "usd_per_mtok_output",
    "usd_per_mtok_input", "usd_per_mtok", "usd_per_hour", "memory_per_chip", "time_per_step",
    "bottleneck",
}  # fmt: skip
LAYOUT = {"tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert", "replicas", "overlap"}
MEMORY = {"capacity", "weights", "kv", "state", "activations", "reserved", "free"}
STEP = {"weights", "kv", "compute", "collectives", "overhead", "drafts", "prefill"}
KINDS = ("chips", "systems", "models", "laws", "prices", "profiles")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario that is answered at once."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    return file


# solve


def test_solve_says_the_plan_in_80_columns(run, small):
    """The layout, the batch, the price with its band, and what the plan rests on."""
    status, out, _ = run("solve", small)
    assert status == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    for word in ("llama-3.1-8b", "/Mtok", "TPOT", "hardware limit"):
        assert word in out
    more = run("solve", small, "--more")[1]
    assert all(word in more for word in ("in flight: ", "Proof "))


def test_the_answer_has_every_key_of_the_interface(run, small):
    """A field that does not apply is null, never absent; every number is finite."""
    found = document(run, "solve", small)
    assert found.keys() >= ANSWER
    plan = found["plan"]
    assert plan.keys() >= PLAN
    assert plan["layout"].keys() == LAYOUT
    assert plan["memory_per_chip"].keys() == MEMORY
    assert plan["time_per_step"].keys() == STEP
    assert found["band"].keys() >= {"tpot", "ttft", "usd_per_mtok", "coverage", "from"}
    assert found["bound"].keys() >= {"usd_per_mtok", "tpot"}
    assert found["certificate"].keys() >= {
        "layouts_considered", "points_considered", "relaxation", "gap", "method",
    }  # fmt: skip
    assert found["provenance"].keys() >= {"version", "assumptions", "profile", "data"}
    assert all(row.keys() >= {"what", "source", "as_of"} for row in found["provenance"]["data"])
    assert all(row.keys() >= {"name", "elasticity"} for row in found["binding"])
    assert all(other.keys() == {*plan, "chance_better", "tied"} for other in found["alternatives"])
    assert (found["status"], found["infeasible"]) == ("optimal", None)
    assert all(map(math.isfinite, numbers(found)))


def test_the_answer_is_in_base_units_and_adds_up(run, small):
    """Seconds, bytes, dollars; the words of the interface mean one thing each."""
    plan = document(run, "solve", small)["plan"]
    layout, memory = plan["layout"], plan["memory_per_chip"]
    used = layout["tp"] * layout["dp_attention"] * layout["cp"] * layout["pp"] * layout["replicas"]
    assert used <= plan["chips"] == 2
    assert memory["capacity"] == pytest.approx(79.19 * 2**30)  # as logs of engines see an H100
    parts = sum(size for name, size in memory.items() if name != "capacity")
    assert parts == pytest.approx(memory["capacity"])
    assert 0 < plan["tpot"] <= 0.05
    assert 0 < plan["ttft"] <= 2
    assert sum(plan["time_per_step"].values()) == pytest.approx(plan["tpot"], rel=1e-6)
    assert plan["usd_per_hour"] == pytest.approx(5.0)
    assert plan["tokens_per_s"] / plan["tokens_per_s_per_chip"] == pytest.approx(2)
    per_second = plan["tokens_per_s"] * 6 / 1e6  # five tokens in for each one out
    assert plan["usd_per_mtok"] == pytest.approx(plan["usd_per_hour"] / 3600 / per_second)
    bill = 500 * plan["usd_per_mtok_input"] + 100 * plan["usd_per_mtok_output"]
    assert bill == pytest.approx(600 * plan["usd_per_mtok"])


def test_the_plan_lies_between_its_bound_and_its_price(run, small):
    """Nothing beats the roofline; the relaxation is a lower bound of the objective."""
    found = document(run, "solve", small)
    assert found["bound"]["usd_per_mtok"] <= found["plan"]["usd_per_mtok"]
    assert found["bound"]["tpot"] <= found["plan"]["tpot"]
    assert 0 <= found["certificate"]["gap"] < 1
    for name in ("tpot", "ttft", "usd_per_mtok"):
        low, high = found["band"][name]
        assert low < high


def test_the_resolved_scenario_gives_the_same_answer(run, small, tmp_path):
    """What the answer says was asked can be asked again."""
    first = document(run, "solve", small)
    again = tmp_path / "again.json"
    again.write_text(json.dumps(first["scenario"]), encoding="utf-8")
    assert document(run, "solve", again)["plan"] == first["plan"]


@pytest.mark.parametrize(
    ("changes", "follows"),
    first(
        1,
        [
            (["choose.mode=aggregated"], None),
            (
                ["choose.mode=aggregated", "workload.demand=1 requests/s"],
                "as many chips as then carry",
            ),
            (["choose.mode=disaggregated", "memory_utilisation=0.91"], "both pools resized"),
        ],
    ),
)
def test_why_says_what_follows_a_change(run, small, changes, follows):
    """A pool alone has its batch free; a load and two pools have more that moves."""
    _, out, _ = run(
        "solve", small, "--why", *(word for each in changes for word in ("--set", each))
    )
    told = " ".join(out.partition("1% more of")[2].split())
    assert told.startswith("price changes worth, at this bill (") == (follows is not None)
    assert follows is None or f"(everything follows: {follows}" in told


@pytest.mark.slow
def test_why_adds_what_binds_and_the_closed_form(run, small):
    """Binding limits, elasticities, equations."""
    _, plain, _ = run("solve", small)
    _, out, _ = run("solve", small, "--why")
    added = out.removeprefix(plain.rstrip("\n"))
    assert added != out
    assert "binds: " in added
    assert "1% more of" in added
    assert "Closed form" in added
    assert " = " in added


def test_set_changes_one_value(run, small):
    """The same as if it stood in the file."""
    slower = document(run, "solve", small, "--set", "promises.tpot=8 ms", "--set", "chips=1")
    assert slower["plan"]["chips"] == 1
    assert slower["plan"]["tpot"] <= 0.008


@pytest.mark.slow
def test_the_answer_is_written_to_a_folder(run, small, tmp_path):
    """plan.json is what --json prints, plan.txt what --more does, a picture; the rest to stderr."""
    folder = tmp_path / "new" / "folder"
    status, out, err = run("solve", small, "--more", "--out", folder)
    assert status == 0
    assert (folder / "plan.txt").read_text("utf-8") == out
    _, printed, _ = run("solve", small, "--json")
    assert (folder / "plan.json").read_text("utf-8") == printed
    assert err.count("wrote ") == 3
    assert sorted(path.name for path in folder.iterdir()) == ["plan.json", "plan.svg", "plan.txt"]


def test_warnings_are_notes_of_the_answer(run, small):
    """They stand in the text and in the document, and standard error holds none of them."""
    spread = ("--set", "workload.input_tokens={mean: 500, cv: 1}", "--set", "assumptions=lecture")
    _, out, err = run("solve", small, *spread)
    assert "! the lecture knows no spread of input_tokens: the mean is used" in out
    assert err == ""
    notes = json.loads(run("solve", small, *spread, "--json")[1])["notes"]
    assert [note["code"] for note in notes if "no spread" in note["text"]] == ["warning"]


def test_sure_asks_for_nine_cases_in_ten_or_is_refused_by_its_name(run, small, tmp_path):
    """The plan is that of `promises.chance=90%`; a problem without such promises says so."""
    surely = json.loads(run("solve", small, "--sure", "--json")[1])
    assert surely["needed_chance"] == 0.9
    assert surely == json.loads(run("solve", small, "--set", "promises.chance=90%", "--json")[1])
    train = ROOT / "examples" / "train-lora-70b-h100.yaml"
    status, out, err = run("solve", train, "--sure")
    assert (status, out) == (2, "")
    assert "--sure: problem: training has no promises that hold with a chance" in err


def test_warnings_of_a_launch_go_to_standard_error_until_quiet(run, small):
    """On either side of the command's name."""
    sets = ("model=gpt-oss-120b", "chips=8", "workload.concurrency=200")
    words = ("export", small, "--engine", "vllm", *(x for value in sets for x in ("--set", value)))
    _, out, err = run(*words)
    assert err.startswith("warning: assumes that 8 DP ranks prefill together")
    for quiet in (("--quiet", *words), ("-q", *words), (*words, "--quiet")):
        assert run(*quiet)[1:] == (out, "")


@pytest.mark.slow
def test_nothing_is_coloured(run, small, monkeypatch):
    """Neither with --no-color nor with NO_COLOR set, and not into a pipe."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(run("solve", small, "--no-color", "--why")[1:])


def test_a_promise_that_cannot_be_kept_is_status_one(run, small):
    """The document still comes, with what falls short and no plan."""
    status, out, _ = run("solve", small, "--json", "--set", "promises.tpot=1 us")
    found = json.loads(out)
    assert status == 1
    assert (found["status"], found["plan"]) == ("infeasible", None)
    assert found.keys() >= ANSWER
    (short,) = found["infeasible"]
    assert short.keys() >= {"promise", "short_by", "expression"}
    assert short["promise"] == "tpot"
    assert short["short_by"] > 1
    status, out, _ = run("solve", small, "--set", "promises.tpot=1 us", "--why")
    assert status == 1
    assert "times too slow" in out


def test_a_fault_of_ours_is_status_three(run, small, monkeypatch):
    """One line that asks for a report; the traceback only on demand."""
    import planner.protocol.solve

    def fails(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(planner.protocol.solve, "solve", fails)
    status, out, err = run("solve", small)
    assert (status, out) == (3, "")
    assert err.count("\n") == 1
    assert err.startswith("planner: a fault of ours: ZeroDivisionError: division by zero")
    monkeypatch.setenv("PLANNER_TRACEBACK", "1")
    assert "Traceback" in run("solve", small)[2]


# check, init, schema


def test_check_says_that_a_scenario_is_sound(run, small):
    """And with --json, what it was read as."""
    assert run("check", small) == (0, f"{small}: ok (serving)\n", "")
    found = document(run, "check", small)
    assert found["status"] == "ok"
    assert found["scenario"]["promises"]["tpot"] == 0.05


def test_the_starter_is_printed_or_written_once(run, tmp_path):
    """A file that is there is not overwritten."""
    _, out, _ = run("init")
    file = tmp_path / "start.yaml"
    assert run("init", "serving", "--out", file)[:2] == (0, "")
    assert file.read_text("utf-8") == out
    file.write_text("mine", encoding="utf-8")
    status, out, err = run("init", "--out", file)
    assert (status, out) == (2, "")
    assert "exists already" in err
    assert file.read_text("utf-8") == "mine"


def test_the_starter_solves(run, tmp_path):
    """What a newcomer is given has an answer."""
    file = tmp_path / "start.yaml"
    run("init", "--out", file)
    assert run("check", file)[0] == 0
    assert document(run, "solve", file)["status"] == "optimal"


FLAGS = ("--model", "llama-3.1-8b", "--system", "hgx-h100", "--chips", "1", "--users", "8")


def test_a_question_in_flags_is_kept_as_a_file(run, tmp_path):
    """The file that `init` writes of flags has the answer that `solve` gives to the flags."""
    file = tmp_path / "kept.yaml"
    assert run("init", "serving", *FLAGS, "--tpot", "20ms", "--out", file)[:2] == (0, "")
    kept, asked = document(run, "solve", file), document(run, "solve", *FLAGS, "--tpot", "20ms")
    assert kept["plan"] == asked["plan"]
    assert kept["scenario"] == asked["scenario"]
    assert kept["scenario"]["workload"]["concurrency"] == 8


def test_the_scenario_that_was_solved_is_written_beside_its_answer(run, tmp_path, small):
    """Of flags, of a file with changes and of what is piped in: the file has the same answer."""
    asked = document(run, "solve", *FLAGS, "--write", tmp_path / "flags.yaml")
    again = document(run, "solve", tmp_path / "flags.yaml")
    assert (again["plan"], again["scenario"]) == (asked["plan"], asked["scenario"])
    changed = document(run, "solve", small, "--set", "chips=2", "--write", tmp_path / "two.yaml")
    assert "chips: 2\n" in (tmp_path / "two.yaml").read_text("utf-8")
    assert document(run, "solve", tmp_path / "two.yaml")["plan"] == changed["plan"]


@for_all(("name", "told"), [("two.json", "ends in one of .yaml"), ("there.yaml", "exists already"),
                            ("none/two.yaml", "")])  # fmt: skip
def test_a_scenario_is_written_as_yaml_and_over_nothing(run, tmp_path, small, name, told):
    """Another form, or a file that is there, is refused before anything is computed."""
    (tmp_path / "there.yaml").write_text("mine", encoding="utf-8")
    status, out, err = run("solve", small, "--short", "--write", tmp_path / name)
    assert status == (2 if told else 0)
    assert told in err
    assert bool(out) is not bool(told)
    assert (tmp_path / "there.yaml").read_text("utf-8") == "mine"


def test_flags_change_the_starter_of_another_kind(run):
    """Values of the starter stay but where a flag changes them; what is missing is named."""
    status, out, _ = run("init", "training", "--chips", "512")
    assert status == 0
    assert "chips: 512" in out
    status, out, err = run("init", "serving", "--model", "llama-3.1-8b")
    assert (status, out) == (2, "")
    assert "missing required key 'system'" in err


def test_the_schema_is_json_schema_2020_12(run, tmp_path):
    """Dialect, one shape a problem whose keys are described, references that resolve."""
    _, out, _ = run("schema")
    found = json.loads(out)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["type"] == "object"
    shapes = [found["$defs"][each["$ref"].removeprefix("#/$defs/")] for each in found["oneOf"]]
    by_problem = {each["properties"]["problem"]["const"]: each for each in shapes}
    assert {"serving", "budget"} <= by_problem.keys()
    for shape in shapes:
        assert shape["additionalProperties"] is False
        assert set(shape["required"]) <= shape["properties"].keys()
    required = by_problem["serving"]["required"]
    assert {"problem", "model", "system", "chips", "workload"} <= set(required)
    references = [line.split('"')[3] for line in out.splitlines() if '"$ref"' in line]
    assert references
    for reference in references:
        assert reference.removeprefix("#/$defs/") in found["$defs"]
    file = tmp_path / "schema.json"
    run("schema", "--out", file)
    assert file.read_text("utf-8") == out


# model, catalog


@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-70b", "gpt-oss-120b"])
def test_model_has_every_key_of_the_interface(run, name):
    """Layers by kind, parameters, bytes by class, cache and state."""
    found = document(run, "model", name)
    assert found["n_active"].keys() == {"all", "no_input_embedding", "no_embedding_no_head"}
    assert found["weight_bytes"].keys() == {
        "attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other",
    }  # fmt: skip
    assert found["n_total"] >= found["n_active"]["all"] > 0
    assert found["kv_bytes_per_token"] > 0
    assert found["state_bytes_per_sequence"] >= 0
    assert found["attention_flop_per_cached_token"] > 0
    assert sum(layer["count"] for layer in found["layers"]) == found["n_layers"]


def test_model_reads_a_configuration_of_any_name(run, tmp_path):
    """The published configuration gives what its name gives."""
    entry = json.loads((ROOT / "planner/catalogue/models/llama-3.1-8b.json").read_text("utf-8"))
    file = tmp_path / "mine.cfg"
    file.write_text(json.dumps(entry["config"]), encoding="utf-8")
    mine, known = document(run, "model", file), document(run, "model", "llama-3.1-8b")
    for key in ("n_total", "n_active", "weight_bytes", "kv_bytes_per_token", "layers"):
        assert mine[key] == known[key]


def test_model_says_the_same_in_text(run):
    """The published total of DeepSeek-V3, main model: 671 billion."""
    _, out, _ = run("model", "deepseek-v3")
    assert "671,0" in out
    assert "256 experts, 8 of them" in out


def test_catalog_lists_every_kind(run):
    """The kinds of the interface, each with its names."""
    assert document(run, "catalog")["kinds"].keys() >= set(KINDS)
    _, out, _ = run("catalog")
    rows = [line.split()[0] for line in out.splitlines()[1:] if line.strip()]
    assert set(rows) >= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_catalog_prints_every_entry_with_source_and_date(run, kind):
    """Every figure says where it comes from and when; what is undated is not verified either."""
    names = document(run, "catalog", kind)["names"]
    assert names
    for name in names:
        status, out, _ = run("catalog", kind, name)
        assert status == 0
        assert out.strip()
        found = document(run, "catalog", kind, name)
        figures = found.get("figures", [])
        for figure in figures:
            assert figure["source"], (name, figure["name"])
            dated = figure["as_of"][:2] == "20" or figure["verified"] == "no"
            assert dated, (name, figure["name"])
        if not figures and kind != "systems":
            assert found["facts"]["source"], name
            assert re.search(r"\b20\d\d\b", str(found["facts"])), name


# formula, derive


def test_formula_shows_symbols_with_units_source_and_value(run):
    """The list, one equation, its value."""
    assert "critical_batch" in run("formula")[1]
    _, out, _ = run("formula", "memory_time")
    assert "[byte/s]" in out
    assert "source" in out
    sets = ("W=3 TB/s", "N_total=3e12", "b_w=1", "B=0", "L_ctx=0", "b_kv=0")
    words = [word for each in sets for word in ("--set", each)]
    assert document(run, "formula", "memory_time", *words)["value"] == pytest.approx(1.0)
    solved = document(run, "formula", "memory_time", "--solve-for", "W")
    assert solved["text"].startswith("W = ")


def test_derive_lists_what_is_derived(run):
    """Name, claims, number of steps, exact or approximate, checked."""
    rows = document(run, "derive")
    assert {row["name"] for row in rows} >= {"critical_batch"}
    for row in rows:
        assert row.keys() >= {"name", "claims", "steps", "exact", "checked"}
        assert row["checked"] is True
    assert "critical_batch" in run("derive")[1]


@pytest.mark.parametrize(("form", "mark"), [("text", "≈"), ("markdown", "$$"), ("latex", "\\")])
def test_derive_prints_one_derivation(run, form, mark):
    """In each of the formats that are text, every step."""
    status, out, _ = run("derive", "critical_batch", "--format", form)
    assert status == 0
    assert mark in out


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_derive_prints_all(run, form):
    """Everything, with every step checked on the way."""
    status, out, _ = run("derive", "--all", "--format", form)
    assert status == 0
    assert len(out) > 10_000


# the program


@pytest.mark.parametrize(
    "words", [["-m", "planner"], ["-c", "from planner.cli import main; main()"]]
)
def test_the_module_is_the_console_script(words, small):
    """`python -m planner` answers as `planner` does."""
    ran = subprocess.run(
        [sys.executable, *words, "check", str(small)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{small}: ok (serving)\n"


def test_help_and_version(run):
    """Every command has one sentence; the version is the distribution's."""
    from importlib.metadata import version

    _, out, _ = run("--help")
    for command in ("solve", "check", "init", "model", "catalog", "formula", "derive", "schema"):
        assert f"\n  {command} " in out
        assert run(command, "--help")[0] == 0
    assert run("--version")[:2] == (0, f"token-planner {version('token-planner')}\n")


def test_a_command_that_is_not_there_is_a_mistake(run):
    """Status 2, with what was meant."""
    status, out, err = run("slove")
    assert (status, out) == (2, "")
    assert "solve" in err


@pytest.mark.slow
def test_a_plan_stands_without_its_elasticities(run, small, monkeypatch):
    """Where the program behind them fails, the plan is told, and so is what is not known."""
    import planner.problems.serving.deployment.candidate
    from planner.text.errors import SolverError

    def fails(*_):
        raise SolverError("the solver stopped early")

    monkeypatch.setattr(planner.problems.serving.deployment.candidate, "optimum", fails)
    status, out, err = run("solve", small, "--json")
    found = json.loads(out)
    assert (status, found["status"], found["binding"]) == (0, "optimal", [])
    assert any("unknown: the solver stopped early" in note["text"] for note in found["notes"])
    assert err == ""
    assert found["provenance"]["warnings"]
    assert "no promise binds" not in run("solve", small, "--why")[1]
