"""Answers to random questions, computed anew by what shares nothing with the search."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
from hypothesis import given, seed, settings

from planner.problems.serving.search.batch import search
from tests.campaign.kinds import soundness
from tests.campaign.soundness import answer, cache_bytes, checked, parameters, question
from tests.cases.serving import decided, questions, searched
from tests.paths import ROOT

FEW = [range(4, 6), pytest.param(range(10, 18), marks=pytest.mark.slow)]


@pytest.mark.parametrize("numbers", FEW, ids=str)
def test_answers_are_what_they_say(numbers):
    """Chips, memory, promises, prices, bound and roof; a few relations between answers."""
    assert sum(soundness(number) < 2 for number in numbers) > len(numbers) / 2


@pytest.mark.parametrize(
    ("part", "key", "factor", "told"),
    [
        (None, "chips", 100, "chips are not among"),
        (None, "tpot", 1e4, "breaks"),
        (None, "usd_per_hour", 1.001, "chips cost"),
        (None, "usd_per_mtok", 1.001, "by hand"),
        ("memory_per_chip", "weights", 0.5, "does not add up"),
        (None, "chips_used", 7, "used than paid"),
        ("memory_per_chip", "free", -1, "does not add up"),
    ],
)
def test_a_number_that_is_wrong_is_seen(part, key, factor, told):
    """The check itself: each number of a sound answer, made wrong, is named."""
    asked = question(0) | {
        "promises": {"tpot": "1000 ms"},
        "choose": {"mode": "aggregated"},
        "chips": 4,
        "model": "llama-3.1-8b",
    }
    document = copy.deepcopy(sound(json.dumps(asked)))
    assert not checked(asked, document)
    holder = document["plan"][part] if part else document["plan"]
    holder[key] *= factor
    assert any(told in fault for fault in checked(asked, document))


SOUND: dict[str, str] = {}


def sound(asked: str) -> dict[str, object]:
    """The answer, computed once."""
    if asked not in SOUND:
        SOUND[asked] = json.dumps(answer(json.loads(asked)))
    document: dict[str, object] = json.loads(SOUND[asked])
    return document


def test_parameters_are_those_that_are_published():
    """Llama 3.1 8B has 8.03e9 parameters and 128 KiB of cache per token in bf16."""
    file = ROOT / "planner" / "catalogue" / "models" / "llama-3.1-8b.json"
    raw = json.loads(file.read_text(encoding="utf-8"))
    config = raw.get("config", raw)
    assert parameters(config) == pytest.approx(8.03e9, rel=1e-3)
    assert cache_bytes(config, "bf16") == 131_072


@pytest.mark.slow
def test_two_processes_give_one_answer(tmp_path):
    """Byte by byte, whatever the seed of their hashes."""
    (tmp_path / "s.json").write_text(json.dumps(question(1)), encoding="utf-8")
    words = [sys.executable, "-m", "planner", "solve", str(tmp_path / "s.json"), "--json", "-q"]
    first, second = (
        subprocess.run(
            words,
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second


def no_layout_beats_the_plan(first: int, count: int) -> None:
    """Brute force over every layout and every whole batch of so many small systems."""

    @seed(first)
    @settings(max_examples=count, deadline=None, database=None)
    @given(questions())
    def agrees(task):
        batches = search(searched(task))
        every = decided(task, int(batches.largest.max()) + 2)
        best = float(batches.score[0]) if batches.rows.size else float("inf")
        assert best == pytest.approx(every.best, rel=1e-9)

    agrees()
