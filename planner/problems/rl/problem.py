"""Reinforcement learning as a problem kind: outputs, parameters, search; the answer and what it
rests on; pools as sections and on a time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.problems.rl import plan as records
from planner.problems.rl.question import RlQuestion
from planner.problems.rl.search import (
    Pools,
    PoolTally,
    require_pools,
    resolve_rl,
    search_pools,
    step_equation,
)
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import BindingLimit, KnownAnswer, MissedPromise, Plan, Provenance
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import Line, Section
from planner.scenario import resolved
from planner.text import wording as say

if TYPE_CHECKING:
    import sympy as sp

    from planner.report.pictures.value_rows import ValueRows


def question_text(plan: records.RlPlan) -> str:
    """What was asked, in a line."""
    question, scenario = plan.question, plan.scenario
    work = question.work
    return (
        f"reinforcement learning of {say.named(scenario['model'], 'model')} on {question.chips} "
        f"chips of {say.named(scenario['system'], 'system')}, {question.policy} policy: "
        f"{work.rollouts:,} answers of {work.answer:,.0f} tokens, cut off at {work.most:,.0f}, in "
        f"{work.updates} optimiser steps; least time"
    )


def _step(point: records.RlPoint) -> Iterator[Line]:
    """The step, and what it is worth."""
    yield Line("step", point.step_time, "s")
    together = "one after the other" if point.policy == "on" else "side by side"
    yield Line("  writing", point.rollouts.seconds, "s", together)
    yield Line("  learning", point.learning.seconds, "s")
    yield Line("  weights sent", point.weights_sent, "s")
    if point.beside:
        yield Line("  beside", point.beside, "s")
    yield Line("rate", point.tokens_per_s, "token/s")
    yield Line("rate of a chip", point.tokens_per_s_per_chip, "token/(s*chip)")
    if point.policy == "off":
        yield Line("idle", say.percent(point.idle, 2), note="of the chips' time")
    yield Line("price of a step", point.usd_per_step, "USD")
    if point.days is not None and point.usd is not None:
        yield Line("days", f"{point.days:.4g}")
        yield Line("cost", point.usd, "USD")


def _writing(pool: records.WritingPool) -> Iterator[Line]:
    """Replicas, batches, and the tail of the longest answer."""
    yield Line("replicas", f"{pool.replicas} of tp {pool.tp}, pp {pool.pp}")
    yield Line("answers", f"{pool.answers} a replica, {pool.batch} at a time")
    yield Line("a token", pool.step_full, "s", f"{say.duration(pool.step_alone)} with one left")
    yield Line("longest answer", f"{pool.longest:,.0f} tokens", note="mean of the longest of all")
    yield Line("last batch ends in", pool.ending, "s")


def _learning(pool: records.LearningPool) -> Iterator[Line]:
    """Layout and time of an optimiser step."""
    yield Line("layout", pool.layout)
    yield Line("optimiser steps", f"{pool.updates} of {say.duration(pool.step_time)}",
               note=f"MFU {say.percent(pool.mfu, 3)}")  # fmt: skip


METHOD = "every layout of a replica with every split of the chips, each pool by its own planner"
OTHERS = 4
DAY = 86400.0
EXPERIMENTAL = (
    "experimental: planner validate --data on runs of reinforcement learning says how far it is off"
)


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


UNITS = {"work.prompt": "token", "work.answer": "token", "work.most": "token"}


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output of a plan."""
    from formulas.training import reinforcement as equations

    assert isinstance(plan, records.RlPlan)
    step = getattr(equations, step_equation(plan.question))
    return step.rhs if name == "step_time" else equations.step_cost.rhs.subs(step.lhs, step.rhs)


class Rl(Problem[RlQuestion]):
    """The pools of least time."""

    kind = "rl"
    version = 1
    plan_type = records.RlPlan
    slow = True
    outputs = (
        Output("step_time", "s", ("time", "step"), equation=partial(_expression, "step_time")),
        Output("usd_per_step", "USD", ("cost", "price"), equation=partial(_expression, "cost")),
        Output("tokens_per_s", "token/s", ("rate",), rises=True),
        Output("tokens_per_s_per_chip", "token/(s*chip)", rises=True),
        Output("idle", "1"),
        Output("days", "day"),
        Output("usd", "USD"),
    )

    def check(self, question: RlQuestion) -> None:
        """Refuse what cannot be looked up."""
        require_pools(resolve_rl(question))

    def parameters(self, question: RlQuestion) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would vary it."""
        resolution = resolve_rl(question)
        system, dtype = resolution.system, question.training.precision
        rows = [
            Parameter("price", resolution.price.value, "USD/(chip*s)", "prices"),
            *(Parameter(path, self.value(question, path), unit, "workload")
              for path, unit in UNITS.items()),
            Parameter(f"system.flops.{dtype}", system.chip.peak(dtype), "flop/s", "chip"),
            Parameter("system.memory_bandwidth", system.chip.memory_bandwidth, "byte/s", "chip"),
            Parameter("system.scale_up", system.scale_up, "byte/s", "chip"),
            Parameter("system.scale_out", system.scale_out, "byte/s", "chip"),
        ]  # fmt: skip
        return settable(question, rows)

    def search(
        self, question: RlQuestion, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best pools of all."""
        tally = search_pools(resolve_rl(question))
        considered = {"pools_seen": tally.seen, "pools_fitting": tally.fitting}
        if not tally.ranked:
            return replace(NO_PLAN, considered=considered, missed=partial(missed_of, tally))
        best = tally.ranked[0]
        plan, replica = point_of(best), best.rollouts.replica
        holds = [f"rollout.tp={replica.tp}", f"rollout.pp={replica.pp}"]
        if question.policy == "off":
            holds.append(f"split={best.rollouts.chips}")
        return Search(values_in(self.outputs, plan), best.choice, best.seconds, plan,
                      holds=tuple(holds), considered=considered, gap=0.0)  # fmt: skip

    def answer(self, question: RlQuestion) -> records.RlPlan:
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
            provenance=Provenance(
                data=resolution.data, warnings=(*resolution.warnings, EXPERIMENTAL)
            ),
        )
        return records.RlPlan(KnownAnswer(whole), question)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The answer as sections; the first has the question for a title."""
        assert isinstance(plan, records.RlPlan)
        title, point, whole = question_text(plan), plan.answer.plan, plan.answer
        if point is None:
            missed = (Line(x.promise, "none", note=x.expression) for x in plan.infeasible)
            return (Section(title, tuple(missed)),)
        blocks = [
            Section(title, tuple(_step(point))),
            Section(f"writing: {point.rollouts.chips} chips", tuple(_writing(point.rollouts))),
            Section(f"learning: {point.learning.chips} chips", tuple(_learning(point.learning))),
        ]
        if whole.alternatives:
            others = (
                Line(x.choice, f"{say.duration(x.step_time)}, loses {say.percent(x.loses, 3)}")
                for x in whole.alternatives
            )
            blocks.append(Section("other pools", tuple(others)))
        proof = whole.certificate
        fits = f"best of {proof.pairs_seen} pairs of pools, of which {proof.pairs_fitting} fit"
        return (*blocks, Section("how sure", (Line("certificate", fits),)))

    def picture(self, plan: Plan) -> ValueRows:
        """Where a step's time goes, each pool a lane of one time axis; steps of other pools."""
        assert isinstance(plan, records.RlPlan)
        from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

        point = plan.answer.plan
        assert point is not None
        writes, learns = point.rollouts, point.learning
        lanes, begins = [], 0.0
        for name, chips, seconds in (
            ("writing", writes.chips, writes.seconds), ("learning", learns.chips, learns.seconds),
        ):  # fmt: skip
            share = say.percent(seconds / point.step_time, 3)
            words = f"{say.duration(seconds)}, {share} of the step"
            lanes.append(
                ValueRow(f"{name}, {chips} chips", begins, begins + seconds, words, chosen=True)
            )
            begins += seconds if point.policy == "on" else 0.0
        end, sent = point.step_time, point.weights_sent
        if point.beside:
            begins = begins if point.policy == "on" else learns.seconds
            lanes.append(
                ValueRow("beside", begins, begins + point.beside, say.duration(point.beside))
            )
        lanes.append(ValueRow("weights sent", end - sent, end, say.duration(sent)))
        steps = [ValueRow("these pools", end, end, say.duration(end), chosen=True)]
        for number, pools in enumerate(plan.answer.alternatives, 1):
            words = f"{say.duration(pools.step_time)}, loses {say.percent(pools.loses, 3)}"
            steps.append(ValueRow(f"other pools {number}", pools.step_time, pools.step_time, words))
        panels = [ValuePanel("where a step goes", "s", lanes, linear=True)]
        panels += [ValuePanel("a step on other pools", "s", steps, linear=True)] * (len(steps) > 1)
        return ValueRows("\n".join(say.filled(question_text(plan))), panels)


PROBLEM = Rl()
