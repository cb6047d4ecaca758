"""Typed answers as plain data: JSON from frozen dataclasses, and the JSON Schema of their types.

A field's key is its name, or `key("...")` where the name is a word of Python; its unit stands in
its type, `Annotated[float, Unit("s")]`. A mapping is made of an answer here and nowhere else.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_PLAIN: Mapping[object, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True)
class Unit:
    """The base unit of a number, such as `s` or `USD/(chip*s)`."""

    text: str


Second = Annotated[float, Unit("s")]
Day = Annotated[float, Unit("day")]
Byte = Annotated[float, Unit("byte")]
Token = Annotated[float, Unit("token")]
Usd = Annotated[float, Unit("USD")]
PerMtok = Annotated[float, Unit("USD/(1e6*token)")]
Share = Annotated[float, Unit("1")]


def json_key(name: str, **options: Any) -> Any:
    """A dataclass field whose key in JSON is `name`, such as `from`, which Python reserves."""
    return field(metadata={"key": name}, **options)


def to_document(value: Any) -> Any:
    """Dataclasses as mappings in the order of their fields, tuples as lists, the rest as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_document(getattr(value, attr)) for name, attr in _keys(type(value))}
    if isinstance(value, Mapping):
        return {name: to_document(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    return value


@cache
def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    """(key in JSON, attribute) of a dataclass; fields with `repr=False` are no part of JSON.

    A class may name in `json_first` keys that come before its others, and in `json_last` those that
    come after: the fields of its base stand before its own.
    """
    first, last = (getattr(cls, order, ()) for order in ("json_first", "json_last"))
    keys = [(f.metadata.get("key", f.name), f.name) for f in fields(cls) if f.repr]
    places = {name: place for place, name in enumerate(last, len(first) + 1)}
    places |= {name: place for place, name in enumerate(first)}
    return tuple(sorted(keys, key=lambda key: places.get(key[0], len(first))))


def json_schema(cls: type, title: str) -> dict[str, object]:
    """JSON Schema (2020-12) of a dataclass, units included; nested dataclasses go to `$defs`."""
    definitions: dict[str, object] = {}
    root = _shape(cls, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def versioned_schema(cls: type, name: str) -> dict[str, object]:
    """The JSON Schema of documents of a type that begin with `schema`, their kind and version.

    A key that is added leaves the version; one that is renamed or left out raises it.
    """
    first = {"properties": {"schema": {"const": name}}, "required": ["schema"]}
    shape = json_schema(cls, name)
    definitions = shape.pop("$defs")
    return {**shape, **first, "$defs": definitions}


def _shape(hint: object, definitions: dict[str, object]) -> dict[str, object]:
    """The schema of one type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        shape = _shape(arguments[0], definitions)
        units = [extra.text for extra in arguments[1:] if isinstance(extra, Unit)]
        return {**shape, "unit": units[0]} if units else shape
    if origin in (Union, types.UnionType):
        # Alternatives; a nullable number keeps its unit next to a list of types.
        shapes = [_shape(each, definitions) for each in arguments]
        if (
            len(shapes) == 2
            and shapes[1] == {"type": "null"}
            and isinstance(shapes[0].get("type"), str)
        ):
            return {**shapes[0], "type": [shapes[0]["type"], "null"]}
        return {"anyOf": shapes}
    if origin is Literal:
        return {"enum": list(arguments)}
    if is_dataclass(hint) and isinstance(hint, type):
        return {"$ref": f"#/$defs/{_defined(hint, definitions)}"}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _shape(arguments[1], definitions)}
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": _shape(arguments[0], definitions)}
    return {"type": _PLAIN[hint]} if hint in _PLAIN else {}


def _defined(cls: type, definitions: dict[str, object]) -> str:
    """Name of a dataclass in `$defs`; adds its schema there on first use."""
    name = cls.__name__
    if name not in definitions:
        definitions[name] = {}  # a type may hold itself
        hints = get_type_hints(cls, include_extras=True)
        definitions[name] = {
            "type": "object",
            "description": (cls.__doc__ or "").split("\n\n")[0].strip(),
            "properties": {
                json: _shape(hints[attribute], definitions) for json, attribute in _keys(cls)
            },
            "required": [json for json, _ in _keys(cls)],
        }
    return name
