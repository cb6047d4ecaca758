"""Scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from typing import TYPE_CHECKING

from planner.text.faces import lazy_module

if TYPE_CHECKING:
    from planner.scenario.loading import (
        check_tree,
        in_base_units,
        json_schema,
        load,
        load_tree,
        read,
        resolve_keys,
    )

__all__ = [
    "check_tree",
    "in_base_units",
    "json_schema",
    "load",
    "load_tree",
    "read",
    "resolve_keys",
]

__getattr__ = lazy_module(__name__, dict.fromkeys(__all__, "loading"))
