"""Machines by name, slices of them by size or shape, and any machine drawn as a fabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from topologies.fabric.limits import TopologyError, count_fault, suggest
from topologies.machines.hardware import Machine, aliases, entries, shape_text, sourced_figures
from topologies.rates.closed_forms import BoxSides, box

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric


def names() -> tuple[str, ...]:
    """The machines of the catalogue."""
    return tuple(entries())


def machine(
    name: str,
    chips: int | None = None,
    *,
    shape: Sequence[int] | None = None,
    twisted: bool = False,
) -> Machine:
    """A machine of the catalogue; for a torus, a slice of `chips` chips or of this shape.

    More chips than a domain has are several whole domains, joined by scale-out. Of the shapes that
    are offered with as many chips, a slice takes that in which they exchange most. Raises
    TopologyError when the name is unknown, or there is no such slice; it then says which there are.

    Args:
        chips: How many chips are wanted.
        shape: Sides of the slice, such as (4, 4, 8).
        twisted: Whether the slice is a twisted torus, which some of sides k and 2k can be.

    >>> machine("tpu-v5p", 128).dims, machine("tpu-v5p", shape=(8, 4, 4), twisted=True).dims
    ((4, 4, 8), (8, 4, 4))
    """
    whole = _named(name)
    if chips is not None and (fault := count_fault(chips)) is not None:
        raise TopologyError(f"machine {name!r}", f"chips {fault}")
    size = whole.chips_per_domain
    plain = shape is None and not twisted
    if plain and (chips is None or whole.kind != "torus" or chips >= size):
        return whole
    if whole.kind != "torus":
        raise TopologyError(f"machine {name!r}", f"a {whole.kind} has no slices")
    sides = _slice_sides(whole, chips, shape)
    if twisted and not (whole.twists and _twistable(sides, whole.cube or 1)):
        raise TopologyError(f"machine {name!r}", _untwisted(whole, sides))
    return replace(whole, dims=sides, chips_per_domain=prod(sides), twisted=twisted)


def graph(
    which: str | Machine,
    chips: int | None = None,
    *,
    join: str | None = None,
    leaf: int | None = None,
    oversubscription: float | None = None,
    spines: int = 1,
    rail_optimised: bool = False,
    relay: str | None = None,
) -> Fabric:
    """A machine as a fabric: one domain, or `chips` chips.

    Raises TopologyError when `chips` is more than one domain but not a whole number of them, when
    the domains cannot be joined because scale_out is not known, or when the arguments do not fit.

    Args:
        join: What joins several domains: `spine`, `rails` or `clos`; as the machine says if not
            given.
        leaf, oversubscription: Cards on a leaf switch of a Clos network, and o of o:1 above the
            leaves or the rails; as the machine says if not given.
        spines, rail_optimised, relay: As for `hierarchy`.

    >>> G = graph("gb200-nvl72", 144, join="rails")
    >>> len(G), G.number_of_edges()
    (218, 576)
    """
    what = machine(which, chips) if isinstance(which, str) else which
    wanted = _chip_count(what, chips)
    G = _domain(what, min(wanted, what.chips_per_domain))
    if wanted > what.chips_per_domain:
        from topologies.builders.clusters import hierarchy

        if what.scale_out is None:
            fault = f"{wanted} chips are several domains of {what.chips_per_domain}"
            raise TopologyError(f"machine {what.name!r}", f"{fault} and scale_out is not known")
        join, leaf, oversubscription = _joined_domains(what, join, leaf, oversubscription)
        G = hierarchy(
            G,
            wanted // what.chips_per_domain,
            out=what.scale_out,
            latency=what.scale_out_latency,
            join=join,
            leaf=leaf,
            oversubscription=oversubscription,
            spines=spines,
            rail_optimised=rail_optimised,
            relay=relay,
        )
    G.graph["name"] = f"{what.name}, {wanted} chips"
    sources = [what.caution, *(f.source for f in what.figures)]
    G.graph["source"] = "; ".join(dict.fromkeys(filter(None, sources))) or None
    G.graph["as_of"] = max((f.as_of for f in what.figures), default=None)
    return G


def _joined_domains(
    what: Machine, join: str | None, leaf: int | None, oversubscription: float | None
) -> tuple[str, int | None, float | None]:
    """Join, leaf and oversubscription; the machine's figures fill in if the join is its own."""
    if join is not None and join != what.join:
        return join, leaf, oversubscription
    usual = what.oversubscription if what.oversubscription > 1 else None
    return (
        what.join,
        what.leaf if leaf is None else leaf,
        usual if oversubscription is None else oversubscription,
    )


def _chip_count(what: Machine, number: int | None) -> int:
    """Chips of a fabric: a part of a domain or whole domains; one domain by default."""
    size, where = what.chips_per_domain, f"machine {what.name!r}"
    chips = size if number is None else number
    if (fault := count_fault(chips)) is not None:
        raise TopologyError(where, f"chips {fault}")
    if chips > size and chips % size:
        below = chips - chips % size
        fault = f"{chips} chips are not whole domains of {size}; {below} or {below + size} are"
        raise TopologyError(where, fault)
    return chips


def _slice_sides(whole: Machine, chips: int | None, shape: Sequence[int] | None) -> BoxSides:
    """The sides of a slice, as its maker offers it."""
    offered, where = whole.offered, f"machine {whole.name!r}"
    if shape is None:
        if chips is None or chips == whole.chips_per_domain:
            return whole.dims
        offers = offered.of(chips)
        if offers:
            return min(offers, key=lambda sides: _shape_rank(whole, sides))
        near = " or ".join(f"{prod(sides)} ({shape_text(sides)})" for sides in offered.near(chips))
        fault = (
            f"no slice of {chips} chips: none fits into {shape_text(whole.dims)} as it is offered"
        )
        raise TopologyError(where, f"{fault}; {near} chips do")
    sides = tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else ()
    if len(sides) != len(whole.dims) or any(count_fault(side) for side in sides):
        fault = f"shape is {shape!r}; {len(whole.dims)} sides were expected, such as "
        raise TopologyError(where, fault + shape_text(offered.near(128)[0]))
    if chips is not None and prod(sides) != chips:
        raise TopologyError(
            where, f"shape {shape_text(sides)} holds {prod(sides)} chips, not {chips}"
        )
    if not offered.offers(sides):
        same = offered.of(prod(sides)) or offered.near(prod(sides))
        others = ", ".join(map(shape_text, same)) or "none"
        fault = f"no slice of shape {shape_text(sides)}; near it there are {others}"
        raise TopologyError(where, fault)
    return sides


def _shape_rank(whole: Machine, sides: BoxSides) -> tuple[float, int, BoxSides]:
    """Orders shapes of equal size: where chips exchange most, then the most compact."""
    if prod(sides) == 1:
        return 0.0, sum(sides), sides
    return -box(sides, whole.links, whole.rings_of(sides)).all_to_all, sum(sides), sides


def _twistable(sides: BoxSides, cube: int) -> bool:
    short = min(sides)
    return set(sides) == {short, 2 * short} and short % cube == 0 and short > 1


def _untwisted(whole: Machine, sides: BoxSides) -> str:
    if not whole.twists:
        return "its slices are not twisted"
    k = whole.cube or 2
    such = " and ".join(shape_text(each) for each in ((k, k, 2 * k), (k, 2 * k, 2 * k)))
    return (
        f"{shape_text(sides)} cannot be twisted; slices of sides k and 2k can, k a multiple of "
        f"{k}, such as {such}"
    )


def _domain(what: Machine, chips: int) -> Fabric:
    from topologies.builders.switches import mesh, switch
    from topologies.builders.torus import torus, twisted_torus

    late = what.scale_up_latency
    if what.kind == "switch":
        reduce = what.in_network_reduce
        return switch(chips, up=what.scale_up, latency=late, in_network_reduce=reduce)
    if what.kind == "mesh":
        return mesh(chips, link=what.links[0], latency=late)
    if chips == what.chips_per_domain and what.twisted:
        return twisted_torus(what.dims, link=what.links, latency=late)
    dims, rings = what.dims, what.rings
    if chips < what.chips_per_domain:
        dims = what.box(chips)
        rings = what.rings_of(dims)
    return torus(dims, link=what.links, latency=late, wrap=rings)


@cache
def _named(name: str) -> Machine:
    key = aliases().get(name, name) if isinstance(name, str) else name
    if key not in entries():
        hint = suggest(name, [*entries(), *aliases()])
        raise TopologyError("machines", f"unknown machine {name!r}; {hint}")
    plain = {field: value for field, value in entries()[key].items() if not isinstance(value, dict)}
    sourced = sourced_figures(key)
    values = {f.name: f.value for f in sourced if f.name != "links"}
    make: Callable[..., Machine] = Machine
    return make(name=key, figures=sourced, **{"scale_out": None, **plain, **values})
