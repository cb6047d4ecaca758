"""Shares of times that rest on coefficients, and what a fit is asked about of a pool."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planner.catalogue.profile import COEFFICIENTS, NEUTRAL
from planner.problems.serving.step.shares import (
    coefficient_shares,
    extrapolation_masks,
    hull_numbers,
)
from planner.problems.serving.step.step import Step
from tests.cases.serving import columns, dense, question, sparse

LAYOUT = columns([(2, 2, 1, 2, 4, 1, 1, 8)])


@pytest.mark.parametrize("mode", ["aggregated", "decode"])
def test_a_share_is_what_a_time_is_shorter_without_the_coefficient(mode):
    """Each switched off by itself, against the time with all of them."""
    step = Step(question(sparse(), mode=mode), LAYOUT, bound=False)
    batch = np.array([8.0])
    shares = coefficient_shares(step, batch)
    own = step.task.profile.values
    for quantity, rows in shares.items():
        whole = float(np.ravel(step.work(batch)[quantity])[0])
        for name, row in zip(COEFFICIENTS, rows, strict=True):
            nearly = own[name] * (1e12 if NEUTRAL[name] else 1e-12)
            without = float(np.ravel(step.under({**own, name: nearly}).work(batch)[quantity])[0])
            assert row == pytest.approx(min(abs(1 - without / whole), 1), abs=3e-9)
            assert row == np.round(row, 9)
    assert set(shares) == {"tpot", "ttft"}
    assert shares["tpot"].shape == (len(COEFFICIENTS), 1)
    assert shares["tpot"].max() > 0.1


def test_all_of_a_time_of_nothing_rests_on_nothing():
    """Coefficients that take no time have no share, whatever the time."""
    step = Step(question(sparse(), plain=True), LAYOUT, bound=False)
    shares = coefficient_shares(step, np.array([8.0]))
    assert all((rows >= 0).all() and (rows <= 1).all() for rows in shares.values())
    zero = {**step.task.profile.values, "t_hop": 0.0}
    profile = replace(step.task.profile, values=zero)
    shares = coefficient_shares(
        step.with_task(replace(step.task, profile=profile)), np.array([8.0])
    )
    assert shares["tpot"][COEFFICIENTS.index("t_hop")].tolist() == [0.0]


def test_numbers_of_a_pool_by_hand():
    """Replicas of 8 and 20 chips in domains of 8, two copies of attention, 24 and 1 sequences."""
    layouts = columns([(2, 2, 1, 2, 4, 1, 1, 8), (5, 2, 1, 2, 1, 10, 1, 20)])
    batch = np.array([24.0, 1.0])
    task = question(sparse(), cached_input=0.25, positions_per_step=3.0)
    assert task.machine.chips_per_domain == 8
    numbers = hull_numbers(task, layouts, batch)
    expected = {
        "chips": [8, 20], "domains": [1, 3], "ep": [4, 1], "prompt": 750, "batch": [12, 1],
        "context": 1100, "drafts": 2, "stages": [2, 2], "overlap": [0, 0], "uneven": [0, 0],
        "ranks": [0, 0],
    }  # fmt: skip
    assert {name: value.tolist() for name, value in numbers.items()} == expected
    for mode, absent in (("decode", {"prompt"}), ("prefill", {"batch", "context", "drafts"})):
        assert set(expected) - set(hull_numbers(replace(task, mode=mode), layouts, batch)) == absent
    assert not {"ep", "uneven"} & hull_numbers(question(dense()), layouts, batch).keys()


def test_halves_and_groups_of_experts_are_told_of_each_layout():
    """Two half-batches are level 1; so are groups of experts that the copies do not even out."""
    experts = sparse().n_experts
    ways = next(n for n in range(2, 9) if experts % n)
    layouts = columns([(1, 1, 1, ways, ways, 1, 1, ways), (1, 1, 1, 2, 2, 1, 1, 2)])
    layouts = replace(layouts, halves=np.array([2, 1]))
    numbers = hull_numbers(question(sparse()), layouts, np.array([8.0, 8.0]))
    assert numbers["overlap"].tolist() == [1, 0]
    assert numbers["uneven"].tolist() == [1, experts % 2]
    more = -experts % ways
    evened = hull_numbers(question(sparse(), redundant=more), layouts, np.array([8.0, 8.0]))
    assert evened["uneven"].tolist() == [0, (experts + more) % 2]


def test_distances_are_those_of_the_hull_of_the_fit():
    """Of the numbers of the pool; none where a profile has no hull."""
    layouts, batch = columns([(2, 2, 1, 2, 4, 1, 1, 8)]), np.array([24.0])
    task = question(sparse())
    hull = SimpleNamespace(beyond=lambda numbers: {"of": numbers})
    profile = SimpleNamespace(hull=hull)
    found = extrapolation_masks(
        SimpleNamespace(**{**vars(task), "profile": profile}), layouts, batch
    )
    assert found["of"].keys() == hull_numbers(task, layouts, batch).keys()
    assert extrapolation_masks(
        SimpleNamespace(**{**vars(task), "profile": SimpleNamespace(hull=None)}), layouts, batch
    ) == {}  # fmt: skip
