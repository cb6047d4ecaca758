"""What is printed about mistakes, taken apart."""

from __future__ import annotations

import re

EXCERPT = re.compile(r"^ +\d* \| .*\n?|^ +\| +\^\n?", re.MULTILINE)


def bare(err: str) -> str:
    """Messages without the lines of their sources and the carets below them."""
    return EXCERPT.sub("", err)
