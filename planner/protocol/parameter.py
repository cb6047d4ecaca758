"""A parameter: one quantity of a question that may be varied, at its path in the scenario.

`--set`, sensitivity, switch points, sweeps and `uncertain:` read these rows and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.scenario import check_tree, in_base_units, read, resolve_keys
from planner.scenario.kinds import question_type
from planner.scenario.tree import ALIASES, Tree, apply_sets
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.scenario.keys.fields import QuestionRecord
    from planner.scenario.loading import Question


@dataclass(frozen=True)
class Parameter:
    """One quantity that may be varied.

    Args:
        path: what `--set` takes; or a name of its own for what a catalogue gives in many numbers.
        value: in base units; None where it is many numbers that move together.
        unit: base unit.
        group: chip, network, model, workload, promises, prices, engine, law, phases, ...
        to: the question with the quantity times a factor; None where no question has it, and the
            `symbols` of the equations stand for it.
        symbols: symbols of the equations that move with it.
        bounds: least and most that it may be.
        whole: a count.
        array: arrays may stand in its place.
    """

    path: str
    value: float | None
    unit: str
    group: str
    to: Callable[[float], Any] | None = field(default=None, repr=False)
    symbols: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, math.inf)
    whole: bool = False
    array: bool = False


def with_value(question: Question, path: str, value: object) -> Question:
    """A question of any kind with a value at a path, as `--set` would put it there."""
    return set_value(read(question), Path().resolve(), path, value)


def settable(question: Question, rows: Iterable[Parameter]) -> list[Parameter]:
    """The rows as quantities of the scenario, without those of no value or a path no file has."""
    settled = []
    for row in rows:
        if row.value:
            with suppress(InputError):
                with_value(question, row.path, row.value)
                settled.append(replace(row, to=partial(_times, question, row.path, row.value)))
    return settled


def _times(question: Question, path: str, value: float, factor: float) -> Question:
    return with_value(question, path, value * factor)


def base_folder(source: object) -> Path:
    """The folder that paths in a source are relative to."""
    on_disk = isinstance(source, str | Path) and str(source) != "-"
    return (Path(str(source)).parent if on_disk else Path()).resolve()


def set_value(tree: Tree, folder: Path, path: str, value: object) -> Question:
    """The scenario with a value at a path, in base units, as `--set` would put it there."""
    return check_tree(apply_sets(in_base_units(tree), [assignment(path, value)]), folder)


def assignment(path: str, value: object) -> str:
    """`PATH=VALUE` of a value."""
    return f"{path}={value!r}" if isinstance(value, float) else f"{path}={value}"


def lookup_value(scenario: Question, path: str) -> object:
    """Value of a loaded scenario at a path, in base units; None if the path has no value."""
    value: Any = resolve_keys(scenario)
    for part in ALIASES.get(path, tuple(path.split("."))):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and str(part).isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif part not in ("mean", "like"):  # what a plain value stands for
            return None
    return value[0] if isinstance(value, list) and len(value) == 1 else value


BRACKETED_UNIT_PATTERN = re.compile(r"\[([^\]]+)\]")


def path_unit(problem: str, path: Sequence[str]) -> str | None:
    """Base unit of a path, such as `byte/s`; None where the schema names none."""
    dotted = ".".join(path)
    counts: Mapping[str, str] = getattr(question_type(problem), "COUNTS", {})
    if dotted in counts:
        return counts[dotted]
    unit = None
    schema = _schema(question_type(problem))
    node: Mapping[str, Any] | None = schema
    for part in path:
        node = _below(schema, node, part)
        if node is None:
            break
        units = BRACKETED_UNIT_PATTERN.findall(_described(node))
        unit = units[-1] if units else unit
    return unit


@cache
def _schema(shape: type[QuestionRecord]) -> Mapping[str, Any]:
    schema: dict[str, Any] = shape.model_json_schema(mode="validation")
    return schema


def _described(node: Mapping[str, Any]) -> str:
    inner = [_described(each) for each in node.get("anyOf", ())]
    return " ".join([*inner, str(node.get("description", ""))])


def _below(
    schema: Mapping[str, Any], node: Mapping[str, Any] | None, part: str
) -> Mapping[str, Any] | None:
    """The node of a key below another, references and alternatives followed."""
    if node is None:
        return None
    if "$ref" in node:
        name = str(node["$ref"]).rsplit("/", 1)[-1]
        return _below(schema, schema["$defs"][name], part)
    alternatives = (node[key] for key in ("anyOf", "oneOf", "allOf") if key in node)
    for shape in (node, *(each for several in alternatives for each in several)):
        if part in shape.get("properties", {}):
            return dict(shape["properties"][part])
        if shape is not node and (inner := _below(schema, shape, part)) is not None:
            return inner
    return None
