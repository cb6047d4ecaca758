"""Where a mistake stands: its line, the line of the source below it, a caret at the place."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from planner.text.errors import Mistake

WIDTH = 72  # columns of a source line that are shown
BEFORE = 40  # of them before the place, where the line is longer
LARGEST = 1_000_000  # bytes of a file that is looked into
PIPED: dict[str, str] = {}  # what came from standard input, by its name


def pointed(mistakes: Iterable[Mistake]) -> str:
    """Every mistake on its line, `file:line:column` first, its source and a caret below it."""
    return "\n".join(line for each in mistakes for line in (str(each), *_below(each)))


def _below(mistake: Mistake) -> tuple[str, ...]:
    """The line of the source and the caret, where there is such a line."""
    if mistake.line is None or mistake.column is None:
        return ()
    line = _line(mistake.file, mistake.line)
    if line is None or not line.strip() or mistake.column > len(line) + 1:
        return ()
    from rich.cells import cell_len

    first = max(0, mistake.column - 1 - BEFORE) if cell_len(line) > WIDTH else 0
    clipped = "".join(x if x.isprintable() else " " for x in line[first : first + WIDTH])
    before = " " * cell_len(clipped[: mistake.column - 1 - first])
    gutter = f"{mistake.line:>4} | "
    return f"{gutter}{clipped.rstrip()}", f"{' ' * len(gutter[:-2])}| {before}^"


def _line(file: str, number: int) -> str | None:
    """A line of a file by its number, without its end; None where it cannot be read again."""
    if file in PIPED:
        lines = PIPED[file].splitlines()[number - 1 : number]
        return lines[0] if lines else None
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        with path.open(encoding="utf-8-sig", errors="replace") as text:
            return next(islice(text, number - 1, None), "").rstrip("\r\n")
    except (OSError, ValueError):
        return None
