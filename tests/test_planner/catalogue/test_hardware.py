"""The catalogue of chips, systems and prices against its sources."""

from __future__ import annotations

import csv
import statistics
from datetime import date

import pytest

import topologies
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.listed_prices import Price, default_price, rentals
from planner.catalogue.systems import parse_system, system, system_names
from planner.text.errors import CatalogueError
from tests.loops import for_all
from tests.paths import FACTS, shared
from tests.test_topologies.machines.test_machines import REQUIRED

TITLES = {
    "a100-40gb": "A100-40GB SXM",
    "a100": "A100-80GB SXM",
    "h100-pcie": "H100 PCIe",
    "h100": "H100 SXM",
    "h800": "H800 SXM",
    "h20": "H20",
    "h200": "H200 SXM",
    "b200": "B200 SXM",
    "b300": "B300 SXM",
    "gb200": "GB200",
    "gb300": "GB300",
    "rubin": "Rubin (VR200)",
    "mi300x": "MI300X",
    "mi325x": "MI325X",
    "mi355x": "MI355X",
    "tpu-v4": "TPU v4",
    "v5e": "TPU v5e",
    "v5p": "TPU v5p",
    "v6e": "TPU v6e Trillium",
    "ironwood": "TPU7x Ironwood",
    "trainium2": "Trainium2",
    "gaudi3": "Gaudi 3",
}


def rows(name):
    """A table of the shared measurements, or a skip where it is absent."""
    path = FACTS / name if (FACTS / name).exists() else shared(name)
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_every_named_system_exists():
    """The names of the interface are in the catalogue."""
    assert set(REQUIRED) <= set(system_names())


def test_every_figure_has_a_source_and_a_date():
    """No number stands without a source, a date, a unit and how far it was verified."""
    entries = [*map(chip, chip_names()), *map(system, system_names())]
    figures = [figure for entry in entries for figure in entry.figures.values()]
    assert len(figures) > 200
    for figure in figures:
        assert figure.source.startswith("https://")
        date.fromisoformat(figure.as_of if len(figure.as_of) > 7 else figure.as_of + "-01")
        assert figure.unit or figure.base == figure.value
        assert figure.verified in {"yes", "secondary", "partial", "no"}


def test_figures_are_the_fields():
    """A chip's field and the figure of the same name are one number."""
    for entry in map(chip, chip_names()):
        for name, figure in entry.figures.items():
            value = entry.flops[name] if name in entry.flops else getattr(entry, name)
            assert value == figure.base


@for_all("name", sorted(TITLES))
def test_chip_agrees_with_the_table_of_hardware(name):
    """Peaks, capacity and bandwidth are those of the study, rounding aside."""
    table = {row["chip"]: row for row in rows("hardware.csv")}
    row, entry = table[TITLES[name]], chip(name)
    for dtype in ("bf16", "fp8", "int8", "fp4"):
        cell = row[f"dense_{dtype}_tflops"]
        assert entry.flops.get(dtype, 0.0) == pytest.approx(float(cell or 0) * 1e12)
    assert entry.memory == pytest.approx(float(row["mem_gb"]) * 1e9, rel=0.08)
    assert entry.memory_bandwidth == pytest.approx(float(row["mem_tbps"]) * 1e12, rel=0.02)


@pytest.mark.parametrize(
    ("name", "dtype", "width", "ratio"),
    [("h100", "bf16", 2, 295.2), ("b200", "fp8", 1, 281.25), ("gb200", "fp4", 0.5, 312.5),
     ("rubin", "nvfp4", 0.5, 397.7)],
)  # fmt: skip
def test_multiplications_per_weight_read(name, dtype, width, ratio):
    """Multiplications per weight read reproduce the published ratios."""
    entry = chip(name)
    assert entry.peak(dtype) * width / (2 * entry.memory_bandwidth) == pytest.approx(
        ratio, rel=1e-3
    )


def test_links_are_one_way():
    """NVLink is listed in one direction: half of the 900 GB/s that vendors print."""
    assert system("hgx-h100").scale_up == 450e9
    assert system("gb200-nvl72").scale_up == 900e9
    assert system("hgx-h100").scale_up / system("hgx-h100").scale_out == pytest.approx(9.0)


def test_a_missing_dtype_is_refused_and_named():
    """A100 has no fp8 units; fp16 runs at the bf16 rate."""
    assert chip("a100").peak("fp16") == 312e12
    with pytest.raises(CatalogueError, match=r"a100 has no fp8 arithmetic \(it has bf16, int8\)"):
        chip("a100").peak("fp8")
    with pytest.raises(CatalogueError, match="no int4 arithmetic"):
        chip("b200").peak("int4")


def test_unknown_names_say_what_was_meant():
    """A name off by a letter is answered with the right one."""
    with pytest.raises(CatalogueError, match=r"unknown chip 'h10'; did you mean 'h100'\?"):
        chip("h10")
    with pytest.raises(CatalogueError, match=r"did you mean 'hgx-h100'\?"):
        system("HGX-H100")


def test_reported_memory_is_what_drivers_report():
    """Drivers report 85.5, 150.8 and 192.3e9 bytes on H100, H200 and B200."""
    reported = [chip(name).memory_reported for name in ("h100", "h200", "b200")]
    assert reported == pytest.approx([85.5e9, 150.8e9, 192.3e9], rel=1e-3)


CHIP_OF_ROW = {
    "a100": {"A100-80GB SXM"},
    "a100-40gb": {"A100-40GB SXM"},
    "h100": {"H100 SXM", "H100"},
    "h100-pcie": {"H100 PCIe", "H100 PCIe NVLink"},
    "h200": {"H200"},
    "b200": {"B200"},
    "b300": {"B300"},
    "gb200": {"GB200"},
}


@for_all("name", sorted(CHIP_OF_ROW))
def test_default_price_is_the_median_of_listed_rentals(name):
    """Median, range and newest date follow from the rows: no spot, no index, no unverified."""
    kept = [
        row
        for row in rows("rental_prices.csv")
        if row["kind"] == "rental"
        and row["chip"] in CHIP_OF_ROW[name]
        and row["tier"] not in {"spot", "daily index", "median"}
        and row["verified"] != "no"
    ]
    hourly = [float(row["usd_per_gpu_hour"]) for row in kept]
    price = default_price(name)
    assert price.value * 3600 == pytest.approx(statistics.median(hourly))
    assert price.low * 3600 == pytest.approx(min(hourly))
    assert price.high * 3600 == pytest.approx(max(hourly))
    assert (price.count, price.as_of) == (len(kept), max(row["date_read"] for row in kept))


def test_a_chip_without_a_price_asks_for_one():
    """No price is invented: the message says what to write."""
    with pytest.raises(CatalogueError, match=r"chip rubin; give price: .\$3\.50/hour"):
        default_price("rubin")
    verified = [row for row in rentals("mi300x") if row.verified != "no"]
    assert len(verified) < len(rentals("mi300x"))
    assert default_price("mi300x").count == sum(row.tier == "on-demand" for row in verified)


def test_an_old_price_is_warned_about():
    """A price read more than a year ago comes with a sentence saying so."""
    price = Price(3.5 / 3600, 1e-3, 2e-3, 3, "2025-06-01", "test")
    assert price.warning(date(2026, 6, 1)) is None
    assert "2025-06-01, 366 days ago" in str(price.warning(date(2026, 6, 2)))
    assert default_price("h100").warning(date(2026, 11, 21)) is None


def test_rentals_of_a_chip():
    """Rows can be listed by chip, each with its source."""
    assert {row.chip for row in rentals("b200")} == {"b200"}
    assert all(row.source.startswith("https://") for row in rentals())
    assert len(rentals()) > len(rentals("b200")) > 5


def test_a_system_is_varied_in_place():
    """Only what is given changes, and what changed is listed."""
    base = system("hgx-h200")
    varied = parse_system({"like": "hgx-h200", "memory_bandwidth": 5e12, "flops": {"fp8": 2e15}})
    assert varied.chip.memory_bandwidth == 5e12
    assert varied.chip.peak("fp8") == 2e15
    assert varied.chip.peak("bf16") == base.chip.peak("bf16")
    assert varied.chip.memory == base.chip.memory
    assert varied.topology == "hgx-h200"
    assert varied.varied == ("memory_bandwidth", "flops.fp8")
    assert parse_system({"like": "hgx-h200"}) == base


def test_a_reported_capacity_does_not_outlive_a_changed_one():
    """With a capacity of the user's own there is no driver-reported one."""
    assert parse_system({"like": "hgx-h200", "memory": 100e9}).chip.memory_reported is None


def test_an_inline_system_needs_its_figures():
    """Without `like`, memory, bandwidth and peaks are required."""
    made = parse_system({"memory": 1e11, "memory_bandwidth": 1e12, "flops": {"bf16": 1e15}})
    assert (made.chip.memory, made.topology, made.varied) == (1e11, None, ())
    with pytest.raises(CatalogueError, match="needs memory_bandwidth, flops"):
        parse_system({"memory": 1e11})
    with pytest.raises(CatalogueError, match="did you mean 'memory'"):
        parse_system({"like": "hgx-h200", "memry": 1e11})


def test_every_system_names_a_known_chip_and_domain():
    """Systems hold together: a chip, at least one chip per domain, a one-way link."""
    for entry in map(system, system_names()):
        assert entry.chip.name in chip_names()
        assert (entry.chips_per_domain or 1) >= 1
        assert entry.scale_up is None or entry.scale_up > 0


@for_all("name", chip_names())
def test_every_chip_is_a_system(name):
    """By its own name: the machine that is made of it, or cards on the lanes that its row has."""
    entry = system(name)
    assert entry.chip == chip(name)
    if entry.topology is None:
        assert (entry.scale_up, entry.name) == (chip(name).pcie, name)
        assert entry.chips_per_domain == (8 if chip(name).pcie else None)


def test_lanes_are_what_their_generation_carries():
    """8, 16 and 32 GT/s a lane, 128 of 130 bits of them data, eight bits a byte; sixteen lanes."""
    carried = {"3.0 x16": 8e9 * 16, "4.0 x16": 16e9 * 16, "5.0 x16": 32e9 * 16, "5.0 x8": 32e9 * 8}
    figures = [chip(name).figures["pcie"] for name in chip_names() if chip(name).pcie]
    assert len(figures) > 20
    for figure in figures:
        lanes = next(bits for words, bits in carried.items() if words in figure.note)
        assert figure.base == pytest.approx(lanes * 128 / 130 / 8, rel=2e-3)


def test_reported_memory_is_near_the_listed():
    """Drivers report MiB of what vendors list as GB, less what error correction takes."""
    for entry in map(chip, chip_names()):
        if entry.memory_reported:
            assert 1.0 <= entry.memory_reported / entry.memory <= 1.075
            assert entry.usable.memory == entry.memory_reported


@for_all("name", [name for name in system_names() if system(name).topology])
def test_links_agree_with_the_network_of_the_same_name(name):
    """The one-way links held here are those of the machine in the package topologies."""
    machine = topologies.machine(system(name).topology)
    entry = system(name)
    assert (entry.scale_up, entry.scale_out) == (machine.scale_up, machine.scale_out)
    assert entry.chips_per_domain == machine.chips_per_domain
