"""The file of a measured chip: written, read back the same, refused where it is none."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType

import pytest

from planner.benchmark import ceilings, chip_mismatch, read_measured
from planner.benchmark.record import MeasuredChip, toml
from planner.benchmark.session import catalogue_chip_name, measure
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.profile_choice import choose_profile
from planner.catalogue.systems import system
from planner.problems.serving.profiled import limit_efficiencies
from planner.report.files import dumps
from planner.report.text.calibration_text import measured_document, measured_text
from planner.text.errors import InputError
from tests.cases.measuring_device import H200, Imagined
from tests.loops import for_all

GB = 1e9
GIB = 2**30
SHORT = """\
format = 1
device = "NVIDIA H200"
kind = "cuda"
chip = "h200"
capacity = 150_000_000_000
cache = 52_428_800
as_of = "2026-11-21"
complete = true
seconds = 60
"""
READ = "{kind = 'read', size = 4_000_000_000, repeats = 20, best = 1e-3, median = 1e-3, spread = 0}"


def found(**changes: object) -> MeasuredChip:
    """What a session finds on an imagined H200."""
    device = Imagined(**changes)  # type: ignore[arg-type]
    return measure(device, today=date(2026, 11, 21), clock=device.clock).chip


def file(folder: Path, text: str) -> Path:
    """A file of this text."""
    path = folder / "my-chip.toml"
    path.write_text(text)
    return path


def test_a_measured_chip_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """Works, times to six digits, what was refused and left out, and what follows."""
    chip = found(facts=replace(H200, count=8), wrong=("triad",), unable=("fp8",))
    again = read_measured(file(tmp_path, toml(chip)))
    assert again.head == chip.head
    assert again.refused == chip.refused
    assert again.left_out == chip.left_out
    assert [each.work for each in again.products] == [each.work for each in chip.products]
    assert again.memory_bandwidth == pytest.approx(chip.memory_bandwidth, rel=1e-5)
    assert dict(again.product_rates) == pytest.approx(dict(chip.product_rates), rel=1e-5)
    assert again.all_reduces[8].rate == pytest.approx(chip.all_reduces[8].rate, rel=1e-3)
    assert toml(again) == toml(chip)


@pytest.mark.parametrize("name", ['a "quoted" \\ name', "tab\tand\nline", "Größe 😀", "\x7f\x00"])
def test_any_name_of_a_device_can_be_written(name: str, tmp_path: Path) -> None:
    """Quotes, control characters, other scripts."""
    chip = found()
    odd = replace(chip, head=replace(chip.head, device=name))
    again = read_measured(file(tmp_path, toml(odd)))
    assert again.head.device == "".join(c if c.isprintable() else "?" for c in name)


def test_a_file_without_works_is_read(tmp_path: Path) -> None:
    """It limits nothing."""
    bare = read_measured(file(tmp_path, SHORT))
    assert bare.memory_bandwidth is None
    assert ceilings(bare, chip("h200")) == {}


@for_all(
    ("text", "told"),
    [
        (SHORT.replace("format = 1", "format = 2"), "format: input should be 1, got 2"),
        (SHORT.replace("cache", "cash"), "cash: unknown key 'cash'; did you mean 'cache'?"),
        (SHORT.replace("cache", "cash"), "cache: missing required key 'cache'"),
        (SHORT.replace("150_000_000_000", "-1"), "capacity: input should be greater than"),
        (SHORT.replace("150_000_000_000", "true"), "capacity: input should be a valid integer"),
        (SHORT.replace("11-21", "13-21"), "as_of: expected a day such as 2026-11-21"),
        (SHORT.replace("complete = true", "complete = 1"), "complete: input should be a valid"),
        (SHORT.replace("seconds = 60", "seconds = nan"), "seconds: "),
        (SHORT.replace("h200", "h2000"), "chip: unknown chip 'h2000'; did you mean 'h200'?"),
        (SHORT + "memory = 3", "memory: expected a list, got 3"),
        (SHORT + "memory = [3]", "memory.0: expected a table, got 3"),
        (SHORT + f"memory = [{READ.replace('read', 'reed')}]", "memory.0.kind: input should be"),
        (SHORT + f"memory = [{READ.replace('best = 1e-3', 'best = 2e-3')}]", "than the median"),
        (SHORT + f"memory = [{READ.replace('median = 1e-3', 'median = 0')}]", "memory.0.median"),
        (SHORT + f"memory = [{READ.replace('spread = 0', 'spread = inf')}]", "memory.0.spread"),
        (SHORT + f"memory = [{READ.replace('repeats = 20, ', '')}]", "memory.0.repeats: missing"),
        ("format", "not TOML"),
        (SHORT + "format = 1", "not TOML"),
    ],
)
def test_every_mistake_in_a_file_is_named(text: str, told: str, tmp_path: Path) -> None:
    """By its place, what was expected, and what was meant."""
    with pytest.raises(InputError) as caught:
        read_measured(file(tmp_path, text))
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "my-chip.toml"))


def test_what_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    """By name, without a traceback."""
    path = tmp_path / "chip.toml"
    with pytest.raises(InputError, match=r"chip\.toml: No such file"):
        read_measured(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        read_measured(path)
    path.write_bytes(b"#" * (5 * 2**20))
    with pytest.raises(InputError, match="too large"):
        read_measured(path)


def test_arrays_that_fit_a_cache_say_nothing_of_memory(tmp_path: Path) -> None:
    """A hundred megabytes twice a cache of fifty are not enough."""
    near = READ.replace("4_000_000_000", "100_000_000")
    chip = read_measured(file(tmp_path, SHORT + f"memory = [{near}]"))
    assert chip.memory_bandwidth is None


def test_limits_are_shares_of_the_catalogue_peaks() -> None:
    """Measured bandwidth over listed bandwidth, best product over its peak, wires one way."""
    most = ceilings(found(facts=replace(H200, count=8)), chip("h200"), 450e9)
    assert most["e_w"] == most["e_kv"] == pytest.approx(4e12 / 4.8e12)
    assert most["e_c"] == most["e_pf"] == pytest.approx(7e14 / 989e12)
    assert most["e_ar"] == most["e_ar_pf"] == pytest.approx(360 / 450)


def test_sums_through_the_host_say_nothing_of_the_fast_network() -> None:
    """gloo does not use it."""
    chip_ = found(facts=replace(H200, count=8))
    through = tuple(
        replace(each, work=replace(each.work, backend="gloo")) for each in chip_.all_reduce
    )
    assert "e_ar" not in ceilings(replace(chip_, all_reduce=through), chip("h200"), 450e9)


def test_a_profile_is_limited_and_never_raised(tmp_path: Path) -> None:
    """Efficiencies above the chip's come down to it; those below hold engines' losses."""
    path = file(tmp_path, toml(found()))
    shipped = choose_profile("auto", "h200")[0]
    given = replace(shipped, values={**shipped.values, "e_w": 0.75, "e_kv": 1.0, "e_c": 0.9})
    kept, source = limit_efficiencies(given, replace(system("hgx-h200"), measured=path))
    assert kept.values["e_kv"] == pytest.approx(4 / 4.8, rel=1e-5)
    assert kept.values["e_c"] == pytest.approx(700 / 989, rel=1e-5)
    assert kept.values["e_w"] == 0.75
    assert all(kept.values[name] <= given.values[name] for name in given.values)
    assert all(kept.values[name] == given.values[name] for name in given.values if name[0] == "t")
    assert source is not None
    assert (source.what, source.as_of) == ("measured NVIDIA H200", "2026-11-21")
    assert source.source.startswith("my-chip.toml: e_kv 1 -> 0.833, e_c 0.9 -> 0.708")


def test_a_system_that_was_not_measured_keeps_its_profile() -> None:
    """As it is, with nothing said."""
    given = choose_profile("auto", "h200")[0]
    assert limit_efficiencies(given, system("hgx-h200")) == (given, None)


def test_a_file_of_another_chip_is_refused() -> None:
    """By name, or by a bandwidth that the chip does not have or that somebody else used."""
    other = chip_mismatch(found(), chip("h100"))
    assert other is not None
    assert "measured on 'NVIDIA H200' (the chip h200), and this system has h100" in other
    assert "is above the 4.8 TB/s" in str(chip_mismatch(found(bandwidth=8e12), chip("h200")))
    assert "is far below the 4.8 TB/s" in str(chip_mismatch(found(bandwidth=4e11), chip("h200")))
    fast = MappingProxyType({"bf16": 2e15, "fp8": 1.4e15, "int8": 1e15})
    assert "bf16 rate of 2 PFLOP/s is above" in str(chip_mismatch(found(flops=fast), chip("h200")))


@for_all(
    ("name", "memory", "expected"),
    [
        ("NVIDIA H200", 150 * GB, "h200"),
        ("NVIDIA H100 80GB HBM3", 79.6 * GIB, "h100"),
        ("NVIDIA H100 PCIe", 79.6 * GIB, "h100-pcie"),
        ("NVIDIA H100 NVL", 93.6 * GIB, "h100-nvl"),
        ("NVIDIA A100-SXM4-80GB", 79.3 * GIB, "a100"),
        ("NVIDIA A100-SXM4-40GB", 39.6 * GIB, "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", 79.3 * GIB, "a100-pcie"),
        ("NVIDIA B200", 178 * GIB, "b200"),
        ("NVIDIA GB200", 184 * GIB, "gb200"),
        ("NVIDIA L40S", 44.5 * GIB, "l40s"),
        ("NVIDIA GeForce RTX 4090", 23.6 * GIB, "rtx-4090"),
        ("NVIDIA RTX A6000", 47.5 * GIB, "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", 47.5 * GIB, "rtx-6000-ada"),
        ("AMD Instinct MI300X", 191.7 * GIB, "mi300x"),
        ("NVIDIA A100-PCIE-40GB", 39.6 * GIB, ""),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.8 * GIB, ""),
        ("NVIDIA GH200 480GB", 95 * GIB, "gh200"),
        ("NVIDIA GH200 144G HBM3e", 140 * GIB, "gh200-144gb"),
        ("NVIDIA GeForce RTX 5090", 31.4 * GIB, "rtx-5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 95 * GIB, "rtx-pro-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 95 * GIB, ""),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 95 * GIB, "rtx-pro-6000-server"),
        ("Tesla T4", 14.6 * GIB, "t4"),
        ("Tesla V100-SXM2-16GB", 15.8 * GIB, "v100-16gb"),
        ("NVIDIA H200 NVL", 140 * GIB, ""),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 15.6 * GIB, ""),
        ("NVIDIA GeForce RTX 4090 D", 23.6 * GIB, ""),
        ("AMD EPYC, 2 threads", 25 * GB, ""),
        ("", 80 * GB, ""),
    ],
)
def test_a_chip_is_recognised_by_name_and_memory(name: str, memory: float, expected: str) -> None:
    """Kin and parts of a chip are not taken for it."""
    assert catalogue_chip_name(name, memory) == expected
    assert not expected or expected in chip_names()


def test_every_number_on_the_screen_is_in_the_document() -> None:
    """Text and JSON tell the same; the text fits a terminal."""
    chip = found(facts=replace(H200, count=8), wrong=("triad",), unable=("int8",))
    text, document = measured_text(chip), measured_document(chip)
    assert max(map(len, text.splitlines())) <= 80
    assert "h200 of the catalogue" in text
    assert "4 TB/s, 83% of the catalogue's peak" in text
    assert "wrong results, not kept" in text
    assert "no such kernel" in text
    assert "8 devices: 20.0 us + bytes sent at 360 GB/s" in text
    assert document["sustained"]["memory_bandwidth"] == pytest.approx(4e12)
    assert document["sustained"]["all_reduce"][0]["devices"] == 8
    assert len(document["products"]) == len(chip.products)
    assert '"complete": true' in dumps(document)


@pytest.mark.parametrize(("spread", "doubt"), [(0.01, False), (0.6, True)])
def test_times_that_spread_widely_are_doubted(spread: float, doubt: bool) -> None:
    """A device that others use is not measured."""
    chip = found()
    wide = tuple(replace(each, timing=replace(each.timing, spread=spread)) for each in chip.memory)
    assert ("doubt" in measured_text(replace(chip, memory=wide))) == doubt


def test_the_file_is_toml_that_a_person_can_read() -> None:
    """Date and device on top, a work a line, its rate beside it."""
    text = toml(found())
    raw = tomllib.loads(text)
    assert list(raw)[:4] == ["format", "device", "kind", "chip"]
    assert "# 4 TB/s" in text
    assert "# 700 TFLOP/s" in text
