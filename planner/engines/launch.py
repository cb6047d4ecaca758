"""Launch of one replica of a plan on one engine: words, options, a file, and their reasons.

An engine turns a `Deployment` into a `Launch`; a shell script, a manifest and JSON are ways to
write it down. What differs from node to node is written as RANK, LEADER and HOST.

The script is safe to paste into bash: options stand in an array, for a command continued over lines
has no place for comments; every word is quoted; comments are one printable line each, so that no
name can end one.

Each engine as one release was read, from `releases.toml`: its options and its words. What it runs,
on which chips and in which formats, stands in the table that the search reads.
"""

import shlex
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

from planner.problems.serving.step.engine_rules import EngineTable, engine_tables

FactValue: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class _Row:
    """Row that is written if every fact of `when` and no fact of `unless` is true."""

    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def holds(self, facts: Mapping[str, FactValue]) -> bool:
        """True if the facts of a plan satisfy the conditions of the row."""
        return all(facts[name] for name in self.when) and not any(facts[n] for n in self.unless)


@dataclass(frozen=True, kw_only=True)
class OptionRow(_Row):
    """Option or setting: a fixed `value`, or a `fact` of the plan; a switch has neither.

    Read in a launch it says that `when` holds, or where that is given what it `implies`.
    """

    name: str
    because: str
    value: FactValue = None
    fact: str | None = None
    implies: tuple[str, ...] | None = None

    def value_of(self, facts: Mapping[str, FactValue]) -> FactValue:
        """Return the value for a plan of these facts, which replace names in braces."""
        if self.fact is not None:
            return facts[self.fact]
        return self.value.format_map(facts) if isinstance(self.value, str) else self.value


@dataclass(frozen=True, kw_only=True)
class NoteRow(_Row):
    """One thing that whoever starts the engine should know."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Release(EngineTable):
    """Engine release as read from its sources: its capabilities, and where and how it is started.

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
        """True if one of its rows enables the overlap of two half-batches."""
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


RANK = "@RANK@"  # which node of a replica this is, 0 for the first
HOST = "@HOST@"  # address of the node itself
LEADER = "@LEADER@"  # address of the first node of a replica
MODEL = "@MODEL@"  # repository or folder of the checkpoint


@dataclass(frozen=True)
class Option:
    """One option or setting: as the engine spells it, its value, and what of the plan it carries.

    A `value` of None makes it a switch; a dotted `name` is a key inside a configuration file.
    """

    name: str
    value: FactValue
    because: str


@dataclass(frozen=True)
class Reason:
    """Reason why an engine cannot run a plan, and the remedy."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Launch:
    """Launch of one replica: on one node, or on `nodes` of them with `local` chips each.

    `role` is the plan's pool, if it has two. `followers` are options of every node but the first.
    `prefix` runs the program on all nodes at once, for engines that an MPI launcher starts.
    """

    release: Release
    options: tuple[Option, ...]
    nodes: int
    local: int
    followers: tuple[Option, ...] = ()
    prefix: tuple[str, ...] = ()
    config: tuple[Option, ...] = ()
    config_file: str = ""
    environment: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()
    role: str = ""


WIDTH = 98
COLUMN = 44
NODE = {RANK: '"$NODE_RANK"', LEADER: '"$MASTER_ADDR"', HOST: '"$NODE_ADDRESS"'}


def script(launch: Launch, model: str, heading: Iterable[str]) -> str:
    """The command of one replica, to be run once on each of its nodes."""
    lines = ["#!/usr/bin/env bash", *comment(heading), ""]
    lines += [f"model={shlex.quote(model)}   # the checkpoint: a repository, or a folder here"]
    if launch.nodes > 1 and not launch.prefix:
        lines += [
            ': "${NODE_RANK:?0 on the first node of the replica, 1 on the next, ...}"',
            ': "${MASTER_ADDR:?address of the first node of the replica}"',
        ]
    if launch.environment:
        lines += [': "${NODE_ADDRESS:?address of this node}"']
    for variable in launch.environment:
        export = f"export {variable.name}={_shell(str(variable.value))}"
        lines += [_with_reason(export, variable.because, COLUMN)]
    if launch.config:
        lines += ["", f"cat > {launch.config_file} <<'END'", *configuration(launch.config), "END"]
    lines += ["", "options=(", *(f"  {line}" for line in array(launch.options)), ")"]
    if launch.followers:
        added = " ".join(_quoted(option) for option in launch.followers)
        reason = launch.followers[0].because
        lines += [f'[ "$NODE_RANK" = 0 ] || options+=({added})   # {reason}']
    program = [_shell(word) for word in (*launch.prefix, *launch.release.program)]
    return "\n".join([*lines, "", " ".join([*program, '"${options[@]}"'])]) + "\n"


def option_value(name: str, value: FactValue) -> str:
    """An option and its value as one word, `--name=value`."""
    return name if value is None else f"{name}={value}"


def comment(text: Iterable[str]) -> Iterator[str]:
    """Lines of a comment, wrapped; nothing in them can end the comment."""
    for line in text:
        clean = "".join(char if char.isprintable() else " " for char in line)
        wrapped = textwrap.wrap(
            clean, WIDTH - 2, subsequent_indent="  ", break_on_hyphens=False
        ) or [""]
        yield from (f"# {part}".rstrip() for part in wrapped)


def configuration(settings: Iterable[Option]) -> Iterator[str]:
    """Settings as YAML, dotted names nested once; values are numbers, truths and bare words."""
    opened = ""
    for setting in settings:
        group, _, name = setting.name.rpartition(".")
        if group and group != opened:
            yield f"{group}:"
        opened = group
        value = str(setting.value).lower() if isinstance(setting.value, bool) else setting.value
        line = f"{'  ' if group else ''}{name}: {value}"
        yield _with_reason(line, setting.because, COLUMN)


def array(options: Iterable[Option]) -> Iterator[str]:
    """Options as lines of an array of bash, each with its reason."""
    for option in options:
        line = _quoted(option)
        yield _with_reason(line, option.because, COLUMN - 2)


def _with_reason(line: str, reason: str, column: int) -> str:
    return f"{line:<{column - 2}}  # {reason}"


def _quoted(option: Option) -> str:
    if option.value is None:
        return option.name
    return f"{option.name} {_shell(str(option.value))}"


def _shell(word: str) -> str:
    if word == MODEL:
        return '"$model"'
    for place, variable in NODE.items():
        if word.startswith(place):
            rest = word.removeprefix(place)
            return variable + (shlex.quote(rest) if rest else "")
    return shlex.quote(word)
