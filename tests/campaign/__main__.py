"""The campaign in full: `python -m tests.campaign` prints counts, failures and CPU time.

`--checks 200` computes so many answers of every kind of problem anew, and nothing else. With
`--log FILE` every chunk of cases is written down when it is done. The same command goes on
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
from tests.campaign.kinds import KINDS, RECHECKED
from tests.campaign.running import Chunk, Log, Tally, chunks_of, run_all


def main() -> int:
    """Run what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    names = ("hostile", *KINDS)
    answers = ("soundness", *(f"{name}-answers" for name in RECHECKED))
    parser.add_argument("--kind", nargs="+", choices=names, help="these alone")
    parser.add_argument(
        "--checks", type=int, help="so many answers of every kind of problem, computed anew"
    )
    parser.add_argument("--case", help="KIND:NUMBER, one case with all that it prints")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so long")
    parser.add_argument("--log", type=Path, help="go on from this file, and write it")
    parser.add_argument("--again", action="store_true", help="run what failed in the log anew")
    chosen = parser.parse_args()
    if chosen.case:
        return _one(*chosen.case.split(":"))
    kinds = chosen.kind or (answers if chosen.checks else names)
    chunks = chunks_of(
        {
            name: chosen.checks
            if chosen.checks and name in answers
            else max(round(kind.count * chosen.scale / kind.each), 1) * kind.each
            for name, kind in KINDS.items()
            if name in kinds or (name in FAMILIES and "hostile" in kinds)
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
    return _summary(log, chunks)


def _one(kind: str, number: str) -> int:
    if kind not in FAMILIES:
        outcome = KINDS[kind].run(int(number))
        print(f"{outcome.cpu:.2f} CPU s, faults: {'; '.join(outcome.faults) or 'none'}")
        return bool(outcome.faults)
    shown = case(kind, int(number))
    for name, content in shown.files.items():
        print(f"--- {name}\n{content!r}" if len(content) > 20_000 else f"--- {name}\n{content}")
    with tempfile.TemporaryDirectory() as folder:
        end = judged(shown, Path(folder))
    print(f"--- planner {' '.join(map(repr, shown.words))}\n{end.out}{end.err}")
    print(
        f"--- status {end.status}, {end.cpu:.2f} CPU s, faults: {'; '.join(end.faults) or 'none'}"
    )
    return bool(end.faults)


def _summary(log: Log, asked: list[Chunk]) -> int:
    rows, commits = defaultdict[str, Tally](Tally), Counter[str]()
    counts, wanted = Counter[str](), Counter[str]()
    for name, first, last in asked:
        rows[name], wanted[name] = Tally(), wanted[name] + last - first
    for chunk in log.done.keys() & {*asked}:
        rows[chunk[0]].add(log.done[chunk])
        counts[chunk[0]] += chunk[2] - chunk[1]
        commits[log.commits[chunk]] += chunk[2] - chunk[1]
    for name in FAMILIES.keys() & rows.keys():
        rows["hostile"].add(rows[name])
        counts["hostile"], wanted["hostile"] = (x["hostile"] + x[name] for x in (counts, wanted))
    print(
        f"{'kind':18}{'cases':>8} of {'':5}{'answers':>8}{'failed':>8}{'CPU s':>9}{'peak MB':>9}"
        "  slowest, statuses"
    )
    for name, tally in rows.items():
        _row(name, f"{counts[name]:8,} of {wanted[name]:<7,}", tally)
    print(", ".join(f"{count:,} at {commit}" for commit, count in commits.items()) or "none yet")
    return any(tally.failures for tally in rows.values())


def _row(name: str, cases: str, tally: Tally) -> None:
    ends = ", ".join(f"{status}: {count:,}" for status, count in sorted(tally.statuses.items()))
    failed = len({name for name, _ in tally.failures})
    slow, at = tally.slowest
    numbers = f"{tally.statuses[0]:8,}{failed:8,}{tally.cpu:9.1f}{tally.peak / 1e6:9,.0f}"
    print(f"{name:18}{cases}{numbers}  {slow:.2f} s {at}; {ends}")


if __name__ == "__main__":
    sys.exit(main())
