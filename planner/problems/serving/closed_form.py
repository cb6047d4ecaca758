"""The numbers of a plan as equations: its price and those behind it, as `--why` prints them.

They are the equations that the plan was computed with. At the values of the symbols of its pools
they make the plan's numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from formulas.algebra.equation import Equation
from formulas.nomenclature.serving_symbols import P_chip
from formulas.serving import power
from formulas.serving.bounds import decode_bound, prefill_busy_bound, prefill_math_bound
from formulas.serving.decode import decode_sending, decode_time, decode_work
from formulas.serving.outputs import (
    ENERGY,
    FILLS,
    FIRST_OF_A_LOOP,
    PRICE,
    READING_SLOT,
    ROOFLINE,
    ROOFLINE_SLOT,
)
from formulas.serving.pools import POOLS_RATE, pools_energy, pools_price
from formulas.serving.prefill import prefill_busy, prefill_time
from formulas.serving.throughput import (
    decode_share,
    slot_bound,
    slot_time,
    time_per_output_token,
    token_bound,
)
from planner.problems.serving.step import equations
from planner.problems.serving.step.kernels import BILLING

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingAnswer

STEP = (decode_time, decode_work, decode_sending)


def expression(word: str, mode: str, answer: ServingAnswer) -> sp.Expr:
    """Right-hand side of the equation of a plan's output; `word` is its name in the equations."""
    load, bound = answer.load, answer.provenance.estimate == "bound"
    outputs = equations.pools_outputs(powered=True)
    if mode == "disaggregated" and word in outputs:
        made, _ = equations.pools("given" if load == "given" else "none", word)
    else:
        mode = "decode" if mode == "disaggregated" else mode
        point, drawn = answer.plan, ""
        if point is not None and point.power_from in ("measured", "shared"):
            drawn = BILLING
        outputs = equations.pool_outputs(mode, bound, equations.LOAD_GIVEN)
        made = equations.pool(mode, bound, load, drawn)
        if outputs[word] == P_chip and not drawn:
            return P_chip
        if mode == "aggregated" and not bound and answer.scenario["workload"]["concurrency"]:
            made = (FIRST_OF_A_LOOP, *made)
    return next(equation.rhs for equation in made if equation.symbol == outputs[word])


def closed_form(
    mode: str, *, bound: bool, load: str, tpot: bool, energy: bool, counted: bool
) -> tuple[Equation, ...]:
    """The price of a plan of that mode and the equations behind it.

    Args:
        load: as of a `ServingAnswer`.
        tpot: whether the promise on the time per output token binds, which then comes first.
        energy: whether energy is made small, and stands for the price.
        counted: whether either takes the power that follows from the work.
    """
    if mode == "disaggregated":
        pools = pools_energy if energy else pools_price
        price = (pools, POOLS_RATE[load if load == "given" else "none"])
    else:
        filled = () if load == "none" else reversed(FILLS[load][:2])
        price = ((ENERGY if energy else PRICE)[mode], *filled)
    drawn = (
        power.DRAW_EQUATIONS["decode" if mode == "disaggregated" else mode]
        if energy
        else power.BILLED_POWER_EQUATIONS
    )
    whole = (*price, *(reversed(drawn) if counted else ()), *_slot(mode, bound=bound))
    if not tpot:
        return whole
    promised = (ROOFLINE[-1], token_bound) if bound else (time_per_output_token,)
    return (*promised, *whole)


def _slot(mode: str, *, bound: bool) -> tuple[Equation, ...]:
    """Equations of the time that a replica spends on a request."""
    if mode == "prefill":
        if bound:
            return (*READING_SLOT, ROOFLINE[0], prefill_busy_bound, prefill_math_bound)
        return (*READING_SLOT, prefill_busy, prefill_time)
    if bound:
        return (*ROOFLINE_SLOT, slot_bound, decode_bound)
    if mode == "aggregated":
        return slot_time, *STEP
    return slot_time, decode_share, *STEP
