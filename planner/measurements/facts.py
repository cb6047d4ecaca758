"""Facts that a file of measurements does not say, as they are given on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from planner.text.errors import InputError

__all__ = ["facts_of"]


def facts_of(texts: Iterable[str]) -> dict[str, str]:
    """Facts by name; raises InputError for a text that is not NAME=VALUE."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InputError(f"--fact {text}: expected NAME=VALUE, such as tp=8")
        found[name.strip()] = value.strip()
    return found
