"""The drafter of a step by hand: its symbols, its collectives, how many drafts pay, its band."""

from dataclasses import replace
from math import exp, hypot, log

import numpy as np
import pytest

from planner.architecture.layers import CacheKind
from planner.problems.serving.step.drafting import (
    break_even,
    draft_collectives,
    drafter_values,
    resident,
    with_accepted,
)
from planner.problems.serving.task.drafter import Drafter
from tests.cases.serving import columns, question, sparse
from tests.loops import for_all

CACHES = (
    CacheKind("full", 2, 1.0, 20.0, None, True, 100.0, 1.0, 4),
    CacheKind("window", 1, 1.0, 6.0, 400, False, 30.0, 1.0, 4),
    CacheKind("sparse", 1, 1.0, 5.0, 2000, True, 9.0, 1.0, 4),
)
DRAFTER = Drafter(
    read=1e6, routed_read=2e6, resident=3e6, routed_resident=4e6, passed=5e6, layers_passed=6e6,
    routed_passed=7e6, caches=CACHES, share=0.25, hidden=64, layers=4, moe_layers=3, experts=16,
    experts_active=4, dtype="bf16",
)  # fmt: skip
SMALL = question(sparse(), positions_per_step=4.0)  # a prompt of 1000, a mean context of 1100


def test_a_drafter_in_symbols_by_hand():
    """A fourth of three caches, the window full and the sparse one not yet."""
    values = drafter_values(replace(SMALL, drafter=DRAFTER))
    assert values == {
        "n_draft": 3, "S_draft": 1e6, "S_draft_x": 2e6, "N_draft": 5e6, "N_draft_lay": 6e6,
        "N_draft_x": 7e6, "b_draft": 20 / 4, "R_draft": (6 * 400 + 5 * 1100) / 4,
        "c_draft": 100 / 4, "A_draft": (30 * 400 + 9 * 1100) / 4, "n_draft_moe": 3,
        "n_draft_lay": 4, "k_draft": 4, "e_draft": 16, "h_draft": 64,
    }  # fmt: skip
    assert resident(replace(SMALL, drafter=DRAFTER)) == {
        "M_fixed": 3e6, "M_routed": 4e6, "b_store": (20 + 5) / 4, "R_bnd_mem": 6 * 400 / 4
    }  # fmt: skip
    one = replace(DRAFTER, experts=0, experts_active=0)
    dense_ = drafter_values(replace(SMALL, drafter=one))
    assert 0 < dense_["k_draft"] < dense_["e_draft"]  # a share that stays finite
    nothing = drafter_values(SMALL)
    assert nothing.keys() == values.keys()
    assert {x for name, x in nothing.items() if name not in ("k_draft", "e_draft", "h_draft")} == {
        0
    }
    assert 0 < nothing["k_draft"] < nothing["e_draft"]
    assert resident(SMALL) == {}


def test_collectives_of_a_drafter_by_hand():
    """Two sums a layer, less what copies of attention exchange with experts; one chip sums none."""
    layouts = columns([(1, 1, 1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 2, 1, 2), (1, 1, 1, 2, 2, 1, 1, 2),
                       (2, 1, 1, 2, 4, 1, 1, 4)])  # fmt: skip
    values = draft_collectives(replace(SMALL, drafter=DRAFTER), layouts)
    assert values["n_draft_ar"].tolist() == [0, 8, 0, 8 - 3]
    assert values["n_draft_a2a"].tolist() == [0, 0, 3, 3]
    for none in draft_collectives(SMALL, layouts).values():
        assert none.tolist() == [0, 0, 0, 0]
        assert none.dtype.kind == "f"


class Timed:
    """A step whose times are a fixed part and one for each sequence, told by the class."""

    plain, passes, checks = (10.0, 0.5), (0.4, 0.03), (0.2, 0.1)

    def __init__(self, task, layouts, *, bound):
        assert not bound
        self.task, self.layouts = task, layouts

    def work(self, batch):
        """Of a step alone, or with three drafts: each a pass and a position to check."""
        fixed, each = self.plain
        if self.task.drafter is None:
            assert self.task.positions_per_step == self.task.tokens_per_step == 1
            return {"step": fixed + each * batch}
        passes = 3 * (self.passes[0] + self.passes[1] * batch)
        checks = 3 * (self.checks[0] + self.checks[1] * batch)
        return {"step": fixed + each * batch + passes + checks, "part.drafts": passes}


@for_all("tokens", [1.1, 1.5, 1.74, 2.5])
@for_all("batch", [4.0, 32.0])
def test_drafts_pay_up_to_the_batch_where_both_are_as_fast(tokens, batch):
    """g steps of 10 + B/2 against one with three drafts of 0.6 + 0.13 B each, from any batch."""
    task = replace(SMALL, drafter=DRAFTER, tokens_per_step=tokens)
    low, found = break_even(Timed(task, columns([(1,) * 8]), bound=False), batch)
    gain = tokens - 1
    slower, dearer = gain * 10 - 3 * 0.6, 3 * 0.13 - gain * 0.5
    expected = np.inf if dearer <= 0 else max(slower / dearer, 0.0)
    assert (low, found) == (0.0, pytest.approx(expected))
    if 0 < found < np.inf:
        alone, drafted = 10 + 0.5 * found, 10 + 0.5 * found + 3 * (0.6 + 0.13 * found)
        assert tokens * alone == pytest.approx(drafted)


def test_drafts_that_cost_nothing_more_for_a_sequence_always_pay():
    """Just as much for each sequence as its tokens bring, and times that fall count as fixed."""

    class Even(Timed):
        passes, checks = (0.5, 0.0625), (0.25, 0.0625)

    task = replace(SMALL, drafter=DRAFTER, tokens_per_step=1.75)
    assert break_even(Even(task, columns([(1,) * 8]), bound=False), 8.0) == (0, np.inf)

    class Dear(Even):
        passes = (5.0, 0.0625)

    # As even, but the fixed part of three drafts is more than that of what they bring.
    assert break_even(Dear(task, columns([(1,) * 8]), bound=False), 8.0) == (0, 0)

    class Falling(Timed):
        plain, passes, checks = (10.0, -0.1), (0.4, 0.0), (0.2, 0.1)

    _, found = break_even(Falling(task, columns([(1,) * 8]), bound=False), 8.0)
    # At a batch of 8 a plain step takes 9.2, taken for fixed.
    assert found == pytest.approx((0.75 * 9.2 - 3 * 0.6) / (3 * 0.1))

    class Growing(Timed):
        plain, passes, checks = (-1.0, 0.5), (0.0, 0.2), (0.0, 0.2)

    # A fixed part below zero is none, so no batch is small enough.
    assert break_even(Growing(task, columns([(1,) * 8]), bound=False), 8.0) == (0, 0)


def test_drafts_of_a_dearer_fixed_part_pay_from_a_batch_on():
    """Three drafts of 6 + B/16 in all against the half step of 10 + B/2 that they bring."""

    class Dear(Timed):
        plain, passes, checks = (10.0, 0.5), (1.75, 0.03125), (0.25, 0.03125)

    task = replace(SMALL, drafter=DRAFTER, tokens_per_step=1.5)
    low, high = break_even(Dear(task, columns([(1,) * 8]), bound=False), 8.0)
    assert (low, high) == (pytest.approx((3 * 2 - 0.5 * 10) / (0.5 * 0.5 - 3 / 16)), np.inf)
    assert 1.5 * (10 + low / 2) == pytest.approx(10 + low / 2 + 3 * (2 + low / 16))
    cheap = replace(task, tokens_per_step=1.75)
    assert break_even(Dear(cheap, columns([(1,) * 8]), bound=False), 8.0) == (0, np.inf)


def test_bands_with_accepted_lengths_by_hand():
    """Both are off independently: squares of logarithms add up, of a price by decoding's share."""
    task = replace(SMALL, accepted_range=(0.8, 1.3))
    less, more = log(0.9), log(1.2)
    # 200 tokens of 3 and a prompt of 1000 of 1: decoding is 600 of 1600.
    for name, share, prices in (("tpot", 1.0, (1.0, 3.0)), ("usd_per_mtok", 600 / 1600, (1.0, 3.0)),
                                ("usd_per_mtok", 1.0, (None, 3.0)), ("ttft", 0.0, (1.0, 3.0)),
                                ("usd_per_mtok", 0.0, (1.0, None))):  # fmt: skip
        low, high = with_accepted(task, name, (0.9, 1.2), prices)
        assert low == pytest.approx(exp(-hypot(less, share * log(1.3))))
        assert high == pytest.approx(exp(hypot(more, share * log(0.8))))
    # A band that lies above the estimate widens from where it is.
    low, _ = with_accepted(task, "tpot", (1.1, 1.2), (1.0, 3.0))
    assert low == pytest.approx(exp(log(1.1) - (hypot(log(1.1), log(1.3)) - log(1.1))))
