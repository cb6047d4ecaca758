"""What differs between two scenarios, key by key, and the scenarios in between."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.comparison.answer_files import ComparedScenario
from planner.scenario.tree import Path, dotted

ABSENT = "absent"  # in place of a value where a scenario lacks the key
Data = dict[str, Any]


@dataclass(frozen=True)
class ChangedKey:
    """One key at which two scenarios differ, with its value in each; `ABSENT` where it has none."""

    path: Path
    before: object
    after: object

    @property
    def name(self) -> str:
        """The dotted path."""
        return dotted(self.path)


def changed_keys(before: Data, after: Data, second: ComparedScenario) -> tuple[ChangedKey, ...]:
    """The keys at which two resolved scenarios differ, in the order of the second's file.

    A key whose value is a mapping in one and none in the other changes as a whole.
    """
    places = {path: number for number, path in enumerate(second.tree.values)}

    def place(change: ChangedKey) -> int:
        """Where the key, or the nearest above it, stands in the file; those that do not, last."""
        above = (change.path[:depth] for depth in range(len(change.path), 0, -1))
        return next((places[path] for path in above if path in places), len(places))

    return tuple(sorted(_differences(before, after, ()), key=place))


def _differences(before: object, after: object, path: Path) -> Iterator[ChangedKey]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**after, **before}:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif before != after:
        yield ChangedKey(path, before, after)


def between(before: Data, changes: Sequence[ChangedKey]) -> Data:
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


def plain(value: object) -> object:
    """A value of a scenario as JSON has it: what is absent is null."""
    return None if value is ABSENT else value


def words(value: object) -> str:
    """A value of a scenario in a few words; a mapping by its keys."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {words(x)}" for key, x in value.items()) + "}"
    if isinstance(value, list):
        shown = [words(each) for each in value]
        return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "...", shown[-1]])
    return "none" if value is None else str(value)
