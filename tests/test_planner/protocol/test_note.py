"""Notes of an answer: one list, the gravest first, the same on every face."""

from __future__ import annotations

from planner.protocol.note import SEVERITIES, Note, note_lines, sort_notes


def test_the_gravest_comes_first_and_each_sentence_once():
    """Within one severity notes stand as they came."""
    notes = [Note(severity, "code", f"{severity} {n}", "about")
             for severity in reversed(SEVERITIES) for n in (1, 2)]  # fmt: skip
    kept = sort_notes([*notes, *notes])
    assert [note.text for note in kept] == [f"{x} {n}" for x in SEVERITIES for n in (1, 2)]
    assert len(sort_notes([Note("tip", "a", "one", "x"), Note("broken", "b", "one", "y")])) == 1


def test_lines_fit_a_terminal_and_mark_what_matters():
    """`!` before what may be wrong, `-` before what else there is; long ones go on indented."""
    long = Note("broken", "promise", " ".join(["word"] * 40), "promises")
    lines = note_lines([long, Note("tip", "sizes", "fewer do", "sizes")])
    assert lines[0].startswith("! word")
    assert lines[-1] == "- fewer do"
    assert all(line.startswith("  ") for line in lines[1:-1])
    assert max(map(len, lines)) <= 80
