"""Mutants of the code that computes what users read, and which tests notice.

`python -m tests.product_mutants map` runs the tests once and writes down which functions each
calls; `python -m tests.product_mutants run --sample 300` breaks that many places, one at a time,
in the rooms below and runs for each the tests that call it. Both go on where they stopped.
`report` prints the figures again. Mutants that change nothing anybody could see stand with their
reason in tests/data/equivalent_mutants.toml.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.util
import json
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.paths import ROOT
from tests.product_mutants.changes import Mutant, modules, mutants, mutated
from tests.product_mutants.forks import Job, done
from tests.product_mutants.touching import PLAINLY, Touching, recording, stale

SERVING = "planner/problems/serving"
ROOMS = {
    "waits": [
        f"{SERVING}/step/occupancy.py",
        f"{SERVING}/search/sizing.py",
    ],
    "prices": [
        f"{SERVING}/deployment/candidate.py", f"{SERVING}/deployment/pool.py",
        f"{SERVING}/deployment/drawn_power.py", f"{SERVING}/pairs/pool_matching.py",
        f"{SERVING}/pairs/pool_pairs.py", f"{SERVING}/outputs.py", f"{SERVING}/point.py",
    ],
    "times": [
        f"{SERVING}/step", "planner/network/collective_times.py", "planner/network/group.py",
        "planner/network/layout_collectives.py",
    ],
    "memory": [f"{SERVING}/task", f"{SERVING}/search/batch.py", "planner/architecture/counts.py"],
    "bands": [
        f"{SERVING}/profiled.py", f"{SERVING}/deployment/beyond_fit.py",
        "planner/catalogue/coefficient_spread.py", "planner/uncertainty/evaluate_samples.py",
        "planner/uncertainty/global_study.py",
    ],
    "elasticities": [
        f"{SERVING}/slopes", f"{SERVING}/bounds", "planner/sensitivity",
        "planner/problems/lifecycle/elasticities.py",
    ],
    "lives": [
        "planner/token_costs/optimum.py", "planner/token_costs/outputs.py",
        "planner/token_costs/phase_costs.py", "planner/token_costs/posynomial_form.py",
        "planner/token_costs/spending.py", "planner/token_costs/stationary_points.py",
        "planner/problems/lifecycle/serving_cost.py",
    ],
    "rest": ["planner"],  # texts, presentation, questions, readers: all that is in no other room
}  # fmt: skip
TESTS = ("tests/test_planner", "tests/test_formulas/serving", "tests/test_formulas/numerics")
CACHE = ROOT / "build" / "product_mutants"
EQUIVALENT = ROOT / "tests" / "data" / "equivalent_mutants.toml"
HEAVY = ("numpy", "scipy.optimize", "scipy.stats", "sympy", "networkx", "cvxpy", "hypothesis")


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(prog="python -m tests.product_mutants", description=__doc__)
    parser.add_argument("command", choices=("map", "run", "report"))
    parser.add_argument("--sample", type=int, default=300, help="mutants in all")
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--room", choices=ROOMS, action="append", help="these rooms alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant")
    parser.add_argument(
        "--folder", action="store_true", help="the tests of the same folder alone; needs no map"
    )
    parser.add_argument("--tests", nargs="*", help="map these files or folders alone")
    parser.add_argument("--survivors", action="store_true", help="try those that survived again")
    options = parser.parse_args()
    (CACHE / "map").mkdir(parents=True, exist_ok=True)
    os.environ["CI"] = "1"  # the same random examples in every fork, and none remembered
    rooms = options.room or list(ROOMS)
    if options.command == "report":
        print(report(sampled(rooms, options.sample, options.seed)))
        return
    for name in HEAVY:
        importlib.import_module(name)
    if options.command == "map":
        places = [ROOT / place for place in options.tests or TESTS]
        tests = [x for y in places for x in ([y] if y.is_file() else sorted(y.rglob("test_*.py")))]
        files = [str(file.relative_to(ROOT)) for file in tests]
        jobs = [recording(file, CACHE / "map") for file in files if stale(file, CACHE / "map")]
        for job, status, took in done(jobs, options.workers):
            print(f"{took:6.1f} s  {job.name}{'' if status == 0 else '  FAILED'}", flush=True)
        return
    chosen = sampled(rooms, options.sample, options.seed)
    tried(chosen, options)
    print(report(chosen))


# -- which mutants ------------------------------------------------------------------------------


def sampled(rooms: Sequence[str], count: int, seed: int) -> dict[str, list[Mutant]]:
    """{room: its mutants}, of `count` in all rooms.

    Drawn by a digest of seed and name: a change elsewhere in the room leaves the others drawn.
    """
    share = -(-count // len(ROOMS)) if len(rooms) > 1 else count
    chosen, taken = {}, set[str]()
    for room, places in ROOMS.items():
        if room == "rest" and room not in rooms:
            continue
        files = [file for place in places if (ROOT / place).exists() for file in modules(place)]
        every = [one for file in files if file not in taken for one in mutants(file)]
        taken |= set(files)  # a room's file is not tried again as one of a later room's folder
        every.sort(key=lambda mutant: sha256(f"{seed} {mutant.name}".encode()).digest())
        chosen[room] = every[:share]
    return {room: chosen[room] for room in rooms}


def equivalent() -> dict[str, str]:
    """{name of a mutant: why nobody can see it}."""
    if not EQUIVALENT.exists():
        return {}
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", ())
    return {row["name"]: row["because"] for row in rows}


# -- trying them --------------------------------------------------------------------------------


def tried(chosen: dict[str, list[Mutant]], options: argparse.Namespace) -> None:
    """Try what has no verdict yet, and write each down as it comes."""
    verdicts, harmless = results(), equivalent()
    again = {"untested", "survived"} if options.survivors else {"untested"}
    touching = Touching(CACHE / "map")
    left: dict[str, Mutant] = {}
    for mutant in [one for several in chosen.values() for one in several]:
        verdict = verdicts.get(mutant.name, {}).get("verdict")
        if mutant.name not in harmless and (verdict is None or verdict in again):
            left[mutant.name] = mutant
    jobs = [
        _of_folder(mutant, options.budget)
        if options.folder
        else _job(mutant, touching, options.budget)
        for mutant in left.values()
    ]
    with (CACHE / "results.jsonl").open("a", encoding="utf-8") as lines:
        for count, (job, status, took) in enumerate(done(jobs, options.workers), 1):
            late = "unfinished" if options.folder else "timeout"  # its tests may be slow themselves
            verdict = {0: "survived", None: late, 5: "untested"}.get(status, "killed")
            killer = _killer(job.name)
            row = {"name": job.name, "verdict": verdict, "by": killer, "seconds": round(took, 1)}
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            print(f"{count}/{len(jobs)} {verdict:9}{took:6.1f} s  {job.name}", flush=True)


def mirrored(file: str) -> list[str]:
    """The test files of a module's folder, the quickest to collect first; those above if none."""
    folder = ROOT / "tests" / f"test_{Path(file).parent}"
    while not folder.is_dir() or not list(folder.glob("test_*.py")):
        folder = folder.parent
    stem = Path(file).stem
    tests = sorted(folder.glob("test_*.py"), key=lambda x: (stem not in x.stem, x.stat().st_size))
    return [str(test.relative_to(ROOT)) for test in tests]


def _of_folder(mutant: Mutant, budget: float) -> Job:
    """The tests of the module's own folder, until one fails or so many seconds are over."""

    def work() -> int:
        sys.meta_path.insert(0, _Finder(mutant))
        arguments = ["-x", *PLAINLY, "-n", "0", *mirrored(mutant.file)]
        return int(pytest.main(arguments, plugins=[_Witness(mutant.name)]))

    return Job(mutant.name, work, processor=budget)


def _job(mutant: Mutant, touching: Touching, budget: float) -> Job:
    tests = touching.chosen([f"{mutant.file}:{name}" for name in mutant.users], budget)
    seconds = sum(touching.seconds[test] for test in tests)

    def work() -> int:
        if not tests:
            return 5
        sys.meta_path.insert(0, _Finder(mutant))
        arguments = ["-x", *PLAINLY, *tests]
        status = int(pytest.main(arguments, plugins=[_Witness(mutant.name)]))
        return status if status != 5 else 1  # what cannot be collected any more is noticed

    return Job(mutant.name, work, processor=20 + 3 * seconds)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with one change."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.module = mutant.file.removesuffix(".py").replace("/", ".")

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.module:
            return None
        file = str(ROOT / self.mutant.file)
        return importlib.util.spec_from_file_location(fullname, file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        code = compile(mutated(self.mutant), str(ROOT / self.mutant.file), "exec")
        exec(code, module.__dict__)  # noqa: S102


class _Witness:
    """A plugin that writes down which test failed."""

    def __init__(self, name: str) -> None:
        self.file = _witnessed(name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.file.write_text(report.nodeid, encoding="utf-8")


def _witnessed(name: str) -> Path:
    return CACHE / f"by-{abs(hash(name))}.txt"


def _killer(name: str) -> str | None:
    file = _witnessed(name)
    if not file.exists():
        return None
    test = file.read_text(encoding="utf-8")
    file.unlink()
    return test


# -- what became of them ------------------------------------------------------------------------


def results() -> dict[str, dict[str, Any]]:
    """{name of a mutant: its last verdict}."""
    file = CACHE / "results.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def report(chosen: dict[str, list[Mutant]]) -> str:
    """Killed, survived and timed out by room; the survivors; those that are equivalent apart."""
    verdicts, harmless = results(), equivalent()
    lines, survivors, total = [], [], Counter[str]()
    for room, several in chosen.items():
        counts: Counter[str] = Counter()
        for mutant in several:
            verdict = verdicts.get(mutant.name, {}).get("verdict", "not tried")
            verdict = "equivalent" if mutant.name in harmless else verdict
            counts[verdict] += 1
            if verdict in ("survived", "untested"):
                survivors.append(f"  {verdict}: {mutant.file}:{mutant.line} {mutant.name}")
        lines.append(_line(room, counts))
        total += counts
    return "\n".join([*survivors, *lines, _line("all", total)])


def _line(room: str, counts: Counter[str]) -> str:
    noticed = counts["killed"] + counts["timeout"]
    judged = noticed + counts["survived"] + counts["untested"]
    share = f"{noticed / judged:.1%}" if judged else "-"
    words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    return f"{room:14}{share:>7} of {judged:4} noticed ({words})"


if __name__ == "__main__":
    main()
