"""Chords of what a geometric program of serving cannot hold: below the term, and touching it."""

import math

import numpy as np
import pytest

import planner
from planner.problems.serving.bounds.monomials import (
    cache_miss_monomial,
    chords,
    min_cache_miss_share,
    tangents,
)
from tests.cases.serving import dense, question, searched, sparse

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


def test_chords_of_a_part_of_a_context_begin_at_one_sequence():
    """On four parts 2 to 64 sequences are a half, that counts as one, to 16 of a slice; of halves
    each reads what half of them choose, and so does a drafter that drafts with all its experts."""
    line = chords({**VALUES, "cp": 4.0, "n_half": 2.0, "n_experts": 16.0}, 2.0, 64.0, "aggregated")
    for name, share, positions in (("cov", 8 / 16, 0.5), ("seen", 1 / 2, 1.0)):
        for sequences in (1.0, 16.0):
            chosen = share * positions * sequences
            below = line[f"c_{name}"] * sequences ** line[f"s_{name}"]
            assert below == pytest.approx(chosen / (1 - share + chosen), rel=1e-12)
    # Half of the most sequences, 32, leave that share of the experts; a part of one is a whole.
    assert line["c_left"] == pytest.approx(0.5 / (0.5 + 0.5 * 16 / 2))
    partly = chords({**VALUES, "cp": 3.0}, 2.0, 64.0, "aggregated")
    assert partly["c_left"] == pytest.approx(248 / (248 + 8 * 22))


def test_a_lone_sequence_meets_none():
    """From one sequence on no monomial but zero lies below B - 1; all experts leave hardly any."""
    line = chords({**VALUES, "n_experts": 8.0}, 1.0, 64.0, "aggregated")
    assert (line["c_others"], line["s_others"]) == (0.0, 1.0)
    assert line["c_left"] == 1e-12
    assert line["c_cov"] == pytest.approx(1.0)
    assert line["s_cov"] == pytest.approx(0.0, abs=1e-12)
    narrow = chords({**VALUES, "cp": 64.0}, 2.0, 3.0, "aggregated")
    assert narrow["c_cov"] == pytest.approx(8 / 256)


PLAN = {**VALUES, "pp": 2.0, "dp": 3.0, "x_own": 1.0, "L_in": 100.0, "x_hit": 0.5, "c_chunk": 500.0}


def terms(values, batch):
    """Each term at a real batch, from its words."""
    picked = values["k_experts"] / values["n_experts"]
    chosen = picked * values["m_pos"] / values["n_half"] * batch / (values["pp"] * values["cp"])
    drafted = values["k_draft"] / values["e_draft"] * batch / (values["pp"] * values["cp"])
    come = batch / (values["pp"] * values["dp"]) / values["L_dec"]
    covered = chosen / (1 - picked + chosen)
    room = values["L_in"] * (1 - values["x_hit"]) / values["c_chunk"]
    return {
        "cov": covered,
        "seen": drafted / (1 - values["k_draft"] / values["e_draft"] + drafted),
        "others": batch - values["x_own"],
        "pass": max((1 - math.exp(-come)) / come, room),
        "left": 1 - covered,
    }


@pytest.mark.parametrize(
    "changes", [{}, {"cp": 2.0, "m_pos": 3.0, "n_half": 2.0}, {"x_own": 0.0, "c_chunk": 55.0}]
)
def test_tangents_have_the_terms_values_and_slopes(changes):
    """At 30 sequences on two stages, three ranks: each monomial, and a thousandth beside."""
    values = {**PLAN, **changes}
    line = tangents(values, 30.0, "aggregated")
    at, step = terms(values, 30.0), 1e-4
    above, below = (terms(values, 30 * math.exp(sign * step)) for sign in (1, -1))
    for name, term in at.items():
        slope = (-1 if name in ("pass", "left") else 1) * line[f"s_{name}"]
        # Passes are counted by the sequences of a rank.
        where = 30 / 6 if name == "pass" else 30.0
        assert line[f"c_{name}"] * where**slope == pytest.approx(term, rel=3e-6), name
        expected = math.log(above[name] / below[name]) / (2 * step)
        assert slope == pytest.approx(expected, abs=1e-5), name


def test_where_all_experts_are_read_nothing_is_left_at_any_batch():
    """Eight of eight experts: the share left is next to nothing, and stays so."""
    line = tangents({**PLAN, "n_experts": 8.0}, 30.0, "aggregated")
    assert (line["c_left"], line["s_left"]) == (1e-12, 0.0)


SHARES = {"S_fixed": 6e9, "S_routed": 64e9, "k_experts": 2.0, "n_experts": 8.0, "tp": 2.0,
          "most_dp": 4.0, "most_pp": 3.0, "M_sram": 0.1e9}  # fmt: skip


def test_the_least_share_that_on_chip_memory_leaves_by_hand():
    """Of 3 GB and a quarter of 64 over eight ranks, 5 GB in all, three stages hold 0.3."""
    assert min_cache_miss_share(SHARES) == pytest.approx(1 - 0.3 / 5)
    assert min_cache_miss_share({**SHARES, "M_sram": 2e9}) == 1e-9


def of_a_bound(sram):
    """The bound's step of a dense model on two stages."""
    limits = {"tp": (1,), "pp": (2,), "dp_attention": (1,)}
    asked = question(dense(), estimate="bound", limits_of=limits, chips=(2,))
    step = searched(asked)
    row = {**step.values(np.ones(1)), "M_sram": sram}
    step.values = lambda batch: {**row, "B": batch}
    return step, row


def test_what_on_chip_memory_leaves_of_a_step_by_hand():
    """Weights once and the caches of half of 20 sequences, less what two stages hold."""
    step, row = of_a_bound(2e6)
    read = row["S_fixed"] + 10 * row["b_kv"] * row["L_ctx"] * float(row["f_heads"][0])
    left = read - 2 * 2e6
    found = cache_miss_monomial(step, 20.0)
    # d ln(V - M) / d ln V is V / (V - M).
    assert found["steep"] == pytest.approx(read / left, rel=1e-9)
    assert found["unsaved"] * read ** found["steep"] == pytest.approx(left, rel=1e-9)
    assert found["most_moved"] > read


def test_ranks_and_parts_read_their_sequences_caches():
    """Three ranks of two parts have a third of 24 sequences each, half of every context."""
    limits = {"tp": (1,), "pp": (1,), "dp_attention": (3,), "cp": (2,), "ep": (3,)}
    step = searched(question(sparse(), estimate="bound", limits_of=limits, chips=(6,), sram=1e5))
    assert len(step.layouts) == 1
    row = {**step.values(np.ones(1)), "R_state": 7e4}
    step.values = lambda batch: {**row, "B": batch}
    read = (
        row["S_fixed"] + row["S_routed"] * 2 / 8 / 3
        + 8 * row["b_kv"] * row["L_ctx"] * float(row["f_heads"][0]) / 2 + 4 * 2 * 7e4
    )  # fmt: skip
    found = cache_miss_monomial(step, 24.0)
    assert found["steep"] == pytest.approx(read / (read - 1e5), rel=1e-9)
    assert found["unsaved"] * read ** found["steep"] == pytest.approx(read - 1e5, rel=1e-9)


def test_what_on_chip_memory_leaves_is_a_number_whatever_it_holds():
    """All of a step, or all but next to nothing: no power is too large for a number."""
    step, row = of_a_bound(1e9)
    assert cache_miss_monomial(step, 20.0) == {"unsaved": 1e-9, "steep": 1.0, "most_moved": 1e18}
    read = row["S_fixed"] + 10 * row["b_kv"] * row["L_ctx"] * float(row["f_heads"][0])
    step, _ = of_a_bound(read / 2 * (1 - 1e-4))
    found = cache_miss_monomial(step, 20.0)
    assert found["steep"] == pytest.approx(700 / math.log(1e18))
    assert found["unsaved"] * read ** found["steep"] == pytest.approx(read * 1e-4, rel=1e-6)
    estimate = searched(question(dense(), limits_of={"tp": (1,), "pp": (2,)}, chips=(2,)))
    assert cache_miss_monomial(estimate, 20.0) == {}


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
