"""What was asked? The scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from typing import TYPE_CHECKING

from planner.text.faces import loaded_from

if TYPE_CHECKING:
    from planner.scenario.loading import checked, load, opened, read
    from planner.scenario.schema_document import json_schema, resolved

__all__ = ["checked", "json_schema", "load", "opened", "read", "resolved"]

_HOMES = dict.fromkeys(__all__, "loading") | dict.fromkeys(
    ("json_schema", "resolved"), "schema_document"
)
__getattr__ = loaded_from(__name__, _HOMES)
