"""Figures of fleets: how cost and time grow, gaps, columns, savings, chances, days simulated.

`python -m tests.scripts.fleet_figures growth few regions columns savings chance days` prints the
tables asked for, all without a name. Times are seconds of the processor. Fleets are drawn by a seed
(`tests.cases.fleets`); the columns are made for twenty models of the catalogue on six systems.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

from planner.problems.fleet.answer import recheck
from planner.problems.fleet.bills import restricted_bills
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.robust import forecast_errors, robust
from planner.problems.fleet.search import FleetChoice, solve_min_cost
from planner.programs.integer import solve_lp_relaxation
from planner.scenario import load
from tests.cases.fleet_simulation import hours_served
from tests.cases.fleets import large_fleet, regional_fleet
from tests.paths import ROOT

GROWTH = ((5, 24), (10, 24), (20, 24), (35, 24), (50, 24), (20, 48), (20, 96), (20, 168))
STACK = "import numpy, scipy.optimize, sympy, networkx, pydantic, cvxpy"
MODELS = (
    "gpt-oss-120b", "gpt-oss-20b", "llama-3.1-8b", "llama-3.3-70b",
    "deepseek-v3", "gemma-3-27b", "glm-4.5-air", "qwen3-32b",
    "qwen3-8b", "mistral-7b", "mixtral-8x7b", "gemma-2-9b",
    "gemma-3-12b", "llama-3.1-70b-fp8", "llama-2-13b", "qwen3-30b-a3b",
    "glm-4.5", "minimax-m2", "llama-3.2-3b", "llama-2-70b",
)  # fmt: skip
SYSTEMS = ["hgx-h100", "hgx-h200", "hgx-b200", "mi300x-8", "hgx-a100", "mi325x-8"]
FAILS, STRETCHED, DAYS = 0.002, 40, 7


def timed(task: FleetTask) -> tuple[FleetChoice, float, float]:
    """The plan, checked, with the time of the relaxation and of all."""
    start = process_time()
    solve_lp_relaxation(fleet_program(task).program.compiled())
    middle = process_time()
    choice = solve_min_cost(task)
    end = process_time()
    recheck(task, choice)
    return choice, middle - start, end - middle


def growth() -> None:
    """Cost and time against models and hours."""
    print("models hours columns variables  relaxation s  plan s   gap  $/hour  $/hour and model")
    for models, hours in GROWTH:
        task = large_fleet(models, hours)
        choice, linear, whole = timed(task)
        usd, size = choice.value / hours, fleet_program(task).program.columns
        print(f"{models:6} {hours:5} {len(task.columns):7} {size:9,} {linear:13.2f} {whole:7.1f} "
              f"{choice.gap:5.2%} {usd:7,.0f} {usd / models:8,.0f}", flush=True)  # fmt: skip


def few() -> None:
    """The gap of twenty models of few replicas, where whole numbers matter most."""
    print("demand seed  plan s   gap  $/hour")
    for scale, seed in ((0.2, 0), (0.2, 1), (0.11, 0), (0.11, 2)):
        task = large_fleet(20, 24, seed)
        choice, _, whole = timed(replace(task, demand=task.demand * scale))
        print(f"{scale:6} {seed:4} {whole:7.1f} {choice.gap:5.2%} {choice.value / 24:7,.0f}",
              flush=True)  # fmt: skip


def regions() -> None:
    """The gap of fleets in two regions, with requests that move and without."""
    print("models kinds seed moves  plan s   gap  $/hour")
    for models, kinds, seeds in ((4, 2, range(4)), (20, 3, range(1))):
        for seed in seeds:
            task = regional_fleet(models, 24, seed, kinds)
            for moves in (True, False):
                choice, _, whole = timed(task if moves else replace(task, routes=()))
                print(f"{models:6} {kinds:5} {seed:4} {moves!s:5} {whole:7.1f} {choice.gap:5.2%} "
                      f"{choice.value / 24:7,.0f}", flush=True)  # fmt: skip


def columns() -> None:
    """The time in which columns are made, beside that of importing the stack."""
    clock = f"from time import process_time as p; a = p(); {STACK}; print(p() - a)"
    out = subprocess.run([sys.executable, "-c", clock], capture_output=True, check=True, text=True)
    stack = float(out.stdout)
    wave = {"peak_to_mean": 1.6, "mean": "30 requests/s"}
    models = {
        name: {"model": name, "workload": {"input_tokens": 2000 + 100 * i, "output_tokens": 500},
               "promises": {"ttft_p95": "3 s", "tpot": "50 ms"}, "demand": wave}
        for i, name in enumerate(MODELS)
    }  # fmt: skip
    pools = {name: {"system": name, "on_demand": "$3/hour"} for name in SYSTEMS}
    scenario = load({"problem": "fleet", "models": models, "pools": pools})
    start = process_time()
    made = resolve_fleet(scenario).made
    spent = process_time() - start
    assert made is not None
    cells = {(each.cell.m, each.cell.k) for each in made.made}
    print(f"columns {len(made.made)} of {len(cells)} models and pools, {len(made.searched)} "
          f"searches: {spent:.1f} s, {spent / stack:.1f} x the import ({stack:.2f} s)")  # fmt: skip


def savings() -> None:
    """What the mix of contracts saves over one of them."""
    task = large_fleet(20, 24)
    for row in restricted_bills(task, solve_min_cost(task)):
        more = "no plan" if row.more is None else f"{row.more:+.1%}"
        print(f"{row.restriction:24} {more}")


def chance() -> None:
    """What plans with a chance of 95 % keep on draws that they did not see, and what it costs."""
    print("models hours seed   keeps  over the plan without a chance")
    for models, hours, seed in ((2, 24, 5), (3, 24, 0), (3, 24, 1), (2, 24, 2), (4, 12, 3)):
        task = large_fleet(models, hours, seed, pools=2)
        sure = robust(task, forecast_errors(task, 0.1, 0.08), 0.95)
        plain = solve_min_cost(replace(task, headroom=0.0))
        print(f"{models:6} {hours:5} {seed:4} {sure.share:7.1%} "
              f"{sure.choice.value / plain.value - 1:+.1%}", flush=True)  # fmt: skip


def days() -> None:
    """The share of hours served in simulated days of the example, machines lost and failing."""
    task = resolve_fleet(load(str(ROOT / "examples" / "plan-fleet-day.yaml"))).task
    choice = solve_min_cost(task)
    slower = tuple(replace(c, rate=c.rate / STRETCHED) for c in task.columns)
    stretched = replace(task, demand=task.demand / STRETCHED, columns=slower)
    served = hours_served(stretched, choice, DAYS, FAILS, seed=0)
    print(f"served {served.mean():.2%} of {served.size} hours and models")


TABLES: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (growth, few, regions, columns, savings, chance, days)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or list(TABLES):
        print(f"-- {name}")
        TABLES[name]()
