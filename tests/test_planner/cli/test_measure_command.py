"""`planner measure`, and a plan that counts on what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture import model_sizes
from planner.benchmark import read_measured, torch_device
from planner.benchmark.record import toml
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import profile
from planner.text.errors import InputError
from tests.cases.measuring_device import Imagined
from tests.test_planner.benchmark.test_record_file import found
from tests.test_planner.cli.conftest import Run

COMMAND = ("measure",)
SCENARIO = {
    "problem": "serving",
    "model": "llama-3.1-70b",
    "chips": 8,
    "workload": {"input_tokens": 4000, "output_tokens": 1000},
}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Imagined:
    """The device that the command finds."""
    made = Imagined()
    monkeypatch.setattr(torch_device, "torch_device", lambda place: made)
    return made


@pytest.mark.usefixtures("device")
def test_one_command_writes_the_file(run: Run, tmp_path: Path) -> None:
    """Its summary on standard output, what it is at on standard error."""
    path = tmp_path / "my-chip.toml"
    status, out, err = run("--quick", "--out", path)
    assert status == 0
    assert "4 TB/s, 83% of the catalogue's peak" in out
    assert err.startswith("1/")
    assert read_measured(path).head.chip == "h200"


@pytest.mark.usefixtures("device")
def test_json_is_one_document_and_nothing_else(run: Run) -> None:
    """With the works and what follows from them."""
    status, out, _ = run("--quick", "--json")
    assert status == 0
    assert json.loads(out)["sustained"]["memory_bandwidth"] == pytest.approx(4e12)


def test_an_interrupted_command_leaves_what_it_has(
    device: Imagined, run: Run, tmp_path: Path
) -> None:
    """Exit status as shells count it, the file marked."""
    device.stops = 3
    path = tmp_path / "my-chip.toml"
    status, _, err = run("--out", path)
    assert status == 130
    assert "interrupted" in err
    assert "complete = false" in path.read_text()
    assert len(read_measured(path).memory) == 3


def test_a_device_that_does_nothing_is_a_fault(device: Imagined, run: Run) -> None:
    """Exit status 3, after what was left out and why."""
    device.unable = ("",)
    status, out, err = run()
    assert status == 3
    assert "no such kernel" in out
    assert "nothing was measured" in err


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("seconds", ["0", "-5", "nan", "1e9"])
def test_a_senseless_time_is_refused(seconds: str, run: Run) -> None:
    """Before anything is measured."""
    status, out, err = run("--seconds", seconds)
    assert (status, out) == (2, "")
    assert "--seconds" in err


@pytest.mark.usefixtures("device")
def test_a_folder_is_no_file(run: Run, tmp_path: Path) -> None:
    """Said before the minutes are spent."""
    status, out, err = run("--out", tmp_path)
    assert (status, out) == (2, "")
    assert "is a folder" in err


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Exit status 2, the line to type, no traceback."""
    monkeypatch.setitem(sys.modules, "torch", None)
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err == (
        "planner: measuring a chip needs the package torch: pip install 'token-planner[measure]'\n"
    )


def test_an_installation_that_does_not_load_is_named(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    """What the loader misses is not our fault, and not the extra's."""
    (tmp_path / "torch.py").write_text("raise ImportError('libcudnn.so.9: cannot open')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err == "planner: PyTorch is installed but does not load: libcudnn.so.9: cannot open\n"


def solved(system: Any, **changes: Any) -> dict[str, Any]:
    """The document of a scenario with this system."""
    return dict(planner.solve({**SCENARIO, "system": system, **changes}).document)


def test_a_plan_counts_on_what_the_chip_sustains(tmp_path: Path) -> None:
    """The estimate slows down, the bound does not move, and the answer names the file."""
    path = tmp_path / "my-chip.toml"
    path.write_text(toml(found(bandwidth=1.2e12)))
    choose = {"tp": 8, "pp": 1, "batch": 32}
    plain = solved("hgx-h200", choose=choose)
    slow = solved({"like": "hgx-h200", "measured": str(path)}, choose=choose)
    before, after = plain["plan"]["time_per_step"], slow["plan"]["time_per_step"]
    model = model_sizes(models.load(SCENARIO["model"]))
    was = profile(plain["provenance"]["profile"]).at(RunContext.of(model, chip("h200"))).values
    assert after["weights"] / before["weights"] == pytest.approx(was["e_w"] / 0.25, rel=1e-4)
    assert after["kv"] / before["kv"] == pytest.approx(was["e_kv"] / 0.25, rel=1e-4)
    assert slow["bound"]["tpot"] == pytest.approx(plain["bound"]["tpot"])
    told = [each for each in slow["provenance"]["data"] if each["what"].startswith("measured")]
    assert told[0]["source"].startswith("my-chip.toml: e_w ")
    assert told[0]["as_of"] == "2026-11-21"
    words = str(planner.solve({**SCENARIO, "system": slow["scenario"]["system"]}))
    assert "hgx-h200 (as measured in" in " ".join(words.split())


def test_a_measured_chip_stands_beside_the_scenario(tmp_path: Path) -> None:
    """Its path is relative to the scenario's file, and every mistake of it is told there."""
    (tmp_path / "chip.toml").write_text(toml(found()).replace('chip = "h200"', 'chip = "h100"'))
    scenario = tmp_path / "plan.yaml"
    scenario.write_text(
        "problem: serving\nmodel: llama-3.1-70b\nchips: 8\n"
        "system: {like: hgx-h200, measured: chip.toml}\n"
        "workload: {input_tokens: 4000, output_tokens: 1000}\n"
    )
    with pytest.raises(InputError) as caught:
        planner.solve(scenario)
    assert str(caught.value).startswith(f"{scenario}:4:")
    assert "system.measured: chip.toml: it was measured on 'NVIDIA H200'" in str(caught.value)
    assert "this system has h200" in str(caught.value)


def test_the_lecture_has_no_losses_to_measure(tmp_path: Path) -> None:
    """It is said, not passed over."""
    path = tmp_path / "my-chip.toml"
    path.write_text(toml(found()))
    with pytest.raises(InputError, match="the lecture counts no losses"):
        solved({"like": "hgx-h200", "measured": str(path)}, assumptions="lecture")


def test_a_chip_outside_the_catalogue_is_described_and_measured(tmp_path: Path) -> None:
    """In full, with its own peaks; the name need not be known."""
    path = tmp_path / "my-chip.toml"
    path.write_text(toml(found()).replace('chip = "h200"', 'chip = ""'))
    own = {
        "memory": "141 GB",
        "memory_bandwidth": "4.8 TB/s",
        "flops": {"bf16": "989 TFLOP/s"},
        "scale_up": "450 GB/s",
        "chips_per_domain": 8,
        "price": "$3/hour",
        "measured": str(path),
    }
    told = [each["source"] for each in solved(own)["provenance"]["data"]]
    assert any(each.startswith("my-chip.toml: ") for each in told)
