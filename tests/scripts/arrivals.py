"""The promises of loaded plans, each put through a simulation of its arrivals.

`python -m tests.scripts.arrivals 200` draws so many plans, those of one pool and of two in turn,
sends 100,000 requests through a rank of each, prints both promises with what was seen, and ends
with 1 where one is broken by more than its sampling error. `--first` is the first seed,
`--requests` how many of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from planner import solve
from tests.cases.arrivals import witnessed
from tests.cases.loaded_plans import MODES, broken, drawn_question, followed


def plans(count: int, seed: int) -> Iterator[tuple[int, dict, dict]]:
    """Questions with a plan, half of either mode: seed, question, plan."""
    wanted = dict(zip(MODES, (count - count // 2, count // 2), strict=True))
    while any(wanted.values()):
        for mode in (mode for mode, more in wanted.items() if more):
            question = drawn_question(seed, mode)
            plan = solve(question).document["plan"]
            if plan is not None:
                wanted[mode] -= 1
                yield seed, question, plan
        seed += 1


def main() -> int:
    """All plans, one line each, and how many promises were broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plans", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--requests", type=int, default=100_000)
    asked = parser.parse_args()
    begun, faults = time.process_time(), 0
    for seed, question, plan in plans(asked.plans, asked.first):
        seen = witnessed(followed(question, plan), asked.requests, seed)
        demand, fault = plan["demand"], broken(question, seen)
        faults += bool(fault)
        print(
            f"{seed} {plan['mode']} {question['model']} on {plan['chips']}, "
            f"readers {demand['readers_busy']:.0%}: "
            f"p95 {question['promises']['ttft_p95']} promised, {demand['ttft_p95']:.3f} s planned, "
            f"{seen.p95:.3f} +- {seen.p95_error:.3f} s seen; no room "
            f"{1 - question['promises']['cache_fits']:.2f} promised, {demand['crowded']:.4f} "
            f"planned, {seen.crowded:.4f} +- {seen.crowded_error:.4f} seen {fault}",
            flush=True,
        )
    spent = time.process_time() - begun
    print(f"{asked.plans} plans, {faults} with a broken promise, {spent:.0f} CPU-s")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
