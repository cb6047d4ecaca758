"""The picture of a fabric: sound XML, all that matters in it, small however large the pod."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

import topologies
from tests.loops import for_all
from tests.paths import ROOT
from topologies.fabric.fabric import fabric, link
from topologies.fabric.soundness import check
from topologies.picture.degraded_links import find_link_faults
from topologies.picture.scene import Gap, limit_items, read, without_gaps
from topologies.picture.svg_canvas import rate_text, time_text

SVG = "{http://www.w3.org/2000/svg}"


def nic_down() -> topologies.fabric.Fabric:
    """Two HGX nodes on a spine, one chip of which has lost its card."""
    G = topologies.hierarchy(topologies.switch(8, up=450e9), 2, out=50e9)
    G.remove_edge((0, 3), ("spine",))
    G.remove_edge(("spine",), (0, 3))
    return G


def hurt_torus() -> topologies.fabric.Fabric:
    """A torus with a link at half its rate and one that is gone."""
    changes = [
        {"link": [[1, 1, 0], [2, 1, 0]], "factor": 0.5},
        {"link": [[0, 2, 0], [0, 3, 0]], "remove": True},
    ]
    return topologies.override(topologies.torus((4, 4, 4), link=45e9, latency=1e-6), changes)


def by_hand() -> topologies.fabric.Fabric:
    """A small network that no builder makes: cards, links of unequal ways, names as text."""
    G = fabric("by hand")
    for node in ("gpu0", "gpu1", "gpu2"):
        domain = "left" if node != "gpu2" else "right"
        G.add_node(node, kind="accelerator", forward=False, domain=domain)
        G.add_node(f"{node}-nic", kind="nic", forward=True)
        link(G, node, f"{node}-nic", bandwidth=50e9, tier="host")
    for node in ("tor1", "tor2"):
        G.add_node(node, kind="switch", forward=True)
    link(G, "gpu0", "gpu1", bandwidth=100e9)
    for node in ("gpu0", "gpu1", "gpu2"):
        link(G, f"{node}-nic", "tor1", bandwidth=25e9, tier="scale_out")
    link(G, "tor1", "tor2", bandwidth=400e9, tier="scale_out", one_way=True)
    link(G, "tor2", "tor1", bandwidth=200e9, tier="scale_out", one_way=True)
    return check(G)


BOARD = topologies.switch(8, up=450e9, latency=5e-7, in_network_reduce=True)
CASES: dict[str, Callable[[], topologies.fabric.Fabric]] = {
    "one chip": lambda: topologies.switch(1, up=1e9),
    "switch": lambda: BOARD,
    "planes": lambda: topologies.planes(72, 18, up=900e9),
    "mesh": lambda: topologies.mesh(8, link=64e9),
    "ring": lambda: topologies.torus((16,), link=45e9),
    "pod": lambda: topologies.torus((16, 16), link=50e9),
    "cube": lambda: topologies.torus((4, 4, 4), link=(45e9, 45e9, 30e9)),
    "open grid": lambda: topologies.torus((3, 5), link=45e9, wrap=False),
    "twisted": lambda: topologies.twisted_torus((4, 4, 8), link=45e9),
    "racks on rails": lambda: topologies.hierarchy(
        topologies.planes(72, 18, up=900e9), 4, out=50e9, join="rails"
    ),
    "leaves and spines": lambda: topologies.clos(
        128, out=50e9, leaf=32, oversubscription=4, spines=4, domain=BOARD
    ),
    "cores": lambda: topologies.clos(256, out=50e9, leaf=16, levels=3, spines=4, pod=64, cores=8),
    "dragonfly": lambda: topologies.dragonfly(2, 4, 2, up=50e9, local=40e9, out=25e9),
    "slices": lambda: topologies.hierarchy(topologies.torus((4, 4), link=50e9), 6, out=3e9),
    "meshes": lambda: topologies.hierarchy(topologies.mesh(8, link=64e9), 4, out=50e9),
    "nic down": nic_down,
    "hurt torus": hurt_torus,
    "by hand": by_hand,
}


def words(picture: str) -> list[str]:
    """What is written in a picture."""
    return [node.text or "" for node in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@for_all("case", CASES)
def test_a_picture_is_sound_and_says_what_it_shows(case):
    """It parses, has a title and a description, its own ground, and a few hundred marks at most."""
    G = CASES[case]()
    picture = topologies.svg(G)
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert root.attrib["role"] == "img"
    assert re.fullmatch(r"0 0 \d+ \d+(\.\d)?", root.attrib["viewBox"])
    assert root.find(f"{SVG}title").text == G.graph["name"]
    assert "chip" in root.find(f"{SVG}desc").text
    assert len(list(root.iter(f"{SVG}rect"))) >= 1
    assert picture.count("<path") + picture.count("<rect") + picture.count("<circle") < 700


@for_all("case", CASES)
def test_every_class_of_link_is_labelled_once_with_its_rate(case):
    """Each rate at which links run is written beside a line of its colour."""
    G = CASES[case]()
    said = words(topologies.svg(G))
    reading = read(G)
    for each in reading.classes:
        wanted = rate_text(each.rate)
        assert any(wanted in word for word in said), wanted
    whole = {(*c.kind[:3], c.figures) for c in reading.classes if not c.faulty}
    labels = [word for word in said if re.search(r"B/s( each way|, back|, this way)", word)]
    assert len(labels) == len(whole)


@for_all("case", CASES)
def test_every_mark_is_inside_the_picture(case):
    """Nothing is drawn outside the view, and every number is a number."""
    picture = topologies.svg(CASES[case]())
    assert "nan" not in picture
    assert "inf" not in picture.replace("infinite", "")
    root = ElementTree.fromstring(picture)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for node in root.iter():
        x, y = (node.attrib.get(key) or node.attrib.get(f"c{key}") for key in "xy")
        if x is not None and y is not None:
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height


def test_every_domain_and_every_kind_of_switch_is_named():
    """Boxes of the domains that are drawn, how many are not, leaves and spines."""
    said = " ".join(words(topologies.svg(CASES["leaves and spines"]())))
    for word in ("domain 0: 8 chips, 1 switch", "domain 15", "13 more", "leaf 0", "spine 3"):
        assert word in said
    assert "leaf – spine" in said
    assert "Σ" in said


def test_racks_on_rails_show_the_rails_and_the_planes():
    """Each rail joins the chips of one place; chips and planes that are not drawn are counted."""
    said = words(topologies.svg(CASES["racks on rails"]()))
    assert {"rail 0", "rail 71", "plane 0", "plane 17"} <= set(said)
    assert sum(word.startswith("domain ") for word in said) == 4
    assert any(re.fullmatch(r"… \d+ more", word) for word in said)


def test_a_mesh_is_drawn_link_by_link():
    """All 28 links of eight chips, each with its name."""
    picture = topologies.svg(CASES["mesh"]())
    assert len(re.findall(r"<path[^>]*><title>\d – \d: 64 GB/s", picture)) == 28


def test_a_small_torus_shows_its_grid_and_the_links_that_close_it():
    """Of a 4x4 torus all 32 links."""
    picture = topologies.svg(topologies.torus((4, 4), link=45e9))
    assert len(re.findall(r"<path[^>]*><title>\d\.\d – \d\.\d: 45 GB/s", picture)) == 32


def test_the_groups_of_a_dragonfly_sit_on_a_circle():
    """All nine groups, all 36 routers, all 36 cables between groups."""
    picture = topologies.svg(CASES["dragonfly"]())
    assert {f"domain {g}" for g in range(9)} <= set(words(picture))
    assert len(re.findall(r'<path[^>]*stroke="#d97706"[^>]*><title>', picture)) == 36


def test_a_lost_card_is_red_and_said():
    """What a chip lacks that its like have is found without being told."""
    G = nic_down()
    assert [fault.text for fault in find_link_faults(read(G))] == ["chip 0.3: no link to spine"]
    picture = topologies.svg(G)
    assert "chip 0.3: no link to spine" in words(picture)
    assert "#dc2626" in picture
    assert "1 fault" in picture


def test_a_slow_link_and_a_missing_one_of_a_torus_are_red_and_said():
    """Degraded and removed links of a torus, both with their places."""
    said = [fault.text for fault in find_link_faults(read(hurt_torus()))]
    assert said == ["1.1.0 - 2.1.0: 22.5 GB/s, not 45 GB/s", "0.2.0 - 0.3.0: no link"]
    assert set(said) <= set(words(topologies.svg(hurt_torus())))


def test_a_fault_is_drawn_wherever_it_is():
    """A fault far inside an abbreviated pod is among what is drawn."""
    change = {"link": [[9, 9], [9, 10]], "factor": 0.25}
    G = topologies.override(topologies.torus((16, 16), link=50e9), [change])
    picture = topologies.svg(G)
    assert re.search(r'stroke="#dc2626"[^>]*><title>9\.9 – 9\.10: 12\.5 GB/s', picture)
    racks = topologies.hierarchy(topologies.switch(8, up=450e9), 32, out=50e9)
    change = {"node": [20, 5], "tier": "scale_out", "factor": 0.5}
    assert "domain 20" in topologies.svg(topologies.override(racks, [change]))


@for_all("case", sorted(CASES.keys() - {"nic down", "hurt torus"}))
def test_sound_fabrics_have_no_faults(case):
    """Edges of open grids, uneven ways and odd shapes are no damage."""
    assert find_link_faults(read(CASES[case]())) == []


@pytest.mark.parametrize(
    "sides", [(8, 16, 12), pytest.param((16, 24, 24), marks=pytest.mark.slow)], ids=str
)
def test_the_largest_pod_is_a_small_picture(sides):
    """Thousands of chips: at most a few hundred marks, and the whole size is said."""
    picture = topologies.svg(topologies.torus(sides, link=100e9))
    assert len(picture) < 100_000
    assert f"{sides[0] * sides[1] * sides[2]:,} chips" in picture
    assert f"{sides[1]} along y" in picture


def test_a_picture_is_the_same_every_time():
    """Also in another process, where sets of texts come in another order."""
    code = (
        "import topologies; from tests.test_topologies.picture import test_picture as t;"
        "[print(topologies.svg(t.CASES[case]())) for case in ('by hand', 'dragonfly', 'cores')]"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert runs[0]


HOSTILE = "<script>alert(1)</script> & \"quoted\" ]]> \x00 \x1b[31m \ud800 \u202e 'x'"


def test_hostile_names_are_text_and_nothing_else():
    """Markup, control characters and lone surrogates in a name cannot leave their place."""
    G = fabric(HOSTILE)
    for node in (HOSTILE, "b"):
        G.add_node(node, kind="accelerator", forward=False, domain=HOSTILE)
    G.add_node(f"{HOSTILE} switch", kind="switch", forward=True)
    for node in (HOSTILE, "b"):
        link(G, node, f"{HOSTILE} switch", bandwidth=1e9)
    picture = topologies.svg(G)  # unchecked: a check refuses such names
    root = ElementTree.fromstring(picture.encode())
    tags = {node.tag.removeprefix(SVG) for node in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "path", "circle", "text"}
    assert "alert(1)" in root.find(f"{SVG}title").text
    assert "\u202e" not in picture


NAMES: list[Callable[[int], object]] = [
    lambda i: i,
    lambda i: (i,),
    lambda i: f"n{i}",
    lambda i: ("a", i, (1, 2)),
    lambda i: (i % 3, "x", i),
]
DOMAINS: list[Callable[[int], object]] = [
    lambda i: 0,
    lambda i: i,
    lambda i: i % 3,
    lambda i: ("d", i // 4),
    lambda i: "long " * (i % 20),
]
COORDS: list[Callable[[int], tuple[int, ...]]] = [
    lambda i: (i,),
    lambda i: (i % 3, i // 3),
    lambda i: (i % 2, i // 2 % 2, i // 4),
    lambda i: (i, 0, 0, 0),
    lambda i: (-i, 10**9),
]


@for_all("seed", range(40))
def test_whatever_the_vocabulary_can_say_is_drawn(seed):
    """Any names, domains, places and wires, sound or not: a bounded picture inside its page."""
    draw = random.Random(seed)
    G = fabric(f"random {seed}")
    name, domain = draw.choice(NAMES), draw.choice(DOMAINS)
    chips, others = draw.choice([1, 2, 5, 9, 80]), draw.choice([0, 1, 5, 12])
    for i in range(chips):
        place = {"coord": draw.choice(COORDS)(i)} if draw.random() < 0.4 else {}
        relays = draw.random() < 0.5
        G.add_node(name(i), kind="accelerator", forward=relays, domain=domain(i), **place)
    for i in range(others):
        G.add_node(("box", i), kind=draw.choice(["switch", "nic", "host"]), forward=True)
    nodes = list(G)
    for _ in range(draw.choice([0, 1, chips, 6 * chips])):
        a, b = draw.choice(nodes), draw.choice(nodes)
        if a != b and not G.has_edge(a, b) and not G.has_edge(b, a):
            rate, tier = (
                draw.choice([1.0, 50e9, 1e15]),
                draw.choice(["scale_up", "scale_out", "host"]),
            )
            link(G, a, b, bandwidth=rate, tier=tier, one_way=draw.random() < 0.2)
    picture = topologies.svg(G)
    root = ElementTree.fromstring(picture)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert height < 4000
    assert picture.count("<path") + picture.count("<rect") + picture.count("<circle") < 700
    for box in root.iter(f"{SVG}rect"):
        assert float(box.attrib["width"]) >= 0
        assert 0 <= float(box.attrib["x"]) <= width
        assert 0 <= float(box.attrib["y"]) <= height


def test_a_very_long_name_is_cut():
    """A name of a megabyte does not make a picture of megabytes."""
    G = topologies.switch(8, up=1e9)
    G.graph["name"] = "x" * 10**6
    assert len(topologies.svg(G)) < 50_000


def test_a_fabric_without_chips_has_no_picture():
    """It is a mistake, not an empty page."""
    with pytest.raises(topologies.TopologyError, match="no accelerator to draw"):
        topologies.svg(fabric("nothing"))


def test_what_is_left_out_is_counted():
    """Those that must be there, the first ones and the last; a gap holds the others."""
    found = limit_items(range(100), 6, {50})
    assert without_gaps(found) == [0, 1, 2, 50, 99] or without_gaps(found) == [0, 1, 50, 99]
    hidden = [i for gap in found if isinstance(gap, Gap) for i in gap.items]
    assert sorted([*without_gaps(found), *hidden]) == list(range(100))
    assert limit_items([1, 2, 3], 3) == [1, 2, 3]


def test_amounts_are_read_at_a_glance():
    """Rates and times with the unit that fits."""
    assert [rate_text(v) for v in (1.8e12, 45e9, 3.125e9, 5e5, 12)] == [
        "1.8 TB/s", "45 GB/s", "3.125 GB/s", "500 kB/s", "12 B/s"
    ]  # fmt: skip
    assert [time_text(v) for v in (2.5e-6, 5e-7, 0.0)] == ["2.5 us", "500 ns", "0 s"]
