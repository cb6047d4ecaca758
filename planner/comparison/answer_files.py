"""Load scenarios, or answers saved by `solve --json`, for comparison; list the keys that differ."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.protocol.parameter import base_folder
from planner.protocol.problem import get_problem
from planner.protocol.solve import check
from planner.scenario import check_tree, in_base_units, read
from planner.scenario.keys.fields import QuestionRecord
from planner.scenario.kinds import PROBLEM_PACKAGES
from planner.scenario.loading import Source
from planner.scenario.tree import Path as KeyPath
from planner.scenario.tree import Tree, key_path
from planner.text.errors import InputError, Mistake, printable, quote

MAX_FILE_BYTES = 20_000_000  # bytes of a saved answer
ANSWER = {"schema", "scenario", "plan"}  # keys that a saved answer has and a scenario lacks


@dataclass(frozen=True)
class ComparedScenario:
    """One side of a comparison: its name, its question, and the tree that knows its order.

    `answer` is the document that was saved, None where a scenario was given.
    """

    name: str
    question: QuestionRecord
    tree: Tree
    answer: Mapping[str, Any] | None = None


def load_comparison_side(source: Source) -> ComparedScenario:
    """The side of a comparison that a file, a mapping or a scenario is.

    Raises InputError with every mistake, or for a problem that this version does not answer.
    """
    answer = saved_answer(source)
    name = printable(source)[:300] if isinstance(source, str | Path) else "scenario"
    if answer is None:
        question, tree = check(source), read(source)
    else:
        tree = in_base_units(Tree(name, answer["scenario"]))
        question = check_tree(tree, base_folder(source))
    return ComparedScenario(name, question, tree, answer)


def saved_answer(source: Source) -> Mapping[str, Any] | None:
    """The document of a file of `planner solve --json`; None where it is something else.

    Raises InputError where another version wrote it.
    """
    if isinstance(source, Mapping):
        return _of_this_version(source, "scenario") if source.keys() >= ANSWER else None
    if not isinstance(source, str | Path) or Path(source).suffix.lower() != ".json":
        return None
    try:
        with Path(source).open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES)
        document = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None  # the scenario reader reports the fault with its location
    if not isinstance(document, dict) or not document.keys() >= ANSWER:
        return None
    return _of_this_version(document, str(source))


def _of_this_version(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The document; InputError where another version of its kind wrote it."""
    kind = document.get("problem")
    expected = [f"{x}/{get_problem(x).version}" for x in PROBLEM_PACKAGES if kind in (x, None)]
    if document["schema"] not in expected:
        written = quote(document["schema"])
        words = (
            f"was saved as {written}, this version reads {', '.join(expected) or 'no such kind'}"
        )
        words += "; solve its scenario again with this version"
        raise InputError(Mistake(printable(name)[:300], None, None, "schema", words))
    return document


def require_answer(source: Path) -> Mapping[str, Any]:
    """The saved answer of a file; InputError where it is none."""
    answer = saved_answer(source)
    if answer is None:
        words = "is no saved answer; planner solve FILE --json writes one"
        words = words if Path(source).exists() else "no such file"
        raise InputError(Mistake(str(source), None, None, "", words))
    return answer


ABSENT = "absent"  # in place of a value where a scenario lacks the key
ScenarioMapping = dict[str, Any]


@dataclass(frozen=True)
class ChangedKey:
    """A key with different values in two scenarios; `ABSENT` if a scenario lacks the key."""

    path: KeyPath
    before: object
    after: object

    @property
    def name(self) -> str:
        """The dotted path."""
        return key_path(self.path)


def changed_keys(
    before: ScenarioMapping, after: ScenarioMapping, second: ComparedScenario
) -> tuple[ChangedKey, ...]:
    """Return the keys that differ between two resolved scenarios, in the second's file order.

    A key whose value is a mapping in one and none in the other changes as a whole.
    """
    places = {path: number for number, path in enumerate(second.tree.values)}

    def place(change: ChangedKey) -> int:
        """Where the key, or the nearest above it, stands in the file; those that do not, last."""
        above = (change.path[:depth] for depth in range(len(change.path), 0, -1))
        return next((places[path] for path in above if path in places), len(places))

    return tuple(sorted(_differences(before, after, ()), key=place))


def _differences(before: object, after: object, path: KeyPath) -> Iterator[ChangedKey]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**after, **before}:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif before != after:
        yield ChangedKey(path, before, after)


def apply_changes(before: ScenarioMapping, changes: Sequence[ChangedKey]) -> ScenarioMapping:
    """The first scenario with some of the changes made."""
    data = copy.deepcopy(before)
    for change in changes:
        holder = data
        for part in change.path[:-1]:
            holder = holder[str(part)]
        if change.after is ABSENT:
            del holder[str(change.path[-1])]
        else:
            holder[str(change.path[-1])] = copy.deepcopy(change.after)
    return data


def json_value(value: object) -> object:
    """Convert a scenario value for JSON: `ABSENT` becomes null."""
    return None if value is ABSENT else value


def value_text(value: object) -> str:
    """A value of a scenario in a few words; a mapping by its keys."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(x)}" for key, x in value.items()) + "}"
    if isinstance(value, list):
        shown = [value_text(each) for each in value]
        return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "...", shown[-1]])
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)
