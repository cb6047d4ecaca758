"""The files that carry planner into other people's pipelines: their own steps, run here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.paths import EXAMPLES, ROOT

BIN = Path(sys.executable).parent


def loaded(name: str):
    """A YAML file of the root."""
    return YAML(typ="safe").load((ROOT / name).read_text("utf-8"))


def step(name: str) -> str:
    """The script of a step of the action, by the step's name."""
    return next(x["run"] for x in loaded("action.yml")["runs"]["steps"] if x["name"] == name)


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step in a clean folder, as the runner starts it."""
    inherited = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=inherited | environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A repository of somebody else with one scenario."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    shutil.copy(EXAMPLES / "lecture.yaml", folder / "lecture.yaml")
    return tmp_path


@pytest.mark.slow
def test_the_hook_checks_what_its_pattern_takes(clean):
    """A sound scenario passes, one with a mistake does not, and other files are let alone."""
    (hook,) = loaded(".pre-commit-hooks.yaml")
    names = ["scenarios/lecture.yaml", "scenario/a.toml", "src/main.yaml", "scenarios/readme.md"]
    assert [bool(re.search(hook["files"], name)) for name in names] == [True, True, False, False]
    assert run(f"{hook['entry']} {names[0]}", clean).returncode == 0
    broken = clean / "scenarios" / "broken.yaml"
    broken.write_text("problem: serving\nmodle: x\n", "utf-8")
    result = run(f"{hook['entry']} scenarios/broken.yaml", clean)
    assert result.returncode == 2
    assert "modle" in result.stderr


def test_the_hook_takes_several_files_at_a_time(clean):
    """pre-commit hands over many names: all of them are checked."""
    (hook,) = loaded(".pre-commit-hooks.yaml")
    other = clean / "scenarios" / "other.yaml"
    other.write_text("problem: serving\nmodle: x\n", "utf-8")
    names = "scenarios/lecture.yaml scenarios/other.yaml"
    result = run(f"{hook['entry']} {names}", clean)
    assert result.returncode == 2
    assert result.stdout == "scenarios/lecture.yaml: ok (serving)\n"
    assert "scenarios/other.yaml:2:1" in result.stderr


@pytest.mark.slow
def test_the_action_writes_a_table_and_its_status_is_the_gates(clean):
    """Kept ends in 0; a limit that is broken in 1, with the table in the summary all the same."""
    summary = clean / "summary.md"
    values = {"FILE": "scenarios/lecture.yaml", "GITHUB_STEP_SUMMARY": str(summary)}
    empty = dict.fromkeys(
        ("MAX_USD_PER_MTOK", "MAX_TPOT", "MAX_TTFT_P95", "AGAINST", "MAY_RISE", "SURE"), ""
    )
    assert run(step("gate"), clean, **empty | values).returncode == 0
    broken = run(step("gate"), clean, **empty | values | {"MAX_USD_PER_MTOK": "0.0001"})
    assert broken.returncode == 1
    text = summary.read_text("utf-8")
    assert text.count("| promise | plan | limit | verdict |") == 2
    assert "**broken: by" in text


def test_the_action_hands_every_input_to_its_step():
    """An input that no step reads would be ignored without a word."""
    action = loaded("action.yml")
    read = " ".join(str(x["env"]) for x in action["runs"]["steps"])
    assert all(f"inputs.{name} " in read for name in action["inputs"])
    assert "${{" not in "".join(x["run"] for x in action["runs"]["steps"]), "injected as script"


def test_the_container_has_no_root_and_installs_what_exists():
    """The last user is not root; its extras are those of the project."""
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users[-1] != "root"
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in re.findall(r"\[([\w,]+)\]\"", "\n".join(lines))[0].split(","):
        assert re.search(rf"^{extra} = \[", pyproject, re.M)


@pytest.mark.slow
def test_the_container_is_built_and_answers(tmp_path):
    """Where an engine is at hand and can reach the base image."""
    engine = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if engine is None:
        pytest.skip("no container engine is installed: the image was not built")
    base = re.search(r"FROM (\S+)", (ROOT / "Containerfile").read_text("utf-8"))[1]
    if subprocess.run([engine, "pull", base], capture_output=True, check=False).returncode:
        pytest.skip(f"{base} cannot be pulled: the image was not built")
    words = shlex.split(f"{engine} build -q -f Containerfile .")
    image = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    asked = [engine, "run", "--rm", image.stdout.strip(), "--version"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("token-planner")
