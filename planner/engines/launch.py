"""What starts one replica of a plan on one engine: words, options, a file, and why each is there.

An engine's page turns a `Deployment` into a `Launch`; a shell script, a manifest and JSON are ways
to write the same one down. What differs from node to node is written as RANK, LEADER and HOST.

A launch as text that is safe to paste into bash: one option a line, each with its reason.

Options stand in an array, for a command continued over lines has no place for comments. Every word
is quoted; comments are one printable line each, so that no name can end one.

Sentences and options that the pages of several engines share.
"""

from __future__ import annotations

import shlex
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from planner.engines.deployment import Deployment

RANK = "@RANK@"  # which node of a replica this is, 0 for the first
HOST = "@HOST@"  # address of the node itself
LEADER = "@LEADER@"  # address of the first node of a replica
MODEL = "@MODEL@"  # repository or folder of the checkpoint


@dataclass(frozen=True)
class Release:
    """An engine as it was read: its version, when, where, and the images of that version.

    `options` are the command-line options, `settings` the keys of its configuration file, by full
    name, and `variables` those of the environment that may be written; `vendors` are the makers of
    chips it was read for, each with the container image of this version. `caches` and `online` are
    what the engine calls a cache dtype and a conversion of weights while loading, by the planner's
    dtype; `predicting` are the model types whose multi-token prediction blocks it runs;
    `unpacks_fp4` says whether it multiplies FP4 weights in a wider format on chips without FP4
    arithmetic.
    """

    name: str
    title: str
    version: str
    as_of: str
    sources: tuple[str, ...]
    options: frozenset[str]
    vendors: Mapping[str, str]
    caches: Mapping[str, str]
    predicting: frozenset[str]
    unpacks_fp4: bool
    online: Mapping[str, str] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()

    @property
    def stamp(self) -> str:
        """The engine and its version, as a reader should see them."""
        return f"{self.title} {self.version}"


def release(name: str) -> Release:
    """An engine's release from `releases.toml`, by the engine's name there."""
    text = files("planner.engines").joinpath("releases.toml").read_text(encoding="utf-8")
    row = tomllib.loads(text)[name]
    listed = ("options", "predicting", "settings", "variables")
    row |= {key: frozenset(row[key]) for key in listed if key in row}
    return Release(**{**row, "name": name, "sources": tuple(row["sources"])})


@dataclass(frozen=True)
class Option:
    """One option or setting: as the engine spells it, its value, and what of the plan it carries.

    A `value` of None makes it a switch; a dotted `name` is a key inside a configuration file.
    """

    name: str
    value: str | int | float | bool | None
    because: str


@dataclass(frozen=True)
class Reason:
    """Why an engine cannot run a plan, and what would."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Launch:
    """How one replica is started: on one node, or on `nodes` of them with `local` chips each.

    `role` is the plan's pool, if it has two. `program` are the first words; MODEL stands where
    the checkpoint goes. `followers` are options of every node but the first. `prefix` runs the
    program on all nodes at once, for engines that are started by an MPI launcher.
    """

    release: Release
    program: tuple[str, ...]
    options: tuple[Option, ...]
    port: int
    nodes: int
    local: int
    health: str = "/health"
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
    lines += ["", "options=(", *(f"  {line}" for line in _array(launch.options)), ")"]
    if launch.followers:
        added = " ".join(_quoted(option) for option in launch.followers)
        reason = launch.followers[0].because
        lines += [f'[ "$NODE_RANK" = 0 ] || options+=({added})   # {reason}']
    program = [_shell(word) for word in (*launch.prefix, *launch.program)]
    return "\n".join([*lines, "", " ".join([*program, '"${options[@]}"'])]) + "\n"


def words(option: Option) -> str:
    """The option and its value as one word, `--name=value`."""
    return option.name if option.value is None else f"{option.name}={option.value}"


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


def _array(options: Iterable[Option]) -> Iterator[str]:
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


def parallel(
    plan: Deployment, *, tp: tuple[str, int], pp: str, dp: tuple[str, int] | None = None
) -> Iterator[Option]:
    """Tensor, pipeline and data parallel sizes under the engine's names; ones are left out."""
    layout = plan.layout
    name, size = tp
    note = f"tp {layout['tp']}"
    if size != layout["tp"]:
        note += f" * dp attention {layout['dp_attention']}: all chips of a stage"
    yield Option(name, size, note)
    if layout["pp"] > 1:
        yield Option(pp, layout["pp"], f"pp {layout['pp']}")
    if dp and dp[1] > 1:
        note = f"dp attention {layout['dp_attention']}: copies of attention"
        yield Option(dp[0], dp[1], note)


def shared(plan: Deployment) -> str:
    """Where the sequences of one copy of attention come from."""
    whole = f"{plan.pool['batch_per_replica']} sequences per replica"
    copies = plan.layout["dp_attention"]
    return f"{whole}, over {copies} copies of attention" if copies > 1 else whole


def budget(plan: Deployment) -> str:
    """What one step of one copy of attention computes."""
    copy = ", per copy of attention" if plan.layout["dp_attention"] > 1 else ""
    answers = f"the tokens of {plan.in_step} sequences"
    parts = {"prefill": f"chunk {plan.chunk}", "decode": answers}
    return parts.get(plan.role, f"chunk {plan.chunk} and {answers}") + copy


def drafted(plan: Deployment) -> str:
    """How many tokens are drafted."""
    return f"{plan.drafts} draft{'s' * (plan.drafts > 1)}"


def lengths(plan: Deployment) -> str:
    """What the longest request is made of."""
    drafts = f", {drafted(plan)}" if plan.drafts else ""
    kind = "99.9 % of inputs and of outputs" if plan.longest_is_quantile else "input and output"
    limit = plan.checkpoint.sizes.max_context
    most = f"; the model goes to {limit}" if limit else ""
    return f"{kind}{drafts}, rounded up{most}"


def notes(plan: Deployment, trust: str = "--trust-remote-code") -> Iterator[str]:
    """What to know whatever the engine; `trust` lets a checkpoint bring its own code."""
    if plan.checkpoint.folder:
        yield "the checkpoint is the folder of the scenario's config.json; the weights lie there"
    yield (
        f"a checkpoint that brings its own code is refused until {trust} is added; add it only if "
        "you trust that code"
    )
    if not plan.whole["fits_at_full_context"]:
        yield "the plan fits at mean context: when many long requests meet, some are preempted"
    if not plan.even:
        yield (
            f"{plan.checkpoint.sizes.n_experts} experts do not divide over ep "
            f"{plan.layout['ep']}: some chips hold one more than others"
        )
    if plan.nodes > 1 and plan.vendor == "NVIDIA" and plan.chip.name in ("gb200", "gb300", "rubin"):
        yield "trays of a rack speak NVLink only inside one IMEX domain"
