"""Tokens of a step that drafts, and the batch up to which that pays."""

from itertools import product

import numpy as np
import pytest

from formulas.registry import find


def chance(first, decay, place):
    """Chance that a draft is accepted once those before it are."""
    return find("draft_chance").numpy()(a_draft=first, q_draft=decay, i_draft=float(place))


def tokens(first, decay, drafts):
    """Tokens of a step by the recurrence, from the last draft to the first."""
    whole, after = find("tokens_of_drafts").numpy(), 1.0
    for place in range(drafts, 0, -1):
        p = chance(first, decay, place)
        after = whole(one_token=1.0, one_seq=1.0, p_draft=p, g_next=after)
    return after


@pytest.mark.parametrize(
    ("first", "decay", "drafts"),
    [(0.0, 1.0, 3), (0.7, 1.0, 4), (0.8, 0.9, 5), (0.3, 1.4, 8), (1.0, 1.0, 6)],
)
def test_tokens_are_those_of_every_outcome_weighed(first, decay, drafts):
    """Each draft is accepted or not; a step emits the accepted ones before the first refused."""
    mean = 0.0
    for outcome in product((True, False), repeat=drafts):
        weight, emitted = 1.0, 1
        for place, accepted in enumerate(outcome, 1):
            p = min(1.0, first * decay ** (place - 1))
            weight *= p if accepted else 1 - p
        for accepted in outcome:
            if not accepted:
                break
            emitted += 1
        mean += weight * emitted
    assert tokens(first, decay, drafts) == pytest.approx(mean, rel=1e-12)


def test_tokens_are_one_and_the_sum_of_accepted_runs():
    """The sum of the contract, where no chance reaches one; constant chances give its series."""
    run = find("accepted_run").numpy()
    total = sum(run(a_draft=0.8, q_draft=0.93, i_draft=float(i)) for i in range(1, 8))
    assert tokens(0.8, 0.93, 7) == pytest.approx(1 + total, rel=1e-12)
    assert tokens(0.7, 1.0, 5) == pytest.approx((1 - 0.7**6) / 0.3, rel=1e-12)


def test_at_the_break_even_batch_both_ways_emit_as_fast():
    """Below it a step that drafts is faster per token, beyond it slower."""
    assert find("break_even_batch").check()
    case = {
        "t_const": 6e-3, "t_each": 2e-5, "t_check": 4e-5, "t_draft_const": 5e-4,
        "t_draft_each": 1e-5, "n_draft": 3.0, "g": 2.4,
    }  # fmt: skip
    even = find("break_even_batch").numpy()(**case, one_seq=1.0, one_token=1.0)

    def gain(batch):
        plain = case["t_const"] + case["t_each"] * batch
        passes = case["t_check"] * batch + case["t_draft_const"] + case["t_draft_each"] * batch
        return case["g"] * plain / (plain + case["n_draft"] * passes)

    assert gain(even) == pytest.approx(1, rel=1e-12)
    assert gain(even / 2) > 1 > gain(2 * even)
    assert np.all(np.diff([gain(b) for b in np.geomspace(1, 4 * even, 50)]) < 0)
