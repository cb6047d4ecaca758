"""Which network a name means: a machine, the cards of one host, a chip's machine."""

from __future__ import annotations

import pytest

from planner import library
from planner.network.network_source import network, read_fabric
from planner.text.errors import InputError


@pytest.mark.parametrize(
    ("name", "rate"), [("a100-pcie", 31.5e9), ("rtx-5090", 63e9), ("t4", 15.75e9)]
)
def test_cards_of_a_host_have_a_network(name, rate):
    """They meet on its PCI Express."""
    machine = network(name, 4).machine
    assert machine is not None
    assert machine.scale_up == rate


def test_a_chip_by_its_own_name_is_its_machine():
    """`h100` is the board that joins them."""
    assert network("h100").name == "hgx-h100"


@pytest.mark.parametrize(("name", "chips"), [("rtx-4090", 16), ("gb10", None), ("gh200", 2)])
def test_more_than_a_host_holds_is_refused(name, chips):
    """The refusal says what would put it right."""
    with pytest.raises(InputError, match="describe the network between hosts in a topology file"):
        network(name, chips)


@pytest.mark.parametrize(
    ("name", "chips", "rate"), [("rtx-4090", 2, 31.5e9), ("hgx-h100", 16, 50e9)]
)
def test_a_send_is_timed(name, chips, rate):
    """Never faster than its bytes at the rate of the way, and later by what a message adds."""
    document = library.topology(
        name, chips, groups=[chips], collective="send", messages=[64e6]
    ).document
    (row,) = document["collectives"]
    assert row["bound"] == pytest.approx(64e6 / rate)
    assert row["bound"] < row["seconds"] < 2 * row["bound"] + 1e-4
    assert row["low"] <= row["seconds"] <= row["high"]


BOX = """\tGPU0\tGPU1\tNIC0\tCPU Affinity
GPU0\t X \tNV18\tPIX\t0-47
GPU1\tNV18\t X \tPIX\t0-47
NIC0\tPIX\tPIX\t X
"""


def test_a_printed_machine_is_taken_as_often_as_its_chips_are_asked_for(tmp_path):
    """Three of two chips and a card; by halves it cannot be, nor where no card joins them."""
    (tmp_path / "box.txt").write_text(BOX, encoding="utf-8")
    box, bare = str(tmp_path / "box.txt"), str(tmp_path / "bare.txt")
    assert sum(kind == "nic" for _, kind in network(box, 6).fabric.nodes(data="kind")) == 3
    assert len(network(box, 2).fabric) == len(network(box).fabric)
    with pytest.raises(InputError, match="5 chips: a machine has 2; give a multiple"):
        network(box, 5)
    lines = [line.replace("\tNIC0", "").replace("\tPIX", "") for line in BOX.splitlines()[:3]]
    (tmp_path / "bare.txt").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="names no network cards that join machines"):
        network(bare, 4)


def test_a_plan_of_more_chips_than_a_printed_machine_has(tmp_path):
    """A shared card is divided among the chips that hang on it."""
    (tmp_path / "box.txt").write_text(BOX, encoding="utf-8")
    fabric, figures = read_fabric(tmp_path / "box.txt", 4)
    assert sum(kind == "accelerator" for _, kind in fabric.nodes(data="kind")) == 4
    assert (figures.chips_per_domain, figures.scale_out) == (2, 25e9)
