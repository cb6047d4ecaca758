"""A document as JSON: one value, finite numbers only, keys in the order of the interface."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["dumps"]


def dumps(document: Any) -> str:
    """The document as indented JSON text.

    Raises
    ------
    ValueError
        If a number in it is not finite: NaN and Infinity are no JSON.
    """
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
