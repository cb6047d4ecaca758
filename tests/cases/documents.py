"""Documents read back: the typed answer that a mapping was made of."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


def typed(hint: object, value: Any) -> Any:
    """A document read back as what `to_document` made it of: the value of a type hint.

    Raises TypeError if a mapping has other keys than the dataclass that it should be.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return typed(arguments[0], value)
    if value is None:
        return None
    if origin in (Union, types.UnionType):
        return typed(_member(arguments, value), value)
    if is_dataclass(hint) and isinstance(hint, type):
        keys = _keys(hint)
        if value.keys() != {key for key, _ in keys}:
            raise TypeError(f"{hint.__name__}: {sorted(value.keys() ^ {key for key, _ in keys})}")
        hints = get_type_hints(hint, include_extras=True)
        given = {each.name for each in fields(hint) if each.init}
        return hint(**{n: typed(hints[n], value[key]) for key, n in keys if n in given})
    if origin is tuple:
        inner = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(typed(each, item) for each, item in zip(inner, value, strict=True))
    return value


def _member(hints: Sequence[object], value: object) -> object:
    """The member of a union that a value is: of dataclasses the one with its keys."""
    members = [hint for hint in hints if hint is not type(None)]
    if isinstance(value, Mapping):
        for hint in members:
            keys = _keys(hint) if is_dataclass(hint) and isinstance(hint, type) else ()
            if keys and value.keys() == {key for key, _ in keys}:
                return hint
    return members[0]


def _keys(cls: type) -> list[tuple[str, str]]:
    return [(f.metadata.get("key", f.name), f.name) for f in fields(cls) if f.repr]
