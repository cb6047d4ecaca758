"""Record what the planner answers, or show what it answers differently now.

`python tests/freeze.py --write [NAME...]` records; `--compare [NAME...]` prints every difference
and exits with 1 if there is one; `--exact` leaves numbers no tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import planner
from tests.cases import frozen
from tests.paths import ROOT


def main() -> int:
    """Take the answers in the order of the files, and write or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="record the answers")
    what.add_argument("--compare", action="store_true", help="print what differs")
    parser.add_argument("--exact", action="store_true", help="numbers must agree in every digit")
    parser.add_argument("names", nargs="*", help="scenarios; all when none is named")
    chosen = parser.parse_args()
    if not Path(planner.__file__).is_relative_to(ROOT):
        parser.error("the planner that answers is not the one beside this file; set PYTHONPATH")
    lines = _helps(chosen) if not chosen.names else []
    lines += _sound(chosen) + _broken(chosen)
    print("\n".join(lines))
    return bool(lines) and not chosen.write


def _helps(chosen: argparse.Namespace) -> list[str]:
    folder = frozen.FROZEN / "help"
    if chosen.write:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in frozen.helps().items():
            (folder / name).write_text(text, encoding="utf-8")
        return []
    known = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    return frozen.differences(dict(sorted(known.items())), dict(sorted(frozen.helps().items())))


def _sound(chosen: argparse.Namespace) -> list[str]:
    lines = []
    for case in [*frozen.examples(), *frozen.sound()]:
        if chosen.names and case.name not in chosen.names:
            continue
        begun, file = time.process_time(), frozen.file_of(case)
        answer = _taken(case, frozen.answered)
        if chosen.write:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(frozen.text_of(answer) + "\n", encoding="utf-8")
            took = time.process_time() - begun
            lines.append(f"{took:6.2f} s  {answer['status']}  {case.name}")
        else:
            known = json.loads(file.read_text(encoding="utf-8"))
            differing = frozen.differences(known, answer, exact=chosen.exact)
            lines += [f"{case.name}: {line}" for line in differing]
    return lines


def _broken(chosen: argparse.Namespace) -> list[str]:
    cases = [case for case in frozen.broken() if not chosen.names or case.name in chosen.names]
    file = frozen.FROZEN / "broken.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    answers = {case.name: _taken(case, frozen.refused) for case in cases}
    if chosen.write:
        file.write_text(frozen.text_of({**known, **answers}) + "\n", encoding="utf-8")
        return [f"{answer['status']}  {name}" for name, answer in answers.items()]
    return frozen.differences({name: known.get(name) for name in answers}, answers)


def _taken(case: frozen.Case, taking: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return taking(case, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
