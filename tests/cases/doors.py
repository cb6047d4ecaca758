"""Questions asked by other doors, malformed ones, and what a process opens meanwhile."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planner.pages.operations import Reply, run_operation
from planner.scenario import read
from planner.scenario.keys.references import ACCESS, FileAccess
from tests.paths import EXAMPLES

CHEAP = ("lecture", "budget-70b-quality", "infeasible")


def question(name: str) -> dict[str, Any]:
    """An example's keys as JSON has them."""
    return json.loads(json.dumps(read(EXAMPLES / f"{name}.yaml").data))


class Inline:
    """Operations in this process, where what they open is seen."""

    limit, most = 60.0, 2

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def answer(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """The reply, with files read only below the folder."""
        token = ACCESS.set(FileAccess(self.folder))
        try:
            return run_operation(name, arguments)
        finally:
            ACCESS.reset(token)

    def warm(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to end."""


class _Opened:
    """Paths that this process opened while somebody looked."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.looking = False
        sys.addaudithook(self.event)

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        """One event of the interpreter."""
        if self.looking and name == "open" and isinstance(arguments[0], str | bytes):
            path = arguments[0]
            self.paths.append(path.decode() if isinstance(path, bytes) else path)


OPENED = _Opened()


@contextmanager
def opened() -> Iterator[list[str]]:
    """The paths that are opened meanwhile."""
    OPENED.paths, OPENED.looking = [], True
    try:
        yield OPENED.paths
    finally:
        OPENED.looking = False


def hostile(rng: random.Random, secret: Path) -> Any:
    """A value that stands where a scenario wants another."""
    return rng.choice([
        None, True, -1, 0, 1e308, 10**40, "", " ", "nan", "9" * 400, "\u0000", "💥" * 20,
        str(secret), f"file://{secret}", f"../{secret.name}", "~/x.json", "/etc/passwd", ".", "..",
        [], {}, [[]], {"like": str(secret)}, {"like": "hgx-h200", "measured": str(secret)},
        [str(secret)], {"from": 1, "to": 1e9}, ["x"] * 50, "/proc/self/mem", {"": {"": ""}},
        {"mean": -1}, "1 parsec", "$0/hour", "{{7*7}}", "<script>alert(1)</script>",
    ])  # fmt: skip


def mutated(rng: random.Random, data: Any, secret: Path) -> Any:
    """A scenario with one to three of its values or keys changed for the worse."""
    data = json.loads(json.dumps(data))
    for _ in range(rng.randint(1, 3)):
        holder = data
        while isinstance(holder, dict) and holder:
            key = rng.choice(sorted(holder))
            if isinstance(holder[key], dict) and holder[key] and rng.random() < 0.6:
                holder = holder[key]
                continue
            action = rng.random()
            if action < 0.2:
                del holder[key]
            elif action < 0.3:
                holder[f"{key}x"] = holder.pop(key)
            else:
                holder[key] = hostile(rng, secret)
            break
    for key in ("model", "system", "profile", "law"):
        if rng.random() < 0.15:
            data[key] = str(secret)
    return data


def raw(rng: random.Random, body: Any) -> bytes:
    """The body as bytes, now and then no JSON at all."""
    text = json.dumps(body).encode()
    kind = rng.random()
    if kind < 0.6:
        return text
    if kind < 0.7:
        return text[: rng.randrange(len(text))]
    if kind < 0.8:
        place = rng.randrange(len(text))
        return text[:place] + bytes([rng.randrange(256)]) + text[place + 1 :]
    return rng.choice([
        b"", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 60 + b"1" + b"}" * 60,
        b'{"a": NaN}', b'{"a": 1, "a": 2}', b'{"problem": "serving"}' * 2, b"\x00", b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}", b'"' + b'\\"' * 200_000,
    ])  # fmt: skip
