"""Pydantic's findings as mistakes with places: one line each, with the word that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from planner.scenario.keys.fields import Refusals
from planner.scenario.keys.machines import SystemDescription
from planner.scenario.keys.models import ModelDescription
from planner.scenario.kinds import question_types
from planner.scenario.tree import Path, Tree
from planner.text.errors import Mistake, did_you_mean, quoted


def _records() -> dict[str, type[BaseModel]]:
    """The records that a validation may be of, by class name."""
    records = (*question_types(), ModelDescription, SystemDescription)
    return {record.__name__: record for record in records}


def mistakes_of(error: ValidationError, tree: Tree) -> list[Mistake]:
    """Every mistake of a validation, in the order of the file where places are known."""
    mistakes = list(_flat(error, (), tree))
    unique = dict.fromkeys(mistakes)
    return sorted(unique, key=lambda mistake: (mistake.line or 0, mistake.column or 0))


def _flat(error: ValidationError, above: Path, tree: Tree) -> Iterator[Mistake]:
    record = _records()[error.title]
    for item in error.errors(include_url=False):
        path = (*above, *item["loc"])
        kind = item["type"]
        cause = item.get("ctx", {}).get("error")
        if cause is not None:
            yield from _cause(cause, path, tree)
        elif kind in ("extra_forbidden", "invalid_key"):
            expected = _keys(record, item["loc"][:-1])
            hint = did_you_mean(path[-1], expected) or f" (known: {', '.join(expected)})"
            if not isinstance(path[-1], str) or path[-1].isdigit():
                hint = f"{hint}; in {{a: 2,05}} the comma ends the value: write 2.05"
            yield tree.mistake(path, f"unknown key {quoted(path[-1])}{hint}", at_key=True)
        elif kind == "missing":
            field = _record_at(record, item["loc"][:-1]).model_fields[str(path[-1])]
            about = f": {field.description}" if field.description else ""
            yield tree.mistake(path, f"missing required key '{path[-1]}'{about}")
        elif kind in ("model_type", "dict_type", "model_attributes_type"):
            expected = _keys(record, item["loc"])
            keys = f"keys {', '.join(expected)}" if expected else "keys"
            yield tree.mistake(path, f"expected {keys}, got {quoted(item['input'])}")
        else:
            what = item["msg"][:1].lower() + item["msg"][1:]
            yield tree.mistake(path, f"{what}, got {quoted(item['input'])}")


def _cause(cause: ValueError | str, path: Path, tree: Tree) -> Iterator[Mistake]:
    if isinstance(cause, Refusals):
        for below, inner in cause.faults:
            yield from _cause(inner, (*path, *below), tree)
    elif isinstance(cause, ValidationError):
        yield from _flat(cause, path, tree)
    else:
        message = str(cause)
        yield tree.mistake(path, message, at_key=message.startswith("unknown key"))


def _record_at(record: type[BaseModel], path: tuple[Any, ...]) -> type[BaseModel]:
    for part in path:
        field = record.model_fields.get(str(part))
        inner = _record_in(field.annotation) if isinstance(field, FieldInfo) else None
        record = inner or record
    return record


def _record_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        inner = _record_in(part)
        if inner is not None:
            return inner
    return None


def _keys(record: type[BaseModel], path: tuple[Any, ...]) -> tuple[str, ...]:
    fields: Mapping[str, FieldInfo] = _record_at(record, path).model_fields
    return tuple(fields)
