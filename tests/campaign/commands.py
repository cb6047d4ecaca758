"""Hostile cases that are no scenario of serving: files in odd encodings, other problems, options.

Options are those of the commands themselves, so that a new one is tried without a line here.
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import typer.main
from ruamel.yaml import YAML

import planner
from planner.cli.app import app
from planner.scenario.kinds import PROBLEMS, starter
from tests.campaign.judged import Case
from tests.campaign.mutations import HOSTILE, garbled, spoilt, written
from tests.paths import EXAMPLES

CODECS = (
    *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"),
    *("utf-8",) * 8,
)
NEWLINES = ("\n", "\n", "\n", "\r\n", "\r", "\n\r", "\u2028", "\x85", "\x0b", "\n\n\t\n")
TEXTS = {
    "s.yaml": (EXAMPLES / "serve-llama-70b-fast.yaml").read_text(encoding="utf-8"),
    "s.toml": 'problem = "serving"\nmodel = "llama-3.1-8b"\nsystem = "hgx-h100"\nchips = 2\n'
    'price = "$2/hour"\n[workload]\ninput_tokens = 500\noutput_tokens = 100\n',
    "s.json": '{"problem": "serving",\n"model": "llama-3.1-8b",\n"system": "hgx-h100",\n'
    '"chips": 2,\n"price": "$2/hour",\n"workload": {\n"input_tokens": 500,\n'
    '"output_tokens": 100}}\n',
}
# In place of a value: numbers as nobody writes them, tags, look-alikes, what is endless.
ODD = (
    *("0x10", "0o17", "0b11", "1_000", "1e400", "1E+3", "+5", "5.", ".5", "1,000", "1 000", "1:30"),
    *("2026-11-28", "2026-11-28T12:30:45Z", "12:30:45", "yes", "on", "~", "!!int '3'", "!!float 3"),
    *("!!str 3", "!!binary aGk=", "!!timestamp 2026-01-01", "!!set {a}", "!!omap [a: 1]", "!x 3"),
    *("!!python/object/apply:os.system [ls]", "&a 3", "*a", "*none", "|\n  3", ">-\n  3", "? 3"),
    *("\u0663", "\uff11\uff16", "\u00b2", "\u00bd", "\u2167", "1\u00a0000", "50 \u043cs"),
    *("50\u00a0ms", "\uff15\uff10 ms", "50 ms\u200b", "hgx\u2011h100", "llama\u20113.1\u20118b"),
    *('"\\0"', '"\\ud800"', '"\\x1b[31m"', "'", '"', "9" * 5000, "0." + "0" * 9000 + "1"),
    *("a" * 10**6, "[" * 3000, "{a: " * 3000, "[" * 60 + "]" * 60, "- " * 3000, "1e-400", "-0"),
)  # fmt: skip
# A line of its own among the others.
LINES = (
    *("<<: {price: $1/h}", "<<: *a", "<<: [1, 2]", "<<: 3", "base: &a {chips: 2}", "chips: 2"),
    *("chips: 3", "---", "...", "%YAML 1.1\n---", "%TAG ! x:", "? [a, b]\n: 3", "? {a: 1}\n: 3"),
    *("1: 2", "null: 3", "true: 3", "2026-11-28: 3", "~: 3", "? \n: 3", ": 3", "- 3", "\t", "\0"),
    *(
        "[workload]",
        "[[workload]]",
        "workload.input_tokens = 3",
        "chips = 3",
        "a.b.c = 1",
        "}",
        "]",
    ),
    *('"chips": 3,', '"chips": 3', "// 3", "/* 3 */", "# \ud800", "\ufeff", "x" * 10**5 + ": 1"),
    "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b]\n"
    "d: &d [*c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e]",
    "a: &a {b: *a}",
)


def encoded(rng: random.Random) -> Case:
    """A scenario whose text is odd: values, lines, ends of lines, or bytes."""
    name = rng.choice(("s.yaml", "s.yaml", "s.yaml", "s.json", "s.toml"))
    lines = TEXTS[name].replace("70b", "8b").splitlines()
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(lines))
        if rng.random() < 0.5:
            lines.insert(at, rng.choice(("", "  ")) + rng.choice(LINES))
        elif rng.random() < 0.2:
            lines.insert(at, lines[at])
        else:
            mark = " = " if name == "s.toml" else ": "
            lines[at] = lines[at].partition(mark)[0] + mark + rng.choice(ODD)
    text = rng.choice(NEWLINES).join(lines)
    codec = rng.choice(CODECS)
    errors = "surrogatepass" if "utf" in codec else "replace"
    raw = text.encode(codec, errors)
    return Case((rng.choice(("check", "solve")), name), {name: raw})


@cache
def problems() -> dict[str, Any]:
    """The starter of every problem but serving, which has families of its own."""
    yaml = YAML(typ="safe", pure=True)
    return {kind: yaml.load(starter(kind)) for kind in PROBLEMS if kind != "serving"}


def problem(rng: random.Random) -> Case:
    """A scenario of another problem with values astray."""
    kind = rng.choice(list(problems()))
    start = problems()[kind]
    document = spoilt(rng, start, (*start, "x", "like", "mean", "current"))
    # What is sound takes its time: it is answered one time in three.
    word = "solve" if rng.random() < 0.33 else "check"
    return Case((word, "p.yaml", "--json"), {"p.yaml": written(document)})


LAUNCH = "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-num-seqs 64\n"
MANIFEST = {
    "kind": "Deployment",
    "spec": {
        "replicas": 2,
        "template": {"spec": {"containers": [{"command": ["sh", "-c"], "args": [LAUNCH]}]}},
    },
}
RUNS = (
    "engine,model,system,n_chips,tp,concurrency,input_tokens,output_tokens,ttft_ms,tpot_ms\n"
    "vllm,llama-3.1-8b,hgx-h100,1,1,8,1024,256,110,9\n"
    "vllm,llama-3.1-8b,hgx-h100,1,1,64,1024,256,210,14\n"
)
SCENARIO = TEXTS["s.json"]
FILES = {
    "s.json": SCENARIO,
    "t.json": SCENARIO.replace('"chips": 2', '"chips": 4'),
    "runs.csv": RUNS,
    "launch.sh": LAUNCH,
    "plan.json": '{"schema": "serving/1", "plan": null}',
}
# What a command takes without an option before it.
ARGUMENTS = {
    "check": ("s.json",), "solve": ("s.json",), "diff": ("s.json", "t.json"), "gate": ("s.json",),
    "pareto": ("s.json",), "report": ("s.json",), "export": ("s.json",), "import": ("launch.sh",),
    "sensitivity": ("s.json",), "sweep": ("s.json",), "model": ("llama-3.1-8b",), "init": ("rl",),
    "catalog": ("chips", "h200"), "formula": ("mixed_price",), "derive": ("mixed_price",),
    "schema": (), "topology": ("hgx-h100",), "calibrate": ("runs.csv",), "validate": (),
}  # fmt: skip
# They reach out, run for long, or start processes.
LEFT_OUT = {
    *("--help", "--refresh", "--scheduler", "--all", "--book", "--yes"),
    *("--workers", "--install-completion", "--show-completion", "--format", "--benchmark"),
}
SOUND: dict[str, tuple[str, ...]] = {
    "--set": ("chips=2", "price=$1/h", "tp=2", "workload.demand=1 requests/s", "T_mem=3"),
    "--over": ("chips=1,2", "chips=1..1000000000", "price=lin(1..2,0)", "chips=lin(1..2,1e9)"),
    "--where": ("memory>=100 GB", "form=exact", "name=x", "memory>=", ">=3", "memory>=nan"),
    "--find": ("cache", "nvidia", "", "(", "\\"),
    "--out": ("o.json", "o.csv", "o.svg", "o", "/dev/full"),
    "--fact": ("system=hgx-h200", "system=", "=3", "model=x"),
    "--like": ("auto", "steady-2024"),
    "--at": ("plan.json", "s.json", "runs.csv"),
    "--against": ("plan.json", "s.json"),
    "--data": ("runs.csv", "launch.sh", "."),
    "--engine": ("vllm", "sglang", "kubernetes"),
    "--chips": ("8", "16", "1000000"),
    "--shape": ("2x2", "4x4x8", "0x0", "2x"),
    "--bytes": ("16 MB", "1"),
    "--group": ("2", "8", "10**9"),
    "--collective": ("all-reduce", "all-to-all"),
    "--points": ("2", "3"),
    "--of": ("cost", "tpot", "ttft"),
    "--swing": ("0.2", "5"),
    "--break-even": ("chips=1,2", "x=1"),
    "--sobol": ("2", "1000000000"),
    "--morris": ("2", "1000000000"),
    "--seed": ("1", "9" * 20),
    "--max-tpot": ("40 ms", "1 s"),
    "--max-usd-per-mtok": ("0.3", "9"),
    "--may-rise": ("5%", "-5%"),
    "--answer": ("serving", "diff", "x"),
    "--solve-for": ("x", "p_out"),
    "--as-of": ("2026-01-01", "2026-13-01"),
}


@cache
def options() -> dict[str, tuple[tuple[str, bool], ...]]:
    """The options of every command, and whether each takes no value."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: tuple(
            (parameter.opts[0], bool(parameter.is_flag))
            for parameter in commands[name].params
            if parameter.opts[0].startswith("--") and parameter.opts[0] not in LEFT_OUT
        )
        for name in ARGUMENTS
    }


def command(rng: random.Random) -> Case:
    """A command with options that it has, at values that they do not take."""
    name = rng.choice(list(ARGUMENTS))
    words, files = [name], dict(FILES)
    for word in ARGUMENTS[name]:
        odd = rng.random() < 0.1
        words.append(_value(rng, (word, *FILES)) if odd else word)
    for flag, alone in rng.sample(options()[name], min(len(options()[name]), rng.randint(0, 3))):
        words += [flag] if alone else [flag, _value(rng, SOUND.get(flag, ("1",)))]
    if name == "sweep":
        words += ["--over", "chips=1,2"] if "--over" not in words else []
    if name == "import" and rng.random() < 0.5:
        files["launch.sh"] = written(spoilt(rng, MANIFEST, ("data", "leaderWorkerTemplate")))
    if rng.random() < 0.3:
        spoiled = rng.choice(("runs.csv", "launch.sh", "plan.json"))
        files[spoiled] = garbled(rng, files[spoiled])
    return Case(tuple(words), files)


def rows(rng: random.Random) -> Case:
    """A table of runs with columns, cells, lines or bytes astray, validated or calibrated on."""
    cells = [line.split(",") for line in RUNS.splitlines()]
    for _ in range(rng.choice((1, 1, 2, 3))):
        column, line = rng.randrange(len(cells[0])), rng.randrange(len(cells))
        what = rng.choice(("drop", "double", "empty", "cell", "cell", "cell", "line", "short"))
        for row in cells if what in ("drop", "double", "empty") else [cells[line]]:
            at = min(column, len(row) - 1)
            if what == "drop" and len(cells[0]) > 1:
                del row[at]
            elif what == "double":
                row.append(row[at])
            elif what == "empty":
                row[at] = ""
            elif what == "cell":
                row[at] = rng.choice((*ODD[:-4], "\0", '"', '"a\nb"', "1;2", "=1+1", "nan", "-1"))
            elif what == "short":
                del row[at + 1 :]
        if what == "line":
            cells.insert(line, cells[line] * rng.choice((1, 1, 50)))
    text = rng.choice(NEWLINES).join(
        rng.choice((",", ",", ",", ",", ";", "\t")).join(x) for x in cells
    )
    codec = rng.choice(CODECS)
    raw = text.encode(codec, "surrogatepass" if "utf" in codec else "replace")
    words = rng.choice((("validate", "--data", "runs.csv"), ("calibrate", "runs.csv")))
    return Case(words, {"runs.csv": raw})


@cache
def answer() -> dict[str, Any]:
    """What a small scenario is answered."""
    return planner.solve(json.loads(SCENARIO)).to_json()


def saved(rng: random.Random) -> Case:
    """A saved answer with values astray, compared, judged against, or put into an equation."""
    document = spoilt(rng, answer(), ("plan", "schema", "scenario", "x"))
    words = rng.choice((
        ("diff", "plan.json", "s.json"),
        ("diff", "s.json", "plan.json", "--json"),
        ("gate", "s.json", "--against", "plan.json", "--may-rise", "5%"),
        ("derive", "mixed_price", "--at", "plan.json"),
    ))  # fmt: skip
    return Case(words, {"s.json": SCENARIO, "plan.json": json.dumps(document)})


def _value(rng: random.Random, sound: tuple[str, ...]) -> str:
    """One of these, garbled, or hostile altogether; as a shell can hand it over."""
    value = rng.choice(sound)
    chance = rng.random()
    if chance < 0.3:
        value = garbled(rng, value, 1)
    elif chance < 0.5:
        value = str(rng.choice(HOSTILE))
    return value.replace("\0", "").lstrip("-") or "x"
