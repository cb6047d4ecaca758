"""Files that are no scenario: one line each, exit status 2, never a traceback."""

from __future__ import annotations

import io
import os
import sys
import types
from itertools import pairwise

import pytest

from planner.scenario import load
from planner.scenario.kinds import starter
from planner.text.errors import InputError
from tests.loops import for_all


def refused(source):
    """The mistakes of a source that must be refused."""
    with pytest.raises(InputError) as caught:
        load(source)
    assert caught.value.exit_status == 2
    assert all("\n" not in str(mistake) for mistake in caught.value.mistakes)
    assert caught.value.mistakes
    return caught.value.mistakes


def written(tmp_path, content, name="s.yaml"):
    """A file of this content."""
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@for_all(
    ("content", "name", "place", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0", "s.yaml", None, "is not text (it holds NUL bytes)"),
        (b"a: 1\nb: \xff\xfe", "s.yaml", (2, 4), "is not UTF-8 text (byte 0xff)"),
        (b"x" * 1_000_001, "s.yaml", None, "is larger than 1 MB"),
        (b"", "s.yaml", None, "the file is empty"),
        (b"# nothing\n", "s.yaml", None, "the file is empty"),
        (b"just words", "s.yaml", (1, 1), "expected keys such as problem, model, system"),
        (b"- 1\n- 2\n", "s.yaml", (1, 1), "got a list of 2 items"),
        (b"a: [1, 2\nb: 3\n", "s.yaml", (2, 2), "not YAML"),
        (b"a: 1\n\tb: 2\n", "s.yaml", (2, 1), "not YAML"),
        (b"a: 1\n---\nb: 2\n", "s.yaml", (2, 1), "expected one document"),
        (b"a: 'x\n", "s.yaml", (2, 1), "not YAML"),
        (b"%YAML 3.0\n---\na: 1\n", "s.yaml", (1, 1), "not YAML"),
        (b"problem = \n", "s.toml", (1, 11), "not TOML"),
        (b"a = 1\na = 2\n", "s.toml", (2, 6), "not TOML"),
        (b"[" * 10_000, "s.toml", None, "not TOML"),
        (b'{"a": 1,}', "s.json", None, "not JSON"),
        (b'{"a": 1, "a": 2}', "s.json", (1, 10), "duplicate key 'a', first given at line 1"),
        (b"[" * 100_000, "s.json", (1, 1), "not JSON"),
        (b"{" * 5_000, "s.yaml", (1, 32), "more than 30 levels deep"),
        (b"[" * 5_000, "s.yaml", (1, 32), "more than 30 levels deep"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path, content, name, place, said):
    """Junk, broken syntax, size and depth are told with the place where there is one."""
    mistakes = refused(written(tmp_path, content, name))
    line = next(mistake for mistake in mistakes if said in mistake.message)
    if place:
        assert (line.line, line.column) == place


def test_an_alias_bomb_is_counted_not_expanded(tmp_path):
    """Nine levels of nine aliases stand for 4e8 values and are refused at once."""
    names = "abcdefghi"
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    (mistake,) = refused(written(tmp_path, "\n".join(lines)))
    assert mistake.message == "more than 20000 values, aliases written out"
    assert mistake.line == 5


def test_aliases_cannot_stack_depth(tmp_path):
    """A chain of anchors is as deep as it stands for."""
    lines = ["k0: &k0 [1]"] + [f"k{i}: &k{i} [*k{i - 1}]" for i in range(1, 60)]
    (mistake,) = refused(written(tmp_path, "\n".join(lines)))
    assert "more than 30 levels deep" in mistake.message


def test_an_alias_within_what_it_names_is_refused(tmp_path):
    """A value cannot hold itself."""
    mistakes = refused(written(tmp_path, "problem: serving\nmodel: &m {like: *m}\n"))
    assert any("unknown alias *m" in mistake.message for mistake in mistakes)


def test_a_million_values_are_refused_early(tmp_path):
    """Many small values are counted while read."""
    (mistake,) = refused(written(tmp_path, "a: [" + "1," * 200_000 + "]"))
    assert "more than 20000 values" in mistake.message


def test_directories_missing_files_and_pipes(tmp_path):
    """What is not a regular file is told as such."""
    assert "is a directory" in refused(tmp_path)[0].message
    assert refused(tmp_path / "none.yaml")[0].message == "no such file"
    assert "not a file name" in refused("a\0b")[0].message
    assert refused("x" * 5000)[0].message
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in refused(pipe)[0].message


def test_what_is_no_source_at_all():
    """Numbers, lists and None are not scenarios."""
    for source in (3, None, [1], b"bytes"):
        assert "expected a file" in refused(source)[0].message


def test_a_mapping_that_holds_itself():
    """A mapping deeper than the limit is refused, not walked for ever."""
    tree = {"problem": "cache"}
    tree["self"] = tree
    assert "levels deep" in refused(tree)[0].message


def test_a_path_to_a_model_must_be_a_file(tmp_path):
    """A directory or a missing config.json is told as such."""
    (tmp_path / "models").mkdir()
    text = starter("serving").replace("model: deepseek-v3", "model: ./models")
    mistakes = refused(written(tmp_path, text))
    assert [m.message for m in mistakes if m.path == "model"] == [
        "expected a file, but './models' is a directory"
    ]
    mistakes = refused(written(tmp_path, text.replace("./models", "org/config.json")))
    assert [m.path for m in mistakes] == ["model"]
    assert "no model file 'org/config.json' is found" in mistakes[0].message


def test_standard_input_is_read(monkeypatch):
    """`-` reads standard input."""
    stream = types.SimpleNamespace(buffer=io.BytesIO(b"problem: schedule\ninterval: 20 ms\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    assert load("-").problem == "schedule"


def test_a_byte_order_mark_and_windows_lines_are_no_mistake(tmp_path):
    """Text as other systems write it is read."""
    text = b"\xef\xbb\xbfproblem: schedule\r\ninterval: 20 ms\r\narrivals: 5 requests/s\r\n"
    assert load(written(tmp_path, text)).interval == 0.02
