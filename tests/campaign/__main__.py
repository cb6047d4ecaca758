"""The campaign in full: `python -m tests.campaign` prints counts, failures and CPU time.

With `--log FILE` every chunk of cases is written down when it is done. The same command goes on
where it was interrupted, and `--seconds 0` prints the counts alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.campaign.hostile import FAMILIES, case
from tests.campaign.judged import judged
from tests.campaign.running import Log, Tally, chunks_of, run_all


def main() -> int:
    """Run what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="these alone")
    parser.add_argument("--case", help="FAMILY:NUMBER, one case with all that it prints")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so long")
    parser.add_argument("--log", type=Path, help="go on from this file, and write it")
    parser.add_argument("--again", action="store_true", help="run what failed in the log anew")
    chosen = parser.parse_args()
    if chosen.case:
        return _one(*chosen.case.split(":"))
    chunks = chunks_of(
        {
            family: max(round(count * chosen.scale), 1)
            for family, (_, count) in FAMILIES.items()
            if not chosen.family or family in chosen.family
        }
    )
    log = Log(chosen.log)
    before = [x for x, tally in log.done.items() if not (chosen.again and tally.failures)]
    left = [chunk for chunk in chunks if chunk not in before]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for chunk, tally in run_all(left, chosen.workers, chosen.seconds):
            for name, fault in tally.failures:
                print(f"FAILED {name}: {fault}", flush=True)
            log.add(chunk, tally)
    except KeyboardInterrupt:
        print("interrupted")
    return _summary(log, sum(last - first for _, first, last in chunks))


def _one(family: str, number: str) -> int:
    shown = case(family, int(number))
    for name, content in shown.files.items():
        print(f"--- {name}\n{content!r}" if len(content) > 20_000 else f"--- {name}\n{content}")
    with tempfile.TemporaryDirectory() as folder:
        end = judged(shown, Path(folder))
    print(f"--- planner {' '.join(map(repr, shown.words))}\n{end.out}{end.err}")
    print(
        f"--- status {end.status}, {end.cpu:.2f} CPU s, faults: {'; '.join(end.faults) or 'none'}"
    )
    return bool(end.faults)


def _summary(log: Log, asked: int) -> int:
    whole, tallies, commits = Tally(), defaultdict[str, Tally](Tally), Counter[str]()
    for chunk, tally in log.done.items():
        tallies[chunk[0]].add(tally)
        commits[log.commits[chunk]] += tally.cases
    print(f"{'family':14}{'cases':>8}{'failed':>8}{'CPU s':>9}  slowest, statuses")
    for family, tally in sorted(tallies.items()):
        _row(family, tally)
        whole.add(tally)
    _row("all", whole)
    at = ", ".join(f"{count:,} at {commit}" for commit, count in commits.items())
    print(f"{whole.cases:,} of {asked:,} cases: {at or 'none'}")
    return bool(whole.failures)


def _row(family: str, tally: Tally) -> None:
    ends = ", ".join(f"{status}: {count:,}" for status, count in sorted(tally.statuses.items()))
    failed = len({name for name, _ in tally.failures})
    slow, name = tally.slowest
    print(f"{family:14}{tally.cases:8,}{failed:8,}{tally.cpu:9.1f}  {slow:.2f} s {name}; {ends}")


if __name__ == "__main__":
    sys.exit(main())
