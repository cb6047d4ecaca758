"""Terminal formatting of a text: width, weight and colour, and a spinner while waiting.

Where nobody watches (a pipe, a file) only COLUMNS and the encoding of the stream apply.
"""

import os
import re
import sys
import threading
from contextvars import ContextVar
from shutil import get_terminal_size
from typing import TextIO

from planner.text.wording import COLUMNS, WIDTH

MIN_COLUMNS, MAX_COLUMNS = 60, 200
MARGIN = 2  # columns that stay free at the right
ASCII_MODE: ContextVar[bool] = ContextVar("ascii", default=False)  # `--ascii`
BOLD_STYLE, GREEN, RED, RESET_STYLE = "\x1b[1m", "\x1b[32m", "\x1b[1;31m", "\x1b[0m"
INDENT_PATTERN = re.compile(r"  (?! )")  # what stands under a title
VERDICTS = {"kept": GREEN, "BROKEN": RED}
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII = str.maketrans({
    "✓": "ok", "✗": "XX", "≤": "<=", "≥": ">=", "×": "x", "–": "-", "−": "-", "·": ".", "…": "..",
    "→": "->", "∞": "inf", **dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%#", strict=True)),
})  # fmt: skip
PAUSE, STEP = 0.5, 0.1  # seconds before the first sign of life, and between two


def is_terminal(stream: TextIO | None) -> bool:
    """True if a stream is an interactive terminal."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """Columns of the terminal, 60 at least and 200 at most."""
    return min(max(get_terminal_size().columns, MIN_COLUMNS), MAX_COLUMNS)


def use_terminal_width() -> None:
    """Let texts that are composed from now on be as wide as the terminal, or as COLUMNS says."""
    watched = is_terminal(sys.stdout) or "COLUMNS" in os.environ
    COLUMNS.set(columns() - MARGIN if watched else WIDTH)


def wrapped_lines(text: str, width: int) -> str:
    """The text without a line longer than `width`: the rest of one goes below it, indented."""
    lines: list[str] = []
    for whole in text.split("\n"):
        line, indent = whole, " " * (len(whole) - len(whole.lstrip()) + 2)
        while len(line) > width:
            place = line.rfind(" ", len(indent), width + 1)
            place = place if place > len(indent) else width
            lines.append(line[:place].rstrip())
            line = indent + line[place:].lstrip()
        lines.append(line)
    return "\n".join(lines)


def style_text(text: str) -> str:
    """Make titles bold, and colour verdicts.

    A title stands at the left edge, and what it is of is indented by two below it; the rest of a
    long line is indented further.
    """
    lines = text.split("\n")
    for place, line in enumerate(lines):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if word in VERDICTS and line.startswith("  "):
            lines[place] = line.replace(word, f"{VERDICTS[word]}{word}{RESET_STYLE}", 1)
        elif line and not line[0].isspace() and (place == 0 or INDENT_PATTERN.match(below)):
            lines[place] = f"{BOLD_STYLE}{line}{RESET_STYLE}"
    return "\n".join(lines)


def encodable(text: str, encoding: str | None) -> str:
    """The text in signs that an encoding has, of ASCII where it lacks one."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(ASCII).encode("ascii", "replace").decode("ascii")
    return text


def terminal_text(text: str) -> str:
    """A text as a terminal shows it; JSON stays as it is, and with NO_COLOR there is no weight."""
    if text[:1] in ("{", "["):
        return text
    text = encodable(text, "ascii" if ASCII_MODE.get() else getattr(sys.stdout, "encoding", None))
    if not is_terminal(sys.stdout):
        return text
    narrow = wrapped_lines(text, columns())
    return narrow if "NO_COLOR" in os.environ else style_text(narrow)


class Spinner:
    """Spinner on standard error from the first second on, erased before other output."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to wait; the spinner is drawn only on a terminal."""
        if self.thread is None and is_terminal(sys.stderr):
            self.done.clear()
            self.thread = threading.Thread(target=self._draw, daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """End it and clean its line."""
        if self.thread is not None:
            self.done.set()
            self.thread.join()
            self.thread = None

    def _draw(self) -> None:
        if self.done.wait(PAUSE):
            return
        waited, frame = PAUSE, 0
        try:
            while True:
                sign = FRAMES[frame % len(FRAMES)]
                sys.stderr.write(f"\r{sign} computing, {waited:.0f} s")
                sys.stderr.flush()
                if self.done.wait(STEP):
                    break
                waited, frame = waited + STEP, frame + 1
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        except OSError:
            return  # the terminal is gone, and with it who would have read


SPINNER = Spinner()
