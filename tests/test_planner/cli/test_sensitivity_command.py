"""The command `planner sensitivity`, the table in Python, and the example scripts."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import planner
from planner.cli.app import main
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD, Elasticity
from planner.report.text.sensitivity import sensitivity_text
from planner.text.terminal import MARGIN
from planner.text.wording import COLUMNS
from tests.paths import ROOT
from tests.sizes import first

SCRIPTS = sorted((ROOT / "examples").glob("sensitivity-*.py"))
FILE = """
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 2
price: $2.50/hour
workload: {input_tokens: 2000, output_tokens: 500}
promises: {tpot: 12 ms}
choose: {mode: aggregated}
uncertain:
  price: {uniform: [$2/hour, $4/hour]}
  promises.tpot: {triangular: [8 ms, 12 ms, 20 ms]}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(["sensitivity", *arguments])
    shown = capsys.readouterr()
    return int(exit_.value.code or 0), shown.out, shown.err


@pytest.mark.slow
def test_the_table_has_words_dollars_and_next_plans(file, capsys):
    """Words instead of paths, value, change and dollars at the bill; where another plan is best."""
    status, out, _ = run(capsys, file)
    assert status == 0
    assert re.match(r"What moves the price of \$[0-9.]+/Mtok, at a bill of \$5/hour\?\n", out)
    rent = next(line for line in out.splitlines() if line.startswith("rent of a chip"))
    assert rent.split()[4:7] == ["$2.50/hour", "+1.00%", "+$0.0500"]
    assert "memory bandwidth" in out
    assert "system." not in out
    assert "\nNo effect: " in out
    assert "\nWhere another plan is best\n" in out
    assert re.search(r"\n1% more .* (raises|lowers) the price by .*", out)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_a_terminal(width):
    """Long words, kinks and both questions: no line is wider, and no figure is lost."""
    steps = ("engine.efficiency", "phases.pretrain.system.memory_bandwidth", "promises.tpot")
    rows = [
        Elasticity(path, 0.05, "s", "x", -0.5, 0.25, "slope", "", LAYOUT_HELD,
                   ({"factor": 1.2, "from": "a", "to": "b", "counts": ("", "")},),
                   beside=(Elasticity(path, 0.05, "s", "x", -0.125, -0.125, "dual", "",
                                      EVERYTHING_FOLLOWS),))
        for path in steps
    ]  # fmt: skip
    document = {"of": "usd_per_mtok", "value": 0.25, "unit": "USD per million tokens",
                "choice": "TP8", "counts": "", "usd_per_hour": 1000.0}  # fmt: skip
    token = COLUMNS.set(width - MARGIN)
    out = sensitivity_text(document, rows)
    COLUMNS.reset(token)
    assert max(map(len, out.splitlines())) <= width - MARGIN
    assert out.count("-0.12%") == 3
    assert out.count("-$1.25") == 3
    assert out.count("-0.50% | +0.25%") == 3
    assert "memory bandwidth, training 60 ms (+20%): b" in out


@pytest.mark.slow
def test_the_document_says_the_same_in_numbers(file, capsys):
    """Both sides, unit, group, method and switches of every row."""
    status, out, _ = run(capsys, file, "--json", "--of", "tpot")
    document = json.loads(out)
    assert status == 0
    assert document["of"] == "tpot"
    rows = {row["path"]: row for row in document["rows"]}
    assert rows["promises.tpot"]["left"] == pytest.approx(1, abs=1e-6)
    assert rows["price"]["elasticity"] == 0
    keys = {"path", "value", "unit", "group", "elasticity", "left", "right", "method", "switches",
            "by", "question", "beside"}  # fmt: skip
    assert all(set(row) == keys for row in rows.values())
    assert any(row["switches"] for row in rows.values())


def test_the_tornado_is_drawn_the_same_twice(file, capsys, tmp_path):
    """An SVG with every bar's name."""
    pytest.importorskip("matplotlib")
    pictures = []
    for name in ("a.svg", "b.svg"):
        status, _, _ = run(capsys, file, "--no-switches", "--plot", str(tmp_path / name))
        assert status == 0
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert pictures[0].lstrip().startswith(b"<?xml")


@pytest.mark.slow
def test_a_study_is_drawn(file, capsys, tmp_path):
    """Spread and indices in one picture."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "study.svg"
    status, _, _ = run(capsys, file, "--sobol", "8", "--plot", str(picture))
    assert status == 0
    assert picture.read_bytes().lstrip().startswith(b"<?xml")


def test_a_break_even_is_a_sentence_with_both_sides(file, capsys):
    """Which is better below and above, and what both cost there."""
    status, out, _ = run(
        capsys, file, "--break-even", "system=hgx-h100,hgx-h200", "--over", "price"
    )
    assert status == 0
    assert "hgx-h200 against hgx-h100, by usd_per_mtok, over price of hgx-h200" in out
    assert "below it hgx-h200, above it hgx-h100 is better" in " ".join(out.split())
    assert "solved on both sides" in out


@pytest.mark.slow
def test_a_study_tells_spread_indices_and_choices(file, capsys):
    """And its document the same."""
    status, out, _ = run(capsys, file, "--sobol", "16", "--morris", "2")
    assert status == 0
    for told in ("uncertain", "share of the variance", "over its whole range", "the best choice"):
        assert told in out
    assert "price: $2.00/hour to $4.00/hour" in out
    status, out, _ = run(capsys, file, "--sobol", "16", "--json")
    document = json.loads(out)
    assert set(document["sobol"]) == {"price", "promises.tpot"}
    assert document["morris"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--of", "tpott"), "did you mean 'tpot'"),
        (("--break-even", "system=hgx-h100,hgx-h200"), "go together"),
        (("--break-even", "chips=1,2", "--over", "price", "--sobol", "4"), "of its own"),
        (("--morris", "2", "--plot", "picture.svg"), "--sobol"),
        (("--plot", "picture.gif"), ".svg"),
        (("--plot", "picture.svg", "--swing", "1.5"), "--swing"),
        (("--sobol", "17"), "power of two"),
        (("--sobol", "16", "--workers", "0"), "--workers"),
        (("--set", "chipps=3"), "did you mean 'chips'"),
    ],
)
def test_mistakes_are_told_with_status_two(file, capsys, arguments, told):
    """One message each, nothing on standard output."""
    status, out, err = run(capsys, file, *arguments)
    assert (status, out) == (2, "")
    assert told in err


def test_what_has_no_answer_has_no_sensitivity(file, capsys):
    """Status 1, and where to look."""
    status, _, err = run(capsys, file, "--set", "promises.tpot=1 us")
    assert status == 1
    assert "planner solve" in err


@pytest.mark.slow
def test_python_has_the_same_table(file):
    """A mapping that prints as the command does, and rows with both sides."""
    found = planner.sensitivity(file, output="throughput")
    assert found["promises.tpot"] > 0
    assert found.rows[0].path == next(iter(found))
    assert str(found).startswith("What moves the throughput of ")
    plan = planner.solve(file)
    again = planner.sensitivity(plan, output="throughput")
    assert again == found


def test_nothing_heavy_is_imported_with_the_package():
    """`import planner` brings the function, and no solver."""
    code = (
        "import sys, planner, planner.cli.study; planner.sensitivity; "
        "print([m for m in ('sympy', 'scipy', 'cvxpy', 'numpy', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['numpy']")


@pytest.mark.slow
@pytest.mark.parametrize("script", first(1, SCRIPTS), ids=lambda path: path.stem)
def test_a_script_prints_the_output_beside_it(script):
    """`NAME.txt` is what `python NAME.py` prints."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == script.with_suffix(".txt").read_text(encoding="utf-8")
