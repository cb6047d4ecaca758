"""No input of a user ends as a fault of the program: an answer, or a refusal that says where."""

import shutil

import pytest

from planner.cli.app import main
from tests.paths import shared
from tests.sizes import first

FAULT = 3  # exit status
NAMES = ("schedule-nan", "fleet-memory", "fleet-tiny-hour", "schedule-memory", "rl-own-stack",
         "rl-memory", "rl-lag", "buy", "prices-one-over-inf")  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the inputs that once broke the program, and the working folder."""
    shutil.copytree(shared("hard"), tmp_path / "hard")
    monkeypatch.chdir(tmp_path / "hard")


def status(*words):
    """Exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code or 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", first(4, NAMES))
def test_an_input_that_once_broke_it_has_an_answer_or_a_refusal(name, capsys):
    """What was refused is told with a place; nothing asks for a report."""
    assert status("solve", f"{name}.yaml", "-q") in (0, 1, 2)
    said = capsys.readouterr()
    assert "fault of ours" not in said.err
    assert said.out or f"{name}.yaml:" in said.err


@pytest.mark.usefixtures("folder")
def test_a_far_coordinate_is_answered(capsys):
    """Four chips are looked at, not the box around them."""
    assert status("topology", "topology-coord.json", "-q") == 0
    assert "4 chips" in capsys.readouterr().out


def test_ticks_take_every_value_of_their_axis():
    """Zero, infinities, no number, and the least and largest floats have some text."""
    from planner.problems.prices.presentation import QUANTITY_FORMATS

    ends = (0.0, 5e-324, 1e-30, 1.0, 1e30, 1.7e308, -1.0, float("inf"), float("nan"))
    for name, (_, form) in QUANTITY_FORMATS.items():
        for value in ends:
            assert form(value), name
    assert QUANTITY_FORMATS["batch_over_normal"][1](0.0) == "0"
