"""Hostile cases by family: scenarios, configurations, networks, laws, profiles, tables, grids.

A case is made of its family and number alone, so that it can be run again by itself.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from ruamel.yaml import YAML

from formulas.algebra.equation import Equation
from formulas.registry import by_name
from planner.scenario.grid import parse_grid
from planner.scenario.kinds import starter
from tests.campaign.commands import command, encoded, problem, rows, saved
from tests.campaign.judged import WILD, Case
from tests.campaign.mutations import HOSTILE, garbled, nudged, spoilt, written
from tests.paths import EXAMPLES, ROOT

SERVING: dict[str, Any] = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 2,
    "price": "$2/hour",
    "workload": {"input_tokens": 500, "output_tokens": 100},
    "promises": {"tpot": "50 ms"},
}
OTHERS: dict[str, Any] = {
    "choose": {"tp": 2, "batch": 8},
    "current": {"tp": 2, "batch": 16},
    "estimate": "bound",
    "objective": "energy",
    "assumptions": "lecture",
    "speculation": {"drafts": 2, "acceptance": 0.7},
    "limits": {"power": "2 MW"},
    "power_price": "$0.08/kWh",
    "pue": 1.2,
    "carbon": "350 g/kWh",
    "profile": "auto",
    "uncertain": {"price": {"uniform": ["$1/h", "$3/h"]}},
}
LOADS: dict[str, Any] = {
    "demand": "2 requests/s",
    "concurrency": 16,
    "cached_input": "30%",
    "routing_skew": 1.5,
    "headroom": "20%",
    "spare_replicas": 1,
    "input_tokens": {"mean": 900, "cv": 0.7},
}
BUDGET = {"problem": "budget", "law": "besiroglu-2024", "cost": "1e22 FLOP"}
KEYS = (
    *SERVING,
    *OTHERS,
    *LOADS,
    "tp",
    "pp",
    "mode",
    "batch",
    "ttft",
    "ttft_p95",
    "e2e",
    "weights",
    "kv",
    "like",
    "mean",
    "cv",
    "memory",
    "flops",
    "scale_up",
    "chips_per_domain",
    "quality",
    "inference",
    "phases",
    "x",
)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 8000,
    "torch_dtype": "bfloat16",
    "head_dim": 64,
    "max_position_embeddings": 8192,
}
LAW = {
    "form": "chinchilla",
    "coefficients": {"loss_min": 1.8, "A_N": 480, "B_D": 2000, "alpha_N": 0.35, "beta_D": 0.37},
}
FABRICS: tuple[dict[str, Any], ...] = (
    {
        "kind": "torus",
        "dims": [2, 3],
        "wrap": [False, True],
        "link": {"bandwidth": "45 GB/s", "latency": "1 us"},
    },
    {"kind": "rails", "nodes": 2, "chips": 4, "up": "450 GB/s", "out": "50 GB/s"},
    {"kind": "switch", "chips": 8, "up": "450 GB/s"},
    {"kind": "clos", "chips": 8, "out": "400 Gbit/s", "leaf": 2, "levels": 3, "pod": 2, "cores": 2},
    {
        "kind": "dragonfly",
        "p": 1,
        "a": 2,
        "h": 1,
        "up": "900 GB/s",
        "local": "45 GB/s",
        "out": 1e10,
    },
    {"machine": "hgx-h100", "chips": 16},
)
TABLE = (
    "model,system,engine,weights,tp,concurrency,input_tokens,output_tokens,ttft_ms,tpot_ms\n"
    + "".join(
        f"{model},hgx-h100,vllm,bf16,1,{users},1024,256,{100 + users},{9 + users / 8}\n"
        for model in ("llama-3.1-8b", "mistral-7b")
        for users in (1, 8)
    )
)


ENGINE = 2  # column of a table that may hold any text


def asked(rng: random.Random) -> dict[str, Any]:
    """A sound question of serving with a few of the keys that it may have."""
    extra = {key: OTHERS[key] for key in rng.sample(list(OTHERS), rng.choice((0, 0, 1, 2)))}
    load = {key: LOADS[key] for key in rng.sample(list(LOADS), rng.choice((0, 0, 1, 2)))}
    if {"headroom", "spare_replicas"} & load.keys():
        load["demand"] = LOADS["demand"]
    return {**SERVING, **extra, "workload": {**SERVING["workload"], **load}}


@cache
def starters() -> tuple[dict[str, Any], ...]:
    """The budget that ships as a start, whole and small."""
    plain = YAML(typ="safe", pure=True).load(starter("budget"))
    return plain, BUDGET, {**BUDGET, "law": ["besiroglu-2024", "hoffmann-2022-approach-2"]}


def scenario(rng: random.Random) -> Case:
    """A question of serving with values astray."""
    text = written(spoilt(rng, asked(rng), KEYS))
    return Case(("solve", "s.yaml", "--json"), {"s.yaml": text})


def typed(rng: random.Random) -> Case:
    """The text of a scenario with letters astray, checked or solved, in any of its three forms."""
    text = garbled(rng, YAML_TEXT if rng.random() < 0.8 else json.dumps(asked(rng)))
    name = rng.choice(("s.yaml", "s.yaml", "s.json", "s.toml", "s"))
    return Case(("solve", name), {name: text})


YAML_TEXT = (
    (EXAMPLES / "serve-llama-70b-fast.yaml").read_text(encoding="utf-8").replace("70b", "8b")
)


def budget(rng: random.Random) -> Case:
    """A budget with values astray."""
    document = spoilt(rng, rng.choice(starters()), KEYS)
    if isinstance(document.get("draws"), int) or "draws" not in document:
        document["draws"] = rng.choice((0, 0, 0, 5))
    return Case(("solve", "b.yaml", *rng.choice(((), ("--json",)))), {"b.yaml": written(document)})


def law(rng: random.Random) -> Case:
    """A law of one's own with coefficients astray, in the scenario or in a file."""
    mine = spoilt(rng, LAW, (*LAW["coefficients"], "form", "range", "fit", "error"))  # type: ignore[misc]
    if rng.random() < 0.5:
        return Case(
            ("solve", "b.yaml", "--json"), {"b.yaml": written({**BUDGET, "draws": 0, "law": mine})}
        )
    files = {
        "mine.toml": garbled(rng, LAW_FILE),
        "b.yaml": written({**BUDGET, "draws": 0, "law": "mine.toml"}),
    }
    return Case(("solve", "b.yaml", "--json"), files)


LAW_FILE = """\
form = "chinchilla"
source = "mine"
[coefficients]
loss_min = 1.8
A_N = {value = 480, error = 10}
B_D = 2000
alpha_N = 0.35
beta_D = 0.37
"""


@cache
def configurations() -> tuple[dict[str, Any], ...]:
    """Configurations of small models, and of every family that ships."""
    folder = ROOT / "planner" / "catalogue" / "models"
    wanted = (
        "deepseek-v3",
        "gpt-oss-20b",
        "gemma-3-12b",
        "nemotron-h-56b",
        "mixtral-8x7b",
        "mistral-7b",
    )
    shipped = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in wanted)
    return CONFIG, *(each.get("config", each) for each in shipped)


def configuration(rng: random.Random) -> Case:
    """A config.json with values astray, shown or served."""
    config = rng.choice(configurations())
    raw = json.dumps(spoilt(rng, config, tuple(config)))
    raw = garbled(rng, raw) if rng.random() < 0.2 else raw
    if rng.random() < 0.7:
        return Case(("model", "config.json", *rng.choice(((), ("--json",)))), {"config.json": raw})
    asked_ = {**SERVING, "model": "./config.json", "chips": 8}
    return Case(("solve", "s.yaml", "--json"), {"s.yaml": written(asked_), "config.json": raw})


def network(rng: random.Random) -> Case:
    """A network of one's own with values astray, measured, drawn or served on."""
    spec = spoilt(
        rng,
        rng.choice(FABRICS),
        ("kind", "chips", "overrides", "domain", "relay", "nodes", "parallel"),
    )
    text = garbled(rng, written(spec)) if rng.random() < 0.2 else written(spec)
    if rng.random() < 0.8:
        words = rng.choice(
            (
                (),
                ("--json",),
                ("--collective", "all-to-all"),
                ("--out", "o.json"),
                ("--svg", "o.svg"),
            )
        )
        return Case(("topology", "net.yaml", *words), {"net.yaml": text})
    question = {**SERVING, "system": {"like": "hgx-h100", "topology": "./net.yaml"}}
    return Case(("solve", "s.yaml", "--json"), {"s.yaml": written(question), "net.yaml": text})


@cache
def profiles() -> tuple[str, str]:
    """A profile that is another's, and one with all its figures."""
    folder = ROOT / "planner" / "catalogue" / "profiles"
    like, whole = (folder / name for name in ("vllm-2026.toml", "steady-2024.toml"))
    return like.read_text(encoding="utf-8"), whole.read_text(encoding="utf-8")


def profile(rng: random.Random) -> Case:
    """A profile with letters or figures astray."""
    text = garbled(rng, rng.choice(profiles()), 2)
    if rng.random() < 0.5:
        lines = rng.choice(profiles()).splitlines()
        at = rng.choice([i for i, line in enumerate(lines) if " = " in line])
        name, _, value = lines[at].partition(" = ")
        try:
            value = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            value = 1
        lines[at] = f"{name} = {json.dumps(nudged(rng, value), default=str)}"
        text = "\n".join(lines)
    question = {**SERVING, "profile": "./p.toml"}
    return Case(("solve", "s.yaml", "--json"), {"s.yaml": written(question), "p.toml": text})


def table(rng: random.Random) -> Case:
    """A table of measurements with cells or letters astray, validated or calibrated on."""
    rows = [line.split(",") for line in TABLE.splitlines()]
    for _ in range(rng.randint(1, 3)):
        row = rng.choice(rows)
        column, cell = rng.randrange(len(row)), str(rng.choice(HOSTILE))
        # An engine called `inf` is a name, and would be taken for a number that is none.
        row[column] = "named" if column == ENGINE and WILD.search(cell) else cell
    text = "\n".join(",".join(row) for row in rows)
    text = garbled(rng, text) if rng.random() < 0.4 else text
    return Case(("validate", "--data", "t.csv", *rng.choice(((), ("--json",)))), {"t.csv": text})


FEW = 8  # points that are computed
GRID = (
    "chips=1,2",
    "workload.input_tokens=lin(100..200,3)",
    "promises.tpot=log(10 ms..1 s,3)",
    "price=$1/h,$2/h",
    "model=llama-3.1-8b,llama-2-7b",
    "choose.tp=1..2",
    "system=hgx-h100,hgx-h200",
    "workload.output_tokens=2**3",
)


def grid(rng: random.Random) -> Case:
    """A grid with letters astray; a table of few points is computed, of many it is refused."""
    over = [garbled(rng, rng.choice(GRID), 2) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.1:
        over[0] = over[0] + over[0][-3:] * rng.randint(10, 20_000)
    over = [each.replace("\0", "") for each in over]
    words = tuple(word for each in over for word in ("--over", each))
    with suppress(ValueError):
        if parse_grid(over).count > FEW:
            words += ("--plot", "o.docx")  # refused once the grid is read, before it is computed
    return Case(("sweep", "s.yaml", "--out", "o.csv", *words), {"s.yaml": written(SERVING)})


@cache
def equations() -> tuple[tuple[str, Equation], ...]:
    """All equations by name."""
    return tuple((name, x) for name, x in by_name().items() if isinstance(x, Equation))


def argument(rng: random.Random) -> Case:
    """An equation with hostile values, solved for what it may not have."""
    name, equation = rng.choice(equations())
    symbols = [str(symbol) for symbol in sorted(equation.rhs.free_symbols, key=str)] or ["x"]
    words = ["formula", name if rng.random() < 0.9 else garbled(rng, name)]
    for symbol in rng.sample(symbols, rng.randint(0, len(symbols))):
        value = rng.choice(HOSTILE) if rng.random() < 0.5 else rng.uniform(0, 10)
        words += ["--set", f"{symbol}={value}".replace("\0", "")]
    if rng.random() < 0.3:
        words += ["--solve-for", rng.choice((*symbols, "x", ""))]
    return Case((*words, *rng.choice(((), ("--json",)))), {})


SOUND: dict[str, tuple[Any, ...]] = {
    "model": ("llama-2-7b", "mistral-7b", "gpt-oss-20b", "qwen3-30b-a3b", {"total_params": "8B"}),
    "system": (
        "hgx-h200",
        "mi300x-8",
        "tpu-v5e",
        "gb200-nvl72",
        ["hgx-h100", "tpu-v6e", "hgx-b200"],
    ),
    "chips": (1, 3, 4, 5, [1, 2, 7], {"from": 1, "to": 5}, 16),
    "price": ("$1/hour", "$20/hour", None),
    "workload.demand": ("0.01 requests/s", "3 requests/s", "200 requests/s", "900 tokens/s"),
    "workload.concurrency": (1, 7, 5000),
    "workload.cached_input": ("1%", "99%"),
    "workload.routing_skew": (1, 3, 50),
    "workload.headroom": ("0%", "50%", "300%"),
    "workload.spare_replicas": (0, 1, 2),
    "workload.input_tokens": (
        1,
        30_000,
        {"mean": 500, "cv": 3},
        {"quantiles": {"p50": 9, "p99": 900}},
    ),
    "choose": (
        {},
        {"tp": [1, 2]},
        {"pp": 2},
        {"weights": "int4", "kv": "fp8"},
        {"mode": "prefill"},
    ),
    "choose.mode": ("decode", "prefill", "aggregated", "disaggregated"),
    "promises.ttft": ("1 ms", "1 s", "1000 s", None),
    "B": (1, 7, 100_000),
    "W": ("1 GB/s", "100 TB/s"),
    "objective": ("cost", "throughput", "latency", "energy"),
    "estimate": ("bound", "calibrated"),
    "assumptions": ("lecture", "physical"),
    "speculation": ({"drafts": "auto"}, {"drafts": 7, "acceptance": 0.01}, {"drafts": 1}),
    "power_price": ("$0.3/kWh",),
    "profile": ("vllm-2026", "steady-2024", "palm-2022", "auto"),
    "pue": (1, 3),
}


def change(rng: random.Random) -> Case:
    """A sound scenario, changed on the command line."""
    words = []
    for _ in range(rng.randint(1, 3)):
        rare = (*SERVING, *OTHERS, *(f"workload.{name}" for name in LOADS))
        path = rng.choice(list(SOUND) if rng.random() < 0.8 else rare)
        path = garbled(rng, path, 1) if rng.random() < 0.1 else path
        value = rng.choice(HOSTILE) if rng.random() < 0.12 else rng.choice(SOUND.get(path, HOSTILE))
        words += ["--set", f"{path}={json.dumps(value)}".replace("\0", "")]
    return Case(
        ("solve", "s.yaml", *words, *rng.choice(((), ("--json",)))), {"s.yaml": written(asked(rng))}
    )


FAMILIES: dict[str, tuple[Callable[[random.Random], Case], int]] = {
    # by name: how a case is made, and how many of 100,000 are of it
    "scenario": (scenario, 14_000),
    "typed": (typed, 20_000),
    "budget": (budget, 8_000),
    "law": (law, 8_000),
    "configuration": (configuration, 14_000),
    "network": (network, 10_000),
    "profile": (profile, 4_000),
    "table": (table, 1_000),
    "grid": (grid, 5_000),
    "argument": (argument, 8_000),
    "change": (change, 8_000),
    "encoded": (encoded, 6_000),
    "problem": (problem, 4_000),
    "command": (command, 4_000),
    "rows": (rows, 2_000),
    "saved": (saved, 2_000),
}


def case(family: str, number: int) -> Case:
    """The case of a family and a number."""
    return FAMILIES[family][0](random.Random(f"{family}:{number}"))
