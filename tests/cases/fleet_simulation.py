"""A fleet's day simulated request by request: arrivals, service, failures, lost machines, starts.

Requests of a model come as a Poisson process at its demand of the hour and wait in one line for the
replica that is free first; a replica serves one after another, exponential times at its column's
rate. In every hour each spot machine is gone with the pool's chance, with all that is on it, and
each replica fails for the hour with another. One that was not there an hour ago serves after its
start. Nothing of the planner is asked but the plan's whole numbers.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.search import FleetChoice

HOUR = 3600.0
LAST = 60.0  # seconds of an hour whose requests may still be waiting at its end


def hours_served(
    task: FleetTask, choice: FleetChoice, days: int, fails: float, seed: int
) -> np.ndarray:
    """Whether all but the requests of the last minute began in their hour: (models, hours)."""
    draw = np.random.default_rng(seed)
    hours = days * task.hours
    served = np.zeros((len(task.models), hours), bool)
    waiting: list[list[float]] = [[] for _ in task.models]
    free: list[list[float]] = [[0.0] * int(n) for n in (choice.firm + choice.spot)[:, -1]]
    for hour in range(hours):
        t, now = hour % task.hours, hour * HOUR
        missing = _missing(task, choice, t, fails, draw)
        for c, column in enumerate(task.columns):
            wanted = int(choice.firm[c, t] + choice.spot[c, t])
            begun = max(0, wanted - len(free[c])) if hour else 0
            late = now + column.start * HOUR
            free[c] = [max(now, at) for at in free[c][:wanted]] + [late] * begun
        for m in range(len(task.models)):
            served[m, hour] = _hour(task, m, t, now, free, missing, waiting, draw)
    return served


def _missing(
    task: FleetTask, choice: FleetChoice, t: int, fails: float, draw: np.random.Generator
) -> list[int]:
    """Replicas of each column that are not there in an hour, lost or failed."""
    missing = [0] * len(task.columns)
    for k, pool in enumerate(task.pools):
        room, gone = 0, False
        mine = [c for c, column in enumerate(task.columns) if column.pool == k]
        for c in sorted(mine, key=lambda c: -task.columns[c].chips):
            for _ in range(int(choice.spot[c, t])):  # machines filled one after another
                if room < task.columns[c].chips:
                    machines = math.ceil(task.columns[c].chips / pool.size)
                    room = machines * pool.size
                    gone = draw.random() < 1 - (1 - pool.lost) ** machines
                room -= task.columns[c].chips
                missing[c] += gone
    for c in range(len(task.columns)):
        there = int(choice.firm[c, t] + choice.spot[c, t]) - missing[c]
        missing[c] += int(draw.binomial(there, fails))
    return missing


def _hour(
    task: FleetTask, m: int, t: int, now: float, free: list[list[float]], missing: list[int],
    waiting: list[list[float]], draw: np.random.Generator,
) -> bool:  # fmt: skip
    """One model's requests of an hour; what is left waits on."""
    end, demand = now + HOUR, float(task.demand[m, t])
    came = np.sort(now + HOUR * draw.random(draw.poisson(demand * HOUR)))
    requests = waiting[m] + came.tolist()
    service = draw.exponential(1.0, len(requests)).tolist()
    replicas = []
    for c, column in enumerate(task.columns):
        if column.model == m:
            replicas += [(at, i, c, 1 / column.rate) for i, at in enumerate(free[c])][missing[c] :]
    heapq.heapify(replicas)
    done = 0
    for at, length in zip(requests, service, strict=True):
        if not replicas or replicas[0][0] >= end:
            break
        ready, i, c, mean = replicas[0]
        until = (at if at > ready else ready) + length * mean
        heapq.heapreplace(replicas, (until, i, c, mean))
        done += 1
    for until, i, c, _ in replicas:
        free[c][i] = until
    waiting[m] = requests[done:]
    return sum(at < end - LAST for at in waiting[m]) == 0
