"""Chords of what a geometric program of serving cannot hold: below the term, and touching it."""

import numpy as np
import pytest

import planner
from planner.problems.serving.bounds.monomials import chords

VALUES = {
    "cp": 1.0, "k_experts": 8.0, "n_experts": 256.0, "m_pos": 1.0, "g": 1.0, "L_dec": 20.0,
    "n_chunks": 1.0, "x_cohort": 0.0, "one_seq": 1.0, "least_dp": 1.0, "most_dp": 1.0,
    "n_half": 1.0, "k_draft": 1.0, "e_draft": 2.0,
}  # fmt: skip


def test_chords_meet_both_ends_and_lie_below():
    """Coverage of 256 experts by 8 of them a token, all sequences but one's own, on [2, 64]."""
    line, batches = chords(VALUES, 2.0, 64.0, "aggregated"), np.geomspace(2, 64, 200)
    terms = {"cov": 8 * batches / (248 + 8 * batches), "others": batches - 1}
    for name, term in terms.items():
        below = line[f"c_{name}"] * batches ** line[f"s_{name}"]
        assert below[[0, -1]] == pytest.approx(term[[0, -1]], rel=1e-12)
        assert (below <= term * (1 + 1e-12)).all()


@pytest.mark.parametrize("cohort", [0.0, 1.0])
def test_the_chord_of_shared_passes_lies_below_them(cohort):
    """Prompts of 2 to 64 sequences of one to four ranks, each of which ends after 20 tokens."""
    values = {**VALUES, "x_cohort": cohort, "most_dp": 4.0}
    line, sequences = chords(values, 2.0, 64.0, "aggregated"), np.geomspace(0.5, 64, 200)
    come = sequences / 20
    passes = np.minimum(1, 1 / sequences) if cohort else (1 - np.exp(-come)) / come
    below = line["c_pass"] / sequences ** line["s_pass"]
    assert below[[0, -1]] == pytest.approx(passes[[0, -1]], rel=1e-12)
    assert (below <= passes * (1 + 1e-12)).all()
    assert line["c_left"] == pytest.approx(248 / (248 + 8 * 64))


def test_passes_of_hardly_any_prompts_have_an_elasticity():
    """A prompt per million steps shares no pass: two points that differ by rounding are level."""
    asked = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
        "workload": {"input_tokens": 1000, "output_tokens": 10**6},
        "choose": {"mode": "aggregated"},
    }  # fmt: skip
    assert planner.solve(asked).elasticities["price"] == pytest.approx(1.0, abs=1e-3)
