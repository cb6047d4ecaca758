"""Requests in flight are random: how often there are more than a replica has room for.

Where steps take the same time whatever they carry the number is Poisson; where they grow with it
requests that gather stay longer, and the number is negative binomial, whose variance over mean is
1/(1 - elasticity). The sum over the products n/(x T(n)) is exact; this is it for a time that grows
evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.search.batch import LARGEST_BATCH
from planner.problems.serving.search.sizing import first
from planner.problems.serving.step.kernels import lowered
from planner.problems.serving.step.step import Step

if TYPE_CHECKING:
    from planner.problems.serving.point import BorneLoad

CROWDED = 0.05  # share of time beyond which a plan warns
BESIDE = 0.75  # batch, of the plan's, at which the growth of a step is measured
STEEPEST = 0.99  # elasticity; at 1 no number of sequences is steady
EVEN = 1e-6  # variance over mean, less one, below which a number is Poisson


@dataclass(frozen=True)
class Crowding:
    """Sequences of one replica under a load.

    `decoding` is their mean number, `room` the most whose caches fit into memory at their mean
    context, `crowded` the share of time in which there are more.
    """

    decoding: float
    room: int
    crowded: float


def crowding(step: Step, batch: float, rate: float) -> Crowding:
    """How crowded a replica is that `rate` requests per second arrive at.

    Parameters
    ----------
    step : the model on one layout.
    batch : sequences in flight at which the plan was evaluated.
    """
    room = _room(step)
    if step.task.mode == "prefill":
        return Crowding(0.0, room, 0.0)
    paces = [float(np.ravel(step(np.array([b]))["tpot"])[0]) for b in (batch, BESIDE * batch)]
    emitted = float(np.ravel(step.values(np.ones(1))["L_dec"])[0])
    mean = rate * emitted * paces[0]
    grows = float(np.clip(np.log(paces[0] / paces[1]) / -np.log(BESIDE), 0.0, STEEPEST))
    return Crowding(mean, room, exceeding(mean, grows, room))


def crowded(demand: BorneLoad | None) -> tuple[str, ...]:
    """What to say of a plan whose replicas are full too often."""
    if demand is None or demand.crowded <= CROWDED:
        return ()
    return (
        f"requests come at random: {demand.crowded:.0%} of the time a replica has more than the "
        f"{demand.room_per_replica} that its memory holds, and an engine preempts some or lets "
        "them wait, which no time here includes; give headroom, more chips or a smaller cache",
    )


def exceeding(mean: float, grows: float, room: int) -> float:
    """Share of time in which more than `room` requests are in flight, `mean` of them on average.

    `grows` is the elasticity of the time per output token by their number, below 1.
    """
    from scipy.stats import nbinom, poisson

    spread = float(lowered("flight")(e_T=grows)["x_var"])
    if spread - 1 < EVEN:
        return float(poisson.sf(room, mean))
    return float(nbinom.sf(room, mean / (spread - 1), 1 / spread))


def _room(step: Step) -> int:
    """The largest batch of one replica that memory holds."""
    capacity = step.task.chip.memory

    def full(_: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return np.broadcast_to(step(batch)["need"] > capacity, batch.shape)

    most = np.array([float(LARGEST_BATCH)])
    if not full(np.zeros(1, int), most)[0]:
        return LARGEST_BATCH
    return int(first(full, np.zeros(1), most)[0]) - 1
