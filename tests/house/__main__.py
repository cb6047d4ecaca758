"""Print the figures of the house: `python -m tests.house [--list RULE] [--tighten]`."""

from __future__ import annotations

import argparse
import json
import signal

from tests.house import names
from tests.house.layers import excuse
from tests.house.measures import FIGURES, FILE, RULES, exceptions, key, limits, tightened

SERVING, PROTOCOL = "tests/test_planner/problems/serving", "tests/test_planner/protocol"
SHOWN_BY_RUNNING = {
    "price, equation against number, of 200 plans": f"pytest {SERVING}/test_outputs.py",
    "one line outside its room for a new kind": f"pytest {PROTOCOL}/test_toy_kind.py",
    "answers are what they were": "pytest tests/test_frozen.py",
    "processor time of the faces": "pytest tests/benches/bench_faces.py -m benchmark -s",
}


def main() -> None:
    """The table; with --list what breaks a rule; with --tighten smaller limits in house.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--list", metavar="RULE", help="part of a rule's name, or `banned`")
    parser.add_argument("--tighten", action="store_true", help="leave out what is not needed")
    options = parser.parse_args()
    if options.tighten:
        smaller = tightened()
        FILE.write_text(json.dumps(smaller, indent=1) + "\n", encoding="utf-8")
        excuse(smaller["exceptions"]["imports that point up"])
    if options.list:
        lines = names.banned_bindings() if options.list == "banned" else []
        lines += [one for r in RULES if options.list in r.name for one in r.offenders()]
        print("\n".join(lines))
        return
    print(f"{'':<52}{'now':>9}{'at most':>9}{'goal':>9}")
    for figure in FIGURES:
        now, most = figure.count(), limits()[figure.name]
        print(f"{figure.name:<52}{now:>9,.10g}{most:>9,.10g}{figure.goal:>9,.10g}", end="")
        print(
            "  <- over" if now > most else "  <- may shrink" if most > max(now, figure.goal) else ""
        )
    for rule in RULES:
        breaks, allowed = {key(line) for line in rule.offenders()}, set(exceptions()[rule.name])
        mark = "  <- may shrink" if allowed - breaks else ""
        mark = "  <- over" if breaks - allowed else mark
        print(f"{rule.name:<52}{len(breaks):>9}{len(allowed):>9}{0:>9}{mark}")
    print("\nShown by running:")
    for what, command in SHOWN_BY_RUNNING.items():
        print(f"  {what:<50}{command}")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
