"""Each engine as one release was read, from `releases.toml`: its options and its words.

What it runs, on which chips and in which formats, stands in the table that the search reads.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

from planner.problems.serving.step.engine_rules import EngineTable, engine_tables

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row that is written where every fact of `when` holds and none of `unless`."""

    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def holds(self, facts: Mapping[str, Value]) -> bool:
        """Whether a plan of these facts has the row."""
        return all(facts[name] for name in self.when) and not any(facts[n] for n in self.unless)


@dataclass(frozen=True, kw_only=True)
class OptionRow(_Row):
    """One option or setting: a `value` as it stands, or a `fact` of the plan; neither: a switch."""

    name: str
    because: str
    value: Value = None
    fact: str | None = None

    def value_of(self, facts: Mapping[str, Value]) -> Value:
        """The value for a plan of these facts; facts stand in texts in braces."""
        if self.fact is not None:
            return facts[self.fact]
        return self.value.format_map(facts) if isinstance(self.value, str) else self.value


@dataclass(frozen=True, kw_only=True)
class NoteRow(_Row):
    """One thing that whoever starts the engine should know."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Release(EngineTable):
    """An engine as it was read: what it runs, and where and how it is started.

    `options` are those of the command line, `settings` the keys of its configuration file, by full
    name, `variables` those of the environment, `followers` the options of every node but the first;
    `program` are the first words, in which MODEL stands where the checkpoint goes, and `mpi` those
    that run it on all nodes at once; `trust` lets a checkpoint bring its own code.
    """

    sources: tuple[str, ...]
    program: tuple[str, ...]
    port: int
    trust: str
    options: tuple[OptionRow, ...]
    notes: tuple[NoteRow, ...]
    settings: tuple[OptionRow, ...] = ()
    config_file: str = ""
    variables: tuple[OptionRow, ...] = ()
    followers: tuple[OptionRow, ...] = ()
    mpi: tuple[str, ...] = ()

    @property
    def overlaps(self) -> bool:
        """Whether a row of it starts two half-batches that overlap."""
        return any("two_batches" in row.when for row in (*self.options, *self.settings))


def releases() -> dict[str, Release]:
    """Every engine's release by its name, in the order of the file."""
    text = files("planner.engines").joinpath("releases.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    shared = tables.pop("every")["notes"]
    runs = engine_tables()
    return {name: _release(runs[name], table, shared) for name, table in tables.items()}


def _release(
    runs: EngineTable, table: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]
) -> Release:
    """One engine's table as a release; `notes` are those of every engine."""
    rows = {
        key: tuple(OptionRow(**row) for row in table.get(key, ()))
        for key in ("options", "settings", "variables", "followers")
    }
    words = {key: tuple(table.get(key, ())) for key in ("sources", "program", "mpi")}
    every = tuple(NoteRow(**row) for row in (*notes, *table["notes"]))
    return Release(**{**vars(runs), **table, "notes": every, **rows, **words})
