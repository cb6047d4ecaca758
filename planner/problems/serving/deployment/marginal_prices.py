"""Two pools as symbols, and long-run and short-run marginal prices of input and output tokens.

In the long run a pool grows with what it serves, so that each kind has the price of the chips that
serve it at their most. In the fleet as it is the kind whose pool has room is free, and the other
bears the whole bill; under a load that both pools have room for, both are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.point import MTOK, MarginalPrices
from planner.problems.serving.step.kernels import feed, get_kernel, replica_rates
from planner.problems.serving.step.step import Step
from planner.text.tolerances import REL_TOL

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.pairs.pool_pairs import Pair
    from planner.problems.serving.task.task import TaskPair

POOL_SUFFIXES = {"prefill": "pf", "decode": "dec"}


def marginal_prices(candidate: Candidate) -> MarginalPrices | None:
    """Marginal prices of input and output tokens [USD/Mtok]; None for one pool."""
    joint = candidate.joint
    if joint is None:
        return None
    # With the price of a chip in a replica that serves at its most.
    symbols = dict(joint.symbols)
    batches = (candidate.pools[0].batch, joint.pair.batch)
    for x, pool, batch, fill in zip(
        POOL_SUFFIXES.values(), candidate.pools, batches, joint.pair.fills, strict=True
    ):
        symbols[f"k_{x}"] = float(pool.layouts.replica_chips[0])
        if "chip_price" in pool.chosen_by:
            task = pool.task.with_layout(arrivals=None)
            busy = Step(task, pool.layouts, bound=task.uses_bound)(np.array([batch]), fill)
            symbols[f"p_chip_{x}"] = float(np.ravel(busy["chip_price"])[0])
    rates = {name: symbols[f"n_{x}"] * symbols[f"X_{x}"] for name, x in POOL_SUFFIXES.items()}
    full = min(rates, key=rates.__getitem__)
    served = joint.outputs["requests"]
    room = rates[full] / served - 1
    balanced = max(rates.values()) / rates[full] - 1 <= REL_TOL
    long, short = (
        feed(get_kernel(table), {**symbols, "X_pools": served})
        for table in ("long_run", "short_run")
    )
    free = {
        "prefill": room > REL_TOL or full != "prefill",
        "decode": room > REL_TOL or full != "decode",
    }

    def priced(name: str, phase: str) -> float | None:
        if balanced and room <= REL_TOL:
            return None
        return 0.0 if free[phase] else float(short[name]) * MTOK

    return MarginalPrices(
        usd_per_mtok_input=float(long["C_in"]) * MTOK,
        usd_per_mtok_output=float(long["C_out"]) * MTOK,
        this_fleet_input=priced("C_in", "prefill"),
        this_fleet_output=priced("C_out", "decode"),
        full=full,
        room=max(room, 0.0),
    )


def pools_symbols(
    tasks: TaskPair,
    pools: Sequence[EvaluatedPool],
    values: Sequence[Mapping[str, float]],
    transfer: float,
    pair: Pair | None,
    slots: tuple[float, float],
) -> dict[str, float]:
    """Every symbol that the outputs of two pools need.

    `slots` are the times a replica of either pool spends per request at its most; without a `pair`
    no replica is spare and none is idle, as the roofline has it.
    """
    task = tasks.decode
    symbols = {
        "one_seq": 1.0, "L_in": task.input_tokens, "L_out": task.output_tokens,
        "L_dec": task.output_tokens - 1.0, "T_move": transfer,
        "T_ttft": values[0]["first"], "T_wait": values[0].get("wait", 0.0),
        "T_tpot": values[1]["tpot"], "m_grid": 1.0 if task.carbon is None else task.carbon,
    }  # fmt: skip
    for name, pool, drawn, slot, fill in zip(
        ("pf", "dec"), pools, values, slots, pair.fills if pair else (1.0, 1.0), strict=True
    ):
        task = pool.task
        spare, free = (task.spare, task.headroom) if pair else (0, 0.0)
        symbols |= {
            f"p_chip_{name}": drawn.get("chip_price", task.price),
            f"p_power_{name}": drawn.get("chip_power_price", task.electricity),
            f"n_chips_{name}": float(pool.layouts.chips[0]),
            f"n_{name}": float(pool.replicas) - spare,
            f"X_{name}": float(replica_rates(np.array([slot]), fill, free)[0]),
            **({f"P_chip_{name}": drawn["watts"]} if "watts" in drawn else {}),
        }
    return symbols if tasks.demand is None else {**symbols, "X_arr": tasks.demand}
