"""Which algorithms a group may use, what it sends, and whose curves it takes."""

from dataclasses import replace

import pytest

from planner.catalogue.collective_curves import collectives
from planner.network.group import (
    Group,
    algorithms,
    chip_in_name,
    collective_kernel,
    get_algorithm,
    library,
    place_group,
)
from planner.text.errors import CatalogueError
from tests.loops import for_all
from topologies import graph, machine

HGX, NVL72 = machine("hgx-h100"), machine("gb200-nvl72")
FAMILY_FROM = collectives().reduce_from


def test_bytes_on_the_wire_by_hand():
    """Of eight chips: twice seven eighths in a ring, all once where the switch adds up."""
    ring = Group("h100", 8, 1, 1e9, 2e9)
    switch = replace(ring, reduces=True)
    assert ring.traffic("all-reduce", "ring") == switch.traffic("all-reduce", "ring") == 14 / 8
    assert ring.traffic("all-reduce", "fused") == 14 / 8
    for algorithm in ("in-network", "fused"):
        assert switch.traffic("all-reduce", algorithm) == 1
    for operation in ("all-gather", "reduce-scatter", "all-to-all", "dispatch", "combine"):
        assert switch.traffic(operation, "fused") == 7 / 8
    assert collective_kernel("all_gather_traffic")(n_group=4.0) == {"q_ag": 0.75}


def test_an_exchange_runs_at_the_rate_of_an_exchange():
    """And a gather at that of a gather."""
    group = Group("h100", 8, 1, 1e9, 2e9)
    rates = {"all-reduce": 2e9, "all-gather": 2e9, "reduce-scatter": 2e9, "all-to-all": 1e9,
             "dispatch": 1e9, "combine": 1e9}  # fmt: skip
    assert {name: group.rate(name) for name in rates} == rates
    assert group.family == "hopper"
    assert Group("mi300x", 8, 1, 1e9, 2e9).family == "any"


def test_a_switch_reduces_from_a_size_of_group_on():
    """NCCL's limit by family, the latest where there is none, or the machine's own."""
    assert dict(FAMILY_FROM) == {"hopper": 5, "blackwell": 6}
    for chip, least in (("h100", 5), ("b200", 6), ("mi300x", 6), (None, 5)):
        assert [place_group(HGX, n, chip).reduces for n in range(1, 9)] == [
            n >= least for n in range(1, 9)
        ]  # fmt: skip
    early = replace(HGX, reduce_from=2)
    assert [place_group(early, n).reduces for n in (1, 2, 3)] == [False, True, True]
    assert not place_group(machine("hgx-a100"), 8).reduces
    assert place_group(graph("hgx-h100", 8), 8, "h100").reduces
    assert not place_group(graph("hgx-a100", 8), 8, "a100").reduces


def test_a_group_over_domains_knows_the_fullest_of_them():
    """Twelve chips are six and six; no switch adds up what leaves its domain."""
    group = place_group(HGX, 12)
    assert (group.n, group.domains, group.reduces, group.chip) == (12, 2, False, "h100")
    assert group.inside == place_group(HGX, 6)
    assert place_group(HGX, 17).inside.n == 6
    assert place_group(HGX, 8).inside is None


def test_the_chip_whose_name_stands_in_that_of_a_machine():
    """In either case, between anything that is no letter or digit."""
    assert chip_in_name("hgx-h100") == chip_in_name("My H100/box") == "h100"
    assert chip_in_name("gb200-nvl72") == "gb200"
    assert chip_in_name("mi300x-8") == chip_in_name("") == "any"


LATENCY, TWO_SIDED = "deepep-low-latency", "nvlink-two-sided"
OFFERED = {
    # On HGX H100 the switch reduces from five chips on; fused kernels were measured on up to 8.
    ("hgx-h100", 2, "all-reduce"): ("ring", "fused"),
    ("hgx-h100", 8, "all-reduce"): ("in-network", "fused"),
    ("hgx-h100", 16, "all-reduce"): ("two-level",),
    ("gb200-nvl72", 16, "all-reduce"): ("in-network", "fused"),
    ("gb200-nvl72", 17, "all-reduce"): ("in-network",),
    ("mi300x-8", 8, "all-reduce"): ("ring",),
    ("hgx-h100", 8, "all-gather"): ("ring",),
    ("hgx-h100", 16, "reduce-scatter"): ("two-level",),
    ("hgx-h100", 8, "all-to-all"): ("pairwise",),
    ("hgx-h100", 8, "dispatch"): (TWO_SIDED, LATENCY),
    ("gb200-nvl72", 16, "dispatch"): (TWO_SIDED, LATENCY),
    ("gb200-nvl72", 17, "dispatch"): (TWO_SIDED,),
    ("hgx-h100", 16, "combine"): (LATENCY, "deepep-normal"),
}


@for_all("case", OFFERED)
def test_algorithms_are_offered_up_to_twice_the_group_that_was_measured(case):
    """What the library does first; across domains what was made for it."""
    name, n, operation = case
    group = place_group(machine(name), n)
    assert algorithms(group, operation) == OFFERED[case]
    assert (
        library(group, operation) == get_algorithm(group, operation, "library") == OFFERED[case][0]
    )
    for algorithm in OFFERED[case]:
        assert get_algorithm(group, operation, algorithm) == algorithm


def test_an_algorithm_by_name_may_be_one_that_is_not_offered():
    """Inside one domain, however few chips it was measured on; across domains none is made up."""
    assert get_algorithm(place_group(NVL72, 64), "dispatch", LATENCY) == LATENCY
    assert get_algorithm(place_group(NVL72, 64), "all-reduce", "ring") == "ring"
    with pytest.raises(CatalogueError, match="16 chips over 2 domains has no algorithm"):
        get_algorithm(place_group(HGX, 16), "dispatch", TWO_SIDED)
    with pytest.raises(CatalogueError, match="usable: two-level"):
        get_algorithm(place_group(HGX, 16), "all-reduce", "fused")
    with pytest.raises(CatalogueError, match="no collective 'all-redcue'; did you mean"):
        algorithms(place_group(HGX, 8), "all-redcue")
