"""Chords of what a geometric program of serving cannot hold: below the term, and touching it."""

import numpy as np
import pytest

from planner.problems.serving.bounds.monomials import chords

VALUES = {
    "cp": 1.0,
    "k_experts": 8.0,
    "n_experts": 256.0,
    "m_pos": 1.0,
    "n_half": 1.0,
    "k_draft": 1.0,
    "e_draft": 2.0,
}


def test_chords_meet_both_ends_and_lie_below():
    """Coverage of 256 experts by 8 of them a token, and all sequences but one's own, on [2, 64]."""
    line, batches = chords(VALUES, 2.0, 64.0), np.geomspace(2, 64, 200)
    terms = {"cov": 1 - (31 / 32) ** batches, "others": batches - 1}
    for name, term in terms.items():
        below = line[f"c_{name}"] * batches ** line[f"s_{name}"]
        assert below[[0, -1]] == pytest.approx(term[[0, -1]], rel=1e-12)
        assert (below <= term * (1 + 1e-12)).all()
