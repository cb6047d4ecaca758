"""Notes that qualify the numbers of an answer: sentences, the most severe first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from planner.text.wording import wrap_text

# Severities of notes: a broken promise, an extrapolation, a number left out, an assumption, a
# tip on an alternative.
Depth = Literal["short", "default", "more", "sources"]
MAX_NOTES = 3  # notes printed with an answer unless more are requested
SEVERITIES = ("broken", "extrapolated", "left out", "assumed", "tip")


@dataclass(frozen=True)
class Note:
    """Sentence on an answer: its severity, its code, and the field that it is about."""

    severity: str
    code: str
    text: str
    about: str


def sort_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The notes, the gravest first, otherwise as they come; each sentence once."""
    first = {note.text: note for note in reversed([*notes])}
    by_place = reversed([*first.values()])
    return tuple(sorted(by_place, key=lambda note: SEVERITIES.index(note.severity)))


def default_notes(outside: str, warnings: Iterable[str]) -> tuple[Note, ...]:
    """Notes of a kind without its own: extrapolations beyond measurements, and warnings."""
    extrapolated = [Note("extrapolated", "outside", outside, "outside")] if outside else []
    notes = (Note("assumed", "warning", words, "provenance.warnings") for words in warnings)
    return sort_notes((*extrapolated, *notes))


def note_lines(
    notes: Sequence[Note], most: int | None = None, room: int | None = None
) -> list[str]:
    """The first notes as lines as wide as the terminal, `!` before what matters, `-` before tips.

    Of the `most` that are shown there are as many as fit in `room` lines, and always the first; the
    last says how many more there are.
    """
    shown = notes[:most]
    left = len(notes) - len(shown)
    marked = [f"{'-' if note.severity == 'tip' else '!'} {note.text}" for note in shown]
    marked[-1:] = [f"{text} (and {left} more: --more)" if left else text for text in marked[-1:]]
    lines = [line for text in marked for line in wrap_text(text)]
    if room is not None and len(lines) > room and len(shown) > 1:
        return note_lines(notes, len(shown) - 1, room)
    return lines
