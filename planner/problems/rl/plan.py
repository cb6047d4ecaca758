"""The answer to a question of reinforcement learning, typed: both pools and their step.

Everything is in base units; `to_document` makes JSON of it, keys in the order of the fields.
"""

from dataclasses import dataclass
from typing import Annotated

from planner.problems.rl.question import RlQuestion
from planner.protocol.document import Day, Second, Share, Token, Unit, Usd
from planner.protocol.plan import Answer, Plan


@dataclass(frozen=True)
class WritingPool:
    """The pool that writes answers.

    `longest` is the mean length of the longest answer of a step, `ending` the time in which the
    last full batch of a replica ends, one answer after another.
    """

    chips: int
    replicas: int
    tp: int
    pp: int
    answers: int
    batch: int
    step_full: Annotated[float, Unit("s/token")]
    step_alone: Annotated[float, Unit("s/token")]
    longest: Token
    ending: Second
    seconds: Second


@dataclass(frozen=True)
class LearningPool:
    """The pool that scores the answers and learns from them."""

    chips: int
    layout: str
    step_time: Second
    mfu: Share
    updates: int
    seconds: Second


@dataclass(frozen=True, kw_only=True)
class RlPoint:
    """Rollout and training pools, step time, throughput and cost of reinforcement learning.

    `idle` is the share of the chips' time in which the pool that is faster waits for the other.
    """

    system: str
    chips: int
    policy: str
    rollouts: WritingPool
    learning: LearningPool
    weights_sent: Second
    beside: Second
    step_time: Second
    tokens_per_s: Annotated[float, Unit("token/s")]
    tokens_per_s_per_chip: Annotated[float, Unit("token/(s*chip)")]
    idle: Share
    usd_per_step: Usd
    days: Day | None
    usd: Usd | None


@dataclass(frozen=True)
class OtherPools:
    """Alternative pools: step time, and relative slowdown of the step."""

    choice: str
    step_time: Second
    loses: Share


@dataclass(frozen=True)
class RlCertificate:
    """Search method, objective, and number of (replica layout, split) pairs seen and feasible."""

    method: str
    objective: float | None
    pairs_seen: int
    pairs_fitting: int


@dataclass(frozen=True, kw_only=True)
class RlAnswer(Answer):
    """The whole answer to a question of reinforcement learning."""

    problem: str = "rl"
    plan: RlPoint | None = None
    certificate: RlCertificate
    alternatives: tuple[OtherPools, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class RlPlan(Plan[RlAnswer]):
    """The answer to a question of reinforcement learning, and the question."""

    question: RlQuestion

    kind = "rl"
    cost_of = "usd_per_step"  # USD of one step
    answer_type = RlAnswer
