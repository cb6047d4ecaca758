"""The catalogue: every figure has a source, every machine can be drawn, and can be varied."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from datetime import date

import pytest

import topologies
from tests.loops import for_all
from tests.paths import FACTS
from topologies import Machine, TopologyError, check, graph, machine, names, slowdown
from topologies.fabric.fabric import accelerators
from topologies.machines.hardware import entries

REQUIRED = [
    "hgx-a100",
    "hgx-h100",
    "hgx-h200",
    "hgx-h20",
    "hgx-b200",
    "hgx-b300",
    "gb200-nvl72",
    "gb300-nvl72",
    "vera-rubin-nvl72",
    "mi300x-8",
    "mi325x-8",
    "mi355x-8",
    "tpu-v4",
    "tpu-v5e",
    "tpu-v5p",
    "tpu-v6e",
    "tpu-ironwood",
    "trainium2",
    "trainium1",
    "inferentia2",
    "gaudi3-8",
]
HARDWARE = FACTS / "hardware.csv"
ROWS = {
    "hgx-a100": "A100-80GB SXM",
    "hgx-a100-40gb": "A100-40GB SXM",
    "h100-pcie": "H100 PCIe",
    "hgx-h100": "H100 SXM",
    "hgx-h800": "H800 SXM",
    "hgx-h20": "H20",
    "hgx-h200": "H200 SXM",
    "hgx-b200": "B200 SXM",
    "hgx-b300": "B300 SXM",
    "gb200-nvl72": "GB200",
    "gb300-nvl72": "GB300",
    "vera-rubin-nvl72": "Rubin (VR200)",
    "mi300x-8": "MI300X",
    "mi325x-8": "MI325X",
    "mi355x-8": "MI355X",
    "tpu-v4": "TPU v4",
    "tpu-v5e": "TPU v5e",
    "tpu-v5p": "TPU v5p",
    "tpu-v6e": "TPU v6e Trillium",
    "tpu-ironwood": "TPU7x Ironwood",
    "trainium2": "Trainium2",
}


def test_every_promised_machine_is_there():
    """The names of the scenario file."""
    assert set(REQUIRED) <= set(names())


@for_all("name", names())
def test_every_figure_has_a_source_and_a_date(name):
    """No number of a machine stands without where and when it was read."""
    what = machine(name)
    sourced = {figure.name: figure for figure in what.figures}
    given = {"chips_per_domain", "scale_up", "scale_up_latency", "scale_out_latency"}
    given |= {n for n in ("scale_out", "reduce_from") if getattr(what, n) is not None}
    given |= {"links"} if what.kind == "mesh" and what.chips_per_domain > 2 else set()
    given |= {"dims", "ring", "links"} if what.kind == "torus" else set()
    assert given <= sourced.keys()
    for figure in sourced.values():
        assert figure.unit in {"byte/s", "s", "chip", "1"}
        assert figure.source.strip()
        assert date.fromisoformat(figure.as_of).year >= 2026


@for_all("name", names())
def test_a_stated_link_rate_is_what_a_chips_rate_comes_to(name):
    """The sum over a chip's links is its scale-up rate: no stated figure was dropped."""
    stated = {key for key, value in entries()[name].items() if isinstance(value, dict)}
    assert stated <= {figure.name for figure in machine(name).figures}


@for_all("name", names())
def test_every_machine_draws_a_sound_fabric(name):
    """One domain of each, or a slice of a pod, with its chips' rate at every chip."""
    what = machine(name, 64 if machine(name).chips_per_domain > 1000 else None)
    G = check(graph(what))
    chips = accelerators(G)
    assert len(chips) == what.chips_per_domain
    assert G.out_degree(chips[0], weight="bandwidth") == pytest.approx(what.scale_up)
    assert G.graph["source"]
    assert G.graph["as_of"]


@for_all("name", ROWS)
def test_figures_agree_with_the_table_of_hardware(name):
    """Scale-up, scale-out and domain of the collected accelerator table."""
    with HARDWARE.open(encoding="utf-8") as file:
        (row,) = [row for row in csv.DictReader(file) if row["chip"] == ROWS[name]]
    what = machine(name)
    assert what.scale_up == pytest.approx(float(row["scaleup_gbps_per_dir"]) * 1e9)
    assert what.chips_per_domain == int(row["scaleup_domain"])
    out = row["scaleout_gbit_per_chip"]
    assert what.scale_out == (pytest.approx(float(out) / 8 * 1e9) if out else None)


def test_several_boards_are_joined_by_their_cards():
    """Four boards of eight: nine times slower between them."""
    G = graph("hgx-h200", 32)
    assert len(accelerators(G)) == 32
    assert slowdown(G, (3, 7)) == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: machine("hgx-h2000"), "did you mean 'hgx-h200'?"),
        (lambda: machine("hgx-h200", 0), "chips is 0"),
        (lambda: graph("hgx-h200", 20), "not whole domains of 8; 16 or 24 are"),
        (lambda: graph("tpu-v6e", 512), "scale_out is not known"),
        (lambda: machine("tpu-v5e", 17), "none fits into 16x16"),
        (lambda: machine("hgx-h200").box(4), "a switch has no slices"),
    ],
)
def test_what_cannot_be_drawn_is_said(ask, said):
    """Unknown names, odd counts, joints without a rate."""
    with pytest.raises(TopologyError) as caught:
        ask()
    assert said in str(caught.value)


# Shapes of the slices that Google offers: docs.cloud.google.com/tpu/docs/v5p and v5e.
V5P = ["2x2x1", "2x2x2", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "16x16x24"]
V5E = ["1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"]


@for_all(("name", "shape"), [*(("tpu-v5p", s) for s in V5P), *(("tpu-v5e", s) for s in V5E)])
def test_slices_have_the_shapes_that_are_offered(name, shape):
    """The box in which a slice exchanges most is the one its maker chose."""
    sides = [int(k) for k in shape.split("x")]
    chips = 1
    for k in sides:
        chips *= k
    assert sorted(machine(name).box(chips)) == sorted(sides)


@pytest.mark.parametrize(
    ("name", "chips", "rings"),
    [
        ("tpu-v5p", 32, (False, False, False)),
        ("tpu-v5p", 64, (True, True, True)),
        ("tpu-v5p", 128, (True, True, True)),
        ("tpu-v5e", 64, (False, False)),
        ("tpu-v5e", 128, (False, True)),
        ("trainium2", 16, (True, True, False)),
    ],
)
def test_a_slice_closes_the_rings_that_its_optics_allow(name, chips, rings):
    """Whole cubes on v5p, sides of 16 on v5e, an instance of 4x4 on Trainium."""
    assert machine(name, chips).rings == rings


def test_a_varied_figure_loses_its_source_and_no_other_does():
    """What a user puts in is not what the vendor said."""
    before = machine("hgx-h200")
    after = replace(before, scale_out=100e9)
    assert {f.name for f in before.figures} - {f.name for f in after.figures} == {"scale_out"}
    assert replace(after, scale_up=1e12).scale_out == 100e9


def test_a_varied_torus_scales_its_links():
    """Links keep their shares of the chip's rate."""
    what = replace(machine("trainium2"), scale_up=1280e9)
    assert what.links == pytest.approx((256e9, 256e9, 128e9))
    assert "links" not in {figure.name for figure in what.figures}


def test_a_machine_can_be_given_by_its_figures():
    """Latencies that are not given are the usual ones of the kind."""
    what = Machine.from_figures("mine", 16, 400e9, 25e9, scale_out_latency=5e-6)
    assert (what.kind, what.scale_up_latency, what.scale_out_latency) == ("switch", 0.5e-6, 5e-6)
    assert len(accelerators(graph(what, 32))) == 32
    assert what.figures == ()


@for_all(
    ("figures", "said"),
    [
        ({"scale_up": "450 GB/s"}, "scale_up is the text '450 GB/s'"),
        ({"scale_up": 0.0}, "scale_up is 0"),
        ({"scale_out": -1.0}, "scale_out is -1.0"),
        ({"chips_per_domain": 0}, "chips_per_domain is 0"),
        ({"kind": "tours"}, "kind is 'tours'; did you mean 'torus'?"),
        ({"kind": "torus"}, "a torus has one to three sides"),
        ({"kind": "torus", "dims": (2, 3)}, "dims (2, 3) hold 6 chips, not 8"),
        ({"kind": "torus", "dims": (2, 4), "port_weights": (1,)}, "port_weights has 1 entries"),
        ({"dims": (8,)}, "only a torus has them"),
        ({"scale_up_latency": 1.0}, "less than 0.1 s"),
        ({"latency": 1.0}, "unknown figure 'latency'"),
    ],
    ids=str,
)
def test_unsound_figures_are_refused(figures, said):
    """One error with every figure that is wrong."""
    sound = {"name": "mine", "chips_per_domain": 8, "scale_up": 450e9, "scale_out": 50e9}
    with pytest.raises(TopologyError) as caught:
        Machine.from_figures(**{**sound, **figures})
    assert said in str(caught.value)


def test_all_unsound_figures_are_listed():
    """Three faults, three lines."""
    with pytest.raises(TopologyError) as caught:
        Machine.from_figures("mine", 0, -1.0, "fast")
    assert len(caught.value.problems) == 3


def test_the_names_of_the_package_are_what_can_be_fetched():
    """`__all__`, the lazy names and `dir` agree."""
    assert set(topologies.__all__) == set(topologies._MODULE)
    assert set(topologies.__all__) <= set(dir(topologies))
    for name in topologies.__all__:
        assert getattr(topologies, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'toruss'"):
        _ = topologies.toruss


def test_rates_of_a_machine_load_no_graph_library():
    """A plan is checked without NetworkX, SciPy or NumPy."""
    code = (
        "import sys, topologies as t; t.group_rate(t.machine('tpu-v5p', 64), 8); t.names();"
        "print(sorted({'networkx', 'scipy', 'numpy', 'sympy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
