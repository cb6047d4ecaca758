"""What starts one replica of a plan on one engine: words, options, a file, and why each is there.

An engine's page turns a `Deployment` into a `Launch`; a shell script, a manifest and JSON are ways
to write the same one down. What differs from node to node is written as RANK, LEADER and HOST.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["HOST", "LEADER", "MODEL", "RANK", "Launch", "Option", "Reason", "Release"]

RANK = "@RANK@"  # which node of a replica this is, 0 for the first
HOST = "@HOST@"  # address of the node itself
LEADER = "@LEADER@"  # address of the first node of a replica
MODEL = "@MODEL@"  # repository or folder of the checkpoint


@dataclass(frozen=True)
class Release:
    """An engine as it was read: its version, when, where, and the images of that version.

    `options` are the command-line options, `settings` the keys of its configuration file, by full
    name, and `variables` those of the environment that may be written; `vendors` are the makers of
    chips it was read for, each with the container image of this version.
    """

    name: str
    title: str
    version: str
    as_of: str
    sources: tuple[str, ...]
    options: frozenset[str]
    vendors: Mapping[str, str]
    settings: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()

    @property
    def stamp(self) -> str:
        """The engine and its version, as a reader should see them."""
        return f"{self.title} {self.version}"


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
