"""What was asked? The scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.scenario.loading import checked, load, opened, read
    from planner.scenario.schema_document import json_schema, resolved

__all__ = ["checked", "json_schema", "load", "opened", "read", "resolved"]

_SCHEMA = ("json_schema", "resolved")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "schema_document" if name in _SCHEMA else "loading"
    return getattr(import_module(f"planner.scenario.{home}"), name)
