"""Which layouts are tried: plain loops over every tuple against columns."""

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from planner.problems.serving.step.layouts import AXES, Layouts, enumerate_layouts, hop_groups
from tests.cases.serving import all_layouts, columns
from tests.loops import for_all
from topologies import machine
from topologies.fabric.fabric import ACCELERATOR

AXES_OF_LOOPS = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas", "chips", "halves",
                 "dcp")  # fmt: skip
BASE = {"heads": 6, "layers": 3, "experts": 4, "domain": 4, "chips": (1, 4, 6, 11),
        "joined": True, "tiled": False, "copied": False, "kv_heads": 0, "limits": {}}  # fmt: skip
CASES = {
    "experts": {},
    "dense": {"experts": 0},
    "dense, copied": {"experts": 0, "copied": True},
    "one island": {"joined": False},
    "a torus": {"tiled": True, "domain": 6, "chips": (6, 12)},
    "parts of contexts": {"limits": {"cp": (1, 2, 3)}, "chips": (4, 12)},
    "an order of parts": {"limits": {"cp": (3, 1, 1)}, "chips": (6,)},
    "pinned axes": {"limits": {"tp": (2, 3), "pp": (1, 3), "ep": (2, 3), "tp_expert": (1, 2)}},
    "copies of attention": {"limits": {"dp_attention": (2, 4)}},
    "more copies than experts": {"experts": 2, "limits": {"dp_attention": (4,)}},
    "replicas": {"limits": {"replicas": (0, 1, 3)}},
    "contexts over ranks of a group": {"kv_heads": 2},
    "ranks or parts": {"kv_heads": 1, "limits": {"dcp": (1, 3), "cp": (1, 2)}},
    "passes whole": {"limits": {"halves": (1,)}},
    "passes in two": {"limits": {"halves": (2,)}},
}


def by_loops(heads, layers, experts, domain, chips, joined, tiled, copied, kv_heads, limits):
    """Rows of every layout, in the order of `AXES_OF_LOOPS`, those that the limits leave."""
    sizes = SimpleNamespace(
        n_q_heads=heads, n_experts=experts, n_layers=layers, inner=(1,) if copied else (),
        n_kv_heads=kv_heads,
    )  # fmt: skip
    wired = SimpleNamespace(
        chips_per_domain=domain, scale_out=1e9 if joined else None,
        kind="torus" if tiled else "switched",
    )  # fmt: skip
    task = SimpleNamespace(
        sizes=sizes, machine=wired, chips=chips, limits_of=limits, lecture=False, uses_bound=False,
        mode="decode",
    )  # fmt: skip
    rows = set()
    for row in all_layouts(task):
        each = dict(zip(AXES_OF_LOOPS, row, strict=True))
        wanted = limits.get("replicas", (each["replicas"],))
        for count in (n for n in wanted if 1 <= n <= each["replicas"]):
            now = {**each, "replicas": count}
            if all(now[axis] in limits.get(axis, (now[axis],)) for axis in AXES_OF_LOOPS):
                rows.add(tuple(now.values()))
    return rows


@for_all("case", CASES)
def test_layouts_are_those_of_plain_loops(case):
    """Each once; the others break a rule of the machine or of the model, or were not asked for."""
    asked = {**BASE, **CASES[case]}
    table = enumerate_layouts(**{**asked, "limits": frozenset(asked["limits"].items())})
    rows = list(zip(*(getattr(table, axis).tolist() for axis in AXES_OF_LOOPS), strict=True))
    expected = by_loops(**asked)
    missing, more = expected - set(rows), set(rows) - expected
    assert (len(missing), len(more)) == (0, 0)  # a failure shows no thousand rows
    assert len(rows) == len(expected) > 0
    assert not table.tp.flags.writeable


@pytest.mark.parametrize(
    ("domain", "limits", "joined", "largest"),
    [(8, {}, True, 512), (1024, {}, True, 1024), (8, {"tp": (1024,)}, True, 1024),
     (8, {"tp": (64, 256), "pp": (1, 4)}, True, 1024), (64, {}, False, 64),
     (8, {"tp": (1, 8)}, True, 24)],
)  # fmt: skip
def test_replicas_are_no_larger_than_any_that_was_published_unless_asked_for(
    domain, limits, joined, largest
):
    """512 chips, or a whole domain, or the largest sizes that were asked for; one domain alone."""
    table = enumerate_layouts(
        heads=1024, layers=3 if largest == 24 else 4, experts=0, domain=domain, chips=(1024,),
        joined=joined, limits=frozenset(limits.items()),
    )  # fmt: skip
    assert table.replica_chips.max() == largest


def test_a_layout_in_plain_numbers():
    """tp 2, three copies of attention on five parts of a context, seven stages."""
    row = {"tp": 2, "pp": 7, "cp": 5, "dp_attention": 3, "ep": 6, "tp_expert": 1, "replicas": 4,
           "chips": 900, "halves": 2}  # fmt: skip
    one = Layouts.of(**row)
    assert (one.whole[0], one.stage[0], one.replica_chips[0]) == (6, 30, 210)
    assert one.group[0] == 7 * 3 * 5  # one sequence for each part of each copy on each stage
    assert one.split(0) == (2, 7, 5, 3, 6, 1, 4, 900, 1)
    assert one.row(0) == {**{axis: row.get(axis, 1) for axis in AXES}, "replicas": 4,
                          "overlap": "two-batch"}  # fmt: skip
    assert Layouts.of().row(0) == {**dict.fromkeys(AXES, 1), "replicas": 1, "overlap": "none"}
    assert one.engines.tolist() == [-1]  # every engine, where none was asked about
    both = Layouts.joined([one, Layouts.of()])
    assert both.tp.tolist() == [2, 1]
    assert both.take(np.array([1, 0, 0])).pp.tolist() == [1, 7, 7]
    assert len(both) == 2


def test_other_chips_hold_other_numbers_of_replicas():
    """Stages of 3 in machines of 8: two to a machine, and one on five chips that are left."""
    pairs = columns([(3, 2, 1, 1, 1, 1, 1, 6), (8, 1, 1, 1, 1, 1, 1, 8)])
    more = pairs.on(np.array([21, 21]), 8)
    assert more.replicas.tolist() == [5 // 2, 2]
    assert more.chips.tolist() == [21, 21]
    assert more.tp.tolist() == [3, 8]


def test_a_hop_crosses_the_replica_or_on_a_drawn_fabric_an_edge_of_domains():
    """On a fabric a pair of one domain stands for replicas inside, two domains for larger ones."""
    wired = machine("hgx-h100")
    layouts = columns([(n, 1, 1, 1, 1, 1, 1, n) for n in (1, 8, 9, 32)])
    task = SimpleNamespace(fabric=None, machine=wired)
    assert hop_groups(task, layouts).tolist() == [1, 8, 9, 32]
    for chips, domain, groups in ((12, 8, [2, 2, 12, 12]), (64, 8, [2, 2, 16, 16]),
                                  (64, 1, [1, 2, 2, 2])):  # fmt: skip
        fabric = nx.DiGraph()
        fabric.add_nodes_from(range(chips), kind=ACCELERATOR)
        fabric.add_node("switch", kind="switch")
        task = SimpleNamespace(fabric=fabric, machine=replace(wired, chips_per_domain=domain))
        assert hop_groups(task, layouts).tolist() == groups


def test_what_is_not_said_of_a_machine():
    """Domains are joined and switched, and attention of a dense model is not copied."""
    asked = {"heads": 6, "layers": 2, "experts": 0, "domain": 6, "chips": (12,)}
    table = enumerate_layouts(**asked)
    rows = set(zip(*(getattr(table, axis).tolist() for axis in AXES_OF_LOOPS), strict=True))
    assert rows == by_loops(**{**BASE, **asked})
