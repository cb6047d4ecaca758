"""Values of the symbols of a plan, for tests that evaluate its equations."""

from __future__ import annotations

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.step import equations
from planner.problems.serving.step.kernels import feed


def candidate_symbols(candidate: Candidate) -> dict[str, float]:
    """Value of every symbol that the pools of a plan bind or compute, in base units.

    Where the symbols of two pools have one name, they are those of the pool that decodes.
    """
    pool = candidate.last
    step, late = pool.step, pool.chosen_by
    bound = step.values(np.array([pool.batch]), pool.fill)
    values = {name: float(np.ravel(value)[0]) for name, value in bound.items()}
    values |= {"T_wait": late.get("wait", 0.0)}
    computed = feed(step.model.lowered("every_symbol"), values)
    values |= {name: float(value) for name, value in computed.items()}
    values |= dict.fromkeys(("T_first", "T_loop"), late["ttft"])  # in a loop others are waited for
    if candidate.joint is None:
        return values
    symbols = equations.pools_outputs(powered=False)
    together = {str(symbol): candidate.outputs[word] for word, symbol in symbols.items()}
    return {**values, **candidate.joint.symbols, **together}
