"""Serving questions from one chip to 100,000; run by `pytest tests/benches/bench_sizes.py -s`."""

from __future__ import annotations

import pytest

from tests.cases.serving_sizes import SYSTEMS, counts, growth, walked

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("system", SYSTEMS)
def test_sizes(system: str) -> None:
    """60 counts: processor time, peak memory, and how the time grows."""
    answers = []
    for answer in walked([system], counts(60)):
        answers.append(answer)
        plan = "" if answer.feasible else "  no plan"
        print(
            f"{system:12} {answer.chips:7,} chips {answer.seconds:7.2f} CPU-s "
            f"{answer.peak / 1e6:7.0f} MB{plan}"
        )
    print(f"{system}: CPU grows with chips to the power of {growth(answers):.3f}")
    assert len(answers) == 60
