"""Memory that engines take on a chip, by version, and the memory that the runtime sees.

Rows of `engine_table.toml`, with their sources; memory in byte. What logs print of a term is there
as it was read; the file says which numbers are what terms leave of a room.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.catalogue.chips import Chip
from planner.text.errors import CatalogueError, InputError
from planner.text.tables import table

GIB, MIB, GB = 2**30, 2**20, 1e9
NARROW_DTYPES = ("mxfp4", "nvfp4", "int4", "fp8", "int8")  # the narrowest decides the layout


@dataclass(frozen=True)
class ChipMemory:
    """A chip's memory as a runtime sees it, and as its driver reports it [byte].

    `links` says whether several ranks talk over NVLink, `hopper` and `ampere` which generation it
    is, `unified` whether a host shares the memory; `assumed` is a sentence where nobody logged what
    is seen, else empty.
    """

    visible: float
    reported: float
    links: bool = False
    hopper: bool = False
    ampere: bool = False
    unified: bool = False
    assumed: str = ""

    def context(self, ranks: int, *, experts: bool) -> float:
        """Memory of a driver's context and of the first buffers of links between `ranks` [byte]."""
        rows = memory_table()
        links = rows["links"]["experts" if experts else "several"] * (ranks > 1 and self.links)
        card = "context" if self.hopper or self.links else "context_cards"
        return float(rows[card] + links) * GIB


@dataclass(frozen=True)
class EngineMemory:
    """An engine at a version: its `rules`, and the row of its `era`, GiB as in the file.

    `assumed` is a sentence where no version was given, or one newer than what was read.
    """

    name: str
    version: tuple[int, ...]
    rules: Mapping[str, Any] = field(hash=False)
    era: Mapping[str, Any] = field(hash=False)
    defaults: Mapping[str, Any] = field(hash=False)
    assumed: str = ""

    @property
    def title(self) -> str:
        """Its name as it is written."""
        return str(self.rules["title"])

    def elsewhere(self, chip: ChipMemory, ranks: int) -> float:
        """Memory of libraries and links inside the engine's share [byte]."""
        several = "ranks_nvlink" if chip.links else "ranks_pcie"
        alone = "one_rank_hopper" if chip.hopper else "one_rank"
        return float(self.era[several if ranks > 1 else alone]) * GIB

    def limits(self, chip: ChipMemory) -> tuple[int, int]:
        """Sequences and tokens of a step that the engine takes unasked on a chip [seq, token]."""
        row, large = self.defaults, self.defaults.get("large", {})
        if chip.reported < large.get("above", 1e9) * GIB or (chip.ampere and large["except"]):
            return row["seats"], row["tokens"]
        huge = chip.reported >= large.get("huge_above", 1e9) * GIB
        return large["seats"], large["huge_tokens" if huge else "tokens"]


def engine_memory(name: str, version: str = "") -> EngineMemory:
    """The coefficients of an engine at a version; without one, of the newest that was read.

    Raises CatalogueError for an engine that nobody read, and a version that is none of its.
    """
    if name not in engine_names():
        raise CatalogueError.unknown("engine with memory rules", name, engine_names())
    return _at(name, version.strip())


def version_faults(name: str, version: str) -> str:
    """Error message for an engine version that a user names; empty if it is known."""
    try:
        engine_memory(name, version)
    except CatalogueError as error:
        return str(error)
    return ""


def engine_names() -> tuple[str, ...]:
    """Engines whose memory was read."""
    return tuple(
        x for x, row in memory_table().items() if isinstance(row, Mapping) and "eras" in row
    )


@cache
def memory_table() -> Mapping[str, Any]:
    """The whole table; GiB as in the file."""
    return table("planner.memory", "engine_table.toml")


def logged_room(engine: EngineMemory, log: str) -> tuple[float, int | None]:
    """Room [byte] and tokens of the cache that an engine's log prints, of the rank that has least.

    Tokens are None where no line has them. Raises InputError for a log without a room.
    """
    lines = engine.rules["logged"]
    rooms = [sum(float(x) for x in groups if x) for groups in _matches(lines["room"], log)]
    tokens = [int(groups[0].replace(",", "")) for groups in _matches(lines["tokens"], log)]
    if not rooms:
        words = f"no line of {engine.title} says it; expected GiB, or such as {lines['example']!r}"
        raise InputError(f"--room: {words}")
    return min(rooms) * GIB, min(tokens, default=None)


def _matches(pattern: str, log: str) -> list[tuple[str, ...]]:
    return [match.groups("") for match in re.finditer(pattern, log)]


def layout_factor(dtype: str) -> float:
    """Bytes of weights of a format as kernels lay them out, over those of the checkpoint."""
    return float(memory_table()["layouts"].get(dtype, 1.0))


def chip_memory(chip: Chip) -> ChipMemory:
    """Memory of a chip as its runtime sees it; a share of the driver's figure if no log gave it.

    Of a chip with another memory than the catalogue's the same share of it is seen.
    """
    seen, assumed = memory_table()["visible"], ""
    reported = chip.memory if chip.memory_reported is None else chip.memory_reported
    listed = chip.figures.get("memory_reported") or chip.figures.get("memory")
    if chip.name in seen and listed is not None:
        visible = seen[chip.name] * GIB * (reported / listed.base)
    else:
        visible = seen["share_of_reported"] * reported
        assumed = (
            f"nobody logged what a runtime sees of {chip.name}: {seen['share_of_reported']:.0%} "
            f"of {reported / GIB:.4g} GiB, as of the chips that see least"
        )
    return ChipMemory(
        visible,
        reported,
        links=chip.architecture in memory_table()["nvlink"] and chip.pcie is None,
        hopper=chip.architecture == "hopper",
        ampere=chip.architecture == "ampere",
        unified=chip.name in memory_table()["unified"]["chips"],
        assumed=assumed,
    )


def release(text: str) -> tuple[int, ...] | None:
    """A version as numbers, (0, 19, 1) of "0.19.1rc2"; None for a text that is none."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?![\dx])(?:\.(\d{1,4}))?", text)
    return None if match is None else tuple(int(x) for x in match.groups() if x is not None)


@cache
def _at(name: str, version: str) -> EngineMemory:
    row, read = memory_table()[name], release(version)
    oldest, newest = row["eras"][0]["since"], row["read_until"]
    if version and (read is None or read < (release(oldest) or ())):
        words = f"{row['title']} has no version {version!r} that was read"
        raise CatalogueError(f"{words} (known: {oldest} to {newest})")
    assumed = "" if read else f"no version of {row['title']} was given: as of {newest}"
    at = read or release(newest) or ()
    if at[:2] > (release(newest) or ()):
        assumed = f"{row['title']} {version} is newer than what was read: as of {newest}"
    era = {key: x for line in _until(row["eras"], at) for key, x in line.items()}
    return EngineMemory(name, at, row, era, [*_until(row["defaults"], at)][-1], assumed)


def _until(rows: Sequence[Mapping[str, Any]], at: tuple[int, ...]) -> Iterator[Mapping[str, Any]]:
    return (row for row in rows if (release(row["since"]) or ()) <= at)
