"""A billion for every whole number of every problem kind: an answer, or a refusal with its place.

No number of a scenario becomes the length of an array or of a loop: a gigabyte and twenty units of
processor time (tests/machine.py) are enough for each.
"""

import math
import os
import resource
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from ruamel.yaml import YAML

import planner
from planner.scenario.kinds import PROBLEMS
from planner.scenario.loading import json_schema
from planner.text.errors import FieldError, InputError
from tests.machine import unit
from tests.sizes import first, seldom

BILLION = 10**9
MEMORY = 1 << 30  # byte, of resident memory
UNITS = 20  # of processor time
# Open, as more than that: layouts are searched one by one, hours of a year of a fleet are columns,
# draws of a lifecycle are kept.
SLOW = (
    ("serving", ("rent", "unit"), BILLION),
    ("lifecycle", ("serving", "system", "chips_per_domain"), BILLION),
    ("lifecycle", ("draws",), 20_000),
    ("training", ("chips",), 10**6),
    ("serving", ("chips",), BILLION),
    ("serving", ("system", "chips_per_domain"), BILLION),
    ("fleet", ("hours",), 8784),
)
PARTS = 40  # of the cases, a few of which are in every run
SKIPPED = ("from", "to", "[]")  # a choice is read in one way, one number or several
Place = tuple[str, ...]


def integers(node: Any, definitions: Any, path: Place = ()) -> Iterator[tuple[Place, int]]:
    """The path and the largest value of every integer below a node of a JSON Schema."""
    if "$ref" in node:
        node = definitions[node["$ref"].rsplit("/", 1)[-1]]
    kinds = node.get("type", ())
    if "integer" in ([kinds] if isinstance(kinds, str) else kinds):
        yield path, node["maximum"]
    for key in ("anyOf", "oneOf", "allOf"):
        for each in node.get(key, ()):
            yield from integers(each, definitions, path)
    for key, each in node.get("properties", {}).items():
        yield from integers(each, definitions, (*path, key))
    for key, part in (("[]", "items"), ("*", "additionalProperties")):
        if isinstance(node.get(part), dict):
            yield from integers(node[part], definitions, (*path, key))


@cache
def cases() -> tuple[tuple[str, Place, int], ...]:
    """Kind, path and value: a billion and the largest that is read, of every integer."""
    schema = json_schema()
    found = {}
    for node in schema["oneOf"]:
        kind = node["$ref"].rsplit("/", 1)[-1]
        kind = schema["$defs"][kind]["properties"]["problem"].get("const") or "serving"
        for path, most in integers(node, schema["$defs"]):
            if not {*SKIPPED} & {*path}:
                found[kind, path, most] = found[kind, path, BILLION] = None
    return tuple(found)


def changed(kind: str, path: Place, value: int) -> dict[str, Any]:
    """The starter of a kind with a value at a path; parts that it lacks are added."""
    text = files("planner.problems").joinpath(kind, "starter.yaml").read_text(encoding="utf-8")
    document = holder = YAML(typ="safe").load(text)
    for name in path[:-1]:
        key = next(iter(holder), "a") if name == "*" else name
        if not isinstance(holder.get(key), dict):
            holder[key] = {"like": holder[key]} if isinstance(holder.get(key), str) else {}
        holder = holder[key]
    holder[next(iter(holder), "a") if path[-1] == "*" else path[-1]] = value
    return document


def outcome(kind: str, path: Place, value: int) -> str:
    """Solve in a process of its own; what came of it: an answer, a refusal, or what is wrong."""
    reading, writing = os.pipe()
    seconds = math.ceil(UNITS * unit())
    if not (child := os.fork()):
        words = "ended"
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_AS, (6 * MEMORY, 6 * MEMORY))
            answer = planner.solve(changed(kind, path, value))
            words = "answer" if answer.to_json() else "nothing"
        except FieldError as error:
            words = "refusal" if all(where for where, _ in error.faults) else f"no place: {error}"
        except InputError as error:
            words = "refusal" if str(error) else "no words"
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"
        finally:
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            words = words if used < MEMORY else f"{used / MEMORY:.1f} GiB"
            os.write(writing, words.encode()[:1000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        words = pipe.read()
    _, status = os.waitpid(child, 0)
    return words or f"ended by signal {os.WTERMSIG(status)}"


def test_every_integer_has_a_largest_value():
    """Each is in the schema, so that editors say so too, and all kinds have some but one."""
    assert {kind for kind, _, _ in cases()} >= {*PROBLEMS} - {"prices"}
    assert len(cases()) > 100


@pytest.mark.parametrize("number", [*first(5, range(12)), *seldom(range(12, PARTS))])
def test_a_billion_is_answered_or_refused(number):
    """In a gigabyte and twenty units of processor time each."""
    wrong = {
        (kind, ".".join(path), value): words
        for kind, path, value in cases()[number::PARTS]
        if (kind, path, value) not in SLOW
        and (words := outcome(kind, path, value)) not in ("answer", "refusal")
    }
    assert not wrong


@pytest.mark.campaign
@pytest.mark.parametrize("case", SLOW)
@pytest.mark.xfail(reason="more than 20 units of processor time, or a gigabyte")
def test_the_largest_searches_are_quick(case):
    """Chips whose layouts are listed, the hours of a year, the most draws."""
    assert outcome(*case) in ("answer", "refusal")
