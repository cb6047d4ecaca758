"""What cannot be a fabric, row by row: one error that names every place, never a 0, inf or NaN."""

from __future__ import annotations

import importlib
import json
import sys
import warnings

import pytest
from scipy.optimize import OptimizeResult

from tests.loops import for_all
from topologies import (
    TopologyError,
    check,
    group_rate,
    machine,
    rails,
    read,
    suspicions,
    switch,
    torus,
)
from topologies.fabric.fabric import accelerators, fabric, link
from topologies.fabric.overrides import override
from topologies.fabric.placement import place
from topologies.rates.concurrent_collectives import joint_rate
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate, concurrent_flow
from topologies.rates.traffic import all_to_all

CHIP = {"kind": "accelerator", "forward": False, "domain": 0}
HUB = {"kind": "switch", "forward": True}
WIRE = {"bandwidth": 450e9, "latency": 5e-7, "tier": "scale_up"}


def listed(*, nodes=(), links=(), **changes):
    """Four chips on a switch as JSON records, some replaced by number, some added."""
    known = [{"id": f"gpu{i}", **CHIP} for i in range(4)] + [{"id": "nvswitch", **HUB}]
    wires = [{"source": f"gpu{i}", "target": "nvswitch", **WIRE} for i in range(4)]
    whole = {"directed": False, "nodes": [*known, *nodes], "links": [*wires, *links]}
    for place_, change in changes.items():
        key, number = place_.split("_")
        whole[key][int(number)].update(change)
    return whole


def refused(tmp_path, content, suffix=".json"):
    """The problems of a file."""
    file = tmp_path / f"fabric{suffix}"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        read(file)
    assert caught.value.where == str(file)
    return list(caught.value.problems)


def test_the_list_that_is_changed_here_is_sound(tmp_path):
    """Every refusal below is of the one thing that differs."""
    (tmp_path / "fabric.json").write_text(json.dumps(listed()), encoding="utf-8")
    assert len(accelerators(read(tmp_path / "fabric.json"))) == 4


# Row 1: accelerators in more than one strongly connected component.


def test_islands_are_named_with_number_size_and_a_member_of_each(tmp_path):
    """A switch apart with two chips of its own."""
    apart = [{"id": "x", **CHIP}, {"id": "y", **CHIP}, {"id": "s", **HUB}]
    wires = [{"source": name, "target": "s", **WIRE} for name in "xy"]
    (problem,) = refused(tmp_path, listed(nodes=apart, links=wires))
    assert "the accelerators form 2 islands, of 2 chips (1 times), 4 chips (1 times)" in problem
    assert problem.endswith("members: 'gpu0', 'x'")


def test_a_way_there_without_a_way_back_makes_islands(tmp_path):
    """The same list, but each link one way only."""
    (problem,) = refused(tmp_path, {**listed(), "directed": True})
    assert "form 4 islands, of 1 chips (4 times)" in problem


def test_overrides_that_cut_a_fabric_in_two_are_refused(tmp_path):
    """A line of chips that loses a link in the middle."""
    text = """
kind: torus
dims: [6]
link: 45 GB/s
wrap: false
overrides:
  - {link: [[1], [2]], remove: true}
"""
    (problem,) = refused(tmp_path, text, ".yaml")
    assert problem.startswith("line 7, column 5: overrides[0]: ")
    assert "form 2 islands, of 2 chips (1 times), 4 chips (1 times)" in problem


# Row 2: bandwidth 0, negative, NaN, inf, bool, string.

IN_JSON = [
    ("0", "is 0; leave the link out to model a failure"),
    ("0.0", "is 0; leave the link out to model a failure"),
    ("-45e9", "must be above 0"),
    ("NaN", "a finite number was expected"),
    ("Infinity", "a finite number was expected"),
    ("-Infinity", "a finite number was expected"),
    ("1e999", "a finite number was expected"),
    ("true", "is True; a number was expected"),
    ("false", "is False; a number was expected"),
    ("null", "is None; a number was expected"),
    ('"45 GB/s"', "is the text '45 GB/s'; a number was expected, in byte/s"),
    ('"450e9"', "is the text '450e9'; a number was expected"),
    ("[45e9]", "a number was expected"),
    ("{}", "a number was expected"),
    ("1e-320", "no network is that slow"),
    ("1e300", "no network is that fast"),
    ("1" + "0" * 400, "a smaller number was expected"),
]


@for_all(("bandwidth", "said"), IN_JSON, ids=[text[:12] for text, _ in IN_JSON])
def test_a_bandwidth_that_is_none_is_refused_in_json(bandwidth, said, tmp_path):
    """With the number of the record and its ends; the hint says how a failure is modelled."""
    text = json.dumps(listed(links_2={"bandwidth": "HERE"})).replace('"HERE"', bandwidth)
    problems = refused(tmp_path, text)
    assert any(
        problem.startswith("links[2], 'gpu2' -> 'nvswitch': bandwidth ") and said in problem
        for problem in problems
    )


IN_YAML = [
    ("0", "is 0; leave the link out to model a failure"),
    ("0 GB/s", "is 0; leave the link out to model a failure"),
    ("-45 GB/s", "must be above 0"),
    (".nan", "a finite number was expected"),
    (".inf", "a finite number was expected"),
    ("1e999", "a finite number was expected"),
    ("true", "is True; a number was expected"),
    ("~", "is empty; one value was expected"),
    ("fast", "which does not begin with a number; a rate such as 45 GB/s"),
    ("'45e9'", "without a unit"),
    ("45 GB", "did you mean '45 GB/s'?"),
    ("[45e9, [1]]", "one value was expected"),
    ("{bandwith: 45e9}", "unknown key 'bandwith'; did you mean 'bandwidth'?"),
]


@for_all(("bandwidth", "said"), IN_YAML, ids=[text[:16] for text, _ in IN_YAML])
def test_a_bandwidth_that_is_none_is_refused_in_yaml(bandwidth, said, tmp_path):
    """With line and column."""
    problems = refused(tmp_path, f"kind: torus\ndims: [4]\nlink: {bandwidth}\n", ".yaml")
    assert any(problem.startswith("line 3, column ") and said in problem for problem in problems)


# Row 3: duplicate node id, duplicate key, self-loop, dangling endpoint.


def test_an_id_that_two_nodes_have_is_refused_with_both(tmp_path):
    """A graph would make one node of them."""
    problems = refused(tmp_path, listed(nodes=[{"id": "gpu1", **CHIP}]))
    assert problems == ["nodes[5], id 'gpu1': nodes[1] has this id already"]


def test_a_yaml_key_that_is_given_twice_is_refused_with_both(tmp_path):
    """Most readers keep the last one."""
    text = "kind: torus\ndims: [4, 4]\nlink: 45 GB/s\ndims: [8, 8]\n"
    assert refused(tmp_path, text, ".yaml") == [
        "line 4, column 1: duplicate key 'dims', first given at line 2, column 1"
    ]
    nested = "kind: torus\ndims: [4]\nlink: {bandwidth: 1 GB/s, latency: 0,\n  bandwidth: 2 GB/s}\n"
    assert refused(tmp_path, nested, ".yaml") == [
        "line 4, column 3: duplicate key 'bandwidth', first given at line 3, column 8"
    ]


def test_a_json_key_that_is_given_twice_is_refused_with_its_record(tmp_path):
    """JSON readers keep the last one, too."""
    text = json.dumps(listed()).replace('"id": "gpu2",', '"id": "gpu2", "domain": 7,')
    assert refused(tmp_path, text) == ["nodes[2], id 'gpu2': the key 'domain' is given 2 times"]


def test_a_link_of_a_node_to_itself_is_refused(tmp_path):
    """In a list and in overrides of a description."""
    loop = {"source": "gpu1", "target": "gpu1", **WIRE}
    assert refused(tmp_path, listed(links=[loop])) == [
        "links[4], 'gpu1' -> 'gpu1': a node cannot be linked to itself"
    ]


def test_an_end_that_is_not_listed_is_refused_with_what_was_meant(tmp_path):
    """A graph would invent it."""
    problems = refused(tmp_path, listed(links_1={"source": "gpu11", "target": "s"}))
    assert problems == [
        "links[1], 'gpu11' -> 's': source 'gpu11' is no node; did you mean 'gpu1'?",
        "links[1], 'gpu11' -> 's': target 's' is no node",
    ]


def test_an_end_of_a_graph_that_is_not_declared_is_refused():
    """The same of a graph that was built by hand."""
    G = switch(2, up=1e9)
    G.add_edge((0,), (7,), **WIRE)
    with pytest.raises(TopologyError, match=r"node \(7,\): it is not declared; an arc from or to"):
        check(G)


# Row 4: two links between the same two nodes.


def test_two_links_of_the_same_two_are_refused(tmp_path):
    """A graph would keep the last one."""
    again = {"source": "gpu0", "target": "nvswitch", **WIRE}
    (problem,) = refused(tmp_path, listed(links=[again]))
    assert problem.startswith("links[4], 'gpu0' -> 'nvswitch': links[0] joins these two already")
    assert '"parallel": true' in problem
    other_way = {"source": "nvswitch", "target": "gpu0", **WIRE}
    assert len(refused(tmp_path, listed(links=[other_way]))) == 1
    half = listed(links=[{**again, "parallel": True}])
    assert len(refused(tmp_path, half)) == 1


def test_links_that_say_they_are_parallel_are_summed(tmp_path):
    """Rates and counts; a link with a count has the rate of all its cables."""
    again = {"source": "gpu0", "target": "nvswitch", **WIRE, "parallel": True, "count": 2}
    text = listed(links=[again], links_0={"parallel": True}, links_1={"count": 3})
    (tmp_path / "fabric.json").write_text(json.dumps(text), encoding="utf-8")
    G = read(tmp_path / "fabric.json")
    for arc in (("gpu0", "nvswitch"), ("nvswitch", "gpu0")):
        assert (G.edges[arc]["bandwidth"], G.edges[arc]["count"]) == (900e9, 3)
    assert (G.edges["gpu1", "nvswitch"]["bandwidth"]) == 450e9
    with pytest.raises(TopologyError, match="joined already"):
        link(G, "gpu1", "nvswitch", bandwidth=450e9)


@pytest.mark.parametrize("other", [{"latency": 1e-6}, {"tier": "scale_out"}], ids=str)
def test_parallel_links_of_different_sorts_are_not_summed(other, tmp_path):
    """One latency cannot stand for two."""
    again = {"source": "gpu0", "target": "nvswitch", **WIRE, "parallel": True, **other}
    (problem,) = refused(tmp_path, listed(links=[again], links_0={"parallel": True}))
    assert f"cables in parallel have one {next(iter(other))}" in problem


# Row 5: latency below 0, or 0.1 s and above.


@pytest.mark.parametrize(
    ("latency", "said"),
    [
        (-1e-9, "cannot be below 0"),
        (0.1, "less than 0.1 s was expected (given in us or ns?)"),
        (1.5, "less than 0.1 s was expected (given in us or ns?)"),
        (500, "less than 0.1 s was expected (given in us or ns?)"),
        (True, "a number was expected"),
        ("1 us", "a number was expected"),
        (None, "a number was expected"),
    ],
    ids=str,
)
def test_a_latency_that_is_none_is_refused(latency, said, tmp_path):
    """In a list, and in a description where a text may have a unit."""
    (problem,) = refused(tmp_path, listed(links_3={"latency": latency}))
    assert problem.startswith("links[3], 'gpu3' -> 'nvswitch': latency ")
    assert said in problem
    if latency != "1 us":
        text = f"kind: mesh\nchips: 4\nlink: 64 GB/s\nlatency: {json.dumps(latency)}\n"
        (problem,) = refused(tmp_path, text, ".yaml")
        assert problem.startswith("line 4, column 10: latency is ")


# Row 6: a bandwidth below 1 MB/s or above 100 TB/s.


@pytest.mark.parametrize(("up", "said"), [(450, "below 1 MB/s"), (450e18, "above 100 TB/s")])
def test_a_bandwidth_that_looks_like_a_slip_is_warned_of(up, said, tmp_path):
    """It is sound: the file is read, and the warning names the arcs."""
    (tmp_path / "fabric.yaml").write_text(f"kind: switch\nchips: 2\nup: {up}\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=said):
        G = read(tmp_path / "fabric.yaml")
    assert len(suspicions(G)) == 1


# Row 7: a group of one.


def solver_is(monkeypatch, answer):
    """Replace the linear-program solver wherever the package holds it."""
    importlib.import_module("topologies.rates.flow")
    importlib.import_module("topologies.rates.concurrent_collectives")
    held = [m for name, m in sys.modules.items() if name.startswith("topologies.")]
    held = [module for module in held if hasattr(module, "linprog")]
    assert held
    for module in held:
        monkeypatch.setattr(module, "linprog", answer)


def never(*_, **__):
    """A solver that must not be asked."""
    raise AssertionError("a linear program was solved")


@pytest.mark.parametrize("name", ["hgx-h100", "mi300x-8", "tpu-v5p"])
def test_a_group_of_one_takes_no_time_and_no_program(name, monkeypatch):
    """Its latency is exactly 0 and its rates are those of the chip's own links."""
    solver_is(monkeypatch, never)
    alone = group_rate(machine(name), 1)
    assert (alone.latency, alone.step_latency, alone.latency_hops, alone.domains) == (0, 0, 0, 1)
    assert alone.all_to_all == alone.all_gather == alone.send == machine(name).scale_up


def test_a_group_of_one_among_others_sends_nothing():
    """The others are as fast as without it, and alone it has no rate at all."""
    G = switch(5, up=1e9)
    pairs_ = [[(0,), (1,)], [(2,), (3,)]]
    assert concurrent_flow(G, all_to_all(*pairs_, [(4,)])).rate == pytest.approx(1e9)
    assert joint_rate(G, [*pairs_, [(4,)]]).rate == pytest.approx(1e9)
    for ask in (all_to_all_rate, all_gather_rate):
        with pytest.raises(TopologyError):
            ask(G, [(0,)])


# Row 8: more ranks than accelerators, or a chip that is not there.


def test_a_layout_larger_than_the_fabric_is_refused():
    """The product is written out."""
    with pytest.raises(TopologyError, match=r"tp 4 \* ep 3 = 12 ranks, on 8 accelerators"):
        place(switch(8, up=1e9), {"tp": 4, "ep": 3})


def test_a_group_over_a_missing_accelerator_is_refused():
    """A chip that an override took away has no rank."""
    G = override(torus((4, 4), link=1e9), [{"node": [1, 1], "remove": True}])
    chips = [(x, y) for x in range(4) for y in range(4)]
    with pytest.raises(TopologyError, match=r"rank 5: \(1, 1\) is not in the fabric"):
        place(G, {"tp": 16}, chips=chips)


# Row 9: chips that do not relay, and no way over switches.


def test_rails_without_relays_and_without_a_spine_have_no_permitted_path(tmp_path):
    """Two boards joined rail by rail: a chip reaches another rank only through a chip."""
    with pytest.raises(TopologyError, match=r"no permitted path from \(0, 0\) to \(1, 1\)"):
        rails(2, 2, up=450e9, out=50e9, relay="none")
    text = "kind: rails\nnodes: 2\nchips: 2\nup: 450 GB/s\nout: 50 GB/s\nrelay: none\n"
    (problem,) = refused(tmp_path, text, ".yaml")
    assert "no permitted path" in problem
    assert problem.startswith("line 1, column 7: ")


def test_a_list_whose_chips_do_not_relay_is_refused(tmp_path):
    """A chip that hangs on another chip."""
    new = {"id": "far", **CHIP}
    wire = {"source": "far", "target": "gpu0", **WIRE}
    (problem,) = refused(tmp_path, listed(nodes=[new], links=[wire]))
    assert "no permitted path from 'gpu1' to 'far'" in problem
    assert "set forward on those that may relay, or add a switch" in problem


def rails_without_relays():
    """A graph that was never checked: the flow program alone would report a rate of 0."""
    G = rails(2, 2, up=450e9, out=50e9, relay="all")
    for chip in accelerators(G):
        G.nodes[chip]["forward"] = False
    return G


@pytest.mark.parametrize("routing", ["optimal", "shortest_ecmp"])
def test_engines_refuse_a_fabric_without_a_permitted_path(routing):
    """No rate of 0 comes out, whoever is asked."""
    with pytest.raises(TopologyError, match=r"no permitted path|no way"):
        all_to_all_rate(rails_without_relays(), routing=routing)


def test_an_exchange_that_does_have_a_path_is_answered():
    """Chips of equal rank meet on their rail."""
    flow = all_to_all_rate(rails_without_relays(), [(0, 0), (1, 0)])
    assert flow.rate == pytest.approx(50e9)


# Row 10: the solver reports no optimum.


@pytest.mark.parametrize(
    ("status", "message"),
    [(1, "Iteration limit reached."), (2, "infeasible"), (3, "unbounded"), (4, "numerical")],
)
def test_what_the_solver_reports_is_told_and_never_a_number(status, message, monkeypatch):
    """The engine raises with the status, whatever value came with it."""
    answer = OptimizeResult(status=status, message=message, fun=-1.0, x=None)
    solver_is(monkeypatch, lambda *_, **__: answer)
    with pytest.raises(TopologyError, match=message):
        all_to_all_rate(torus((3, 4), link=1e9))
    with pytest.raises(TopologyError, match=message):
        joint_rate(torus((3, 4), link=1e9), [[(0, 0), (1, 0)], [(2, 0), (2, 1)]])


# All together.


def test_all_faults_of_a_list_are_told_at_once(tmp_path):
    """Each with the number of its record and its id."""
    nodes = [{"id": "gpu0", **CHIP}, {"id": True, **CHIP}, {**HUB}, 7, {"id": "s", "kind": "hub"}]
    links = [{"source": "gpu0", "target": "gpu0", "bandwidth": 0, "latency": 2}, "gpu0-gpu1"]
    text = {**listed(nodes=nodes, links=links, links_1={"count": 0, "colour": 3}), "linsk": []}
    problems = refused(tmp_path, text)
    for said in (
        "file: unknown key 'linsk'; did you mean 'links'?",
        "nodes[5], id 'gpu0': nodes[0] has this id already",
        "nodes[6], id True: an id is a text, a whole number or a list of these",
        "nodes[7]: no id",
        "nodes[8]: an object was expected, not 7",
        "nodes[9], id 's': kind is 'hub'; one of accelerator, switch, nic, host was expected",
        "nodes[9], id 's': forward is None; True or False was expected",
        "links[1], 'gpu1' -> 'nvswitch': unknown attribute 'colour'; known: bandwidth",
        "links[1], 'gpu1' -> 'nvswitch': count is 0; it must be at least 1",
        "links[4], 'gpu0' -> 'gpu0': a node cannot be linked to itself",
        "links[4], 'gpu0' -> 'gpu0': bandwidth is 0",
        "links[4], 'gpu0' -> 'gpu0': latency is 2",
        "links[4], 'gpu0' -> 'gpu0': tier is None",
        "links[5]: an object was expected, not 'gpu0-gpu1'",
    ):
        assert any(problem.startswith(said) for problem in problems), said
    assert len(problems) == 14


def test_all_faults_of_a_description_are_told_at_once(tmp_path):
    """Each with line and column, those of fabrics inside it too."""
    text = """\
kind: hierarchy
nmae: pods
count: two
out: 50 GB
latency: 5
name: [a]
domain:
  kind: torsu
  dims: 4
overrides: none
"""
    assert refused(tmp_path, text, ".yaml") == [
        "line 2, column 1: unknown key 'nmae'; did you mean 'name'?",
        "line 3, column 8: count is 'two'; a whole number of at least 1 was expected",
        "line 4, column 6: out is '50 GB', which is a size; did you mean '50 GB/s'?",
        "line 5, column 10: latency is 5; less than 0.1 s was expected (given in us or ns?)",
        "line 6, column 7: name is ['a']; a line of text was expected",
        "line 8, column 9: domain.kind is 'torsu'; did you mean 'torus'?",
    ]


@for_all(
    ("text", "said"),
    [
        ("dims: [4]\nkind: torus\n", "link is missing, which a torus needs"),
        ("kind: torus\nmachine: tpu-v4\n", "kind and machine are both given"),
        ("knid: torus\n", "neither kind nor machine is given; did you mean 'kind'?"),
        ("builder: hgx\n", "is given, but 'builder'; kinds are switch, planes, mesh, torus"),
        ("nodes: []\nlinks: []\n", "nodes and links are listed in a .json file"),
        ("- kind: torus\n", "a mapping with kind or machine was expected, not [{'kind'"),
        ("torus\n", "a mapping with kind or machine was expected, not 'torus'"),
        ("kind: torus\ndims: 4\nlink: 1 GB/s\n", "dims is 4; a list was expected"),
        ("kind: torus\ndims: []\nlink: 1 GB/s\n", "dims is (); one to three sides"),
        ("kind: torus\ndims: [4, 4.0]\nlink: 1 GB/s\n", "dims[1] is 4.0; a whole number"),
        ("kind: torus\ndims: [4, 4]\nlink: [1 GB/s]\n", "link has 1 entries for 2"),
        ("kind: torus\ndims: [4]\nlink: 1 GB/s\nwrap: yes\n", "true or false was expected"),
        ("kind: mesh\nchips: 1000000\nlink: 1 GB/s\n", "at most 60,000 are made"),
        ("kind: mesh\nchips: 99999999999\nlink: 1 GB/s\n", "at most 1000000000 was expected"),
        ("kind: clos\nchips: 8\nleaf: 4\nout: 1 GB/s\noversubscription: .inf\n", "such as 4 for"),
        ("kind: clos\nchips: 8\nleaf: 4\nout: 1 GB/s\noversubscription: 0.5\n", "at least 1"),
        ('kind: mesh\nchips: 2\nlink: 1 GB/s\nname: "a\\nb"\n', "a line of text was expected"),
        ("machine: gb200-nvl27\n", "did you mean 'gb200-nvl72'?"),
        ("machine: gb200-nvl72\nchips: 100\n", "100 chips are not whole domains of 72"),
        ("machine: gb200-nvl72\nchips: 720000000\n", "at most 60,000 are made"),
        ("machine: [a]\n", "machine is ['a']"),
        ("machine: tpu-v5p\nshape: [4, 4, 5]\n", "4x4x5"),
        ("machine: hgx-h100\nshape: [8]\n", "a switch has no slices"),
        ("machine: hgx-h100\nlink: 45 GB/s\n", "unknown key 'link'"),
        (
            "kind: mesh\nchips: 2\nlink: {bandwidth: 1 GB/s, latency: 1 us}\nlatency: 2 us\n",
            "latency is given, and as the latency of link too",
        ),
        (
            "kind: dragonfly\np: 1\na: 2\nh: 1\nup: {bandwidth: 1 GB/s, latency: 1 us}\n"
            "local: {bandwidth: 1 GB/s, latency: 2 us}\nout: 1 GB/s\n",
            "up has another latency, and these have one",
        ),
        (
            "kind: mesh\nchips: 2\nlink: 1 GB/s\n"
            "overrides: [{link: [[0], [1]], bandwidth: 1 GB}]\n",
            "overrides[0].bandwidth is '1 GB', which is a size",
        ),
        (
            "kind: mesh\nchips: 2\nlink: 1 GB/s\noverrides: [{link: [[0], [5]], factor: 0.5}]\n",
            "overrides[0]: no node (5,)",
        ),
        ("kind: mesh\nchips: 2\nlink: 1 GB/s\noverrides: {}\n", "a list of changes was expected"),
        ("kind: mesh\nchips: !!python/object:os.system 2\nlink: 1 GB/s\n", "tags such as"),
        ("kind: &a [*a]\n", "unknown alias *a, or one inside what it names"),
        ("kind: mesh\n---\nkind: torus\n", "expected one document, a second one begins here"),
        ("kind: [mesh\n", "not YAML"),
        ("[" * 5000, "more than 30 levels deep"),
        ("a: &a [1]\nb: &b [" + "*a, " * 400 + "]\nc: [" + "*b, " * 400 + "]\n", "values, aliases"),
        ("# nothing\n", "the file holds nothing"),
    ],
    ids=lambda value: value[:30],
)
def test_a_description_that_is_none_is_refused(text, said, tmp_path):
    """Misspelt, mistyped, too large or not YAML: always with a place."""
    problems = refused(tmp_path, text, ".yaml")
    assert any(said in problem for problem in problems), problems
    assert all(problem.startswith("line ") for problem in problems)


@for_all(
    ("text", "said"),
    [
        ("[]", "an object with nodes and links was expected"),
        ("{", "line 1, column 2: not JSON"),
        ('{"nodes": []}', "no links; a list of records was expected"),
        ('{"nodes": [], "links": []}', "no node of kind 'accelerator'"),
        ('{"nodes": {}, "links": 3}', "nodes is {}; a list of records was expected"),
        ('{"nodes": [], "links": [], "edges": []}', "two names of one list"),
        ('{"nodes": [], "links": [], "directed": 1}', "directed is 1; true or false"),
        ('{"nodes": [], "links": [], "graph": []}', "graph is []; an object was expected"),
        ('{"nodes": [], "links": [], "graph": {"name": 3}}', "graph: name is 3; a line of text"),
        ('{"nodes": [], "links": [], "graph": {"colour": 3}}', "unknown attribute 'colour'"),
        ('{"nodes": [], "links": [], "graph": {"schema_version": 2}}', "schema_version is 2"),
        ('{"nodes": ["\\ud800"], "links": []}', "holds half a character"),
        ('{"nodes": [], "links": [' + "[" * 60 + "]" * 60 + "]}", "more than 12 levels deep"),
        ("[" * 100000, "not JSON"),
        ('{"nodes": [' + "9" * 5000 + '], "links": []}', "not JSON"),
    ],
    ids=lambda value: value[:30],
)
def test_a_list_that_is_none_is_refused(text, said, tmp_path):
    """Misspelt, mistyped, or not JSON."""
    assert any(said in problem for problem in refused(tmp_path, text))


@for_all(
    ("suffix", "content", "said"),
    [
        (".yaml", b"", "the file is empty"),
        (".json", b" \n\t", "the file is empty"),
        (".yaml", b"kind: torus\nname: caf\xe9\n", "line 2: byte 21 (0xe9) is not UTF-8"),
        (".json", b"\xff\xfe{}", "line 1: byte 0 (0xff) is not UTF-8"),
        (".yaml", b"kind: \x00", "not YAML"),
        (".yaml", b"#" * (2**20 + 1), "it has 1048577 bytes; at most 1048576 are read"),
        (".graphml", b"<graphml/>", "GraphML is written and not read"),
        (".txt", b"kind: torus", "a line of columns from GPU0 on was expected"),
        ("", b"kind: torus", "ends in one of .yaml, .yml, .json, .xml, .txt was expected"),
    ],
)
def test_a_file_that_cannot_be_a_fabric_is_refused(suffix, content, said, tmp_path):
    """Empty, of another encoding, too large, of another kind."""
    (problem,) = refused(tmp_path, content, suffix)
    assert said in problem


def test_a_file_that_is_not_there_is_refused_with_what_was_meant(tmp_path):
    """A misspelt name, a directory that is missing, a directory instead of a file."""
    (tmp_path / "pod.yaml").write_text("kind: mesh\n", encoding="utf-8")
    (tmp_path / "rack.yaml").mkdir()
    for name, said in [
        ("pood.yaml", "no such file; did you mean 'pod.yaml'?"),
        ("other/pod.yaml", "no such file; there is no directory"),
        ("rack.yaml", "it is a directory; a file was expected"),
        ("a\0b.yaml", "a\0b.yaml: "),
        ("x" * 300 + ".yaml", "it cannot be read: file name too long"),
    ]:
        with pytest.raises(TopologyError) as caught:
            read(tmp_path / name)
        assert said in str(caught.value)


def test_a_byte_order_mark_is_no_fault(tmp_path):
    """Some editors write one."""
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfkind: mesh\nchips: 2\nlink: 1 GB/s\n")
    assert len(read(tmp_path / "a.yaml")) == 2


def test_a_fabric_made_by_hand_is_judged_as_one_from_a_file():
    """Attributes of the wrong kind are found in a graph, too."""
    G = fabric("by hand")
    G.add_node("a", kind="accelerator", forward=True, domain=0.5, coord=[0])
    G.add_node("s", kind="switch", forward=True, in_network_reduce=1, orbit={})
    link(G, "a", "s", bandwidth=1e9)
    G.graph["source"] = 3
    with pytest.raises(TopologyError) as caught:
        check(G)
    assert list(caught.value.problems) == [
        "fabric: source is 3; a line of text was expected",
        "node 'a': coord is [0]; a tuple of whole numbers was expected",
        "node 'a': domain is 0.5; a name, a whole number or a tuple was expected",
        "node 's': in_network_reduce is 1; True or False was expected",
        "node 's': orbit is {}; a name, a whole number or a tuple was expected",
    ]


def test_sound_files_are_read_without_a_word(tmp_path):
    """No warning where nothing is odd."""
    (tmp_path / "a.json").write_text(json.dumps(listed()), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(tmp_path / "a.json")
    assert {str(node) for node in found} == {node["id"] for node in listed()["nodes"]}


def test_bandwidths_that_no_solver_tells_apart_are_refused(tmp_path):
    """A link of a byte every ten seconds beside one of 450 GB/s ended in a fault of the solver."""
    (problem,) = refused(tmp_path, listed(links_1={"bandwidth": 0.1}))
    assert problem.startswith("arc ")
    assert "has 4.5e+11 byte/s" in problem
    assert problem.endswith(" 0.1: at most 1e+12 times as much can be told apart")


def test_a_value_equal_to_a_sound_one_of_another_type_is_still_refused():
    G = switch(3, up=1e9)
    first, second, third, *_ = G.edges
    G.edges[first]["count"], G.edges[second]["count"], G.edges[third]["count"] = 1, 1.0, True
    with pytest.raises(TopologyError) as error:
        check(G)
    assert [problem.split(":")[1] for problem in error.value.problems] == [
        " count is 1.0; a whole number of at least 1 was expected",
        " count is True; a whole number of at least 1 was expected",
    ]
