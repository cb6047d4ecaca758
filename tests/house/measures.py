"""The figures of the house: what they are now, what they may be, where they should come to.

`tests/data/house.json` holds today's limits and exceptions. They may only shrink.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.house import copies, layers, names, sizes, sources, style
from tests.paths import DATA

FILE = DATA / "house.json"


@dataclass(frozen=True)
class Figure:
    """A number of the sources, its goal, and the function that counts."""

    name: str
    goal: float
    count: Callable[[], float]


@dataclass(frozen=True)
class Rule:
    """What is not to be: the function that lists it; a line's part before ": " is its key."""

    name: str
    offenders: Callable[[], list[str]]


def _chain(package: str) -> Callable[[], float]:
    return lambda: len(sources.longest_chain(package))


def _any(package: str) -> Callable[[], float]:
    def share() -> float:
        counted, total = names.signatures_with_any(package)
        return round(100 * counted / total, 1)

    return share


FIGURES = (
    Figure("modules", 524, sizes.module_count),
    # Some 72,000 for the rooms that there were; beyond the fit (shared passes, overlap, drafts,
    # power, bands, hulls, own rows) 5,500; sound answers, proofs and the book 7,800; the kinds
    # training, prices, cache, schedule, fleet, rl and the faces 23,000; regions, flows, scripts of
    # two pools, ways out 5,000; what a person acts on (chances, notes, demand files, closed loops)
    # 3,500; memory as engines take it and `planner fit` 2,200, their options, containers and rules
    # 550, what chips, configurations and networks are called 800. Fitting what ships stands in
    # `tools/fit`, on a line of its own: 3,500 less here.
    Figure("lines", 116_970, sizes.lines),
    Figure("lines of tools/fit", 3_500, sizes.fit_lines),
    Figure("files of the fullest folder", sizes.FOLDER, lambda: sizes.largest_folder()[0]),
    Figure("lines of the longest file", sizes.FILE, lambda: sizes.largest_file()[0]),
    Figure("lines of the longest function", sizes.FUNCTION, lambda: sizes.largest_function()[0]),
    Figure("longest chain of imports", 26, _chain("")),
    Figure("longest chain in planner", 19, _chain("planner")),
    Figure("longest chain in formulas", 12, _chain("formulas")),
    Figure("longest chain in topologies", 12, _chain("topologies")),
    Figure("signatures of planner with Any, %", 5, _any("planner")),
    Figure("signatures of topologies with Any, %", 5, _any("topologies")),
    Figure("methods of an elasticity", 3, lambda: len(copies.elasticity_methods())),
    Figure("banned bindings", 0, lambda: len(names.banned_bindings())),
)
RULES = (
    Rule("imports that point up", layers.upward_imports),
    Rule("rooms that import each other in a circle", layers.rooms_in_circles),
    Rule("imports from a face into a problem", layers.faces_into_problems),
    Rule("imports into the inside of another kind", layers.kinds_inside_each_other),
    Rule("conditions on a kind's name outside its room", layers.kinds_in_conditions),
    Rule("searches that close in by halves, not the one", copies.bracketed_searches),
    Rule("lists of parameters, not a kind's", copies.parameter_lists),
    Rule("files, functions and folders that are too large", sizes.too_large),
    Rule("class names that stand twice", names.classes_twice),
    Rule("file names that repeat", names.file_names_twice),
    Rule("lists of public names outside a package's face", style.public_lists),
)


def limits() -> dict[str, float]:
    """{figure: the most it may be today}."""
    return dict(json.loads(FILE.read_text("utf-8"))["limits"])


def exceptions() -> dict[str, list[str]]:
    """{rule: the keys of today's offenders}."""
    return dict(json.loads(FILE.read_text("utf-8"))["exceptions"])


def key(offender: str) -> str:
    """What an exception is called by: without the places or sizes behind it."""
    return offender.split(": ", maxsplit=1)[0].split(" has ", maxsplit=1)[0]


def tightened() -> dict[str, dict[str, object]]:
    """The limits and exceptions with what is no longer needed left out; nothing is added."""
    allowed = exceptions()
    figures = {f.name: max(f.goal, min(f.count(), limits()[f.name])) for f in FIGURES}
    listed = {
        rule.name: sorted({key(one) for one in rule.offenders()} & set(allowed[rule.name]))
        for rule in RULES
    }
    return {"limits": dict(figures), "exceptions": dict(listed)}
