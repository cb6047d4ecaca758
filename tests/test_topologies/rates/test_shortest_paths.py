"""Traffic on shortest paths against paths counted one by one, and against closed forms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from tests.loops import for_all
from topologies import TopologyError, hierarchy, mesh, switch, torus
from topologies.builders.switches import dragonfly
from topologies.builders.torus import twisted_torus
from topologies.fabric.fabric import ACCELERATOR, SWITCH, Fabric, accelerators, fabric, link
from topologies.rates import closed_forms
from topologies.rates import shortest_paths as paths
from topologies.rates.flow_network import network
from topologies.rates.shortest_paths import ShortestPaths, ecmp
from topologies.rates.traffic import all_to_all, pairs


def whole(G: Fabric, *, declared: bool = True) -> float:
    """The rate of the all-to-all of all chips."""
    H = G.copy()
    H.graph["orbits"] = bool(G.graph["orbits"]) and declared
    return ecmp(H, all_to_all(accelerators(H))).rate


def permitted(G: Fabric, a: Any, b: Any) -> list[list[Any]]:
    """All permitted paths of fewest hops, then of least latency."""
    nodes = [v for v in G if G.nodes[v]["forward"] or v in (a, b)]
    found = list(nx.all_shortest_paths(G.subgraph(nodes), a, b))
    late = [sum(G.edges[e]["latency"] for e in pairwise(p)) for p in found]
    return [path for path, t in zip(found, late, strict=True) if t <= min(late) * (1 + 1e-9)]


def weighed(G: Fabric, a: Any, b: Any) -> Iterator[tuple[list[Any], float]]:
    """Each path with what it carries of one byte."""
    found = permitted(G, a, b)
    cables = G.edges
    after: dict[Any, set[Any]] = {}
    for path in found:
        for u, v in pairwise(path):
            after.setdefault(u, set()).add(v)
    for path in found:
        share = 1.0
        for u, v in pairwise(path):
            ways = sum(cables[u, w].get("count", 1) for w in after[u])
            share *= cables[u, v].get("count", 1) / ways
        yield path, share


def counted(G: Fabric) -> float:
    """The all-to-all rate from every path of every pair."""
    load: dict[Any, float] = defaultdict(float)
    for a in accelerators(G):
        for b in accelerators(G):
            if a != b:
                for path, share in weighed(G, a, b):
                    for arc in pairwise(path):
                        load[arc] += share
    return min(G.edges[arc]["bandwidth"] / carried for arc, carried in load.items())


def irregular() -> Fabric:
    """Switches in a tangle: cables in parallel, latencies that break ties, chips that relay."""
    rng = np.random.default_rng(5)
    G = fabric("irregular")
    for i in range(5):
        G.add_node(("s", i), kind=SWITCH, forward=True)
    for i in range(6):
        G.add_node(("c", i), kind=ACCELERATOR, forward=i == 0, domain=0)
        for j in rng.choice(5, size=2, replace=False):
            link(G, ("c", i), ("s", int(j)), bandwidth=float(rng.uniform(1, 3)), latency=1e-6)
    for i, j in combinations(range(5), 2):
        if (i, j) not in ((0, 3), (1, 4)):
            late = float(rng.choice([1e-6, 1e-6, 2e-6]))
            cables = int(rng.integers(1, 4))
            link(G, ("s", i), ("s", j), bandwidth=2.0, latency=late, count=cables)
    return G


FABRICS = {
    "grid": torus((5, 4), link=45.0, wrap=False),
    "torus": torus((4, 3), link=(1.0, 2.0)),
    "mesh": mesh(5, link=64.0),
    "dragonfly": dragonfly(1, 3, 1, up=50.0, local=40.0, out=30.0),
    "parallel cables": dragonfly(2, 4, 2, up=50.0, local=50.0, out=50.0, groups=3),
    "irregular": irregular(),
}


@for_all("name", FABRICS)
def test_every_path_counted(name: str) -> None:
    """The rate is that of loads summed path by path, with declared orbits and without."""
    expected = counted(FABRICS[name])
    assert whole(FABRICS[name]) == pytest.approx(expected, rel=1e-9)
    assert whole(FABRICS[name], declared=False) == pytest.approx(expected, rel=1e-9)


def test_the_dragonfly_of_the_study() -> None:
    """Even splits at every hop reach 0.532 of the 0.704 that the best routes reach."""
    rate = whole(dragonfly(2, 4, 2, up=50.0, local=50.0, out=50.0))
    assert rate == pytest.approx(0.5319149, rel=1e-6)


@for_all("sides", [(4, 4, 8), (6, 4), (5, 5), (7,), (2, 3, 5), (4, 4, 4)], ids=str)
def test_tori_lose_nothing(sides: tuple[int, ...]) -> None:
    """On tori the shortest paths reach the optimum."""
    links = [4.0, 3.0, 2.0][: len(sides)]
    expected = closed_forms.box(sides, links, [True] * len(sides)).all_to_all
    assert whole(torus(sides, link=links)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("sides", "gain"), [((4, 4, 8), 1.7454545), ((4, 8, 8), 1.3913043)])
def test_twisted_tori_lose_nothing(sides: tuple[int, ...], gain: float) -> None:
    """A twisted torus gains over the plain one on shortest paths what it gains at best."""
    plain, twisted = torus(sides, link=1.0), twisted_torus(sides, link=1.0)
    assert whole(twisted) / whole(plain) == pytest.approx(gain, rel=1e-6)


def test_nodes_prefer_their_own_switch() -> None:
    """Of two ways of two hops the sooner is taken: cards carry what leaves the node, no more."""
    G = hierarchy(switch(8, up=450.0, latency=5e-7), 2, out=50.0, latency=2.5e-6)
    expected = closed_forms.switch(8, 450.0)
    joined = closed_forms.multi_domain_rates(
        16, least=8, most=8, out=50.0, smallest=expected, largest=expected
    ).all_to_all
    assert whole(G) == pytest.approx(joined, rel=1e-9)


def test_the_fullest_arcs_are_named() -> None:
    """What binds is exactly full; nothing is fuller."""
    G = FABRICS["irregular"]
    routed = ecmp(G, all_to_all(accelerators(G)))
    full = dict(zip(routed.arcs, routed.load * routed.rate / routed.bandwidth, strict=True))
    assert max(full.values()) == pytest.approx(1.0, rel=1e-12)
    assert set(routed.binding) == {arc for arc, part in full.items() if part > 1 - 1e-9}


def test_groups_and_pairs_add_up() -> None:
    """Loads of several groups and pairs at once are the sum of the loads of each."""
    G = torus((6,), link=1.0)
    groups, sent = all_to_all([(0,), (1,), (2,)], [(3,), (5,)]), pairs({((0,), (3,)): 2.5})
    both = ecmp(G, groups + sent)
    apart = ecmp(G, groups).load + ecmp(G, sent).load
    assert np.allclose(both.load, apart, rtol=1e-12)
    assert ecmp(G, sent + sent).rate == pytest.approx(ecmp(G, sent).rate / 2, rel=1e-12)


def test_no_path_is_a_mistake() -> None:
    """Chips that only others could join have no rate."""
    G = torus((4,), link=1.0, wrap=False)
    for chip in G:
        G.nodes[chip]["forward"] = False
    with pytest.raises(TopologyError, match="no permitted path from"):
        ecmp(G, pairs({((0,), (3,)): 1.0}))


@pytest.mark.parametrize("name", FABRICS)
def test_paths_followed_one_by_one_are_those_of_a_look_at_every_arc(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads and lanes are the same to the bit, whichever way the arcs are looked for."""
    G = FABRICS[name]
    chips = accelerators(G)
    partners = zip(chips, [*chips[2:], *chips[:2]], strict=True)
    sent = pairs({arc: 1.0 + 2 * (i % 2) for i, arc in enumerate(partners)})
    answers = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(paths, "MIN_FOLLOWED_SHARE", share)
        routed, lanes = ecmp(G, sent), ShortestPaths(G).lanes(chips[:2], chips[-3:])
        answers.append((routed.rate, routed.load.tolist(), lanes))
    assert answers[0] == answers[1]


def test_a_frozen_fabric_is_looked_at_once() -> None:
    """Of one that may change, arrays and paths are made anew."""
    G = torus((4,), link=1.0)
    first = network(G)
    G.edges[(0,), (1,)]["bandwidth"] = 2.0
    assert first.bandwidth.max() == 1 < network(G).bandwidth.max()
    frozen = nx.freeze(G.copy())
    assert network(frozen) is network(frozen)
    assert paths.shortest_paths(frozen) is paths.shortest_paths(frozen)
    assert network(nx.freeze(G.copy())) is not network(frozen)


def test_hops_asked_for_again_are_those_of_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in another order, and where none are remembered."""
    G = dragonfly(1, 3, 1, up=4.0, local=2.0, out=1.0)
    chips, several = accelerators(G), ShortestPaths(G)
    first = several.distances(chips[:3], chips).hops
    assert (several.distances(chips[4:1:-1], chips).hops[-1] == first[2]).all()
    monkeypatch.setattr(paths, "MAX_CACHED_HOPS", 1)
    assert (ShortestPaths(G).distances(chips[:3], chips).hops == first).all()
