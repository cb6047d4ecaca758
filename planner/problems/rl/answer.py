"""The answer to a question of reinforcement learning: pools, step, what else, what it rests on."""

from collections.abc import Iterator

from planner.problems.rl import plan as records
from planner.problems.rl.question import RlQuestion
from planner.problems.rl.resolve import ResolvedRl, resolve_rl
from planner.problems.rl.search import Pools, PoolTally, search_pools
from planner.protocol.plan import BindingLimit, KnownAnswer, MissedPromise, Provenance
from planner.scenario import resolved

METHOD = "every layout of a replica with every split of the chips, each pool by its own planner"
OTHERS = 4
DAY = 86400.0
EXPERIMENTAL = (
    "experimental: planner validate --data on runs of reinforcement learning says how far it is off"
)


def answer(question: RlQuestion) -> records.RlPlan:
    """The pools of least time of a step.

    Raises InputError for what cannot be looked up, or is not answered.
    """
    resolution = resolve_rl(question)
    tally = search_pools(resolution)
    best = tally.ranked[0] if tally.ranked else None
    whole = records.RlAnswer(
        gap=0.0 if best else None,
        scenario=resolved(question),
        plan=point_of(best) if best else None,
        certificate=records.RlCertificate(
            METHOD, best.seconds if best else None, tally.seen, tally.fitting
        ),
        binding=tuple(_binding(best)) if best else (),
        alternatives=tuple(_others(tally)),
        infeasible=None if best else missed_of(tally),
        provenance=_provenance(resolution),
    )
    return records.RlPlan(KnownAnswer(whole), question)


def point_of(pools: Pools) -> records.RlPoint:
    """Both pools with every number of their step."""
    from formulas.training.reinforcement import step_cost

    resolution, writes, learner = pools.resolution, pools.rollouts, pools.learning
    question, framework = resolution.question, resolution.framework
    work, chips = question.work, question.chips
    tokens = work.rollouts * (work.prompt + work.answer)
    usd = float(step_cost.numpy()(
        n_paid=float(chips), p_chip=resolution.price.value, T_rl=pools.seconds
    ))  # fmt: skip
    busy = writes.chips * framework.rollouts * writes.seconds
    busy += learner.chips * framework.learning * learner.seconds
    return records.RlPoint(
        system=resolution.system.name,
        chips=chips,
        policy=question.policy,
        rollouts=records.WritingPool(
            chips=writes.chips, replicas=writes.replicas, tp=writes.replica.tp,
            pp=writes.replica.pp, answers=writes.answers, batch=writes.batch,
            step_full=writes.full, step_alone=writes.alone, longest=writes.longest,
            ending=writes.ending, seconds=framework.rollouts * writes.seconds,
        ),
        learning=records.LearningPool(
            chips=learner.chips, layout=learner.choice, step_time=learner.point.step_time,
            mfu=learner.point.mfu, updates=learner.updates,
            seconds=framework.learning * learner.seconds,
        ),
        weights_sent=pools.sent,
        beside=framework.beside,
        step_time=pools.seconds,
        tokens_per_s=tokens / pools.seconds,
        tokens_per_s_per_chip=tokens / pools.seconds / chips,
        idle=max(0.0, 1 - busy / (chips * pools.seconds)),
        usd_per_step=usd,
        days=question.steps * pools.seconds / DAY if question.steps else None,
        usd=question.steps * usd if question.steps else None,
    )  # fmt: skip


def _binding(pools: Pools) -> Iterator[BindingLimit]:
    """The pools that a step waits for, with d ln(step) / d ln(their time)."""
    framework = pools.resolution.framework
    times = {
        "rollouts": framework.rollouts * pools.rollouts.seconds,
        "learning": framework.learning * pools.learning.seconds,
    }
    if pools.resolution.question.policy == "off":
        # With several steps in flight what is beside both pools is behind them.
        beside = framework.beside if pools.resolution.question.lag == 1 else 0.0
        slower = "learning" if times["learning"] + beside > times["rollouts"] else "rollouts"
        times = {slower: times[slower]}
    for name, seconds in times.items():
        yield BindingLimit(name, seconds / pools.seconds)


def missed_of(tally: PoolTally) -> tuple[MissedPromise, ...]:
    """Why no pools are there: memory."""
    words = (
        f"none of {tally.seen} pairs of pools holds the model: more chips, or fewer bytes a "
        "parameter (training.state), would"
    )
    return (MissedPromise("memory", None, words),)


def _others(tally: PoolTally) -> list[records.OtherPools]:
    """The next best pools that learn on other chips or in other replicas."""
    best, others = tally.ranked[:1], tally.ranked[1 : 1 + OTHERS]
    return [
        records.OtherPools(pools.choice, pools.seconds, pools.seconds / best[0].seconds - 1)
        for pools in others
    ]


def _provenance(resolution: ResolvedRl) -> Provenance:
    """What the answer rests on."""
    return Provenance(data=resolution.data, warnings=(*resolution.warnings, EXPERIMENTAL))
