"""Load report of a plan with random arrivals: load, waits, room; prefixes cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.outputs import LoopTimes
from planner.problems.serving.point import BorneLoad, KeptPrefixes
from planner.problems.serving.step.engine_effects import loop_symbols

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate


def queueing_report(plan: Candidate) -> BorneLoad | None:
    """Report of open arrivals: load, waiting, spare room; times in s. None without arrivals."""
    first, last = plan.pools[0], plan.last
    if first.task.arrivals is None:
        return None
    values, reads, crowd = first.chosen_by, first.prefills, last.crowding()
    return BorneLoad(
        requests_per_s=values["requests"],
        load=values["load"],
        spare_replicas=first.task.spare,
        readers_busy=values["readers"] if reads else None,
        wait=values["wait"] if reads else None,
        ttft_p95=values["ttft_p95"] + plan.transfer if reads else None,
        ttft_p99=values["ttft_p99"] + plan.transfer if reads else None,
        in_flight=plan.outputs["in_flight"],
        slots=int(last.batch) * last.replicas,
        decoding_per_replica=crowd.decoding,
        room_per_replica=crowd.room,
        crowded=crowd.crowded,
    )


def loop_times(plan: Candidate) -> LoopTimes | None:
    """Closed-loop waiting and TTFT tails; times in s. None without a loop, and on the bound."""
    task, values = plan.last.task, plan.last.chosen_by
    if task.loop is None or task.uses_bound:
        return None
    users, symbols = sum(task.batches or ()), plan.last.step.values(np.array([plan.last.batch]))
    turns = float(np.ravel(loop_symbols(task, symbols)["n_turns"])[0])
    wait = turns * plan.last.batch * values["slot"]
    return LoopTimes(
        users=users,
        waiting=users - round(plan.last.batch * plan.last.replicas * plan.last.fill),
        wait=wait,
        ttft_p95=values["ttft_p95"],
        ttft_p99=values["ttft_p99"],
        settled_p95=values["settled.ttft_p95"] + wait,
    )


def is_overloaded(plan: Candidate) -> bool:
    """True if a plan chosen on the bound cannot serve its load by the estimate."""
    if not plan.task.uses_bound or plan.pools[0].task.arrivals is None:
        return False
    limits = ((pool.estimate, pool.task.limits) for pool in plan.pools)
    return any(at[name] > most[name] for at, most in limits for name in ("load", "readers"))


def prefix_cache_use(plan: Candidate) -> KeptPrefixes | None:
    """Prefix cache: conversations, room and hit share; None if the plan models no such cache."""
    pool = plan.pools[0]
    task, step = pool.task, pool.step
    if not task.cached_input or not task.conversations or not pool.prefills or step.bound:
        return None
    share = float(np.ravel(step.values(np.ones(1))["x_hit"])[0])
    room = int(step.occupancy.room[0] // pool.layouts.dp_attention[0])
    return KeptPrefixes(task.conversations, room, task.routed, share)


def uncounted_prefixes(plan: Candidate) -> tuple[str, ...]:
    """Warnings if the room of the prefix cache is not counted, or too small for the given hits."""
    task, cache = plan.pools[0].task, prefix_cache_use(plan)
    if not task.cached_input or not plan.pools[0].prefills or task.lecture:
        return ()
    if cache is None:
        return (
            f"the plan rests on {task.cached_input:.0%} of the input found in a prefix cache, "
            "whose room is not counted: it holds where caches keep every conversation at its mean "
            "context; give workload.conversations",
        )
    if cache.cached_input >= task.cached_input:
        return ()
    reach = "" if cache.routed else ", which all reach it"
    return (
        f"a rank has room for {cache.room_per_rank:,} contexts of the {cache.conversations:,} "
        f"conversations{reach}, so that at most {cache.cached_input:.1%} of the input is found, "
        f"not {task.cached_input:.0%}; prompts read again can push out more, and hits collapse: "
        "give more memory, dispatch: prefix, or fewer conversations",
    )
