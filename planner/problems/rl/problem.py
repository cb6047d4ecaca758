"""Reinforcement learning as a problem kind: outputs, parameters, search, answer, chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.catalogue.systems import System
from planner.problems.rl import plan as records
from planner.problems.rl import search as pool_search
from planner.problems.rl.question import RlQuestion
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import BindingLimit, KnownAnswer, MissedPromise, Plan, Provenance
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import BROKEN, LABEL_WIDTH, AnswerHead, Line, Section, value_lines
from planner.scenario import resolve_keys
from planner.scenario.keys.system_keys import resolved_system
from planner.text import wording as say

if TYPE_CHECKING:
    import sympy as sp

    from planner.report.pictures.value_rows import ValueRows


POOL_NAMES = {"rollouts": "generation", "learning": "training"}  # the pools, as people call them
BAR = 24  # columns of a step


def question_text(plan: records.RlPlan) -> str:
    """Return the question as one line of text."""
    question, work = plan.question, plan.question.work
    system = resolved_system(question.system)  # type: ignore[arg-type]
    assert isinstance(system, System)  # a file is refused before
    steps = f"; {question.steps:,} steps" if question.steps else ""
    return (
        f"RL of {say.reference_text(plan.scenario['model'], 'model')} on "
        f"{system.counted([question.chips])}, {question.policy}-policy: "
        f"{work.rollouts:,} answers of {work.answer:,.0f} tokens a step (max {work.most:,.0f}), "
        f"{work.updates} update{'s' * (work.updates != 1)}{steps}; least time"
    )


def _lanes(point: records.RlPoint) -> list[tuple[str, float, float]]:
    """The parts of a step, and when each begins and ends [s]."""
    writes, learns, end = point.rollouts.seconds, point.learning.seconds, point.step_time
    begins = writes if point.policy == "on" else 0.0
    lanes = [("generation", 0.0, writes), ("training", begins, begins + learns)]
    if point.beside:
        lanes.append(("framework", begins + learns, begins + learns + point.beside))
    return [*lanes, ("weights", end - point.weights_sent, end)]


def _tables(point: records.RlPoint) -> Iterator[Section]:
    """A step on a time axis, then rates and times."""
    heads = ("One step", "takes", f"from 0 to {say.duration(point.step_time)}")
    cells = []
    for name, begins, ends in _lanes(point):
        start, stop = (round(BAR * time / point.step_time) for time in (begins, ends))
        bar = "·" * min(start, BAR - 1) + "█" * max(stop - start, 1)
        cells.append((name, say.duration(ends - begins), bar))
    yield Section("", heads=heads, cells=tuple(cells), shown=True)
    writes, learns, chip = point.rollouts, point.learning, point.tokens_per_s_per_chip
    alone, longest = say.duration(writes.step_alone), f"{writes.longest:,.0f} tokens (mean)"
    mfu = f"MFU {say.three_digits(100 * learns.mfu)}%"
    rows = (
        ("Throughput", f"{point.tokens_per_s:,.0f} tok/s", f"{chip:,.0f} tok/s per chip"),
        ("A token", say.duration(writes.step_full), f"{alone} with one answer left"),
        ("Last batch", say.duration(writes.ending), f"longest answer {longest}"),
        ("Training step", say.duration(learns.step_time), f"{learns.updates} a step, {mfu}"),
    )
    yield Section("", heads=("", "expected", "detail"), cells=rows, shown=True)


METHOD = "every layout of a replica with every split of the chips, each pool by its own planner"
ALTERNATIVES_SHOWN = 4
DAY = 86400.0
EXPERIMENTAL = "experimental: planner validate --data on RL runs says how far it is off"


def rl_point(pools: pool_search.Pools) -> records.RlPoint:
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


def _binding(pools: pool_search.Pools) -> Iterator[BindingLimit]:
    """The pools that a step waits for, with d ln(step) / d ln(their time)."""
    framework = pools.resolution.framework
    times = {
        "rollouts": framework.rollouts * pools.rollouts.seconds,
        "learning": framework.learning * pools.learning.seconds,
    }
    if pools.resolution.question.policy == "off":
        # With several steps in flight, the framework time of a step overlaps both pools.
        beside = framework.beside if pools.resolution.question.lag == 1 else 0.0
        slower = "learning" if times["learning"] + beside > times["rollouts"] else "rollouts"
        times = {slower: times[slower]}
    for name, seconds in times.items():
        yield BindingLimit(name, seconds / pools.seconds)


def missed_promises(tally: pool_search.PoolTally) -> tuple[MissedPromise, ...]:
    """Missed promise of a search without feasible pools: memory."""
    words = (
        f"none of {tally.seen} pairs of pools holds the model: more chips, or fewer bytes a "
        "parameter (training.state), would"
    )
    return (MissedPromise("memory", None, words),)


def _others(tally: pool_search.PoolTally) -> list[records.OtherPools]:
    best, others = tally.ranked[:1], tally.ranked[1 : 1 + ALTERNATIVES_SHOWN]
    return [
        records.OtherPools(pools.choice, pools.seconds, pools.seconds / best[0].seconds - 1)
        for pools in others
    ]


UNITS = {"work.prompt": "token", "work.answer": "token", "work.most": "token"}


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    from formulas.training import reinforcement as equations

    assert isinstance(plan, records.RlPlan)
    step = getattr(equations, pool_search.step_equation(plan.question))
    return step.rhs if name == "step_time" else equations.step_cost.rhs.subs(step.lhs, step.rhs)


class Rl(Problem[RlQuestion, records.RlPlan]):
    """The pools of least time."""

    kind = "rl"
    version = 1
    plan_type = records.RlPlan
    slow = True
    most_lines = 30  # its table of one step is the answer
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
        """Raise FieldError if the scenario cannot be resolved or no pools can be searched."""
        pool_search.require_pools(pool_search.resolve_rl(question))

    def parameters(self, question: RlQuestion) -> list[Parameter]:
        """List the parameters of a scenario, each varied as `--set` would vary it."""
        resolution = pool_search.resolve_rl(question)
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
        tally = pool_search.search_pools(pool_search.resolve_rl(question))
        considered = {"pools_seen": tally.seen, "pools_fitting": tally.fitting}
        if not tally.ranked:
            return replace(NO_PLAN, considered=considered, missed=partial(missed_promises, tally))
        best = tally.ranked[0]
        plan, replica = rl_point(best), best.rollouts.replica
        holds = [f"rollout.tp={replica.tp}", f"rollout.pp={replica.pp}"]
        if question.policy == "off":
            holds.append(f"split={best.rollouts.chips}")
        return Search(output_values(self.outputs, plan), best.choice, best.seconds, plan,
                      holds=tuple(holds), considered=considered, gap=0.0)  # fmt: skip

    def answer(self, question: RlQuestion) -> records.RlPlan:
        """The pools of least time of a step.

        Raises InputError for what cannot be looked up, or is not answered.
        """
        resolution = pool_search.resolve_rl(question)
        tally = pool_search.search_pools(resolution)
        best = tally.ranked[0] if tally.ranked else None
        whole = records.RlAnswer(
            gap=0.0 if best else None,
            scenario=resolve_keys(question),
            plan=rl_point(best) if best else None,
            certificate=records.RlCertificate(
                METHOD, best.seconds if best else None, tally.seen, tally.fitting
            ),
            binding=tuple(_binding(best)) if best else (),
            alternatives=tuple(_others(tally)),
            infeasible=None if best else missed_promises(tally),
            provenance=Provenance(
                data=resolution.data, warnings=(*resolution.warnings, EXPERIMENTAL)
            ),
        )
        return records.RlPlan(KnownAnswer(whole), question)

    def head(self, plan: records.RlPlan) -> AnswerHead:
        """Both pools, the run's days and money, and which pool a step waits for."""
        question, point = plan.question, plan.answer.plan
        title, chips, proof = question_text(plan), question.chips, plan.answer.certificate
        fit = "not counted" if question.framework == "none" else "fitted to published steps"
        sure = (f"EXPERIMENTAL: overhead of a framework is {fit}",)
        if point is None:
            missed = tuple(each.expression for each in plan.infeasible)
            return AnswerHead(f"{BROKEN} NO PLAN: {title}", cost=missed, certainty=sure,
                              next=(f"planner solve FILE --set chips={2 * chips}",),
                              labels={"cost": "Why"})  # fmt: skip
        cost = f"${point.usd_per_step:,.2f} a step of {say.duration(point.step_time)}"
        if point.days is not None and point.usd is not None:
            cost = f"{say.three_digits(point.days)} days · {say.usd_text(point.usd)} · {cost}"
        words = f"best of {proof.pairs_seen} pairs of pools (all tried, {proof.pairs_fitting} fit)"
        writes, learns = point.rollouts, point.learning
        replicas = f"{writes.replicas} × ({say.degrees(writes.pp, writes.tp, 1, 1)})"
        batch = f", {writes.batch:,} at a time" * (writes.batch < writes.answers)
        answers = f"{replicas}, {writes.answers:,} answers each{batch}"
        waits = " and ".join(POOL_NAMES[limit.name] for limit in plan.binding)
        return AnswerHead(
            title, cost=(cost,), promises=("none asked",), certainty=sure,
            run=(f"generation on {writes.chips:,} chips: {answers}",
                 f"training on {learns.chips:,} chips: {learns.layout}"),
            smaller=("not tried: chips is one number",),
            proof=say.label_row("Proof", words, LABEL_WIDTH),
            limit=(f"a step waits for {waits}; chips are {say.percent(point.idle)} idle",),
            next=(f"planner sweep FILE --over chips={max(chips // 2, 1)},{chips} --out sweep.csv",),
        )  # fmt: skip

    def sections(self, plan: records.RlPlan) -> Sequence[Section]:
        """The answer as sections; the first has the question for a title."""
        title, point = question_text(plan), plan.answer.plan
        if point is None:
            return (Section(title),)
        others = tuple(
            Line(x.choice, say.duration(x.step_time), "", f"{say.percent(x.loses)} slower")
            for x in plan.answer.alternatives
        )
        runners_up = [Section("Runners-up", others)] if others else []
        return (
            Section(title, value_lines(self.outputs, plan, usd="cost")),
            *_tables(point),
            *runners_up,
        )

    def picture(self, plan: records.RlPlan) -> ValueRows:
        """Plot a step on a time axis, one lane per pool; step times of alternative pools."""
        from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

        point = plan.answer.plan
        assert point is not None
        end, lanes = point.step_time, []
        chips = {"generation": point.rollouts.chips, "training": point.learning.chips}
        for name, begins, ends in _lanes(point):
            words, pool = say.duration(ends - begins), name in chips
            share = f", {say.percent((ends - begins) / end, 3)} of the step" * pool
            label = f"{name}, {chips[name]} chips" if pool else name
            lanes.append(ValueRow(label, begins, ends, f"{words}{share}", chosen=pool))
        steps = [ValueRow("these pools", end, end, say.duration(end), chosen=True)]
        for number, pools in enumerate(plan.answer.alternatives, 1):
            words = f"{say.duration(pools.step_time)}, {say.percent(pools.loses, 3)} slower"
            steps.append(ValueRow(f"other pools {number}", pools.step_time, pools.step_time, words))
        panels = [ValuePanel("where a step goes", "s", lanes, linear=True)]
        panels += [ValuePanel("a step on other pools", "s", steps, linear=True)] * (len(steps) > 1)
        return ValueRows("\n".join(say.wrap_text(question_text(plan))), panels)


PROBLEM = Rl()
