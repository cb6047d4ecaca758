"""The way out of an infeasible question: how far the nearest plan is from each promise.

And one promise at a time: what it would have to be, the others unchanged. Every promised time grows
with the batch, so in one pool the least value of each is that of the smallest batch, over all
layouts that keep the other promises. Two pools are searched again with the promise relaxed, until
no smaller one is kept.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.pool import min_output
from planner.problems.serving.deployment.questions import OnePool, Question, TwoPools
from planner.problems.serving.pairs.evaluated_pairs import evaluate_pair
from planner.problems.serving.pairs.pool_matching import TTFT_PROMISES, shards
from planner.problems.serving.pairs.pool_pairs import Pair, search_pools, search_pools_batched
from planner.problems.serving.plan import ExceededPromise, RelaxedPromise
from planner.problems.serving.search.batch import fixed_batches, min_chips_step, search, try_batches
from planner.problems.serving.search.promise_limits import quantile_factors
from planner.problems.serving.search.sizing import NEXT_TO_NOTHING
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import LIMITS, PROMISES
from planner.problems.serving.task.task import Task, TaskPair
from planner.protocol.bracket import Bracket, find_bracket, middle, within_factor
from planner.protocol.plan import MissedPromise

PHYSICAL_LIMITS = ("need", "mixed", "together")  # limits that nobody made and nobody can relax
BISECTION_TOLERANCE = 5e-7  # share of a value below which no smaller one is sought
JOINT_RELAXATION_TOLERANCE = 1.005  # factor within which promises that clash are eased together
STRIDE, MAX_RELAXATION = 4.0, 1e6  # steps of that factor outwards, and where they end


def missed_promises(questions: Sequence[Question]) -> list[MissedPromise]:
    """The promises that the nearest plan of questions without answer breaks, and by how much."""
    nearest: list[tuple[str, float]] = []
    least = math.inf
    loaded = [q for q in questions if isinstance(q, TwoPools) and q.pair.demand is not None]
    # Max requests/s of any pair within the promises; 0 if every pair breaks them.
    searches = []
    for two in loaded:
        prefill, decode = (task.with_layout(objective="throughput") for task in two.tasks)
        most = replace(two.pair, demand=None, prefill=prefill, decode=decode)
        reads, writes = (pool.step for pool in two.pools)
        searches.append((most, reads.with_task(prefill), writes.with_task(decode)))
    rates = [pairs[0].requests if pairs else 0.0 for pairs, _ in search_pools_batched(searches)]
    served = dict(zip(map(id, loaded), rates, strict=True))
    for question in questions:
        factors = _exceeded(question, served.get(id(question), 0.0))
        # A question without a named shortfall cannot be the nearest: its factor is infinite.
        worst = max((factor for _, factor in factors), default=math.inf)
        if worst < least:
            nearest, least = factors, worst
    names = [(PROMISES[name], factor) for name, factor in nearest]
    missed = [MissedPromise(name, factor, LIMITS[name].expression) for name, factor in names]
    return missed or [_of_no_promise(questions)]


def exceeded_promises(
    limits: Mapping[str, float], values: Mapping[str, float]
) -> tuple[ExceededPromise, ...]:
    """Limits, by the step's names, exceeded by an evaluated plan, each with its factor."""
    return tuple(
        ExceededPromise(PROMISES[name], values[name] / limit)
        for name, limit in limits.items()
        if values[name] > limit
    )


def _exceeded(question: Question, served: float) -> list[tuple[str, float]]:
    """Shortfall of the nearest plan by promise: (promise, factor), worst promise first.

    Of a load, two pools serve `served`/s.
    """
    if isinstance(question, OnePool):
        return shortfalls(question.step)
    if served > 0:
        return [("load", (question.pair.demand or 0.0) / served)]
    # Two pools that each keep their own promises may still need more chips.
    alone = [dict(shortfalls(pool.step)) for pool in question.pools]
    factors = {name: max(x.get(name, 0.0) for x in alone) for name in alone[0] | alone[1]}
    late = _late(question).items()
    factors |= {name: factor for name, factor in late if factor > max(1.0, factors.get(name, 0.0))}
    return sorted(factors.items(), key=lambda pair: -pair[1])


def shortfalls(step: Step) -> list[tuple[str, float]]:
    """Shortfall of the nearest plan by promise: (promise, factor), worst promise first.

    The nearest plan is the one whose promises need the smallest common factor, over all layouts
    at one sequence per replica or at the given batches; nothing can be nearer, since every
    promised quantity falls with the batch. Promises can be relaxed and memory cannot, so plans
    that do not fit, or whose prefill cannot keep up, are looked at only if there are no others.
    """
    if step.task.loaded:
        load = step.task.arrivals or 0.0
        served = capacity(step)
        if served > 0:
            return [("load", load / served)]
        step = step.with_task(step.task.with_layout(arrivals=None))
    task, layouts = step.task, step.layouts
    rows = np.arange(len(layouts))
    batch, fill = np.ones(len(layouts)), np.ones(len(layouts))
    if task.batches is not None:
        rows, batch, fill = fixed_batches(step)
    values = step.take(rows)(batch, fill if task.load == "none" else fill * NEXT_TO_NOTHING)
    late = quantile_factors(step.take(rows), batch)
    factors = {
        name: np.broadcast_to(values[name] * late.get(name, 1.0) / limit, rows.shape)
        for name, limit in task.limits.items()
    }
    physics = np.max([factors[name] for name in PHYSICAL_LIMITS if name in factors], axis=0)
    promised = np.max(np.stack(list(factors.values())), axis=0)
    if (physics <= 1).any():
        promised = np.where(physics <= 1, promised, np.inf)
    nearest = int(np.argmin(promised))
    missed = [(name, float(factor[nearest])) for name, factor in factors.items()]
    return sorted(((n, f) for n, f in missed if f > 1), key=lambda pair: -pair[1])


def capacity(step: Step) -> float:
    """Maximum requests per second of any layout within the promises, 0 if infeasible."""
    task = step.task
    most = step.with_task(task.with_layout(arrivals=math.inf, objective="throughput"))
    return max((1 / float(score) for score in search(most).score[:1]), default=0.0)


def _late(question: TwoPools) -> dict[str, float]:
    """Ratio of minimum to promised time, by promise, with KV cache transfer and no queue."""
    prefill, decode = question.steps
    promised = question.pair.decode.limits | question.pair.prefill.limits
    rows, batch, _ = try_batches(prefill)
    prefill = prefill.take(rows)
    idle = np.full(batch.size, NEXT_TO_NOTHING)
    values = prefill(batch) if prefill.task.arrivals is None else prefill.filled(batch)(idle)
    transfer = question.pair.transfer(shards(prefill), float(shards(decode).max()))
    fits = np.broadcast_to(values["need"] <= prefill.task.chip.memory, batch.shape)
    factors = quantile_factors(prefill, batch, also="ttft")
    least = {
        name: float(
            np.min((values[name] + transfer) * factors.get(name, 1.0), where=fits, initial=np.inf)
        )
        for name in TTFT_PROMISES
        if name in values
    }
    if "latency" in promised:
        ones = np.ones(len(decode.layouts))
        after = decode(ones)["latency"] * quantile_factors(decode, ones).get("latency", 1.0)
        least["latency"] = least["ttft"] + float(np.min(after))
    shared = least.keys() & promised.keys()
    return {k: least[k] / promised[k] for k in sorted(shared) if math.isfinite(least[k])}


def _of_no_promise(questions: Sequence[Question]) -> MissedPromise:
    """Missed limit, or common promise factor, if each promise alone is feasible in some pool."""
    spare = min(question.task.spare for question in questions)
    replicas = max(max(q.task.limits_of.get("replicas", (math.inf,))) for q in questions)
    if replicas <= spare:
        words = f"choose.replicas above the {spare} of workload.spare_replicas"
        return MissedPromise("replicas", (spare + 1) / replicas, words)
    need = min(map(_least_chips, questions))
    paid = max(questions[0].task.chips)
    if math.isfinite(need) and need > paid:
        words = f"chips >= {need:.0f}, for one replica of each pool and the spare ones"
        return MissedPromise("chips", need / paid, words)
    batch = min(questions[0].tasks[-1].batches or (0,))
    most = max((_most_in_flight(q, batch) for q in questions if isinstance(q, TwoPools)), default=0)
    if most:
        words = f"choose.batch <= {most}, decoded beside as many chips as read their prompts"
        return MissedPromise("batch", batch / most, words)
    common = common_factor(questions)
    made = list(dict.fromkeys(name for q in questions for t in q.tasks for name in t.promises))
    if common is not None and len(made) == 1:
        return MissedPromise(made[0], common, LIMITS[made[0]].expression)
    if common is not None:
        return MissedPromise("promises together", common, "all promises by one plan")
    words = "nothing serves, whatever is promised: loosen choose, or give more chips"
    return MissedPromise("layout", None, words)


def _most_in_flight(question: TwoPools, batch: int) -> int:
    """Maximum sequences in flight, below `batch`, of two pools; 0 if not even one."""
    (reading, decoding), most = question.steps, 0
    while batch - most > 1:
        middle = (most + batch) // 2
        fewer = [task.with_layout(batches=(middle,)) for task in (question.task, decoding.task)]
        pair = replace(question.pair, decode=fewer[0])
        serves = search_pools(pair, reading, decoding.with_task(fewer[1]))[0]
        most, batch = (middle, batch) if serves else (most, middle)
    return most


def common_factor(questions: Sequence[Question]) -> float | None:
    """Factor on all promises together that makes some plan feasible; None if not found."""
    common = find_bracket(
        lambda factors: [-1.0 if _serves(questions, factors[0]) else 1.0],
        Bracket(1.0),
        lambda at: middle(at) if at.closed else (at.near * STRIDE,) * (at.near < MAX_RELAXATION),
        within_factor(JOINT_RELAXATION_TOLERANCE),
    )
    return common.far if common.closed else None


def _least_chips(question: Question) -> float:
    total = 0.0
    for pool in question.pools:
        step, chips = pool.step, pool.step.layouts.replica_chips * 1.0
        fits = step(np.ones(chips.size))["need"] <= step.limits["need"]
        total += float(np.min(chips, where=fits, initial=math.inf)) * (1 + question.task.spare)
    return total


def _serves(questions: Sequence[Question], factor: float) -> bool:
    """True if any plan keeps all promises multiplied by `factor`."""

    def eased(task: Task) -> Task:
        promises = {name: limit * factor for name, limit in task.promises.items()}
        return task.with_layout(promises=promises)

    for question in questions:
        steps = [pool.step.with_task(eased(pool.task)) for pool in question.pools]
        if isinstance(question, OnePool):
            if search(min_chips_step(steps[0])).rows.size:
                return True
            continue
        pair = question.pair
        pair = replace(pair, prefill=eased(pair.prefill), decode=eased(pair.decode))
        if search_pools(pair, steps[0].with_task(pair.prefill), steps[1])[0]:
            return True
    return False


def relaxed_promises(questions: Sequence[Question]) -> tuple[RelaxedPromise, ...]:
    """Each promise with its minimum value under all other promises; None if infeasible."""
    made: dict[str, float] = {}
    least: dict[str, float] = {}
    for question in questions:
        for task in question.tasks:
            made |= task.promises
    # The value of a single pool bounds the search over two.
    pairs = [question for question in questions if isinstance(question, TwoPools)]
    for name in made:
        single = [_least_of_one(q, name) for q in questions if isinstance(q, OnePool)]
        least[name] = min(single, default=math.inf)
        first = _reached_within(pairs, name, least[name] * (1 - BISECTION_TOLERANCE))
        for question, reached in zip(pairs, first, strict=True):
            if math.isfinite(reached):
                least[name] = min(least[name], _least_of_two(question, name, least[name]))
    return tuple(_relaxed(name, limit, least[name]) for name, limit in made.items())


def _relaxed(name: str, limit: float, least: float) -> RelaxedPromise:
    if name == "cache_fits":
        limit, least = 1 - limit, 1 - least
    return RelaxedPromise(name, limit, least if math.isfinite(least) else None)


def _least_of_one(question: OnePool, name: str) -> float:
    if name not in question.task.promises:
        return math.inf
    free = question.step.with_task(question.task.promising(None, name))
    return min_output(free, LIMITS[name].step)


def _least_of_two(question: TwoPools, name: str, bound: float) -> float:
    """Minimum value in two pools, searched below `bound`; infinite if infeasible."""
    pair = question.pair
    promises = {**pair.prefill.promises, **pair.decode.promises}
    (reached,) = _reached_within([question], name, bound * (1 - BISECTION_TOLERANCE))
    if not math.isfinite(reached):
        return reached
    missed = False

    def tight(turn: int) -> bool:
        # Values are discrete, by layout: a value just below the last is often infeasible.
        return turn == 0 if pair.demand is not None else turn % 2 == 0

    def propose(bracket: Bracket) -> Sequence[float]:
        if missed and tight(bracket.turn - 1):
            return ()
        below = reached * (1 - BISECTION_TOLERANCE)
        return (below,) if tight(bracket.turn) else (math.sqrt(bracket.far * reached),)

    def difference(values: Sequence[float]) -> list[float]:
        nonlocal reached, missed
        (least,) = _reached_within([question], name, values[0])
        missed = not math.isfinite(least)
        reached = reached if missed else least
        return [-1.0 if missed else 1.0]

    start = Bracket(reached, promises[name])
    find_bracket(
        difference, start, propose, lambda bracket: reached / bracket.far <= 1 + BISECTION_TOLERANCE
    )
    return reached


def _reached_within(questions: Sequence[TwoPools], name: str, value: float) -> list[float]:
    """Promised quantity of each question under the limit `value`; infinite if infeasible."""
    limit = None if math.isinf(value) else value
    searches = []
    for question in questions:
        pair, (reads, writes) = question.pair, question.pools
        # Without a load the smallest batch is the fastest.
        objective = "latency" if pair.demand is None else pair.decode.objective
        eased = (t.promising(limit if name in t.promises else None, name) for t in pair.tasks)
        prefill, decode = (task.with_layout(objective=objective) for task in eased)
        relaxed = replace(pair, prefill=prefill, decode=decode)
        writing = writes.step.with_task(decode.with_layout(arrivals=None))
        searches.append((relaxed, reads.step.with_task(prefill), writing))

    def least(pair: TaskPair, prefill: Step, decode: Step, serving: Sequence[Pair]) -> float:
        if serving and pair.demand is not None and limit is not None:
            return limit
        plans = (evaluate_pair(pair, prefill, decode, each) for each in serving)
        return min((_reached(plan, name) for plan in plans), default=math.inf)

    searched = search_pools_batched(searches)
    return [least(*of, pairs) for of, (pairs, _) in zip(searches, searched, strict=True)]


def _reached(candidate: Candidate, name: str) -> float:
    """Promised time of a two-pool plan, at the quantile of the promises [s]."""
    tpot = candidate.last.chosen_by["tpot"] * candidate.last.quantile_factor("tpot")
    first_token = candidate.outputs["ttft"] * candidate.pools[0].quantile_factor("ttft")
    if name == "tpot":
        return tpot
    if name == "e2e":
        return first_token + (candidate.task.output_tokens - 1) * tpot
    if name == "ttft":
        return first_token
    if name == "cache_fits":
        return candidate.last.chosen_by["crowded"]
    late = candidate.pools[0].chosen_by[name] + candidate.transfer
    return late * candidate.pools[0].quantile_factor("ttft")
