"""A script without what only people read: comments, indents, spaces beside signs."""

from __future__ import annotations

import re

# A comment to the end of its line, a text in quotes, the start of a template.
_PIECES = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`""")
_BESIDE = re.compile(r"[ \t]*([(){}\[\];,=<>!&|?:*%])[ \t]*")


def plain(script: str) -> str:
    """The same script, shorter; texts and templates stay as they are.

    Lines stay lines, so that no semicolon is missed. It knows no regular expression of JavaScript:
    the scripts of pages have none.
    """
    pieces, place = [], 0
    while match := _PIECES.search(script, place):
        pieces.append(_BESIDE.sub(r"\1", script[place : match.start()]))
        text = match[0]
        place = _end_of_template(script, match.end()) if text == "`" else match.end()
        pieces.append("" if text.startswith("//") else script[match.start() : place])
    pieces.append(_BESIDE.sub(r"\1", script[place:]))
    lines = (line.strip() for line in "".join(pieces).splitlines())
    return "\n".join(line for line in lines if line)


def _end_of_template(script: str, place: int) -> int:
    """Where a template ends that begins before `place`; values in it may hold templates."""
    depth = 0
    while script[place] != "`" or depth:
        if script.startswith("${", place):
            depth, place = depth + 1, place + 1
        elif script[place] == "}" and depth:
            depth -= 1
        elif script[place] == "`":
            place = _end_of_template(script, place + 1) - 1
        place += 1
    return place + 1
