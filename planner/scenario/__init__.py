"""What was asked? The scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from typing import TYPE_CHECKING

from planner.text.faces import loaded_from

if TYPE_CHECKING:
    from planner.scenario.loading import (
        checked,
        in_base_units,
        json_schema,
        load,
        opened,
        read,
        resolved,
    )

__all__ = ["checked", "in_base_units", "json_schema", "load", "opened", "read", "resolved"]

__getattr__ = loaded_from(__name__, dict.fromkeys(__all__, "loading"))
