"""Network of a command: a machine of the catalogue with its size, a system's, or a file's.

Loads no graph library before a network is drawn, so that the list of machines is there at once.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalogue.systems import System, system, system_names
from planner.text.errors import CatalogueError, FieldError, InputError, Mistake, did_you_mean, quote
from topologies.fabric.limits import TopologyError
from topologies.machines.hardware import Machine
from topologies.machines.named_machines import graph, machine, names

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric, Node


TOOL_OUTPUT = (".xml", ".txt")  # one machine by NVIDIA's tools
FILES = (".yaml", ".yml", ".json", *TOOL_OUTPUT)
DOMAINS = 4  # of a machine with a network between domains, if no number is given
MAX_CHIPS = 20_000
LOCATION_PATTERN = re.compile(r"line (\d+), column (\d+): ")


@dataclass(frozen=True)
class DescribedNetwork:
    """A fabric, and the machine of the catalogue that it is, if it is one."""

    name: str
    fabric: Fabric
    machine: Machine | None = None
    warnings: tuple[str, ...] = ()


def machines() -> list[dict[str, object]]:
    """The machines of the catalogue, rates in byte/s per chip and one way."""
    return [
        {"name": name, "title": known.title, "kind": known.kind}
        | {"chips_per_domain": known.chips_per_domain, "dims": list(known.dims) or None}
        | {"scale_up": known.scale_up, "scale_out": known.scale_out}
        for name in names()
        for known in (machine(name),)
    ]


def network(
    name: str,
    chips: int | None = None,
    shape: str | None = None,
    *,
    twisted: bool = False,
    join: str | None = None,
    leaf: int | None = None,
    oversubscription: float | None = None,
) -> DescribedNetwork:
    """The network of a catalogue name or of a file.

    Raises InputError when there is no such name or file, or the machine has no such slice.

    Args:
        chips: How many chips of a machine; a few domains, or all of a torus, if not given.
        shape: Sides of the slice of a torus, such as 4x4x8.
        twisted: Whether the slice is a twisted torus.
        join: What joins several domains: spine, rails or clos; as the machine says if not given.
        leaf, oversubscription: Network cards on a leaf switch of a clos, and what enters a leaf or
            rail over what leaves it above.
    """
    joint: dict[str, Any] = {"join": join, "leaf": leaf, "oversubscription": oversubscription}
    arguments = {"chips": chips, "shape": shape, "twisted": twisted or None, **joint}
    options = [f"--{option}" for option, value in arguments.items() if value is not None]
    if not _in_catalogue(name) and _file(name):
        options = [x for x in options if x != "--chips" or Path(name).suffix not in TOOL_OUTPUT]
        if options:
            raise InputError(
                f"{', '.join(options)}: for machines of the catalogue, and {name} is a file"
            )
        try:
            G, doubts = _fabric_read(name, chips or 0)
        except TopologyError as error:
            mistakes = [_mistake(error.where, problem) for problem in error.problems]
            raise InputError(mistakes) from error
        return DescribedNetwork(name, G, None, doubts)
    if name in system_names() and not _in_catalogue(name):
        hosted = system(name)
        if hosted.topology is None:
            return _cards(hosted, chips, options)
        name = hosted.topology  # a chip by its own name is the first machine of it
    if not _in_catalogue(name):
        hint = did_you_mean(name, (*names(), *system_names())) or f"; known: {', '.join(names())}"
        raise CatalogueError(
            f"unknown machine {quote(name)}{hint} (a file ends in {', '.join(FILES)})"
        )
    try:
        sides = None if shape is None else _sides(shape)
        drawn = machine(name, chips, shape=sides, twisted=twisted)
        changed = {field: value for field, value in joint.items() if value is not None}
        return _from_catalogue(name, replace(drawn, **changed), chips)
    except TopologyError as error:
        raise InputError(str(error)) from error


def _in_catalogue(name: str) -> bool:
    try:
        machine(name)
    except TopologyError:  # an alias is known too, though it is not among the names
        return False
    return True


def _cards(hosted: System, chips: int | None, options: list[str]) -> DescribedNetwork:
    """Network of cards on the PCI Express of one host, which forwards messages between them."""
    if set(options) - {"--chips"}:
        raise InputError(f"{', '.join(options)}: {hosted.name} is cards of one host; give --chips")
    most = hosted.chips_per_domain or 1
    if hosted.scale_up is None or (chips or most) > most:
        how = f"one host holds {most} cards" if hosted.scale_up else "nothing known joins several"
        raise InputError(
            f"{hosted.name}: {how}; describe the network between hosts in a topology file"
        )
    try:
        drawn = system_machine(hosted, chips or most, lecture=False)
        drawn = replace(drawn, title=f"{hosted.chip.title}, cards of one host")
        return DescribedNetwork(hosted.name, graph(drawn, chips or most), drawn)
    except TopologyError as error:
        raise InputError(str(error)) from error


def _file(name: str) -> bool:
    """Is a file meant, there or not?"""
    if not name.strip():
        return False
    if Path(name).suffix.lower() in FILES:
        return True
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long, or with a character that no path can have
        return False


def _from_catalogue(name: str, drawn: Machine, chips: int | None) -> DescribedNetwork:
    wanted = drawn.chips_per_domain if chips is None else chips
    if chips is None and drawn.kind != "torus" and drawn.scale_out is not None:
        wanted = DOMAINS * drawn.chips_per_domain
    if wanted > MAX_CHIPS:
        raise InputError(f"--chips {wanted}: at most {MAX_CHIPS:,} are laid out chip by chip")
    return DescribedNetwork(name, graph(drawn, wanted), drawn)


def _sides(shape: str) -> tuple[int, ...]:
    sides = re.split(r"[x×*]", shape.strip().lower())
    if not all(side.isdecimal() and side.isascii() and len(side) < 7 for side in sides):
        raise InputError(f"--shape {quote(shape)}: sides such as 4x4x8 were expected")
    return tuple(map(int, sides))


def _fabric_read(name: str, chips: int = 0) -> tuple[Fabric, tuple[str, ...]]:
    """Fabric of a file, and its warnings; a printed machine is repeated to hold `chips`.

    Raises TopologyError where it names no cards that join machines, or `chips` are no whole number.
    """
    from topologies import read
    from topologies.fabric.fabric import accelerators
    from topologies.files.nvidia import equal_machines

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        G = read(name)
    box = len(accelerators(G))
    if chips > box and Path(name).suffix in TOOL_OUTPUT:
        if chips % box:
            raise TopologyError(name, f"{chips} chips: a machine has {box}; give a multiple")
        G = equal_machines(G, chips // box)
    return G, tuple(str(each.message) for each in caught)


def _mistake(where: str, problem: str) -> Mistake:
    match = LOCATION_PATTERN.match(problem)
    if match is None:
        return Mistake(where, None, None, "", problem)
    return Mistake(where, int(match[1]), int(match[2]), "", problem[match.end() :])


UNUSED_RATE = 1.0  # byte/s; placeholder for a network without traffic


def read_fabric(file: Path, most: int) -> tuple[Fabric, Machine]:
    """The fabric of a topology file, and its figures as those of a machine.

    Domains that differ count as the largest of them; groups are rated where they fit. Raises
    FieldError with every mistake in the file, or if it has fewer chips than are paid for.
    """
    from topologies.fabric.fabric import SCALE_OUT, SCALE_UP, accelerators
    from topologies.groups.fabric_groups import fabric_groups

    try:
        G, _ = _fabric_written(file, _when(file), most)
    except TopologyError as error:
        raise FieldError(("system", " ".join(str(error).split()))) from error
    chips = accelerators(G)
    if len(chips) < most:
        message = f"{most} chips are asked for, but {file.name} wires {len(chips)}"
        raise FieldError(("chips", message))
    groups = fabric_groups(G)
    rates = {tier: _leaving(G, tier, chips) for tier in (SCALE_UP, SCALE_OUT)}
    late = dict.fromkeys(rates, 0.0)
    for _, _, arc in G.edges(data=True):
        if arc["tier"] in late:
            late[arc["tier"]] = max(late[arc["tier"]], arc["latency"])
    joined = groups.joined
    machine_ = Machine.from_figures(
        str(G.graph.get("name") or file.name),
        groups.size,
        min(rates[SCALE_UP], default=UNUSED_RATE),
        # A chip without a card of its own reaches others through its neighbours' cards.
        min(rates[SCALE_OUT], default=UNUSED_RATE) if joined else None,
        scale_up_latency=late[SCALE_UP],
        scale_out_latency=late[SCALE_OUT],
    )
    return G, machine_


def topology_doubts(file: Path) -> tuple[str, ...]:
    """Return the warnings raised when a topology file was read."""
    return _fabric_written(file, _when(file))[1]


def _when(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


@lru_cache(maxsize=4)
def _fabric_written(file: Path, when: int, chips: int = 0) -> tuple[Fabric, tuple[str, ...]]:
    """The fabric of a file as it was written at a time [ns]; every change of a question asks it."""
    from networkx import freeze

    G, doubts = _fabric_read(str(file), chips)
    return freeze(G), doubts


def _leaving(G: Fabric, tier: str, chips: Iterable[Node]) -> list[float]:
    rates = dict.fromkeys(chips, 0.0)
    for u, v, arc in G.edges(data=True):
        if arc["tier"] == tier and u in rates:
            sharing = sum(chip in rates for chip in G.pred[v]) if G.nodes[v]["kind"] == "nic" else 0
            beyond = sum(x["bandwidth"] for w, x in G.succ[v].items() if w not in rates)
            rates[u] += min(arc["bandwidth"], beyond / sharing if sharing else arc["bandwidth"])
    return [rate for rate in rates.values() if rate > 0]


def system_machine(system: System, most: int, *, lecture: bool) -> Machine:
    """Return the network of a system, including the fields that the user varied in it.

    `most` is the largest number of chips paid for; the lecture sends nothing between them. Raises
    FieldError if the chips must talk and nothing says how fast, or no such network exists.
    """
    if system.topology is None:
        if system.scale_up is None and most > 1 and not lecture:
            message = f"{most} chips exchange activations; give scale_up, such as 450 GB/s one way"
            raise FieldError(("system", message))
        domain = system.chips_per_domain or most
        return Machine.from_figures(
            system.name, domain, system.scale_up or UNUSED_RATE, system.scale_out
        )
    rates: dict[str, Any] = {
        key: getattr(system, key) for key in ("scale_up", "scale_out") if key in system.varied
    }
    try:
        drawn = machine(system.topology)
        if "chips_per_domain" in system.varied and drawn.kind == "torus":
            drawn = machine(system.topology, system.chips_per_domain)
        elif "chips_per_domain" in system.varied:
            rates["chips_per_domain"] = system.chips_per_domain
        return replace(drawn, **rates)
    except TopologyError as error:
        raise FieldError(("system", " ".join(str(error).split()))) from error


def pool_link(first: Machine, second: Machine, most: int, *, together: bool) -> tuple[float, float]:
    """Rate of one chip from one pool to the other [byte/s], and the latency of that way [s].

    Pools of one system that fit into one domain talk inside it, all others through their cards.
    Raises FieldError if nothing says how fast those cards are.
    """
    if together and most <= first.chips_per_domain:
        return first.links[0], 2 * first.scale_up_latency
    rates = []
    for machine_ in (first, second):
        if machine_.scale_out is None:
            message = (
                f"two pools on {machine_.name} move caches through its network cards, whose rate "
                "is not known; give scale_out, such as 50 GB/s, or choose mode: aggregated"
            )
            raise FieldError(("system", message))
        rates.append(machine_.scale_out)
    return min(rates), 2 * max(first.scale_out_latency, second.scale_out_latency)
