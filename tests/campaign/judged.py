"""A command run in this process, and what is wrong with how it ended."""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.cli.app import main
from planner.text.errors import InputError, PlannerError
from tests.cases.frozen import plain
from tests.machine import lasts_at_most

STATUSES = {0, 1, 2, 3, 130}
MOST_CPU = 5.0  # units of processor time of one case
MOST_MEMORY = 1 << 30  # bytes that one case may add to what the process has had
HANGS = 60.0  # CPU seconds after which a case is broken off
WILD = re.compile(r"(?<![\w./'-])[-+]?(?:nan|inf|infinity)(?![\w./'-])", re.IGNORECASE)
PLACED = re.compile(r"^(?:--|planner: |Usage: |\S+(?::\d+:\d+)?  |[^\s:]+: |Error: )")


@dataclass(frozen=True)
class Case:
    """A command and the files it is run beside."""

    words: tuple[str, ...]
    files: Mapping[str, str | bytes]


@dataclass(frozen=True)
class End:
    """How a case ended: status, both streams, CPU seconds, and all that is wrong with that."""

    status: int
    out: str
    err: str
    cpu: float
    faults: tuple[str, ...]


class Hung(BaseException):
    """A case that went on beyond its time."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Break off what takes more CPU seconds than that."""

    def stop(number: int, frame: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def memory() -> int:
    """The most memory that this process has had [byte]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def judged(case: Case, folder: Path) -> End:
    """Run a case in a folder that it has for itself."""
    for name, content in case.files.items():
        raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        (folder / name).write_bytes(raw)
    out, err, status, faults = io.StringIO(), io.StringIO(), 0, []
    before, held = time.process_time(), memory()
    try:
        with (
            contextlib.chdir(folder),
            plain(),
            limited(HANGS),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main(list(case.words))
    except SystemExit as end:
        status = int(end.code or 0)
    except Hung:
        faults.append(f"was broken off after {HANGS:g} CPU seconds")
    except BaseException as error:
        faults.append(f"a traceback: {type(error).__name__}: {error}")
    cpu = time.process_time() - before
    if not lasts_at_most(MOST_CPU, cpu):
        faults.append(f"took {cpu:.1f} CPU seconds")
    if memory() - held > MOST_MEMORY:
        faults.append(f"took {(memory() - held) / 1e9:.1f} GB")
    faults += wrong(case, status, out.getvalue(), err.getvalue())
    return End(status, out.getvalue(), err.getvalue(), cpu, tuple(faults))


def wrong(case: Case, status: int, out: str, err: str) -> list[str]:
    """What is wrong with a status and what was printed."""
    faults = []
    if status not in STATUSES:
        faults.append(f"status {status}")
    if "Traceback" in err or "a fault of ours" in err:
        faults.append(f"a fault of ours: {err.strip().splitlines()[-1][:200]}")
    if status == 2 and not refused_well(err, case.words):
        faults.append(f"a refusal without a place: {err[:200]!r}")
    if status == 2 and out and "--json" in case.words:
        faults.append("an answer beside a mistake")
    if status in (0, 1):
        faults += [f"a number that is none: {word}" for word in wild(out, "--json" in case.words)]
    return faults


def refused_well(err: str, words: tuple[str, ...] = ()) -> bool:
    """Whether there is a message, it is printable, and it begins with a place or an option.

    Of the command's own `words` one may be the name of a file, with a space in it or not.
    """
    lines = err.splitlines()
    if not lines or not all(x.isprintable() for x in lines):
        return False
    return bool(PLACED.match(lines[0])) or any(lines[0].startswith(f"{x}  ") for x in words if x)


def wild(out: str, is_json: bool) -> list[str]:
    """Numbers of an answer that are not finite; words of a text that stand for such."""
    if not is_json:
        return WILD.findall(out)[:3]
    numbers: list[str] = []

    def constant(word: str) -> float:
        numbers.append(word)
        return 0.0

    with contextlib.suppress(ValueError):
        json.loads(out, parse_constant=constant, parse_float=lambda word: checked(word, numbers))
    return numbers[:3]


def checked(word: str, numbers: list[str]) -> float:
    """A number of a document; noted where it overflows."""
    value = float(word)
    if value in (float("inf"), -float("inf")):
        numbers.append(word)
    return value


def called(function: Any, *arguments: Any) -> list[str]:
    """What is wrong with a call: it answers, or raises an error of ours that says something."""
    before = time.process_time()
    faults = []
    try:
        with limited(HANGS):
            function(*arguments)
    except PlannerError as error:
        if not str(error).strip() or (isinstance(error, InputError) and "\0" in str(error)):
            faults.append("an error that says nothing")
    except Hung:
        faults.append(f"was broken off after {HANGS:g} CPU seconds")
    except Exception as error:
        faults.append(f"a traceback: {type(error).__name__}: {str(error)[:200]}")
    if not lasts_at_most(MOST_CPU, time.process_time() - before):
        faults.append("took more than 5 units of processor time")
    return faults
