"""A plan in a notebook: the text answer, escaped, in its own fixed-width block."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.protocol.plan import Plan

__all__ = ["answer"]


def answer(plan: Plan) -> str:
    """HTML of the answer."""
    return f'<pre style="line-height:1.35">{escape(str(plan))}</pre>'
