"""Pools as lines under titles: what writes, what learns, how long a step takes, what else."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.problems.rl import plan as records
from planner.protocol.section import Line, Section
from planner.text import wording as say

if TYPE_CHECKING:
    from planner.report.pictures.value_rows import ValueRows


def sections(plan: records.RlPlan) -> tuple[Section, ...]:
    """The answer as sections; the first has the question for a title."""
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


def picture(plan: records.RlPlan) -> "ValueRows":
    """Where the time of a step goes, each pool a lane of one time axis; steps of other pools."""
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
        lanes.append(ValueRow("beside", begins, begins + point.beside, say.duration(point.beside)))
    lanes.append(ValueRow("weights sent", end - sent, end, say.duration(sent)))
    steps = [ValueRow("these pools", end, end, say.duration(end), chosen=True)]
    for number, pools in enumerate(plan.answer.alternatives, 1):
        words = f"{say.duration(pools.step_time)}, loses {say.percent(pools.loses, 3)}"
        steps.append(ValueRow(f"other pools {number}", pools.step_time, pools.step_time, words))
    panels = [ValuePanel("where a step goes", "s", lanes, linear=True)]
    panels += [ValuePanel("a step on other pools", "s", steps, linear=True)] * (len(steps) > 1)
    return ValueRows("\n".join(say.filled(question_text(plan))), panels)


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
