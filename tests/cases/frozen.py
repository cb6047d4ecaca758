"""What was answered before the planner was rebuilt: its scenarios, and how an answer is taken.

Answers of sound scenarios lie in one file each, those of broken ones in one file for all. Each is
taken with the scenario alone in a fresh folder, or at the root for an example, so that no message
names a place of this machine.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from planner.cli import main
from planner.protocol import solve as protocol
from planner.protocol.plan import Plan
from tests.paths import DATA, EXAMPLES, ROOT

FROZEN = DATA / "frozen"
SOUND = ("serving", "budget", "lifecycle")
COMMANDS = (
    "solve", "pareto", "check", "init", "model", "catalog", "formula", "derive", "export",
    "schema", "calibrate", "measure", "sensitivity", "topology", "sweep", "validate",
)  # fmt: skip
ADDED = {"schema"}  # keys that a document may have now and had not then
RELATIVE = 1e-9  # processors differ in the last digits of a number
PRINTED = re.compile(r"\d+\.\d+")  # as text
MESSAGES = ("stderr", "document.provenance.warnings")
NOISE = 1e-12  # differences of numbers that should be equal, in base units
# What a conic program stops at: a relaxation is proved wherever its solver stops, but where that is
# differs between processors by 1.4e-5 of it (measured on two), and the slopes at it by 3e-8.
SOLVED = {"certificate.relaxation": 5e-5, "certificate.gap": 5e-5, "certificate.differences.": 1e-7,
          "document.elasticities.": 1e-7}  # fmt: skip
WIDTH = 100
# What a solver stops at differs by its tolerance, and the words of parsers differ, from one
# interpreter to the next; the answers were written down on this one.
AS_WRITTEN = sys.version_info[:2] == (3, 11)
EXACT = os.environ.get("FROZEN_EXACT") == "1"


@dataclass(frozen=True)
class Case:
    """One scenario: the words of its command, and the files it is read from."""

    name: str
    words: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict, hash=False)


def examples() -> list[Case]:
    """Every example, by its path from the root."""
    paths = sorted(EXAMPLES.glob("*.yaml"))
    return [Case(f"example-{path.stem}", (f"examples/{path.name}",)) for path in paths]


def sound() -> list[Case]:
    """Every scenario that is answered, or infeasible."""
    return [case for kind in SOUND for case in written(kind)]


def broken() -> list[Case]:
    """Every scenario with mistakes."""
    return written("broken")


def written(kind: str) -> list[Case]:
    """The scenarios of one file: `name: text`, or `name: {file, text, also, words}`."""
    rows = YAML(typ="safe", pure=True).load((FROZEN / f"{kind}.yaml").read_text(encoding="utf-8"))
    cases = []
    for name, row in rows.items():
        parts = row if isinstance(row, dict) else {"text": row}
        file = parts.get("file", f"{name}.yaml")
        files = {file: parts["text"], **parts.get("also", {})}
        cases.append(Case(name, (file, *parts.get("words", ())), files))
    return cases


def answered(case: Case, folder: Path) -> dict[str, Any]:
    """Exit status, messages, text and JSON document of `planner solve`; both of one plan."""
    return answered_by_plan(case, folder)[0]


def answered_by_plan(case: Case, folder: Path) -> tuple[dict[str, Any], Plan | None]:
    """What is answered, and the plan that it was printed of; None where there is none."""
    with _solved_once() as plans:
        status, out, err = ran(case, folder)
        again, printed, same = ran(case, folder, "--json")
    assert (again, same) == (status, err), f"{case.name}: --json changes more than the form"
    document = json.loads(printed) if printed else None
    if document is not None:
        form = json.dumps(document, indent=2, ensure_ascii=False)
        assert printed == f"{form}\n", f"{case.name}: the document has another form"
    answer = {
        "status": status,
        "stderr": err.splitlines(),
        "text": out.splitlines(),
        "document": document,
    }
    return answer, plans[0] if plans else None


@contextlib.contextmanager
def _solved_once() -> Iterator[list[Plan]]:
    """`planner solve` of one scenario prints the plan that it found before, which is listed."""
    solve, plans = protocol.solve, list[Plan]()

    def first_plan(*words: Any, **options: Any) -> Plan:
        if not plans:
            plans.append(solve(*words, **options))
        return plans[0]

    protocol.solve = first_plan
    try:
        yield plans
    finally:
        protocol.solve = solve


def refused(case: Case, folder: Path) -> dict[str, Any]:
    """Exit status and messages of `planner solve`, which prints nothing."""
    status, out, err = ran(case, folder)
    assert not out or status != 2, f"{case.name}: an answer beside a mistake"
    return {"status": status, "stderr": err.splitlines()}


def ran(case: Case, folder: Path, *words: str) -> tuple[int, str, str]:
    """`planner solve` of a case in this process, in the folder its files are written to."""
    given = folder / "given"  # a configuration is called by its folder
    given.mkdir(exist_ok=True)
    for name, text in case.files.items():
        (given / name).write_text(text, encoding="utf-8")
    return command("solve", *case.words, *words, at=given if case.files else ROOT)


def command(*words: str, at: Path = ROOT) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command in this process."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(at),
        plain(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main(list(words))
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    return status, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """A terminal of eighty columns without colours."""
    before = dict(os.environ)
    os.environ |= {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"}
    os.environ.pop("FORCE_COLOR", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def helps() -> dict[str, str]:
    """The help of the program and of every command, and the JSON Schema, by name of file."""
    texts = {"planner": command("--help")[1]}
    texts |= {name: command(name, "--help")[1] for name in COMMANDS}
    # Outside its console script the program is called by the name of what runs it.
    named = {
        f"{name}.txt": re.sub(rf"^Usage: .*?(?=( {name})? \[OPTIONS\])", "Usage: planner", text)
        for name, text in texts.items()
    }
    return {**named, "schema.json": command("schema")[1]}


def text_of(answer: Any, indent: int = 0) -> str:
    """An answer as JSON: what fits on a line is on one, so that a difference is a line."""
    whole = json.dumps(answer, ensure_ascii=False)
    if indent + len(whole) <= WIDTH or not isinstance(answer, dict | list) or not answer:
        return whole
    pad = " " * (indent + 1)
    if isinstance(answer, list):
        rows = [text_of(row, indent + 1) for row in answer]
        return "[\n" + ",\n".join(pad + row for row in rows) + f"\n{' ' * indent}]"
    rows = [f"{json.dumps(key)}: {text_of(row, indent + 1)}" for key, row in answer.items()]
    return "{\n" + ",\n".join(pad + row for row in rows) + f"\n{' ' * indent}}}"


def differences(frozen: Any, answer: Any, place: str = "", *, exact: bool = False) -> list[str]:
    """A line for each place where two answers differ: numbers by a share, all else at all."""
    if place in MESSAGES and not exact:
        frozen, answer = _without_solvers(frozen), _without_solvers(answer)
    if isinstance(frozen, dict) and isinstance(answer, dict):
        added = ADDED if place == "document" else set()
        keys = [key for key in answer if key in frozen or key not in added]
        if list(frozen) != keys:
            return [f"{place}: keys {list(frozen)} became {keys}"]
        pairs = [(f"{place}.{key}".lstrip("."), frozen[key], answer[key]) for key in frozen]
    elif isinstance(frozen, list) and isinstance(answer, list) and len(frozen) == len(answer):
        rows = enumerate(zip(frozen, answer, strict=True))
        pairs = [(f"{place}[{number}]", before, after) for number, (before, after) in rows]
    else:
        return [] if _same(frozen, answer, place, exact) else [f"{place}: {frozen!r} -> {answer!r}"]
    return [line for at, a, b in pairs for line in differences(a, b, at, exact=exact)]


def _same(frozen: Any, answer: Any, place: str, exact: bool) -> bool:
    if type(frozen) is not type(answer):
        return False
    if not exact and isinstance(frozen, str) and place.startswith("text["):
        return _printed_alike(frozen, answer)
    if exact or not isinstance(frozen, float):
        return bool(frozen == answer)
    solved = max((most for part, most in SOLVED.items() if part in f"{place}."), default=0.0)
    relative, noise = max(RELATIVE, solved), max(NOISE, solved)
    return math.isclose(frozen, answer, rel_tol=relative, abs_tol=noise)


def _without_solvers(lines: list[str]) -> list[str]:
    """Messages but those on which solver arrived: at the edge of a tolerance processors differ."""
    return [line for line in lines if "since Clarabel gave up on it" not in line]


def _printed_alike(frozen: str, answer: str) -> bool:
    """Lines whose decimals differ by at most one in the last digit: the document holds the number.

    A number halfway between two printed ones, 6.85 %, is rounded one way by one processor.
    """
    if frozen == answer:
        return True
    before, after = PRINTED.findall(frozen), PRINTED.findall(answer)
    if PRINTED.sub("#", frozen) != PRINTED.sub("#", answer):
        return False
    digits = [[len(number.partition(".")[2]) for number in line] for line in (before, after)]
    rows = zip(before, after, digits[0], strict=True)
    return digits[0] == digits[1] and all(
        abs(float(a) - float(b)) < 1.5 * 10.0**-digit for a, b, digit in rows
    )


def file_of(case: Case) -> Path:
    """Where the answer of a sound scenario lies."""
    return FROZEN / "answers" / f"{case.name}.json"
