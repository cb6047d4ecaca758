"""Errors of this package, classified by the possible action of the caller.

The command line prints `str(error)` and exits with `error.exit_status`, 2 where what was given is
wrong, 1 where the question has no answer, 3 for a failure of ours; there is no traceback.
`errors_with_carets` puts the line of the source below a mistake, with a caret at its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path

from planner.text.tables import table
from topologies.fabric.limits import did_you_mean as spelled_alike

MAX_LISTED_NAMES = 100  # names of a catalogue that an error lists
MAX_QUOTED_LENGTH = 60  # letters of a value that is quoted


VERSION_NAME = re.compile(r"([a-z]+)(?:[-_ ]|(?=[0-9][-_.]))([0-9])(?![0-9])")  # gpt-5, qwen3-32b
SEVERAL = re.compile(r"^[0-9]+ ?x ?(?=[a-z])", re.IGNORECASE)  # 8xH100: a machine of them


def did_you_mean(word: object, candidates: Iterable[str]) -> str:
    """Return `; did you mean 'tpot'?` for the sense of a word or its nearest spelling, or empty.

    A word whose sense is known is no slip for one that is spelled alike, and another version of a
    product is another product.
    """
    names = [str(name) for name in candidates]
    meant = senses(word)
    if meant:
        key = next((name for name in meant if name in names), None)
        return f"; did you mean {key!r}?" if key else ""
    text = SEVERAL.sub("hgx-", str(word)[:200])
    version = VERSION_NAME.match(text.casefold())
    if version:
        names = [name for name in names if not _is_another_product(name, version)]
    return spelled_alike(text, names)


def senses(word: object) -> tuple[str, ...]:
    """Keys that a word may mean without being their name; empty if the word is unknown."""
    return _senses().get(str(word)[:200].casefold().replace("-", "_"), ())


@cache
def _senses() -> dict[str, tuple[str, ...]]:
    rows = table("planner.text", "senses.toml")
    return {word: tuple(keys.split()) for keys, words in rows.items() for word in words.split()}


def _is_another_product(name: str, version: re.Match[str]) -> bool:
    named = VERSION_NAME.match(name.casefold())
    if named is None:
        return False
    return named[2] != version[2] or not get_close_matches(named[1], [version[1]], cutoff=0.7)


class PlannerError(ValueError):
    """Base of all errors raised on purpose; `exit_status` is the status of the command line."""

    exit_status = 3


@dataclass(frozen=True)
class Mistake:
    """A mistake in the input: its position and the expected value.

    `line` and `column` count from 1 and are None where the source has no positions; `path` is
    the dotted path inside the file, empty for the file as a whole.
    """

    file: str
    line: int | None
    column: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f":{self.line}:{1 if self.column is None else self.column}"
        line = f"{place}  {self.path}: {self.message}" if self.path else f"{place}  {self.message}"
        return escape(line)


class InputError(PlannerError):
    """Invalid input; `mistakes` lists all mistakes found, a printed line each."""

    exit_status = 2

    def __init__(self, mistakes: str | Mistake | Iterable[Mistake]) -> None:
        if isinstance(mistakes, str):
            self.mistakes: tuple[Mistake, ...] = ()
            super().__init__(mistakes)
            return
        self.mistakes = (mistakes,) if isinstance(mistakes, Mistake) else tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class QuantityError(InputError):
    """A text or number is not the quantity that was expected; the message names both."""


class CatalogueError(InputError):
    """A name, or a figure of a named thing, that the catalogue does not hold."""

    @classmethod
    def unknown(cls, kind: str, name: str, entries: Iterable[str]) -> CatalogueError:
        """The error for an unknown `name` among the `known` names of a `kind` of entry."""
        names = sorted(entries)
        more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
        hint = did_you_mean(name, names) or f" (known: {', '.join(names[:MAX_LISTED_NAMES])}{more})"
        return cls(f"unknown {kind} {quote(name)}{hint}")


class ModelError(InputError):
    """A model description that cannot be turned into layers without guessing."""


class MissingExtra(InputError):  # noqa: N818 - it names what is missing
    """An optional package is not installed; `extra` is the name that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package {package}: pip install 'token-planner[{extra}]'"
        )


class FieldError(InputError):
    """Sound values of a scenario that cannot be answered; `faults` are (dotted path, message).

    Whoever holds the file gives them their lines and columns.
    """

    def __init__(self, *faults: tuple[str, str]) -> None:
        self.faults = faults
        super().__init__("\n".join(f"{path}: {message}" for path, message in faults))


@contextmanager
def errors_at(path: str) -> Iterator[None]:
    """Attribute an InputError raised inside to the value at a path, unless it is a FieldError."""
    try:
        yield
    except FieldError:
        raise
    except InputError as error:
        raise FieldError((path, str(error))) from error


@contextmanager
def error_paths(place: Callable[[str], str]) -> Iterator[None]:
    """Map the paths of a FieldError raised inside for another question to this question."""
    try:
        yield
    except FieldError as error:
        raise FieldError(*((place(path), words) for path, words in error.faults)) from error


class Infeasible(PlannerError):  # noqa: N818 - an answer, raised
    """No plan keeps every promise; the message says which fall short and by how much."""

    exit_status = 1


class SolverError(PlannerError):
    """The solver, the disk or this program failed; the message says how to go on."""

    exit_status = 3


def escape(line: str) -> str:
    """A line as it is, but for letters that a terminal would not show, which are written out."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def printable(value: object, letters: int | None = None) -> str:
    """The first letters of a text as they are where a terminal shows them all, else escaped."""
    text = str(value)[:letters]
    return text if text.isprintable() else ascii(text)


def quote(value: object) -> str:
    """The value as it would be typed, printable on one line and not longer than 60 letters."""
    if isinstance(value, str):
        return _clipped(repr(value) if value.isprintable() else ascii(value))
    if isinstance(value, dict | list | tuple | set):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    return _clipped(ascii(value))


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_LENGTH else text[: MAX_QUOTED_LENGTH - 3] + "..."


WIDTH = 72  # columns of a source line that are shown
CARET_CONTEXT = 40  # of them before the place, where the line is longer
MAX_SOURCE_BYTES = 1_000_000  # bytes; source lines of larger files are not shown
STDIN: dict[str, str] = {}  # what came from standard input, by its name


def errors_with_carets(mistakes: Iterable[Mistake]) -> str:
    """Every mistake on its line, `file:line:column` first, its source and a caret below it."""
    return "\n".join(line for each in mistakes for line in (str(each), *_below(each)))


def _below(mistake: Mistake) -> tuple[str, ...]:
    """Source line and caret of a mistake; empty if the source has no such line."""
    if mistake.line is None or mistake.column is None:
        return ()
    line = _line(mistake.file, mistake.line)
    if line is None or not line.strip() or mistake.column > len(line) + 1:
        return ()
    from rich.cells import cell_len

    first = max(0, mistake.column - 1 - CARET_CONTEXT) if cell_len(line) > WIDTH else 0
    clipped = "".join(x if x.isprintable() else " " for x in line[first : first + WIDTH])
    before = " " * cell_len(clipped[: mistake.column - 1 - first])
    gutter = f"{mistake.line:>4} | "
    return f"{gutter}{clipped.rstrip()}", f"{' ' * len(gutter[:-2])}| {before}^"


def _line(file: str, number: int) -> str | None:
    """A line of a file by its number, without its end; None where it cannot be read again."""
    if file in STDIN:
        lines = STDIN[file].splitlines()[number - 1 : number]
        return lines[0] if lines else None
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        with path.open(encoding="utf-8-sig", errors="replace") as text:
            return next(islice(text, number - 1, None), "").rstrip("\r\n")
    except (OSError, ValueError):
        return None
