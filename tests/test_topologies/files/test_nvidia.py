"""What nvidia-smi and NCCL print of a machine becomes its network; half of it is refused."""

from __future__ import annotations

import warnings

import pytest

from tests.paths import shared
from topologies import TopologyError, group_rate, read
from topologies.files.nvidia import NETWORK, equal_machines
from topologies.groups.fabric_groups import fabric_groups

HEAD = "\t\x1b[4m{}\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
CARD = (
    '<pci busid="{0}" link_speed="{1} GT/s PCIe" link_width="16">'
    '<gpu dev="{2}" sm="{3}">{4}</gpu></pci>'
)


def matrix(tmp_path, rows, more=""):
    """The fabric of a matrix whose rows are texts of its cells."""
    names = [f"GPU{i}" for i in range(len(rows))]
    body = "".join(f"{a}\t{row}\t0-47\t0\n" for a, row in zip(names, rows, strict=True))
    file = tmp_path / "box.txt"
    file.write_text(more + HEAD.format("\t".join(names)) + body, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(file)


def xml(tmp_path, inside):
    """The fabric of NCCL's XML with this inside its `system`."""
    file = tmp_path / "box.xml"
    file.write_text(f'<system version="1">\n{inside}\n</system>\n', encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(file)


def even(cell, n):
    """Rows of a matrix of `n` chips of which every pair shows the same."""
    return [" ".join("X" if i == j else cell for j in range(n)) for i in range(n)]


@pytest.mark.parametrize(
    ("cell", "n", "more", "rate"),
    [
        ("NV18", 8, "", 450e9),
        ("NV18", 8, "| 0  NVIDIA B200  On |\n", 900e9),
        ("NV12", 8, "", 300e9),
        ("NV4", 4, "", 100e9),
        ("NV4", 2, "| 0  NVIDIA RTX A6000 |\n", 56.25e9),
        ("PIX", 4, "", 31.5e9),
    ],
)
def test_every_pair_alike(tmp_path, cell, n, more, rate):
    """Links that a chip cannot have by pairs lead into switches; NV4 of four chips are pairs."""
    G = matrix(tmp_path, even(cell, n), more)
    assert group_rate(G, 2).send == pytest.approx(rate)
    direct = G.has_edge("gpu0", "gpu1")
    assert direct == (cell == "NV4")


def test_bridges_and_sockets(tmp_path):
    """Two chips on a bridge, one beside them on their socket, one on the other socket."""
    G = matrix(tmp_path, ["X PIX NODE SYS", "PIX X NODE SYS", "NODE NODE X SYS", "SYS SYS SYS X"])
    assert set(G) - {f"gpu{i}" for i in range(4)} == {"cpu0", "cpu1", "pcie0"}
    assert G.edges["gpu0", "pcie0"]["bandwidth"] == 31.5e9
    assert G.edges["cpu0", "cpu1"]["bandwidth"] == 16e9


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["X NV18", "NV1B X"], "line 3, column 6: GPU1 to GPU0 is 'NV1B'; expected"),
        (["X NV18", "NV12 X"], "line 3, column 1: GPU1 to GPU0 is NV12, but GPU0 to GPU1 is NV18"),
        (["X X", "X X"], "line 2, column 8: GPU0 to GPU1 is 'X'; expected"),
    ],
)
def test_a_slip_is_told_with_its_place(tmp_path, rows, problem):
    """A cell that is no path, and two that contradict each other."""
    with pytest.raises(TopologyError) as caught:
        matrix(tmp_path, rows)
    assert problem in str(caught.value)


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_matrix_cut_off_is_refused(tmp_path, lines):
    """Rows that are missing, and a row that ends too early."""
    matrix(tmp_path, even("NV18", 3))
    whole = (tmp_path / "box.txt").read_text(encoding="utf-8").splitlines()
    cut = tmp_path / "cut.txt"
    cut.write_text(
        "\n".join(whole[:lines]) + ("\nGPU2\tNV18" if lines == 3 else ""), encoding="utf-8"
    )
    with pytest.raises(
        TopologyError, match=r"line \d, column \d+: (the row of GPU|GPU2 has 1 of 3)"
    ):
        read(cut)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("GPU0\t X \tNV18\t0-47\nGPU1\tNV18\t X \t0-47\n", "line 1, column 1: a line of columns"),
        ("\tGPU0\tCPU\nGPU0\t X \nGPU1\tNV4\t X \n", "line 3, column 1: 'GPU1' has a row and no"),
    ],
)
def test_a_matrix_without_its_columns_is_refused(tmp_path, text, problem):
    """Nothing is taken for a smaller machine."""
    file = tmp_path / "box.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        read(file)
    assert problem in str(caught.value)


def test_links_of_nccl_s_file(tmp_path):
    """Chips joined pair by pair, and through switches, whose links add up."""
    pair = [f'<nvlink target="b{1 - i}" count="18" tclass="0x068000"/>' for i in (0, 1)]
    cards = [CARD.format(f"b{i}", "32.0", i, 90, pair[i]) for i in (0, 1)]
    G = xml(tmp_path, f"<cpu>{cards[0]}\n{cards[1]}</cpu>")
    assert G.edges["gpu0", "gpu1"]["bandwidth"] == 450e9
    switched = "".join(f'<nvlink target="s{k}" count="2" tclass="0x068000"/>' for k in range(6))
    cards = [CARD.format(f"b{i}", "16.0", i, 80, switched) for i in range(8)]
    G = xml(tmp_path, f"<cpu>{''.join(cards)}</cpu>")
    assert group_rate(G, 8).all_to_all == pytest.approx(300e9)


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ((("b1", 18), ("b0", 12)), "count is 12, the way back has 18"),
        ((("s", 18), None), "gpu1 has no links to the switches"),
    ],
)
def test_links_that_contradict_each_other_are_refused(tmp_path, counts, problem):
    """A count that differs by direction, and a chip left out of the switches."""
    links = [
        f'<nvlink target="{x[0]}" count="{x[1]}" tclass="0x068000"/>' if x else "" for x in counts
    ]
    cards = [CARD.format(f"b{i}", "32.0", i, 90, each) for i, each in enumerate(links)]
    with pytest.raises(TopologyError) as caught:
        xml(tmp_path, f"<cpu>{''.join(cards)}</cpu>")
    assert problem in str(caught.value)


def test_lanes_of_nccl_s_file(tmp_path):
    """Without NVLink chips meet where the file nests them, at the rate of their lanes."""
    cards = [CARD.format(f"b{i}", "32.0", i, 90, "") for i in (0, 1)]
    bridge = f'<pci busid="c" link_speed="16.0 GT/s PCIe" link_width="8">{cards[1]}</pci>'
    G = xml(tmp_path, f"<cpu>{cards[0]}</cpu><cpu>{bridge}</cpu>")
    assert G.edges["gpu0", "cpu0"]["bandwidth"] == pytest.approx(63e9, rel=1e-3)
    assert G.edges["pcie c", "cpu1"]["bandwidth"] == pytest.approx(15.75e9, rel=1e-3)


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<cpu>", "line 3, column 3: mismatched tag; the XML is broken or cut off"),
        ("<cpu/>", "line 1, column 1: <system> with a <gpu> was expected"),
        (CARD.format("b", "32.0", 0, 55, ""), "sm '55': known are 60"),
        (
            CARD.format("b", "32.0", 0, 90, '<nvlink target="q" count="1" tclass="0x03"/>'),
            "line 2, column 81: target 'q' is no other GPU",
        ),
        (
            CARD.format("b", "32.0", 0, 90, '<nvlink target="q" count="x" tclass="0x03"/>'),
            "count is 'x'; expected 1 to 18 links",
        ),
    ],
)
def test_a_broken_xml_is_told_with_its_place(tmp_path, inside, problem):
    """Files that are cut off, of another kind, or that name what is not there."""
    with pytest.raises(TopologyError) as caught:
        xml(tmp_path, inside)
    assert problem in str(caught.value)


SHARED = [  # four cards for eight chips: two chips on the bridge of each
    " ".join("X" if i == j else "NV12" for j in range(8))
    + " "
    + " ".join("PXB" if i // 2 == c else "NODE" if i // 4 == c // 2 else "SYS" for c in range(4))
    for i in range(8)
]


def cards(tmp_path, rows, count):
    """The fabric of a matrix with so many columns of cards, and its warnings."""
    names = [f"GPU{i}" for i in range(len(rows))]
    head = HEAD.format("\t".join([*names, *(f"NIC{c}" for c in range(count))]))
    file = tmp_path / "cards.txt"
    body = "".join(f"{name}\t{row}\t0-63\t0\n" for name, row in zip(names, rows, strict=True))
    file.write_text(head + body, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return read(file), [str(each.message) for each in caught]


def test_chips_hang_on_the_cards_nearest_to_them(tmp_path):
    """Two chips on the bridge of each card share it; a lone machine sends nothing through cards."""
    G, said = cards(tmp_path, SHARED, 4)
    beside = {
        card: {x for x in G.succ[card] if x != NETWORK} for card in map("NIC{}".format, range(4))
    }
    assert beside == {f"NIC{c}": {f"gpu{2 * c}", f"gpu{2 * c + 1}"} for c in range(4)}
    assert any("4 network cards are taken as 400 Gbit/s" in words for words in said)
    assert group_rate(G, 8).all_to_all == pytest.approx(300e9)
    assert group_rate(G, 2).send == pytest.approx(300e9)


def test_machines_alike_share_their_cards_as_written(tmp_path):
    """4 x 50 GB/s leave a machine of eight: 8 x 8 messages cross for 15 of each, rings 200 GB/s."""
    G = equal_machines(cards(tmp_path, SHARED, 4)[0], 2)
    assert (G.number_of_nodes(), G.nodes["1 gpu3"]["domain"]) == (2 * 13 + 1, 1)
    rate = group_rate(G, 16)
    assert rate.all_to_all == pytest.approx(4 * 50e9 / 64 * 15)
    assert rate.send == pytest.approx(25e9)
    assert fabric_groups(G).ring(16) == pytest.approx(200e9)


def test_a_card_has_no_nvlink(tmp_path):
    """A cell of another kind is told with its place."""
    with pytest.raises(TopologyError, match=r"line 2, column 13: GPU0 to NIC0 is 'NV4'"):
        cards(tmp_path, ["X NV18 NV4", "NV18 X PIX"], 1)


def test_a_chip_without_a_near_card_reaches_all_between_sockets(tmp_path):
    """PIX before SYS; who has SYS alone is as near to each."""
    rows = ["X NV18 NV18 PIX SYS", "NV18 X NV18 SYS PIX", "NV18 NV18 X SYS SYS"]
    G, _ = cards(tmp_path, rows, 2)
    near = {
        chip: {x for x in G.succ[chip] if x.startswith("NIC")} for chip in ("gpu0", "gpu1", "gpu2")
    }
    assert near == {"gpu0": {"NIC0"}, "gpu1": {"NIC1"}, "gpu2": {"NIC0", "NIC1"}}
    assert G.edges["gpu2", "NIC0"]["bandwidth"] == 16e9


def test_cards_of_nccl_s_file(tmp_path):
    """A card on the bridge of one chip, and one that is the socket's; speeds are in Mbit/s."""
    near = '<nic><net name="mlx5_0" speed="200000"/></nic>'
    chips = [
        f'<pci busid="p{i}">{CARD.format(f"b{i}", "32.0", i, 90, link)}{near * (i == 0)}</pci>'
        for i, link in enumerate(
            f'<nvlink target="b{1 - i}" count="18" tclass="0x030200"/>' for i in (0, 1)
        )
    ]
    far = '<nic><net name="mlx5_1" speed="400000"/></nic>'
    G = xml(tmp_path, f"<cpu>{''.join(chips)}{far}</cpu>")
    assert G.edges["mlx5_0", NETWORK]["bandwidth"] == 25e9
    assert G.edges["mlx5_1", NETWORK]["bandwidth"] == 50e9
    assert set(G.succ["gpu0"]) == {"gpu1", "mlx5_0"}
    assert set(G.succ["gpu1"]) == {"gpu0", "mlx5_0", "mlx5_1"}  # both beyond the socket


def test_machines_without_cards_are_not_joined(tmp_path):
    """Nothing is made up between them."""
    with pytest.raises(TopologyError, match="names no network cards"):
        equal_machines(matrix(tmp_path, even("NV18", 8)), 2)


@pytest.mark.parametrize(
    ("name", "chips", "leaves"),
    [("26-nvidia-smi-topo.txt", 4, 100e9), ("26-nccl-topology.xml", 2, 50e9)],
)
def test_published_output_carries_its_cards(name, chips, leaves):
    """Two cards of 50 GB/s for four chips, one for two: what a ring may take out of a machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        G = equal_machines(read(shared(f"cases/{name}")), 2)
    assert fabric_groups(G).ring(2 * chips) == pytest.approx(leaves)
