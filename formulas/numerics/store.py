"""What SymPy made of the equations, kept on disk, so that it is made once and not in every process.

Lowering the serving equations takes longer than searching all layouts. What is kept is plain data
(JSON) under a digest of every source file it was made from: when an equation changes, nothing kept
before is looked at. Each file begins with a digest of its text and place: what was cut or changed
since is made again. A wheel ships what common questions ask, under the same digests.

Functions of columns are remembered too: neighbouring questions differ in a price or a length and
ask for the same groups of the same network. A column counts by its numbers and their type; what is
given is shared, so that its columns can only be read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache, wraps
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

from formulas.numerics.kernel import Kernel
from formulas.numerics.tape import PlainTape, Tape
from formulas.numerics.trees import ScalarProgram

T = TypeVar("T")

EQUATIONS = Path(__file__).parent.parent
VARIABLE = "TOKEN_PLANNER_CACHE"
SHIPPED_FOLDER = Path(__file__).parent / "lowered"  # of a wheel; a checkout has none
# Digests whose files stay. A version has four; a checkout that is edited makes new ones every time.
GENERATIONS = 16
DIGEST = re.compile(r"[0-9a-f]{24}")  # what a folder of kept files is called
SEAL = len(f'["{"0" * 24}",')  # of a kept file, before its text


def cached_json(name: str, make: Callable[[], T], sources: tuple[Path, ...] = ()) -> T:
    """Return `make()` after a JSON round trip: read from its cached file, else made and stored.

    Args:
        name: Of the file, one for each thing that is made.
        sources: Folders and files that decide what is made, beside all equations.
    """
    key = f"{digest(sources)}/{name}"
    file = folder() / f"{key}.json"
    # An unusable folder or a damaged file costs only the time of a new computation.
    for place in (file, SHIPPED_FOLDER / f"{key}.json"):
        with contextlib.suppress(OSError, ValueError):
            sealed = place.read_text(encoding="utf-8")
            if sealed == _sealed(key, text := sealed[SEAL:-1]):
                return json.loads(text)
    text = json.dumps(make(), separators=(",", ":"))
    with contextlib.suppress(OSError):
        # The file in one step, so that no other process reads half of it.
        if not file.parent.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # The folder may be one where somebody keeps other things: only ours are removed.
            ours = (path for path in file.parent.parent.iterdir() if DIGEST.fullmatch(path.name))
            for old in sorted(ours, key=lambda path: path.stat().st_mtime)[:-GENERATIONS]:
                shutil.rmtree(old, ignore_errors=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(_sealed(key, text), encoding="utf-8")
        part.replace(file)
    return json.loads(text)


def _sealed(key: str, text: str) -> str:
    """JSON of a pair: a digest of what it is and of the text, then the text itself."""
    return f'["{blake2b(f"{key}={text}".encode(), digest_size=12).hexdigest()}",{text}]'


def cached_kernel(name: str, make: Callable[[], Kernel], sources: tuple[Path, ...] = ()) -> Kernel:
    """The kernel that `make` lowers, from its cached tape; parameters as of `cached_json`."""

    def plain() -> PlainTape:
        return make().tape.plain()

    tape = Tape.of_plain(cached_json(name, plain, sources))
    return Kernel(tape, tape.arguments)


def cached_program(
    name: str, make: Callable[[], ScalarProgram], sources: tuple[Path, ...] = ()
) -> ScalarProgram:
    """The scalar program that `make` builds, from the cache; parameters as of `cached_json`."""
    return ScalarProgram.of_plain(cached_json(name, lambda: make().plain(), sources))


def folder() -> Path:
    """Cache folder: TOKEN_PLANNER_CACHE if set, else token-planner in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "token-planner"


@cache
def digest(sources: tuple[Path, ...] = ()) -> str:
    """Hash of all equations, of the sources and of the SymPy version that lowers them."""
    hashed = blake2b(version("sympy").encode(), digest_size=12)
    for source in (EQUATIONS, *sources):
        for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            hashed.update(file.read_bytes())
    return hashed.hexdigest()


P = ParamSpec("P")
MAX_CACHED_RESULTS = 128  # of one function, the latest asked for
MAX_CACHED_ELEMENTS = 4096  # rows of a cached column; longer columns are computed on each call


class ColumnKey(NamedTuple):
    """An array (n,) by its numbers."""

    dtype: str
    numbers: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> ColumnKey:
        """The column of an array (n,)."""
        return cls(array.dtype.str, array.tobytes())

    @property
    def array(self) -> np.ndarray:
        """The array again, read-only."""
        return np.frombuffer(self.numbers, self.dtype)


def by_columns(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the latest results of a function of hashable values and arrays of shape (n,).

    The function gives an array, or a dataclass of arrays, and depends on nothing else; what it
    raises, or gives to arguments by name, is not remembered.
    """
    compute: Callable[..., T] = function

    @lru_cache(maxsize=MAX_CACHED_RESULTS)
    def remembered(*key: object) -> T:
        answer = compute(*(each.array if isinstance(each, ColumnKey) else each for each in key))
        parts = [getattr(answer, f.name) for f in fields(answer)] if is_dataclass(answer) else []
        for part in (answer, *parts):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return answer

    @wraps(function)
    def looked_up(*arguments: P.args, **named: P.kwargs) -> T:
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        if named or any(each.ndim != 1 or each.size > MAX_CACHED_ELEMENTS for each in arrays):
            return function(*arguments, **named)
        return remembered(
            *(ColumnKey.of(each) if isinstance(each, np.ndarray) else each for each in arguments)
        )

    return looked_up
