"""Time of the rollouts of a step: decoding steps from the serving planner, lengths at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from pydantic import ValidationError
from scipy.optimize import brentq
from scipy.special import betainc, exp1

from planner.problems import serving
from planner.problems.rl.question import RlQuestion, RlWork
from planner.protocol.problem import Search
from planner.scenario.keys.fields import LARGEST_COUNT
from planner.text.errors import FieldError, error_paths
from planner.text.quantities import base_units

GRID = 2  # factor between batches that are planned; between them times are straight lines
MAX_TERMS = 1 << 20  # of a sum whose terms hardly differ beyond
MIN_FALL = 1e-290  # of the logarithm of a term, in place of none
MAX_SCALE_RATIO = 1e7  # over the limit: beyond it all answers are cut off


@dataclass(frozen=True)
class AnswerLengths:
    """Lengths of answers: exponential with mean `scale` [token], cut off at `most` [token]."""

    scale: float
    most: float

    @classmethod
    @lru_cache(maxsize=64)  # asked for every layout of the answering chips
    def of(cls, work: RlWork) -> AnswerLengths:
        """Solve for the scale that gives the mean answer length of `work`."""

        def missing(scale: float) -> float:
            return _mean(scale, work.most) - work.answer

        longest = MAX_SCALE_RATIO * work.most
        if missing(longest) <= 0:
            return cls(longest, work.most)
        return cls(float(brentq(missing, work.answer / 2, longest, rtol=1e-14)), work.most)

    @cached_property
    def ended(self) -> float:
        """Share of the answers that end before they are cut off."""
        from formulas.training.reinforcement import ended_share

        return float(ended_share.numpy()(L_most=self.most, theta_ans=self.scale))

    @property
    def mean(self) -> float:
        """Mean length [token]."""
        return _mean(self.scale, self.most)

    def longest(self, count: int) -> float:
        """Mean length of the longest of `count` answers [token]."""
        from formulas.training.reinforcement import longest_answer

        fall, most = -math.log(self.ended), min(count, MAX_TERMS)
        terms = np.arange(1, most + 1)
        order = float(np.sum(np.exp(terms * -fall) / terms))
        if count > most:  # the rest is its integral, by Euler and Maclaurin to parts in 1e12
            ends = np.array([most, count], dtype=float)
            integral = exp1(np.maximum(fall, MIN_FALL) * ends)
            order += float(integral[0] - integral[1] + np.diff(np.exp(-fall * ends) / ends)[0] / 2)
        return float(longest_answer.numpy()(theta_ans=self.scale, S_order=order))

    def alive(self, count: int) -> np.ndarray:
        """Tokens decoded while j of `count` answers are unfinished, (count,) for j = 1 .. count."""
        from formulas.training.reinforcement import tokens_with_so_many_left

        left = np.arange(1, count + 1)
        chance = betainc(count - left + 1, left, self.ended)
        function = tokens_with_so_many_left.numpy()
        return np.asarray(
            function(theta_ans=self.scale, I_alive=chance, n_alive=left.astype(float))
        )


def _mean(scale: float, most: float) -> float:
    from formulas.training.reinforcement import ended_share, mean_answer

    share = float(ended_share.numpy()(L_most=most, theta_ans=scale))
    return float(mean_answer.numpy()(theta_ans=scale, U_cap=share))


@dataclass(frozen=True, eq=False)
class Replica:
    """One layout of a replica that writes answers, and its decoding steps by batch [s/token]."""

    question: RlQuestion
    tp: int
    pp: int
    steps: dict[int, Search] = field(default_factory=dict)

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.tp * self.pp

    def step(self, batch: int) -> float:
        """Time of a decoding step of a batch [s/token]; infinite where it does not fit."""
        if batch not in self.steps:
            with error_paths(_placed):
                self.steps[batch] = serving.PROBLEM.search(self._serving_question(batch))
        return self.steps[batch].outputs.get("tpot", math.inf)

    def fitting(self, batch: int) -> int:
        """Largest planned batch up to `batch` that fits; 0 if no batch fits."""
        fits = [size for size in self._batches(batch) if math.isfinite(self.step(size))]
        return max(fits, default=0)

    def times(self, batch: int) -> np.ndarray:
        """Times of decoding steps of 1 .. `batch` answers [s/token]."""
        ends = [size for size in self._batches(batch) if math.isfinite(self.step(size))]
        return np.interp(np.arange(1, batch + 1), ends, [self.step(size) for size in ends])

    def _batches(self, batch: int) -> list[int]:
        sizes = [GRID**k for k in range(batch.bit_length()) if GRID**k < batch]
        return [*sizes, batch]

    def check(self) -> None:
        """Raise FieldError if the serving planner refuses it, except for a `tp` not given."""
        try:
            with error_paths(_placed):
                serving.PROBLEM.check(self._serving_question(1))
        except FieldError as error:
            # A size that was not asked for is passed over.
            if self.question.rollout.tp or "rollout.tp" not in dict(error.faults):
                raise

    def _serving_question(self, batch: int) -> Any:
        question, pool = self.question, self.question.rollout
        choose = {"mode": "decode", "tp": self.tp, "pp": self.pp, "batch": batch, "replicas": 1}
        if pool.weights is not None:
            choose["weights"] = list(pool.weights)
        keys = {
            "problem": "serving", "model": question.model, "system": question.system,
            "chips": self.chips, "price": question.price, "profile": pool.profile,
            "workload": {"input_tokens": question.work.prompt,
                         "output_tokens": question.work.answer},
            "choose": choose,
        }  # fmt: skip
        try:
            with base_units():
                return serving.QUESTION.model_validate(keys)
        except ValidationError as error:
            raise FieldError(*_faults_of(error)) from None


@dataclass(frozen=True)
class Rollouts:
    """The rollouts of a step on a pool of replicas.

    `answers` are written by the replica that has most, `batch` at a time; `longest` is the mean
    length of the longest of all [token]; `ending` the time in which the last batch ends [s].
    """

    replica: Replica
    chips: int
    replicas: int
    answers: int
    batch: int
    longest: float
    full: float
    alone: float
    ending: float
    seconds: float


def _placed(path: str) -> str:
    return f"rollout.{path.removeprefix('choose.')}"


def _faults_of(error: ValidationError) -> Iterator[tuple[str, str]]:
    for fault in error.errors():
        cause = fault.get("ctx", {}).get("error")
        key = next((str(x) for x in reversed(fault["loc"]) if isinstance(x, str)), "tp")
        key = {"choose": "weights"}.get(key, key)
        yield f"rollout.{key}", str(cause or fault["msg"])


def rollouts(replica: Replica, chips: int) -> Rollouts | None:
    """Rollout phase on `chips` chips; None if no replica or no answer fits."""
    from formulas.training.reinforcement import rollout_time, steady_rollout_time

    question = replica.question
    work, replicas = question.work, chips // replica.chips
    if not replicas:
        return None
    answers = -(-work.rollouts // replicas)
    steady = question.policy == "off" and question.lag > 1
    batch = replica.fitting(min(answers * question.lag, LARGEST_COUNT) if steady else answers)
    if not batch:
        return None
    lengths, times = AnswerLengths.of(work), replica.times(batch)
    longest, ending = lengths.longest(work.rollouts), float(lengths.alive(batch) @ times)
    full, alone = float(times[-1]), float(times[0])
    rates = {"n_ans_r": float(answers), "B_ans": float(batch), "L_ans": lengths.mean,
             "t_full": full}  # fmt: skip
    if steady:
        seconds = steady_rollout_time.numpy()(**rates)
    else:
        seconds = rollout_time.numpy()(
            **rates, T_ending=ending, L_last=longest, L_last_r=lengths.longest(batch), t_one=alone
        )
    return Rollouts(replica, chips, replicas, answers, batch, longest, full, alone, ending,
                    float(seconds))  # fmt: skip
