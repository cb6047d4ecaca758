"""Departing batches against published times, the balance equations, and a simulation."""

import math

import numpy as np
import pytest
from scipy.stats import poisson

import planner
from planner.problems.schedule.bulk_queue import (
    mean_queue_after_service,
    simulated_intervals,
    sojourn_time_distribution,
)
from planner.text.errors import InputError
from tests.loops import for_all
from tests.sizes import first

INTERVAL = 0.02
PUBLISHED = {0.5: 1.509, 0.8: 1.652, 0.9: 1.950, 0.95: 2.568}  # of eight seats [intervals]


def asked(load: float, seats: int = 8, draws: int = 0) -> dict[str, object]:
    """A scenario at a load."""
    rate = load * seats / INTERVAL
    return {"problem": "schedule", "units": "base", "interval": INTERVAL, "capacity": seats,
            "arrivals": rate, "draws": draws}  # fmt: skip


def by_balance(seats: int, load: float, states: int) -> float:
    """Mean time [intervals] from the balance equations of what is left behind, cut at `states`."""
    arriving = poisson.pmf(np.arange(states + seats + 1), load * seats)
    chain = np.zeros((states, states))
    for left in range(states):
        to = np.arange(states) - left + seats
        chain[left] = np.where(to >= 0, arriving[np.clip(to, 0, len(arriving) - 1)], 0.0)
        chain[left, 0] = arriving[: max(seats - left + 1, 0)].sum()
    system = chain.T - np.eye(states)
    system[-1] = 1.0
    left = np.linalg.solve(system, np.eye(states)[-1])
    return float(1.5 + np.arange(states) @ left / (load * seats))


@pytest.mark.parametrize("load", PUBLISHED)
def test_the_times_are_those_published(load):
    """Eight seats, Poisson arrivals; closed form and sum over the distribution agree."""
    plan = planner.solve(asked(load)).answer.plan
    assert plan.over_interval == pytest.approx(PUBLISHED[load], abs=5e-4)
    assert plan.exact == pytest.approx(plan.mean, rel=1e-9)


@pytest.mark.parametrize(("seats", "load"), [(1, 0.6), (3, 0.9), (8, 0.95), (40, 0.97), (8, 0.02)])
def test_the_closed_form_is_the_chain_solved_by_linear_algebra(seats, load):
    """The roots against the balance equations."""
    plan = planner.solve(asked(load, seats)).answer.plan
    assert plan.over_interval == pytest.approx(by_balance(seats, load, 900), rel=1e-6)


def test_seats_without_end_are_the_lecture():
    """Half an interval of waiting and a ride on average, two intervals at worst."""
    plan = planner.solve({"problem": "schedule", "interval": "20 ms"}).answer.plan
    assert (plan.over_interval, plan.worst) == pytest.approx((1.5, 2 * INTERVAL))


def test_times_rise_with_the_load_and_do_not_depend_on_the_unit_of_time():
    """In intervals; at the same load more seats wait less."""
    times = [planner.solve(asked(load)).answer.plan.over_interval for load in (0.3, 0.6, 0.9, 0.99)]
    assert times == sorted(times)
    assert times[0] > 1.5
    slower = asked(0.9) | {"interval": 10 * INTERVAL, "arrivals": 0.9 * 8 / INTERVAL / 10}
    assert planner.solve(slower).answer.plan.over_interval == pytest.approx(times[2])
    assert planner.solve(asked(0.9, 64)).answer.plan.over_interval < times[2]


def test_more_arrivals_than_seats_have_no_answer():
    """What falls short is the capacity, by the load."""
    plan = planner.solve(asked(1.25))
    assert plan.status == "infeasible"
    assert [(x.promise, x.short_by) for x in plan.infeasible] == [("capacity", pytest.approx(1.25))]


@pytest.mark.parametrize("change", [
    {"capacity": 0}, {"capacity": 2.5}, {"interval": 0}, {"arrivals": -1}, {"arrivals": None},
    {"seats": 8}, {"draws": 10**9},
])  # fmt: skip
def test_what_is_no_schedule_is_refused_with_its_place(change):
    """Every mistake names its key."""
    with pytest.raises(InputError, match=next(iter(change))):
        planner.solve(asked(0.5) | change)


@pytest.mark.parametrize("load", first(2, (0.5, 0.8, 0.9, 0.95)))
def test_the_simulation_is_within_its_error(load):
    """Four standard errors and one percent; at a load of 95 % with ten million requests."""
    seats, many = 8, 10_000_000 if load > 0.9 else 1_500_000
    mean, error, _, requests = simulated_intervals(load * seats, seats, many)
    closed = planner.solve(asked(load)).answer.plan.over_interval
    assert requests == pytest.approx(many, rel=0.01)
    assert abs(mean - closed) < 4 * error
    assert mean == pytest.approx(closed, rel=0.01)


@pytest.mark.slow
def test_the_quantiles_are_those_of_simulated_requests():
    """Each request followed by itself, departure by departure."""
    rng = np.random.default_rng(7)
    seats, load, spans = 4, 0.85, 60_000
    waiting: list[float] = []
    times = []
    for departure in range(1, spans):
        arrived = departure - 1 + np.sort(rng.random(rng.poisson(seats * load)))
        waiting += list(arrived)
        times += [departure + 1 - moment for moment in waiting[:seats]]
        waiting = waiting[seats:]
    exact = sojourn_time_distribution(seats, load)
    assert exact is not None
    for share in (0.5, 0.95, 0.99):
        assert exact.quantile(share) == pytest.approx(np.quantile(times, share), rel=0.03)
    missed = np.mean(np.array(times) > 2.0)
    assert 1 - exact.within(2.0) == pytest.approx(missed, abs=0.01)
    assert math.isclose(float(exact.left.sum()), 1.0, rel_tol=1e-9)


@pytest.mark.parametrize(("seats", "load"), [(1, 0.3), (8, 0.45), (40, 0.8), (8, 0.1)])
def test_what_is_left_behind_is_the_sum_of_excesses(seats, load):
    """Roots of the generating function against Spitzer's identity, which shares nothing with it."""
    plan = planner.solve(asked(load, seats)).answer.plan
    assert plan.queue == pytest.approx(mean_queue_after_service(seats, load), rel=1e-8)


@for_all("seats", [1, 2, 8, 7680])
@for_all("load", [1e-32, 1e-15, 1e-11, 1e-7, 1e-4, 0.03])
def test_hardly_anybody_waits_where_hardly_anybody_comes(seats, load):
    """Where the terms of the closed form cancel: with one seat half a load, as of M/D/1."""
    answer = planner.solve(asked(load, seats)).answer
    late = answer.plan.over_interval - 1.5
    assert answer.certificate.difference < 1e-7
    assert 0 <= late <= 0.6 * load
    assert answer.plan.left_out >= 0
    if seats == 1:
        assert late == pytest.approx(load / (2 * (1 - load)), rel=1e-6, abs=1e-15)


def test_a_simulation_of_those_who_seldom_come_ends():
    """None in its time is left out and said; a few are counted."""
    never = planner.solve(asked(1e-30, 8, 400_000))
    assert never.answer.plan.simulation is None
    assert "none came" in never.warnings[-1]
    seldom = planner.solve(asked(1e-6, 8, 400_000)).answer.plan.simulation
    assert 50 < seldom.requests < 400_000
    assert abs(seldom.off) < 0.1
