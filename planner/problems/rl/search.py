"""The best pools of a question: every layout of a replica, every split of the chips, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.catalogue.systems import System
from planner.problems.rl.learning import Learning, learning
from planner.problems.rl.question import RlQuestion
from planner.problems.rl.resolve import ResolvedRl
from planner.problems.rl.rollouts import Replica, Rollouts, rollouts
from planner.text.errors import FieldError


@dataclass(frozen=True)
class Pools:
    """Both pools and the time of a step [s]; on policy they are the same chips."""

    resolution: ResolvedRl
    rollouts: Rollouts
    learning: Learning
    sent: float
    seconds: float

    @property
    def choice(self) -> str:
        """The pools in short words."""
        replica = self.rollouts.replica
        writes = f"{self.rollouts.chips} chips write (tp {replica.tp}, pp {replica.pp})"
        return f"{writes}, {self.learning.chips} learn ({self.learning.choice})"


@dataclass
class PoolTally:
    """What the search saw: pairs of pools timed, of those that fit, and the best first."""

    seen: int = 0
    fitting: int = 0
    ranked: list[Pools] = field(default_factory=list)


def search_pools(resolution: ResolvedRl) -> PoolTally:
    """Every layout of a replica with every split of the chips.

    A split whose rollouts alone take longer than the best step is not laid out for learning.
    Raises FieldError for what either planner refuses, and where no split is left.
    """
    question, framework = resolution.question, resolution.framework
    tally, learned = PoolTally(), dict[int, Learning | None]()
    refused: list[FieldError] = []
    best = math.inf
    replicas = [replica for replica in _replicas(question) if replica.chips <= question.chips]
    for writing, learns in _splits(question, resolution.system):
        for replica in replicas:
            tally.seen += 1
            writes = rollouts(replica, writing)
            if writes is None:
                continue
            alone = framework.rollouts * writes.seconds
            if alone >= best:
                tally.fitting += 1
                continue
            if learns not in learned:
                try:
                    learned[learns] = learning(question, learns)
                except FieldError as error:
                    refused.append(error)
                    learned[learns] = None
            learner = learned[learns]
            if learner is None:
                continue
            tally.fitting += 1
            pools = _timed(resolution, writes, learner)
            tally.ranked.append(pools)
            best = min(best, pools.seconds)
    if not tally.ranked and refused and len(refused) == len(learned):
        raise refused[0]
    tally.ranked.sort(key=lambda pools: pools.seconds)
    return tally


def _replicas(question: RlQuestion) -> Iterator[Replica]:
    """Layouts of a replica: those that are asked for, else powers of two up to a machine."""
    pool = question.rollout
    powers = [2**k for k in range(question.chips.bit_length()) if 2**k <= question.chips]
    for tp in pool.tp or powers:
        for pp in pool.pp or (1,):
            yield Replica(question, tp, pp)


def _splits(question: RlQuestion, system: System) -> Iterator[tuple[int, int]]:
    """Chips that write and chips that learn, the most that write first."""
    chips = question.chips
    if question.policy == "on":
        yield chips, chips
        return
    unit = question.unit or math.gcd(chips, system.chips_per_domain or chips)
    unit = unit if unit < chips else 1
    every = range(unit, chips, unit)
    chosen = [n for n in every if question.split is None or n in question.split]
    if not chosen:
        words = f"both pools have multiples of {unit} chips (unit); of {chips} none is left"
        raise FieldError(("split", words))
    for writing in reversed(chosen):
        yield writing, chips - writing


def _timed(resolution: ResolvedRl, writes: Rollouts, learner: Learning) -> Pools:
    """Both pools with the time of their step."""
    from formulas.training import reinforcement as equations

    framework, sent = resolution.framework, _sent(resolution, writes)
    equation = equations.step_in_turn
    if resolution.question.policy == "off":
        equation = equations.step_side_by_side
    seconds = equation.numpy()(
        x_roll=framework.rollouts, x_learn=framework.learning, T_beside=framework.beside,
        T_roll=writes.seconds, T_learn=learner.seconds, T_synced=sent,
    )  # fmt: skip
    return Pools(resolution, writes, learner, sent, float(seconds))


def _sent(resolution: ResolvedRl, writes: Rollouts) -> float:
    """Time in which new weights reach every replica [s]."""
    from formulas.training.reinforcement import weight_transfer

    system = resolution.system
    rate = system.scale_out or system.scale_up or system.chip.memory_bandwidth
    return float(weight_transfer.numpy()(
        W_sent=resolution.weight_bytes, g_roll=float(writes.replica.chips), R_sent=rate
    ))  # fmt: skip
