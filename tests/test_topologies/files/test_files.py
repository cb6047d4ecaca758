"""Fabrics in files: what is written is read again, and a description is what its builder makes."""

from __future__ import annotations

import inspect
import json
import os
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import topologies
from tests.loops import for_all
from topologies import TopologyError, hierarchy, mesh, read, switch, torus, twisted_torus, write
from topologies.builders import BUILDERS
from topologies.fabric.fabric import accelerators, fabric, link
from topologies.files.arc_counts import arcs
from topologies.files.description import RATIOS
from topologies.files.units import UnitMismatch, latency, rate

SMALL = {
    "switch": {"chips": 4, "up": 450e9, "latency": 5e-7, "in_network_reduce": True},
    "planes": {"chips": 4, "switches": 2, "up": 450e9},
    "mesh": {"chips": 4, "link": 64e9, "latency": 1e-6, "relay": True},
    "torus": {"dims": (3, 4), "link": (45e9, 1 / 3e-9), "wrap": (True, False)},
    "twisted_torus": {"dims": (2, 4), "link": 100e9},
    "rails": {"nodes": 2, "chips": 3, "up": 450e9, "out": 50e9, "out_latency": 2.5e-6},
    "clos": {"chips": 8, "out": 50e9, "leaf": 4, "oversubscription": 2, "spines": 2},
    "dragonfly": {"p": 1, "a": 2, "h": 1, "up": 50e9, "local": 40e9, "out": 30e9},
    "hierarchy": {"domain": mesh(3, link=64e9), "count": 2, "out": 50e9, "latency": 2e-6},
}
FABRICS = {name: BUILDERS[name](**given) for name, given in SMALL.items()}


def contents(G):
    """All that a fabric holds, in its order."""
    return dict(G.graph), list(G.nodes(data=True)), list(G.edges(data=True))


def described(tmp_path: Path, text: str):
    """The fabric of a YAML text."""
    file = tmp_path / "fabric.yaml"
    file.write_text(text, encoding="utf-8")
    return read(file)


@for_all(
    ("text", "value"),
    [
        ("45 GB/s", 45e9),
        ("45GB/s", 45e9),
        ("400 Gbit/s", 50e9),
        ("400 Gb/s", 50e9),
        ("400 Gbps", 50e9),
        ("50 GBps", 50e9),
        ("1 GiB/s", 2.0**30),
        ("1 Gib/s", 2.0**27),
        ("8 bit/s", 1.0),
        ("1_000 MB/s", 1e9),
        ("0.9 TB/s", 900e9),
        (".9 TB/s", 900e9),
        ("1e-3 TB/s", 1e9),
        ("900 kB/s", 900e3),
        ("2 bytes/s", 2.0),
        (45e9, 45e9),
        (45_000_000_000, 45e9),
    ],
)
def test_a_rate_is_read_with_its_unit(text, value):
    """Bits are eighths of bytes, Gi is 2**30, a plain number is byte/s."""
    assert rate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 us", 1e-6), ("0.5us", 5e-7), ("2 µs", 2e-6), ("300 ns", 3e-7), ("5 ms", 5e-3), (0, 0.0)],
)
def test_a_time_is_read_with_its_unit(text, value):
    """A plain number is seconds."""
    assert latency(text) == value


@for_all(
    ("what", "text", "said"),
    [
        (rate, "45 GB", "which is a size; did you mean '45 GB/s'?"),
        (rate, "45 gb/s", "did you mean 'Gb' (bits) or 'GB' (bytes)?"),
        (rate, "45e9", "without a unit"),
        (rate, "400G", "did you mean '400GB/s' or '400Gbit/s'?"),
        (rate, "1 us", "which is no rate; a rate such as 45 GB/s"),
        (rate, "fast", "which does not begin with a number; a rate such as 45 GB/s"),
        (rate, "0 GB/s", "leave the link out to model a failure"),
        (rate, "1e400 GB/s", "a finite number was expected"),
        (rate, "1e-400 GB/s", "is 0"),
        (rate, "1e30 TB/s", "no network is that fast"),
        (rate, "1,5 GB/s", "without a comma"),
        (rate, "9" * 200, "is the text '999"),
        (rate, True, "a number was expected"),
        (rate, None, "a number was expected"),
        (rate, 10**400, "a smaller number was expected"),
        (latency, "1 s", "less than 0.1 s was expected"),
        (latency, "-1 us", "cannot be below 0"),
        (latency, "1 m", "did you mean 'min' or 'ms'?"),
        (latency, "3 GB/s", "which is no time"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_quantity_is_told_with_what_was_meant(what, text, said):
    """The message names the unit that would have been right."""
    with pytest.raises(UnitMismatch) as caught:
        what(text)
    assert said in str(caught.value)


@for_all("G", FABRICS.values(), ids=FABRICS)
def test_json_gives_the_same_fabric_back(G, tmp_path):
    """Ids, attributes, their types and their order survive."""
    write(G, tmp_path / "a.json")
    assert contents(read(tmp_path / "a.json")) == contents(G)


def test_json_keeps_ids_of_every_sort_and_numbers_of_arrays(tmp_path):
    """Texts, whole numbers and nested tuples are ids; what numpy made becomes plain."""
    G = fabric("mixed", source="drawn", as_of="2026-11-21")
    for node in ("a", 0, "0", ("a", (1, "b"))):
        G.add_node(node, kind="accelerator", forward=True, domain=("pod", np.int64(1)))
    for u, v in [("a", 0), (0, "0"), ("0", ("a", (1, "b")))]:
        link(G, u, v, bandwidth=np.float64(1 / 3e-9), latency=1e-7, count=3)
    write(G, tmp_path / "a.json")
    assert contents(read(tmp_path / "a.json")) == contents(G)


def test_networkx_node_link_data_is_read(tmp_path):
    """What the graph library writes itself is the same form, whichever name its list has."""
    for edges in ("links", "edges"):
        data = nx.node_link_data(FABRICS["torus"], edges=edges)
        (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
        assert contents(read(tmp_path / "a.json")) == contents(FABRICS["torus"])


def test_an_undirected_list_is_a_link_each_way(tmp_path):
    """`"directed": false` halves the list of a fabric whose links are alike both ways."""
    chip = {"kind": "accelerator", "forward": False, "domain": 0}
    wire = {"bandwidth": 1e9, "latency": 0, "tier": "scale_up"}
    text = {
        "directed": False,
        "nodes": [{"id": name, **chip} for name in "ab"],
        "links": [{"source": "a", "target": "b", **wire}],
    }
    (tmp_path / "pair.json").write_text(json.dumps(text), encoding="utf-8")
    G = read(tmp_path / "pair.json")
    assert set(G.edges) == {("a", "b"), ("b", "a")}
    assert G.graph["name"] == "pair"


@for_all("name", SMALL)
def test_a_description_is_what_its_builder_makes(name, tmp_path):
    """Every kind can be written as YAML with the arguments of its builder."""
    given = dict(SMALL[name])
    lines = [f"kind: {name}"]
    for key, value in given.items():
        if isinstance(value, nx.DiGraph):
            lines.append(f"{key}: {{kind: mesh, chips: 3, link: 64e9}}")
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    assert contents(described(tmp_path, "\n".join(lines))) == contents(FABRICS[name])


def test_a_link_says_its_bandwidth_and_its_latency(tmp_path):
    """Each goes to the argument that it belongs to."""
    text = (
        "kind: rails\nnodes: 2\nchips: 4\nup: {bandwidth: 450 GB/s, latency: 0.5 us}\n"
        "out: {bandwidth: 400 Gbit/s, latency: 2.5 us}\n"
    )
    G = described(tmp_path, text)
    assert G.edges[(0, 0), (0, "switch")]["latency"] == 0.5e-6
    assert G.edges[(0, 0), ("rail", 0)]["latency"] == 2.5e-6
    assert G.edges[(0, 0), ("rail", 0)]["bandwidth"] == 50e9


def test_descriptions_nest_and_carry_their_sources(tmp_path):
    """A hierarchy of a hierarchy of a machine; the outermost name wins."""
    text = """
kind: hierarchy
name: two pods
count: 2
out: 10 GB/s
at: switches
domain:
  kind: hierarchy
  count: 2
  out: 25 GB/s
  domain: {machine: hgx-h100}
"""
    G = described(tmp_path, text)
    assert len(accelerators(G)) == 32
    assert G.graph["name"] == "two pods"
    assert "H100" in G.graph["source"]


def test_a_machine_of_the_catalogue_is_drawn(tmp_path):
    """With as many chips as are asked for."""
    G = described(tmp_path, "machine: gb200-nvl72\nchips: 144\nsource: mine\n")
    assert contents(G)[1:] == contents(topologies.graph("gb200-nvl72", 144))[1:]
    assert G.graph["source"] == "mine"


def test_a_machine_may_be_a_slice_or_joined_in_another_way(tmp_path):
    """Keys are the arguments of `machine` and `graph`."""
    G = described(tmp_path, "machine: tpu-v5p\nshape: [4, 4, 8]\ntwisted: true\n")
    links = {arc["bandwidth"] for _, _, arc in G.edges(data=True)}
    assert set(G.edges) == set(twisted_torus((4, 4, 8), link=100e9).edges)
    assert links == {100e9}
    G = described(tmp_path, "machine: hgx-h100\nchips: 32\njoin: rails\noversubscription: 2\n")
    assert contents(G) == contents(
        topologies.graph("hgx-h100", 32, join="rails", oversubscription=2)
    )


def test_overrides_change_named_links(tmp_path):
    """Lists are the tuples that name nodes; what is left keeps its figures."""
    text = """
kind: torus
dims: [4, 4, 4]
link: 45 GB/s
overrides:
  - {link: [[0, 0, 0], [0, 0, 1]], bandwidth: 22.5 GB/s, latency: 2 us}
  - {link: [[1, 1, 1], [1, 1, 2]], remove: true}
"""
    G = described(tmp_path, text)
    assert G.edges[(0, 0, 1), (0, 0, 0)]["bandwidth"] == 22.5e9
    assert G.edges[(0, 0, 1), (0, 0, 0)]["latency"] == 2e-6
    assert G.number_of_edges() == 384 - 2
    assert not G.graph["orbits"]


def test_every_argument_of_a_builder_is_read_as_what_it_is():
    """An argument is read as a rate just if its builder says byte/s of it, and so on."""
    for name, builder in BUILDERS.items():
        for argument, parameter in inspect.signature(builder).parameters.items():
            kind = parameter.annotation
            if "float" not in kind:
                assert any(word in kind for word in ("int", "bool", "str", "Fabric")), argument
                continue
            told = inspect.getdoc(builder).split("Args:")[1]
            lines = told.splitlines()
            start = next(i for i, line in enumerate(lines) if argument in line.split(": ")[0])
            body = next(
                (i for i in range(start + 1, len(lines)) if not lines[i].startswith(" " * 8)),
                len(lines),
            )
            text = " ".join(lines[start:body])
            if argument.endswith("latency"):
                assert "[s]" in text, (name, argument)
            elif argument not in RATIOS:
                assert "byte/s" in text, (name, argument)


@for_all("name", SMALL)
def test_the_size_of_a_fabric_is_known_before_it_is_made(name):
    """The bound is never below what the builder makes."""
    assert arcs(name, SMALL[name]) >= FABRICS[name].number_of_edges()


def test_graphml_has_typed_attributes_and_readable_ids(tmp_path):
    """Another program finds numbers as numbers and nodes under names it can show."""
    write(FABRICS["hierarchy"], tmp_path / "a.graphml")
    root = ET.parse(tmp_path / "a.graphml").getroot()
    types = {k.get("id"): k.get("attr.type") for k in root if k.tag.endswith("key")}
    assert types["bandwidth"] == "double"
    assert types["forward"] == "boolean"
    H = nx.read_graphml(tmp_path / "a.graphml")
    assert H.nodes["1,2"]["kind"] == "accelerator"
    assert H.edges["1,2", "spine"]["bandwidth"] == 50e9
    assert len(H) == len(FABRICS["hierarchy"])


def test_graphml_refuses_ids_that_would_become_one(tmp_path):
    """A tuple and its text are two nodes."""
    G = fabric("twins")
    for node in ((0, 1), "0,1"):
        G.add_node(node, kind="accelerator", forward=True, domain=0)
    link(G, (0, 1), "0,1", bandwidth=1e9)
    with pytest.raises(TopologyError, match=r"its id would be '0,1', as that of \(0, 1\)"):
        write(G, tmp_path / "a.graphml")


def test_the_form_is_what_is_asked_for_or_what_the_suffix_says(tmp_path):
    """A form that the suffix belies is refused, as is a suffix that says nothing."""
    G = switch(2, up=1e9)
    for name, form, said in [
        ("a.txt", None, "one of .json, .graphml, .yml, .yaml was expected"),
        ("a", None, "was expected"),
        ("a.json", "graphml", "a file of the form 'graphml' ends in .graphml"),
        ("a.json", "graphm", "did you mean 'graphml'?"),
        ("no/such/a.json", None, "it cannot be written: no such file or directory"),
    ]:
        with pytest.raises(TopologyError) as caught:
            write(G, tmp_path / name, form)
        assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    """What cannot be written leaves the file before it as it was, and nothing beside it."""
    file = tmp_path / "a.yaml"
    write(torus((3, 3), link=1e9), file)
    before = file.read_bytes()
    with pytest.raises(TopologyError, match="its ends differ in 2 coordinates"):
        write(twisted_torus((2, 4), link=1e9), file)
    unsound = switch(2, up=1e9)
    unsound.edges[(0,), ("switch",)]["bandwidth"] = 0
    with pytest.raises(TopologyError, match="bandwidth is 0"):
        write(unsound, tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    with pytest.raises(TopologyError, match="it cannot be written"):
        write(switch(2, up=1e9), tmp_path / "b.json")
    assert file.read_bytes() == before
    assert {other.name for other in tmp_path.iterdir()} == {"a.yaml", "b.json"}


def test_a_file_keeps_its_permissions_and_a_link_its_file(tmp_path):
    """A new file has the permissions that the process gives, a replaced one its own."""
    file = tmp_path / "a.json"
    before = os.umask(0o027)
    try:
        write(switch(2, up=1e9), file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o600)
    (tmp_path / "b.json").symlink_to("a.json")
    write(switch(3, up=1e9), tmp_path / "b.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (tmp_path / "b.json").is_symlink()
    assert len(read(file)) == 4


def test_unlikely_rates_are_warned_of(tmp_path):
    """45 GB/s written as 45: sound, and pointed out once for all arcs of that rate."""
    with pytest.warns(UserWarning, match=r"arc .* and 15 more: .* below 1 MB/s") as caught:
        G = described(tmp_path, "kind: switch\nchips: 8\nup: 45\n")
    assert len(caught) == 1
    assert G.number_of_edges() == 16


def test_many_unlikely_rates_are_counted(tmp_path):
    """Seven links of as many slow rates: five are told, two counted."""
    changes = ", ".join(f"{{link: [{i}, switch], bandwidth: {40 + i}}}" for i in range(7))
    with pytest.warns(UserWarning, match="unlikely|below 1 MB/s") as caught:
        described(tmp_path, f"kind: switch\nchips: 8\nup: 45e9\noverrides: [{changes}]\n")
    assert len(caught) == 6
    assert str(caught[-1].message).endswith("2 more unlikely bandwidths")


def test_a_description_may_be_json(tmp_path):
    """JSON is YAML: a program may write descriptions, too."""
    (tmp_path / "a.json").write_text('{"kind": "torus",\n "dims": [4, 4], "link": 45e9}\n')
    assert contents(read(tmp_path / "a.json")) == contents(torus((4, 4), link=45e9))
    (tmp_path / "a.json").write_text('{"kind": "torus",\n "dims": [4, 4], "link": 0}\n')
    with pytest.raises(TopologyError, match="line 2, column 26: link is 0"):
        read(tmp_path / "a.json")


def test_a_fabric_of_a_fabric_is_as_the_builder_says(tmp_path):
    """The description of a hierarchy is the hierarchy of the description."""
    text = "kind: hierarchy\ncount: 3\nout: 50e9\ndomain: {kind: switch, chips: 4, up: 450 GB/s}\n"
    G = hierarchy(switch(4, up=450e9), 3, out=50e9)
    assert contents(described(tmp_path, text)) == contents(G)
