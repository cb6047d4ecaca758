"""Departing batches: a Markov chain of what each departure leaves behind, solved by iteration.

The product has a closed form by Lambert's W and a Fourier transform. Here the chain from one
departure to the next is a matrix of Poisson chances, and times are summed over a grid of moments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from scipy.stats import poisson

from tests.campaign.rechecks.common import Document, close, differs

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)  # moments of arrival, in two parts
SURE = 1e-7  # of a share
FULL = 0.9  # load above which the chain has too many states to be quick


def question(number: int) -> Document:
    """A sound question of departing batches, by its number."""
    rng = random.Random(f"schedule:{number}")
    interval, load = rng.choice((0.005, 0.02, 0.5)), rng.uniform(0.05, FULL)
    asked: Document = {"problem": "schedule", "interval": f"{interval} s", "draws": 20_000}
    if rng.random() < 0.1:
        return {**asked, "arrivals": f"{rng.uniform(10, 500)} requests/s"}
    seats = rng.choice((1, 2, 3, 5, 8, 16, 24))
    load = rng.uniform(1.0, 1.3) if rng.random() < 0.1 else load
    return {**asked, "capacity": seats, "arrivals": f"{load * seats / interval!r} requests/s"}


def left_behind(seats: int, load: float) -> np.ndarray:
    """Chances of each number that a departure leaves behind, by the chain's own equations."""
    mean = load * seats
    many = int(60 * seats / (1 - load)) if load > 0.5 else 40 * seats
    many = min(many, 700)
    come = poisson.pmf(np.arange(2 * many + seats), mean)
    steps = np.zeros((many, many))
    for waiting in range(many):
        for left in range(many):
            if left == 0:
                steps[waiting, 0] = come[: max(seats - waiting + 1, 0)].sum()
            elif left - waiting + seats >= 0:
                steps[waiting, left] = come[left - waiting + seats]
    steps /= steps.sum(axis=1, keepdims=True)
    equations = np.vstack([steps.T - np.eye(many), np.ones(many)])[1:]
    found: np.ndarray = np.linalg.solve(equations, np.r_[np.zeros(many - 1), 1.0])
    return found


def share_within(seats: int, load: float, left: np.ndarray, intervals: float) -> float:
    """Share of the requests that ride to the end within so many intervals of their arrival."""
    total, turn = 0.0, 1 - (intervals - np.floor(intervals))  # when one more may be missed
    for start, end in ((0.0, turn), (turn, 1.0)):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            moment = start + (end - start) * (node + 1) / 2
            missed = np.floor(intervals - 2 + moment + 1e-12)  # departures that may be missed
            if missed >= 0:
                room = (missed + 1) * seats - 1 - np.arange(len(left))
                chance = float(left @ poisson.cdf(room, load * seats * moment))
                total += (end - start) / 2 * weight * chance
    return total


def faults(asked: Document, document: Document) -> Iterator[str]:
    """What does not hold of an answer."""
    question, plan = document["scenario"], document["plan"]
    interval, arrivals = question["interval"], question["arrivals"]
    if "capacity" not in asked:
        yield from differs("mean without a limit of seats", plan["mean"], 1.5 * interval)
        yield from differs("longest without a limit of seats", plan["worst"], 2 * interval)
        return
    seats = asked["capacity"]
    load = arrivals * interval / seats
    if (document["status"] == "infeasible") != (load >= 1):
        yield f"{document['status']} at a load of {load}"
    if plan is None or load >= 1:
        return
    yield from differs("load", plan["load"], load)
    left = left_behind(seats, load)
    queue = float(np.arange(len(left)) @ left)
    mean = 1.5 + queue / (load * seats)
    yield from differs("mean", plan["mean"], mean * interval)
    yield from differs("exact mean", plan["exact"], mean * interval)
    yield from differs("intervals", plan["over_interval"], mean)
    if not close(plan["queue"], queue, absolute=1e-8):
        yield f"queue: {plan['queue']} in the answer, {queue} by the chain"
    for name, time in plan["quantiles"].items():
        share = share_within(seats, load, left, time / interval)
        if abs(share - float(name[1:]) / 100) > SURE:
            yield f"{name}: {share:.5f} of the requests ride within it"
    missing = 1 - share_within(seats, load, left, 2.0)
    if abs(missing - plan["left_out"]) > SURE:
        yield f"left out: {plan['left_out']}, by the chain {missing}"
    shown = plan["simulation"]
    if shown and abs(shown["mean"] - mean * interval) > 6 * shown["error"]:
        yield f"the simulated mean is {shown['mean']}, by the chain {mean * interval}"
    if shown:
        off = shown["mean"] / (mean * interval) - 1
        if abs(shown["off"] - off) > SURE:
            yield f"the simulation is off by {shown['off']}, by hand {off}"
    yield from _slopes(document["elasticities"], seats, load)
    if document["bound"]["mean"] > plan["mean"] * (1 + 1e-9):
        yield "the bound lies above the mean"


def _slopes(printed: Document, seats: int, load: float) -> Iterator[str]:
    """Elasticities by differences of the chain."""
    means = []
    for factor in (1 - 1e-3, 1 + 1e-3):
        left = left_behind(seats, load * factor)
        means.append(1.5 + float(np.arange(len(left)) @ left) / (load * factor * seats))
    slope = float(np.log(means[1] / means[0]) / np.log((1 + 1e-3) / (1 - 1e-3)))
    for name, by_hand in (("arrivals", slope), ("interval", 1 + slope)):
        if name in printed and abs(printed[name] - by_hand) > 1e-3 * max(1.0, abs(by_hand)):
            yield f"elasticity to {name}: {printed[name]}, by the chain {by_hand}"
