"""Goodput: the best interval between checkpoints, against failures drawn at random."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import planner
from formulas.training import goodput
from tests.cases.training import asked

HOUR = 3600.0
# The Llama 3 Herd of Models, section 3.3.4: 419 failures in 54 days on 16,384 chips.
REPORTED = 54 * 86400.0 / 419

FIXED = {"tp": 8, "pp": 4, "cp": 1, "recompute": "full", "zero": 1, "offload": "none"}


def simulated(between, save, restart, interval, events=20_000, seed=1):
    """Share of the time that trains, of failures at random, event by event."""
    rng = np.random.default_rng(seed)
    clock = useful = 0.0
    for failure in rng.exponential(between, events):
        whole = int(failure // (interval + save))
        useful += whole * interval
        clock += failure + restart
    return useful / clock


def test_failures_as_reported():
    """419 failures in 54 days are one in 3.1 hours."""
    mtbf = REPORTED * 16384
    between = goodput.time_between_failures.numpy()(M_fail=mtbf, n_train=16384.0)
    assert between / HOUR == pytest.approx(3.1, abs=0.05)


def test_the_best_interval_loses_least():
    """SciPy finds the same minimum of the loss."""
    save, between, restart = 60.0, REPORTED, 600.0
    loss = goodput.failure_loss.numpy()

    def lost(interval):
        return float(loss(t_save=save, tau_save=interval, M_run=between, t_again=restart))

    found = minimize_scalar(lost, bounds=(10, 1e5), method="bounded", options={"xatol": 1e-3})
    best = float(goodput.best_checkpoint_interval.numpy()(M_run=between, t_save=save))
    assert best == pytest.approx(found.x, rel=1e-4)
    assert float(goodput.least_failure_loss.numpy()(
        M_run=between, t_save=save, t_again=restart
    )) == pytest.approx(lost(best), rel=1e-12)  # fmt: skip


@pytest.mark.parametrize("between", [2e4, 1e5, 1e6])
def test_simulated_failures_lose_as_much(between):
    """To first order: the difference is of the size of the loss squared."""
    save, restart = 30.0, 300.0
    interval = float(goodput.best_checkpoint_interval.numpy()(M_run=between, t_save=save))
    loss = float(goodput.least_failure_loss.numpy()(M_run=between, t_save=save, t_again=restart))
    assert 1 - simulated(between, save, restart, interval) == pytest.approx(
        loss, abs=2 * loss**2 + 0.02 * loss
    )


def test_a_plan_has_its_goodput():
    """Days grow by what failures take; more chips fail more often."""
    plain = planner.solve(asked(choose=FIXED)).answer.plan
    reliability = {"mtbf": "50000 hours/chip", "save": "60 s", "restart": "10 minutes"}
    point = planner.solve(asked(reliability=reliability, choose=FIXED)).answer.plan
    assert plain.goodput is None
    between = 50_000 * HOUR / 512
    assert point.time_between_failures == pytest.approx(between)
    assert point.checkpoint_interval == pytest.approx((2 * 60 * between) ** 0.5)
    assert point.goodput == pytest.approx(1 - (2 * 60 / between) ** 0.5 - 600 / between)
    assert point.days == pytest.approx(plain.days / point.goodput)
    assert point.usd == pytest.approx(plain.usd / point.goodput)
    more = planner.solve(asked(reliability=reliability, chips=1024, choose=FIXED)).answer.plan
    assert more.goodput < point.goodput
