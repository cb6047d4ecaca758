"""Frameworks of reinforcement learning: what they add to the time of their two pools."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.text.errors import CatalogueError
from planner.text.quantities import parse


@dataclass(frozen=True)
class RlFramework:
    """Factors on the time of rollouts and of learning [1], and a time beside both [s]."""

    name: str
    title: str
    rollouts: float
    learning: float
    beside: float
    source: str
    as_of: str


@cache
def rl_frameworks() -> dict[str, RlFramework]:
    """All frameworks by name."""
    text = files(__package__).joinpath("rl_frameworks.toml").read_text(encoding="utf-8")
    return {
        name: RlFramework(
            name, row["title"], float(row["rollouts"]), float(row["learning"]),
            parse(row["beside"], "time"), row["source"], row["as_of"],
        )
        for name, row in tomllib.loads(text).items()
    }  # fmt: skip


def rl_framework(name: str) -> RlFramework:
    """A framework by name; raises CatalogueError for one that is not known."""
    if name not in rl_frameworks():
        raise CatalogueError.unknown("framework", name, rl_frameworks())
    return rl_frameworks()[name]
