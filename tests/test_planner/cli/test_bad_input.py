"""Whatever is wrong with what was given is told in a line, with status 2, and nothing is done."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cli.app import main
from tests.cases.messages import bare
from tests.loops import for_all

SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 2
price: $2.50/hour
workload:
  input_tokens: 500
  output_tokens: 100
promises:
  tpot: 50 ms
"""
FULL = "planner: standard output: No space left on device; print it elsewhere\n"
PLACE = re.compile(r"^\S.*:\d+:\d+  (\S+: )?\S.+$")

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def solve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Solves a text in this process: exit status, standard output, standard error."""

    def solved(text: str | bytes, *words: str, name: str = "s.yaml") -> tuple[int, str, str]:
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(SystemExit) as exit_:
            main(["solve", str(file), "--quiet", *words])
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        err = bare(told.err).replace(f"{tmp_path}{os.sep}", "")
        return int(exit_.value.code or 0), told.out, err

    return solved


def command_of(*words: str, **given_: Any) -> subprocess.CompletedProcess[str]:
    """A process, its streams caught."""
    return subprocess.run(words, text=True, check=False, capture_output=True, **given_)


# One value that is wrong, and how it is told.
WRONG = {
    "wrong type": ("chips: 2", "chips: many", "4:8  chips: "),
    "missing": ("chips: 2\n", "", "1:1  chips: missing required key 'chips'"),
    "missing below": ("  output_tokens: 100\n", "", "6:1  workload.output_tokens: missing"),
    "negative": ("chips: 2", "chips: -2", "4:8  chips: expected"),
    "zero": ("chips: 2", "chips: 0", "4:8  chips: expected"),
    "negative quantity": ("50 ms", "-50 ms", "10:9  promises.tpot: "),
    "not a number": ("50 ms", ".nan", "10:9  promises.tpot: "),
    "not a number, spelt out": ("50 ms", "nan s", "10:9  promises.tpot: "),
    "infinite": ("50 ms", ".inf", "10:9  promises.tpot: "),
    "wrong unit": ("50 ms", "50 GB", "10:9  promises.tpot: "),
    "unknown unit": ("50 ms", "50 parsecs", "10:9  promises.tpot: expected a time"),
    "misspelt key": ("  tpot:", "  tpott:", "10:3  promises.tpott: unknown key 'tpott'; "
                     "did you mean 'tpot'?"),
    "duplicate key": ("chips: 2", "chips: 2\nchips: 4", "5:1  chips: duplicate key 'chips', "
                      "first given at line 4"),
    "unknown model": ("llama-3.1-8b", "lama-3.1-8b", "2:8  model: unknown model 'lama-3.1-8b'; "
                      "did you mean 'llama-3.1-8b'?"),
    "unknown system": ("hgx-h100", "hgx-h10", "3:9  system: unknown system 'hgx-h10'; did you"),
    "unknown problem": ("serving", "servin", "1:10  problem: "),
    "unknown profile": ("chips: 2", "chips: 2\nprofile: nobody-2020", "5:10  profile: "),
    "cache": ("problem: serving", "problem: cache", "6:1  workload: unknown key"),
    "demand and a batch": ("output_tokens: 100", "output_tokens: 100\n  demand: 5 requests/s\n"
                           "choose: {batch: 8}", "10:17  choose.batch: under demand the batch"),
    "no demand": ("output_tokens: 100", "output_tokens: 100\n  demand: 0 requests/s",
                  "9:11  workload.demand: expected a value above zero"),
    "headroom of nothing": ("output_tokens: 100", "output_tokens: 100\n  headroom: 10 %",
                            "9:13  workload.headroom: give demand with it"),
    "a tail without a queue": ("  tpot: 50 ms", "  ttft_p95: 1 s",
                               "10:13  promises.ttft_p95: without"),
    "two pools in a closed loop": ("output_tokens: 100", "output_tokens: 100\n  concurrency: 8\n"
                                   "choose: {mode: disaggregated}", "9:16  workload.concurrency: "),
    "two pools of one chip": ("chips: 2", "chips: 1\nchoose: {mode: disaggregated}",
                              "4:8  chips: two pools need two chips"),
    "dtype of the chip": ("chips: 2", "chips: 2\nchoose: {weights: nvfp4}",
                          "5:19  choose.weights: the chip h100 has no nvfp4 arithmetic"),
    "too many chips": ("chips: 2", "chips: 2\nchoose: {tp: 4}", "5:14  choose.tp: tp 4 needs"),
    "no such layout": ("chips: 2", "chips: 8\nchoose: {tp: 7}", "5:14  choose.tp: no layout of"),
    "current of other heads": ("chips: 2", "chips: 8\ncurrent: {tp: 3, batch: 8}",
                               "5:15  current.tp: 3 does not divide the 32 attention heads"),
    "current with experts": ("chips: 2", "chips: 2\ncurrent: {tp: 2, ep: 2, batch: 8}",
                             "5:22  current.ep: llama-3.1-8b has no experts, so ep is 1"),
    "current without a batch": ("chips: 2", "chips: 2\ncurrent: {tp: 2}", "5:1  current.batch: "),
    "current too deep": ("chips: 2", "chips: 64\ncurrent: {tp: 1, pp: 64, batch: 8}",
                         "5:22  current.pp: llama-3.1-8b has 32 layers only"),
    "a batch in a closed loop": ("output_tokens: 100", "output_tokens: 100\n  concurrency: 8\n"
                                 "choose: {batch: 4}", "10:17  choose.batch: "),
    "one token out": ("output_tokens: 100", "output_tokens: 1", "8:18  workload.output_tokens: "),
    "a tag": ("chips: 2", "chips: !!python/object:os.system {}", "4:8  chips: tags such as"),
    "a tag that acts": ("chips: 2", "chips: !!python/object/apply:os.system ['touch hit']",
                        "4:8  chips: tags such as"),
    "code": ("chips: 2", """chips: __import__('os').system('touch hit')""", "4:8  chips: "),
    "code for a number": ("50 ms", """__import__('os').system('touch hit')""", "10:9  promises."),
    "not YAML": ("chips: 2", "chips: [2", "5:6  not YAML: expected ',' or ']'"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_has_its_place(solve, tmp_path, monkeypatch, old, new, line):
    """`file:line:column  path: what is wrong`; nothing printed, nothing written, nothing run."""
    monkeypatch.chdir(tmp_path)
    text = SMALL.replace(old, new)
    assert text != SMALL
    status, out, err = solve(text, "--out", str(tmp_path / "out"), "--json")
    assert (status, out) == (2, "")
    assert err.startswith(f"s.yaml:{line}"), err
    assert all(PLACE.match(each) for each in err.splitlines()), err
    assert os.listdir(tmp_path) == ["s.yaml"]


def test_a_mistake_shows_its_line_with_a_caret(run, tmp_path, monkeypatch):
    """Below `file:line:column`, also of what was piped in; wide letters take two columns."""
    text = SMALL.replace("chips: 2", "chips: many").replace("llama-3.1-8b", "{like: 日本, kv: q}")
    (tmp_path / "s.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    status, _, err = run("check", "s.yaml")
    assert status == 2
    assert err.splitlines()[0].startswith("s.yaml:2:15  model.like: ")
    assert "   2 | model: {like: 日本, kv: q}\n     |               ^\n" in err
    assert "     |                         ^\n" in err
    assert err.endswith("   4 | chips: many\n     |        ^\n")
    piped = command_of(sys.executable, "-m", "planner", "check", "-", input=text)
    assert piped.stderr == err.replace("s.yaml:", "-:")


def test_a_long_line_is_shown_around_its_place(run, tmp_path):
    """In eighty columns, the caret where the mistake is."""
    text = json.dumps({"problem": "serving", "x" * 200: 1, "chips": "many" * 20, "y" * 200: 2})
    (tmp_path / "s.json").write_text(text)
    _, _, err = run("check", tmp_path / "s.json")
    shown = [line for line in err.splitlines() if line.startswith("   1 | ")]
    carets = [line for line in err.splitlines() if line.startswith("     | ")]
    assert max(map(len, shown)) <= 80
    words = {line[len(mark) - 1 :][:4] for line, mark in zip(shown, carets, strict=True)}
    assert {'"xxx', '"man', '"yyy'} <= words


def test_a_bare_price_is_asked_for_its_unit(solve):
    """As dollars an hour are meant, and nobody says so."""
    _, _, err = solve(SMALL.replace("$2.50/hour", "3.50"))
    assert err.startswith("s.yaml:5:8  price: ")
    assert 'got 3.5 without a unit; write "$3.50/hour"' in err


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("hgx-h100", "hgx-mi300x", "mi300x-8"), ("hgx-h100", "dgx-b200", "hgx-b200"),
        ("hgx-h100", "h10", "h100"), ("chips: 2", "chips: 2\nprofile: vlm-2026", "vllm-2026"),
        ("chips: 2", "chips: 2\nestimate: bond", "bound"),
        ("chips: 2", "chips: 2\nchoose: {weights: fp9}", "fp8"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_suggested(solve, old, new, word):
    """A product counts for more than letters alike."""
    _, _, err = solve(SMALL.replace(old, new))
    assert f"did you mean '{word}'?" in err


@pytest.mark.slow
def test_copies_of_a_dense_model_and_a_chip_by_its_name_are_no_mistakes(solve):
    """Attention may be copied without experts (SGLang runs it); a chip's name is its machine's."""
    current = "chips: 2\ncurrent: {tp: 1, dp_attention: 2, batch: 8}"
    status, out, _ = solve(SMALL.replace("chips: 2", current), "--json")
    layout = json.loads(out)["current"]["layout"]
    assert (status, layout["dp_attention"], layout["ep"]) == (0, 2, 1)
    plans = [
        json.loads(solve(SMALL.replace("hgx-h100", name), "--json")[1])["plan"]
        for name in ("h100", "hgx-h100", "mi300x", "mi300x-8")
    ]
    assert plans[0] == plans[1] != plans[2] == plans[3]


def test_a_system_without_a_price_is_left_aside_of_a_list(solve):
    """The others answer; alone it is refused."""
    text = SMALL.replace("price: $2.50/hour\n", "")
    status, out, _ = solve(text.replace("hgx-h100", "[tpu-v6e, hgx-h100]"), "--json")
    document = json.loads(out)
    assert (status, document["plan"]["chip"]) == (0, "h100")
    assert any("tpu-v6e is left aside" in x for x in document["provenance"]["warnings"])
    status, _, err = solve(text.replace("hgx-h100", "tpu-v6e"))
    assert (status, "no verified on-demand price" in err) == (2, True)


def test_all_mistakes_come_at_once(solve):
    """One line each, in the order of the file."""
    text = SMALL.replace("chips: 2", "chips: -1").replace("50 ms", "50 GB")
    status, _, err = solve(text.replace("output_tokens", "output_token"))
    assert status == 2
    places = [line.split("  ")[0] for line in err.splitlines()]
    assert [place.split(":")[1] for place in places] == ["4", "6", "8", "10"]


def test_all_that_is_not_planned_comes_at_once(solve):
    """Of what the file asks, everything that this version does not answer."""
    text = SMALL.replace("output_tokens: 100", "output_tokens: 100\n  demand: 1 requests/s")
    status, _, err = solve(f"{text}choose: {{batch: 8, prefill: {{tp: 1}}}}\n")
    assert (status, len(err.splitlines())) == (2, 2)


def test_a_chip_without_the_dtype_is_named(solve, tmp_path):
    """Weights in nvfp4 on a chip that cannot multiply them: the chip, the dtype, the way out."""
    text = SMALL.replace("llama-3.1-8b", "deepseek-v3.1-nvfp4").replace("chips: 2", "chips: 16")
    status, out, err = solve(text)
    assert (status, out) == (2, "")
    assert "s.yaml:" in err
    assert "chip h100 has no nvfp4 arithmetic" in err
    assert "activations: bf16" in err


@pytest.mark.parametrize("kind", ["unheard_of", None, 3, ["llama"]])
def test_a_model_of_unknown_type_is_refused_by_name(solve, tmp_path, kind):
    """A configuration of a family that cannot be counted is never guessed."""
    config = {"model_type": kind, "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    status, out, err = solve(SMALL.replace("llama-3.1-8b", "./config.json"))
    assert (status, out) == (2, "")
    assert err.startswith("s.yaml:2:8  model: ")
    assert "model_type" in err
    assert str(kind)[:5] in err or kind is None or kind == ["llama"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"model_type": NaN}']
)
def test_a_configuration_that_is_none_is_refused(solve, tmp_path, content):
    """Empty, broken, a list, not text."""
    (tmp_path / "config.json").write_bytes(content)
    status, out, err = solve(SMALL.replace("llama-3.1-8b", "./config.json"))
    assert (status, out) == (2, "")
    assert err.startswith("s.yaml:2:8  model: ")


def test_a_topology_file_alone_does_not_say_which_chips(solve, tmp_path):
    """A file wires chips; which ones has to be said beside it."""
    (tmp_path / "net.yaml").write_text("nodes: 3\n", encoding="utf-8")
    status, out, err = solve(SMALL.replace("hgx-h100", "./net.yaml"))
    assert (status, out) == (2, "")
    assert err.startswith("s.yaml:3:9  system: ./net.yaml says how chips are wired, but not")


def test_a_model_that_fits_nowhere_is_infeasible(solve):
    """Memory is an implicit promise: status 1, the document printed, no plan."""
    text = SMALL.replace("llama-3.1-8b", "llama-3.1-405b").replace("tpot: 50 ms", "tpot: null")
    status, out, err = solve(text, "--json")
    found = json.loads(out)
    assert (status, err) == (1, "")
    assert (found["status"], found["plan"], found["bound"]) == ("infeasible", None, None)
    assert [row["promise"] for row in found["infeasible"]] == ["memory"]
    # 812 GB of weights on two chips of 85.5 GB, a tenth of each reserved
    assert found["infeasible"][0]["short_by"] > 812e9 / (2 * 85.6e9)
    status, out, _ = solve(text)
    assert status == 1
    assert "memory 4.95 times too small" in out


# Files that are no scenario.
FILES = {
    "empty": b"",
    "only a comment": b"# nothing\n",
    "a list": b"- 1\n- 2\n",
    "a number": b"3\n",
    "binary": bytes(range(256)),
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "another encoding": "problem: sérving".encode("latin-1"),
    "a bomb": b"a: &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n".encode()
        for i in range(12)
    ),
    "deep": b"[" * 10_000,
    "deep mappings": b"{a: " * 5_000,
    "huge": b"problem: serving\n" + b"# " + b"x" * 2_000_000,
    "a huge number": b"problem: serving\nchips: " + b"9" * 100_000,
    "two documents": SMALL.encode() + b"---\n" + SMALL.encode(),
    "recursive": b"a: &a [*a]\n",
    "tabs": b"problem:\n\tserving",
}


@for_all("content", FILES.values(), ids=FILES.keys())
@for_all("suffix", ["yaml", "json", "toml"])
def test_a_file_that_is_no_scenario_is_told_at_once(solve, content, suffix):
    """Status 2, a line each that begins with the file."""
    status, out, err = solve(content, name=f"s.{suffix}")
    assert (status, out) == (2, "")
    assert err.count("\n") <= 20
    assert all(line.startswith(f"s.{suffix}") and line.isprintable() for line in err.splitlines())
    assert len(err) < 5000


@pytest.mark.parametrize("path", ["missing.yaml", "", ".", "a\0b", "x" * 5000, "missing/s.yaml"])
def test_a_path_that_is_no_file_is_told(tmp_path, monkeypatch, capsys, path):
    """A missing file, a folder, no name at all."""
    monkeypatch.chdir(tmp_path)
    for words in (["solve", path], ["check", path]):
        with pytest.raises(SystemExit) as exit_:
            main(words)
        told = capsys.readouterr()
        assert (exit_.value.code, told.out, told.err.count("\n")) == (2, "", 1)


SETS = ["", "=", "x", "=3", "chips", "chips=", "chips=-1", "chips=[", "nope=3", "chips.x=3",
        "a..b=1", "workload=3", "promises.tpot=50 GB", "model=!!python/object:os.system {}",
        "tp.0=3", "\0=1", "chips=" + "9" * 20_000, "__class__=1", "model.config=1"]  # fmt: skip


@for_all("change", SETS, ids=range(len(SETS)))
def test_a_change_that_is_none_is_told(solve, change):
    """With its own text as the place."""
    status, out, err = solve(SMALL, "--set", change)
    assert (status, out) == (2, "")
    assert err.startswith(("--set ", "s.yaml:")), err
    assert len(err) < 3000


@for_all(
    "words",
    [
        ("solve",), ("solve", "a", "b"), ("nope",), ("solve", "--nope", "x"), ("init", "nope"),
        ("model", "nope"), ("model", "."), ("model", "/"), ("catalog", "nope"),
        ("catalog", "chips", "nope"), ("formula", "nope"), ("formula", "step_time", "--set", "B"),
        ("formula", "step_time", "--solve-for", "nope"), ("derive", "nope"),
        ("derive", "critical_batch", "--format", "nope"), ("schema", "nope"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_words_that_are_no_command_are_mistakes(capsys, words):
    """Status 2 and nothing on standard output."""
    with pytest.raises(SystemExit) as exit_:
        main(words)
    told = capsys.readouterr()
    assert (exit_.value.code, told.out) == (2, "")
    assert told.err.strip()
    assert "Traceback" not in told.err


def test_a_place_that_cannot_be_written_is_told(solve, tmp_path):
    """A file where a folder should be; nothing is left there, nothing printed."""
    (tmp_path / "file").write_text("as it was", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        status, out, err = solve(SMALL, "--out", str(place))
        assert (status, out, err.count("\n")) == (2, "", 1)
    assert (tmp_path / "file").read_text("utf-8") == "as it was"
    assert sorted(os.listdir(tmp_path)) == ["file", "s.yaml"]


# What only a process of its own can show.


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The path of a scenario that has an answer."""
    file = tmp_path / "s.yaml"
    file.write_text(SMALL, encoding="utf-8")
    return str(file)


def test_a_reader_may_leave(small):
    """`| head -1` closes the pipe: no traceback, no complaint."""
    words = [sys.executable, "-m", "planner", "catalog"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == ""
        assert ran.wait() == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("redirect", "status", "told"),
    [
        (">&-", 0, ""),
        (">/dev/null 2>&-", 0, ""),
        ("--set promises.tpot=1us >&-", 1, ""),
        (">/dev/full", 3, FULL),
    ],
)
def test_streams_that_are_closed_or_full(small, redirect, status, told):
    """The answer's status where nobody listens; a full disk is a failure of ours."""
    if "/dev/full" in redirect and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m planner solve "{small}" -q {redirect}'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (status, told)


WAITING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's parent ignores it
from planner.__main__ import main
class Never:
    def read(self, size):
        print("reading", flush=True)
        signal.pause()
class Input:
    buffer = Never()
sys.stdin, sys.argv = Input(), ["planner", "check", "-"]
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_one_line(number):
    """Ctrl-C, or being asked to end, while it waits: status 130, as shells expect."""
    words = [sys.executable, "-c", WAITING]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "reading\n"
        ran.send_signal(number)
        out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out, err) == (130, "", "planner: interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("module", ["pydantic", "typer", "planner.cli.options"])
def test_an_interrupt_while_things_are_imported_is_one_line(module):
    """Before there is a command line: the signal comes as this module is imported."""
    code = (
        "import os, runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['-m', 'check', 'x']\n"
        "runpy.run_module('planner', run_name='__main__')\n"
    )
    ran = command_of(sys.executable, "-c", code)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "planner: interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_a_closed_standard_input_is_a_mistake():
    """`planner solve - <&-`: there is nothing to read, and a line says so."""
    ran = command_of("/bin/sh", "-c", f'"{sys.executable}" -m planner solve - <&-')
    told = "-  standard input is closed; give a file, or pipe one in\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)


def test_links_that_lead_round_are_no_output(solve, run, tmp_path, monkeypatch):
    """Every option that writes says so, before anything is computed where a table is."""
    for name in ("ring.json", "ring.csv", "ring.svg", "ring"):
        (tmp_path / name).symlink_to(tmp_path / f"{name}2")
        (tmp_path / f"{name}2").symlink_to(tmp_path / name)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    for words in (
        ("solve", "small.yaml", "--out", "ring"), ("init", "--out", "ring"),
        ("pareto", "small.yaml", "--points", "2", "--out", "ring.json"),
        ("topology", "hgx-h100", "--svg", "ring.svg"),
        ("sweep", "small.yaml", "--over", "workload.input_tokens=100,200", "--out", "ring.csv"),
    ):  # fmt: skip
        status, out, err = run("--quiet", *words)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert "Too many levels of symbolic links" in err
    assert not (tmp_path / "ring.csv.parts").exists()


@pytest.mark.parametrize("words", [(), ("--sobol", "8"), ("--morris", "4")])
def test_no_workers_are_refused(run, tmp_path, words):
    """Whatever the study; none needs to be read for it."""
    status, out, err = run("sensitivity", tmp_path / "none.yaml", "--workers", "0", *words)
    assert (status, out, err) == (2, "", "planner: --workers: expected at least 1, got 0\n")


TWICE = "model,chip,model\na,b,c\n"
PLACED = [
    (("model", "c.json"), "c.json:2:1  is not JSON: ", '{"a":\n}'),
    (("validate", "--data", "c.csv"), "c.csv:1:12  the column 'model' stands here twice", TWICE),
    (("calibrate", "c.csv", "--name", "x", "--out", "x.toml"), "c.csv:1:12  the column", TWICE),
    (
        ("topology", "c.yaml"),
        "c.yaml:1:1  the file: neither kind nor machine is given, but",
        "a: 1",
    ),
    (
        ("import", "c.sh"),
        "c.sh:2:2  vLLM: --tensor-parallel-size expects",
        "vllm serve x/y \\\n -tp x",
    ),
]


@pytest.mark.parametrize(("words", "told", "text"), PLACED)
def test_a_file_is_refused_at_its_place(run, tmp_path, monkeypatch, words, told, text):
    """File, line and column first, the line below, and a caret under the column."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / next(word for word in words if word.startswith("c."))).write_text(text)
    status, _, err = run("--quiet", *words)
    first, source, caret = err.splitlines()[:3]
    place = re.match(r"\S+?:(\d+):(\d+)", first)
    assert status == 2
    assert first.startswith(told)
    assert place
    assert source.endswith(text.splitlines()[int(place[1]) - 1])
    assert caret.index("^") - caret.index("|") == int(place[2]) + 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("pareto", "none.yaml", "--points", "0"),
            "planner: --points: 0 is not between 2 and 1000",
        ),
        (("gate", "none.yaml", "--against", "none.json"), "none.json  no such file"),
        (
            ("validate", "--data", "none.csv", "--out", "x.txt"),
            "planner: --out x.txt: a file that ends in one of .html is written",
        ),
        (  # a tab, and no letters: what a terminal would not show
            ("validate", "--data", "none.csv", "--out", "x\t.txt"),
            "planner: --out x\\t.txt: a file that ends in one of .html is written",
        ),
    ],
)
def test_an_option_is_refused_by_its_name(run, tmp_path, monkeypatch, words, told):
    """Not at a line of the scenario, which is sound, and before anything is computed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.yaml").write_text(SMALL)
    (tmp_path / "none.csv").write_text("model,system\na,b\n")
    status, out, err = run("--quiet", *words)
    assert (status, out, err) == (2, "", f"{told}\n")
