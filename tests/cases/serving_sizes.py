"""Serving questions of more and more chips, each in its own process: processor time, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SYSTEMS = {  # with a model that a machine of each holds
    "hgx-h100": "gpt-oss-120b", "hgx-h200": "deepseek-v3", "gb200-nvl72": "deepseek-v3",
    "mi300x-8": "qwen3-235b-a22b",
}  # fmt: skip
ASK = """
import json, resource, sys
import planner
plan = planner.solve(json.loads(sys.argv[1]))
plan.document
used = resource.getrusage(resource.RUSAGE_SELF)
cpu = used.ru_utime + used.ru_stime
# What getrusage calls the peak is that of the process it was forked from, where that is larger.
peak = next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1]
print(json.dumps([plan.feasible, cpu, int(peak) * 1024]))
"""


@dataclass(frozen=True)
class SizedAnswer:
    """A question of so many chips: whether there is a plan, CPU [s], peak memory [byte]."""

    system: str
    chips: int
    feasible: bool
    seconds: float
    peak: int


def counts(number: int, most: int = 100_000) -> list[int]:
    """So many different chip counts from 1 to the most, even in their logarithms, odd ones too."""
    fine = np.unique(np.geomspace(1, most, 4 * number).round().astype(int))
    return fine[np.linspace(0, fine.size - 1, number).round().astype(int)].tolist()


def walked(systems: Sequence[str], chips: Sequence[int]) -> Iterator[SizedAnswer]:
    """The answers of each system at each count, in a process of its own."""
    for system in systems:
        for count in chips:
            question: dict[str, Any] = {
                "problem": "serving", "model": SYSTEMS[system], "system": system, "chips": count,
                "workload": {"input_tokens": 3000, "output_tokens": 800},
                "promises": {"ttft": "3 s", "tpot": "50 ms"},
            }  # fmt: skip
            words = [sys.executable, "-c", ASK, json.dumps(question)]
            run = subprocess.run(words, check=True, capture_output=True, text=True)
            yield SizedAnswer(system, count, *json.loads(run.stdout))


def growth(answers: Sequence[SizedAnswer]) -> float:
    """The slope of ln(CPU) over ln(chips) of one system's answers [-]."""
    chips, seconds = ([getattr(x, name) for x in answers] for name in ("chips", "seconds"))
    return float(np.polyfit(np.log(chips), np.log(seconds), 1)[0])
