"""What a terminal adds, on a pseudo-terminal: width, weight, a sign of life, completed words."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from planner.cli.app import app
from planner.text.console import Commands
from planner.text.terminal import FRAMES, encodable, style_text, wrapped_lines
from tests.paths import EXAMPLES, ROOT
from tests.sizes import first

ESCAPES = re.compile(r"\x1b\[[0-9;]*[mK]")
LECTURE = str(EXAMPLES / "lecture.yaml")


def on_terminal(width: int, *words: str, **environment: str) -> str:
    """What a command writes on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", *words], cwd=ROOT, stdin=theirs, stdout=theirs,
        stderr=theirs, env=inherited | {"TERM": "xterm"} | environment,
    )  # fmt: skip
    os.close(theirs)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.wait() in (0, 1)
    return b"".join(parts).decode()


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 100, 200])
@pytest.mark.parametrize("words", [("solve", LECTURE, "--why"), ("gate", LECTURE), ("--help",)])
def test_no_line_is_wider_than_the_terminal(width, words):
    """Narrow or wide: every line fits, and titles are bold."""
    text = on_terminal(width, *words)
    lines = [
        ESCAPES.sub("", line).split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")
    ]
    assert max(map(len, lines)) <= width


@pytest.mark.slow
def test_weight_is_for_terminals_alone():
    """Bold on a terminal, none with NO_COLOR, none in a pipe, and the words are the same."""
    plain = subprocess.run(
        [sys.executable, "-m", "planner", "gate", LECTURE], cwd=ROOT, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    assert not ESCAPES.search(plain)
    shown = on_terminal(200, "-q", "gate", LECTURE)
    assert "\x1b[1m" in shown
    quiet = on_terminal(200, "-q", "gate", LECTURE, NO_COLOR="1")
    assert "\x1b[1m" not in quiet
    assert ESCAPES.sub("", shown).split() == plain.split() == quiet.split()


@pytest.mark.slow
def test_a_pipe_has_the_columns_and_the_signs_that_it_is_given():
    """60 columns with COLUMNS=60, no sign beyond ASCII where the stream has none, no colour."""
    file = str(EXAMPLES / "cache-deepseek-v3.yaml")
    asked = {"COLUMNS": "60", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "planner", "solve", file], cwd=ROOT, capture_output=True, check=True,
        env=os.environ | asked,
    )  # fmt: skip
    text = ran.stdout.decode("ascii")
    assert max(map(len, text.splitlines())) <= 60
    assert {"recompute", "charge", "pays"} <= {*text.split()}
    assert "?" not in text.split("Do ", 1)[1]
    assert encodable("✓ 2 × 3 ≤ 6", "ascii") == "ok 2 x 3 <= 6"
    assert encodable("✓ 2 × 3 ≤ 6", None) == "✓ 2 × 3 ≤ 6"


@pytest.mark.slow
def test_a_long_answer_gives_a_sign_of_life():
    """A spinner on standard error before the answer, wiped when it comes; none with --quiet."""
    text = on_terminal(100, "solve", str(EXAMPLES / "serve-llama-70b-fast.yaml"))
    before, wiped, after = text.partition("\r\x1b[K")
    assert any(frame in before for frame in FRAMES)
    assert wiped
    assert "Mtok" in after
    assert not any(frame in on_terminal(100, "-q", "check", LECTURE) for frame in FRAMES)


def test_lines_are_folded_at_words_below_their_indent():
    """Nothing is lost; a word without a blank is cut."""
    text = "title\n  one two three four five six\n  " + "x" * 50
    lines = wrapped_lines(text, 20).split("\n")
    assert max(map(len, lines)) <= 20
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert lines[2].startswith("    ")


def test_titles_and_verdicts_have_weight():
    """A line at the edge with lines below it, and the word of a verdict beside its text."""
    text = style_text("a title\n  BROKEN  x: 1\n  kept    y: 2\nno title")
    assert text.startswith("\x1b[1ma title\x1b[0m")
    assert "\x1b[1;31mBROKEN\x1b[0m  x: 1" in text
    assert text.endswith("\nno title")
    long = "a title\n  x: 1\nlabel  a text that\n       goes on"
    assert style_text(long).endswith(long.removeprefix("a title"))


COMPLETED = {
    "catalog c": "chips",
    "catalog chips h20": "h200",
    "model deepseek-v3": "deepseek-v3",
    "export x.yaml --engine v": "vllm",
    "init ser": "serving",
    "solve x.yaml --set model=deep": "model=deepseek-v3",
    "solve x.yaml --set system=hgx-h": "system=hgx-h200",
    "solve x.yaml --set law=bes": "law=besiroglu-2024",
    "schema --answer bud": "budget",
}


@pytest.mark.parametrize("words", first(1, COMPLETED))
def test_the_shell_completes_values(words):
    """Names of the catalogues, engines, kinds, laws."""
    line = f"planner {words}"
    environment = os.environ | {
        "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1),
        "_PLANNER_COMPLETE": "complete_bash",
    }  # fmt: skip
    script = "import sys; sys.argv = ['planner']; from planner.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert any(x.startswith(COMPLETED[words]) for x in ran.stdout.split()), ran


def test_every_command_is_in_a_group_and_has_an_example():
    """What --help prints of each is what a user can type."""
    names = {each.name or each.callback.__name__ for each in app.registered_commands}
    grouped = [name for group in Commands.groups.values() for name in group]
    assert sorted(grouped) == sorted(names)
    for each in app.registered_commands:
        assert f"planner {each.name}" in (each.epilog or "")
