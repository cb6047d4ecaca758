"""Systems whose network is read from a topology file."""

from __future__ import annotations

import pytest

import planner
from planner.scenario import load, resolve_keys
from planner.text.errors import InputError
from tests.paths import EXAMPLES

TOPOLOGIES = EXAMPLES / "topologies"
HGX = """
kind: {kind}
nodes: 4
chips: 8
up: 450 GB/s
out: 50 GB/s
latency: 0.5 us
out_latency: 2.5 us
{more}
"""


def scenario(topology: str, **changes) -> dict:
    """DeepSeek-V3 decoding on 32 chips wired by a file."""
    return {
        "problem": "serving",
        "model": "deepseek-v3",
        "system": {"like": "hgx-h200", "topology": topology},
        "chips": 32,
        "price": "$2/hour",
        "workload": {"input_tokens": 4000, "output_tokens": 1000},
        "choose": {"mode": "decode", "tp": 1, "dp_attention": 32, "ep": 32, "batch": 1024},
        **changes,
    }


@pytest.fixture
def wired(tmp_path, monkeypatch):
    """Writes a spec and answers with its name, files being sought beside it."""
    monkeypatch.chdir(tmp_path)

    def write(more: str = "", kind: str = "rails") -> str:
        (tmp_path / "pod.yaml").write_text(HGX.format(kind=kind, more=more))
        return "pod.yaml"

    return write


def collectives(topology: str | None, **changes) -> float:
    """Seconds of a step that collectives take."""
    asked = scenario(topology or "", **changes)
    if topology is None:
        asked["system"] = "hgx-h200"
    plan = planner.solve(asked)
    return plan.chosen["time_per_step"]["collectives"]


def test_the_catalogue_s_network_from_a_file_gives_the_same_times(wired):
    """Four HGX nodes on non-blocking rails, as a machine and as a file."""
    assert collectives(wired()) == pytest.approx(collectives(None), rel=1e-6)


def test_oversubscription_lengthens_exchanges_that_cross_nodes(wired):
    """A spine of a quarter of the rails' rate, with no relay inside nodes, makes experts wait."""
    free = collectives(wired("relay: none\noversubscription: 1"))
    narrow = collectives(wired("relay: none\noversubscription: 4"))
    assert narrow > 1.5 * free


def test_a_layout_inside_a_node_does_not_feel_the_network_between(wired):
    """Expert groups of eight stay on one board, whatever joins the boards."""
    inside = {"mode": "decode", "tp": 1, "dp_attention": 8, "ep": 8, "batch": 1024}
    free = collectives(wired("relay: none\noversubscription: 1"), choose=inside)
    narrow = collectives(wired("relay: none\noversubscription: 4"), choose=inside)
    assert narrow == pytest.approx(free, rel=1e-9)


def test_the_search_leaves_the_network_between_nodes_when_it_is_narrow(wired):
    """One MoE layer, one node: the widest expert group that pays shrinks with the network."""
    widest = []
    for narrow in ("1", "64"):
        file = wired(f"relay: none\noversubscription: {narrow}")
        free = {"mode": "decode"}
        plan = planner.solve(scenario(file, choose=free, promises={"tpot": "40 ms"}))
        widest.append(plan.layout["ep"] * plan.layout["tp_expert"])
    assert widest[1] <= 8 <= widest[0]
    assert widest[0] > widest[1]


def test_a_card_that_is_down_costs_something():
    """Four racks, one chip without a card: what crosses racks is slower, and the plan stands."""
    file = str(TOPOLOGIES / "nvl72-one-card-down.yaml")
    system = {"like": "gb200-nvl72", "topology": file}
    across = {"mode": "decode", "tp": 1, "dp_attention": 144, "ep": 144, "batch": 4608}
    asked = scenario(file, system=system, chips=288, choose=across)
    hurt = planner.solve(asked)
    whole = planner.solve({**asked, "system": "gb200-nvl72"})
    times = [plan.chosen["time_per_step"]["collectives"] for plan in (whole, hurt)]
    assert times[0] < times[1] < 2 * times[0]
    assert any(
        "nvl72-one-card-down" in each["what"] for each in hurt.document["provenance"]["data"]
    )


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ({"like": "hgx-h200", "topology": "none.yaml"}, "no topology file 'none.yaml'"),
        (
            {"like": "hgx-h200", "topology": "pod.yaml", "scale_up": "450 GB/s"},
            "leave scale_up out",
        ),
        ({"topology": "pod.yaml"}, "missing required key 'memory'"),
        ("pod.yaml", "but not which chips"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(wired, system, told):
    """What is missing or said twice, each in a sentence."""
    wired()
    with pytest.raises(InputError, match=told):
        planner.solve(scenario("", system=system))


def test_more_chips_than_the_file_wires_are_refused(wired):
    """The number of chips has its place."""
    with pytest.raises(InputError, match=r"64 chips are asked for, but pod\.yaml wires 32"):
        planner.solve(scenario(wired(), chips=64))


def test_a_broken_file_is_told_with_its_lines(wired):
    """Every mistake of the topology file."""
    with pytest.raises(InputError, match=r"pod\.yaml.*oversubscripton"):
        planner.solve(scenario(wired("oversubscripton: 4")))


def test_the_resolved_scenario_names_the_file(wired):
    """As it was given, so that it loads again."""
    found = resolve_keys(load(scenario(wired())))
    assert found["system"]["topology"] == "pod.yaml"
    assert load(found) == load(scenario(wired()))
