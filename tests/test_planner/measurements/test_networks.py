"""Chips of a measured row are joined by what joined them."""

import pytest

from planner.measurements.measurement import network_for_chips


@pytest.mark.parametrize(
    ("chip", "name", "chips", "rate"),
    [
        ("h200", "hgx-h200", 8, 450e9),
        ("rtx-4090", None, 4, 31.5e9),
        ("h100-pcie", "h100-pcie", 4, 63e9),
    ],
)
def test_groups_have_the_links_they_share(chip, name, chips, rate):
    """A machine of the catalogue where it reaches, else the host's PCI Express. [byte/s]"""
    found = network_for_chips(chip, name, chips)
    assert found is not None
    assert found.scale_up == pytest.approx(rate)
    assert chips <= found.chips_per_domain or found.scale_out is not None


def test_a_chip_alone_needs_no_network():
    """Whatever it is."""
    assert network_for_chips("m2-ultra-76", None, 1) is not None


def test_chips_that_nothing_is_known_to_join_have_none():
    """No link is guessed."""
    assert network_for_chips("m2-ultra-76", None, 2) is None


def test_a_slice_of_a_torus_has_so_many_chips():
    """TPU v4 in a cube of sixty-four; a number that no slice has is none."""
    found = network_for_chips("tpu-v4", "tpu-v4", 64)
    assert found is not None
    assert found.chips_per_domain == 64
