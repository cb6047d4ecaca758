"""What starts one replica of a plan on one engine: words, options, a file, and why each is there.

An engine turns a `Deployment` into a `Launch`; a shell script, a manifest and JSON are ways to
write it down. What differs from node to node is written as RANK, LEADER and HOST.

The script is safe to paste into bash: options stand in an array, for a command continued over lines
has no place for comments; every word is quoted; comments are one printable line each, so that no
name can end one.
"""

import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.engines.release import Release, Value

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
    value: Value
    because: str


@dataclass(frozen=True)
class Reason:
    """Why an engine cannot run a plan, and what would."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Launch:
    """How one replica is started: on one node, or on `nodes` of them with `local` chips each.

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
        lines += [_beside(export, variable.because, COLUMN)]
    if launch.config:
        lines += ["", f"cat > {launch.config_file} <<'END'", *configuration(launch.config), "END"]
    lines += ["", "options=(", *(f"  {line}" for line in array(launch.options)), ")"]
    if launch.followers:
        added = " ".join(_quoted(option) for option in launch.followers)
        reason = launch.followers[0].because
        lines += [f'[ "$NODE_RANK" = 0 ] || options+=({added})   # {reason}']
    program = [_shell(word) for word in (*launch.prefix, *launch.release.program)]
    return "\n".join([*lines, "", " ".join([*program, '"${options[@]}"'])]) + "\n"


def word(name: str, value: Value) -> str:
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
        yield _beside(line, setting.because, COLUMN)


def array(options: Iterable[Option]) -> Iterator[str]:
    """Options as lines of an array of bash, each with its reason."""
    for option in options:
        line = _quoted(option)
        yield _beside(line, option.because, COLUMN - 2)


def _beside(line: str, reason: str, column: int) -> str:
    """The reason in its column, or as close as the line lets it; never touching the line."""
    return f"{line:<{column - 2}}  # {reason}"


def _quoted(option: Option) -> str:
    if option.value is None:
        return option.name
    return f"{option.name} {_shell(str(option.value))}"


def _shell(word: str) -> str:
    """One word of a command, quoted; the places that differ from node to node as variables."""
    if word == MODEL:
        return '"$model"'
    for place, variable in NODE.items():
        if word.startswith(place):
            rest = word.removeprefix(place)
            return variable + (shlex.quote(rest) if rest else "")
    return shlex.quote(word)
