"""A scenario from a file, standard input or a mapping: text to tree to a checked question.

Pydantic's findings become mistakes with places: one line each, with the word that was meant. Back:
a scenario as plain data in base units, and its JSON Schema for editors.
"""

import json
import math
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from planner.scenario.keys.budget_fields import FOREVER, Limit
from planner.scenario.keys.fields import QuestionRecord, Record, Refusals
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File, HubFile
from planner.scenario.keys.system_keys import SystemDescription
from planner.scenario.keys.workload import Demand, Distribution
from planner.scenario.kinds import PROBLEM_PACKAGES, question_type, question_types
from planner.scenario.tree import SAME_KEYS, Path, Tree, apply_sets, key_path, named_once, yaml_tree
from planner.text.errors import STDIN, InputError, Mistake, did_you_mean, printable, quote, senses
from planner.text.quantities import base_units
from topologies.files.located_yaml import MAX_DEPTH

MAX_FILE_BYTES = 1_000_000  # bytes of a scenario file
MAX_KEY_DEPTH = 3  # records within records, of all kinds
UNITS, BASE = "units", "base"  # a key that says that bare numbers are in base units
IN_MEMORY_SOURCE = "scenario"  # the file name of a scenario that came as a mapping
# Problems that need no file, with the inputs assumed by default.
STARTS = {"serving": {"workload": {"input_tokens": 4000, "output_tokens": 1000}}}

Question = QuestionRecord
Source = str | FilePath | Mapping[str, object] | QuestionRecord


def load(source: Source, sets: Sequence[str] = ()) -> QuestionRecord:
    """The scenario of a file path, `-` (standard input), a mapping, or a Scenario itself, unsolved.

    `sets` are changes `PATH=VALUE`, read like the file. Raises InputError with every mistake,
    each with file, line and column.
    """
    if isinstance(source, QuestionRecord) and not sets:
        return source
    return load_tree(source, sets)[1]


def load_tree(source: Source, sets: Sequence[str] = ()) -> tuple[Tree, QuestionRecord]:
    """Tree with the positions of the scenario's values, and the scenario as `load` gives it."""
    tree = apply_sets(read(source), sets)
    if isinstance(source, QuestionRecord) and not sets:
        return tree, source
    folder = FilePath() if tree.file in (IN_MEMORY_SOURCE, "-") else FilePath(tree.file).parent
    return tree, check_tree(tree, folder)


def read(source: Source) -> Tree:
    """The tree of a source, unchecked; raises InputError when it is not text of a known form."""
    return named_once(_read(source))


def _read(source: Source) -> Tree:
    if isinstance(source, QuestionRecord):
        return Tree(IN_MEMORY_SOURCE, resolve_keys(source, full_paths=True))
    if isinstance(source, Mapping):
        return Tree(IN_MEMORY_SOURCE, _plain(source, 0))
    if not isinstance(source, str | FilePath):
        raise _refused(IN_MEMORY_SOURCE, f"expected a file, got {quote(source)}")
    file = str(source)
    if file in STARTS and not FilePath(file).exists():
        return Tree(IN_MEMORY_SOURCE, {"problem": file, **STARTS[file]})
    text = _text(file)
    suffix = FilePath(file).suffix.lower()
    if suffix == ".toml":
        try:
            return Tree(file, _plain(tomllib.loads(text), 0))
        except tomllib.TOMLDecodeError as error:
            message, *place = _toml_place(str(error), text)
            raise _refused(file, f"not TOML: {message}", *place) from None
        except InputError:
            raise
        except (ValueError, RecursionError):
            raise _refused(file, "not TOML that can be read", 1, 1) from None
    return _json(text, file) if suffix == ".json" else yaml_tree(text, file)


def check_tree(tree: Tree, folder: FilePath) -> QuestionRecord:
    """The tree as a Scenario; paths in it are relative to `folder`."""
    data = tree.data
    if not isinstance(data, dict):
        got = "the file is empty" if data is None else f"got {quote(data)}"
        mistake = tree.mistake((), f"expected keys such as problem, model, system; {got}")
        raise InputError([*tree.mistakes, mistake])
    units, data = data.get(UNITS), {key: data[key] for key in data if key != UNITS}
    if units not in (None, BASE):
        words = f"expected {BASE}: bare numbers are in base units; got {quote(units)}"
        tree = replace(tree, mistakes=(*tree.mistakes, tree.mistake((UNITS,), words)))
    try:
        with base_units(units == BASE):
            scenario = _shape(data).model_validate(data, context={"folder": folder})
    except ValidationError as error:
        raise InputError(tree.first_mistakes(_flat(error, (), tree))) from None
    if tree.mistakes:
        raise InputError(tree.first_mistakes())
    return scenario


def in_base_units(tree: Tree) -> Tree:
    """Copy of a read tree that takes added numbers in base units."""
    return replace(tree, data={**tree.data, UNITS: BASE})


def _shape(data: Mapping[object, object]) -> type[QuestionRecord]:
    """Record type of the keys: that of the named problem, else of the best-matching problem.

    So a mistake in the problem's name is not followed by those of another problem's keys.
    """
    problem = data.get("problem")
    if isinstance(problem, str) and problem in PROBLEM_PACKAGES:
        return question_type(problem)
    return max(question_types(), key=lambda shape: len(shape.model_fields.keys() & data.keys()))


def _refused(file: str, message: str, *place: int) -> InputError:
    line, column = place or (None, None)
    return InputError(Mistake(file, line, column, "", message))


def _text(file: str) -> str:
    name = printable(file)[:300]
    try:
        if file == "-":
            if sys.stdin is None:
                raise _refused(name, "standard input is closed; give a file, or pipe one in")
            raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            path = FilePath(file)
            if path.is_dir():
                raise _refused(name, "is a directory, expected a scenario file")
            if path.exists() and not path.is_file():
                raise _refused(name, "is not a regular file")
            with path.open("rb") as stream:
                raw = stream.read(MAX_FILE_BYTES + 1)
    except InputError:
        raise
    except FileNotFoundError:
        raise _refused(name, "no such file") from None
    except OSError as error:
        raise _refused(name, f"cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise _refused(name, "is not a file name") from None
    if len(raw) > MAX_FILE_BYTES:
        raise _refused(
            name, f"is larger than {MAX_FILE_BYTES // 1_000_000} MB, expected a scenario"
        )
    if b"\0" in raw:
        raise _refused(name, "is not text (it holds NUL bytes)")
    try:
        text = raw.decode("utf-8-sig")
        STDIN.update({"-": text} if file == "-" else {})
        return text
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        bad = f"is not UTF-8 text (byte 0x{raw[error.start]:02x})"
        raise _refused(file, bad, line, column) from None


def _toml_place(message: str, text: str) -> tuple[str, int, int]:
    body, _, place = message.rpartition(" (at ")
    words = place.rstrip(")").replace(",", "").split()
    if len(words) == 4 and words[1].isdigit() and words[3].isdigit():
        return body, int(words[1]), int(words[3])
    return body or message, text.count("\n") + 1, 1


def _json(text: str, file: str) -> Tree:
    try:
        json.loads(text, parse_int=str)
    except json.JSONDecodeError as error:
        raise _refused(file, f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except (ValueError, RecursionError):
        raise _refused(file, "not JSON that can be read", 1, 1) from None
    # JSON is YAML but for tabs between its tokens, which strings cannot hold unescaped
    return yaml_tree(text.replace("\t", " "), file)


def _plain(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise _refused(IN_MEMORY_SOURCE, f"more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return value


def _flat(error: ValidationError, above: Path, tree: Tree) -> Iterator[Mistake]:
    """Every mistake of a validation, which is called like its record."""
    records = (*question_types(), *_records(Record))  # class names are unique in the project
    record = next(each for each in records if each.__name__ == error.title)
    for item in error.errors(include_url=False):
        path = (*above, *item["loc"])
        kind = item["type"]
        cause = item.get("ctx", {}).get("error")
        if cause is not None:
            yield from _cause(cause, path, tree)
        elif kind in ("extra_forbidden", "invalid_key"):
            expected = _keys(record, item["loc"][:-1])
            hint = (
                did_you_mean(path[-1], expected)
                or next(filter(None, (_belongs(record, x) for x in senses(path[-1]))), "")
                or _belongs(record, path[-1])
                or f" (known: {', '.join(expected)})"
            )
            if not isinstance(path[-1], str) or path[-1].isdigit():
                hint = f"{hint}; in {{a: 2,05}} the comma ends the value: write 2.05"
            yield tree.mistake(path, f"unknown key {quote(path[-1])}{hint}", at_key=True)
        elif kind == "missing":
            field = _record_at(record, item["loc"][:-1]).model_fields[str(path[-1])]
            about = f": {field.description}" if field.description else ""
            yield tree.mistake(path, f"missing required key '{path[-1]}'{about}")
        elif kind in ("model_type", "dict_type", "model_attributes_type"):
            inner = _record_at(record, item["loc"][:-1]).model_fields.get(str(path[-1]))
            if kind == "dict_type" and inner and inner.description:
                keys = f"names with values, {inner.description}"
            else:
                keys = f"keys {', '.join(_keys(record, item['loc']))}"
            yield tree.mistake(path, f"expected {keys}, got {quote(item['input'])}")
        elif kind == "too_short":
            yield tree.mistake(path, f"expected at least {item['ctx']['min_length']}, got none")
        else:
            what = item["msg"][:1].lower() + item["msg"][1:]
            yield tree.mistake(path, f"{what}, got {quote(item['input'])}")


def _belongs(record: type[BaseModel], key: object) -> str:
    places = sorted((path for path in _places(record) if path[-1] == key), key=len)
    return f"; it can stand as {' or '.join(map(key_path, places[:3]))}" if places else ""


def _places(record: type[BaseModel], above: Path = ()) -> Iterator[Path]:
    for name, field in record.model_fields.items():
        yield (*above, name)
        inner = _record_in(field.annotation)
        if inner is not None and len(above) < MAX_KEY_DEPTH:
            names = ("NAME",) if "dict[" in str(field.annotation) else ()
            yield from _places(inner, (*above, name, *names))


def _records(record: type[Record]) -> Iterator[type[Record]]:
    for inner in record.__subclasses__():
        yield inner
        yield from _records(inner)


def _cause(cause: ValueError | str, path: Path, tree: Tree) -> Iterator[Mistake]:
    if isinstance(cause, Refusals):
        for below, inner in cause.faults:
            yield from _cause(inner, (*path, *below), tree)
    elif isinstance(cause, ValidationError):
        yield from _flat(cause, path, tree)
    elif isinstance(cause, InputError) and cause.mistakes:
        yield from cause.mistakes  # of another file, which have their places
    else:
        message = str(cause)
        yield tree.mistake(path, message, at_key=message.startswith("unknown key"))


def _record_at(record: type[BaseModel], path: Path) -> type[BaseModel]:
    for part in path:
        field = record.model_fields.get(str(part))
        inner = _record_in(field.annotation) if isinstance(field, FieldInfo) else None
        record = inner or record
    return record


def _record_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        inner = _record_in(part)
        if inner is not None:
            return inner
    return None


def _keys(record: type[BaseModel], path: Path) -> tuple[str, ...]:
    return tuple(_record_at(record, path).model_fields)


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def resolve_keys(scenario: BaseModel, *, full_paths: bool = False) -> dict[str, Any]:
    """Every key with its value in base units, defaults filled in; only JSON types.

    It loads again to an equal scenario: a question says of its numbers that they are in base
    units. Files are named as given, or by their `full_paths`.
    """
    unsaid = getattr(scenario, "SILENT", ())
    fields = getattr(type(scenario), "model_fields", {})
    units = {UNITS: BASE} if isinstance(scenario, QuestionRecord) else {}
    return units | {
        getattr(fields.get(name), "alias", None) or name: _json_value(value, full_paths)
        for name, value in scenario
        if value is not None or name not in unsaid
    }


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a scenario file; quantities are strings with a unit, or numbers.

    `problem` says which of the shapes a file has.
    """
    shapes, parts = {}, {}
    for shape in question_types():
        whole = shape.model_json_schema(mode="validation")
        parts.update(whole.pop("$defs", {}))
        (problem,) = get_args(shape.model_fields["problem"].annotation)
        about = whole["properties"]["problem"]
        about = {key: about[key] for key in ("description", "title") if key in about}
        whole["properties"]["problem"] = {"const": problem, **about}
        words = "bare numbers are in base units, as answers write them"
        whole["properties"][UNITS] = {"const": BASE, "description": words}
        shapes[problem] = whole
    for part in parts.values():
        words = part.get("properties", {})
        for (above, word), name in SAME_KEYS.items():
            if str(part.get("title")).casefold() == above and name in words:
                words[str(word)] = words[name]
    return {
        "$schema": DIALECT,
        "title": "token-planner scenario",
        "type": "object",
        "required": ["problem"],
        "oneOf": [{"$ref": f"#/$defs/{each['title']}"} for each in shapes.values()],
        "$defs": parts | {each["title"]: each for each in shapes.values()},
    }


def _json_value(value: object, full: bool) -> object:
    if isinstance(value, dict):
        return {str(key): _json_value(item, full) for key, item in value.items()}
    if isinstance(value, range):
        return {"from": value.start, "to": value.stop - 1}
    if isinstance(value, list | tuple):
        return [_json_value(item, full) for item in value]
    if isinstance(value, HubFile):
        return value.written
    if isinstance(value, File):
        return str(value.path.resolve()) if full else value.written
    if isinstance(value, Limit):
        return value.value if value.per is None else f"{value.value!r} {value.per}"
    if isinstance(value, float) and math.isinf(value):
        return FOREVER
    if isinstance(value, Demand) and math.isinf(value.value):
        return "max"
    if isinstance(value, Demand):
        return value.value if value.per == "request" else f"{value.value!r} tokens/s"
    if isinstance(value, Distribution):
        return {"mean": value.mean, "cv": value.cv} if value.cv else value.mean
    if isinstance(value, BaseModel):
        items = {name: _json_value(item, full) for name, item in value}
        described = isinstance(value, ModelDescription | SystemDescription)
        unsaid = items if described else getattr(value, "SILENT", ())
        return {
            name: item for name, item in items.items() if item is not None or name not in unsaid
        }
    return value if isinstance(value, str | int | float | None) else str(value)
