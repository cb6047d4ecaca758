"""Which network a name means: a machine, the cards of one host, a chip's machine."""

from __future__ import annotations

import pytest

from planner import library
from planner.network.network_source import network
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
    with pytest.raises(InputError, match="describe what does in a topology file"):
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
