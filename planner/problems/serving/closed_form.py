"""The price of a plan as an equation, and those behind it, as `--why` prints them.

They are the equations that the plan was computed with. At the values that `symbols_of` gives they
make the plan's price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulas.algebra.equation import Equation
from formulas.serving.bounds import decode_bound, prefill_busy_bound, prefill_math_bound
from formulas.serving.decode import decode_time
from formulas.serving.outputs import FILLS, PRICE, READING_SLOT, ROOFLINE, ROOFLINE_SLOT
from formulas.serving.pools import POOLS_RATE, pools_price
from formulas.serving.prefill import prefill_busy, prefill_time
from formulas.serving.throughput import (
    decode_share,
    slot_bound,
    slot_time,
    time_per_output_token,
    token_bound,
)

if TYPE_CHECKING:
    from planner.problems.serving.deployment.pool import EvaluatedPool


def closed_form(mode: str, *, bound: bool, load: str, tpot: bool = False) -> tuple[Equation, ...]:
    """The price of a plan of that mode and the equations behind it.

    Parameters
    ----------
    load : `none`, `given` where it must be carried, `most` where as much as can be is served.
    tpot : whether the promise on the time per output token binds, which then comes first.
    """
    if mode == "disaggregated":
        price = (pools_price, POOLS_RATE[load if load == "given" else "none"])
    else:
        price = (PRICE[mode], *(() if load == "none" else reversed(FILLS[load][:2])))
    equations = (*price, *_slot(mode, bound=bound))
    if not tpot:
        return equations
    promised = (ROOFLINE[-1], token_bound) if bound else (time_per_output_token,)
    return (*promised, *equations)


def _slot(mode: str, *, bound: bool) -> tuple[Equation, ...]:
    """How long a replica works on a request."""
    if mode == "prefill":
        if bound:
            return (*READING_SLOT, ROOFLINE[0], prefill_busy_bound, prefill_math_bound)
        return (*READING_SLOT, prefill_busy, prefill_time)
    if bound:
        return (*ROOFLINE_SLOT, slot_bound, decode_bound)
    if mode == "aggregated":
        return slot_time, decode_time
    return slot_time, decode_share, decode_time


def symbols_of(pool: EvaluatedPool) -> dict[str, float]:
    """Value of every symbol that a pool of a plan binds or computes, in base units."""
    step = pool.step
    bound = step.values(np.array([pool.batch]), pool.fill)
    values = {name: float(np.ravel(value)[0]) for name, value in bound.items()}
    every = step.model.every
    computed = every(**{name: values[name] for name in every.names})
    return {**values, **{name: float(value) for name, value in computed.items()}}
