"""What the README and the pages under docs/ say can be run is run, and what they name is there."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import planner
from planner.cli.app import main
from tests.loops import for_all
from tests.paths import EXAMPLES, ROOT
from tests.scripts import nomenclature
from tests.scripts.transcripts import rewritten, transcribed

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(x for x in DOCS.rglob("*.md") if DOCS / "generated" not in x.parents)]
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
TOP = r"(?:planner|formulas|topologies|tools|tests|examples|docs|\.ci)"
PATH = re.compile(rf"{TOP}(?:/[\w.*-]+)+/?")
PLACEHOLDER = re.compile(r"[/_]([A-Z]+)\b")  # planner/problems/K, test_FILE.py
DOTTED = re.compile(r"(?:planner|formulas|topologies|tools)(?:\.\w+)+")


def text(page: Path) -> str:
    """What stands on a page."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path, *languages: str) -> list[str]:
    """The blocks of a page in one of the languages; those that name a file are parts of one."""
    listed = FENCE.findall(text(page))
    return [body for language, file, body in listed if language in languages and not file]


def named(page: Path) -> str:
    """A page short of its blocks of code."""
    return FENCE.sub("", text(page))


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, _, rest = dotted.partition(".")
    value = importlib.import_module(module)
    for part in rest.split("."):
        module = f"{module}.{part}"
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = importlib.import_module(module)
        except ModuleNotFoundError:
            return False
    return True


@for_all("page", PAGES, ids=lambda page: page.name)
def test_paths_and_names_on_a_page_exist(page):
    """Every quoted path is in the repository, every dotted name can be imported."""
    absent = []
    for quoted in QUOTED.findall(named(page)):
        if PLACEHOLDER.search(quoted):
            continue
        if PATH.fullmatch(quoted) and not list(ROOT.glob(quoted.rstrip("/"))):
            absent.append(quoted)
        if DOTTED.fullmatch(quoted) and not quoted.endswith((".py", ".md")) and not exists(quoted):
            absent.append(quoted)
    for link in re.findall(r"\]\(([\w./-]+)\)", named(page)):
        if not (page.parent / link).exists():
            absent.append(link)
    assert not absent


def test_the_nomenclature_is_current():
    """The page of symbols is what its script writes from the registry."""
    assert text(nomenclature.PAGE) == nomenclature.page()


def commands() -> list[tuple[str, list[str]]]:
    """Every command line `planner ...` that a page shows, in blocks of shell and in the text."""
    listed = []
    for page in PAGES:
        lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
        typed = [line for block in blocks(page, "console") for line in block.splitlines()]
        lines += [line for line in typed if line.startswith("$ ")]
        lines += [quoted.replace("\\|", "|") for quoted in QUOTED.findall(text(page))]
        for line in lines:
            words = re.search(r"(?:^|[ /])planner ([a-z].*)", line)
            if words and not line.startswith("#"):
                listed.append((page.name, words[1].split()))
    return listed


def test_commands_and_options_that_pages_name_exist(capsys):
    """Each command has a help, and each option that stands behind it stands there."""
    helps, absent = {}, []
    for page, words in commands():
        command = words[0]
        if command not in helps:
            with pytest.raises(SystemExit) as status:
                main([command, "--help"])
            helps[command] = capsys.readouterr().out if not status.value.code else None
        options = [re.match(r"\[?(--[a-z-]+)", word) for word in words[1:]]
        for option in [match[1] for match in options if match]:
            if helps[command] is None or option not in helps[command]:
                absent.append(f"{page}: planner {command} {option}")
        if helps[command] is None:
            absent.append(f"{page}: planner {command}")
    assert not absent


def test_the_scenario_of_the_readme_is_the_example():
    """The block of YAML is the file it names in its first line."""
    (block,) = blocks(README, "yaml")
    head, _, body = block.partition("\n")
    example = ROOT / head.removeprefix("# ")
    assert planner.load(YAML(typ="safe").load(body)) == planner.load(example)


def test_the_shell_of_the_readme_sets_up_and_runs(tmp_path):
    """Both commands make an environment, install, and run what can be run here too."""
    answer, check = (shlex.split(block) for block in blocks(README, "sh"))
    setup = ["python3", "-m", "venv", ".venv", "&&", ".venv/bin/pip", "install", "-q"]
    assert answer[: len(setup)] == check[: len(setup)] == setup
    assert answer[len(setup) : -3] == [".", "&&"]
    assert check[len(setup) :] == ["-e", ".[dev]", "&&", ".venv/bin/pytest", "-q", "-n", "auto"]
    program, *words = answer[-3:]
    assert program == ".venv/bin/planner"
    run = [sys.executable, "-m", "planner", *words]
    out = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert out == (EXAMPLES / "serve-deepseek-v3-h200.txt").read_text(encoding="utf-8")


PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[page.name for page, _ in PYTHON])
def test_the_python_of_a_page_runs(page, block):
    """Line by line as it stands there, in the root of a checkout, and no expression is empty."""
    shown = re.sub(r"^(?!#)(\S.*)$", r"\1", block, flags=re.MULTILINE)
    program = (
        "import ast, sys\n"
        "names = {}\n"
        "for node in ast.parse(sys.argv[1]).body:\n"
        "    source = ast.unparse(node)\n"
        "    if isinstance(node, ast.Expr):\n"
        "        value = eval(compile(source, 'page', 'eval'), names)\n"
        "        values = value if isinstance(value, tuple) else (value,)\n"
        "        assert not {'', '{}', '[]', 'None'} & {str(x) for x in values}, source\n"
        "    else:\n"
        "        exec(compile(source, 'page', 'exec'), names)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, shown],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"{page.name}: {run.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("page", transcribed(), ids=lambda page: page.stem)
def test_what_a_page_shows_of_a_terminal_is_printed(page, tmp_path):
    """Its files are made, its commands run; `python -m tests.scripts.transcripts --write` mends."""
    assert rewritten(text(page), tmp_path) == text(page)


@pytest.mark.slow
def test_the_picture_of_a_plan_is_current(tmp_path):
    """It is what `solve --out` draws of the first example.

    But for the names of clips: hashes of numbers to the last digit, which a processor decides.
    """
    pytest.importorskip("matplotlib")
    with pytest.raises(SystemExit) as end:
        main(["solve", str(EXAMPLES / "serve-deepseek-v3-h200.yaml"), "--out", str(tmp_path)])
    assert not end.value.code
    drawn, kept = (
        re.sub(r"\bp[0-9a-f]{10}\b", "clip", (folder / "plan.svg").read_text("utf-8"))
        for folder in (tmp_path, DOCS)
    )
    assert drawn == kept
